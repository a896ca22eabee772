//! Validation of plans. An invalid plan is never executed in part: it is returned to its author with every
//! problem.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::expect::check_expectations;
use super::{PROGRAM, Plan, Reference, SYNTHESIS, Step, StepKind};

/// The known scenes and the names of their tools: what a plan may refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownScenes {
    /// Scene name to the names of its tools.
    pub scenes: BTreeMap<String, BTreeSet<String>>,
    /// Those of them that are flows.
    pub flows: BTreeSet<String>,
    /// Those of them that summarise documents.
    pub summaries: BTreeSet<String>,
}

/// The limits of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Maximum number of steps that one plan may have (`planning.max_steps`).
    pub max_steps: u32,
}

/// Maximum number of inputs of a step of kind llm.
const MAX_INPUTS: usize = 32;

/// Largest inputs and output schema of such a step together, in bytes of their JSON.
const MAX_INPUT_BYTES: usize = 32 * 1024;

/// How far step numbers may be ahead of those used so far. Gaps are allowed, but an arbitrarily high number
/// must not use up the numbers of later replans.
const MAX_AHEAD: u32 = 1000;

/// One problem of a plan, described so that its author can fix it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProblem {
    /// Stable code, such as `plan.unknown_scene`.
    pub code: String,
    /// The problem, its place, and what would be right.
    pub message: String,
}

