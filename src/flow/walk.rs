//! Following a flow: which node comes next.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Flow, Node};

/// The value of a name such as `result`, or of a name and a JSON pointer into it, such as `result/rows`.
pub fn value_at<'a>(values: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    match name.split_once('/') {
        Some((name, pointer)) => values.get(name)?.pointer(&format!("/{pointer}")),
        None => values.get(name),
    }
}

/// Where an execution of a flow is.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// The planned path; empty where the graph is followed by its conditions alone.
    pub path: &'a [String],
    /// The nodes that were entered, in order. All of them have completed.
    pub entered: &'a [String],
    /// The values so far.
    pub values: &'a Map<String, Value>,
}

/// Records that an execution left its planned path along a declared edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LeftPath {
    /// The planned node that is not entered.
    pub planned: String,
    /// Why.
    pub why: String,
}

/// The next node in an execution of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextNode {
    /// This node.
    Node {
        /// Its name.
        name: String,
        /// How it differs from the planned path.
        left: Option<LeftPath>,
    },
    /// Nothing: an end of the flow was reached.
    End,
    /// No edge may be taken.
    Stuck {
        /// Stable code, such as `flow.no_edge`.
        code: &'static str,
        /// Why.
        why: String,
    },
}

/// The index in `path` of the node that was entered last, or, off the path, of the last one on it. `None` where no node
/// on the path was entered.
pub fn path_index(path: &[String], entered: &[String]) -> Option<usize> {
    let mut at: Option<usize> = None;
    for name in entered {
        let next = at.map_or(0, |at| at + 1);
        let ahead = path.iter().skip(next).position(|planned| planned == name).map(|found| next + found);
        let behind = || path.iter().take(next).rposition(|planned| planned == name);
        at = ahead.or_else(behind).or(at);
    }
    at
}

impl Walk<'_> {
    /// Returns what follows. A planned edge is taken unless a condition speaks against it: its own does not hold, or that of
    /// another edge does. Edges that would break an invariant or a bound, or lead to a node without its inputs, are
    /// never taken.
    pub fn next_node(&self) -> NextNode {
        if self.entered.len() >= self.flow.max_node_steps as usize {
            let why = format!("the flow enters at most {} nodes (max_node_steps)", self.flow.max_node_steps);
            return NextNode::Stuck { code: "flow.max_node_steps", why };
        }
        let Some(last) = self.entered.last() else { return self.first() };
        let Some(node) = self.flow.node(last) else {
            let why = format!("the flow has no node {last}");
            return NextNode::Stuck { code: "flow.unknown_node", why };
        };
        if node.is_end() {
            return NextNode::End;
        }
        let planned = self.planned_after(last);
        let mut refused = Vec::new();
        for next in self.candidates(node, planned) {
            match self.obstacle(next) {
                None => return self.chosen(node, next, planned),
                Some(why) => refused.push(why),
            }
        }
        let why = match refused.is_empty() {
            true => format!("no condition of an edge from {last} holds"),
            false => format!("no edge from {last} can be taken: {}", refused.join("; ")),
        };
        NextNode::Stuck { code: "flow.no_edge", why }
    }

    fn first(&self) -> NextNode {
        let planned = self.path.first();
        let mut refused = Vec::new();
        for entry in planned.into_iter().chain(&self.flow.entries) {
            match self.obstacle(entry) {
                None => return NextNode::Node { name: entry.clone(), left: None },
                Some(why) => refused.push(why),
            }
        }
        refused.dedup();
        NextNode::Stuck { code: "flow.no_entry", why: refused.join("; ") }
    }

    /// The node that the path has after `last`, where that is on the path.
    fn planned_after(&self, last: &str) -> Option<&str> {
        let at = path_index(self.path, self.entered)?;
        let is_on_path = self.path.get(at).is_some_and(|planned| planned == last);
        self.path.get(at + 1).filter(|_| is_on_path).map(String::as_str)
    }

    /// The nodes that conditions let follow, the preferred one first.
    fn candidates<'n>(&self, node: &'n Node, planned: Option<&str>) -> Vec<&'n str> {
        let is_conditional = |next: &str| node.conditions_of(next).next().is_some();
        let holds = |next: &str| node.conditions_of(next).all(|test| test.holds(self.values));
        let possible = node.possible_next_nodes.iter().map(String::as_str).filter(|next| holds(next));
        let mut possible: Vec<&str> = possible.collect();
        if self.path.is_empty() {
            return possible;
        }
        possible.sort_by_key(|next| match (Some(*next) == planned, is_conditional(next)) {
            (true, true) => 0,
            (false, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
        });
        possible
    }

    fn chosen(&self, node: &Node, next: &str, planned: Option<&str>) -> NextNode {
        let left = planned.filter(|planned| *planned != next).map(|planned| {
            let failed = node.conditions_of(planned).find(|test| !test.holds(self.values));
            let why = match (failed, node.conditions_of(next).next(), self.obstacle(planned)) {
                (Some(test), ..) => format!("it does not hold that {}", test.text()),
                (None, Some(test), _) => test.text(),
                (None, None, obstacle) => obstacle.unwrap_or_default(),
            };
            LeftPath { planned: planned.to_owned(), why }
        });
        NextNode::Node { name: next.to_owned(), left }
    }

    /// Why a node cannot be entered now, whatever the conditions say.
    fn obstacle(&self, name: &str) -> Option<String> {
        let Some(node) = self.flow.node(name) else { return Some(format!("there is no node {name}")) };
        let visits = self.entered.iter().filter(|entered| *entered == name).count();
        if let Some(max) = node.max_visits.filter(|max| visits >= *max as usize) {
            return Some(format!("{name} was entered {visits} times, and may be {max} times (max_visits)"));
        }
        if let Some(broken) = self.flow.broken_invariant(name, self.entered) {
            return Some(broken);
        }
        let known: BTreeSet<&str> = self.values.keys().map(String::as_str).collect();
        let missing: Vec<&str> =
            node.inputs.iter().map(String::as_str).filter(|input| !known.contains(input)).collect();
        (!missing.is_empty()).then(|| format!("{name} needs {}, which nothing produced", missing.join(", ")))
    }
}
