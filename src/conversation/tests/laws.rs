//! What holds for every order of arrivals and completions, every accident and every crash.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::sim::Sim;
use super::world::{calm_worlds, worlds};
use crate::run::SessionEvent;
use crate::run::tests::cases;

proptest! {
    #![proptest_config(cases(192))]

    // The laws themselves are asserted by `Watch` and `Sim`, at every side effect.
    #[test]
    fn laws_hold_in_every_history(world in worlds()) {
        Sim::run(world);
    }
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn without_faults_every_accepted_request_is_remembered_once(world in calm_worlds()) {
        let sim = Sim::run(world);
        let turns = sim.journal.stream.iter().filter_map(|(_, event)| match event {
            SessionEvent::TurnEnded { turn, .. } => turn.run,
            _ => None,
        });
        let turns: std::collections::BTreeSet<_> = turns.collect();
        let ended = sim.journal.runs.iter().filter(|(_, run)| matches!(run.condition, crate::conversation::RunCondition::Ended));
        for (run, _) in ended {
            prop_assert!(turns.contains(run));
        }
        prop_assert!(sim.watch.accepts >= sim.journal.runs.len());
    }
}

#[test]
fn histories_reach_what_the_laws_are_about() {
    let mut runner = TestRunner::deterministic();
    let (mut accepts, mut drives, mut decisions, mut sleeps, mut crashes) = (0, 0, 0, 0, 0);
    let (mut beside_summaries, mut hurries) = (0, 0);
    for _ in 0..128 {
        let world = worlds().new_tree(&mut runner).unwrap().current();
        let sim = Sim::run(world);
        accepts += sim.watch.accepts;
        drives += sim.watch.drives;
        decisions += sim.watch.decisions;
        sleeps += sim.watch.sleeps;
        beside_summaries += sim.watch.beside_summaries;
        hurries += sim.watch.hurries;
        crashes += sim.crashes;
    }
    let counts = [accepts, drives, decisions, sleeps, crashes as usize, beside_summaries];
    assert!(counts.iter().all(|count| *count > 32), "too little happens: {counts:?}");
    assert!(hurries > 0, "no request waits for a summary");
}
