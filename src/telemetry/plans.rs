//! Outcome and completeness of plans, computed only from the plan and its run.

use std::collections::BTreeMap;

use super::kpis::Kpis;
use crate::run::{PlanMade, PlanMaker};

/// Kinds of plans.
pub(super) const KINDS: [&str; 3] = ["scene", "fallback", "none"];
/// Outcomes of plans.
pub(super) const PLAN_OUTCOMES: [&str; 6] =
    ["completed", "partial", "failed", "cancelled", "draft", "not_made"];

/// Indices on the axes of [`KINDS`] and [`PLAN_OUTCOMES`].
pub(super) const KIND_SCENE: usize = 0;
const KIND_FALLBACK: usize = 1;
const KIND_NONE: usize = 2;
const COMPLETED: usize = 0;
const PARTIAL: usize = 1;
const FAILED: usize = 2;
const CANCELLED: usize = 3;
const DRAFT: usize = 4;
pub(super) const NOT_MADE: usize = 5;

/// A plan of a tracked run.
#[derive(Debug)]
pub(super) struct Plan {
    kind: usize,
    steps: Vec<u32>,
    /// Whether another plan followed.
    pub(super) replanned: bool,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ended {
    pub(super) completed: bool,
    /// Whether one of its expected tools succeeded, or none was expected.
    pub(super) as_expected: bool,
}

/// How the run of the plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Ran,
    Cancelled,
    /// Only a plan was requested.
    Draft,
}

impl Plan {
    pub(super) fn of(made: &PlanMade) -> Self {
        let kind = match made.maker {
            _ if !made.plan.needs_execution => KIND_NONE,
            PlanMaker::Deterministic | PlanMaker::Person => KIND_SCENE,
            PlanMaker::Fallback => KIND_FALLBACK,
        };
        let steps = made.plan.steps.iter().map(|step| step.step_number).collect();
        Self { kind, steps, replanned: false }
    }

    /// The kind's name.
    pub(super) fn kind(&self) -> &'static str {
        KINDS[self.kind]
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    fn outcome(&self, ended: &BTreeMap<u32, Ended>, end: End) -> usize {
        let completed = self.ends(ended).filter(|step| step.completed).count();
        match end {
            End::Draft => DRAFT,
            _ if completed == self.steps.len() => COMPLETED,
            End::Cancelled => CANCELLED,
            End::Ran if completed > 0 => PARTIAL,
            End::Ran => FAILED,
        }
    }

    /// The completeness ratio; the metric's help defines it.
    pub(super) fn quality(&self, ended: &BTreeMap<u32, Ended>) -> Option<f64> {
        let good = self.ends(ended).filter(|step| step.completed && step.as_expected).count();
        let all = self.steps.len() + usize::from(self.replanned);
        (!self.steps.is_empty()).then(|| good as f64 / all as f64)
    }

    fn ends<'a>(&'a self, ended: &'a BTreeMap<u32, Ended>) -> impl Iterator<Item = Ended> + 'a {
        self.steps.iter().filter_map(|step| ended.get(step).copied())
    }

    pub(super) fn count(&self, ended: &BTreeMap<u32, Ended>, end: End, kpis: &Kpis) {
        let at = [self.kind, self.outcome(ended, end)];
        kpis.plans.inc(at);
        kpis.plan_steps.observe(at, self.steps.len() as f64);
        if let Some(quality) = self.quality(ended).filter(|_| end != End::Draft) {
            kpis.plan_quality.observe(at, quality);
        }
    }
}
