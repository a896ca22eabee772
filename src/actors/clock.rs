//! The engine's clock, which defines what "today" means.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Local time in the configured zone. The configuration can freeze it for demonstrations and tests; the
/// journal's `at` is always the real time.
#[derive(Debug, Clone)]
pub struct EngineClock {
    zone: TimeZone,
    fixed: Option<Timestamp>,
}

impl EngineClock {
    /// A clock in `zone`, frozen at `fixed` if given.
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
