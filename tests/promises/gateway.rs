//! Between a caller and a model: cache, budgets and limits, over the wire and over a restart.

use std::sync::Arc;

use futures::future::join_all;
use proscenium::config::Config;
use proscenium::llm::breaker::{self, BreakerState};
use proscenium::llm::budget::{self, AccountKey};
use proscenium::llm::cache::{self, Mode};
use proscenium::llm::limits::{self, Rates};
use proscenium::llm::{Caller, Gateway, Guards, Message, Options, Purpose, Request, StreamMode, ToolChoice};
use proscenium::run::{RunId, SessionId, TenantId};
use proscenium::{ChatRequest, Engine};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::guards::{cost_budget, day_balance, rate_limits, response_cache, tenant_balance};
use crate::support::{NoModel, Scripted, ScriptedLlm};

fn caller(session: &str, run: u128) -> Caller {
    Caller {
        tenant: TenantId::new("acme").unwrap(),
        session: SessionId::new(session).unwrap(),
        run: Some(RunId(Uuid::from_u128(run))),
        cache: None,
        voter: None,
        trace: None,
    }
}

fn question(words: &str) -> Request {
    Request {
        purpose: Purpose::Plan,
        messages: vec![Message::User { text: words.into() }],
        tools: vec![],
        choice: ToolChoice::None,
        temperature: Some(0.3),
        max_output_tokens: Some(100),
    }
}

/// One model at 1 USD per million prompt tokens and 10 USD per million completion tokens.
fn priced(llm: &ScriptedLlm) -> Options {
    let mut options = llm.options();
    options.models[0].input_usd_per_million = 1.0;
    options.models[0].output_usd_per_million = 10.0;
    options
}

fn gateway(options: Options, guards: Guards) -> Gateway {
    Gateway::new(options, Arc::new(NoModel)).unwrap().guarded(guards)
}

fn within(options: &budget::Options) -> Guards {
    Guards { budget: cost_budget(options), ..Guards::default() }
}

/// The maximum cost of a question with these words, in nano-USD: the prompt and a hundred tokens of reply.
fn max(words: &str) -> u64 {
    proscenium::llm::tokens::request(&question(words)) * 1_000 + 100 * 10_000
}

