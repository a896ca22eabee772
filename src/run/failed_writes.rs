//! Writes that were tried and not done, for answers that do not say so.

use super::event::{Effect, Outcome};
use super::state::{CallState, CallStatus, RunState};
use crate::plan::StepStatus;

impl RunState {
    /// The writes that a back end refused or that failed, with what users read about each. Not those for which another call
    /// may have been made that did something, or may have: of the same tool, or of the same scene in a later step.
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
            if counts && !self.calls.values().any(|other| may_do_instead(other, call)) {
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

/// Whether the write `other` was done, or may have been, and may have been made in place of `call`.
fn may_do_instead(other: &CallState, call: &CallState) -> bool {
    let is_later = other.step > call.step && other.requested.effect == Effect::Write;
    other.scene == call.scene
        && (is_later || other.requested.tool == call.requested.tool)
        && other.attempts > 0
        && !matches!(
            &other.status,
            CallStatus::Done { outcome: Outcome::Refused { .. } | Outcome::Failed { .. } }
        )
}
