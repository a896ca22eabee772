//! Unexpected events: each is refused without changes, or it is legal and all rules still hold. Also: the
//! generated worlds cover every case.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use serde_json::Value;

use super::generators;
use super::sim::{Sim, queued, started};
use super::world::{Dice, World, worlds};
use crate::adapt::{ConsultationKind, ConsultationOutcome, ExecutionLevel, ExecutionMode, RecoveryAction};
use crate::plan::{PlanProblem, StepStatus};
use crate::planner;
use crate::run::{
    Adaptation, ApprovalScope, ApprovalSubject, CallStatus, ConsultationChoice, ConsultationSubject,
    Decision, Effect, Event, Fault, InterpretedResult, Outcome, PlanCause, PlanMade, PlanMaker,
    RULES_REVISION, RecalledResult, Reply, RunStatus, Subject, UnexpectedSubject, Usage, Verdict,
};

/// Any event, with small numbers, so that many are almost legal.
fn any_event(dice: &mut Dice, sim: &Sim) -> Event {
    let state = &sim.state;
    let number = if dice.pick(12) == 11 { u32::MAX } else { dice.pick(8) as u32 };
    let other = dice.pick(8) as u32;
    let error = Fault::new("chaos", "nobody asked for this");
    let subject = match dice.pick(6) {
        5 => Subject::Consultation { consultation: other, kind: ConsultationKind::Recovery },
        0 => Subject::Plan { version: other },
        1 => Subject::Scene { step: other },
        2 => Subject::Continuation { round: other },
        3 => Subject::Ranking,
        _ => Subject::Answer,
    };
    let maker = if dice.pick(2) == 0 { PlanMaker::Deterministic } else { PlanMaker::Fallback };
    let approval = if dice.pick(3) == 0 { state.next_approval() } else { number };
    let matter = match dice.pick(3) {
        0 => ApprovalSubject::Plan { version: other },
        1 => ApprovalSubject::Call { call: other },
        _ => ApprovalSubject::Outcome { call: other },
    };
    match dice.pick(38) {
        0 => queued(dice.pick(2) == 1),
        1 => started(&sim.world.settings),
        2 if dice.pick(8) == 7 => {
            Event::RunResumed { epoch: number.min(9), restart: number % 2 == 0, catalogue: None }
        }
        3 => Event::Planning { version: number, cause: crate::run::PlanCause::Continuation },
        4 | 5 => Event::ModelAsked {
            call: if dice.pick(2) == 0 { state.next_ask() } else { number },
            subject,
            attempt: dice.pick(3) as u32,
            fallback: dice.pick(4) == 3,
            prompt_hash: String::new(),
            reserved: None,
        },
        6 => Event::ModelReplied {
            call: number,
            reply: Reply::default(),
            usage: Usage::default(),
            millis: 0,
            attempts: vec![],
        },
        7 => Event::ModelFailed {
            call: number,
            error,
            usage: generators::usage(dice),
            millis: 0,
            attempts: vec![],
        },
        34 => Event::Consultation {
            consultation: number,
            subject: ConsultationSubject::Recovery { call: other, attempt: 1 },
            question: (dice.pick(2) == 0).then_some(number),
            how: ConsultationOutcome::Asked,
            chosen: (dice.pick(2) == 0)
                .then_some(ConsultationChoice::Recovery { action: RecoveryAction::Abort }),
            refused: None,
            reason: String::new(),
            model: None,
            ask: None,
            error: None,
        },
        8 => Event::PlanningFailed { version: number, error },
        9 => Event::ReplyRejected { call: number, problems: vec![PlanProblem::new("chaos", "no")] },
        10 | 11 => {
            let plan = generators::plan(dice, state, 7, false);
            let mut made = generators::made(state, plan, maker);
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
            calls: generators::calls(dice, state, sim.catalogue(), (other, number), 2),
            question: None,
            next: (dice.pick(4) == 0).then(|| "write".to_owned()),
        },
        14 | 15 => Event::ToolStarted { call: number, attempt: 1 + dice.pick(2) as u32 },
        16 => Event::ToolCompleted {
            call: number,
            outcome: generators::outcome(dice, 8),
            millis: 0,
            notes: None,
        },
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
        21 => Event::Answered { text: String::new(), degraded: false, error: None },
        22 => {
            let statuses =
                [RunStatus::Completed, RunStatus::Running, RunStatus::Partial, RunStatus::Cancelled];
            Event::RunCompleted { status: statuses[dice.pick(4)] }
        }
        23 if dice.pick(16) == 15 => Event::RunFailed { error },
        23 if dice.pick(16) == 15 => {
            Event::CancelRequested { by: String::new(), deadline: dice.pick(2) == 0, note: None }
        }
        24 => Event::ApprovalRequired { approval, matter, needed: generators::needed("chaos") },
        25 | 26 => {
            let arguments = generators::arguments(dice);
            let decision = match dice.pick(7) {
                0 => Decision::Yes { hold: false },
                1 => Decision::Yes { hold: true },
                2 => Decision::No,
                3 => Decision::Edited { key: format!("chaos {arguments}"), arguments },
                4 => Decision::Done,
                5 => Decision::NotDone,
                _ => Decision::Again,
            };
            Event::Decided { approval, matter, decision, by: "nobody".to_owned(), note: None, word: None }
        }
        27 => Event::ApprovalLapsed {
            approval,
            matter,
            why: Vec::new(),
            needed: generators::needed("chaos"),
            edited: None,
            read: None,
        },
        28 => Event::Released { by: "nobody".to_owned() },
        29 => Event::RunWaiting {},
        30 if dice.pick(4) == 3 => {
            Event::ModificationAsked { version: number, by: "nobody".to_owned(), words: "more".to_owned() }
        }
        31 if dice.pick(4) == 3 => {
            let plan = generators::plan(dice, state, 7, true);
            let version = state.plans.len() as u32 + 1;
            Event::PlanEdited(PlanMade::new(version, PlanCause::Edit, PlanMaker::Person, plan))
        }
        32 => Event::PlanRefused {
            version: number,
            problems: vec![PlanProblem::new("chaos", "no")],
            retry_after_ms: None,
        },
        33 if dice.pick(2) == 0 => Event::RunReopened { by: "nobody".to_owned() },
        33 => {
            let requested = generators::calls(dice, state, sim.catalogue(), (other, number), 0).remove(0);
            Event::Compensating { undoes: other, requested }
        }
        35 => planner::substitute(state, sim.catalogue(), number),
        36 => {
            let age = jiff::SignedDuration::from_secs(dice.pick(90) as i64 - 10);
            let (result, run) = (Value::Null, state.run);
            let found = RecalledResult { result, say: None, whole: None, at: state.at - age, run };
            let found = (dice.pick(3) > 0).then(|| Box::new(found));
            Event::Adapted { change: Adaptation::Recalled { call: number, found } }
        }
        37 => {
            let found = InterpretedResult { result: Value::Null, say: None, whole: None };
            let found = (dice.pick(3) > 0).then(|| Box::new(found));
            Event::Adapted { change: Adaptation::Interpreted { call: number, found } }
        }
        _ => Event::RunCancelled { by: String::new() },
    }
}

