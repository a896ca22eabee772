//! The document of an approval: what is the same for all, and what depends on its subject.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::invisible;
use crate::plan::{self, Plan, TaskId};
use crate::run::{
    ApprovalId, ApprovalSubject, CallState, Effect, Envelope, Event, Fault, Outcome, RunId, RunState,
    SessionId, idempotency_key,
};
use crate::store::{About, ApprovalState};

/// An approval, pending or decided. Its JSON is one flat object; which members it has depends on `about`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "ApprovalFields", try_from = "ApprovalFields")]
pub struct ApprovalDocument {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The run's plan.
    pub task_id: TaskId,
    /// The run's conversation.
    pub session_id: SessionId,
    /// The requester of the run.
    pub user: String,
    /// The request.
    pub objective: String,
    /// Why approval is required.
    pub why: Vec<String>,
    /// Hash of what is approved. Empty if nothing about it can change.
    pub hash: String,
    /// Its status.
    pub state: ApprovalState,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires; an expired approval counts as refused.
    pub expires_at: Option<Timestamp>,
    /// The decision, if there is one.
    pub decision: Option<ApprovalDecision>,
    /// Whether the run's requester decides, whatever the configuration says about approving one's own requests.
    pub by_user: bool,
    /// The lists among a call's arguments that may be changed, each with what it may contain besides what it contains
    /// already.
    pub lists: BTreeMap<String, Vec<String>>,
    /// Its subject.
    pub subject: SubjectDocument,
}

/// A decision about an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// `yes`, `no`, `edited`, `done`, `not_done` or `again`.
    pub choice: String,
    /// Who decided.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// That person's reason.
    pub note: Option<String>,
}

/// The subject of an approval.
#[derive(Debug, Clone, PartialEq)]
pub enum SubjectDocument {
    /// Whether a plan may be executed.
    Plan {
        /// Its version.
        version: u32,
        /// The plan.
        plan: Plan,
        /// The plan as text, with invisible and direction-changing characters escaped.
        shown: String,
    },
    /// Whether a write may be executed.
    Call(CallDocument),
    /// Whether a write whose outcome is unknown was done.
    Outcome {
        /// The write.
        call: CallDocument,
        /// The number of its attempts.
        attempts: u32,
        /// What is known about it.
        error: Option<Fault>,
        /// Its idempotency key, by which the called system may recognize it.
        idempotency_key: String,
    },
}

/// A call that an approval is about.
#[derive(Debug, Clone, PartialEq)]
pub struct CallDocument {
    /// Its step.
    pub step_number: u32,
    /// Its scene.
    pub scene: String,
    /// Its tool.
    pub tool: String,
    /// Its exact arguments, as edited by the decision, if they were.
    pub arguments: Value,
    /// The arguments as text, with invisible and direction-changing characters escaped.
    pub shown: String,
    /// Whether it reads or writes.
    pub effect: Effect,
}

impl ApprovalDocument {
    /// The document of an approval. `state` is the fold of `journal`; the approval expires after `expires`.
    /// `None` if the run has no such approval.
    pub fn new(
        journal: &[Envelope<Event>],
        state: &RunState,
        id: ApprovalId,
        expires: Option<Duration>,
    ) -> Option<Self> {
        let put = state.approvals.get(&id.approval)?;
        let (created_at, decided) = approval_times(journal, id.approval);
        let decision = put.decided.as_ref().zip(decided);
        let waits = put.is_open() && !matches!(put.matter, ApprovalSubject::Outcome { .. });
        let queued = state.queued.as_ref();
        let task_id = queued.map_or(TaskId(id.run.0), |queued| queued.task);
        Some(Self {
            approval_id: id,
            task_id,
            session_id: journal.first()?.session.clone(),
            user: queued.map(|queued| queued.user.clone()).unwrap_or_default(),
            objective: state.request().to_owned(),
            why: put.needed.why.clone(),
            hash: put.needed.hash.clone(),
            state: put.into(),
            created_at,
            // An unrepresentable time means never.
            expires_at: expires.filter(|_| waits).and_then(|after| created_at.checked_add(after).ok()),
            decision: decision.map(|((choice, by), (at, note))| ApprovalDecision {
                choice: choice.name().to_owned(),
                by: by.clone(),
                at,
                note,
            }),
            by_user: put.needed.by_user,
            lists: put.needed.lists.clone(),
            subject: SubjectDocument::new(put.matter, journal, state, task_id)?,
        })
    }

