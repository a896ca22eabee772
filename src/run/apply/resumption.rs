//! Folds events about how a run continues: the end of planning, resumption after its end, compensation, and
//! takeover by another process.

use std::collections::BTreeMap;

use super::super::approval::ApprovalGate;
use super::super::attempt::AskReservation;
use super::super::event::{Effect, Fault, Outcome, Repeat, RequestedCall, RunStatus, Subject};
use super::super::state::{AskStatus, CallState, CallStatus, RunState, StepState};
use super::super::work::StepWork;
use super::{MAX_KEYED_INTERRUPTIONS, MAX_READ_ATTEMPTS};
use crate::plan::StepStatus;

impl RunState {
    /// Ends planning: steps that have not begun are cancelled, and the answer reports what there is.
    pub(super) fn stop_planning(&mut self, error: &Fault) {
        self.closing = true;
        self.planning = None;
        for step in self.steps.values_mut().filter(|s| s.status == StepStatus::Pending) {
            step.status = StepStatus::Cancelled;
            step.error = Some(error.clone());
        }
    }

    /// Resumes the run where it failed. Steps that did not achieve their purpose, or whose writes were
    /// undone, begin again; the duplicate guard still sees their earlier calls. The request is checked and
    /// answered again. A refused plan stays refused.
    pub(super) fn reopen(&mut self) {
        let is_refused =
            |state: &Self, version| matches!(state.gate_of_version(version), ApprovalGate::Refused { .. });
        // A refused patch leaves the plan that it changes as it is.
        let refused = is_refused(self, self.first_version_in_force());
        self.status = RunStatus::Running;
        self.usage_at_last_end = Some(self.usage);
        self.closing = refused;
        self.cancel = None;
        self.error = None;
        self.answer = None;
        self.stalls = 0;
        self.retries = 0;
        self.waited_ms = 0;
        self.idle_steps = 0;
        self.forget_consultations();
        self.restart_check();
        // A node begins again with its flow.
        let of_plan = |step: u32| match self.steps.get(&step).and_then(StepState::node) {
            Some(node) => node.parent,
            None => step,
        };
        let undone: Vec<u32> =
            self.calls.values().filter(|c| self.is_undone(c)).map(|c| of_plan(c.step)).collect();
        let must_restart = |s: &&StepState| match s.status {
            StepStatus::Completed => {
                // What it wrote is not asked of its scene again, only because of a read.
                let is_open = self.is_unserved(s) || (self.is_partly_read(s) && !self.has_written(s));
                undone.contains(&s.step.step_number) || (self.is_in_round(s) && is_open)
            }
            // Another step has taken its place.
            _ if s.replaced_by.is_some() => false,
            _ => self.is_in_round(s) && !is_refused(self, self.version_to_begin(s)),
        };
        let restarted: Vec<u32> =
            self.plan_steps().map(|(_, s)| s).filter(must_restart).map(|s| s.step.step_number).collect();
        self.restart_steps(&restarted);
        // Replies to reads and questions that were in flight will not arrive any more. Calls that were
        // requested and never ended were not done; a write that was begun is `unknown` by now.
        for ask in self.open_asks.clone() {
            self.set_ask(ask, AskStatus::Lost);
        }
        self.calls.change_open(|call| {
            let error = Fault::new("tool.not_reached", "the run ended before this call's turn");
            call.status = CallStatus::Done { outcome: Outcome::Failed { error } };
        });
    }

    /// Lets steps begin again, with the work of a flow, a program or a summary that is kept.
    fn restart_steps(&mut self, restarted: &[u32]) {
        for step in restarted {
            self.tries.remove(&Subject::Scene { step: *step });
            self.tries.remove(&Subject::Path { step: *step });
            self.tries.remove(&Subject::Node { step: *step });
            self.tries
                .retain(|subject, _| !matches!(subject, Subject::Summary { step: of, tool_call: None, .. } if of == step));
            self.tries.remove(&Subject::Program { step: *step });
        }
        let kept_work = |step: u32| {
            let flow = self.kept_flow(step).map(StepWork::Flow);
            let work = flow.or_else(|| self.kept_program(step).map(StepWork::Code));
            work.or_else(|| self.kept_summary(step).map(StepWork::Summary))
        };
        let mut kept: BTreeMap<u32, StepWork> =
            restarted.iter().filter_map(|step| Some((*step, kept_work(*step)?))).collect();
        let is_restarted = |s: &&mut StepState| restarted.contains(&s.step.step_number);
        for step in self.steps.values_mut().filter(is_restarted) {
            step.status = StepStatus::Pending;
            step.result = None;
            let work = kept.remove(&step.step.step_number);
            step.work = work.unwrap_or_else(|| StepWork::new(step.step.kind));
            step.round_calls.clear();
            step.open_calls.clear();
            step.question = None;
            step.error = None;
            step.prepared = false;
            step.noted = false;
            step.stopped = false;
        }
    }

