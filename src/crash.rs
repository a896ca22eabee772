//! Places at which a test can have this process end as a power failure would, or the work at hand
//! panic. Without the feature `crash-points`, which only tests have, there are none.
//!
//! | variable | what |
//! | --- | --- |
//! | `CRASH_POINT_AT` | the place: `before:tool_started`, `after:answered`, … |
//! | `CRASH_POINT_SKIP` | how often it is passed first; 0 by default |
//! | `CRASH_POINT_WORDS` | only runs whose request has these words |
//! | `CRASH_POINT_PANICS` | set: a panic each time, in place of SIGKILL |
//! | `CRASH_MOST_EVENTS` | how many events a run may have, in place of more than a test can bring about |

/// Before an event is appended to the journal.
pub(crate) const BEFORE: &str = "before";
/// After an event was appended; one that must be durable is then on disk.
pub(crate) const AFTER: &str = "after";

/// Such a place, in a run with this request.
#[cfg(feature = "crash-points")]
pub(crate) fn point(when: &str, event: &str, request: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicI64, Ordering};

    static AT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("CRASH_POINT_AT").ok());
    static WORDS: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("CRASH_POINT_WORDS").ok());
    static PANICS: LazyLock<bool> = LazyLock::new(|| std::env::var_os("CRASH_POINT_PANICS").is_some());
    static LEFT: LazyLock<AtomicI64> = LazyLock::new(|| {
        let skip = std::env::var("CRASH_POINT_SKIP").ok().and_then(|skip| skip.parse().ok());
        AtomicI64::new(skip.unwrap_or(0))
    });
    let here = AT.as_deref().and_then(|at| at.split_once(':')).is_some_and(|at| at == (when, event));
    let meant = WORDS.as_deref().is_none_or(|words| request.contains(words));
    if !here || !meant || LEFT.fetch_sub(1, Ordering::SeqCst) > 0 {
        return;
    }
    if *PANICS {
        std::panic::resume_unwind(Box::new("a crash point"));
    }
    // Where even that fails, an abort leaves as little behind.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}

#[cfg(not(feature = "crash-points"))]
pub(crate) fn point(_: &str, _: &str, _: &str) {}

/// How many events a run may have.
#[cfg(feature = "crash-points")]
pub(crate) fn most_events(most: u64) -> u64 {
    static MOST: std::sync::LazyLock<Option<u64>> =
        std::sync::LazyLock::new(|| std::env::var("CRASH_MOST_EVENTS").ok()?.parse().ok());
    MOST.unwrap_or(most)
}

#[cfg(not(feature = "crash-points"))]
pub(crate) fn most_events(most: u64) -> u64 {
    most
}
