//! Properties of every plan, every completion order and every failure.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::cases;
use super::sim::Sim;
use super::world::{calm_worlds, worlds};
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::plan::{PlanStatus, StepStatus};
use crate::run::{Adaptation, CallStatus, Effect, Event, Outcome, RULES_REVISION, RunStatus};

/// The properties hold of runs that call alternatives and use earlier results, because there are such runs.
#[test]
fn generated_worlds_replace_calls_and_recall_and_interpret_results() {
    let mut runner = TestRunner::deterministic();
    let mut seen = [0; 4];
    // Most runs end before anything of this happens.
    for round in 0..2_000 {
        let mut world = worlds().new_tree(&mut runner).unwrap().current();
        let level = (round % 2 == 1).then_some(ExecutionLevel::Intelligent);
        (world.settings.mode, world.settings.level) = (Some(ExecutionMode::Adaptive), level);
        (world.settings.rules, world.trouble) = (RULES_REVISION, 8);
        (world.plan_only, world.dry_run) = (false, false);
        let sim = Sim::run(world);
        for event in &sim.events {
            let Event::Adapted { change } = event else { continue };
            let at = match change {
                Adaptation::Substituted { requested, .. } if requested.effect == Effect::Read => 0,
                Adaptation::Substituted { .. } => 1,
                Adaptation::Recalled { .. } => 2,
                Adaptation::Interpreted { .. } => 3,
            };
            seen[at] += 1;
        }
        if seen.iter().all(|count| *count > 0) {
            break;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// One end, and the one that is true: nothing that was written is denied, and what nobody knows is not called completed.
fn assert_end(sim: &Sim) {
    let ends = sim.events.iter().filter(|e| {
        matches!(e, Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled { .. })
    });
    let reopened = sim.events.iter().filter(|e| matches!(e, Event::RunReopened { .. }));
    assert_eq!(ends.count(), 1 + reopened.count());
    assert_eq!(sim.state.seq as usize, sim.events.len());
    if sim.state.status == RunStatus::Completed && !sim.world.plan_only {
        assert_eq!(sim.plan_status(), PlanStatus::Completed);
    }
    let unsure = sim
        .state
        .calls
        .values()
        .any(|c| matches!(c.status, CallStatus::Done { outcome: Outcome::Unknown { .. } }));
    assert!(!(unsure && sim.state.status == RunStatus::Completed), "the outcome of a write is not known");
    let wrote = sim.state.steps.values().any(|s| sim.state.has_written(s));
    assert!(!(wrote && sim.state.status == RunStatus::Failed), "a run that wrote is reported as failed");
}

proptest! {
    #![proptest_config(cases(96))]

    // `RunChecker` and `Sim` assert the rules themselves, at every event of every run.
    #[test]
    fn every_run_keeps_all_rules_and_ends_once_also_if_resumed_after_any_event(
        world in worlds(), at in any::<prop::sample::Index>()
    ) {
        let whole = Sim::run(world.clone());
        assert_end(&whole);
        let mut sim = Sim::new(world);
        for event in &whole.events[..1 + at.index(whole.events.len() - 1)] {
            sim.record(event.clone());
        }
        if !sim.state.status.is_terminal() {
            sim.crash();
        }
        sim.finish();
        assert_end(&sim);
    }

    #[test]
    fn each_step_runs_once_after_its_dependencies_in_any_completion_order(world in calm_worlds()) {
        let sim = Sim::run(world);
        let started: Vec<u32> = sim.events.iter().filter_map(|e| match e {
            Event::StepStarted { step } => Some(*step),
            _ => None,
        }).collect();
        let blocked = sim.steps(StepStatus::Blocked);
        for number in sim.state.steps.keys() {
            let times = started.iter().filter(|s| *s == number).count();
            prop_assert_eq!(times, usize::from(!blocked.contains(number)), "step {}", number);
        }
    }
}
