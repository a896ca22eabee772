//! Metrics by position: every label has a closed list of values, so that counting is an index and an
//! atomic step, and no series can exist that is not on the lists.

use std::sync::{Arc, OnceLock};

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// The values of one label (or of two labels that go together), in the order of their positions.
pub(super) type Axis = Arc<[Vec<String>]>;

/// An axis of one label.
pub(super) fn axis<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Axis {
    values.into_iter().map(|value| vec![value.as_ref().to_owned()]).collect()
}

/// A metric with labels.
pub(super) trait Labelled {
    /// One series of it.
    type Series;

    /// The series with these values; `None` where they are not as many as the labels.
    fn series(&self, values: &[&str]) -> Option<Self::Series>;
}

macro_rules! labelled {
    ($($metric:ty => $series:ty),*) => {$(
        impl Labelled for $metric {
            type Series = $series;

            fn series(&self, values: &[&str]) -> Option<$series> {
                self.get_metric_with_label_values(values).ok()
            }
        }
    )*};
}

labelled!(IntCounterVec => IntCounter, IntGaugeVec => IntGauge, HistogramVec => Histogram);

/// One metric, with a series for each combination of positions that ever occurred. Clones share it.
#[derive(Clone)]
pub(super) struct Grid<M: Labelled, const N: usize> {
    metric: M,
    axes: [Axis; N],
    /// Looked up once.
    cells: Arc<[OnceLock<M::Series>]>,
}

impl<M: Labelled, const N: usize> Grid<M, N> {
    /// No series yet. The labels of `metric` are those of the axes, in order.
    pub(super) fn new(metric: M, axes: [Axis; N]) -> Self {
        let size = axes.iter().map(|axis| axis.len()).product();
        Self { metric, axes, cells: std::iter::repeat_with(OnceLock::new).take(size).collect() }
    }

    /// The same metric with another first axis, which has at least what this one has, in the same places:
    /// the series are the same, too.
    pub(super) fn along(&self, first: &Axis) -> Self
    where
        M: Clone,
    {
        let mut axes = self.axes.clone();
        if let Some(axis) = axes.first_mut() {
            *axis = first.clone();
        }
        Self::new(self.metric.clone(), axes)
    }

    /// With every series there can be, at zero.
    pub(super) fn filled(self) -> Self {
        for index in 0..self.cells.len() {
            let mut rest = index;
            let mut at = [0; N];
            for (place, axis) in at.iter_mut().zip(&self.axes).rev() {
                *place = rest % axis.len();
                rest /= axis.len();
            }
            let _ = self.at(at);
        }
        self
    }

    /// The series at these positions. There is one unless the labels of metric and axes differ, which
    /// no position can change; then nothing is counted.
    fn at(&self, at: [usize; N]) -> Option<&M::Series> {
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
            // Whoever comes second finds the same series.
            let _ = cell.set(self.metric.series(&labels)?);
        }
        cell.get()
    }
}

impl<const N: usize> Grid<IntCounterVec, N> {
    pub(super) fn add(&self, at: [usize; N], by: u64) {
        if let Some(counter) = self.at(at) {
            counter.inc_by(by);
        }
    }

    pub(super) fn inc(&self, at: [usize; N]) {
        self.add(at, 1);
    }
}

impl<const N: usize> Grid<HistogramVec, N> {
    pub(super) fn observe(&self, at: [usize; N], value: f64) {
        if let Some(histogram) = self.at(at) {
            histogram.observe(value);
        }
    }
}

impl<const N: usize> Grid<IntGaugeVec, N> {
    pub(super) fn set(&self, at: [usize; N], value: i64) {
        if let Some(gauge) = self.at(at) {
            gauge.set(value);
        }
    }

    pub(super) fn shift(&self, at: [usize; N], by: i64) {
        if let Some(gauge) = self.at(at) {
            gauge.add(by);
        }
    }
}
