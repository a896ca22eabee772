//! The time in which something was awaited.

use std::time::{Duration, Instant};

/// Adds up the time in which something was awaited.
#[derive(Default)]
pub(super) struct Waited {
    since: Option<Instant>,
    total: Duration,
}

impl Waited {
    pub(super) fn busy(&mut self, waiting: bool) {
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
