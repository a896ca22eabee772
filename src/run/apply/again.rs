//! How a run goes on, folded into the state: where nothing more is planned, where it is carried on after its
//! end, undone, or taken over by another process.

use super::super::approval::Permit;
use super::super::attempt::Reserved;
use super::super::event::{Effect, Fault, Outcome, Repeat, RequestedCall, RunStatus};
use super::super::state::{AskStatus, CallState, CallStatus, RunState, StepState};
use super::{KEYED_INTERRUPTIONS, READ_ATTEMPTS};
use crate::plan::StepStatus;

impl RunState {
    /// Nothing more is planned: what has not begun never will, and what there is is told.
    pub(super) fn close(&mut self, error: &Fault) {
        self.closing = true;
        self.planning = None;
        for step in self.steps.values_mut().filter(|s| s.status == StepStatus::Pending) {
            step.status = StepStatus::Cancelled;
            step.error = Some(error.clone());
        }
    }

    /// The run is carried on from where it failed: the steps that did not do what they were for begin anew,
    /// and those whose writes were undone, with what they did in sight of the guard; the request is judged
    /// and answered again. A plan that a person refused stays refused.
    pub(super) fn reopen(&mut self) {
        let refused = matches!(self.plan_permit(), Permit::Refused { .. });
        self.status = RunStatus::Running;
        self.told = Some(self.usage);
        self.closing = refused;
        self.cancel = None;
        self.error = None;
        self.answer = None;
        self.stalls = 0;
        self.judge_again();
        let undone: Vec<u32> = self.calls.values().filter(|c| self.is_undone(c)).map(|c| c.step).collect();
        let last = self.plans.len() as u32;
        let anew = |s: &&StepState| match s.status {
            StepStatus::Completed => {
                undone.contains(&s.step.step_number) || (s.version == last && self.is_unserved(s))
            }
            _ => s.version == last && !refused,
        };
        let anew: Vec<u32> = self.steps.values().filter(anew).map(|s| s.step.step_number).collect();
        let anew = |s: &&mut StepState| anew.contains(&s.step.step_number);
        for step in self.steps.values_mut().filter(anew) {
            step.status = StepStatus::Pending;
            step.result = None;
            step.rounds = 0;
            step.tries.clear();
            step.history.clear();
            step.round_calls.clear();
            step.text.clear();
            step.question = None;
            step.next = None;
            step.decided = false;
            step.error = None;
            step.prepared = false;
        }
        // What was under way then is heard of no more: reads and questions. What was asked for and never
        // came to its end was not done; a write that was begun is `unknown` by now.
        for ask in self.asks.values_mut().filter(|a| a.status == AskStatus::InFlight) {
            ask.status = AskStatus::Lost;
        }
        let open =
            |c: &&mut CallState| !matches!(c.status, CallStatus::Done { .. } | CallStatus::Skipped { .. });
        for call in self.calls.values_mut().filter(open) {
            let error = Fault::new("tool.not_reached", "the run ended before this call's turn");
            call.status = CallStatus::Done { outcome: Outcome::Failed { error } };
        }
    }

    pub(super) fn compensating(&mut self, undoes: u32, requested: &RequestedCall) {
        let Some(write) = self.calls.get_mut(&undoes) else { return };
        write.undone_by = Some(requested.call);
        let (step, scene) = (write.step, write.scene.clone());
        let state = CallState {
            step,
            scene,
            requested: requested.clone(),
            fallback: false,
            status: CallStatus::Requested,
            stale: false,
            attempts: 0,
            interruptions: 0,
            undoes: Some(undoes),
            undone_by: None,
            edited_by: None,
        };
        self.calls.insert(requested.call, state);
        self.step(step, |s| s.calls.push(requested.call));
    }

    /// Whoever takes a run over cannot know what became of what was under way: questions and reads
    /// are asked again, writes go by their policy. A `restart` of the process is nobody's fault here: it
    /// counts neither against the run nor against what was cut off.
    pub(super) fn resume(&mut self, epoch: u32, restart: bool) {
        self.epoch = epoch;
        // One that waits for a person does nothing that could have ended anybody.
        if self.status != RunStatus::Waiting && !restart {
            self.stalls += 1;
        }
        let under_way = self.asks.iter().filter(|(_, ask)| ask.status == AskStatus::InFlight);
        for call in under_way.map(|(call, _)| *call).collect::<Vec<_>>() {
            self.lose(call, restart);
        }
        let under_way =
            self.calls.iter().filter(|(_, call)| matches!(call.status, CallStatus::InFlight { .. }));
        for call in under_way.map(|(call, _)| *call).collect::<Vec<_>>() {
            self.cut_off(call, restart);
        }
    }

    /// A question of which nobody hears again. After a restart it is as if it had not been asked.
    fn lose(&mut self, call: u32, restart: bool) {
        let Some(ask) = self.asks.get_mut(&call) else { return };
        ask.status = AskStatus::Lost;
        let subject = ask.subject;
        if restart {
            self.tries(subject).retain(|asked| *asked != call);
        }
    }

    fn cut_off(&mut self, number: u32, restart: bool) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let (attempts, read) = (call.attempts, call.requested.effect == Effect::Read);
        let keyed = call.requested.repeat == Repeat::Key;
        if restart {
            call.interruptions += 1;
        }
        let again = match (read, keyed) {
            (true, _) => restart || attempts < READ_ATTEMPTS,
            (false, true) => restart && call.interruptions <= KEYED_INTERRUPTIONS,
            (false, false) => false,
        };
        if again {
            call.status = CallStatus::Again { attempt: attempts + 1 };
            return;
        }
        // Interruptions beyond the bound count as attempts.
        call.interruptions = call.interruptions.min(KEYED_INTERRUPTIONS);
        let what = format!("the process ended {attempts} times during the call: its outcome is not known");
        self.completed(number, &Outcome::Unknown { error: Fault::new("tool.interrupted", what) });
    }

    /// What was set aside for questions of which nobody hears again, to be charged: by ordinal.
    pub fn unsettled(&self) -> impl Iterator<Item = (u32, &Reserved)> {
        let lost = self.asks.iter().filter(|(_, ask)| ask.status == AskStatus::Lost);
        lost.filter_map(|(call, ask)| Some((*call, ask.reserved.as_ref()?)))
    }
}
