//! The journal subscriber that produces metrics, spans and log lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::run_tracker::{MetricSink, RunTracker, record_attempts};
use super::{Kpis, LabelNames, MetricSet, MetricSnapshot, ServerMetrics, log_lines};
use crate::llm::Purpose;
use crate::run::{Attempt, Envelope, Event, RunId, SessionEvent, Usage};
use crate::store::{Record, StreamId};

/// Maximum number of runs tracked at once. Beyond it, the oldest is dropped and no longer counted.
const MAX_RUNS: usize = 65_536;

/// A fold over the records of the journal. Streams may interleave, but each stream must be in order. The
/// journal passes it what was written. Replaying the stored records gives the same counts, provided that
/// runs that waited for a person are restored before they continue ([`Subscriber::restore`]).
pub struct Subscriber {
    metrics: MetricSet,
    /// The runs that have not ended. Ids sort by time.
    runs: BTreeMap<RunId, RunTracker>,
}

/// The telemetry of the journal writer.
#[derive(Default)]
pub struct JournalTelemetry {
    /// Receives the written records.
    pub subscriber: Option<Subscriber>,
    /// Records commits and refused appends.
    pub server_metrics: ServerMetrics,
}

impl Subscriber {
    /// Records to `kpis`, if present, and always writes log lines.
    pub fn new(names: Arc<LabelNames>, kpis: Option<Arc<Kpis>>) -> Self {
        Self::with_metrics(MetricSet::new(names, kpis))
    }

    /// Records to `figures`, with the names current at the time of each record.
    pub fn with_metrics(metrics: MetricSet) -> Self {
        Self { metrics, runs: BTreeMap::new() }
    }

    /// Processes a record that is in the journal.
    pub fn observe(&mut self, record: &Record) {
        match record {
            Record::Run(envelope) => self.observe_run(envelope),
            Record::Session(envelope) => self.observe_session(envelope),
        }
    }

    /// Restores the tracker of a run that is about to be resumed from its events. Later events are recorded
    /// as if the run had been tracked from the start; the given ones are neither counted nor logged again.
    pub fn restore(&mut self, events: &[Envelope<Event>]) {
        let Some((id, first)) = events.first().and_then(|first| Some((first.run?, first))) else { return };
        let mut run = RunTracker::new(first);
        let now = self.metrics.load();
        let to = MetricSink { names: &now.names, kpis: None };
        tracing::dispatcher::with_default(&tracing::Dispatch::none(), || {
            for event in events {
                run.observe(event, to);
            }
        });
        run.mark_restored();
        self.runs.insert(id, run);
    }

    /// Drops the tracker of a stream from which no more events are expected.
    pub fn forget(&mut self, stream: &StreamId) {
        if let StreamId::Run(run) = stream {
            self.stop_tracking(*run);
        }
    }

    /// The number of tracked runs.
    pub fn tracked_runs(&self) -> usize {
        self.runs.len()
    }

    fn observe_run(&mut self, envelope: &Envelope<Event>) {
        let Some(id) = envelope.run else { return };
        if self.runs.len() >= MAX_RUNS
            && !self.runs.contains_key(&id)
            && let Some(oldest) = self.runs.keys().next().copied()
        {
            self.stop_tracking(oldest);
        }
        let now = self.metrics.load();
        let run = self.runs.entry(id).or_insert_with(|| RunTracker::new(envelope));
        run.observe(envelope, MetricSink::from(&**now));
        if run.is_idle() {
            self.runs.remove(&id);
        }
    }

    fn observe_session(&self, envelope: &Envelope<SessionEvent>) {
        match &envelope.body {
            SessionEvent::Summarised { usage, attempts, .. } => self.record_summary(attempts, *usage),
            SessionEvent::SummaryFailed { error, usage, attempts } => {
                log_lines::summary_failed(&envelope.session, &envelope.tenant, &error.code);
                self.record_summary(attempts, *usage);
            }
            // A turn's usage repeats that of its run.
            SessionEvent::SessionStarted {} | SessionEvent::TurnEnded { .. } => {}
        }
    }

    fn record_summary(&self, attempts: &[Attempt], usage: Usage) {
        let now = self.metrics.load();
        record_attempts(attempts, usage, "", Purpose::Summary.name(), MetricSink::from(&**now));
    }

    fn stop_tracking(&mut self, run: RunId) {
        if let Some(mut run) = self.runs.remove(&run) {
            run.stop_tracking(MetricSink::from(&**self.metrics.load()));
        }
    }
}

impl<'a> From<&'a MetricSnapshot> for MetricSink<'a> {
    fn from(sheet: &'a MetricSnapshot) -> Self {
        MetricSink { names: &sheet.names, kpis: sheet.kpis.as_deref() }
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("tracked_runs", &self.tracked_runs()).finish_non_exhaustive()
    }
}
