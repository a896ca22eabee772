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

pub(crate) use world::Dice;
