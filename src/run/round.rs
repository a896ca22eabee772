//! Which versions of the plan belong together. A patch continues the plan that it changes, so the steps of both are
//! executed side by side; any other version replaces the one before it.

use super::approval::{Approval, ApprovalGate, ApprovalSubject, Decision};
use super::event::PlanCause;
use super::state::{RunState, StepState};
use crate::plan::StepStatus;

impl RunState {
    /// The version that the plan in force began with: patches continue it. 0 before the first plan.
    pub fn first_version_in_force(&self) -> u32 {
        let whole = self.plans.iter().rposition(|made| made.cause != PlanCause::Adaptation);
        whole.map_or(0, |at| at as u32 + 1)
    }

    /// Returns whether a step belongs to the plan in force, or to a version that it continues.
    pub fn is_in_round(&self, step: &StepState) -> bool {
        step.version >= self.first_version_in_force()
    }

    /// Returns whether a plan version changes the unfinished part of the version before it, and leaves the rest as it is.
    pub fn is_patch(&self, version: u32) -> bool {
        let made = version.checked_sub(1).and_then(|at| self.plans.get(at as usize));
        made.is_some_and(|made| made.cause == PlanCause::Adaptation)
    }

    /// The approval of a plan version that is open or was decided last.
    pub(super) fn approval_of_version(&self, version: u32) -> Option<(u32, &Approval)> {
        let about =
            |approval: &Approval| approval.matter == ApprovalSubject::Plan { version } && !approval.lapsed;
        self.approvals.iter().rev().find(|(_, a)| about(a)).map(|(n, a)| (*n, a))
    }

    /// Decides whether a plan version may be executed. Only the newest one can be held: an older one was released when a patch
    /// was made.
    pub(super) fn gate_of_version(&self, version: u32) -> ApprovalGate {
        let made = version.checked_sub(1).and_then(|at| self.plans.get(at as usize));
        let needed = made.and_then(|made| made.approval.as_ref()).filter(|_| !self.is_dry_run());
        let Some(needed) = needed else { return ApprovalGate::Granted };
        let is_newest = version == self.plans.len() as u32;
        match self.approval_of_version(version).map(|(_, approval)| &approval.decided) {
            None => ApprovalGate::Ask(needed.clone()),
            Some(None) => ApprovalGate::Waits,
            Some(Some((Decision::No, by))) => ApprovalGate::Refused { by: by.clone() },
            Some(Some(_)) if is_newest && self.is_held() => ApprovalGate::Waits,
            Some(Some(_)) => ApprovalGate::Granted,
        }
    }

    /// Returns whether a person approved a version of the plan.
    pub fn has_approved_plan(&self) -> bool {
        self.approvals.values().any(|approval| {
            matches!(approval.matter, ApprovalSubject::Plan { .. })
                && !approval.lapsed
                && matches!(approval.decided, Some((Decision::Yes { .. }, _)))
        })
    }

    /// The version whose approval lets a step begin: its own. A step of an earlier round that is restarted begins with
    /// the plan in force.
    pub(super) fn version_to_begin(&self, step: &StepState) -> u32 {
        step.version.max(self.first_version_in_force())
    }

    /// Returns whether a step begins with the newest version of the plan, and not with one that a patch continues.
    pub fn begins_with_newest_version(&self, step: u32) -> bool {
        let newest = self.plans.len() as u32;
        self.steps.get(&step).is_some_and(|step| self.version_to_begin(step) == newest)
    }

    /// Returns whether the approval of its plan lets a step begin.
    pub(super) fn may_begin(&self, step: &StepState) -> bool {
        let version = self.version_to_begin(step);
        self.closing
            || self.has_begun_version(version)
            || self.gate_of_version(version) == ApprovalGate::Granted
    }

    /// Returns whether a step of a plan version has begun or ended. A step of a patch may be blocked before the patch
    /// is approved, because a step that it depends on failed meanwhile.
    pub(super) fn has_begun_version(&self, version: u32) -> bool {
        let patch = self.is_patch(version);
        let never_began = |step: &StepState| {
            patch
                && step.calls.is_empty()
                && matches!(step.status, StepStatus::Blocked | StepStatus::Cancelled)
        };
        self.steps.values().any(|s| s.version == version && !s.is_untouched() && !never_began(s))
    }
}
