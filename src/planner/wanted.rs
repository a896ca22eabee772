//! What a scene's model is asked for: mostly any move of its own; after a reply that leaves undone
//! what the plan expects, or only repeats what was done, something definite.
//!
//! **Invariant:** only a read is ever asked for by name unasked. A write is asked for by name only
//! after the model itself has decided for it, in a closed question in which it could also decide for
//! nothing, and may then say null for what the user did not say.

use super::prompt::offered;
use super::read::{EMPTY_REPLY, UNDONE};
use crate::run::{AskStatus, CallStatus, Effect, Outcome, RunState, StepState};
use crate::scene::{Catalogue, Scene, SceneTool};

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
    if !sent_back(state, step) && !goes_in_a_circle(state, step) {
        return Wanted::Move;
    }
    let mut due = step.step.expected_tools.iter().filter_map(|name| scene.tool(name));
    let due = due.find_map(|tool| match tool.effect {
        Effect::Read if !called(state, step, &tool.name) => Some(Wanted::Read(tool.name.clone())),
        Effect::Write if write_is_open(state, scene, step) => Some(Wanted::Decision),
        _ => None,
    });
    due.unwrap_or(Wanted::Move)
}

/// Whether the plan expects a write of the step, nothing that it expects was done so far, and its model
/// has not said that nothing is to be written.
///
/// A step in which something expected was found ends with that: a plan often names a write that is only
/// perhaps needed. What its model has looked up beside the plan is not what the step is for.
pub(super) fn write_is_open(state: &RunState, scene: &Scene, step: &StepState) -> bool {
    let writes = |call: &u32| state.calls.get(call).is_some_and(|c| c.requested.effect == Effect::Write);
    !step.decided && expects_write(scene, step) && !found(state, step) && !step.calls.iter().any(writes)
}

/// Whether a tool that the plan expects of the step has found or done something.
fn found(state: &RunState, step: &StepState) -> bool {
    let expected = |call: &u32| {
        let tool = state.calls.get(call).map(|c| &c.requested.tool);
        tool.is_some_and(|tool| step.step.expected_tools.contains(tool))
    };
    step.calls.iter().any(|call| expected(call) && matches!(state.outcome(*call), Some(Outcome::Ok { .. })))
}

/// Whether the last reply asked for nothing but what had been done before.
fn goes_in_a_circle(state: &RunState, step: &StepState) -> bool {
    let skipped =
        |call: &u32| state.calls.get(call).is_some_and(|c| matches!(c.status, CallStatus::Skipped { .. }));
    step.history.last().is_some_and(|round| !round.calls.is_empty() && round.calls.iter().all(skipped))
}

fn expects_write(scene: &Scene, step: &StepState) -> bool {
    offered(scene, step).any(|tool| tool.effect == Effect::Write)
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

/// The writes that the plan expects of a step and that its model has not called, where the step came to
/// nothing or its model had to be asked what comes next. Elsewhere a plan often names a write that is
/// only perhaps needed.
pub(super) fn writes_not_called<'a>(state: &RunState, scene: &'a Scene, step: &'a StepState) -> Vec<&'a str> {
    if found(state, step) && !step.decided {
        return Vec::new();
    }
    let writes = offered(scene, step).filter(|tool| tool.effect == Effect::Write);
    writes.map(|tool| tool.name.as_str()).filter(|name| !called(state, step, name)).collect()
}

/// What a decision is between: the expected tools, in the plan's order.
pub(super) fn choices<'a>(scene: &'a Scene, step: &'a StepState) -> Vec<&'a SceneTool> {
    step.step.expected_tools.iter().filter_map(|name| scene.tool(name)).collect()
}

fn called(state: &RunState, step: &StepState, tool: &str) -> bool {
    step.calls.iter().filter_map(|c| state.calls.get(c)).any(|c| c.requested.tool == tool)
}
