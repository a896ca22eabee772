//! Folds a patch of the plan, and the refusal of one.

use std::collections::BTreeMap;

use super::super::event::{Fault, PlanPatch};
use super::super::state::RunState;
use crate::plan::{DependsOn, StepStatus};

impl RunState {
    /// Takes steps out of the plan, and lets others depend on the new ones. Steps that stay keep their version, and
    /// with it their approval or the lack of one.
    pub(super) fn apply_patch(&mut self, patch: &PlanPatch) {
        let is_gone = |number: &u32| patch.removed.contains(number) || patch.replaced.contains_key(number);
        self.steps.retain(|number, step| !(is_gone(number) && step.is_untouched()));
        for (old, new) in &patch.replaced {
            self.step(*old, |step| {
                step.replaced_by = Some(*new);
                // Its scene has ended it, but its purpose was not achieved: what depends on it waits for the new step
                // or is blocked.
                if step.status == StepStatus::Completed {
                    step.status = StepStatus::Failed;
                    step.error.get_or_insert_with(|| {
                        Fault::new(
                            "step.unserved",
                            format!("it did not do its task, and step {new} replaces it"),
                        )
                    });
                }
            });
        }
        self.repoint(&patch.dependants, &patch.replaced);
    }

    /// Nothing of a patch is done: its steps are cancelled, and the rest of the plan goes on without them.
    pub(in crate::run) fn drop_patch(&mut self, version: u32, error: &Fault) {
        let pending = |step: &&mut super::super::state::StepState| {
            step.version == version && step.status == StepStatus::Pending
        };
        for step in self.steps.values_mut().filter(pending) {
            step.status = StepStatus::Cancelled;
            step.error = Some(error.clone());
        }
        let made = version.checked_sub(1).and_then(|at| self.plans.get(at as usize));
        let Some(patch) = made.and_then(|made| made.patch.clone()) else { return };
        let back: BTreeMap<u32, u32> = patch
            .replaced
            .iter()
            .filter(|(old, _)| self.steps.contains_key(*old))
            .map(|(old, new)| (*new, *old))
            .collect();
        for old in back.values() {
            self.step(*old, |step| step.replaced_by = None);
        }
        self.repoint(&patch.dependants, &back);
    }

    /// Exchanges what these steps depend on, as far as they have not begun.
    fn repoint(&mut self, dependants: &[u32], exchanged: &BTreeMap<u32, u32>) {
        for number in dependants {
            self.step(*number, |state| {
                if state.is_untouched() {
                    let depends = state.step.depends_on_step.iter();
                    let depends: DependsOn =
                        depends.map(|step| exchanged.get(&step).copied().unwrap_or(step)).collect();
                    state.step.depends_on_step = depends;
                }
            });
        }
    }
}
