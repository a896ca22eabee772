//! Recorded replies of a real small model (Qwen2.5-Coder 1.5B), played back over the wire: its mistakes must
//! not become a wrong answer or an unrequested write.

use std::collections::HashMap;
use std::sync::Mutex;

use proscenium::run::RunStatus;
use proscenium::{Answer, CallOutcome, Config, Engine, config::ConfigFlags};
use serde_json::Value;

use crate::support::{Scripted, ScriptedLlm, forced_tool, section};
use proscenium::shipped;

/// Plays a recording: each question gets the next reply that was recorded for its kind.
async fn play(recording: &str) -> (Answer, ScriptedLlm) {
    let recording: Value = serde_json::from_str(recording).unwrap();
    let request = recording["request"].as_str().unwrap().to_owned();
    let mut queues: HashMap<String, Vec<Value>> = HashMap::new();
    for reply in recording["replies"].as_array().unwrap() {
        queues.entry(reply["about"].as_str().unwrap().to_owned()).or_default().push(reply.clone());
    }
    let queues = Mutex::new(queues);
    let server = ScriptedLlm::start(move |request, _| {
        let about = match forced_tool(request) {
            Some("CreateExecutionPlan") => "plan".to_owned(),
            Some("CheckContinuation") => "continuation".to_owned(),
            _ => section(request, "scene").unwrap_or_else(|| "answer".to_owned()),
        };
        let mut queues = queues.lock().unwrap();
        let queue = queues.entry(about).or_default();
        // The last recorded reply is repeated if today's code asks more often.
        let reply =
            if queue.len() > 1 { queue.remove(0) } else { queue.first().cloned().unwrap_or_default() };
        match reply["calls"].as_array().and_then(|calls| calls.first()) {
            Some(call) => Scripted::RawCall {
                name: call["name"].as_str().unwrap().to_owned(),
                arguments: call["arguments"].as_str().unwrap().to_owned(),
            },
            None => Scripted::Text(reply["text"].as_str().unwrap_or_default().to_owned()),
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().display().to_string();
    let env = [
        ("OPENAI_BASE_URL", server.base_url()),
        ("OPENAI_MODEL", "small"),
        ("PROSCENIUM__STORE__DATA_DIR", &data_dir),
        ("PROSCENIUM__SCENES__SETTINGS__WEATHER__SOURCE", "bundled"),
        ("PROSCENIUM__EXECUTION__FIXED_NOW", "2026-05-04T09:00:00+02:00"),
        ("PROSCENIUM__EXECUTION__TIME_ZONE", "Europe/Rome"),
        ("PROSCENIUM__PLANNING__FALLBACK_ENABLED", "false"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::load(None, env.into_iter(), ConfigFlags::default()).unwrap().config;
    let builder = Engine::builder(config).native_tools(shipped::tools()).builtin_scenes(&shipped::FOLDERS);
    let engine = builder.start().await.unwrap();
    let answer = engine.chat(engine.request(&request, None)).await.unwrap();
    engine.stop().await.unwrap();
    (answer, server)
}

fn tools(answer: &Answer) -> Vec<(&str, CallOutcome)> {
    let calls = answer.steps.iter().flat_map(|step| &step.tool_calls);
    calls.map(|call| (call.tool.as_str(), call.outcome)).collect()
}

#[tokio::test]
async fn simple_request_is_answered_with_the_tool_result() {
    let (answer, _) = play(include_str!("../fixtures/real/weather_simple.json")).await;
    assert_eq!(answer.status, RunStatus::Completed);
    assert_eq!(tools(&answer), [("WeatherForecast_Get", CallOutcome::Ok)]);
    assert!(answer.answer.contains("Milan") && answer.answer.contains("22"), "{}", answer.answer);
}

#[tokio::test]
async fn silent_scene_is_forced_to_read() {
    let (answer, server) = play(include_str!("../fixtures/real/silent_scene.json")).await;
    assert_eq!(answer.status, RunStatus::Completed);
    assert_eq!(tools(&answer), [("get_user_name", CallOutcome::Ok)]);
    assert!(answer.answer.contains("Alessandro Rapiti"), "{}", answer.answer);
    let requests = server.requests();
    let read = requests.iter().position(|request| forced_tool(request) == Some("get_user_name")).unwrap();
    assert_eq!(forced_tool(&requests[read + 1]), None, "the choice is released after the forced call");
}

#[tokio::test]
async fn answer_echoing_the_request_is_retried() {
    let (answer, server) = play(include_str!("../fixtures/real/weather_and_identity.json")).await;
    let request = "Il mio username è keysersoze e vorrei sapere il meteo a Milano";
    assert_ne!(answer.answer, request);
    let last = server.requests().pop().unwrap();
    assert_eq!(section(&last, "mode").as_deref(), Some("answer"), "the answer was requested once more");
}

#[tokio::test]
async fn ungrounded_weather_is_never_the_answer() {
    let (answer, _) = play(include_str!("../fixtures/real/weather_then_vacation_english.json")).await;
    // The recorded model invented 20 °C in its verdict and sunshine in its answer.
    for invented in ["20°C", "sunny"] {
        assert!(!answer.answer.contains(invented), "{}", answer.answer);
    }
    assert!(!tools(&answer).iter().any(|(tool, _)| *tool == "MakeRequest"));
}

#[tokio::test]
async fn no_person_is_invented_when_none_is_found() {
    let (answer, _) = play(include_str!("../fixtures/real/vacation_range.json")).await;
    assert!(!answer.answer.contains("John Smith"), "{}", answer.answer);
    assert!(!tools(&answer).iter().any(|(tool, _)| *tool == "MakeRequest"));
}

#[tokio::test]
async fn write_on_unmentioned_days_is_not_executed() {
    let (answer, _) = play(include_str!("../fixtures/real/wrong_month.json")).await;
    // The user wrote June; the recorded model wrote May, and would do so again.
    assert!(answer.writes.is_empty(), "{answer:#?}");
    assert_eq!(answer.status, RunStatus::NeedsInput);
    for invented in ["22 giorni", "n. 3"] {
        assert!(!answer.answer.contains(invented), "{}", answer.answer);
    }
}

#[tokio::test]
async fn echoed_answer_is_replaced_by_the_results() {
    let (answer, _) = play(include_str!("../fixtures/real/parrot.json")).await;
    assert_eq!(tools(&answer), [("WeatherForecast_Get", CallOutcome::Ok)]);
    assert!(answer.answer.contains("Milan") && answer.answer.contains("22"), "{}", answer.answer);
}

#[tokio::test]
async fn run_that_read_instead_of_writing_is_not_completed() {
    let (answer, server) = play(include_str!("../fixtures/real/balance_for_write.json")).await;
    assert!(!tools(&answer).iter().any(|(tool, _)| *tool == "MakeRequest"));
    assert_eq!(answer.status, RunStatus::Partial, "{answer:#?}");
    let check = server.requests().into_iter().find(|r| forced_tool(r) == Some("CheckContinuation")).unwrap();
    assert!(section(&check, "executed").unwrap().contains(r#""not_called":["MakeRequest"]"#));
}

#[tokio::test]
async fn write_on_days_invented_by_the_planner_is_not_executed() {
    let (answer, _) = play(include_str!("../fixtures/real/july_for_june.json")).await;
    assert!(answer.writes.is_empty(), "{answer:#?}");
    assert_eq!(answer.status, RunStatus::NeedsInput);
    assert!(answer.answer.contains("luglio"), "the question names the days: {}", answer.answer);
}
