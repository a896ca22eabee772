//! Timers of a run. A timer is state, like everything else that is due: its driver arms a sleep from it and reports that
//! it fired.

use jiff::Timestamp;

use super::event::{RunStatus, TimerSubject};
use super::state::{CallStatus, RunState};

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
