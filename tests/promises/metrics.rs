//! Metrics equal the journal, and both stay bounded.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use proscenium::llm::limits::Rates;
use proscenium::planner::{Command, CommandAction};
use proscenium::run::{Attempt, Event, RunStatus, SessionEvent, SessionId, TenantId};
use proscenium::store::{Page, Record, RunFilter};
use proscenium::telemetry::{Exposition, LabelNames, RunMetrics, Subscriber, TenantBound};
use proscenium::{ChatRequest, Engine};
use serde_json::{Value, json};

use crate::support::exposition::{Series, read, sum};
use crate::support::planner_engine::{
    ModelRules, Town, final_verdict, has_results, more, plan, question_kind, step,
};
use crate::support::{Scripted, ScriptedLlm, eventually, section};

async fn exported(engine: &Engine) -> Series {
    read(&engine.metrics().await.unwrap())
}

/// All stored records, each stream in order.
async fn journal(engine: &Engine, tenant: &TenantId) -> Vec<Record> {
    let store = engine.store();
    let mut records = Vec::new();
    let runs = store.runs(tenant, &RunFilter::default(), &Page::default()).await.unwrap();
    for run in runs {
        records.extend(
            store
                .run_events(tenant, run.run)
                .await
                .unwrap()
                .into_iter()
                .map(|event| Record::Run(event.into())),
        );
    }
    for session in store.sessions(tenant, &Page::default()).await.unwrap() {
        let events = store.session_events(tenant, &session.session).await.unwrap();
        records.extend(events.into_iter().map(Record::Session));
    }
    records
}

/// The metrics of a subscriber that has seen only these records.
fn folded(engine: &Engine, records: &[Record]) -> Series {
    let names = LabelNames::new(&engine.catalogue(), &engine.gateway().configured());
    let names = Arc::new(names.with_tenants(TenantBound { max: 50, first: vec![] }));
    let metrics = RunMetrics::new(&names).unwrap();
    let mut subscriber = Subscriber::new(names, Some(metrics.clone()));
    let mut story = Vec::new();
    for record in records {
        subscriber.observe(record);
        let Record::Run(event) = record else { continue };
        if event.seq == 1 {
            story.clear();
        }
        story.push((**event).clone());
        // A waiting run is no longer subscribed to, and appears again when it resumes.
        if event.body == (Event::RunWaiting {}) {
            subscriber.restore(&story);
        }
    }
    assert_eq!(subscriber.tracked_runs(), 0, "every run has ended");
    read(&Exposition::of_runs(&metrics).text())
}

/// Two scenes in order, the first asked twice, the second failing; then the check asks for more.
fn eventful_rules() -> ModelRules {
    let first = plan(json!([
        step(1, "Library", &["FindBook"], json!(null)),
        step(2, "Parking", &["FreeSpaces"], json!(1)),
    ]));
    let further = plan(json!([step(3, "Canteen", &["Menu"], json!(1))]));
    let play = ModelRules::of(first.clone());
    play.plan(move |request, nth| match section(request, "request").unwrap_or_default().as_str() {
        "Hello" => Scripted::forced(request, plan(json!([]))),
        _ if nth % 5 == 1 => Scripted::Text("no plan at all".to_owned()),
        _ if section(request, "executed").is_some() => Scripted::forced(request, further.clone()),
        _ => Scripted::forced(request, first.clone()),
    })
    .scene(|request, nth| match section(request, "scene").unwrap_or_default().as_str() {
        _ if nth % 7 == 3 => Scripted::status(500),
        "Library" if !has_results(request) => crate::support::calls(
            &["FindBook", "FindBook", "Invented"].map(|name| (name, json!({"title": "Dune"}))),
        ),
        "Parking" => Scripted::status(400),
        "Canteen" if !has_results(request) => Scripted::call("Menu", json!({"day": "2026-05-05"})),
        scene => Scripted::Text(format!("{scene} is done.")).metered(20, 8, 5),
    })
    .check(|request, nth| {
        Scripted::forced(request, if nth % 3 == 0 { more("the menu") } else { final_verdict() })
    })
}

