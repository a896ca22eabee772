//! Conversations: their requests in order, concurrent with other conversations, through unloading and
//! restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proscenium::StartError;
use proscenium::llm::Purpose;
use proscenium::memory::{self, Memory};
use proscenium::run::{Context, Effect, RunStatus, SessionEvent};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::model_script::ModelScript;
use crate::support::{FinishedRun, Gate, ScriptedLlm, Setup, TestEngine, forced_tool, section, wire};

const SCRIPT: &str = r#"
"look": {steps: [{scene: Desk, rounds: [[{Look: {item: lamp}}]]}]}
"look again": {steps: [{scene: Desk, rounds: [[{Look: {item: chair}}]]}]}
"held": {steps: [{scene: Desk, rounds: [[{Look: {item: desk}}]]}]}
"look at lamp {i}.": {steps: [{scene: Desk, rounds: [[{Look: {item: "lamp {day}"}}]]}]}
"break": {steps: [{scene: Desk, rounds: [[{Break: {item: lamp}}]]}]}
"smash": {steps: [{scene: Desk, rounds: [[{Smash: {item: lamp}}]]}]}
"wait": {steps: [{scene: Desk, rounds: [[{Wait: {item: lamp}}]]}]}
"move": {steps: [{scene: Desk, rounds: [[{Move: {item: lamp}}], [{Move: {item: lamp}}], [{Move: {item: chair}}]]}]}
"#;

#[derive(Deserialize, schemars::JsonSchema)]
struct Item {
    /// The thing.
    item: String,
}

/// How often each hanging tool was started.
#[derive(Clone, Default)]
struct HangingCalls {
    waits: Arc<AtomicUsize>,
    moves: Arc<AtomicUsize>,
}

/// A scene with tools that work, fail and hang.
fn desk(calls: &HangingCalls) -> Scene {
    let hanging = |count: &Arc<AtomicUsize>| {
        let count = count.clone();
        move |_: Item, _: ToolContext| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<Result<Value, ToolError>>()
        }
    };
    let broken = |item: Item, _: ToolContext| async move {
        match item.item.as_str() {
            "" => Ok::<Value, ToolError>(Value::Null),
            item => panic!("the {item} fell down"),
        }
    };
    let look = |item: Item, _: ToolContext| async move { Ok::<Value, ToolError>(json!({"item": item.item})) };
    Scene::builder("Desk")
        .description("Things on a desk.")
        .instructions("Look at them.")
        .tool(SceneTool::native("Look", "Looks at a thing.", Effect::Read, look).say(
            "en",
            "The {{ item }} stands on the desk, a little to the left of where it stood yesterday.",
        ))
        .tool(SceneTool::native("Break", "Looks too closely.", Effect::Read, broken))
        .tool(SceneTool::native("Smash", "Takes a hammer.", Effect::Write, broken))
        .tool(
            SceneTool::native("Wait", "Looks for ever.", Effect::Read, hanging(&calls.waits)).timeout_ms(50),
        )
        .tool(
            SceneTool::native("Move", "Moves for ever.", Effect::Write, hanging(&calls.moves)).timeout_ms(50),
        )
        .build()
        .unwrap()
}

/// A sensible model, and a gate at which every question about "held" waits after it has `arrived`.
pub struct GatedModel {
    pub llm: ScriptedLlm,
    pub arrived: Gate,
    pub gate: Gate,
}

pub fn held() -> GatedModel {
    let (arrived, gate) = (Gate::closed(), Gate::closed());
    let (arrived_gate, wait) = (arrived.clone(), gate.clone());
    let script = ModelScript::parse(SCRIPT);
    let llm = ScriptedLlm::start(move |request, _| {
        let reply = script.reply(request);
        if section(request, "request").as_deref() != Some("held") {
            return reply;
        }
        arrived_gate.open();
        reply.held(&wait)
    });
    GatedModel { llm, arrived, gate }
}

pub fn desk_setup(llm: &ScriptedLlm) -> Setup {
    Setup::scripted(llm).scene(desk(&HangingCalls::default()))
}