impl PlanProblem {
    /// A problem with its stable code and its message.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Repairs unambiguous mistakes: argument lists after tool names (`get_weather(city)`), scene and tool
/// names in another case, duplicates in `expected_tools`, null prepared arguments, and step numbers that
/// restart or begin at 0; the kind of a step follows from its scene's name. Such numbers are shifted so that the first is `last + 1` (`last` is the highest
/// number used so far), together with the references among the new steps. Idempotent.
pub fn normalise(plan: &mut Plan, known: &KnownScenes, last: u32) {
    let numbers: BTreeSet<u32> = plan.steps.iter().map(|s| s.step_number).collect();
    let shift = match numbers.first() {
        Some(first) if *first <= last => last.saturating_add(1) - first,
        _ => 0,
    };
    for step in &mut plan.steps {
        step.step_number = step.step_number.saturating_add(shift);
        step.depends_on_step = step
            .depends_on_step
            .iter()
            .map(|d| if numbers.contains(&d) { d.saturating_add(shift) } else { d })
            .collect();
        if let Some(name) = unique_match(known.scenes.keys(), &step.scene_name) {
            step.scene_name = name;
        }
        normalise_kind(step, known);
        for value in step.inputs.values_mut() {
            if let Some(found) = Reference::of(value).filter(|found| numbers.contains(&found.step)) {
                let step = found.step.saturating_add(shift);
                *value = Reference { step, ..found }.to_value();
            }
        }
        let tools = known.scenes.get(&step.scene_name);
        let mut seen = BTreeSet::new();
        let mut expected = Vec::new();
        for written in &step.expected_tools {
            let bare = written.split('(').next().unwrap_or(written).trim();
            let name =
                tools.and_then(|tools| unique_match(tools.iter(), bare)).unwrap_or_else(|| bare.to_owned());
            if seen.insert(name.clone()) {
                expected.push(name);
            }
        }
        step.expected_tools = expected;
        // Tools that may turn out unnecessary are among the expected ones.
        let optional =
            step.if_needed.iter().filter_map(|tool| unique_match(step.expected_tools.iter(), tool));
        step.if_needed = optional.collect::<BTreeSet<_>>().into_iter().collect();
        for expected in &mut step.expect {
            if let Some(name) = unique_match(step.expected_tools.iter(), &expected.tool) {
                expected.tool = name;
            }
        }
        for prepared in &mut step.prepared_calls {
            let bare = prepared.tool.split('(').next().unwrap_or_default().trim();
            if let Some(name) = unique_match(step.expected_tools.iter(), bare) {
                prepared.tool = name;
            }
            // Models write null for unknown values.
            prepared.arguments.retain(|_, value| !value.is_null());
            for value in prepared.arguments.values_mut() {
                if let Some(found) = Reference::of(value).filter(|found| numbers.contains(&found.step)) {
                    let step = found.step.saturating_add(shift);
                    *value = Reference { step, ..found }.to_value();
                }
            }
        }
    }
}

/// Sets the kind of a step, whatever its author wrote, and removes the fields that steps of this kind do not have.
fn normalise_kind(step: &mut Step, known: &KnownScenes) {
    step.kind = kind_of(step, known);
    normalise_synthesis(step);
    if step.kind == StepKind::Summary {
        step.expected_tools.clear();
        step.if_needed.clear();
        step.prepared_calls.clear();
    }
    normalise_program(step, known);
}

/// The kind of a step follows from its scene's name. A step without a known scene is of kind llm if its author says so,
/// or names the model as its scene or its only tool.
fn kind_of(step: &Step, known: &KnownScenes) -> StepKind {
    if known.flows.contains(&step.scene_name) {
        return StepKind::Flow;
    }
    if known.summaries.contains(&step.scene_name) {
        return StepKind::Summary;
    }
    let is_program = step.kind == StepKind::Code || step.scene_name.trim().eq_ignore_ascii_case(PROGRAM);
    if is_program && !known.scenes.contains_key(&step.scene_name) {
        return StepKind::Code;
    }
    let names_model = |name: &str| name.trim().eq_ignore_ascii_case(SYNTHESIS);
    let tools_name_model = matches!(step.expected_tools.as_slice(), [tool] if names_model(tool));
    let is_model = step.kind == StepKind::Llm || names_model(&step.scene_name) || tools_name_model;
    match is_model && !known.scenes.contains_key(&step.scene_name) {
        true => StepKind::Llm,
        false => StepKind::Scene,
    }
}

/// A step of kind llm has a schema of its output and no tools; any other step has no inputs and no output.
fn normalise_synthesis(step: &mut Step) {
    if step.kind != StepKind::Llm {
        step.inputs.clear();
        step.output = None;
        return;
    }
    SYNTHESIS.clone_into(&mut step.scene_name);
    step.expected_tools.clear();
    step.inputs.retain(|_, value| !value.is_null());
    let text = || json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
    step.output.get_or_insert_with(text);
}

/// A step of kind code has scenes and nothing prepared; any other step has one scene.
fn normalise_program(step: &mut Step, known: &KnownScenes) {
    if step.kind != StepKind::Code {
        step.scenes.clear();
        return;
    }
    PROGRAM.clone_into(&mut step.scene_name);
    step.expected_tools.clear();
    step.if_needed.clear();
    step.prepared_calls.clear();
    let named = step
        .scenes
        .iter()
        .map(|name| unique_match(known.scenes.keys(), name).unwrap_or_else(|| name.clone()));
    let mut seen = BTreeSet::new();
    step.scenes = named.filter(|name| seen.insert(name.clone())).collect();
}

/// The only name that equals `written` apart from case and surrounding whitespace.
fn unique_match<'a>(names: impl Iterator<Item = &'a String>, written: &str) -> Option<String> {
    let written = written.trim();
    let mut found = names.filter(|name| name.eq_ignore_ascii_case(written));
    match (found.next(), found.next()) {
        (Some(one), None) => Some(one.clone()),
        _ => None,
    }
}

/// All problems of `plan`: those of its [structure](validate_structure), and unknown names. Empty if it may
/// run.
pub fn validate(
    plan: &Plan,
    known: &KnownScenes,
    limits: PlanLimits,
    finished: &BTreeSet<u32>,
    last: u32,
) -> Vec<PlanProblem> {
    let mut problems = validate_structure(plan, limits, finished, last);
    for step in &plan.steps {
        check_names(step, known, &mut problems);
        check_references(plan, step, finished, &mut problems);
    }
    problems
}

/// Unknown names, and steps without a purpose.
pub fn name_problems(plan: &Plan, known: &KnownScenes) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    plan.steps.iter().for_each(|step| check_names(step, known, &mut problems));
    problems
}

/// References of prepared calls to steps that will not have completed by then. `finished` are the numbers of completed
/// steps.
pub fn reference_problems(plan: &Plan, finished: &BTreeSet<u32>) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    plan.steps.iter().for_each(|step| check_references(plan, step, finished, &mut problems));
    problems
}

