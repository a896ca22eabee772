//! `RunState::next`: the actions that are due now. All ordering rules live here.

use serde_json::json;

use super::action::Action;
use super::approval::{ApprovalGate, ApprovalSubject};
use super::confirmation::UNCONFIRMED;
use super::event::{Effect, Event, Fault, FaultClass, Outcome, PlanCause, RunStatus, Subject, Verdict};
use super::guard::{GuardDecision, decide};
use super::levels::level_fault;
use super::state::{CallState, CallStatus, DueQuestion, FinalAnswer, RunState, StepState};
use crate::adapt::PolicyChoice;
use crate::plan::{self, Step, StepStatus};
use crate::sentences;

/// Repairs of replies that are not forced (a scene's reply, the answer's text): an empty one is asked for
/// once more.
pub(super) const PLAIN_RETRIES: u32 = 1;

/// The fault code of a step that a recovery kept from beginning.
const STEP_STOPPED: &str = "step.stopped";

/// How often a run's driver may panic (in journals of earlier releases, also: its process may end) without
/// progress. Then the run is ended, so that a request that crashes its driver cannot do so forever. Process
/// crashes are counted by [`recovery`](super::recovery).
const MAX_STALLS: u32 = 3;

impl RunState {
    /// The actions that are due now. Empty while everything is in flight, and once the run has ended.
    /// Computed once per event.
    pub fn next(&self) -> &[Action] {
        self.due.0.get_or_init(|| self.due_actions())
    }

    pub(super) fn due_actions(&self) -> Vec<Action> {
        if self.queued.is_none() || self.status.is_terminal() {
            return Vec::new();
        }
        let is_stalled = self.stalls >= MAX_STALLS;
        if let Some(request) = self.unknown_write_request(is_stalled) {
            return vec![record(request)];
        }
        if self.is_quarantined() {
            return Vec::new();
        }
        if let Some(stop) = self.stopping() {
            return stop;
        }
        if is_stalled {
            return vec![record(self.poisonous_end())];
        }
        if self.started.is_none() {
            return vec![Action::Start];
        }
        if let Some(undo) = self.compensation_in_progress() {
            return undo;
        }
        if self.answer.is_some() {
            return vec![record(self.ending())];
        }
        if let Some(planning) = &self.planning {
            return self.planning_actions(planning.version);
        }
        if self.plans.is_empty() {
            return match &self.error {
                Some(error) => vec![record(Event::RunFailed { error: error.clone() })],
                None => vec![record(Event::Planning { version: 1, cause: PlanCause::Request })],
            };
        }
        if self.is_plan_only() {
            if let Some(due) = self.draft_actions() {
                return due;
            }
            return vec![record(Event::RunCompleted { status: RunStatus::Completed })];
        }
        if let Some(first) = self.before_steps() {
            return first;
        }
        let steps = self.step_actions();
        let open = self.steps.values().any(|s| !s.status.is_terminal()) || self.open_adaptation().is_some();
        if open || !steps.is_empty() {
            return steps;
        }
        self.after_steps()
    }

    /// The making of a version of the plan. The first one may be given, looked up or learned.
    fn planning_actions(&self, version: u32) -> Vec<Action> {
        if version == 1 {
            let given = self.queued.as_ref().is_some_and(|q| q.plan.is_some());
            let is_repeated = self.repeated_document_question().is_some();
            if given || is_repeated || self.is_confirmation() || self.is_planned_as_program() {
                return vec![Action::Take { version }];
            }
            if self.must_look_up_plan() {
                return vec![Action::LookUpPlan];
            }
            if self.recalled_plan().is_some() {
                return vec![Action::Take { version }];
            }
            if let Some(due) = self.due_ranking() {
                return self.question_actions(due, Subject::Ranking);
            }
        }
        let subject = Subject::Plan { version };
        match self.due_question(subject, self.settings().max_retries) {
            DueQuestion::GiveUp(error) => vec![record(Event::PlanningFailed { version, error })],
            due => self.question_actions(due, subject),
        }
    }

