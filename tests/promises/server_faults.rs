//! Model faults seen by a client of the server: each ends in its status and its stable code, the run ends
//! once, and the settled cost is what was spent.

use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::llm::budget::{AccountBalance, AccountKey};
use proscenium::run::{Attempt, Event, RunId};
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::{
    FinishedRun, Reply, Scripted, ScriptedLlm, ServedEngine, Setup, StreamEnd, arguments, finish,
    forced_tool, journal, words,
};

const PLAN: &str = "CreateExecutionPlan";

/// Longer than any test: such a timeout never ends a call.
const NEVER: u64 = 600_000;

/// The expected end of a request: answered, or a status and a code.
type ExpectedEnd = Result<(), (u16, &'static str)>;

/// A fault and its expected result.
struct FaultCase {
    /// The model's replies to the planning question, the last one repeated.
    replies: Vec<Scripted>,
    set: Vec<(&'static str, u64)>,
    ends: ExpectedEnd,
    /// The recorded outcome of each attempt at the plan.
    attempts: &'static [&'static str],
}

fn no_plan() -> Value {
    json!({"needs_execution": false, "reasoning": "small talk", "steps": []})
}

fn planned() -> Scripted {
    Scripted::call(PLAN, no_plan())
}

/// A model with these replies to the planning question, and answers in words.
fn model(replies: Vec<Scripted>) -> ScriptedLlm {
    let asked = AtomicUsize::new(0);
    ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some(_) => replies[asked.fetch_add(1, Ordering::Relaxed).min(replies.len() - 1)].clone(),
        None => Scripted::Text("Good morning!".into()),
    })
}

fn priced(llm: &ScriptedLlm, streamed: bool) -> Setup {
    Setup::scripted(llm)
        .model("input_usd_per_million", "1.0")
        .model("output_usd_per_million", "10.0")
        .model("stream", if streamed { "\"all\"" } else { "false" })
        .set("budget.tenant_usd", "1000.0")
        .set("budget.day_usd", "1000.0")
}

/// Whether an attempt is free because the model never started to work.
fn is_free(outcome: &str) -> bool {
    ["connect", "rate_limited", "status", "unauthorized", "quota"].contains(&outcome)
}

fn attempts(finished: &FinishedRun) -> Vec<Attempt> {
    let of = |event: &Event| match event {
        Event::ModelReplied { attempts, .. } | Event::ModelFailed { attempts, .. } => attempts.clone(),
        _ => Vec::new(),
    };
    finished.events.iter().flat_map(|event| of(&event.body)).collect()
}

/// Asserts that the only run of a server ended once, that its cost is settled, and that each attempt costs
/// what it should.
async fn settled_run(served: &ServedEngine, run: RunId) -> FinishedRun {
    let answer = served.engine.wait(&served.tenant, run).await.unwrap();
    let (events, state) = (served.events(run).await, served.engine.run(&served.tenant, run).await.unwrap());
    let finished = FinishedRun { answer, state, events };
    journal::assert_invariants(&finished);
    let ends = finished.events.iter().filter(|event| event.body.is_terminal()).count();
    assert!(ends == 1 && finished.events.last().unwrap().body.is_terminal(), "{:#?}", finished.events);
    for attempt in attempts(&finished) {
        let cost = attempt.usage.cost_nano_usd;
        assert_eq!(cost == 0, is_free(&attempt.outcome), "{attempt:?}");
    }
    let spent = finished.state.usage.cost_nano_usd;
    let gateway = served.engine.gateway();
    let budget = &gateway.guards().budget;
    let figures = AccountBalance { spent, reserved: 0 };
    for account in [AccountKey::Tenant(served.tenant.clone()), AccountKey::Day(served.tenant.clone())] {
        assert_eq!(budget.balance(account).await.unwrap(), figures);
    }
    let sums = served.engine.store().usage(None, None).await.unwrap();
    assert_eq!(sums.get(&served.tenant).map_or(0, |sum| sum.cost_nano_usd), spent);
    finished
}

