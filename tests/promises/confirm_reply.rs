//! What a plain yes to a question about a write executes, and what it does not.

use std::sync::{Arc, Mutex};

use proscenium::run::{Effect, RunStatus};
use proscenium::scene::{Scene, SceneTool, ToolBuilder};
use proscenium::tools::{ToolContext, ToolError, native};
use serde_json::{Value, json};

use crate::confirm::{REQUEST, complete, kept_by_the_client, one_step_model, sent, setup};
use crate::server_api::ask;
use crate::support::planner_engine::{CallLog, ModelRules, final_verdict, has_results, plan, step};
use crate::support::{Scripted, ScriptedLlm, ServedEngine, Setup, calls};

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
            "I've already sent it, no problem.",
            "I've already sent it, no problem.\nNot done: that account is closed",
        ),
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
async fn write_that_failed_beside_another_one_is_named_and_one_that_was_corrected_is_not() {
    let bob = ("Send", json!({"recipient": "Bob", "amount": 50}));
    let ada = ("Send", json!({"recipient": "Ada", "amount": 50}));
    for (replies, status) in [
        (vec![vec![bob.clone(), ada.clone()]], RunStatus::Partial),
        (vec![vec![bob], vec![ada]], RunStatus::Completed),
    ] {
        let llm = ModelRules::of(plan(json!([step(1, "Bank", &["Send"], Value::Null)])))
            .scene(move |_, nth| {
                replies.get(nth).map_or_else(|| Scripted::Text("Done.".into()), |made| calls(made))
            })
            .check(|request, _| {
                let mut verdict = final_verdict();
                verdict["answer"] = json!("Both are sent, 50 euros each.");
                Scripted::forced(request, verdict)
            })
            .start();
        let test = with_bank(&llm, send_tool(&CallLog::default(), "Sends it.")).start().await;
        let finished = test.chat("s-1", "Send 50 euros to Bob and 50 euros to Ada, please.").await;
        let names = finished.answer.answer.contains("Not done: that account is closed");
        assert_eq!(
            (finished.answer.status, names),
            (status, status == RunStatus::Partial),
            "{:#?}",
            finished.answer
        );
    }
}

#[tokio::test]
async fn answer_that_claims_a_write_says_that_nothing_was_changed() {
    let (send, invia) = ("Send 50 euros to Bob, please.", "Invia 50 euro a Bob, per favore.");
    let changed = ["Nothing was changed.", "Non è stato modificato nulla."];
    let said = Arc::new(Mutex::new(String::new()));
    let plan_words = Arc::clone(&said);
    let llm = ModelRules::of(Value::Null)
        .plan(move |request, _| {
            let mut planned = plan(json!([]));
            planned["answer"] = json!(plan_words.lock().unwrap().clone());
            Scripted::forced(request, planned)
        })
        .start();
    let test = with_bank(&llm, send_tool(&CallLog::default(), "Sends it.")).start().await;
    for (answer, request, line) in [
        ("I am sending 50 euros to Bob.", send, Some(changed[0])),
        ("I have sent 50 euros to Bob.", send, Some(changed[0])),
        ("It's done, no problem!", send, Some(changed[0])),
        ("Sure thing.", send, Some(changed[0])),
        ("I already sent it, but I could not tell why.", send, Some(changed[0])),
        ("Ho mandato 50 euro a Bob.", invia, Some(changed[1])),
        ("Non ho inviato nulla: il conto è stato chiuso.", invia, None),
        ("I could not send it, as the account has been closed.", send, None),
        ("From which account?", send, None),
        ("Hello! I can send money.", "Hello!", None),
        ("A bank keeps what has been sent.", "Write a line about sending money.", None),
    ] {
        answer.clone_into(&mut said.lock().unwrap());
        let finished = test.chat("s-1", request).await;
        let shown = line.map_or_else(|| answer.to_owned(), |line| format!("{answer}\n{line}"));
        assert_eq!(finished.answer.answer, shown, "{:#?}", finished.answer);
    }
}

/// A bank with a tool that tells the balance of an account, except B.
fn bank_with_balances(llm: &ScriptedLlm) -> Setup {
    let balance = native(|arguments: Value, _: ToolContext| async move {
        match arguments["account"].as_str() {
            Some("B") => Err(ToolError::failed("bank.unknown", "there is nothing under this letter")),
            _ => Ok(json!({"euros": 5})),
        }
    });
    let schema =
        json!({"type": "object", "required": ["account"], "properties": {"account": {"type": "string"}}});
    let balance = SceneTool::dynamic("Balance", "Tells the balance.", Effect::Read, schema, balance);
    let bank =
        Scene::builder("Bank").description("The bank.").instructions("Do it.").example("send money", "Send");
    let setup = Setup::scripted(llm).alone().set("execution.confirm", "unclear");
    setup.scene(bank.tool(send_tool(&CallLog::default(), "Sends it.")).tool(balance).build().unwrap())
}

#[tokio::test]
async fn step_that_lacks_a_read_is_partial_and_the_answer_names_it() {
    let account = |name: &str| ("Balance", json!({"account": name}));
    let line = "Balance (account: B): there is nothing under this letter";
    for (answer, request, shown) in [
        ("You have 5 euros.", "What is the balance of A and B?", format!("You have 5 euros.\n{line}")),
        (
            "A has 5 euros. I could not look at B.",
            "What is the balance of A and B?",
            "A has 5 euros. I could not look at B.".to_owned(),
        ),
        (
            "I have sent 50 euros to Bob, unlike B.",
            "Send 50 euros to Bob, please.",
            format!("I have sent 50 euros to Bob, unlike B.\nNothing was changed.\n{line}"),
        ),
    ] {
        let llm = ModelRules::of(plan(json!([step(1, "Bank", &["Balance"], Value::Null)])))
            .scene(move |request, _| match has_results(request) {
                true => Scripted::Text("Done.".into()),
                false => calls(&[account("A"), account("B")]),
            })
            .check(move |request, _| {
                let mut verdict = final_verdict();
                verdict["answer"] = json!(answer);
                Scripted::forced(request, verdict)
            })
            .start();
        let test = bank_with_balances(&llm).start().await;
        let finished = test.chat("s-1", request).await.answer;
        assert_eq!(finished.answer, shown, "{finished:#?}");
        assert_eq!((finished.status, finished.steps[0].partial), (RunStatus::Partial, true));
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
