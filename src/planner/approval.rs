//! Who has to be asked before a plan is carried out or a write is done, and what exactly a yes covers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::plan::{Plan, Step, StepStatus};
use crate::run::{
    AskFor, CallState, CallStatus, Decision, Effect, Event, Matter, Needed, PlanMade, RunState,
    canonical_json,
};
use crate::scene::{Catalogue, SceneTool};

/// What stands for a tool that the catalogue does not have.
const GONE: &str = "gone";

/// `made` with the approval that it needs.
pub(crate) fn with_approval(state: &RunState, catalogue: &Catalogue, mut made: PlanMade) -> PlanMade {
    made.approval = plan_needs(state, catalogue, &made);
    made
}

/// Why a person has to approve a plan, if one has to, and what a yes covers. A plan of the embedded rules
/// in place of failed models may read; each of its writes is asked about by itself, with its arguments.
pub fn plan_needs(state: &RunState, catalogue: &Catalogue, made: &PlanMade) -> Option<Needed> {
    if !made.plan.needs_execution || state.is_plan_only() || state.is_dry_run() {
        return None;
    }
    let mut why = Vec::new();
    let policy = state.settings().approval.plans;
    for (step, tool) in writes(catalogue, &made.plan) {
        let asked = match policy {
            AskFor::Never => false,
            AskFor::Writes => true,
            AskFor::Declared => tool.approval.of_plans(),
        };
        if asked {
            why.push(format!("step {}: {} of {} writes", step.step_number, tool.name, step.scene_name));
        }
    }
    if state.queued.as_ref().is_some_and(|queued| queued.require_approval) {
        why.push("the request asks for it".to_owned());
    }
    // A change of what somebody had to approve is theirs to approve, too.
    let changed = matches!(made.cause, crate::run::Cause::Edit | crate::run::Cause::Feedback);
    if why.is_empty() && changed {
        why.push("the plan was changed".to_owned());
    }
    if why.is_empty() {
        return None;
    }
    let tools = definitions(catalogue, &made.plan);
    Some(Needed { hash: plan_hash(made.version, &made.plan, &tools), why, tools })
}

/// The same for a call: `by_rules` says that the embedded rules asked for it in place of failed models.
pub(crate) fn call_needs(
    state: &RunState,
    scene: &str,
    tool: &SceneTool,
    arguments: &Value,
    by_rules: bool,
) -> Option<Needed> {
    if tool.effect != Effect::Write {
        return None;
    }
    let policy = state.settings().approval.calls;
    let asked = match policy {
        AskFor::Never => false,
        AskFor::Writes => true,
        AskFor::Declared => tool.approval.of_calls() || by_rules,
    };
    // A yes to the plan was a yes to the tools as they were.
    let approved = state.plan_approval().map(|(_, put)| &put.needed.tools);
    let before = approved.and_then(|tools| tools.get(&format!("{scene}.{}", tool.name)));
    let another = before.is_some_and(|before| *before != definition(tool));
    if !asked && !another {
        return None;
    }
    let mut why = vec![format!("{} of {scene} writes", tool.name)];
    if another {
        why.push("it has another definition than when the plan was approved".to_owned());
    }
    if by_rules {
        why.push("it was asked for without the configured models, which could not be used".to_owned());
    }
    let tools = BTreeMap::from([(format!("{scene}.{}", tool.name), definition(tool))]);
    Some(Needed { hash: call_hash(arguments, &tools), why, tools })
}

/// An approval that does not hold any more, since the tools it covers have changed.
pub fn lapsed(state: &RunState, catalogue: &Catalogue) -> Option<Event> {
    if state.status.is_terminal() {
        return None;
    }
    if let (Some((approval, put)), Some(made), false) =
        (state.plan_approval(), state.plan(), state.has_begun())
        && !matches!(put.decided, Some((Decision::No, _)))
    {
        let now = definitions(catalogue, &made.plan);
        let why = changed(&put.needed.tools, &now);
        if !why.is_empty() {
            let hash = plan_hash(made.version, &made.plan, &now);
            let needed = Needed { hash, why: put.needed.why.clone(), tools: now };
            return Some(Event::ApprovalLapsed { approval, matter: put.matter, why, needed });
        }
    }
    for (approval, put) in state.approvals.iter().filter(|(_, put)| !put.lapsed) {
        let Matter::Call { call: number } = put.matter else { continue };
        let Some(call) = state.calls.get(&number).filter(|call| call.status == CallStatus::Requested) else {
            continue;
        };
        let now = BTreeMap::from([(key(call), definition_of(catalogue, &call.scene, &call.requested.tool))]);
        let why = changed(&put.needed.tools, &now);
        if !why.is_empty() && !matches!(put.decided, Some((Decision::No, _))) {
            let hash = call_hash(&call.requested.arguments, &now);
            let needed = Needed { hash, why: put.needed.why.clone(), tools: now };
            return Some(Event::ApprovalLapsed { approval: *approval, matter: put.matter, why, needed });
        }
    }
    None
}

