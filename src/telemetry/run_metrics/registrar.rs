//! Creates metrics and registers them.

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, MetricFamily};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::groups::{CounterGrid, HistogramGrid};
use crate::telemetry::grid::{Axis, Grid, LabelledMetric};
use crate::telemetry::tenant_metrics::TenantMetrics;
use crate::telemetry::{LabelNames, PREFIX};

/// Creates metrics and registers them.
pub(super) struct MetricRegistrar<'a>(pub(super) &'a Registry);

impl MetricRegistrar<'_> {
    fn register<M: LabelledMetric + Collector + Clone + 'static, const N: usize>(
        &self,
        metric: M,
        axes: [Axis; N],
    ) -> Result<Grid<M, N>, prometheus::Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(Grid::new(metric, axes))
    }

    pub(super) fn count<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<CounterGrid<N>, prometheus::Error> {
        self.register(IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?, axes)
    }

    pub(super) fn gauge<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<Grid<IntGaugeVec, N>, prometheus::Error> {
        self.register(IntGaugeVec::new(Opts::new(format!("{PREFIX}{name}"), help), &labels)?, axes)
    }

    pub(super) fn time<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
        buckets: &[f64],
    ) -> Result<HistogramGrid<N>, prometheus::Error> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(buckets.to_vec());
        self.register(HistogramVec::new(options, &labels)?, axes)
    }

    pub(super) fn dollars<const L: usize, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        axes: [Axis; N],
    ) -> Result<CounterGrid<N>, prometheus::Error> {
        Ok(Grid::new(self.nano_dollars(name, help, &labels)?, axes))
    }

    /// A counter of nano-USD, exported in dollars.
    fn nano_dollars(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec, prometheus::Error> {
        let nano = IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), labels)?;
        self.0.register(Box::new(DollarCounter(nano.clone())))?;
        Ok(nano)
    }

    pub(super) fn tenants(&self, names: &LabelNames) -> Result<TenantMetrics, prometheus::Error> {
        let requests = IntCounterVec::new(
            Opts::new(
                format!("{PREFIX}tenant_requests_total"),
                "Requests that ended, by tenant and first outcome (tenant other: all beyond telemetry.max_tenant_labels).",
            ),
            &["tenant", "outcome"],
        )?;
        self.0.register(Box::new(requests.clone()))?;
        let cost = self.nano_dollars(
            "tenant_cost_usd_total",
            "US dollars charged for attempts at models, by tenant (other: all beyond telemetry.max_tenant_labels).",
            &["tenant"],
        )?;
        Ok(TenantMetrics::new(requests, cost, &names.tenants))
    }
}

/// Counts nano-USD and exports dollars.
struct DollarCounter(IntCounterVec);

impl Collector for DollarCounter {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.0.collect();
        for metric in families.iter_mut().flat_map(|family| family.mut_metric()) {
            let mut dollars = Counter::default();
            dollars.set_value(metric.get_counter().get_value() / 1e9);
            metric.set_counter(dollars);
        }
        families
    }
}
