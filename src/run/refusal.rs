//! What a tool or a person refused: an answer about the request, and no failure of the server.

use super::event::{Fault, Outcome};
use super::state::{CallState, CallStatus, RunState, StepState};

/// The fault code of a call that a person did not approve.
const NOT_APPROVED: &str = "approval.refused";

impl CallState {
    /// What the tool, its back end or a person said who refused the call. `None` where it was kept from being made by a
    /// bound, a policy or its arguments.
    pub(super) fn refusal(&self) -> Option<&Fault> {
        match &self.status {
            CallStatus::Done { outcome: Outcome::Refused { error } } => {
                Some(error).filter(|error| self.attempts > 0 || error.code == NOT_APPROVED)
            }
            _ => None,
        }
    }
}

impl RunState {
    /// Whether one of these steps ended with what refused a call of it or of a node of its flow. Before revision 10,
    /// such a run has failed where no model was asked what its answer is.
    pub(super) fn any_refused<'s>(&self, mut steps: impl Iterator<Item = &'s StepState>) -> bool {
        self.settings().has_rules(10) && steps.any(|step| self.is_refused(step))
    }

    fn is_refused(&self, step: &StepState) -> bool {
        let number = step.step.step_number;
        let parent = |call: &CallState| Some(self.steps.get(&call.step)?.node()?.parent);
        let is_of_step = |call: &&CallState| call.step == number || parent(call) == Some(number);
        let is_refused =
            |error| self.calls.values().filter(is_of_step).any(|call| call.refusal() == Some(error));
        step.error.as_ref().is_some_and(is_refused)
    }
}
