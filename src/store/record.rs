//! Records to append, and what they change in the lists of runs and sessions.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::approvals::ApprovalChange;
use super::audit::AuditDecision;
use super::error::{Error, ErrorCode};
use super::learned::LearnedChange;
use super::plans::PlanChange;
use crate::nesting;
use crate::run::{
    DocumentId, Envelope, Event, Idempotency, RequestIdentity, RunId, SessionEvent, SessionId, StatusChange,
    TenantId,
};

/// Maximum length of a request in the list of runs, in characters.
const REQUEST_CHARS: usize = 200;

/// A record to append to the journal.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a conversation has few events of its own, and they are short-lived in memory"
)]
pub enum Record {
    /// An event of a run; the envelope names the run. Shared with the subscribers.
    Run(Arc<Envelope<Event>>),
    /// An event of a session; the envelope names no run.
    Session(Envelope<SessionEvent>),
}

/// The id of a journal stream, in which sequence numbers count from 1 without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamId {
    /// The stream of a run.
    Run(RunId),
    /// The stream of a session's own events.
    Session(TenantId, SessionId),
}

impl std::fmt::Display for StreamId {
    /// Formats as in the column `stream`. Ids contain no `/`, so two sessions never share a stream.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StreamId::Run(run) => write!(f, "run:{run}"),
            StreamId::Session(tenant, session) => write!(f, "session:{tenant}/{session}"),
        }
    }
}

/// A record in the form the database stores: the body as JSON text, integers and nanoseconds as `i64`.
#[derive(Debug, Clone)]
pub(crate) struct JournalRow {
    pub(crate) stream: StreamId,
    pub(crate) seq: i64,
    pub(crate) session: SessionId,
    pub(crate) tenant: TenantId,
    pub(crate) at: i64,
    pub(crate) epoch: u32,
    pub(crate) schema: u16,
    pub(crate) body: String,
    pub(crate) change: ListChange,
}

/// The change of an event in the lists. A pure function of the event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListChange {
    /// The change of the run's status.
    pub(crate) status: Option<StatusChange>,
    pub(crate) request: Option<String>,
    /// Number of turns that ended.
    pub(crate) turns: u32,
    /// The idempotency key of the request that started the run or decided about it; it may belong to no
    /// other run.
    pub(crate) idempotency: Option<Idempotency>,
    /// The user of that key; empty if there is none.
    pub(crate) key_owner: String,
    /// The fingerprint of a request without idempotency key that decided about the run.
    pub(crate) fingerprint: Option<String>,
    /// The change of the run's plan.
    pub(crate) plan: PlanChange,
    /// The change of the run's approvals.
    pub(crate) approval: Option<ApprovalChange>,
    /// What the event teaches about the plan of a template, or about the paths of several.
    pub(crate) learned: Vec<(String, LearnedChange)>,
    /// The key under which the event's result is found later.
    pub(crate) remember: Option<String>,
    /// The documents that the run names from this event on.
    pub(crate) documents: Vec<DocumentId>,
    /// The documents that a question of the run lists.
    pub(crate) listed: Vec<DocumentId>,
    /// The human decision that the event records.
    pub(crate) audit_decision: Option<AuditDecision>,
}

impl JournalRow {
    /// Returns whether the row is the first of a run, whose request counts as accepted only once it is stored.
    pub(crate) fn starts_run(&self) -> bool {
        self.seq == 1 && matches!(self.stream, StreamId::Run(_))
    }
}

impl Record {
    /// The stream that the record belongs to.
    ///
    /// # Errors
    /// `store.bad_record` when a run's event names no run or a session's event names one.
    pub fn stream(&self) -> Result<StreamId, Error> {
        let run = match self {
            Record::Run(envelope) => envelope.run,
            Record::Session(envelope) => envelope.run,
        };
        match (self, run) {
            (Record::Run(_), Some(run)) => Ok(StreamId::Run(run)),
            (Record::Session(Envelope { session, tenant, .. }), None) => {
                Ok(StreamId::Session(tenant.clone(), session.clone()))
            }
            (Record::Run(_), None) => {
                Err(Error::new(ErrorCode::BadRecord, "an event of a run whose envelope names no run"))
            }
            (Record::Session(_), Some(_)) => {
                Err(Error::new(ErrorCode::BadRecord, "an event of a session whose envelope names a run"))
            }
        }
    }

    pub(crate) fn to_row(&self) -> Result<JournalRow, Error> {
        let stream = self.stream()?;
        match self {
            Record::Run(envelope) => build_row(stream, envelope, run_change(&envelope.body)),
            Record::Session(envelope) => build_row(stream, envelope, session_change(&envelope.body)),
        }
    }
}