fn key(call: &CallState) -> String {
    format!("{}.{}", call.scene, call.requested.tool)
}

/// What is different in the tools, for people.
fn changed(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (tool, hash) in before {
        match now.get(tool).map(String::as_str) {
            Some(same) if same == hash => {}
            None | Some(GONE) => lines.push(format!("- {tool} is not there any more")),
            Some(_) => lines.push(format!("~ {tool} has another definition now")),
        }
    }
    lines.extend(now.keys().filter(|tool| !before.contains_key(*tool)).map(|tool| format!("+ {tool}")));
    lines
}

/// Whether a plan expects a write.
pub fn expects_writes(catalogue: &Catalogue, plan: &Plan) -> bool {
    writes(catalogue, plan).next().is_some()
}

/// The writes that a plan expects.
pub(super) fn writes<'a>(
    catalogue: &'a Catalogue,
    plan: &'a Plan,
) -> impl Iterator<Item = (&'a Step, &'a SceneTool)> {
    plan.steps.iter().flat_map(move |step| {
        let scene = catalogue.get(&step.scene_name);
        let tools = step.expected_tools.iter().filter_map(move |name| scene?.tool(name));
        tools.filter(|tool| tool.effect == Effect::Write).map(move |tool| (step, tool))
    })
}

fn definitions(catalogue: &Catalogue, plan: &Plan) -> BTreeMap<String, String> {
    let tools = plan.steps.iter().flat_map(|step| step.expected_tools.iter().map(move |tool| (step, tool)));
    tools
        .map(|(step, tool)| {
            (format!("{}.{tool}", step.scene_name), definition_of(catalogue, &step.scene_name, tool))
        })
        .collect()
}

fn definition_of(catalogue: &Catalogue, scene: &str, tool: &str) -> String {
    catalogue.get(scene).and_then(|scene| scene.tool(tool)).map_or_else(|| GONE.to_owned(), definition)
}

/// A tool's definition: everything that models and people are told of it, and what it calls.
fn definition(tool: &SceneTool) -> String {
    hash(&serde_json::to_value(tool).unwrap_or_default())
}

fn plan_hash(version: u32, plan: &Plan, tools: &BTreeMap<String, String>) -> String {
    hash(&json!({"version": version, "steps": plan.steps, "tools": tools}))
}

fn call_hash(arguments: &Value, tools: &BTreeMap<String, String>) -> String {
    hash(&json!({"arguments": arguments, "tools": tools}))
}

fn hash(value: &Value) -> String {
    let digest = Sha256::digest(canonical_json(value).as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What stands against carrying out the plan in force, as can be known before its first step. Empty where
/// nothing does.
pub fn preflight(state: &RunState, catalogue: &Catalogue) -> Vec<crate::plan::Problem> {
    let Some(made) = state.plan() else { return Vec::new() };
    let mut problems = Vec::new();
    let ours =
        |step: &&Step| state.steps.get(&step.step_number).is_some_and(|s| s.status == StepStatus::Pending);
    for step in made.plan.steps.iter().filter(ours) {
        let Some(scene) = catalogue.get(&step.scene_name) else {
            let what = format!("step {}: the scene {} is not loaded", step.step_number, step.scene_name);
            problems.push(crate::plan::Problem::new("preflight.scene", what));
            continue;
        };
        for tool in &step.expected_tools {
            if scene.tool(tool).is_none() {
                let what = format!("step {}: {} has no tool {tool}", step.step_number, step.scene_name);
                problems.push(crate::plan::Problem::new("preflight.tool", what));
            }
        }
    }
    problems
}
