//! Each label, kept and broken.

use serde_json::{Map, Value, json};

use super::*;
use crate::eval::executed::ExecutedStep;
use crate::eval::testing::judged;

fn labelled(yaml: &str) -> LabelledRequest {
    serde_norway::from_str(yaml).unwrap()
}

fn call(tool: &str, arguments: &Value, writes: bool) -> ExecutedCall {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let required: Vec<&String> = arguments.keys().collect();
    let schema = json!({"properties": {}, "required": required});
    ExecutedCall {
        tool: tool.to_owned(),
        arguments,
        writes,
        succeeded: true,
        schema,
        ..ExecutedCall::default()
    }
}

fn ended(status: RunStatus, answer: &str, calls: Vec<ExecutedCall>) -> ExecutedRequest {
    let step = ExecutedStep { scene: "Bank".to_owned(), began: Some(1), completed: Some(2) };
    let steps = if calls.is_empty() { vec![] } else { vec![step] };
    ExecutedRequest {
        status: Some(status),
        answer: answer.to_owned(),
        calls,
        steps,
        ..ExecutedRequest::default()
    }
}

/// The kinds of faults, as text.
fn kinds(yaml: &str, executed: &ExecutedRequest) -> String {
    let faults = judged(&labelled(yaml), executed).faults;
    faults.iter().map(|fault| fault.kind.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn writes_have_to_be_labelled_with_their_values() {
    let send = "{id: a, say: Send 50 euros to Mario Rossi, calls: [{tool: SendMoney, arguments: {to: Mario Rossi, amount: 50}}]}";
    let sent = |to: &str| call("SendMoney", &json!({"to": to, "amount": 50}), true);
    let done = |calls| ended(RunStatus::Completed, "Sent 50.", calls);
    assert_eq!(kinds(send, &done(vec![sent("mario rossi")])), "");
    assert_eq!(kinds(send, &done(vec![sent("Mario Rossi"), sent("Mario Rossi")])), "wrong_write");
    assert_eq!(kinds(send, &done(vec![sent("Anna")])), "wrong_write invented_value missing_call");
    let nothing = "{id: a, say: What would it cost?, nothing_written: true}";
    assert_eq!(kinds(nothing, &done(vec![sent("Mario Rossi")])), "wrong_write");
    assert_eq!(kinds("{id: a, say: anything}", &done(vec![sent("Mario Rossi")])), "");
}

#[test]
fn parts_that_were_not_done_are_named_in_the_answer() {
    let two = "{id: a, say: Block the debit card and show my cards, calls: [{tool: Block}, {tool: Show}]}";
    let calls = || vec![call("Block", &json!({}), true)];
    assert_eq!(kinds(two, &ended(RunStatus::Completed, "Blocked.", calls())), "dropped_part missing_call");
    let quoted = "Blocked. I could not do «show my cards».";
    assert_eq!(kinds(two, &ended(RunStatus::Completed, quoted, calls())), "missing_call");
    let undone = "{id: a, say: Block it and sing, calls: [{tool: Block}], undone: [sing|song]}";
    assert_eq!(kinds(undone, &ended(RunStatus::Partial, "I know no song.", calls())), "");
    assert_eq!(kinds(undone, &ended(RunStatus::Completed, "Blocked.", calls())), "dropped_part dropped_part");
}

#[test]
fn calls_that_cover_the_same_days_are_equivalent() {
    let vacation = "{id: a, say: From 15 to 17 June, calls: [{tool: Request, arguments: {from: 2026-06-15, to: 2026-06-17}}]}";
    let days = |from: &str, to: &str| call("Request", &json!({"from": from, "to": to}), true);
    let done = |calls| ended(RunStatus::Completed, "Done", calls);
    let one_each = ["2026-06-15", "2026-06-16", "2026-06-17"].map(|day| days(day, day));
    assert_eq!(kinds(vacation, &done(one_each.to_vec())), "");
    // Wednesday is missing: a working day.
    assert_eq!(kinds(vacation, &done(one_each[..2].to_vec())), "dropped_part missing_call");
    assert!(kinds(vacation, &done(vec![days("2026-06-15", "2026-06-18")])).starts_with("wrong_write"));
}

#[test]
fn questions_are_asked_where_they_are_due() {
    let asked = ended(RunStatus::NeedsInput, "Which card?", vec![]);
    let done = ended(RunStatus::Completed, "Done", vec![]);
    assert_eq!(kinds("{id: a, say: Block a card, asks: true, scenes: [Bank]}", &asked), "");
    assert_eq!(kinds("{id: a, say: Block a card, asks: true}", &done), "missing_question");
    assert_eq!(kinds("{id: a, say: Block it, may_ask: true, calls: [{tool: Block}]}", &asked), "");
    assert_eq!(
        kinds("{id: a, say: Block it, plain: true, calls: [{tool: Block}]}", &asked),
        "missing_call needless_question"
    );
}

#[test]
fn scenes_order_answer_and_status_are_compared() {
    let mut executed = ended(RunStatus::Completed, "Milan: sunny", vec![call("Balance", &json!({}), false)]);
    executed.steps.push(ExecutedStep { scene: "Weather".to_owned(), began: Some(3), completed: None });
    let right = "{id: a, say: x, scenes: [Weather, Bank], completes: [Bank], before: [[Bank, Weather]], \
                 answer_mentions: [Milan|Milano], status: completed, tools: [{name: Balance}], never: [Balance twice]}";
    assert_eq!(kinds(right, &executed), "");
    let wrong = "{id: a, say: x, scenes: [Weather], completes: [Weather], before: [[Weather, Bank]], \
                 answer_mentions: [Rome], status: partial, tools: [{name: Cards}], never: [any tool call]}";
    let all = "wrong_scenes wrong_scenes missing_call wrong_order wrong_status not_mentioned forbidden";
    assert_eq!(kinds(wrong, &executed), all);
    let equal = "{id: a, say: x, never: [the same tool with the same arguments twice]}";
    assert_eq!(kinds(equal, &executed), "");
    executed.calls.push(executed.calls[0].clone());
    assert_eq!(kinds(equal, &executed), "forbidden");
    assert_eq!(
        labelled("{id: a, say: x, never: [a loan, Balance twice], check: [it is polite]}").unjudged(),
        ["a loan", "it is polite"]
    );
}

#[test]
fn dates_may_be_given_by_their_end() {
    let tool: ExpectedTool =
        serde_norway::from_str("{name: Request, args: {from: 06-15|06-16, city: Milan}}").unwrap();
    let today = "2026-11-22".parse().unwrap();
    let fits = |from: &str| tool.fits(&json!({"from": from, "city": "Milan"}), today);
    assert!(fits("2027-06-15") && fits("2027-06-16"));
    assert!(!fits("2026-06-15") && !fits("2028-06-15"));
}
