//! The origin of an event: from outside, or a decision that the current code can make again.

use crate::run::{CallStatus, Event, Origin, RunState};

/// Fault codes of ends that the driver forces and the state machine does not decide.
const DRIVER_FAULTS: [&str; 3] = ["run.too_many_events", "run.illegal_event", "run.unrecoverable"];

/// The origin of `event`, which follows `state`. What the event does not contain is decided here, so the
/// result is [`Origin::Outside`], [`Origin::Start`], [`Origin::Question`], [`Origin::Call`] or
/// [`Origin::Machine`].
pub(super) fn origin<'a>(event: &'a Event, state: &RunState) -> Origin<'a> {
    let outside = Origin::Outside { awaited: false };
    match event.facts().origin {
        // The cost of an interrupted question.
        Origin::QuestionFailure { call } if state.is_cut_off(call) => outside,
        Origin::QuestionFailure { .. } => Origin::Outside { awaited: true },
        Origin::CallEnd { call } => match state.calls.get(&call).map(|call| &call.status) {
            // It was never started, so the state machine refused it.
            Some(CallStatus::Requested) => Origin::Machine,
            _ => Origin::Outside { awaited: true },
        },
        // The driver could not continue, so the outcome of the write in flight will never be known.
        Origin::OutcomeQuestion { call } if is_in_progress(state, call) => outside,
        Origin::RunFailure { code } if DRIVER_FAULTS.contains(&code) => outside,
        Origin::OutcomeQuestion { .. } | Origin::RunFailure { .. } => Origin::Machine,
        decided @ (Origin::Outside { .. }
        | Origin::Start
        | Origin::Question { .. }
        | Origin::Call { .. }
        | Origin::Machine) => decided,
    }
}

/// Whether a call is in flight or about to be repeated.
fn is_in_progress(state: &RunState, call: u32) -> bool {
    let status = state.calls.get(&call).map(|call| &call.status);
    matches!(
        status,
        Some(
            CallStatus::InFlight { .. }
                | CallStatus::Again { .. }
                | CallStatus::Failing { .. }
                | CallStatus::BackedOff { .. }
        )
    )
}
