//! `RunState::apply`: the fold of one event, each event checked first.

mod again;
mod decided;

use super::admit::Illegal;
use super::approval::{Approval, Matter};
use super::event::{
    Cause, Effect, Event, Fault, Outcome, PlanMade, Repeat, Reply, RequestedCall, RunStatus, Subject,
};
use super::guard::clear_reads;
use super::ids::RunId;
use super::state::{
    Answer, Ask, AskStatus, CallState, CallStatus, Cancel, Feedback, Planning, Round, RunState, StepState,
};
use crate::plan::{PlanStatus, StepStatus};

/// Times a write with an idempotency key is started in all.
const KEYED_ATTEMPTS: u32 = 2;

/// Times a write with an idempotency key is cut off by the end of the process and begun once more under its
/// key, beside those attempts.
const KEYED_INTERRUPTIONS: u32 = 5;

/// Times a read is started in all, when panics cut it off (in journals of earlier releases, crashes).
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
        if self.brings_something(event) {
            self.stalls = 0;
        }
        self.plan_status = self.plan_after(event);
        match event {
            Event::RunQueued(queued) => self.queued = Some(queued.clone()),
            Event::RunStarted(started) => {
                self.started = Some(started.clone());
                self.status = RunStatus::Running;
            }
            Event::RunResumed { epoch, restart } => self.resume(*epoch, *restart),
            Event::RunPutAside { error } => {
                self.aside = Some(error.clone());
                self.status = RunStatus::Waiting;
            }
            Event::Planning { version, .. } => {
                self.planning = Some(Planning { version: *version, tries: Vec::new(), feedback: None });
            }
            Event::ModelAsked { call, subject, attempt, fallback, reserved, .. } => {
                self.tries(*subject).push(*call);
                let ask = Ask {
                    subject: *subject,
                    attempt: *attempt,
                    fallback: *fallback,
                    status: AskStatus::InFlight,
                    reserved: reserved.clone(),
                };
                self.asks.insert(*call, ask);
            }
            Event::ModelReplied { call, reply, usage, .. } => {
                self.usage += *usage;
                self.set_ask(*call, AskStatus::Replied { reply: reply.clone() });
                self.settled(*call);
            }
            Event::ModelFailed { call, error, usage, .. } => {
                self.usage += *usage;
                // Of a question that was cut off only its cost is told: it is asked once more.
                if !self.is_cut_off(*call) {
                    self.set_ask(*call, AskStatus::Failed { error: error.clone() });
                }
                self.settled(*call);
            }
            Event::ReplyRejected { call, problems } => {
                let reply = self.take_reply(*call);
                self.set_ask(*call, AskStatus::Rejected { reply, problems: problems.clone() });
            }
            // What somebody wanted changed stays as it was, and is put to people once more.
            Event::PlanningFailed { error, .. }
                if self.planning.as_ref().is_some_and(|p| p.feedback.is_some()) =>
            {
                self.planning = None;
                self.unmodified = Some(error.clone());
            }
            Event::PlanningFailed { error, .. } => {
                self.planning = None;
                self.closing = true;
                if self.plans.is_empty() {
                    self.error = Some(error.clone());
                }
            }
            Event::PlanCreated(made) | Event::Replanned(made) => self.adopt(made),
            Event::PlanEdited(made) => {
                self.withdraw();
                self.adopt(made);
            }
            Event::ModificationAsked { version, by, words } => {
                self.withdraw();
                let feedback = Some(Feedback { by: by.clone(), words: words.clone() });
                self.planning = Some(Planning { version: *version, tries: Vec::new(), feedback });
            }
            Event::ApprovalRequired { approval, matter, needed } => {
                let put = Approval { matter: *matter, needed: needed.clone(), decided: None, lapsed: false };
                self.approvals.insert(*approval, put);
            }
            Event::Decided { approval, matter, decision, by, .. } => {
                if let Some(approval) = self.approvals.get_mut(approval) {
                    approval.decided = Some((decision.clone(), by.clone()));
                }
                self.decided(*matter, decision, by);
            }
            Event::ApprovalLapsed { approval, matter, needed, edited, .. } => {
                if let Some(approval) = self.approvals.get_mut(approval) {
                    approval.lapsed = true;
                }
                match matter {
                    Matter::Plan { .. } => {
                        self.released = false;
                        if let Some(made) = self.plans.last_mut() {
                            made.approval = Some(needed.clone());
                        }
                    }
                    Matter::Call { call } | Matter::Outcome { call } => {
                        if let Some(call) = self.calls.get_mut(call) {
                            call.requested.approval = Some(needed.clone());
                            if let Some(edited) = edited {
                                call.requested.arguments = edited.arguments.clone();
                                call.requested.key.clone_from(&edited.key);
                                call.edited_by = Some(edited.by.clone());
                            }
                        }
                    }
                }
                self.go_on();
            }
            Event::Released { .. } => {
                // One that was put aside goes on as it was.
                if self.aside.take().is_none() {
                    self.released = true;
                }
                self.go_on();
            }
            Event::RunWaiting {} => self.status = RunStatus::Waiting,
            Event::PlanRefused { problems, .. } => {
                let told: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
                let message =
                    format!("the plan cannot be carried out, and nothing of it was: {}", told.join("; "));
                // Where nothing but money is missing, the same may pass later.
                let money = problems.iter().all(|problem| problem.code == "budget.exceeded");
                self.close(&Fault::new(if money { "budget.exceeded" } else { "plan.preflight" }, message));
            }
            Event::RunReopened { .. } => self.reopen(),
            Event::Compensating { undoes, requested } => self.compensating(*undoes, requested),
            Event::StepStarted { step } => self.step(*step, |s| s.status = StepStatus::Running),
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
                self.request_calls(*step, calls, fallback, text);
                self.step(*step, |s| {
                    s.rounds += 1;
                    s.tries.clear();
                    s.text.clone_from(text);
                    s.question.clone_from(question);
                    s.next = None;
                });
            }
            Event::Prepared { step, calls } => {
                self.request_calls(*step, calls, false, "");
                self.step(*step, |s| s.prepared = true);
            }
            Event::ToolStarted { call, attempt } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.status = CallStatus::InFlight { attempt: *attempt };
                    call.attempts = *attempt;
                    call.stale = false;
                }
            }
            Event::ToolCompleted { call, outcome, .. } => {
                if self.calls.get(call).is_some_and(|c| c.attempts > 0) {
                    self.plans_before_results.get_or_insert(self.plans.len() as u32);
                }
                self.completed(*call, outcome);
            }
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
            Event::CancelRequested { by, deadline, .. } => {
                // A person's wish outweighs the deadline; the first of a kind stands. Once the
                // answer is known it comes too late.
                if self.answer.is_none() && self.cancel.as_ref().is_none_or(|c| c.deadline && !deadline) {
                    self.cancel = Some(Cancel { by: by.clone(), deadline: *deadline });
                }
                self.go_on();
            }
            Event::RunCompleted { status } => self.end(*status),
            Event::RunFailed { error } => {
                self.error = Some(error.clone());
                self.end(RunStatus::Failed);
            }
            Event::RunCancelled { .. } => self.end(RunStatus::Cancelled),
        }
    }

    /// The calls of a step that were asked for together.
    fn request_calls(&mut self, step: u32, calls: &[RequestedCall], fallback: bool, text: &str) {
        let scene = self.steps.get(&step).map(|s| s.step.scene_name.clone()).unwrap_or_default();
        for requested in calls {
            let state = CallState {
                step,
                scene: scene.clone(),
                requested: requested.clone(),
                fallback,
                status: CallStatus::Requested,
                stale: false,
                attempts: 0,
                interruptions: 0,
                undoes: None,
                undone_by: None,
                edited_by: None,
            };
            self.calls.insert(requested.call, state);
        }
        self.step(step, |s| {
            s.round_calls = calls.iter().map(|c| c.call).collect();
            s.calls.extend(&s.round_calls);
            s.history.push(Round { text: text.to_owned(), calls: s.round_calls.clone() });
        });
    }

    /// Where the plan stands after `event`, see [`PlanStatus::after`].
    pub fn plan_after(&self, event: &Event) -> PlanStatus {
        self.plan_status.after(event.plan_status(), self.is_plan_only())
    }

    /// A run that waited goes on. One that was put aside does so only to be stopped, or when somebody says so.
    fn go_on(&mut self) {
        let stays = self.aside.is_some() && self.cancel.is_none();
        if self.status == RunStatus::Waiting && !stays {
            self.status = RunStatus::Running;
        }
    }

    /// Whether a step was ever begun.
    fn attempted(&self) -> bool {
        self.steps.values().any(|s| !s.is_untouched())
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
        // A write that was only told (a dry run) was never begun.
        let done = matches!(outcome, Outcome::Ok { .. }) && call.attempts > 0;
        let wrote = call.requested.effect == Effect::Write && (unknown || done);
        let scene = call.scene.clone();
        let attempts = call.attempts.saturating_sub(call.interruptions);
        if unknown && call.requested.repeat == Repeat::Key && attempts < KEYED_ATTEMPTS {
            call.status = CallStatus::Again { attempt: call.attempts + 1 };
        } else {
            call.status = CallStatus::Done { outcome: outcome.clone() };
        }
        if wrote {
            clear_reads(self, &scene);
        }
        // What was undone is done no more: an equal call is another one.
        let undone = self.calls.get(&number).filter(|call| self.is_undone_by(call)).and_then(|c| c.undoes);
        if let Some(write) = undone.and_then(|write| self.calls.get_mut(&write)) {
            write.stale = true;
        }
    }

    fn adopt(&mut self, made: &PlanMade) {
        if let Some(call) = self.planning.take().and_then(|p| p.tries.last().copied()) {
            self.used(call);
        }
        // A person's change replaces what has not begun; any other plan comes after what there is.
        if matches!(made.cause, Cause::Feedback | Cause::Edit) {
            self.steps.retain(|_, step| !step.is_untouched());
        }
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
                prepared: false,
            };
            self.steps.insert(step.step_number, state);
        }
        self.plans.push(made.clone());
        // That the version before it was told to begin says nothing of this one.
        self.released = false;
    }

    fn end(&mut self, status: RunStatus) {
        self.status = status;
        self.aside = None;
        self.planning = None;
        for approval in self.approvals.values_mut() {
            // What became of a write is decided whenever somebody knows it.
            if approval.decided.is_none() && !matches!(approval.matter, Matter::Outcome { .. }) {
                approval.lapsed = true;
            }
        }
        if !(self.is_plan_only() && status == RunStatus::Completed) {
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

    /// Whether something has come of the run with this event: a model or a tool has answered. That a question
    /// was cut off is no answer.
    pub fn brings_something(&self, event: &Event) -> bool {
        match event {
            Event::ModelReplied { .. } | Event::ToolCompleted { .. } => true,
            Event::ModelFailed { call, .. } => !self.is_cut_off(*call),
            _ => false,
        }
    }

    /// Whether a question was under way when whoever asked it ended.
    pub fn is_cut_off(&self, call: u32) -> bool {
        self.asks.get(&call).is_some_and(|ask| ask.status == AskStatus::Lost)
    }

    /// What a question has cost is known.
    fn settled(&mut self, call: u32) {
        if let Some(ask) = self.asks.get_mut(&call) {
            ask.reserved = None;
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
