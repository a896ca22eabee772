//! Properties of a single event: its name, its visibility, its durability and the statuses it leads to.

use serde::{Deserialize, Serialize};

use super::super::approval::{ApprovalSubject, Decision};
use super::Event;
use crate::plan::PlanStatus;

/// The status of a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Accepted; earlier requests of its conversation come first.
    Queued,
    /// Being executed.
    Running,
    /// Waits for a person's decision.
    Waiting,
    /// Ended with a question to the user.
    NeedsInput,
    /// Everything was done and answered.
    Completed,
    /// Partly done; the answer says what is missing.
    Partial,
    /// Nothing could be answered.
    Failed,
    /// Stopped by a person.
    Cancelled,
}

impl RunStatus {
    /// Whether the run has ended.
    pub fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting)
    }
}

impl Event {
    /// The event's name on client streams; `None` for internal events.
    pub fn public_name(&self) -> Option<&'static str> {
        Some(match self {
            Event::RunStarted(_) => "run_started",
            Event::Planning { .. } => "planning",
            Event::PlanCreated(_) => "plan_created",
            Event::Replanned(_) | Event::PlanEdited(_) => "replanned",
            Event::ApprovalRequired { .. } => "approval_required",
            Event::Decided {
                matter: ApprovalSubject::Plan { .. }, decision: Decision::Yes { .. }, ..
            } => "plan_approved",
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

    /// The plan status that the event leads to, if any. A plan that is executing stays so until it ends,
    /// whatever its later versions need; see `RunState::plan_after`.
    pub fn plan_status(&self) -> Option<PlanStatus> {
        Some(match self {
            Event::RunQueued(_) | Event::ModificationAsked { .. } => PlanStatus::Draft,
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                if made.approval.is_some() { PlanStatus::Draft } else { PlanStatus::Approved }
            }
            Event::ApprovalRequired { matter: ApprovalSubject::Plan { .. }, .. } => {
                PlanStatus::PendingApproval
            }
            Event::ApprovalLapsed { matter: ApprovalSubject::Plan { .. }, .. } => PlanStatus::Draft,
            Event::Decided {
                matter: ApprovalSubject::Plan { .. }, decision: Decision::Yes { .. }, ..
            } => PlanStatus::Approved,
            Event::StepStarted { .. } | Event::RunReopened { .. } => PlanStatus::Executing,
            Event::RunCompleted { status: RunStatus::Completed } => PlanStatus::Completed,
            Event::RunCompleted { .. } | Event::RunFailed { .. } => PlanStatus::Failed,
            Event::RunCancelled { .. } => PlanStatus::Cancelled,
            _ => return None,
        })
    }

    /// Whether the event ends the run.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled { .. })
    }

    /// The event's name and the ordinal of its subject: stable within a run.
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

    /// Whether this event must be on disk before the run continues, because something outside depends on
    /// it: an accepted request, a takeover, a write's intent and outcome, a person's decision, an end.
    pub fn must_be_durable(&self, writes: bool) -> bool {
        match self {
            Event::RunQueued(_)
            // Otherwise repeated crashes caused by the run would not be counted.
            | Event::RunResumed { .. }
            | Event::CancelRequested { .. }
            // A requested approval must exist when the decision arrives, and the decision when it takes
            // effect.
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
