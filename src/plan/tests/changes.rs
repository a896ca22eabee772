//! The difference between two versions of a plan, as shown to people.

use std::collections::BTreeSet;

use proptest::prelude::*;

use serde_json::{Value, json};

use super::super::{Plan, PreparedCall, Step, diff};
use super::{any_plan, plan, step, valid};

/// Everything that people see of a step, and by which steps differ: number, scene, purpose, tools,
/// dependencies and prepared calls.
type StepSummary = (u32, String, String, BTreeSet<String>, Vec<u32>, Vec<(String, String)>);

fn summarise(step: &Step) -> StepSummary {
    let tools = step.expected_tools.iter().cloned().collect();
    let purpose = step.purpose.trim().to_owned();
    let calls = step.prepared_calls.iter();
    let calls = calls.map(|call| (call.tool.clone(), json!(call.arguments).to_string())).collect();
    (step.step_number, step.scene_name.clone(), purpose, tools, step.depends_on_step.iter().collect(), calls)
}

fn set(plan: &Plan) -> BTreeSet<StepSummary> {
    plan.steps.iter().map(summarise).collect()
}

fn prepared(arguments: Value) -> PreparedCall {
    PreparedCall { tool: "AddCity".to_owned(), arguments: arguments.as_object().unwrap().clone() }
}

/// Changes one step of a valid plan, or the number of steps.
fn changed(plan: &Plan, at: usize, how: u8) -> Plan {
    let mut other = plan.clone();
    let last = other.steps.iter().map(|s| s.step_number).max().unwrap_or(0);
    let step = &mut other.steps[at];
    match how {
        0 => step.purpose.push_str(" at noon"),
        1 => step.expected_tools.push("AddCity".to_owned()),
        2 => step.expected_tools.clear(),
        3 => step.depends_on_step = step.depends_on_step.iter().skip(1).collect(),
        4 => step.scene_name = if step.scene_name == "Weather" { "Identity" } else { "Weather" }.to_owned(),
        5 => {
            other.steps.remove(at);
        }
        6 => {
            let more = Step { step_number: last + 1, ..step.clone() };
            other.steps.push(more);
        }
        7 => step.purpose.push_str("  "),
        8 => other.reasoning.push_str("other words"),
        9 => step.prepared_calls.push(prepared(json!({"city": "Milan"}))),
        10 => {
            // Only the numbers, all of them.
            for step in &mut other.steps {
                step.step_number += 7;
                step.depends_on_step = step.depends_on_step.iter().map(|number| number + 7).collect();
            }
        }
        _ => other.steps.reverse(),
    }
    other
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_differ_exactly_where_their_steps_differ(
        (plan, ..) in valid(), at in any::<prop::sample::Index>(), how in 0..12u8
    ) {
        prop_assert_eq!(diff(&plan, &plan), Vec::<String>::new());
        let other = changed(&plan, at.index(plan.steps.len()), how);
        let same = set(&plan) == set(&other);
        prop_assert_eq!(diff(&plan, &other).is_empty(), same, "{:?}", diff(&plan, &other));
        prop_assert_eq!(diff(&other, &plan).is_empty(), same);
    }

    #[test]
    fn each_change_is_one_line_for_any_model_text(
        old in any_plan(), new in any_plan(), purpose in any::<String>(), name in any::<String>()
    ) {
        let mut new = new;
        for step in &mut new.steps {
            step.purpose.clone_from(&purpose);
            step.scene_name.push_str(&name);
            step.expected_tools.push(name.clone());
        }
        for line in diff(&old, &new).iter().chain(&diff(&new, &old)) {
            prop_assert!(["+ step ", "- step ", "~ step "].iter().any(|head| line.starts_with(head)), "{}", line);
            prop_assert!(!line.chars().any(|c| c.is_control()), "{:?}", line);
        }
    }
}

#[test]
fn changes_are_listed_line_by_line() {
    let before = plan(vec![
        step(1, &[]),
        Step { scene_name: "Identity".to_owned(), expected_tools: Vec::new(), ..step(2, &[]) },
        Step { purpose: "Ask for three days".to_owned(), ..step(3, &[1, 2]) },
    ]);
    let after = plan(vec![
        Step { expected_tools: vec!["AddCity".to_owned()], ..step(1, &[]) },
        Step { purpose: "Ask for \"two\" days".to_owned(), ..step(3, &[1]) },
        Step { purpose: "Tell\n~ step 1 Weather: tools -AddCity".to_owned(), ..step(4, &[3]) },
    ]);
    insta::assert_snapshot!("changes", diff(&before, &after).join("\n"));
    let begins = plan(vec![step(1, &[])]);
    let waits = plan(vec![step(1, &[2]), step(2, &[])]);
    insta::assert_snapshot!("changes_of_order", diff(&begins, &waits).join("\n"));
}

#[test]
fn moved_step_is_not_a_change() {
    let before = plan(vec![
        step(1, &[]),
        Step { scene_name: "Identity".to_owned(), expected_tools: Vec::new(), ..step(2, &[1]) },
        Step { purpose: "Ask for three days".to_owned(), ..step(3, &[2]) },
    ]);
    let after = plan(vec![
        Step { scene_name: "Identity".to_owned(), expected_tools: Vec::new(), ..step(1, &[]) },
        Step { purpose: "Ask for three days".to_owned(), ..step(2, &[1]) },
    ]);
    let told = diff(&before, &after);
    assert_eq!(
        told[1..],
        [
            "~ step 1 Identity: was step 2",
            "~ step 1 Identity: after 1, which is gone -> nothing",
            "~ step 2 Weather: was step 3"
        ]
    );
    assert!(told[0].starts_with("- step 1 Weather: "), "{told:?}");
}

#[test]
fn known_calls_are_shown_with_their_arguments() {
    let with = |calls: Vec<Value>| {
        plan(vec![Step {
            expected_tools: vec!["AddCity".to_owned()],
            prepared_calls: calls.into_iter().map(prepared).collect(),
            ..step(1, &[])
        }])
    };
    let (rome, milan) = (json!({"city": "Rome"}), json!({"city": "Milan \u{202e}"}));
    assert_eq!(
        diff(&with(vec![rome.clone()]), &with(vec![milan.clone()])),
        [r#"~ step 1 Weather: calls +AddCity {"city":"Milan \u202e"} -AddCity {"city":"Rome"}"#]
    );
    let twice = diff(&with(vec![rome.clone()]), &with(vec![rome.clone(), rome.clone()]));
    assert_eq!(twice, [r#"~ step 1 Weather: calls AddCity {"city":"Rome"}, AddCity {"city":"Rome"}"#]);
    let added = diff(&plan(vec![]), &with(vec![rome]));
    assert!(added[0].ends_with(r#"[AddCity]; AddCity {"city":"Rome"}"#), "{added:?}");
    assert_eq!(diff(&with(vec![milan.clone()]), &with(vec![milan])), Vec::<String>::new());
}
