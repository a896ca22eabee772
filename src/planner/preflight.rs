//! The preflight: the problems of a plan that can be found before its first step.

use jiff::Timestamp;

use super::approval::{expects_writes, unfit_call};
use super::prompt::request;
use crate::llm::Request;
use crate::llm::budget::BudgetRefusal;
use crate::plan::{PlanProblem, Step, StepKind, StepStatus};
use crate::run::{Event, RunState, Subject, SummaryOwner};
use crate::scene::Catalogue;

/// The first question about each step of the plan in force, if their cost has to be within the budget before the first
/// step begins, because a plan with writes would otherwise stop half-way. `None` in a dry run, which writes nothing,
/// and if the run reads replies from the cache (`reads_cache`), which cost nothing.
pub(crate) fn questions_to_afford(
    state: &RunState,
    catalogue: &Catalogue,
    reads_cache: bool,
) -> Option<Vec<Request>> {
    let plan = &state.plan()?.plan;
    if reads_cache || state.is_dry_run() || !expects_writes(catalogue, plan) {
        return None;
    }
    // At `basic`, scenes are not asked.
    let asks = |step: &&Step| state.steps.get(&step.step_number).is_none_or(|step| state.asks_scene(step));
    let steps = plan.steps.iter().filter(asks);
    Some(steps.map(|step| request(state, catalogue, first_question(step))).collect())
}

/// The subject of the first question to a model about a step.
fn first_question(step: &Step) -> Subject {
    let number = step.step_number;
    match step.kind {
        StepKind::Flow => Subject::Path { step: number },
        StepKind::Llm => Subject::Node { step: number },
        StepKind::Summary => SummaryOwner::step(number).subject(1),
        StepKind::Code => Subject::Program { step: number },
        StepKind::Scene | StepKind::Node => Subject::Scene { step: number },
    }
}

/// The problems of the plan in force that can be detected before its first step. Empty if it may begin.
pub fn plan_problems_before_start(state: &RunState, catalogue: &Catalogue) -> Vec<PlanProblem> {
    let Some(made) = state.plan() else { return Vec::new() };
    let mut problems = Vec::new();
    let ours =
        |step: &&Step| state.steps.get(&step.step_number).is_some_and(|s| s.status == StepStatus::Pending);
    for step in made.plan.steps.iter().filter(ours) {
        // Such a step needs only a model.
        if step.kind == StepKind::Llm {
            continue;
        }
        if step.kind == StepKind::Code {
            for scene in step.scenes.iter().filter(|scene| catalogue.get(scene).is_none()) {
                let what = format!("step {}: the scene {scene} is not loaded", step.step_number);
                problems.push(PlanProblem::new("preflight.scene", what));
            }
            continue;
        }
        let Some(scene) = catalogue.get(&step.scene_name) else {
            let what = format!("step {}: the scene {} is not loaded", step.step_number, step.scene_name);
            problems.push(PlanProblem::new("preflight.scene", what));
            continue;
        };
        for tool in &step.expected_tools {
            if scene.tool(tool).is_none() {
                let what = format!("step {}: {} has no tool {tool}", step.step_number, step.scene_name);
                problems.push(PlanProblem::new("preflight.tool", what));
            }
        }
        // A tool may have changed since the plan was made.
        problems.extend(step.prepared_calls.iter().filter_map(|call| unfit_call(catalogue, step, call)));
    }
    problems
}

/// The event that refuses the plan in force before its first step: it has problems, or the budget does not cover its
/// minimum cost (`refusal`). `None` if it may begin.
pub(crate) fn plan_refused(
    state: &RunState,
    catalogue: &Catalogue,
    refusal: Option<&BudgetRefusal>,
    now: Timestamp,
) -> Option<Event> {
    let mut problems = plan_problems_before_start(state, catalogue);
    // Waiting helps only if nothing else is wrong.
    let wait = refusal.filter(|_| problems.is_empty()).and_then(|refusal| refusal.retry_after(now));
    let retry_after_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    problems.extend(refusal.map(|refusal| {
        let refusal = refusal.for_clients();
        let what = format!("the remaining budget does not cover the minimum cost of the steps: {refusal}");
        PlanProblem::new("budget.exceeded", what)
    }));
    let version = state.plans.len() as u32;
    (!problems.is_empty()).then_some(Event::PlanRefused { version, problems, retry_after_ms })
}
