//! Records what came of the requests of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use super::latency::LatencyHistogram;
use super::measure::{self, MeasuredValues};
use super::outcome::{RequestEnd, RequestOutcome, ServerTimes};
use super::report::{KeyReport, LoadUsage, RequestCounts};
use super::timeline::Timeline;

/// Maximum number of codes that are counted apart. Others count as [`OTHER`].
const MAX_CODES: usize = 64;
/// The name of all codes beyond.
const OTHER: &str = "other";

/// When a request was sent, and how long it took.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestTimes {
    /// Its start, intended in an open loop, since the start of the load.
    pub started_at: Duration,
    /// Its end, since the start of the load.
    pub ended_at: Duration,
    /// From its intended start in an open loop, from its sending in a closed one, to its end.
    pub latency: Duration,
    /// How much later than intended it was sent.
    pub lag: Duration,
}

/// The record of a load. Its memory does not depend on the number of requests.
#[derive(Debug, Clone)]
pub struct LoadRecorder {
    /// Durations of requests that started earlier are not recorded.
    ramp: Duration,
    /// When requests were no longer sent.
    closed_at: Option<Duration>,
    /// Answers after the ramp, while requests were sent.
    in_window: u64,
    counts: RequestCounts,
    statuses: BTreeMap<String, u64>,
    codes: BTreeMap<String, u64>,
    usage: LoadUsage,
    keys: Vec<KeyRecord>,
    /// Latencies: of answers, and of requests that nobody answered in time, which took at least as long.
    pub latency: LatencyHistogram,
    /// From sending to the first text of streamed answers.
    pub first_token: LatencyHistogram,
    /// What the client saw beyond the waits that answers tell.
    pub overhead: LatencyHistogram,
    /// The overhead that answers tell.
    pub server_overhead: LatencyHistogram,
    /// How much later than intended requests were sent.
    pub lag: LatencyHistogram,
    /// The course of the test.
    pub timeline: Timeline,
}

#[derive(Debug, Clone)]
struct KeyRecord {
    name: String,
    counts: RequestCounts,
    latency: LatencyHistogram,
}

impl LoadRecorder {
    /// An empty record for keys of these names, of a load that rises during the ramp.
    pub fn new(keys: impl IntoIterator<Item = String>, ramp: Duration) -> Self {
        let key =
            |name| KeyRecord { name, counts: RequestCounts::default(), latency: LatencyHistogram::new(2) };
        Self {
            ramp,
            closed_at: None,
            in_window: 0,
            counts: RequestCounts::default(),
            statuses: BTreeMap::new(),
            codes: BTreeMap::new(),
            usage: LoadUsage::default(),
            keys: keys.into_iter().map(key).collect(),
            latency: LatencyHistogram::default(),
            first_token: LatencyHistogram::default(),
            overhead: LatencyHistogram::default(),
            server_overhead: LatencyHistogram::default(),
            lag: LatencyHistogram::default(),
            timeline: Timeline::default(),
        }
    }

    /// Records that a request with the key number `key` was sent.
    pub fn sent(&mut self, key: usize, at: Duration) {
        self.counts.sent += 1;
        self.timeline.at(at).sent += 1;
        if let Some(key) = self.keys.get_mut(key) {
            key.counts.sent += 1;
        }
    }

    /// Records that a request was due and was not sent, because too many were in flight.
    pub fn not_sent(&mut self, at: Duration) {
        self.counts.not_sent += 1;
        self.timeline.at(at).not_sent += 1;
    }

    /// Records the end of a request with the key number `key`.
    pub fn ended(&mut self, key: usize, times: RequestTimes, outcome: &RequestOutcome) {
        let interval = self.timeline.at(times.ended_at);
        let is_measured = times.started_at >= self.ramp;
        if is_measured {
            self.lag.record(times.lag);
        }
        if is_measured && (outcome.is_answered() || outcome.is_unanswered()) {
            self.latency.record(times.latency);
        }
        let mut by_key = self.keys.get_mut(key);
        let mut count = |add: fn(&mut RequestCounts)| {
            add(&mut self.counts);
            if let Some(key) = &mut by_key {
                add(&mut key.counts);
            }
        };
        if outcome.is_replay {
            count(|counts| counts.replayed += 1);
        }
        match &outcome.end {
            RequestEnd::Answered { status } => {
                count(|counts| counts.answered += 1);
                interval.answered += 1;
                interval.latency.record(times.latency);
                if times.ended_at >= self.ramp && self.closed_at.is_none() {
                    self.in_window += 1;
                }
                if let Some(key) = by_key.filter(|_| is_measured) {
                    key.latency.record(times.latency);
                }
                add(&mut self.statuses, status);
            }
            RequestEnd::Shed { code, retry_after_s } => {
                count(|counts| counts.shed += 1);
                if retry_after_s.is_none() {
                    count(|counts| counts.shed_without_retry_after += 1);
                }
                interval.shed += 1;
                add(&mut self.codes, code);
            }
            RequestEnd::Failed { code } => {
                count(|counts| counts.errors += 1);
                if outcome.is_denied {
                    count(|counts| counts.denied += 1);
                }
                interval.errors += 1;
                add(&mut self.codes, code);
            }
        }
        if let Some(first) = outcome.first_token.filter(|_| is_measured) {
            self.first_token.record(first);
        }
        self.usage.add(&outcome.usage);
        if let Some(server) = outcome.usage.times.filter(|_| is_measured) {
            self.overhead(times.latency, server);
        }
    }

