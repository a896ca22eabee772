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
        /// The ordinal of that call.
        first: u32,
    },
    /// A substitute whose tool, or an equal call, is failing: it is not made.
    Failing {
        /// The failing call's ordinal.
        first: u32,
    },
    /// Another write by the same tool has an unknown outcome: the tool writes nothing more in this run
    /// until a person has resolved it.
    Held {
        /// The ordinal of that call.
        first: u32,
    },
}

/// Decides about the call with ordinal `call`. A call only waits for a lower ordinal, for a call that moves by itself (in
/// flight, backing off, or about to be repeated), or for a substitute. A substitute only waits for a call in flight, or
/// for a substitute of a smaller place. So no two calls wait for each other.
pub fn decide(state: &RunState, call: u32) -> GuardDecision {
    let Some(this) = state.calls.get(&call) else {
        return GuardDecision::Run;
    };
    // Its result may change at any moment.
    if this.requested.volatile {
        return GuardDecision::Run;
    }
    // The substitute's outcome counts for a call. An undone write may be repeated.
    let spoken_for = |earlier: &'_ CallState| {
        state.effective_substitute(earlier).and_then(|by| state.calls.get(&state.resolved(by)))
    };
    let counts = |(other, earlier): &(u32, &CallState)| {
        *other != call && !state.is_undone(spoken_for(earlier).unwrap_or(earlier))
    };
    let is_substitute = this.replaces.is_some();
    for (other, earlier) in same_calls(state, this).filter(counts) {
        let settled = spoken_for(earlier).unwrap_or(earlier);
        match &settled.status {
            CallStatus::InFlight { .. } => return GuardDecision::Wait,
            CallStatus::Again { .. } | CallStatus::Failing { .. } | CallStatus::BackedOff { .. } => {
                return if is_substitute {
                    GuardDecision::Failing { first: other }
                } else {
                    GuardDecision::Wait
                };
            }
            CallStatus::Requested if earlier.requested.problem.is_none() => {
                let first = match (is_substitute, earlier.replaces.is_some()) {
                    (true, true) => state.place(other) < state.place(call),
                    (true, false) => false,
                    (false, true) => true,
                    (false, false) => other < call,
                };
                if first {
                    return GuardDecision::Wait;
                }
            }
            // The user is asked to confirm this repetition.
            CallStatus::Done { outcome: Outcome::Ok { .. } } if state.is_repeat(this, earlier) => {}
            CallStatus::Done { outcome: Outcome::Ok { .. } } if !earlier.stale && !settled.stale => {
                return GuardDecision::Skip { first: other };
            }
            CallStatus::Done { outcome: Outcome::Unknown { .. } } => {
                return GuardDecision::Skip { first: other };
            }
            _ => {}
        }
    }
    match this.requested.effect {
        Effect::Read => GuardDecision::Run,
        Effect::Write => decide_by_other_writes(state, this, counts),
    }
}

/// Decides about a write that no equal call prevents, by the writes of the same tool with other arguments; `counts` says
/// which calls matter.
fn decide_by_other_writes(
    state: &RunState,
    this: &CallState,
    counts: impl Fn(&(u32, &CallState)) -> bool,
) -> GuardDecision {
    let same_tool = |earlier: &CallState| is_same_tool(this, earlier) && !is_same_call(state, this, earlier);
    // A call that failed may still be repeated successfully, so nothing is held yet.
    let mut open = state.calls.open().filter(&counts).filter(|_| state.adapts());
    match open.find(|(_, earlier)| earlier.uncertain && same_tool(earlier)) {
        Some((first, _)) if this.replaces.is_some() => return GuardDecision::Failing { first },
        Some(_) => return GuardDecision::Wait,
        None => {}
    }
    let held = state.calls.unknown_writes().filter(&counts).filter(|(_, earlier)| same_tool(earlier)).last();
    match held {
        Some((first, _)) => GuardDecision::Held { first },
        None => GuardDecision::Run,
    }
}

/// The calls that are the same as `this`, itself included, by ordinal.
fn same_calls<'a>(
    state: &'a RunState,
    this: &'a CallState,
) -> Box<dyn Iterator<Item = (u32, &'a CallState)> + 'a> {
    let same = move |(_, other): &(u32, &CallState)| is_same_call(state, this, other);
    match state.settings().duplicates {
        Duplicates::Arguments => Box::new(state.calls.with_key(&this.requested.key).filter(same)),
        Duplicates::SceneTool if this.replaces.is_some() => {
            Box::new(state.calls.with_key(&this.requested.key).filter(same))
        }
        Duplicates::SceneTool => Box::new(state.calls.iter().map(|(n, call)| (*n, call)).filter(same)),
    }
}

fn is_same_call(state: &RunState, a: &CallState, b: &CallState) -> bool {
    // A substitute never shares the outcome of a call with other arguments.
    let by_arguments =
        state.settings().duplicates == Duplicates::Arguments || a.replaces.is_some() || b.replaces.is_some();
    match by_arguments {
        true => a.requested.key == b.requested.key && a.requested.occurrence == b.requested.occurrence,
        false => is_same_tool(a, b),
    }
}

fn is_same_tool(a: &CallState, b: &CallState) -> bool {
    a.scene == b.scene && a.requested.tool == b.requested.tool
}

/// A finished write may change what reads return, so earlier read outcomes are no longer shared. This also
/// holds for a write with an unknown outcome. Before revision 1 of the rules, only reads of the same scene
/// are affected.
pub(super) fn mark_reads_stale(state: &mut RunState, scene: &str) {
    let everywhere = state.settings().has_rules(1);
    state.calls.mark_stale(|call| {
        let seen = !matches!(call.status, CallStatus::Requested);
        seen && (everywhere || call.scene == scene) && call.requested.effect == Effect::Read
    });
}
