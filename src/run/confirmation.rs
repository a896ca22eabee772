//! Confirmation: writes that the user has to confirm, the calls that a request confirms, and what a run
//! leaves undone.

use super::event::{Effect, Event, Fault, Outcome, PlanCause, PlanMade};
use super::state::{CallState, CallStatus, RunState, StepState};
use crate::plan::StepStatus;
use crate::sentences;

/// The fault code of a write that is not executed before the user has confirmed it.
pub const UNCONFIRMED: &str = "confirm.required";

/// The prefix of the fault codes of calls that were refused by a limit of the settings.
const LIMIT_CODE_PREFIX: &str = "bound.";

impl RunState {
    /// Returns whether the request is a plain yes to calls that the user was asked to confirm. The run executes
    /// these and nothing else.
    pub fn is_confirmation(&self) -> bool {
        self.started.as_ref().is_some_and(|started| !started.confirmed.is_empty())
    }

    /// The calls of a step's last reply that wait for the user's confirmation.
    pub fn unconfirmed<'a>(&'a self, step: &'a StepState) -> impl Iterator<Item = &'a CallState> {
        let last = step.scene().and_then(|work| work.history.last());
        let has_no_rounds = step.is_node() || step.code().is_some();
        let of_node = has_no_rounds.then_some(&step.round_calls).into_iter().flatten();
        let calls = last.into_iter().flat_map(|round| &round.calls).chain(of_node);
        let calls = calls.flat_map(|call| self.with_substitute(*call)).map(|(_, call)| call);
        calls.filter(|call| refusal(call).is_some_and(|error| error.code == UNCONFIRMED))
    }

    /// The question of a step that waits for the user to confirm its calls.
    pub(super) fn question_to_confirm(&self, step: &StepState) -> Option<String> {
        let mut lines = self.lines_to_confirm(step);
        if lines.is_empty() {
            return None;
        }
        // The scene's own question to the user is included.
        lines.extend(step.question.iter().map(|question| question.text.clone()));
        Some(lines.join("\n"))
    }

    /// The questions whether to execute the calls of a step that wait for it, each once.
    fn lines_to_confirm(&self, step: &StepState) -> Vec<String> {
        let questions = self.unconfirmed(step).filter_map(|call| call.requested.confirm.as_ref());
        let mut lines: Vec<(&str, u32)> = Vec::new();
        for confirm in questions {
            match lines.iter_mut().find(|(line, _)| *line == confirm.question) {
                Some((_, times)) => *times += 1,
                None => lines.push((&confirm.question, 1)),
            }
        }
        let lines = lines.into_iter().map(|(line, times)| match times {
            1 => line.to_owned(),
            times => format!("{line} ({times}×)"),
        });
        lines.collect()
    }