    /// The kind of its subject.
    pub fn about(&self) -> About {
        match self.subject {
            SubjectDocument::Plan { .. } => About::Plan,
            SubjectDocument::Call(_) => About::Call,
            SubjectDocument::Outcome { .. } => About::Outcome,
        }
    }
}

impl SubjectDocument {
    /// `None` if the journal has no such plan or call.
    fn new(
        matter: ApprovalSubject,
        journal: &[Envelope<Event>],
        state: &RunState,
        task: TaskId,
    ) -> Option<Self> {
        Some(match matter {
            ApprovalSubject::Plan { version } => {
                let plan = state.plans.iter().find(|made| made.version == version)?.plan.clone();
                let shown = plan::text(&plan, state.request(), task, state.plan_status, &Default::default());
                Self::Plan { version, plan, shown }
            }
            ApprovalSubject::Call { call } => Self::Call(state.calls.get(&call)?.into()),
            ApprovalSubject::Outcome { call: number } => {
                let call = state.calls.get(&number)?;
                Self::Outcome {
                    call: call.into(),
                    attempts: call.attempts,
                    error: unknown_outcome_error(journal, state, number),
                    idempotency_key: idempotency_key(state.run, call.step, number),
                }
            }
        })
    }
}

impl From<&CallState> for CallDocument {
    fn from(call: &CallState) -> Self {
        Self {
            step_number: call.step,
            scene: call.scene.clone(),
            tool: call.requested.tool.clone(),
            arguments: call.requested.arguments.clone(),
            shown: invisible::escape_json_lines(&call.requested.arguments),
            effect: call.requested.effect,
        }
    }
}

impl PartialSchema for ApprovalDocument {
    fn schema() -> RefOr<Schema> {
        ApprovalFields::schema()
    }
}

impl ToSchema for ApprovalDocument {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ApprovalFields::schemas(schemas);
    }
}

/// An approval, pending or decided.
#[derive(Serialize, Deserialize, ToSchema)]
struct ApprovalFields {
    /// Its id.
    #[schema(value_type = String)]
    approval_id: ApprovalId,
    /// Its run.
    #[schema(value_type = String, format = "uuid")]
    run_id: RunId,
    /// The run's plan.
    #[schema(value_type = String, format = "uuid")]
    task_id: TaskId,
    /// The run's conversation.
    #[schema(value_type = String)]
    session_id: SessionId,
    /// Its subject.
    about: About,
    /// The requester of the run.
    user: String,
    /// The request.
    objective: String,
    /// Why approval is required.
    why: Vec<String>,
    /// Hash of what is approved. Sent back with the decision, it makes sure that nothing else is approved.
    /// Empty if nothing about it can change.
    hash: String,
    /// Its status.
    state: ApprovalState,
    /// When it was created.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When it expires; an expired approval counts as refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    expires_at: Option<Timestamp>,
    /// The decision: `yes`, `no`, `edited`, `done`, `not_done` or `again`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    decided_at: Option<Timestamp>,
    /// That person's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// For a plan: its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// For a plan: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    /// For a call: its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step_number: Option<u32>,
    /// For a call: its scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scene: Option<String>,
    /// For a call: its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// For a call: its exact arguments, as edited by the decision, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    arguments: Option<Value>,
    /// For a call: its arguments as text, with invisible and direction-changing characters escaped. For a
    /// plan: the plan as such a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
    /// For a call: `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    effect: Option<Effect>,
    /// Whether the run's requester decides, in words or by `POST /api/approvals/{id}`, whatever the configuration says
    /// about approving one's own requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_user: bool,
    /// For a call: the lists among its arguments that may be changed, each with what it may contain besides what it
    /// contains already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lists: BTreeMap<String, Vec<String>>,
    /// For an outcome: the number of attempts of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// For an outcome: what is known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
    /// For an outcome: the idempotency key of the call, by which the called system may recognize it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
}

