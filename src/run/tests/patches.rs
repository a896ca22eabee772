//! Patches: what one may change, what stays as it was, and that only its own steps wait for its approval.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::generators::needed;
use super::script::{LOOK, Script};
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::plan::{Plan, Step, StepStatus};
use crate::run::{
    Decision, Effect, Event, Fault, Outcome, PlanCause, PlanMade, PlanMaker, PlanPatch, RULES_REVISION,
    Repeat, RunState, RunStatus, Settings,
};

pub fn creative() -> Settings {
    Settings {
        rules: RULES_REVISION,
        level: Some(ExecutionLevel::Intelligent),
        mode: Some(ExecutionMode::Creative),
        ..Settings::default()
    }
}

pub fn step(number: u32, purpose: &str, depends: &[u32]) -> Step {
    serde_json::from_value(json!({"step_number": number, "scene_name": "B", "purpose": purpose,
        "depends_on_step": depends}))
    .unwrap()
}

/// A patch with these new steps.
fn patched(state: &RunState, patch: PlanPatch, steps: &[Step]) -> PlanMade {
    let plan = Plan { needs_execution: true, steps: steps.to_vec(), ..Plan::default() };
    let version = state.plans.len() as u32 + 1;
    let made = PlanMade::new(version, PlanCause::Adaptation, PlanMaker::Deterministic, plan);
    PlanMade { patch: Some(patch), ..made }
}

fn replacing(old: u32, new: u32) -> PlanPatch {
    PlanPatch { consultation: 1, replaced: [(old, new)].into(), ..PlanPatch::default() }
}

/// Puts a patch in force without the question that leads to it.
fn put_in_force(run: &mut Script, made: PlanMade) {
    let at = run.state.at;
    run.state.apply_checked(&Event::Replanned(made), at);
    run.settle();
}

/// A plan of which step 1 failed and step 3 runs: 2 depends on 1, 4 on 3.
fn after_a_failure(settings: Settings) -> Script {
    let mut run = Script::new(Settings { max_parallel_steps: 8, ..settings });
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[1]), ("A", &[]), ("A", &[3])]);
    run.state.steps.get_mut(&1).unwrap().status = StepStatus::Failed;
    run.state.steps.get_mut(&1).unwrap().error = Some(Fault::new("http.status", "503"));
    // Nobody else is asked about it.
    run.state.steps.get_mut(&1).unwrap().noted = true;
    run
}

