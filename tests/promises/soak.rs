//! Many requests of two to five steps against a back end of which a fifth of the calls fail, by a seeded schedule. Prints
//! what becomes of them without adaptation, at the level `basic` with declared policies, in mode `strict`, at the levels `adaptive`
//! and `intelligent` (mode `creative`); and keeps a book of all writes, also over `kill -9`.
//!
//! `SOAK=1000 cargo nextest run --no-capture soak::` prints the figures; a test runs few requests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use proscenium::adapt::ConsultationOutcome;
use proscenium::run::{Event, Outcome, RunStatus, SessionId};
use serde_json::{Value, json};

use super::fault_matrix::{TIMEOUT_MS, TOOLS, World, misbehaviour, serve, write_scene};
use super::process::Workspace;
use crate::support::planner_engine::{ModelRules, has_results, plan, step};
use crate::support::{FaultyBackend, FinishedRun, Misbehaviour, Scripted, ScriptedLlm, section, size};

/// Out of 100 failing calls: the class of the failure. Stated with the figures.
const SHARES: [(&str, u64); 6] = [
    ("timeout", 30),
    ("unavailable", 30),
    ("rate_limit", 20),
    ("bad_data", 10),
    ("not_found", 5),
    ("denied", 5),
];

/// Out of 100 calls: how many fail; and of those, how many twice in a row, and for good.
const FAILING: u64 = 20;
const TWICE: u64 = 30;
const FOR_GOOD: u64 = 10;

/// Requests at once.
const AT_ONCE: usize = 12;

/// What the tools declare. Reads have an alternative, which a fifth of the time fails, too.
const POLICIES: &str = r#"alternative = { tool = "{tool}Elsewhere", arguments = { cell = "/arguments/cell" } }
{read}policies = { rate_limit = { do = ["retry", "alternative"] }, timeout = { do = ["retry", "alternative"] }, unavailable = { do = ["retry", "alternative"] }, bad_data = { do = ["alternative"] }, not_found = { do = ["alternative"] }, denied = { do = ["alternative"] } }
{write}policies = { rate_limit = { do = ["retry"] }, timeout = { do = ["retry"] }, unavailable = { do = ["retry"] } }"#;

/// A number that depends on the seed alone.
fn draw(seed: &str, sides: u64) -> u64 {
    let hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 32)) % sides
}

/// What fails at a place, such as `Look/r1s1`: the class, and how often in a row.
fn fault(place: &str) -> Option<(&'static str, usize)> {
    if draw(&format!("fails {place}"), 100) >= FAILING {
        return None;
    }
    let mut share = draw(&format!("class {place}"), 100);
    let class = SHARES.iter().find(|(_, of)| share.checked_sub(*of).map(|left| share = left).is_none());
    let times = match draw(&format!("times {place}"), 100) {
        n if n < FOR_GOOD => usize::MAX,
        n if n < FOR_GOOD + TWICE => 2,
        _ => 1,
    };
    Some((class.unwrap().0, times))
}

fn script(place: &str, nth: usize) -> Misbehaviour {
    let place = place.split_once('/').unwrap().1;
    match fault(place) {
        Some((class, times)) if nth < times => misbehaviour(&format!("/{class}"), 0),
        _ => Misbehaviour::Answer,
    }
}

/// The calls of a request: two to five, each a step.
fn calls(request: usize) -> Vec<(&'static str, String)> {
    let count = 2 + draw(&format!("steps {request}"), 4);
    let tool = |step: u64| match draw(&format!("tool {request} {step}"), 100) {
        0..60 => TOOLS[0],
        60..75 => TOOLS[1],
        _ => TOOLS[2],
    };
    (1..=count).map(|step| (tool(step), format!("r{request}s{step}"))).collect()
}

fn words(request: usize) -> String {
    let calls: Vec<String> =
        calls(request).iter().map(|(tool, cell)| format!("{tool} cell {cell}")).collect();
    format!("{}.", calls.join(", "))
}

