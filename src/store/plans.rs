//! The list of plans: the status of each plan is stored beside its run's row.

use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, QueryBuilder, Row as _, Sqlite};

use super::Store;
use super::error::Error;
use super::heads::undecodable;
use super::owners::OwnerScope;
use super::read::{MAX_PAGE, Page, decode, read_time};
use super::usage::time_bound;
use crate::plan::{PlanStatus, TaskId};
use crate::run::{Event, RunId, RunStatus, SessionId, TenantId};

/// A plan as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanRow {
    /// The public id.
    pub task: TaskId,
    /// The run it belongs to.
    pub run: RunId,
    /// The tenant that is charged.
    pub tenant: TenantId,
    /// The conversation of the run.
    pub session: SessionId,
    /// The user who sent the request.
    pub user: String,
    /// The beginning of the request, on one line.
    pub objective: String,
    /// The current status.
    pub status: PlanStatus,
    /// The current version; 0 until a plan is made.
    pub version: u32,
    /// When the request was accepted.
    pub created: Timestamp,
    /// When its status or version last changed.
    pub updated: Timestamp,
}

/// Which plans to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanFilter {
    /// Only those with this status.
    pub status: Option<PlanStatus>,
    /// Only those with this status as it is shown to people ([`RunStatus::reported_plan_status`]).
    pub reported: Option<&'static str>,
    /// Only those of this conversation.
    pub session: Option<SessionId>,
    /// Only those requested at this time or later.
    pub since: Option<Timestamp>,
    /// Only those requested before this time.
    pub until: Option<Timestamp>,
    /// Only those of the users in this scope.
    pub scope: OwnerScope,
}

const PLAN_COLUMNS: &str = "SELECT runs.run, tenant, session, request, created, task, user, version, \
     plans.status AS plan, plans.updated AS changed";

impl Store {
    /// A tenant's plans, newest first; plans of the same moment are sorted by run id.
    ///
    /// # Errors
    /// Database errors.
    pub async fn plans(
        &self,
        tenant: &TenantId,
        filter: &PlanFilter,
        page: &Page<TaskId>,
    ) -> Result<Vec<PlanRow>, Error> {
        let mut query = list_query(tenant, filter, page);
        query.build_query_as().fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// One plan as lists show it; `None` when the tenant has no such plan.
    ///
    /// # Errors
    /// Database errors.
    pub async fn plan(&self, tenant: &TenantId, task: TaskId) -> Result<Option<PlanRow>, Error> {
        let mut query = QueryBuilder::new(PLAN_COLUMNS);
        query.push(" FROM plans JOIN runs USING (run) WHERE task = ").push_bind(task.to_string());
        query.push(" AND tenant = ").push_bind(tenant.as_str());
        query.build_query_as().fetch_optional(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// The run of the plan with this public id; `None` when the tenant has none.
    ///
    /// # Errors
    /// Database errors.
    pub async fn run_of_task(&self, tenant: &TenantId, task: TaskId) -> Result<Option<RunId>, Error> {
        Ok(self.plan(tenant, task).await?.map(|plan| plan.run))
    }
}

/// The query for a list. Plans with a waiting or executing status are searched only among unfinished runs.
pub(super) fn list_query(
    tenant: &TenantId,
    filter: &PlanFilter,
    page: &Page<TaskId>,
) -> QueryBuilder<Sqlite> {
    use PlanStatus::{Approved, Executing, PendingApproval};
    let few =
        matches!(filter.status, Some(PendingApproval | Approved | Executing)) && filter.session.is_none();
    let mut query = QueryBuilder::new(PLAN_COLUMNS);
    query.push(" FROM runs ");
    if few {
        query.push("INDEXED BY runs_unfinished ");
    }
    query.push("CROSS JOIN plans ON plans.run = runs.run WHERE tenant = ").push_bind(tenant.as_str());
    if few {
        query.push(" AND runs.status IN ('queued', 'running', 'waiting')");
    }
    if let Some(session) = &filter.session {
        query.push(" AND session = ").push_bind(session.as_str());
    }
    if let Some(status) = filter.status {
        query.push(" AND plans.status = ").push_bind(status.name());
    }
    if let Some(reported) = filter.reported {
        let [asks, partial] = RunStatus::OF_PLANS_NOT_FAILED.map(<&'static str>::from);
        query.push(" AND CASE WHEN plans.status = ").push_bind(PlanStatus::Failed.name());
        query.push(" AND runs.status IN (").push_bind(asks).push(", ").push_bind(partial);
        query.push(") THEN runs.status ELSE plans.status END = ").push_bind(reported);
    }
    if let Some(since) = filter.since {
        query.push(" AND created >= ").push_bind(time_bound(Some(since), i64::MIN));
    }
    if let Some(until) = filter.until {
        query.push(" AND created < ").push_bind(time_bound(Some(until), i64::MAX));
    }
    if let Some(after) = page.after {
        query.push(
            " AND (created, runs.run) < (SELECT r.created, r.run FROM plans AS p JOIN runs AS r USING (run) \
             WHERE p.task = ",
        );
        query.push_bind(after.to_string()).push(" AND r.tenant = ");
        query.push_bind(tenant.as_str());
        filter.scope.push_condition(&mut query, "p.run");
        query.push(")");
    }
    filter.scope.push_condition(&mut query, "runs.run");
    query.push(" ORDER BY created DESC, runs.run DESC LIMIT ").push_bind(i64::from(page.limit.min(MAX_PAGE)));
    query
}

impl FromRow<'_, SqliteRow> for PlanRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            task: TaskId(decode(row.try_get::<&str, _>("task")?.parse())?),
            run: decode(row.try_get::<&str, _>("run")?.parse())?,
            tenant: decode(TenantId::new(row.try_get("tenant")?))?,
            session: decode(SessionId::new(row.try_get("session")?))?,
            user: row.try_get("user")?,
            objective: row.try_get("request")?,
            status: status(row)?,
            version: row.try_get("version")?,
            created: read_time(row, "created")?,
            updated: read_time(row, "changed")?,
        })
    }
}

