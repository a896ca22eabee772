//! The effect of a plan, however its steps are numbered and ordered, and however their purposes are worded.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Step, StepKind};

/// SHA-256, in hex, over what `steps` do: their scenes, tools and prepared calls, the words of their purposes where no
/// calls are prepared, and which of them depend on which. Dependencies on other steps do not count.
pub fn fingerprint<'s>(steps: impl IntoIterator<Item = &'s Step>) -> String {
    let steps: BTreeMap<u32, &Step> = steps.into_iter().map(|step| (step.step_number, step)).collect();
    let mut known = BTreeMap::new();
    for number in steps.keys() {
        hash_of_step(&steps, *number, &mut known, &mut BTreeSet::new());
    }
    let mut all: Vec<String> = known.into_values().collect();
    all.sort();
    hash(&json!(all))
}

/// The hash of a step with everything that it depends on among `steps`.
fn hash_of_step(
    steps: &BTreeMap<u32, &Step>,
    number: u32,
    known: &mut BTreeMap<u32, String>,
    above: &mut BTreeSet<u32>,
) -> String {
    if let Some(hash) = known.get(&number) {
        return hash.clone();
    }
    // Valid plans have no circles.
    let Some(step) = steps.get(&number).filter(|_| above.insert(number)) else { return String::new() };
    let within = step.depends_on_step.iter().filter(|other| steps.contains_key(other));
    let mut depends: Vec<String> = Vec::new();
    for other in within {
        depends.push(hash_of_step(steps, other, known, above));
    }
    depends.sort();
    above.remove(&number);
    let own = hash(&json!([content(step), depends]));
    known.insert(number, own.clone());
    own
}

fn content(step: &Step) -> Value {
    let tools: BTreeSet<&String> = step.expected_tools.iter().collect();
    let mut calls: Vec<String> = step
        .prepared_calls
        .iter()
        .map(|call| json!([call.tool, sorted(&Value::Object(call.arguments.clone()))]).to_string())
        .collect();
    calls.sort();
    let words = if calls.is_empty() { words(&step.purpose) } else { BTreeSet::new() };
    if step.kind == StepKind::Llm {
        let inputs = sorted(&Value::Object(step.inputs.clone()));
        return json!([step.kind, words, inputs, step.output.as_ref().map(sorted)]);
    }
    if step.kind == StepKind::Code {
        let scenes: BTreeSet<&String> = step.scenes.iter().collect();
        return json!([step.kind, words, scenes]);
    }
    match step.expect.is_empty() {
        true => json!([step.kind, step.scene_name, tools, calls, words]),
        false => json!([step.kind, step.scene_name, tools, calls, words, sorted(&json!(step.expect))]),
    }
}

/// The words of a text, in lower case.
fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// A value with the members of its objects in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let members: BTreeMap<&String, Value> =
                map.iter().map(|(name, value)| (name, sorted(value))).collect();
            json!(members)
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn hash(value: &Value) -> String {
    HEXLOWER.encode(&Sha256::digest(value.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::DependsOn;

    fn step(number: u32, purpose: &str, depends: &[u32]) -> Step {
        let depends: DependsOn = depends.iter().copied().collect();
        serde_json::from_value(json!({"step_number": number, "scene_name": "Weather", "purpose": purpose,
            "expected_tools": ["Look"], "depends_on_step": depends}))
        .unwrap()
    }

    #[test]
    fn wording_order_and_numbers_do_not_count() {
        let one = [step(1, "Look at Milan", &[]), step(2, "and at Rome", &[1])];
        let two = [step(9, "at Rome, AND", &[4]), step(4, "at Milan: look!", &[])];
        assert_eq!(fingerprint(&one), fingerprint(&two));
        let apart = [step(1, "Look at Milan", &[]), step(2, "and at Rome", &[])];
        assert_ne!(fingerprint(&one), fingerprint(&apart), "what depends on what counts");
        let another = [step(1, "Look at Turin", &[]), step(2, "and at Rome", &[1])];
        assert_ne!(fingerprint(&one), fingerprint(&another));
        assert_ne!(fingerprint(&one), fingerprint(&one[..1]));
    }

    #[test]
    fn prepared_calls_count_instead_of_words() {
        let prepared = |purpose: &str, arguments: Value| {
            let mut step = step(1, purpose, &[]);
            let call = json!({"tool": "Look", "arguments": arguments});
            step.prepared_calls = vec![serde_json::from_value(call).unwrap()];
            step
        };
        let one = prepared("Look at Milan", json!({"city": "Milan", "day": {"a": 1, "b": 2}}));
        let two = prepared("See Milan", json!({"day": {"b": 2, "a": 1}, "city": "Milan"}));
        assert_eq!(fingerprint([&one]), fingerprint([&two]));
        assert_ne!(fingerprint([&one]), fingerprint([&prepared("Look at Milan", json!({"city": "Rome"}))]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn renumbered_and_reordered_plans_are_equal_and_a_changed_step_is_not(
            depends in prop::collection::vec(any::<[bool; 5]>(), 1..6),
            purposes in prop::collection::vec("[a-c]{1,2}", 6),
            turned in any::<u32>(),
        ) {
            let number = |at: usize| at as u32 + 1;
            let steps: Vec<Step> = depends.iter().enumerate().map(|(at, row)| {
                let before: Vec<u32> = (0..at).filter(|n| row[*n % 5]).map(number).collect();
                step(number(at), &purposes[at], &before)
            }).collect();
            let moved = |n: u32| (n.wrapping_mul(7) % 11) + 20;
            let mut other: Vec<Step> = steps.iter().map(|step| Step {
                step_number: moved(step.step_number),
                depends_on_step: step.depends_on_step.iter().map(moved).collect(),
                ..step.clone()
            }).collect();
            let by = turned as usize % other.len();
            other.rotate_left(by);
            prop_assert_eq!(fingerprint(&steps), fingerprint(&other));
            other[0].purpose.push_str(" more");
            prop_assert_ne!(fingerprint(&steps), fingerprint(&other));
        }
    }
}
