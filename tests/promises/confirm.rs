//! Writes that were not clearly requested: the user confirms the exact call, and a plain yes executes it.
//! Also the bounds on writes per run, and what an answer must mention of them.

use std::sync::{Arc, Condvar, Mutex};

use proscenium::ChatRequest;
use proscenium::run::{ConfirmPolicy, Effect, Event, RunStatus, SessionId};
use proscenium::scene::{Scene, SceneTool, ToolApproval, ToolBuilder};
use proscenium::tools::{ToolContext, native};
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::planner_engine::{
    CallLog, ModelRules, QuestionKind, final_verdict, has_results, more, plan, requests, step,
};
use crate::support::{
    FinishedRun, Reply, Scripted, ScriptedLlm, ServedEngine, Setup, TestEngine, calls, section,
};

/// A tool that logs its calls.
fn tool(log: &CallLog, name: &'static str, effect: Effect, arguments: &[&str]) -> ToolBuilder {
    let log = log.clone();
    let called = native(move |arguments: Value, _: ToolContext| {
        log.begin(name, &arguments);
        let balance = 100 + log.names().len();
        async move { Ok(json!({"done": name, "balance": balance})) }
    });
    let properties: Value = arguments
        .iter()
        .map(|name| {
            let kind = if *name == "amount" || *name == "number" { "number" } else { "string" };
            ((*name).to_owned(), json!({"type": kind}))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let schema = json!({"type": "object", "properties": properties, "required": arguments});
    SceneTool::dynamic(name, "Does it.", effect, schema, called)
}

/// A bank with a scene for its mail.
fn bank(log: &CallLog) -> [Scene; 2] {
    let say = |tool: ToolBuilder| tool.say("en", "It is done, the balance is {{ balance }}.");
    let bank =
        Scene::builder("Bank").description("The bank.").instructions("Do it.").example("send money", "Send");
    let bank = bank
        .tool(say(tool(log, "Send", Effect::Write, &["recipient", "amount"])))
        .tool(say(tool(log, "Deposit", Effect::Write, &["amount"])).repeatable())
        .tool(tool(log, "Pay", Effect::Write, &["amount"]).approval(ToolApproval::Call))
        .tool(tool(log, "Balance", Effect::Read, &[]))
        .tool(tool(log, "Rate", Effect::Read, &[]).volatile());
    let post =
        Scene::builder("Post").description("The post.").instructions("Do it.").example("my post", "Inbox");
    let post = post.tool(tool(log, "Inbox", Effect::Read, &[])).tool(tool(
        log,
        "Delete",
        Effect::Write,
        &["number"],
    ));
    [bank.build().unwrap(), post.build().unwrap()]
}

pub fn setup(llm: &ScriptedLlm, log: &CallLog) -> Setup {
    let setup = Setup::scripted(llm).alone().set("execution.confirm", "unclear");
    bank(log).into_iter().fold(setup, Setup::scene)
}

async fn start_bank(llm: &ScriptedLlm, log: &CallLog) -> TestEngine {
    setup(llm, log).start().await
}

/// A plan of one step of the bank with this tool, and the first reply of its scene; then the scene reports
/// that it is done.
pub fn one_step_model(tool: &str, first: Scripted) -> ScriptedLlm {
    ModelRules::of(plan(json!([step(1, "Bank", &[tool], Value::Null)])))
        .scene(
            move |request, _| {
                if has_results(request) { Scripted::Text("Done.".into()) } else { first.clone() }
            },
        )
        .start()
}

pub fn sent(amount: u32) -> Value {
    json!({"recipient": "Anna", "amount": amount})
}

pub const REQUEST: &str = "Send 50 euros to Anna, please.";

#[tokio::test]
async fn clearly_requested_write_runs_without_confirmation() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(50))])));
    let finished = start_bank(&llm, &log).await.chat("s-1", REQUEST).await;
    assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
    assert_eq!(log.calls(), [("Send".to_owned(), sent(50))]);
    let [write] = finished.answer.writes.as_slice() else { panic!("{:#?}", finished.answer.writes) };
    assert_eq!((write.tool.as_str(), &write.arguments, write.step_number), ("Send", &sent(50), 1));
}

