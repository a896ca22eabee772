//! The course of a load test: intervals of equal length, as many as a plot shows, whatever the length of the load.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::latency::LatencyHistogram;

/// Maximum number of intervals. Where more are needed, each two become one.
const MAX_INTERVALS: usize = 240;
/// The length of intervals at first.
const FIRST_WIDTH: Duration = Duration::from_millis(250);

/// Counts and latencies of a load over its time.
#[derive(Debug, Clone)]
pub struct Timeline {
    width: Duration,
    intervals: Vec<TimelineInterval>,
}

/// The events of one interval.
#[derive(Debug, Clone)]
pub struct TimelineInterval {
    /// Requests that were sent.
    pub sent: u64,
    /// Answers.
    pub answered: u64,
    /// Failures.
    pub errors: u64,
    /// Refusals with 429 or 503.
    pub shed: u64,
    /// Requests that were due and not sent.
    pub not_sent: u64,
    /// Maximum number of requests in flight that were seen.
    pub in_flight: u64,
    /// Latencies of the answers, to two digits.
    pub latency: LatencyHistogram,
    /// Highest resident memory of the server, in bytes.
    pub memory_bytes: Option<f64>,
}

impl Default for TimelineInterval {
    fn default() -> Self {
        Self {
            sent: 0,
            answered: 0,
            errors: 0,
            shed: 0,
            not_sent: 0,
            in_flight: 0,
            latency: LatencyHistogram::new(2),
            memory_bytes: None,
        }
    }
}

/// One interval in a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportedInterval {
    /// Its end, in seconds since the start of the load.
    pub until_s: f64,
    /// Requests that were sent, a second.
    pub sent_per_s: f64,
    /// Answers a second.
    pub answered_per_s: f64,
    /// Failures a second.
    pub errors_per_s: f64,
    /// Refusals with 429 or 503 a second.
    pub shed_per_s: f64,
    /// Requests that were due and not sent, a second.
    pub not_sent_per_s: f64,
    /// Maximum number of requests in flight that were seen.
    pub in_flight: u64,
    /// The median latency of the answers, in milliseconds.
    pub p50_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
    /// Highest resident memory of the server, in bytes.
    pub memory_bytes: Option<f64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { width: FIRST_WIDTH, intervals: Vec::new() }
    }
}

impl Timeline {
    /// The interval of a time since the start of the load.
    pub fn at(&mut self, time: Duration) -> &mut TimelineInterval {
        let place =
            |width: Duration| usize::try_from(time.as_nanos() / width.as_nanos()).unwrap_or(usize::MAX);
        while place(self.width) >= MAX_INTERVALS {
            self.halve();
        }
        let at = place(self.width);
        if self.intervals.len() <= at {
            self.intervals.resize_with(at + 1, TimelineInterval::default);
        }
        &mut self.intervals[at]
    }

    /// Makes one interval of each two.
    fn halve(&mut self) {
        self.width *= 2;
        let mut merged: Vec<TimelineInterval> = Vec::with_capacity(MAX_INTERVALS);
        for (at, interval) in self.intervals.drain(..).enumerate() {
            match merged.last_mut() {
                Some(first) if at % 2 == 1 => first.add(&interval),
                _ => merged.push(interval),
            }
        }
        self.intervals = merged;
    }

    /// The intervals for a report. The last one ends with the load; a short rest belongs to the one before, since a few
    /// requests would be many a second in it.
    pub fn reported(&self, load: Duration) -> Vec<ReportedInterval> {
        let (whole, load) = (self.width.as_secs_f64(), load.as_secs_f64());
        let mut intervals = self.intervals.clone();
        let rest = load - whole * intervals.len().saturating_sub(1) as f64;
        if rest < whole / 2.0
            && intervals.len() > 1
            && let Some(short) = intervals.pop()
            && let Some(last) = intervals.last_mut()
        {
            last.add(&short);
        }
        let count = intervals.len();
        let reported = |(at, interval): (usize, &TimelineInterval)| {
            let from = at as f64 * whole;
            let until = if at + 1 < count { from + whole } else { load.max(from + whole / 10.0) };
            let rate = |count: u64| ((count as f64 / (until - from)) * 100.0).round() / 100.0;
            ReportedInterval {
                until_s: (until * 1000.0).round() / 1000.0,
                sent_per_s: rate(interval.sent),
                answered_per_s: rate(interval.answered),
                errors_per_s: rate(interval.errors),
                shed_per_s: rate(interval.shed),
                not_sent_per_s: rate(interval.not_sent),
                in_flight: interval.in_flight,
                p50_ms: interval.latency.millis_at(0.5),
                max_ms: interval.latency.millis_at(1.0),
                memory_bytes: interval.memory_bytes,
            }
        };
        intervals.iter().enumerate().map(reported).collect()
    }
}

impl TimelineInterval {
    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.errors += other.errors;
        self.shed += other.shed;
        self.not_sent += other.not_sent;
        self.in_flight = self.in_flight.max(other.in_flight);
        self.latency.add(&other.latency);
        self.memory_bytes = [self.memory_bytes, other.memory_bytes].into_iter().flatten().reduce(f64::max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_load_has_no_more_intervals_and_loses_no_count() {
        let mut timeline = Timeline::default();
        for second in 0..1000 {
            let interval = timeline.at(Duration::from_secs(second));
            interval.sent += 2;
            interval.in_flight = second;
            interval.latency.record(Duration::from_millis(10));
        }
        assert!(timeline.intervals.len() <= MAX_INTERVALS);
        assert_eq!(timeline.intervals.iter().map(|interval| interval.sent).sum::<u64>(), 2000);
        assert_eq!(timeline.intervals.iter().map(|interval| interval.latency.count()).sum::<u64>(), 1000);
        let reported = timeline.reported(Duration::from_secs(1000));
        assert!(reported.windows(2).all(|pair| pair[0].until_s < pair[1].until_s));
        assert!(reported.iter().all(|interval| interval.sent_per_s > 0.0 && interval.max_ms.is_some()));
        assert_eq!(
            reported.last().map(|interval| (interval.until_s, interval.in_flight)),
            Some((1000.0, 999))
        );
        let mut short = Timeline::default();
        short.at(Duration::ZERO).sent += 4;
        short.at(FIRST_WIDTH + Duration::from_millis(10)).sent += 2;
        let reported = short.reported(FIRST_WIDTH + Duration::from_millis(20));
        let rate = 6.0 / (FIRST_WIDTH + Duration::from_millis(20)).as_secs_f64();
        assert!(reported.len() == 1 && (reported[0].sent_per_s - rate).abs() < 0.01, "{reported:?}");
    }
}
