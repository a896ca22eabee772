//! Metrics in the Prometheus text format.

use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

use super::{HttpMetrics, PREFIX, RunMetrics, ServerMetrics};

/// Collects metric families and formats them.
#[derive(Default)]
pub struct Exposition {
    families: Vec<MetricFamily>,
}

/// One series: its label values and its value.
pub(super) type LabelledValue = (Vec<String>, f64);

impl Exposition {
    /// The metrics of runs.
    pub fn of_runs(metrics: &RunMetrics) -> Self {
        Self { families: metrics.gather() }
    }

    /// Adds the metrics that the server has recorded.
    pub fn add_server(&mut self, server_metrics: &ServerMetrics) {
        self.families.extend(server_metrics.gather());
    }

    /// Adds the metrics of HTTP requests.
    pub fn add_http(&mut self, metrics: &HttpMetrics) {
        self.families.extend(metrics.gather());
    }

    pub(super) fn counter(
        &mut self,
        name: &str,
        help: &str,
        labels: &[&str],
        series: impl IntoIterator<Item = LabelledValue>,
    ) {
        self.family(format!("{PREFIX}{name}"), help, MetricType::COUNTER, labels, series, set_counter);
    }

    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        labels: &[&str],
        series: impl IntoIterator<Item = LabelledValue>,
    ) {
        self.family(format!("{PREFIX}{name}"), help, MetricType::GAUGE, labels, series, set_gauge);
    }

    /// A counter with a name that all Prometheus clients share, if it has a value.
    pub(super) fn process_counter(&mut self, name: &str, help: &str, value: Option<f64>) {
        let series = value.map(|value| (vec![], value));
        self.family(name.to_owned(), help, MetricType::COUNTER, &[], series, set_counter);
    }

    pub(super) fn process_gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        let series = value.map(|value| (vec![], value));
        self.family(name.to_owned(), help, MetricType::GAUGE, &[], series, set_gauge);
    }

    fn family(
        &mut self,
        name: String,
        help: &str,
        kind: MetricType,
        labels: &[&str],
        series: impl IntoIterator<Item = LabelledValue>,
        set: impl Fn(&mut Metric, f64),
    ) {
        let metric = |(values, value): LabelledValue| {
            let pairs = labels.iter().zip(values).map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value(value);
                pair
            });
            let mut metric = Metric::from_label(pairs.collect());
            set(&mut metric, value);
            metric
        };
        let mut family = MetricFamily::default();
        family.set_name(name);
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        family.set_metric(series.into_iter().map(metric).collect());
        self.families.push(family);
    }

    /// Formats the text. Metrics without series are omitted.
    pub fn text(mut self) -> String {
        self.families.retain(|family| !family.get_metric().is_empty());
        self.families.sort_by(|a, b| a.name().cmp(b.name()));
        TextEncoder::new().encode_to_string(&self.families).unwrap_or_else(|error| {
            tracing::error!(%error, "the metrics cannot be formatted");
            String::new()
        })
    }
}

fn set_counter(metric: &mut Metric, value: f64) {
    let mut counter = Counter::default();
    counter.set_value(value);
    metric.set_counter(counter);
}

fn set_gauge(metric: &mut Metric, value: f64) {
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    metric.set_gauge(gauge);
}