/// Applies random events between the steps of a run.
fn attacked(world: World, dice: &mut Dice) -> Sim {
    let mut sim = Sim::new(world);
    let request = sim.queued();
    sim.record(request);
    while !sim.state.status.is_terminal() {
        for _ in 0..dice.pick(6) {
            let event = any_event(dice, &sim);
            let before = sim.state.clone();
            if sim.state.apply(&event).is_err() {
                assert_eq!(sim.state, before, "{event:?} was refused and changed something");
                assert!(sim.state.check(&event).is_err());
                continue;
            }
            // It was legal: it is recorded normally, and the rules must hold for it too.
            sim.state = before;
            sim.record(event);
            if sim.state.status.is_terminal() {
                return sim;
            }
        }
        sim.turn();
    }
    sim
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unexpected_event_is_refused_or_breaks_no_rule(
        world in worlds(), attack in worlds()
    ) {
        let mut dice = Dice::new(&attack);
        let sim = attacked(world, &mut dice);
        sim.watch.at_end(&sim.state);
        sim.consent.at_end(&sim.state);
    }
}

/// The cases that a run covered, by name.
fn covered_cases(sim: &Sim) -> BTreeSet<&'static str> {
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
                    "confirm.required" => "a write to be confirmed",
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
            Event::Consultation { chosen: Some(chosen), .. } => {
                found.insert(match chosen.id() {
                    "retry" => "a chosen retry",
                    "skip" => "a chosen omission",
                    "ask_user" => "a chosen question",
                    "patch" => "a chosen patch",
                    "mapping" => "a chosen mapping",
                    "alternative_1" | "alternative_2" => "a chosen alternative of several",
                    _ => "a chosen end",
                });
            }
            Event::Voted { voter: 2.., .. } => {
                found.insert("a vote of several models");
            }
            Event::Consultation {
                subject: ConsultationSubject::Adaptation { .. },
                chosen: None,
                error: None,
                ..
            } => {
                found.insert("a plan left as it is");
            }
            Event::Unexpected { subject: UnexpectedSubject::Run { .. }, .. } => {
                found.insert("no progress");
            }
            Event::Replanned(PlanMade { patch: Some(patch), approval, .. }) => {
                let patched = [
                    (!patch.removed.is_empty(), "a step removed"),
                    (!patch.replaced.is_empty(), "a step replaced"),
                    (!patch.dependants.is_empty(), "a step that follows a replacement"),
                    (approval.is_some(), "a patch to be approved"),
                ];
                found.extend(patched.into_iter().filter(|(is, _)| *is).map(|(_, name)| name));
            }
            Event::Replanned(made) if made.version == 4 => {
                found.insert("the last plan allowed");
            }
            _ => {}
        }
    }
    found.extend(covered_approval_cases(sim));
    if sim.state.steps.values().any(|step| sim.state.is_made_good(step)) {
        found.insert("a failed step made good");
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

/// The cases that involve people.
fn covered_approval_cases(sim: &Sim) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut waiting = false;
    for (at, event) in sim.events.iter().enumerate() {
        let reopened = matches!(at.checked_sub(1).map(|at| &sim.events[at]), Some(Event::RunReopened { .. }));
        match event {
            Event::Decided { matter, decision, .. } => {
                found.insert(match (matter, decision) {
                    (ApprovalSubject::Plan { .. }, Decision::Yes { hold: true }) => "a plan held",
                    (ApprovalSubject::Plan { version }, Decision::No) if sim.state.is_patch(*version) => {
                        "a patch refused"
                    }
                    (ApprovalSubject::Plan { version: 1 }, Decision::No) => "a plan refused",
                    (ApprovalSubject::Plan { .. }, Decision::No) => "a later plan refused",
                    (ApprovalSubject::Call { .. }, Decision::No) => "a call refused",
                    (ApprovalSubject::Outcome { .. }, Decision::Again) if reopened => {
                        "a write tried again after the end"
                    }
                    (ApprovalSubject::Outcome { .. }, Decision::Done | Decision::NotDone) => {
                        "somebody's last word on a write"
                    }
                    _ => "another decision",
                });
            }
            Event::RunResumed { .. } if waiting => {
                found.insert("a crash while it waits");
            }
            _ => {}
        }
        waiting =
            matches!(event, Event::RunWaiting {}) || (waiting && matches!(event, Event::RunResumed { .. }));
    }
    let asked = |call: u32| sim.state.approvals.values().any(|a| a.matter == ApprovalSubject::Call { call });
    for (number, call) in &sim.state.calls {
        let began = call.attempts > 0;
        if began && call.requested.approval.is_some() && !asked(*number) {
            found.insert("a call that shares a yes");
        }
        let edited = sim.state.approvals.values().any(|a| {
            a.matter == (ApprovalSubject::Call { call: *number })
                && matches!(a.decided, Some((Decision::Edited { .. }, _)))
        });
        if began && edited {
            found.insert("an edited call begun");
        }
        let told = call.requested.effect == Effect::Write && !began;
        if told && matches!(call.status, CallStatus::Done { outcome: Outcome::Ok { .. } }) {
            found.insert("a dry run that would write");
        }
        let redone = |(other, later): (&u32, &crate::run::CallState)| {
            other > number && later.requested.key == call.requested.key && later.attempts > 0
        };
        if call.undone_by.is_some() && sim.state.calls.iter().any(redone) {
            found.insert("a write undone and done again");
        }
    }
    found
}

