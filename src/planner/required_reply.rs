//! The form that the next reply of a scene's model must have: usually any; but after a reply that omits what the
//! plan expects, or only repeats earlier calls, something specific.
//!
//! **Invariant:** only reads are forced by name. A write is forced only after the model itself has chosen
//! it, in a closed question that also offered no call, and the model may then write null for values that
//! the user did not give.

use super::prompt::offered;
use super::read::EMPTY_REPLY;
use super::scene_reply::EXPECTED_CALL_MISSING;
use crate::run::{AskStatus, CallStatus, Effect, Outcome, RunState, StepState, Subject};
use crate::scene::{Catalogue, Scene, SceneTool};

/// The requirement of the next question to a step's model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequiredReply {
    /// Anything: calls, a question to the user, or a final text.
    Move,
    /// A call of this read, which the plan expects.
    Read(String),
    /// The choice of the next call, by `NextCall`.
    Decision,
    /// A call of the tool that the model chose.
    Call(String),
}

/// Returns what the step's question that is due, or in flight, requires.
pub(super) fn required_reply(state: &RunState, catalogue: &Catalogue, number: u32) -> RequiredReply {
    let Some(step) = state.steps.get(&number).filter(|_| !state.is_last_round(number)) else {
        return RequiredReply::Move;
    };
    let Some(scene) = catalogue.get(&step.step.scene_name) else { return RequiredReply::Move };
    if let Some(tool) = step.scene().and_then(|work| work.next.as_ref()) {
        return RequiredReply::Call(tool.clone());
    }
    if !was_sent_back(state, step) && !repeats_earlier_calls(state, step) {
        return RequiredReply::Move;
    }
    let mut due = step.step.expected_tools.iter().filter_map(|name| scene.tool(name));
    let due = due.find_map(|tool| match tool.effect {
        Effect::Read if !was_called(state, step, &tool.name) => Some(RequiredReply::Read(tool.name.clone())),
        Effect::Write if write_is_open(state, scene, step) => Some(RequiredReply::Decision),
        _ => None,
    });
    due.unwrap_or(RequiredReply::Move)
}

/// Returns whether the plan expects a write of the step, no expected call has succeeded so far, and its model has
/// not decided against the write.
///
/// A step may end once an expected call succeeded, since plans often name a write that is only possibly
/// needed. Other reads of its model are not the purpose of the step.
pub(super) fn write_is_open(state: &RunState, scene: &Scene, step: &StepState) -> bool {
    let writes = |call: &u32| state.calls.get(call).is_some_and(|c| c.requested.effect == Effect::Write);
    !step.scene().is_some_and(|work| work.decided)
        && expects_write(scene, step)
        && !has_expected_result(state, step)
        && !step.calls.iter().any(writes)
}

/// Whether an expected call of the step has succeeded.
fn has_expected_result(state: &RunState, step: &StepState) -> bool {
    let expected = |call: &u32| {
        let tool = state.calls.get(call).map(|c| &c.requested.tool);
        tool.is_some_and(|tool| step.step.expected_tools.contains(tool))
    };
    step.calls.iter().any(|call| expected(call) && matches!(state.outcome(*call), Some(Outcome::Ok { .. })))
}

/// Whether the last reply requested only calls that had been done before.
fn repeats_earlier_calls(state: &RunState, step: &StepState) -> bool {
    let skipped =
        |call: &u32| state.calls.get(call).is_some_and(|c| matches!(c.status, CallStatus::Skipped { .. }));
    step.scene()
        .and_then(|work| work.history.last())
        .is_some_and(|round| !round.calls.is_empty() && round.calls.iter().all(skipped))
}

fn expects_write(scene: &Scene, step: &StepState) -> bool {
    required_writes(scene, step).next().is_some()
}

/// The expected writes, apart from those that may turn out unnecessary.
fn required_writes<'a>(scene: &'a Scene, step: &'a StepState) -> impl Iterator<Item = &'a SceneTool> {
    let writes = offered(scene, step).filter(|tool| tool.effect == Effect::Write);
    writes.filter(|tool| !step.step.if_needed.contains(&tool.name))
}

/// Returns whether a reply to the question that is due was rejected because it omitted what the plan expects.
pub(super) fn was_sent_back(state: &RunState, step: &StepState) -> bool {
    let tries = state
        .tries(Subject::Scene { step: step.step.step_number })
        .iter()
        .filter_map(|call| state.asks.get(call));
    tries.into_iter().any(|ask| match &ask.status {
        AskStatus::Rejected { problems, .. } => {
            problems.iter().any(|p| [EMPTY_REPLY, EXPECTED_CALL_MISSING].contains(&p.code.as_str()))
        }
        _ => false,
    })
}

/// The expected writes of a step that its model has not called, if the step had no expected result or its
/// model had to be asked for a choice. In other steps the write may not have been needed.
pub(super) fn writes_not_called<'a>(state: &RunState, scene: &'a Scene, step: &'a StepState) -> Vec<&'a str> {
    if has_expected_result(state, step) && !step.scene().is_some_and(|work| work.decided) {
        return Vec::new();
    }
    let writes = required_writes(scene, step);
    writes.map(|tool| tool.name.as_str()).filter(|name| !was_called(state, step, name)).collect()
}

/// The alternatives of a choice: the expected tools, in the plan's order.
pub(super) fn choices<'a>(scene: &'a Scene, step: &'a StepState) -> Vec<&'a SceneTool> {
    step.step.expected_tools.iter().filter_map(|name| scene.tool(name)).collect()
}

fn was_called(state: &RunState, step: &StepState, tool: &str) -> bool {
    step.calls.iter().filter_map(|c| state.calls.get(c)).any(|c| c.requested.tool == tool)
}
