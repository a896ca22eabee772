//! Flows as clients get them, over HTTP and from the command line. Templates of prompts are not part of it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::flow::{Flow, Invariant, MissingNode, Node, NodeKind, PathExample, mermaid};
use crate::run::RunId;
use crate::store::MissingNodeRow;

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowDocument {
    /// Unique over scenes and flows.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The values that a caller may give as `current_state`.
    pub inputs: Vec<String>,
    /// The nodes that a path may begin with.
    pub entries: Vec<String>,
    /// Maximum number of nodes that one execution enters.
    pub max_node_steps: u32,
    /// Its nodes.
    pub nodes: Vec<FlowNodeDocument>,
    /// Its edges.
    pub edges: Vec<FlowEdgeDocument>,
    /// The conditions on every execution.
    pub invariants: Vec<Invariant>,
    /// Requests that it serves, with the paths that they need.
    pub examples: Vec<PathExample>,
    /// SHA-256 of the definition, in hex.
    pub hash: String,
    /// The flow as a Mermaid flowchart.
    pub mermaid: String,
    /// Nodes that path planners missed in it, the newest first, at most 20; for one flow only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_nodes: Vec<MissingNodeDocument>,
}

/// A node that a path planner missed in a flow. It is a model's suggestion for the flow's author, and is never executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MissingNodeDocument {
    /// A possible name.
    pub name: String,
    /// A description of what it would do.
    pub description: String,
    /// Why the request needs it.
    pub why: String,
    /// The run whose request needed it.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
}

impl From<MissingNodeRow> for MissingNodeDocument {
    fn from(row: MissingNodeRow) -> Self {
        let MissingNode { name, description, why, .. } = row.node;
        Self { name, description, why, run_id: row.run, at: row.at }
    }
}

/// A node of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowNodeDocument {
    /// Unique in the flow.
    pub name: String,
    /// A description of what it does.
    pub description: String,
    /// Its executor: `native`, `llm`, `tool`, `approval` or `condition`.
    pub kind: String,
    /// The tool that it calls, as `Scene.Tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The values that it needs.
    pub inputs: Vec<String>,
    /// The values that it uses where they exist.
    pub optional_inputs: Vec<String>,
    /// The values that it produces.
    pub outputs: Vec<String>,
    /// How often one execution may enter it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<u32>,
}

/// An edge of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlowEdgeDocument {
    /// The node that it leads from.
    pub from: String,
    /// The node that it leads to.
    pub to: String,
    /// When it may be taken, in words; empty for always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
}

/// Maximum number of suggested nodes of a document.
pub(crate) const MAX_MISSING_NODES: u32 = 20;

impl FlowDocument {
    /// The document of a flow.
    pub fn of(flow: &Flow) -> Self {
        let edges = flow.nodes.iter().flat_map(|node| {
            node.possible_next_nodes.iter().map(|next| FlowEdgeDocument {
                from: node.name.clone(),
                to: next.clone(),
                when: node.conditions_of(next).map(|test| test.text()).collect(),
            })
        });
        Self {
            name: flow.name.clone(),
            description: flow.description.clone(),
            inputs: flow.inputs.clone(),
            entries: flow.entries.clone(),
            max_node_steps: flow.max_node_steps,
            nodes: flow.nodes.iter().map(FlowNodeDocument::of).collect(),
            edges: edges.collect(),
            invariants: flow.invariants.clone(),
            examples: flow.examples.clone(),
            hash: flow.hash(),
            mermaid: mermaid(flow, &[]),
            missing_nodes: Vec::new(),
        }
    }
}

impl FlowNodeDocument {
    fn of(node: &Node) -> Self {
        let tool = match &node.kind {
            NodeKind::Tool { scene, tool, .. } => Some(format!("{scene}.{tool}")),
            _ => None,
        };
        Self {
            name: node.name.clone(),
            description: node.description.clone(),
            kind: node.kind_name().to_owned(),
            tool,
            inputs: node.inputs.clone(),
            optional_inputs: node.optional_inputs.clone(),
            outputs: node.outputs.clone(),
            max_visits: node.max_visits,
        }
    }
}
