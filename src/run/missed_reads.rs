//! Reads without a result. In a step that completed by its other calls, they make the run partial, and the answer names
//! them. In a step without any result, the answer may name them as well.

use super::event::{Effect, FaultClass, Outcome};
use super::state::{CallState, CallStatus, RunState, StepState};
use crate::plan::StepStatus;

impl RunState {
    /// The reads of a completed step that were tried and have no result, with their numbers, if another call of the
    /// step has one. Reads are left out if their scene got a result later: in a later round of the step, or in a step
    /// of a later plan.
    pub fn missed_reads<'a>(
        &'a self,
        step: &'a StepState,
    ) -> impl Iterator<Item = (u32, &'a CallState)> + use<'a> {
        let counts = self.settings().has_rules(8)
            && step.status == StepStatus::Completed
            && !step.is_node()
            && step.scene().is_some()
            && self.has_result(step);
        let calls = step.calls.iter().filter(move |_| counts);
        let calls = calls.filter_map(move |number| Some((*number, self.calls.get(number)?)));
        calls.filter(move |(number, call)| {
            self.is_missed(*number, call) && !self.is_made_up_for(*number, call, step)
        })
    }

    /// The reads that were tried and have no result, with their numbers, of a step that failed or completed without any
    /// result (revision 15 of the rules).
    pub(super) fn failed_reads<'a>(
        &'a self,
        step: &'a StepState,
    ) -> impl Iterator<Item = (u32, &'a CallState)> + use<'a> {
        let is_without = match step.status {
            StepStatus::Failed => true,
            StepStatus::Completed => !self.has_result(step),
            _ => false,
        };
        let is_of_scene = !step.is_node() && step.scene().is_some();
        let counts = self.settings().has_rules(15) && is_without && is_of_scene;
        let calls = step.calls.iter().filter(move |_| counts);
        let calls = calls.filter_map(move |number| Some((*number, self.calls.get(number)?)));
        calls.filter(move |(number, call)| {
            self.is_missed(*number, call) && !self.is_made_up_for(*number, call, step)
        })
    }

    /// Returns whether a step completed without the results of some reads that failed. A read that found nothing, or
    /// that its tool refused for a reason of its own, has an answer.
    pub fn is_partly_read(&self, step: &StepState) -> bool {
        self.missed_reads(step).any(|(_, call)| match &call.status {
            CallStatus::Done { outcome: Outcome::Failed { error } } => error.class != FaultClass::NotFound,
            CallStatus::Done { outcome: Outcome::Refused { error } } => {
                !matches!(error.class, FaultClass::NotFound | FaultClass::Other)
            }
            _ => false,
        })
    }

    fn is_missed(&self, number: u32, call: &CallState) -> bool {
        call.requested.effect == Effect::Read
            && call.attempts > 0
            && call.undoes.is_none()
            && call.replaces.is_none()
            && !call.left_out
            && !self.is_effective(number)
            && matches!(
                &call.status,
                CallStatus::Done { outcome: Outcome::Refused { .. } | Outcome::Failed { .. } }
            )
    }

    /// Whether the scene of a read without a result got one afterwards, or from an equal call.
    fn is_made_up_for(&self, number: u32, call: &CallState, step: &StepState) -> bool {
        let rounds = step.scene().map(|work| work.history.as_slice()).unwrap_or_default();
        let own_round = rounds.iter().position(|round| round.calls.contains(&number));
        let later_rounds = rounds.iter().skip(own_round.map_or(rounds.len(), |at| at + 1));
        let is_answered = |number: &u32| self.is_effective(*number);
        let version = |number: u32| self.steps.get(&number).map(|step| step.version);
        later_rounds.flat_map(|round| &round.calls).any(is_answered)
            || self.calls.iter().any(|(other, by)| {
                let is_later = version(by.step) > Some(step.version) && by.scene == call.scene;
                (is_later || by.requested.key == call.requested.key) && is_answered(other)
            })
    }
}
