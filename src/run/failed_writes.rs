//! Writes that were tried and not done, for answers that do not say so.

use super::event::{Effect, Outcome};
use super::state::{CallState, CallStatus, RunState};
use crate::plan::StepStatus;

impl RunState {
    /// The writes that a back end refused or that failed, with what users read about each. Not those of a tool that has
    /// done something in this run, or may have: a later call may have taken the place of the failed one.
    pub(super) fn failed_writes(&self) -> Vec<(&CallState, String)> {
        let mut failed = Vec::new();
        for (number, call) in &self.calls {
            let CallStatus::Done { outcome: outcome @ (Outcome::Refused { .. } | Outcome::Failed { .. }) } =
                &call.status
            else {
                continue;
            };
            let counts = call.requested.effect == Effect::Write
                && call.attempts > 0
                && call.undoes.is_none()
                && call.replaced_by.is_none()
                && !call.left_out
                && !self.is_asked_about(*number);
            if counts && !self.calls.values().any(|other| is_done_with_the_tool_of(call, other)) {
                failed.push((call, outcome.user_text(self.language())));
            }
        }
        failed
    }

    /// Whether the step of a call ended with a question to the user.
    fn is_asked_about(&self, number: u32) -> bool {
        let mut waiting = self.steps.values().filter(|step| step.status == StepStatus::NeedsInput);
        waiting.any(|step| step.calls.contains(&number))
    }
}

/// Whether `other` is a call of the tool of `call` that was done or may have been.
fn is_done_with_the_tool_of(call: &CallState, other: &CallState) -> bool {
    let is_same = other.scene == call.scene && other.requested.tool == call.requested.tool;
    is_same
        && other.attempts > 0
        && !matches!(
            &other.status,
            CallStatus::Done { outcome: Outcome::Refused { .. } | Outcome::Failed { .. } }
        )
}
