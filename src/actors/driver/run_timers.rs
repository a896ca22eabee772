//! The timers of a run: arms a sleep for the one that fires first.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::run::{RunTimer, TimerDriver, TimerSubject};

/// When the timers of a run fire, each fixed when it is first seen, so that a changed clock does not prolong it.
#[derive(Default)]
pub(super) struct RunTimers(BTreeMap<TimerSubject, Instant>);

impl RunTimers {
    pub(super) fn first(
        &mut self,
        running: impl Iterator<Item = RunTimer>,
        now: Timestamp,
        driver: TimerDriver,
    ) -> Option<(TimerSubject, Instant)> {
        let running: Vec<RunTimer> = running.collect();
        self.0.retain(|timer, _| running.iter().any(|one| one.timer == *timer));
        for timer in &running {
            let due = Instant::now() + timer.wait(now, driver);
            self.0.entry(timer.timer).or_insert(due);
        }
        self.0.iter().min_by_key(|(_, due)| **due).map(|(timer, due)| (*timer, *due))
    }
}
