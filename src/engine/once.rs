//! Requests that may be sent again: under one idempotency key a user starts one run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::{ChatRequest, Engine, Ticket, again};
use crate::actors::driver::store_fault;
use crate::public::EventId;
use crate::run::{Fault, Idempotency, RunId, SessionId, TenantId, Word, canonical_json};

/// Longest idempotency key, in characters.
const MAX_KEY: usize = 255;
/// Most requests with a key that are on their way to be accepted.
const MAX_UNDER_WAY: usize = 10_000;

/// What became of a request that names itself.
pub enum Submitted {
    /// It was accepted now.
    New(Ticket),
    /// An equal request was accepted before under the same key; nothing was started.
    Before {
        /// Its run, under way or ended; [`Engine::answer_of`] has its document.
        run: RunId,
        /// The run's conversation.
        session: SessionId,
        /// The last event before the request: see [`Ticket::after`].
        after: EventId,
    },
}

impl Engine {
    /// Submits a request; under its idempotency key, where it has one, it is carried out once however
    /// often it is sent, also after a restart, until its conversation is erased. A word that decides about a
    /// run which waits decides once, and its run is the one that it decided about. Of equal requests at
    /// the same time one is accepted, and the others hear of its run. Two requests are equal where
    /// message, user, conversation (as the client named it, if it did), history, instructions, `plan_only`,
    /// `require_approval`, `dry_run` and the plan that came with them are.
    ///
    /// What was begun here goes on when the caller goes away.
    ///
    /// # Errors
    /// `request.idempotency_key` for a key that is not 1 to 255 printable ASCII characters,
    /// `request.idempotency_conflict` where another request was accepted under the key, `engine.busy`
    /// where too many are on their way, and those of [`Engine::submit`].
    pub async fn submit_once(&self, mut request: ChatRequest) -> Result<Submitted, Fault> {
        let intake = self.intake();
        let Some(key) = request.idempotency.take() else {
            return Self::accept(&intake, request, None).await.map(Submitted::New);
        };
        if !(1..=MAX_KEY).contains(&key.len()) || !key.bytes().all(|b| matches!(b, b' '..=b'~')) {
            let message = format!("an idempotency key has 1 to {MAX_KEY} printable ASCII characters");
            return Err(Fault::new("request.idempotency_key", message));
        }
        let (tenant, user) = (request.tenant.clone(), request.user.clone());
        // Each user's keys are their own.
        let place = self.once.place(&tenant, &format!("{key}\u{0}{user}"))?;
        let guard = place.lock.clone().lock_owned().await;
        let asked = Idempotency { hash: hash(&request), key };
        let store = self.parts.store.clone();
        let (tell, told) = oneshot::channel();
        // Until the request is in the journal nobody else may look: a caller that goes away in between
        // must not give the key back.
        let work = async move {
            let before = store.idempotent(&tenant, &user, &asked.key).await;
            let submitted = match before {
                Err(error) => Err(store_fault(&error)),
                Ok(None) => Self::accept(&intake, request, Some(asked)).await.map(Submitted::New),
                Ok(Some(before)) if before.hash == asked.hash => {
                    let said = |word: &Word| word.idempotency.as_ref() == Some(&asked);
                    again::before_word(&store, &tenant, before.run, said)
                        .await
                        .map(|after| Submitted::Before { run: before.run, session: before.session, after })
                }
                Ok(Some(before)) => Err(Fault::new(
                    "request.idempotency_conflict",
                    format!(
                        "another request was accepted under this idempotency key, as run {}; give each request a key of its own",
                        before.run
                    ),
                )),
            };
            drop(guard);
            drop(place);
            // Whoever asked may have gone.
            let _ = tell.send(submitted);
        };
        self.system.spawn(work);
        told.await
            .map_err(|_| Fault::new("engine.stopped", "the engine stopped before the request was accepted"))?
    }
}