async fn only_run(served: &ServedEngine) -> RunId {
    let runs = served.get("/api/runs").await.json()["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs:#}");
    runs[0]["run_id"].as_str().unwrap().parse().unwrap()
}

fn ended(reply: &Reply, path: &str, ends: ExpectedEnd) {
    match (path, ends) {
        (_, Ok(())) => assert_eq!(reply.status, 200, "{reply:#?}"),
        ("/api/chat", Err((status, code))) => {
            let problem = reply.assert_problem(status, code);
            assert_eq!(problem["run_id"], problem["document"]["run_id"], "{problem:#}");
        }
        (_, Err((status, code))) => {
            reply.assert_error(status, code);
        }
    }
    if ends.is_err() {
        assert_eq!(reply.header("x-should-retry"), "false", "{reply:#?}");
    }
}

impl FaultCase {
    /// Over both protocols, with a model that streams everything and with one that does not stream.
    async fn check(self) {
        for streamed in [false, true] {
            for path in ["/api/chat", "/v1/chat/completions"] {
                let llm = model(self.replies.clone());
                self.check_at(priced(&llm, streamed), path).await;
            }
        }
    }

    async fn check_at(&self, setup: Setup, path: &str) -> Reply {
        let setup = self.set.iter().fold(setup, |setup, (key, value)| setup.set(key, value));
        let served = ServedEngine::start(setup).await;
        let mut body = ask("Good morning");
        body["model"] = "proscenium".into();
        if path == "/api/chat" {
            body = ask("Good morning");
        }
        let reply = served.post(path, &body).await;
        ended(&reply, path, self.ends);
        let finished = settled_run(&served, only_run(&served).await).await;
        let all = attempts(&finished);
        let outcomes: Vec<&str> =
            all.iter().filter(|a| a.purpose == "plan").map(|a| a.outcome.as_str()).collect();
        assert_eq!(outcomes, self.attempts, "{path}: {reply:#?}");
        reply
    }
}

#[tokio::test]
async fn temporary_rate_limit_is_waited_for() {
    let limits =
        [Scripted::status(429), Scripted::status(429).header("retry-after", "0"), Scripted::status(503)];
    for limit in limits {
        let outcome: &[&str] = match &limit {
            Scripted::Status { code: 503, .. } => &["status", "ok"],
            _ => &["rate_limited", "ok"],
        };
        FaultCase { replies: vec![limit, planned()], set: vec![], ends: Ok(()), attempts: outcome }
            .check()
            .await;
    }
}

#[tokio::test]
async fn permanent_rate_limit_is_reported_with_retry_after() {
    let (limited, asked) = (Scripted::status(429), Scripted::status(429).header("retry-after", "5"));
    let thrice: &[&str] = &["rate_limited", "rate_limited", "rate_limited"];
    for (replies, set, attempts, after) in [
        (limited, vec![], thrice, "1"),
        (asked.clone(), vec![("llm.max_retry_after_ms", 4_000)], &thrice[..1], "5"),
        // The wait is allowed, but the whole call would exceed its deadline.
        (asked, vec![("llm.max_retry_after_ms", 6_000), ("llm.deadline_ms", 4_000)], &thrice[..1], "5"),
    ] {
        let case = FaultCase { replies: vec![replies], set, ends: Err((429, "llm.rate_limited")), attempts };
        for path in ["/api/chat", "/v1/chat/completions"] {
            let llm = model(case.replies.clone());
            let reply = case.check_at(priced(&llm, false), path).await;
            assert_eq!(reply.header("retry-after"), after, "{reply:#?}");
            assert_eq!(llm.count(), attempts.len());
        }
    }
}

#[tokio::test]
async fn temporary_server_error_is_retried_and_permanent_one_reported() {
    let error = Scripted::status(500);
    let passes = FaultCase {
        replies: vec![error.clone(), planned()],
        set: vec![],
        ends: Ok(()),
        attempts: &["status", "ok"],
    };
    passes.check().await;
    let ends = Err((502, "llm.status"));
    FaultCase { replies: vec![error], set: vec![], ends, attempts: &["status"; 3] }.check().await;
    let ends = Err((502, "llm.unauthorized"));
    FaultCase { replies: vec![Scripted::status(401)], set: vec![], ends, attempts: &["unauthorized"] }
        .check()
        .await;
}

