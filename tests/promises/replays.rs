//! Today's code decides recorded runs as they were decided: a change of behaviour or of a prompt fails here.
//!
//! If the change is intended, record them again and review the differences: `REPLAYS=write cargo test --test
//! promises recorded_runs`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proscenium::plan::StepStatus;
use proscenium::replay::{DifferenceKind, ReplayReport, read, replay, write};
use proscenium::run::{Envelope, Event, Outcome, RunStatus, SCHEMA, Settings, Subject};
use proscenium::scene::Catalogue;

use crate::support::recordings::{self as support, Events, KINDS, Scenes, catalogues, normalised, record};
use crate::support::test_engine::Setup;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/replays").join(format!("{name}.jsonl"))
}

fn recorded(name: &str) -> Events {
    read(&std::fs::read_to_string(file(name)).unwrap()).unwrap()
}

fn replayed(events: &[Envelope<Event>], catalogue: &Catalogue) -> ReplayReport {
    replay(events[0].run.unwrap(), events, catalogue)
}

/// A summary of the differences.
fn summary(replayed: &ReplayReport) -> String {
    let places = replayed.differences.iter().map(|difference| {
        format!("event {} {} [{:?}]: {}\n", difference.seq, difference.event, difference.kind, difference.why)
    });
    let worded = replayed.wordings.iter().map(|wording| {
        format!("event {} model_asked: {:?} is worded differently\n", wording.seq, wording.subject)
    });
    places.chain(worded).collect()
}

async fn today(scenes: Scenes) -> Arc<Catalogue> {
    let mut all = catalogues().await.into_iter();
    all.find(|(of, _)| *of == scenes).unwrap().1
}

/// The reasons why a run is not what its kind requires, or is decided differently today.
fn faults(kind: &support::Kind, events: &[Envelope<Event>], catalogue: &Catalogue) -> String {
    let replayed = replayed(events, catalogue);
    let mut faults = summary(&replayed);
    if replayed.status != kind.status {
        faults += &format!("it ends {:?}: {:?}\n", replayed.status, events.last().unwrap().body);
    }
    for name in kind.has {
        if !events.iter().any(|event| event.body.name() == *name) {
            faults += &format!("there is no {name}\n");
        }
    }
    faults.lines().map(|line| format!("{}: {line}\n", kind.name)).collect()
}

#[tokio::test]
async fn recorded_runs_replay_without_differences() {
    let catalogues = catalogues().await;
    let of = |scenes: Scenes| &catalogues.iter().find(|(of, _)| *of == scenes).unwrap().1;
    let shipped = Setup::offline().start().await.engine.catalogue();
    let of_fresh = |scenes: Scenes| if scenes == Scenes::Shipped { &shipped } else { of(scenes) };
    // A run recorded now has no differences, whatever is in the files.
    let fresh: BTreeMap<&str, Events> = record().await.into_iter().collect();
    let (mut stored_faults, mut fresh_faults) = (String::new(), String::new());
    for kind in &KINDS {
        let events = &fresh[kind.name];
        fresh_faults += &faults(kind, events, of_fresh(kind.scenes));
        let file = file(kind.name);
        let stored = std::fs::read_to_string(&file).ok().and_then(|text| read(&text).ok());
        let fault = match stored {
            Some(stored) => faults(kind, &stored, of(kind.scenes)),
            None => format!("{}: the recording is missing\n", kind.name),
        };
        // Files that still match stay as they are: branches of a plan may interleave in any order.
        if !fault.is_empty() && std::env::var("REPLAYS").is_ok_and(|how| how == "write") {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, normalised(kind.name, events.clone(), of(kind.scenes))).unwrap();
        } else {
            stored_faults += &fault;
        }
    }
    assert!(
        stored_faults.is_empty() && fresh_faults.is_empty(),
        "stored runs replay differently:\n{stored_faults}\nIf that is intended: \
         REPLAYS=write cargo test --test promises recorded_runs\n\n\
         Fresh recordings are not of their kind, or replay differently:\n{fresh_faults}"
    );
    let files = std::fs::read_dir(file("x").parent().unwrap()).unwrap();
    let files = files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "jsonl"));
    assert_eq!(files.count(), KINDS.len(), "files in tests/replays");
}

#[tokio::test]
async fn unfinished_run_is_replayed_to_its_last_event() {
    let catalogues = catalogues().await;
    for kind in &KINDS {
        let events = recorded(kind.name);
        let catalogue = &catalogues.iter().find(|(of, _)| *of == kind.scenes).unwrap().1;
        for end in 1..events.len() {
            let replayed = replayed(&events[..end], catalogue);
            assert!(replayed.same && replayed.wordings.is_empty(), "{}: {}", kind.name, summary(&replayed));
            assert!(!replayed.status.is_terminal());
            // The due action was recorded next, or an external event arrived.
            let next = serde_json::to_value(&events[end].body).unwrap();
            let outside = [
                "model_replied", "model_failed", "cancel_requested", "run_resumed", "decided",
                "modification_asked",
            ];
            assert!(
                !replayed.due.is_empty()
                    || outside.contains(&next["type"].as_str().unwrap())
                    || next["type"] == "tool_completed",
                "{} {end}",
                kind.name
            );
        }
    }
}

