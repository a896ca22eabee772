//! The nodes of flows: a line for each that completed, with what it returned in few words. `runs show` has the whole.

use jiff::Timestamp;
use proscenium::flow::{Flow, Node, NodeKind};
use proscenium::run::Event;
use serde_json::{Map, Value};

use super::super::flows::maker_text;
use super::super::text::{count, duration, one_line, short};
use super::{Mark, NarrationLine, Narrator, WORDS, line};

/// Maximum number of columns of a node's line: with the sign of a terminal it fits into 80.
const COLUMNS: usize = 78;
/// Columns for how long it took.
const TOOK: usize = 14;
/// Minimum width of what a node returned, in columns, however long its name is.
const MIN_COLUMNS: usize = 16;
/// Maximum width of one of several values, in columns.
const VALUE: usize = 40;

/// The step of a node.
#[derive(Debug, Clone)]
pub(super) struct NarratedNode {
    /// The flow's step.
    parent: u32,
    name: String,
    /// Its definition, where a plan has it.
    node: Option<Node>,
    entered_at: Timestamp,
    /// What it returned, in few words; empty if there is nothing to say.
    returned: String,
    /// The code of the failure of its call that was rendered.
    failure: Option<String>,
    has_ended: bool,
}

impl NarratedNode {
    /// Whether it calls a tool of a scene, whose name says more than the node's.
    fn calls_tool(&self) -> bool {
        matches!(self.node.as_ref().map(|node| &node.kind), Some(NodeKind::Tool { .. }))
    }

    /// What it returned, in few words: the sentence for it, or its outputs.
    fn words(&self, returned: &Value, say: Option<&str>) -> String {
        let outputs = self.node.as_ref().map(|node| (&node.outputs, node.outputs_in(returned)));
        match (say, outputs) {
            (Some(say), _) => one_line(say.trim()),
            (None, Some((names, outputs))) if !outputs.is_empty() => outputs_words(names, &outputs),
            (None, _) => value_words(returned),
        }
    }
}

impl Narrator {
    /// The path of a flow's step, or where it is left. What a node did is shown when it ends.
    pub(super) fn narrate_flow(&mut self, event: &Event, at: Timestamp) -> Vec<NarrationLine> {
        match event {
            Event::FlowPlanned { step, path, maker, missing_node, .. } => {
                let (place, by) = (self.step_label(*step), maker_text(*maker));
                let whole = format!("{place}: path {} ({by})", one_line(&path.join(" → ")));
                let text = match columns(&whole) > COLUMNS {
                    true => format!("{place}: a path of {} ({by})", count(path.len(), "node")),
                    false => whole,
                };
                let mut lines = line(Mark::Plan, text);
                lines.extend(missing_node.iter().flat_map(|missing| {
                    let (name, what) = (&missing.name, short(&missing.description, WORDS));
                    line(Mark::Note, format!("  the planner suggests a node {name}: {what}"))
                }));
                lines
            }
            Event::NodeStarted { step, parent, node, left, .. } => {
                self.enter_node(*step, *parent, node, at);
                let left = left.iter().flat_map(|left| {
                    let (planned, why) = (one_line(&left.planned), short(&left.why, WORDS));
                    line(Mark::Note, format!("{}: not {planned} as planned: {why}", self.step_label(*step)))
                });
                left.collect()
            }
            _ => Vec::new(),
        }
    }

    fn enter_node(&mut self, step: u32, parent: u32, name: &str, entered_at: Timestamp) {
        let node = NarratedNode {
            parent,
            name: name.to_owned(),
            node: self.flow_of(parent).and_then(|flow| flow.node(name)).cloned(),
            entered_at,
            returned: String::new(),
            failure: None,
            has_ended: false,
        };
        self.nodes.insert(step, node);
    }

    fn flow_of(&self, step: u32) -> Option<&Flow> {
        let (scene, _) = self.steps.get(&step)?;
        self.flows.iter().find(|flow| flow.name == *scene)
    }

    /// `step 1 lookup, validate` of a node's step.
    pub(super) fn node_step(&self, step: u32) -> Option<String> {
        let node = self.nodes.get(&step)?;
        Some(format!("{}, {}", self.step_label(node.parent), one_line(&node.name)))
    }

    /// A node's call, without what the node was given: other nodes returned that.
    pub(super) fn node_call(&self, step: u32, tool: &str) -> Option<String> {
        let (node, place) = (self.nodes.get(&step)?, self.node_step(step)?);
        Some(if node.calls_tool() { format!("{place}: {}", one_line(tool)) } else { place })
    }

    /// Keeps what a node's call or model returned, for the line at its end. False if the step is no running node's.
    pub(super) fn node_returned(&mut self, step: u32, returned: &Value, say: Option<&str>) -> bool {
        let Some(node) = self.nodes.get_mut(&step).filter(|node| !node.has_ended) else { return false };
        node.returned = node.words(returned, say);
        true
    }

    /// Keeps the failure of a node's call, which was rendered.
    pub(super) fn node_call_failed(&mut self, step: u32, code: &str) {
        if let Some(node) = self.nodes.get_mut(&step) {
            node.failure = Some(code.to_owned());
        }
    }

