//! Durations as histograms (HDR): percentiles with constant memory.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer durations count as this one: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

/// Durations by how often they occurred, in microseconds.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    /// Present: creating one fails only for a number of digits that does not exist.
    micros: Option<Histogram<u64>>,
}

/// The percentiles of a histogram, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyPercentiles {
    /// How many durations were recorded.
    pub count: u64,
    /// The mean.
    pub mean_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The 99.9th percentile.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new(3)
    }
}

impl LatencyHistogram {
    /// A histogram that tells two durations apart which differ in one of `digits` significant digits (1 to 5).
    pub fn new(digits: u8) -> Self {
        Self { micros: Histogram::new(digits).ok() }
    }

    /// Records a duration.
    pub fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(LONGEST_US).min(LONGEST_US);
        if let Some(histogram) = &mut self.micros {
            // The range grows by itself.
            let _ = histogram.record(micros);
        }
    }

    /// Adds what another one recorded.
    pub fn add(&mut self, other: &Self) {
        if let (Some(to), Some(from)) = (&mut self.micros, &other.micros) {
            // Both grow as far as needed, so one has room for the other.
            let _ = to.add(from);
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.micros.as_ref().map_or(0, Histogram::len)
    }

    /// The duration that a share of the recorded ones does not exceed, in milliseconds; `None` if there are none.
    pub fn millis_at(&self, quantile: f64) -> Option<f64> {
        let histogram = self.micros.as_ref().filter(|histogram| !histogram.is_empty())?;
        Some(histogram.value_at_quantile(quantile).min(histogram.max()) as f64 / 1000.0)
    }

    /// The usual percentiles; `None` if nothing was recorded.
    pub fn percentiles(&self) -> Option<LatencyPercentiles> {
        let histogram = self.micros.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |quantile| self.millis_at(quantile).unwrap_or_default();
        Some(LatencyPercentiles {
            count: histogram.len(),
            mean_ms: histogram.mean() / 1000.0,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: histogram.max() as f64 / 1000.0,
        })
    }

    /// Points of the curve of percentiles: how many nines a share has (0.9 → 1, 0.99 → 2), and its duration in
    /// milliseconds. As far as single durations tell percentiles apart.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let nines = (self.count().max(1) as f64).log10().min(5.0);
        let points = (0..=50).map(|step| nines * f64::from(step) / 50.0);
        points.filter_map(|nines| Some((nines, self.millis_at(1.0 - 10_f64.powf(-nines))?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(millis: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        millis.into_iter().for_each(|millis| histogram.record(Duration::from_millis(millis)));
        histogram
    }

    #[test]
    fn percentiles_are_those_of_the_durations_within_a_thousandth() {
        assert_eq!(LatencyHistogram::default().percentiles(), None);
        let read = of(1..=1000).percentiles().unwrap();
        let near = |given: f64, expected: f64| (given - expected).abs() <= expected / 500.0;
        assert!(
            near(read.p50_ms, 500.0) && near(read.p99_ms, 990.0) && near(read.mean_ms, 500.5),
            "{read:?}"
        );
        assert!(near(read.max_ms, 1000.0) && read.count == 1000, "{read:?}");
        // An outlier after small values keeps its size.
        let mut outlier = of([1]);
        outlier.record(Duration::from_secs(100_000));
        assert!(near(outlier.percentiles().unwrap().max_ms, 3_600_000.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn adding_histograms_is_recording_everything_in_one(a in prop::collection::vec(0_u64..100_000, 0..50),
            b in prop::collection::vec(0_u64..100_000, 0..50)) {
            let mut sum = of(a.clone());
            sum.add(&of(b.clone()));
            prop_assert_eq!(sum.percentiles(), of(a.into_iter().chain(b)).percentiles());
        }

        #[test]
        fn curve_never_falls(millis in prop::collection::vec(1_u64..10_000, 1..100)) {
            let curve = of(millis).curve();
            prop_assert!(curve.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        }
    }
}
