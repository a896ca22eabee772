//! From the read of a run to the end of its driver: the one way in which runs are driven.

use super::commands::refuse;
use super::input::{DriverReport, RunCondition, RunReading};
use super::side_effect::{ReadAttempt, SideEffect};
use super::slots::{Lane, ParkedRun, RunSlot, ScheduledRun};
use super::{ConversationState, MAX_PANICS, faults};
use crate::run::{Fault, RunId};

impl ConversationState {
    /// Starts a driver, which handles the held commands first.
    pub(super) fn drive(
        &mut self,
        run: RunId,
        mut active: ScheduledRun,
        shown_at: Option<u64>,
        out: &mut Vec<SideEffect>,
    ) {
        let commands = std::mem::take(&mut active.held);
        active.callers.extend(&commands);
        self.runs.insert(run, RunSlot::Driven { active, shown_at });
        out.push(SideEffect::Drive { run, commands });
    }

    pub(super) fn on_run_read(
        &mut self,
        run: RunId,
        outcome: Result<RunReading, Fault>,
        out: &mut Vec<SideEffect>,
    ) {
        let Some(RunSlot::Reading { active, parked }) = self.runs.remove(run) else { return };
        let RunReading { condition, turns } = match outcome {
            Ok(reading) => reading,
            // It is in the journal, so it is continued when the conversation is loaded again.
            Err(fault) => {
                let has_panicked = active.panics > 0;
                self.abandon(run, active, &fault, out);
                if has_panicked {
                    // Its driver may have appended a turn that is not remembered here.
                    self.fail(&fault, out);
                }
                return;
            }
        };
        self.history.extend(turns);
        match condition {
            // The panic came after its end, and no command is pending.
            RunCondition::Ended if active.panics > 0 && active.held.is_empty() => {
                if active.lane == Lane::Queue {
                    self.runs.forget_shown();
                }
                out.push(SideEffect::Finish { run, callers: active.callers, fault: None });
            }
            condition if active.panics >= MAX_PANICS => {
                self.abandon(run, active, &faults::crashed(), out);
                self.park(run, &condition, false);
            }
            _ => {
                let shown_at = parked.filter(|parked| parked.is_shown).map(|parked| parked.open.seq);
                self.drive(run, active, shown_at, out);
            }
        }
    }

    pub(super) fn on_driver_panicked(&mut self, run: RunId, out: &mut Vec<SideEffect>) {
        let Some(RunSlot::Driven { mut active, .. }) = self.runs.remove(run) else { return };
        active.panics += 1;
        let is_last = active.panics >= MAX_PANICS;
        let attempt = if is_last { ReadAttempt::AfterLastPanic } else { ReadAttempt::AfterPanic };
        self.runs.insert(run, RunSlot::Reading { active, parked: None });
        out.push(SideEffect::ReadRun { run, attempt });
    }

    pub(super) fn on_driver_ended(&mut self, run: RunId, report: DriverReport, out: &mut Vec<SideEffect>) {
        let Some(RunSlot::Driven { active, shown_at }) = self.runs.remove(run) else { return };
        let DriverReport { condition, seq, turns, decided_by_words, broken } = report;
        self.history.extend(turns);
        let ScheduledRun { lane, callers, held, .. } = active;
        if broken.is_some() {
            self.park(run, &condition, false);
        } else {
            let is_last_answer = lane == Lane::Queue || decided_by_words;
            if is_last_answer {
                self.runs.forget_shown();
            }
            // A decision that was refused changes nothing of what was shown.
            let is_still_shown = shown_at == Some(seq);
            self.park(run, &condition, is_last_answer || is_still_shown);
        }
        out.push(SideEffect::Finish { run, callers, fault: broken });
        // Commands that came while the driver was leaving.
        if !held.is_empty() {
            let parked = match self.runs.remove(run) {
                Some(RunSlot::Parked(parked)) => Some(parked),
                _ => None,
            };
            self.runs.insert(run, RunSlot::Reading { active: ScheduledRun::commanded(held), parked });
            out.push(SideEffect::ReadRun { run, attempt: ReadAttempt::ForCommand });
        }
    }

    fn park(&mut self, run: RunId, condition: &RunCondition, is_shown: bool) {
        if let RunCondition::Waiting(open) = condition {
            self.runs.insert(run, RunSlot::Parked(ParkedRun::new(open.clone(), is_shown)));
        }
    }

    /// The run has no driver any more, and its outcome cannot be known here.
    pub(super) fn abandon(&self, run: RunId, active: ScheduledRun, fault: &Fault, out: &mut Vec<SideEffect>) {
        out.push(SideEffect::Finish { run, callers: active.callers, fault: Some(fault.clone()) });
        for caller in active.held {
            refuse(caller, fault.clone(), out);
        }
    }
}
