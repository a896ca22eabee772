//! Places at which a test can have this process end as a power failure would, or the work at hand panic.
//!
//! What happens there, and which environment variables say so, is not in this library: the program of
//! `tests/support/crashing.rs`, which only tests build, installs it. Without the feature `crash-points`
//! there is nothing to install into, and with it no other program installs anything.

/// Before an event is appended to the journal.
pub(crate) const BEFORE: &str = "before";
/// After an event was appended; one that must be durable is then on disk.
pub(crate) const AFTER: &str = "after";

#[cfg(feature = "crash-points")]
mod installed {
    use std::sync::OnceLock;

    /// What a program of tests has happen.
    #[derive(Debug, Clone, Copy)]
    pub struct Points {
        /// Called with `before` or `after`, the name of an event and the request of its run.
        pub reached: fn(when: &str, event: &str, request: &str),
        /// How many events a run may have, in place of more than a test can bring about.
        pub most_events: Option<u64>,
    }

    static POINTS: OnceLock<Points> = OnceLock::new();

    /// Has this happen in this process from now on. The first call counts.
    pub fn install(points: Points) {
        let _ = POINTS.set(points);
    }

    pub(crate) fn point(when: &str, event: &str, request: &str) {
        if let Some(points) = POINTS.get() {
            (points.reached)(when, event, request);
        }
    }

    pub(crate) fn most_events(most: u64) -> u64 {
        POINTS.get().and_then(|points| points.most_events).unwrap_or(most)
    }
}

#[cfg(feature = "crash-points")]
pub use installed::{Points, install};
#[cfg(feature = "crash-points")]
pub(crate) use installed::{most_events, point};

/// Such a place, in a run with this request.
#[cfg(not(feature = "crash-points"))]
pub(crate) fn point(_: &str, _: &str, _: &str) {}

/// How many events a run may have.
#[cfg(not(feature = "crash-points"))]
pub(crate) fn most_events(most: u64) -> u64 {
    most
}
