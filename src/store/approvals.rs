//! The list of approvals: what was sent to people for a decision.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, QueryBuilder, Row as _};
use strum::{EnumString, IntoStaticStr};

use super::Store;
use super::error::Error;
use super::heads::StreamHead;
use super::owners::OwnerScope;
use super::read::{MAX_PAGE, Page, decode, read_optional_time, read_time};
use super::record::{JournalRow, StreamId};
use crate::plan::TaskId;
use crate::run::{Approval, ApprovalId, ApprovalSubject, Event, RunId, SessionId, TenantId};

/// The kind of subject that an approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Whether a plan may be executed.
    Plan,
    /// Whether a write may be executed.
    Call,
    /// Whether a write whose outcome is unknown was done.
    Outcome,
}

impl About {
    /// The name on the wire and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl From<ApprovalSubject> for About {
    fn from(matter: ApprovalSubject) -> Self {
        match matter {
            ApprovalSubject::Plan { .. } => About::Plan,
            ApprovalSubject::Call { .. } => About::Call,
            ApprovalSubject::Outcome { .. } => About::Outcome,
        }
    }
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It waits for a decision.
    Open,
    /// It has been decided.
    Decided,
    /// It is no longer valid: its subject has changed or ended.
    Lapsed,
}

impl ApprovalState {
    /// The name on the wire and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl From<&Approval> for ApprovalState {
    fn from(approval: &Approval) -> Self {
        match &approval.decided {
            Some(_) => ApprovalState::Decided,
            None if approval.lapsed => ApprovalState::Lapsed,
            None => ApprovalState::Open,
        }
    }
}

/// An approval as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRow {
    /// The public id.
    pub id: ApprovalId,
    /// The tenant that is charged.
    pub tenant: TenantId,
    /// The run's conversation.
    pub session: SessionId,
    /// The public id of the run's plan.
    pub task: TaskId,
    /// The user who requested the run.
    pub user: String,
    /// The subject of the approval.
    pub about: About,
    /// When it was requested.
    pub created: Timestamp,
    /// The current state.
    pub state: ApprovalState,
    /// When it was decided, if it was. A decided approval can still lapse.
    pub decided: Option<Timestamp>,
}

/// Which approvals to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Only open ones.
    pub open_only: bool,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those of this run.
    pub run: Option<RunId>,
    /// Only those about this kind of subject.
    pub about: Option<About>,
    /// Only those of the users in this scope.
    pub scope: OwnerScope,
}

pub(super) const APPROVAL_COLUMNS: &str = "SELECT run, approval, tenant, session, task, user, about, created, state, decided \
     FROM approvals JOIN plans USING (run) WHERE ";

impl Store {
    /// The approvals of a tenant's runs, oldest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn approvals(
        &self,
        tenant: &TenantId,
        filter: &ApprovalFilter,
        page: &Page<ApprovalId>,
    ) -> Result<Vec<ApprovalRow>, Error> {
        let mut query = QueryBuilder::new(APPROVAL_COLUMNS);
        query.push("tenant = ").push_bind(tenant.as_str());
        if filter.open_only {
            query.push(" AND state = 'open'");
        }
        if let Some(run) = filter.run {
            query.push(" AND run = ").push_bind(run.to_string());
        }
        if let Some(session) = &filter.session {
            query.push(" AND session = ").push_bind(session.as_str());
        }
        if let Some(about) = filter.about {
            query.push(" AND about = ").push_bind(about.name());
        }
        if let Some(after) = page.after {
            query.push(" AND (created, run, approval) > (SELECT created, run, approval FROM approvals WHERE tenant = ");
            query.push_bind(tenant.as_str()).push(" AND run = ").push_bind(after.run.to_string());
            query.push(" AND approval = ").push_bind(i64::from(after.approval));
            filter.scope.push_condition(&mut query, "approvals.run");
            query.push(")");
        }
        filter.scope.push_condition(&mut query, "approvals.run");
        query.push(" ORDER BY created, run, approval LIMIT ").push_bind(i64::from(page.limit.min(MAX_PAGE)));
        query.build_query_as().fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// One approval; `None` when the tenant has none with this id.
    ///
    /// # Errors
    /// Database errors.
    pub async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<ApprovalRow>, Error> {
        let mut query = QueryBuilder::new(APPROVAL_COLUMNS);
        query.push("tenant = ").push_bind(tenant.as_str());
        query.push(" AND run = ").push_bind(id.run.to_string());
        query.push(" AND approval = ").push_bind(i64::from(id.approval));
        query.build_query_as().fetch_optional(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// Approvals of plans and calls, of all tenants, that were requested before `before` and are still open:
    /// oldest first, at most `limit`.
    ///
    /// # Errors
    /// Database errors.
    pub async fn overdue_approvals(&self, before: Timestamp, limit: u32) -> Result<Vec<ApprovalRow>, Error> {
        let mut query = QueryBuilder::new(APPROVAL_COLUMNS);
        query.push("state = 'open' AND about <> 'outcome' AND created < ");
        query.push_bind(super::usage::time_bound(Some(before), i64::MAX));
        query.push(" ORDER BY created, run, approval LIMIT ").push_bind(i64::from(limit));
        query.build_query_as().fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }
}

impl FromRow<'_, SqliteRow> for ApprovalRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let run: RunId = decode(row.try_get::<&str, _>("run")?.parse())?;
        let state: &str = row.try_get("state")?;
        Ok(Self {
            id: ApprovalId { run, approval: row.try_get("approval")? },
            tenant: decode(TenantId::new(row.try_get("tenant")?))?,
            session: decode(SessionId::new(row.try_get("session")?))?,
            task: TaskId(decode(row.try_get::<&str, _>("task")?.parse())?),
            user: row.try_get("user")?,
            about: About::from_name(row.try_get("about")?)
                .ok_or_else(|| sqlx::Error::Decode("approvals.about holds an unknown name".into()))?,
            created: read_time(row, "created")?,
            state: state
                .parse()
                .map_err(|_| sqlx::Error::Decode("approvals.state holds an unknown name".into()))?,
            decided: read_optional_time(row, "decided")?,
        })
    }
}

