//! The documents of plans and approvals for clients, over HTTP and on the command line, made from the run's
//! journal; and what clients see of learned plans and of users' documents.

mod approval;
mod explain;
mod facts;
mod flow;
mod learned;
mod uploaded;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, AnswerStep, AnswerUsage};
use crate::plan::{self, Plan, PlanStatus, TaskId, diff};
use crate::run::{
    ApprovalId, Envelope, Event, Fault, PlanCause, PlanMade, PlanMaker, PlanScore, RunId, RunState,
    RunStatus, SessionId,
};
use crate::store::PlanRow;

pub use facts::{FactFilter, FactPage};
pub(crate) use flow::MAX_MISSING_NODES;
pub use flow::{FlowDocument, FlowEdgeDocument, FlowNodeDocument, MissingNodeDocument};
pub use learned::LearnedDocument;
pub use uploaded::UploadedDocument;

pub use approval::{ApprovalDecision, ApprovalDocument, CallDocument, SubjectDocument};
pub use explain::{
    ExplainedConsultation, ExplainedCost, ExplainedDecider, ExplainedEvent, ExplainedOption, ExplainedResult,
    ExplainedSubject, Explanation,
};

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
    /// The ratings of people, the last one of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratings: Vec<RatingDocument>,
    /// When it was requested.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
    /// Its usage so far.
    pub usage: AnswerUsage,
}

/// A person's judgement of a plan.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RatingDocument {
    /// 1 (good) or -1 (bad).
    #[schema(value_type = i8)]
    pub score: PlanScore,
    /// Whose.
    pub by: String,
    /// The person's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
}

/// One version of a plan.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanVersion {
    /// From 1.
    pub version: u32,
    /// Why it was made: `request`, `continuation`, `feedback` or `edit`.
    #[schema(value_type = String)]
    pub cause: PlanCause,
    /// Its maker: `deterministic`, `learned`, `fallback` or `person`.
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
            ratings: ratings(journal),
            created_at: first.at,
            updated_at: last.at,
            usage: answer.usage,
        })
    }
}

/// The last rating of each person, in the order of the first ones.
fn ratings(journal: &[Envelope<Event>]) -> Vec<RatingDocument> {
    let mut found: Vec<RatingDocument> = Vec::new();
    for envelope in journal {
        let Event::PlanRated { score, by, note, .. } = &envelope.body else { continue };
        let rating = RatingDocument { score: *score, by: by.clone(), note: note.clone(), at: envelope.at };
        match found.iter_mut().find(|earlier| earlier.by == rating.by) {
            Some(earlier) => *earlier = rating,
            None => found.push(rating),
        }
    }
    found
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

#[cfg(test)]
mod tests;