    pub(super) fn begin_compensation(&mut self, undoes: u32, requested: &RequestedCall) {
        let undone = self.calls.change(undoes, |write| {
            write.undone_by = Some(requested.call);
            (write.step, write.scene.clone())
        });
        let Some((step, scene)) = undone else { return };
        let state =
            CallState { undoes: Some(undoes), ..CallState::requested(step, scene, requested.clone()) };
        self.calls.insert(requested.call, state);
        self.step(step, |s| s.calls.push(requested.call));
    }

    /// After a takeover, the outcome of work in flight is unknown: questions and reads are repeated, writes
    /// follow their repeat policy. A `restart` of the process counts neither against the run nor against
    /// interrupted work.
    pub(super) fn resume(&mut self, epoch: u32, restart: bool) {
        self.epoch = epoch;
        // A run that waits for a person does nothing that could have crashed its driver.
        if self.status != RunStatus::Waiting && !restart {
            self.stalls += 1;
        }
        for ask in self.open_asks.clone() {
            self.lose_ask(ask, restart);
        }
        // A summary goes on with the parts that it has.
        let is_interrupted =
            |call: &CallState| matches!(call.status, CallStatus::InFlight { .. }) && call.summary.is_none();
        let in_flight = self.calls.open().filter(|(_, call)| is_interrupted(call));
        for call in in_flight.map(|(call, _)| call).collect::<Vec<_>>() {
            self.interrupt_call(call, restart);
        }
    }

    /// Marks a question as lost. After a restart it is as if it had not been asked.
    fn lose_ask(&mut self, call: u32, restart: bool) {
        let Some(subject) = self.asks.get(&call).map(|ask| ask.subject) else { return };
        self.set_ask(call, AskStatus::Lost);
        if let Some(tries) = self.tries.get_mut(&subject).filter(|_| restart) {
            tries.retain(|asked| *asked != call);
        }
    }

    fn interrupt_call(&mut self, number: u32, restart: bool) {
        let counts = self.settings().has_rules(4);
        let interrupted = self.calls.change(number, |call| {
            let (attempts, read) = (call.attempts, call.requested.effect == Effect::Read);
            let keyed = call.requested.repeat == Repeat::Key;
            call.uncertain |= !read && counts;
            if restart {
                call.interruptions += 1;
            }
            let again = match (read, keyed) {
                (true, _) => restart || attempts < MAX_READ_ATTEMPTS,
                (false, true) => restart && call.interruptions <= MAX_KEYED_INTERRUPTIONS,
                (false, false) => false,
            };
            if again {
                call.status = CallStatus::Again { attempt: attempts + 1 };
            } else {
                // Interruptions beyond the limit count as attempts.
                call.interruptions = call.interruptions.min(MAX_KEYED_INTERRUPTIONS);
            }
            (!again).then_some(attempts)
        });
        let Some(attempts) = interrupted.flatten() else { return };
        let what = format!("the process ended {attempts} times during the call: its outcome is not known");
        let outcome = Outcome::Unknown { error: Fault::new("tool.interrupted", what) };
        self.complete_call(number, &outcome, None);
    }

    /// Reservations of lost questions that are to be charged, by ordinal.
    pub fn unsettled_reservations(&self) -> impl Iterator<Item = (u32, &AskReservation)> {
        let lost = self.asks.iter().filter(|(_, ask)| ask.status == AskStatus::Lost);
        lost.filter_map(|(call, ask)| Some((*call, ask.reserved.as_ref()?)))
    }
}