    /// What is due before the steps of the plan in force: requesting its approval, if it needs one.
    fn before_steps(&self) -> Option<Vec<Action>> {
        if self.has_begun() || self.closing {
            return None;
        }
        let version = self.plan()?.version;
        match self.gate_of_version(version) {
            // While the plan waits, `steps_due` begins none of its steps.
            ApprovalGate::Granted | ApprovalGate::Refused { .. } | ApprovalGate::Waits => None,
            ApprovalGate::Ask(needed) => {
                Some(vec![record(self.request_approval(ApprovalSubject::Plan { version }, needed))])
            }
        }
    }

    /// Records once that everything left waits for a person.
    fn begin_waiting(&self) -> Vec<Action> {
        if self.status == RunStatus::Waiting { Vec::new() } else { vec![record(Event::RunWaiting {})] }
    }

    /// A requested stop: nothing new begins, a write in flight is awaited, then the run ends. Work
    /// completed before the deadline is reported, above all writes.
    fn stopping(&self) -> Option<Vec<Action>> {
        let cancel = self.cancel.as_ref()?;
        if self.write_in_flight() {
            return Some(Vec::new());
        }
        if self.answer.is_none()
            && let Some(undo) = self.compensation()
        {
            return Some(undo);
        }
        if let Some(request) = self.unknown_write_request(true) {
            return Some(vec![record(request)]);
        }
        let end = if !cancel.deadline {
            Event::RunCancelled { by: cancel.by.clone() }
        } else if self.answer.is_some() {
            self.ending()
        } else if self.has_completed_work() {
            answered(self.with_omissions(&self.plain_answer()), true)
        } else {
            Event::RunFailed {
                error: Fault::new(
                    "run.deadline",
                    format!("the request took longer than {} ms", self.settings().run_timeout_ms),
                ),
            }
        };
        Some(vec![record(end)])
    }

    /// The end of a run that crashes its driver. Work completed before is reported, above all writes.
    fn poisonous_end(&self) -> Event {
        let why = format!(
            "the process that executed this run ended {MAX_STALLS} times in a row before the run got any further, so it \
             is not resumed; its events tell what was done before"
        );
        // Users read a sentence in their language; the reason is for operators. Before revision 9, users read the
        // reason as well.
        let sentence = self.settings().has_rules(9).then(|| sentences::internal_error(self.language()));
        if self.answer.is_some() {
            return self.ending();
        }
        let fault = |why: &str| Fault::new("run.poisonous", why).saying(sentence.map(str::to_owned));
        if !self.has_completed_work() {
            return Event::RunFailed { error: fault(&why) };
        }
        let text = format!("{}\n{}", self.plain_answer(), sentence.unwrap_or(&why));
        Event::Answered { text, degraded: true, error: sentence.map(|_| fault(&why)) }
    }

    pub(super) fn question_actions(&self, due: DueQuestion, subject: Subject) -> Vec<Action> {
        match due {
            DueQuestion::Read(call) => vec![Action::Read { call, subject }],
            DueQuestion::Ask { attempt, fallback } => {
                vec![Action::Ask { call: self.next_ask(), subject, attempt, fallback }]
            }
            DueQuestion::Wait | DueQuestion::GiveUp(_) => Vec::new(),
        }
    }

    fn step_actions(&self) -> Vec<Action> {
        let mut actions = self.steps_due();
        // Approval ordinals count up by one, so one approval is requested at a time.
        let mut is_requested = false;
        // Each node that is entered has the next number.
        let mut is_entered = false;
        actions.retain(|action| match action {
            Action::Record { event: Event::ApprovalRequired { .. } } => {
                !std::mem::replace(&mut is_requested, true)
            }
            Action::Record { event: Event::NodeStarted { .. } } => !std::mem::replace(&mut is_entered, true),
            _ => true,
        });
        let runs = self.steps.values().any(|s| !s.status.is_terminal());
        if actions.is_empty() && runs && !self.has_work_in_flight() && self.waits_for_a_person() {
            return self.begin_waiting();
        }
        actions
    }

