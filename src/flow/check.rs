//! Checks that a flow is a graph that can be executed and always ends.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::dominators::simple_fast;
use petgraph::algo::{has_path_connecting, tarjan_scc};
use petgraph::graphmap::DiGraphMap;

use super::{Flow, FlowProblem, Invariant, MAX_FLOW_BYTES, Node, NodeKind, STANDARD_INPUTS, path_problems};

/// Maximum number of nodes of one flow.
pub const MAX_NODES: usize = 64;

/// The remedy for an invalid name of a node or a value.
const NAME_REMEDY: &str = "use letters, digits and `_`, at most 64";

/// The virtual node before all entries.
const ROOT: usize = usize::MAX;

/// All problems of a flow. Empty if it may be executed.
pub fn check(flow: &Flow) -> Vec<FlowProblem> {
    let mut checker = Checker { flow, problems: Vec::new() };
    if flow.nodes.is_empty() || flow.nodes.len() > MAX_NODES {
        let message = format!("the flow has {} nodes", flow.nodes.len());
        checker.flow_problem("flow.nodes", "nodes", message, format!("give it 1 to {MAX_NODES} nodes"));
        return checker.problems;
    }
    let bytes = flow.size();
    if bytes > MAX_FLOW_BYTES {
        let message =
            format!("the flow has {bytes} bytes of JSON, and at most {MAX_FLOW_BYTES} are accepted");
        let remedy =
            "shorten its templates and schemas, or split it: each plan keeps the definitions of its flows";
        checker.flow_problem("flow.too_large", "nodes", message, remedy.to_owned());
    }
    checker.check_nodes();
    checker.check_extent();
    checker.check_edges();
    // With unknown nodes, checks of the graph make no sense.
    if checker.problems.is_empty() {
        let graph = Graph::of(flow);
        checker.check_ways(&graph);
        checker.check_loops(&graph);
        checker.check_inputs(&graph);
        checker.check_invariants(&graph);
    }
    if checker.problems.is_empty() {
        checker.check_examples();
    }
    checker.problems
}

/// The edges of a flow, by the position of its nodes.
struct Graph<'a> {
    edges: DiGraphMap<usize, ()>,
    places: BTreeMap<&'a str, usize>,
}

impl<'a> Graph<'a> {
    fn of(flow: &'a Flow) -> Self {
        let places: BTreeMap<&str, usize> =
            flow.nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
        let mut edges = DiGraphMap::new();
        for (at, node) in flow.nodes.iter().enumerate() {
            edges.add_node(at);
            for next in node.possible_next_nodes.iter().filter_map(|next| places.get(next.as_str())) {
                edges.add_edge(at, *next, ());
            }
        }
        for entry in flow.entries.iter().filter_map(|entry| places.get(entry.as_str())) {
            edges.add_edge(ROOT, *entry, ());
        }
        Self { edges, places }
    }

    /// Whether there is a way of at least one edge.
    fn leads(&self, from: usize, to: usize) -> bool {
        self.edges.neighbors(from).any(|next| has_path_connecting(&self.edges, next, to, None))
    }

    fn place(&self, name: &str) -> usize {
        self.places.get(name).copied().unwrap_or(ROOT)
    }
}

struct Checker<'a> {
    flow: &'a Flow,
    problems: Vec<FlowProblem>,
}

impl<'a> Checker<'a> {
    fn problem(
        &mut self,
        code: &'static str,
        node: &Node,
        key: &'static str,
        message: String,
        remedy: String,
    ) {
        self.problems.push(FlowProblem { code, node: Some(node.name.clone()), key, message, remedy });
    }

    fn flow_problem(&mut self, code: &'static str, key: &'static str, message: String, remedy: String) {
        self.problems.push(FlowProblem { code, node: None, key, message, remedy });
    }

