//! Steps of kind code: their programs, what these get, and what later steps take of their results.

use serde_json::{Value, json};

use super::event::{Effect, Event, Outcome, PlanMaker, ProgramStop, Subject};
use super::settings::PlanningMaker;
use super::state::{AskStatus, RunState, StepState};
use super::work::{CodeWork, StepWork, WrittenProgram};
use crate::plan::{Reference, StepKind, StepStatus};
use crate::program::{PastCall, PastOutcome};

impl StepState {
    /// The progress of a step of kind code.
    pub fn code(&self) -> Option<&CodeWork> {
        match &self.work {
            StepWork::Code(work) => Some(work),
            StepWork::Scene(_) | StepWork::Flow(_) | StepWork::Synthesis(_) | StepWork::Node(_) => None,
        }
    }
}

impl RunState {
    /// Whether the first plan is one step of kind code, so that no planner is asked for it.
    pub fn is_planned_as_program(&self) -> bool {
        let given = self.queued.as_ref().is_some_and(|queued| queued.plan.is_some());
        self.settings().maker == PlanningMaker::Code && !given && !self.is_confirmation()
    }

    /// The calls of a program so far, with what it gets of them. `None` where a call has no outcome that it may get.
    pub fn past_calls(&self, work: &CodeWork) -> Option<Vec<PastCall>> {
        let calls = work.program_calls.iter();
        calls
            .map(|own| Some(PastCall { call: own.written.clone(), outcome: self.past_outcome(own.call)? }))
            .collect()
    }

    /// What a program gets of a call. `None` while the call has no outcome, and where its outcome is unknown.
    pub(super) fn past_outcome(&self, call: u32) -> Option<PastOutcome> {
        match self.outcome(call)? {
            Outcome::Ok { result, whole, .. } => {
                Some(PastOutcome::Returned(whole.as_ref().unwrap_or(result).clone()))
            }
            Outcome::Unknown { .. } => None,
            outcome @ (Outcome::Refused { error } | Outcome::Failed { error }) => {
                let problem = self.calls.get(&call).and_then(|call| call.requested.problem.as_ref());
                // What the author of a program has to correct is no text for users; anything else may become one.
                Some(PastOutcome::Raised(match problem {
                    Some(_) => error.message.clone(),
                    None => outcome.user_text(self.language()),
                }))
            }
        }
    }

    /// Whether a program of the run that was written before the first result of a tool calls `tool` of `scene` by name.
    pub(super) fn is_foreseen_by_program(&self, scene: &str, tool: &str) -> bool {
        let name = format!("{scene}.{tool}");
        let programs = self.steps.values().filter_map(|step| step.code()?.program.as_ref());
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        programs.filter(|program| program.is_foreseen).any(|program| {
            program.source.match_indices(&name).any(|(at, _)| {
                let before = program.source[..at].chars().next_back();
                let after = program.source[at + name.len()..].chars().next();
                !before.is_some_and(is_part) && !after.is_some_and(is_part)
            })
        })
    }

    /// The answer that the only step of the run gave, where that is a program.
    pub(super) fn answer_of_program(&self) -> Option<&str> {
        let mut steps = self.plan_steps().map(|(_, step)| step);
        let (Some(only), None) = (steps.next(), steps.next()) else { return None };
        let result = only.code().filter(|_| only.status == StepStatus::Completed)?.finished.as_ref()?;
        Some(&result.answer_text)
    }

    /// Whether no check follows the steps: the plan in force is a program, or its program has answered.
    pub(super) fn is_answered_by_program(&self) -> bool {
        self.plan().is_some_and(|made| made.maker == PlanMaker::Code) || self.answer_of_program().is_some()
    }