/// A model that plans the calls which a request names.
fn model() -> ScriptedLlm {
    let named = |request: &Value, about: &str| -> Vec<(String, String)> {
        let text = section(request, about).unwrap_or_default();
        let words: Vec<&str> = text.split([' ', ',', '.', '\n']).filter(|word| !word.is_empty()).collect();
        let calls = words.windows(3).filter(|words| words[1] == "cell" && TOOLS.contains(&words[0]));
        calls.map(|words| (words[0].to_owned(), words[2].to_owned())).collect()
    };
    ModelRules::of(Value::Null)
        .plan(move |request, _| {
            let steps: Vec<Value> = (1..)
                .zip(named(request, "request"))
                .map(|(number, (tool, cell))| {
                    let mut step = step(number, "Desk", &[&tool], Value::Null);
                    step["purpose"] = json!(format!("{tool} cell {cell}"));
                    let arguments = json!({ "cell": cell }).to_string();
                    step["prepared_calls"] = json!([{"tool": tool, "arguments": arguments}]);
                    step["if_needed"] = json!([]);
                    step
                })
                .collect();
            Scripted::forced(request, plan(json!(steps)))
        })
        .scene(move |request, _| match named(request, "purpose").pop() {
            Some((tool, cell)) if !has_results(request) => Scripted::call(&tool, json!({ "cell": cell })),
            _ => Scripted::Text("That is what came of it.".to_owned()),
        })
        .start()
}

/// Whether the schedule leaves a way to the result of a call: another attempt, or for a read the alternative. Worked out
/// from the schedule alone.
fn is_completable(tool: &str, cell: &str) -> bool {
    let passes = |place: &str| match fault(place) {
        None => true,
        Some((class, times)) => ["timeout", "unavailable", "rate_limit"].contains(&class) && times <= 2,
    };
    match tool {
        "Look" => passes(&format!("Look/{cell}")) || passes(&format!("LookElsewhere/{cell}")),
        // It may have been done: a person says so, which is a right end.
        "Book" => passes(&format!("Book/{cell}")) && !is_put_to_a_person(tool, cell),
        _ => passes(&format!("{tool}/{cell}")),
    }
}

fn is_put_to_a_person(tool: &str, cell: &str) -> bool {
    let class = fault(&format!("{tool}/{cell}")).map(|(class, _)| class);
    tool == "Book" && matches!(class, Some("timeout" | "unavailable"))
}

/// What became of the requests in one way of running.
#[derive(Default)]
struct Tally {
    statuses: BTreeMap<&'static str, usize>,
    completable: usize,
    completed: usize,
    retries: usize,
    substitutes: usize,
    consultations: usize,
    shared: usize,
    model_calls: usize,
    cost_usd: f64,
    took: Vec<Duration>,
}

impl Tally {
    fn add(&mut self, request: usize, run: &FinishedRun, took: Duration, backend: &FaultyBackend) {
        *self.statuses.entry(run.answer.status.into()).or_default() += 1;
        let is_completed = run.answer.status == RunStatus::Completed;
        if calls(request).iter().all(|(tool, cell)| is_completable(tool, cell)) {
            self.completable += 1;
            self.completed += usize::from(is_completed);
        }
        // One that was never sent, since the breaker of its tool is open, was certainly not done.
        let is_doubtful = |(tool, cell): &(&str, String)| {
            let sent = backend.requests(&format!("POST /{tool}/{cell}")).len();
            *tool == "Book" && (0..sent).any(|nth| may_be_done(tool, cell, nth) == Some(true))
        };
        let asked = calls(request).iter().any(is_doubtful);
        assert!(!asked || !run.answer.approvals.is_empty(), "{}: {:#?}", words(request), run.answer);
        let count =
            |counts: fn(&Event) -> bool| run.events.iter().filter(|event| counts(&event.body)).count();
        self.retries += count(|event| matches!(event, Event::ToolStarted { attempt: 2.., .. }));
        self.substitutes += count(|event| matches!(event, Event::Adapted { .. }));
        self.consultations += count(|event| matches!(event, Event::Consultation { .. }));
        let cached = ConsultationOutcome::Cached;
        self.shared += run
            .events
            .iter()
            .filter(|event| matches!(event.body, Event::Consultation { how, .. } if how == cached))
            .count();
        self.model_calls += run.answer.usage.llm_calls as usize;
        self.cost_usd += run.answer.usage.cost_usd;
        self.took.push(took);
        let unknown = run.state.calls.values().filter(|call| {
            matches!(call.status, proscenium::run::CallStatus::Done { outcome: Outcome::Unknown { .. } })
        });
        assert_eq!(unknown.count(), run.answer.approvals.len(), "each unknown write is put to a person");
    }

