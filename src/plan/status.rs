//! The closed sets of statuses of plans and steps.

use serde::{Deserialize, Serialize};

/// Where a plan stands. Approval (`draft`, `pending_approval`) belongs to plans that people decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Made, not asked to run.
    Draft,
    /// Waits for a person's yes.
    PendingApproval,
    /// May run; nothing has started.
    Approved,
    /// At least one step has started.
    Executing,
    /// Every step of the last version completed.
    Completed,
    /// It ended with a step that did not complete.
    Failed,
    /// A person stopped it.
    Cancelled,
}

/// Where a step stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not started; waits for its dependencies or for a free place.
    Pending,
    /// Its scene is at work.
    Running,
    /// Done, with a result.
    Completed,
    /// Ended without what it was for.
    Failed,
    /// Only the user can say what is missing.
    NeedsInput,
    /// Never started, because a step it depends on did not complete.
    Blocked,
    /// Stopped by a person or by the run's end.
    Cancelled,
}

impl StepStatus {
    /// Whether nothing more happens to the step.
    pub fn is_terminal(self) -> bool {
        !matches!(self, StepStatus::Pending | StepStatus::Running)
    }
}