#[tokio::test]
async fn write_that_the_request_forbids_or_only_asks_about_is_confirmed() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(50))])));
    let test = start_bank(&llm, &log).await;
    for (session, words) in
        [("s-1", "Do not send 50 euros to Anna."), ("s-2", "Can I send 50 euros to Anna?")]
    {
        let asked = test.chat(session, words).await;
        assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{words}: {:#?}", asked.answer);
        assert!(log.calls().is_empty(), "{words}");
    }
    test.chat("s-2", "Yes").await;
    assert_eq!(log.calls(), [("Send".to_owned(), sent(50))]);
}

#[tokio::test]
async fn untraced_write_is_confirmed_and_runs_once_after_a_yes() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
    let test = start_bank(&llm, &log).await;
    let asked = test.chat("s-1", REQUEST).await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput, "{:#?}", asked.answer);
    assert!(asked.answer.answer.contains("amount: 60") && asked.answer.answer.contains("Anna"));
    assert!(log.calls().is_empty() && asked.answer.writes.is_empty());

    let before = llm.count();
    let done = test.chat("s-1", "Yes, please!").await;
    assert_eq!(done.answer.status, RunStatus::Completed, "{:#?}", done.answer);
    assert_eq!(log.calls(), [("Send".to_owned(), sent(60))]);
    assert_eq!(llm.count(), before, "no model is asked: the call is known");
    assert!(done.answer.answer.contains("the balance is 101"), "{}", done.answer.answer);
    assert!(done.events.iter().any(|event| matches!(event.body, Event::Prepared { .. })));

    // It was executed: another yes answers nothing.
    test.chat("s-1", "yes").await;
    assert_eq!(log.calls().len(), 1);
}

#[tokio::test]
async fn only_a_plain_yes_of_the_asked_user_confirms() {
    for (user, words) in [("keysersoze", "yes, but 40"), ("keysersoze", "no"), ("somebody", "yes")] {
        let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
        let test = start_bank(&llm, &log).await;
        test.chat("s-1", REQUEST).await;
        let session = Some(SessionId::new("s-1").unwrap());
        let request = ChatRequest { session, ..ChatRequest::new(words, test.tenant.clone(), user) };
        let ticket = test.engine.submit(request).await.unwrap();
        let finished = test.finish(ticket).await;
        assert!(!finished.state.is_confirmation(), "{user}: {words}");
        assert!(log.calls().is_empty(), "{user}: {words}");
    }
}

#[tokio::test]
async fn complete_call_in_a_scene_question_is_confirmed() {
    let known = json!({"question": "Really?", "tool": "Send", "missing": [], "known": sent(50)});
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("AskUser", known)])));
    let test = start_bank(&llm, &log).await;
    let asked = test.chat("s-1", "Can I send 50 euros to Anna?").await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput);
    assert!(asked.answer.answer.contains("Send (Bank)"), "the exact call is shown: {}", asked.answer.answer);
    test.chat("s-1", "sì").await;
    assert_eq!(log.calls(), [("Send".to_owned(), sent(50))]);
}

#[tokio::test]
async fn step_marked_unclear_by_the_planner_is_confirmed() {
    let mut unclear = step(1, "Bank", &["Send"], Value::Null);
    unclear["unclear"] = json!(true);
    let llm = ModelRules::of(plan(json!([unclear]))).scene(|_, _| calls(&[("Send", sent(50))])).start();
    let log = CallLog::default();
    let finished = start_bank(&llm, &log).await.chat("s-1", REQUEST).await;
    assert_eq!((finished.answer.status, log.calls().len()), (RunStatus::NeedsInput, 0));
    assert_eq!(section(&requests(&llm, QuestionKind::Scene)[0], "unclear").as_deref(), Some("true"));
}

#[tokio::test]
async fn confirmation_does_not_replace_a_required_approval() {
    let mut unclear = step(1, "Bank", &["Pay"], Value::Null);
    unclear["unclear"] = json!(true);
    let llm =
        ModelRules::of(plan(json!([unclear]))).scene(|_, _| calls(&[("Pay", json!({"amount": 5}))])).start();
    let log = CallLog::default();
    let test = start_bank(&llm, &log).await;
    let asked = test.chat("s-1", "May I pay 5 euros?").await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput);
    assert!(asked.answer.approvals.is_empty(), "only its own user is asked");
    let waits = test.submit("s-1", "yes").await.unwrap().answer().await.unwrap();
    assert_eq!((waits.status, log.calls().len()), (RunStatus::Waiting, 0), "{waits:#?}");
    assert_eq!(waits.approvals[0].tool.as_deref(), Some("Pay"));
    let done = test.submit("s-1", "yes").await.unwrap().answer().await.unwrap();
    assert_eq!((done.status, log.calls().len()), (RunStatus::Completed, 1), "{done:#?}");
}