const UNKNOWN_STATUS: &str = "plans.status holds an unknown status";

/// Reads the status from the column `plan`.
fn status(row: &SqliteRow) -> Result<PlanStatus, sqlx::Error> {
    PlanStatus::from_name(row.try_get("plan")?).ok_or_else(|| sqlx::Error::Decode(UNKNOWN_STATUS.into()))
}

/// The change of an event in its run's plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanChange {
    new: Option<NewPlanRow>,
    status: Option<PlanStatus>,
    version: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NewPlanRow {
    task: TaskId,
    user: String,
    plan_only: bool,
}

impl PlanChange {
    /// Extracts the change from the event. A pure function.
    pub(super) fn of(event: &Event) -> Self {
        let (new, version) = match event {
            Event::RunQueued(queued) => {
                let (task, user) = (queued.task, queued.user.clone());
                (Some(NewPlanRow { task, user, plan_only: queued.plan_only }), None)
            }
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                (None, Some(made.version))
            }
            _ => (None, None),
        };
        Self { new, status: event.facts().plan_status, version }
    }
}

/// The current state of a run's plan.
#[derive(Debug, Clone)]
pub(super) struct PlanHead {
    /// The plan's first row, until it is written.
    new: Option<NewPlanRow>,
    plan_only: bool,
    status: PlanStatus,
    version: u32,
    /// When it changed, if the change is not written yet.
    changed: Option<i64>,
}

impl PlanHead {
    /// Applies an event of the run. The plan stays `None` until the run has a request.
    pub(super) fn apply(plan: &mut Option<Self>, change: &PlanChange, at: i64) {
        if let Some(new) = &change.new {
            *plan = Some(Self {
                new: Some(new.clone()),
                plan_only: new.plan_only,
                status: PlanStatus::Draft,
                version: 0,
                changed: Some(at),
            });
        }
        let Some(plan) = plan else { return };
        let now =
            (plan.status.after_event(change.status, plan.plan_only), change.version.unwrap_or(plan.version));
        if now != (plan.status, plan.version) {
            (plan.status, plan.version) = now;
            plan.changed = Some(at);
        }
    }

    /// Reads the plan from the columns `plan`, `version` and `only_wanted`.
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Self>> {
        let Some(status) = row.get::<_, Option<String>>("plan")? else { return Ok(None) };
        let status = PlanStatus::from_name(&status).ok_or_else(|| undecodable(UNKNOWN_STATUS))?;
        let (only_wanted, version) = (row.get("only_wanted")?, row.get("version")?);
        Ok(Some(Self { new: None, plan_only: only_wanted, status, version, changed: None }))
    }

    pub(super) fn mark_written(&mut self) {
        (self.new, self.changed) = (None, None);
    }

    /// The row to write, if anything has changed.
    pub(super) fn changed_row(&self, run: &str) -> Option<PlanTuple<'_>> {
        let at = self.changed?;
        let (task, user) = self.new.as_ref().map(|new| (new.task.to_string(), new.user.as_str())).unzip();
        let (task, user) = (task.unwrap_or_default(), user.unwrap_or_default());
        Some((run.to_owned(), task, user, u8::from(self.plan_only), self.status.name(), self.version, at))
    }
}

/// A row of the list of plans: run, task, user, whether only a plan was requested, status, version, time of
/// the change. Task and user are empty if the row already exists.
pub(super) type PlanTuple<'a> = (String, String, &'a str, u8, &'static str, u32, i64);

pub(super) fn write_plan(connection: &Connection, plan: &PlanTuple<'_>) -> rusqlite::Result<()> {
    let mut write = connection.prepare_cached(
        "INSERT INTO plans (run, task, user, only_wanted, status, version, updated) VALUES (?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (run) DO UPDATE SET status = excluded.status, version = excluded.version, \
         updated = excluded.updated",
    )?;
    let (run, task, user, only_wanted, status, version, updated) = plan;
    write.execute(params![run, task, user, only_wanted, status, version, updated]).map(drop)
}