#[test]
fn replacement_takes_the_place_of_a_failed_step_and_the_rest_continues() {
    let mut run = after_a_failure(creative());
    let patch = PlanPatch { dependants: vec![2], ..replacing(1, 5) };
    let made = patched(&run.state, patch, &[step(5, "elsewhere", &[])]);
    assert_eq!(run.state.patch_problems(1, made.patch.as_ref().unwrap(), &made.plan), []);
    put_in_force(&mut run, made);
    assert_eq!(run.state.steps[&1].replaced_by, Some(5));
    assert_eq!(run.state.steps[&2].step.depends_on_step.iter().collect::<Vec<_>>(), [5]);
    assert_eq!((run.state.steps[&2].version, run.state.steps[&5].version), (1, 2));
    assert_eq!(run.state.steps[&5].status, StepStatus::Running);
    assert_eq!(run.state.steps[&3].status, StepStatus::Running, "it goes on");
    for number in [5, 3] {
        run.reply_with_calls(number, &[("look", Effect::Read, Repeat::Never, number)]);
        let call = *run.state.steps[&number].calls.last().unwrap();
        run.done(call, json!("found"));
        run.reply_with_end(number, "found it", false);
    }
    assert!(run.state.is_made_good(&run.state.steps[&1]));
    for number in [2, 4] {
        run.reply_with_end(number, "said", false);
    }
    run.check(None, true, Some("here it is"));
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn only_the_steps_of_a_patch_wait_for_its_approval_and_are_cancelled_by_a_refusal() {
    let mut run = after_a_failure(creative());
    let patch = PlanPatch { dependants: vec![2], ..replacing(1, 5) };
    let made = patched(&run.state, patch, &[step(5, "elsewhere", &[])]);
    put_in_force(&mut run, PlanMade { approval: Some(needed("patch")), ..made });
    let approval = *run.state.approvals.keys().next().unwrap();
    let matter = run.state.approvals[&approval].matter;
    let hold = Decision::Yes { hold: true };
    let decided =
        |decision| Event::Decided { approval, matter, decision, by: "edie".into(), note: None, word: None };
    assert!(run.state.check(&decided(hold)).is_err(), "a patch is not held");
    let changed = Event::ModificationAsked { version: 3, by: "edie".into(), words: "two".into() };
    assert!(run.state.check(&changed).is_err(), "nor changed");
    run.reply_with_end(3, "said", false);
    assert_eq!(run.state.steps[&5].status, StepStatus::Pending, "it waits");
    assert_eq!(run.state.steps[&4].status, StepStatus::Running, "the rest goes on");
    run.decide(approval, Decision::No, "edie");
    assert_eq!(run.state.steps[&5].status, StepStatus::Cancelled);
    assert_eq!(run.state.steps[&2].status, StepStatus::Blocked, "what it depended on failed");
    assert_eq!(run.state.steps[&1].replaced_by, None);
    assert!(!run.state.closing && run.state.cancel.is_none());
    run.reply_with_end(4, "said", false);
    assert_ne!(run.state.status, RunStatus::Cancelled);
}

#[test]
fn patch_of_which_a_step_is_blocked_still_waits_for_its_approval() {
    let mut run = after_a_failure(creative());
    let made = patched(&run.state, replacing(1, 5), &[step(5, "elsewhere", &[]), step(6, "more", &[3])]);
    put_in_force(&mut run, PlanMade { approval: Some(needed("patch")), ..made });
    run.reply_with_calls(3, &[("book", Effect::Write, Repeat::Never, 1)]);
    run.outcome(1, Outcome::Refused { error: Fault::new("book.full", "full") });
    run.state.steps.get_mut(&3).unwrap().status = StepStatus::Failed;
    run.state.due = crate::run::state::DueActions::default();
    run.settle();
    assert_eq!(
        (run.state.steps[&6].status, run.state.steps[&5].status),
        (StepStatus::Blocked, StepStatus::Pending)
    );
    assert!(!run.state.has_begun());
}

#[test]
fn granted_patch_runs_beside_the_plan_that_it_continues() {
    let mut run = after_a_failure(creative());
    let made = patched(&run.state, replacing(1, 5), &[step(5, "elsewhere", &[])]);
    put_in_force(&mut run, PlanMade { approval: Some(needed("patch")), ..made });
    run.reply_with_end(3, "said", false);
    let approval = *run.state.approvals.keys().next().unwrap();
    run.decide(approval, Decision::Yes { hold: false }, "edie");
    assert_eq!(run.state.steps[&5].status, StepStatus::Running);
    assert_eq!(run.state.steps[&2].status, StepStatus::Blocked, "it was not made to follow the new step");
}

#[test]
fn preflight_that_refuses_a_patch_ends_only_its_steps() {
    let mut run = after_a_failure(creative());
    let made = patched(&run.state, replacing(1, 5), &[step(5, "elsewhere", &[])]);
    let at = run.state.at;
    run.state.apply_checked(&Event::Replanned(made), at);
    let problems = vec![crate::plan::PlanProblem::new("preflight.scene", "a scene is not loaded")];
    let refused = Event::PlanRefused { version: 2, problems, retry_after_ms: None };
    run.state.check(&refused).unwrap();
    run.record(refused);
    run.settle();
    assert_eq!(run.state.steps[&5].status, StepStatus::Cancelled);
    assert_eq!(run.state.steps[&3].status, StepStatus::Running);
    assert!(!run.state.closing);
}

#[test]
fn patch_changes_nothing_that_began_or_was_decided_by_a_person() {
    let mut run = after_a_failure(creative());
    let problem = |run: &Script, patch: PlanPatch, steps: &[Step]| {
        let made = patched(&run.state, patch, steps);
        let problems = run.state.patch_problems(1, made.patch.as_ref().unwrap(), &made.plan);
        problems.first().map(|problem| problem.code.clone())
    };
    let removed = |number: u32| PlanPatch { removed: vec![number], ..PlanPatch::default() };
    let new = [step(5, "elsewhere", &[])];
    for (patch, code) in [
        (removed(3), Some("plan.fixed")),
        (removed(1), Some("plan.fixed")),
        (removed(9), Some("plan.fixed")),
        (removed(4), None),
        (replacing(3, 5), Some("plan.fixed")),
        (replacing(4, 5), None),
        (replacing(1, 6), Some("plan.unknown_step")),
        (PlanPatch { dependants: vec![4], ..replacing(1, 5) }, Some("plan.fixed")),
        (PlanPatch { removed: vec![4], ..replacing(4, 5) }, Some("plan.fixed")),
    ] {
        assert_eq!(problem(&run, patch.clone(), &new).as_deref(), code, "{patch:?}");
    }
    assert_eq!(problem(&run, PlanPatch::default(), &[]).as_deref(), Some("plan.unchanged"));
    assert_eq!(problem(&run, replacing(1, 5), &[step(5, "x", &[2]), step(6, "y", &[5])]), None);
    let circle = PlanPatch { dependants: vec![2], ..replacing(1, 5) };
    assert_eq!(problem(&run, circle, &[step(5, "x", &[2])]).as_deref(), Some("plan.circular"));
    assert_eq!(problem(&run, replacing(1, 5), &[step(4, "x", &[])]).as_deref(), Some("plan.unknown_step"));
    assert_eq!(problem(&run, removed(4), &[step(2, "x", &[])]).as_deref(), Some("plan.used_number"));
    run.state.plans[0].by = Some("lucia".to_owned());
    run.state.plans[0].maker = PlanMaker::Person;
    assert_eq!(problem(&run, removed(4), &[]).as_deref(), Some("plan.fixed"), "a person wrote it");
}

#[test]
fn step_that_failed_and_plan_that_was_in_force_are_not_planned_again() {
    let mut run = Script::new(creative());
    run.plan(PlanMaker::Deterministic, &[("B", &[]), ("B", &[1])]);
    run.reply_with_calls(1, &[LOOK]);
    run.outcome(1, Outcome::Refused { error: Fault::new("look.none", "nothing") });
    run.state.steps.get_mut(&1).unwrap().status = StepStatus::Failed;
    let code = |run: &Script, about: u32, patch: PlanPatch, steps: &[Step]| {
        let plan = Plan { needs_execution: true, steps: steps.to_vec(), ..Plan::default() };
        run.state.patch_problems(about, &patch, &plan).first().map(|problem| problem.code.clone())
    };
    let again = step(3, "Something!", &[]);
    assert_eq!(code(&run, 1, replacing(1, 3), &[again]).as_deref(), Some("plan.repeated"));
    let other = PlanPatch { removed: vec![2], ..PlanPatch::default() };
    assert_eq!(code(&run, 1, other, &[step(3, "SOMETHING", &[])]).as_deref(), Some("plan.repeated"));
}

#[test]
fn patch_does_not_lead_back_to_a_plan_that_was_in_force() {
    let mut run = Script::new(Settings { max_parallel_steps: 1, ..creative() });
    run.plan(PlanMaker::Deterministic, &[("B", &[]), ("B", &[]), ("B", &[])]);
    run.state.steps.get_mut(&1).unwrap().step.purpose = "ask the library".to_owned();
    run.state.steps.get_mut(&3).unwrap().step.purpose = "ask the archive".to_owned();
    let instead = |old: u32, purpose: &str| {
        let patch = PlanPatch { consultation: 1, removed: vec![old], ..PlanPatch::default() };
        (patch, [step(old.max(3) + 1, purpose, &[])])
    };
    let code = |run: &Script, (patch, steps): (PlanPatch, [Step; 1])| {
        let plan = Plan { needs_execution: true, steps: steps.to_vec(), ..Plan::default() };
        run.state.patch_problems(1, &patch, &plan).first().map(|problem| problem.code.clone())
    };
    assert_eq!(
        code(&run, instead(3, "The archive: ask")).as_deref(),
        Some("plan.circle"),
        "no change at all"
    );
    let (patch, steps) = instead(3, "ask the museum");
    let made = patched(&run.state, patch, &steps);
    put_in_force(&mut run, made);
    assert_eq!(code(&run, instead(4, "Ask the ARCHIVE")).as_deref(), Some("plan.circle"));
    assert_eq!(code(&run, instead(4, "ask the theatre")), None);
}

#[test]
fn removed_numbers_are_not_used_again() {
    let mut run = after_a_failure(creative());
    let patch = PlanPatch { consultation: 1, removed: vec![4], ..PlanPatch::default() };
    let made = patched(&run.state, patch, &[]);
    put_in_force(&mut run, made);
    assert!(!run.state.steps.contains_key(&4));
    assert_eq!((run.state.last_step(), run.state.last_fixed_step(true)), (4, 4));
    assert!(run.state.plan_of_round().is_some_and(|plan| plan.steps.len() == 3));
    assert_eq!(run.state.first_version_in_force(), 1);
}

#[test]
fn reopened_run_restarts_the_replacement_and_not_what_it_replaced() {
    let mut run = after_a_failure(creative());
    let made = patched(&run.state, replacing(1, 5), &[step(5, "elsewhere", &[])]);
    put_in_force(&mut run, made);
    run.cancel(true);
    assert!(run.state.status.is_terminal());
    let status = run.state.status;
    run.state.status = RunStatus::Partial;
    run.reopen();
    assert_eq!(run.state.steps[&1].status, StepStatus::Failed, "{status:?}");
    assert_eq!(run.state.steps[&5].status, StepStatus::Running);
}

/// Any statuses of the steps of a plan, and any patch of it.
#[derive(Debug, Clone)]
struct Case {
    depends: Vec<[bool; 6]>,
    statuses: Vec<u8>,
    approved: bool,
    removed: BTreeSet<u32>,
    replaced: BTreeMap<u32, u32>,
    dependants: BTreeSet<u32>,
    new: Vec<BTreeSet<u32>>,
    about: u32,
}

fn cases() -> impl Strategy<Value = Case> {
    let number = 1..8u32;
    (
        prop::collection::vec(any::<[bool; 6]>(), 1..6),
        prop::collection::vec(0..5u8, 6),
        any::<bool>(),
        prop::collection::btree_set(number.clone(), 0..3),
        prop::collection::btree_map(number.clone(), 6..9u32, 0..3),
        prop::collection::btree_set(number.clone(), 0..3),
        prop::collection::vec(prop::collection::btree_set(1..9u32, 0..3), 0..3),
        number,
    )
        .prop_map(|(depends, statuses, approved, removed, replaced, dependants, new, about)| Case {
            depends,
            statuses,
            approved,
            removed,
            replaced,
            dependants,
            new,
            about,
        })
}

fn state_of(case: &Case) -> RunState {
    let mut run = Script::new(creative());
    let before: Vec<Vec<u32>> = case
        .depends
        .iter()
        .enumerate()
        .map(|(at, row)| (0..at).filter(|n| row[*n]).map(|n| n as u32 + 1).collect())
        .collect();
    let steps: Vec<(&str, &[u32])> = before.iter().map(|depends| ("A", depends.as_slice())).collect();
    run.asks_plans = case.approved;
    run.plan(PlanMaker::Deterministic, &steps);
    if case.approved {
        run.decide(1, Decision::Yes { hold: false }, "edie");
    }
    for (step, status) in run.state.steps.values_mut().zip(&case.statuses) {
        step.status = [
            StepStatus::Pending,
            StepStatus::Pending,
            StepStatus::Running,
            StepStatus::Failed,
            StepStatus::Completed,
        ][usize::from(*status)];
        // Each does something of its own.
        step.step.purpose = format!("task {}", step.step.step_number);
    }
    run.state.plan_fingerprints.clear();
    run.state.due = crate::run::state::DueActions::default();
    run.state
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_patch_that_is_let_through_leaves_what_is_fixed_as_it_was(case in cases()) {
        let before = state_of(&case);
        let first = 6..;
        let new: Vec<Step> = case.new.iter().zip(first).map(|(depends, number)| {
            step(number, &format!("new task {number}"), &depends.iter().copied().collect::<Vec<_>>())
        }).collect();
        let patch = PlanPatch {
            consultation: 1,
            removed: case.removed.iter().copied().collect(),
            replaced: case.replaced.clone(),
            dependants: case.dependants.iter().copied().collect(),
        };
        let made = patched(&before, patch.clone(), &new);
        if !before.patch_problems(case.about, &patch, &made.plan).is_empty() {
            return Ok(());
        }
        let mut after = before.clone();
        after.apply_checked(&Event::Replanned(made), before.at);
        let numbers: BTreeSet<u32> = new.iter().map(|step| step.step_number).collect();
        for (number, old) in &before.steps {
            let free = old.is_untouched() && !case.approved;
            match after.steps.get(number) {
                None => prop_assert!(free && (case.removed.contains(number) || case.replaced.contains_key(number))),
                Some(kept) => {
                    let replaced = case.replaced.contains_key(number);
                    prop_assert!(!replaced || *number == case.about, "{number} was replaced");
                    prop_assert_eq!(replaced, kept.replaced_by.is_some());
                    let repointed = kept.step.depends_on_step != old.step.depends_on_step;
                    prop_assert!(!repointed || (free && case.dependants.contains(number)));
                    prop_assert_eq!((kept.version, kept.step.purpose.as_str()), (1, old.step.purpose.as_str()));
                    let status = (old.status, kept.status);
                    prop_assert!(status.0 == status.1 || status == (StepStatus::Completed, StepStatus::Failed));
                }
            }
        }
        for number in &numbers {
            prop_assert!(!before.steps.contains_key(number) && after.steps[number].version == 2);
        }
        let steps: Vec<Step> = after.steps.values().map(|step| step.step.clone()).collect();
        prop_assert_eq!(crate::plan::find_cycles(&steps), vec![]);
        let pending = after.steps.values().filter(|step| step.status == StepStatus::Pending).count();
        prop_assert!(pending <= 20);
        // A refusal takes back what the patch changed, but not what it took out.
        let mut refused = after.clone();
        refused.drop_patch(2, &Fault::new("approval.refused", "no"));
        for (number, step) in &refused.steps {
            let (was, own) = (before.steps.get(number), numbers.contains(number));
            prop_assert_eq!(own, step.status == StepStatus::Cancelled);
            prop_assert_eq!(step.replaced_by, None);
            let gone = |n: u32| !refused.steps.contains_key(&n) || numbers.contains(&n);
            if let Some(was) = was {
                let same = step.step.depends_on_step == was.step.depends_on_step;
                prop_assert!(same || step.step.depends_on_step.iter().any(gone));
            }
        }
    }
}
