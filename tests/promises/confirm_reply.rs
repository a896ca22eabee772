//! What a plain yes to a question about a write executes, and what it does not.

use proscenium::run::{Effect, RunStatus};
use proscenium::scene::{Scene, SceneTool, ToolBuilder};
use proscenium::tools::{ToolContext, ToolError, native};
use serde_json::{Value, json};

use crate::confirm::{REQUEST, calls, complete, kept_by_the_client, one_step_model, sent, setup};
use crate::server_api::ask;
use crate::support::planner_engine::{CallLog, ModelRules, final_verdict, has_results, plan, step};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, Setup};

/// A server whose only scene is a bank that sends money.
fn with_bank(llm: &ScriptedLlm, send: ToolBuilder) -> Setup {
    let bank =
        Scene::builder("Bank").description("The bank.").instructions("Do it.").example("send money", "Send");
    let setup = Setup::scripted(llm).alone().set("execution.confirm", "unclear");
    setup.scene(bank.tool(send).build().unwrap())
}

/// A tool that sends money, with an optional note, and refuses to send any to Bob.
fn send_tool(log: &CallLog, description: &str) -> ToolBuilder {
    let log = log.clone();
    let called = native(move |arguments: Value, _: ToolContext| {
        log.begin("Send", &arguments);
        let closed = arguments["recipient"] == "Bob";
        async move {
            let refused = || ToolError::failed("bank.closed", "that account is closed");
            if closed { Err(refused()) } else { Ok(json!({"sent": true})) }
        }
    });
    let schema = json!({"type": "object", "required": ["recipient", "amount"], "properties":
        {"recipient": {"type": "string"}, "amount": {"type": "number"}, "note": {"type": ["string", "null"]}}});
    SceneTool::dynamic("Send", description, Effect::Write, schema, called)
}

#[tokio::test]
async fn answer_that_denies_nothing_names_a_write_that_failed() {
    for (answer, shown) in [
        ("<think>Closed? Never mind.</think>All done.", "All done.\nNot done: that account is closed"),
        (
            "The account of Bob is closed: nothing was sent.",
            "The account of Bob is closed: nothing was sent.",
        ),
    ] {
        let bob = json!({"recipient": "Bob", "amount": 50});
        let llm = ModelRules::of(plan(json!([step(1, "Bank", &["Send"], Value::Null)])))
            .scene(move |request, _| match has_results(request) {
                true => Scripted::Text("Done.".into()),
                false => calls(&[("Send", bob.clone())]),
            })
            .check(|request, _| {
                let mut verdict = final_verdict();
                verdict["answer"] = Value::Null;
                Scripted::forced(request, verdict)
            })
            .answer(move |_, _| Scripted::Text(answer.into()))
            .start();
        let test = with_bank(&llm, send_tool(&CallLog::default(), "Sends it.")).start().await;
        let finished = test.chat("s-1", "Send 50 euros to Bob, please.").await;
        assert_eq!(finished.answer.answer, shown, "{:#?}", finished.answer);
    }
}

#[tokio::test]
async fn answer_that_claims_a_write_says_that_nothing_was_changed() {
    let mut claimed = plan(json!([]));
    claimed["answer"] = json!("I am sending 50 euros to Bob.");
    let mut greeted = plan(json!([]));
    greeted["answer"] = json!("Hello! I can send money.");
    for (written, request, shown) in [
        (claimed, "Send 50 euros to Bob, please.", "I am sending 50 euros to Bob.\nNothing was changed."),
        (greeted, "Hello!", "Hello! I can send money."),
    ] {
        let llm = ModelRules::of(written).start();
        let test = with_bank(&llm, send_tool(&CallLog::default(), "Sends it.")).start().await;
        let finished = test.chat("s-1", request).await;
        assert_eq!(finished.answer.answer, shown, "{:#?}", finished.answer);
    }
}

#[tokio::test]
async fn tool_changed_after_the_question_is_confirmed_again() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
    let test = with_bank(&llm, send_tool(&log, "Sends it.")).start().await;
    let asked = test.chat("s-1", REQUEST).await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{:#?}", asked.answer);
    let dir = test.stop().await;
    let test = with_bank(&llm, send_tool(&log, "Sends it by messenger, for a fee.")).on(&dir).start().await;
    let yes = test.chat("s-1", "yes").await;
    assert_eq!(yes.answer.status, RunStatus::NeedsInput, "{:#?}", yes.answer);
    assert!(log.calls().is_empty(), "{:?}", log.calls());
}

