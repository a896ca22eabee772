//! Flows: graphs of described nodes. A path through the nodes that a request needs is planned, checked against the graph,
//! and executed node by node.
//!
//! **Invariant:** this module is pure and knows no other module of the crate. No clock, no I/O, no randomness.

mod brief;
mod check;
mod mermaid;
mod narrow;
mod path;
mod request_part;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use brief::{FlowBrief, NodeBrief};
pub use check::{MAX_NODES, check};
pub use mermaid::mermaid;
pub use path::{full_path, path_problems, rules_path};
pub(crate) use request_part::{
    begins_with_frame, ends_sentence, is_part, points_back, restricts, says_no_more,
};
pub use walk::{LeftPath, NextNode, Walk, path_index, value_at};

/// The values that every flow has, whatever its caller gives: `request`, the user's text (only the step's own part, if
/// the purposes of the plan's steps, taken word by word, make up the whole text); `purpose`, the purpose of the step
/// (the user's text, if a model worded the purpose after seeing a flow's results and it says more than the user);
/// `earlier_requests`, what the user said before in the conversation: the last [`MAX_EARLIER_REQUESTS`] texts, oldest first;
/// `now`, the frozen local time (RFC 9557); and `language`, the user's language (ISO 639-1, or null).
pub const STANDARD_INPUTS: [&str; 5] = ["request", "purpose", "earlier_requests", "now", "language"];

/// How many earlier requests of the conversation a flow is told.
pub const MAX_EARLIER_REQUESTS: usize = 6;

/// How many characters of each of them a flow is told.
pub const MAX_EARLIER_REQUEST_CHARS: usize = 1_000;

/// Largest definition of a flow, in bytes of its JSON.
pub const MAX_FLOW_BYTES: usize = 256 * 1024;

/// Maximum number of node steps of one execution of a flow that declares no other bound.
pub const DEFAULT_MAX_NODE_STEPS: u32 = 24;

/// A graph of described nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Flow {
    /// Unique over scenes and flows.
    pub name: String,
    /// Its purpose, as the planner reads it.
    pub description: String,
    /// Requests that it serves, with the nodes that they need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<PathExample>,
    /// The values that a caller may give, besides the [`STANDARD_INPUTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// The nodes that a path may begin with.
    pub entries: Vec<String>,
    /// The nodes, in the order in which they are written.
    pub nodes: Vec<Node>,
    /// Maximum number of nodes that one execution enters, repeated ones included.
    pub max_node_steps: u32,
    /// The conditions on every execution, planned or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<Invariant>,
}

/// A request that a flow serves, and the path that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PathExample {
    /// The user's request.
    pub say: String,
    /// The names of its nodes, in order; empty where the example only says what the flow is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

/// A node of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Node {
    /// Unique in the flow.
    pub name: String,
    /// Its purpose, as the path planner reads it.
    pub description: String,
    /// The values that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// The values that it uses where they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional_inputs: Vec<String>,
    /// The values that it produces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// The nodes that may follow, the preferred one first. None at an end of the flow.
    #[serde(default)]
    pub possible_next_nodes: Vec<String>,
    /// When an edge may be taken. An edge with several conditions needs all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<EdgeCondition>,
    /// Its executor.
    pub kind: NodeKind,
    /// How often one execution may enter it. Required on every loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<u32>,
}

/// When an edge may be taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EdgeCondition {
    /// The node that the edge leads to.
    pub next: String,
    /// The condition.
    pub when: ValueTest,
}

/// A test of one value of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ValueTest {
    /// The value: its name, or its name and a JSON pointer into it (`result/rows`).
    pub value: String,
    /// What it is compared with.
    pub test: Comparison,
}

/// The right side of a comparison. A value that does not exist is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// It equals this.
    #[schema(value_type = Object)]
    Is(Value),
    /// It differs from this.
    #[schema(value_type = Object)]
    IsNot(Value),
    /// Whether it exists, and is neither null nor an empty text, list or object.
    Exists(bool),
}

