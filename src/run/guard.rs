//! The duplicate guard: which calls may run, which wait, and which share the outcome of an equal call.

use super::event::{Effect, Outcome};
use super::settings::Duplicates;
use super::state::{CallState, CallStatus, RunState};

/// The guard's decision about a requested call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardDecision {
    /// No equal call prevents it.
    Run,
    /// An equal call is in flight or comes first: wait for its outcome.
    Wait,
    /// An equal call succeeded, or may have: share its outcome.
    Skip {
        /// That call's ordinal.
        first: u32,
    },
    /// Another write by the same tool has an unknown outcome: the tool writes nothing more in this run
    /// until a person has resolved it.
    Held {
        /// That call's ordinal.
        first: u32,
    },
}

/// Decides about the call with ordinal `call`. A call only waits for a lower ordinal or for a call in
/// flight, so no two calls wait for each other.
pub fn decide(state: &RunState, call: u32) -> GuardDecision {
    let Some(this) = state.calls.get(&call) else {
        return GuardDecision::Run;
    };
    // Its result may change at any moment.
    if this.requested.volatile {
        return GuardDecision::Run;
    }
    let mut held = None;
    for (&other, earlier) in &state.calls {
        // An undone write may be repeated.
        if other == call || state.is_undone(earlier) {
            continue;
        }
        if is_same_call(state, this, earlier) {
            match &earlier.status {
                CallStatus::InFlight { .. } | CallStatus::Again { .. } => return GuardDecision::Wait,
                CallStatus::Requested if other < call && earlier.requested.problem.is_none() => {
                    return GuardDecision::Wait;
                }
                // The user is asked to confirm the repetition.
                CallStatus::Done { outcome: Outcome::Ok { .. } } if state.is_repeat(this, earlier) => {}
                CallStatus::Done { outcome: Outcome::Ok { .. } } if !earlier.stale => {
                    return GuardDecision::Skip { first: other };
                }
                CallStatus::Done { outcome: Outcome::Unknown { .. } } => {
                    return GuardDecision::Skip { first: other };
                }
                _ => {}
            }
        } else if this.requested.effect == Effect::Write
            && this.scene == earlier.scene
            && this.requested.tool == earlier.requested.tool
            && matches!(earlier.status, CallStatus::Done { outcome: Outcome::Unknown { .. } })
        {
            held = Some(other);
        }
    }
    match held {
        Some(first) => GuardDecision::Held { first },
        None => GuardDecision::Run,
    }
}

fn is_same_call(state: &RunState, a: &CallState, b: &CallState) -> bool {
    match state.settings().duplicates {
        Duplicates::Arguments => {
            a.requested.key == b.requested.key && a.requested.occurrence == b.requested.occurrence
        }
        Duplicates::SceneTool => a.scene == b.scene && a.requested.tool == b.requested.tool,
    }
}

/// A finished write may change what reads return, so earlier read outcomes are no longer shared. This also
/// holds for a write with an unknown outcome. Before revision 1 of the rules, only reads of the same scene
/// are affected.
pub(super) fn mark_reads_stale(state: &mut RunState, scene: &str) {
    let everywhere = state.settings().has_rules(1);
    for call in state.calls.values_mut() {
        let seen = !matches!(call.status, CallStatus::Requested);
        if seen && (everywhere || call.scene == scene) && call.requested.effect == Effect::Read {
            call.stale = true;
        }
    }
}
