//! Idempotent requests: under one idempotency key a user starts one run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::{ChatRequest, Engine, Ticket, again};
use crate::actors::driver::store_fault;
use crate::public::EventId;
use crate::run::{Fault, Idempotency, RequestIdentity, RunId, SessionId, TenantId, canonical_json};

/// Maximum length of an idempotency key, in characters.
const MAX_KEY: usize = 255;
/// Maximum number of requests with a key that wait to be accepted.
const MAX_UNDER_WAY: usize = 10_000;

/// The result of submitting a request.
pub enum Submitted {
    /// The request was accepted.
    New(Ticket),
    /// An equal request was accepted earlier under the same key; nothing was started.
    Before {
        /// Its run, in progress or ended; [`Engine::answer_of`] returns its document.
        run: RunId,
        /// The run's conversation.
        session: SessionId,
        /// The last event before the request: see [`RunTicket::after`].
        after: EventId,
    },
}

impl Engine {
    /// Submits a request. With an idempotency key it is carried out once however often it is sent, even after
    /// a restart, until its conversation is erased. A message that decides about a waiting run decides once,
    /// and its run is the one that it decided about. Of concurrent equal requests one is accepted, and the
    /// others get its run. Requests are equal if message, user, conversation (as named by the client, if it
    /// was), history, instructions, `plan_only`, `require_approval`, `dry_run` and the supplied plan are
    /// equal.
    ///
    /// The submission continues even if the caller drops this future.
    ///
    /// # Errors
    /// `request.idempotency_key` for a key that is not 1 to 255 printable ASCII characters,
    /// `request.idempotency_conflict` if a different request was accepted under the key, `engine.busy` if too
    /// many requests wait, and those of [`Engine::submit`].
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
        // Keys are scoped to the user.
        let place = self.once.place(&tenant, &format!("{key}\u{0}{user}"))?;
        let guard = place.lock.clone().lock_owned().await;
        let asked = Idempotency { hash: hash(&request), key };
        let store = self.parts.store.clone();
        let (tell, told) = oneshot::channel();
        // The key stays locked until the request is in the journal, even if the caller goes away before.
        let work = async move {
            let before = store.idempotent(&tenant, &user, &asked.key).await;
            let submitted = match before {
                Err(error) => Err(store_fault(&error)),
                Ok(None) => Self::accept(&intake, request, Some(asked)).await.map(Submitted::New),
                Ok(Some(before)) if before.hash == asked.hash => {
                    let said = |word: &RequestIdentity| word.idempotency.as_ref() == Some(&asked);
                    again::before_word(&store, &tenant, before.run, said)
                        .await
                        .map(|after| Submitted::Before { run: before.run, session: before.session, after })
                }
                Ok(Some(before)) => Err(Fault::new(
                    "request.idempotency_conflict",
                    format!(
                        "another request was accepted under this idempotency key, as run {}; use a different key for each request",
                        before.run
                    ),
                )),
            };
            drop(guard);
            drop(place);
            // The requester may have disconnected.
            let _ = tell.send(submitted);
        };
        self.system.spawn(work);
        told.await
            .map_err(|_| Fault::new("engine.stopped", "the engine stopped before the request was accepted"))?
    }
}

/// Hashes what the client sent, not what was made of it: a request without a conversation gets a new one each
/// time. Absent parts are not hashed, so that new optional parts do not change existing hashes.
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

/// A lock for each key in use. Clones share the locks.
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

/// A slot in the queue of a key's lock. The lock is removed with its last slot.
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
    /// `engine.busy` if too many requests wait.
    pub(super) async fn lock(&self, tenant: &TenantId, key: &str) -> Result<Guard, Fault> {
        let place = self.place(tenant, key)?;
        let guard = place.lock.clone().lock_owned().await;
        Ok(Guard { _guard: guard, _place: place })
    }

    fn place(&self, tenant: &TenantId, key: &str) -> Result<Place, Fault> {
        let mut held = self.held();
        if held.under_way >= MAX_UNDER_WAY {
            let message = "too many requests are waiting to be accepted; retry later";
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
        // No critical section panics half-way, so a poisoned map is consistent.
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
