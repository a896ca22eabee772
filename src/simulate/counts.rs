//! The simulated model's own count of what it did.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::fate::FaultKind;
use super::question::{OTHER, kind_name};
use super::reply::SimulatedUsage;
use crate::run::Purpose;

/// The times of replies, in seconds.
const SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0];

/// What the names of all its metrics begin with.
const PREFIX: &str = "proscenium_simulator_";

/// The kinds of tokens.
const TOKENS: [&str; 3] = ["prompt", "cached", "completion"];

/// Where replies come from.
const REMEMBERED: [&str; 2] = ["hit", "miss"];

/// How late a reply may be sent without being counted in `over_10_ms`.
const LATE: Duration = Duration::from_millis(10);

/// Why a request got no reply and no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// Too many requests were in progress.
    Overloaded,
    /// It was no request of the protocol.
    Invalid,
    /// The offline model answers no such question.
    Unsupported,
}

impl Rejection {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Overloaded, "overloaded"), (Self::Invalid, "invalid"), (Self::Unsupported, "unsupported")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(one, _)| *one == self).map_or(OTHER, |(_, name)| name)
    }
}

/// The counts, in the Prometheus format at `/metrics` and as JSON at `/counts`.
pub(super) struct Counts {
    registry: Registry,
    requests: IntCounterVec,
    faults: IntCounterVec,
    rejected: IntCounterVec,
    tokens: IntCounterVec,
    remembered: IntCounterVec,
    replies: IntCounter,
    abandoned: IntCounter,
    seconds: Histogram,
    late: Histogram,
    late_over: AtomicU64,
    late_max_us: AtomicU64,
    in_flight: AtomicU64,
    peak: AtomicU64,
    /// The two as metrics, set when they are read.
    gauges: [IntGauge; 2],
}

/// The counts of the simulated model since its start, as at `/counts`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatorCounts {
    /// Requests by the purpose of their question, as the product names it; `other` for those of other programs.
    pub requests: BTreeMap<String, u64>,
    /// Faults that were shown, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Requests that were refused: `overloaded`, `invalid`, `unsupported`.
    pub rejected: BTreeMap<String, u64>,
    /// Tokens of replies that were sent to their end: `prompt` (`cached` included), `cached`, `completion`.
    pub tokens: BTreeMap<String, u64>,
    /// Replies from memory (`hit`), and those that the rules were asked for (`miss`).
    pub remembered: BTreeMap<String, u64>,
    /// Replies that were sent to their end.
    pub replies: u64,
    /// Requests whose client did not wait for the end of the reply.
    pub abandoned: u64,
    /// How late replies were sent, measured from the request and the time that was drawn: replies of which something
    /// was more than 10 ms late (`over_10_ms`), and the most microseconds (`most_us`). It is this program's own share.
    pub late: BTreeMap<String, u64>,
    /// Requests in progress.
    pub in_flight: u64,
    /// Maximum number of requests that were in progress at once.
    pub peak_in_flight: u64,
}

struct MetricBook(Registry);

impl MetricBook {
    /// A counter with a label whose values are known.
    fn counts(
        &self,
        name: &str,
        help: &str,
        (label, values): (&str, &[&str]),
    ) -> Result<IntCounterVec, prometheus::Error> {
        let counter = IntCounterVec::new(Opts::new(format!("{PREFIX}{name}"), help), &[label])?;
        for value in values {
            // What did not happen is 0, not absent.
            counter.get_metric_with_label_values(&[value])?;
        }
        self.registered(counter)
    }

