//! Properties of runs, tested in generated worlds: models that reply anything, tools with any outcome,
//! crashing processes, people who change their minds.

mod approvers;
mod attacks;
mod chaos;
mod checker;
mod consent;
mod consultations;
mod controlled;
mod decisions;
mod driver_rules;
mod failures;
mod flow_world;
mod flows;
mod generators;
mod named;
mod patches;
mod programs;
mod properties;
mod recall;
mod restored;
mod script;
mod sim;
mod state_view;
mod substitutes;
mod world;

pub(crate) use world::{Dice, worlds};

use proptest::prelude::ProptestConfig;

use crate::run::{Event, Fault, RunState, RunStatus};

/// `PROPTEST_CASES` overrides the number of cases.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let more = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: more.unwrap_or(cases), failure_persistence: None, ..ProptestConfig::default() }
}

/// The ends of a run of this world with the states that they came in, and after each `every`th of its events ends that mostly
/// are not valid there.
pub(crate) fn ends(world: world::World, every: usize) -> Vec<(RunState, Event)> {
    let mut state = sim::new_run();
    let mut ends = Vec::new();
    for (at, event) in sim::Sim::run(world).events.iter().enumerate() {
        if event.is_terminal() {
            ends.push((state.clone(), event.clone()));
        } else if at.is_multiple_of(every) {
            let completed = Event::RunCompleted { status: RunStatus::Partial };
            let failed = Event::RunFailed { error: Fault::new("test.end", "the run was ended") };
            ends.extend([completed, failed].map(|end| (state.clone(), end)));
        }
        state.apply_checked(event, state.at);
    }
    ends
}