    /// The value that a reference to a step of kind code stands for. A program of a model made it, so it is no source of a
    /// write.
    pub(super) fn referenced_in_program(
        &self,
        step: &StepState,
        reference: &Reference,
        by: Effect,
    ) -> Result<Value, String> {
        let number = reference.step;
        if by == Effect::Write {
            return Err(format!("what the program of step {number} made is no source of a write"));
        }
        let finished = step.code().filter(|_| step.status == StepStatus::Completed);
        let finished = finished.and_then(|work| work.finished.as_ref());
        let output = finished.map(|result| json!(result));
        let output = output.ok_or_else(|| format!("step {number} did not complete"))?;
        let value = output.pointer(&reference.pointer).filter(|value| !value.is_null()).cloned();
        value.ok_or_else(|| {
            format!("what the program of step {number} made has nothing at {:?}", reference.pointer)
        })
    }

    /// Folds a program, or where an execution of it stopped.
    pub(super) fn fold_program(&mut self, event: &Event) {
        match event {
            Event::ProgramWritten { step, source, now_ms, seed, .. } => {
                let subject = Subject::Program { step: *step };
                let asks = self.tries(subject).iter().filter_map(|call| self.asks.get(call));
                let asked = asks.filter(|ask| ask.status != AskStatus::Lost).count() as u32;
                let is_foreseen = self.plans_before_results.is_none();
                let program =
                    WrittenProgram { source: source.clone(), now_ms: *now_ms, seed: *seed, is_foreseen };
                let keeps_calls = self.steps.get(step).and_then(StepState::code).is_some_and(|work| {
                    let calls = work.program_calls.iter().filter_map(|own| self.calls.get(&own.call));
                    calls.into_iter().any(|call| call.requested.effect == Effect::Write && call.attempts > 0)
                });
                self.use_reply_about(subject);
                self.step(*step, |state| {
                    if let StepWork::Code(work) = &mut state.work {
                        work.begin(program, asked, keeps_calls);
                    }
                });
            }
            Event::ProgramReplied { step, stop } => {
                if let ProgramStop::Call { requested, .. } = stop {
                    self.request_calls(*step, std::slice::from_ref(&**requested), false);
                }
                self.step(*step, |state| state.work.fold(event, &[]));
            }
            _ => {}
        }
    }

    /// What a step of kind code keeps when it begins again: a program that did not fail by itself, with its calls up to the
    /// first that was not done, or was undone. So it goes on where it was.
    pub(super) fn kept_program(&self, number: u32) -> Option<CodeWork> {
        let work = self.steps.get(&number)?.code()?;
        let program = work.program.clone()?;
        let stands = |call: u32| {
            let is_ok = matches!(self.outcome(call), Some(Outcome::Ok { .. }));
            is_ok && self.calls.get(&call).is_some_and(|call| !self.is_undone(call))
        };
        let is_whole = work.program_calls.iter().all(|own| stands(own.call));
        // Where all calls stand, the program itself has failed: another one is written.
        if is_whole && work.fault.is_some() {
            return None;
        }
        let kept = work.program_calls.iter().take_while(|own| stands(own.call)).cloned().collect();
        Some(CodeWork { program: Some(program), program_calls: kept, ..CodeWork::default() })
    }

    /// What an execution of a program came to must be due; a call has the next ordinal, and names its scene.
    pub(super) fn admit_program_stop(&self, step: u32, stop: &ProgramStop) -> Result<(), String> {
        let ProgramStop::Call { requested, written, .. } = stop else { return Ok(()) };
        if requested.call != self.next_call() {
            return Err("call ordinals must increase by one".to_owned());
        }
        let name = requested.scene.as_ref().map(|scene| format!("{scene}.{}", requested.tool));
        if name.as_ref() != Some(&written.function) {
            return Err("the call is not the one that the program wrote".to_owned());
        }
        let made = self.steps.get(&step).and_then(StepState::code).map_or(0, |work| work.program_calls.len());
        match made < self.settings().max_calls as usize {
            true => Ok(()),
            false => Err("the program has made as many calls as it may".to_owned()),
        }
    }

    /// Whether a step executes a program.
    pub fn is_program(&self, step: u32) -> bool {
        self.steps.get(&step).is_some_and(|step| step.step.kind == StepKind::Code)
    }
}
