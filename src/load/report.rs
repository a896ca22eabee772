//! The report of a load test: what JSON and HTML files hold, and what a later test is compared with.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ends::RunEnds;
use super::latency::LatencyPercentiles;
use super::measure::{MeasuredValues, min_durations};
use super::outcome::RequestUsage;
use super::recorder::LoadRecorder;
use super::server::ServerFigures;
use super::threshold::CheckedThreshold;
use super::timeline::ReportedInterval;
use super::usage::ProcessUsage;

/// The format of reports. Later releases read it.
pub const REPORT_FORMAT: u32 = 1;

/// A load test and its results. Durations are in milliseconds unless their name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// [`REPORT_FORMAT`].
    pub format: u32,
    /// When the load began.
    pub began: Timestamp,
    /// How long requests were sent, and the last of them awaited, in seconds.
    pub seconds: f64,
    /// Why it ended.
    pub ended: LoadEnd,
    /// The requests that were sent, and where.
    pub settings: LoadSettings,
    /// Requests by their ends.
    pub requests: RequestCounts,
    /// Answers by the status of their run.
    pub statuses: BTreeMap<String, u64>,
    /// Refused and failed requests by code.
    pub codes: BTreeMap<String, u64>,
    /// Latencies of answers, and of requests without an answer in time: from the intended start in an open loop, from
    /// sending in a closed one. Like all durations, of requests that started after the ramp.
    pub latency: Option<LatencyPercentiles>,
    /// From sending to the first text of streamed answers.
    pub first_token: Option<LatencyPercentiles>,
    /// Overhead as the client saw it: latencies without what answers say that models, tools and people took.
    pub overhead: Option<LatencyPercentiles>,
    /// Overhead as answers tell it, from acceptance to answer.
    pub server_overhead: Option<LatencyPercentiles>,
    /// How much later than intended requests were sent.
    pub lag: Option<LatencyPercentiles>,
    /// Points of the curve of latencies: how many nines the percentile has, and milliseconds.
    pub latency_curve: Vec<(f64, f64)>,
    /// Calls of models, tokens and costs of all answers.
    pub usage: LoadUsage,
    /// The requests of each key.
    pub keys: Vec<KeyReport>,
    /// What became of accepted requests; absent if it could not be checked.
    pub ends: Option<RunEnds>,
    /// Why it could not be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_unchecked: Option<String>,
    /// The resources that the server used.
    pub server: ServerFigures,
    /// What the load test itself used, where the system tells it.
    pub loader: Option<ProcessUsage>,
    /// The course of the test.
    pub timeline: Vec<ReportedInterval>,
    /// All measures by name, each in its own unit: milliseconds, shares, bytes, US dollars.
    pub measures: MeasuredValues,
    /// The requirements.
    pub thresholds: Vec<CheckedThreshold>,
}

/// The requests that were sent, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSettings {
    /// The address.
    pub url: String,
    /// `api` or `openai`.
    pub protocol: String,
    /// `closed` or `open`.
    #[serde(rename = "loop")]
    pub kind: String,
    /// Conversations at once.
    pub sessions: u32,
    /// Requests a second of an open loop.
    pub rate: Option<f64>,
    /// Maximum number of requests in flight.
    pub max_in_flight: u32,
    /// How long the load rose, in seconds.
    pub ramp_s: f64,
    /// For how long requests were to be sent, in seconds.
    pub duration_s: Option<f64>,
    /// How many requests were to be sent.
    pub max_requests: Option<u64>,
    /// Think time, as it was given.
    pub think_time: String,
    /// Requests of a conversation, if not as many as its scenario has.
    pub turns: Option<u32>,
    /// Whether answers were streamed.
    pub streamed: bool,
    /// Where the requests came from.
    pub mix: String,
    /// The seed of choices.
    pub seed: u64,
}

/// Why a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEnd {
    /// Its time was over.
    Duration,
    /// All requests were sent.
    Requests,
    /// A threshold of `--abort` was reached.
    Aborted,
    /// Every request was refused for its API key, so none further was sent.
    Denied,
    /// A person stopped it.
    Interrupted,
    /// A part of the load test itself failed; its message is on standard error.
    Failed,
}

/// Requests by their ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests that were sent.
    pub sent: u64,
    /// Answers.
    pub answered: u64,
    /// Failures, and refusals other than sheds.
    pub errors: u64,
    /// Those of them that were refused for their API key, with 401 or 403.
    #[serde(default)]
    pub denied: u64,
    /// Requests refused with 429 or 503 before they were accepted.
    pub shed: u64,
    /// Those of them that did not say when to come again.
    pub shed_without_retry_after: u64,
    /// Requests of an open loop that were due and not sent, because too many were in flight.
    pub not_sent: u64,
    /// Answers of an earlier request with the same key.
    pub replayed: u64,
}

impl RequestCounts {
    /// Returns whether at least so many requests have ended, and all of them were refused for their API key.
    pub fn are_denied(&self, min: u64) -> bool {
        self.denied >= min && self.answered + self.shed == 0 && self.errors == self.denied
    }
}

/// Calls of models, tokens and costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadUsage {
    /// Calls of models.
    pub llm_calls: u64,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Prompt tokens from the provider's cache.
    pub cached_input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// Cost in US dollars; absent if no answer told it.
    pub cost_usd: Option<f64>,
}

/// The requests of one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyReport {
    /// Its name in the file of keys.
    pub name: String,
    /// Requests by their ends.
    pub requests: RequestCounts,
    /// The median latency of its answers.
    pub p50_ms: Option<f64>,
    /// The 99th percentile.
    pub p99_ms: Option<f64>,
}

