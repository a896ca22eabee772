//! The difference between two versions of a plan, for people.

use std::collections::BTreeMap;

use super::format::object;
use super::{Plan, PreparedCall, Step, StepExpectation};
use crate::invisible::one_line;

/// The changes from `old` to `new`, one line each, beginning with `+`, `-` or `~`; empty if nothing
/// changed. Steps match if their contents are equal, whatever their numbers; otherwise if number and scene
/// are equal.
pub fn diff(old: &Plan, new: &Plan) -> Vec<String> {
    let pairs = pair_steps(&old.steps, &new.steps);
    let mut lines = Vec::new();
    for (at, step) in old.steps.iter().enumerate() {
        if !pairs.contains(&Some(at)) {
            lines.push(format!("- {}", describe_step(step)));
        }
    }
    let numbers: BTreeMap<u32, u32> = pairs
        .iter()
        .zip(&new.steps)
        .filter_map(|(before, step)| Some((old.steps.get((*before)?)?.step_number, step.step_number)))
        .collect();
    for (step, before) in new.steps.iter().zip(&pairs) {
        match before.and_then(|at| old.steps.get(at)) {
            None => lines.push(format!("+ {}", describe_step(step))),
            Some(before) => lines.extend(changes(before, step, &old.steps, &numbers)),
        }
    }
    lines
}

/// For each new step, the index of the matching old one, if any.
fn pair_steps(old: &[Step], new: &[Step]) -> Vec<Option<usize>> {
    let mut pairs: Vec<Option<usize>> = vec![None; new.len()];
    let says = |a: &Step, b: &Step| {
        a.kind == b.kind
            && a.scene_name == b.scene_name
            && a.purpose.trim() == b.purpose.trim()
            && a.expected_tools == b.expected_tools
    };
    let same = |a: &Step, b: &Step| {
        a.step_number == b.step_number && (a.kind, &a.scene_name) == (b.kind, &b.scene_name)
    };
    let mut pair = |is: &dyn Fn(&Step, &Step) -> bool| {
        for (at, step) in new.iter().enumerate() {
            if pairs[at].is_none() {
                let free = |n: &usize| !pairs.contains(&Some(*n));
                pairs[at] = (0..old.len()).filter(free).find(|n| is(&old[*n], step));
            }
        }
    };
    pair(&|a, b| same(a, b) && says(a, b));
    pair(&says);
    pair(&same);
    pairs
}

fn describe_step(step: &Step) -> String {
    let mut line =
        format!("step {} {}: {}", step.step_number, one_line(step.label()), one_line(&step.purpose));
    if !step.expected_tools.is_empty() {
        line.push_str(&format!(" [{}]", named(&step.expected_tools).join(", ")));
    }
    let after = describe_dependencies(step);
    if !after.is_empty() {
        line.push_str(&format!(", after {after}"));
    }
    for prepared in &step.prepared_calls {
        line.push_str(&format!("; {}", describe_call(prepared)));
    }
    for expected in expectations(step) {
        line.push_str(&format!("; expects {expected}"));
    }
    if let Some(values) = values_of_model(step) {
        line.push_str(&format!("; {values}"));
    }
    line
}

/// The inputs and the output of a step of kind llm.
fn values_of_model(step: &Step) -> Option<String> {
    let output = step.output.as_ref()?;
    Some(one_line(&format!("{} -> {output}", object(&step.inputs))))
}

/// The expectations of a step about the results of its tools, one line for each tool.
fn expectations(step: &Step) -> Vec<String> {
    let line = |expected: &StepExpectation| {
        format!("{}: {}", one_line(&expected.tool), one_line(&expected.describe()))
    };
    step.expect.iter().map(line).collect()
}

fn describe_dependencies(step: &Step) -> String {
    step.depends_on_step.iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// The changes of one step; `numbers` maps the numbers of the remaining `old` steps to their new ones.
fn changes(before: &Step, now: &Step, old: &[Step], numbers: &BTreeMap<u32, u32>) -> Vec<String> {
    let mut lines = Vec::new();
    let head = format!("~ step {} {}", now.step_number, one_line(now.label()));
    if before.step_number != now.step_number {
        lines.push(format!("{head}: was step {}", before.step_number));
    }
    if before.purpose.trim() != now.purpose.trim() {
        let (old, new) = (one_line(&before.purpose), one_line(&now.purpose));
        lines.push(format!("{head}: purpose {old:?} -> {new:?}"));
    }
    let added: Vec<&str> = only_in(&now.expected_tools, &before.expected_tools);
    let removed: Vec<&str> = only_in(&before.expected_tools, &now.expected_tools);
    if !added.is_empty() || !removed.is_empty() {
        let signed = added.iter().map(|tool| format!("+{}", one_line(tool)));
        let signed: Vec<String> =
            signed.chain(removed.iter().map(|tool| format!("-{}", one_line(tool)))).collect();
        lines.push(format!("{head}: tools {}", signed.join(" ")));
    }
    let calls = |step: &Step| step.prepared_calls.iter().map(describe_call).collect::<Vec<_>>();
    let (were, are) = (calls(before), calls(now));
    if were != are {
        let signed = only_in(&are, &were).into_iter().map(|call| format!("+{call}"));
        let signed = signed.chain(only_in(&were, &are).into_iter().map(|call| format!("-{call}")));
        let changes: Vec<String> = signed.collect();
        // The same calls in another order, or a call duplicated.
        let changes = if changes.is_empty() { are.join(", ") } else { changes.join(" ") };
        lines.push(format!("{head}: calls {changes}"));
    }
    if let (were, Some(are)) = (values_of_model(before), values_of_model(now))
        && were.as_ref() != Some(&are)
    {
        lines.push(format!("{head}: {are}"));
    }
    let (were, are) = (expectations(before), expectations(now));
    if were != are {
        let is = if are.is_empty() { "nothing".to_owned() } else { are.join("; ") };
        lines.push(format!("{head}: expects {is}"));
    }
    // Uses the new numbers. A removed step is marked as such, since another may have its number.
    let moved = |number: u32| match numbers.get(&number) {
        Some(now) => now.to_string(),
        None if old.iter().any(|step| step.step_number == number) => format!("{number}, which is gone"),
        None => number.to_string(),
    };
    let listed = |mut all: Vec<String>| {
        all.sort();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    };
    let was = listed(before.depends_on_step.iter().map(moved).collect());
    let is = listed(now.depends_on_step.iter().map(|number| number.to_string()).collect());
    if was != is {
        lines.push(format!("{head}: after {was} -> {is}"));
    }
    lines
}

fn describe_call(prepared: &PreparedCall) -> String {
    format!("{} {}", one_line(&prepared.tool), object(&prepared.arguments))
}

fn only_in<'a>(these: &'a [String], others: &[String]) -> Vec<&'a str> {
    these.iter().filter(|tool| !others.contains(tool)).map(String::as_str).collect()
}

fn named(tools: &[String]) -> Vec<String> {
    tools.iter().map(|tool| one_line(tool)).collect()
}