/// A run of both shipped scenes in parallel, to be modified.
async fn parallel_run() -> (Events, Arc<Catalogue>) {
    (recorded("weather-and-identity"), today(Scenes::Shipped).await)
}

fn position(events: &[Envelope<Event>], name: &str, nth: usize) -> usize {
    let mut found = events.iter().enumerate().filter(|(_, event)| event.body.name() == name);
    found.nth(nth).unwrap().0
}

fn renumber(mut events: Events) -> Events {
    for (seq, event) in (1..).zip(&mut events) {
        event.seq = seq;
    }
    events
}

/// The only difference.
fn only_difference(replayed: &ReplayReport) -> (u64, &str, DifferenceKind) {
    assert!(!replayed.same);
    let [one] = replayed.differences.as_slice() else { panic!("{}", summary(replayed)) };
    (one.seq, one.event.as_str(), one.kind)
}

#[tokio::test]
async fn differently_parsed_reply_is_reported_with_both_readings() {
    let (mut events, catalogue) = parallel_run().await;
    let at = position(&events, "plan_created", 0);
    let Event::PlanCreated(made) = &mut events[at].body else { panic!() };
    let was_expected =
        std::mem::replace(&mut made.plan.steps[0].expected_tools, vec!["CityExists".to_owned()]);
    let replayed = replayed(&events, &catalogue);
    let one = &replayed.differences[0];
    assert_eq!(
        (one.seq, one.event.as_str(), one.kind),
        (at as u64 + 1, "plan_created", DifferenceKind::Meaning)
    );
    assert_eq!(one.recorded["plan"]["steps"][0]["expected_tools"], serde_json::json!(["CityExists"]));
    assert_eq!(one.today[0]["plan"]["steps"][0]["expected_tools"], serde_json::json!(was_expected));
    // What follows is compared with the recording: another plan, other wording, the same decisions.
    assert!(!replayed.wordings.is_empty());
}

#[tokio::test]
async fn different_machine_decision_is_reported_with_the_due_actions() {
    let (mut events, catalogue) = parallel_run().await;
    let at = events.len() - 1;
    events[at].body = Event::RunCompleted { status: RunStatus::Partial };
    let replayed = replayed(&events, &catalogue);
    assert_eq!(only_difference(&replayed), (at as u64 + 1, "run_completed", DifferenceKind::Decision));
    assert_eq!(replayed.differences[0].today[0]["status"], "completed");
    assert_eq!(replayed.status, RunStatus::Partial, "the fold uses the recorded events");
}

#[tokio::test]
async fn changed_bound_is_reported_where_it_matters() {
    let (mut events, catalogue) = parallel_run().await;
    let Event::RunStarted(started) = &mut events[1].body else { panic!() };
    started.settings = Settings { max_parallel_steps: 1, ..started.settings.clone() };
    let replayed = replayed(&events, &catalogue);
    let second = position(&events, "step_started", 1) as u64 + 1;
    assert_eq!(only_difference(&replayed), (second, "step_started", DifferenceKind::Decision));
}

#[tokio::test]
async fn action_recorded_after_a_later_wait_is_out_of_order() {
    let (mut events, catalogue) = parallel_run().await;
    // The second step starts before the first one's model has replied.
    let second = position(&events, "step_started", 1);
    let replied = position(&events, "model_replied", 1);
    assert!(second < replied);
    let started = events.remove(second);
    let ask = events
        .iter()
        .position(|event| matches!(event.body, Event::ModelAsked { subject: Subject::Scene { step: 2 }, .. }))
        .unwrap();
    assert!(ask < replied);
    let asked = events.remove(ask);
    let replied = position(&events, "model_replied", 1);
    events.insert(replied + 1, asked);
    events.insert(replied + 1, started);
    let events = renumber(events);
    let replayed = replayed(&events, &catalogue);
    let one = &replayed.differences[0];
    assert_eq!(
        (one.seq, one.event.as_str(), one.kind),
        (replied as u64 + 1, "model_replied", DifferenceKind::Order)
    );
    assert!(one.why.contains("step_started/2"), "{}", one.why);
    assert_eq!(one.today[0]["type"], "step_started");
    // Once reported and executed, it causes no further differences.
    assert!(
        replayed.differences[1..].iter().all(|other| other.kind == DifferenceKind::Order),
        "{}",
        summary(&replayed)
    );
}

