//! `RunState::next`: what must happen now. Every rule about order lives here.

use serde_json::json;

use super::action::Action;
use super::approval::{Matter, Permit};
use super::confirm::UNCONFIRMED;
use super::event::{Cause, Effect, Event, Fault, Outcome, RunStatus, Subject, Verdict};
use super::guard::{Decision, decide};
use super::state::{CallStatus, Due, RunState, StepState};
use crate::plan::{self, Step, StepStatus};

/// Repairs of replies that are not forced (a scene's move, the answer's words): an empty one is
/// asked for once more.
const PLAIN_RETRIES: u32 = 1;

/// Times a run's driver panics (in journals of earlier releases, also: its process ends) without anything
/// coming of it; then it is ended, so that a request which itself ends whoever carries it out cannot do so
/// for ever. The deaths of processes are counted by [`recovery`](super::recovery).
const POISON_TRIES: u32 = 3;

impl RunState {
    /// What must happen now. Empty while everything is under way, and for ever once the run ended.
    pub fn next(&self) -> Vec<Action> {
        if self.queued.is_none() || self.status.is_terminal() {
            return Vec::new();
        }
        let aside = self.stalls >= POISON_TRIES;
        if let Some(put) = self.unresolved(aside) {
            return vec![record(put)];
        }
        if self.aside.is_some() && self.cancel.is_none() {
            return Vec::new();
        }
        if let Some(stop) = self.stopping() {
            return stop;
        }
        if aside {
            return vec![record(self.put_aside())];
        }
        if self.started.is_none() {
            return vec![Action::Start];
        }
        if let Some(undo) = self.begun_undo() {
            return undo;
        }
        if self.answer.is_some() {
            return vec![record(self.ending())];
        }
        if let Some(planning) = &self.planning {
            let subject = Subject::Plan { version: planning.version };
            let given = self.queued.as_ref().is_some_and(|q| q.plan.is_some());
            if planning.version == 1 && (given || self.is_confirmation()) {
                return vec![Action::Take { version: 1 }];
            }
            return match self.due(&planning.tries, self.settings().max_retries) {
                Due::GiveUp(error) => {
                    vec![record(Event::PlanningFailed { version: planning.version, error })]
                }
                due => self.question(due, subject),
            };
        }
        if self.plans.is_empty() {
            return match &self.error {
                Some(error) => vec![record(Event::RunFailed { error: error.clone() })],
                None => vec![record(Event::Planning { version: 1, cause: Cause::Request })],
            };
        }
        if self.is_plan_only() {
            return vec![record(Event::RunCompleted { status: RunStatus::Completed })];
        }
        if let Some(first) = self.before_steps() {
            return first;
        }
        let steps = self.step_actions();
        if !steps.is_empty() || self.steps.values().any(|s| !s.status.is_terminal()) {
            return steps;
        }
        self.after_steps()
    }

    /// What comes before the steps of the plan in force: a person's yes, where one is needed.
    fn before_steps(&self) -> Option<Vec<Action>> {
        if self.has_begun() || self.closing {
            return None;
        }
        let version = self.plan()?.version;
        match self.plan_permit() {
            // While it waits, its steps do not begin; see `step_actions`.
            Permit::Granted | Permit::Refused { .. } | Permit::Waits => None,
            Permit::Ask(needed) => Some(vec![record(self.put(Matter::Plan { version }, needed))]),
        }
    }

    /// Whether the steps of the plan in force may not begin yet.
    fn is_barred(&self) -> bool {
        !self.has_begun() && !self.closing && self.plan_permit() != Permit::Granted
    }

    /// Nothing is left to do but what waits for a person: told once.
    fn wait(&self) -> Vec<Action> {
        if self.status == RunStatus::Waiting { Vec::new() } else { vec![record(Event::RunWaiting {})] }
    }

