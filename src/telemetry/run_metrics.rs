//! All metrics of runs, with their labels and buckets.

mod groups;
mod registrar;

use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Registry};

use super::LabelNames;
use super::grid::Grid;
use super::labels::{ClosedLabel, InFlightState};
use super::tenant_metrics::TenantMetrics;
use groups::{CallMetrics, DecisionMetrics, ModelMetrics, PlanMetrics, RequestMetrics, StepMetrics};
use registrar::MetricRegistrar;

pub(super) use groups::{attempt_outcome_index, purpose_index};

/// The metrics of runs. Recording is an index and an atomic operation, without locks.
#[derive(Clone)]
pub struct RunMetrics {
    registry: Registry,
    pub(super) requests: RequestMetrics,
    pub(super) tenants: TenantMetrics,
    pub(super) plans: PlanMetrics,
    pub(super) decisions: DecisionMetrics,
    pub(super) steps: StepMetrics,
    pub(super) calls: CallMetrics,
    pub(super) models: ModelMetrics,
    pub(super) in_flight: Grid<IntGaugeVec, 1>,
}

impl RunMetrics {
    /// Creates the metrics. Those whose labels do not depend on the configuration start at zero.
    ///
    /// # Errors
    /// If two metrics have the same name, or a name is invalid.
    pub fn new(names: &LabelNames) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let book = MetricRegistrar(&registry);
        Ok(Self {
            requests: RequestMetrics::new(&book)?,
            tenants: book.tenants(names)?,
            plans: PlanMetrics::new(&book)?,
            decisions: DecisionMetrics::new(&book)?,
            steps: StepMetrics::new(&book, names)?,
            calls: CallMetrics::new(&book, names)?,
            models: ModelMetrics::new(&book, names)?,
            in_flight: book
                .gauge(
                    "runs_in_flight",
                    "Runs that have not ended, by state.",
                    ["state"],
                    [InFlightState::axis()],
                )?
                .with_all_series(),
            registry: registry.clone(),
        })
    }

    /// The same metrics for extended names, which must start with the current ones. Both share all series.
    pub(super) fn with_names(&self, names: &LabelNames) -> Self {
        Self {
            steps: self.steps.with_names(names),
            calls: self.calls.with_names(names),
            models: self.models.with_names(names),
            ..self.clone()
        }
    }

    /// Sets the number of runs that wait for a person. They are not tracked but counted in the store.
    pub fn set_waiting(&self, runs: u64) {
        self.in_flight.set([InFlightState::Waiting as usize], i64::try_from(runs).unwrap_or(i64::MAX));
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

impl std::fmt::Debug for RunMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunMetrics").finish_non_exhaustive()
    }
}
