//! What is appended, and what it means for the lists of runs and sessions.

use std::sync::Arc;

use serde::Serialize;

use super::approvals::ApprovalChange;
use super::audit::Ruling;
use super::error::{Code, Error};
use super::plans::PlanChange;
use crate::run::{Envelope, Event, Idempotency, RunId, RunStatus, SessionEvent, SessionId, TenantId, Word};

/// Most characters of a request that a list of runs shows.
const REQUEST_CHARS: usize = 200;

/// One record to append.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a conversation's own events are few, and soon written")]
pub enum Record {
    /// An event of a run; the envelope names the run. It is shared with whoever is told of it.
    Run(Arc<Envelope<Event>>),
    /// An event of a session; the envelope names no run.
    Session(Envelope<SessionEvent>),
}

/// A stream of the journal: within it, numbers count from 1 without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// A run's.
    Run(RunId),
    /// A session's own.
    Session(TenantId, SessionId),
}

impl std::fmt::Display for Stream {
    /// As in the table's column `stream`. Ids hold no `/`, so two sessions never share a stream.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stream::Run(run) => write!(f, "run:{run}"),
            Stream::Session(tenant, session) => write!(f, "session:{tenant}/{session}"),
        }
    }
}

/// A record ready to be written: its body is text, its numbers are the database's.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) stream: Stream,
    pub(crate) seq: i64,
    pub(crate) session: SessionId,
    pub(crate) tenant: TenantId,
    pub(crate) at: i64,
    pub(crate) epoch: u32,
    pub(crate) schema: u16,
    pub(crate) body: String,
    pub(crate) change: Change,
}

/// What an event changes in its row of the lists. A pure function of the event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// What becomes of the run's status.
    pub(crate) status: Option<Standing>,
    /// The first words of the request.
    pub(crate) request: Option<String>,
    /// Turns that ended.
    pub(crate) turns: u32,
    /// The name of the request that began the run or decided about it, which is to be this run's alone.
    pub(crate) idempotency: Option<Idempotency>,
    /// What was asked by a request that decided about the run and has no name.
    pub(crate) asked: Option<String>,
    /// What it means for the run's plan.
    pub(crate) plan: PlanChange,
    /// What it means for what is put to people.
    pub(crate) approval: Option<ApprovalChange>,
    /// What a person has decided by it.
    pub(crate) ruling: Option<Ruling>,
}

/// What an event means for a run's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It stands there now.
    Is(RunStatus),
    /// Where it waited, it is at work again.
    GoesOn,
}

impl Standing {
    /// The status after it.
    pub(super) fn after(self, now: RunStatus) -> RunStatus {
        match self {
            Standing::Is(status) => status,
            Standing::GoesOn if now == RunStatus::Waiting => RunStatus::Running,
            Standing::GoesOn => now,
        }
    }
}

impl Row {
    /// Whether the row is the first of a run: a request that is not accepted before it is stored.
    pub(crate) fn begins_a_run(&self) -> bool {
        self.seq == 1 && matches!(self.stream, Stream::Run(_))
    }
}

impl Record {
    /// The stream that the record belongs to.
    ///
    /// # Errors
    /// `store.bad_record` when a run's event names no run or a session's event names one.
    pub fn stream(&self) -> Result<Stream, Error> {
        let run = match self {
            Record::Run(envelope) => envelope.run,
            Record::Session(envelope) => envelope.run,
        };
        match (self, run) {
            (Record::Run(_), Some(run)) => Ok(Stream::Run(run)),
            (Record::Session(Envelope { session, tenant, .. }), None) => {
                Ok(Stream::Session(tenant.clone(), session.clone()))
            }
            (Record::Run(_), None) => {
                Err(Error::new(Code::BadRecord, "an event of a run whose envelope names no run"))
            }
            (Record::Session(_), Some(_)) => {
                Err(Error::new(Code::BadRecord, "an event of a session whose envelope names a run"))
            }
        }
    }

    pub(crate) fn row(&self) -> Result<Row, Error> {
        let stream = self.stream()?;
        match self {
            Record::Run(envelope) => row(stream, envelope, of_run(&envelope.body)),
            Record::Session(envelope) => row(stream, envelope, of_session(&envelope.body)),
        }
    }
}

fn row<B: Serialize>(stream: Stream, envelope: &Envelope<B>, change: Change) -> Result<Row, Error> {
    let bad = |what: String| Error::new(Code::BadRecord, format!("{stream}, seq {}: {what}", envelope.seq));
    let body = serde_json::to_string(&envelope.body)
        .map_err(|e| bad(format!("the event cannot be written as JSON: {e}")))?;
    let seq = i64::try_from(envelope.seq).map_err(|_| bad("the number is too large".to_owned()))?;
    let at = i64::try_from(envelope.at.as_nanosecond())
        .map_err(|_| bad(format!("the time {} cannot be stored", envelope.at)))?;
    Ok(Row {
        seq,
        session: envelope.session.clone(),
        tenant: envelope.tenant.clone(),
        at,
        epoch: envelope.epoch,
        schema: envelope.schema,
        body,
        change,
        stream,
    })
}

fn of_run(event: &Event) -> Change {
    let status = match event {
        Event::RunQueued(_) => Some(Standing::Is(RunStatus::Queued)),
        Event::RunStarted(_) | Event::RunReopened { .. } => Some(Standing::Is(RunStatus::Running)),
        Event::RunWaiting {} => Some(Standing::Is(RunStatus::Waiting)),
        Event::Decided { .. }
        | Event::ApprovalLapsed { .. }
        | Event::Released { .. }
        | Event::ModificationAsked { .. }
        | Event::PlanEdited(_)
        | Event::CancelRequested { .. } => Some(Standing::GoesOn),
        Event::RunCompleted { status } => Some(Standing::Is(*status)),
        Event::RunFailed { .. } => Some(Standing::Is(RunStatus::Failed)),
        Event::RunCancelled { .. } => Some(Standing::Is(RunStatus::Cancelled)),
        _ => None,
    };
    let (plan, approval) = (PlanChange::of(event), ApprovalChange::of(event));
    let change = Change { status, plan, approval, ruling: Ruling::of(event), ..Change::default() };
    match event {
        Event::RunQueued(queued) => Change {
            request: Some(short(&queued.request)),
            idempotency: queued.idempotency.clone(),
            ..change
        },
        Event::Decided { word: Some(Word { idempotency, asked }), .. } => {
            Change { idempotency: idempotency.clone(), asked: asked.clone(), ..change }
        }
        _ => change,
    }
}

fn of_session(event: &SessionEvent) -> Change {
    Change { turns: u32::from(matches!(event, SessionEvent::TurnEnded { .. })), ..Change::default() }
}

/// The request on one line, cut.
pub(super) fn short(request: &str) -> String {
    let mut out = String::new();
    for word in request.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if let Some((end, _)) = out.char_indices().nth(REQUEST_CHARS) {
            out.truncate(end);
            out.push('…');
            break;
        }
    }
    out
}

/// The status as stored.
pub(crate) fn status_text(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "queued",
        RunStatus::Running => "running",
        RunStatus::Waiting => "waiting",
        RunStatus::NeedsInput => "needs_input",
        RunStatus::Completed => "completed",
        RunStatus::Partial => "partial",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}

/// The status that is stored as `text`.
pub(crate) fn status_named(text: &str) -> Option<RunStatus> {
    [
        RunStatus::Queued,
        RunStatus::Running,
        RunStatus::Waiting,
        RunStatus::NeedsInput,
        RunStatus::Completed,
        RunStatus::Partial,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ]
    .into_iter()
    .find(|status| status_text(*status) == text)
}