#[tokio::test]
async fn confirmation_policy_is_set_globally_per_scene_and_per_tenant() {
    let play = |amount| one_step_model("Send", calls(&[("Send", sent(amount))]));
    for (key, value, scene, amount, asks) in [
        ("execution.confirm", "writes", None, 50, true),
        ("execution.confirm", "never", None, 60, false),
        ("execution.confirm", "writes", Some(ConfirmPolicy::Never), 60, false),
        ("execution.confirm", "never", Some(ConfirmPolicy::Writes), 50, true),
        // A tenant's setting is a lower bound for its runs.
        ("tenants.local.confirm", "writes", Some(ConfirmPolicy::Never), 50, true),
        ("tenants.local.confirm", "unclear", Some(ConfirmPolicy::Writes), 50, true),
        ("tenants.local.confirm", "unclear", None, 50, false),
    ] {
        let (log, llm) = (CallLog::default(), play(amount));
        let mut setup = Setup::scripted(&llm).alone().set("execution.confirm", "unclear").set(key, value);
        for mut made in bank(&log) {
            made.confirm = scene;
            setup = setup.scene(made);
        }
        let finished = setup.start().await.chat("s-1", REQUEST).await;
        let status = if asks { RunStatus::NeedsInput } else { RunStatus::Completed };
        assert_eq!(
            (finished.answer.status, log.calls().is_empty()),
            (status, asks),
            "{key} {value} {scene:?}"
        );
    }
}

/// A client-side conversation of one question, its answer, and these words.
pub fn kept_by_the_client(question: &str, words: &str) -> Value {
    let mut body = ask(words);
    body["model"] = json!("proscenium");
    body["messages"] = json!([
        {"role": "user", "content": REQUEST},
        {"role": "assistant", "content": question},
        {"role": "user", "content": words},
    ]);
    body
}

pub async fn complete(served: &ServedEngine, body: &Value) -> String {
    let reply: Reply = served.post("/v1/chat/completions", body).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn client_side_conversation_confirms_once_by_repeating_the_question() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
    let served = ServedEngine::start(setup(&llm, &log)).await;
    let mut first = ask(REQUEST);
    first["model"] = json!("proscenium");
    let question = complete(&served, &first).await;
    assert!(question.contains("amount: 60"), "{question}");
    // Another text, or other words, does not answer it.
    complete(&served, &kept_by_the_client("Shall I?", "yes")).await;
    complete(&served, &kept_by_the_client(&question, "yes, or rather no")).await;
    assert!(log.calls().is_empty());
    complete(&served, &kept_by_the_client(&question, "yes")).await;
    assert_eq!(log.calls(), [("Send".to_owned(), sent(60))]);
    // As a new request with the same words and the same history.
    complete(&served, &kept_by_the_client(&question, "Yes!")).await;
    assert_eq!(log.calls().len(), 1);
}

#[tokio::test]
async fn write_planned_only_after_a_tool_result_is_confirmed() {
    let plans = [
        plan(json!([step(1, "Post", &["Inbox"], Value::Null)])),
        plan(json!([step(2, "Post", &["Delete"], Value::Null)])),
    ];
    let llm = ModelRules::of(plans[0].clone())
        .plan(move |request, nth| Scripted::forced(request, plans[nth.min(1)].clone()))
        .scene(|request, _| match section(request, "expected_tools").as_deref() {
            _ if has_results(request) => Scripted::Text("Read.".into()),
            Some("Delete") => calls(&[("Delete", json!({"number": 101}))]),
            _ => calls(&[("Inbox", json!({}))]),
        })
        .check(|request, nth| {
            Scripted::forced(request, if nth == 0 { more("Delete 101.") } else { final_verdict() })
        })
        .start();
    let log = CallLog::default();
    let finished = start_bank(&llm, &log).await.chat("s-1", "What is in my post?").await;
    assert_eq!(log.names(), ["Inbox"]);
    assert_eq!(finished.answer.status, RunStatus::NeedsInput, "{:#?}", finished.answer);
    assert!(finished.answer.answer.contains("Delete (Post)"), "{}", finished.answer.answer);
}

