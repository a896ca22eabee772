//! What one version of a plan changes in another, for people.

use super::format::one_line;
use super::{Plan, Step};

/// What `new` changes in `old`: a line a change, `+`, `-` or `~` first, empty where nothing changed. Steps
/// are the same where they have the same number and scene.
pub fn diff(old: &Plan, new: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    let find = |steps: &[Step], step: &Step| {
        steps
            .iter()
            .find(|other| other.step_number == step.step_number && other.scene_name == step.scene_name)
            .cloned()
    };
    for step in &old.steps {
        if find(&new.steps, step).is_none() {
            lines.push(format!("- {}", line(step)));
        }
    }
    for step in &new.steps {
        match find(&old.steps, step) {
            None => lines.push(format!("+ {}", line(step))),
            Some(before) => lines.extend(changes(&before, step)),
        }
    }
    lines
}

fn line(step: &Step) -> String {
    let mut line =
        format!("step {} {}: {}", step.step_number, one_line(&step.scene_name), one_line(&step.purpose));
    if !step.expected_tools.is_empty() {
        line.push_str(&format!(" [{}]", named(&step.expected_tools).join(", ")));
    }
    let after = after(step);
    if !after.is_empty() {
        line.push_str(&format!(", after {after}"));
    }
    line
}

fn after(step: &Step) -> String {
    step.depends_on_step.iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

fn changes(before: &Step, now: &Step) -> Vec<String> {
    let mut lines = Vec::new();
    let head = format!("~ step {} {}", now.step_number, one_line(&now.scene_name));
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
    if after(before) != after(now) {
        let told = |after: String| if after.is_empty() { "nothing".to_owned() } else { after };
        lines.push(format!("{head}: after {} -> {}", told(after(before)), told(after(now))));
    }
    lines
}

fn only_in<'a>(these: &'a [String], others: &[String]) -> Vec<&'a str> {
    these.iter().filter(|tool| !others.contains(tool)).map(String::as_str).collect()
}

fn named(tools: &[String]) -> Vec<String> {
    tools.iter().map(|tool| one_line(tool)).collect()
}
