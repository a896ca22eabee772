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
    /// The statuses of runs that are shown in place of [`PlanStatus::Failed`].
    pub const OF_PLANS_NOT_FAILED: [RunStatus; 2] = [RunStatus::NeedsInput, RunStatus::Partial];

    /// The status of a plan as it is shown to people after a run with this status: a run that asks its user, or did a
    /// part, did not fail.
    pub fn reported_plan_status(self, plan: PlanStatus) -> &'static str {
        match plan == PlanStatus::Failed && Self::OF_PLANS_NOT_FAILED.contains(&self) {
            true => self.into(),
            false => plan.name(),
        }
    }

    /// All statuses of plans as they are shown to people.
    pub fn reported_plan_statuses() -> impl Iterator<Item = &'static str> {
        let of_runs = Self::OF_PLANS_NOT_FAILED.into_iter().map(Into::into);
        PlanStatus::ALL.into_iter().map(PlanStatus::name).chain(of_runs)
    }

    /// Returns whether the run has ended.
    pub fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting)
    }
}
