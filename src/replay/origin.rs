//! The origin of an event: external, or a decision that the current code can make again.

use crate::run::{ApprovalSubject, CallStatus, Event, RunState, Subject};

/// Fault codes of ends that the driver forces and the state machine does not decide.
const DRIVER_FAULTS: [&str; 3] = ["run.too_many_events", "run.illegal_event", "run.unrecoverable"];

/// The origin of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin<'a> {
    /// External: taken as recorded.
    Outside {
        /// Whether the run was waiting for it, so that nothing else was due.
        awaited: bool,
    },
    /// The start of the run; what it freezes is taken as recorded.
    Start,
    /// A question to a model.
    Question { subject: Subject, attempt: u32, fallback: bool, prompt_hash: &'a str },
    /// The start of a tool call.
    Call { call: u32, attempt: u32 },
    /// The state machine, or the reading of a reply.
    Machine,
}

/// The origin of `event`, which follows `state`. Every new event has to be classified here.
pub(super) fn origin<'a>(event: &'a Event, state: &RunState) -> Origin<'a> {
    match event {
        // A process may end at any time, whatever is due.
        Event::RunQueued(_) | Event::RunResumed { .. } | Event::RunPutAside { .. } => {
            Origin::Outside { awaited: false }
        }
        // The cost of an interrupted question.
        Event::ModelFailed { call, .. } if state.is_cut_off(*call) => Origin::Outside { awaited: false },
        Event::ModelReplied { .. } | Event::ModelFailed { .. } | Event::CancelRequested { .. } => {
            Origin::Outside { awaited: true }
        }
        // Commands of people, and changes of tools while the run waited.
        Event::Decided { .. }
        | Event::PlanEdited(_)
        | Event::ModificationAsked { .. }
        | Event::ApprovalLapsed { .. }
        | Event::Released { .. }
        | Event::PlanRefused { .. }
        | Event::RunReopened { .. } => Origin::Outside { awaited: false },
        Event::ToolCompleted { call, .. } => match state.calls.get(call).map(|call| &call.status) {
            // It was never started, so the state machine refused it.
            Some(CallStatus::Requested) => Origin::Machine,
            _ => Origin::Outside { awaited: true },
        },
        // The driver could not continue, so the outcome of the write in flight will never be known.
        Event::ApprovalRequired { matter: ApprovalSubject::Outcome { call }, .. }
            if is_in_progress(state, *call) =>
        {
            Origin::Outside { awaited: false }
        }
        Event::RunFailed { error } if DRIVER_FAULTS.contains(&error.code.as_str()) => {
            Origin::Outside { awaited: false }
        }
        Event::RunFailed { .. } => Origin::Machine,
        Event::RunStarted(_) => Origin::Start,
        Event::ModelAsked { subject, attempt, fallback, prompt_hash, .. } => {
            Origin::Question { subject: *subject, attempt: *attempt, fallback: *fallback, prompt_hash }
        }
        Event::ToolStarted { call, attempt } => Origin::Call { call: *call, attempt: *attempt },
        Event::Planning { .. }
        | Event::PlanningFailed { .. }
        | Event::ReplyRejected { .. }
        | Event::PlanCreated(_)
        | Event::Replanned(_)
        | Event::ApprovalRequired { .. }
        | Event::RunWaiting {}
        | Event::Compensating { .. }
        | Event::StepStarted { .. }
        | Event::SceneReplied { .. }
        | Event::Prepared { .. }
        | Event::ToolSkipped { .. }
        | Event::StepCompleted { .. }
        | Event::StepFailed { .. }
        | Event::Continuation { .. }
        | Event::Answered { .. }
        | Event::RunCompleted { .. }
        | Event::RunCancelled { .. } => Origin::Machine,
    }
}

/// Whether a call is in flight or about to be repeated.
fn is_in_progress(state: &RunState, call: u32) -> bool {
    let status = state.calls.get(&call).map(|call| &call.status);
    matches!(status, Some(CallStatus::InFlight { .. } | CallStatus::Again { .. }))
}
