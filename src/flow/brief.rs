//! The description of a flow for a path planner: its graph, without prompts, schemas and names of functions.

use serde::{Deserialize, Serialize};

use super::{Flow, Invariant, Node, NodeKind, PathExample};

/// A flow as a path planner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowBrief {
    /// The flow.
    pub flow: String,
    /// Its purpose.
    pub description: String,
    /// The nodes that a path may begin with.
    pub begins_with: Vec<String>,
    /// Maximum number of nodes of a path.
    pub max_nodes: u32,
    /// The conditions on every path.
    pub invariants: Vec<Invariant>,
    /// The nodes.
    pub nodes: Vec<NodeBrief>,
    /// Requests with the paths that they need.
    pub examples: Vec<PathExample>,
}

/// A node as a path planner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeBrief {
    /// Its name.
    pub name: String,
    /// A description of what it does.
    pub description: String,
    /// Its executor.
    pub kind: String,
    /// The values that it needs.
    pub needs: Vec<String>,
    /// The values that it produces.
    pub produces: Vec<String>,
    /// The nodes that may follow; none at an end.
    pub next: Vec<String>,
    /// When some of these follow, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// How often a path may contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<u32>,
}

impl FlowBrief {
    /// The description of `flow` for a path planner.
    pub fn of(flow: &Flow) -> Self {
        let node = |node: &Node| NodeBrief {
            name: node.name.clone(),
            description: node.description.clone(),
            kind: node.kind_name().to_owned(),
            needs: node.inputs.clone(),
            produces: node.outputs.clone(),
            next: node.possible_next_nodes.clone(),
            conditions: node.conditions.iter().map(|c| format!("{} if {}", c.next, c.when.text())).collect(),
            max_visits: node.max_visits,
        };
        Self {
            flow: flow.name.clone(),
            description: flow.description.clone(),
            begins_with: flow.entries.clone(),
            max_nodes: flow.max_node_steps,
            invariants: flow.invariants.clone(),
            nodes: flow.nodes.iter().map(node).collect(),
            examples: flow.examples.iter().filter(|example| !example.path.is_empty()).cloned().collect(),
        }
    }

    /// The graph again, for rules that choose a path: its nodes do nothing.
    pub fn graph(self) -> Flow {
        let node = |node: NodeBrief| Node {
            name: node.name,
            description: node.description,
            inputs: node.needs,
            optional_inputs: Vec::new(),
            outputs: node.produces,
            possible_next_nodes: node.next,
            conditions: Vec::new(),
            kind: NodeKind::Condition,
            max_visits: node.max_visits,
        };
        Flow {
            name: self.flow,
            description: self.description,
            examples: self.examples,
            inputs: Vec::new(),
            entries: self.begins_with,
            nodes: self.nodes.into_iter().map(node).collect(),
            max_node_steps: self.max_nodes,
            invariants: self.invariants,
        }
    }
}
