//! Events that nobody asked for: each is refused and changes nothing, or it is possible and then all
//! rules hold all the same. And: the invented worlds reach every corner.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::sim::{Flight, Sim, queued, started};
use super::words;
use super::world::{Dice, World, worlds};
use crate::plan::{Problem, StepStatus};
use crate::run::{
    AskStatus, CallStatus, Effect, Event, Fault, Maker, Outcome, Reply, RunStatus, Subject, Usage, Verdict,
};

/// Any event at all, about small numbers, so that many nearly fit.
fn any_event(dice: &mut Dice, sim: &Sim) -> Event {
    let state = &sim.state;
    let number = if dice.pick(12) == 11 { u32::MAX } else { dice.pick(8) as u32 };
    let other = dice.pick(8) as u32;
    let error = Fault::new("chaos", "nobody asked for this");
    let subject = match dice.pick(4) {
        0 => Subject::Plan { version: other },
        1 => Subject::Scene { step: other },
        2 => Subject::Continuation { round: other },
        _ => Subject::Answer,
    };
    let maker = if dice.pick(2) == 0 { Maker::Deterministic } else { Maker::Fallback };
    match dice.pick(24) {
        0 => queued(dice.pick(2) == 1),
        1 => started(&sim.world.settings),
        2 if dice.pick(8) == 7 => Event::RunResumed { epoch: number.min(9) },
        3 => Event::Planning { version: number, cause: crate::run::Cause::Continuation },
        4 | 5 => Event::ModelAsked {
            call: if dice.pick(2) == 0 { state.next_ask() } else { number },
            subject,
            attempt: dice.pick(3) as u32,
            fallback: dice.pick(4) == 3,
            prompt_hash: String::new(),
        },
        6 => Event::ModelReplied {
            call: number,
            reply: Reply::default(),
            usage: Usage::default(),
            millis: 0,
            attempts: vec![],
        },
        7 => {
            Event::ModelFailed { call: number, error, usage: words::usage(dice), millis: 0, attempts: vec![] }
        }
        8 => Event::PlanningFailed { version: number, error },
        9 => Event::ReplyRejected { call: number, problems: vec![Problem::new("chaos", "no")] },
        10 | 11 => {
            let plan = words::plan(dice, state, 7);
            let mut made = words::made(state, plan, maker);
            if dice.pick(3) == 2 {
                made.version = number;
            }
            if made.version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) }
        }
        12 => Event::StepStarted { step: number },
        13 => Event::SceneReplied {
            step: other,
            call: number,
            text: String::new(),
            calls: words::calls(dice, state, other, 2),
            question: None,
            next: (dice.pick(4) == 0).then(|| "write".to_owned()),
        },
        14 | 15 => Event::ToolStarted { call: number, attempt: 1 + dice.pick(2) as u32 },
        16 => Event::ToolCompleted { call: number, outcome: words::outcome(dice, 8), millis: 0 },
        17 => Event::ToolSkipped { call: number, first: other },
        18 => Event::StepCompleted { step: number, result: String::new() },
        19 => Event::StepFailed {
            step: number,
            status: [
                StepStatus::Blocked,
                StepStatus::Failed,
                StepStatus::Cancelled,
                StepStatus::NeedsInput,
                StepStatus::Completed,
                StepStatus::Pending,
            ][dice.pick(6)],
            error,
        },
        20 => {
            let verdict = Verdict { should_continue: true, ..Verdict::default() };
            Event::Continuation { round: number, verdict, degraded: dice.pick(2) == 0 }
        }
        21 => Event::Answered { text: String::new(), degraded: false },
        22 => {
            let statuses =
                [RunStatus::Completed, RunStatus::Running, RunStatus::Partial, RunStatus::Cancelled];
            Event::RunCompleted { status: statuses[dice.pick(4)] }
        }
        23 if dice.pick(16) == 15 => Event::RunFailed { error },
        23 if dice.pick(16) == 15 => {
            Event::CancelRequested { by: String::new(), deadline: dice.pick(2) == 0 }
        }
        _ => Event::RunCancelled { by: String::new() },
    }
}

