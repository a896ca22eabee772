//! Which plans and writes need an approval, and what exactly an approval covers.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::constraints::scene_tools_of_flow;
use super::flow_plan::frozen_flows;
use crate::plan::{Plan, PlanProblem, PreparedCall, Reference, Step, StepKind};
use crate::run::{
    Approval, ApprovalScope, ApprovalSubject, CallState, CallStatus, Decision, Effect, Event, NO_APPROVAL,
    PlanMade, PrepareMode, RequiredApproval, RunState, canonical_json, exact_json, shows_call,
};
use crate::scene::{Catalogue, PlannedCalls, SceneTool, ToolApproval, arguments};

/// Placeholder for a tool that is not in the catalogue.
const GONE: &str = "gone";

/// `made` with the approval that it needs.
pub(crate) fn with_approval(state: &RunState, catalogue: &Catalogue, mut made: PlanMade) -> PlanMade {
    made.flows = frozen_flows(state, catalogue, &made.plan);
    made.approval = required_plan_approval(state, catalogue, &made);
    made
}

/// The approval that a plan needs, if any, and what it covers. A fallback plan may read without approval;
/// each of its writes needs a separate approval with its arguments.
pub fn required_plan_approval(
    state: &RunState,
    catalogue: &Catalogue,
    made: &PlanMade,
) -> Option<RequiredApproval> {
    if !made.plan.needs_execution || state.is_plan_only() || state.is_dry_run() {
        return None;
    }
    let mut why = Vec::new();
    let policy = state.settings().approval.plans;
    for (step, tool) in writes(catalogue, &made.plan) {
        let asked = match policy {
            ApprovalScope::Never => false,
            ApprovalScope::Writes => true,
            ApprovalScope::Declared => tool.approval.requires_plan_approval(),
        };
        if asked {
            let instead = alternative_of(state, tool);
            why.push(format!(
                "step {}: {} of {} writes{instead}",
                step.step_number, tool.name, step.scene_name
            ));
        }
    }
    if state.queued.as_ref().is_some_and(|queued| queued.options.require_approval) {
        why.push("the request asks for it".to_owned());
    }
    // A change of a plan that needed approval needs approval, too.
    let changed = matches!(made.cause, crate::run::PlanCause::Edit | crate::run::PlanCause::Feedback);
    if why.is_empty() && changed {
        why.push("the plan was changed".to_owned());
    }
    // Approving the plan did not approve other writes.
    if why.is_empty()
        && made.patch.is_some()
        && state.has_approved_plan()
        && expects_writes(catalogue, &made.plan)
    {
        why.push("the plan was changed after it was approved".to_owned());
    }
    if why.is_empty() {
        return None;
    }
    why.extend(made.patch.iter().flat_map(|patch| patch.changes()));
    let tools = tool_definitions(catalogue, &made.plan);
    Some(RequiredApproval { hash: plan_hash(made, &tools), why, tools, ..RequiredApproval::default() })
}

/// What may be called in place of a tool that fails, for the person who approves a plan.
fn alternative_of(state: &RunState, tool: &SceneTool) -> String {
    let tools: Vec<&str> = tool.policies.alternatives().map(|by| by.tool.as_str()).collect();
    match tools.split_last() {
        Some((last, others)) if state.may().alternatives => {
            let others: String = others.iter().map(|other| format!("{other} or ")).collect();
            format!("; if it fails, {others}{last} may take its place, which is asked by itself")
        }
        _ => String::new(),
    }
}

/// A call that may need an approval.
pub(super) struct ApprovableCall<'a> {
    /// Its tool.
    pub tool: &'a SceneTool,
    /// Its arguments.
    pub arguments: &'a Value,
    /// How many equal calls of a repeatable tool precede it.
    pub occurrence: u32,
    /// Whether the offline model requested it in place of failed models.
    pub by_rules: bool,
    /// The failed call whose place it takes.
    pub stands_for: Option<&'a CallState>,
}

/// The approval that a requested call of a scene needs, if any.
#[cfg(test)]
pub(crate) fn required_call_approval(
    state: &RunState,
    step: &Step,
    tool: &SceneTool,
    arguments: &Value,
    occurrence: u32,
    by_rules: bool,
) -> Option<RequiredApproval> {
    call_approval(state, step, &ApprovableCall { tool, arguments, occurrence, by_rules, stands_for: None })
}