impl From<ApprovalDocument> for ApprovalFields {
    fn from(document: ApprovalDocument) -> Self {
        let about = document.about();
        let mut fields = Self {
            approval_id: document.approval_id,
            run_id: document.approval_id.run,
            task_id: document.task_id,
            session_id: document.session_id,
            about,
            user: document.user,
            objective: document.objective,
            why: document.why,
            hash: document.hash,
            state: document.state,
            created_at: document.created_at,
            expires_at: document.expires_at,
            decision: None,
            decided_by: None,
            decided_at: None,
            note: None,
            version: None,
            plan: None,
            step_number: None,
            scene: None,
            tool: None,
            arguments: None,
            shown: None,
            effect: None,
            by_user: document.by_user,
            lists: document.lists,
            attempts: None,
            error: None,
            idempotency_key: None,
        };
        if let Some(ApprovalDecision { choice, by, at, note }) = document.decision {
            (fields.decision, fields.decided_by, fields.decided_at, fields.note) =
                (Some(choice), Some(by), Some(at), note);
        }
        match document.subject {
            SubjectDocument::Plan { version, plan, shown } => {
                (fields.version, fields.plan, fields.shown) = (Some(version), Some(plan), Some(shown));
            }
            SubjectDocument::Call(call) => fields.set_call(call),
            SubjectDocument::Outcome { call, attempts, error, idempotency_key } => {
                fields.set_call(call);
                (fields.attempts, fields.error, fields.idempotency_key) =
                    (Some(attempts), error, Some(idempotency_key));
            }
        }
        fields
    }
}

impl ApprovalFields {
    fn set_call(&mut self, call: CallDocument) {
        self.step_number = Some(call.step_number);
        self.scene = Some(call.scene);
        self.tool = Some(call.tool);
        self.arguments = Some(call.arguments);
        self.shown = Some(call.shown);
        self.effect = Some(call.effect);
    }

    fn take_call(&mut self) -> Option<CallDocument> {
        Some(CallDocument {
            step_number: self.step_number?,
            scene: self.scene.take()?,
            tool: self.tool.take()?,
            arguments: self.arguments.take()?,
            shown: self.shown.take()?,
            effect: self.effect?,
        })
    }

    fn take_subject(&mut self) -> Option<SubjectDocument> {
        Some(match self.about {
            About::Plan => SubjectDocument::Plan {
                version: self.version?,
                plan: self.plan.take()?,
                shown: self.shown.take()?,
            },
            About::Call => SubjectDocument::Call(self.take_call()?),
            About::Outcome => SubjectDocument::Outcome {
                call: self.take_call()?,
                attempts: self.attempts?,
                error: self.error.take(),
                idempotency_key: self.idempotency_key.take()?,
            },
        })
    }
}

impl TryFrom<ApprovalFields> for ApprovalDocument {
    type Error = String;

    fn try_from(mut fields: ApprovalFields) -> Result<Self, String> {
        let about = fields.about.name();
        let incomplete = || format!("members of an approval about `{about}` are missing");
        let subject = fields.take_subject().ok_or_else(incomplete)?;
        let decided = fields.decision.zip(fields.decided_by).zip(fields.decided_at);
        let note = fields.note;
        Ok(Self {
            approval_id: fields.approval_id,
            task_id: fields.task_id,
            session_id: fields.session_id,
            user: fields.user,
            objective: fields.objective,
            why: fields.why,
            hash: fields.hash,
            state: fields.state,
            created_at: fields.created_at,
            expires_at: fields.expires_at,
            decision: decided.map(|((choice, by), at)| ApprovalDecision { choice, by, at, note }),
            by_user: fields.by_user,
            lists: fields.lists,
            subject,
        })
    }
}

/// When the approval was requested, and when and with which note it was decided.
fn approval_times(
    journal: &[Envelope<Event>],
    number: u32,
) -> (Timestamp, Option<(Timestamp, Option<String>)>) {
    let mut created_at = Timestamp::default();
    let mut decided = None;
    for envelope in journal {
        match &envelope.body {
            Event::ApprovalRequired { approval, .. } if *approval == number => created_at = envelope.at,
            Event::Decided { approval, note, .. } if *approval == number => {
                decided = Some((envelope.at, note.clone()));
            }
            _ => {}
        }
    }
    (created_at, decided)
}

/// What was known about a call when a person was asked for its outcome.
fn unknown_outcome_error(journal: &[Envelope<Event>], state: &RunState, number: u32) -> Option<Fault> {
    let own = journal.iter().rev().find_map(|envelope| match &envelope.body {
        Event::ToolCompleted { call, outcome: Outcome::Unknown { error }, .. } if *call == number => {
            Some(error.clone())
        }
        _ => None,
    });
    // A call interrupted by a crash has no completion event.
    own.or_else(|| match state.outcome(number) {
        Some(Outcome::Unknown { error }) => Some(error.clone()),
        _ => None,
    })
}