/// Throws events at the state between the moves of a run.
fn attacked(world: World, dice: &mut Dice) -> Sim {
    let mut sim = Sim::new(world);
    sim.record(queued(sim.world.plan_only));
    while !sim.state.status.is_terminal() {
        for _ in 0..dice.pick(6) {
            let event = any_event(dice, &sim);
            let before = sim.state.clone();
            if sim.state.apply(&event).is_err() {
                assert_eq!(sim.state, before, "{event:?} was refused and changed something");
                assert!(sim.state.check(&event).is_err());
                continue;
            }
            // It was possible: it goes the ordinary way, and the rules must hold of it too.
            sim.state = before;
            sim.record(event);
            sim.flights.retain(|flight| match flight {
                Flight::Ask(call) => sim.state.asks[call].status == AskStatus::InFlight,
                Flight::Call(call) => matches!(sim.state.calls[call].status, CallStatus::InFlight { .. }),
            });
            if sim.state.status.is_terminal() {
                return sim;
            }
        }
        sim.turn();
    }
    sim
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_event_that_nobody_asked_for_is_refused_and_changes_nothing_or_breaks_no_rule(
        world in worlds(), attack in worlds()
    ) {
        let mut dice = Dice::new(&attack);
        let sim = attacked(world, &mut dice);
        sim.watch.at_end(&sim.state);
    }
}

/// What a run went through, by name.
fn corners(sim: &Sim) -> BTreeSet<&'static str> {
    let mut found: BTreeSet<&'static str> = sim.events.iter().map(Event::name).collect();
    let mut writes_begun = 0;
    for event in &sim.events {
        match event {
            Event::ToolStarted { call, attempt } => {
                let write = sim.state.calls[call].requested.effect == Effect::Write;
                writes_begun += u32::from(write);
                found.insert(match (write, attempt) {
                    (true, 2) => "a write repeated with its key",
                    (false, 2) => "a read repeated after a crash",
                    (false, 4) => "a read repeated to the bound",
                    _ => "a first attempt",
                });
            }
            Event::ToolCompleted { outcome: Outcome::Refused { error }, .. } => {
                found.insert(match error.code.as_str() {
                    "tool.held" => "a tool held",
                    "bound.calls" => "too many calls",
                    "policy.fallback_write" => "a write of the fallback",
                    _ => "a refusal",
                });
            }
            Event::StepFailed { error, status, .. } => {
                found.insert(match (error.code.as_str(), status) {
                    ("step.empty", _) => "an empty end",
                    ("step.rounds", _) => "too many rounds",
                    (_, StepStatus::Blocked) => "a blocked step",
                    (_, StepStatus::NeedsInput) => "a question",
                    _ => "a failed step",
                });
            }
            Event::CancelRequested { deadline, .. } if writes_begun > 0 => {
                found.insert(if *deadline { "a deadline after a write" } else { "a cancel after a write" });
            }
            Event::Replanned(made) if made.version == 4 => {
                found.insert("the last plan allowed");
            }
            _ => {}
        }
    }
    if sim.state.calls.values().any(|c| {
        c.stale
            && sim
                .state
                .calls
                .values()
                .any(|d| d.requested.key == c.requested.key && d.attempts > 0 && d != c)
    }) {
        found.insert("a read again after a write");
    }
    found.insert(match sim.state.status {
        RunStatus::NeedsInput => "needs input",
        RunStatus::Partial => "partial",
        _ => "another end",
    });
    found
}

#[test]
fn the_invented_worlds_reach_every_corner() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<&'static str, u32> = BTreeMap::new();
    for _ in 0..800 {
        let world = worlds().new_tree(&mut runner).unwrap().current();
        for corner in corners(&Sim::run(world)) {
            *seen.entry(corner).or_default() += 1;
        }
    }
    let wanted = [
        "run_queued",
        "run_started",
        "run_resumed",
        "planning",
        "model_asked",
        "model_replied",
        "model_failed",
        "planning_failed",
        "reply_rejected",
        "plan_created",
        "replanned",
        "step_started",
        "scene_replied",
        "tool_started",
        "tool_completed",
        "tool_skipped",
        "step_completed",
        "step_failed",
        "continuation",
        "answered",
        "cancel_requested",
        "run_completed",
        "run_failed",
        "run_cancelled",
        "a write repeated with its key",
        "a read repeated after a crash",
        "a tool held",
        "too many calls",
        "a write of the fallback",
        "an empty end",
        "too many rounds",
        "a blocked step",
        "a question",
        "a failed step",
        "a deadline after a write",
        "a cancel after a write",
        "the last plan allowed",
        "a read again after a write",
        "needs input",
        "partial",
    ];
    let missing: Vec<&str> = wanted.into_iter().filter(|w| seen.get(w).copied().unwrap_or(0) < 3).collect();
    assert_eq!(missing, Vec::<&str>::new(), "seen: {seen:#?}");
}
