//! A plan as prompts show it: one line of JSON, with members in the order of their names.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::plan::{DependsOn, Plan, PreparedCall, Step, StepKind};

/// The plan as one line of JSON, as `json!` writes it, without building its tree.
pub(super) fn plan_line(plan: &Plan) -> String {
    let Plan { needs_execution, reasoning, steps, unserved, answer } = plan;
    let line = PlanLine {
        answer: answer.as_deref(),
        needs_execution: *needs_execution,
        reasoning,
        steps: steps.iter().map(step_line).collect(),
        unserved,
    };
    // Serialising plain data cannot fail.
    serde_json::to_string(&line).unwrap_or_default()
}

#[derive(Serialize)]
struct PlanLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    needs_execution: bool,
    reasoning: &'a str,
    steps: Vec<StepLine<'a>>,
    #[serde(skip_serializing_if = "is_empty")]
    unserved: &'a [String],
}

#[derive(Serialize)]
struct StepLine<'a> {
    depends_on_step: &'a DependsOn,
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<Value>,
    expected_tools: &'a [String],
    #[serde(skip_serializing_if = "is_empty")]
    if_needed: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<StepKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prepared_calls: Vec<CallLine<'a>>,
    purpose: &'a str,
    scene_name: &'a str,
    #[serde(skip_serializing_if = "is_empty")]
    scenes: &'a [String],
    step_number: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unclear: bool,
}

#[derive(Serialize)]
struct CallLine<'a> {
    arguments: &'a Map<String, Value>,
    tool: &'a str,
}

fn is_empty(list: &&[String]) -> bool {
    list.is_empty()
}

fn step_line(step: &Step) -> StepLine<'_> {
    // All by name, so that a new member has to be written here.
    let Step {
        step_number,
        kind,
        scene_name,
        purpose,
        expected_tools,
        depends_on_step,
        prepared_calls,
        unclear,
        if_needed,
        expect,
        inputs,
        output,
        scenes,
    } = step;
    StepLine {
        depends_on_step,
        expect: (!expect.is_empty()).then(|| json!(expect)),
        expected_tools,
        if_needed,
        inputs: (!inputs.is_empty()).then_some(inputs),
        kind: (*kind != StepKind::Scene).then_some(*kind),
        output: output.as_ref(),
        prepared_calls: prepared_calls.iter().map(call_line).collect(),
        purpose,
        scene_name,
        scenes,
        step_number: *step_number,
        unclear: *unclear,
    }
}

fn call_line(call: &PreparedCall) -> CallLine<'_> {
    let PreparedCall { tool, arguments } = call;
    CallLine { arguments, tool }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::StepExpectation;

    fn words() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("[a-zé\"<]{0,6}", 0..3)
    }

    fn members() -> impl Strategy<Value = Map<String, Value>> {
        let value = prop_oneof![Just(json!(null)), Just(json!({"b": [1, 2.5], "a": "x"})), Just(json!(true))];
        prop::collection::btree_map("[a-z]{1,3}", value, 0..3).prop_map(|all| all.into_iter().collect())
    }

    fn step() -> impl Strategy<Value = Step> {
        let kinds = vec![
            StepKind::Scene,
            StepKind::Flow,
            StepKind::Llm,
            StepKind::Summary,
            StepKind::Code,
            StepKind::Node,
        ];
        let lists = (words(), words(), words(), prop::collection::vec(0..9_u32, 0..3));
        let rest = (prop::sample::select(kinds), any::<bool>(), any::<bool>(), any::<bool>(), 0..9_u32);
        let calls = prop::collection::vec(("[A-Z][a-z]{1,4}", members()), 0..3);
        (lists, rest, calls, members(), "[a-z\n]{0,8}").prop_map(
            |((expected_tools, if_needed, scenes, depends), rest, calls, inputs, purpose)| {
                let (kind, unclear, has_output, expects, step_number) = rest;
                let expectation = StepExpectation {
                    tool: "T".to_owned(),
                    not_empty: vec!["/z".to_owned(), "/a".to_owned()],
                    schema: Some(json!({"type": "object", "properties": {}})),
                    ..StepExpectation::default()
                };
                let calls = calls.into_iter().map(|(tool, arguments)| PreparedCall { tool, arguments });
                Step {
                    step_number,
                    kind,
                    scene_name: "Weather".to_owned(),
                    purpose,
                    expected_tools,
                    depends_on_step: depends.into_iter().collect(),
                    prepared_calls: calls.collect(),
                    unclear,
                    if_needed,
                    expect: if expects { vec![expectation] } else { Vec::new() },
                    inputs,
                    output: has_output.then(|| json!({"type": "object", "description": "d"})),
                    scenes,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn line_is_that_of_the_json_tree(
            steps in prop::collection::vec(step(), 0..4), unserved in words(), needs_execution in any::<bool>(),
            answer in prop::option::of("[a-z ]{0,8}"), reasoning in "[a-z\"]{0,8}",
        ) {
            let plan = Plan { needs_execution, reasoning, steps, unserved, answer };
            prop_assert_eq!(plan_line(&plan), json!(plan).to_string());
        }
    }
}