    /// All actions that are due in steps. Each of several approval requests has the next ordinal, as if it
    /// were the first.
    pub(super) fn steps_due(&self) -> Vec<Action> {
        let unnoted =
            self.calls.unrecorded_failures().filter_map(|(number, call)| self.unexpected(number, call));
        let mut actions: Vec<Action> = unnoted.map(record).collect();
        let running = self.steps.iter().filter(|(_, s)| s.status == StepStatus::Running);
        let running: Vec<Action> =
            running.flat_map(|(number, step)| self.actions_in_step(*number, step)).collect();
        let opens = |action: &Action| matches!(action, Action::Record { event: Event::Unexpected { .. } });
        match (self.open_adaptation(), self.adaptation_due()) {
            (Some(number), _) => actions.extend(self.consultation_actions(number)),
            // One consultation is opened at a time.
            (None, Some(_)) if actions.iter().chain(&running).any(opens) => {}
            (None, Some(due)) => actions.push(record(due)),
            (None, None) => actions.extend(self.steps_to_begin()),
        }
        actions.extend(running);
        // Several questions may be asked at once, and each needs its own ordinal.
        let mut asks = self.next_ask();
        for action in &mut actions {
            if let Action::Ask { call, .. } = action {
                *call = asks;
                asks += 1;
            }
        }
        actions
    }

    /// The steps that begin now, and those that never will.
    fn steps_to_begin(&self) -> Vec<Action> {
        let pending = || self.steps.values().filter(|step| step.status == StepStatus::Pending);
        // All others have begun or ended: what follows is about pending steps alone.
        if pending().next().is_none() {
            return Vec::new();
        }
        if let Some(stop) = self.no_progress() {
            return vec![record(stop)];
        }
        let all: Vec<&Step> = self.plan_steps().map(|(_, s)| &s.step).collect();
        let statuses = self.step_statuses();
        let blocked = plan::blocked_by(&all, &statuses).into_iter().map(|(step, dependency)| {
            let why = format!("step {dependency}, which it depends on, did not complete");
            let error = Fault::new("step.blocked", why);
            record(Event::StepFailed { step, status: StepStatus::Blocked, error })
        });
        // A step that waits for a person does not count against the limit of parallel steps.
        let admitted: Vec<&Step> = pending().filter(|s| self.may_begin(s)).map(|s| &s.step).collect();
        let ready = plan::ready(&admitted, &statuses, self.settings().max_parallel_steps).into_iter();
        blocked.chain(ready.map(|step| record(Event::StepStarted { step }))).collect()
    }

    /// What a running step needs: its calls first, then what depends on its kind.
    fn actions_in_step(&self, number: u32, step: &StepState) -> Vec<Action> {
        let (actions, open) = self.actions_in_round(step);
        if open {
            return actions;
        }
        if step.stopped && step.question.is_none() {
            return vec![record(self.stopped_end(number, step))];
        }
        if let Some(question) = self.question_to_confirm(step) {
            return vec![record(needs_input(number, Fault::new(UNCONFIRMED, question)))];
        }
        if self.is_confirmation() {
            return match step.prepared {
                true => vec![record(self.end_prepared_step(number, step))],
                false => vec![Action::Prepare { step: number }],
            };
        }
        if let Some(question) = &step.question {
            return vec![record(needs_input(number, Fault::new("step.needs_input", question.text.clone())))];
        }
        step.work.actions(self, number, step)
    }

    /// The end of a step that a recovery stopped.
    fn stopped_end(&self, number: u32, step: &StepState) -> Event {
        let faults =
            step.round_calls.iter().filter_map(|call| self.outcome(*call)).filter_map(Outcome::fault);
        let error = faults.into_iter().find(|fault| fault.code != STEP_STOPPED).cloned();
        let error = error.unwrap_or_else(|| Fault::new(STEP_STOPPED, "a recovery ended this step"));
        Event::step_failed(number, error)
    }

