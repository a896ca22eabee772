//! The `proscenium` program with crash points, only for tests: environment variables kill it as a power
//! failure would, or make the current task panic.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `CRASH_POINT_AT` | the place: `before:tool_started`, `after:answered`, … |
//! | `CRASH_POINT_SKIP` | how often it is passed first; 0 by default |
//! | `CRASH_POINT_WORDS` | only runs whose request has these words |
//! | `CRASH_POINT_PANICS` | panics so often instead of SIGKILL |
//! | `CRASH_MOST_EVENTS` | the maximum number of events per run |
//!
//! An optimised build needs the feature `crash-points`.

#[cfg(any(feature = "crash-points", debug_assertions))]
#[path = "../../src/cli/mod.rs"]
mod cli;

use std::process::ExitCode;

use mimalloc::MiMalloc;
#[cfg(any(feature = "crash-points", debug_assertions))]
use proscenium::shipped;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[cfg(any(feature = "crash-points", debug_assertions))]
fn main() -> ExitCode {
    points::install();
    cli::main()
}

#[cfg(not(any(feature = "crash-points", debug_assertions)))]
fn main() -> ExitCode {
    use std::io::Write;
    let _ =
        writeln!(std::io::stderr(), "error: built without crash points; build with --features crash-points");
    ExitCode::FAILURE
}

#[cfg(any(feature = "crash-points", debug_assertions))]
mod points {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicI64, Ordering};

    use proscenium::crash::Points;

    pub fn install() {
        let max_events = std::env::var("CRASH_MOST_EVENTS").ok().and_then(|max| max.parse().ok());
        proscenium::crash::install(Points { reached, max_events });
    }

    #[expect(clippy::panic, reason = "a test program panics on purpose, with what a panic reports")]
    fn reached(when: &str, event: &str, request: &str) {
        static AT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("CRASH_POINT_AT").ok());
        static WORDS: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("CRASH_POINT_WORDS").ok());
        static PANICS: LazyLock<Option<i64>> =
            LazyLock::new(|| std::env::var("CRASH_POINT_PANICS").ok().and_then(|max| max.parse().ok()));
        static LEFT: LazyLock<AtomicI64> = LazyLock::new(|| {
            let skip = std::env::var("CRASH_POINT_SKIP").ok().and_then(|skip| skip.parse().ok());
            AtomicI64::new(skip.unwrap_or(0))
        });
        let here = AT.as_deref().and_then(|at| at.split_once(':')).is_some_and(|at| at == (when, event));
        let meant = WORDS.as_deref().is_none_or(|words| request.contains(words));
        if !here || !meant {
            return;
        }
        let left = LEFT.fetch_sub(1, Ordering::SeqCst);
        if left > 0 {
            return;
        }
        if let Some(max) = *PANICS {
            if left + max > 0 {
                std::panic::panic_any("a crash point");
            }
            return;
        }
        // If even that fails, an abort leaves as little behind.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}
