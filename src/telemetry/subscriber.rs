//! The fold over the journal that produces metrics, spans and log lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::model_usage::record_attempts;
use super::run_tracker::{MetricSink, RunTracker};
use super::traces::{RunTraces, TraceFold};
use super::{LabelNames, RunMetrics, ServerMetrics, log_lines};
use crate::llm::Purpose;
use crate::run::{Attempt, Envelope, Event, RunId, SessionEvent, TenantId, Usage};
use crate::store::{Record, StreamId};

/// Maximum number of runs tracked at once. Beyond it, the oldest is dropped; its next event restores it.
const MAX_RUNS: usize = 65_536;

/// A fold over the records of the journal. Streams may interleave, but each stream must be in order.
/// Replaying the stored records gives the same counts, provided that runs that waited for a person are
/// restored before they continue ([`Subscriber::restore`]).
pub struct Subscriber {
    names: Arc<LabelNames>,
    /// Absent if only log lines are wanted.
    metrics: Option<RunMetrics>,
    /// The runs that have not ended. Ids sort by time.
    runs: BTreeMap<RunId, FoldedRun>,
    /// Where spans go, if there are traces.
    traces: Option<RunTraces>,
}

struct FoldedRun {
    tracker: RunTracker,
    /// Absent if the run has no spans.
    spans: Option<Box<TraceFold>>,
}

impl FoldedRun {
    /// Starts with the first known event of the run, which is folded next.
    fn new(first: &Envelope<Event>, traces: Option<&RunTraces>) -> Self {
        let spans = traces.and_then(|traces| TraceFold::new(&traces.options, first));
        Self { tracker: RunTracker::new(first), spans: spans.map(Box::new) }
    }
}

/// Receives what the journal has written. Each stream arrives in order and without gaps. No call blocks, so
/// the journal never waits.
pub trait RecordSink: Send + Sync {
    /// Receives the records of one commit, before their waiters are answered.
    fn publish(&self, records: Vec<Record>);

    /// A stream has failed: no more of its events are expected for now.
    fn forget(&self, stream: &StreamId);
}

/// The telemetry of the journal writer.
#[derive(Default)]
pub struct JournalTelemetry {
    /// Receives the written records.
    pub sink: Option<Arc<dyn RecordSink>>,
    /// Records commits and refused appends.
    pub server_metrics: ServerMetrics,
}

impl Subscriber {
    /// Records to `metrics`, if present, and always writes log lines. The metrics must have been made for
    /// `names`.
    pub fn new(names: Arc<LabelNames>, metrics: Option<RunMetrics>) -> Self {
        Self { names, metrics, runs: BTreeMap::new(), traces: None }
    }

    /// The same, which also makes spans.
    #[must_use]
    pub fn traced(self, traces: Option<RunTraces>) -> Self {
        Self { traces, ..self }
    }

    /// The metrics, if they are recorded.
    pub fn metrics(&self) -> Option<&RunMetrics> {
        self.metrics.as_ref()
    }

    /// Uses other label names for the records from now on. They must be an extension of the current ones
    /// ([`LabelNames::extended`]): all series are kept.
    pub fn set_names(&mut self, names: Arc<LabelNames>) {
        self.metrics = self.metrics.as_ref().map(|metrics| metrics.with_names(&names));
        self.names = names;
    }

    /// Processes a record that is in the journal.
    pub fn observe(&mut self, record: &Record) {
        match record {
            Record::Run(envelope) => self.observe_run(envelope),
            Record::Session(envelope) => self.observe_session(envelope),
        }
    }

    /// Restores the tracker of a run from its earlier events, the first one included. Later events are
    /// recorded as if the run had been tracked from the start; the given ones are neither counted nor logged
    /// again.
    pub fn restore(&mut self, events: &[Envelope<Event>]) {
        let Some((id, first)) = events.first().and_then(|first| Some((first.run?, first))) else { return };
        self.stop_tracking(id);
        self.make_room();
        let mut run = FoldedRun::new(first, self.traces.as_ref());
        let uncounted = MetricSink { names: &self.names, metrics: None };
        log_lines::without_lines(|| {
            for event in events {
                run.tracker.observe(event, uncounted);
                if let Some(spans) = &mut run.spans {
                    // They were exported when they ended.
                    drop(spans.observe(event));
                }
            }
        });
        run.tracker.count_in_flight(MetricSink { names: &self.names, metrics: self.metrics.as_ref() });
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

    /// Returns whether the run is tracked.
    pub fn is_tracked(&self, run: RunId) -> bool {
        self.runs.contains_key(&run)
    }

    fn observe_run(&mut self, envelope: &Envelope<Event>) {
        let Some(id) = envelope.run else { return };
        if !self.runs.contains_key(&id) {
            self.make_room();
        }
        let to = MetricSink { names: &self.names, metrics: self.metrics.as_ref() };
        let traces = self.traces.as_ref();
        let run = self.runs.entry(id).or_insert_with(|| FoldedRun::new(envelope, traces));
        run.tracker.observe(envelope, to);
        if let (Some(traces), Some(spans)) = (traces, &mut run.spans) {
            spans.observe(envelope).into_iter().for_each(|span| traces.sink.export(span));
        }
        if run.tracker.is_idle() {
            self.runs.remove(&id);
        }
    }

    fn observe_session(&self, envelope: &Envelope<SessionEvent>) {
        match &envelope.body {
            SessionEvent::Summarised { usage, attempts, .. } => {
                self.record_summary(&envelope.tenant, attempts, *usage);
            }
            SessionEvent::SummaryFailed { error, usage, attempts } => {
                log_lines::summary_failed(&envelope.session, &envelope.tenant, &error.code);
                self.record_summary(&envelope.tenant, attempts, *usage);
            }
            // A turn's usage repeats that of its run.
            SessionEvent::SessionStarted {}
            | SessionEvent::TurnEnded { .. }
            | SessionEvent::QuestionLapsed { .. }
            | SessionEvent::Fact { .. } => {}
        }
    }

    fn record_summary(&self, tenant: &TenantId, attempts: &[Attempt], usage: Usage) {
        let to = MetricSink { names: &self.names, metrics: self.metrics.as_ref() };
        record_attempts(attempts, usage, (tenant, "", Purpose::Summary.name()), to);
    }

    /// Drops the oldest run if no further one can be tracked.
    fn make_room(&mut self) {
        if self.runs.len() >= MAX_RUNS
            && let Some(oldest) = self.runs.keys().next().copied()
        {
            self.stop_tracking(oldest);
        }
    }

    fn stop_tracking(&mut self, run: RunId) {
        if let Some(mut run) = self.runs.remove(&run) {
            run.tracker.stop_tracking(MetricSink { names: &self.names, metrics: self.metrics.as_ref() });
        }
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("tracked_runs", &self.tracked_runs()).finish_non_exhaustive()
    }
}