fn context(finished: &FinishedRun) -> &Context {
    &finished.state.started.as_ref().unwrap().context
}

pub fn remembered(finished: &FinishedRun) -> Vec<&str> {
    context(finished).turns.iter().map(|turn| turn.request.as_str()).collect()
}

fn fold(test: &TestEngine, events: &[SessionEvent]) -> Memory {
    Memory::from_events(test.config.memory.clone(), events)
}

/// The context of the conversation's next run, from the stored events.
async fn next_context(test: &TestEngine, session: &str) -> Context {
    let window = test.engine.gateway().context_window(Purpose::Plan) as usize;
    fold(test, &test.session(session).await).context(test.config.memory.budget(window))
}

#[tokio::test]
async fn requests_of_one_conversation_run_in_order() {
    let test = Setup::offline().start().await;
    let words = ["Che tempo fa a Milano?", "E a Roma?", "E a Napoli?", "E a Torino?"];
    let mut tickets = Vec::new();
    for say in words {
        tickets.push(test.submit("s-1", say).await.unwrap());
    }
    for (number, ticket) in tickets.into_iter().enumerate() {
        let finished = test.finish(ticket).await;
        assert_eq!(remembered(&finished), words[..number]);
        assert_eq!(finished.answer.status, RunStatus::Completed);
        let city = ["Milan", "Rome", "Naples", "Turin"][number];
        assert_eq!(finished.answer.steps[0].tool_calls[0].result.as_ref().unwrap()["city"], city);
    }
}

#[tokio::test]
async fn simultaneous_requests_that_wake_a_conversation_keep_their_order() {
    let GatedModel { llm, .. } = held();
    let test = desk_setup(&llm).start().await;
    let words = ["look", "look again", "break", "wait", "look"];
    // Polled in this order, so that all are sent before the conversation has loaded.
    let tickets = futures::future::join_all(words.map(|say| test.submit("s-1", say))).await;
    for (number, ticket) in tickets.into_iter().enumerate() {
        let finished = test.finish(ticket.unwrap()).await;
        assert_eq!(finished.state.request(), words[number]);
        assert_eq!(remembered(&finished), words[..number]);
    }
}

#[tokio::test]
async fn conversation_is_served_while_another_waits_for_its_model() {
    let GatedModel { llm, arrived, gate } = held();
    let test = desk_setup(&llm).start().await;
    let first = test.submit("a", "held").await.unwrap();
    arrived.wait_open().await;
    let second = test.submit("a", "look").await.unwrap();

    let other = test.chat("b", "look again").await;
    assert_eq!(other.answer.status, RunStatus::Completed);
    let waiting = test.engine.store().run(&test.tenant, second.run).await.unwrap().unwrap();
    assert_eq!(waiting.status, RunStatus::Queued, "the second request of the held conversation must wait");

    gate.open();
    assert_eq!(test.finish(first).await.answer.status, RunStatus::Completed);
    assert_eq!(remembered(&test.finish(second).await), ["held"]);
    wire::assert_valid_requests(&llm);
}

#[tokio::test]
async fn follow_up_is_understood_after_a_restart() {
    let test = Setup::offline().start().await;
    test.chat("s-1", "Il mio username è keysersoze").await;
    test.chat("s-1", "Che tempo fa a Milano?").await;
    let asked = test.chat("s-2", "What is the weather in Milan, and then ask for three days off").await;
    assert_eq!(asked.answer.status, RunStatus::NeedsInput);
    let before = [test.session("s-1").await, test.session("s-2").await];
    let dir = test.stop().await;

    let test = Setup::offline().on(&dir).start().await;
    assert_eq!(test.engine.awake_sessions().await, 0);
    for (session, before) in ["s-1", "s-2"].into_iter().zip(&before) {
        assert_eq!(fold(&test, &test.session(session).await), fold(&test, before));
    }
    let expected = next_context(&test, "s-1").await;
    let finished = test.chat("s-1", "E a Roma?").await;
    assert_eq!(context(&finished), &expected);
    assert_eq!(finished.answer.steps[0].tool_calls[0].result.as_ref().unwrap()["city"], "Rome");
    let finished = test.chat("s-2", "From 15 to 17 June").await;
    assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
    let stored = ("keysersoze".to_owned(), "2026-06-15".to_owned(), "2026-06-17".to_owned());
    assert_eq!(test.vacations().await, [stored]);
}

