//! Paths through a flow: whether one may be executed, and those that are known without a model.

use std::collections::BTreeSet;

use super::{Flow, FlowProblem, STANDARD_INPUTS};

/// Maximum number of steps of the search for a path through the full graph.
const MAX_SEARCH_STEPS: u32 = 20_000;

/// The share of an example's words that a request has to contain, in percent, so that it counts as such a request.
const MIN_SHARED_WORDS: usize = 50;

/// All problems of a path, if the values named in `given` exist at its beginning. Empty if it may be executed.
pub fn path_problems(flow: &Flow, path: &[String], given: &BTreeSet<String>) -> Vec<FlowProblem> {
    let mut checker = PathChecker { flow, problems: Vec::new() };
    let (Some(first), Some(last)) = (path.first(), path.last()) else {
        let message = format!("the path is empty: begin with one of {}", flow.entries.join(", "));
        checker.problem("path.empty", "", message);
        return checker.problems;
    };
    checker.check_names(path);
    checker.check_ends(first, last);
    if path.len() > flow.max_node_steps as usize {
        let message = format!("{} nodes, but at most {} are entered", path.len(), flow.max_node_steps);
        checker.problem("path.too_long", last, message);
    }
    checker.check_edges(path);
    checker.check_visits(path, given);
    checker.problems
}

/// Collects the problems of a path, each once.
struct PathChecker<'a> {
    flow: &'a Flow,
    problems: Vec<FlowProblem>,
}

impl PathChecker<'_> {
    fn problem(&mut self, code: &'static str, node: &str, message: String) {
        let node = Some(node.to_owned());
        let problem = FlowProblem { code, node, key: "path", message, remedy: String::new() };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn check_names(&mut self, path: &[String]) {
        let flow = self.flow;
        for name in path.iter().filter(|name| flow.node(name).is_none()) {
            let nodes: Vec<&str> = flow.nodes.iter().map(|node| node.name.as_str()).collect();
            let message = format!("there is no node {name:?}; the nodes are {}", nodes.join(", "));
            self.problem("path.unknown_node", name, message);
        }
    }

    fn check_ends(&mut self, first: &str, last: &str) {
        let flow = self.flow;
        if !flow.entries.iter().any(|entry| entry == first) {
            let entries = flow.entries.join(", ");
            let message = format!("a path begins with one of {entries}, not with {first}");
            self.problem("path.entry", first, message);
        }
        if let Some(node) = flow.node(last).filter(|node| !node.is_end()) {
            let next = node.possible_next_nodes.join(", ");
            let message = format!("the flow does not end with {last}: go on with one of {next}");
            self.problem("path.end", last, message);
        }
    }

    fn check_edges(&mut self, path: &[String]) {
        let flow = self.flow;
        for pair in path.windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            let Some(node) = flow.node(from).filter(|node| !node.possible_next_nodes.contains(to)) else {
                continue;
            };
            let message = match node.is_end() {
                true => format!("nothing follows {from}: the flow ends there"),
                false => format!("{to} does not follow {from}: {} may", node.possible_next_nodes.join(", ")),
            };
            self.problem("path.no_edge", from, message);
        }
    }

    /// Checks each node by those before it: how often it is entered, the invariants, and its inputs.
    fn check_visits(&mut self, path: &[String], given: &BTreeSet<String>) {
        let flow = self.flow;
        let mut known: BTreeSet<&str> = given.iter().map(String::as_str).chain(STANDARD_INPUTS).collect();
        for (at, name) in path.iter().enumerate() {
            let Some(node) = flow.node(name) else { continue };
            let before = &path[..at];
            let visits = before.iter().filter(|earlier| *earlier == name).count() + 1;
            if let Some(max) = node.max_visits.filter(|max| visits > *max as usize) {
                self.problem("path.max_visits", name, format!("{name} is entered more than {max} times"));
            }
            if let Some(broken) = flow.broken_invariant(name, before) {
                self.problem("path.invariant", name, broken);
            }
            for input in node.inputs.iter().filter(|input| !known.contains(input.as_str())) {
                let what = match producers(flow, input) {
                    names if names.is_empty() => "it was not given".to_owned(),
                    names => format!("{} produces it", names.join(" or ")),
                };
                let message = format!("{name} needs {input}, which nothing before it produces: {what}");
                self.problem("path.input", name, message);
            }
            known.extend(node.outputs.iter().map(String::as_str));
        }
    }
}

/// The nodes that produce a value.
fn producers<'a>(flow: &'a Flow, value: &str) -> Vec<&'a str> {
    let producers = flow.nodes.iter().filter(|node| node.outputs.iter().any(|output| output == value));
    producers.map(|node| node.name.as_str()).collect()
}

/// The path through the full graph: at each node the first edge from which an end can be reached, without entering a
/// node twice. Empty if the given values suffice for no path.
pub fn full_path(flow: &Flow, given: &BTreeSet<String>) -> Vec<String> {
    let mut budget = MAX_SEARCH_STEPS;
    flow.entries
        .iter()
        .find_map(|entry| search(flow, given, vec![entry.clone()], &mut budget))
        .unwrap_or_default()
}

fn search(flow: &Flow, given: &BTreeSet<String>, path: Vec<String>, budget: &mut u32) -> Option<Vec<String>> {
    *budget = budget.checked_sub(1)?;
    let (name, before) = path.split_last()?;
    let node = flow.node(name)?;
    let produced = before.iter().filter_map(|name| flow.node(name)).flat_map(|node| &node.outputs);
    let known: BTreeSet<&str> =
        given.iter().chain(produced).map(String::as_str).chain(STANDARD_INPUTS).collect();
    let has_inputs = node.inputs.iter().all(|input| known.contains(input.as_str()));
    if !has_inputs || !flow.permits(name, before) || path.len() > flow.max_node_steps as usize {
        return None;
    }
    if node.is_end() {
        return Some(path);
    }
    node.possible_next_nodes.iter().filter(|next| !path.contains(next)).find_map(|next| {
        let further = path.iter().chain([next]).cloned().collect();
        search(flow, given, further, budget)
    })
}

/// The path that the rules choose for a request: that of the declared example that has the largest share of its words
/// in common with the request, otherwise the full path.
pub fn rules_path(flow: &Flow, request: &str, given: &BTreeSet<String>) -> Vec<String> {
    let said = words(request);
    let score = |say: &str| {
        let own = words(say);
        let shared = own.intersection(&said).count();
        let all = own.union(&said).count().max(1);
        (shared * 100 >= own.len() * MIN_SHARED_WORDS && shared > 0).then_some((shared * 1000 / all, shared))
    };
    let usable = flow.examples.iter().filter(|example| path_problems(flow, &example.path, given).is_empty());
    // The earlier one of equally good examples.
    let best = usable
        .rev()
        .filter_map(|example| Some((score(&example.say)?, example)))
        .max_by_key(|(score, _)| *score);
    best.map_or_else(|| full_path(flow, given), |(_, example)| example.path.clone())
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
