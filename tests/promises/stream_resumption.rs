//! After a power failure a client returns to the next server with the id of its last event: it gets
//! everything it missed, to the end, nothing that was retracted, and one answer.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::disk_harness::{DiskHarness, Server};
use super::support::disk::Loss;
use super::support::served_engine::{Events, Sse};
use super::support::{Gate, Scripted, StreamEnd, finish, forced_tool, words};

/// The public events of a run of the harness.
const NAMES: [&str; 9] = [
    "run_started", "planning", "plan_created", "step_started", "tool_started", "tool_completed",
    "step_completed", "continuation", "answered",
];

/// The remaining events of a stream.
async fn rest(mut events: Events) -> Vec<Sse> {
    let mut rest = Vec::new();
    while let Some(event) = events.next().await {
        rest.push(event);
    }
    rest
}

/// Everything except the text of the answer, each with its number.
fn other_events(events: &[Sse]) -> Vec<(String, String, Value)> {
    let events = events.iter().filter(|event| !event.name.starts_with("answer_"));
    let number = |event: &Sse| event.id.split('.').next().unwrap().to_owned();
    events.map(|event| (number(event), event.name.clone(), event.data.clone())).collect()
}

/// The text of the answer as the client has it.
fn text(events: &[Sse]) -> String {
    events.iter().fold(String::new(), |text, event| match event.name.as_str() {
        "answer_delta" => text + event.data["text"].as_str().unwrap(),
        "answer_reset" => String::new(),
        _ => text,
    })
}

/// Reads up to the first event of this name.
async fn read_until_event(events: &mut Events, name: &str) -> Vec<Sse> {
    let mut seen = Vec::new();
    loop {
        let event = events.next().await.unwrap_or_else(|| panic!("no {name} in {seen:#?}"));
        let is_it = event.name == name;
        seen.push(event);
        if is_it {
            return seen;
        }
    }
}

/// Asserts that the published events equal the run's final history.
async fn assert_whole(server: &Server, run: &str, published: &[Sse]) {
    let whole = rest(server.events(run, "0").await).await;
    assert_eq!(other_events(published), other_events(&whole));
    assert_eq!(text(published), text(&whole));
    let last = whole.last().unwrap();
    assert!(["run_completed", "run_failed", "run_waiting"].contains(&last.name.as_str()), "{last:?}");
}

#[tokio::test]
async fn published_events_are_neither_lost_nor_repeated_after_power_loss() {
    for name in NAMES {
        let harness = DiskHarness::open();
        let server = harness.start();
        let (run, mut events) = server.ask_streamed("b1", "s1").await.unwrap();
        let mut published = read_until_event(&mut events, name).await;
        server.kill();
        harness.disk.fail(Loss::Everything, &mut ChaCha8Rng::seed_from_u64(1));
        let server = harness.start();
        server.settled_runs().await;
        published.extend(rest(server.events(&run, &published.last().unwrap().id).await).await);
        assert_whole(&server, &run, &published).await;
        server.kill();
    }
}

/// A model that plans nothing and answers in two parts, the second once a gate is open.
fn answers(request: &Value, first: &str, second: &str, gate: &Gate) -> Scripted {
    if forced_tool(request) == Some("CreateExecutionPlan") {
        let plan = json!({"needs_execution": false, "reasoning": "Talk.", "steps": []});
        return Scripted::forced(request, plan);
    }
    let rest = Scripted::Stream(vec![words(second), finish("stop")], StreamEnd::Done);
    Scripted::Paused(vec![words(first)], gate.clone(), Box::new(rest))
}

#[tokio::test]
async fn answer_is_not_continued_with_another_processs_words() {
    let (never, later) = (Gate::closed(), Gate::closed());
    let gates = (never.clone(), later.clone());
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let harness = DiskHarness::with_model(move |request, _| {
        if forced_tool(request).is_some() {
            return answers(request, "", "", &gates.0);
        }
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => answers(request, "One thing", " is so.", &gates.0),
            _ => answers(request, "Quite another thing is", " the case.", &gates.1),
        }
    });
    let server = harness.start();
    let (run, mut events) = server.ask_streamed("b1", "s1").await.unwrap();
    let mut published = read_until_event(&mut events, "answer_delta").await;
    assert_eq!(text(&published), "One thing");
    server.kill();
    let server = harness.start();
    // More was written by then than was published before.
    let mut beside = server.events(&run, "0").await;
    read_until_event(&mut beside, "answer_delta").await;
    let mut back = server.events(&run, &published.last().unwrap().id).await;
    published.extend(read_until_event(&mut back, "answer_delta").await);
    assert_eq!(text(&published), "Quite another thing is");
    // Within one process it continues where it was.
    let mut again = server.events(&run, &published.last().unwrap().id).await;
    later.open();
    let further = read_until_event(&mut again, "answered").await;
    assert!(further.iter().all(|event| event.name != "answer_reset"), "{further:#?}");
    published.extend(further);
    published.extend(rest(again).await);
    // The request asks for a write, and none was planned.
    assert_eq!(text(&published), "Quite another thing is the case.\nNothing was changed.");
    assert_whole(&server, &run, &published).await;
    server.kill();
    never.open();
}
