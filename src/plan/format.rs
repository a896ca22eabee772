//! Renders plans for people, as plain text and Mermaid.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::{Plan, PlanStatus, StepStatus, TaskId};
use crate::invisible::{self, one_line};

/// The known calls of a plan, by step, each with its tool and arguments.
pub type KnownCalls = BTreeMap<u32, Vec<(String, Value)>>;

/// The plan as text: a heading, its id and status, then one section per step.
pub fn text(
    plan: &Plan,
    objective: &str,
    task: TaskId,
    status: PlanStatus,
    steps: &BTreeMap<u32, StepStatus>,
) -> String {
    text_with_calls(plan, objective, task, status, steps, &KnownCalls::new())
}

/// Like [`text`], with the arguments of known calls: the last one of each tool.
pub fn text_with_calls(
    plan: &Plan,
    objective: &str,
    task: TaskId,
    status: PlanStatus,
    steps: &BTreeMap<u32, StepStatus>,
    calls: &KnownCalls,
) -> String {
    text_with_status(plan, objective, task, status.name(), steps, calls)
}

/// Like [`text_with_calls`], with the plan's status in words.
pub fn text_with_status(
    plan: &Plan,
    objective: &str,
    task: TaskId,
    status: &str,
    steps: &BTreeMap<u32, StepStatus>,
    calls: &KnownCalls,
) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(out, "# Execution Plan: {}", one_line(objective));
    let _ = writeln!(out, "Task ID: {task}");
    let _ = writeln!(out, "Status: {status}");
    if !plan.reasoning.trim().is_empty() {
        let _ = writeln!(out, "Reasoning: {}", one_line(&plan.reasoning));
    }
    for step in &plan.steps {
        let _ = writeln!(out, "\n## Step {}: {}", step.step_number, one_line(step.label()));
        let known = calls.get(&step.step_number).map(Vec::as_slice).unwrap_or_default();
        if step.expected_tools.is_empty() {
            let _ = writeln!(out, "Input: {}", one_line(&step.purpose));
        }
        if let Some(output) = &step.output {
            let _ = writeln!(out, "Parameters: {}", object(&step.inputs));
            let _ = writeln!(out, "Output: {}", json(output));
        }
        let mut tools: Vec<&String> = Vec::new();
        for tool in step.expected_tools.iter().chain(known.iter().map(|(tool, _)| tool)) {
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        for tool in tools {
            let _ = writeln!(out, "Tool: {}", one_line(tool));
            if step.expected_tools.first() == Some(tool) {
                let _ = writeln!(out, "Input: {}", one_line(&step.purpose));
            }
            if let Some(expected) = step.expectation_of(tool) {
                let _ = writeln!(out, "Expected: {}", one_line(&expected.describe()));
            }
            // Calls that were actually requested take precedence over prepared ones.
            if let Some((_, arguments)) = known.iter().rev().find(|(name, _)| name == tool) {
                let _ = writeln!(out, "Parameters: {}", json(arguments));
                continue;
            }
            for prepared in step.prepared_calls.iter().filter(|prepared| prepared.tool == *tool) {
                let _ = writeln!(out, "Parameters: {}", object(&prepared.arguments));
            }
        }
        let after: Vec<String> = step.depends_on_step.iter().map(|d| d.to_string()).collect();
        if !after.is_empty() {
            let _ = writeln!(out, "After: {}", after.join(", "));
        }
        if let Some(status) = steps.get(&step.step_number) {
            let _ = writeln!(out, "Status: {}", status.name());
        }
    }
    out
}

/// Notes about the steps of a plan, by step.
pub type StepNotes = BTreeMap<u32, Vec<String>>;

/// The plan as a Mermaid flowchart: one box per step, one arrow per dependency.
pub fn mermaid(plan: &Plan) -> String {
    mermaid_with_notes(plan, &StepNotes::new())
}

/// Like [`mermaid`], with notes on further lines of the boxes.
pub fn mermaid_with_notes(plan: &Plan, notes: &StepNotes) -> String {
    let mut out = String::from("flowchart TD\n");
    for step in &plan.steps {
        let label = one_line(&format!("{}. {}: {}", step.step_number, step.label(), step.purpose));
        let notes = notes.get(&step.step_number).map(Vec::as_slice).unwrap_or_default();
        let notes: String = notes.iter().map(|note| format!("<br/>{}", escape(&one_line(note)))).collect();
        let _ = writeln!(out, "    s{}[\"{}{notes}\"]", step.step_number, escape(&label));
    }
    for step in &plan.steps {
        for dependency in step.depends_on_step.iter() {
            let _ = writeln!(out, "    s{dependency} --> s{}", step.step_number);
        }
    }
    out
}

/// The arguments of a prepared call as one line of JSON.
pub(super) fn object(arguments: &Map<String, Value>) -> String {
    json(&Value::Object(arguments.clone()))
}

/// JSON on one line with its keys in order. Invisible characters are escaped, so that the text shows
/// exactly the value.
fn json(value: &Value) -> String {
    // Serialisation keeps the order of the keys.
    invisible::escape_json(&value.to_string())
}

/// Mermaid reads `#name;` inside quoted labels as an entity, `%%{…}%%` anywhere as a directive, and
/// the label as HTML.
fn escape(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            '"' => out.push_str("#quot;"),
            '#' => out.push_str("#35;"),
            '%' => out.push_str("#37;"),
            '&' => out.push_str("#amp;"),
            '`' => out.push_str("#96;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            c => out.push(c),
        }
    }
    out
}