/// Builds the row of an event. Refuses an event that could not be read back.
fn build_row<B>(stream: StreamId, envelope: &Envelope<B>, change: ListChange) -> Result<JournalRow, Error>
where
    B: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let bad =
        |what: String| Error::new(ErrorCode::BadRecord, format!("{stream}, seq {}: {what}", envelope.seq));
    let body = serde_json::to_string(&envelope.body)
        .map_err(|e| bad(format!("the event cannot be written as JSON: {e}")))?;
    if !nesting::is_readable(body.as_bytes()) {
        let max = nesting::READ_DEPTH;
        return Err(bad(format!("the event is nested deeper than {max} levels and could not be read back")));
    }
    // Checks in tests that every appended event reads back equal.
    debug_assert_eq!(
        serde_json::from_str::<B>(&body).map_err(|e| e.to_string()).as_ref(),
        Ok(&envelope.body)
    );
    let seq = i64::try_from(envelope.seq).map_err(|_| bad("the sequence number is too large".to_owned()))?;
    let at = i64::try_from(envelope.at.as_nanosecond())
        .map_err(|_| bad(format!("the time {} cannot be stored", envelope.at)))?;
    Ok(JournalRow {
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

fn run_change(event: &Event) -> ListChange {
    let (plan, approval) = (PlanChange::of(event), ApprovalChange::of(event));
    let change = ListChange {
        status: event.facts().status,
        plan,
        approval,
        learned: LearnedChange::of(event),
        audit_decision: AuditDecision::of(event),
        ..ListChange::default()
    };
    match event {
        Event::RunQueued(queued) => ListChange {
            request: Some(request_excerpt(&queued.request)),
            idempotency: queued.idempotency.clone(),
            key_owner: queued.user.clone(),
            documents: queued.documents.iter().map(|document| document.id).collect(),
            ..change
        },
        Event::RunStarted(started) => {
            let pending = started.context.pending.iter().flat_map(|pending| &pending.documents);
            ListChange { documents: pending.map(|document| document.id).collect(), ..change }
        }
        Event::SummaryStopped { question: Some(question), .. } => {
            ListChange { listed: question.choices.iter().map(|choice| choice.id).collect(), ..change }
        }
        Event::ToolCompleted { notes: Some(notes), .. } => {
            ListChange { remember: notes.remember.clone(), ..change }
        }
        Event::Decided { by, word: Some(RequestIdentity { idempotency, asked }), .. }
        | Event::ListChangeAsked { by, word: Some(RequestIdentity { idempotency, asked }), .. } => {
            ListChange {
                idempotency: idempotency.clone(),
                key_owner: by.clone(),
                fingerprint: asked.clone(),
                ..change
            }
        }
        _ => change,
    }
}

fn session_change(event: &SessionEvent) -> ListChange {
    ListChange { turns: u32::from(matches!(event, SessionEvent::TurnEnded { .. })), ..ListChange::default() }
}

/// The beginning of the request, on one line.
pub(super) fn request_excerpt(request: &str) -> String {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::tests::{envelope, run_id};
    use super::*;
    use crate::nesting;
    use crate::run::{ApprovalSubject, Decision, Outcome};

    /// JSON of any shape, nested up to a little deeper than can be read.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "(?s).{0,40}".prop_map(Value::from),
        ];
        let bushy = leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("(?s).{0,9}", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        let around = prop::collection::vec(any::<bool>(), 0..140);
        (bushy, around).prop_map(|(value, around)| {
            around
                .into_iter()
                .fold(value, |inner, list| if list { json!([inner]) } else { json!({"a": inner}) })
        })
    }

    fn events(value: &Value) -> [Event; 2] {
        let decision = Decision::Edited { arguments: value.clone(), key: "k".to_owned() };
        let (matter, by) = (ApprovalSubject::Call { call: 1 }, "b".to_owned());
        [
            Event::ToolCompleted {
                call: 1,
                outcome: Outcome::Ok { result: value.clone(), say: None, whole: None },
                millis: 1,
                notes: None,
            },
            Event::Decided { approval: 1, matter, decision, by, note: None, word: None },
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn every_accepted_event_reads_back_equal(value in any_json()) {
            for event in events(&value) {
                match Record::Run(envelope(Some(run_id(1)), "s", 1, event.clone()).into()).to_row() {
                    Ok(row) => prop_assert_eq!(serde_json::from_str::<Event>(&row.body).unwrap(), event),
                    Err(error) => {
                        prop_assert_eq!(error.code(), "store.bad_record");
                        prop_assert!(nesting::is_too_deep([&value]), "events are refused only for their depth");
                    }
                }
            }
            // Input of bounded depth is always accepted.
            for event in events(&nesting::truncate_deep(value)) {
                prop_assert!(Record::Run(envelope(Some(run_id(1)), "s", 1, event).into()).to_row().is_ok());
            }
        }
    }
}