    fn count(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.registered(IntCounter::new(format!("{PREFIX}{name}"), help)?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.registered(IntGauge::new(format!("{PREFIX}{name}"), help)?)
    }

    fn seconds(&self, name: &str, help: &str) -> Result<Histogram, prometheus::Error> {
        let options = HistogramOpts::new(format!("{PREFIX}{name}"), help).buckets(SECONDS.to_vec());
        self.registered(Histogram::with_opts(options)?)
    }

    fn registered<M: Collector + Clone + 'static>(&self, metric: M) -> Result<M, prometheus::Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

impl Counts {
    /// All counts at 0.
    ///
    /// # Errors
    /// A metric cannot be registered, which is a fault of this program.
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        let book = MetricBook(Registry::new());
        let purposes: Vec<&str> =
            Purpose::VARIANTS.iter().map(|purpose| purpose.name()).chain([OTHER]).collect();
        let faults: Vec<&str> = FaultKind::all().map(FaultKind::name).collect();
        let reasons = Rejection::ALL.map(|(_, name)| name);
        let tokens =
            "Tokens of replies that were sent to their end; cached ones are also part of the prompt.";
        let late = "By how much replies were sent later than their drawn time.";
        let left = "Requests whose client left before the end of the reply.";
        let peak = "The most requests that were in progress at once.";
        Ok(Self {
            requests: book.counts(
                "requests_total",
                "Requests by the purpose of their question.",
                ("purpose", &purposes),
            )?,
            faults: book.counts("faults_total", "Faults that were shown, by kind.", ("fault", &faults))?,
            rejected: book.counts("rejected_total", "Requests that were refused.", ("reason", &reasons))?,
            tokens: book.counts("tokens_total", tokens, ("type", &TOKENS))?,
            remembered: book.counts(
                "remembered_total",
                "Replies by whether they were remembered.",
                ("outcome", &REMEMBERED),
            )?,
            replies: book.count("replies_total", "Replies that were sent to their end.")?,
            abandoned: book.count("abandoned_total", left)?,
            seconds: book.seconds("reply_seconds", "From the request to the end of the reply.")?,
            late: book.seconds("late_seconds", late)?,
            late_over: AtomicU64::default(),
            late_max_us: AtomicU64::default(),
            in_flight: AtomicU64::default(),
            peak: AtomicU64::default(),
            gauges: [book.gauge("in_flight", "Requests in progress.")?, book.gauge("in_flight_peak", peak)?],
            registry: book.0,
        })
    }

    /// Counts a request as in progress if there is room for it among `max`; returns whether there is.
    pub(super) fn begin(&self, max: usize) -> bool {
        let room = |now: u64| (now < max as u64).then_some(now + 1);
        let before = self.in_flight.fetch_update(Relaxed, Relaxed, room);
        if let Ok(before) = before {
            self.peak.fetch_max(before + 1, Relaxed);
        }
        before.is_ok()
    }

    /// A request that was counted as in progress is over.
    pub(super) fn end(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// The requests in progress.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    pub(super) fn asked(&self, kind: Option<Purpose>, was_remembered: bool) {
        self.requests.with_label_values(&[kind_name(kind)]).inc();
        self.remembered.with_label_values(&[if was_remembered { "hit" } else { "miss" }]).inc();
    }

    pub(super) fn shown(&self, fault: FaultKind) {
        self.faults.with_label_values(&[fault.name()]).inc();
    }

    pub(super) fn rejected(&self, why: Rejection) {
        self.rejected.with_label_values(&[why.name()]).inc();
    }

    /// Counts a reply that was sent to its end.
    pub(super) fn replied(&self, usage: SimulatedUsage, took: Duration, late: Duration) {
        self.replies.inc();
        self.late.observe(late.as_secs_f64());
        self.late_over.fetch_add(u64::from(late > LATE), Relaxed);
        self.late_max_us.fetch_max(u64::try_from(late.as_micros()).unwrap_or(u64::MAX), Relaxed);
        self.seconds.observe(took.as_secs_f64());
        for (kind, tokens) in TOKENS.into_iter().zip([usage.prompt, usage.cached, usage.completion]) {
            self.tokens.with_label_values(&[kind]).inc_by(tokens);
        }
    }

    pub(super) fn abandoned(&self) {
        self.abandoned.inc();
    }

    /// In the Prometheus text format.
    pub(super) fn text(&self) -> String {
        for (gauge, value) in self.gauges.iter().zip([&self.in_flight, &self.peak]) {
            gauge.set(i64::try_from(value.load(Relaxed)).unwrap_or(i64::MAX));
        }
        let families = self.registry.gather();
        TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| {
            tracing::error!(%error, "the metrics cannot be formatted");
            String::new()
        })
    }

    pub(super) fn document(&self) -> SimulatorCounts {
        let by = |counter: &IntCounterVec, names: &mut dyn Iterator<Item = &'static str>| {
            names.map(|name| (name.to_owned(), counter.with_label_values(&[name]).get())).collect()
        };
        SimulatorCounts {
            requests: by(
                &self.requests,
                &mut Purpose::VARIANTS.iter().map(|purpose| purpose.name()).chain([OTHER]),
            ),
            faults: by(&self.faults, &mut FaultKind::all().map(FaultKind::name)),
            rejected: by(&self.rejected, &mut Rejection::ALL.iter().map(|(_, name)| *name)),
            tokens: by(&self.tokens, &mut TOKENS.into_iter()),
            remembered: by(&self.remembered, &mut REMEMBERED.into_iter()),
            late: [("over_10_ms", &self.late_over), ("most_us", &self.late_max_us)]
                .map(|(name, number)| (name.to_owned(), number.load(Relaxed)))
                .into(),
            replies: self.replies.get(),
            abandoned: self.abandoned.get(),
            in_flight: self.in_flight(),
            peak_in_flight: self.peak.load(Relaxed),
        }
    }
}
