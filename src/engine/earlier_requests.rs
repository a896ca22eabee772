//! Requests that earlier processes accepted recently, for clients that retry without an idempotency key.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::Engine;
use crate::mutex::lock;
use crate::public::EventId;
use crate::run::{Event, Fault, RequestIdentity, RunId, SessionId, TenantId};
use crate::store::{Error, RecentRequest, Store};

/// How long after its acceptance a run is kept for retries. The clients' own timeout is ten minutes.
pub(crate) const RETRY_WINDOW: Duration = Duration::from_secs(900);
/// How long after its answer a run is kept for retries. Clients wait at most eight seconds between attempts.
pub(crate) const ANSWERED_RETRY_WINDOW: Duration = Duration::from_secs(30);
/// Maximum number of runs kept; ended runs are dropped first, then the oldest.
pub(crate) const MAX_EARLIER_RUNS: u32 = 10_000;

/// Runs that earlier processes accepted, until the server takes them.
pub(super) struct EarlierRequests(Mutex<Vec<RecentRequest>>);

impl EarlierRequests {
    /// Reads the runs that had not ended, and those accepted within [`RETRY_WINDOW`] that wait or ended
    /// within [`ANSWERED_RETRY_WINDOW`]. Both are measured back from the last event, because the clock may
    /// have been changed while no server was running.
    pub(super) async fn read(store: &Store) -> Result<Self, Error> {
        let now = Timestamp::now();
        let now = store.last_event_at().await?.map_or(now, |last| last.min(now));
        // An unrepresentable time lies before every run.
        let before = |span: Duration| now.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH);
        store
            .recent_requests(before(RETRY_WINDOW), before(ANSWERED_RETRY_WINDOW), MAX_EARLIER_RUNS)
            .await
            .map(|runs| Self(Mutex::new(runs)))
    }
}

/// The last event of a run before the decision whose message satisfies `said`; the beginning if the run
/// has no such decision.
pub(super) async fn event_before_decision(
    store: &Store,
    tenant: &TenantId,
    run: RunId,
    said: impl Fn(&RequestIdentity) -> bool,
) -> Result<EventId, Fault> {
    let events = store.run_events(tenant, run).await?;
    let is_said = |event: &Event| match event {
        Event::Decided { word: Some(word), .. } | Event::ListChangeAsked { word: Some(word), .. } => {
            said(word)
        }
        _ => false,
    };
    let decided = events.iter().rev().find(|event| is_said(&event.body));
    Ok(EventId::after_seq(decided.map_or(0, |event| event.seq.saturating_sub(1))))
}

impl Engine {
    /// The last event of a run before the decision by the request with this fingerprint; the beginning if the
    /// request started the run.
    pub(crate) async fn event_before_request(
        &self,
        tenant: &TenantId,
        run: RunId,
        asked: &str,
    ) -> Result<EventId, Fault> {
        event_before_decision(&self.parts.store, tenant, run, |word| word.asked.as_deref() == Some(asked))
            .await
    }

    /// Takes the runs that earlier processes had accepted recently when this engine started, oldest first.
    /// Later calls return nothing.
    pub(crate) fn take_earlier_requests(&self) -> Vec<RecentRequest> {
        std::mem::take(&mut lock(&self.earlier.0))
    }

    /// Waits until a run that an earlier process left unfinished is in progress here, or its conversation has
    /// no unfinished runs left. Gives the conversation priority. Returns at once if this process does not
    /// resume runs.
    pub(crate) async fn wait_until_resumed(&self, tenant: &TenantId, session: &SessionId, run: RunId) {
        if self.parts.is_serving.load(Ordering::Acquire) {
            tokio::select! {
                () = self.parts.active_runs.wait_until_active(tenant, run) => {}
                () = self.system.registry.resume(tenant.clone(), session.clone()) => {}
            }
        }
    }
}
