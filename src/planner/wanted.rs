//! What a scene's model is asked for: mostly any move of its own; after a reply that leaves undone
//! what the plan expects, something definite.
//!
//! **Invariant:** only a read is ever asked for by name unasked. A write is asked for by name only
//! after the model itself has decided for it, in a closed question in which it could also decide for
//! nothing, and may then say null for what the user did not say.

use super::prompt::offered;
use super::read::{EMPTY_REPLY, UNDONE};
use crate::run::{AskStatus, Effect, RunState, StepState};
use crate::scene::{Catalogue, Scene};

/// What the next question to a step's model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any move: calls, a question to the user, or final words.
    Move,
    /// A call of this read, which the plan expects.
    Read(String),
    /// What is to come next, by `NextCall`.
    Decision,
    /// A call of the tool that it decided for.
    Call(String),
}

/// What the question of a step that is now due, or under way, asks for.
pub(super) fn wanted(state: &RunState, catalogue: &Catalogue, number: u32) -> Wanted {
    let Some(step) = state.steps.get(&number).filter(|_| !state.is_last_round(number)) else {
        return Wanted::Move;
    };
    let Some(scene) = catalogue.get(&step.step.scene_name) else { return Wanted::Move };
    if let Some(tool) = &step.next {
        return Wanted::Call(tool.clone());
    }
    if !sent_back(state, step) {
        return Wanted::Move;
    }
    if write_is_open(state, scene, step) {
        return Wanted::Decision;
    }
    let reads = offered(scene, step).filter(|tool| tool.effect == Effect::Read);
    let reads: Vec<&str> = reads.map(|tool| tool.name.as_str()).collect();
    let due = step
        .step
        .expected_tools
        .iter()
        .find(|name| reads.contains(&name.as_str()) && !called(state, step, name));
    due.map_or(Wanted::Move, |name| Wanted::Read(name.clone()))
}

/// Whether the plan expects a write of the step, none was asked for, and its model has not said that
/// none is to come.
pub(super) fn write_is_open(state: &RunState, scene: &Scene, step: &StepState) -> bool {
    let writes = |name: &String| scene.tool(name).is_some_and(|tool| tool.effect == Effect::Write);
    let asked_for = |call: &u32| state.calls.get(call).is_some_and(|c| c.requested.effect == Effect::Write);
    !step.decided && step.step.expected_tools.iter().any(writes) && !step.calls.iter().any(asked_for)
}

/// Whether a reply to the question that is due was sent back because it left undone what the plan
/// expects.
pub(super) fn sent_back(state: &RunState, step: &StepState) -> bool {
    let tries = step.tries.iter().filter_map(|call| state.asks.get(call));
    tries.into_iter().any(|ask| match &ask.status {
        AskStatus::Rejected { problems, .. } => {
            problems.iter().any(|p| [EMPTY_REPLY, UNDONE].contains(&p.code.as_str()))
        }
        _ => false,
    })
}

/// The writes that the plan expects of a step and that its model has not called.
pub(super) fn writes_not_called<'a>(state: &RunState, scene: &'a Scene, step: &'a StepState) -> Vec<&'a str> {
    let writes = offered(scene, step).filter(|tool| tool.effect == Effect::Write);
    writes.map(|tool| tool.name.as_str()).filter(|name| !called(state, step, name)).collect()
}

fn called(state: &RunState, step: &StepState, tool: &str) -> bool {
    step.calls.iter().filter_map(|c| state.calls.get(c)).any(|c| c.requested.tool == tool)
}
