//! Compensation: undoes the finished writes of a failed or cancelled run, in reverse order.

use serde_json::Value;

use super::action::Action;
use super::event::{Effect, Event, Fault, Outcome, RequestedCall};
use super::key::call_key;
use super::next::refused_call;
use super::state::{CallState, CallStatus, RunState, StepState};
use crate::plan::StepStatus;

impl RunState {
    /// Returns what is left to undo before the run ends; `None` if nothing is, or if compensation is not enabled.
    pub(super) fn compensation(&self) -> Option<Vec<Action>> {
        if !self.settings().compensate || self.is_dry_run() {
            return None;
        }
        self.compensation_in_progress()
            .or_else(|| self.next_compensation().map(|event| vec![Action::Record { event }]))
    }

    /// Returns what is left of a compensation that has begun: it is completed whatever else happens.
    pub(super) fn compensation_in_progress(&self) -> Option<Vec<Action>> {
        for (number, call) in self.calls.undos() {
            match call.status {
                CallStatus::Requested => {
                    return Some(vec![match &call.requested.problem {
                        Some(problem) => Action::Record { event: refused_call(number, problem.clone()) },
                        None => Action::Call { call: number, attempt: 1 },
                    }]);
                }
                CallStatus::Again { attempt } => return Some(vec![Action::Call { call: number, attempt }]),
                CallStatus::InFlight { .. } | CallStatus::Failing { .. } | CallStatus::BackedOff { .. } => {
                    return Some(Vec::new());
                }
                CallStatus::Done { .. } | CallStatus::Skipped { .. } => {}
            }
        }
        None
    }

    /// Returns whether the run counts as failed for compensation: a step of the last plan did not achieve its
    /// purpose. A question to the user is not a failure.
    pub(super) fn has_failed(&self) -> bool {
        // A refused call is omitted, and is not a failure of the rest.
        let refused = |step: &StepState| step.error.as_ref().is_some_and(|e| e.code == "approval.refused");
        let failed =
            |status| matches!(status, StepStatus::Failed | StepStatus::Blocked | StepStatus::Cancelled);
        let asks = self.steps.values().any(|step| step.status == StepStatus::NeedsInput);
        let mut steps = self
            .plan_steps()
            .map(|(_, step)| step)
            .filter(|step| self.is_in_round(step) && !self.is_made_good(step));
        !asks && steps.any(|step| !refused(step) && (failed(step.status) || self.is_unserved(step)))
    }

    /// Returns whether the write was undone.
    pub fn is_undone(&self, call: &CallState) -> bool {
        let by = call.undone_by.and_then(|by| self.calls.get(&by));
        by.is_some_and(|by| self.is_undone_by(by))
    }

    /// Returns whether a call has undone a write.
    pub(super) fn is_undone_by(&self, call: &CallState) -> bool {
        call.undoes.is_some() && matches!(call.status, CallStatus::Done { outcome: Outcome::Ok { .. } })
    }

    /// Whether the write was repeated after it was undone.
    fn is_redone(&self, undo: u32, write: &CallState) -> bool {
        self.calls.range(undo + 1..).any(|(_, call)| {
            self.is_same_act(call, write)
                && call.attempts > 0
                && call.undoes.is_none()
                && !self.is_undone(call)
                && matches!(call.status, CallStatus::Done { outcome: Outcome::Ok { .. } })
        })
    }

    /// Returns whether any write was undone, or its undo attempted, and it was not done again since.
    pub(super) fn has_undone(&self) -> bool {
        self.undone_writes().next().is_some()
    }

    /// The writes that were undone, or whose undo was attempted, and that were not done again since.
    pub(super) fn undone_writes(&self) -> impl Iterator<Item = u32> {
        let undos = self.calls.undos().filter_map(|(number, call)| Some((number, call.undoes?)));
        undos.filter_map(|(undo, number)| {
            let write = self.calls.get(&number)?;
            (!self.is_redone(undo, write)).then_some(number)
        })
    }

    /// Returns whether the call succeeded, by itself or by the call whose outcome counts for it, and was not undone.
    pub(super) fn is_effective(&self, number: u32) -> bool {
        self.calls.get(&self.resolved(number)).is_some_and(|call| {
            call.undoes.is_none()
                && !self.is_undone(call)
                && matches!(call.status, CallStatus::Done { outcome: Outcome::Ok { .. } })
        })
    }

    fn next_compensation(&self) -> Option<Event> {
        // A substitute is undone when it is the turn of the call that it replaces.
        let mut order: Vec<(u32, u32)> = self.calls.keys().map(|call| (self.place(*call), *call)).collect();
        order.sort_unstable();
        order.iter().rev().find_map(|(_, number)| {
            let call = self.calls.get(number)?;
            let undo = call.requested.undo.as_ref()?;
            let CallStatus::Done { outcome: Outcome::Ok { result, whole, .. } } = &call.status else {
                return None;
            };
            if call.requested.effect != Effect::Write || call.attempts == 0 || call.undone_by.is_some() {
                return None;
            }
            let arguments = undo.arguments_for(&call.requested.arguments, whole.as_ref().unwrap_or(result));
            // Before revision 3, such a write was skipped without a message.
            let problem = match (&arguments, self.settings().has_rules(3)) {
                (Some(_), _) => None,
                (None, false) => return None,
                (None, true) => Some(Fault::new(
                    "undo.unresolved",
                    format!(
                        "{} was not undone: its result does not contain the arguments of {}",
                        call.requested.tool, undo.tool
                    ),
                )),
            };
            let requested = self.compensating_call(call, undo, arguments.unwrap_or_default());
            Some(Event::Compensating { undoes: *number, requested: RequestedCall { problem, ..requested } })
        })
    }

    fn compensating_call(
        &self,
        call: &CallState,
        undo: &super::approval::Undo,
        arguments: Value,
    ) -> RequestedCall {
        RequestedCall {
            repeat: undo.repeat,
            scene: call.requested.scene.clone(),
            ..RequestedCall::new(
                self.next_call(),
                &undo.tool,
                call_key(&call.scene, &undo.tool, &arguments, &undo.identity),
                arguments,
                Effect::Write,
            )
        }
    }
}