    fn rate(&self) -> f64 {
        self.completed as f64 / self.completable.max(1) as f64
    }

    fn row(&mut self, name: &str) -> String {
        self.took.sort();
        let at = |part: usize| self.took[(self.took.len() - 1) * part / 100].as_millis();
        let of = |status: &str| self.statuses.get(status).copied().unwrap_or(0);
        format!(
            "| {name:<8} | {:>9} | {:>7} | {:>6} | {:>4}/{:<4} = {:>5.1} % | {:>7} | {:>11} | {:>13} | {:>6} | {:>11} | {:>8.4} | {:>5} | {:>6} |",
            of("completed"),
            of("partial"),
            of("failed"),
            self.completed,
            self.completable,
            self.rate() * 100.0,
            self.retries,
            self.substitutes,
            self.consultations,
            self.shared,
            self.model_calls,
            self.cost_usd,
            at(50),
            at(95),
        )
    }
}

/// Whether a write of a request may have been done by a back end that answered like this; `None` if it certainly was.
fn may_be_done(tool: &str, cell: &str, nth: usize) -> Option<bool> {
    match fault(&format!("{tool}/{cell}")) {
        Some((class, times)) if nth < times => Some(matches!(class, "timeout" | "unavailable")),
        _ => None,
    }
}

/// No write is done twice, or done again where it may have been, unless its key makes that safe; and none without a yes.
fn check_book(backend: &FaultyBackend, requests: usize) {
    for (tool, cell) in (0..requests).flat_map(calls).filter(|(tool, _)| *tool != "Look") {
        let sent = backend.requests(&format!("POST /{tool}/{cell}"));
        let elsewhere = backend.requests(&format!("POST /{tool}Elsewhere/{cell}"));
        assert_eq!(elsewhere.len(), 0, "{tool} {cell} was written elsewhere, and nobody said yes");
        let keys: Vec<_> = sent.iter().map(|request| request.key.clone()).collect();
        let is_keyed = tool == "Pay";
        assert!(keys.iter().all(|key| key.is_some() == is_keyed), "{tool} {cell}: {keys:?}");
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{tool} {cell}: {keys:?}");
        let again =
            (0..sent.len().saturating_sub(1)).filter(|nth| may_be_done(tool, &cell, *nth) != Some(false));
        assert!(is_keyed || again.count() == 0, "{tool} {cell} was done twice: {sent:#?}");
    }
}

async fn soak(level: Option<&str>, mode: Option<&str>, requests: usize) -> Tally {
    // Writes that the request does not name would be asked. Faults are independent of each other here, so a breaker opens by
    // chance, and the usual pause would be as long as hundreds of these requests.
    let set = |setup: crate::support::Setup| {
        let setup = setup.set("execution.policies.backoff_ms", 10).set("execution.confirm", "unclear");
        let setup = setup.set("execution.breaker.pause_ms", 250);
        setup.model("input_usd_per_million", "1").model("output_usd_per_million", "4")
    };
    let world = World::of_model(model(), level, mode, POLICIES, (script, set)).await;
    let ask = async |request: usize| {
        let began = Instant::now();
        let session = SessionId::new(&format!("s-{request}")).unwrap();
        let asked = world.test.engine.request(&words(request), Some(session));
        let run = world.test.finish(world.test.engine.submit(asked).await.unwrap()).await;
        (request, run, began.elapsed())
    };
    let runs: Vec<_> = futures::stream::iter(0..requests).map(ask).buffer_unordered(AT_ONCE).collect().await;
    let mut tally = Tally::default();
    for (request, run, took) in &runs {
        tally.add(*request, run, *took, &world.backend);
    }
    assert_eq!(tally.statuses.values().sum::<usize>(), requests, "every run ends");
    check_book(&world.backend, requests);
    tally
}