#[tokio::test]
async fn confirmed_writes_run_concurrently() {
    let log = CallLog::default();
    let bob = json!({"recipient": "Bob", "amount": 60});
    let ida = json!({"recipient": "Ida", "amount": 61});
    let llm = one_step_model("Send", calls(&[("Send", bob.clone()), ("Send", ida.clone())]));
    let test = with_bank(&llm, send_tool(&log, "Sends it.")).start().await;
    let asked = test.chat("s-1", "Send 50 euros to Bob and to Ida, please.").await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{:#?}", asked.answer);
    let finished = test.chat("s-1", "yes").await;
    assert_eq!(log.calls(), [("Send".to_owned(), bob), ("Send".to_owned(), ida)]);
    let came: Vec<String> =
        finished.answer.writes.iter().map(|write| format!("{:?}", write.outcome)).collect();
    assert_eq!(
        (finished.answer.status, came),
        (RunStatus::Partial, vec!["Failed".to_owned(), "Ok".to_owned()])
    );
    let rows = test.engine.store().audit_rows(None, 10).await.unwrap();
    let decisions: Vec<_> = rows.iter().map(|row| (row.run, row.decision.as_str())).collect();
    assert_eq!(decisions, [(finished.answer.run_id, "confirmed")]);
    assert!(!rows[0].who.is_empty());
}

#[tokio::test]
async fn chat_client_background_task_does_not_consume_the_yes() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
    let served = ServedEngine::start(setup(&llm, &log)).await;
    let mut first = ask(REQUEST);
    first["model"] = json!("proscenium");
    let question = complete(&served, &first).await;
    let mut title = kept_by_the_client(&question, "yes");
    let task = "Write a title of three to five words for this conversation.";
    title["messages"].as_array_mut().unwrap().insert(0, json!({"role": "system", "content": task}));
    complete(&served, &title).await;
    assert!(log.calls().is_empty(), "{:?}", log.calls());
    complete(&served, &kept_by_the_client(&question, "yes")).await;
    assert_eq!(log.calls(), [("Send".to_owned(), sent(60))]);
}

#[tokio::test]
async fn confirmed_call_keeps_its_nulls() {
    let log = CallLog::default();
    let call = json!({"recipient": "Anna", "amount": 60, "note": null});
    let llm = one_step_model("Send", calls(&[("Send", call.clone())]));
    let test = with_bank(&llm, send_tool(&log, "Sends it.")).start().await;
    test.chat("s-1", REQUEST).await;
    assert!(log.calls().is_empty());
    test.chat("s-1", "yes").await;
    assert_eq!(log.calls(), [("Send".to_owned(), call)]);
}

#[tokio::test]
async fn yes_to_two_questions_in_one_reply_executes_both() {
    let steps = json!([step(1, "Bank", &["Send"], Value::Null), step(2, "Post", &["Delete"], Value::Null)]);
    let llm = ModelRules::of(plan(steps))
        .scene(|request, _| {
            let sends =
                crate::support::section(request, "expected_tools").is_some_and(|t| t.contains("Send"));
            match (has_results(request), sends) {
                (true, _) => Scripted::Text("Done.".into()),
                (false, true) => calls(&[("Send", sent(60))]),
                (false, false) => calls(&[("Delete", json!({"number": 7}))]),
            }
        })
        .start();
    let log = CallLog::default();
    let test = setup(&llm, &log).start().await;
    let asked = test.chat("s-1", "Send 50 euros to Anna, and delete the newest message.").await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{:#?}", asked.answer);
    assert!(log.calls().is_empty(), "{:?}", log.calls());
    for part in ["amount: 60", "number: 7"] {
        assert!(asked.answer.answer.contains(part), "{}", asked.answer.answer);
    }
    test.chat("s-1", "yes").await;
    let mut names = log.names();
    names.sort_unstable();
    assert_eq!(names, ["Delete", "Send"]);
}