#[tokio::test]
async fn conversation_unloaded_after_every_turn_keeps_its_state() {
    let test = Setup::offline().idle(Duration::ZERO).start().await;
    let cities = ["Milano", "Roma", "Napoli", "Torino", "Parigi", "Londra"];
    for (turn, city) in cities.into_iter().enumerate() {
        while test.engine.awake_sessions().await > 0 {
            tokio::task::yield_now().await;
        }
        let expected = next_context(&test, "s-1").await;
        let say = if turn == 0 { format!("Che tempo fa a {city}?") } else { format!("E a {city}?") };
        let finished = test.chat("s-1", &say).await;
        assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
        assert_eq!(context(&finished), &expected);
        assert_eq!(remembered(&finished).len(), turn);
    }
}

#[tokio::test]
async fn idle_conversations_of_one_turn_are_bounded_and_keep_their_state() {
    let test = Setup::offline().idle(Duration::from_secs(3600)).max_idle_short(2).start().await;
    for session in ["s-1", "s-2", "s-3", "s-4"] {
        let finished = test.chat(session, "Che tempo fa a Milano?").await;
        assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
    }
    while test.engine.awake_sessions().await > 2 {
        tokio::task::yield_now().await;
    }
    for session in ["s-1", "s-2", "s-3", "s-4"] {
        let expected = next_context(&test, session).await;
        let finished = test.chat(session, "E a Roma?").await;
        assert_eq!(context(&finished), &expected);
        assert_eq!(remembered(&finished), ["Che tempo fa a Milano?"]);
    }
    // After their second turn they stay.
    assert_eq!(test.engine.awake_sessions().await, 4);
}

#[tokio::test]
async fn no_request_is_lost_while_a_conversation_unloads() {
    let GatedModel { llm, .. } = held();
    let test = desk_setup(&llm).idle(Duration::ZERO).start().await;
    for turn in 0..3 {
        let finished = test.chat("s-1", "look").await;
        assert_eq!(remembered(&finished).len(), turn);
    }
}

#[tokio::test]
async fn memory_is_summarised_before_it_exceeds_the_context_window() {
    const WINDOW: usize = 3072;
    const REPLY: usize = 256;
    let GatedModel { llm, .. } = held();
    let setup = desk_setup(&llm).alone();
    let setup =
        setup.model("context_window", &WINDOW.to_string()).model("max_output_tokens", &REPLY.to_string());
    let test = setup.start().await;
    for turn in 1..=31 {
        let finished = test.chat("s-1", &format!("look at lamp {turn}.")).await;
        assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
    }
    let requests = llm.requests();
    let summaries: Vec<usize> =
        (0..requests.len()).filter(|n| section(&requests[*n], "facts").is_some()).collect();
    assert!(summaries.len() > 1, "{} requests and {summaries:?} for a summary", requests.len());
    let mut summarised = 0;
    for (number, request) in requests.iter().enumerate() {
        let size = memory::tokens(&json!([request["messages"], request["tools"]]).to_string());
        assert!(size + REPLY <= WINDOW, "request {number} has {size} tokens: {request:#}");
        let Some(conversation) = section(request, "conversation") else { continue };
        if section(request, "scenes").is_none() {
            continue;
        }
        // A request may be answered beside the first summary; every later one knows it.
        let conversation: Value = serde_json::from_str(&conversation).unwrap();
        let summary = conversation["summary"].as_str().unwrap_or_default();
        let is_summarised = summary.contains("look at lamp 1.");
        assert!(is_summarised || summarised == 0, "request {number} has no summary: {conversation:#}");
        summarised += usize::from(is_summarised);
    }
    assert!(summarised > 10, "{summarised} requests with a summary");
    let memory = fold(&test, &test.session("s-1").await);
    assert_eq!(memory.total_turns(), 31);
    for turn in 1..=memory.covered() {
        assert!(
            memory.summary().unwrap().contains(&format!("look at lamp {turn}.")),
            "turn {turn} is forgotten"
        );
    }
    wire::assert_valid_requests(&llm);
}

