//! The question for a patch of the plan, and the meaning of its reply.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::approval::{unfit_calls, with_approval};
use super::completed_work::begun_work;
use super::constraints::constraint_problems;
use super::flow_plan::flow_problems;
use super::plan_prompt::{self, instructions, known};
use super::planned_calls;
use super::program::program_problems;
use super::prompt::forced;
use super::read::from_arguments;
use super::step_expectations;
use super::synthesis::synthesis_problems;
use super::tools::{ADAPT_PLAN, adapt_plan};
use crate::llm::{Purpose, Request, reader, sections};
use crate::plan::{self, Plan, PlanProblem, Step, StepStatus};
use crate::run::{Effect, PlanCause, PlanMade, PlanMaker, PlanPatch, Reply, RunState, StepState};
use crate::scene::{Catalogue, PlanShape, PlannedCalls};

const ADAPT: &str = "\
Scenes carry out a plan for a user's request, and something unexpected happened. You change what is left of the plan. You do \
not answer the request yourself. Call the function AdaptPlan exactly once.
- <executed> was already done: never repeat it. <happened> says what was unexpected. <pending> lists the steps that have not \
begun; those with \"fixed\" stay as they are.
- Change as little as possible. If the plan is still right, or nothing better can be done, give empty lists.
- replace: a step, and the one that takes its place. remove: a step that is not needed any more. add: a further step.
- Doing again what failed fails again: another scene, another tool or another question may still find it. What was refused \
is not done by other means.
- A pending step that depends on a replaced one and changes nothing follows the new one. One that changes something is not \
done unless you replace it, too. Replace or remove what depends on a step that you remove.
- A step is one task for one scene from <scenes>. Use scene and tool names exactly as listed; never invent one.
- purpose: what the scene is to do, in the user's language, complete in itself: repeat every name, place, date and number \
the user gave, and add nothing the user did not say.
- expected_tools: the tools of that scene which the step needs. Name a tool with effect \"write\" only if the user asks for \
that change.
- depends_on_step: null, or the numbers of executed, pending or new steps whose results it needs. Number new steps from \
<number_from>.
- unclear: true for a step whose change the user may not want.";

/// The request to send for a patch because of what happened in the step `about`.
pub(super) fn request(state: &RunState, catalogue: &Catalogue, about: u32, tries: &[u32]) -> Request {
    let version = state.plans.len() as u32 + 1;
    let shape = shape(state, catalogue, version);
    let system = instructions(ADAPT, state, shape);
    let mut data = known(state, catalogue, version, shape);
    sections::push(&mut data, "executed", &begun_work(state, catalogue));
    sections::push(&mut data, "happened", &step_outcome(state, about));
    let pending = state.steps.values().filter(|step| step.status == StepStatus::Pending);
    let pending: Vec<String> = pending.map(|step| pending_line(state, step)).collect();
    sections::push(&mut data, "pending", &pending.join("\n"));
    sections::push(&mut data, "number_from", &(state.last_step() + 1).to_string());
    sections::push(&mut data, "request", state.request());
    let tool = adapt_plan(catalogue, shape, &state.patch_scope(about));
    forced(state, Purpose::Adaptation, system, data, tool, tries)
}

/// The kinds of steps that a patch may contain: no steps of kind llm, which cannot find anything in place of a failed
/// step.
fn shape(state: &RunState, catalogue: &Catalogue, version: u32) -> PlanShape {
    PlanShape { synthesis: false, programs: false, ..plan_prompt::shape(state, catalogue, version) }
}

/// The unexpected end of the step. The words of a back end are only in the executed steps.
fn step_outcome(state: &RunState, about: u32) -> String {
    let Some(step) = state.steps.get(&about) else { return String::new() };
    let failed = state.is_replaceable(step);
    let mut line = json!({"step": about, "scene": step.step.scene_name, "purpose": step.step.purpose,
        "status": if failed { "failed" } else { "completed" }});
    if let Some(fault) = state.fault_of_step(step).filter(|_| failed) {
        line["failure"] = fault.class.name().into();
    }
    line.to_string()
}

