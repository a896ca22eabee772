//! Generated flows: graphs with conditions, loops, writes and approvals, and the scenes that their nodes need.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::approvers;
use super::world::Dice;
use crate::flow::{Comparison, Decider, EdgeCondition, Flow, Invariant, Node, NodeKind, ValueTest, check};
use crate::run::Effect;
use crate::scene::{Catalogue, Scene, SceneTool, fallback_tool};
use crate::tools::{ToolContext, native};

/// Generated graphs that are tried until one is a flow.
const TRIES: usize = 40;

/// The names of the flows of a world.
pub const FLOWS: [&str; 2] = ["F0", "F1"];

/// A random flow without problems.
pub fn flow(dice: &mut Dice, name: &str) -> Flow {
    let found = (0..TRIES).find_map(|_| {
        let made = graph(dice, name);
        check(&made).is_empty().then_some(made)
    });
    let mut flow = found.unwrap_or_else(|| line(dice, name));
    // Some of the invariants that hold of the graph are declared.
    let names: Vec<String> = flow.nodes.iter().map(|node| node.name.clone()).collect();
    for first in &names {
        for then in names.iter().filter(|then| *then != first) {
            let before = Invariant::Before { first: first.clone(), then: then.clone() };
            let excludes = Invariant::Excludes { node: first.clone(), others: vec![then.clone()] };
            for invariant in [before, excludes] {
                if dice.pick(4) < 3 {
                    continue;
                }
                flow.invariants.push(invariant);
                if !check(&flow).is_empty() {
                    flow.invariants.pop();
                }
            }
        }
    }
    flow
}

fn value(at: usize) -> String {
    format!("v{at}")
}

/// Nodes in a row with further edges ahead and back, and further ends. Edges may have conditions.
fn graph(dice: &mut Dice, name: &str) -> Flow {
    let count = 2 + dice.pick(7);
    let mut values: Vec<String> = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    for at in 0..count {
        let node = node(dice, at, &values);
        values.extend(
            node.outputs.iter().filter(|output| !values.contains(output)).cloned().collect::<Vec<_>>(),
        );
        nodes.push(node);
    }
    for at in 0..count - 1 {
        let mut next = vec![at + 1];
        for _ in 0..dice.pick(3) {
            let to = if dice.pick(3) == 2 { dice.pick(at + 1) } else { at + 1 + dice.pick(count - at - 1) };
            if !next.contains(&to) {
                next.push(to);
            }
        }
        let turns = dice.pick(3) % next.len().max(1);
        next.rotate_left(turns);
        for to in next.iter().filter(|to| **to <= at) {
            nodes[*to].max_visits.get_or_insert(1 + dice.pick(3) as u32);
        }
        nodes[at].possible_next_nodes = next.iter().map(|to| format!("n{to}")).collect();
    }
    for at in 1..count - 1 {
        if dice.pick(6) == 5 {
            nodes[at].possible_next_nodes.clear();
            let around = format!("n{}", at + 1);
            if !nodes[at - 1].possible_next_nodes.contains(&around) {
                nodes[at - 1].possible_next_nodes.push(around);
            }
        }
    }
    for at in 0..count {
        let known: Vec<String> = nodes[..=at].iter().flat_map(|node| node.outputs.clone()).collect();
        if !known.is_empty() {
            nodes[at].conditions = conditions(dice, &nodes[at].possible_next_nodes, &known);
        }
    }
    let mut entries = vec!["n0".to_owned()];
    if dice.pick(5) == 4 {
        entries.push(format!("n{}", 1 + dice.pick(count - 1)));
    }
    Flow {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        inputs: vec![value(dice.pick(count))],
        entries,
        nodes,
        max_node_steps: 2 + dice.pick(24) as u32,
        ..Flow::default()
    }
}

fn conditions(dice: &mut Dice, next: &[String], known: &[String]) -> Vec<EdgeCondition> {
    let mut conditions = Vec::new();
    for next in next {
        if dice.pick(3) < 2 {
            continue;
        }
        let test = match dice.pick(3) {
            0 => Comparison::Is(json!(dice.pick(2))),
            1 => Comparison::IsNot(json!(dice.pick(2))),
            _ => Comparison::Exists(dice.pick(3) > 0),
        };
        let when = ValueTest { value: known[dice.pick(known.len())].clone(), test };
        conditions.push(EdgeCondition { next: next.clone(), when });
    }
    conditions
}

/// A flow that goes around until its bound, which is as high as it may be.
pub fn endless(name: &str) -> Flow {
    let node = |name: &str, next: &[&str]| Node {
        name: name.to_owned(),
        description: "Goes on.".to_owned(),
        inputs: Vec::new(),
        optional_inputs: Vec::new(),
        outputs: Vec::new(),
        possible_next_nodes: next.iter().map(|next| (*next).to_owned()).collect(),
        conditions: Vec::new(),
        kind: NodeKind::Condition,
        max_visits: Some(1000),
    };
    Flow {
        name: name.to_owned(),
        description: "Goes around.".to_owned(),
        entries: vec!["n0".to_owned()],
        nodes: vec![node("n0", &["n0", "n1"]), node("n1", &[])],
        max_node_steps: 1000,
        ..Flow::default()
    }
}

