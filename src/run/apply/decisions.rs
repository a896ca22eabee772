//! Folds decisions of people into the state, and withdraws approvals of a replaced plan.

use serde_json::json;

use super::super::approval::{ApprovalSubject, Decision};
use super::super::event::{Fault, Outcome, Subject};
use super::super::state::{CallStatus, Cancellation, RunState};

impl RunState {
    /// The plan in force is being replaced: its approval is void.
    pub(super) fn withdraw_plan_approval(&mut self) {
        let version = self.plans.len() as u32;
        for approval in self.approvals.values_mut() {
            if approval.matter == (ApprovalSubject::Plan { version }) {
                approval.lapsed = true;
            }
        }
        self.released = false;
        self.unmodified = None;
        self.leave_waiting();
    }

    pub(super) fn apply_decision(&mut self, matter: ApprovalSubject, decision: &Decision, by: &str) {
        match (matter, decision) {
            (ApprovalSubject::Plan { version }, Decision::No) if self.is_patch(version) => {
                let message = format!("{by} did not approve it, and nothing of it was done");
                self.drop_patch(version, &Fault::new("approval.refused", message));
            }
            (ApprovalSubject::Plan { .. }, Decision::No) if self.has_begun_a_step() => {
                let message = format!("{by} did not approve it, and nothing of it was done");
                self.stop_planning(&Fault::new("approval.refused", message));
            }
            // Nothing was done yet, so there is nothing to report.
            (ApprovalSubject::Plan { .. }, Decision::No) => {
                self.cancel.get_or_insert(Cancellation { by: by.to_owned(), deadline: false });
            }
            // A request for nothing else is stopped as a refused plan is.
            (ApprovalSubject::Call { .. }, Decision::No)
                if self.is_asked_of_user(matter)
                    && self.plan_steps().count() == 1
                    && !self.is_of_program(matter) =>
            {
                self.cancel.get_or_insert(Cancellation { by: by.to_owned(), deadline: false });
            }
            (ApprovalSubject::Call { call }, Decision::Edited { arguments, key }) => {
                self.calls.change(call, |call| {
                    call.requested.arguments = arguments.clone();
                    call.requested.key.clone_from(key);
                });
            }
            (ApprovalSubject::Outcome { call }, Decision::Done) => {
                let result = json!({"done": true, "according_to": by});
                self.resolve_call(call, Outcome::Ok { result, say: None, whole: None });
            }
            (ApprovalSubject::Outcome { call }, Decision::NotDone) => {
                let message = format!("{by} found that it was not done");
                self.resolve_call(call, Outcome::Refused { error: Fault::new("tool.not_done", message) });
            }
            (ApprovalSubject::Outcome { call }, Decision::Again) => self.retry_write(call),
            _ => {}
        }
        self.leave_waiting();
    }

    pub(super) fn resolve_call(&mut self, call: u32, outcome: Outcome) {
        self.calls.change(call, |call| {
            call.status = CallStatus::Done { outcome };
            call.uncertain = false;
        });
    }

    /// Repeats a write with its idempotency key, returns the outcome to its scene, and checks the request
    /// again. Other calls that the scene requested keep their turn.
    pub(super) fn retry_write(&mut self, number: u32) {
        let told_apart = self.settings().has_rules(6);
        let retried = self.calls.change(number, |call| {
            call.status = CallStatus::Again { attempt: call.attempts + 1 };
            call.uncertain |= told_apart;
            // The person decides with the tool as it is now.
            call.requested.definition = None;
            call.step
        });
        let Some(step) = retried else { return };
        let ended = |c: &u32| {
            let status = self.calls.get(c).map(|call| &call.status);
            matches!(status, None | Some(CallStatus::Done { .. } | CallStatus::Skipped { .. }))
        };
        let open = self.steps.get(&step).into_iter().flat_map(|s| &s.round_calls);
        let open = open.copied().filter(|c| *c != number && !ended(c));
        let adapts = self.adapts();
        let not_begun = |by: &u32| self.calls.get(by).is_some_and(|by| by.status == CallStatus::Requested);
        let waits =
            |c: &u32| self.calls.get(c).and_then(|call| call.replaced_by).is_some_and(|by| not_begun(&by));
        let flies = |c: &u32| match self.calls.get(c).map(|call| &call.status) {
            // Its substitute has not begun.
            Some(CallStatus::Failing { .. }) if waits(c) => false,
            Some(CallStatus::InFlight { .. } | CallStatus::Failing { .. } | CallStatus::BackedOff { .. }) => {
                true
            }
            Some(CallStatus::Again { .. }) => adapts,
            _ => false,
        };
        // Calls that have begun end before a write begins.
        let (mut round, waiting): (Vec<u32>, Vec<u32>) = open.partition(flies);
        // Substitutes wait for calls of smaller places only.
        round.sort_by_key(|call| self.place(*call));
        round.push(number);
        round.extend(waiting);
        self.tries.remove(&Subject::Scene { step });
        let open = self.in_turn(&round);
        self.step(step, |s| {
            s.run_again();
            s.open_calls = open;
            s.is_sequential = true;
            s.round_calls = round;
        });
        self.revive_flow_of(step);
        if self.planning.is_none() {
            self.restart_check();
        }
    }

    /// Discards the verdict and answer in progress, which predate the change.
    pub(super) fn restart_check(&mut self) {
        self.tries.retain(|subject, _| !matches!(subject, Subject::Continuation { .. } | Subject::Answer));
        let rounds = self.rounds() as usize;
        self.verdicts.truncate(rounds.saturating_sub(1));
    }
}
