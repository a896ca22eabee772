//! The duplicate guard: what may run, what waits, what shares the outcome of an equal call.

use super::event::{Effect, Outcome};
use super::settings::Duplicates;
use super::state::{CallState, CallStatus, RunState};

/// What the guard says of a call that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// No equal call stands in its way.
    Run,
    /// An equal call is in flight, or comes first: its outcome decides.
    Wait,
    /// An equal call was done, or may have been done: share its outcome.
    Skip {
        /// That call's ordinal.
        first: u32,
    },
    /// Another write by the same tool has an unknown outcome: nothing more is written with it in
    /// this run until a person has said what happened.
    Held {
        /// That call's ordinal.
        first: u32,
    },
}

/// Decides over the call with ordinal `call`. Waiting is always for a lower ordinal or for a call in
/// flight, so no two calls wait for each other.
pub fn decide(state: &RunState, call: u32) -> Decision {
    let Some(this) = state.calls.get(&call) else {
        return Decision::Run;
    };
    // What it finds may change at any moment.
    if this.requested.volatile {
        return Decision::Run;
    }
    let mut held = None;
    for (&other, earlier) in &state.calls {
        // What was undone may be done again.
        if other == call || state.is_undone(earlier) {
            continue;
        }
        if same(state, this, earlier) {
            match &earlier.status {
                CallStatus::InFlight { .. } | CallStatus::Again { .. } => return Decision::Wait,
                CallStatus::Requested if other < call && earlier.requested.problem.is_none() => {
                    return Decision::Wait;
                }
                // A person is asked whether it is to be done once more.
                CallStatus::Done { outcome: Outcome::Ok { .. } } if state.is_repeat(this, earlier) => {}
                CallStatus::Done { outcome: Outcome::Ok { .. } } if !earlier.stale => {
                    return Decision::Skip { first: other };
                }
                CallStatus::Done { outcome: Outcome::Unknown { .. } } => {
                    return Decision::Skip { first: other };
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
        Some(first) => Decision::Held { first },
        None => Decision::Run,
    }
}

fn same(state: &RunState, a: &CallState, b: &CallState) -> bool {
    match state.settings().duplicates {
        Duplicates::Arguments => {
            a.requested.key == b.requested.key && a.requested.occurrence == b.requested.occurrence
        }
        Duplicates::SceneTool => a.scene == b.scene && a.requested.tool == b.requested.tool,
    }
}

/// A finished write changes what reads would find: their outcomes are no longer shared. Before
/// revision 1 of the rules, only those of its own scene. Also after an unknown write: it may have been done.
pub(super) fn clear_reads(state: &mut RunState, scene: &str) {
    let everywhere = state.settings().has_rules(1);
    for call in state.calls.values_mut() {
        let seen = !matches!(call.status, CallStatus::Requested);
        if seen && (everywhere || call.scene == scene) && call.requested.effect == Effect::Read {
            call.stale = true;
        }
    }
}
