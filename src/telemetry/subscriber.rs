//! The journal subscriber that produces metrics, spans and log lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::run::{Run, To, spent};
use super::{Figures, Kpis, Names, Outside, Sheet, lines};
use crate::llm::Purpose;
use crate::run::{Attempt, Envelope, Event, RunId, SessionEvent, Usage};
use crate::store::{Record, Stream};

/// Maximum number of runs tracked at once. Beyond it, the oldest is dropped and no longer counted.
const MAX_RUNS: usize = 65_536;

/// A fold over the records of the journal. Streams may interleave, but each stream must be in order. The
/// journal passes it what was written. Replaying the stored records gives the same counts, provided that
/// runs that waited for a person are restored before they continue ([`Subscriber::restore`]).
pub struct Subscriber {
    figures: Figures,
    /// The runs that have not ended. Ids sort by time.
    runs: BTreeMap<RunId, Run>,
}

/// The telemetry of the journal writer.
#[derive(Default)]
pub struct Watch {
    /// Receives the written records.
    pub subscriber: Option<Subscriber>,
    /// Records commits and refused appends.
    pub outside: Outside,
}

impl Subscriber {
    /// Records to `kpis`, if present, and always writes log lines.
    pub fn new(names: Arc<Names>, kpis: Option<Arc<Kpis>>) -> Self {
        Self::of(Figures::new(names, kpis))
    }

    /// Records to `figures`, with the names current at the time of each record.
    pub fn of(figures: Figures) -> Self {
        Self { figures, runs: BTreeMap::new() }
    }

    /// Processes a record that is in the journal.
    pub fn observe(&mut self, record: &Record) {
        match record {
            Record::Run(envelope) => self.of_run(envelope),
            Record::Session(envelope) => self.of_session(envelope),
        }
    }

    /// Restores the tracker of a run that is about to be resumed from its events. Later events are recorded
    /// as if the run had been tracked from the start; the given ones are neither counted nor logged again.
    pub fn restore(&mut self, events: &[Envelope<Event>]) {
        let Some((id, first)) = events.first().and_then(|first| Some((first.run?, first))) else { return };
        let mut run = Run::new(first);
        let now = self.figures.now();
        let to = To { names: &now.names, kpis: None };
        tracing::dispatcher::with_default(&tracing::Dispatch::none(), || {
            for event in events {
                run.observe(event, to);
            }
        });
        run.is_restored();
        self.runs.insert(id, run);
    }

    /// Drops the tracker of a stream from which no more events are expected.
    pub fn forget(&mut self, stream: &Stream) {
        if let Stream::Run(run) = stream {
            self.leave(*run);
        }
    }

    /// The number of tracked runs.
    pub fn following(&self) -> usize {
        self.runs.len()
    }

    fn of_run(&mut self, envelope: &Envelope<Event>) {
        let Some(id) = envelope.run else { return };
        if self.runs.len() >= MAX_RUNS
            && !self.runs.contains_key(&id)
            && let Some(oldest) = self.runs.keys().next().copied()
        {
            self.leave(oldest);
        }
        let now = self.figures.now();
        let run = self.runs.entry(id).or_insert_with(|| Run::new(envelope));
        run.observe(envelope, To::from(&**now));
        if run.rests() {
            self.runs.remove(&id);
        }
    }

    fn of_session(&self, envelope: &Envelope<SessionEvent>) {
        match &envelope.body {
            SessionEvent::Summarised { usage, attempts, .. } => self.summary(attempts, *usage),
            SessionEvent::SummaryFailed { error, usage, attempts } => {
                lines::summary_failed(&envelope.session, &envelope.tenant, &error.code);
                self.summary(attempts, *usage);
            }
            // A turn's usage repeats that of its run.
            SessionEvent::SessionStarted {} | SessionEvent::TurnEnded { .. } => {}
        }
    }

    fn summary(&self, attempts: &[Attempt], usage: Usage) {
        let now = self.figures.now();
        spent(attempts, usage, "", Purpose::Summary.name(), To::from(&**now));
    }

    fn leave(&mut self, run: RunId) {
        if let Some(mut run) = self.runs.remove(&run) {
            run.leave(To::from(&**self.figures.now()));
        }
    }
}

impl<'a> From<&'a Sheet> for To<'a> {
    fn from(sheet: &'a Sheet) -> Self {
        To { names: &sheet.names, kpis: sheet.kpis.as_deref() }
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("tracked_runs", &self.following()).finish_non_exhaustive()
    }
}