fn pending_line(state: &RunState, state_of: &StepState) -> String {
    let step = &state_of.step;
    let mut line = json!({"step": step.step_number, "scene": step.scene_name, "purpose": step.purpose,
        "expected_tools": step.expected_tools, "depends_on_step": step.depends_on_step});
    if !step.prepared_calls.is_empty() {
        line["prepared_calls"] = json!(step.prepared_calls);
    }
    if !state.is_patchable(state_of) {
        line["fixed"] = true.into();
    }
    line.to_string()
}

/// The content of a reply about the plan.
pub(crate) enum PatchReply {
    /// The plan stays as it is.
    Unchanged {
        reason: String,
    },
    Changed(Box<PlanMade>),
}

/// The problems of the steps of a patch, without regard to the steps that they replace.
fn problems_of_steps(state: &RunState, catalogue: &Catalogue, plan: &Plan) -> Vec<PlanProblem> {
    let mut problems = plan::name_problems(plan, catalogue.known_names());
    problems.extend(plan::reference_problems(plan, &state.finished_steps()));
    problems.extend(constraint_problems(state, catalogue, plan));
    problems.extend(flow_problems(state, catalogue, plan));
    problems.extend(synthesis_problems(plan));
    problems.extend(program_problems(state, plan));
    problems
}

/// Reads a reply to the question for a patch. `is_last_try` says that an imperfect one is better than none.
///
/// # Errors
/// Every problem of the reply, for its author.
pub(crate) fn read(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    (consultation, about): (u32, u32),
    is_last_try: bool,
) -> Result<PatchReply, Vec<PlanProblem>> {
    let mut written = reader::read(reply, ADAPT_PLAN, state.settings().reader)?;
    let reason = written["reason"].as_str().unwrap_or_default().to_owned();
    let removed: BTreeSet<u32> = match written.get_mut("remove").map(Value::take) {
        None | Some(Value::Null) => BTreeSet::new(),
        Some(list) => from_arguments(list, ADAPT_PLAN)?,
    };
    let (old, steps) = new_steps(&mut written)?;
    if removed.is_empty() && steps.is_empty() {
        return Ok(PatchReply::Unchanged { reason });
    }
    let version = state.plans.len() as u32 + 1;
    let shape = shape(state, catalogue, version);
    let mut written = json!({"needs_execution": true, "reasoning": reason, "steps": steps});
    let unreadable = match shape.calls == PlannedCalls::All || shape.shortlisted {
        true => planned_calls::parse_arguments(&mut written),
        false => Vec::new(),
    };
    let mut plan: Plan = from_arguments(written, ADAPT_PLAN)?;
    step_expectations::drop_expectations_of_models(&mut plan, reply);
    plan::normalise(&mut plan, catalogue.known_names(), state.last_step());
    let replaced = old.iter().copied().zip(plan.steps.iter().map(|step| step.step_number)).collect();
    let mut patch =
        PlanPatch { consultation, removed: removed.into_iter().collect(), replaced, dependants: Vec::new() };
    if patch.replaced.len() < old.len() {
        let what = "replace names a step twice: give one step that takes its place, and add others";
        return Err(vec![PlanProblem::new("plan.fixed", what)]);
    }
    follow_replacements(&mut plan, &patch);
    let orphans = find_dependants(state, catalogue, about, &mut patch);
    let known = state.dependable_steps(&patch);
    let mut unusable = Vec::new();
    if shape.calls == PlannedCalls::All {
        unusable = planned_calls::take_unusable(&mut plan, catalogue, &known, &unreadable);
        unusable.retain(|_| state.settings().has_rules(8));
    }
    let mut problems = state.patch_problems(about, &patch, &plan);
    problems.extend(orphans);
    problems.extend(problems_of_steps(state, catalogue, &plan));
    if !problems.is_empty() {
        return Err(problems);
    }
    let unfit = unfit_calls(catalogue, &plan);
    if !unfit.is_empty() {
        if !is_last_try {
            return Err(unfit);
        }
        // The writes of these steps then need approvals of their own.
        plan.steps.iter_mut().for_each(|step| step.prepared_calls.clear());
        // Without its calls, a step may be one that failed.
        let problems = state.patch_problems(about, &patch, &plan);
        if !problems.is_empty() {
            return Err(problems);
        }
    }
    let made = PlanMade::new(version, PlanCause::Adaptation, PlanMaker::Deterministic, plan);
    let made = with_approval(state, catalogue, PlanMade { patch: Some(patch), unusable, ..made });
    Ok(PatchReply::Changed(Box::new(made)))
}