    /// Returns whether at least so many requests have ended, and every key that was used was refused each time.
    pub fn is_denied(&self, min: u64) -> bool {
        let mut used = self.keys.iter().filter(|key| key.counts.sent > 0);
        self.counts.are_denied(min) && used.all(|key| key.counts.are_denied(1))
    }

    /// Records the overhead of an answer that a client got after `latency`.
    pub fn overhead(&mut self, latency: Duration, server: ServerTimes) {
        self.overhead.record(server.seen_overhead(latency));
        self.server_overhead.record(server.overhead());
    }

    /// Records calls and costs that were not in the replies.
    pub fn set_usage(&mut self, usage: LoadUsage) {
        self.usage = usage;
    }

    /// Ends the time of which the throughput is measured. Answers are recorded further.
    pub fn close(&mut self, at: Duration) {
        self.closed_at.get_or_insert(at);
    }

    /// The counts.
    pub fn counts(&self) -> &RequestCounts {
        &self.counts
    }

    /// The usage of all answers.
    pub fn usage(&self) -> &LoadUsage {
        &self.usage
    }

    /// Answers by the status of their run.
    pub fn statuses(&self) -> &BTreeMap<String, u64> {
        &self.statuses
    }

    /// Refused and failed requests by code.
    pub fn codes(&self) -> &BTreeMap<String, u64> {
        &self.codes
    }

    /// The record of each key.
    pub fn by_key(&self) -> Vec<KeyReport> {
        let report = |key: &KeyRecord| KeyReport {
            name: key.name.clone(),
            requests: key.counts,
            p50_ms: key.latency.millis_at(0.5),
            p99_ms: key.latency.millis_at(0.99),
        };
        self.keys.iter().map(report).collect()
    }

    /// Returns what can be measured while the load runs, `elapsed` after its start.
    pub fn measured(&self, elapsed: Duration) -> MeasuredValues {
        let mut values = MeasuredValues::new();
        for (family, histogram) in [
            ("latency", &self.latency),
            ("first_token", &self.first_token),
            ("overhead", &self.overhead),
            ("server_overhead", &self.server_overhead),
            ("lag", &self.lag),
        ] {
            if let Some(percentiles) = histogram.percentiles() {
                measure::add_percentiles(&mut values, family, &percentiles);
            }
        }
        measure::add_counts(&mut values, &self.counts, &self.usage);
        measure::add_statuses(&mut values, &self.statuses, self.counts.answered);
        let window = self.closed_at.unwrap_or(elapsed).saturating_sub(self.ramp);
        if !window.is_zero() {
            values.insert("throughput".to_owned(), self.in_window as f64 / window.as_secs_f64());
        }
        values
    }
}