#[tokio::test]
async fn requests_are_answered_while_a_summary_is_made_until_a_prompt_would_lack_turns() {
    let (arrived, gate) = (Gate::closed(), Gate::closed());
    let (arrived_gate, wait) = (arrived.clone(), gate.clone());
    let script = ModelScript::parse(SCRIPT);
    let llm = ScriptedLlm::start(move |request, _| {
        let reply = script.reply(request);
        if forced_tool(request) != Some("WriteSummary") {
            return reply;
        }
        arrived_gate.open();
        reply.held(&wait)
    });
    let setup = desk_setup(&llm).set("memory.keep_turns", 1).set("memory.max_turns_in_prompt", 4);
    let test = setup.start().await;
    for turn in 0..4 {
        assert_eq!(remembered(&test.chat("s-1", "look").await).len(), turn);
    }
    arrived.wait_open().await;
    // A quarter more than a prompt may have: five turns, and the sixth begins with them.
    for turns in [4, 4] {
        let finished = test.chat("s-1", "look again").await;
        assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
        assert_eq!(remembered(&finished).len(), turns);
    }
    let waits = test.submit("s-1", "look").await.unwrap();
    // Another conversation is answered from its beginning to its end.
    assert_eq!(test.chat("s-2", "look").await.answer.status, RunStatus::Completed);
    let waiting = test.engine.store().run(&test.tenant, waits.run).await.unwrap().unwrap();
    assert_eq!(waiting.status, RunStatus::Queued, "a prompt would lack two turns");
    let summaries = |events: &[SessionEvent]| {
        events.iter().filter(|event| matches!(event, SessionEvent::Summarised { .. })).count()
    };
    assert_eq!(summaries(&test.session("s-1").await), 0);

    gate.open();
    let finished = test.finish(waits).await;
    assert_eq!(finished.answer.status, RunStatus::Completed, "{:#?}", finished.answer);
    assert!(context(&finished).summary.is_some());
    assert_eq!(remembered(&finished), ["look", "look", "look again", "look again"]);
    let memory = fold(&test, &test.session("s-1").await);
    assert_eq!(memory.total_turns(), 7);
    wire::assert_valid_requests(&llm);
}

#[tokio::test]
async fn data_directory_has_one_owner_at_a_time() {
    let test = Setup::offline().start().await;
    match Setup::offline().on(&test.dir).try_start().await {
        Err(StartError::Store(error)) => {
            assert_eq!(error.code(), "store.in_use");
            let dir = test.dir.path().join("data");
            assert!(error.to_string().contains(&dir.display().to_string()), "{error}");
        }
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("two engines on one directory"),
    }
    // The directory is free as soon as an engine has stopped, every time.
    let mut owner = test;
    for turn in 0..4 {
        let finished = owner.chat("s-1", "Che tempo fa a Milano?").await;
        assert_eq!(remembered(&finished).len(), turn);
        let dir = owner.stop().await;
        owner = Setup::offline().on(&dir).start().await;
    }
}

#[tokio::test]
async fn disconnected_client_does_not_stop_its_run() {
    let GatedModel { llm, arrived, gate } = held();
    let test = desk_setup(&llm).start().await;
    let ticket = test.submit("s-1", "held").await.unwrap();
    let run = ticket.run;
    arrived.wait_open().await;
    drop(ticket);
    gate.open();
    let next = test.chat("s-1", "look").await;
    assert_eq!(remembered(&next), ["held"]);
    let state = test.engine.run(&test.tenant, run).await.unwrap();
    assert_eq!(state.status, RunStatus::Completed);
}