/// Of what the client gave (a wish for approval, a dry run and a plan of its own included), not of what was
/// made of it: without a conversation of its own each request gets a new one. A part that is absent does
/// not count, so that later parts change no hash.
fn hash(request: &ChatRequest) -> String {
    let ChatRequest {
        message,
        session,
        tenant: _,
        user,
        no_own_approval: _,
        own_session: _,
        history,
        instructions,
        plan_only,
        idempotency: _,
        asked: _,
        cache: _,
        require_approval,
        dry_run,
        plan,
    } = request;
    let said = |flag: &bool| flag.then_some(true);
    let (approval, dry_run) = (said(require_approval), said(dry_run));
    let parts = json!({"require_approval": approval, "dry_run": dry_run, "plan": plan,
        "message": message, "session": session, "user": user, "history": history,
        "instructions": instructions, "plan_only": plan_only});
    let digest = Sha256::digest(canonical_json(&parts).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

type Key = (TenantId, String);

/// A lock for each key in use. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Locks(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    locks: HashMap<Key, Shared>,
    under_way: usize,
}

struct Shared {
    lock: Arc<tokio::sync::Mutex<()>>,
    places: usize,
}

/// A place in the line at a key's lock; the lock is forgotten with its last place.
struct Place {
    locks: Locks,
    key: Key,
    lock: Arc<tokio::sync::Mutex<()>>,
}

/// Holds a key's lock.
pub(super) struct Guard {
    _guard: tokio::sync::OwnedMutexGuard<()>,
    _place: Place,
}

impl Locks {
    /// Waits for the lock of a key.
    ///
    /// # Errors
    /// `engine.busy` where too many wait.
    pub(super) async fn lock(&self, tenant: &TenantId, key: &str) -> Result<Guard, Fault> {
        let place = self.place(tenant, key)?;
        let guard = place.lock.clone().lock_owned().await;
        Ok(Guard { _guard: guard, _place: place })
    }

    fn place(&self, tenant: &TenantId, key: &str) -> Result<Place, Fault> {
        let mut held = self.held();
        if held.under_way >= MAX_UNDER_WAY {
            let message = "too many requests are waiting to be accepted; try again later";
            return Err(Fault::new("engine.busy", message));
        }
        held.under_way += 1;
        let key = (tenant.clone(), key.to_owned());
        let shared =
            held.locks.entry(key.clone()).or_insert_with(|| Shared { lock: Arc::default(), places: 0 });
        shared.places += 1;
        Ok(Place { locks: self.clone(), lock: shared.lock.clone(), key })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing in here panics half-way, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.locks.held();
        held.under_way -= 1;
        if let Some(shared) = held.locks.get_mut(&self.key) {
            shared.places -= 1;
            if shared.places == 0 {
                held.locks.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_shared_while_it_is_used_and_forgotten_afterwards() {
        let locks = Locks::default();
        let tenant = TenantId::new("acme").unwrap();
        let (first, second) = (locks.place(&tenant, "k").unwrap(), locks.place(&tenant, "k").unwrap());
        let other = locks.place(&tenant, "l").unwrap();
        assert!(Arc::ptr_eq(&first.lock, &second.lock) && !Arc::ptr_eq(&first.lock, &other.lock));
        drop(first);
        assert_eq!(locks.held().locks.len(), 2);
        drop((second, other));
        assert!(locks.held().locks.is_empty());
        assert_eq!(locks.held().under_way, 0);
    }

    #[test]
    fn requests_that_wait_are_bounded() {
        let locks = Locks::default();
        let tenant = TenantId::new("acme").unwrap();
        let places: Vec<Place> = (0..MAX_UNDER_WAY).map(|_| locks.place(&tenant, "k").unwrap()).collect();
        assert_eq!(locks.place(&tenant, "l").err().unwrap().code, "engine.busy");
        drop(places);
        locks.place(&tenant, "l").unwrap();
    }
}
