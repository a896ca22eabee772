//! Plans, and what is put to people, as clients get them: over HTTP and from the command line. Made from the
//! journal of their run.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::{Answer, AnswerStep, AnswerUsage};
use crate::plan::{self, Plan, PlanStatus, TaskId, diff};
use crate::run::{
    ApprovalId, CallState, Cause, Effect, Envelope, Event, Fault, Maker, Matter, Outcome, PlanMade, RunId,
    RunState, RunStatus, SessionId, idempotency_key,
};
use crate::store::{About, ApprovalState, PlanRow};
use crate::unseen;

/// A plan, its versions, and how far it was carried out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanDocument {
    /// Its public id.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// The run that it is of.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// Where the plan stands.
    pub status: PlanStatus,
    /// Where its run stands.
    pub run_status: RunStatus,
    /// The version in force; 0 as long as none was made.
    pub version: u32,
    /// The request.
    pub objective: String,
    /// Who asked.
    pub user: String,
    /// What an approval covers, where somebody has to approve; sent back with it, it counts for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Why somebody has to approve the version in force; empty where nobody has to.
    pub why_approval: Vec<String>,
    /// The version in force; absent as long as none was made.
    pub plan: Option<Plan>,
    /// The steps of all versions that were begun, and of the one in force.
    pub steps: Vec<AnswerStep>,
    /// The versions of this page, the newest ones unless told, in order.
    pub versions: Vec<PlanVersion>,
    /// What `before` is for the page of the versions before these; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions_before: Option<u32>,
    /// What about its run a person has to decide.
    #[schema(value_type = Vec<String>)]
    pub approvals: Vec<ApprovalId>,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Why the last change that somebody wanted could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmodified: Option<Fault>,
    /// When it was asked for.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When something last happened to it.
    #[schema(value_type = String, format = "date-time")]
    pub updated_at: Timestamp,
    /// What it cost so far.
    pub usage: AnswerUsage,
}

/// One version of a plan.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanVersion {
    /// From 1.
    pub version: u32,
    /// Why it was made: `request`, `continuation`, `feedback` or `edit`.
    #[schema(value_type = String)]
    pub cause: Cause,
    /// Who made it: `deterministic`, `fallback` or `person`.
    #[schema(value_type = String)]
    pub maker: Maker,
    /// The person who made or wanted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When.
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    /// What it changes in the version before it, a line each.
    pub diff: Vec<String>,
    /// The plan.
    pub plan: Plan,
}

/// A plan as lists show it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PlanSummary {
    /// Its public id.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// The run that it is of.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// Who asked.
    pub user: String,
    /// The first words of the request.
    pub objective: String,
    /// Where it stands.
    pub status: PlanStatus,
    /// The version in force; 0 as long as none was made.
    pub version: u32,
    /// When it was asked for.
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

/// Something that a person decides, and what was decided.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalDocument {
    /// Its id.
    #[schema(value_type = String)]
    pub approval_id: ApprovalId,
    /// The run that it is of.
    #[schema(value_type = String, format = "uuid")]
    pub run_id: RunId,
    /// The run's plan.
    #[schema(value_type = String, format = "uuid")]
    pub task_id: TaskId,
    /// The run's conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// What about.
    pub about: About,
    /// Who asked for the run.
    pub user: String,
    /// The request.
    pub objective: String,
    /// Why somebody is asked.
    pub why: Vec<String>,
    /// What a yes covers; sent back with the decision, it counts for nothing else. Empty where there is
    /// nothing that could change.
    pub hash: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was put.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it counts as refused, if nobody decides before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub expires_at: Option<Timestamp>,
    /// What was said: `yes`, `no`, `edited`, `done`, `not_done` or `again`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub decided_at: Option<Timestamp>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Of a plan: its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Of a plan: the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Of a call: its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u32>,
    /// Of a call: its scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene: Option<String>,
    /// Of a call: its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of a call: its exact arguments; those of the decision, where it changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// Of a call: its arguments as text in which nothing is invisible: what a screen would not show, or show
    /// elsewhere, is written as an escape. Of a plan: the plan so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Of a call: `write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub effect: Option<Effect>,
    /// Of an outcome: how often the call was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Of an outcome: what is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Of an outcome: the key that the call was sent with, by which the other side may know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

