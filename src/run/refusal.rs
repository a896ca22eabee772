//! Refusals of a tool or a person, and reads that found nothing: these are answers to the request and not failures.

use super::event::{Effect, Fault, FaultClass, Outcome};
use super::state::{CallState, CallStatus, RunState, StepState};

/// The fault code of a call that a person did not approve.
const NOT_APPROVED: &str = "approval.refused";

impl CallState {
    /// Returns the refusal of a call by its tool, its back end or a person; `None` if a bound, a policy or its
    /// arguments prevented the call.
    pub(super) fn refusal(&self) -> Option<&Fault> {
        match &self.status {
            CallStatus::Done { outcome: Outcome::Refused { error } } => {
                Some(error).filter(|error| self.attempts > 0 || error.code == NOT_APPROVED)
            }
            _ => None,
        }
    }
}

impl CallState {
    /// The reply of a back end to a read for which it has nothing under this name or id. A write to an unknown address
    /// has failed.
    fn found_nothing(&self) -> Option<&Fault> {
        match &self.status {
            CallStatus::Done { outcome: Outcome::Failed { error } } => {
                let is_read = self.requested.effect == Effect::Read && self.attempts > 0;
                Some(error).filter(|error| is_read && error.class == FaultClass::NotFound)
            }
            _ => None,
        }
    }
}

impl RunState {
    /// Returns whether one of these steps ended with what refused a call of it or of a node of its flow, or with a read that
    /// found nothing. Before revision 10, and before revision 11 for reads, such a run has failed where no model was asked what
    /// its answer is.
    pub(super) fn any_refused<'s>(&self, mut steps: impl Iterator<Item = &'s StepState>) -> bool {
        self.settings().has_rules(10) && steps.any(|step| self.is_refused(step))
    }

    fn is_refused(&self, step: &StepState) -> bool {
        let number = step.step.step_number;
        let parent = |call: &CallState| Some(self.steps.get(&call.step)?.node()?.parent);
        let is_of_step = |call: &&CallState| call.step == number || parent(call) == Some(number);
        let is_empty =
            |call: &CallState, error| self.settings().has_rules(11) && call.found_nothing() == Some(error);
        let is_refused = |error| {
            let mut calls = self.calls.values().filter(is_of_step);
            calls.any(|call| call.refusal() == Some(error) || is_empty(call, error))
        };
        step.error.as_ref().is_some_and(is_refused)
    }
}