/// The approval that a requested call needs, if any.
///
/// The plan's approval covers exactly the writes whose arguments it showed. Any other write of such a plan
/// needs a separate approval, unless its tool declares that the plan's approval suffices.
pub(super) fn call_approval(
    state: &RunState,
    step: &Step,
    call: &ApprovableCall<'_>,
) -> Option<RequiredApproval> {
    let ApprovableCall { tool, arguments, occurrence, by_rules, stands_for } = *call;
    let scene = &step.scene_name;
    if tool.effect != Effect::Write {
        return approval_of_read(state, scene, tool, arguments);
    }
    // The plan's approval covers the tools only as they were.
    let approved = state.approval_of_step(step.step_number);
    let before = approved.and_then(|approval| approval.needed.tools.get(&format!("{scene}.{}", tool.name)));
    let another = before.is_some_and(|before| *before != definition(tool));
    let unshown = before.is_some() && !shows_call(step, &tool.name, arguments, occurrence);
    let policy = state.settings().approval.calls;
    let asked = match policy {
        ApprovalScope::Never => false,
        ApprovalScope::Writes => before.is_none() || unshown,
        ApprovalScope::Declared if before.is_some() => {
            unshown && (by_rules || tool.approval != ToolApproval::Plan)
        }
        ApprovalScope::Declared => tool.approval.requires_call_approval() || by_rules,
    };
    let asked = asked || (step.kind == StepKind::Code && is_put_with_plan(state, tool));
    let is_shown = before.is_some() && !unshown;
    let replaced = stands_for.filter(|original| !is_shown && needs_same_approver(state, tool, original));
    if !asked && !another && replaced.is_none() {
        return None;
    }
    let mut why = vec![format!("{} of {scene} writes", tool.name)];
    if let Some(original) = stands_for {
        why.push(stand_in_reason(&original.requested.tool));
    }
    if another {
        why.push("it has another definition than when the plan was approved".to_owned());
    } else if unshown {
        why.push("the plan was approved without these arguments".to_owned());
    }
    if by_rules {
        why.push("it was asked for without the configured models, which could not be used".to_owned());
    }
    let tools = BTreeMap::from([(format!("{scene}.{}", tool.name), definition(tool))]);
    Some(RequiredApproval { hash: call_hash(arguments, &tools), why, tools, ..RequiredApproval::default() })
}

/// Whether a plan with a write of `tool` needs approval. No plan shows what a program writes, so each of its writes
/// needs the approval that the plan would need.
fn is_put_with_plan(state: &RunState, tool: &SceneTool) -> bool {
    let asks = state.queued.as_ref().is_some_and(|queued| queued.options.require_approval);
    asks || match state.settings().approval.plans {
        ApprovalScope::Never => false,
        ApprovalScope::Writes => true,
        ApprovalScope::Declared => tool.approval.requires_plan_approval(),
    }
}

/// The approval that a read needs: one whose tool says so.
fn approval_of_read(
    state: &RunState,
    scene: &str,
    tool: &SceneTool,
    arguments: &Value,
) -> Option<RequiredApproval> {
    let asked =
        tool.approval.requires_call_approval() && state.settings().approval.calls != ApprovalScope::Never;
    asked.then(|| {
        let why = vec![format!("{} of {scene} reads what has to be approved", tool.name)];
        let tools = BTreeMap::from([(format!("{scene}.{}", tool.name), definition(tool))]);
        RequiredApproval { hash: call_hash(arguments, &tools), why, tools, ..RequiredApproval::default() }
    })
}

/// The reason of an approval or confirmation of a write that replaces a failed call of `tool`.
pub(super) fn stand_in_reason(tool: &str) -> String {
    format!("it stands in for {tool}, which failed")
}

/// Whether a write of `tool` in place of `original` needs an approver: one approved the original, or might have had to.
/// Otherwise the user's confirmation is enough.
fn needs_same_approver(state: &RunState, tool: &SceneTool, original: &CallState) -> bool {
    state.approval_of_step(original.step).is_some()
        || original.requested.approval.is_some()
        || tool.approval != ToolApproval::None
        || state.settings().approval.plans == ApprovalScope::Writes
        || state.queued.as_ref().is_some_and(|queued| queued.options.require_approval)
}