impl LoadUsage {
    /// Adds what an answer told.
    pub fn add(&mut self, answer: &RequestUsage) {
        self.llm_calls += answer.llm_calls;
        self.input_tokens += answer.input_tokens;
        self.cached_input_tokens += answer.cached_input_tokens;
        self.output_tokens += answer.output_tokens;
        if let Some(cost) = answer.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }
}

impl LoadReport {
    /// Returns whether there are as many durations as a percentile takes; true for other measures.
    pub(super) fn has_enough_for(&self, measure: &str) -> bool {
        let Some(min) = min_durations(measure) else { return true };
        let family = measure.split_once('_').map_or("", |(_, family)| family);
        let durations = match family {
            "latency" => self.latency,
            "first_token" => self.first_token,
            "overhead" => self.overhead,
            "server_overhead" => self.server_overhead,
            _ => self.lag,
        };
        durations.is_none_or(|durations| durations.count >= min)
    }

    /// The report of what was recorded; ends, server, loader and thresholds are added by their owners.
    pub fn new(
        settings: LoadSettings,
        began: Timestamp,
        elapsed: Duration,
        ended: LoadEnd,
        recorder: &LoadRecorder,
    ) -> Self {
        Self {
            format: REPORT_FORMAT,
            began,
            seconds: elapsed.as_secs_f64(),
            ended,
            settings,
            requests: *recorder.counts(),
            statuses: recorder.statuses().clone(),
            codes: recorder.codes().clone(),
            latency: recorder.latency.percentiles(),
            first_token: recorder.first_token.percentiles(),
            overhead: recorder.overhead.percentiles(),
            server_overhead: recorder.server_overhead.percentiles(),
            lag: recorder.lag.percentiles(),
            latency_curve: recorder.latency.curve(),
            usage: *recorder.usage(),
            keys: recorder.by_key(),
            ends: None,
            ends_unchecked: None,
            server: ServerFigures::default(),
            loader: None,
            timeline: recorder.timeline.reported(elapsed),
            measures: recorder.measured(elapsed),
            thresholds: Vec::new(),
        }
    }

    /// Adds the measures that exist only after the load: ends, server and loader.
    pub fn add_final_measures(&mut self) {
        let (answered, sent) = (self.requests.answered as f64, self.requests.sent as f64);
        let mut add = |name: &str, value: Option<f64>| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                self.measures.insert(name.to_owned(), value);
            }
        };
        if let Some(ends) = &self.ends {
            add("lost", Some(ends.lost as f64));
            add("duplicates", Some(ends.duplicates as f64));
            add("waiting", Some(ends.waiting as f64));
        }
        let server = &self.server;
        add("server_memory_max", server.memory_max_bytes);
        let growth = server.memory_after_bytes.zip(server.memory_before_bytes);
        add("server_memory_growth", growth.map(|(after, before)| after - before));
        add("server_cpu_per_answer", server.cpu_seconds.map(|seconds| seconds * 1000.0 / answered));
        add("loader_cpu_per_request", self.loader.map(|loader| loader.cpu_ms / sent));
        let lookups = server.cache_hits.zip(server.cache_misses);
        add("cache_hit_rate", lookups.map(|(hits, misses)| hits / (hits + misses)));
    }

    /// Returns whether the load ran to its end and all requirements hold.
    pub fn holds(&self) -> bool {
        matches!(self.ended, LoadEnd::Duration | LoadEnd::Requests)
            && self.thresholds.iter().all(|threshold| threshold.holds)
    }

    /// Reads an earlier report.
    ///
    /// # Errors
    /// `load.against` if it is none, or of another format.
    pub fn parse(text: &str) -> Result<Self, super::LoadFault> {
        let fault = |why: String| super::LoadFault::new("load.against", why);
        let format = serde_json::from_str::<serde_json::Value>(text)
            .map_err(|error| fault(format!("it is not valid JSON: {error}")))?;
        let format = format.get("format").and_then(serde_json::Value::as_u64);
        if format != Some(REPORT_FORMAT.into()) {
            return Err(fault(format!(
                "it is not a report of the format {REPORT_FORMAT}, as --json writes it"
            )));
        }
        serde_json::from_str(text)
            .map_err(|error| fault(format!("it is not a report of a load test: {error}")))
    }
}

impl LoadSettings {
    /// The settings that differ, each as `name: this → other`.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let fields = |settings: &Self| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (these, others) = (fields(self), fields(other));
        let differing = these.iter().filter(|(name, value)| others.get(*name) != Some(value));
        differing
            .map(|(name, value)| {
                let now = others.get(name).map_or_else(String::new, ToString::to_string);
                format!("{name}: {value} → {now}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::example;
    use super::*;

    #[test]
    fn report_is_read_as_it_was_written_and_anything_else_is_refused() {
        let mut report = example();
        report.add_final_measures();
        let measure = |name: &str| report.measures.get(name).copied();
        assert_eq!((measure("lost"), measure("cache_hit_rate")), (Some(0.0), Some(0.75)));
        assert_eq!((measure("server_memory_max"), measure("loader_cpu_per_request")), (None, Some(1.0)));
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(LoadReport::parse(&text).unwrap(), report);
        for bad in ["", "{}", r#"{"format": 2}"#, r#"{"format": 1}"#] {
            assert_eq!(LoadReport::parse(bad).unwrap_err().code, "load.against", "{bad}");
        }
    }

    #[test]
    fn load_that_ended_early_does_not_hold() {
        let mut report = LoadReport { thresholds: Vec::new(), ..example() };
        assert!(report.holds());
        report.ended = LoadEnd::Aborted;
        assert!(!report.holds());
    }
}