/// The executor of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NodeKind {
    /// A function in Rust, which reads and does not write. It is called with the node's inputs.
    Native {
        /// Its registered name.
        native: String,
    },
    /// A model, which has to return an object with the node's outputs.
    Llm {
        /// Its instructions: a minijinja template over the node's inputs.
        template: String,
        /// JSON Schema of what it returns: an object.
        #[schema(value_type = Object)]
        output: Value,
        /// The function in Rust that is called where no model answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// A tool of a scene.
    Tool {
        /// The scene.
        scene: String,
        /// The tool.
        tool: String,
        /// Its arguments: the value of each, by name and pointer. Missing optional values are left out.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arguments: BTreeMap<String, String>,
        /// Its constant arguments.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schema(value_type = Object)]
        fixed: Map<String, Value>,
        /// The part of its result that is an output, by JSON pointer. Other outputs are the field of their name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        results: BTreeMap<String, String>,
    },
    /// A person, who approves those inputs of the node that are its outputs, too, and may change them.
    Approval {
        /// What is asked: minijinja templates over the node's inputs, by language.
        question: BTreeMap<String, String>,
        /// JSON Schema of what is approved, which bounds changes: an object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Object>)]
        parameters: Option<Value>,
        /// When a person is asked; always where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<ValueTest>,
        /// Who is asked.
        #[serde(default, skip_serializing_if = "Decider::is_approver")]
        by: Decider,
        /// The lists of texts among the inputs that the person may change, each with the value that lists what it may
        /// contain, by name and pointer. Where there are none, `parameters` alone bounds changes.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<String, String>,
    },
    /// Nothing: its conditions choose the next node.
    Condition,
}

/// The person who gives the approval of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// A person who may approve calls, as the configuration says.
    #[default]
    Approver,
    /// The user of the conversation, in words, whatever the configuration says about approving one's own requests.
    User,
}

/// A condition on every execution of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Invariant {
    /// No execution enters `then` without having completed `first`.
    Before {
        /// The node that comes first.
        first: String,
        /// The node that it precedes.
        then: String,
    },
    /// No execution enters `node` and one of `others`.
    Excludes {
        /// The node.
        node: String,
        /// The nodes that it excludes.
        others: Vec<String>,
    },
}

/// A problem of a flow or a path, described so that its author can fix it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowProblem {
    /// Stable code, such as `flow.unknown_node`.
    pub code: &'static str,
    /// The node that it is about.
    pub node: Option<String>,
    /// The key of the node or of the flow that it is about.
    pub key: &'static str,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

/// The maker of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PathMaker {
    /// A model.
    Planner,
    /// The offline model.
    Rules,
    /// Nobody: the full graph is followed by its conditions.
    Graph,
    /// Earlier executions, in which it succeeded for requests of this kind.
    Learned,
}

/// A node that a path planner missed in a flow: a suggestion for the flow's author. It is never executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MissingNode {
    /// The flow.
    pub flow: String,
    /// A possible name of the node: letters, digits and `_`, at most 64.
    pub name: String,
    /// A description of what it would do; one line, at most 300 characters.
    pub description: String,
    /// Why the request needs it; one line, at most 300 characters, perhaps empty.
    pub why: String,
}

impl Flow {
    /// The node called `name`.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Returns whether the nodes of a path can be executed without a model, with or without the functions that replace
    /// one.
    pub(crate) fn works_without_model(&self, path: &[String], with_functions: bool) -> bool {
        path.iter().filter_map(|name| self.node(name)).all(|node| match &node.kind {
            NodeKind::Llm { fallback, .. } => with_functions && fallback.is_some(),
            NodeKind::Native { .. } | NodeKind::Tool { .. } => true,
            NodeKind::Approval { .. } | NodeKind::Condition => true,
        })
    }

    /// SHA-256 in hex of the definition: a changed flow has another one.
    pub fn hash(&self) -> String {
        // A flow is plain data, so serialization cannot fail.
        HEXLOWER.encode(&Sha256::digest(serde_json::to_vec(self).unwrap_or_default()))
    }

    /// The size of the definition in bytes of its JSON.
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |json| json.len())
    }

    /// The tools of scenes that its nodes call, as (scene, tool), each once.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut seen = std::collections::BTreeSet::new();
        self.nodes.iter().filter_map(move |node| match &node.kind {
            NodeKind::Tool { scene, tool, .. } => {
                seen.insert((scene.as_str(), tool.as_str())).then_some((scene.as_str(), tool.as_str()))
            }
            _ => None,
        })
    }

    /// Whether its invariants let a node be entered after those that were entered before.
    fn permits(&self, node: &str, before: &[String]) -> bool {
        self.broken_invariant(node, before).is_none()
    }

    /// The node that has to come before `node` and was not entered, or that excludes it.
    fn broken_invariant(&self, node: &str, before: &[String]) -> Option<String> {
        let entered = |name: &str| before.iter().any(|earlier| earlier == name);
        self.invariants.iter().find_map(|invariant| match invariant {
            Invariant::Before { first, then } if then == node && !entered(first) => {
                Some(format!("{first} has to come before {then}"))
            }
            Invariant::Excludes { node: one, others } => {
                let other = match one == node {
                    true => others.iter().find(|other| entered(other)),
                    false => others.iter().find(|other| *other == node).filter(|_| entered(one)),
                }?;
                Some(format!("{one} and {other} exclude each other"))
            }
            Invariant::Before { .. } => None,
        })
    }
}

