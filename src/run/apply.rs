//! `RunState::apply`: the fold of one event, and which events are possible when.

use super::event::{Effect, Event, Fault, Outcome, PlanMade, Repeat, Reply, RunStatus, Subject};
use super::guard::clear_reads;
use super::state::{Answer, Ask, AskStatus, CallState, CallStatus, Cancel, Planning, Round, RunState, StepState};
use crate::plan::{self, PlanStatus, StepStatus};

/// Times a write with an idempotency key is started in all.
const KEYED_ATTEMPTS: u32 = 2;

/// An event that cannot happen in the state it came to. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot follow: {why}")]
pub struct Illegal {
    /// The event's name.
    pub event: String,
    /// What stands against it.
    pub why: String,
}

impl RunState {
    /// Folds one event into the state.
    ///
    /// # Errors
    /// [`Illegal`] where the event cannot happen now; the state is then as before.
    pub fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        self.check(event)?;
        self.fold(event);
        self.seq += 1;
        Ok(())
    }

    /// Whether [`RunState::apply`] would take the event: asked before it is appended, so that nothing
    /// is stored that a fold would refuse.
    ///
    /// # Errors
    /// [`Illegal`] where the event cannot happen now.
    pub fn check(&self, event: &Event) -> Result<(), Illegal> {
        self.admit(event).map_err(|why| Illegal { event: event.key(), why })
    }

    /// Whether the event can happen now.
    fn admit(&self, event: &Event) -> Result<(), String> {
        if self.status.is_terminal() {
            return Err("the run has ended".to_owned());
        }
        if let Event::RunQueued(_) = event {
            return require(self.queued.is_none(), "the request was accepted before");
        }
        require(self.queued.is_some(), "no request was accepted")?;
        match event {
            Event::RunStarted(_) => return require(self.started.is_none(), "it was started before"),
            Event::RunResumed { epoch } => {
                return require(*epoch > self.epoch, "a later epoch has taken the run over");
            }
            Event::CancelRequested { .. } | Event::RunCancelled { .. } | Event::RunFailed { .. } => return Ok(()),
            _ => require(self.started.is_some(), "it has not started")?,
        }
        match event {
            Event::Planning { version, .. } => {
                require(self.planning.is_none(), "a plan is being made")?;
                require(*version as usize == self.plans.len() + 1, "versions count up by one")?;
                require(*version == 1 || self.may_replan(), "no further plan is allowed")
            }
            Event::ModelAsked { call, subject, .. } => {
                require(*call == self.next_ask(), "questions count up by one")?;
                self.admit_subject(*subject)
            }
            Event::ModelReplied { call, .. } | Event::ModelFailed { call, .. } => require(
                self.asks.get(call).is_some_and(|a| a.status == AskStatus::InFlight),
                "the question is not under way",
            ),
            Event::ReplyRejected { call, .. } => self.replied(*call).map(|_| ()),
            Event::PlanningFailed { version, .. } => require(
                self.planning.as_ref().is_some_and(|p| p.version == *version),
                "that plan is not being made",
            ),
            Event::PlanCreated(made) => {
                require(made.version == 1, "only the first plan is created; later ones replan")?;
                self.admit_plan(made)
            }
            Event::Replanned(made) => {
                require(made.version > 1, "the first plan is created")?;
                self.admit_plan(made)
            }
            Event::StepStarted { step } => {
                let all: Vec<&plan::Step> = self.steps.values().map(|s| &s.step).collect();
                let ready = plan::ready(&all, &self.step_statuses(), self.settings().max_parallel_steps);
                require(ready.contains(step), "the step is not ready")
            }
            Event::SceneReplied { step, call, calls, .. } => {
                let ask = self.replied(*call)?;
                require(ask.subject == Subject::Scene { step: *step }, "the reply is about something else")?;
                let first = self.next_call();
                let counted = calls.iter().enumerate().all(|(i, c)| c.call == first + i as u32);
                require(counted, "calls count up by one")
            }
            Event::ToolStarted { call, attempt } => match self.calls.get(call).map(|c| &c.status) {
                Some(CallStatus::Requested) => require(*attempt == 1, "the first attempt is 1"),
                Some(CallStatus::Again { attempt: due }) => require(attempt == due, "attempts count up by one"),
                _ => Err("the call is not waiting to be started".to_owned()),
            },
            Event::ToolCompleted { call, outcome, .. } => {
                match (self.calls.get(call).map(|c| &c.status), outcome) {
                    (Some(CallStatus::InFlight { .. }), _)
                    | (Some(CallStatus::Requested), Outcome::Refused { .. }) => Ok(()),
                    _ => Err("the call is not under way".to_owned()),
                }
            }
            Event::ToolSkipped { call, first } => {
                let waiting = self.calls.get(call).is_some_and(|c| c.status == CallStatus::Requested);
                let done = self.calls.get(first).is_some_and(|c| matches!(c.status, CallStatus::Done { .. }));
                require(waiting && done, "only a waiting call can share the outcome of one that has ended")
            }
            Event::StepCompleted { step, .. } => self.running(*step),
            Event::StepFailed { step, status, .. } => {
                require(status.is_terminal() && *status != StepStatus::Completed, "that is no way to fail")?;
                match status {
                    StepStatus::Blocked => require(
                        self.steps.get(step).is_some_and(|s| s.status == StepStatus::Pending),
                        "only a pending step can be blocked",
                    ),
                    _ => self.running(*step),
                }
            }
            Event::Continuation { round, .. } => {
                require(*round as usize == self.verdicts.len() + 1, "verdicts count up by one")?;
                require(self.verdicts.len() < self.plans.len(), "this plan was judged before")?;
                require(self.all_steps_ended(), "steps are still open")
            }
            Event::Answered { .. } => {
                require(self.answer.is_none(), "it was answered before")?;
                require(self.all_steps_ended() || self.cancel.is_some(), "steps are still open")
            }
            Event::RunCompleted { .. } => {
                let planned = self.is_plan_only() && !self.plans.is_empty();
                require(self.answer.is_some() || planned, "it is not answered")
            }
            Event::RunQueued(_)
            | Event::RunStarted(_)
            | Event::RunResumed { .. }
            | Event::CancelRequested { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => Ok(()),
        }
    }

    fn admit_subject(&self, subject: Subject) -> Result<(), String> {
        match subject {
            Subject::Plan { version } => require(
                self.planning.as_ref().is_some_and(|p| p.version == version),
                "that plan is not being made",
            ),
            Subject::Scene { step } => self.running(step),
            Subject::Continuation { .. } => {
                require(self.all_steps_ended() && self.verdicts.len() < self.plans.len(), "no verdict is due")
            }
            Subject::Answer => require(self.all_steps_ended() && !self.plans.is_empty(), "no answer is due"),
        }
    }

    fn admit_plan(&self, made: &PlanMade) -> Result<(), String> {
        require(
            self.planning.as_ref().is_some_and(|p| p.version == made.version),
            "that plan is not being made",
        )?;
        let limits = plan::Limits { max_steps: self.settings().max_steps };
        let problems = plan::structure(&made.plan, limits, &self.finished_steps(), self.last_step());
        match problems.first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(()),
        }
    }

    fn replied(&self, call: u32) -> Result<&Ask, String> {
        self.asks
            .get(&call)
            .filter(|ask| matches!(ask.status, AskStatus::Replied { .. }))
            .ok_or_else(|| "there is no reply to read".to_owned())
    }

    fn running(&self, step: u32) -> Result<(), String> {
        require(
            self.steps.get(&step).is_some_and(|s| s.status == StepStatus::Running),
            "the step is not running",
        )
    }

    fn all_steps_ended(&self) -> bool {
        self.planning.is_none() && self.steps.values().all(|s| s.status.is_terminal())
    }

    fn fold(&mut self, event: &Event) {
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
            Event::SceneReplied { step, call, text, calls, question } => {
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
                // A person's wish outweighs the deadline; the first of a kind stands.
                if self.cancel.as_ref().is_none_or(|c| c.deadline && !deadline) {
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
            if call.requested.effect == Effect::Read {
                call.status = CallStatus::Again { attempt: call.attempts + 1 };
            } else {
                let error = Fault::new(
                    "tool.interrupted",
                    "the process ended during the call: nobody knows whether it was done",
                );
                self.completed(number, &Outcome::Unknown { error });
            }
        }
    }

    fn completed(&mut self, number: u32, outcome: &Outcome) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let unknown = matches!(outcome, Outcome::Unknown { .. });
        let wrote = call.requested.effect == Effect::Write && (unknown || matches!(outcome, Outcome::Ok { .. }));
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
        // A write that was to be repeated with its key and now never will be: nobody knows.
        for call in self.calls.values_mut().filter(|c| c.requested.effect == Effect::Write) {
            if matches!(call.status, CallStatus::Again { .. }) {
                let error = Fault::new("tool.unresolved", "the run ended before it was known whether this was done");
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

fn require(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}
