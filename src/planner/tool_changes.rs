//! The part of the catalogue that a run freezes, and the outcome of a call whose tool has changed between two attempts.

use std::collections::BTreeMap;

use super::approval::effective_definition;
use crate::adapt::ExecutionLevel;
use crate::run::{Effect, Fault, Outcome, RunState};
use crate::scene::Catalogue;

/// The levels of the scenes that declare one.
pub fn scene_levels(catalogue: &Catalogue) -> BTreeMap<String, ExecutionLevel> {
    catalogue.iter().filter_map(|scene| Some((scene.name.clone(), scene.level?))).collect()
}

/// The outcome of an automatic repetition of a write whose tool has changed since the call was requested: the call is
/// not made.
pub fn changed_tool(state: &RunState, catalogue: &Catalogue, number: u32) -> Option<Outcome> {
    let call = state.calls.get(&number).filter(|call| call.requested.effect == Effect::Write)?;
    let before = call.requested.definition.as_ref().filter(|_| call.attempts > 1)?;
    let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&call.requested.tool));
    if tool.is_some_and(|tool| effective_definition(tool) == *before) {
        return None;
    }
    let message = format!("{} has another definition than when it was first called", call.requested.tool);
    Some(Outcome::Failed { error: Fault::new("tool.changed", message) })
}
