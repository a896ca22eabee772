//! Runs of every kind, recorded with the real engine: the source of the files in `tests/replays`.

use proscenium::ChatRequest;
use proscenium::planner::{ApproverChoice, Command, CommandAction};
use proscenium::run::{Envelope, Event, RequestOptions, RunStatus, SessionId};
use proscenium::scene::Catalogue;

use serde_json::json;

use super::depot::Depot;
use super::model_script::ModelScript;
use super::workshop::Workshop;
use super::{ScriptedLlm, Setup, TestEngine, embeddings};
use crate::process::MAIN;
use crate::{flows, inventory};

/// The events of one run.
pub type Events = Vec<Envelope<Event>>;

/// Which scenes a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenes {
    Shipped,
    Workshop,
    Depot,
    /// Those of `tests/promises/flows.rs`.
    Flows,
    /// `scenes/inventory`, whose tables a program changes.
    Shop,
}

/// A kind of run: the name of its file, and what it must contain.
pub struct Kind {
    pub name: &'static str,
    pub scenes: Scenes,
    pub status: RunStatus,
    /// Names of events.
    pub has: &'static [&'static str],
}

const fn kind(name: &'static str, scenes: Scenes, status: RunStatus, has: &'static [&'static str]) -> Kind {
    Kind { name, scenes, status, has }
}

/// All kinds.
pub const KINDS: [Kind; 30] = [
    kind("main", Scenes::Shipped, RunStatus::Completed, &["tool_completed", "continuation"]),
    kind("weather-and-identity", Scenes::Shipped, RunStatus::Completed, &["tool_completed"]),
    kind("needs-input", Scenes::Shipped, RunStatus::NeedsInput, &["step_failed"]),
    kind("needs-input-continued", Scenes::Shipped, RunStatus::Completed, &["tool_completed"]),
    kind("duplicates", Scenes::Shipped, RunStatus::Completed, &["tool_skipped"]),
    kind("replan", Scenes::Workshop, RunStatus::Completed, &["replanned", "continuation"]),
    kind("repairs", Scenes::Workshop, RunStatus::Completed, &["reply_rejected", "plan_created"]),
    kind("fallback", Scenes::Workshop, RunStatus::Completed, &["model_failed", "plan_created"]),
    kind("tried-again", Scenes::Workshop, RunStatus::Completed, &["tool_completed"]),
    kind("failed", Scenes::Workshop, RunStatus::Failed, &["step_failed"]),
    kind("unknown-write", Scenes::Workshop, RunStatus::Partial, &["tool_completed"]),
    kind("unjudged", Scenes::Workshop, RunStatus::Completed, &["reply_rejected", "continuation"]),
    kind("no-scene", Scenes::Workshop, RunStatus::Completed, &["answered"]),
    kind("cancelled", Scenes::Workshop, RunStatus::Cancelled, &["cancel_requested", "run_cancelled"]),
    kind("resumed-question", Scenes::Workshop, RunStatus::Completed, &["run_resumed"]),
    kind("resumed-read", Scenes::Workshop, RunStatus::Completed, &["run_resumed"]),
    kind("resumed-write", Scenes::Workshop, RunStatus::Partial, &["run_resumed"]),
    kind("approved", Scenes::Shipped, RunStatus::Completed, &["approval_required", "run_waiting", "decided"]),
    kind("changed", Scenes::Shipped, RunStatus::Completed, &["modification_asked", "replanned", "decided"]),
    kind("edited-write", Scenes::Shipped, RunStatus::Completed, &["approval_required", "decided"]),
    kind("undone", Scenes::Shipped, RunStatus::Partial, &["compensating"]),
    kind("dry-run", Scenes::Shipped, RunStatus::Completed, &["tool_completed"]),
    kind("ranked", Scenes::Shipped, RunStatus::Completed, &["scenes_ranked", "plan_created"]),
    kind(
        "decided-by-a-model",
        Scenes::Depot,
        RunStatus::Completed,
        &["unexpected", "consultation", "adapted"],
    ),
    kind("decided-by-vote", Scenes::Depot, RunStatus::Completed, &["voted", "consultation", "adapted"]),
    kind("interpreted", Scenes::Depot, RunStatus::Completed, &["unexpected", "consultation", "adapted"]),
    kind("given-up-by-a-model", Scenes::Depot, RunStatus::Failed, &["unexpected", "consultation"]),
    kind("patched", Scenes::Depot, RunStatus::Completed, &["consultation", "replanned"]),
    kind(
        "flow",
        Scenes::Flows,
        RunStatus::Completed,
        &["flow_planned", "node_started", "node_replied", "decided"],
    ),
    kind(
        "program-that-commits",
        Scenes::Shop,
        RunStatus::Completed,
        &["program_written", "program_replied", "approval_required", "decided", "tool_completed"],
    ),
];

/// The shipped scenes over which the runs were recorded; others were added since.
const RECORDED: [&str; 3] = ["Identity", "VacationManagement", "Weather"];

fn as_recorded(catalogue: &Catalogue) -> std::sync::Arc<Catalogue> {
    let scenes = catalogue.iter().filter(|scene| RECORDED.contains(&scene.name.as_str()));
    std::sync::Arc::new(Catalogue::new(scenes.map(|scene| scene.as_ref().clone())))
}

/// The current scenes.
pub async fn catalogues() -> [(Scenes, std::sync::Arc<Catalogue>); 5] {
    let shipped = Setup::offline().start().await;
    let workshop = Workshop::new().setup().start().await;
    let depot = Depot::new().setup("adaptive", 1).start().await;
    let (shop, _llm) = inventory::recorded_shop().await;
    [
        (Scenes::Shipped, as_recorded(&shipped.engine.catalogue())),
        (Scenes::Workshop, workshop.engine.catalogue()),
        (Scenes::Depot, depot.engine.catalogue()),
        (Scenes::Flows, flows::catalogue().await),
        (Scenes::Shop, shop.engine.catalogue()),
    ]
}

/// A run of each kind, by the kind's name.
pub async fn record() -> Vec<(&'static str, Events)> {
    let test = Setup::offline().start().await;
    let mut runs = vec![
        ("main", test.chat("main", MAIN).await.events),
        (
            "weather-and-identity",
            test.chat("both", "Il mio username è keysersoze e vorrei sapere il meteo a Milano").await.events,
        ),
        ("needs-input", test.chat("asks", "Vorrei chiedere 3 giorni di ferie").await.events),
        ("needs-input-continued", test.chat("asks", "Dal 22 al 24 giugno").await.events),
    ];
    let script = ModelScript::for_scenarios();
    let llm = ScriptedLlm::start(move |request, _| script.reply(request));
    runs.push(("duplicates", Setup::scripted(&llm).start().await.chat("s-1", MAIN).await.events));
    for (name, words) in [
        ("replan", "look, and see to the rest"),
        ("repairs", "look, misspoken"),
        ("tried-again", "look again"),
        ("failed", "look in vain, then put"),
        ("unknown-write", "put it somewhere"),
        ("unjudged", "look, unjudged"),
        ("no-scene", "hello"),
    ] {
        let workshop = Workshop::new();
        runs.push((name, workshop.setup().start().await.chat("s-1", words).await.events));
    }
    let workshop = Workshop::new();
    let test = workshop.setup().set("planning.fallback_enabled", true).start().await;
    runs.push(("fallback", test.chat("s-1", "Look at the \"lamp\" in the workshop").await.events));
    runs.push(("cancelled", cancelled_run().await));
    for (name, words) in [
        ("resumed-question", "think, then look"),
        ("resumed-read", "look slowly"),
        ("resumed-write", "put slowly"),
    ] {
        runs.push((name, resumed_run(words).await));
    }
    runs.extend(decided_runs().await);
    runs.push(("flow", flows::recorded_run().await));
    let (test, _llm) = inventory::recorded_shop().await;
    let yes = CommandAction::Decide { approval: 1, choice: ApproverChoice::Yes, hash: None };
    let sale = request(&test, "sale", "Sell some espresso cups");
    runs.push(("program-that-commits", commanded_run(&test, sale, &[yes]).await));
    runs.push(("ranked", ranked_run().await));
    for (name, words, mode, votes) in [
        ("decided-by-a-model", "fetch", "adaptive", 1),
        ("decided-by-vote", "fetch by vote", "adaptive", 2),
        ("interpreted", "weigh", "adaptive", 1),
        ("given-up-by-a-model", "count", "adaptive", 1),
        ("patched", "count, or else weigh", "creative", 1),
    ] {
        let depot = Depot::new();
        runs.push((name, depot.setup(mode, votes).start().await.chat("s-1", words).await.events));
    }
    runs
}

/// A run whose scenes are ranked by embeddings. The offline model plans and answers.
async fn ranked_run() -> Events {
    let vectors = embeddings::server();
    let setup = Setup::offline()
        .model("name", "\"vectors\"")
        .model("base_url", &format!("{:?}", vectors.base_url()))
        .model("embeddings", "true")
        .model("input_usd_per_million", "1")
        .set("planning.shortlist", 1)
        .set("planning.embeddings_timeout_ms", 60_000);
    setup.start().await.chat("s-1", "Che tempo fa a Milano?").await.events
}

/// Runs with decisions of a person.
async fn decided_runs() -> Vec<(&'static str, Events)> {
    let yes = || CommandAction::Approve { version: None, hash: None, hold: false };
    let test = Setup::offline().start().await;
    let mut runs = Vec::new();
    let first = approved_run(&test, "approved", MAIN, &[yes()]).await;
    runs.push(("approved", first));
    let other = "Vorrei il meteo a Roma e poi chiedere 2 giorni di ferie dal 6 al 7 luglio";
    let words = CommandAction::Modify { words: "senza il meteo".to_owned(), version: None };
    let second = CommandAction::Approve { version: Some(2), hash: None, hold: false };
    runs.push(("changed", approved_run(&test, "changed", other, &[words, second]).await));
    let dry = ChatRequest {
        options: RequestOptions { dry_run: true, ..RequestOptions::default() },
        ..request(&test, "dry-run", "Vorrei ferie dal 3 al 5 agosto")
    };
    let ticket = test.engine.submit(dry).await.unwrap();
    runs.push(("dry-run", test.finish(ticket).await.events));

    let test = Setup::offline().set("approval.calls", "writes").start().await;
    let edited = ApproverChoice::Edited(json!({"from": "2026-06-16", "to": "2026-06-17"}));
    let edited = CommandAction::Decide { approval: 1, choice: edited, hash: None };
    let three = "Vorrei chiedere 3 giorni di ferie dal 15 al 17 giugno";
    runs.push(("edited-write", commanded_run(&test, request(&test, "edited", three), &[edited]).await));

    let test = Setup::offline().set("execution.compensate", true).start().await;
    let both = "Vorrei chiedere ferie dal 15 al 17 giugno e poi richiedere ferie dal 16 al 18 giugno";
    runs.push(("undone", test.chat("undone", both).await.events));
    runs
}

fn request(test: &TestEngine, session: &str, words: &str) -> ChatRequest {
    test.engine.request(words, Some(SessionId::new(session).unwrap()))
}

async fn approved_run(test: &TestEngine, session: &str, words: &str, actions: &[CommandAction]) -> Events {
    let request = ChatRequest {
        options: RequestOptions { require_approval: true, ..RequestOptions::default() },
        ..request(test, session, words)
    };
    commanded_run(test, request, actions).await
}

/// A waiting run and the commands sent to it, one after the other.
async fn commanded_run(test: &TestEngine, request: ChatRequest, actions: &[CommandAction]) -> Events {
    let answer = test.engine.chat(request).await.unwrap();
    assert_eq!(answer.status, RunStatus::Waiting, "{answer:#?}");
    for action in actions {
        let command = Command::new("lferrari", action.clone());
        test.engine.command_and_wait(&test.tenant, answer.run_id, command).await.unwrap().unwrap();
    }
    test.events(answer.run_id).await
}

/// A run that is cancelled during a write.
async fn cancelled_run() -> Events {
    let workshop = Workshop::new();
    let test = workshop.setup().start().await;
    let mut ticket = test.submit("s-1", "put slowly").await.unwrap();
    workshop.started.wait_open().await;
    ticket.cancel("keysersoze").await;
    while ticket.next().await.unwrap().body.name() != "cancel_requested" {}
    workshop.go.open();
    test.finish(ticket).await.events
}

/// An engine stops while a call is in progress; another one resumes the run.
async fn resumed_run(words: &str) -> Events {
    let workshop = Workshop::new();
    let test = workshop.setup().start().await;
    let ticket = test.submit("s-1", words).await.unwrap();
    workshop.started.wait_open().await;
    let (run, tenant) = (ticket.run, test.tenant.clone());
    let dir = test.stop().await;
    workshop.go.open();
    let test: TestEngine = workshop.setup().on(&dir).start().await;
    assert_eq!(test.engine.resume_unfinished().await.unwrap(), 1);
    test.engine.wait(&tenant, run).await.unwrap();
    test.events(run).await
}

/// Makes a run independent of when and where it was recorded: ids by order of appearance, one second between
/// events, and no durations.
pub fn normalised(name: &str, mut events: Events, catalogue: &Catalogue) -> String {
    let begin: jiff::Timestamp = "2026-05-04T07:00:00Z".parse().unwrap();
    for (second, event) in (0_i64..).zip(&mut events) {
        event.at = begin + jiff::SignedDuration::from_secs(second);
        match &mut event.body {
            Event::ModelReplied { millis, attempts, .. } | Event::ModelFailed { millis, attempts, .. } => {
                *millis = 0;
                for attempt in attempts {
                    (attempt.millis, attempt.after_millis, attempt.first_token_millis) = (0, 0, None);
                }
            }
            Event::ToolCompleted { millis, .. } | Event::ProgramReplied { millis, .. } => *millis = 0,
            _ => {}
        }
    }
    let mut text = proscenium::replay::write(&events);
    let place = KINDS.iter().position(|kind| kind.name == name).unwrap();
    for (nth, id) in (1..).zip(ids(&text)) {
        text = text.replace(&id, &format!("01900000-0000-7000-8{place:03x}-{nth:012x}"));
    }
    with_seeds(&text, catalogue)
}

/// The run in which each program has the seed that follows from the run's id.
fn with_seeds(text: &str, catalogue: &Catalogue) -> String {
    let mut events = proscenium::replay::read(text).unwrap();
    let replayed = proscenium::replay::replay(events[0].run.unwrap(), &events, catalogue);
    for event in &mut events {
        let written = replayed.differences.iter().find(|difference| difference.seq == event.seq);
        if let (Event::ProgramWritten { seed, .. }, Some(written)) = (&mut event.body, written) {
            *seed = written.today[0]["seed"].as_u64().unwrap();
        }
    }
    proscenium::replay::write(&events)
}

/// Every UUID in a text, once, in order.
fn ids(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_ascii_hexdigit() && c != '-').filter(|word| word.len() == 36) {
        if word.parse::<uuid::Uuid>().is_ok() && !found.iter().any(|id| id == word) {
            found.push(word.to_owned());
        }
    }
    found
}