/// The problems that can be detected without a catalogue: consistency of `needs_execution` and `steps`,
/// their count, their numbering and their dependencies. `finished` are the numbers of completed steps of
/// earlier versions: a replan may depend on them, and may not reuse any number up to `last`.
pub fn validate_structure(
    plan: &Plan,
    limits: PlanLimits,
    finished: &BTreeSet<u32>,
    last: u32,
) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    match (plan.needs_execution, plan.steps.is_empty()) {
        (true, true) => problems.push(PlanProblem::new(
            "plan.no_steps",
            "needs_execution is true but steps is empty: give at least one step, or set needs_execution to false",
        )),
        (false, false) => problems.push(PlanProblem::new(
            "plan.steps_without_execution",
            format!(
                "needs_execution is false but there are {} steps: set needs_execution to true, or give no steps",
                plan.steps.len()
            ),
        )),
        _ => {}
    }
    if plan.steps.len() > limits.max_steps as usize {
        problems.push(PlanProblem::new(
            "plan.too_many_steps",
            format!("{} steps, but at most {} are allowed", plan.steps.len(), limits.max_steps),
        ));
    }
    let numbers = check_numbers(plan, last, &mut problems);
    check_dependencies(plan, &numbers, finished, &mut problems);
    problems.extend(find_cycles(&plan.steps));
    problems
}

/// Checks that the new steps have unused numbers; returns the valid ones.
fn check_numbers(plan: &Plan, last: u32, problems: &mut Vec<PlanProblem>) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for step in &plan.steps {
        let n = step.step_number;
        if n == 0 {
            problems.push(PlanProblem::new("plan.bad_number", "step_number 0: steps are numbered from 1"));
        } else if n > last.saturating_add(MAX_AHEAD) {
            problems.push(PlanProblem::new(
                "plan.bad_number",
                format!("step_number {n} is too high: number the steps from {}", last.saturating_add(1)),
            ));
        } else if n <= last {
            problems.push(PlanProblem::new(
                "plan.used_number",
                format!(
                    "step_number {n} was used by an earlier version: new steps start at {}",
                    last.saturating_add(1)
                ),
            ));
        } else if !numbers.insert(n) {
            problems.push(PlanProblem::new("plan.repeated_number", format!("step_number {n} is used twice")));
        }
    }
    numbers
}

/// Checks that each step depends on other steps of the plan or on steps that completed.
fn check_dependencies(
    plan: &Plan,
    numbers: &BTreeSet<u32>,
    finished: &BTreeSet<u32>,
    problems: &mut Vec<PlanProblem>,
) {
    for step in &plan.steps {
        for dependency in step.depends_on_step.iter() {
            let n = step.step_number;
            if dependency == n {
                problems
                    .push(PlanProblem::new("plan.self_dependency", format!("step {n} depends on itself")));
            } else if !numbers.contains(&dependency) && !finished.contains(&dependency) {
                problems.push(PlanProblem::new(
                    "plan.unknown_dependency",
                    format!(
                        "step {n} depends on step {dependency}, which does not exist or did not complete"
                    ),
                ));
            }
        }
    }
}

/// Checks that prepared calls refer only to steps that have completed by then.
fn check_references(plan: &Plan, step: &Step, finished: &BTreeSet<u32>, problems: &mut Vec<PlanProblem>) {
    let n = step.step_number;
    let calls = step.prepared_calls.iter().flat_map(|prepared| prepared.references());
    for found in calls.chain(step.input_references()) {
        if !finished.contains(&found.step) && !depends_on(plan, n, found.step) {
            problems.push(PlanProblem::new(
                "plan.reference",
                format!(
                    "step {n} refers to {found}, which it does not depend on: add step {} to its depends_on_step",
                    found.step
                ),
            ));
        }
    }
}

/// Returns whether the step `number` depends on `earlier`, directly or through other steps of the plan.
pub fn depends_on(plan: &Plan, number: u32, earlier: u32) -> bool {
    let mut open = vec![number];
    let mut seen = BTreeSet::new();
    while let Some(number) = open.pop() {
        let found = plan.steps.iter().find(|step| step.step_number == number);
        for dependency in found.iter().flat_map(|step| step.depends_on_step.iter()) {
            if dependency == earlier {
                return true;
            }
            if seen.insert(dependency) {
                open.push(dependency);
            }
        }
    }
    false
}