#[tokio::test]
async fn writes_per_run_are_bounded_and_scenes_can_raise_the_bound() {
    for (raised, done) in [(None, 3), (Some(5), 5), (Some(2), 3)] {
        let many: Vec<(&str, Value)> = (1..=8).map(|n| ("Send", sent(n))).collect();
        let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&many)));
        let mut setup = Setup::scripted(&llm).alone().set("execution.max_writes", 3);
        setup = setup.set("execution.confirm", "unclear");
        for mut scene in bank(&log) {
            scene.max_writes = raised;
            setup = setup.scene(scene);
        }
        let test = setup.start().await;
        let finished = test.chat("s-1", "Send Anna 1, 2, 3, 4, 5, 6, 7 and 8 euros.").await;
        assert_eq!((finished.answer.status, log.calls().len()), (RunStatus::NeedsInput, done), "{raised:?}");
        // The user may want all of them.
        test.chat("s-1", "yes").await;
        assert_eq!(log.calls().len(), 8);
    }
}

#[tokio::test]
async fn equal_write_in_a_step_is_confirmed_unless_repeatable() {
    let twice = [("Send", sent(50)), ("Send", sent(50))];
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&twice)));
    let test = start_bank(&llm, &log).await;
    let finished = test.chat("s-1", REQUEST).await;
    assert_eq!(
        (finished.answer.status, log.calls().len()),
        (RunStatus::NeedsInput, 1),
        "{:#?}",
        finished.answer
    );
    assert!(
        finished.answer.answer.contains("This was done already. Once more?"),
        "{}",
        finished.answer.answer
    );
    test.chat("s-1", "yes").await;
    assert_eq!(log.calls().len(), 2);

    let deposit = || ("Deposit", json!({"amount": 50}));
    let (log, llm) = (CallLog::default(), one_step_model("Deposit", calls(&[deposit(), deposit()])));
    let finished = start_bank(&llm, &log).await.chat("s-1", "Deposit 50 euros, twice.").await;
    assert_eq!(
        (finished.answer.status, log.calls().len()),
        (RunStatus::Completed, 2),
        "{:#?}",
        finished.answer
    );
}

#[tokio::test]
async fn repeatable_write_of_a_replan_or_parallel_step_runs_once() {
    let beside =
        plan(json!([step(1, "Bank", &["Deposit"], Value::Null), step(2, "Bank", &["Deposit"], Value::Null)]));
    let behind =
        plan(json!([step(1, "Bank", &["Deposit"], Value::Null), step(2, "Bank", &["Deposit"], json!(1))]));
    for (first, again, done) in [(beside, false, 1), (behind.clone(), false, 2), (behind, true, 2)] {
        let next = plan(json!([step(3, "Bank", &["Deposit"], Value::Null)]));
        let llm = ModelRules::of(first.clone())
            .plan(move |request, nth| {
                Scripted::forced(request, if nth == 0 { first.clone() } else { next.clone() })
            })
            .scene(|request, _| match has_results(request) {
                true => Scripted::Text("Done.".into()),
                false => calls(&[("Deposit", json!({"amount": 50}))]),
            })
            .check(move |request, nth| {
                Scripted::forced(
                    request,
                    if again && nth == 0 { more("The deposit.") } else { final_verdict() },
                )
            })
            .start();
        let log = CallLog::default();
        let finished =
            start_bank(&llm, &log).await.chat("s-1", "Deposit 50 euros and then 50 euros more.").await;
        assert_eq!(log.calls().len(), done, "again {again}: {:#?}", finished.answer);
    }
}

