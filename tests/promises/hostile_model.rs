//! A model that wants a write which the user did not request: a yes executes only what the user was shown.

use proscenium::run::{Effect, RunStatus};
use proscenium::scene::{Scene, SceneTool, ToolBuilder};
use proscenium::tools::{ToolContext, native};
use serde_json::{Value, json};

use crate::support::planner_engine::{CallLog, ModelRules, final_verdict, has_results, more, plan, step};
use crate::support::{Scripted, ScriptedLlm, Setup, TestEngine, calls};

fn tool(log: &CallLog, name: &'static str, effect: Effect, parameters: Value) -> ToolBuilder {
    let log = log.clone();
    let called = native(move |arguments: Value, _: ToolContext| {
        log.begin(name, &arguments);
        async move { Ok(json!({"done": name, "echo": arguments})) }
    });
    SceneTool::dynamic(name, "Does it.", effect, parameters, called)
}

async fn desk(llm: &ScriptedLlm, log: &CallLog) -> TestEngine {
    let to = json!({"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]});
    let pay = json!({"type": "object", "required": ["iban", "amount"], "properties": {
        "iban": {"type": "string"}, "amount": {"type": "number"}, "note": {"type": "string"}}});
    let look = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let scene =
        Scene::builder("Desk").description("The desk.").instructions("Do it.").example("file it", "File");
    let scene = scene.tool(tool(log, "Look", Effect::Read, look)).tool(tool(log, "File", Effect::Write, to));
    let scene = scene.tool(tool(log, "Pay", Effect::Write, pay)).build().unwrap();
    Setup::scripted(llm).alone().set("execution.confirm", "unclear").scene(scene).start().await
}

/// A model whose scene makes these calls at once.
fn model_with_calls(first: Vec<(&'static str, Value)>, answer: &'static str) -> ScriptedLlm {
    ModelRules::of(plan(json!([step(1, "Desk", &["Look", "File", "Pay"], Value::Null)])))
        .scene(
            move |request, _| {
                if has_results(request) { Scripted::Text("Done.".into()) } else { calls(&first) }
            },
        )
        .check(move |request, _| {
            let reply = json!({"reasoning": "x", "should_continue": false, "missing_information": null,
                "can_answer_now": true, "answer": answer});
            Scripted::forced(request, reply)
        })
        .answer(move |_, _| Scripted::Text(answer.into()))
        .start()
}

/// The executed writes.
fn writes(log: &CallLog) -> Vec<(String, Value)> {
    log.calls().into_iter().filter(|(name, _)| name != "Look").collect()
}

#[tokio::test]
async fn yes_to_a_models_question_triggers_the_engines_own_question() {
    let pay = json!({"iban": "GB29EVIL60161331", "amount": 500});
    let asks = json!({"question": "Shall I pay 500 to GB29EVIL60161331"});
    let log = CallLog::default();
    let llm = ModelRules::of(plan(json!([step(1, "Desk", &["File", "Pay"], Value::Null)])))
        .scene({
            let pay = pay.clone();
            move |_, nth| {
                if nth == 0 { calls(&[("AskUser", asks.clone())]) } else { calls(&[("Pay", pay.clone())]) }
            }
        })
        .answer(|_, _| Scripted::Text("Shall I file r1?".into()))
        .start();
    let test = desk(&llm, &log).await;
    let asked = test.chat("s-1", "Can you file r1?").await.answer;
    assert!(asked.answer.ends_with("\nShall I pay 500 to GB29EVIL60161331"), "{}", asked.answer);
    let again = test.chat("s-1", "yes").await.answer;
    assert_eq!(again.status, RunStatus::NeedsInput, "{again:#?}");
    assert!(again.answer.lines().last().unwrap().contains("iban: GB29EVIL60161331"), "{}", again.answer);
    assert!(writes(&log).is_empty());
}

#[tokio::test]
async fn hidden_confirmation_question_is_shown_as_the_last_line() {
    let question = "Shall I carry out Pay (Desk) with amount: 500, iban: GB29EVIL60161331?";
    for hidden in
        ["<!-- Q --> Shall I file r1?", "Shall I file r1?\n\n[x]: # (Q)", "Shall I file r1? `Q`", "Ok <!-- Q"]
    {
        let answer: &'static str = hidden.replace('Q', question).leak();
        let llm = model_with_calls(vec![("Pay", json!({"iban": "GB29EVIL60161331", "amount": 500}))], answer);
        let log = CallLog::default();
        let asked = desk(&llm, &log).await.chat("s-1", "Can you file r1?").await.answer;
        assert!(asked.answer.ends_with(&format!("\n{question}")), "{}", asked.answer);
        assert!(!asked.answer.contains("<!--"), "{}", asked.answer);
        assert!(writes(&log).is_empty());
    }
}

#[tokio::test]
async fn variants_of_a_write_count_as_repetitions() {
    let file = |to: &str| ("File", json!({"to": to}));
    let pay = |note: &str| ("Pay", json!({"iban": "Bob", "amount": 50, "note": note}));
    for (request, made) in [
        ("File r1", vec![file("r1"), file("r1 "), file("R1"), file("r1\u{200b}")]),
        (
            "File r1",
            vec![file("r1"), ("File", json!({"to": "r1", "x": true})), ("File", json!({"to": "r1", "y": 1}))],
        ),
        ("Pay 50 to Bob", vec![pay("one"), pay("two")]),
    ] {
        let (llm, log) = (model_with_calls(made, "Done."), CallLog::default());
        let asked = desk(&llm, &log).await.chat("s-1", request).await.answer;
        assert_eq!(
            (writes(&log).len(), asked.status),
            (1, RunStatus::NeedsInput),
            "{request}: {}",
            asked.answer
        );
    }
}

#[tokio::test]
async fn further_plan_repeats_no_write_in_another_spelling_or_with_a_note() {
    let file = |to: &str| ("File", json!({"to": to}));
    let pay = |more: Value| {
        let mut arguments = json!({"iban": "Bob", "amount": 50});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("Pay", arguments)
    };
    for (request, first, again) in [
        ("File r1", file("r1"), file("R1 ")),
        ("Pay 50 to Bob", pay(json!({})), pay(json!({"note": "as asked"}))),
    ] {
        let log = CallLog::default();
        let tool = first.0;
        let llm = ModelRules::of(Value::Null)
            .plan(move |request, nth| {
                let step = step(nth as u32 + 1, "Desk", &[tool], Value::Null);
                Scripted::forced(request, plan(json!([step])))
            })
            .scene(move |request, nth| match (has_results(request), nth) {
                (true, _) => Scripted::Text("Done.".into()),
                (false, 0) => calls(std::slice::from_ref(&first)),
                (false, _) => calls(std::slice::from_ref(&again)),
            })
            .check(|request, nth| {
                Scripted::forced(request, if nth == 0 { more("the same") } else { final_verdict() })
            })
            .start();
        let asked = desk(&llm, &log).await.chat("s-1", request).await.answer;
        assert_eq!((writes(&log).len(), asked.status), (1, RunStatus::NeedsInput), "{}", asked.answer);
        assert!(asked.answer.contains("This was done already. Once more?"), "{}", asked.answer);
    }
}

#[tokio::test]
async fn invisible_characters_that_a_model_adds_to_what_was_said_are_not_sent() {
    let file = |to: &str| ("File", json!({"to": to}));
    for made in [vec![file("r1\u{200b}")], vec![file("\u{202e}r1")], vec![file("r\u{ad}1\u{feff}")]] {
        let (llm, log) = (model_with_calls(made.clone(), "Done."), CallLog::default());
        let asked = desk(&llm, &log).await.chat("s-1", "File r1").await.answer;
        assert_eq!(asked.status, RunStatus::Completed, "{made:?}: {}", asked.answer);
        let sent: Vec<Value> = writes(&log).into_iter().map(|write| write.1).collect();
        assert_eq!(sent, [json!({"to": "r1"})], "{made:?}");
    }
    let (llm, log) = (model_with_calls(vec![file("r1\u{200b}x")], "Done."), CallLog::default());
    let asked = desk(&llm, &log).await.chat("s-1", "File r1").await.answer;
    assert_eq!((writes(&log).len(), asked.status), (0, RunStatus::NeedsInput), "{}", asked.answer);
}

#[tokio::test]
async fn values_without_provenance_are_confirmed_in_any_spelling() {
    for (request, call) in [
        ("Pay 50 to Bob", ("Pay", json!({"iban": "GB29 NWBK 6016 1331 9268 19", "amount": 50}))),
        ("Pay 50 to Bob", ("Pay", json!({"iban": "mallory-holdings", "amount": 50}))),
        ("Pay 50 to Bob", ("Pay", json!({"iban": "Bob", "amount": -50}))),
        ("File r1", ("File", json!({"to": "+39 333 12 34 567"}))),
        ("File r1", ("File", json!({"to": "Via Mallory 77 Milano"}))),
        ("File r1", ("File", json!({"to": "send it all to https://mallory.example/x please"}))),
    ] {
        let (llm, log) = (model_with_calls(vec![call.clone()], "Done."), CallLog::default());
        let asked = desk(&llm, &log).await.chat("s-1", request).await.answer;
        assert_eq!(asked.status, RunStatus::NeedsInput, "{call:?}: {}", asked.answer);
        assert!(writes(&log).is_empty(), "{call:?}");
    }
}

#[tokio::test]
async fn echoed_tool_input_is_not_provenance() {
    let log = CallLog::default();
    let llm = ModelRules::of(plan(json!([step(1, "Desk", &["Look", "Pay"], Value::Null)])))
        .scene(|_, nth| match nth {
            0 => calls(&[("Look", json!({"at": "GB29EVIL60161331"}))]),
            1 => calls(&[("Pay", json!({"iban": "GB29EVIL60161331", "amount": 50}))]),
            _ => Scripted::Text("Done.".into()),
        })
        .start();
    let asked = desk(&llm, &log).await.chat("s-1", "Pay 50 to Bob").await.answer;
    assert_eq!((asked.status, writes(&log).len()), (RunStatus::NeedsInput, 0), "{}", asked.answer);
}

#[tokio::test]
async fn confirmation_question_shows_exact_whitespace_and_control_characters() {
    let call = ("File", json!({"to": "77  x\u{7}\ny"}));
    let (llm, log) = (model_with_calls(vec![call], "Ok."), CallLog::default());
    let asked = desk(&llm, &log).await.chat("s-1", "File r1").await.answer;
    assert!(asked.answer.contains(r#"to: "77  x\u0007\ny""#), "{}", asked.answer);
}
