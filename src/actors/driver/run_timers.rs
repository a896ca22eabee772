//! The timers of a run: arms a sleep for the one that fires first.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::run::{RunId, RunTimer, TimerSubject};

/// How far the timers that were due before a takeover are spread: many runs may be resumed at once.
const RESUMED_SPREAD_MS: u64 = 2_000;

/// The longest wait of a run that was in progress when an earlier process crashed and has made no progress since: it
/// may be the only one that is allowed to run.
const SUSPECT_WAIT: Duration = Duration::from_secs(5);

/// When the timers of a run fire, each fixed when it is first seen, so that a changed clock does not prolong it.
#[derive(Default)]
pub(super) struct RunTimers(BTreeMap<TimerSubject, Instant>);

/// The facts of the driver that arms the timers.
#[derive(Clone, Copy)]
pub(super) struct TimerDriver {
    pub(super) run: RunId,
    /// Whether it took the run over.
    pub(super) taken_over: bool,
    /// Whether the run has made no progress since an earlier process crashed.
    pub(super) suspect: bool,
}

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
            let due = Instant::now() + wait(timer, now, driver);
            self.0.entry(timer.timer).or_insert(due);
        }
        self.0.iter().min_by_key(|(_, due)| **due).map(|(timer, due)| (*timer, *due))
    }
}

/// How long a timer is still to be waited for.
fn wait(timer: &RunTimer, now: Timestamp, driver: TimerDriver) -> Duration {
    let whole = Duration::from_millis(timer.delay_ms);
    let left = Duration::try_from(timer.at.duration_since(now)).unwrap_or_default().min(whole);
    let spread = match driver.taken_over {
        true => {
            let share = driver.run.0.as_u128() % u128::from(timer.delay_ms.clamp(1, RESUMED_SPREAD_MS));
            Duration::from_millis(u64::try_from(share).unwrap_or_default())
        }
        false => Duration::ZERO,
    };
    let wait = left.max(spread);
    if driver.suspect { wait.min(SUSPECT_WAIT) } else { wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(at: &str, delay_ms: u64) -> RunTimer {
        RunTimer { timer: TimerSubject::Retry { call: 1, attempt: 2 }, at: at.parse().unwrap(), delay_ms }
    }

    fn driver() -> TimerDriver {
        TimerDriver { run: RunId(uuid::Uuid::from_u128(77)), taken_over: false, suspect: false }
    }

    #[test]
    fn changed_clock_never_prolongs_a_wait() {
        let now = "2026-05-04T07:00:00Z".parse().unwrap();
        let of = |at| wait(&timer(at, 2_000), now, driver());
        assert_eq!(of("2026-05-04T07:00:01Z"), Duration::from_secs(1));
        assert_eq!(of("2026-05-04T09:00:00Z"), Duration::from_secs(2));
        assert_eq!(of("2026-05-04T06:00:00Z"), Duration::ZERO);
    }

    #[test]
    fn timers_due_before_a_restart_are_spread_and_suspect_runs_wait_less() {
        let now = "2026-05-04T07:00:00Z".parse().unwrap();
        let due = timer("2026-05-04T06:00:00Z", 100);
        let resumed = TimerDriver { taken_over: true, ..driver() };
        assert_eq!(wait(&due, now, resumed), Duration::from_millis(77));
        let long = timer("2026-05-04T07:10:00Z", 600_000);
        assert_eq!(wait(&long, now, TimerDriver { suspect: true, ..resumed }), SUSPECT_WAIT);
    }
}