/// Each kind of node once, one after the other.
fn line(dice: &mut Dice, name: &str) -> Flow {
    let mut nodes: Vec<Node> = (0..6).map(|at| node(dice, at, &[value(0)])).collect();
    for (at, node) in nodes.iter_mut().enumerate().take(5) {
        node.possible_next_nodes = vec![format!("n{}", at + 1)];
    }
    let entries = vec!["n0".to_owned()];
    let inputs = vec![value(0)];
    Flow {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        inputs,
        entries,
        nodes,
        max_node_steps: 12,
        ..Flow::default()
    }
}

/// A node that may need, or let a person approve, one of these values.
fn node(dice: &mut Dice, at: usize, known: &[String]) -> Node {
    let own = value(at);
    let earlier = (!known.is_empty()).then(|| known[dice.pick(known.len())].clone());
    let (mut inputs, mut optional_inputs, mut outputs) = (Vec::new(), Vec::new(), vec![own.clone()]);
    let kind = match (dice.pick(7), &earlier) {
        (0, _) => NodeKind::Native { native: "any".to_owned() },
        (1, _) => NodeKind::Llm {
            template: "Do it.".to_owned(),
            output: json!({"type": "object", "properties": {own.clone(): {}}}),
            fallback: (dice.pick(2) == 1).then(|| "any".to_owned()),
        },
        (3, Some(earlier)) => NodeKind::Approval {
            question: BTreeMap::from([("en".to_owned(), "May I?".to_owned())]),
            parameters: None,
            when: (dice.pick(3) == 2)
                .then(|| ValueTest { value: earlier.clone(), test: Comparison::Exists(true) }),
            by: if dice.pick(2) == 1 { Decider::User } else { Decider::Approver },
            values: BTreeMap::new(),
        },
        (2 | 3, _) => NodeKind::Condition,
        (kind, _) => NodeKind::Tool {
            scene: ["A", "B"][dice.pick(2)].to_owned(),
            tool: ["look", "book", "pay"][kind - 4].to_owned(),
            arguments: BTreeMap::new(),
            fixed: json!({"n": dice.pick(3)}).as_object().cloned().unwrap_or_default(),
            results: BTreeMap::from([(own, "/value".to_owned())]),
        },
    };
    match (&kind, earlier) {
        (NodeKind::Approval { .. }, Some(earlier)) => {
            outputs = vec![earlier.clone()];
            optional_inputs.push(earlier);
        }
        (NodeKind::Condition, _) => outputs.clear(),
        (_, Some(earlier)) if dice.pick(4) == 3 => inputs.push(earlier),
        _ => {}
    }
    Node {
        name: format!("n{at}"),
        description: "Does its part.".to_owned(),
        inputs,
        optional_inputs,
        outputs,
        possible_next_nodes: Vec::new(),
        conditions: Vec::new(),
        kind,
        max_visits: None,
    }
}

/// The scenes of the other worlds, and these flows.
pub fn catalogue(flows: &[Flow]) -> Catalogue {
    let scenes = approvers::catalogue(false).iter().map(|scene| Scene::clone(scene));
    Catalogue::new(scenes.chain(flows.iter().map(scene)))
}

/// The scene that stands for a flow.
fn scene(flow: &Flow) -> Scene {
    let tool = |name: &str| {
        let does = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
        SceneTool::dynamic(name, "Does it.", Effect::Read, json!({"type": "object"}), does)
    };
    let mut builder =
        Scene::builder(&flow.name).description("Does it.").instructions("Do it.").example("do", "own");
    builder = builder.tool(tool("own"));
    for node in &flow.nodes {
        if !matches!(node.kind, NodeKind::Tool { .. } | NodeKind::Condition) {
            builder = builder.tool(tool(&node.name));
        }
        if matches!(node.kind, NodeKind::Llm { fallback: Some(_), .. }) {
            builder = builder.tool(tool(&fallback_tool(&node.name)));
        }
    }
    Scene { flow: Some(Arc::new(flow.clone())), ..builder.build().unwrap() }
}

/// What the function or the model of a node returns: mostly its outputs.
pub fn output(dice: &mut Dice, node: &Node) -> Value {
    let values = [json!(0), json!(1), json!(2), Value::Null, json!([])];
    let fields = node.outputs.iter().filter(|_| dice.pick(8) < 7).cloned().collect::<Vec<_>>();
    let fields: Map<String, Value> =
        fields.into_iter().map(|name| (name, values[dice.pick(values.len())].clone())).collect();
    Value::Object(fields)
}