fn usd(nano: u64) -> Option<f64> {
    Some(nano as f64 / 1e9)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_is_not_overshot_by_a_thousand_concurrent_requests() {
    // Usage is not reported, so each call costs its reservation.
    let llm = ScriptedLlm::sequence([Scripted::Text("yes".into()).unmetered()]);
    let room = max("hello") * 25;
    let guards = within(&budget::Options { day_usd: usd(room + max("hello") - 1), ..Default::default() });
    let gateway = gateway(priced(&llm), guards.clone());
    let never = CancellationToken::new();
    let asked = (0..1_000).map(|n| {
        let (gateway, never) = (gateway.clone(), never.clone());
        async move { gateway.complete(&caller("s", n), &question("hello"), false, &never).await }
    });
    let mut codes = std::collections::BTreeMap::new();
    let mut cost = 0;
    for result in join_all(asked).await {
        let (code, usage) = match &result {
            Ok(done) => ("ok", done.usage),
            Err(error) => (error.code(), error.usage()),
        };
        *codes.entry(code).or_insert(0) += 1;
        cost += usage.cost_nano_usd;
    }
    assert_eq!((codes["ok"], codes["budget.exceeded"], llm.count()), (25, 975, 25), "{codes:?}");
    let day = day_balance(&guards, &caller("s", 0)).await;
    assert_eq!((day.spent, day.reserved, cost), (room, 0, room));
}

#[tokio::test]
async fn refused_attempts_are_free_and_a_cut_stream_costs_its_reservation() {
    let statuses = [Scripted::status(503), Scripted::status(429), Scripted::status(400)];
    for answer in statuses {
        let llm = ScriptedLlm::sequence([answer]);
        let guards = within(&Default::default());
        let gateway = gateway(priced(&llm), guards.clone());
        let who = caller("s", 1);
        gateway.complete(&who, &question("hello"), false, &CancellationToken::new()).await.unwrap_err();
        assert_eq!(tenant_balance(&guards, &who).await, budget::AccountBalance::default());
    }
    let llm = ScriptedLlm::sequence([Scripted::Stream(
        vec![crate::support::chunk(serde_json::json!({"delta": {"content": "Hel"}}))],
        crate::support::StreamEnd::Cut,
    )]);
    let mut options = priced(&llm);
    (options.models[0].stream, options.max_attempts) = (StreamMode::All, 2);
    let guards = within(&Default::default());
    let gateway = gateway(options, guards.clone());
    let who = caller("s", 1);
    let error =
        gateway.complete(&who, &question("hello"), false, &CancellationToken::new()).await.unwrap_err();
    let spent = tenant_balance(&guards, &who).await.spent;
    assert_eq!(
        (error.code(), spent, error.usage().cost_nano_usd),
        ("llm.cut_stream", 2 * max("hello"), spent)
    );
}

#[tokio::test]
async fn call_cancelled_or_dropped_during_silence_costs_its_reservation() {
    let llm = ScriptedLlm::sequence([Scripted::Silence]);
    let guards = within(&Default::default());
    let gateway = gateway(priced(&llm), guards.clone());
    let who = caller("s", 1);
    let stop = CancellationToken::new();
    let asked = question("hello");
    let ask = gateway.complete(&who, &asked, false, &stop);
    tokio::pin!(ask);
    while llm.count() == 0 {
        tokio::select! {
            biased;
            _ = &mut ask => panic!("a silent model replied"),
            () = tokio::task::yield_now() => {}
        }
    }
    stop.cancel();
    let error = ask.await.unwrap_err();
    assert_eq!((error.code(), error.usage().cost_nano_usd), ("llm.cancelled", max("hello")));
    assert_eq!(tenant_balance(&guards, &who).await.spent, max("hello"));
}

#[tokio::test]
async fn cheaper_model_serves_when_the_budget_is_nearly_spent() {
    let llm = ScriptedLlm::sequence([Scripted::Text("yes".into())]);
    let mut options = priced(&llm);
    options.models.push(llm.model("cheap"));
    let guards = within(&budget::Options { run_usd: Some(0.0), ..Default::default() });
    let gateway = gateway(options, guards.clone());
    let reply = gateway.complete(&caller("s", 1), &question("hello"), false, &CancellationToken::new()).await;
    assert_eq!(reply.unwrap().reply.model, "cheap");
    assert_eq!((llm.count(), guards.budget.report().await.unwrap().stats.refused), (1, 1));
}

async fn engine(llm: &ScriptedLlm, dir: &std::path::Path, budget: budget::Options) -> Engine {
    let mut config = Config::default();
    config.store.data_dir = dir.to_owned();
    config.llm = priced(llm);
    config.planning.fallback_enabled = false;
    config.budget = budget;
    Engine::builder(config).start().await.unwrap()
}

fn ask(engine: &Engine, words: &str) -> ChatRequest {
    engine.request(words, Some(SessionId::new("talk").unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_after_a_restart_equals_the_sum_of_the_journal() {
    let llm = ScriptedLlm::start(|request, nth| match crate::support::forced_tool(request) {
        Some(_) if nth == 1 => Scripted::status(500),
        Some(_) if nth == 3 => Scripted::Text("no plan at all".into()),
        Some("CreateExecutionPlan") => Scripted::forced(
            request,
            serde_json::json!({"needs_execution": false, "reasoning": "small talk", "steps": []}),
        ),
        _ => Scripted::Text("Good morning!".into()).unmetered(),
    });
    let dir = tempfile::tempdir().unwrap();
    let options = || budget::Options {
        tenant_usd: Some(10.0),
        day_usd: Some(10.0),
        session_usd: Some(10.0),
        ..Default::default()
    };
    let first = engine(&llm, dir.path(), options()).await;
    for words in ["Good morning", "How are you?", "Good night"] {
        first.chat(ask(&first, words)).await.unwrap();
    }
    let tenant = first.request("", None).tenant;
    let gateway = first.gateway();
    let budget = gateway.guards().budget.clone();
    let (ever, today) = (AccountKey::Tenant(tenant.clone()), AccountKey::Day(tenant.clone()));
    let before = (budget.balance(ever.clone()).await.unwrap(), budget.balance(today.clone()).await.unwrap());
    assert!(before.0.spent > 0 && before.0 == before.1, "{before:?}");
    let talk = SessionId::new("talk").unwrap();
    let session = AccountKey::Session(tenant.clone(), talk.clone());
    assert_eq!(budget.balance(session).await.unwrap(), before.0);
    first.stop().await.unwrap();

    let again = engine(&llm, dir.path(), options()).await;
    let gateway = again.gateway();
    let budget = gateway.guards().budget.clone();
    assert_eq!((budget.balance(ever).await.unwrap(), budget.balance(today).await.unwrap()), before);
    let sum = again.store().usage(None, None).await.unwrap()[&tenant];
    assert_eq!(sum.cost_nano_usd, before.0.spent);
    assert_eq!(again.store().session_usage(&tenant, &talk).await.unwrap(), sum);
    again.stop().await.unwrap();

    let tight = engine(&llm, dir.path(), budget::Options { day_usd: usd(before.0.spent), ..options() }).await;
    let asked = llm.count();
    let answer = tight.chat(ask(&tight, "And once more")).await.unwrap();
    assert_eq!(llm.count(), asked, "nothing was sent");
    let run = tight.run(&tenant, answer.run_id).await.unwrap();
    assert_eq!(run.error.unwrap().code, "budget.exceeded");
    tight.stop().await.unwrap();
}

#[tokio::test]
async fn cached_reply_is_free_skips_budgets_and_stays_within_its_tenant() {
    let llm = ScriptedLlm::sequence([Scripted::Text("yes".into()).metered(10, 0, 5)]);
    // What is already spent, plus one more call of this length.
    let budget = budget::Options { tenant_usd: usd(60_000 + max("hello")), ..Default::default() };
    let cache = response_cache(&cache::Options::default());
    let guards = Guards { cache: cache.clone(), ..within(&budget) };
    let gateway = gateway(priced(&llm), guards.clone());
    let never = CancellationToken::new();
    let hello = question("hello");
    let first = gateway.complete(&caller("s", 1), &hello, false, &never).await.unwrap();
    assert!(!first.cached && first.usage.calls == 1);
    first.confirm.accepted();
    let spent = tenant_balance(&guards, &caller("s", 1)).await;
    assert_eq!(spent.spent, 60_000);
    let error =
        gateway.complete(&caller("s", 1), &question("something longer"), false, &never).await.unwrap_err();
    assert_eq!(error.code(), "budget.exceeded");
    let again = gateway.complete(&caller("t", 2), &hello, false, &never).await.unwrap();
    assert_eq!((again.cached, again.usage, again.reply.text.as_str()), (true, Default::default(), "yes"));
    assert_eq!((llm.count(), tenant_balance(&guards, &caller("s", 1)).await), (1, spent));

    let stranger = Caller { tenant: TenantId::new("other").unwrap(), ..caller("s", 1) };
    assert!(!gateway.complete(&stranger, &hello, false, &never).await.unwrap().cached);
    let uncached = Caller { cache: Some(Mode::WriteOnly), ..stranger };
    assert!(!gateway.complete(&uncached, &hello, false, &never).await.unwrap().cached);
    assert_eq!((llm.count(), cache.report().await.unwrap().hits), (3, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_plan_is_cached_and_invalid_plan_is_not() {
    let llm = ScriptedLlm::start(|request, nth| match crate::support::forced_tool(request) {
        Some(_) if nth == 0 => Scripted::Text("no plan at all".into()),
        Some(_) => Scripted::forced(
            request,
            serde_json::json!({"needs_execution": false, "reasoning": "small talk", "steps": []}),
        ),
        None => Scripted::Text("Good morning!".into()),
    });
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = dir.path().to_owned();
    config.llm = priced(&llm);
    config.execution.fixed_now = Some("2026-05-04T09:00:00+02:00".parse().unwrap());
    let engine = Engine::builder(config).start().await.unwrap();
    let plans =
        || llm.requests().iter().filter(|request| crate::support::forced_tool(request).is_some()).count();
    // A new conversation each time, so that the question is the same.
    engine.chat(engine.request("Good morning", None)).await.unwrap();
    assert_eq!(plans(), 2, "the first plan was invalid");
    let second = engine.chat(engine.request("Good morning", None)).await.unwrap();
    // The first question never got a valid reply; its repair did, which is a different question.
    assert_eq!(plans(), 3);
    let third = engine.chat(engine.request("Good morning", None)).await.unwrap();
    assert_eq!(plans(), 3);
    assert_eq!((second.usage.llm_calls, third.usage.llm_calls), (2, 1), "the third plan was cached");
    engine.stop().await.unwrap();
}

#[tokio::test]
async fn tenant_limit_refuses_with_retry_after_and_model_limit_falls_through() {
    let llm = ScriptedLlm::sequence([Scripted::Text("yes".into())]);
    let once = Rates { requests_per_minute: Some(1), ..Rates::default() };
    let never = CancellationToken::new();
    let (who, hello) = (caller("s", 1), question("hello"));

    let tenants = limits::Options { max_wait_ms: 0, tenant: once.clone(), ..Default::default() };
    let mut two = llm.options();
    two.models.push(llm.model("spare"));
    let limited = gateway(two.clone(), Guards { limits: rate_limits(&tenants), ..Guards::default() });
    limited.complete(&who, &hello, false, &never).await.unwrap();
    let error = limited.complete(&who, &hello, false, &never).await.unwrap_err();
    assert_eq!((error.code(), llm.count()), ("limits.exceeded", 1));
    assert!(error.retry_after().is_some_and(|after| !after.is_zero()), "{error}");
    let other = Caller { tenant: TenantId::new("other").unwrap(), ..who.clone() };
    limited.complete(&other, &hello, false, &never).await.unwrap();

    let models =
        limits::Options { max_wait_ms: 0, models: [("scripted".into(), once)].into(), ..Default::default() };
    let limited = gateway(two, Guards { limits: rate_limits(&models), ..Guards::default() });
    let first = limited.complete(&who, &hello, false, &never).await.unwrap();
    let second = limited.complete(&who, &hello, false, &never).await.unwrap();
    assert_eq!((first.reply.model.as_str(), second.reply.model.as_str()), ("scripted", "spare"));
}

#[tokio::test]
async fn call_exceeding_a_limit_outright_is_refused_and_free() {
    let llm = ScriptedLlm::sequence([Scripted::Text("yes".into())]);
    let few = Rates { tokens_per_minute: Some(50), ..Rates::default() };
    let options = limits::Options { tenant: few, ..Default::default() };
    let guards = Guards { limits: rate_limits(&options), ..within(&Default::default()) };
    let limited = gateway(priced(&llm), guards.clone());
    let who = caller("s", 1);
    let error =
        limited.complete(&who, &question("hello"), false, &CancellationToken::new()).await.unwrap_err();
    assert_eq!((error.code(), error.retry_after(), llm.count()), ("limits.exceeded", None, 0));
    assert!(error.to_string().contains("`limits.tenant.tokens_per_minute` = 50"), "{error}");
    assert_eq!(tenant_balance(&guards, &who).await, budget::AccountBalance::default());
}

#[tokio::test]
async fn failing_models_breaker_opens_and_the_next_model_serves() {
    let out = ScriptedLlm::sequence([Scripted::status(500)]);
    let spare = ScriptedLlm::sequence([Scripted::Text("yes".into())]);
    let mut options = out.options();
    options.models.push(spare.model("spare"));
    options.max_attempts = 2;
    options.breaker = breaker::Options { failures: 3, pause_ms: 3_600_000 };
    let gateway = gateway(options, Guards::default());
    let never = CancellationToken::new();
    for _ in 0..5 {
        let done = gateway.complete(&caller("s", 1), &question("hello"), false, &never).await.unwrap();
        assert_eq!(done.reply.model, "spare");
    }
    assert_eq!((out.count(), spare.count()), (3, 5));
    let states = [("scripted".to_owned(), BreakerState::Open), ("spare".to_owned(), BreakerState::Closed)];
    assert_eq!(gateway.breakers(), states);
}

#[tokio::test]
async fn breaker_closes_when_the_model_recovers_after_the_pause() {
    let llm = ScriptedLlm::sequence([
        Scripted::status(500),
        Scripted::status(500),
        Scripted::status(500),
        Scripted::Text("yes".into()),
    ]);
    let ask = async |gateway: &Gateway| {
        let never = CancellationToken::new();
        gateway.complete(&caller("s", 1), &question("hello"), false, &never).await.map_err(|e| e.code())
    };
    let mut options = llm.options();
    options.max_attempts = 1;
    options.breaker = breaker::Options { failures: 2, pause_ms: 3_600_000 };
    let left_alone = gateway(options.clone(), Guards::default());
    for expected in ["llm.status", "llm.status", "llm.breaker_open", "llm.breaker_open"] {
        assert_eq!(ask(&left_alone).await.unwrap_err(), expected);
    }
    assert_eq!(llm.count(), 2);
    // Without a pause, each attempt reaches the model.
    options.breaker.pause_ms = 0;
    options.breaker.failures = 1;
    let tried = gateway(options, Guards::default());
    assert_eq!(ask(&tried).await.unwrap_err(), "llm.status");
    assert_eq!(tried.breakers()[0].1, BreakerState::Open);
    ask(&tried).await.unwrap();
    assert_eq!(tried.breakers()[0].1, BreakerState::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_cancelled_during_a_model_call_records_its_cost() {
    let llm = ScriptedLlm::sequence([Scripted::Silence]);
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(&llm, dir.path(), budget::Options { day_usd: Some(1.0), ..Default::default() }).await;
    let tenant = engine.request("", None).tenant;
    let ticket = engine.submit(ask(&engine, "Good morning")).await.unwrap();
    while llm.count() == 0 {
        tokio::task::yield_now().await;
    }
    let run = ticket.run;
    ticket.cancel("somebody").await;
    // Whatever the answer is, the run has ended.
    let _ = ticket.answer().await;
    let spent =
        engine.gateway().guards().budget.balance(AccountKey::Day(tenant.clone())).await.unwrap().spent;
    let cost = engine.run(&tenant, run).await.unwrap().usage.cost_nano_usd;
    assert!(spent > 0 && cost == spent, "{cost} reported, {spent} spent");
    engine.stop().await.unwrap();
}
