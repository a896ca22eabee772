//! Outcome and completeness of plans, computed only from the plan and its run.

use std::collections::BTreeMap;

use super::labels::{PlanKind, PlanOutcome, RequestScope, StepOutcome};
use super::run_metrics::RunMetrics;
use crate::run::{PlanMade, PlanMaker};

#[derive(Debug)]
pub(super) struct TrackedPlan {
    pub(super) kind: PlanKind,
    steps: Vec<u32>,
    /// Whether it names parts of the request that no scene serves.
    leaves_parts: bool,
    /// Whether another plan followed.
    pub(super) replanned: bool,
}

/// How much of a request its plans serve; `None` if there is no plan.
pub(super) fn scope_of(plans: &[TrackedPlan]) -> Option<RequestScope> {
    let is_executed = plans.iter().any(|plan| plan.kind != PlanKind::None);
    let leaves_parts = plans.iter().any(|plan| plan.leaves_parts);
    (!plans.is_empty()).then_some(match (is_executed, leaves_parts) {
        (true, false) => RequestScope::Served,
        (true, true) => RequestScope::Partly,
        (false, true) => RequestScope::Unserved,
        (false, false) => RequestScope::Conversation,
    })
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepEnd {
    /// `None` if it did not end.
    pub(super) outcome: Option<StepOutcome>,
    /// Whether one of its expected tools succeeded, or none was expected.
    pub(super) as_expected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanEnd {
    Ran,
    /// The user is asked for more.
    NeedsInput,
    Cancelled,
    /// Only a plan was requested.
    Draft,
}

impl TrackedPlan {
    pub(super) fn of(made: &PlanMade) -> Self {
        let kind = match made.maker {
            _ if !made.plan.needs_execution => PlanKind::None,
            PlanMaker::Deterministic | PlanMaker::Person => PlanKind::Scene,
            PlanMaker::Code => PlanKind::Program,
            PlanMaker::Learned => PlanKind::Learned,
            PlanMaker::Fallback => PlanKind::Fallback,
        };
        let steps = made.plan.steps.iter().map(|step| step.step_number).collect();
        Self { kind, steps, leaves_parts: !made.plan.unserved.is_empty(), replanned: false }
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    fn outcome(&self, ended: &BTreeMap<u32, StepEnd>, end: PlanEnd) -> PlanOutcome {
        let count = |outcome| self.step_ends(ended).filter(|step| step.outcome == Some(outcome)).count();
        let completed = count(StepOutcome::Completed);
        match end {
            PlanEnd::Draft => PlanOutcome::Draft,
            _ if completed == self.steps.len() => PlanOutcome::Completed,
            PlanEnd::Cancelled => PlanOutcome::Cancelled,
            // A failure is not hidden by a question.
            PlanEnd::NeedsInput if count(StepOutcome::Failed) == 0 => PlanOutcome::NeedsInput,
            PlanEnd::Ran | PlanEnd::NeedsInput if completed > 0 => PlanOutcome::Partial,
            PlanEnd::Ran | PlanEnd::NeedsInput => PlanOutcome::Failed,
        }
    }

    /// The completeness ratio; the metric's help defines it.
    pub(super) fn quality(&self, ended: &BTreeMap<u32, StepEnd>) -> Option<f64> {
        let is_good = |step: &StepEnd| step.outcome == Some(StepOutcome::Completed) && step.as_expected;
        let good = self.step_ends(ended).filter(is_good).count();
        let all = self.steps.len() + usize::from(self.replanned);
        (!self.steps.is_empty()).then(|| good as f64 / all as f64)
    }

    fn step_ends<'a>(&'a self, ended: &'a BTreeMap<u32, StepEnd>) -> impl Iterator<Item = StepEnd> + 'a {
        self.steps.iter().filter_map(|step| ended.get(step).copied())
    }

    pub(super) fn record(&self, ended: &BTreeMap<u32, StepEnd>, end: PlanEnd, metrics: &RunMetrics) {
        let at = [self.kind as usize, self.outcome(ended, end) as usize];
        metrics.plans.made.inc(at);
        metrics.plans.steps.observe(at, self.steps.len() as f64);
        if let Some(quality) = self.quality(ended).filter(|_| end != PlanEnd::Draft) {
            metrics.plans.quality.observe(at, quality);
        }
    }
}
