//! The engine's clock: the time that "today" refers to.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Local time in the configured zone; frozen where the configuration says so, for demonstrations
/// and tests. The journal's `at` is always real.
#[derive(Debug, Clone)]
pub struct Clock {
    zone: TimeZone,
    fixed: Option<Timestamp>,
}

impl Clock {
    /// A clock in `zone`, standing still at `fixed` if given.
    pub fn new(zone: TimeZone, fixed: Option<Timestamp>) -> Self {
        Self { zone, fixed }
    }

    /// The time zone.
    pub fn zone(&self) -> TimeZone {
        self.zone.clone()
    }

    /// The local time.
    pub fn now(&self) -> Zoned {
        self.fixed.unwrap_or_else(Timestamp::now).to_zoned(self.zone.clone())
    }
}
