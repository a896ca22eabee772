//! The documents of plans and approvals for clients, over HTTP and on the command line. They are made from
//! the run's journal.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{Answer, AnswerStep, AnswerUsage};
use crate::invisible;
use crate::plan::{self, Plan, PlanStatus, TaskId, diff};
use crate::run::{
    ApprovalId, ApprovalSubject, CallState, Effect, Envelope, Event, Fault, Outcome, PlanCause, PlanMade,
    PlanMaker, RunId, RunState, RunStatus, SessionId, idempotency_key,
};
use crate::store::{About, ApprovalState, PlanRow};

/// A plan with its versions and progress.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanDocument {
    /// Its public id.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// Its run.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// The plan's status.
    pub status: PlanStatus,
    /// The run's status.
    pub run_status: RunStatus,
    /// The current version; 0 before the first one is made.
    pub version: u32,
    /// The request.
    pub objective: String,
    /// The requester.
    pub user: String,
    /// Whether the current version may be executed: a person approved it, or it needed no approval. A flag to
    /// read; sending it approves nothing.
    #[serde(default)]
    pub approved: bool,
    /// Hash of what is approved, if approval is required. Sent back with the approval, it makes sure that
    /// nothing else is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Why the current version requires approval; empty if it does not.
    pub why_approval: Vec<String>,
    /// The current version; absent before the first one is made.
    pub plan: Option<Plan>,
    /// The started steps of all versions, and all steps of the current one.
    pub steps: Vec<AnswerStep>,
    /// The versions of this page in ascending order; by default the newest ones.
    pub versions: Vec<PlanVersion>,
    /// The `before` of the page with older versions; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions_before: Option<u32>,
    /// The pending approvals of its run.
    #[schema(value_type = Vec<String>)]
    pub approvals: Vec<ApprovalId>,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Why the last requested modification failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmodified: Option<Fault>,
    /// When it was requested.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
    /// Its usage so far.
    pub usage: AnswerUsage,
}

/// One version of a plan.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanVersion {
    /// From 1.
    pub version: u32,
    /// Why it was made: `request`, `continuation`, `feedback` or `edit`.
    #[schema(value_type = String)]
    pub cause: PlanCause,
    /// What made it: `deterministic`, `fallback` or `person`.
    #[schema(value_type = String)]
    pub maker: PlanMaker,
    /// The person who made or requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// That person's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// The changes from the previous version, one per line.
    pub diff: Vec<String>,
    /// The plan.
    pub plan: Plan,
}

/// A plan in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanSummary {
    /// Its public id.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// Its run.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// The requester.
    pub user: String,
    /// The beginning of the request.
    pub objective: String,
    /// Its status.
    pub status: PlanStatus,
    /// The current version; 0 before the first one is made.
    pub version: u32,
    /// When it was requested.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
}

impl From<PlanRow> for PlanSummary {
    fn from(row: PlanRow) -> Self {
        Self {
            task_id: row.task,
            run_id: row.run,
            session_id: row.session,
            user: row.user,
            objective: row.objective,
            status: row.status,
            version: row.version,
            created_at: row.created,
            updated_at: row.updated,
        }
    }
}

/// An approval, pending or decided.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalDocument {
    /// Its id.
    #[schema(value_type = String)]
    pub approval_id: ApprovalId,
    /// Its run.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The run's plan.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// What it is about.
    pub about: About,
    /// The requester of the run.
    pub user: String,
    /// The request.
    pub objective: String,
    /// Why approval is required.
    pub why: Vec<String>,
    /// Hash of what is approved. Sent back with the decision, it makes sure that nothing else is approved.
    /// Empty if nothing about it can change.
    pub hash: String,
    /// Its status.
    pub state: ApprovalState,
    /// When it was created.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it expires; an expired approval counts as refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub expires_at: Option<Timestamp>,
    /// The decision: `yes`, `no`, `edited`, `done`, `not_done` or `again`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub decided_at: Option<Timestamp>,
    /// That person's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// For a plan: its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// For a plan: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// For a call: its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
    /// For a call: its scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene: Option<String>,
    /// For a call: its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For a call: its exact arguments, as edited by the decision, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// For a call: its arguments as text, with invisible and direction-changing characters escaped. For a
    /// plan: the plan as such a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// For a call: `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub effect: Option<Effect>,
    /// For an outcome: the number of attempts of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// For an outcome: what is known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// For an outcome: the idempotency key of the call, by which the called system may recognize it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

