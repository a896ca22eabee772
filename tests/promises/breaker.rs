//! A back end that hangs: the fifth request in a row does not wait for it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proscenium::access::Role;
use proscenium::run::Event;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fault_matrix::{TIMEOUT_MS, model, write_scene};
use crate::server_api::ask;
use crate::support::exposition::{read, sum};
use crate::support::{
    FaultyBackend, FinishedRun, Misbehaviour, ScriptedLlm, ServedEngine, Setup, TestEngine, eventually,
};

/// Hangs until it is repaired.
struct Hanging {
    backend: FaultyBackend,
    repaired: Arc<AtomicBool>,
    llm: ScriptedLlm,
    scenes: TempDir,
}

impl Hanging {
    fn start(more: &str) -> Self {
        let repaired = Arc::<AtomicBool>::default();
        let works = repaired.clone();
        let backend = FaultyBackend::start(move |_, _| match works.load(Ordering::SeqCst) {
            true => Misbehaviour::Answer,
            false => Misbehaviour::Silence(Duration::from_millis(TIMEOUT_MS * 10)),
        });
        let scenes = TempDir::new().unwrap();
        write_scene(scenes.path(), backend.address(), more);
        Self { backend, repaired, llm: model(), scenes }
    }

    fn setup(&self) -> Setup {
        let scenes: &Path = self.scenes.path();
        let setup = Setup::scripted(&self.llm).alone().scenes(scenes).set("execution.language", "en");
        setup.set("scenes.allow_private_addresses", true).set("execution.confirm", "never")
    }

    fn wire(&self, place: &str) -> usize {
        self.backend.requests(place).len()
    }

    fn repair(&self) {
        self.repaired.store(true, Ordering::SeqCst);
    }
}

/// Every failure is final.
const FAIL: &str = "policies = { timeout = { do = [\"fail\"] } }";

fn code(run: &FinishedRun) -> String {
    let error = run.answer.steps[0].tool_calls[0].error.as_ref();
    error.map(|error| error.code.clone()).unwrap_or_default()
}

fn forecasts(run: &FinishedRun) -> usize {
    run.events.iter().filter(|event| matches!(event.body, Event::Forecast { .. })).count()
}

async fn ask_four_times(test: &TestEngine) {
    for n in 0..4 {
        let run = test.chat(&format!("first-{n}"), "Look cell x").await;
        // The exchange's deadline is a little before that of the call; on a busy machine both may have passed.
        assert!(["http.timeout", "tool.timeout"].contains(&code(&run).as_str()), "{n}: {}", code(&run));
    }
}

fn state(metrics: &str, tool: &str) -> f64 {
    sum(&read(metrics), "proscenium_tool_breaker_state", &["Desk", tool])
}

#[tokio::test]
async fn fifth_request_in_a_row_does_not_wait_and_a_read_finds_out_when_it_works_again() {
    let hanging = Hanging::start(FAIL);
    let setup = hanging.setup().set("execution.level", "basic").set("execution.breaker.pause_ms", 6_000);
    let test = setup.start().await;
    ask_four_times(&test).await;
    let run = test.chat("fifth", "Look cell x").await;
    assert_eq!((code(&run).as_str(), forecasts(&run)), ("tool.breaker_open", 1));
    assert_eq!(hanging.wire("GET /Look/x"), 4);
    assert!(run.answer.answer.contains("not available now"), "{}", run.answer.answer);
    let metrics = test.engine.metrics().await.unwrap();
    assert_eq!(state(&metrics, "Look"), 2.0);
    // Another tool of the scene is called.
    let booked = test.chat("write", "Book cell x").await;
    assert_eq!((hanging.wire("POST /Book/x"), forecasts(&booked)), (1, 0));
    hanging.repair();
    eventually("a read tests it", async || {
        let run = test.chat("again", "Look cell y").await;
        code(&run).is_empty()
    })
    .await;
    assert_eq!(hanging.wire("GET /Look/y"), 1);
    let run = test.chat("works", "Look cell y").await;
    assert_eq!((code(&run).as_str(), forecasts(&run)), ("", 0));
}

#[tokio::test]
async fn retries_end_when_the_breaker_opens_and_what_is_declared_follows() {
    let hanging = Hanging::start(
        "optional = true\npolicies = { timeout = { do = [\"retry\"], attempts = 3 }, \
                                  unavailable = { do = [\"retry\", \"skip\"] } }",
    );
    let setup = hanging.setup().set("execution.level", "basic").set("execution.policies.backoff_ms", 0);
    let test = setup.start().await;
    test.chat("first", "Look cell x").await;
    let run = test.chat("second", "Look cell x").await;
    // Three attempts, then one, then the skip.
    assert_eq!((hanging.wire("GET /Look/x"), code(&run).as_str()), (4, "tool.breaker_open"));
    assert!(run.answer.steps[0].tool_calls[0].left_out, "{:#?}", run.answer.steps);
}