fn check_names(step: &Step, known: &KnownScenes, problems: &mut Vec<PlanProblem>) {
    let n = step.step_number;
    if step.purpose.trim().is_empty() {
        problems.push(PlanProblem::new(
            "plan.no_purpose",
            format!("step {n} has no purpose: say what the scene is to do"),
        ));
    }
    check_expectations(step, problems);
    for prepared in step.prepared_calls.iter().filter(|call| !step.expected_tools.contains(&call.tool)) {
        problems.push(PlanProblem::new(
            "plan.prepared_tool",
            format!("step {n} prepares a call of {:?}, which is not among its expected_tools", prepared.tool),
        ));
    }
    match step.kind {
        StepKind::Llm => return check_inputs(step, problems),
        StepKind::Code => return check_scenes(step, known, problems),
        StepKind::Scene | StepKind::Flow | StepKind::Summary | StepKind::Node => {}
    }
    let Some(tools) = known.scenes.get(&step.scene_name) else {
        let all: Vec<&str> = known.scenes.keys().map(String::as_str).collect();
        problems.push(PlanProblem::new(
            "plan.unknown_scene",
            format!("step {n}: there is no scene {:?}; the scenes are {}", step.scene_name, all.join(", ")),
        ));
        return;
    };
    for tool in &step.expected_tools {
        if !tools.contains(tool) {
            let all: Vec<&str> = tools.iter().map(String::as_str).collect();
            problems.push(PlanProblem::new(
                "plan.unknown_tool",
                format!(
                    "step {n}: scene {} has no tool {tool:?}; its tools are {}",
                    step.scene_name,
                    all.join(", ")
                ),
            ));
        }
    }
}

/// A program has scenes with tools to call.
fn check_scenes(step: &Step, known: &KnownScenes, problems: &mut Vec<PlanProblem>) {
    let n = step.step_number;
    if step.scenes.is_empty() {
        let what = format!("step {n} is a program without scenes: name in scenes those whose tools it calls");
        problems.push(PlanProblem::new("plan.no_scenes", what));
    }
    for name in &step.scenes {
        let has_tools = known.scenes.get(name).map(|tools| !tools.is_empty());
        if has_tools == Some(true) && !known.flows.contains(name) {
            continue;
        }
        let all: Vec<&str> =
            known.scenes.keys().filter(|name| !known.flows.contains(*name)).map(String::as_str).collect();
        problems.push(PlanProblem::new(
            "plan.unknown_scene",
            format!("step {n}: a program cannot call tools of {name:?}; the scenes are {}", all.join(", ")),
        ));
    }
}

/// Checks the bounds of the inputs and the output of a step of kind llm.
fn check_inputs(step: &Step, problems: &mut Vec<PlanProblem>) {
    let n = step.step_number;
    if step.inputs.len() > MAX_INPUTS {
        let what = format!("step {n} has {} inputs, and at most {MAX_INPUTS} are allowed", step.inputs.len());
        problems.push(PlanProblem::new("plan.inputs", what));
    }
    let bytes = serde_json::to_vec(&(&step.inputs, &step.output)).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_INPUT_BYTES {
        let what = format!(
            "the inputs and the output of step {n} have {bytes} bytes of JSON, and at most {MAX_INPUT_BYTES} are \
             allowed: refer to results of earlier steps"
        );
        problems.push(PlanProblem::new("plan.inputs", what));
    }
}

/// One problem for each dependency cycle.
pub fn find_cycles(steps: &[Step]) -> Vec<PlanProblem> {
    let mut graph = DiGraphMap::<u32, ()>::new();
    for step in steps {
        graph.add_node(step.step_number);
        for dependency in step.depends_on_step.iter() {
            if dependency != step.step_number {
                graph.add_edge(dependency, step.step_number, ());
            }
        }
    }
    let mut found: Vec<Vec<u32>> = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1).collect();
    for group in &mut found {
        group.sort_unstable();
    }
    found.sort();
    found
        .into_iter()
        .map(|group| {
            let list: Vec<String> = group.iter().map(u32::to_string).collect();
            PlanProblem::new(
                "plan.circular",
                format!("steps {} depend on one another in a circle", list.join(", ")),
            )
        })
        .collect()
}
