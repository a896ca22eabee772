use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn node(name: &str, inputs: &[&str], outputs: &[&str], next: &[&str]) -> Node {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Node {
        name: name.to_owned(),
        description: format!("Does {name}."),
        inputs: names(inputs),
        optional_inputs: Vec::new(),
        outputs: names(outputs),
        possible_next_nodes: names(next),
        conditions: Vec::new(),
        kind: NodeKind::Condition,
        max_visits: None,
    }
}

fn when(node: &mut Node, next: &str, value: &str, test: Comparison) {
    let when = ValueTest { value: value.to_owned(), test };
    node.conditions.push(EdgeCondition { next: next.to_owned(), when });
}

/// classify → general, or generate → validate ⇄ generate → execute.
fn query_flow() -> Flow {
    let mut classify =
        node("classify", &["request"], &["kind", "draft"], &["general", "generate", "validate"]);
    when(&mut classify, "general", "kind", Comparison::Is(json!("general")));
    let mut generate = node("generate", &["request"], &["sql"], &["validate"]);
    generate.max_visits = Some(3);
    let mut validate = node("validate", &["sql"], &["valid"], &["execute", "generate"]);
    when(&mut validate, "execute", "valid", Comparison::Is(json!(true)));
    when(&mut validate, "generate", "valid", Comparison::Is(json!(false)));
    Flow {
        name: "query".to_owned(),
        description: "Answers questions from a database.".to_owned(),
        examples: vec![
            PathExample {
                say: "Fix this SQL".to_owned(),
                path: vec!["classify".into(), "validate".into(), "execute".into()],
            },
            PathExample {
                say: "What can you do?".to_owned(),
                path: vec!["classify".into(), "general".into()],
            },
        ],
        inputs: vec!["sql".to_owned()],
        entries: vec!["classify".to_owned()],
        nodes: vec![
            classify,
            node("general", &["request"], &[], &[]),
            generate,
            validate,
            node("execute", &["sql", "valid"], &["rows"], &[]),
        ],
        max_node_steps: 12,
        invariants: vec![
            Invariant::Before { first: "validate".into(), then: "execute".into() },
            Invariant::Excludes { node: "general".into(), others: vec!["generate".into(), "execute".into()] },
        ],
    }
}

fn path(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn codes(problems: &[FlowProblem]) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.code).collect()
}

