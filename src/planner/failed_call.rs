//! The facts about a failed call by which a model, or a policy of the library's user, decides.

use serde::Serialize;

use super::approval::effective_definition;
use crate::run::{CallState, ConsultationState, Effect, FaultClass, RunState};
use crate::scene::{Catalogue, SceneTool};

/// Characters of a definition's hash in the question: whether a tool has changed, not how.
const DEFINITION_CHARACTERS: usize = 16;

/// A failed call, as a model or a policy of the library's user sees it. Holds no values of the run: neither the
/// request, arguments, times and ordinals nor a word of a back end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedCall {
    /// The scene.
    pub scene: String,
    /// The tool.
    pub tool: String,
    /// What the tool says about itself; empty where it is gone.
    pub description: String,
    /// The beginning of the hash of the tool's definition; empty where it is gone.
    pub definition: String,
    /// Whether the tool reads or writes.
    pub effect: Effect,
    /// The kind of failure.
    pub class: FaultClass,
    /// The fault's stable code.
    pub code: String,
    /// Whether it was tried more than once.
    pub attempts: CallAttempts,
    /// Whether other steps wait for the call's step.
    pub others_wait: bool,
    /// Whether another step has a result.
    pub others_succeeded: bool,
}

/// The attempts of a call: one, or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAttempts {
    /// Only its first attempt failed.
    First,
    /// It was repeated, and failed again.
    Repeated,
}

/// The facts about the call that a consultation is about.
pub(super) fn failed_call(
    state: &RunState,
    catalogue: &Catalogue,
    consultation: &ConsultationState,
    call: &CallState,
) -> FailedCall {
    let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&call.requested.tool));
    FailedCall {
        scene: call.scene.clone(),
        tool: call.requested.tool.clone(),
        description: tool.map_or_else(String::new, |tool| tool.description.trim().to_owned()),
        definition: tool.map(short_definition).unwrap_or_default(),
        effect: call.requested.effect,
        class: consultation.class,
        code: consultation.code.clone(),
        attempts: if call.attempts > 1 { CallAttempts::Repeated } else { CallAttempts::First },
        others_wait: state
            .steps
            .values()
            .any(|step| step.step.depends_on_step.iter().any(|on| on == call.step)),
        others_succeeded: state.steps.values().any(|step| state.has_result(step)),
    }
}

/// The beginning of the hash of what a call of the tool does.
pub(super) fn short_definition(tool: &SceneTool) -> String {
    effective_definition(tool).chars().take(DEFINITION_CHARACTERS).collect()
}

/// The facts about the failed call of this consultation, if it is about one.
pub fn consulted_call(state: &RunState, catalogue: &Catalogue, consultation: u32) -> Option<FailedCall> {
    let consultation = state.consultations.get(&consultation)?;
    let call = state.calls.get(&consultation.subject.call()?)?;
    Some(failed_call(state, catalogue, consultation, call))
}
