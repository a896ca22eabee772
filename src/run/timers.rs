//! Timers of a run. A timer is state, like everything else that is due: its driver arms a sleep from it and reports that
//! it fired.

use std::time::Duration;

use jiff::Timestamp;

use super::event::{RunStatus, TimerSubject};
use super::ids::RunId;
use super::state::{CallStatus, RunState};

/// How far the timers that were due before a takeover are spread: many runs may be resumed at once.
const RESUMED_SPREAD_MS: u64 = 2_000;

/// The longest wait of a run that was in progress when an earlier process crashed and has made no progress since: it
/// may be the only one that is allowed to run.
const SUSPECT_WAIT: Duration = Duration::from_secs(5);

/// A timer that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTimer {
    /// Its subject.
    pub timer: TimerSubject,
    /// When it is due.
    pub at: Timestamp,
    /// The whole wait in milliseconds, so that a clock that was set back does not prolong it.
    pub delay_ms: u64,
}

/// The facts of the driver that arms the timers.
#[derive(Clone, Copy)]
pub(crate) struct TimerDriver {
    pub(crate) run: RunId,
    /// Whether it took the run over.
    pub(crate) taken_over: bool,
    /// Whether the run has made no progress since an earlier process crashed.
    pub(crate) suspect: bool,
}

impl RunTimer {
    /// How long it is still to be waited for.
    pub(crate) fn wait(&self, now: Timestamp, driver: TimerDriver) -> Duration {
        let whole = Duration::from_millis(self.delay_ms);
        let left = Duration::try_from(self.at.duration_since(now)).unwrap_or_default().min(whole);
        let spread = match driver.taken_over {
            true => {
                let share = driver.run.0.as_u128() % u128::from(self.delay_ms.clamp(1, RESUMED_SPREAD_MS));
                Duration::from_millis(u64::try_from(share).unwrap_or_default())
            }
            false => Duration::ZERO,
        };
        let wait = left.max(spread);
        if driver.suspect { wait.min(SUSPECT_WAIT) } else { wait }
    }
}

impl RunState {
    /// The timers that run: none where the run waits, is being stopped or has ended.
    pub fn timers(&self) -> impl Iterator<Item = RunTimer> {
        let runs = self.status == RunStatus::Running && self.cancel.is_none() && self.answer.is_none();
        let timers = self.calls.open().filter_map(|(call, state)| match &state.status {
            CallStatus::BackedOff { attempt, until, delay_ms, .. } => {
                let timer = TimerSubject::Retry { call, attempt: *attempt };
                Some(RunTimer { timer, at: *until, delay_ms: *delay_ms })
            }
            _ => None,
        });
        timers.filter(move |_| runs)
    }

    /// The timer that fires first, if any runs.
    pub fn next_timer(&self) -> Option<RunTimer> {
        self.timers().min_by_key(|timer| (timer.at, timer.timer))
    }

    /// Milliseconds until the run's deadline, as far as its journal tells.
    pub(super) fn left_ms(&self) -> u64 {
        let Some(since) = self.time_since else { return u64::MAX };
        let passed = u64::try_from(self.at.duration_since(since).as_millis()).unwrap_or(0);
        self.settings().run_timeout_ms.saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let of = |at| timer(at, 2_000).wait(now, driver());
        assert_eq!(of("2026-05-04T07:00:01Z"), Duration::from_secs(1));
        assert_eq!(of("2026-05-04T09:00:00Z"), Duration::from_secs(2));
        assert_eq!(of("2026-05-04T06:00:00Z"), Duration::ZERO);
    }

    #[test]
    fn timers_due_before_a_restart_are_spread_and_suspect_runs_wait_less() {
        let now = "2026-05-04T07:00:00Z".parse().unwrap();
        let due = timer("2026-05-04T06:00:00Z", 100);
        let resumed = TimerDriver { taken_over: true, ..driver() };
        assert_eq!(due.wait(now, resumed), Duration::from_millis(77));
        let long = timer("2026-05-04T07:10:00Z", 600_000);
        assert_eq!(long.wait(now, TimerDriver { suspect: true, ..resumed }), SUSPECT_WAIT);
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_its_delay(
            due in -1_000_000_i64..1_000_000, delay_ms in 0_u64..1_000_000, run in any::<u128>(),
            taken_over in any::<bool>(), suspect in any::<bool>(),
        ) {
            let now = Timestamp::from_millisecond(1_777_878_000_000).unwrap();
            let at = Timestamp::from_millisecond(1_777_878_000_000 + due).unwrap();
            let timer = RunTimer { at, delay_ms, ..timer("2026-05-04T06:00:00Z", 0) };
            let driver = TimerDriver { run: RunId(uuid::Uuid::from_u128(run)), taken_over, suspect };
            let wait = timer.wait(now, driver);
            prop_assert!(wait <= Duration::from_millis(delay_ms));
            prop_assert!(!suspect || wait <= SUSPECT_WAIT);
        }
    }
}
