//! The work of a step of kind llm: one question to a model, which makes the step's output of its inputs.

use serde::Serialize;
use serde_json::Value;

use super::super::action::Action;
use super::super::event::{Event, Fault, Subject};
use super::super::next::record;
use super::super::state::{DueQuestion, RunState, StepState};
use super::text_of;

/// The progress of a step of kind llm.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SynthesisWork {
    /// The output of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

impl SynthesisWork {
    pub(super) fn fold(&mut self, event: &Event) {
        if let Event::NodeReplied { output, .. } = event {
            self.output = Some(output.clone());
        }
    }

    /// The question to the step's model, or its end.
    pub(super) fn actions(&self, run: &RunState, number: u32, step: &StepState) -> Vec<Action> {
        if let Some(output) = &self.output {
            return vec![record(Event::StepCompleted { step: number, result: text_of(output) })];
        }
        if let Err(why) = run.synthesis_inputs(step) {
            return vec![record(Event::step_failed(number, Fault::new("step.input", why)))];
        }
        let subject = Subject::Node { step: number };
        match run.due_question(subject, run.settings().max_retries) {
            DueQuestion::GiveUp(error) => vec![record(Event::step_failed(number, error))],
            due => run.question_actions(due, subject),
        }
    }
}