impl Node {
    /// The name of its kind.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            NodeKind::Native { .. } => "native",
            NodeKind::Llm { .. } => "llm",
            NodeKind::Tool { .. } => "tool",
            NodeKind::Approval { .. } => "approval",
            NodeKind::Condition => "condition",
        }
    }

    /// Returns whether the flow ends with it.
    pub fn is_end(&self) -> bool {
        self.possible_next_nodes.is_empty()
    }

    /// The conditions of the edge to `next`.
    pub fn conditions_of<'a>(&'a self, next: &'a str) -> impl Iterator<Item = &'a ValueTest> {
        self.conditions
            .iter()
            .filter(move |condition| condition.next == next)
            .map(|condition| &condition.when)
    }

    /// The values of the node's inputs that exist.
    pub fn inputs_of(&self, values: &Map<String, Value>) -> Map<String, Value> {
        let names = self.inputs.iter().chain(&self.optional_inputs);
        names.filter_map(|name| Some((name.clone(), values.get(name)?.clone()))).collect()
    }

    /// The node's outputs in the value that its function, model, tool or approver returned. If the value is not an
    /// object, or has no field of the name of its only output, all of it is that output.
    pub fn outputs_in(&self, returned: &Value) -> Map<String, Value> {
        let pointers = match &self.kind {
            NodeKind::Tool { results, .. } => Some(results),
            _ => None,
        };
        let mut outputs = Map::new();
        for name in &self.outputs {
            let value = match pointers.and_then(|pointers| pointers.get(name)) {
                Some(pointer) => returned.pointer(pointer).cloned(),
                None => returned.get(name).cloned(),
            };
            let is_all = self.outputs.len() == 1 && pointers.is_none_or(|pointers| pointers.is_empty());
            let value = value.or_else(|| (is_all && !returned.is_null()).then(|| returned.clone()));
            outputs.extend(value.map(|value| (name.clone(), value)));
        }
        outputs
    }
}

impl Decider {
    /// Returns whether it is an approver.
    pub fn is_approver(&self) -> bool {
        *self == Decider::Approver
    }
}

impl ValueTest {
    /// That a value equals `expected`. `value` is its name, or its name and a JSON pointer into it (`result/rows`).
    pub fn is(value: &str, expected: impl Into<Value>) -> Self {
        Self { value: value.to_owned(), test: Comparison::Is(expected.into()) }
    }

    /// That a value differs from `other`.
    pub fn is_not(value: &str, other: impl Into<Value>) -> Self {
        Self { value: value.to_owned(), test: Comparison::IsNot(other.into()) }
    }

    /// That a value exists, and is neither null nor an empty text, list or object.
    pub fn exists(value: &str) -> Self {
        Self { value: value.to_owned(), test: Comparison::Exists(true) }
    }

    /// That a value does not exist, or is null or an empty text, list or object.
    pub fn is_missing(value: &str) -> Self {
        Self { value: value.to_owned(), test: Comparison::Exists(false) }
    }

    /// Returns whether it holds for these values.
    pub fn holds(&self, values: &Map<String, Value>) -> bool {
        let value = value_at(values, &self.value).unwrap_or(&Value::Null);
        match &self.test {
            Comparison::Is(expected) => value == expected,
            Comparison::IsNot(other) => value != other,
            Comparison::Exists(expected) => is_something(value) == *expected,
        }
    }

    /// The name of the value that it tests, without the pointer.
    pub fn name(&self) -> &str {
        self.value.split('/').next().unwrap_or_default()
    }

    /// In words, for people.
    pub fn text(&self) -> String {
        let value = &self.value;
        match &self.test {
            Comparison::Is(expected) => format!("{value} is {expected}"),
            Comparison::IsNot(other) => format!("{value} is not {other}"),
            Comparison::Exists(true) => format!("there is {value}"),
            Comparison::Exists(false) => format!("there is no {value}"),
        }
    }
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}