    /// The questions that the run ends with, those to confirm last: a plain yes answers them.
    pub(super) fn open_questions(&self) -> Vec<String> {
        let waiting = || self.steps.values().filter(|step| step.status == StepStatus::NeedsInput);
        let asked = waiting().filter_map(|step| step.question.as_ref());
        let mut lines: Vec<String> = Vec::new();
        let texts = asked.map(|question| question.text.clone());
        for line in texts.chain(waiting().flat_map(|step| self.lines_to_confirm(step))) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// The end of a step with prepared calls, once they have ended: no model is asked for a text.
    pub(super) fn end_prepared_step(&self, number: u32, step: &StepState) -> Event {
        let result = self.plain_result(step);
        if step.calls.iter().any(|call| self.is_effective(*call)) {
            return Event::StepCompleted { step: number, result };
        }
        let error = step.round_calls.iter().filter_map(|call| self.calls.get(call)).find_map(refusal);
        let error = error.cloned().unwrap_or_else(|| Fault::new("step.empty", result));
        Event::step_failed(number, error)
    }

    /// Returns whether every executed call has a sentence that words its result.
    pub(super) fn is_phrased(&self) -> bool {
        self.calls.values().all(|call| match &call.status {
            CallStatus::Done { outcome: Outcome::Ok { say, .. } } => say.is_some(),
            _ => true,
        })
    }

    /// Returns whether `call` repeats what `earlier` did in the same step, or in an earlier step of the same plan,
    /// so that the user has to confirm the repetition.
    pub(super) fn is_repeat(&self, call: &CallState, earlier: &CallState) -> bool {
        call.requested.effect == Effect::Write
            && call.requested.confirm.is_some()
            && self.precedes(earlier.step, call.step)
    }

    /// Returns whether `earlier` is `step`, or a step of the same plan that it depends on.
    pub fn precedes(&self, earlier: u32, step: u32) -> bool {
        let version = self.steps.get(&step).map(|s| s.version);
        let mut open = vec![step];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(number) = open.pop() {
            if number == earlier {
                return true;
            }
            let known = self.steps.get(&number).filter(|s| Some(s.version) == version);
            if let Some(state) = known.filter(|_| seen.insert(number)) {
                open.extend(state.step.depends_on_step.iter());
            }
        }
        false
    }

    /// Returns whether the request itself led to a write of `tool`: a plan names it that was made before the first tool
    /// result, or that a person wrote or changed.
    pub fn foresees(&self, scene: &str, tool: &str) -> bool {
        let before = self.plans_before_results.map_or(self.plans.len(), |plans| plans as usize);
        let plans = self.plans.iter().enumerate();
        let own = plans
            .filter(|(at, made)| *at < before || matches!(made.cause, PlanCause::Edit | PlanCause::Feedback));
        let mut steps = own.flat_map(|(_, made)| &made.plan.steps);
        steps.any(|step| step.scene_name == scene && step.expected_tools.iter().any(|name| name == tool))
    }

    /// How many writes were begun or are due. Retries and compensations do not count.
    pub fn writes_asked_for(&self) -> u32 {
        let counts = |call: &&CallState| {
            let open = call.requested.problem.is_none() && call.requested.confirm.is_none();
            call.requested.effect == Effect::Write
                && call.undoes.is_none()
                // A substitute and the call that it replaces count as one.
                && call.replaces.is_none()
                && match &call.status {
                    CallStatus::Requested => open,
                    CallStatus::Skipped { .. } => false,
                    _ => call.attempts > 0,
                }
        };
        self.calls.values().filter(counts).count() as u32
    }

    /// The parts of the request that no scene serves, as worded by the plan in force and those it
    /// continues.
    pub fn unserved(&self) -> impl Iterator<Item = &str> {
        // A request that no scene covers is answered or declined as a whole.
        let executes = !self.steps.is_empty() && self.settings().has_rules(1);
        let plans = self.plans_in_force().filter(move |_| executes);
        plans.flat_map(|made| &made.plan.unserved).map(String::as_str)
    }

    /// The parts of the request that only tools serve which are switched off, also where there are no steps.
    pub fn unavailable(&self) -> impl Iterator<Item = &str> {
        self.plans_in_force().flat_map(|made| &made.plan.unavailable).map(String::as_str)
    }

    /// The last plan that was asked for, and those that continue it.
    fn plans_in_force(&self) -> impl Iterator<Item = &PlanMade> {
        let asks = |cause| !matches!(cause, PlanCause::Continuation | PlanCause::Adaptation);
        let first = self.plans.iter().rposition(|made| asks(made.cause)).unwrap_or(0);
        self.plans.iter().skip(first)
    }

    /// The parts of a request without any step that its own constraints do not allow, as its plan words them.
    pub fn forbidden_parts(&self) -> impl Iterator<Item = &str> {
        let guidance = self.queued.as_ref().and_then(|queued| queued.guidance.as_deref());
        let is_constrained = guidance.is_some_and(|guidance| !guidance.constraints.is_empty());
        let plan = self.plan().filter(|_| is_constrained && self.steps.is_empty());
        let parts = plan.into_iter().flat_map(|made| &made.plan.unserved);
        parts.filter(move |part| self.unavailable().all(|off| off != *part)).map(String::as_str)
    }

    /// Returns what the answer to a request without steps says was not done: what its constraints do not allow, and what is
    /// switched off.
    pub(super) fn refused_without_steps(&self) -> Vec<String> {
        let forbidden: Vec<&str> = self.forbidden_parts().collect();
        let unavailable: Vec<&str> = self.unavailable().filter(|_| self.steps.is_empty()).collect();
        let beyond = match self.settings().has_rules(10) {
            true => sentences::beyond_constraints,
            false => sentences::not_allowed,
        };
        let sentence_for = |parts: Vec<&str>, sentence: fn(Option<&str>, &str) -> String| {
            (!parts.is_empty()).then(|| sentence(self.language(), &parts.join("; ")))
        };
        sentence_for(forbidden, beyond)
            .into_iter()
            .chain(sentence_for(unavailable, sentences::not_available))
            .collect()
    }

    /// The calls of a step that a limit refused and that no other call did.
    pub fn cut_calls<'a>(&'a self, step: &'a StepState) -> impl Iterator<Item = &'a CallState> {
        let cut = |call: &&CallState| {
            self.settings().has_rules(1)
                && refusal(call).is_some_and(|error| error.code.starts_with(LIMIT_CODE_PREFIX))
                && !self.calls.iter().any(|(number, other)| {
                    other.requested.key == call.requested.key
                        && other.requested.occurrence == call.requested.occurrence
                        && self.is_effective(*number)
                })
        };
        step.calls.iter().filter_map(|call| self.calls.get(call)).filter(cut)
    }

    /// Returns whether a limit kept a step from calls that its scene requested.
    pub fn is_cut(&self, step: &StepState) -> bool {
        self.cut_calls(step).next().is_some()
    }
}

fn refusal(call: &CallState) -> Option<&Fault> {
    match &call.status {
        CallStatus::Done { outcome: Outcome::Refused { error } } => Some(error),
        _ => None,
    }
}
