//! Prompts and the reading of replies for the work of a step, by the kind of the step.

use super::{prompt, scene_reply};
use crate::llm::Request;
use crate::plan::{PlanProblem, StepKind};
use crate::run::{Event, Reply, RunState};
use crate::scene::Catalogue;

/// The question that a step's work is due to ask.
pub(super) fn step_request(state: &RunState, catalogue: &Catalogue, step: u32) -> Request {
    match kind(state, step) {
        // The others ask about subjects of their own.
        StepKind::Scene
        | StepKind::Flow
        | StepKind::Llm
        | StepKind::Summary
        | StepKind::Code
        | StepKind::Node => prompt::scene(state, catalogue, step),
    }
}

/// The event that a reply to a step's question leads to.
///
/// # Errors
/// Every problem of a reply that cannot be used.
pub(super) fn read_step_reply(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    (call, step): (u32, u32),
    fallback: bool,
) -> Result<Event, Vec<PlanProblem>> {
    match kind(state, step) {
        StepKind::Scene
        | StepKind::Flow
        | StepKind::Llm
        | StepKind::Summary
        | StepKind::Code
        | StepKind::Node => scene_reply::read_scene(state, catalogue, reply, call, step, fallback),
    }
}

fn kind(state: &RunState, step: u32) -> StepKind {
    state.steps.get(&step).map(|step| step.step.kind).unwrap_or_default()
}
