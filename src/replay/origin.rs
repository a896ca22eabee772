//! Where an event comes from: from outside, or from a decision that today's code can be asked for.

use crate::run::{CallStatus, Event, Matter, RunState, Subject};

/// Ends that the machine does not decide: whoever carries the run out could not go on.
const FROM_THE_DRIVER: [&str; 3] = ["run.too_many_events", "run.illegal_event", "run.unrecoverable"];

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin<'a> {
    /// It is taken as it was.
    Outside {
        /// It was waited for: nothing else was due then.
        awaited: bool,
    },
    /// The run's turn; what it freezes is taken as it was.
    Start,
    /// A question to a model.
    Question { subject: Subject, attempt: u32, fallback: bool, prompt_hash: &'a str },
    /// The beginning of a tool call.
    Call { call: u32, attempt: u32 },
    /// The machine, or the reading of a reply.
    Machine,
}

/// Where `event` comes from, which follows `state`. A new kind of event has to be told here.
pub(super) fn origin<'a>(event: &'a Event, state: &RunState) -> Origin<'a> {
    match event {
        // A process may end at any moment, whatever is due.
        Event::RunQueued(_) | Event::RunResumed { .. } | Event::RunPutAside { .. } => {
            Origin::Outside { awaited: false }
        }
        // What a question that was cut off has cost.
        Event::ModelFailed { call, .. } if state.is_cut_off(*call) => Origin::Outside { awaited: false },
        Event::ModelReplied { .. } | Event::ModelFailed { .. } | Event::CancelRequested { .. } => {
            Origin::Outside { awaited: true }
        }
        // What people say, and what has changed around a run that waited for them.
        Event::Decided { .. }
        | Event::PlanEdited(_)
        | Event::ModificationAsked { .. }
        | Event::ApprovalLapsed { .. }
        | Event::Released { .. }
        | Event::PlanRefused { .. }
        | Event::RunReopened { .. } => Origin::Outside { awaited: false },
        Event::ToolCompleted { call, .. } => match state.calls.get(call).map(|call| &call.status) {
            // It was never begun, so it was refused without asking anybody.
            Some(CallStatus::Requested) => Origin::Machine,
            _ => Origin::Outside { awaited: true },
        },
        // Whoever carried the run out could not go on, and nobody will hear what becomes of the write.
        Event::ApprovalRequired { matter: Matter::Outcome { call }, .. }
            if state.calls.get(call).is_some_and(|call| {
                matches!(call.status, CallStatus::InFlight { .. } | CallStatus::Again { .. })
            }) =>
        {
            Origin::Outside { awaited: false }
        }
        Event::RunFailed { error } if FROM_THE_DRIVER.contains(&error.code.as_str()) => {
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