#[tokio::test]
async fn different_wording_alone_is_not_a_different_decision() {
    let (mut events, catalogue) = parallel_run().await;
    let at = position(&events, "model_asked", 0);
    let Event::ModelAsked { prompt_hash, .. } = &mut events[at].body else { panic!() };
    let was = std::mem::replace(prompt_hash, "0".repeat(64));
    let replayed = replayed(&events, &catalogue);
    assert!(replayed.same);
    let [wording] = replayed.wordings.as_slice() else { panic!("{}", summary(&replayed)) };
    assert_eq!((wording.seq, wording.call), (at as u64 + 1, 1));
    assert_eq!((wording.today.as_str(), wording.recorded.as_str()), (was.as_str(), "0".repeat(64).as_str()));
    assert_eq!(wording.request.as_ref().unwrap().messages.len(), 2);
}

#[tokio::test]
async fn different_question_is_a_different_decision() {
    let (mut events, catalogue) = parallel_run().await;
    let at = position(&events, "model_asked", 0);
    let Event::ModelAsked { fallback, .. } = &mut events[at].body else { panic!() };
    *fallback = true;
    let replayed = replayed(&events, &catalogue);
    let one = &replayed.differences[0];
    assert_eq!((one.seq, one.kind), (at as u64 + 1, DifferenceKind::Decision));
    assert_eq!(one.today[0]["fallback"], false);
}

#[tokio::test]
async fn impossible_event_is_reported_and_the_fold_continues() {
    let (mut events, catalogue) = parallel_run().await;
    let at = position(&events, "tool_started", 0);
    events.remove(at);
    let events = renumber(events);
    let replayed = replayed(&events, &catalogue);
    assert_eq!(replayed.status, RunStatus::Completed);
    let completed = replayed.differences.iter().find(|one| one.event == "tool_completed").unwrap();
    assert_eq!(completed.kind, DifferenceKind::Decision);
    assert_eq!(completed.today[0]["action"], "call");
}

#[tokio::test]
async fn changed_scenes_are_reported() {
    let (events, _) = parallel_run().await;
    let other = today(Scenes::Workshop).await;
    let replayed = replayed(&events, &other);
    assert!(replayed.scenes.as_ref().unwrap().changed);
    let read = &replayed.differences[0];
    assert_eq!((read.event.as_str(), read.kind), ("plan_created", DifferenceKind::Meaning));
    assert_eq!(read.today[0]["type"], "reply_rejected");
    assert_eq!(replayed.wordings[0].call, 1);
}

#[tokio::test]
async fn kept_differences_are_bounded() {
    let (events, catalogue) = parallel_run().await;
    let (mut many, mut bogus) = (events[..3].to_vec(), events[3].clone());
    bogus.body = Event::StepFailed {
        step: 7,
        status: StepStatus::Blocked,
        error: proscenium::run::Fault::new("x", "x"),
    };
    many.extend(std::iter::repeat_n(bogus, 150));
    let replayed = replayed(&renumber(many), &catalogue);
    assert_eq!((replayed.differences.len(), replayed.more_differences), (100, 50));
}

#[tokio::test]
async fn recorded_outcomes_are_taken_as_given() {
    let (mut events, catalogue) = parallel_run().await;
    let at = position(&events, "tool_completed", 0);
    let Event::ToolCompleted { outcome, .. } = &mut events[at].body else { panic!() };
    let error = proscenium::run::Fault::new("tool.timeout", "no reply within 5000 ms");
    *outcome = Outcome::Failed { error };
    let replayed = replayed(&events, &catalogue);
    assert!(replayed.differences.iter().all(|one| one.seq > at as u64 + 1), "{}", summary(&replayed));
}

#[test]
fn exported_file_reads_back_as_the_same_run() {
    for kind in &KINDS {
        let events = recorded(kind.name);
        assert_eq!(read(&write(&events)).unwrap(), events);
    }
}

#[test]
fn invalid_run_file_is_reported_with_its_position() {
    let text = write(&recorded("main"));
    let lines: Vec<&str> = text.lines().collect();
    let code = |text: &str| {
        let fault = read(text).unwrap_err();
        (fault.code, fault.message)
    };
    assert_eq!(code("\n \n").0, "replay.empty");
    let gap = [&lines[..2], &lines[3..]].concat().join("\n");
    assert_eq!(
        code(&gap),
        ("replay.gap".to_owned(), "line 3: event 3 is missing, event 4 is there".to_owned())
    );
    let newer = text.replacen(&format!("\"schema\":{SCHEMA}"), "\"schema\":9999", 1);
    assert!(code(&newer).1.starts_with("line 1: event 1 has format 9999"), "{newer}");
    let broken = format!("{}\n{{\"seq\"", lines[0]);
    let (given, message) = code(&broken);
    assert!(given == "replay.unreadable" && message.starts_with("line 2: "), "{message}");
    let other = write(&recorded("needs-input"));
    let mixed = format!("{}\n{}", lines[0], other.lines().nth(1).unwrap());
    assert_eq!(code(&mixed).0, "replay.mixed");
}
