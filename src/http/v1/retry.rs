//! Clients that send again by themselves when a connection breaks.
//!
//! The official clients do so without a key that would tell one request from another, and number their
//! tries (`x-stainless-retry-count`). So a run whose client went away before it had its answer is
//! remembered for a while by what was asked; a further try of the same words, from the same place and in
//! the same name, gets that run instead of another. Each such run is given to one try only, and a first
//! try never gets one: who begins with the same words by chance meets nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use sha2::{Digest, Sha256};

use super::super::who::Who;
use super::request::CompletionRequest;
use crate::run::{RunId, SessionId};

/// How long a run without a client is kept for a further try; the clients' own timeout is ten minutes.
const KEPT: Duration = Duration::from_secs(900);
/// Most such runs.
const MOST: usize = 10_000;

/// What makes two requests the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn of(
        who: &Who,
        request: &HttpRequest,
        session: Option<&SessionId>,
        body: &CompletionRequest,
    ) -> Self {
        let peer = request.peer_addr().map(|addr| addr.ip().to_string()).unwrap_or_default();
        let session = session.map_or("", SessionId::as_str);
        let mut hasher = Sha256::new();
        for part in [who.tenant.as_str(), &who.user, &peer, session] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        // Plain data, which can always be written.
        hasher.update(serde_json::to_vec(body).unwrap_or_default());
        Self(hasher.finalize().into())
    }
}

/// Runs whose clients went away.
#[derive(Debug, Clone, Default)]
pub(crate) struct Orphans(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    runs: HashMap<Key, VecDeque<RunId>>,
    ages: VecDeque<(Instant, Key)>,
}

impl Orphans {
    /// The run that this request is a further try for.
    pub(crate) fn take(&self, key: &Key, request: &HttpRequest) -> Option<RunId> {
        let tries = request.headers().get("x-stainless-retry-count")?.to_str().ok()?;
        if tries.trim().parse::<u32>().ok()? == 0 {
            return None;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(Instant::now());
        let runs = kept.runs.get_mut(key)?;
        let run = runs.pop_front();
        if runs.is_empty() {
            kept.runs.remove(key);
        }
        run
    }

    /// Watches over the answer of `run`: if it is dropped before it was delivered, the client has gone.
    pub(crate) fn delivery(&self, key: Key, run: RunId) -> Delivery {
        Delivery { orphans: self.clone(), key: Some(key), run }
    }

    fn add(&self, key: Key, run: RunId) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.forget(now);
        kept.ages.push_back((now, key.clone()));
        kept.runs.entry(key).or_default().push_back(run);
    }
}

impl Kept {
    /// Drops what is too old or too much. A key's oldest run goes first, as it came.
    fn forget(&mut self, now: Instant) {
        while let Some((since, _)) = self.ages.front() {
            if now.duration_since(*since) < KEPT && self.ages.len() < MOST {
                break;
            }
            let Some((_, key)) = self.ages.pop_front() else { break };
            // Those that were taken have left fewer runs than ages: only a surplus is dropped.
            let left = self.ages.iter().filter(|(_, other)| *other == key).count();
            if let Some(runs) = self.runs.get_mut(&key) {
                while runs.len() > left {
                    runs.pop_front();
                }
                if runs.is_empty() {
                    self.runs.remove(&key);
                }
            }
        }
    }
}

/// An answer on its way to its client.
#[derive(Debug)]
pub(crate) struct Delivery {
    orphans: Orphans,
    key: Option<Key>,
    run: RunId,
}

impl Delivery {
    /// The client has it.
    pub(crate) fn delivered(mut self) {
        self.key = None;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.orphans.add(key, self.run);
        }
    }
}