    /// A wish to stop: nothing new begins, a write under way is awaited, then the run ends. What was
    /// done by the deadline is told, above all a write.
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
        if let Some(put) = self.unresolved(true) {
            return Some(vec![record(put)]);
        }
        let end = if !cancel.deadline {
            Event::RunCancelled { by: cancel.by.clone() }
        } else if self.answer.is_some() {
            self.ending()
        } else if self.something_done() {
            Event::Answered { text: self.with_omissions(&self.plain_answer()), degraded: true }
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

    /// The end of a run that ends whoever carries it out. What was done before is told, above all a write.
    fn put_aside(&self) -> Event {
        let why = format!(
            "whoever carried this run out ended {POISON_TRIES} times in a row before anything came of it: it was put \
             aside; its events tell what was done before"
        );
        if self.answer.is_some() {
            self.ending()
        } else if self.something_done() {
            Event::Answered { text: format!("{}\n{why}", self.plain_answer()), degraded: true }
        } else {
            Event::RunFailed { error: Fault::new("run.poisonous", why) }
        }
    }

    fn question(&self, due: Due, subject: Subject) -> Vec<Action> {
        match due {
            Due::Read(call) => vec![Action::Read { call, subject }],
            Due::Ask { attempt, fallback } => {
                vec![Action::Ask { call: self.next_ask(), subject, attempt, fallback }]
            }
            Due::Wait | Due::GiveUp(_) => Vec::new(),
        }
    }

    fn step_actions(&self) -> Vec<Action> {
        let mut actions = self.steps_due();
        // What is put to people counts up by one: the next has its turn when this one is put.
        let mut puts = false;
        actions.retain(|action| {
            let put = matches!(action, Action::Record { event: Event::ApprovalRequired { .. } });
            !put || !std::mem::replace(&mut puts, true)
        });
        let runs = self.steps.values().any(|s| !s.status.is_terminal());
        if actions.is_empty() && runs && !self.in_flight() && self.waits_for_a_person() {
            return self.wait();
        }
        actions
    }

    /// Everything that is due in steps; each of several questions to people as if it came first.
    pub(super) fn steps_due(&self) -> Vec<Action> {
        let all: Vec<&Step> = self.steps.values().map(|s| &s.step).collect();
        let statuses = self.step_statuses();
        let mut actions = Vec::new();
        for (step, dependency) in plan::blocked_by(&all, &statuses) {
            actions.push(record(Event::StepFailed {
                step,
                status: StepStatus::Blocked,
                error: Fault::new(
                    "step.blocked",
                    format!("step {dependency}, which it depends on, did not complete"),
                ),
            }));
        }
        if !self.is_barred() {
            for step in plan::ready(&all, &statuses, self.settings().max_parallel_steps) {
                actions.push(record(Event::StepStarted { step }));
            }
        }
        let mut asks = self.next_ask();
        for (number, step) in self.steps.iter().filter(|(_, s)| s.status == StepStatus::Running) {
            for mut action in self.in_step(*number, step) {
                // Several steps may ask at once: each question has an ordinal of its own.
                if let Action::Ask { call, .. } = &mut action {
                    *call = asks;
                    asks += 1;
                }
                actions.push(action);
            }
        }
        actions
    }

    /// What a running step needs: its calls first, then its end or its model's next move.
    fn in_step(&self, number: u32, step: &StepState) -> Vec<Action> {
        let (actions, open) = self.in_round(step);
        if open {
            return actions;
        }
        if let Some(question) = self.question_to_confirm(step) {
            return vec![record(Event::StepFailed {
                step: number,
                status: StepStatus::NeedsInput,
                error: Fault::new(UNCONFIRMED, question),
            })];
        }
        if self.is_confirmation() {
            return match step.prepared {
                true => vec![record(self.end_of_prepared(number, step))],
                false => vec![Action::Prepare { step: number }],
            };
        }
        if let Some(question) = &step.question {
            return vec![record(Event::StepFailed {
                step: number,
                status: StepStatus::NeedsInput,
                error: Fault::new("step.needs_input", question.text.clone()),
            })];
        }
        if step.rounds > 0 && step.round_calls.is_empty() {
            if !step.text.trim().is_empty() {
                return vec![record(Event::StepCompleted { step: number, result: step.text.clone() })];
            }
            if self.has_result(step) {
                return vec![record(Event::StepCompleted { step: number, result: self.plain_result(step) })];
            }
            // Silence after nothing is no result.
            let found = self.plain_result(step);
            let error = if found.is_empty() {
                Fault::new(
                    "step.empty",
                    format!("scene {} ended without a word and without a result", step.step.scene_name),
                )
            } else {
                Fault::new("step.empty", found)
            };
            return vec![record(Event::StepFailed { step: number, status: StepStatus::Failed, error })];
        }
        if self.only_repeats(step) && self.has_result(step) {
            return vec![record(Event::StepCompleted { step: number, result: self.plain_result(step) })];
        }
        let due = if step.rounds >= self.settings().max_rounds {
            Due::GiveUp(Fault::new("step.rounds", format!("no end after {} rounds", step.rounds)))
        } else {
            self.due(&step.tries, PLAIN_RETRIES)
        };
        match due {
            // What its tools found is the result, also when nobody can put it into words; not where its
            // model wanted to do more and could not say with what.
            Due::GiveUp(_) if self.has_result(step) && step.next.is_none() => {
                vec![record(Event::StepCompleted { step: number, result: self.plain_result(step) })]
            }
            Due::GiveUp(error) => {
                vec![record(Event::StepFailed { step: number, status: StepStatus::Failed, error })]
            }
            due => self.question(due, Subject::Scene { step: number }),
        }
    }

    /// Whether the last two replies asked for nothing but what had been done before: their model goes in
    /// a circle, and would up to the last round.
    fn only_repeats(&self, step: &StepState) -> bool {
        let skipped =
            |call: &u32| self.calls.get(call).is_some_and(|c| matches!(c.status, CallStatus::Skipped { .. }));
        let circles =
            step.history.iter().rev().take_while(|r| !r.calls.is_empty() && r.calls.iter().all(skipped));
        circles.take(2).count() == 2
    }

    /// The calls of the last reply: what may start, and whether any is still open. Reads run side by
    /// side; from the first write on, calls run in the order written.
    fn in_round(&self, step: &StepState) -> (Vec<Action>, bool) {
        let mut actions = Vec::new();
        let mut open = false;
        let mut started =
            step.calls.iter().filter(|c| self.calls.get(c).is_some_and(|c| c.attempts > 0)).count();
        let mut waiting = 0;
        let writes = step
            .round_calls
            .iter()
            .filter_map(|c| self.calls.get(c))
            .any(|c| c.requested.effect == Effect::Write && c.requested.problem.is_none());
        for &number in &step.round_calls {
            let Some(call) = self.calls.get(&number) else { continue };
            if matches!(call.status, CallStatus::Done { .. } | CallStatus::Skipped { .. }) {
                continue;
            }
            let first_open = !open;
            open = true;
            if writes && !first_open {
                break;
            }
            match &call.status {
                CallStatus::Again { attempt } => {
                    actions.push(Action::Call { call: number, attempt: *attempt });
                }
                CallStatus::Requested => {
                    let Some(action) = self.requested(number, started, waiting) else {
                        waiting += 1;
                        continue;
                    };
                    started += usize::from(matches!(action, Action::Call { .. }));
                    actions.push(action);
                }
                _ => {}
            }
        }
        (actions, open)
    }

    /// What to do with a call that was asked for; `None` while it waits for an equal one. Calls before
    /// it that wait keep their places among `max_calls`, so that no call that may start now may not
    /// a moment later.
    fn requested(&self, number: u32, started: usize, waiting: usize) -> Option<Action> {
        // What the user has confirmed is bounded by what was asked about.
        let most = if self.is_confirmation() { usize::MAX } else { self.settings().max_calls as usize };
        let call = self.calls.get(&number)?;
        let writes = call.requested.effect == Effect::Write;
        let refuse = |error: Fault| {
            Some(record(Event::ToolCompleted {
                call: number,
                outcome: Outcome::Refused { error },
                millis: 0,
            }))
        };
        if let Some(problem) = &call.requested.problem {
            return refuse(problem.clone());
        }
        // What somebody was asked is theirs to decide, whatever has come of equal calls since.
        if self.is_put(number) {
            return None;
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
            Decision::Wait => None,
            Decision::Skip { first } => Some(record(Event::ToolSkipped { call: number, first })),
            Decision::Held { first } => refuse(Fault::new(
                "tool.held",
                format!(
                    "call {first} of {} has an unknown outcome: nothing more is written with this tool in this \
                     request until a person has said what happened",
                    call.requested.tool
                ),
            )),
            Decision::Run if started >= most => {
                refuse(Fault::new("bound.calls", format!("more than {most} tool calls in one step")))
            }
            Decision::Run if started + waiting >= most => None,
            Decision::Run if writes && self.is_dry_run() => Some(record(self.told_only(number))),
            Decision::Run if call.requested.confirm.is_some() => {
                let question = call.requested.confirm.as_ref().map(|c| c.question.as_str());
                refuse(Fault::new(UNCONFIRMED, question.unwrap_or_default()))
            }
            Decision::Run => match self.call_permit(number) {
                Permit::Granted => Some(Action::Call { call: number, attempt: 1 }),
                Permit::Ask(needed) => Some(record(self.put(Matter::Call { call: number }, needed))),
                Permit::Waits => None,
                Permit::Refused { by } => refuse(Fault::new(
                    "approval.refused",
                    format!("{by} did not approve {}: nothing was written", call.requested.tool),
                )),
            },
        }
    }

    /// The end of a write in a dry run: what it would have done.
    fn told_only(&self, number: u32) -> Event {
        let (tool, arguments) = match self.calls.get(&number) {
            Some(call) => (call.requested.tool.as_str(), &call.requested.arguments),
            None => ("", &serde_json::Value::Null),
        };
        let result = json!({"dry_run": true, "would_call": tool, "with": arguments});
        let language = self.started.as_ref().and_then(|started| started.language.as_deref());
        let lead = match language {
            Some("it") => "Simulazione, non è stato scritto nulla. Sarebbe stato chiamato",
            Some("de") => "Probelauf, nichts wurde geschrieben. Gerufen worden wäre",
            Some("fr") => "Simulation, rien n'a été écrit. Aurait été appelé :",
            Some("es") => "Simulación, no se ha escrito nada. Se habría llamado a",
            _ => "Dry run, nothing was written. This would have been called:",
        };
        let say = Some(format!("{lead} {tool} {arguments}"));
        Event::ToolCompleted { call: number, outcome: Outcome::Ok { result, say }, millis: 0 }
    }

    /// Whether a step's tools did not do what it was for, though its scene said so in good words: none
    /// of its calls succeeded, or a write was refused or failed and was not done after all.
    pub(super) fn is_unserved(&self, step: &StepState) -> bool {
        let calls = || {
            let all = step.calls.iter().filter_map(|c| self.calls.get(c).map(|call| (*c, call)));
            all.filter(|(_, call)| call.undoes.is_none())
        };
        let ok = |call: u32| self.stands(call);
        let done = |tool: &str| calls().any(|(c, call)| call.requested.tool == tool && ok(c));
        let nothing = calls().next().is_some() && !calls().any(|(c, _)| ok(c));
        // Elsewhere a model may have corrected its arguments; what was confirmed is done or it is not.
        let undone = |(number, call): (u32, &super::state::CallState)| {
            let stands = if self.is_confirmation() { ok(number) } else { done(&call.requested.tool) };
            call.requested.effect == Effect::Write && !stands
        };
        // It was asked what comes next because a write was expected, and chose something else.
        let evaded = step.decided && !calls().any(|(_, call)| call.requested.effect == Effect::Write);
        nothing || evaded || calls().any(undone)
    }

    /// Whether steps were to be carried out and none brought a result, a write or a question.
    pub(crate) fn empty_handed(&self) -> bool {
        let asks = self.steps.values().any(|s| s.status == StepStatus::NeedsInput);
        !self.steps.is_empty() && !asks && !self.something_done()
    }

    /// Whether there is anything to tell: a step that completed, or a write.
    fn something_done(&self) -> bool {
        self.steps.values().any(|s| s.status == StepStatus::Completed || self.wrote(s))
    }

    fn has_result(&self, step: &StepState) -> bool {
        step.calls.iter().any(|c| self.stands(*c))
    }

    /// Every step has ended: the check, another plan, or the answer.
    fn after_steps(&self) -> Vec<Action> {
        let executes = self.plan().is_some_and(|p| p.plan.needs_execution);
        let empty_handed = self.empty_handed();
        // What the user has confirmed is done, and nothing else: there is nothing to judge.
        let judged = self.verdicts.len() >= self.rounds() as usize
            || (empty_handed && !self.ran_a_call())
            || self.is_confirmation();
        if executes && !self.closing && !judged {
            let round = self.rounds();
            return match self.due(&self.check_tries, self.settings().max_retries) {
                Due::GiveUp(error) => vec![record(Event::Continuation {
                    round,
                    verdict: Verdict { can_answer_now: true, reasoning: error.message, ..Verdict::default() },
                    degraded: true,
                })],
                due => self.question(due, Subject::Continuation { round }),
            };
        }
        let verdict = self.verdicts.last();
        let more = verdict.is_some_and(|v| v.should_continue);
        if more && self.may_replan() {
            let version = self.plans.len() as u32 + 1;
            return vec![record(Event::Planning { version, cause: Cause::Continuation })];
        }
        if self.has_failed()
            && let Some(undo) = self.compensation()
        {
            return undo;
        }
        // Nothing was found, so there is nothing that a model could word: asked all the same, small
        // ones make something up.
        if empty_handed {
            return vec![record(Event::Answered {
                text: self.with_omissions(&self.plain_answer()),
                degraded: true,
            })];
        }
        // The check has not seen what was undone since; and where every result has its sentence, a
        // confirmed call needs no other words.
        if self.has_undone() || (self.is_confirmation() && self.is_phrased()) {
            return vec![record(Event::Answered {
                text: self.with_omissions(&self.plain_answer()),
                degraded: true,
            })];
        }
        if let Some(text) =
            verdict.and_then(|v| v.answer.as_deref()).filter(|t| !more && !t.trim().is_empty())
        {
            let text = self.with_omissions(text);
            return vec![record(Event::Answered { text, degraded: false })];
        }
        match self.due(&self.answer_tries, PLAIN_RETRIES) {
            Due::GiveUp(_) => {
                vec![record(Event::Answered {
                    text: self.with_omissions(&self.plain_answer()),
                    degraded: true,
                })]
            }
            due => self.question(due, Subject::Answer),
        }
    }

    /// How the run ends, once it is answered.
    fn ending(&self) -> Event {
        let last = self.plans.len() as u32;
        let redone = |scene: &str| {
            self.steps
                .values()
                .any(|s| s.version == last && s.step.scene_name == scene && s.status == StepStatus::Completed)
        };
        // What an earlier version left undone no longer counts once a later one has done it.
        let open = || {
            self.steps.values().filter(|s| s.status != StepStatus::Completed).filter(|s| {
                s.version == last || !redone(&s.step.scene_name) || self.unconfirmed(s).next().is_some()
            })
        };
        let done = self.something_done();
        let verdict = self.verdicts.last();
        let unsure = self.calls.values().any(|c| match &c.status {
            CallStatus::Done { outcome: Outcome::Unknown { .. } } => true,
            CallStatus::Done { outcome: Outcome::Refused { error } } => {
                error.code.starts_with("policy.") || error.code == "tool.held"
            }
            _ => false,
        });
        let asks_user = verdict.is_some_and(|v| !v.should_continue && !v.can_answer_now);
        let status = if open().any(|s| s.status == StepStatus::NeedsInput)
            || (asks_user && self.cancel.is_none())
        {
            RunStatus::NeedsInput
        } else if let Some(step) = open().next().filter(|_| !done) {
            let error =
                step.error.clone().unwrap_or_else(|| Fault::new("run.nothing_done", "no step completed"));
            return Event::RunFailed { error };
        } else if open().next().is_some()
            || unsure
            || self.has_undone()
            || self.steps.values().any(|s| s.version == last && self.is_unserved(s))
            || self.closing
            || self.cancel.is_some()
            || (self.stalls >= POISON_TRIES && self.answer.as_ref().is_some_and(|a| a.degraded))
            || verdict.is_some_and(|v| v.should_continue)
            || self.unserved().next().is_some()
            || self.steps.values().any(|s| self.is_cut(s))
        {
            RunStatus::Partial
        } else if let Some(answer) = self.answer.as_ref().filter(|a| a.degraded && self.steps.is_empty()) {
            if answer.text.trim().is_empty() {
                return Event::RunFailed {
                    error: Fault::new("llm.no_answer", "no model could word an answer; try again later"),
                };
            }
            // The rules have answered in place of the models: less than was asked for, but an answer.
            RunStatus::Partial
        } else {
            RunStatus::Completed
        };
        Event::RunCompleted { status }
    }
}

fn record(event: Event) -> Action {
    Action::Record { event }
}