    fn check_nodes(&mut self) {
        let mut seen = BTreeSet::new();
        for node in &self.flow.nodes {
            self.check_name(node, &mut seen);
            if node.description.trim().is_empty() {
                let message = format!("{} has no description", node.name);
                let remedy = "the path planner chooses nodes by it: say what the node does".to_owned();
                self.problem("flow.no_description", node, "description", message, remedy);
            }
            self.check_value_names(node);
            if node.max_visits == Some(0) {
                let message = format!("{} may never be entered", node.name);
                let remedy = "use a number from 1".to_owned();
                self.problem("flow.max_visits", node, "max_visits", message, remedy);
            }
        }
    }

    /// Checks the name of a node; `seen` has those of the nodes before it, in lower case.
    fn check_name(&mut self, node: &Node, seen: &mut BTreeSet<String>) {
        if !is_name(&node.name) {
            let message = format!("{:?} is not a valid name of a node", node.name);
            self.problem("flow.name", node, "name", message, NAME_REMEDY.to_owned());
        }
        if !seen.insert(node.name.to_lowercase()) {
            let message = format!("there are two nodes named {:?}", node.name);
            let remedy = "give each node a unique name".to_owned();
            self.problem("flow.duplicate_node", node, "name", message, remedy);
        }
    }

    fn check_value_names(&mut self, node: &Node) {
        let lists = [
            ("inputs", &node.inputs),
            ("optional_inputs", &node.optional_inputs),
            ("outputs", &node.outputs),
        ];
        for (key, names) in lists {
            for name in names.iter().filter(|name| !is_name(name)) {
                let message = format!("{name:?} is not a valid name of a value");
                self.problem("flow.name", node, key, message, NAME_REMEDY.to_owned());
            }
        }
        for name in node.outputs.iter().filter(|name| STANDARD_INPUTS.contains(&name.as_str())) {
            let message = format!("{name} is a value of every flow and cannot be an output");
            let remedy = "give the output another name".to_owned();
            self.problem("flow.name", node, "outputs", message, remedy);
        }
    }

    /// Checks how many nodes an execution enters, and that it can begin.
    fn check_extent(&mut self) {
        if self.flow.max_node_steps == 0 || self.flow.max_node_steps > 1000 {
            let message = format!("max_node_steps is {}", self.flow.max_node_steps);
            let remedy = "use a number from 1 to 1000".to_owned();
            self.flow_problem("flow.max_node_steps", "max_node_steps", message, remedy);
        }
        if self.flow.entries.is_empty() {
            let message = "the flow has no entry".to_owned();
            let remedy = "list at least one node in `entries`".to_owned();
            self.flow_problem("flow.no_entry", "entries", message, remedy);
        }
    }

    fn check_edges(&mut self) {
        let flow = self.flow;
        let remedy = || {
            let names: Vec<&str> = flow.nodes.iter().map(|node| node.name.as_str()).collect();
            format!("the nodes are: {}", names.join(", "))
        };
        let is_known = |name: &String| flow.node(name).is_some();
        for node in &flow.nodes {
            for next in node.possible_next_nodes.iter().filter(|next| !is_known(next)) {
                let message = format!("{} is followed by {next:?}, which is not a node", node.name);
                self.problem("flow.unknown_node", node, "possible_next_nodes", message, remedy());
            }
            for condition in &node.conditions {
                if !node.possible_next_nodes.contains(&condition.next) {
                    let message = format!(
                        "a condition is about {:?}, which does not follow {}",
                        condition.next, node.name
                    );
                    let remedy = format!("add it to possible_next_nodes of {}", node.name);
                    self.problem("flow.unknown_node", node, "conditions", message, remedy);
                }
            }
        }
        for entry in flow.entries.iter().filter(|entry| !is_known(entry)) {
            self.flow_problem(
                "flow.unknown_node",
                "entries",
                format!("the entry {entry:?} is not a node"),
                remedy(),
            );
        }
        for invariant in &flow.invariants {
            let names: Vec<&String> = match invariant {
                Invariant::Before { first, then } => vec![first, then],
                Invariant::Excludes { node, others } => std::iter::once(node).chain(others).collect(),
            };
            for name in names.into_iter().filter(|name| !is_known(name)) {
                let message = format!("an invariant is about {name:?}, which is not a node");
                self.flow_problem("flow.unknown_node", "invariants", message, remedy());
            }
        }
    }