#[tokio::test]
async fn request_to_a_full_queue_is_refused() {
    let GatedModel { llm, arrived, gate } = held();
    let test = desk_setup(&llm).set("execution.max_queued_requests", 2).start().await;
    let first = test.submit("s-1", "held").await.unwrap();
    arrived.wait_open().await;
    let second = test.submit("s-1", "look").await.unwrap();
    let third = test.submit("s-1", "look again").await.unwrap();
    let refused = test.submit("s-1", "look").await.err().unwrap();
    assert_eq!(refused.code, "session.queue_full");
    assert!(refused.message.contains('2'), "{refused}");
    // Another conversation has its own queue.
    assert_eq!(test.chat("s-2", "look").await.answer.status, RunStatus::Completed);
    gate.open();
    for ticket in [first, second, third] {
        assert_eq!(test.finish(ticket).await.answer.status, RunStatus::Completed);
    }
    assert_eq!(test.chat("s-1", "look").await.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn panicking_tool_fails_only_its_call() {
    let GatedModel { llm, .. } = held();
    let test = desk_setup(&llm).start().await;
    for (words, outcome) in [("break", "failed"), ("smash", "unknown")] {
        let finished = test.chat("s-1", words).await;
        assert!(
            finished.answer.status != RunStatus::Cancelled && !finished.answer.answer.is_empty(),
            "{:#?}",
            finished.answer
        );
        let call = json!(finished.answer.steps[0].tool_calls[0]);
        assert_eq!(call["outcome"], outcome);
        assert_eq!(call["error"]["code"], "tool.panicked");
        let next = test.chat("s-1", "look").await;
        assert_eq!(next.answer.status, RunStatus::Completed, "{:#?}", next.answer);
    }
    wire::assert_valid_requests(&llm);
}

#[tokio::test]
async fn hanging_read_times_out_and_is_reported() {
    let calls_made = HangingCalls::default();
    let GatedModel { llm, .. } = held();
    let test = Setup::scripted(&llm).scene(desk(&calls_made)).start().await;
    let finished = test.chat("s-1", "wait").await;
    let call = json!(finished.answer.steps[0].tool_calls[0]);
    assert_eq!((&call["outcome"], &call["error"]["code"]), (&json!("failed"), &json!("tool.timeout")));
    assert!(
        finished.answer.answer.contains("Wait did not answer within 50 ms"),
        "{}",
        finished.answer.answer
    );
    assert_eq!(calls_made.waits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn hanging_write_is_reported_unknown_and_never_repeated() {
    let calls_made = HangingCalls::default();
    let GatedModel { llm, .. } = held();
    let test = Setup::scripted(&llm).scene(desk(&calls_made)).start().await;
    let finished = test.chat("s-1", "move").await;
    let calls: Vec<Value> = finished.answer.steps[0].tool_calls.iter().map(|call| json!(call)).collect();
    assert_eq!(
        (&calls[0]["outcome"], &calls[0]["error"]["code"]),
        (&json!("unknown"), &json!("tool.timeout"))
    );
    // The model asks for the same again, and then for another write with the same tool.
    assert_eq!(calls[1]["outcome"], "skipped");
    assert_eq!((&calls[2]["outcome"], &calls[2]["error"]["code"]), (&json!("refused"), &json!("tool.held")));
    assert_eq!(calls_made.moves.load(Ordering::SeqCst), 1, "{calls:#?}");
    assert_eq!(finished.answer.status, RunStatus::Partial);
    assert!(
        finished.answer.answer.contains("whether it took effect is unknown"),
        "{}",
        finished.answer.answer
    );
    wire::assert_valid_requests(&llm);
}

#[tokio::test]
async fn engine_dropped_while_working_does_no_harm() {
    let harm = Arc::new(AtomicUsize::new(0));
    let (count, before) = (harm.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        count.fetch_add(usize::from(panic.to_string().contains("Tokio context")), Ordering::SeqCst);
        before(panic);
    }));
    for _ in 0..8 {
        let test = Setup::offline().start().await;
        let mut tickets = Vec::new();
        for number in 0..8 {
            tickets.push(test.submit(&format!("s-{number}"), "Che tempo fa a Milano?").await.unwrap());
        }
        drop(test);
        for ticket in tickets {
            // Answered or lost, depending on timing.
            let _ = ticket.answer().await;
        }
    }
    assert_eq!(harm.load(Ordering::SeqCst), 0);
}
