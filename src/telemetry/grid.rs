//! Metrics indexed by position. Every label has a closed list of values, so that recording is an index and
//! an atomic operation, and no series outside the lists can exist.

use std::sync::{Arc, OnceLock};

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// The values of one label, or of two labels that belong together, in order of position.
pub(super) type Axis = Arc<[Vec<String>]>;

/// An axis for one label.
pub(super) fn axis<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Axis {
    values.into_iter().map(|value| vec![value.as_ref().to_owned()]).collect()
}

pub(super) trait LabelledMetric {
    type Series;

    /// The series with these label values; `None` if their number is wrong.
    fn series(&self, values: &[&str]) -> Option<Self::Series>;
}

macro_rules! labelled {
    ($($metric:ty => $series:ty),*) => {$(
        impl LabelledMetric for $metric {
            type Series = $series;

            fn series(&self, values: &[&str]) -> Option<$series> {
                self.get_metric_with_label_values(values).ok()
            }
        }
    )*};
}

labelled!(IntCounterVec => IntCounter, IntGaugeVec => IntGauge, HistogramVec => Histogram);

/// One metric, with a series for each combination of positions that has occurred. Clones share it.
#[derive(Clone)]
pub(super) struct Grid<M: LabelledMetric, const N: usize> {
    metric: M,
    axes: [Axis; N],
    /// The series by flattened position, looked up once each.
    cells: Arc<[OnceLock<M::Series>]>,
}

impl<M: LabelledMetric, const N: usize> Grid<M, N> {
    /// A grid without series. The labels of `metric` must be those of the axes, in order.
    pub(super) fn new(metric: M, axes: [Axis; N]) -> Self {
        let size = axes.iter().map(|axis| axis.len()).product();
        Self { metric, axes, cells: std::iter::repeat_with(OnceLock::new).take(size).collect() }
    }

    /// The same metric with another first axis, which must start with all values of the current one. Existing
    /// series are kept.
    pub(super) fn with_first_axis(&self, first: &Axis) -> Self
    where
        M: Clone,
    {
        let mut axes = self.axes.clone();
        if let Some(axis) = axes.first_mut() {
            *axis = first.clone();
        }
        Self::new(self.metric.clone(), axes)
    }

    /// Creates every possible series at zero.
    pub(super) fn with_all_series(self) -> Self {
        for index in 0..self.cells.len() {
            let mut rest = index;
            let mut at = [0; N];
            for (place, axis) in at.iter_mut().zip(&self.axes).rev() {
                *place = rest % axis.len();
                rest /= axis.len();
            }
            let _ = self.cell(at);
        }
        self
    }

    /// The series at these positions. `None` only if the labels of metric and axes differ, whatever the
    /// position; then nothing is recorded.
    fn cell(&self, at: [usize; N]) -> Option<&M::Series> {
        let mut index = 0;
        for (place, axis) in at.iter().zip(&self.axes) {
            index = index * axis.len() + (*place).min(axis.len().saturating_sub(1));
        }
        let cell = self.cells.get(index)?;
        if cell.get().is_none() {
            let labels: Vec<&str> = at
                .iter()
                .zip(&self.axes)
                .filter_map(|(place, axis)| axis.get(*place))
                .flatten()
                .map(String::as_str)
                .collect();
            // If another thread was first, it has set the same series.
            let _ = cell.set(self.metric.series(&labels)?);
        }
        cell.get()
    }
}

impl<const N: usize> Grid<IntCounterVec, N> {
    pub(super) fn add(&self, at: [usize; N], by: u64) {
        if let Some(counter) = self.cell(at) {
            counter.inc_by(by);
        }
    }

    pub(super) fn inc(&self, at: [usize; N]) {
        self.add(at, 1);
    }
}

impl<const N: usize> Grid<HistogramVec, N> {
    pub(super) fn observe(&self, at: [usize; N], value: f64) {
        if let Some(histogram) = self.cell(at) {
            histogram.observe(value);
        }
    }
}

impl<const N: usize> Grid<IntGaugeVec, N> {
    pub(super) fn set(&self, at: [usize; N], value: i64) {
        if let Some(gauge) = self.cell(at) {
            gauge.set(value);
        }
    }

    pub(super) fn adjust(&self, at: [usize; N], by: i64) {
        if let Some(gauge) = self.cell(at) {
            gauge.add(by);
        }
    }
}