/// The change of an event in the approvals of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalChange {
    /// A new approval is requested.
    Required { approval: u32, matter: ApprovalSubject },
    /// It has been decided.
    Decided { approval: u32 },
    /// It is no longer valid.
    Lapsed { approval: u32 },
    /// Another plan replaces this version: approvals of it, open or decided, lapse.
    Replaced { version: u32 },
    /// The run has ended: only the outcome of a write can still be decided.
    Ended,
}

impl ApprovalChange {
    /// Extracts the change from the event. A pure function.
    pub(super) fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::ApprovalRequired { approval, matter, .. } => {
                Self::Required { approval: *approval, matter: *matter }
            }
            Event::Decided { approval, .. } => Self::Decided { approval: *approval },
            Event::ApprovalLapsed { approval, .. } => Self::Lapsed { approval: *approval },
            Event::ModificationAsked { version, .. } => Self::Replaced { version: version.saturating_sub(1) },
            Event::PlanEdited(made) => Self::Replaced { version: made.version.saturating_sub(1) },
            ended if ended.is_terminal() => Self::Ended,
            _ => return None,
        })
    }
}

/// The changes that these rows make, in order. The end of a run without approvals changes nothing.
pub(super) fn approval_changes<'r>(
    rows: &[&'r JournalRow],
    heads: &BTreeMap<&StreamId, StreamHead>,
) -> Vec<(RunId, ApprovalChange, &'r JournalRow)> {
    let changes = rows.iter().filter_map(|row| {
        let (StreamId::Run(run), Some(change)) = (&row.stream, row.change.approval) else { return None };
        let asked = heads.get(&row.stream).is_some_and(|head| head.has_approvals);
        asked.then_some((*run, change, *row))
    });
    changes.collect()
}

/// Applies the changes to the list.
pub(super) fn write_approvals(
    connection: &Connection,
    changes: &[(RunId, ApprovalChange, &JournalRow)],
) -> rusqlite::Result<()> {
    for (run, change, row) in changes {
        let run = run.to_string();
        match *change {
            ApprovalChange::Required { approval, matter } => {
                let (ApprovalSubject::Plan { version: subject }
                | ApprovalSubject::Call { call: subject }
                | ApprovalSubject::Outcome { call: subject }) = matter;
                let sql = "INSERT INTO approvals (run, approval, tenant, session, about, subject, created, state) \
                     VALUES (?, ?, ?, ?, ?, ?, ?, 'open') ON CONFLICT DO NOTHING";
                let (tenant, session) = (row.tenant.as_str(), row.session.as_str());
                let about = About::from(matter).name();
                let mut insert = connection.prepare_cached(sql)?;
                insert.execute(params![run, approval, tenant, session, about, subject, row.at])?;
            }
            ApprovalChange::Decided { approval } => {
                let sql = "UPDATE approvals SET state = 'decided', decided = ?3, asked = ?4 \
                     WHERE run = ?1 AND approval = ?2";
                let mut decide = connection.prepare_cached(sql)?;
                decide.execute(params![run, approval, row.at, row.change.fingerprint])?;
            }
            ApprovalChange::Lapsed { approval } => {
                let sql = "UPDATE approvals SET state = 'lapsed' WHERE run = ? AND approval = ?";
                connection.prepare_cached(sql)?.execute(params![run, approval])?;
            }
            ApprovalChange::Replaced { version } => {
                let sql =
                    "UPDATE approvals SET state = 'lapsed' WHERE run = ? AND about = 'plan' AND subject = ?";
                connection.prepare_cached(sql)?.execute(params![run, version])?;
            }
            ApprovalChange::Ended => {
                let sql = "UPDATE approvals SET state = 'lapsed' \
                     WHERE run = ? AND state = 'open' AND about <> 'outcome'";
                connection.prepare_cached(sql)?.execute([run])?;
            }
        }
    }
    Ok(())
}
