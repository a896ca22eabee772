//! Answers that may be read as if something had been changed, where nothing was.

use super::planned_calls::names_action;
use crate::language;
use crate::llm::offline;
use crate::plan::{StepKind, StepStatus};
use crate::run::{Effect, RunState, StepState};
use crate::scene::{Catalogue, Scene, SceneTool};
use crate::sentences;

/// `answer` with the sentence that nothing was changed, where the run has begun no write and one was expected: by a step
/// that completed without it, or by the request where there are no steps but programs, if the answer speaks of that action. An
/// answer that denies something is left as it is.
pub(super) fn with_unchanged(state: &RunState, catalogue: &Catalogue, answer: String) -> String {
    let mut calls = state.calls.values();
    let has_begun = calls.any(|call| call.requested.effect == Effect::Write && call.attempts > 0);
    if !state.settings().has_rules(7) || has_begun || state.is_dry_run() || language::denies(&answer) {
        return answer;
    }
    let is_expected = match state.steps.values().all(|step| step.code().is_some()) {
        true => claims_a_requested_write(state, catalogue, &answer),
        false => state.steps.values().any(|step| lacks_its_write(state, catalogue, step)),
    };
    match is_expected {
        true => format!("{}\n{}", answer.trim_end(), sentences::unchanged(state.language())),
        false => answer,
    }
}

/// Whether the request asks for what some write does, and the answer speaks of it.
fn claims_a_requested_write(state: &RunState, catalogue: &Catalogue, answer: &str) -> bool {
    let wanted = offline::requested_clauses(state.request());
    let names = |scene: &Scene, tool: &SceneTool| {
        wanted.iter().any(|clause| names_action(scene, tool, clause)) && names_action(scene, tool, answer)
    };
    !wanted.is_empty()
        && !language::is_background_task(state.request(), "")
        && catalogue.iter().any(|scene| writes(scene).any(|tool| names(scene.as_ref(), tool)))
}

/// Whether a step completed without a call of a write that its plan expects.
fn lacks_its_write(state: &RunState, catalogue: &Catalogue, step: &StepState) -> bool {
    let planned = &step.step;
    let Some(scene) = catalogue.get(&planned.scene_name) else { return false };
    let is_called = |tool: &SceneTool| {
        let mut calls = step.calls.iter().filter_map(|call| state.calls.get(call));
        calls.any(|call| call.requested.tool == tool.name)
    };
    planned.kind == StepKind::Scene
        && step.status == StepStatus::Completed
        && writes(scene)
            .filter(|tool| planned.expected_tools.contains(&tool.name))
            .any(|tool| !planned.if_needed.contains(&tool.name) && !is_called(tool))
}

fn writes(scene: &Scene) -> impl Iterator<Item = &SceneTool> {
    scene.tools.iter().filter(|tool| tool.effect == Effect::Write)
}