    /// Keeps that an approval was not needed.
    pub(super) fn node_prepared(&mut self, step: u32, has_calls: bool) {
        let is_approval = |node: &Node| matches!(node.kind, NodeKind::Approval { .. });
        if let Some(node) = self.nodes.get_mut(&step).filter(|_| !has_calls)
            && node.node.as_ref().is_some_and(is_approval)
        {
            node.returned = "not needed".to_owned();
        }
    }

    /// The line for a node that completed, if the step is a node's.
    pub(super) fn completed_node(&mut self, step: u32, at: Timestamp) -> Option<Vec<NarrationLine>> {
        let place = self.node_step(step)?;
        let node = self.nodes.get_mut(&step)?;
        node.has_ended = true;
        let tool = match node.node.as_ref().map(|node| &node.kind) {
            Some(NodeKind::Tool { tool, .. }) => format!(": {}", one_line(tool)),
            _ => String::new(),
        };
        let took = duration(at.duration_since(node.entered_at).as_secs_f64() * 1_000.0);
        let head = format!("{place}{tool}: ");
        let room = COLUMNS.saturating_sub(columns(&head) + TOOK).max(MIN_COLUMNS);
        let did = if node.returned.is_empty() { "completed" } else { node.returned.as_str() };
        Some(line(Mark::Done, format!("{head}{} ({took})", short(did, room))))
    }

    /// Returns whether the failure of a node was rendered with its call.
    pub(super) fn is_told_of_call(&mut self, step: u32, code: &str) -> bool {
        let Some(node) = self.nodes.get_mut(&step) else { return false };
        node.has_ended = true;
        node.failure.as_deref() == Some(code)
    }

    /// The nodes of a flow's step that were not entered.
    pub(super) fn skipped_nodes(&self, step: u32) -> Vec<NarrationLine> {
        let entered = |name: &str| self.nodes.values().any(|own| own.parent == step && own.name == name);
        let all = self.flow_of(step).into_iter().flat_map(|flow| &flow.nodes);
        let skipped: Vec<&str> = all.map(|node| node.name.as_str()).filter(|name| !entered(name)).collect();
        match skipped.is_empty() {
            true => Vec::new(),
            false => {
                let text = format!("{}: skipped {}", self.step_label(step), skipped.join(", "));
                line(Mark::Note, short(&text, COLUMNS))
            }
        }
    }
}

/// The outputs that say something, in the order in which the node declares them.
fn outputs_words(names: &[String], outputs: &Map<String, Value>) -> String {
    let told = names.iter().filter_map(|name| Some((name, value_words(outputs.get(name)?))));
    let told = told.filter(|(_, words)| !words.is_empty());
    let told: Vec<String> = told.map(|(name, words)| format!("{} {words}", one_line(name))).collect();
    told.join(", ")
}

/// A value in few words: plain values as they are, lists of them in brackets, and the size of anything else. Empty for
/// what is empty.
fn value_words(value: &Value) -> String {
    let is_plain = |value: &Value| !value.is_array() && !value.is_object();
    match value {
        Value::Null => String::new(),
        Value::String(text) => short(text.trim(), VALUE),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(elements) if elements.is_empty() => String::new(),
        Value::Array(elements) if elements.iter().all(is_plain) => {
            let words: Vec<String> = elements.iter().map(value_words).collect();
            format!("[{}]", short(&words.join(", "), VALUE))
        }
        Value::Array(elements) => count(elements.len(), "element"),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Object(fields) => count(fields.len(), "field"),
    }
}

fn columns(text: &str) -> usize {
    console::measure_text_width(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_told_in_few_words() {
        let outputs = json!({
            "kind": "question", "run": true, "sql": "", "tables": ["orders", "customers"], "attempts": 2,
            "error": null, "rows": [[1, 2]], "result": {"columns": [], "rows": []}, "empty": [],
        });
        let names =
            ["kind", "run", "sql", "tables", "attempts", "error", "rows", "result", "empty", "missing"];
        assert_eq!(
            outputs_words(&names.map(str::to_owned), outputs.as_object().unwrap()),
            "kind question, run true, tables [orders, customers], attempts 2, rows 1 element, result 2 fields"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn line_of_a_node_is_one_line_that_fits(text in any::<String>(), long in "[a-z]{0,200}") {
            let node = json!({"name": "validate", "description": "", "outputs": ["text", "long", "more"],
                "kind": {"type": "condition"}});
            let nodes = vec![serde_json::from_value(node).unwrap()];
            let mut narrator = Narrator::default();
            narrator.steps.insert(1, ("lookup".to_owned(), String::new()));
            narrator.flows.push(Flow { name: "lookup".to_owned(), nodes, ..Flow::default() });
            narrator.enter_node(2, 1, "validate", Timestamp::UNIX_EPOCH);
            narrator.node_returned(2, &json!({"text": text, "long": [long.clone(), 1], "more": {"deep": [long]}}), None);
            let lines = narrator.completed_node(2, Timestamp::UNIX_EPOCH).unwrap();
            prop_assert_eq!(lines.len(), 1);
            prop_assert!(columns(&lines[0].text) <= COLUMNS, "{}", lines[0].text);
            prop_assert!(!lines[0].text.contains(['\n', '\u{1b}', '\r']), "{:?}", lines[0].text);
        }
    }
}