impl PlanDocument {
    /// The document of a run's plan: `state` is the fold of `journal`, `session_cost_nano_usd` what the run's
    /// conversation cost so far. `None` where the journal is empty: there is no such run.
    pub fn new(journal: &[Envelope<Event>], state: &RunState, session_cost_nano_usd: u64) -> Option<Self> {
        Self::paged(journal, state, session_cost_nano_usd, VersionPage::default())
    }

    /// The same with that page of its versions.
    pub fn paged(
        journal: &[Envelope<Event>],
        state: &RunState,
        session_cost_nano_usd: u64,
        page: VersionPage,
    ) -> Option<Self> {
        let (versions, versions_before) = versions(journal, page);
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

/// Which of a plan's versions a document shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionPage {
    /// Most of them. Fewer are shown where they are large: together no more bytes than a plan's versions may
    /// have, and at least one.
    pub limit: usize,
    /// Only those before this version.
    pub before: Option<u32>,
}

impl Default for VersionPage {
    fn default() -> Self {
        Self { limit: plan::MAX_VERSIONS, before: None }
    }
}

/// The page, and what the page before it is asked for with.
fn versions(journal: &[Envelope<Event>], page: VersionPage) -> (Vec<PlanVersion>, Option<u32>) {
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
        bytes = bytes.saturating_add(plan::size(&now.plan) + diff.iter().map(String::len).sum::<usize>());
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
    /// The document of something that was put to a person: `state` is the fold of `journal`, and what nobody
    /// decides counts as refused after `expires`. `None` where there is no such thing in the run.
    pub fn new(
        journal: &[Envelope<Event>],
        state: &RunState,
        id: ApprovalId,
        expires: Option<Duration>,
    ) -> Option<Self> {
        let session = &journal.first()?.session;
        let put = state.approvals.get(&id.approval)?;
        let mut created_at = Timestamp::default();
        let mut decided = None;
        for envelope in journal {
            match &envelope.body {
                Event::ApprovalRequired { approval, .. } if *approval == id.approval => {
                    created_at = envelope.at;
                }
                Event::Decided { approval, note, .. } if *approval == id.approval => {
                    decided = Some((envelope.at, note.clone()));
                }
                _ => {}
            }
        }
        let (decided_at, note) = decided.map_or((None, None), |(at, note)| (Some(at), note));
        let said = put.decided.as_ref();
        let waits = put.is_open() && !matches!(put.matter, Matter::Outcome { .. });
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
            // So late that there is no such time: never.
            expires_at: expires.filter(|_| waits).and_then(|after| created_at.checked_add(after).ok()),
            decision: said.map(|(decision, _)| decision.name().to_owned()),
            decided_by: said.map(|(_, by)| by.clone()),
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
        match put.matter {
            Matter::Plan { version } => {
                document.version = Some(version);
                let made = state.plans.iter().find(|made| made.version == version);
                document.plan = made.map(|made| made.plan.clone());
                document.shown = made.map(|made| {
                    let (task, none) = (document.task_id, Default::default());
                    plan::text(&made.plan, &document.objective, task, state.plan_status, &none)
                });
            }
            Matter::Call { call } => document.with_call(state.calls.get(&call)),
            Matter::Outcome { call: number } => {
                let call = state.calls.get(&number);
                document.with_call(call);
                document.attempts = call.map(|call| call.attempts);
                document.error = unknown(journal, state, number);
                document.idempotency_key = call.map(|call| idempotency_key(state.run, call.step, number));
            }
        }
        Some(document)
    }

    fn with_call(&mut self, call: Option<&CallState>) {
        let Some(call) = call else { return };
        self.step_number = Some(call.step);
        self.scene = Some(call.scene.clone());
        self.tool = Some(call.requested.tool.clone());
        self.arguments = Some(call.requested.arguments.clone());
        self.shown = Some(unseen::json_lines(&call.requested.arguments));
        self.effect = Some(call.requested.effect);
    }
}

/// What was known of a call when its outcome was put to a person.
fn unknown(journal: &[Envelope<Event>], state: &RunState, number: u32) -> Option<Fault> {
    let own = journal.iter().rev().find_map(|envelope| match &envelope.body {
        Event::ToolCompleted { call, outcome: Outcome::Unknown { error }, .. } if *call == number => {
            Some(error.clone())
        }
        _ => None,
    });
    // One that a crash cut off has no end of its own.
    own.or_else(|| match state.outcome(number) {
        Some(Outcome::Unknown { error }) => Some(error.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
