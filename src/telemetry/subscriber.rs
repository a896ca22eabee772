//! The one that turns the journal into figures, spans and log lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::run::{Run, To, spent};
use super::{Figures, Kpis, Names, Outside, Sheet, lines};
use crate::llm::Purpose;
use crate::run::{Attempt, Envelope, Event, RunId, SessionEvent, Usage};
use crate::store::{Record, Stream};

/// Most runs that are followed at once. Beyond it the oldest is left alone: it counts no more.
const MAX_RUNS: usize = 65_536;

/// A fold over the records of the journal, of any streams in any order that keeps each stream's own.
/// The journal's writer shows it what was written; another one, shown the stored records, comes to the
/// same counts, if it is shown anew what a run was that has waited for a person ([`Subscriber::restore`]).
pub struct Subscriber {
    figures: Figures,
    /// Those that have not ended. Ids sort by time.
    runs: BTreeMap<RunId, Run>,
}

/// What the journal's writer tells of what it does.
#[derive(Default)]
pub struct Watch {
    /// Is shown what was written.
    pub subscriber: Option<Subscriber>,
    /// Hears of commits, and of appends that were refused.
    pub outside: Outside,
}

impl Subscriber {
    /// Counts in `kpis`, if there are any, and writes lines in any case.
    pub fn new(names: Arc<Names>, kpis: Option<Arc<Kpis>>) -> Self {
        Self::of(Figures::new(names, kpis))
    }

    /// Counts in `figures`, by the names that they have when a record comes.
    pub fn of(figures: Figures) -> Self {
        Self { figures, runs: BTreeMap::new() }
    }

    /// A record is in the journal.
    pub fn observe(&mut self, record: &Record) {
        match record {
            Record::Run(envelope) => self.of_run(envelope),
            Record::Session(envelope) => self.of_session(envelope),
        }
    }

    /// The events of a run that is about to be carried on: what comes of it then is told as of a run that
    /// was followed from its beginning, and nothing of before is counted or told again.
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

    /// Nothing more of this stream is expected.
    pub fn forget(&mut self, stream: &Stream) {
        if let Stream::Run(run) = stream {
            self.leave(*run);
        }
    }

    /// How many runs are followed.
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
            // A turn's usage is that of its run once more.
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
        f.debug_struct("Subscriber").field("following", &self.following()).finish_non_exhaustive()
    }
}
