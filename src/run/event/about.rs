//! What can be told of an event by itself: its name, who sees it, and what it makes of its run and its plan.

use serde::{Deserialize, Serialize};

use super::super::approval::{Decision, Matter};
use super::Event;
use crate::plan::PlanStatus;

/// Where a run stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Accepted; earlier requests of its conversation come first.
    Queued,
    /// At work.
    Running,
    /// Waits for a person's decision.
    Waiting,
    /// Ended with a question that only the user can answer.
    NeedsInput,
    /// Everything was done and answered.
    Completed,
    /// Some of it was done, and the answer says what was not.
    Partial,
    /// Nothing could be answered.
    Failed,
    /// Stopped by a person.
    Cancelled,
}

impl RunStatus {
    /// Whether nothing more happens to the run.
    pub fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting)
    }
}

impl Event {
    /// The name under which clients see the event on a stream; `None` for what stays inside.
    pub fn public_name(&self) -> Option<&'static str> {
        Some(match self {
            Event::RunStarted(_) => "run_started",
            Event::Planning { .. } => "planning",
            Event::PlanCreated(_) => "plan_created",
            Event::Replanned(_) | Event::PlanEdited(_) => "replanned",
            Event::ApprovalRequired { .. } => "approval_required",
            Event::Decided { matter: Matter::Plan { .. }, decision: Decision::Yes { .. }, .. } => {
                "plan_approved"
            }
            Event::StepStarted { .. } => "step_started",
            Event::ToolStarted { .. } => "tool_started",
            Event::ToolCompleted { .. } => "tool_completed",
            Event::ToolSkipped { .. } => "tool_skipped",
            Event::StepCompleted { .. } => "step_completed",
            Event::StepFailed { .. } => "step_failed",
            Event::Continuation { .. } => "continuation",
            Event::Answered { .. } => "answered",
            Event::RunWaiting {} | Event::RunPutAside { .. } => "run_waiting",
            Event::RunCompleted { .. } => "run_completed",
            Event::RunFailed { .. } => "run_failed",
            Event::RunCancelled { .. } => "run_cancelled",
            Event::RunQueued(_)
            | Event::RunResumed { .. }
            | Event::ModelAsked { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::PlanningFailed { .. }
            | Event::ReplyRejected { .. }
            | Event::SceneReplied { .. }
            | Event::Prepared { .. }
            | Event::Decided { .. }
            | Event::ModificationAsked { .. }
            | Event::ApprovalLapsed { .. }
            | Event::Released { .. }
            | Event::PlanRefused { .. }
            | Event::RunReopened { .. }
            | Event::Compensating { .. }
            | Event::CancelRequested { .. } => return None,
        })
    }

    /// The status that the event gives to the run's plan, where it gives one. A plan that is being carried
    /// out stays so until it ends, whatever its later versions need; see `RunState::plan_after`.
    pub fn plan_status(&self) -> Option<PlanStatus> {
        Some(match self {
            Event::RunQueued(_) | Event::ModificationAsked { .. } => PlanStatus::Draft,
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                if made.approval.is_some() { PlanStatus::Draft } else { PlanStatus::Approved }
            }
            Event::ApprovalRequired { matter: Matter::Plan { .. }, .. } => PlanStatus::PendingApproval,
            Event::ApprovalLapsed { matter: Matter::Plan { .. }, .. } => PlanStatus::Draft,
            Event::Decided { matter: Matter::Plan { .. }, decision: Decision::Yes { .. }, .. } => {
                PlanStatus::Approved
            }
            Event::StepStarted { .. } | Event::RunReopened { .. } => PlanStatus::Executing,
            Event::RunCompleted { status: RunStatus::Completed } => PlanStatus::Completed,
            Event::RunCompleted { .. } | Event::RunFailed { .. } => PlanStatus::Failed,
            Event::RunCancelled { .. } => PlanStatus::Cancelled,
            _ => return None,
        })
    }

    /// Whether the run ends with it.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled { .. })
    }

    /// What the event is about, in one word and a number: the same for the same thing in one run.
    pub fn key(&self) -> String {
        let number = match self {
            Event::RunResumed { epoch, .. } => *epoch,
            Event::Planning { version, .. } | Event::PlanningFailed { version, .. } => *version,
            Event::ModelAsked { call, .. }
            | Event::ModelReplied { call, .. }
            | Event::ModelFailed { call, .. }
            | Event::ReplyRejected { call, .. }
            | Event::SceneReplied { call, .. }
            | Event::ToolStarted { call, .. }
            | Event::ToolCompleted { call, .. }
            | Event::ToolSkipped { call, .. } => *call,
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => made.version,
            Event::ModificationAsked { version, .. } | Event::PlanRefused { version, .. } => *version,
            Event::ApprovalRequired { approval, .. }
            | Event::Decided { approval, .. }
            | Event::ApprovalLapsed { approval, .. } => *approval,
            Event::Compensating { undoes, .. } => *undoes,
            Event::StepStarted { step }
            | Event::Prepared { step, .. }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. } => *step,
            Event::Continuation { round, .. } => *round,
            _ => 0,
        };
        format!("{}/{number}", self.name())
    }

    /// The event's name in the journal.
    pub fn name(&self) -> &'static str {
        match self {
            Event::RunQueued(_) => "run_queued",
            Event::RunResumed { .. } => "run_resumed",
            Event::RunPutAside { .. } => "run_put_aside",
            Event::ModelAsked { .. } => "model_asked",
            Event::ModelReplied { .. } => "model_replied",
            Event::ModelFailed { .. } => "model_failed",
            Event::PlanningFailed { .. } => "planning_failed",
            Event::ReplyRejected { .. } => "reply_rejected",
            Event::SceneReplied { .. } => "scene_replied",
            Event::Prepared { .. } => "prepared",
            Event::CancelRequested { .. } => "cancel_requested",
            Event::PlanEdited(_) => "plan_edited",
            Event::Decided { .. } => "decided",
            Event::ModificationAsked { .. } => "modification_asked",
            Event::ApprovalLapsed { .. } => "approval_lapsed",
            Event::Released { .. } => "released",
            Event::PlanRefused { .. } => "plan_refused",
            Event::RunReopened { .. } => "run_reopened",
            Event::Compensating { .. } => "compensating",
            public => public.public_name().unwrap_or("unnamed"),
        }
    }

    /// Whether something outside depends on this event being on disk before the run goes on: an
    /// accepted request, a taking over, a write's intent and its outcome, a person's decision, an end.
    pub fn must_be_durable(&self, writes: bool) -> bool {
        match self {
            Event::RunQueued(_)
            // Or a process that it ends again and again would not be seen to.
            | Event::RunResumed { .. }
            | Event::CancelRequested { .. }
            // What somebody is told to decide has to be there when the decision comes, and the decision
            // when it is carried out.
            | Event::ApprovalRequired { .. }
            | Event::Decided { .. }
            | Event::PlanEdited(_)
            | Event::ModificationAsked { .. }
            | Event::ApprovalLapsed { .. }
            | Event::Released { .. }
            | Event::RunWaiting {}
            | Event::RunPutAside { .. }
            | Event::RunReopened { .. }
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => true,
            Event::ToolStarted { .. } | Event::ToolCompleted { .. } => writes,
            _ => false,
        }
    }
}
