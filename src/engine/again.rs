//! What earlier processes accepted of late, for clients that send again without a name.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::Engine;
use crate::actors::driver::store_fault;
use crate::public::EventId;
use crate::run::{Event, Fault, RunId, SessionId, TenantId, Word};
use crate::store::{Asked, Error, Store};

/// How long after its acceptance a run is kept for a further try; the clients' own timeout is ten minutes.
pub(crate) const KEPT: Duration = Duration::from_secs(900);
/// How long after its answer was sent. The clients wait eight seconds at most between two tries.
pub(crate) const ANSWERED: Duration = Duration::from_secs(30);
/// Most runs that are kept; those that ended are left out first, and then the oldest.
pub(crate) const MOST: u32 = 10_000;

/// Runs that earlier processes accepted, until the server takes them.
pub(super) struct Earlier(Mutex<Vec<Asked>>);

impl Earlier {
    /// Reads what had not ended, and what was accepted within [`KEPT`] and waits or ended within
    /// [`ANSWERED`], both before the last event: while no server was there the clock may have been set.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn read(store: &Store) -> Result<Self, Error> {
        let now = Timestamp::now();
        let now = store.last_event_at().await?.map_or(now, |last| last.min(now));
        // A time that cannot be told lies before every run.
        let before = |span: Duration| now.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH);
        store.asked(before(KEPT), before(ANSWERED), MOST).await.map(|runs| Self(Mutex::new(runs)))
    }
}

/// The last event of a run before the words that decided about it, of which `said` tells; the beginning
/// where the run began with them.
pub(super) async fn before_word(
    store: &Store,
    tenant: &TenantId,
    run: RunId,
    said: impl Fn(&Word) -> bool,
) -> Result<EventId, Fault> {
    let events = store.run_events(tenant, run).await.map_err(|error| store_fault(&error))?;
    let decided = events
        .iter()
        .rev()
        .find(|event| matches!(&event.body, Event::Decided { word: Some(word), .. } if said(word)));
    Ok(EventId::behind(decided.map_or(0, |event| event.seq.saturating_sub(1))))
}

impl Engine {
    /// The last event of a run before the words that decided about it and bear this mark; the beginning
    /// where it began with them.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn before_asked(
        &self,
        tenant: &TenantId,
        run: RunId,
        asked: &str,
    ) -> Result<EventId, Fault> {
        before_word(&self.parts.store, tenant, run, |word| word.asked.as_deref() == Some(asked)).await
    }

    /// The runs that earlier processes had accepted of late when this engine started, the oldest first;
    /// they are told once.
    pub(crate) fn take_earlier(&self) -> Vec<Asked> {
        std::mem::take(&mut self.earlier.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until a run that an earlier process left unfinished is under way here, or until nothing of its
    /// conversation is left to be carried on; its turn is brought forward. Where nothing is carried on here
    /// there is nothing to wait for.
    pub(crate) async fn until_carried_on(&self, tenant: &TenantId, session: &SessionId, run: RunId) {
        if self.parts.carries_on.load(Ordering::Acquire) {
            tokio::select! {
                () = self.parts.live.wait_until_active(tenant, run) => {}
                () = self.system.registry.carry_on(tenant.clone(), session.clone()) => {}
            }
        }
    }
}
