//! The time of a run's events while one driver has it.

use std::time::Instant;

use jiff::Timestamp;

/// The clock as it was when the driver began, and the time that has passed since: a clock that is set meanwhile changes
/// neither how long anything took nor the order of events.
pub(super) struct EventClock {
    began: Timestamp,
    since: Instant,
}

impl EventClock {
    pub(super) fn start() -> Self {
        Self { began: Timestamp::now(), since: Instant::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.began.checked_add(self.since.elapsed()).unwrap_or(self.began)
    }
}
