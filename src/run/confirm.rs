//! Writes that the user has to confirm, what a request confirms, and what a run leaves undone.

use super::event::{Cause, Effect, Event, Fault, Outcome};
use super::state::{CallState, CallStatus, RunState, StepState};
use crate::plan::StepStatus;

/// The code of a write that was not done, since the user has to confirm it first.
pub const UNCONFIRMED: &str = "confirm.required";

/// The beginning of the codes of calls that a bound of the settings has refused.
const BOUND: &str = "bound.";

impl RunState {
    /// Whether the request is a plain yes to calls that the user was asked to confirm: the run does these
    /// and nothing else.
    pub fn is_confirmation(&self) -> bool {
        self.started.as_ref().is_some_and(|started| !started.confirmed.is_empty())
    }

    /// The calls of a step's last reply that were not done, since the user has to confirm them first.
    pub fn unconfirmed<'a>(&'a self, step: &'a StepState) -> impl Iterator<Item = &'a CallState> {
        let calls = step.history.last().into_iter().flat_map(|round| &round.calls);
        let calls = calls.filter_map(|call| self.calls.get(call));
        calls.filter(|call| refusal(call).is_some_and(|error| error.code == UNCONFIRMED))
    }

    /// The question of a step that waits for the user to confirm its calls.
    pub(super) fn question_to_confirm(&self, step: &StepState) -> Option<String> {
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
        let mut lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            return None;
        }
        // What only the user can say is asked as well.
        lines.extend(step.question.iter().map(|question| question.text.clone()));
        Some(lines.join("\n"))
    }

    /// The end of a step whose calls were known before it began and have ended: nobody is asked for words.
    pub(super) fn end_of_prepared(&self, number: u32, step: &StepState) -> Event {
        let result = self.plain_result(step);
        if step.calls.iter().any(|call| self.stands(*call)) {
            return Event::StepCompleted { step: number, result };
        }
        let error = step.round_calls.iter().filter_map(|call| self.calls.get(call)).find_map(refusal);
        let error = error.cloned().unwrap_or_else(|| Fault::new("step.empty", result));
        Event::StepFailed { step: number, status: StepStatus::Failed, error }
    }

    /// Whether every call that was done has a sentence for its result.
    pub(super) fn is_phrased(&self) -> bool {
        self.calls.values().all(|call| match &call.status {
            CallStatus::Done { outcome: Outcome::Ok { say, .. } } => say.is_some(),
            _ => true,
        })
    }

    /// Whether `call` asks for what `earlier` has done in the same step, or in one that comes before it in
    /// the same plan, and the user has to say whether it is to be done once more.
    pub(super) fn is_repeat(&self, call: &CallState, earlier: &CallState) -> bool {
        call.requested.effect == Effect::Write
            && call.requested.confirm.is_some()
            && self.precedes(earlier.step, call.step)
    }

    /// Whether `earlier` is `step`, or one of the steps of the same plan that it waits for.
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

    /// Whether a plan names a write of `tool` that was made before any tool had returned something, or
    /// that a person has written or changed.
    pub fn foresees(&self, scene: &str, tool: &str) -> bool {
        let before = self.plans_before_results.map_or(self.plans.len(), |plans| plans as usize);
        let plans = self.plans.iter().enumerate();
        let own =
            plans.filter(|(at, made)| *at < before || matches!(made.cause, Cause::Edit | Cause::Feedback));
        let mut steps = own.flat_map(|(_, made)| &made.plan.steps);
        steps.any(|step| step.scene_name == scene && step.expected_tools.iter().any(|name| name == tool))
    }

    /// How many writes were begun, or are to be: neither retries nor what undoes a write count.
    pub fn writes_asked_for(&self) -> u32 {
        let counts = |call: &&CallState| {
            let open = call.requested.problem.is_none() && call.requested.confirm.is_none();
            call.requested.effect == Effect::Write
                && call.undoes.is_none()
                && match &call.status {
                    CallStatus::Requested => open,
                    CallStatus::Skipped { .. } => false,
                    _ => call.attempts > 0,
                }
        };
        self.calls.values().filter(counts).count() as u32
    }

    /// What of the request no scene serves, in the words of the plan in force and of those that it continues.
    pub fn unserved(&self) -> impl Iterator<Item = &str> {
        let asks = |cause| !matches!(cause, Cause::Continuation);
        let first = self.plans.iter().rposition(|made| asks(made.cause)).unwrap_or(0);
        let plans = self.plans.iter().skip(first);
        // A request outside every scene is answered or declined as a whole.
        let executes = !self.steps.is_empty() && self.settings().has_rules(1);
        plans.filter(move |_| executes).flat_map(|made| &made.plan.unserved).map(String::as_str)
    }

    /// The calls of a step that a bound has refused and that were not done otherwise.
    pub fn cut_calls<'a>(&'a self, step: &'a StepState) -> impl Iterator<Item = &'a CallState> {
        let cut = |call: &&CallState| {
            self.settings().has_rules(1)
                && refusal(call).is_some_and(|error| error.code.starts_with(BOUND))
                && !self.calls.iter().any(|(number, other)| {
                    other.requested.key == call.requested.key
                        && other.requested.occurrence == call.requested.occurrence
                        && self.stands(*number)
                })
        };
        step.calls.iter().filter_map(|call| self.calls.get(call)).filter(cut)
    }

    /// Whether a bound has kept a step from what its scene still wanted to do.
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
