//! Measures how long a run waits for models, tools and people.

use std::time::{Duration, Instant};

/// Accumulates the time spent waiting.
#[derive(Default)]
pub(super) struct WaitTimer {
    since: Option<Instant>,
    total: Duration,
}

impl WaitTimer {
    pub(super) fn set_waiting(&mut self, waiting: bool) {
        match (self.since, waiting) {
            (None, true) => self.since = Some(Instant::now()),
            (Some(since), false) => {
                self.total += since.elapsed();
                self.since = None;
            }
            _ => {}
        }
    }

    pub(super) fn total(&self) -> Duration {
        self.total
    }
}