#[tokio::test]
async fn soak_without_adaptation_at_basic_in_mode_strict_and_at_adaptive() {
    let requests = size(60);
    println!(
        "\n{requests} requests of two to five steps; {FAILING} % of the calls fail ({SHARES:?}), of these {TWICE} % twice in \
         a row and {FOR_GOOD} % for good; a call has {TIMEOUT_MS} ms.\n\
         | level    | completed | partial | failed | of completable      | retries | substitutes | consultations | shared | model calls | cost USD | p50 ms | p95 ms |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    let rows = [
        ("none", None, None),
        ("basic", Some("basic"), None),
        ("strict", Some("basic"), Some("strict")),
        // The consulted model takes the first option.
        ("adaptive", Some("adaptive"), None),
        // It changes nothing of a plan either.
        ("creative", Some("intelligent"), Some("creative")),
    ];
    let mut rates = BTreeMap::new();
    for (name, level, mode) in rows {
        let mut tally = soak(level, mode, requests).await;
        println!("{}", tally.row(name));
        rates.insert(name, tally.rate());
    }
    assert!(rates["none"] <= 0.7, "{rates:?}");
    assert!(rates["basic"] >= 0.9, "{rates:?}");
    assert!(rates["adaptive"] >= 0.97, "{rates:?}");
    assert!(rates["creative"] >= 0.97, "{rates:?}");
}

/// The statuses of all runs, by run.
async fn statuses(client: &reqwest::Client, address: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut after = String::new();
    loop {
        let url = format!("{address}/api/runs?limit=100{after}");
        let Ok(reply) = client.get(url).send().await else { return found };
        let list: Value = reply.json().await.unwrap();
        let runs = list["runs"].as_array().unwrap();
        for run in runs {
            let text = |key: &str| run[key].as_str().unwrap().to_owned();
            found.insert(text("run_id"), text("status"));
        }
        match runs.last().filter(|_| runs.len() == 100) {
            Some(last) => after = format!("&after={}", last["run_id"].as_str().unwrap()),
            None => return found,
        }
    }
}

#[tokio::test]
async fn soak_over_kill_9_writes_nothing_twice_and_ends_every_run() {
    let (requests, between) = (size(40), size(40).min(50));
    let (llm, backend, workspace) = (model(), FaultyBackend::start(script), Workspace::bare());
    write_scene(&workspace.path().join("scenes"), backend.address(), POLICIES);
    workspace.write_house(
        &llm,
        "[planning]\nfallback_enabled = false\n\
         [execution]\nlevel = \"basic\"\nconfirm = \"never\"\n\
         [execution.policies]\nbackoff_ms = 10\n",
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (mut server, mut address) = serve(&workspace, &[]);
    let mut known = BTreeMap::new();
    for first in (0..requests).step_by(between) {
        let batch = first..(first + between).min(requests);
        let send = |request: usize| {
            let body = json!({"messages": [{"role": "user", "content": words(request)}], "session_id": format!("s-{request}")});
            let post =
                client.post(format!("{address}/api/chat")).header("Idempotency-Key", format!("k-{request}"));
            post.json(&body).send()
        };
        // Killed when half of the batch was answered.
        let mut answers = futures::stream::iter(batch.clone().map(send)).buffer_unordered(AT_ONCE);
        for _ in 0..batch.len() / 2 {
            answers.next().await.unwrap().unwrap();
        }
        server.kill();
        drop(answers);
        (server, address) = serve(&workspace, &[]);
        let send = |request: usize| {
            let body = json!({"messages": [{"role": "user", "content": words(request)}], "session_id": format!("s-{request}")});
            let post =
                client.post(format!("{address}/api/chat")).header("Idempotency-Key", format!("k-{request}"));
            post.json(&body).send()
        };
        // A retry under the same key belongs to the same run.
        futures::stream::iter(batch.map(send)).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
        crate::support::eventually("every run ends", async || {
            known = statuses(&client, &address).await;
            !known.is_empty() && !known.values().any(|status| matches!(status.as_str(), "queued" | "running"))
        })
        .await;
    }
    assert_eq!(known.len(), requests, "each request is one run");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for status in known.values() {
        *counts.entry(status).or_default() += 1;
    }
    println!("\nover kill -9 every {between} requests, at basic: {counts:?}");
    check_book(&backend, requests);
}
