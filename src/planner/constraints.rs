//! Constraints of a request: every plan and every call of its run keeps to them.

use std::collections::BTreeSet;

use serde_json::json;

use crate::flow::{Flow, Node, NodeKind};
use crate::llm::sections;
use crate::plan::{Plan, PlanProblem, StepKind};
use crate::run::{Effect, Fault, PlanConstraints, PlanGuidance, RunState};
use crate::scene::{Catalogue, Scene, SceneTool};

/// Maximum number of notes, and of characters of each.
const MAX_NOTES: usize = 16;
const MAX_NOTE_CHARS: usize = 500;
/// Maximum number of scenes of which a planner is shown what is not allowed.
const MAX_NOT_ALLOWED: usize = 24;
/// Maximum number of names in one list.
const MAX_NAMES: usize = 100;

const RULE: &str = "Whatever the request says, the plan keeps to these; what they do not allow is named in unserved. \
     <not_allowed>, if it is there, lists what exists and may not be used here.";

/// The section with the tools that are switched off.
pub(super) const SWITCHED_OFF: &str = "switched_off";
const SWITCHED_OFF_RULE: &str = "These tools are switched off now, and no other tool takes their place: what the request asks \
     of them is not planned. It is named in unserved and in unavailable, where these can be given.";

const FUNCTIONS_OFF_RULE: &str = "These functions are switched off now, and no other function takes their place: the program \
     calls none of them. Whatever else the request asks is done, and answer_text says what is not available now.";

const PROGRAM_RULE: &str = "Whatever the request says, the program keeps to these, and answer_text says what they do not allow. \
     <not_allowed>, if it is there, lists functions that exist and may not be called here.";

/// The code of what a request's constraints do not allow.
pub(super) const FORBIDDEN: &str = "plan.constraint";

fn guidance(state: &RunState) -> Option<&PlanGuidance> {
    state.queued.as_ref().and_then(|queued| queued.guidance.as_deref())
}

fn constraints(state: &RunState) -> Option<&PlanConstraints> {
    guidance(state).map(|guidance| &guidance.constraints).filter(|constraints| !constraints.is_empty())
}

/// Why the constraints of a request cannot be kept: names that are not in the catalogue, which would forbid nothing, or lists
/// that are too long.
///
/// # Errors
/// `request.constraints` with the reason.
pub fn check_constraints(catalogue: &Catalogue, asked: &PlanConstraints) -> Result<(), Fault> {
    let refuse = |what: String| Err(Fault::new("request.constraints", what));
    if asked.notes.len() > MAX_NOTES || asked.notes.iter().any(|note| note.chars().count() > MAX_NOTE_CHARS) {
        let what = format!("`constraints.notes`: at most {MAX_NOTES} of at most {MAX_NOTE_CHARS} characters");
        return refuse(what);
    }
    let lists = [&asked.only_scenes, &asked.without_scenes, &asked.without_tools];
    if lists.iter().any(|names| names.len() > MAX_NAMES) {
        return refuse(format!("`constraints`: at most {MAX_NAMES} names in one list"));
    }
    if asked.max_steps == Some(0) {
        return refuse("`constraints.max_steps` must be at least 1".to_owned());
    }
    for scene in asked.only_scenes.iter().chain(&asked.without_scenes) {
        if catalogue.get(scene).is_none() {
            return refuse(format!(
                "`constraints`: there is no scene {scene:?}; GET /api/scenes and `proscenium check` list all"
            ));
        }
    }
    for name in &asked.without_tools {
        let known = name.split_once('.').and_then(|(scene, tool)| catalogue.get(scene)?.tool(tool));
        if known.is_none() {
            let what = format!(
                "`constraints.without_tools`: there is no tool {name:?}; write Scene.Tool, as GET /api/scenes and \
                 `proscenium tools` list them"
            );
            return refuse(what);
        }
    }
    Ok(())
}

/// Returns what a plan contains that the request's constraints do not allow.
pub(super) fn constraint_problems(state: &RunState, catalogue: &Catalogue, plan: &Plan) -> Vec<PlanProblem> {
    let Some(constraints) = constraints(state) else { return Vec::new() };
    let mut problems = Vec::new();
    for step in &plan.steps {
        let (number, name) = (step.step_number, &step.scene_name);
        // A step of kind llm uses no scene.
        if step.kind == StepKind::Llm {
            continue;
        }
        // The step's program is offered only the tools that are allowed.
        if step.kind == StepKind::Code {
            for name in step.scenes.iter().filter(|name| !constraints.allows_scene(name)) {
                let what =
                    format!("step {number}: the constraints of the request do not allow the scene {name}");
                problems.push(PlanProblem::new(FORBIDDEN, what));
            }
            continue;
        }
        if !constraints.allows_scene(name) {
            let what = format!("step {number}: the constraints of the request do not allow the scene {name}");
            problems.push(PlanProblem::new(FORBIDDEN, what));
            continue;
        }
        let called = step.prepared_calls.iter().map(|call| &call.tool);
        let scene = catalogue.get(name);
        for tool in step.expected_tools.iter().chain(called).filter_map(|tool| scene?.tool(tool)) {
            if !constraints.allows_tool(name, &tool.name, tool.effect) {
                let tool = &tool.name;
                let what =
                    format!("step {number}: the constraints of the request do not allow {tool} of {name}");
                problems.push(PlanProblem::new(FORBIDDEN, what));
            }
        }
    }
    let begun = state.plan_steps().filter(|(_, step)| !step.is_untouched()).count();
    if let Some(max) = constraints.max_steps.filter(|max| begun + plan.steps.len() > *max as usize) {
        let what =
            format!("the constraints of the request allow {max} steps in all, {begun} of which were begun");
        problems.push(PlanProblem::new(FORBIDDEN, what));
    }
    problems
}