#[tokio::test]
async fn refused_connection_is_reported_and_free() {
    let case = FaultCase {
        replies: vec![],
        set: vec![],
        ends: Err((502, "llm.connect")),
        attempts: &["connect"; 3],
    };
    for path in ["/api/chat", "/v1/chat/completions"] {
        let gone = model(vec![planned()]);
        let setup = priced(&gone, false);
        drop(gone);
        case.check_at(setup, path).await;
    }
}

#[tokio::test]
async fn silence_ends_at_the_first_token_timeout() {
    let set =
        || vec![("llm.first_token_timeout_ms", 100), ("llm.deadline_ms", NEVER), ("llm.max_attempts", 2)];
    let passes = FaultCase {
        replies: vec![Scripted::Silence, planned()],
        set: vec![("llm.first_token_timeout_ms", 2_000), ("llm.deadline_ms", NEVER)],
        ends: Ok(()),
        attempts: &["silence", "ok"],
    };
    passes.check().await;
    let ends = Err((504, "llm.silence"));
    FaultCase { replies: vec![Scripted::Silence], set: set(), ends, attempts: &["silence"; 2] }.check().await;
}

#[tokio::test]
async fn silence_ends_at_the_call_deadline_at_the_latest() {
    let set = vec![("llm.first_token_timeout_ms", NEVER), ("llm.deadline_ms", 200)];
    let ends = Err((504, "llm.timeout"));
    FaultCase { replies: vec![Scripted::Silence], set, ends, attempts: &["timeout"] }.check().await;
}

#[tokio::test]
async fn dripping_reply_ends_at_the_call_deadline() {
    // Each piece is in time; only their sum is not.
    let set = vec![
        ("llm.first_token_timeout_ms", NEVER),
        ("llm.between_tokens_timeout_ms", NEVER),
        ("llm.deadline_ms", 400),
    ];
    let drip = Scripted::Drip(arguments(PLAN, " "));
    FaultCase { replies: vec![drip], set, ends: Err((504, "llm.timeout")), attempts: &["timeout"] }
        .check()
        .await;
}

#[tokio::test]
async fn non_completion_reply_is_retried_and_charged() {
    for fault in [
        Scripted::Malformed("{\"choices\": [".into()),
        Scripted::Malformed(String::new()),
        Scripted::Json(json!({"choices": "none"})),
        Scripted::WrongContentType,
    ] {
        for streamed in [false, true] {
            let llm = model(vec![fault.clone(), planned()]);
            let outcome =
                if streamed && matches!(fault, Scripted::Json(_)) { "empty_stream" } else { "malformed" };
            let passes: &'static [&'static str] =
                if outcome == "malformed" { &["malformed", "ok"] } else { &["empty_stream", "ok"] };
            let stays: &'static [&'static str] =
                if outcome == "malformed" { &["malformed"; 3] } else { &["empty_stream"; 3] };
            let code = if outcome == "malformed" { "llm.malformed" } else { "llm.empty_stream" };
            let case = FaultCase { replies: vec![], set: vec![], ends: Ok(()), attempts: passes };
            case.check_at(priced(&llm, streamed), "/api/chat").await;
            let llm = model(vec![fault.clone()]);
            let case = FaultCase { replies: vec![], set: vec![], ends: Err((502, code)), attempts: stays };
            case.check_at(priced(&llm, streamed), "/v1/chat/completions").await;
        }
    }
}

#[tokio::test]
async fn oversized_reply_is_cut_reported_and_charged() {
    let replies = vec![Scripted::Oversize(5_000_000)];
    let case =
        FaultCase { replies, set: vec![], ends: Err((502, "llm.too_large")), attempts: &["too_large"] };
    for path in ["/api/chat", "/v1/chat/completions"] {
        let llm = model(case.replies.clone());
        case.check_at(priced(&llm, false), path).await;
    }
    let large = arguments(PLAN, &" ".repeat(100_000));
    let llm = model(vec![Scripted::Stream(vec![large; 60], StreamEnd::Done)]);
    case.check_at(priced(&llm, true), "/api/chat").await;
}

