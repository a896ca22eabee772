//! Crash points: places where a test can end this process as a power failure would, or make the current
//! work panic.
//!
//! The behaviour and its environment variables are not part of this library: the test program
//! `tests/support/crashing.rs` installs them. Optimised builds can install nothing, unless they have the feature
//! `crash-points`, and no other program installs anything.

/// Before an event is appended to the journal.
pub(crate) const BEFORE: &str = "before";
/// After an event was appended; one that must be durable is then on disk.
pub(crate) const AFTER: &str = "after";

#[cfg(any(feature = "crash-points", debug_assertions))]
mod installed {
    use std::sync::OnceLock;

    /// The behaviour that a test program installs.
    #[derive(Debug, Clone, Copy)]
    pub struct Points {
        /// Called at each crash point with `before` or `after`, the event's name and its run's request.
        pub reached: fn(when: &str, event: &str, request: &str),
        /// Overrides the maximum number of events of a run, which a test could not reach otherwise.
        pub max_events: Option<u64>,
    }

    static POINTS: OnceLock<Points> = OnceLock::new();

    /// Installs the behaviour for this process. Only the first call has an effect.
    pub fn install(points: Points) {
        let _ = POINTS.set(points);
    }

    pub(crate) fn point(when: &str, event: &str, request: &str) {
        if let Some(points) = POINTS.get() {
            (points.reached)(when, event, request);
        }
    }

    pub(crate) fn max_events(max: u64) -> u64 {
        POINTS.get().and_then(|points| points.max_events).unwrap_or(max)
    }
}

#[cfg(any(feature = "crash-points", debug_assertions))]
pub use installed::{Points, install};
#[cfg(any(feature = "crash-points", debug_assertions))]
pub(crate) use installed::{max_events, point};

/// A crash point; does nothing here.
#[cfg(not(any(feature = "crash-points", debug_assertions)))]
pub(crate) fn point(_: &str, _: &str, _: &str) {}

/// The maximum number of events of a run.
#[cfg(not(any(feature = "crash-points", debug_assertions)))]
pub(crate) fn max_events(max: u64) -> u64 {
    max
}
