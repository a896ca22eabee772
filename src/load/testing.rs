//! A report for tests.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::ends::RunEnds;
use super::latency::LatencyHistogram;
use super::measure::{MeasuredValues, add_percentiles};
use super::report::{KeyReport, LoadEnd, LoadReport, LoadSettings, LoadUsage, REPORT_FORMAT, RequestCounts};
use super::server::ServerFigures;
use super::threshold::CheckedThreshold;
use super::timeline::ReportedInterval;
use super::usage::ProcessUsage;

/// A small report with everything in it.
pub(super) fn example() -> LoadReport {
    let mut latency = LatencyHistogram::default();
    (1..=100).for_each(|millis| latency.record(std::time::Duration::from_millis(millis)));
    let percentiles = latency.percentiles();
    let mut measures = MeasuredValues::new();
    add_percentiles(&mut measures, "latency", &percentiles.unwrap());
    measures.insert("error_rate".to_owned(), 0.01);
    let counts = RequestCounts { sent: 101, answered: 100, errors: 1, ..RequestCounts::default() };
    LoadReport {
        format: REPORT_FORMAT,
        began: Timestamp::UNIX_EPOCH,
        seconds: 2.0,
        ended: LoadEnd::Requests,
        settings: settings(),
        requests: counts,
        statuses: BTreeMap::from([("completed".to_owned(), 100)]),
        codes: BTreeMap::from([("client.cut".to_owned(), 1)]),
        latency: percentiles,
        first_token: None,
        overhead: percentiles,
        server_overhead: None,
        lag: None,
        latency_curve: latency.curve().into_iter().step_by(25).collect(),
        usage: LoadUsage { llm_calls: 200, cost_usd: Some(0.25), ..LoadUsage::default() },
        keys: vec![KeyReport { name: "a&b".to_owned(), requests: counts, p50_ms: Some(50.0), p99_ms: None }],
        ends: Some(RunEnds { accepted: 101, ended: 101, unheard: 1, ..RunEnds::default() }),
        ends_unchecked: None,
        server: ServerFigures { cache_hits: Some(3.0), cache_misses: Some(1.0), ..ServerFigures::default() },
        loader: Some(ProcessUsage { cpu_ms: 101.0, peak_mib: 12.0 }),
        timeline: (0..2).map(interval).collect(),
        measures,
        thresholds: vec![CheckedThreshold {
            threshold: "p99_latency<50ms".to_owned(),
            value: Some(99.0),
            shown: "99.0 ms".to_owned(),
            holds: false,
        }],
    }
}

fn settings() -> LoadSettings {
    LoadSettings {
        url: "http://127.0.0.1:8080".to_owned(),
        protocol: "api".to_owned(),
        kind: "closed".to_owned(),
        sessions: 4,
        rate: None,
        max_in_flight: 4,
        ramp_s: 0.0,
        duration_s: None,
        max_requests: Some(101),
        think_time: "0s".to_owned(),
        turns: None,
        streamed: false,
        mix: "<built in>".to_owned(),
        seed: 1,
    }
}

fn interval(n: u32) -> ReportedInterval {
    ReportedInterval {
        until_s: f64::from(n + 1),
        sent_per_s: 50.0,
        answered_per_s: 50.0,
        errors_per_s: 0.0,
        shed_per_s: 0.0,
        not_sent_per_s: 0.0,
        in_flight: 4,
        p50_ms: Some(50.0),
        max_ms: Some(99.0 + f64::from(n)),
        memory_bytes: None,
    }
}