    /// The calls of the last reply: what may start, and whether any is still open. Reads run in parallel;
    /// if there is a write, calls run one by one in the order written.
    fn actions_in_round(&self, step: &StepState) -> (Vec<Action>, bool) {
        let mut actions = Vec::new();
        let mut open = false;
        let mut started = step.begun_calls as usize;
        let mut waiting = 0;
        for &number in &step.open_calls {
            let Some(call) = self.calls.get(&number) else { continue };
            if matches!(call.status, CallStatus::Done { .. } | CallStatus::Skipped { .. }) {
                continue;
            }
            let first_open = !open;
            open = true;
            if step.is_sequential && !first_open {
                break;
            }
            match &call.status {
                CallStatus::Again { attempt } => {
                    actions.push(Action::Call { call: number, attempt: *attempt });
                }
                CallStatus::Failing { chosen: Some(PolicyChoice::Retry { delay_ms }), .. } => {
                    actions.push(record(Self::back_off_event(number, call, *delay_ms)));
                }
                CallStatus::Failing { chosen: Some(PolicyChoice::Consult { consultation, .. }), .. } => {
                    actions.extend(self.consultation_actions(*consultation));
                }
                CallStatus::Failing { chosen: Some(PolicyChoice::Alternative { .. }), .. }
                    if !self.has_open_substitute(call) =>
                {
                    actions.push(Action::Substitute { call: number });
                }
                CallStatus::Failing { chosen: Some(PolicyChoice::Cached { .. }), .. } => {
                    actions.push(Action::Recall { call: number });
                }
                // Its substitute is still open.
                CallStatus::Failing { chosen: Some(PolicyChoice::Alternative { .. }), .. } => {}
                CallStatus::Failing { .. } => actions.extend(self.unexpected(number, call).map(record)),
                CallStatus::Requested if self.list_change(number).is_some() => {
                    actions.extend(self.list_change_actions(number));
                    waiting += 1;
                }
                CallStatus::Requested => {
                    let Some(action) = self.action_for_call(number, started, waiting) else {
                        waiting += 1;
                        continue;
                    };
                    let counts = call.replaces.is_none() && matches!(action, Action::Call { .. });
                    started += usize::from(counts);
                    actions.push(action);
                }
                CallStatus::InFlight { .. } => actions.extend(self.summary_call_actions(number, call)),
                _ => {}
            }
        }
        (actions, open)
    }

    /// The action for a requested call; `None` while it waits for an equal one. Earlier calls that wait
    /// keep their places in `max_calls`, so that a call that may start now may still start later.
    fn action_for_call(&self, number: u32, started: usize, waiting: usize) -> Option<Action> {
        let call = self.calls.get(&number)?;
        // Confirmed calls need no other limit, and a substitute takes the place of a call that was counted.
        let is_free = self.is_confirmation() || call.replaces.is_some();
        let max = if is_free { usize::MAX } else { self.settings().max_calls as usize };
        let writes = call.requested.effect == Effect::Write;
        let refuse = |error: Fault| Some(record(refused_call(number, error)));
        if let Some(problem) = &call.requested.problem {
            return refuse(problem.clone());
        }
        // A pending approval is decided by its approver, whatever happened to equal calls since.
        if (writes || call.requested.approval.is_some()) && self.is_awaiting_approval(number) {
            return None;
        }
        if self.steps.get(&call.step).is_some_and(|step| step.stopped) {
            let why = "a recovery ended this step before the call's turn";
            return refuse(Fault::new(STEP_STOPPED, why));
        }
        let by_rules = call.fallback
            || (self.is_planned_by_rules(call.step) && self.approval_of_step(call.step).is_none());
        let asked = call.requested.approval.is_some() || self.is_shown(call);
        if writes && by_rules && !asked && !self.is_dry_run() {
            return refuse(Fault::new(
                "policy.fallback_write",
                "the configured models could not be used, and a plan made without them never writes without a \
                 person's approval: nothing was written",
            ));
        }
        match decide(self, number) {
            GuardDecision::Wait => None,
            GuardDecision::Skip { first } => Some(record(Event::ToolSkipped { call: number, first })),
            GuardDecision::Failing { first } => refuse(
                Fault::new(
                    "alternative.failing",
                    format!("call {first} of {} is failing", call.requested.tool),
                )
                .classed(FaultClass::Unavailable),
            ),
            GuardDecision::Held { first } => refuse(Fault::new(
                "tool.held",
                format!(
                    "call {first} of {} has an unknown outcome: nothing more is written with this tool in this \
                     request until a person has said what happened",
                    call.requested.tool
                ),
            )),
            GuardDecision::Run if started >= max => {
                refuse(Fault::new("bound.calls", format!("more than {max} tool calls in one step")))
            }
            GuardDecision::Run if started + waiting >= max => None,
            GuardDecision::Run if writes && self.is_dry_run() => Some(record(self.dry_run_outcome(number))),
            GuardDecision::Run if call.requested.confirm.is_some() => {
                let question = call.requested.confirm.as_ref().map(|c| c.question.as_str());
                refuse(Fault::new(UNCONFIRMED, question.unwrap_or_default()))
            }
            GuardDecision::Run => self.permitted_call(number, &call.requested.tool),
        }
    }