/// A town whose model has a price.
async fn town(llm: &ScriptedLlm, configure: impl FnOnce(&mut proscenium::Config)) -> Town {
    Town::open(llm, |config| {
        config.llm.models[0].input_usd_per_million = 1.0;
        config.llm.models[0].cached_input_usd_per_million = Some(0.5);
        config.llm.models[0].output_usd_per_million = 10.0;
        configure(config);
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_equal_a_fold_over_the_journal() {
    let llm = eventful_rules().start();
    // The third turn of a conversation is followed by a summary, the fourth is not: it may be answered beside that.
    let town = town(&llm, |config| {
        config.memory.keep_turns = 1;
        config.memory.max_turns_in_prompt = 3;
    })
    .await;
    let talk = |name: &str| Some(SessionId::new(name).unwrap());
    let asks = (0..13).map(|n| {
        let town = &town;
        async move {
            let words =
                if n % 4 == 0 && n < 12 { "Hello".to_owned() } else { format!("Find Dune and park, {n}") };
            let name = if n == 12 { "only a plan" } else { ["a", "b", "c"][n % 3] };
            let mut request = town.engine.request(&words, talk(&name.replace(' ', "-")));
            request.plan_only = n == 12;
            town.engine.chat(request).await.unwrap()
        }
    });
    let answers: Vec<_> = stream::iter(asks).buffer_unordered(6).collect().await;
    let tenant = town.engine.request("", None).tenant;
    let is_summary = |record: &&Record| matches!(record, Record::Session(e) if matches!(e.body, SessionEvent::Summarised { .. }));
    eventually("three summaries", async || {
        journal(&town.engine, &tenant).await.iter().filter(is_summary).count() == 3
    })
    .await;
    let live = exported(&town.engine).await;
    let records = journal(&town.engine, &tenant).await;
    let stored = folded(&town.engine, &records);
    for (key, value) in &stored {
        let shown = live.get(key).unwrap_or_else(|| panic!("{key} is missing"));
        // Sums of times are floats, added in another order.
        let same = if key.contains("_sum") { (shown - value).abs() < 1e-6 } else { shown == value };
        assert!(same, "{key}: {shown} shown, {value} in the journal");
    }
    // The counts equal what happened.
    assert_eq!(records.iter().filter(is_summary).count(), 3);
    for status in ["completed", "partial", "failed"] {
        let label = format!("outcome=\"{status}\"");
        let expected = answers.iter().filter(|a| json!(a.status) == json!(status)).count();
        let counted = sum(&live, "proscenium_requests_total", &[&label]);
        assert_eq!(counted, expected as f64, "{status}");
    }
    let count = |name: &str, labels: &[&str]| sum(&live, &format!("proscenium_{name}"), labels);
    assert_eq!(count("orchestration_overhead_seconds_count", &[]), 13.0);
    assert!(count("replans_total", &["continuation"]) > 0.0);
    assert!(count("tool_calls_total", &["skipped", "FindBook"]) > 0.0);
    assert!(count("tool_calls_total", &["refused", "scene=\"Library\"", "tool=\"other\""]) > 0.0);
    assert!(count("steps_total", &["failed", "Parking"]) > 0.0);
    assert!(count("plans_total", &["draft"]) == 1.0 && count("plans_total", &["kind=\"none\""]) > 0.0);
    assert!(count("llm_requests_total", &["outcome=\"status\"", "purpose=\"scene\""]) > 0.0);
    assert!(count("llm_requests_total", &["summary"]) > 0.0);
    // Summaries included.
    let [all, of_tenant] = ["llm_cost_usd_total", "tenant_cost_usd_total"].map(|name| count(name, &[]));
    assert!((all - of_tenant).abs() < 1e-9 && all > 0.0, "{all} and {of_tenant}");
    assert_eq!(count("tenant_requests_total", &[]), 13.0);
    assert_eq!(count("requests_by_scope_total", &["conversation"]), count("plans_total", &["kind=\"none\""]));
    assert_eq!(count("runs_in_flight", &[]), 0.0);
    town.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journal_answers_usage_report_and_metrics_agree_on_cost() {
    let llm = eventful_rules().start();
    let town = town(&llm, |_| {}).await;
    for words in ["Find Dune and park", "Hello", "Find Dune and park again", "Hello"] {
        town.ask(words).await;
    }
    let tenant = town.engine.request("", None).tenant;
    let total = town.engine.store().usage(None, None).await.unwrap()[&tenant];
    assert!(total.cost_nano_usd > 0 && total.cached_input_tokens > 0);

    let zone = jiff::tz::TimeZone::get("Pacific/Kiritimati").unwrap();
    let store = town.engine.store();
    let rows = store.usage_breakdown(&tenant, None, None, &zone).await.unwrap();
    let add = |of: fn(&proscenium::store::UsageRow) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(add(|row| row.cost_nano_usd), total.cost_nano_usd);
    assert_eq!(add(|row| row.calls), u64::from(total.calls));
    assert_eq!(add(|row| row.input_tokens), total.input_tokens);
    assert_eq!(add(|row| row.cached_input_tokens), total.cached_input_tokens);
    assert_eq!(add(|row| row.output_tokens), total.output_tokens);
    let today = jiff::Timestamp::now().to_zoned(zone.clone()).date();
    assert!(
        rows.iter().all(|row| row.model == "scripted" && (today.duration_since(row.day)).as_hours() <= 24)
    );
    let purposes: Vec<&str> = rows.iter().map(|row| row.purpose.as_str()).collect();
    assert_eq!(purposes, ["answer", "continuation", "plan", "scene"]);
    let none = store.usage_breakdown(&tenant, Some(jiff::Timestamp::MAX), None, &zone).await.unwrap();
    assert_eq!(none, []);
    let stranger = TenantId::new("stranger").unwrap();
    assert_eq!(store.usage_breakdown(&stranger, None, None, &zone).await.unwrap(), []);

    // Each conversation has one request; the first is erased.
    let session = store.sessions(&tenant, &Page::default()).await.unwrap()[0].session.clone();
    assert!(town.engine.erase(&tenant, &session).await.unwrap());
    // Its cost is still reported.
    assert_eq!(store.usage_breakdown(&tenant, None, None, &zone).await.unwrap(), rows);

    let live = exported(&town.engine).await;
    for row in &rows {
        let purpose = format!("purpose=\"{}\"", row.purpose);
        let count = |name: &str, label: &str| sum(&live, name, &[&purpose, label]);
        let dollars = count("proscenium_llm_cost_usd_total", "scripted");
        assert_eq!((dollars * 1e9).round() as u64, row.cost_nano_usd);
        let tokens = |kind: &str| count("proscenium_llm_tokens_total", &format!("type=\"{kind}\""));
        assert_eq!(tokens("input") + tokens("cached_input"), row.input_tokens as f64);
        assert_eq!(tokens("cached_input"), row.cached_input_tokens as f64);
        assert_eq!(tokens("output"), row.output_tokens as f64);
    }
    // Each question that reached the server is an attempt.
    assert_eq!(sum(&live, "proscenium_llm_requests_total", &[]), llm.count() as f64);
    let kept = sum(&live, "proscenium_llm_cache_requests_total", &["hit"]);
    assert!(kept > 0.0, "the second greeting's plan was cached");
    town.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_reply_and_retry_are_recorded_in_the_journal() {
    let llm = ModelRules::of(plan(json!([])))
        .answer(|_, nth| if nth == 0 { Scripted::status(503) } else { Scripted::Text("Hi!".into()) })
        .start();
    let town = town(&llm, |config| config.llm.backoff_ms = 0).await;
    let (first, second) = (town.ask("Hello").await, town.ask("Hello").await);
    let attempts = |events: &[Event]| -> Vec<Attempt> {
        let described = events.iter().filter_map(|event| match event {
            Event::ModelReplied { usage, attempts, .. } | Event::ModelFailed { usage, attempts, .. } => {
                assert_eq!(*usage, Attempt::sum(attempts));
                Some(attempts.clone())
            }
            _ => None,
        });
        described.flatten().collect()
    };
    let in_words = |attempts: &[Attempt]| -> Vec<String> {
        attempts.iter().map(|a| format!("{} {} {}", a.model, a.purpose, a.outcome)).collect()
    };
    let first = attempts(&first.events);
    assert_eq!(in_words(&first), ["scripted plan ok", "scripted answer status", "scripted answer ok"]);
    let second = attempts(&second.events);
    assert_eq!(in_words(&second), ["scripted plan cached", "scripted answer ok"]);
    assert_eq!(second[0].saved_nano_usd, first[0].usage.cost_nano_usd);
    assert!(second[0].saved_nano_usd > 0);
    town.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_models_tools_and_sessions_create_no_series() {
    let first = plan(json!([step(1, "Library", &["FindBook"], json!(null))]));
    // Every reply names a different model, and every scene ten tools that do not exist.
    let llm = ScriptedLlm::start(move |request, nth| {
        let made = match question_kind(request) {
            crate::support::planner_engine::QuestionKind::Scene if !has_results(request) => {
                let calls: Vec<Value> = (0..10)
                    .map(|n| {
                        json!({"id": format!("call_{n}"), "type": "function",
                            "function": {"name": format!("Invented{nth}x{n}"), "arguments": "{}"}})
                    })
                    .collect();
                json!({"role": "assistant", "content": null, "tool_calls": calls})
            }
            crate::support::planner_engine::QuestionKind::Plan => {
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_0", "type": "function",
                    "function": {"name": "CreateExecutionPlan", "arguments": first.to_string()}}]})
            }
            _ => json!({"role": "assistant", "content": "It is done."}),
        };
        let reason = if made.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
        Scripted::Json(json!({"id": format!("id-{nth}"), "object": "chat.completion", "created": 0,
            "model": format!("invented-model-{nth}"),
            "choices": [{"index": 0, "message": made, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}))
    });
    let town = town(&llm, |config| {
        config.planning.max_retries = 0;
        config.cache.max_bytes = 0;
    })
    .await;
    let ask = |n: usize| {
        let session = Some(SessionId::new(&format!("invented-session-{n}")).unwrap());
        let mut request: ChatRequest = town.engine.request("Find Dune", session);
        // A tenth of them to the end, the others up to the plan.
        request.plan_only = !n.is_multiple_of(10);
        town.engine.chat(request)
    };
    for n in 0..20 {
        ask(n).await.unwrap();
    }
    let before = exported(&town.engine).await;
    let many: Vec<_> = stream::iter(20..1_000).map(ask).buffer_unordered(16).collect().await;
    assert!(many.iter().all(Result::is_ok));
    let after = exported(&town.engine).await;
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(after.keys().all(|key| !key.to_lowercase().contains("invented")));
    let others = sum(&after, "proscenium_tool_calls_total", &["tool=\"other\"", "refused"]);
    assert_eq!((others, sum(&after, "proscenium_requests_total", &[])), (1_000.0, 1_000.0));
    assert!(llm.count() >= 1_000);
    town.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_outside_runs_are_counted() {
    let gate = crate::support::Gate::closed();
    let held = gate.clone();
    let spare = ScriptedLlm::sequence([Scripted::Text("Hi from the spare.".into())]);
    let llm = ModelRules::of(plan(json!([])))
        .answer(move |_, nth| match nth {
            0 => Scripted::Text("Hi!".into()).held(&held),
            _ => Scripted::status(400),
        })
        .start();
    let town = town(&llm, |config| {
        config.llm.models.push(spare.model("spare"));
        config.execution.max_queued_requests = 1;
        config.budget.run_usd = Some(7.5);
        let few = Rates { requests_per_minute: Some(2), ..Rates::default() };
        config.limits.models.insert("spare".to_owned(), few);
        config.limits.max_wait_ms = 0;
    })
    .await;
    let submit = || {
        let session = Some(SessionId::new("talk").unwrap());
        town.engine.submit(town.engine.request("Hello", session))
    };
    let mut first = submit().await.unwrap();
    while !matches!(first.next().await.unwrap().body, Event::ModelAsked { call: 2, .. }) {}
    let second = submit().await.unwrap();
    let refused = submit().await.err().unwrap();
    assert_eq!(refused.code, "session.queue_full");
    let now = exported(&town.engine).await;
    let count =
        |series: &Series, name: &str, labels: &[&str]| sum(series, &format!("proscenium_{name}"), labels);
    assert_eq!(count(&now, "shed_total", &["scene_manager"]), 1.0);
    assert_eq!(count(&now, "mailbox_depth", &["scene_manager"]), 1.0);
    assert_eq!(count(&now, "runs_in_flight", &["queued"]), 1.0);
    assert_eq!(count(&now, "runs_in_flight", &["running"]), 1.0);
    assert_eq!(count(&now, "sessions", &["awake"]), 1.0);
    gate.open();
    assert_eq!(first.answer().await.unwrap().status, RunStatus::Completed);
    assert_eq!(second.answer().await.unwrap().answer, "Hi from the spare.");
    submit().await.unwrap().answer().await.unwrap();
    // The spare model has reached its limit, so no model writes the answer.
    submit().await.unwrap().answer().await.unwrap();
    let then = exported(&town.engine).await;
    assert_eq!(count(&then, "provider_fallbacks_total", &["scripted"]), 3.0);
    assert_eq!(count(&then, "rate_limited_total", &["model"]), 1.0);
    assert_eq!(count(&then, "budget_limit_usd", &["run"]), 7.5);
    assert_eq!(count(&then, "provider_breaker_state", &[]), 0.0);
    assert_eq!(count(&then, "mailbox_depth", &[]), 0.0);
    assert!(count(&then, "journal_append_duration_seconds_count", &["ok"]) > 0.0);
    assert!(count(&then, "journal_batch_events_sum", &[]) > 20.0);
    assert!(count(&then, "llm_cache_entries", &[]) >= 1.0);
    town.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_metrics_equal_the_journal() {
    let llm = ModelRules::of(plan(json!([step(1, "Library", &["FindBook"], json!(null))]))).start();
    let town = town(&llm, |_| {}).await;
    let mut request = town.engine.request("Find Dune", None);
    request.options.require_approval = true;
    let tenant = request.tenant.clone();
    let answer = town.engine.chat(request).await.unwrap();
    assert_eq!(answer.status, RunStatus::Waiting);
    let count =
        |series: &Series, name: &str, labels: &[&str]| sum(series, &format!("proscenium_{name}"), labels);
    let now = exported(&town.engine).await;
    assert_eq!(count(&now, "approvals_open", &["about=\"plan\""]), 1.0);
    assert_eq!(count(&now, "runs_in_flight", &["waiting"]), 1.0);
    assert_eq!(count(&now, "runs_in_flight", &[]), 1.0);

    let by = |wish: CommandAction| Command::new("boss", wish);
    let mut changed = answer.plan.unwrap();
    changed.steps[0].purpose.push_str(" at once");
    let edit = by(CommandAction::Edit { plan: changed, version: None });
    let again = town.engine.command_and_wait(&tenant, answer.run_id, edit).await.unwrap().unwrap();
    assert_eq!(again.status, RunStatus::Waiting);
    let yes = by(CommandAction::Approve { version: Some(2), hash: None, hold: false });
    let done = town.engine.command_and_wait(&tenant, answer.run_id, yes).await.unwrap().unwrap();
    assert_eq!(done.status, RunStatus::Completed);
    let then = exported(&town.engine).await;
    assert_eq!(count(&then, "human_edits_total", &[]), 1.0);
    assert_eq!(count(&then, "human_edited_steps_sum", &["plan"]), 1.0);
    assert_eq!(count(&then, "approval_wait_seconds_count", &["action=\"yes\""]), 1.0);
    assert_eq!((count(&then, "approvals_open", &[]), count(&then, "runs_in_flight", &[])), (0.0, 0.0));
    for (key, value) in folded(&town.engine, &journal(&town.engine, &tenant).await) {
        let shown = then.get(&key).unwrap_or_else(|| panic!("{key} is missing"));
        let same = if key.contains("_sum") { (shown - value).abs() < 1e-6 } else { *shown == value };
        assert!(same, "{key}: {shown} shown, {value} in the journal");
    }
    town.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabled_metrics_change_nothing_else() {
    let llm = ModelRules::of(plan(json!([]))).start();
    let town = town(&llm, |config| config.telemetry.metrics = false).await;
    assert_eq!(town.ask("Hello").await.answer.status, RunStatus::Completed);
    assert_eq!(town.engine.metrics().await, None);
    town.engine.stop().await.unwrap();
}
