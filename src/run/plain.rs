//! Words without a model: what was found and done, when nobody can word it.

use std::fmt::Write;

use serde_json::Value;

use super::event::Outcome;
use super::state::{RunState, StepState};
use crate::plan::StepStatus;

impl RunState {
    /// A step's result from what its tools returned: their sentences where scenes phrase them,
    /// otherwise their JSON.
    pub fn plain_result(&self, step: &StepState) -> String {
        let mut lines = Vec::new();
        for call in &step.calls {
            let Some(requested) = self.calls.get(call).map(|c| &c.requested) else { continue };
            match self.outcome(*call) {
                Some(Outcome::Ok { say: Some(say), .. }) => lines.push(say.clone()),
                Some(Outcome::Ok { result: Value::String(text), .. }) => lines.push(text.clone()),
                Some(Outcome::Ok { result, .. }) => lines.push(format!("{}: {result}", requested.tool)),
                Some(
                    Outcome::Refused { error } | Outcome::Failed { error } | Outcome::Unknown { error },
                ) => lines.push(error.message.clone()),
                None => {}
            }
        }
        lines.dedup();
        lines.join("\n")
    }

    /// An answer that only lists what was done and what was not.
    pub fn plain_answer(&self) -> String {
        let mut out = String::new();
        for (number, step) in &self.steps {
            let scene = &step.step.scene_name;
            // Writing into a String cannot fail.
            let _ = match (step.status, &step.result, &step.error) {
                (StepStatus::Completed, Some(result), _) => writeln!(out, "{result}"),
                (_, _, Some(error)) => writeln!(out, "{number}. {scene}: {}", error.message),
                _ => writeln!(out, "{number}. {scene}: …"),
            };
        }
        out.trim_end().to_owned()
    }
}