impl PlanDocument {
    /// The document of a run's plan. `state` is the fold of `journal`, `session_cost_nano_usd` the cost of
    /// the run's conversation so far. `None` if the journal is empty.
    pub fn new(journal: &[Envelope<Event>], state: &RunState, session_cost_nano_usd: u64) -> Option<Self> {
        Self::paged(journal, state, session_cost_nano_usd, VersionPage::default())
    }

    /// Like [`PlanDocument::new`], with this page of versions.
    pub fn paged(
        journal: &[Envelope<Event>],
        state: &RunState,
        session_cost_nano_usd: u64,
        page: VersionPage,
    ) -> Option<Self> {
        let (versions, versions_before) = versions_of_page(journal, page);
        let (first, last) = (journal.first()?, journal.last()?);
        let session = &first.session;
        let answer = Answer::new(state, session, session_cost_nano_usd, Duration::ZERO, Duration::ZERO);
        let made = state.plan();
        let put = state.plan_approval().map(|(_, put)| &put.needed);
        let needed = put.or_else(|| made?.approval.as_ref());
        Some(PlanDocument {
            task_id: answer.task_id,
            run_id: state.run,
            session_id: session.clone(),
            status: state.plan_status,
            run_status: state.status,
            version: made.map_or(0, |made| made.version),
            objective: state.request().to_owned(),
            user: state.queued.as_ref().map(|queued| queued.user.clone()).unwrap_or_default(),
            approved: is_approved(journal),
            hash: needed.map(|needed| needed.hash.clone()),
            why_approval: needed.map(|needed| needed.why.clone()).unwrap_or_default(),
            plan: made.map(|made| made.plan.clone()),
            steps: answer.steps,
            versions,
            versions_before,
            approvals: answer.approvals.into_iter().map(|approval| approval.approval_id).collect(),
            answer: state.answer.as_ref().map(|answer| answer.text.clone()),
            error: state.aside.clone().or_else(|| state.error.clone()),
            unmodified: state.unmodified.clone(),
            created_at: first.at,
            updated_at: last.at,
            usage: answer.usage,
        })
    }
}

/// Whether the current version of a plan was approved, or needed no approval. A later end does not change it.
fn is_approved(journal: &[Envelope<Event>]) -> bool {
    let statuses = journal.iter().filter_map(|envelope| envelope.body.facts().plan_status);
    let decided = statuses.filter_map(|status| match status {
        PlanStatus::Draft | PlanStatus::PendingApproval => Some(false),
        PlanStatus::Approved | PlanStatus::Executing => Some(true),
        PlanStatus::Completed | PlanStatus::Failed | PlanStatus::Cancelled => None,
    });
    decided.fold(false, |_, approved| approved)
}

/// A page of a plan's versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionPage {
    /// Maximum number of versions. A page has fewer if together they exceed the size limit of a plan's
    /// versions, but at least one.
    pub limit: usize,
    /// Only versions before this one.
    pub before: Option<u32>,
}

impl Default for VersionPage {
    fn default() -> Self {
        Self { limit: plan::MAX_VERSIONS, before: None }
    }
}

