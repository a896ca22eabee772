//! `RunState::apply`: the fold of one event, each event checked first.

use super::admit::Illegal;
use super::event::{Effect, Event, Fault, Outcome, PlanMade, Repeat, Reply, RunStatus, Subject};
use super::guard::clear_reads;
use super::ids::RunId;
use super::state::{
    Answer, Ask, AskStatus, CallState, CallStatus, Cancel, Planning, Round, RunState, StepState,
};
use crate::plan::{PlanStatus, StepStatus};

/// Times a write with an idempotency key is started in all.
const KEYED_ATTEMPTS: u32 = 2;

/// Times a read is started in all, when crashes cut it off.
const READ_ATTEMPTS: u32 = 4;

impl RunState {
    /// Folds one event into the state.
    ///
    /// # Errors
    /// [`Illegal`] where the event cannot happen now; the state is then as before.
    pub fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        self.check(event)?;
        self.apply_checked(event);
        Ok(())
    }

    /// The run as its journal has it. What a journal holds has happened, whatever the rules of today would
    /// let happen: so nothing of it is checked, and a run that an earlier version carried out can be read.
    pub fn of<'e>(run: RunId, journal: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut state = Self::new(run);
        for event in journal {
            state.apply_checked(event);
        }
        state
    }

    /// Folds an event that [`RunState::check`] has let pass in this very state. To check means to ask
    /// what is due, which costs more than the fold: whoever checked before it appended need not again.
    pub(crate) fn apply_checked(&mut self, event: &Event) {
        self.fold(event);
        self.seq += 1;
    }

    fn fold(&mut self, event: &Event) {
        if let Event::ModelReplied { .. } | Event::ModelFailed { .. } | Event::ToolCompleted { .. } = event {
            self.stalls = 0;
        }
        match event {
            Event::RunQueued(queued) => self.queued = Some(queued.clone()),
            Event::RunStarted(started) => {
                self.started = Some(started.clone());
                self.status = RunStatus::Running;
            }
            Event::RunResumed { epoch } => self.resume(*epoch),
            Event::Planning { version, .. } => {
                self.planning = Some(Planning { version: *version, tries: Vec::new() });
            }
            Event::ModelAsked { call, subject, attempt, fallback, .. } => {
                self.tries(*subject).push(*call);
                let ask = Ask {
                    subject: *subject,
                    attempt: *attempt,
                    fallback: *fallback,
                    status: AskStatus::InFlight,
                };
                self.asks.insert(*call, ask);
            }
            Event::ModelReplied { call, reply, usage, .. } => {
                self.usage += *usage;
                self.set_ask(*call, AskStatus::Replied { reply: reply.clone() });
            }
            Event::ModelFailed { call, error, usage, .. } => {
                self.usage += *usage;
                self.set_ask(*call, AskStatus::Failed { error: error.clone() });
            }
            Event::ReplyRejected { call, problems } => {
                let reply = self.take_reply(*call);
                self.set_ask(*call, AskStatus::Rejected { reply, problems: problems.clone() });
            }
            Event::PlanningFailed { error, .. } => {
                self.planning = None;
                self.closing = true;
                if self.plans.is_empty() {
                    self.error = Some(error.clone());
                }
            }
            Event::PlanCreated(made) | Event::Replanned(made) => self.adopt(made),
            Event::StepStarted { step } => {
                self.plan_status = PlanStatus::Executing;
                self.step(*step, |s| s.status = StepStatus::Running);
            }
            // A decision is no move of the scene: the conversation with its model goes on as before it.
            Event::SceneReplied { step, call, next: Some(tool), .. } => {
                self.used(*call);
                self.step(*step, |s| {
                    s.tries.clear();
                    s.next = Some(tool.clone());
                    s.decided = true;
                });
            }
            Event::SceneReplied { step, call, text, calls, question, next: None } => {
                let fallback = self.asks.get(call).is_some_and(|a| a.fallback);
                self.used(*call);
                let scene = self.steps.get(step).map(|s| s.step.scene_name.clone()).unwrap_or_default();
                for requested in calls {
                    let state = CallState {
                        step: *step,
                        scene: scene.clone(),
                        requested: requested.clone(),
                        fallback,
                        status: CallStatus::Requested,
                        stale: false,
                        attempts: 0,
                    };
                    self.calls.insert(requested.call, state);
                }
                self.step(*step, |s| {
                    s.rounds += 1;
                    s.tries.clear();
                    s.round_calls = calls.iter().map(|c| c.call).collect();
                    s.calls.extend(&s.round_calls);
                    s.text.clone_from(text);
                    s.history.push(Round { text: text.clone(), calls: s.round_calls.clone() });
                    s.question.clone_from(question);
                    s.next = None;
                });
            }
            Event::ToolStarted { call, attempt } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.status = CallStatus::InFlight { attempt: *attempt };
                    call.attempts = *attempt;
                    call.stale = false;
                }
            }
            Event::ToolCompleted { call, outcome, .. } => self.completed(*call, outcome),
            Event::ToolSkipped { call, first } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.status = CallStatus::Skipped { first: *first };
                }
            }
            Event::StepCompleted { step, result } => self.step(*step, |s| {
                s.status = StepStatus::Completed;
                s.result = Some(result.clone());
            }),
            Event::StepFailed { step, status, error } => self.step(*step, |s| {
                s.status = *status;
                s.error = Some(error.clone());
            }),
            Event::Continuation { verdict, .. } => {
                if let Some(call) = self.check_tries.last().copied() {
                    self.used(call);
                }
                self.check_tries.clear();
                self.verdicts.push(verdict.clone());
            }
            Event::Answered { text, degraded } => {
                if let Some(call) = self.answer_tries.last().copied() {
                    self.used(call);
                }
                self.answer = Some(Answer { text: text.clone(), degraded: *degraded });
            }
            Event::CancelRequested { by, deadline } => {
                // A person's wish outweighs the deadline; the first of a kind stands. Once the
                // answer is known it comes too late.
                if self.answer.is_none() && self.cancel.as_ref().is_none_or(|c| c.deadline && !deadline) {
                    self.cancel = Some(Cancel { by: by.clone(), deadline: *deadline });
                }
            }
            Event::RunCompleted { status } => {
                let plan = match status {
                    RunStatus::Completed if self.is_plan_only() => PlanStatus::Draft,
                    RunStatus::Completed => PlanStatus::Completed,
                    _ => PlanStatus::Failed,
                };
                self.end(*status, plan);
            }
            Event::RunFailed { error } => {
                self.error = Some(error.clone());
                self.end(RunStatus::Failed, PlanStatus::Failed);
            }
            Event::RunCancelled { .. } => self.end(RunStatus::Cancelled, PlanStatus::Cancelled),
        }
    }

    /// Whoever takes a run over cannot know what became of what was under way: questions and reads
    /// are asked again, writes go by their policy.
    fn resume(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.stalls += 1;
        for ask in self.asks.values_mut().filter(|a| a.status == AskStatus::InFlight) {
            ask.status = AskStatus::Lost;
        }
        let cut_off: Vec<u32> = self
            .calls
            .iter()
            .filter(|(_, c)| matches!(c.status, CallStatus::InFlight { .. }))
            .map(|(call, _)| *call)
            .collect();
        for number in cut_off {
            let Some(call) = self.calls.get_mut(&number) else { continue };
            if call.requested.effect == Effect::Read && call.attempts < READ_ATTEMPTS {
                call.status = CallStatus::Again { attempt: call.attempts + 1 };
            } else {
                let error = Fault::new(
                    "tool.interrupted",
                    format!(
                        "the process ended {} times during the call: its outcome is not known",
                        call.attempts
                    ),
                );
                self.completed(number, &Outcome::Unknown { error });
            }
        }
    }

    fn completed(&mut self, number: u32, outcome: &Outcome) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        // A read changes nothing: not to know how it ended is a failure, and it may be tried again.
        let as_failed = match outcome {
            Outcome::Unknown { error } if call.requested.effect == Effect::Read => {
                Some(Outcome::Failed { error: error.clone() })
            }
            _ => None,
        };
        let outcome = as_failed.as_ref().unwrap_or(outcome);
        let unknown = matches!(outcome, Outcome::Unknown { .. });
        let wrote =
            call.requested.effect == Effect::Write && (unknown || matches!(outcome, Outcome::Ok { .. }));
        let scene = call.scene.clone();
        if unknown && call.requested.repeat == Repeat::Key && call.attempts < KEYED_ATTEMPTS {
            call.status = CallStatus::Again { attempt: call.attempts + 1 };
        } else {
            call.status = CallStatus::Done { outcome: outcome.clone() };
        }
        if wrote {
            clear_reads(self, &scene);
        }
    }

    fn adopt(&mut self, made: &PlanMade) {
        if let Some(call) = self.planning.take().and_then(|p| p.tries.last().copied()) {
            self.used(call);
        }
        self.plan_status = PlanStatus::Approved;
        for step in &made.plan.steps {
            let state = StepState {
                step: step.clone(),
                version: made.version,
                status: StepStatus::Pending,
                rounds: 0,
                tries: Vec::new(),
                history: Vec::new(),
                calls: Vec::new(),
                round_calls: Vec::new(),
                text: String::new(),
                question: None,
                next: None,
                decided: false,
                result: None,
                error: None,
            };
            self.steps.insert(step.step_number, state);
        }
        self.plans.push(made.clone());
    }

    fn end(&mut self, status: RunStatus, plan: PlanStatus) {
        self.status = status;
        self.plan_status = plan;
        self.planning = None;
        if plan != PlanStatus::Draft {
            for step in self.steps.values_mut().filter(|s| !s.status.is_terminal()) {
                step.status = StepStatus::Cancelled;
            }
        }
        // A write whose outcome is now never heard of, or that was to be repeated with its key and
        // now never will be: nobody knows.
        for call in self.calls.values_mut().filter(|c| c.requested.effect == Effect::Write) {
            if matches!(call.status, CallStatus::Again { .. } | CallStatus::InFlight { .. }) {
                let error =
                    Fault::new("tool.unresolved", "the run ended before it was known whether this was done");
                call.status = CallStatus::Done { outcome: Outcome::Unknown { error } };
            }
        }
    }

    fn tries(&mut self, subject: Subject) -> &mut Vec<u32> {
        match subject {
            Subject::Plan { .. } => match &mut self.planning {
                Some(planning) => &mut planning.tries,
                // Refused by `admit`; kept total all the same.
                None => &mut self.answer_tries,
            },
            Subject::Scene { step } => match self.steps.get_mut(&step) {
                Some(step) => &mut step.tries,
                None => &mut self.answer_tries,
            },
            Subject::Continuation { .. } => &mut self.check_tries,
            Subject::Answer => &mut self.answer_tries,
        }
    }

    fn set_ask(&mut self, call: u32, status: AskStatus) {
        if let Some(ask) = self.asks.get_mut(&call) {
            ask.status = status;
        }
    }

    fn take_reply(&mut self, call: u32) -> Reply {
        match self.asks.get(&call).map(|a| &a.status) {
            Some(AskStatus::Replied { reply } | AskStatus::Used { reply }) => reply.clone(),
            _ => Reply::default(),
        }
    }

    fn used(&mut self, call: u32) {
        if self.asks.get(&call).is_some_and(|a| matches!(a.status, AskStatus::Replied { .. })) {
            let reply = self.take_reply(call);
            self.set_ask(call, AskStatus::Used { reply });
        }
    }

    fn step(&mut self, number: u32, change: impl FnOnce(&mut StepState)) {
        if let Some(step) = self.steps.get_mut(&number) {
            change(step);
        }
    }
}
