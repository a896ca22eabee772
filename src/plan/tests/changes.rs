//! What one version of a plan changes in another, as people read it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{Plan, Step, diff};
use super::{any_plan, plan, step, valid};

/// All that people are told of a step, which is what makes two steps different: number, scene, purpose,
/// tools and dependencies.
type Told = (u32, String, String, BTreeSet<String>, Vec<u32>);

fn told(step: &Step) -> Told {
    let tools = step.expected_tools.iter().cloned().collect();
    let purpose = step.purpose.trim().to_owned();
    (step.step_number, step.scene_name.clone(), purpose, tools, step.depends_on_step.iter().collect())
}

fn set(plan: &Plan) -> BTreeSet<Told> {
    plan.steps.iter().map(told).collect()
}

/// A change of one step of a valid plan, or of their number.
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
        _ => other.steps.reverse(),
    }
    other
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_differs_from_another_exactly_where_a_step_does(
        (plan, ..) in valid(), at in any::<prop::sample::Index>(), how in 0..10u8
    ) {
        prop_assert_eq!(diff(&plan, &plan), Vec::<String>::new());
        let other = changed(&plan, at.index(plan.steps.len()), how);
        let same = set(&plan) == set(&other);
        prop_assert_eq!(diff(&plan, &other).is_empty(), same, "{:?}", diff(&plan, &other));
        prop_assert_eq!(diff(&other, &plan).is_empty(), same);
    }

    #[test]
    fn a_change_is_told_in_a_line_whatever_words_a_model_put_into_it(
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
fn changes_are_told_line_by_line() {
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
