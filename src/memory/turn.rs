//! From a run that ended to the turn that its conversation remembers.

use crate::plan::StepStatus;
use crate::run::{CallStatus, Outcome, Pending, RunState, SessionEvent, Turn, TurnCall};

/// The session event that tells of the run's end; `None` where there is nothing to remember: it has
/// not ended, or only a plan was wanted.
pub fn turn_ended(state: &RunState) -> Option<SessionEvent> {
    if !state.status.is_terminal() || state.is_plan_only() {
        return None;
    }
    let calls = state
        .calls
        .values()
        // A write of a dry run was told and never begun.
        .filter(|call| call.attempts > 0)
        .filter_map(|call| match &call.status {
            CallStatus::Done { outcome: Outcome::Ok { result, .. } } => Some(TurnCall {
                scene: call.scene.clone(),
                tool: call.requested.tool.clone(),
                arguments: call.requested.arguments.clone(),
                result: result.clone(),
            }),
            _ => None,
        })
        .collect();
    let answer = match (&state.answer, &state.error) {
        (Some(answer), _) => answer.text.clone(),
        (None, Some(error)) => error.message.clone(),
        (None, None) => String::new(),
    };
    let turn = Turn {
        run: Some(state.run),
        request: state.request().to_owned(),
        answer,
        status: state.status,
        calls,
    };
    // A run that was carried on after its end was remembered before, with what it had cost by then.
    let before = state.told.unwrap_or_default();
    Some(SessionEvent::TurnEnded { turn, pending: pending(state), usage: state.usage.since(before) })
}

/// The question that the run ended with, if a scene asked one.
fn pending(state: &RunState) -> Option<Pending> {
    state.steps.values().rev().find(|s| s.status == StepStatus::NeedsInput).and_then(|step| {
        Some(Pending {
            request: state.request().to_owned(),
            scene: step.step.scene_name.clone(),
            purpose: step.step.purpose.clone(),
            question: step.question.clone()?,
        })
    })
}
