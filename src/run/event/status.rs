//! The status of a run.

use serde::{Deserialize, Serialize};

use crate::plan::PlanStatus;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::Display, strum::EnumString, strum::IntoStaticStr, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    /// The status of a plan as it is shown to people after a run with this status: a run that asks its user, or did a
    /// part, did not fail.
    pub fn reported_plan_status(self, plan: PlanStatus) -> &'static str {
        match (plan, self) {
            (PlanStatus::Failed, RunStatus::NeedsInput) => "needs_input",
            (PlanStatus::Failed, RunStatus::Partial) => "partial",
            (plan, _) => plan.name(),
        }
    }

    /// Whether the run has ended.
    pub fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting)
    }
}
