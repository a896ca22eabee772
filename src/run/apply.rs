//! `RunState::apply`: checks one event and folds it into the state.

mod adaptation;
mod consultations;
mod decisions;
mod outcomes;
mod resumption;

use std::sync::Arc;

use jiff::Timestamp;

use super::admit::Illegal;
use super::approval::{Approval, ApprovalSubject, EditedCall, RequiredApproval};
use super::event::{
    Effect, Envelope, Event, EventArea, Fault, PlanCause, PlanMade, Reply, RequestedCall, RunStatus, Subject,
};
use super::ids::RunId;
use super::state::{
    Ask, AskStatus, CallState, CallStatus, Cancellation, DueActions, FinalAnswer, PlanFeedback,
    PlanInProgress, RunState, StepState,
};
use crate::plan::{PlanProblem, PlanStatus, StepStatus};

/// How often a write with an idempotency key is repeated after the process ended during it, in addition to
/// those attempts.
const MAX_KEYED_INTERRUPTIONS: u32 = 5;

/// Maximum number of attempts of a read that is interrupted by panics (in journals of earlier releases, by crashes).
const MAX_READ_ATTEMPTS: u32 = 4;

impl RunState {
    /// Folds one event into the state, as if no time had passed since the last one.
    ///
    /// # Errors
    /// [`Illegal`] where the event is not legal now; the state is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), Illegal> {
        self.apply_at(event, self.at)
    }

    /// Folds one event, which was appended at `at`, into the state.
    ///
    /// # Errors
    /// [`Illegal`] where the event is not legal now; the state is then unchanged.
    pub fn apply_at(&mut self, event: &Event, at: Timestamp) -> Result<(), Illegal> {
        self.check(event)?;
        self.apply_checked(event, at);
        Ok(())
    }

    /// Folds a journal. Its events have happened, whatever today's rules allow, so they are not checked:
    /// runs that an earlier release executed can still be read.
    pub fn from_journal<'e>(run: RunId, journal: impl IntoIterator<Item = &'e Envelope<Event>>) -> Self {
        let mut state = Self::new(run);
        for envelope in journal {
            state.apply_checked(&envelope.body, envelope.at);
        }
        state
    }

    /// Folds events without their times, where no time matters.
    pub fn from_events<'e>(run: RunId, events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut state = Self::new(run);
        for event in events {
            state.apply_checked(event, state.at);
        }
        state
    }

    /// Folds an event without [`RunState::check`], for callers that checked it before appending it, or that
    /// append what [`RunState::next`] has just requested: the check computes what is due, which costs more
    /// than the fold.
    pub(crate) fn apply_checked(&mut self, event: &Event, at: Timestamp) {
        self.at = self.at.max(at);
        let waited = self.status == RunStatus::Waiting;
        self.fold(event);
        self.restart_time_limit(event, waited);
        self.seq += 1;
        self.due = DueActions::default();
    }

    fn fold(&mut self, event: &Event) {
        if self.is_progress(event) {
            self.stalls = 0;
        }
        self.plan_status = self.plan_after(event);
        match event.area() {
            EventArea::Run => self.fold_run(event),
            EventArea::Question => self.fold_question(event),
            EventArea::Planning => self.fold_planning(event),
            EventArea::Approval => self.fold_approval(event),
            EventArea::Step => self.fold_step(event),
            EventArea::Flow => self.fold_flow(event),
            EventArea::Program => self.fold_program(event),
            EventArea::Summary => self.fold_summary(event),
            EventArea::Call => self.fold_call(event),
            EventArea::Failure => self.fold_failure(event),
            EventArea::Answer => self.fold_answer(event),
        }
    }

    /// Folds the acceptance, the start, a wait or the end of the run, or what is learned from it.
    fn fold_run(&mut self, event: &Event) {
        match event {
            Event::RunQueued(queued) => self.queued = Some(queued.clone()),
            Event::RunStarted(started) => {
                self.started = Some(Arc::new(started.clone()));
                self.status = RunStatus::Running;
            }
            Event::RunResumed { epoch, restart, catalogue } => {
                self.resume(*epoch, *restart);
                self.change_catalogue(catalogue.as_ref());
            }
            Event::RunReopened { .. } => self.reopen(),
            Event::RunPutAside { error, copied } => {
                self.aside = Some(error.clone());
                self.copied = *copied;
                self.status = RunStatus::Waiting;
            }
            Event::PlanRecalled(recall) => self.recall = Some(recall.clone()),
            Event::PlanObserved(lesson) => self.template = Some(lesson.template.clone()),
            Event::PlanRated { score, by, .. } => _ = self.ratings.insert(by.clone(), *score),
            Event::RunWaiting {} => self.status = RunStatus::Waiting,
            Event::CancelRequested { by, deadline, .. } => self.request_cancellation(by, *deadline),
            Event::RunCompleted { status } => self.end(*status),
            Event::RunFailed { error } => {
                self.error = Some(error.clone());
                self.end(RunStatus::Failed);
            }
            Event::RunCancelled { .. } => self.end(RunStatus::Cancelled),
            _ => {}
        }
    }

    /// Folds a question to a model, its end, or the rejection of its reply.
    fn fold_question(&mut self, event: &Event) {
        match event {
            Event::ModelAsked { call, subject, attempt, fallback, reserved, .. } => {
                self.tries.entry(*subject).or_default().push(*call);
                let ask = Ask {
                    subject: *subject,
                    attempt: *attempt,
                    fallback: *fallback,
                    status: AskStatus::InFlight,
                    reserved: reserved.clone(),
                    origin: None,
                };
                if let Some(consultation) = subject.consultation() {
                    self.fold_consultation_question(consultation, *call);
                }
                self.asks.insert(*call, ask);
                self.open_asks.insert(*call);
            }
            Event::ModelReplied { call, reply, usage, attempts, .. } => {
                self.usage += *usage;
                self.keep_origin(*call, Ok(&reply.model), attempts);
                self.set_ask(*call, AskStatus::Replied { reply: reply.clone() });
                self.settle_ask(*call);
            }
            Event::ModelFailed { call, error, usage, attempts, .. } => {
                self.usage += *usage;
                self.keep_origin(*call, Err(error), attempts);
                // For an interrupted question, the event only carries its cost: the question is asked
                // again.
                if !self.is_cut_off(*call) {
                    self.count_summary_failure(*call);
                    self.set_ask(*call, AskStatus::Failed { error: error.clone() });
                }
                self.settle_ask(*call);
            }
            Event::ScenesRanked { scenes, .. } => {
                self.use_reply_about(Subject::Ranking);
                self.ranking = Some(scenes.clone());
            }
            Event::ReplyRejected { call, problems } => {
                self.count_summary_failure(*call);
                let reply = self.take_reply(*call);
                self.set_ask(*call, AskStatus::Rejected { reply, problems: problems.clone() });
            }
            _ => {}
        }
    }

    /// Folds the making, the change or the refusal of a plan.
    fn fold_planning(&mut self, event: &Event) {
        match event {
            Event::Planning { version, .. } => {
                self.begin_planning(*version, None);
            }
            // The plan stays unchanged, and its approval is requested again.
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
            Event::PlanCreated(made) | Event::Replanned(made) => self.adopt_plan(made),
            Event::PlanEdited(made) => {
                self.withdraw_plan_approval();
                self.adopt_plan(made);
            }
            Event::ModificationAsked { version, by, words } => {
                self.withdraw_plan_approval();
                let feedback = Some(PlanFeedback { by: by.clone(), words: words.clone() });
                self.begin_planning(*version, feedback);
            }
            Event::PlanRefused { version, problems, retry_after_ms } => {
                self.refuse_plan(*version, problems, *retry_after_ms)
            }
            _ => {}
        }
    }

    fn begin_planning(&mut self, version: u32, feedback: Option<PlanFeedback>) {
        self.tries.remove(&Subject::Plan { version });
        self.planning = Some(PlanInProgress { version, feedback });
    }

    fn refuse_plan(&mut self, version: u32, problems: &[PlanProblem], retry_after_ms: Option<u64>) {
        let messages: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
        let message =
            format!("the plan cannot be carried out, and nothing of it was: {}", messages.join("; "));
        // If only the budget is exhausted, a retry may succeed later.
        let money = problems.iter().all(|problem| problem.code == "budget.exceeded");
        let fault = match money {
            true => Fault { retry_after_ms, ..Fault::new("budget.exceeded", message) },
            false => Fault::new("plan.preflight", message),
        };
        match self.is_patch(version) {
            true => self.drop_patch(version, &fault),
            false => self.stop_planning(&fault),
        }
    }

    /// Folds a request for approval, its decision, its lapse, or the release of a plan or run.
    fn fold_approval(&mut self, event: &Event) {
        match event {
            Event::ApprovalRequired { approval, matter, needed } => {
                let (matter, needed) = (*matter, needed.clone());
                let requested = self.at;
                let pending =
                    Approval { matter, needed, decided: None, lapsed: false, requested, words: None };
                self.approvals.insert(*approval, pending);
            }
            Event::Decided { approval, matter, decision, by, .. } => {
                if let Some(approval) = self.approvals.get_mut(approval) {
                    approval.decided = Some((decision.clone(), by.clone()));
                }
                self.unread_words = None;
                self.apply_decision(*matter, decision, by);
            }
            Event::ListChangeAsked { approval, by, words, .. } => {
                self.begin_list_change(*approval, by, words)
            }
            Event::ApprovalLapsed { approval, matter, needed, edited, read, .. } => {
                if read.is_some() {
                    self.end_list_change(*matter, edited.is_some());
                }
                if let Some(approval) = self.approvals.get_mut(approval) {
                    approval.lapsed = true;
                }
                self.require_approval_again(*matter, needed, edited.as_deref());
                self.leave_waiting();
            }
            Event::Released { .. } => {
                // A quarantined run continues as it was.
                self.copied = None;
                if self.aside.take().is_none() {
                    self.released = true;
                }
                self.leave_waiting();
            }
            _ => {}
        }
    }

    /// After its approval has lapsed, the plan or call needs the approval `needed`.
    fn require_approval_again(
        &mut self,
        matter: ApprovalSubject,
        needed: &RequiredApproval,
        edited: Option<&EditedCall>,
    ) {
        match matter {
            ApprovalSubject::Plan { .. } => {
                self.released = false;
                if let Some(made) = self.plans.last_mut() {
                    made.approval = Some(needed.clone());
                }
            }
            ApprovalSubject::Call { call } | ApprovalSubject::Outcome { call } => {
                self.calls.change(call, |call| {
                    call.requested.approval = Some(needed.clone());
                    if let Some(edited) = edited {
                        call.requested.arguments = edited.arguments.clone();
                        call.requested.key.clone_from(&edited.key);
                        call.edited_by = Some(edited.by.clone());
                    }
                });
            }
        }
    }

    /// Folds the start of a step, a reply of its scene, or its end.
    fn fold_step(&mut self, event: &Event) {
        match event {
            Event::StepStarted { step } => self.step(*step, |s| s.status = StepStatus::Running),
            Event::SceneReplied { step, call, calls, question, next, .. } => {
                let fallback = self.asks.get(call).is_some_and(|a| a.fallback);
                self.mark_reply_used(*call);
                self.tries.remove(&Subject::Scene { step: *step });
                if next.is_none() {
                    self.request_calls(*step, calls, fallback);
                }
                self.step(*step, |s| {
                    s.work.fold(event, &s.round_calls);
                    if next.is_none() {
                        s.question.clone_from(question);
                    }
                });
            }
            Event::Prepared { step, calls, question, .. } => {
                self.request_calls(*step, calls, false);
                self.step(*step, |s| {
                    s.work.fold(event, &s.round_calls);
                    s.question.clone_from(question);
                    s.prepared = true;
                });
            }
            Event::StepCompleted { step, result } => {
                self.step(*step, |s| {
                    s.status = StepStatus::Completed;
                    s.result = Some(result.clone());
                });
                self.end_node(*step);
                self.count_idle(*step);
            }
            Event::StepFailed { step, status, error } => {
                self.step(*step, |s| {
                    s.status = *status;
                    s.error = Some(error.clone());
                });
                self.end_node(*step);
                self.count_idle(*step);
            }
            _ => {}
        }
    }

    /// Folds the start, the end or the omission of a tool call, or a compensating call.
    fn fold_call(&mut self, event: &Event) {
        match event {
            Event::ToolStarted { call, attempt } => {
                let begun = self.calls.change(*call, |call| {
                    call.status = CallStatus::InFlight { attempt: *attempt };
                    call.stale = false;
                    call.summary = None;
                    let first = std::mem::replace(&mut call.attempts, *attempt) == 0;
                    // A substitute takes the place of a call that was counted.
                    (call.step, first && call.replaces.is_none())
                });
                if let Some((step, true)) = begun {
                    self.step(step, |s| s.begun_calls += 1);
                }
            }
            Event::ToolCompleted { call, outcome, notes, .. } => {
                if self.calls.get(call).is_some_and(|c| c.attempts > 0) {
                    self.plans_before_results.get_or_insert(self.plans.len() as u32);
                }
                self.complete_call(*call, outcome, notes.as_deref());
            }
            Event::ToolSkipped { call, first } => {
                self.calls.change(*call, |call| call.status = CallStatus::Skipped { first: *first });
                self.close_call(*call);
            }
            Event::Compensating { undoes, requested } => self.begin_compensation(*undoes, requested),
            _ => {}
        }
    }

    /// Folds a continuation check's verdict, or the answer.
    fn fold_answer(&mut self, event: &Event) {
        match event {
            Event::Continuation { round, verdict, .. } => {
                self.use_reply_about(Subject::Continuation { round: *round });
                self.verdicts.push(verdict.clone());
            }
            Event::Answered { text, degraded, .. } => {
                self.use_reply_about(Subject::Answer);
                self.answer = Some(FinalAnswer { text: text.clone(), degraded: *degraded });
            }
            _ => {}
        }
    }

    /// A cancellation by a person overrides the deadline; otherwise the first one counts. Once the answer is
    /// known, it is too late.
    fn request_cancellation(&mut self, by: &str, deadline: bool) {
        if self.answer.is_none() && self.cancel.as_ref().is_none_or(|c| c.deadline && !deadline) {
            self.cancel = Some(Cancellation { by: by.to_owned(), deadline });
        }
        // A person who cancels a run that was restored from a backup has seen to it.
        if !deadline && self.copied.take().is_some() && self.cancel.is_none() {
            // Its answer is known: nothing is left to be stopped, and it ends.
            self.aside = None;
        }
        self.leave_waiting();
    }

    /// Adds the calls that one reply requested.
    pub(super) fn request_calls(&mut self, step: u32, calls: &[RequestedCall], fallback: bool) {
        let scene = self.steps.get(&step).map(|s| s.step.scene_name.clone()).unwrap_or_default();
        for requested in calls {
            let scene = requested.scene.as_ref().unwrap_or(&scene).clone();
            let follows_documents = self.follows_documents(requested);
            let state = CallState::requested(step, scene, requested.clone());
            self.calls.insert(requested.call, CallState { fallback, follows_documents, ..state });
        }
        self.step(step, |s| {
            s.round_calls = calls.iter().map(|c| c.call).collect();
            s.open_calls.clone_from(&s.round_calls);
            s.is_sequential = calls.iter().any(|c| c.effect == Effect::Write && c.problem.is_none());
            s.calls.extend(&s.round_calls);
        });
    }

    /// The plan's status after `event`, see [`PlanStatus::after_event`].
    pub fn plan_after(&self, event: &Event) -> PlanStatus {
        self.plan_status.after_event(event.facts().plan_status, self.is_plan_only())
    }

    /// A waiting run continues. A quarantined run does so only when it is cancelled or resumed by a person.
    pub(super) fn leave_waiting(&mut self) {
        if self.status == RunStatus::Waiting && !self.is_quarantined() {
            self.status = RunStatus::Running;
        }
    }

    /// Whether any step has begun.
    fn has_begun_a_step(&self) -> bool {
        self.steps.values().any(|s| !s.is_untouched())
    }

    /// A call that has ended is no longer among the open calls of its step.
    pub(super) fn close_call(&mut self, number: u32) {
        let Some(call) = self.calls.get(&number).filter(|_| !self.calls.is_open(number)) else { return };
        self.step(call.step, |s| s.open_calls.retain(|open| *open != number));
        self.settle_replaced(number);
    }

    fn adopt_plan(&mut self, made: &PlanMade) {
        if let Some(planning) = self.planning.take() {
            self.use_reply_about(Subject::Plan { version: planning.version });
        }
        // A person's change replaces steps that have not begun; any other plan is appended.
        if matches!(made.cause, PlanCause::Feedback | PlanCause::Edit) {
            self.steps.retain(|_, step| !step.is_untouched());
        }
        if let Some(patch) = &made.patch {
            self.choose_patch(patch.consultation, made.version);
            self.remember_plan();
            self.apply_patch(patch);
        }
        for step in &made.plan.steps {
            let state = StepState::pending(step.clone(), made.version);
            self.steps.insert(step.step_number, state);
        }
        self.plans.push(made.clone());
        // The release of the previous version does not apply to this one.
        self.released = false;
        self.remember_plan();
    }

    fn end(&mut self, status: RunStatus) {
        self.status = status;
        self.aside = None;
        self.copied = None;
        self.planning = None;
        for approval in self.approvals.values_mut() {
            // The outcome of a write can be decided at any time.
            if approval.decided.is_none() && !matches!(approval.matter, ApprovalSubject::Outcome { .. }) {
                approval.lapsed = true;
            }
        }
        if !(self.is_plan_only() && status == RunStatus::Completed) {
            for step in self.steps.values_mut().filter(|s| !s.status.is_terminal()) {
                step.status = StepStatus::Cancelled;
            }
        }
        self.end_calls();
    }

    /// Returns whether the event is progress: a model or a tool has replied. The cost of an interrupted question is
    /// not progress.
    pub fn is_progress(&self, event: &Event) -> bool {
        match event {
            Event::ModelReplied { .. } | Event::ToolCompleted { .. } => true,
            Event::ModelFailed { call, .. } => !self.is_cut_off(*call),
            _ => false,
        }
    }

    /// Returns whether a question was in flight when its driver or process ended.
    pub fn is_cut_off(&self, call: u32) -> bool {
        self.asks.get(&call).is_some_and(|ask| ask.status == AskStatus::Lost)
    }

    /// The question's cost is known: its reservation is settled.
    fn settle_ask(&mut self, call: u32) {
        if let Some(ask) = self.asks.get_mut(&call) {
            ask.reserved = None;
        }
    }

    pub(super) fn set_ask(&mut self, call: u32, status: AskStatus) {
        if let Some(ask) = self.asks.get_mut(&call) {
            ask.status = status;
            self.open_asks.remove(&call);
        }
    }

    fn take_reply(&mut self, call: u32) -> Reply {
        match self.asks.get_mut(&call).map(|a| &mut a.status) {
            Some(AskStatus::Replied { reply } | AskStatus::Used { reply }) => std::mem::take(reply),
            _ => Reply::default(),
        }
    }

    /// Marks the last reply about `subject` as used.
    pub(super) fn use_reply_about(&mut self, subject: Subject) {
        if let Some(call) = self.tries.remove(&subject).and_then(|tries| tries.last().copied()) {
            self.mark_reply_used(call);
        }
    }

    fn mark_reply_used(&mut self, call: u32) {
        if self.asks.get(&call).is_some_and(|a| matches!(a.status, AskStatus::Replied { .. })) {
            let reply = self.take_reply(call);
            self.set_ask(call, AskStatus::Used { reply });
        }
    }

    pub(super) fn step(&mut self, number: u32, change: impl FnOnce(&mut StepState)) {
        if let Some(step) = self.steps.get_mut(&number) {
            change(step);
        }
    }
}
