//! Idempotent requests: under one idempotency key a user starts one run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::{ChatRequest, Engine, RunTicket, earlier_requests};
use crate::mutex::lock;
use crate::nesting;
use crate::planner;
use crate::public::EventId;
use crate::run::{
    Fault, Idempotency, PlanGuidance, RequestIdentity, RequestOptions, RunId, SessionId, TenantId,
    canonical_json,
};
use crate::scene::Catalogue;

/// Maximum length of an idempotency key, in characters.
const MAX_KEY_CHARS: usize = 255;
/// Maximum number of requests with a key that wait to be accepted.
const MAX_WAITING: usize = 10_000;

/// The result of submitting a request.
#[derive(Debug)]
pub enum Submitted {
    /// The request was accepted.
    New(RunTicket),
    /// An equal request was accepted earlier under the same key; nothing was started.
    Duplicate {
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
    /// was), history, instructions, `plan_only`, `require_approval`, `dry_run`, level, mode, constraints, the given
    /// state, the documents and the supplied plan are equal. One that only adds a level or a mode to the earlier request is
    /// its retry, too: earlier releases did not record these.
    ///
    /// The submission continues even if the caller drops this future.
    ///
    /// # Errors
    /// `request.idempotency_key` for a key that is not 1 to 255 printable ASCII characters,
    /// `request.idempotency_conflict` if a different request was accepted under the key, `engine.busy` if too
    /// many requests wait, and those of [`Engine::submit`].
    pub async fn submit_once(&self, mut request: ChatRequest) -> Result<Submitted, Fault> {
        let intake = self.intake();
        if let Some(guidance) = &request.guidance {
            check_guidance(&self.catalogue(), guidance)?;
        }
        let Some(key) = request.idempotency.take() else {
            // Boxed: it is large, and would be moved with each future that awaits this one.
            return Box::pin(Self::accept_request(&intake, request, None)).await.map(Submitted::New);
        };
        if !(1..=MAX_KEY_CHARS).contains(&key.len()) || !key.bytes().all(|b| matches!(b, b' '..=b'~')) {
            let message = format!("an idempotency key has 1 to {MAX_KEY_CHARS} printable ASCII characters");
            return Err(Fault::new("request.idempotency_key", message));
        }
        let (tenant, user) = (request.tenant.clone(), request.user.clone());
        // Keys are scoped to the user.
        let guard = self.key_locks.lock(&tenant, &format!("{key}\u{0}{user}")).await?;
        let asked = Idempotency { hash: request_hash(&request), key };
        let store = self.parts.store.clone();
        let (sender, receiver) = oneshot::channel();
        // The key stays locked until the request is in the journal, even if the caller goes away before.
        let work = async move {
            let before = store.claimed_request(&tenant, &user, &asked.key).await;
            let submitted = match before {
                Err(error) => Err(error.into()),
                Ok(None) => Self::accept_request(&intake, request, Some(asked)).await.map(Submitted::New),
                Ok(Some(before))
                    if before.hash == asked.hash || before.hash == hash_without_limits(&request) =>
                {
                    let is_same = |word: &RequestIdentity| {
                        word.idempotency
                            .as_ref()
                            .is_some_and(|known| known.key == asked.key && known.hash == before.hash)
                    };
                    earlier_requests::event_before_decision(&store, &tenant, before.run, is_same)
                        .await
                        .map(|after| Submitted::Duplicate { run: before.run, session: before.session, after })
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
            // The requester may have disconnected.
            let _ = sender.send(submitted);
        };
        self.system.spawn(work);
        receiver
            .await
            .map_err(|_| Fault::new("engine.stopped", "the engine stopped before the request was accepted"))?
    }
}

/// The largest `current_state`, in bytes of JSON.
const MAX_STATE_BYTES: usize = 16 * 1024;

fn check_guidance(catalogue: &Catalogue, guidance: &PlanGuidance) -> Result<(), Fault> {
    planner::check_constraints(catalogue, &guidance.constraints)?;
    let Some(given) = &guidance.current_state else { return Ok(()) };
    if nesting::is_too_deep([given]) {
        let what = format!("`current_state` is nested deeper than {} levels", nesting::MAX_DEPTH);
        return Err(Fault::new("request.too_deep", what));
    }
    if given.to_string().len() > MAX_STATE_BYTES {
        let what = format!("`current_state` has more than {MAX_STATE_BYTES} bytes: send what the plan needs");
        return Err(Fault::new("request.current_state", what));
    }
    Ok(())
}

/// Hashes what the client sent, not what was made of it: a request without a conversation gets a new one each
/// time. Absent parts are not hashed, so that new optional parts do not change existing hashes.
fn request_hash(request: &ChatRequest) -> String {
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
        fingerprint: _,
        trace_parent: _,
        options: RequestOptions { cache: _, require_approval, dry_run, unplanned, level, mode, maker },
        guidance,
        documents,
        plan,
    } = request;
    let if_set = |flag: &bool| flag.then_some(true);
    let (approval, dry_run) = (if_set(require_approval), if_set(dry_run));
    let mut parts = json!({"require_approval": approval, "level": level, "mode": mode, "dry_run": dry_run, "plan": plan, "guidance": guidance,
        "message": message, "session": session, "user": user, "history": history,
        "instructions": instructions, "plan_only": plan_only});
    // Hashed only if it is set, so that requests without it have the same hash as in earlier releases.
    if *unplanned {
        parts["unplanned"] = json!(true);
    }
    if !documents.is_empty() {
        parts["documents"] = json!(documents);
    }
    if let Some(maker) = maker {
        parts["maker"] = json!(maker);
    }
    let digest = Sha256::digest(canonical_json(&parts).as_bytes());
    HEXLOWER.encode(&digest)
}

/// The hash without level and mode. Earlier releases accepted these two and did not hash them, so that a retry across the
/// upgrade is still the same request.
fn hash_without_limits(request: &ChatRequest) -> String {
    let options = RequestOptions { level: None, mode: None, ..request.options };
    request_hash(&ChatRequest { options, ..request.clone() })
}

type KeyLockId = (TenantId, String);

/// A lock for each key in use. Clones share the locks.
#[derive(Clone, Default)]
pub(super) struct KeyLocks(Arc<Mutex<KeyLockTable>>);

#[derive(Default)]
struct KeyLockTable {
    locks: HashMap<KeyLockId, SharedKeyLock>,
    waiting: usize,
}

struct SharedKeyLock {
    lock: Arc<tokio::sync::Mutex<()>>,
    slots: usize,
}

/// A slot in the queue of a key's lock. The lock is removed with its last slot.
struct KeyLockSlot {
    locks: KeyLocks,
    key: KeyLockId,
    lock: Arc<tokio::sync::Mutex<()>>,
}

/// Holds a key's lock, and then its slot: fields are dropped in their order.
pub(super) struct KeyLockGuard {
    _guard: tokio::sync::OwnedMutexGuard<()>,
    _slot: KeyLockSlot,
}

impl KeyLocks {
    /// Waits for the lock of a key.
    ///
    /// # Errors
    /// `engine.busy` if too many requests wait.
    pub(super) async fn lock(&self, tenant: &TenantId, key: &str) -> Result<KeyLockGuard, Fault> {
        let slot = self.reserve_slot(tenant, key)?;
        let guard = slot.lock.clone().lock_owned().await;
        Ok(KeyLockGuard { _guard: guard, _slot: slot })
    }

    fn reserve_slot(&self, tenant: &TenantId, key: &str) -> Result<KeyLockSlot, Fault> {
        let mut held = self.lock_table();
        if held.waiting >= MAX_WAITING {
            let message = "too many requests are waiting to be accepted; retry later";
            return Err(Fault::new("engine.busy", message));
        }
        held.waiting += 1;
        let key = (tenant.clone(), key.to_owned());
        let shared =
            held.locks.entry(key.clone()).or_insert_with(|| SharedKeyLock { lock: Arc::default(), slots: 0 });
        shared.slots += 1;
        Ok(KeyLockSlot { locks: self.clone(), lock: shared.lock.clone(), key })
    }

    fn lock_table(&self) -> MutexGuard<'_, KeyLockTable> {
        // No critical section panics half-way, so a poisoned map is consistent.
        lock(&self.0)
    }
}

impl Drop for KeyLockSlot {
    fn drop(&mut self) {
        let mut held = self.locks.lock_table();
        held.waiting -= 1;
        if let Some(shared) = held.locks.get_mut(&self.key) {
            shared.slots -= 1;
            if shared.slots == 0 {
                held.locks.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_lock_is_shared_while_used_and_removed_afterwards() {
        let locks = KeyLocks::default();
        let tenant = TenantId::new("acme").unwrap();
        let (first, second) =
            (locks.reserve_slot(&tenant, "k").unwrap(), locks.reserve_slot(&tenant, "k").unwrap());
        let other = locks.reserve_slot(&tenant, "l").unwrap();
        assert!(Arc::ptr_eq(&first.lock, &second.lock) && !Arc::ptr_eq(&first.lock, &other.lock));
        drop(first);
        assert_eq!(locks.lock_table().locks.len(), 2);
        drop((second, other));
        assert!(locks.lock_table().locks.is_empty());
        assert_eq!(locks.lock_table().waiting, 0);
    }

    #[test]
    fn number_of_waiting_requests_is_bounded() {
        let locks = KeyLocks::default();
        let tenant = TenantId::new("acme").unwrap();
        let places: Vec<KeyLockSlot> =
            (0..MAX_WAITING).map(|_| locks.reserve_slot(&tenant, "k").unwrap()).collect();
        assert_eq!(locks.reserve_slot(&tenant, "l").err().unwrap().code, "engine.busy");
        drop(places);
        locks.reserve_slot(&tenant, "l").unwrap();
    }
}
