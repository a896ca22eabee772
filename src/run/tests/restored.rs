//! Runs that were unfinished in a backup.

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::script::Script;
use super::sim::Sim;
use super::world::worlds;
use crate::run::{
    ApprovalSubject, Effect, Envelope, Event, PlanMaker, Repeat, RunState, RunStatus, Settings,
    unreadable_restored_events, writes_since,
};

/// A run with a write in flight, about which a person is asked after a restore.
fn books() -> Script {
    let mut run = Script::new(Settings::default());
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[("book", Effect::Write, Repeat::Never, 1)]);
    run
}

fn restore(run: &mut Script) {
    let copied = "2026-05-04T03:00:00Z".parse().unwrap();
    run.state.restored_events(copied).into_iter().for_each(|event| run.record(event));
    run.settle();
    assert_eq!((run.state.status, run.state.copied), (RunStatus::Waiting, Some(copied)));
    assert!(run.state.aside.as_ref().unwrap().message.contains("2026-05-04T03:00:00Z"));
}

#[test]
fn cancellation_that_was_under_way_continues_only_when_a_person_says_so() {
    let mut run = books();
    run.record(Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    restore(&mut run);
    let asked: Vec<_> = run.state.approvals.values().map(|approval| approval.matter).collect();
    assert_eq!(asked, [ApprovalSubject::Outcome { call: 1 }]);
    run.decide(1, crate::run::Decision::NotDone, "hockney");
    assert_eq!((run.state.status, run.state.next()), (RunStatus::Waiting, [].as_slice()));
    run.record(Event::Released { by: "hockney".to_owned() });
    run.settle();
    assert_eq!((run.state.status, run.state.copied), (RunStatus::Cancelled, None));
}

#[test]
fn restored_run_can_be_cancelled_and_restored_again() {
    let mut run = books();
    restore(&mut run);
    restore(&mut run);
    assert_eq!((run.state.epoch, run.state.approvals.len()), (2, 1));
    run.record(Event::CancelRequested { by: "hockney".to_owned(), deadline: false, note: None });
    run.settle();
    assert_eq!((run.state.status, run.state.copied), (RunStatus::Cancelled, None));
    assert_eq!(run.state.restored_events(run.state.at), []);
}

#[test]
fn open_approval_is_asked_again_with_the_reason_once_the_run_continues() {
    let mut run = Script::new(Settings::default());
    run.asks_plans = true;
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    restore(&mut run);
    assert!(run.state.approvals[&1].lapsed);
    run.record(Event::Released { by: "hockney".to_owned() });
    run.settle();
    assert_eq!((run.state.status, run.state.approvals.len()), (RunStatus::Waiting, 2));
    assert!(
        run.state.approvals[&2].needed.why.iter().any(|why| why.contains("backup of 2026-05-04T03:00:00Z"))
    );
}

#[test]
fn every_recorded_journal_is_parked_wherever_it_is_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replays");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut parked = 0;
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let events: Vec<Envelope<Event>> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for end in 1..=events.len() {
            let mut state = RunState::from_journal(events[0].run.unwrap(), &events[..end]);
            if state.status.is_terminal() {
                assert!(state.restored_events(state.at).is_empty());
                continue;
            }
            for event in state.restored_events(state.at) {
                state.apply_checked(&event, state.at);
            }
            let rests = state.status == RunStatus::Waiting && state.next().is_empty();
            assert!(state.is_quarantined() && rests, "{} at {end}: {:?}", file.display(), state.next());
            parked += 1;
        }
    }
    assert!(parked > 300, "{parked}");
}

#[test]
fn writes_that_a_backup_does_not_have_are_named_with_their_outcome() {
    let mut later = books();
    let backup = later.state.clone();
    assert!(writes_since(&backup, &later.state).is_empty());
    later.done(1, json!({"id": 7}));
    assert_eq!(writes_since(&backup, &later.state), ["A.book: done"]);
}

#[test]
fn unreadable_run_is_parked_by_number_as_a_readable_one() {
    let run = books();
    let events = unreadable_restored_events(run.state.epoch, run.state.at);
    assert_eq!(events, run.state.restored_events(run.state.at)[..2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    // `Sim` asserts at each event that it is legal and that the fold of the journal is the same.
    #[test]
    fn restored_run_does_nothing_until_a_person_resumes_or_cancels_it(world in worlds(), turns in 0_u8..80) {
        let mut sim = Sim::new(world);
        let queued = sim.queued();
        sim.record(queued);
        for _ in 0..turns {
            if !sim.state.status.is_terminal() {
                sim.turn();
            }
        }
        let (ended, epoch) = (sim.state.status.is_terminal(), sim.state.epoch);
        sim.restore();
        if ended {
            prop_assert_eq!(sim.state.epoch, epoch, "a run that has ended is left as it is");
            return Ok(());
        }
        prop_assert_eq!(sim.state.epoch, epoch + 1);
        let begun = |sim: &Sim| {
            let begins = |e: &&Event| matches!(e, Event::ModelAsked { .. } | Event::ToolStarted { .. });
            sim.events.iter().filter(begins).count()
        };
        let listed = |sim: &Sim| {
            let changes = sim.events.iter().filter_map(|event| event.facts().status);
            changes.fold(RunStatus::Queued, |now, change| change.apply(now))
        };
        let before = begun(&sim);
        for _ in 0..8 {
            prop_assert!(sim.state.is_quarantined());
            prop_assert_eq!((sim.state.status, sim.state.next()), (RunStatus::Waiting, [].as_slice()));
            prop_assert_eq!((sim.state.next_timer(), begun(&sim)), (None, before));
            prop_assert_eq!(listed(&sim), RunStatus::Waiting);
            // Whatever is approved, refused, edited or asked for; only a resumption or a cancellation ends it.
            sim.person_command();
            if !sim.state.is_quarantined() {
                break;
            }
        }
        if sim.state.is_quarantined() {
            sim.record(Event::Released { by: "hockney".to_owned() });
        }
        sim.finish();
    }
}
