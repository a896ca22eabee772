//! Steps of kind llm: the inputs of their models, and how later steps refer to their outputs.

use serde_json::{Map, Value};

use super::event::Effect;
use super::state::{RunState, StepState};
use super::work::SynthesisWork;
use crate::plan::{Reference, StepStatus};

impl RunState {
    /// The inputs of a step of kind llm, with the values that its references stand for.
    ///
    /// # Errors
    /// Which of them has no value, and why.
    pub fn synthesis_inputs(&self, step: &StepState) -> Result<Map<String, Value>, String> {
        let value = |(name, given): (&String, &Value)| {
            let found = match Reference::of(given) {
                Some(reference) => self.referenced(&reference, Effect::Read),
                None => Ok(given.clone()),
            };
            found.map(|value| (name.clone(), value)).map_err(|why| format!("the input {name}: {why}"))
        };
        step.step.inputs.iter().map(value).collect()
    }

    /// The value that a reference to a step of kind llm stands for. A model made it, so it is no source for a write.
    pub(super) fn referenced_in_synthesis(
        &self,
        work: &SynthesisWork,
        status: StepStatus,
        reference: &Reference,
        by: Effect,
    ) -> Result<Value, String> {
        let number = reference.step;
        if by == Effect::Write {
            return Err(format!("what a model made in step {number} is no source of a write"));
        }
        let output = work.output.as_ref().filter(|_| status == StepStatus::Completed);
        let output = output.ok_or_else(|| format!("step {number} did not complete"))?;
        let value = output.pointer(&reference.pointer).filter(|value| !value.is_null()).cloned();
        value.ok_or_else(|| format!("what step {number} made has nothing at {:?}", reference.pointer))
    }
}