/// The numbers of the replaced steps, and the new steps: first the replacements, in the same order.
fn new_steps(written: &mut Value) -> Result<(Vec<u32>, Vec<Value>), Vec<PlanProblem>> {
    let mut old = Vec::new();
    let mut steps = Vec::new();
    for one in list(written, "replace") {
        let with = one.get("with").filter(|with| with.is_object());
        let number = one.get("step").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        let (Some(with), Some(number)) = (with, number) else {
            let what = "each entry of replace needs the number of a step and, in with, the step that takes its place";
            return Err(vec![PlanProblem::new("reply.shape", what)]);
        };
        old.push(number);
        steps.push(with.clone());
    }
    steps.extend(list(written, "add"));
    Ok((old, steps))
}

fn list(written: &mut Value, name: &str) -> Vec<Value> {
    match written.get_mut(name).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Makes new steps that depend on a replaced step depend on its replacement.
fn follow_replacements(plan: &mut Plan, patch: &PlanPatch) {
    for step in &mut plan.steps {
        let own = step.step_number;
        let depends = step.depends_on_step.iter().map(|number| match patch.replaced.get(&number) {
            Some(new) if *new != own => *new,
            _ => number,
        });
        step.depends_on_step = depends.collect();
    }
}

/// Finds the pending steps that depend on a replaced one and may depend on its replacement, because they change
/// nothing. Returns the problems of those that may not: a write was meant to follow the original step.
fn find_dependants(
    state: &RunState,
    catalogue: &Catalogue,
    about: u32,
    patch: &mut PlanPatch,
) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    let stays = |number: &u32| !patch.removed.contains(number) && !patch.replaced.contains_key(number);
    let mut dependants = Vec::new();
    for (number, step) in state.steps.iter().filter(|(number, _)| stays(number)) {
        let depends = || step.step.depends_on_step.iter();
        if step.status != StepStatus::Pending {
            continue;
        }
        let follows = state.is_patchable(step) && !expects_write(catalogue, &step.step);
        if depends().any(|one| patch.replaced.contains_key(&one)) && follows {
            dependants.push(*number);
        }
        // What depends on the failed step is blocked, as it would be without a patch.
        let lost = |one: &u32| {
            patch.removed.contains(one) || (!follows && *one != about && patch.replaced.contains_key(one))
        };
        if let Some(lost) = depends().find(lost) {
            let what = format!(
                "step {number} depends on step {lost}, which would not be done: replace or remove step {number}, too, \
                 or leave step {lost} as it is"
            );
            problems.push(PlanProblem::new("plan.orphaned", what));
        }
    }
    patch.dependants = dependants;
    problems
}

fn expects_write(catalogue: &Catalogue, step: &Step) -> bool {
    let scene = catalogue.get(&step.scene_name);
    // A tool that no longer exists may have been a write.
    step.expected_tools
        .iter()
        .any(|name| scene.and_then(|scene| scene.tool(name)).is_none_or(|tool| tool.effect == Effect::Write))
}
