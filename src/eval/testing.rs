//! Random labelled requests, and their perfect execution.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::executed::{ExecutedCall, ExecutedRequest, ExecutedStep};
use super::judge::{Judgement, judge};
use super::labels::{LabelledCall, LabelledRequest};
use super::report::{EvalReport, EvalSubject, JudgedRequest};
use crate::run::RunStatus;

/// The day of the clock: a Sunday.
pub(super) const TODAY: Date = date(2026, 11, 22);
const SCENES: [&str; 3] = ["Bank", "Clinic", "Weather"];
const CITIES: [&str; 4] = ["Milan", "Rome", "Naples", "Turin"];

/// Its judgement on the day of the clock.
pub(super) fn judged(request: &LabelledRequest, executed: &ExecutedRequest) -> Judgement {
    judge(request, executed, TODAY)
}

/// Requests with labels that do not contradict each other. `Weather` reads, the others write.
pub(super) fn requests() -> impl Strategy<Value = Vec<LabelledRequest>> {
    let call = (0..SCENES.len(), 0..CITIES.len());
    proptest::collection::vec(proptest::collection::vec(call, 0..3), 1..6).prop_map(|all| {
        let numbered = all.into_iter().zip(0..);
        numbered.map(|(calls, number)| labelled(number, &calls)).collect()
    })
}

fn labelled(number: usize, calls: &[(usize, usize)]) -> LabelledRequest {
    // The same call is executed once.
    let calls: BTreeMap<(usize, usize), ()> = calls.iter().map(|call| (*call, ())).collect();
    let say: Vec<String> =
        calls.keys().map(|(scene, city)| format!("{} in {}", SCENES[*scene], CITIES[*city])).collect();
    let of = |(scene, city): &(usize, usize)| LabelledCall {
        tool: format!("{}_Do", SCENES[*scene]),
        arguments: BTreeMap::from([("city".to_owned(), json!(CITIES[*city]))]),
    };
    let mut scenes: Vec<String> = calls.keys().map(|(scene, _)| SCENES[*scene].to_owned()).collect();
    scenes.dedup();
    let before = match scenes.as_slice() {
        [first, second, ..] => vec![[first.clone(), second.clone()]],
        _ => Vec::new(),
    };
    LabelledRequest {
        id: format!("r-{number}"),
        say: if say.is_empty() { "What is 2 + 2?".to_owned() } else { say.join(", then ") },
        class: Some(if say.is_empty() { "out_of_scope" } else { "request" }.to_owned()),
        plain: !say.is_empty(),
        answer_mentions: calls.keys().map(|(_, city)| format!("{}|nothing", CITIES[*city])).collect(),
        calls: Some(calls.keys().map(of).collect()),
        scenes: Some(scenes),
        before,
        status: Some(RunStatus::Completed),
        line: 1,
        ..LabelledRequest::default()
    }
}

pub(super) fn perfect(request: &LabelledRequest) -> ExecutedRequest {
    let schema = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
    let scenes = request.scenes.iter().flatten();
    let steps = scenes.zip(0u64..).map(|(scene, number)| ExecutedStep {
        scene: scene.clone(),
        began: Some(10 * number),
        completed: Some(10 * number + 9),
    });
    let calls = request.labelled_calls().iter().zip(0u64..).map(|(call, number)| ExecutedCall {
        tool: call.tool.clone(),
        arguments: call.arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        writes: !call.tool.starts_with("Weather"),
        succeeded: true,
        began: Some(10 * number + 1),
        ended: Some(10 * number + 2),
        schema: schema.clone(),
    });
    let cities = request.labelled_calls().iter().filter_map(|call| call.arguments.get("city"));
    let cities: Vec<&str> = cities.filter_map(Value::as_str).collect();
    ExecutedRequest {
        status: Some(RunStatus::Completed),
        answer: format!("Done: {}.", cities.join(", ")),
        steps: steps.collect(),
        calls: calls.collect(),
        model_calls: 3,
        input_tokens: 1200,
        output_tokens: 80,
        cost_usd: 0.25,
        ms: 12.5,
    }
}

/// One right request, one that is wrong in one of two executions, and one that was left out.
pub(super) fn example() -> EvalReport {
    let yaml = "[{id: send, class: request, plain: true, say: Send 50 euros to Mario, scenes: [Bank], \
                  calls: [{tool: SendMoney, arguments: {city: Mario}}]}, \
                 {id: cost, class: question, say: What would it cost?, scenes: [Bank], calls: [], check: [it is polite]}, \
                 {id: late, say: Block it, scenes: [Bank]}]";
    let mut requests: Vec<LabelledRequest> = serde_norway::from_str(yaml).unwrap();
    let mut judgements = Vec::new();
    for (request, line) in requests.iter_mut().zip(3..) {
        (request.file, request.line) = ("labels.yaml".into(), line);
        let right = perfect(request);
        let mut wrong = right.clone();
        wrong.steps[..].iter_mut().for_each(|step| step.scene = "Weather".to_owned());
        let arguments = serde_json::json!({"city": "Mario"}).as_object().cloned().unwrap();
        wrong.calls.push(ExecutedCall {
            tool: "SendMoney".to_owned(),
            arguments,
            writes: true,
            ..ExecutedCall::default()
        });
        let executed: Vec<ExecutedRequest> = match request.id.as_str() {
            "send" => vec![right.clone(), right],
            "cost" => vec![right, wrong],
            _ => vec![],
        };
        let repetitions = executed.into_iter().map(|one| (one.clone(), judged(request, &one))).collect();
        judgements.push(JudgedRequest { request: request.clone(), repetitions });
    }
    let subject = EvalSubject { models: vec!["m".into()], repeat: 2, concurrency: 8, version: "1".into() };
    EvalReport::of(subject, &judgements)
}
