//! What people say, folded into the state: decisions, and what of the plan they take back.

use serde_json::json;

use super::super::approval::{Decision, Matter};
use super::super::event::{Fault, Outcome};
use super::super::state::{CallStatus, Cancel, RunState};
use crate::plan::StepStatus;

impl RunState {
    /// The plan in force is to be another: what was approved of it counts no more.
    pub(super) fn withdraw(&mut self) {
        let version = self.plans.len() as u32;
        for approval in self.approvals.values_mut() {
            if approval.matter == (Matter::Plan { version }) {
                approval.lapsed = true;
            }
        }
        self.released = false;
        self.unmodified = None;
        self.go_on();
    }

    pub(super) fn decided(&mut self, matter: Matter, decision: &Decision, by: &str) {
        match (matter, decision) {
            (Matter::Plan { .. }, Decision::No) if self.attempted() => {
                let message = format!("{by} did not approve it, and nothing of it was done");
                self.close(&Fault::new("approval.refused", message));
            }
            // Nothing was done yet, so there is nothing to tell.
            (Matter::Plan { .. }, Decision::No) => {
                self.cancel.get_or_insert(Cancel { by: by.to_owned(), deadline: false });
            }
            (Matter::Call { call }, Decision::Edited { arguments, key }) => {
                if let Some(call) = self.calls.get_mut(&call) {
                    call.requested.arguments = arguments.clone();
                    call.requested.key.clone_from(key);
                }
            }
            (Matter::Outcome { call }, Decision::Done) => {
                let result = json!({"done": true, "according_to": by});
                self.resolved(call, Outcome::Ok { result, say: None });
            }
            (Matter::Outcome { call }, Decision::NotDone) => {
                let message = format!("{by} found that it was not done");
                self.resolved(call, Outcome::Refused { error: Fault::new("tool.not_done", message) });
            }
            (Matter::Outcome { call }, Decision::Again) => self.try_again(call),
            _ => {}
        }
        self.go_on();
    }

    pub(super) fn resolved(&mut self, call: u32, outcome: Outcome) {
        if let Some(call) = self.calls.get_mut(&call) {
            call.status = CallStatus::Done { outcome };
        }
    }

    /// A write is done once more, with its key, its scene hears what came of it, and the request is judged
    /// again. What else the scene had asked for keeps its turn.
    pub(super) fn try_again(&mut self, number: u32) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        call.status = CallStatus::Again { attempt: call.attempts + 1 };
        let step = call.step;
        let ended = |c: &u32| {
            let status = self.calls.get(c).map(|call| &call.status);
            matches!(status, None | Some(CallStatus::Done { .. } | CallStatus::Skipped { .. }))
        };
        let open = self.steps.get(&step).into_iter().flat_map(|s| &s.round_calls);
        let open = open.copied().filter(|c| *c != number && !ended(c));
        let flies = |c: &u32| {
            self.calls.get(c).is_some_and(|call| matches!(call.status, CallStatus::InFlight { .. }))
        };
        // What is under way ends before a write begins.
        let (mut round, waiting): (Vec<u32>, Vec<u32>) = open.partition(flies);
        round.push(number);
        round.extend(waiting);
        self.step(step, |s| {
            s.status = StepStatus::Running;
            s.round_calls = round;
            s.tries.clear();
            s.question = None;
            s.result = None;
            s.error = None;
        });
        if self.planning.is_none() {
            self.judge_again();
        }
    }

    /// What was judged or worded is of before now.
    pub(super) fn judge_again(&mut self) {
        self.check_tries.clear();
        self.answer_tries.clear();
        let rounds = self.rounds() as usize;
        self.verdicts.truncate(rounds.saturating_sub(1));
    }
}
