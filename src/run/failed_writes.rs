//! Writes that were tried and not done, for answers that do not say so.

use super::event::{Effect, Outcome};
use super::state::{CallState, CallStatus, RunState};
use crate::plan::StepStatus;

impl RunState {
    /// The writes that a back end refused or that failed, with what users read about each. Writes are left out if
    /// another call may have done something in their place.
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
                && !self.is_begun_again(call)
                && !self.is_asked_about(*number);
            let mut others = self.calls.iter().filter(|(_, other)| is_begun_in_scene_of(other, call));
            if counts && !others.any(|(by, other)| self.may_do_instead((*by, other), (*number, call))) {
                failed.push((call, outcome.user_text(self.language())));
            }
        }
        failed
    }

    /// Whether the call is the refused commit of a program that then was executed again and completed.
    fn is_begun_again(&self, call: &CallState) -> bool {
        let step = self.steps.get(&call.step);
        let counts = self.settings().has_rules(8) && call.is_commit;
        counts && step.is_some_and(|step| step.status == StepStatus::Completed)
    }

    /// Whether the step of a call ended with a question to the user.
    fn is_asked_about(&self, number: u32) -> bool {
        let mut waiting = self.steps.values().filter(|step| step.status == StepStatus::NeedsInput);
        waiting.any(|step| step.calls.contains(&number))
    }

    /// Whether `other` may have been made in place of `call`: a call of its tool by a later reply of its scene, a write of a
    /// later plan, or an equal one. Calls that were planned or requested together with it serve other parts of the
    /// request.
    fn may_do_instead(&self, (by, other): (u32, &CallState), (number, call): (u32, &CallState)) -> bool {
        let is_same_tool = other.requested.tool == call.requested.tool;
        if !self.settings().has_rules(8) {
            let is_later = other.step > call.step && other.requested.effect == Effect::Write;
            return is_later || is_same_tool;
        }
        let version = |call: &CallState| self.steps.get(&call.step).map(|step| step.version);
        let is_replanned = other.requested.effect == Effect::Write && version(other) > version(call);
        let is_corrected =
            is_same_tool && other.step == call.step && self.is_in_later_round(call.step, number, by);
        is_replanned || is_corrected || other.requested.key == call.requested.key
    }

    /// Whether a call of a step was requested by a later reply than another one; without replies, after it.
    fn is_in_later_round(&self, step: u32, earlier: u32, later: u32) -> bool {
        let rounds = self.steps.get(&step).and_then(|step| step.scene()).map(|work| work.history.as_slice());
        let round = |call: u32| rounds?.iter().position(|round| round.calls.contains(&call));
        match (round(earlier), round(later)) {
            (Some(earlier), Some(later)) => later > earlier,
            _ => later > earlier,
        }
    }
}

/// Whether a call of the scene of `call` was begun, and was not refused and did not fail.
fn is_begun_in_scene_of(other: &CallState, call: &CallState) -> bool {
    other.scene == call.scene
        && other.attempts > 0
        && !matches!(
            &other.status,
            CallStatus::Done { outcome: Outcome::Refused { .. } | Outcome::Failed { .. } }
        )
}