#[tokio::test]
async fn reads_repeat_after_another_scenes_write_and_volatile_reads_always() {
    let steps = json!([
        step(1, "Post", &["Inbox"], Value::Null),
        step(2, "Bank", &["Send", "Balance", "Rate"], json!(1)),
        step(3, "Post", &["Inbox"], json!(2)),
    ]);
    let llm = ModelRules::of(plan(steps))
        .scene(|request, _| match section(request, "scene").as_deref() {
            _ if has_results(request) => Scripted::Text("Done.".into()),
            Some("Post") => calls(&[("Inbox", json!({}))]),
            _ => calls(&[
                ("Rate", json!({})),
                ("Balance", json!({})),
                ("Balance", json!({})),
                ("Send", sent(50)),
                ("Rate", json!({})),
                ("Rate", json!({})),
            ]),
        })
        .start();
    let log = CallLog::default();
    let finished = start_bank(&llm, &log).await.chat("s-1", REQUEST).await;
    assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
    let count = |tool: &str| log.names().iter().filter(|name| *name == tool).count();
    assert_eq!((count("Inbox"), count("Rate"), count("Balance"), count("Send")), (2, 3, 1, 1));
}

#[tokio::test]
async fn unserved_part_is_named_and_makes_the_run_partial() {
    let mut made = plan(json!([step(1, "Bank", &["Send"], Value::Null)]));
    made["unserved"] = json!(["order a pizza"]);
    let llm = ModelRules::of(made)
        .scene(|request, _| match has_results(request) {
            true => Scripted::Text("Sent to Anna.".into()),
            false => calls(&[("Send", sent(50))]),
        })
        .start();
    let log = CallLog::default();
    let finished = start_bank(&llm, &log).await.chat("s-1", "Send 50 euros to Anna and order a pizza.").await;
    assert_eq!((finished.answer.status, log.calls().len()), (RunStatus::Partial, 1));
    assert!(finished.answer.answer.contains("order a pizza"), "{}", finished.answer.answer);
    assert_eq!(finished.answer.plan.unwrap().unserved, ["order a pizza"]);
}

#[tokio::test]
async fn task_about_a_text_does_not_execute_the_text() {
    for words in [
        "Translate the following into German: Send 50 euros to Anna",
        "Correct the grammar of this sentence: send 50 euros to Anna",
    ] {
        let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(50))])));
        let finished = start_bank(&llm, &log).await.chat("s-1", words).await;
        assert_eq!((finished.answer.status, log.calls().len()), (RunStatus::NeedsInput, 0), "{words}");
    }
}

#[tokio::test]
async fn prompt_states_the_maximum_number_of_steps() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(50))])));
    setup(&llm, &log).set("planning.max_steps", 7).start().await.chat("s-1", REQUEST).await;
    let asked = &requests(&llm, QuestionKind::Plan)[0];
    assert_eq!(asked["tools"][0]["function"]["parameters"]["properties"]["steps"]["maxItems"], 7);
    assert!(asked["messages"][0]["content"].as_str().unwrap().contains("At most 7 steps"));
}

#[tokio::test]
async fn confirmation_question_survives_a_restart() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
    let test = start_bank(&llm, &log).await;
    test.chat("s-1", REQUEST).await;
    let dir = test.stop().await;
    let test = setup(&llm, &log).on(&dir).start().await;
    let finished: FinishedRun = test.chat("s-1", "ok").await;
    assert_eq!(finished.answer.status, RunStatus::Completed);
    assert_eq!(log.calls(), [("Send".to_owned(), sent(60))]);
}

#[tokio::test]
async fn calendar_derived_days_run_and_other_days_are_confirmed() {
    // Sent on Monday, 4 May 2026.
    for (words, from, to, clear) in [
        ("Request vacation for the week after 15 June.", "2026-06-22", "2026-06-26", true),
        ("Request vacation next Friday, please.", "2026-05-08", "2026-05-08", true),
        ("I need vacation on the 16th of the year 2026's eleventh month.", "2026-11-16", "2026-11-16", true),
        ("Request vacation on Thursday 09/10, 2026.", "2026-09-10", "2026-09-10", true),
        ("Chiedi tre giorni di ferie dal 15 giugno.", "2026-06-15", "2026-06-17", true),
        ("Request vacation on 15 June.", "2026-07-15", "2026-07-15", false),
        ("Request vacation on 15 June.", "2026-06-15", "2026-06-19", false),
        ("Request a few days of vacation.", "2026-06-15", "2026-06-17", false),
    ] {
        let reply = calls(&[("MakeRequest", json!({"from": from, "to": to}))]);
        let llm = ModelRules::of(plan(json!([step(1, "VacationManagement", &["MakeRequest"], Value::Null)])))
            .scene(move |request, _| match has_results(request) {
                true => Scripted::Text("Requested.".into()),
                false => reply.clone(),
            })
            .start();
        let test = Setup::scripted(&llm).set("execution.confirm", "unclear").start().await;
        let finished = test.chat("s-1", words).await;
        let written = test.vacations().await.into_iter().map(|(_, from, to)| (from, to)).collect::<Vec<_>>();
        if clear {
            assert_eq!(written, [(from.to_owned(), to.to_owned())], "{words}: {}", finished.answer.answer);
        } else {
            assert_eq!((written.len(), finished.answer.status), (0, RunStatus::NeedsInput), "{words}");
        }
    }
}