/// The problems of a plan's prepared calls, as far as their arguments are known.
pub(super) fn unfit_calls(catalogue: &Catalogue, plan: &Plan) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for step in &plan.steps {
        problems.extend(step.prepared_calls.iter().filter_map(|call| unfit_call(catalogue, step, call)));
    }
    problems
}

pub(super) fn unfit_call(catalogue: &Catalogue, step: &Step, call: &PreparedCall) -> Option<PlanProblem> {
    let tool = catalogue.get(&step.scene_name)?.tool(&call.tool)?;
    // The values of references are not known yet.
    let mut known = call.arguments.clone();
    known.retain(|_, value| Reference::of(value).is_none());
    let wrong = arguments::check_partial(tool, &known);
    if wrong.is_empty() {
        return None;
    }
    let what = format!(
        "step {}: what is known of the arguments of {} does not fit its parameters:\n- {}",
        step.step_number,
        call.tool,
        wrong.join("\n- ")
    );
    Some(PlanProblem::new("plan.prepared_arguments", what))
}

/// Which calls the plan being made should prepare. A plan that a person may have to approve shows what is known of its
/// writes, also where their arguments are incomplete.
pub(super) fn planned_calls(state: &RunState, catalogue: &Catalogue) -> PlannedCalls {
    match state.prepare() {
        PrepareMode::Always if state.prepares_everything() && !state.is_plan_only() => PlannedCalls::All,
        _ if may_be_shown(state, catalogue) => PlannedCalls::Writes,
        PrepareMode::Always if !state.is_plan_only() => PlannedCalls::All,
        PrepareMode::Always | PrepareMode::Approval | PrepareMode::Never => PlannedCalls::None,
    }
}

/// Whether the plan being made may need approval, so that it should include the known arguments of its
/// writes.
fn may_be_shown(state: &RunState, catalogue: &Catalogue) -> bool {
    if state.is_plan_only() || state.is_dry_run() || state.prepare() == PrepareMode::Never {
        return false;
    }
    let changed = state.planning.as_ref().is_some_and(|planning| planning.feedback.is_some());
    let asks = state.queued.as_ref().is_some_and(|queued| queued.options.require_approval);
    let declared = || {
        let mut tools = catalogue.all().flat_map(|scene| &scene.tools);
        tools.any(|tool| tool.effect == Effect::Write && tool.approval.requires_plan_approval())
    };
    changed
        || asks
        || match state.settings().approval.plans {
            ApprovalScope::Never => false,
            ApprovalScope::Writes => true,
            ApprovalScope::Declared => declared(),
        }
}

/// The event for an approval that lapsed because the tools it covers have changed.
pub fn lapsed_approval(state: &RunState, catalogue: &Catalogue) -> Option<Event> {
    if state.status.is_terminal() {
        return None;
    }
    if let (Some((number, approval)), Some(made), false) =
        (state.plan_approval(), state.plan(), state.has_begun())
        && !matches!(approval.decided, Some((Decision::No, _)))
    {
        let now = tool_definitions(catalogue, &made.plan);
        let why = changed_tools(&approval.needed.tools, &now);
        if !why.is_empty() {
            let hash = plan_hash(made, &now);
            let needed = RequiredApproval { hash, tools: now, ..approval.needed.clone() };
            return Some(lapsed(number, approval.matter, why, needed));
        }
    }
    for (number, approval) in state.approvals.iter().filter(|(_, approval)| !approval.lapsed) {
        let ApprovalSubject::Call { call } = approval.matter else { continue };
        let Some(call) = state.calls.get(&call).filter(|call| call.status == CallStatus::Requested) else {
            continue;
        };
        let now = BTreeMap::from([(key(call), definition_of(catalogue, &call.scene, &call.requested.tool))]);
        let why = changed_tools(&approval.needed.tools, &now);
        if !why.is_empty() && !matches!(approval.decided, Some((Decision::No, _))) {
            let hash = call_hash(&call.requested.arguments, &now);
            let needed = RequiredApproval { hash, tools: now, ..approval.needed.clone() };
            return Some(lapsed(*number, approval.matter, why, needed));
        }
    }
    lapsed_plan_coverage(state, catalogue)
}