/// Adds one to a name's count; names beyond the bound count as [`OTHER`].
fn add(counts: &mut BTreeMap<String, u64>, name: &str) {
    let known = counts.contains_key(name) || counts.len() < MAX_CODES;
    let name: String = if known { name.chars().take(80).collect() } else { OTHER.to_owned() };
    *counts.entry(name).or_insert(0) += 1;
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{RequestUsage, TIMEOUT};
    use super::*;

    fn times(millis: u64) -> RequestTimes {
        RequestTimes { latency: Duration::from_millis(millis), ..RequestTimes::default() }
    }

    #[test]
    fn each_end_is_counted_once_in_total_and_by_key() {
        let mut recorder = LoadRecorder::new(["a".to_owned(), "b".to_owned()], Duration::ZERO);
        let answered = RequestOutcome {
            usage: RequestUsage {
                llm_calls: 2,
                cost_usd: Some(0.5),
                times: Some(ServerTimes { total_ms: 18.0, overhead_ms: 3.0 }),
                ..RequestUsage::default()
            },
            ..RequestOutcome::of(RequestEnd::Answered { status: "completed".to_owned() })
        };
        let shed = |retry_after_s| {
            RequestOutcome::of(RequestEnd::Shed { code: "server.overloaded".to_owned(), retry_after_s })
        };
        for (key, outcome) in
            [(0, answered), (1, shed(Some(1))), (1, shed(None)), (1, RequestOutcome::failed("client.cut"))]
        {
            recorder.sent(key, Duration::ZERO);
            recorder.ended(key, times(20), &outcome);
        }
        recorder.not_sent(Duration::ZERO);
        let counts = *recorder.counts();
        assert_eq!(
            (counts.sent, counts.answered, counts.shed, counts.errors, counts.not_sent),
            (4, 1, 2, 1, 1)
        );
        assert_eq!(counts.shed_without_retry_after, 1);
        let keys = recorder.by_key();
        assert_eq!(keys.iter().map(|key| key.requests.sent).collect::<Vec<_>>(), [1, 3]);
        assert!(keys[0].p50_ms.is_some() && keys[1].p50_ms.is_none());
        let values = recorder.measured(Duration::from_secs(2));
        let value = |name: &str| values.get(name).map(|value| (value * 10.0).round() / 10.0);
        assert_eq!((values["error_rate"], values["shed_rate"]), (0.5, 0.5));
        assert_eq!((value("throughput"), value("cost_per_answer")), (Some(0.5), Some(0.5)));
        // The client waited 5 ms for something else than models and tools, of 20; the server knows of 3.
        assert_eq!((value("p50_overhead"), value("p50_server_overhead")), (Some(5.0), Some(3.0)));
        assert_eq!(value("p99_overhead"), None, "the 99th percentile of one duration is none");
        assert_eq!((value("p99_first_token"), value("max_latency")), (None, Some(20.0)));
    }

    #[test]
    fn load_is_denied_once_every_key_in_use_was_refused() {
        let names = ["mistyped".to_owned(), "valid".to_owned(), "unused".to_owned()];
        let mut recorder = LoadRecorder::new(names, Duration::ZERO);
        let denied = RequestOutcome { is_denied: true, ..RequestOutcome::failed("auth.key") };
        recorder.sent(1, Duration::ZERO);
        for _ in 0..3 {
            recorder.sent(0, Duration::ZERO);
            recorder.ended(0, times(1), &denied);
        }
        assert!(!recorder.is_denied(3), "the other key waits for its first answer");
        recorder.ended(1, times(200), &denied);
        assert!(recorder.is_denied(4) && !recorder.is_denied(5));
        recorder.sent(1, Duration::ZERO);
        recorder.ended(1, times(200), &RequestOutcome::failed("client.cut"));
        assert!(!recorder.is_denied(4), "something else than the key may be wrong");
    }

    #[test]
    fn ramp_and_tail_are_no_throughput_and_unanswered_requests_are_latencies() {
        let mut recorder = LoadRecorder::new([], Duration::from_secs(1));
        let answered = RequestOutcome::of(RequestEnd::Answered { status: "partial".to_owned() });
        let mut end = |started: u64, ended: u64, outcome: &RequestOutcome| {
            let (started_at, ended_at) = (Duration::from_secs(started), Duration::from_secs(ended));
            if ended == 9 {
                recorder.close(Duration::from_secs(5));
            }
            let times = RequestTimes {
                started_at,
                ended_at,
                latency: ended_at - started_at,
                ..RequestTimes::default()
            };
            recorder.ended(0, times, outcome);
        };
        end(0, 2, &answered);
        end(1, 2, &answered);
        end(2, 3, &RequestOutcome::failed("request.unsupported"));
        end(1, 9, &RequestOutcome::failed(TIMEOUT));
        end(4, 9, &answered);
        let values = recorder.measured(Duration::from_secs(20));
        // Two answers in the four seconds after the ramp; the percentiles know the request that got none.
        assert_eq!((values["throughput"], values["partial_rate"]), (0.5, 1.0));
        assert_eq!((recorder.latency.count(), (values["max_latency"] / 10.0).round()), (3, 800.0));
    }

    #[test]
    fn number_of_codes_is_bounded() {
        let mut recorder = LoadRecorder::new([], Duration::ZERO);
        for n in 0..1000 {
            recorder.ended(0, times(1), &RequestOutcome::failed(format!("code.{n}")));
        }
        assert_eq!(
            (recorder.codes().len(), recorder.codes()[OTHER]),
            (MAX_CODES + 1, 1000 - MAX_CODES as u64)
        );
    }
}
