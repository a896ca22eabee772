//! What makes a plan valid. A plan that fails is never run in part: it goes back to its maker with
//! every problem named.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use serde::{Deserialize, Serialize};

use super::{Plan, Step};

/// The scenes there are and the names of their tools: what a plan may speak of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Scene name to the names of its tools.
    pub scenes: BTreeMap<String, BTreeSet<String>>,
}

/// The bounds a plan is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most steps that one plan may have (`planning.max_steps`).
    pub max_steps: u32,
}

/// How far step numbers may run ahead of those used so far: gaps are allowed, but a number that a
/// maker made up may not use up the numbers of the re-plans to come.
const MAX_AHEAD: u32 = 1000;

/// One thing that is wrong with a plan, told so that its maker can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Stable code, such as `plan.unknown_scene`.
    pub code: String,
    /// What is wrong, where, and what would be right.
    pub message: String,
}

impl Problem {
    /// A problem with its stable code and its message.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Repairs what can be understood in one way only: argument lists behind tool names
/// (`get_weather(city)`), scene and tool names in another case, repeats among `expected_tools`, prepared
/// arguments that are null, and
/// numbers that start again (`last` is the highest number used so far) or start from 0: all are moved
/// so that the first is `last + 1`, with the references among the new steps. Doing it twice changes
/// nothing more.
pub fn normalise(plan: &mut Plan, known: &Known, last: u32) {
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
        if let Some(name) = only_match(known.scenes.keys(), &step.scene_name) {
            step.scene_name = name;
        }
        let tools = known.scenes.get(&step.scene_name);
        let mut seen = BTreeSet::new();
        let mut expected = Vec::new();
        for written in &step.expected_tools {
            let bare = written.split('(').next().unwrap_or(written).trim();
            let name =
                tools.and_then(|tools| only_match(tools.iter(), bare)).unwrap_or_else(|| bare.to_owned());
            if seen.insert(name.clone()) {
                expected.push(name);
            }
        }
        step.expected_tools = expected;
        for prepared in &mut step.prepared_calls {
            let bare = prepared.tool.split('(').next().unwrap_or_default().trim();
            if let Some(name) = only_match(step.expected_tools.iter(), bare) {
                prepared.tool = name;
            }
            // Models say null for what they do not know.
            prepared.arguments.retain(|_, value| !value.is_null());
        }
    }
}

/// The one name that equals `written` but for case and surrounding blanks.
fn only_match<'a>(names: impl Iterator<Item = &'a String>, written: &str) -> Option<String> {
    let written = written.trim();
    let mut found = names.filter(|name| name.eq_ignore_ascii_case(written));
    match (found.next(), found.next()) {
        (Some(one), None) => Some(one.clone()),
        _ => None,
    }
}

/// Every problem of `plan`: its [`structure`], and names that do not exist. Empty when it may run.
pub fn validate(
    plan: &Plan,
    known: &Known,
    limits: Limits,
    finished: &BTreeSet<u32>,
    last: u32,
) -> Vec<Problem> {
    let mut problems = structure(plan, limits, finished, last);
    for step in &plan.steps {
        names(step, known, &mut problems);
    }
    problems
}

/// The problems that can be told without a catalogue: agreement of `needs_execution` and `steps`,
/// their number, their numbering and their dependencies. `finished` are the numbers of completed
/// steps of earlier versions: a re-plan may depend on them and may not reuse any number up to `last`.
pub fn structure(plan: &Plan, limits: Limits, finished: &BTreeSet<u32>, last: u32) -> Vec<Problem> {
    let mut problems = Vec::new();
    match (plan.needs_execution, plan.steps.is_empty()) {
        (true, true) => problems.push(Problem::new(
            "plan.no_steps",
            "needs_execution is true but steps is empty: give at least one step, or set needs_execution to false",
        )),
        (false, false) => problems.push(Problem::new(
            "plan.steps_without_execution",
            format!(
                "needs_execution is false but there are {} steps: set needs_execution to true, or give no steps",
                plan.steps.len()
            ),
        )),
        _ => {}
    }
    if plan.steps.len() > limits.max_steps as usize {
        problems.push(Problem::new(
            "plan.too_many_steps",
            format!("{} steps, but at most {} are allowed", plan.steps.len(), limits.max_steps),
        ));
    }
    let mut numbers = BTreeSet::new();
    for step in &plan.steps {
        let n = step.step_number;
        if n == 0 {
            problems.push(Problem::new("plan.bad_number", "step_number 0: steps are numbered from 1"));
        } else if n > last.saturating_add(MAX_AHEAD) {
            problems.push(Problem::new(
                "plan.bad_number",
                format!("step_number {n} is too high: number the steps from {}", last.saturating_add(1)),
            ));
        } else if n <= last {
            problems.push(Problem::new(
                "plan.used_number",
                format!(
                    "step_number {n} was used by an earlier version: new steps start at {}",
                    last.saturating_add(1)
                ),
            ));
        } else if !numbers.insert(n) {
            problems.push(Problem::new("plan.repeated_number", format!("step_number {n} is used twice")));
        }
    }
    for step in &plan.steps {
        for dependency in step.depends_on_step.iter() {
            let n = step.step_number;
            if dependency == n {
                problems.push(Problem::new("plan.self_dependency", format!("step {n} depends on itself")));
            } else if !numbers.contains(&dependency) && !finished.contains(&dependency) {
                problems.push(Problem::new(
                    "plan.unknown_dependency",
                    format!(
                        "step {n} depends on step {dependency}, which does not exist or did not complete"
                    ),
                ));
            }
        }
    }
    problems.extend(circles(plan));
    problems
}

fn names(step: &Step, known: &Known, problems: &mut Vec<Problem>) {
    let n = step.step_number;
    if step.purpose.trim().is_empty() {
        problems.push(Problem::new(
            "plan.no_purpose",
            format!("step {n} has no purpose: say what the scene is to do"),
        ));
    }
    for prepared in step.prepared_calls.iter().filter(|call| !step.expected_tools.contains(&call.tool)) {
        problems.push(Problem::new(
            "plan.prepared_tool",
            format!("step {n} prepares a call of {:?}, which is not among its expected_tools", prepared.tool),
        ));
    }
    let Some(tools) = known.scenes.get(&step.scene_name) else {
        let all: Vec<&str> = known.scenes.keys().map(String::as_str).collect();
        problems.push(Problem::new(
            "plan.unknown_scene",
            format!("step {n}: there is no scene {:?}; the scenes are {}", step.scene_name, all.join(", ")),
        ));
        return;
    };
    for tool in &step.expected_tools {
        if !tools.contains(tool) {
            let all: Vec<&str> = tools.iter().map(String::as_str).collect();
            problems.push(Problem::new(
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

/// One problem for each group of steps that wait for one another in a circle.
fn circles(plan: &Plan) -> Vec<Problem> {
    let mut graph = DiGraphMap::<u32, ()>::new();
    for step in &plan.steps {
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
            Problem::new(
                "plan.circular",
                format!("steps {} depend on one another in a circle", list.join(", ")),
            )
        })
        .collect()
}