/// The same for a write that has not begun and has no approval of its own, because the approval of its plan or of an
/// equal call covers it.
fn lapsed_plan_coverage(state: &RunState, catalogue: &Catalogue) -> Option<Event> {
    let asked = |number: u32| {
        let about = |approval: &Approval| {
            approval.matter == ApprovalSubject::Call { call: number } && !approval.lapsed
        };
        state.approvals.values().any(about)
    };
    for (number, call) in &state.calls {
        let waits = call.status == CallStatus::Requested && call.requested.effect == Effect::Write;
        // A compensating call needs no approval.
        if !waits || call.undoes.is_some() || call.requested.problem.is_some() || asked(*number) {
            continue;
        }
        let own = call.requested.approval.as_ref().map(|needed| &needed.tools);
        let of_plan = state.approval_of_step(call.step).map(|approval| &approval.needed.tools);
        let Some(was) = own.or(of_plan).and_then(|tools| tools.get(&key(call))) else { continue };
        let before = BTreeMap::from([(key(call), was.clone())]);
        let now = BTreeMap::from([(key(call), definition_of(catalogue, &call.scene, &call.requested.tool))]);
        let why = changed_tools(&before, &now);
        if !why.is_empty() {
            let hash = call_hash(&call.requested.arguments, &now);
            let reason = format!("{} of {} writes", call.requested.tool, call.scene);
            let other = "it has another definition than when it was approved".to_owned();
            let needed = RequiredApproval {
                hash,
                why: vec![reason, other],
                tools: now,
                ..RequiredApproval::default()
            };
            let matter = ApprovalSubject::Call { call: *number };
            return Some(lapsed(NO_APPROVAL, matter, why, needed));
        }
    }
    None
}

fn lapsed(approval: u32, matter: ApprovalSubject, why: Vec<String>, needed: RequiredApproval) -> Event {
    Event::ApprovalLapsed { approval, matter, why, needed, edited: None, read: None }
}

fn key(call: &CallState) -> String {
    format!("{}.{}", call.scene, call.requested.tool)
}

/// The changed tools, for people.
fn changed_tools(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
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

/// Returns whether a plan expects a write.
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
        let of_flow = scene_tools_of_flow(catalogue, &step.scene_name).map(|(_, tool)| tool);
        tools.chain(of_flow).filter(|tool| tool.effect == Effect::Write).map(move |tool| (step, tool))
    })
}

/// SHA-256 in hex of the definition of each tool that a plan expects, by `Scene.tool`; `gone` for a tool that is not there.
/// A flow has a definition, too, as `flow NAME`, and so have the tools that its nodes call.
pub fn tool_definitions(catalogue: &Catalogue, plan: &Plan) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for step in &plan.steps {
        let scene = &step.scene_name;
        for tool in &step.expected_tools {
            found.insert(format!("{scene}.{tool}"), definition_of(catalogue, scene, tool));
        }
        if step.kind == StepKind::Flow {
            let hash = catalogue.flow(scene).map_or_else(|| GONE.to_owned(), |flow| flow.hash());
            found.insert(format!("flow {scene}"), hash);
            for (scene, tool) in scene_tools_of_flow(catalogue, scene) {
                found.insert(format!("{}.{}", scene.name, tool.name), definition(tool));
            }
        }
    }
    found
}

fn definition_of(catalogue: &Catalogue, scene: &str, tool: &str) -> String {
    catalogue
        .get(scene)
        .and_then(|scene| scene.program_tool(tool))
        .map_or_else(|| GONE.to_owned(), definition)
}

/// A hash of a tool's definition: everything that models and people see of it, and what it calls.
pub(super) fn definition(tool: &SceneTool) -> String {
    hash(&serde_json::to_value(tool).unwrap_or_default())
}

/// A hash of what a call of the tool does: not of what models and people read about it.
pub fn effective_definition(tool: &SceneTool) -> String {
    hash(
        &json!({"name": tool.name, "parameters": tool.parameters, "effect": tool.effect, "repeat": tool.repeat,
        "source": tool.source}),
    )
}

fn plan_hash(made: &PlanMade, tools: &BTreeMap<String, String>) -> String {
    let mut covered = json!({"version": made.version, "steps": made.plan.steps, "tools": tools});
    if let Some(patch) = &made.patch {
        covered["patch"] = json!(patch);
    }
    hash(&covered)
}

pub(super) fn call_hash(arguments: &Value, tools: &BTreeMap<String, String>) -> String {
    hash(&json!({"arguments": exact_json(arguments), "tools": tools}))
}

pub(super) fn hash(value: &Value) -> String {
    let digest = Sha256::digest(canonical_json(value).as_bytes());
    HEXLOWER.encode(&digest)
}
