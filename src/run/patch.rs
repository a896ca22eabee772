//! The scope of a patch: the part of the plan that has not begun and that no person has decided about, and the step
//! that failed.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::event::{PlanCause, PlanMaker, PlanPatch};
use super::state::{CallStatus, RunState, StepState};
use crate::adapt::ExecutionLevel;
use crate::plan::{self, Plan, PlanProblem, Step, StepStatus};

/// The steps that a patch may take out of the plan or replace, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchScope {
    /// The steps that may be removed.
    pub removable: Vec<u32>,
    /// The steps that another step may replace.
    pub replaceable: Vec<u32>,
}

impl RunState {
    /// Returns what a patch that is asked for because of the step `about` may change.
    pub fn patch_scope(&self, about: u32) -> PatchScope {
        let numbers = |may: &dyn Fn(&StepState) -> bool| -> Vec<u32> {
            self.steps.values().filter(|step| may(step)).map(|step| step.step.step_number).collect()
        };
        let failed = |step: &StepState| step.step.step_number == about && self.is_replaceable(step);
        PatchScope {
            removable: numbers(&|step| self.is_patchable(step)),
            replaceable: numbers(&|step| self.is_patchable(step) || failed(step)),
        }
    }

    /// Returns whether a patch may take a step out, put another in its place, or change what it depends on: it has not begun,
    /// and no person wrote or approved it.
    pub fn is_patchable(&self, step: &StepState) -> bool {
        let made = step.version.checked_sub(1).and_then(|at| self.plans.get(at as usize));
        let is_of_people = made.is_none_or(|made| {
            made.maker == PlanMaker::Person || matches!(made.cause, PlanCause::Edit | PlanCause::Feedback)
        });
        step.is_untouched()
            && self.is_in_round(step)
            && !is_of_people
            && self.approval_of_step(step.step.step_number).is_none()
    }

    /// Returns whether a step of the plan in force ended without achieving its purpose, and no patch put another in its place.
    pub fn is_replaceable(&self, step: &StepState) -> bool {
        let failed = match step.status {
            StepStatus::Failed => true,
            StepStatus::Completed => self.is_unserved(step),
            _ => false,
        };
        failed && !step.is_node() && self.is_in_round(step) && step.replaced_by.is_none()
    }

    /// Returns whether the step that replaced this one by a patch, directly or in turn, was completed.
    pub fn is_made_good(&self, step: &StepState) -> bool {
        let mut next = step.replaced_by;
        // Replacements have higher numbers, so this ends.
        while let Some(by) = next.and_then(|number| self.steps.get(&number)) {
            if by.status == StepStatus::Completed && !self.is_unserved(by) {
                return true;
            }
            next = by.replaced_by.filter(|number| *number > by.step.step_number);
        }
        false
    }