/// What a model decides; rare.
const OF_MODELS: &[&str] = &[
    "unexpected",
    "backed_off",
    "timer_fired",
    "consultation",
    "a chosen retry",
    "a chosen omission",
    "a chosen question",
    "a chosen end",
    "a chosen patch",
    "a chosen mapping",
    "a chosen alternative of several",
    "a vote of several models",
    "adapted",
    "a plan left as it is",
    "a step removed",
    "a step replaced",
    "a step that follows a replacement",
    "a patch to be approved",
    "a patch refused",
    "no progress",
];

/// What people are asked about single calls, and what follows; rare.
const OF_CALLS: &[&str] = &[
    "a call refused",
    "an edited call begun",
    "a call that shares a yes",
    "a write undone and done again",
    "a read again after a write",
];

/// All else that generated worlds have to come to.
const OTHERS: &[&str] = &[
    "run_queued",
    "run_started",
    "run_resumed",
    "planning",
    "model_asked",
    "model_replied",
    "model_failed",
    "planning_failed",
    "reply_rejected",
    "scenes_ranked",
    "plan_created",
    "replanned",
    "step_started",
    "scene_replied",
    "tool_started",
    "tool_completed",
    "tool_skipped",
    "a failed step made good",
    "prepared",
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
    "a write to be confirmed",
    "an empty end",
    "too many rounds",
    "a blocked step",
    "a question",
    "a failed step",
    "a deadline after a write",
    "a cancel after a write",
    "the last plan allowed",
    "needs input",
    "partial",
    "plan_edited",
    "modification_asked",
    "approval_required",
    "decided",
    "approval_lapsed",
    "released",
    "run_waiting",
    "plan_refused",
    "run_reopened",
    "compensating",
    "a plan held",
    "a plan refused",
    "a later plan refused",
    "a write tried again after the end",
    "a dry run that would write",
    "a crash while it waits",
    "somebody's last word on a write",
];

