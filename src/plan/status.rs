//! The closed sets of statuses of plans and steps.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// Where a plan stands. What may follow what is told by [`PlanStatus::followed_by`] and nowhere else.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Being made or changed, or made and not asked to run.
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

/// A change of a plan's status that is not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a plan that is {} cannot become {}", from.name(), to.name())]
pub struct IllegalTransition {
    /// Where it stands.
    pub from: PlanStatus,
    /// Where it was to go.
    pub to: PlanStatus,
}

impl PlanStatus {
    /// Every status, in the order of a plan's life.
    pub const ALL: [PlanStatus; 7] = [
        PlanStatus::Draft,
        PlanStatus::PendingApproval,
        PlanStatus::Approved,
        PlanStatus::Executing,
        PlanStatus::Completed,
        PlanStatus::Failed,
        PlanStatus::Cancelled,
    ];

    /// The table: what may follow. A change takes an approval back (to `draft`); what has begun ends; what
    /// has failed can be carried on.
    pub fn followed_by(self) -> &'static [PlanStatus] {
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

    /// Whether `to` may follow. Staying is no change, and always allowed.
    pub fn may_become(self, to: PlanStatus) -> bool {
        self == to || self.followed_by().contains(&to)
    }

    /// The status after the change.
    ///
    /// # Errors
    /// [`IllegalTransition`] with both names, where the table does not have it.
    pub fn become_status(self, to: PlanStatus) -> Result<PlanStatus, IllegalTransition> {
        if self.may_become(to) { Ok(to) } else { Err(IllegalTransition { from: self, to }) }
    }

    /// Where the plan stands after an event that gives it the status `told`, where it gives one. A plan that
    /// is being carried out stays so until it ends, whatever its later versions need; one that is only
    /// wanted is a draft, and stays one.
    #[must_use]
    pub fn after(self, told: Option<PlanStatus>, only_wanted: bool) -> PlanStatus {
        match told {
            Some(PlanStatus::Approved | PlanStatus::Completed) if only_wanted => self,
            Some(to) if self == PlanStatus::Executing && !to.is_terminal() => self,
            Some(to) => to,
            None => self,
        }
    }

    /// Its name on the wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            PlanStatus::Draft => "draft",
            PlanStatus::PendingApproval => "pending_approval",
            PlanStatus::Approved => "approved",
            PlanStatus::Executing => "executing",
            PlanStatus::Completed => "completed",
            PlanStatus::Failed => "failed",
            PlanStatus::Cancelled => "cancelled",
        }
    }

    /// The status of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing of the plan is under way or waits.
    pub fn is_terminal(self) -> bool {
        matches!(self, PlanStatus::Completed | PlanStatus::Failed | PlanStatus::Cancelled)
    }

    /// The table as a Mermaid state diagram, as ARCHITECTURE.md shows it.
    pub fn diagram() -> String {
        let mut out = String::from("stateDiagram-v2\n    [*] --> draft\n");
        for from in Self::ALL {
            for to in from.followed_by() {
                // Writing into a String cannot fail.
                let _ = writeln!(out, "    {} --> {}", from.name(), to.name());
            }
        }
        for last in Self::ALL.into_iter().filter(|status| status.is_terminal()) {
            let _ = writeln!(out, "    {} --> [*]", last.name());
        }
        out
    }
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