    /// Makes the call if it needs no approval or has it, requests its approval, or refuses it.
    fn permitted_call(&self, number: u32, tool: &str) -> Option<Action> {
        match self.call_gate(number) {
            ApprovalGate::Granted => Some(Action::Call { call: number, attempt: 1 }),
            // The user answers the questions one after the other, in words.
            ApprovalGate::Ask(needed) if needed.by_user && self.has_open_question_beside(number) => None,
            ApprovalGate::Ask(needed) => {
                Some(record(self.request_approval(ApprovalSubject::Call { call: number }, needed)))
            }
            ApprovalGate::Waits => None,
            ApprovalGate::Refused { by } => {
                let why = format!("{by} did not approve {tool}: nothing was written");
                Some(record(refused_call(number, Fault::new("approval.refused", why))))
            }
        }
    }

    /// The outcome of a write in a dry run: what it would have called.
    fn dry_run_outcome(&self, number: u32) -> Event {
        let (tool, arguments) = match self.calls.get(&number) {
            Some(call) => (call.requested.tool.as_str(), &call.requested.arguments),
            None => ("", &serde_json::Value::Null),
        };
        let result = json!({"dry_run": true, "would_call": tool, "with": arguments});
        let lead = sentences::dry_run(self.language());
        let say = Some(format!("{lead} {tool} {arguments}"));
        Event::ToolCompleted {
            call: number,
            outcome: Outcome::Ok { result, say, whole: None },
            millis: 0,
            notes: None,
        }
    }

    /// Returns whether a step did not achieve its purpose, whatever its scene's model says: none of its calls
    /// succeeded, or a write was refused or failed and no other call did it.
    pub fn is_unserved(&self, step: &StepState) -> bool {
        let calls = || {
            let all = step.calls.iter().filter_map(|c| self.calls.get(c).map(|call| (*c, call)));
            // A substitute counts as the call that it replaces.
            all.filter(|(_, call)| call.undoes.is_none() && call.replaces.is_none())
        };
        let ok = |call: u32| self.is_effective(call);
        // A program does many things with one tool, and commits its staged changes again if rows changed in between.
        let is_program = step.code().is_some();
        let is_same = |call: &CallState, by: &CallState| match is_program {
            true if !by.is_commit => call.requested.key == by.requested.key,
            _ => (&call.scene, &call.requested.tool) == (&by.scene, &by.requested.tool),
        };
        let done = |by: &CallState| calls().any(|(c, call)| is_same(call, by) && ok(c));
        // A program reports what it did. It did that only if one of its calls has a result, or if it computed the
        // report from earlier results.
        let follows = self.settings().has_rules(8) && step.step.depends_on_step.iter().next().is_some();
        let claims = !follows && step.code().is_some_and(|work| work.claims_success(self));
        let nothing = (claims || calls().next().is_some()) && !calls().any(|(c, _)| ok(c));
        // A model may have corrected its arguments in a later call, but a confirmed call is executed exactly as it was
        // confirmed.
        let undone = |(number, call): (u32, &CallState)| {
            let stands = if self.is_confirmation() { ok(number) } else { done(call) };
            let is_meant = !is_program || call.requested.problem.is_none();
            call.requested.effect == Effect::Write && is_meant && !stands
        };
        // The model was asked to choose because a write was expected, and chose something else.
        let evaded = step.scene().is_some_and(|work| work.decided)
            && !calls().any(|(_, call)| call.requested.effect == Effect::Write);
        nothing || evaded || calls().any(undone)
    }

    /// Returns whether there were steps and none led to a result, a write or a question.
    pub(crate) fn has_no_results(&self) -> bool {
        let asks = self.steps.values().any(|s| s.status == StepStatus::NeedsInput);
        !self.steps.is_empty() && !asks && !self.has_completed_work()
    }

    /// Whether there is anything to report: a completed step, or a write.
    fn has_completed_work(&self) -> bool {
        let partly = |s: &StepState| self.adapts() && self.has_result(s);
        let counts = |s: &StepState| !s.is_node() && (s.status == StepStatus::Completed || partly(s));
        self.steps.values().any(|s| counts(s) || self.has_written(s))
    }

