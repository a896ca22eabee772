//! Time that only goes forward, and that a test can move.

use std::time::Duration;

use governor::clock::Clock;
use governor::nanos::Nanos;
use tokio::time::Instant;

/// A clock that began when it was made; clones are the same clock.
#[derive(Debug, Clone)]
pub(super) struct Ticks {
    start: Instant,
    #[cfg(test)]
    ahead: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Ticks {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(test)]
            ahead: std::sync::Arc::default(),
        }
    }

    /// The time since it was made.
    pub(super) fn elapsed(&self) -> Duration {
        #[cfg(test)]
        let ahead = Duration::from_nanos(self.ahead.load(std::sync::atomic::Ordering::SeqCst));
        #[cfg(not(test))]
        let ahead = Duration::ZERO;
        self.start.elapsed() + ahead
    }

    #[cfg(test)]
    pub(super) fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap();
        self.ahead.fetch_add(nanos, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Clock for Ticks {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
