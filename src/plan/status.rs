//! The statuses of plans and steps, and the legal transitions.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// The status of a plan. [`PlanStatus::successors`] is the only definition of legal transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Being made or changed, or made without a request to run it.
    Draft,
    /// Waits for a person's approval.
    PendingApproval,
    /// May run; nothing has started.
    Approved,
    /// At least one step has started.
    Executing,
    /// Every step of the last version completed.
    Completed,
    /// Ended with a step that did not complete.
    Failed,
    /// Stopped by a person.
    Cancelled,
}

/// An illegal change of a plan's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a plan that is {} cannot become {}", from.name(), to.name())]
pub struct IllegalTransition {
    /// The current status.
    pub from: PlanStatus,
    /// The requested status.
    pub to: PlanStatus,
}

impl PlanStatus {
    /// Every status, in the order of a plan's life cycle.
    pub const ALL: [PlanStatus; 7] = [
        PlanStatus::Draft,
        PlanStatus::PendingApproval,
        PlanStatus::Approved,
        PlanStatus::Executing,
        PlanStatus::Completed,
        PlanStatus::Failed,
        PlanStatus::Cancelled,
    ];

    /// The transition table. A change withdraws an approval (back to `draft`), an executing plan ends, and
    /// a failed plan can be resumed.
    pub fn successors(self) -> &'static [PlanStatus] {
        use PlanStatus::{Approved, Cancelled, Completed, Draft, Executing, Failed, PendingApproval};
        match self {
            Draft => &[PendingApproval, Approved, Failed, Cancelled],
            PendingApproval => &[Draft, Approved, Failed, Cancelled],
            Approved => &[Draft, Executing, Completed, Failed, Cancelled],
            Executing => &[Completed, Failed, Cancelled],
            Failed => &[Executing],
            Completed | Cancelled => &[],
        }
    }

    /// Returns whether `to` may follow. Keeping the status is always allowed.
    pub fn can_become(self, to: PlanStatus) -> bool {
        self == to || self.successors().contains(&to)
    }

    /// The status after the transition.
    ///
    /// # Errors
    /// [`IllegalTransition`] with both names, if the table does not contain the transition.
    pub fn transition_to(self, to: PlanStatus) -> Result<PlanStatus, IllegalTransition> {
        if self.can_become(to) { Ok(to) } else { Err(IllegalTransition { from: self, to }) }
    }

    /// The plan's status after an event that leads to the status `next`, if any. An executing plan stays so
    /// until it ends, whatever its later versions need. The plan of a plan-only request stays a draft.
    #[must_use]
    pub fn after_event(self, next: Option<PlanStatus>, only_wanted: bool) -> PlanStatus {
        match next {
            Some(PlanStatus::Approved | PlanStatus::Completed) if only_wanted => self,
            Some(to) if self == PlanStatus::Executing && !to.is_terminal() => self,
            Some(to) => to,
            None => self,
        }
    }

    /// The status's name on the wire and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns whether the plan has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, PlanStatus::Completed | PlanStatus::Failed | PlanStatus::Cancelled)
    }
}

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not started; waits for its dependencies or for a free slot.
    Pending,
    /// Being executed by its scene.
    Running,
    /// Completed with a result.
    Completed,
    /// Ended without achieving its purpose.
    Failed,
    /// Needs an answer from the user.
    NeedsInput,
    /// Never started, because a dependency did not complete.
    Blocked,
    /// Stopped by a person or by the run's end.
    Cancelled,
}

impl StepStatus {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether the step has ended.
    pub fn is_terminal(self) -> bool {
        !matches!(self, StepStatus::Pending | StepStatus::Running)
    }
}