/// The nodes of a flow whose tools the request's constraints do not allow.
pub(super) fn forbidden_nodes(state: &RunState, catalogue: &Catalogue, flow: &Flow) -> BTreeSet<String> {
    let Some(constraints) = constraints(state) else { return BTreeSet::new() };
    let is_forbidden = |node: &&Node| match &node.kind {
        NodeKind::Tool { scene, tool, .. } => {
            let effect = catalogue.get(scene).and_then(|scene| scene.tool(tool)).map(|tool| tool.effect);
            // An unknown tool does not count as a read.
            !constraints.allows_tool(scene, tool, effect.unwrap_or(Effect::Write))
        }
        _ => false,
    };
    flow.nodes.iter().filter(is_forbidden).map(|node| node.name.clone()).collect()
}

/// The tools of scenes that a flow of this name calls.
pub(super) fn scene_tools_of_flow<'a>(
    catalogue: &'a Catalogue,
    flow: &str,
) -> impl Iterator<Item = (&'a Scene, &'a SceneTool)> {
    let tools = catalogue.flow(flow).into_iter().flat_map(|flow| flow.tools());
    tools.filter_map(|(scene, tool)| {
        let scene = catalogue.get(scene)?;
        Some((scene.as_ref(), scene.tool(tool)?))
    })
}

/// Why a call may not be made, if the request's constraints forbid it.
pub(super) fn forbidden_call(state: &RunState, scene: &Scene, tool: &SceneTool) -> Option<Fault> {
    let allowed = constraints(state)?.allows_tool(&scene.name, &tool.name, tool.effect);
    let what = || format!("the constraints of the request do not allow {} of {}", tool.name, scene.name);
    (!allowed).then(|| Fault::new("tool.constraint", what()))
}

/// The scenes and tools that the request's constraints allow; `None` if they allow all.
pub(super) fn allowed(state: &RunState, catalogue: &Catalogue) -> Option<Vec<Scene>> {
    let constraints = constraints(state)?;
    let scenes = catalogue.iter().filter(|scene| constraints.allows_scene(&scene.name));
    let narrowed = scenes.map(|scene| {
        let mut scene = Scene::clone(scene);
        scene.tools.retain(|tool| constraints.allows_tool(&scene.name, &tool.name, tool.effect));
        scene
    });
    Some(narrowed.collect())
}

/// The scenes with the tools that the request's constraints do not allow, so that a planner recognises what the request
/// asks for in vain; empty if there are too many to show.
pub(super) fn not_allowed(state: &RunState, catalogue: &Catalogue) -> Vec<Scene> {
    let Some(constraints) = constraints(state) else { return Vec::new() };
    let is_refused =
        |scene: &Scene, tool: &SceneTool| !constraints.allows_tool(&scene.name, &tool.name, tool.effect);
    let scenes: Vec<Scene> =
        catalogue.iter().filter_map(|scene| scene.only(|tool| is_refused(scene, tool))).collect();
    if scenes.len() > MAX_NOT_ALLOWED { Vec::new() } else { scenes }
}

/// Adds the tools that are switched off, so that the planner names what the request asks of them and plans nothing in
/// their place.
pub(super) fn push_switched_off(state: &RunState, lines: &str, data: &mut String) {
    if !lines.is_empty() && state.settings().has_rules(11) {
        sections::push(data, SWITCHED_OFF, &format!("{SWITCHED_OFF_RULE}\n{lines}"));
    }
}

/// Like [`push_switched_off`], for the author of a program: `stubs` are the functions that are switched off.
pub(super) fn push_functions_off(state: &RunState, stubs: &str, data: &mut String) {
    if !stubs.is_empty() && state.settings().has_rules(13) {
        sections::push(data, SWITCHED_OFF, &format!("{FUNCTIONS_OFF_RULE}\n{stubs}"));
    }
}

/// Adds the request's constraints for the author of a program: `stubs` are the functions that they do not allow.
pub(super) fn push_program_constraints(state: &RunState, stubs: &str, data: &mut String) {
    let Some(constraints) = constraints(state).filter(|_| state.settings().has_rules(14)) else { return };
    sections::push(data, "constraints", &format!("{PROGRAM_RULE}\n{}", json!(constraints)));
    if !stubs.is_empty() {
        sections::push(data, "not_allowed", stubs);
    }
}

/// The scenes with their tools that are switched off, as far as they are shown.
pub(super) fn shown_as_switched_off(catalogue: &Catalogue) -> impl Iterator<Item = &Scene> {
    catalogue.switched_off().iter().take(MAX_NOT_ALLOWED)
}

/// Adds the request's constraints and the state that it gives, for a planner.
pub(super) fn push_guidance(state: &RunState, data: &mut String) {
    if let Some(constraints) = constraints(state) {
        sections::push(data, "constraints", &format!("{RULE}\n{}", json!(constraints)));
    }
    push_current_state(state, data);
}

/// Adds the state that the request gives.
pub(super) fn push_current_state(state: &RunState, data: &mut String) {
    if let Some(given) = guidance(state).and_then(|guidance| guidance.current_state.as_ref()) {
        sections::push(data, "current_state", &given.to_string());
    }
}

/// The state that the request gives, if the user answers for it.
pub(super) fn trusted_state(state: &RunState) -> Option<&serde_json::Value> {
    guidance(state).filter(|guidance| guidance.is_vouched)?.current_state.as_ref()
}
