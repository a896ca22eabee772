//! Scheduling: which steps may run, given the dependency graph of `depends_on_step`.

use std::collections::BTreeMap;

use super::{Step, StepStatus};

/// The numbers of the steps that may start now, in the order written: pending, with every dependency
/// completed, limited so that at most `max_parallel` steps run at once (0 counts as 1, since otherwise the
/// run would never end).
pub fn ready(steps: &[&Step], status: &BTreeMap<u32, StepStatus>, max_parallel: u32) -> Vec<u32> {
    let running = status.values().filter(|s| **s == StepStatus::Running).count();
    let free = (max_parallel.max(1) as usize).saturating_sub(running);
    steps
        .iter()
        .filter(|step| status.get(&step.step_number) == Some(&StepStatus::Pending))
        .filter(|step| step.depends_on_step.iter().all(|d| status.get(&d) == Some(&StepStatus::Completed)))
        .map(|step| step.step_number)
        .take(free)
        .collect()
}

/// The pending steps that can never start, each with the first of its dependencies that ended
/// without completing.
pub fn blocked_by(steps: &[&Step], status: &BTreeMap<u32, StepStatus>) -> Vec<(u32, u32)> {
    steps
        .iter()
        .filter(|step| status.get(&step.step_number) == Some(&StepStatus::Pending))
        .filter_map(|step| {
            step.depends_on_step
                .iter()
                .find(|d| status.get(d).is_none_or(|s| s.is_terminal() && *s != StepStatus::Completed))
                .map(|d| (step.step_number, d))
        })
        .collect()
}