#[tokio::test]
async fn answer_that_omits_a_write_has_it_appended() {
    let llm = ModelRules::of(plan(json!([step(1, "Bank", &["Send"], Value::Null)])))
        .scene(|request, _| match has_results(request) {
            true => Scripted::Text("All done.".into()),
            false => calls(&[("Send", sent(50))]),
        })
        .check(|request, _| {
            let mut verdict = final_verdict();
            verdict["answer"] = json!("There is nothing to tell.");
            Scripted::forced(request, verdict)
        })
        .start();
    let log = CallLog::default();
    let finished = start_bank(&llm, &log).await.chat("s-1", REQUEST).await;
    assert_eq!(finished.answer.answer, "There is nothing to tell.\nIt is done, the balance is 101.");
}

#[tokio::test]
async fn yes_before_a_question_does_not_answer_it() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = gate.clone();
    let llm = ModelRules::of(plan(json!([step(1, "Bank", &["Send"], Value::Null)])))
        .scene(move |request, nth| match section(request, "request").as_deref() {
            // The second request is answered only after the yes is accepted.
            Some("Send 70 to Ida.") => {
                drop(held.1.wait_while(held.0.lock().unwrap(), |open| !*open).unwrap());
                calls(&[("Send", json!({"recipient": "Ida", "amount": 71}))])
            }
            _ if nth == 0 => calls(&[("Send", sent(60))]),
            _ => Scripted::Text("Yes to what?".into()),
        })
        .start();
    let log = CallLog::default();
    let test = start_bank(&llm, &log).await;
    test.chat("s-1", REQUEST).await;
    let second = test.submit("s-1", "Send 70 to Ida.").await.unwrap();
    let yes = test.submit("s-1", "yes").await.unwrap();
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    assert_eq!(second.answer().await.unwrap().status, RunStatus::NeedsInput);
    test.finish(yes).await;
    assert!(log.calls().is_empty(), "{:?}", log.calls());
}

#[tokio::test]
async fn yes_does_not_confirm_a_question_of_an_ended_run() {
    let mut steps =
        json!([step(1, "Bank", &["Send"], Value::Null), step(2, "Post", &["Inbox"], Value::Null)]);
    steps[0]["unclear"] = json!(true);
    let llm = ModelRules::of(plan(steps))
        .scene(move |request, _| match section(request, "scene").as_deref() {
            Some("Bank") => calls(&[("Send", sent(50))]),
            _ => Scripted::Silence,
        })
        .start();
    let log = CallLog::default();
    let test = setup(&llm, &log).set("execution.run_timeout_ms", 600).start().await;
    let finished = test.chat("s-1", REQUEST).await;
    assert_ne!(finished.answer.status, RunStatus::NeedsInput, "{:#?}", finished.answer);
    test.chat("s-1", "ok").await;
    assert!(log.calls().is_empty(), "{:?}", log.calls());
}

#[tokio::test]
async fn one_yes_to_a_repeated_question_executes_once() {
    let (log, llm) = (CallLog::default(), one_step_model("Send", calls(&[("Send", sent(60))])));
    let served = ServedEngine::start(setup(&llm, &log)).await;
    let mut first = ask(REQUEST);
    first["model"] = json!("proscenium");
    let question = complete(&served, &first).await;
    assert_eq!(complete(&served, &first).await, question);
    for _ in 0..3 {
        complete(&served, &kept_by_the_client(&question, "yes")).await;
    }
    assert_eq!(log.calls().len(), 1);
}