fn values(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn sound_flow_has_no_problems() {
    assert_eq!(check(&query_flow()), []);
}

#[test]
fn each_fault_of_a_graph_is_found() {
    let broken = |change: &dyn Fn(&mut Flow)| {
        let mut flow = query_flow();
        change(&mut flow);
        codes(&check(&flow))
    };
    assert_eq!(broken(&|flow| flow.nodes[1].possible_next_nodes = path(&["nowhere"])), ["flow.unknown_node"]);
    assert_eq!(broken(&|flow| flow.nodes.push(node("island", &[], &[], &[]))), ["flow.unreachable"]);
    assert_eq!(
        broken(&|flow| {
            flow.nodes[1].possible_next_nodes = path(&["general"]);
            flow.nodes[1].max_visits = Some(2);
        }),
        ["flow.no_end"]
    );
    assert_eq!(broken(&|flow| flow.nodes[4].inputs.push("gone".into())), ["flow.no_producer"]);
    assert_eq!(broken(&|flow| flow.nodes[2].max_visits = None), ["flow.unbounded_loop"]);
    assert_eq!(
        broken(&|flow| flow.nodes[0].possible_next_nodes.push("execute".into())),
        ["flow.invariant"],
        "a way around the node that has to come before"
    );
    assert_eq!(
        broken(&|flow| flow.nodes[1].possible_next_nodes.push("generate".into())),
        ["flow.invariant", "flow.invariant"],
        "excluded nodes in one execution"
    );
    assert_eq!(broken(&|flow| flow.nodes[4].name = "validate".into())[..1], ["flow.duplicate_node"]);
    assert_eq!(broken(&|flow| flow.examples[0].path.truncate(2)), ["flow.example"]);
    assert_eq!(broken(&|flow| flow.entries.clear()), ["flow.no_entry"]);
}

#[test]
fn paths_are_checked_against_edges_inputs_and_invariants() {
    let flow = query_flow();
    let problems = |names: &[&str], given: &[&str]| {
        let given: BTreeSet<String> = given.iter().map(|name| (*name).to_owned()).collect();
        codes(&path_problems(&flow, &path(names), &given))
    };
    assert_eq!(problems(&["classify", "generate", "validate", "execute"], &[]), [] as [&str; 0]);
    assert_eq!(problems(&["classify", "validate", "execute"], &["sql"]), [] as [&str; 0]);
    assert_eq!(problems(&["classify", "validate", "execute"], &[]), ["path.input", "path.input"]);
    assert_eq!(problems(&["classify", "execute"], &["sql", "valid"]), ["path.no_edge", "path.invariant"]);
    assert_eq!(problems(&["generate", "validate"], &[]), ["path.entry", "path.end"]);
    assert_eq!(problems(&["classify", "nonsense"], &[])[0], "path.unknown_node");
    assert_eq!(problems(&[], &[]), ["path.empty"]);
    let looping =
        ["classify", "generate", "validate", "generate", "validate", "generate", "validate", "generate"];
    assert!(problems(&looping, &[]).contains(&"path.max_visits"));
}

#[test]
fn rules_choose_the_path_of_the_example_that_shares_words_and_is_possible() {
    let flow = query_flow();
    let sql: BTreeSet<String> = ["sql".to_owned()].into();
    assert_eq!(rules_path(&flow, "please fix this sql", &sql), ["classify", "validate", "execute"]);
    let full = ["classify", "generate", "validate", "execute"];
    assert_eq!(
        full_path(&flow, &BTreeSet::new()),
        ["classify", "general"],
        "the first edge that leads to an end"
    );
    assert_eq!(rules_path(&flow, "what can you do for me", &BTreeSet::new()), ["classify", "general"]);
    let mut flow = flow;
    flow.nodes[0].possible_next_nodes.rotate_left(1);
    assert_eq!(rules_path(&flow, "fix this sql", &BTreeSet::new()), full, "there is no SQL");
}

/// Follows a flow; each node's outputs come from `outputs`, one entry per visit.
fn follow(
    flow: &Flow,
    planned: &[String],
    outputs: &dyn Fn(&str, usize) -> Value,
) -> (Vec<String>, Vec<LeftPath>, NextNode) {
    let (mut entered, mut lefts) = (Vec::new(), Vec::new());
    let mut known = values(&json!({"request": "x"}));
    loop {
        let walk = Walk { flow, path: planned, entered: &entered, values: &known };
        match walk.next_node() {
            NextNode::Node { name, left } => {
                lefts.extend(left);
                let visit = entered.iter().filter(|earlier| **earlier == name).count();
                known.extend(flow.node(&name).unwrap().outputs_in(&outputs(&name, visit)));
                entered.push(name);
            }
            end => return (entered, lefts, end),
        }
    }
}

#[test]
fn planned_path_is_followed_and_left_where_a_condition_says_so() {
    let flow = query_flow();
    let planned = path(&["classify", "generate", "validate", "execute"]);
    let first_fails = |name: &str, visit: usize| match name {
        "classify" => json!({"kind": "data", "draft": ""}),
        "validate" => json!({"valid": visit > 0}),
        _ => json!({"sql": "select 1", "rows": []}),
    };
    let (entered, lefts, end) = follow(&flow, &planned, &first_fails);
    assert_eq!(entered, ["classify", "generate", "validate", "generate", "validate", "execute"]);
    assert_eq!((lefts.len(), lefts[0].planned.as_str()), (1, "execute"));
    assert_eq!(end, NextNode::End);
    assert_eq!(path_index(&planned, &entered), Some(3));
    assert_eq!(path_index(&planned, &entered[..4]), Some(1), "back in the loop");
    let general = |_: &str, _: usize| json!({"kind": "general"});
    assert_eq!(follow(&flow, &planned, &general).0, ["classify", "general"]);
}

#[test]
fn loop_ends_at_its_bound() {
    let flow = query_flow();
    let never_valid = |name: &str, _: usize| match name {
        "validate" => json!({"valid": false}),
        _ => json!({"kind": "data", "draft": "", "sql": "x"}),
    };
    let (entered, _, end) =
        follow(&flow, &path(&["classify", "generate", "validate", "execute"]), &never_valid);
    assert_eq!(entered.iter().filter(|name| *name == "generate").count(), 3);
    let NextNode::Stuck { code, why } = end else { panic!("{end:?}") };
    assert_eq!(code, "flow.no_edge");
    assert!(why.contains("max_visits"), "{why}");
}

#[test]
fn outputs_are_fields_or_the_whole_of_what_was_returned() {
    let mut one = node("one", &[], &["rows"], &[]);
    assert_eq!(one.outputs_in(&json!({"rows": [1], "more": 2})), values(&json!({"rows": [1]})));
    assert_eq!(one.outputs_in(&json!([1])), values(&json!({"rows": [1]})));
    assert_eq!(one.outputs_in(&Value::Null), Map::new());
    let results = [("rows".to_owned(), "/found/0".to_owned())].into();
    let (scene, tool) = ("S".to_owned(), "T".to_owned());
    one.kind = NodeKind::Tool { scene, tool, arguments: [].into(), fixed: Map::new(), results };
    assert_eq!(one.outputs_in(&json!({"found": [7]})), values(&json!({"rows": 7})));
}

#[test]
fn diagram_shows_nodes_edges_and_conditions() {
    insta::assert_snapshot!(mermaid(&query_flow(), &path(&["classify"])), @r#"
    flowchart TD
        n0{"classify"}
        n1{"general"}
        n2{"generate"}
        n3{"validate"}
        n4{"execute"}
        n0 -->|"kind is #quot;general#quot;"| n1
        n0 --> n2
        n0 --> n3
        n2 --> n3
        n3 -->|"valid is true"| n4
        n3 -->|"valid is false"| n2
        classDef entered stroke-width:3px
        class n0 entered
    "#);
}

/// Random flows: edges between up to eight nodes, with conditions, outputs and bounds.
fn random_flow() -> impl Strategy<Value = Flow> {
    let edges = proptest::collection::vec((0..8usize, 0..8usize, any::<bool>()), 1..20);
    (2..8usize, edges, 1..4u32).prop_map(|(count, edges, bound)| {
        let name = |at: usize| format!("n{at}");
        let mut nodes: Vec<Node> =
            (0..count).map(|at| node(&name(at), &[], &[&format!("v{at}")], &[])).collect();
        // A chain through all nodes, so that most graphs are sound.
        let chain = (1..count).map(|at| (at - 1, at, false));
        let others = edges.into_iter().map(|(from, to, test)| (from % (count - 1), to % count, test));
        for (from, to, conditional) in others.chain(chain) {
            let next = name(to);
            if !nodes[from].possible_next_nodes.contains(&next) {
                nodes[from].possible_next_nodes.push(next.clone());
                if conditional {
                    let value = format!("v{from}");
                    when(&mut nodes[from], &next, &value, Comparison::Is(json!(to % 3)));
                }
            }
            if to <= from {
                nodes[to].max_visits = Some(bound);
            }
        }
        Flow {
            name: "random".into(),
            description: "Random.".into(),
            entries: vec![name(0)],
            nodes,
            max_node_steps: 15,
            invariants: vec![Invariant::Before { first: name(0), then: name(count - 1) }],
            ..Flow::default()
        }
    })
}

proptest! {
    #[test]
    fn every_execution_of_a_sound_flow_is_bounded_and_keeps_to_edges_and_invariants(
        flow in random_flow(),
        picks in proptest::collection::vec(0..3u32, 16),
        plans in any::<bool>(),
    ) {
        prop_assume!(check(&flow).is_empty());
        let full = full_path(&flow, &BTreeSet::new());
        prop_assert!(full.is_empty() || path_problems(&flow, &full, &BTreeSet::new()).is_empty());
        let planned = if plans { full } else { Vec::new() };
        let outputs = |name: &str, visit: usize| {
            let at: usize = name[1..].parse().unwrap();
            json!({ format!("v{at}"): picks[(at + visit) % picks.len()] })
        };
        let (entered, _, end) = follow(&flow, &planned, &outputs);
        prop_assert!(entered.len() <= 15);
        for pair in entered.windows(2) {
            prop_assert!(flow.node(&pair[0]).unwrap().possible_next_nodes.contains(&pair[1]));
        }
        if let Some(last) = entered.last() {
            let is_end = flow.node(last).unwrap().is_end();
            let is_stuck = matches!(end, NextNode::Stuck { .. });
            prop_assert!(is_stuck || is_end);
        }
        for one in &flow.nodes {
            let visits = entered.iter().filter(|name| **name == one.name).count();
            prop_assert!(one.max_visits.is_none_or(|max| visits <= max as usize));
        }
        let (first, then) = ("n0", format!("n{}", flow.nodes.len() - 1));
        if let Some(at) = entered.iter().position(|name| *name == then) {
            prop_assert!(then == first || entered[..at].iter().any(|name| name == first));
        }
    }

    #[test]
    fn paths_of_sound_flows_are_followed_as_planned_where_no_condition_speaks(flow in random_flow()) {
        let mut flow = flow;
        flow.nodes.iter_mut().for_each(|node| node.conditions.clear());
        prop_assume!(check(&flow).is_empty());
        let full = full_path(&flow, &BTreeSet::new());
        prop_assume!(!full.is_empty());
        let (entered, lefts, _) = follow(&flow, &full, &|_, _| json!(1));
        prop_assert_eq!(entered, full);
        prop_assert!(lefts.is_empty());
    }

    #[test]
    fn definitions_survive_their_wire_form(flow in random_flow()) {
        let text = serde_json::to_string(&flow).unwrap();
        let read: Flow = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.hash(), flow.hash());
        prop_assert_eq!(read, flow);
    }
}

#[test]
fn without_some_nodes_only_paths_that_reach_an_end_are_left() {
    let flow = query_flow();
    let without = |names: &[&str]| flow.without(&names.iter().map(|name| (*name).to_owned()).collect());
    let names = |flow: &Flow| flow.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    let general = without(&["execute"]);
    // Nothing leads to an end from what would only lead to the removed node, loops included.
    assert_eq!(names(&general), ["classify", "general"]);
    assert_eq!(full_path(&general, &BTreeSet::new()), ["classify", "general"]);
    assert_eq!(general.nodes[0].conditions.len(), 1);
    assert_eq!(general.examples.len(), 1, "only the examples whose path is left");
    assert_eq!(names(&without(&["general"])), ["classify", "generate", "validate", "execute"]);
    assert!(without(&["general", "execute"]).nodes.is_empty());
    assert_eq!(without(&[]), flow);
}

#[test]
fn approval_lets_only_lists_be_changed_that_are_its_inputs_and_outputs() {
    let approve = |outputs: &[&str], values: &[(&str, &str)]| {
        let mut flow = query_flow();
        let mut node = node("approve", &["sql"], outputs, &["execute"]);
        let values = values.iter().map(|(list, of)| ((*list).to_owned(), (*of).to_owned())).collect();
        node.kind = NodeKind::Approval {
            question: BTreeMap::new(),
            parameters: None,
            when: None,
            by: Decider::User,
            values,
        };
        flow.nodes[3].possible_next_nodes.push("approve".to_owned());
        flow.nodes.push(node);
        codes(&check(&flow))
    };
    assert!(approve(&["sql"], &[("sql", "sql")]).is_empty());
    assert_eq!(approve(&["rows"], &[]), ["flow.approval"]);
    assert_eq!(approve(&["sql"], &[("rows", "sql")]), ["flow.approval"]);
    assert_eq!(approve(&["sql"], &[("sql", "all/tables")]), ["flow.approval"]);
}

#[test]
fn flow_that_is_too_large_to_be_kept_with_plans_is_refused() {
    let mut flow = query_flow();
    flow.nodes[0].description = "x".repeat(MAX_FLOW_BYTES);
    assert_eq!(codes(&check(&flow)), ["flow.too_large"]);
}