#[tokio::test]
async fn breakers_are_those_of_a_tenant_and_of_runs_with_a_level_or_a_mode() {
    let hanging = Hanging::start(FAIL);
    let served = ServedEngine::start(hanging.setup()).await;
    let key = async |tenant: &str| served.key(tenant, "ada", Role::Admin).await;
    let keys = [key("acme").await, key("rival").await];
    served.wait_for_keys().await;
    let send = async |key: &str, level: Option<&str>| -> Value {
        let mut body = ask("Look cell x");
        body["level"] = json!(level);
        served.send(key, "POST", "/api/chat", &body).await.json()
    };
    for _ in 0..4 {
        send(&keys[0], Some("basic")).await;
    }
    let refused = send(&keys[0], Some("basic")).await;
    assert!(refused.to_string().contains("tool.breaker_open"), "{refused:#}");
    assert_eq!(hanging.wire("GET /Look/x"), 4);
    let other = send(&keys[1], Some("basic")).await;
    assert!(!other.to_string().contains("tool.breaker_open"), "{other:#}");
    assert_eq!(hanging.wire("GET /Look/x"), 5);
    send(&keys[0], None).await;
    assert_eq!(hanging.wire("GET /Look/x"), 6);
    let run = refused["run_id"].as_str().or(refused["document"]["run_id"].as_str()).unwrap().to_owned();
    let path = format!("/api/runs/{run}/events");
    let events = served.send(&keys[0], "GET", &path, &Value::Null).await;
    let names: Vec<String> = events.events().into_iter().map(|event| event.name).collect();
    let at = |name: &str| names.iter().position(|known| known == name).unwrap();
    assert!(at("forecast") < at("step_started"), "{names:?}");
}

#[tokio::test]
async fn open_breaker_is_known_after_a_restart() {
    let hanging = Hanging::start(FAIL);
    let setup = || hanging.setup().set("execution.level", "basic").set("execution.breaker.pause_ms", 60_000);
    let test = setup().start().await;
    ask_four_times(&test).await;
    let dir = test.stop().await;
    let test = setup().on(&dir).start().await;
    eventually("the journal was read", async || state(&test.engine.metrics().await.unwrap(), "Look") == 2.0)
        .await;
    assert_eq!(code(&test.chat("later", "Look cell x").await), "tool.breaker_open");
    assert_eq!(hanging.wire("GET /Look/x"), 4);
}

#[tokio::test]
async fn tool_that_hangs_is_avoided_by_its_alternative() {
    let backend = FaultyBackend::start(|place, _| match place.contains("Elsewhere") {
        true => Misbehaviour::Answer,
        false => Misbehaviour::Silence(Duration::from_millis(TIMEOUT_MS * 10)),
    });
    let (llm, scenes) = (model(), TempDir::new().unwrap());
    // Declared for timeouts only.
    let more = "alternative = { tool = \"{tool}Elsewhere\", arguments = { cell = \"/arguments/cell\" } }\n\
                policies = { timeout = { do = [\"alternative\"] } }";
    write_scene(scenes.path(), backend.address(), more);
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.level", "basic");
    let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
    let served = ServedEngine::start(setup).await;
    let mut last = Value::Null;
    for _ in 0..5 {
        last = served.post("/api/chat", &ask("Look cell x")).await.json();
        assert_eq!(last["status"], "completed", "{last:#}");
    }
    let wire = |place: &str| backend.requests(place).len();
    assert_eq!((wire("GET /Look/x"), wire("GET /LookElsewhere/x")), (4, 5));
    let path = format!("/api/runs/{}/explain", last["run_id"].as_str().unwrap());
    let explained = served.get(&path).await.json();
    let entries = explained["unexpected"].as_array().unwrap();
    let view = |entry: &Value| json!([entry["about"], entry["code"], entry["chosen"], entry["then"]]);
    let expected = [
        json!(["forecast", "tool.breaker_open", null, "told"]),
        json!(["call", "tool.breaker_open", "alternative", "replaced"]),
    ];
    assert_eq!(entries.iter().map(view).collect::<Vec<_>>(), expected, "{explained:#}");
    assert_eq!(entries[1]["replaced_by"], "LookElsewhere");
}