/// The versions of a page, and the cursor of the page with older ones.
fn versions_of_page(journal: &[Envelope<Event>], page: VersionPage) -> (Vec<PlanVersion>, Option<u32>) {
    let made = journal.iter().filter_map(|envelope| match &envelope.body {
        Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
            Some((envelope.at, made))
        }
        _ => None,
    });
    let made: Vec<(Timestamp, &PlanMade)> =
        made.filter(|(_, made)| page.before.is_none_or(|before| made.version < before)).collect();
    let mut versions = Vec::new();
    let mut bytes = 0_usize;
    let mut left = made.as_slice();
    while let Some(((at, now), older)) = left.split_last()
        && versions.len() < page.limit
    {
        let diff = older.last().map(|(_, before)| diff(&before.plan, &now.plan)).unwrap_or_default();
        bytes =
            bytes.saturating_add(plan::json_size(&now.plan) + diff.iter().map(String::len).sum::<usize>());
        if bytes > plan::MAX_VERSIONS_BYTES && !versions.is_empty() {
            break;
        }
        versions.push(PlanVersion {
            version: now.version,
            cause: now.cause,
            maker: now.maker,
            by: now.by.clone(),
            why: now.why.clone(),
            at: *at,
            diff,
            plan: now.plan.clone(),
        });
        left = older;
    }
    versions.reverse();
    let before = versions.first().filter(|_| !left.is_empty()).map(|version| version.version);
    (versions, before)
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
        let session = &journal.first()?.session;
        let put = state.approvals.get(&id.approval)?;
        let (created_at, decided) = approval_times(journal, id.approval);
        let (decided_at, note) = decided.map_or((None, None), |(at, note)| (Some(at), note));
        let decision = put.decided.as_ref();
        let waits = put.is_open() && !matches!(put.matter, ApprovalSubject::Outcome { .. });
        let queued = state.queued.as_ref();
        let mut document = ApprovalDocument {
            approval_id: id,
            run_id: id.run,
            task_id: queued.map_or(TaskId(id.run.0), |queued| queued.task),
            session_id: session.clone(),
            about: put.matter.into(),
            user: queued.map(|queued| queued.user.clone()).unwrap_or_default(),
            objective: state.request().to_owned(),
            why: put.needed.why.clone(),
            hash: put.needed.hash.clone(),
            state: put.into(),
            created_at,
            // An unrepresentable time means never.
            expires_at: expires.filter(|_| waits).and_then(|after| created_at.checked_add(after).ok()),
            decision: decision.map(|(decision, _)| decision.name().to_owned()),
            decided_by: decision.map(|(_, by)| by.clone()),
            decided_at,
            note,
            version: None,
            plan: None,
            step_number: None,
            scene: None,
            tool: None,
            arguments: None,
            shown: None,
            effect: None,
            attempts: None,
            error: None,
            idempotency_key: None,
        };
        document.describe_subject(put.matter, journal, state);
        Some(document)
    }

    /// Fills in the plan, call or write that the approval is about.
    fn describe_subject(&mut self, matter: ApprovalSubject, journal: &[Envelope<Event>], state: &RunState) {
        match matter {
            ApprovalSubject::Plan { version } => {
                self.version = Some(version);
                let made = state.plans.iter().find(|made| made.version == version);
                self.plan = made.map(|made| made.plan.clone());
                self.shown = made.map(|made| {
                    let (task, none) = (self.task_id, Default::default());
                    plan::text(&made.plan, &self.objective, task, state.plan_status, &none)
                });
            }
            ApprovalSubject::Call { call } => self.with_call(state.calls.get(&call)),
            ApprovalSubject::Outcome { call: number } => {
                let call = state.calls.get(&number);
                self.with_call(call);
                self.attempts = call.map(|call| call.attempts);
                self.error = unknown_outcome_error(journal, state, number);
                self.idempotency_key = call.map(|call| idempotency_key(state.run, call.step, number));
            }
        }
    }

    fn with_call(&mut self, call: Option<&CallState>) {
        let Some(call) = call else { return };
        self.step_number = Some(call.step);
        self.scene = Some(call.scene.clone());
        self.tool = Some(call.requested.tool.clone());
        self.arguments = Some(call.requested.arguments.clone());
        self.shown = Some(invisible::escape_json_lines(&call.requested.arguments));
        self.effect = Some(call.requested.effect);
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

#[cfg(test)]
mod tests;