    fn check_ways(&mut self, graph: &Graph<'_>) {
        let flow = self.flow;
        let ends: Vec<usize> = (0..flow.nodes.len()).filter(|at| flow.nodes[*at].is_end()).collect();
        for (at, node) in flow.nodes.iter().enumerate() {
            if !has_path_connecting(&graph.edges, ROOT, at, None) {
                let message = format!("no way leads from an entry to {}", node.name);
                let remedy =
                    "add it to possible_next_nodes of another node or to `entries`, or remove it".to_owned();
                self.problem("flow.unreachable", node, "name", message, remedy);
            }
            if !ends.iter().any(|end| has_path_connecting(&graph.edges, at, *end, None)) {
                let message = format!("no way leads from {} to an end", node.name);
                let remedy = "let it lead to a node without possible_next_nodes".to_owned();
                self.problem("flow.no_end", node, "possible_next_nodes", message, remedy);
            }
        }
    }

    /// Every loop has to pass a node that says how often it may be entered.
    fn check_loops(&mut self, graph: &Graph<'_>) {
        let mut unbounded = graph.edges.clone();
        for (at, _) in self.flow.nodes.iter().enumerate().filter(|(_, node)| node.max_visits.is_some()) {
            unbounded.remove_node(at);
        }
        for group in tarjan_scc(&unbounded) {
            let mut group = group;
            group.sort_unstable();
            let Some(node) = group.first().and_then(|at| self.flow.nodes.get(*at)) else { continue };
            let repeats = group.len() > 1 || unbounded.contains_edge(group[0], group[0]);
            if repeats {
                let names: Vec<&str> =
                    group.iter().filter_map(|at| self.flow.nodes.get(*at)).map(|n| n.name.as_str()).collect();
                let message = format!("the loop of {} has no bound", names.join(", "));
                let remedy = "set max_visits of one of its nodes".to_owned();
                self.problem("flow.unbounded_loop", node, "possible_next_nodes", message, remedy);
            }
        }
    }

    fn check_inputs(&mut self, graph: &Graph<'_>) {
        let flow = self.flow;
        let is_given =
            |name: &str| STANDARD_INPUTS.contains(&name) || flow.inputs.iter().any(|input| input == name);
        let produced_before = |at: usize, name: &str| {
            let produces = |(from, node): (usize, &Node)| {
                node.outputs.iter().any(|output| output == name) && graph.leads(from, at)
            };
            flow.nodes.iter().enumerate().any(produces)
        };
        for (at, node) in flow.nodes.iter().enumerate() {
            for (key, names) in [("inputs", &node.inputs), ("optional_inputs", &node.optional_inputs)] {
                for name in names.iter().filter(|name| !is_given(name) && !produced_before(at, name)) {
                    let message = format!("{} needs {name}, which no node before it produces", node.name);
                    let remedy =
                        format!("add {name} to `inputs` of the flow or to `outputs` of an earlier node");
                    self.problem("flow.no_producer", node, key, message, remedy);
                }
            }
            let own = |name: &str| node.outputs.iter().any(|output| output == name);
            for (key, name) in tested_values(node) {
                if !is_given(name) && !own(name) && !produced_before(at, name) {
                    let message =
                        format!("{} tests {name}, which neither it nor a node before it produces", node.name);
                    let remedy = format!("add {name} to `inputs` of the flow or to `outputs` of the node");
                    self.problem("flow.no_producer", node, key, message, remedy);
                }
            }
            self.check_approval(node);
            if let NodeKind::Tool { arguments, .. } = &node.kind {
                let known =
                    |name: &str| node.inputs.iter().chain(&node.optional_inputs).any(|input| input == name);
                for value in arguments.values() {
                    let name = value.split('/').next().unwrap_or_default();
                    if !known(name) {
                        let message =
                            format!("an argument of {} is {value}, which is not among its inputs", node.name);
                        let remedy = format!("add {name} to `inputs` of the node");
                        self.problem("flow.no_producer", node, "arguments", message, remedy);
                    }
                }
            }
        }
    }

