//! Equal questions in progress: the first one asks, those behind it wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{CacheKey, Completion, Error, is_the_models};

type Landed = Result<Completion, Error>;
type Open = Arc<Mutex<HashMap<CacheKey, watch::Receiver<Option<Landed>>>>>;

/// As many as questions are in progress.
#[derive(Default)]
pub(super) struct Flights {
    open: Open,
}

/// Where a question stands.
pub(super) enum FlightRole {
    /// It asks.
    First(Flight),
    /// It waits.
    Behind(FlightFollower),
}

/// Ends when it lands or is dropped.
pub(super) struct Flight {
    open: Open,
    key: CacheKey,
    tell: watch::Sender<Option<Landed>>,
}

pub(super) struct FlightFollower(watch::Receiver<Option<Landed>>);

impl Flights {
    pub(super) fn place(&self, key: CacheKey) -> FlightRole {
        let mut open = lock(&self.open);
        if let Some(flight) = open.get(&key) {
            return FlightRole::Behind(FlightFollower(flight.clone()));
        }
        let (tell, told) = watch::channel(None);
        open.insert(key, told);
        FlightRole::First(Flight { open: self.open.clone(), key, tell })
    }
}

impl Flight {
    /// Tells those behind, unless the failure is no matter of theirs.
    pub(super) fn land(self, result: &Landed) {
        let theirs = result.as_ref().err().is_none_or(is_the_models);
        if theirs {
            // Nobody may be waiting.
            let _ = self.tell.send(Some(result.clone()));
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.key);
    }
}

impl FlightFollower {
    /// How the flight ended; `None` if it ended without a word.
    pub(super) async fn landed(mut self) -> Option<Landed> {
        let landed = self.0.wait_for(Option::is_some).await.ok()?;
        landed.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A map that is inserted into and removed from is consistent at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