    /// Returns whether the result of a call says anything: a lookup may find nothing.
    pub(super) fn has_content(&self, call: u32) -> bool {
        match self.outcome(call) {
            Some(Outcome::Ok { result, .. }) => match result {
                serde_json::Value::Null => false,
                serde_json::Value::Array(found) => !found.is_empty(),
                serde_json::Value::Object(found) => !found.is_empty(),
                serde_json::Value::String(text) => !text.trim().is_empty(),
                _ => true,
            },
            _ => false,
        }
    }

    /// Returns whether a call of the step has a result.
    pub fn has_result(&self, step: &StepState) -> bool {
        step.calls.iter().any(|c| self.is_effective(*c))
    }

    /// Every step has ended: what is due is the check, another plan, or the answer.
    fn after_steps(&self) -> Vec<Action> {
        let executes = self.plan().is_some_and(|p| p.plan.needs_execution);
        let empty_handed = self.has_no_results();
        // A confirmation executes exactly the confirmed calls, so there is nothing to check.
        let judged = self.verdicts.len() >= self.rounds() as usize
            || (empty_handed && !self.has_run_a_call())
            || !self.may().asks_models
            || self.is_confirmation()
            || self.is_answered_by_program()
            || self.is_only_summary();
        if executes && !self.closing && !judged {
            let round = self.rounds();
            let subject = Subject::Continuation { round };
            return match self.due_question(subject, self.settings().max_retries) {
                DueQuestion::GiveUp(error) => vec![record(Event::Continuation {
                    round,
                    verdict: Verdict { can_answer_now: true, reasoning: error.message, ..Verdict::default() },
                    degraded: true,
                })],
                due => self.question_actions(due, subject),
            };
        }
        let verdict = self.verdicts.last();
        let more = verdict.is_some_and(|v| v.should_continue);
        if more && self.may_replan() {
            if let Some(stop) = self.no_progress() {
                return vec![record(stop)];
            }
            let version = self.plans.len() as u32 + 1;
            return vec![record(Event::Planning { version, cause: PlanCause::Continuation })];
        }
        if self.has_failed()
            && let Some(undo) = self.compensation()
        {
            return undo;
        }
        self.answer_actions(empty_handed, more)
    }

    /// The answer as far as it is known already, or else the question for it.
    fn answer_actions(&self, empty_handed: bool, more: bool) -> Vec<Action> {
        // At `basic`, results in the tools' own words are what was asked for.
        let asks = self.may().asks_models;
        let plain = || vec![record(answered(self.with_omissions(&self.plain_answer()), asks))];
        // A verified text is not reworded.
        if self.is_only_summary() {
            let text = self.with_omissions(&self.plain_answer());
            return vec![record(answered(text, false))];
        }
        // Without results, there is nothing for a model to word, and small models would invent some. The check has
        // not seen what was undone since. Confirmed calls whose results are all phrased need no model.
        if empty_handed || self.has_undone() || (self.is_confirmation() && self.is_phrased()) {
            return plain();
        }
        let checked = self.verdicts.last().and_then(|v| v.answer.as_deref());
        let checked = checked.filter(|text| !more && !text.trim().is_empty());
        let planned = self.plan().filter(|_| self.steps.is_empty()).and_then(|p| p.plan.answer.as_deref());
        let not_done = self.refused_without_steps();
        if !not_done.is_empty() {
            let lines: Vec<&str> = planned.into_iter().chain(not_done.iter().map(String::as_str)).collect();
            return vec![record(answered(lines.join("\n"), false))];
        }
        if let Some(text) = self.answer_of_program().filter(|_| !more) {
            return vec![record(answered(self.with_omissions(&text), false))];
        }
        if let Some(text) = checked.or(planned) {
            return vec![record(answered(self.with_omissions(text), false))];
        }
        if !asks && !self.steps.is_empty() {
            return plain();
        }
        match self.due_question(Subject::Answer, PLAIN_RETRIES) {
            DueQuestion::GiveUp(_) => plain(),
            due => self.question_actions(due, Subject::Answer),
        }
    }