    /// The plan in force together with the versions that it continues.
    pub fn plan_of_round(&self) -> Option<Cow<'_, Plan>> {
        let made = self.plan()?;
        if made.cause != PlanCause::Adaptation {
            return Some(Cow::Borrowed(&made.plan));
        }
        let steps = self.plan_steps().map(|(_, step)| step).filter(|step| self.is_in_round(step));
        let unserved = self.unserved().map(str::to_owned).collect();
        let unavailable = self.unavailable().map(str::to_owned).collect();
        let steps = steps.map(|step| step.step.clone()).collect();
        Some(Cow::Owned(Plan { steps, unserved, unavailable, ..made.plan.clone() }))
    }

    fn pending_steps(&self) -> impl Iterator<Item = &StepState> {
        self.steps.values().filter(|step| step.status == StepStatus::Pending)
    }

    /// The steps that have not begun once a patch with these new steps is in force.
    fn pending_after(&self, patch: &PlanPatch, new: &[Step]) -> Vec<Step> {
        let stays = |step: &&StepState| {
            let number = step.step.step_number;
            !patch.removed.contains(&number) && !patch.replaced.contains_key(&number)
        };
        let remaining = self.pending_steps().filter(stays).map(|state| {
            let mut step = state.step.clone();
            if patch.dependants.contains(&step.step_number) {
                step.depends_on_step = patch.repointed(&step.depends_on_step);
            }
            step
        });
        remaining.chain(new.iter().cloned()).collect()
    }

    /// The steps that a new step of a patch may depend on: those that have completed, or may still complete.
    pub fn dependable_steps(&self, patch: &PlanPatch) -> BTreeSet<u32> {
        let may_complete =
            |step: &&StepState| step.status == StepStatus::Completed || !step.status.is_terminal();
        let numbers =
            self.plan_steps().map(|(_, step)| step).filter(may_complete).map(|step| step.step.step_number);
        numbers.filter(|n| !patch.removed.contains(n) && !patch.replaced.contains_key(n)).collect()
    }

    /// The problems of a patch that was asked for because of the step `about`, as far as no catalogue is needed to see
    /// them. Empty if it may be put in force.
    pub fn patch_problems(&self, about: u32, patch: &PlanPatch, plan: &Plan) -> Vec<PlanProblem> {
        let mut problems = self.forbidden_changes(about, patch, plan);
        let limits = plan::PlanLimits { max_steps: self.settings().max_steps };
        if plan.steps.is_empty() {
            if patch.removed.is_empty() {
                let what = "nothing is changed: remove, replace or add a step";
                problems.push(PlanProblem::new("plan.unchanged", what));
            }
        } else {
            let known = self.dependable_steps(patch);
            problems.extend(plan::validate_structure(plan, limits, &known, self.last_fixed_step(false)));
        }
        if !problems.is_empty() {
            return problems;
        }
        let pending = self.pending_after(patch, &plan.steps);
        if pending.len() > limits.max_steps as usize {
            let what = format!(
                "{} steps would be left to do, but at most {} are allowed",
                pending.len(),
                limits.max_steps
            );
            problems.push(PlanProblem::new("plan.too_many_steps", what));
        }
        problems.extend(plan::find_cycles(&pending));
        problems.extend(self.repetitions(&pending, &plan.steps));
        problems
    }

    /// Changes of steps that a patch may not change.
    fn forbidden_changes(&self, about: u32, patch: &PlanPatch, plan: &Plan) -> Vec<PlanProblem> {
        let mut problems = Vec::new();
        let mut fixed = |number: u32, what: &str| {
            let message = format!(
                "step {number} cannot be {what}: it has begun or ended, does not exist, or a person decided about it"
            );
            problems.push(PlanProblem::new("plan.fixed", message));
        };
        let patchable = |number: &u32| self.steps.get(number).is_some_and(|step| self.is_patchable(step));
        for number in patch.removed.iter().filter(|number| !patchable(number)) {
            fixed(*number, "removed");
        }
        let failed = |number: u32| {
            number == about && self.steps.get(&number).is_some_and(|step| self.is_replaceable(step))
        };
        for number in patch.replaced.keys().filter(|number| !patchable(number) && !failed(**number)) {
            fixed(*number, "replaced");
        }
        let depends = |number: &u32| {
            let depends = self.steps.get(number).map(|step| &step.step.depends_on_step);
            depends.is_some_and(|depends| depends.iter().any(|one| patch.replaced.contains_key(&one)))
        };
        for number in patch.dependants.iter().filter(|number| !patchable(number) || !depends(number)) {
            fixed(*number, "made to depend on another step");
        }
        for number in patch.removed.iter().filter(|number| patch.replaced.contains_key(number)) {
            let what = format!("step {number} is removed and replaced: do one of the two");
            problems.push(PlanProblem::new("plan.fixed", what));
        }
        for (old, new) in &patch.replaced {
            if !plan.steps.iter().any(|step| step.step_number == *new) {
                let what = format!("step {old} is replaced by step {new}, which is not among the new steps");
                problems.push(PlanProblem::new("plan.unknown_step", what));
            }
        }
        problems
    }

    /// Plans and steps that this run had before: to continue with them would be a loop.
    fn repetitions(&self, pending: &[Step], new: &[Step]) -> Vec<PlanProblem> {
        let mut problems = Vec::new();
        let failed: BTreeSet<String> = self
            .steps
            .values()
            .filter(|step| matches!(step.status, StepStatus::Failed) || self.is_replaceable(step))
            .map(|step| plan::fingerprint([&step.step]))
            .collect();
        for step in new.iter().filter(|step| failed.contains(&plan::fingerprint([*step]))) {
            let what = format!(
                "step {} does what a step of this request did that failed: plan something else, or leave it out",
                step.step_number
            );
            problems.push(PlanProblem::new("plan.repeated", what));
        }
        let now = plan::fingerprint(self.pending_steps().map(|step| &step.step));
        let after = plan::fingerprint(pending);
        if !pending.is_empty() && (after == now || self.plan_fingerprints.contains(&after)) {
            let what = "the plan would be one that this request had before: change something else, or nothing at all";
            problems.push(PlanProblem::new("plan.circle", what));
        }
        problems
    }

    /// Returns whether a model may change the unfinished part of the plan.
    pub fn may_patch(&self) -> bool {
        self.may().patches && !self.is_confirmation() && !self.is_dry_run() && !self.is_plan_only()
    }

    /// Counts a step of a later plan that ended without a result.
    pub(super) fn count_idle(&mut self, number: u32) {
        let Some(step) = self.steps.get(&number) else { return };
        let tried = matches!(step.status, StepStatus::Completed | StepStatus::Failed);
        if step.is_node()
            || step.version <= 1
            || !tried
            || self.settings().level < Some(ExecutionLevel::Adaptive)
        {
            return;
        }
        let shares = |call: &u32| {
            self.calls.get(call).is_some_and(|call| matches!(call.status, CallStatus::Skipped { .. }))
        };
        let found = step.calls.iter().any(|call| self.is_effective(*call) && !shares(call));
        let found = found || (step.flow().is_some() && step.status == StepStatus::Completed);
        self.idle_steps = if found { 0 } else { self.idle_steps.saturating_add(1) };
    }

    /// Remembers the work that is left, before a patch changes it and whenever a plan was put in force, so that no
    /// later patch leads back to it.
    pub(super) fn remember_plan(&mut self) {
        if self.may_patch() {
            let fingerprint = plan::fingerprint(self.pending_steps().map(|step| &step.step));
            self.plan_fingerprints.insert(fingerprint);
        }
    }
}
