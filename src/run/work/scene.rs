//! The work of a scene's step: its model is asked, its calls are made, and it is asked again with their results,
//! until it replies without a call.

use serde::Serialize;

use super::super::action::Action;
use super::super::event::{Event, Fault, Subject, UnpreparedCall};
use super::super::levels::LEVEL_BASIC;
use super::super::next::{PLAIN_RETRIES, record};
use super::super::settings::{PrepareMode, SceneMode};
use super::super::state::{CallStatus, DueQuestion, RunState, StepState};

/// How many replies in a row may request only calls that were made before.
const MAX_REPEATED_REPLIES: usize = 2;

/// The progress of a scene's step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SceneWork {
    /// How many replies the scene's model has given.
    pub rounds: u32,
    /// Its replies so far, one per round.
    pub history: Vec<Round>,
    /// The last reply's text.
    pub text: String,
    /// The tool that the model chose and has not called yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What the plan expects of the step and did not prepare.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unprepared: Vec<UnpreparedCall>,
    /// Whether the model has chosen a next tool: it is asked to at most once per step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
}

/// One reply of a scene's model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Round {
    /// Its text.
    pub text: String,
    /// Ordinals of the calls it requested.
    pub calls: Vec<u32>,
}

impl RunState {
    /// The calls that the plan of a step prepared for it and that cannot be made as they are written.
    pub fn unusable_calls<'r>(&'r self, step: &StepState) -> impl Iterator<Item = &'r UnpreparedCall> {
        let made = step.version.checked_sub(1).and_then(|at| self.plans.get(at as usize));
        let number = step.step.step_number;
        let unusable = made.into_iter().flat_map(|made| &made.unusable);
        unusable.filter(move |unusable| unusable.step == number).map(|unusable| &unusable.call)
    }
}

impl SceneWork {
    pub(super) fn fold(&mut self, event: &Event, calls: &[u32]) {
        match event {
            // A choice of the next tool is not part of the scene's conversation, which continues unchanged.
            Event::SceneReplied { next: Some(tool), .. } => {
                self.next = Some(tool.clone());
                self.decided = true;
            }
            Event::SceneReplied { text, next: None, .. } => {
                self.rounds += 1;
                self.text.clone_from(text);
                self.next = None;
                self.history.push(Round { text: text.clone(), calls: calls.to_vec() });
            }
            Event::Prepared { unprepared, .. } => {
                self.unprepared.clone_from(unprepared);
                if !calls.is_empty() {
                    self.history.push(Round { text: String::new(), calls: calls.to_vec() });
                }
            }
            _ => {}
        }
    }

    /// The end of the step, or the next question to its model.
    pub(super) fn actions(&self, run: &RunState, number: u32, step: &StepState) -> Vec<Action> {
        if self.rounds > 0 && step.round_calls.is_empty() {
            return vec![record(self.end_without_calls(run, number, step))];
        }
        if self.rounds == 0
            && let Some(action) = self.prepared_action(run, number, step)
        {
            return vec![action];
        }
        let with_results = || Event::StepCompleted { step: number, result: run.plain_result(step) };
        if self.only_repeats(run) && run.has_result(step) {
            return vec![record(with_results())];
        }
        let subject = Subject::Scene { step: number };
        let due = if self.rounds >= run.settings().max_rounds {
            DueQuestion::GiveUp(Fault::new("step.rounds", format!("no end after {} rounds", self.rounds)))
        } else {
            run.due_question(subject, PLAIN_RETRIES)
        };
        match due {
            // The tool results are the result, even if no model can word it. This does not hold where the
            // model chose another tool and could not supply its arguments.
            DueQuestion::GiveUp(_) if run.has_result(step) && self.next.is_none() => {
                vec![record(with_results())]
            }
            DueQuestion::GiveUp(error) => {
                vec![record(Event::step_failed(number, error))]
            }
            due => run.question_actions(due, subject),
        }
    }

    /// Before the scene is asked: preparing the calls of the plan, and the end of a step that they complete.
    fn prepared_action(&self, run: &RunState, number: u32, step: &StepState) -> Option<Action> {
        let plans_calls = !step.step.prepared_calls.is_empty()
            || run.unusable_calls(step).next().is_some()
            || !run.asks_scene(step);
        if run.prepare() == PrepareMode::Always && plans_calls && !step.prepared {
            return Some(Action::Prepare { step: number });
        }
        if step.prepared && self.is_complete(run, step) {
            return Some(record(Event::StepCompleted { step: number, result: run.plain_result(step) }));
        }
        (run.scene_mode(step) == SceneMode::Prepared).then(|| record(self.unprepared_end(run, number, step)))
    }

    /// Whether every call that the plan expects was prepared, and has a result or was left out. Where its scene is not
    /// asked, a result that is empty counts: nothing was found.
    fn is_complete(&self, run: &RunState, step: &StepState) -> bool {
        let asks = run.asks_scene(step);
        let has_result = |call: &u32| run.is_effective(*call) && (!asks || run.has_content(*call));
        let calls = &step.round_calls;
        self.unprepared.is_empty()
            && calls.iter().any(has_result)
            && calls.iter().all(|call| has_result(call) || run.is_left_out(*call))
    }

    /// The end of a step that its prepared calls do not complete, where its scene is not asked.
    fn unprepared_end(&self, run: &RunState, number: u32, step: &StepState) -> Event {
        let (code, why) = match run.asks_scene(step) {
            true => ("step.unprepared", "scenes are not asked (execution.scenes)"),
            false => (LEVEL_BASIC, "at the level `basic` its scene is not asked"),
        };
        let missing: Vec<String> =
            self.unprepared.iter().map(|call| format!("{}: {}", call.tool, call.why)).collect();
        let mut calls = step.round_calls.iter();
        let failed = calls.clone().find_map(|call| run.outcome(*call)?.fault());
        let refused = calls.find_map(|call| run.calls.get(call)?.refusal());
        let refused = refused.filter(|_| run.settings().has_rules(10));
        let error = match failed.filter(|_| !run.asks_scene(step)).or(refused) {
            Some(fault) => fault.clone(),
            None if missing.is_empty() => {
                Fault::new(code, format!("its calls did not complete it, and {why}"))
            }
            None => {
                let missing = missing.join("; ");
                Fault::new(code, format!("it cannot be executed as prepared, and {why}: {missing}"))
            }
        };
        Event::step_failed(number, error)
    }

    /// The end of a step whose scene has replied without a call: its text or results. An empty reply without
    /// any result is a failure.
    fn end_without_calls(&self, run: &RunState, number: u32, step: &StepState) -> Event {
        if !self.text.trim().is_empty() {
            return Event::StepCompleted { step: number, result: self.text.clone() };
        }
        let found = run.plain_result(step);
        if run.has_result(step) {
            return Event::StepCompleted { step: number, result: found };
        }
        let message = if found.is_empty() {
            format!("scene {} ended without a word and without a result", step.step.label())
        } else {
            found
        };
        let error = Fault::new("step.empty", message);
        Event::step_failed(number, error)
    }

    /// Whether the last replies requested only calls that had been made before: the model is looping, and would
    /// continue to the last round.
    fn only_repeats(&self, run: &RunState) -> bool {
        let skipped =
            |call: &u32| run.calls.get(call).is_some_and(|c| matches!(c.status, CallStatus::Skipped { .. }));
        let repeated =
            self.history.iter().rev().take_while(|r| !r.calls.is_empty() && r.calls.iter().all(skipped));
        repeated.take(MAX_REPEATED_REPLIES).count() == MAX_REPEATED_REPLIES
    }
}