    /// The steps of the plan that are not done. Unfinished work of an earlier version does not count once a later
    /// version has done it.
    fn open_steps(&self) -> impl Iterator<Item = &StepState> {
        let redone = move |scene: &str| {
            self.steps.values().any(|s| {
                self.is_in_round(s) && s.step.scene_name == scene && s.status == StepStatus::Completed
            })
        };
        let left = move |s: &&StepState| s.status != StepStatus::Completed && !self.is_made_good(s);
        let planned = self.plan_steps().map(|(_, step)| step);
        planned.filter(left).filter(move |s| {
            self.is_in_round(s) || !redone(&s.step.scene_name) || self.unconfirmed(s).next().is_some()
        })
    }

    /// Whether the run did less than was requested, or it is not certain what it did.
    fn is_partial(&self) -> bool {
        let unsure = |c: &CallState| match &c.status {
            CallStatus::Done { outcome: Outcome::Unknown { .. } } => true,
            CallStatus::Done { outcome: Outcome::Refused { error } } => {
                error.code.starts_with("policy.") || error.code == "tool.held"
            }
            _ => false,
        };
        let is_odd = |c: &CallState| !c.breaches.is_empty() && !self.is_undone(c);
        let is_incomplete = |s: &StepState| {
            (self.is_unserved(s) && !self.is_made_good(s))
                || self.is_partial_summary(s)
                || self.is_partly_read(s)
        };
        let was_tried =
            |call: &CallState| self.steps.get(&call.step).is_some_and(|step| self.is_in_round(step));
        self.open_steps().next().is_some()
            || self.calls.values().any(|c| unsure(c) || is_odd(c) || c.is_partial_summary())
            || self.has_undone()
            || (self.settings().has_rules(8) && self.failed_writes().iter().any(|(call, _)| was_tried(call)))
            || self.plan_steps().any(|(_, s)| self.is_in_round(s) && is_incomplete(s))
            || self.closing
            || self.cancel.is_some()
            || (self.stalls >= MAX_STALLS && self.answer.as_ref().is_some_and(|a| a.degraded))
            || self.verdicts.last().is_some_and(|v| v.should_continue)
            || self.unserved().next().is_some()
            || self.forbidden_parts().next().is_some()
            || self.unavailable().next().is_some()
            || self.steps.values().any(|s| self.is_cut(s) || self.undecided(s).next().is_some())
    }

    /// The event that ends the run once it is answered.
    fn ending(&self) -> Event {
        let verdict = self.verdicts.last();
        let asks_user = verdict.is_some_and(|v| !v.should_continue && !v.can_answer_now);
        let needs_input = self.open_steps().any(|s| s.status == StepStatus::NeedsInput);
        let status = if needs_input || (asks_user && self.cancel.is_none()) {
            RunStatus::NeedsInput
        } else if let Some(step) = self.open_steps().next()
            && !self.has_completed_work()
            && !self.any_refused(self.open_steps())
        {
            let error =
                step.error.clone().unwrap_or_else(|| Fault::new("run.nothing_done", "no step completed"));
            return Event::RunFailed { error };
        } else if self.is_partial() {
            RunStatus::Partial
        } else if let Some(answer) = self.unplanned_answer() {
            let asks = self.may().asks_models;
            if answer.text.trim().is_empty() {
                return Event::RunFailed {
                    error: if asks { self.unanswered_fault() } else { level_fault() },
                };
            }
            // The offline model answered in place of the models: less than was requested, but an answer.
            if asks { RunStatus::Partial } else { RunStatus::Completed }
        } else {
            RunStatus::Completed
        };
        Event::RunCompleted { status }
    }
}

impl RunState {
    /// The answer to a request without steps, if the offline model worded it or no model did.
    fn unplanned_answer(&self) -> Option<&FinalAnswer> {
        let asks = self.may().asks_models;
        let counts = |a: &&FinalAnswer| a.degraded || (!asks && a.text.trim().is_empty());
        self.answer.as_ref().filter(counts).filter(|_| self.steps.is_empty())
    }
}

/// The answer of a run that was not cut short.
fn answered(text: String, degraded: bool) -> Event {
    Event::Answered { text, degraded, error: None }
}

fn needs_input(step: u32, error: Fault) -> Event {
    Event::StepFailed { step, status: StepStatus::NeedsInput, error }
}

pub(super) fn refused_call(call: u32, error: Fault) -> Event {
    Event::ToolCompleted { call, outcome: Outcome::Refused { error }, millis: 0, notes: None }
}

pub(super) fn record(event: Event) -> Action {
    Action::Record { event }
}