#[test]
fn generated_worlds_cover_every_case() {
    let mut runner = TestRunner::deterministic();
    let wanted = [OF_MODELS, OF_CALLS, OTHERS].concat();
    let mut missing: BTreeMap<&str, u32> = wanted.into_iter().map(|case| (case, 1)).collect();
    // While something rare is missing, most worlds have much of it.
    for round in 0..5_000 {
        let mut world = worlds().new_tree(&mut runner).unwrap().current();
        let is_missing = |cases: &[&str]| cases.iter().any(|case| missing.contains_key(case));
        let (models, calls) = (is_missing(OF_MODELS), is_missing(OF_CALLS));
        let settings = &mut world.settings;
        if models && round % 4 != 0 && (round % 2 == 1 || !calls) {
            let mode = if round % 4 == 3 { ExecutionMode::Adaptive } else { ExecutionMode::Creative };
            (settings.level, settings.mode) = (Some(ExecutionLevel::Intelligent), Some(mode));
            (settings.rules, settings.max_calls) = (RULES_REVISION, settings.max_calls.max(4));
            (settings.consultations.max_per_run, settings.consultations.max_patches) = (6, 2);
            (world.trouble, world.plan_only, world.dry_run) = (8, false, false);
        } else if calls && round % 4 != 0 {
            (settings.approval.plans, settings.approval.calls) =
                (ApprovalScope::Never, ApprovalScope::Writes);
            (settings.max_parallel_steps, settings.max_calls) = (4, 8);
            (world.faults, world.stops, world.plan_only, world.dry_run) = (0, 0, false, false);
        }
        for case in covered_cases(&Sim::run(world)) {
            if let Some(times) = missing.get_mut(case) {
                *times = times.saturating_sub(1);
            }
        }
        missing.retain(|_, times| *times > 0);
        if missing.is_empty() {
            return;
        }
    }
    panic!("missing, so many times: {missing:?}");
}