    /// Only inputs can be approved, and the values that a list may contain are an input as well.
    fn check_approval(&mut self, node: &Node) {
        let NodeKind::Approval { values, .. } = &node.kind else { return };
        let is_input =
            |name: &str| node.inputs.iter().chain(&node.optional_inputs).any(|input| input == name);
        for name in node.outputs.iter().filter(|name| !is_input(name)) {
            let message = format!("{} approves {name}, which is not among its inputs", node.name);
            let remedy = format!("add {name} to `inputs`, or remove it from `outputs`");
            self.problem("flow.approval", node, "outputs", message, remedy);
        }
        for (list, allowed) in values {
            if !node.outputs.contains(list) {
                let message =
                    format!("{} lets a person change {list}, which is not among its outputs", node.name);
                let remedy = format!("add {list} to `inputs` and `outputs`, or remove it from `values`");
                self.problem("flow.approval", node, "values", message, remedy);
            }
            let name = allowed.split('/').next().unwrap_or_default();
            if !is_input(name) {
                let message =
                    format!("{list} of {} may contain {allowed:?}, which is not among its inputs", node.name);
                let remedy = "name an input that lists what may be added, or the list itself".to_owned();
                self.problem("flow.approval", node, "values", message, remedy);
            }
        }
    }

    fn check_invariants(&mut self, graph: &Graph<'_>) {
        let dominators = simple_fast(&graph.edges, ROOT);
        for invariant in &self.flow.invariants {
            match invariant {
                Invariant::Before { first, then } => {
                    let (one, other) = (graph.place(first), graph.place(then));
                    let mut strict = dominators.strict_dominators(other).into_iter().flatten();
                    if one == other || !strict.any(|dominator| dominator == one) {
                        let message = format!("{then} can be reached without {first}");
                        let remedy = format!("remove the edges that lead around {first}");
                        self.flow_problem("flow.invariant", "invariants", message, remedy);
                    }
                }
                Invariant::Excludes { node, others } => {
                    for other in others {
                        let (one, two) = (graph.place(node), graph.place(other));
                        if one == two || graph.leads(one, two) || graph.leads(two, one) {
                            let message = format!("{node} and {other} can be entered in one execution");
                            let remedy = "remove the edges between them".to_owned();
                            self.flow_problem("flow.invariant", "invariants", message, remedy);
                        }
                    }
                }
            }
        }
    }

    /// The paths of examples, with all declared inputs given.
    fn check_examples(&mut self) {
        let given: BTreeSet<String> = self.flow.inputs.iter().cloned().collect();
        for example in self.flow.examples.iter().filter(|example| !example.path.is_empty()) {
            for problem in path_problems(self.flow, &example.path, &given) {
                let message = format!("the path of the example {:?}: {}", example.say, problem.message);
                self.flow_problem("flow.example", "examples", message, "correct the path".to_owned());
            }
        }
    }
}

/// The names of the values that a node's conditions test, with the key that does.
fn tested_values(node: &Node) -> impl Iterator<Item = (&'static str, &str)> {
    let when = match &node.kind {
        NodeKind::Approval { when, .. } => when.as_ref(),
        _ => None,
    };
    let conditions = node.conditions.iter().map(|condition| ("conditions", condition.when.name()));
    conditions.chain(when.map(|test| ("when", test.name())))
}

/// Whether a text may be the name of a node or a value.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=64).contains(&text.len()) && text.chars().all(fits)
}
