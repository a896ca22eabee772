//! The expectations of a plan's steps about the results of their tools: checked with the catalogue, and passed to each
//! call.

use std::sync::Arc;

use serde_json::Value;

use crate::plan::{Plan, PlanProblem};
use crate::run::{CallState, Effect, Reply, RunState, StepState};
use crate::scene::{Catalogue, SceneTool, ToolExpectations};

/// Removes expectations that a model wrote without being asked: only people, and parts of the library's user, state
/// expectations.
pub(super) fn drop_expectations_of_models(plan: &mut Plan, reply: &Reply) {
    if reply.model != Reply::REPLACED_MODEL {
        plan.steps.iter_mut().for_each(|step| step.expect.clear());
    }
}

/// The problems of expectations that depend on the tools: unknown arguments, and schemas that cannot be used.
pub(super) fn expectation_problems(catalogue: &Catalogue, plan: &Plan) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for step in &plan.steps {
        let scene = catalogue.get(&step.scene_name);
        for expected in &step.expect {
            let Some(tool) = scene.and_then(|scene| scene.tool(&expected.tool)) else { continue };
            if let Err(why) = ToolExpectations::of_step(expected, tool) {
                let what = format!("step {}: what it expects of {}: {why}", step.step_number, tool.name);
                problems.push(PlanProblem::new("plan.expect", what));
            }
        }
    }
    problems
}

/// Returns the expectation of the call's step about its result, if there is one. There is none about a call that undoes
/// a write.
pub fn step_expectations(
    state: &RunState,
    catalogue: &Catalogue,
    call: &CallState,
) -> Option<Arc<ToolExpectations>> {
    let step = state.steps.get(&call.step).filter(|_| call.undoes.is_none())?;
    let expected = step.step.expectation_of(&call.requested.tool)?;
    let tool = catalogue.get(&call.scene)?.tool(&call.requested.tool)?;
    ToolExpectations::of_step(expected, tool).ok().map(Arc::new)
}

/// Returns whether `result` meets the expectation of the step of call `call`; true if there is none.
pub fn is_as_expected(state: &RunState, catalogue: &Catalogue, call: u32, result: &Value) -> bool {
    let call = state.calls.get(&call);
    call.is_none_or(|call| {
        let expected = step_expectations(state, catalogue, call);
        expected.is_none_or(|expected| expected.breaches(&call.requested.arguments, result).is_empty())
    })
}

/// The key by which equal calls share an outcome. A read of whose result its step expects something is another call than
/// one of which nothing, or something else, is expected; a write is one act whatever is expected.
pub(super) fn key_in_step(key: String, step: &StepState, tool: &SceneTool) -> String {
    match step.step.expectation_of(&tool.name) {
        Some(expected) if tool.effect == Effect::Read => format!("{key} {}", expected.describe()),
        _ => key,
    }
}