/// The reply with the plan in pieces.
fn plan_in_pieces() -> Vec<String> {
    let text = no_plan().to_string();
    let pieces = text.as_bytes().chunks(16).map(|piece| String::from_utf8_lossy(piece).into_owned());
    pieces.map(|piece| arguments(PLAN, &piece)).collect()
}

#[tokio::test]
async fn stream_cut_at_any_chunk_is_retried_and_both_attempts_charged() {
    let chunks = plan_in_pieces();
    let mut costs = Vec::new();
    for kept in 0..=chunks.len() {
        let cut = Scripted::Stream(chunks[..kept].to_vec(), StreamEnd::Cut);
        let llm = model(vec![cut, planned()]);
        let case = FaultCase { replies: vec![], set: vec![], ends: Ok(()), attempts: &["cut_stream", "ok"] };
        let path = if kept % 2 == 0 { "/api/chat" } else { "/v1/chat/completions" };
        case.check_at(priced(&llm, true), path).await;
        costs.push(llm.count());
    }
    assert!(costs.iter().all(|count| *count == 3), "two for the plan and one for the answer: {costs:?}");
    // After the finish reason, nothing is missing.
    let whole = [chunks, vec![finish("tool_calls")]].concat();
    let llm = model(vec![Scripted::Stream(whole, StreamEnd::Cut)]);
    let case = FaultCase { replies: vec![], set: vec![], ends: Ok(()), attempts: &["ok"] };
    case.check_at(priced(&llm, true), "/api/chat").await;
}

#[tokio::test]
async fn cut_stream_without_retries_fails_and_is_charged() {
    let chunks = plan_in_pieces();
    for kept in [0, 1, chunks.len()] {
        let llm = model(vec![Scripted::Stream(chunks[..kept].to_vec(), StreamEnd::Cut)]);
        let set = vec![("llm.max_attempts", 1)];
        let case =
            FaultCase { replies: vec![], set, ends: Err((502, "llm.cut_stream")), attempts: &["cut_stream"] };
        case.check_at(priced(&llm, true), "/v1/chat/completions").await;
    }
}

/// A stream whose answer breaks off after each of its words: the client is told to drop them.
#[tokio::test]
async fn answer_cut_at_any_chunk_is_reset_and_both_attempts_charged() {
    let parts = ["Good ", "morning", " to ", "you!"];
    for kept in 0..=parts.len() {
        let cut: Vec<String> = parts[..kept].iter().map(|word| words(word)).collect();
        let asked = AtomicUsize::new(0);
        let llm = ScriptedLlm::start(move |request, _| match forced_tool(request) {
            Some(_) => planned(),
            None if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
                Scripted::Stream(cut.clone(), StreamEnd::Cut)
            }
            None => Scripted::Text("Good evening!".into()),
        });
        let served = ServedEngine::start(priced(&llm, true)).await;
        let mut body = ask("Good morning");
        body["stream"] = true.into();
        let events = served.post("/api/chat", &body).await.events();
        let ends =
            events.iter().filter(|event| event.name.starts_with("run_") && event.name != "run_started");
        assert_eq!(ends.map(|event| event.name.as_str()).collect::<Vec<_>>(), ["run_completed"]);
        let mut text = String::new();
        for event in &events {
            match event.name.as_str() {
                "answer_delta" => text.push_str(event.data["text"].as_str().unwrap()),
                "answer_reset" => text.clear(),
                _ => {}
            }
        }
        assert_eq!(text, "Good evening!", "cut after {kept}: {events:#?}");
        let finished = settled_run(&served, only_run(&served).await).await;
        let outcomes: Vec<String> = attempts(&finished).into_iter().map(|attempt| attempt.outcome).collect();
        assert_eq!(outcomes, ["ok", "cut_stream", "ok"], "cut after {kept}");
    }
}
