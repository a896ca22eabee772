//! Plans learned from executions, and paths through flows, by tenant and template.

use jiff::Timestamp;
use rusqlite::{Connection, params};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};

use super::Store;
use super::error::Error;
use super::read::{decode, read_optional_time, read_time};
use super::record::JournalRow;
use crate::run::{
    Demotion, Event, LearnedPlan, LessonResult, PathRecall, PlanLesson, PlanRecall, PlanScore, RecallOutcome,
    TenantId,
};

/// Maximum number of templates of a tenant. Beyond, those of few users go first, then those not said for the longest time.
const MAX_TEMPLATES: u32 = 1_000;
/// Maximum number of conversations in which a template of fewer than [`KEPT_USERS`] users was said. In others, it is not counted.
const MAX_SOURCES: u32 = 64;
/// How many users have to say requests of a template before it outlives their conversations.
const KEPT_USERS: i64 = 3;
/// The largest plan that is learned, in bytes of JSON.
const MAX_PLAN_BYTES: usize = 16 * 1024;
/// How long a plan is suspended when one of its tools is out of service.
const SUSPENSION_NANOS: i64 = 15 * 60 * 1_000_000_000;
/// Maximum number of plans among which hints are looked for.
const MAX_CANDIDATES: u32 = 200;

/// Deletes the templates of few users that were said in tenant `?1`'s conversation `?2`.
pub(super) const FORGET_SESSION: &str = "DELETE FROM learned_plans WHERE tenant = ?1 AND NOT kept AND template IN \
     (SELECT template FROM learned_sources WHERE tenant = ?1 AND session = ?2)";

/// Deletes the templates of few users that were said in the conversation of run `?1`.
pub(super) const FORGET_RUN: &str = "DELETE FROM learned_plans WHERE NOT kept AND (tenant, template) IN \
     (SELECT tenant, template FROM learned_sources WHERE (tenant, session) IN \
     (SELECT tenant, session FROM runs WHERE run = ?1))";

/// A learned plan, or a learned path through a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedRow {
    /// SHA-256 of the template, in hex.
    pub template: String,
    /// Its words, with placeholders.
    pub words: String,
    /// The plan, with placeholders.
    pub plan: LearnedPlan,
    /// How often it succeeded since it was learned or demoted.
    pub successes: u32,
    /// How often it failed.
    pub failures: u32,
    /// How often it was reused.
    pub uses: u32,
    /// How many users said such requests, up to three.
    pub users: u32,
    /// Whether it outlives the conversations in which it was said.
    pub kept: bool,
    /// Why it is not used any more.
    pub demoted: Option<Demotion>,
    /// Until when it is not used.
    pub suspended_until: Option<Timestamp>,
    /// When it was learned.
    pub created: Timestamp,
    /// When such a request was last answered.
    pub seen: Timestamp,
    /// Whether the given user said such a request.
    pub by_user: bool,
}

/// How many learned plans of all tenants have a standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnedCount {
    /// Whether they succeeded as often as was asked about.
    pub is_proven: bool,
    /// Why they were demoted.
    pub demoted: Option<Demotion>,
    /// Whether they are suspended.
    pub is_suspended: bool,
    /// Their number.
    pub plans: u64,
}

const COLUMNS: &str = "SELECT template, words, plan, successes, failures, uses, users, kept, demoted, suspended_until, \
     created, seen, EXISTS (SELECT 1 FROM learned_users AS u WHERE u.tenant = learned_plans.tenant \
     AND u.template = learned_plans.template AND u.user = ?2) AS by_user FROM learned_plans WHERE tenant = ?1";

impl Store {
    /// The plan of a tenant's template, as a user (SHA-256 of the name, in hex) sees it.
    ///
    /// # Errors
    /// Database errors.
    pub async fn learned_plan(
        &self,
        tenant: &TenantId,
        template: &str,
        user: &str,
    ) -> Result<Option<LearnedRow>, Error> {
        sqlx::query_as(sqlx::AssertSqlSafe(format!("{COLUMNS} AND template = ?3")))
            .bind(tenant.as_str())
            .bind(user)
            .bind(template)
            .fetch_optional(self.pool())
            .await
            .map_err(|e| self.list_error(&e))
    }

    /// The plans that a user may profit from and that succeeded at least `after` times, those said last first; at most
    /// 200. With a `flow`, the paths through it instead.
    pub(crate) async fn learned_for_hints(
        &self,
        tenant: &TenantId,
        user: &str,
        after: u32,
        flow: Option<&str>,
    ) -> Result<Vec<LearnedRow>, Error> {
        let sql = format!(
            "SELECT * FROM ({COLUMNS} AND successes >= ?3 AND demoted IS NULL AND flow IS ?4) WHERE kept OR by_user \
             ORDER BY seen DESC, template LIMIT {MAX_CANDIDATES}"
        );
        let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant.as_str()).bind(user).bind(after);
        let query = query.bind(flow);
        query.fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// A page of a tenant's learned plans, by template, after `after`.
    ///
    /// # Errors
    /// Database errors.
    pub async fn learned_plans(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<LearnedRow>, Error> {
        let sql = format!("{COLUMNS} AND template > ?3 ORDER BY template LIMIT ?4");
        let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant.as_str()).bind("");
        let query = query.bind(after.unwrap_or_default()).bind(limit);
        query.fetch_all(self.pool()).await.map_err(|e| self.list_error(&e))
    }

    /// Deletes the plan of a tenant's template. Returns whether there was one.
    ///
    /// # Errors
    /// Database errors.
    pub async fn delete_learned(&self, tenant: &TenantId, template: &str) -> Result<bool, Error> {
        let doing = "delete a learned plan";
        let failed = |e| Error::database(self.path(), doing, &e);
        let mut writing = self.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let done = sqlx::query("DELETE FROM learned_plans WHERE tenant = ? AND template = ?")
            .bind(tenant.as_str())
            .bind(template)
            .execute(connection)
            .await
            .map_err(failed)?;
        Ok(done.rows_affected() > 0)
    }

    /// How many plans of all tenants have which standing, where `after` successes prove one.
    ///
    /// # Errors
    /// Database errors.
    pub async fn learned_counts(&self, after: u32, now: Timestamp) -> Result<Vec<LearnedCount>, Error> {
        let rows = sqlx::query(
            "SELECT successes >= ? AS proven, demoted, coalesce(suspended_until > ?, 0) AS suspended, count(*) AS plans \
             FROM learned_plans GROUP BY 1, 2, 3",
        )
        .bind(after)
        .bind(i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX))
        .fetch_all(self.pool())
        .await
        .map_err(|e| self.list_error(&e))?;
        let read = |row: &SqliteRow| {
            let plans: i64 = row.try_get("plans")?;
            Ok(LearnedCount {
                is_proven: row.try_get("proven")?,
                demoted: demotion(row)?,
                is_suspended: row.try_get("suspended")?,
                plans: u64::try_from(plans).unwrap_or(0),
            })
        };
        rows.iter().map(read).collect::<Result<_, sqlx::Error>>().map_err(|e| self.list_error(&e))
    }
}

impl FromRow<'_, SqliteRow> for LearnedRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            template: row.try_get("template")?,
            words: row.try_get("words")?,
            plan: decode(serde_json::from_str(row.try_get("plan")?))?,
            successes: row.try_get("successes")?,
            failures: row.try_get("failures")?,
            uses: row.try_get("uses")?,
            users: row.try_get("users")?,
            kept: row.try_get("kept")?,
            demoted: demotion(row)?,
            suspended_until: read_optional_time(row, "suspended_until")?,
            created: read_time(row, "created")?,
            seen: read_time(row, "seen")?,
            by_user: row.try_get("by_user")?,
        })
    }
}

fn demotion(row: &SqliteRow) -> Result<Option<Demotion>, sqlx::Error> {
    let name: Option<&str> = row.try_get("demoted")?;
    name.map(|name| decode(name.parse())).transpose()
}

/// The lesson of an event for the plan of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LearnedChange {
    /// It succeeded. With a plan, that was made by a planner; with a flow, it is a path through that.
    Succeeded { words: String, plan: Option<String>, flow: Option<String>, user: String },
    /// It failed; with a plan, only if it is still this one.
    Failed { plan: Option<String> },
    /// One of its tools was out of service.
    Suspended { plan: Option<String> },
    /// It was reused.
    Used,
    /// A tool has changed.
    Changed,
    /// A person judged it.
    Rated { score: PlanScore },
}

impl LearnedChange {
    /// Extracts the changes from the event, by template. A pure function.
    pub(super) fn of(event: &Event) -> Vec<(String, Self)> {
        let found = match event {
            Event::PlanRecalled(PlanRecall { outcome, template: Some(template), .. })
            | Event::PathRecalled { recall: PathRecall { outcome, template: Some(template), .. }, .. } => {
                Self::of_recall(*outcome).map(|change| (template.clone(), change))
            }
            Event::PlanObserved(lesson) | Event::PathObserved { lesson, .. } => {
                Self::of_lesson(lesson).map(|change| (lesson.template.clone(), change))
            }
            Event::PlanRated { template, paths, score, .. } => {
                let rated = template.iter().chain(paths);
                return rated.map(|template| (template.clone(), Self::Rated { score: *score })).collect();
            }
            _ => None,
        };
        found.into_iter().collect()
    }

    fn of_recall(outcome: RecallOutcome) -> Option<Self> {
        match outcome {
            RecallOutcome::Reused => Some(Self::Used),
            RecallOutcome::Changed => Some(Self::Changed),
            _ => None,
        }
    }

    fn of_lesson(lesson: &PlanLesson) -> Option<Self> {
        let PlanLesson { words, plan, result, user, .. } = lesson;
        let flow = plan.as_ref().and_then(|plan| Some(plan.flow_path()?.0.to_owned()));
        // Serialising plain data cannot fail.
        let plan = plan.as_ref().map(|plan| serde_json::to_string(plan).unwrap_or_default());
        if plan.as_ref().is_some_and(|plan| plan.len() > MAX_PLAN_BYTES) {
            return None;
        }
        Some(match result {
            LessonResult::Success => Self::Succeeded { words: words.clone(), plan, flow, user: user.clone() },
            LessonResult::Failure => Self::Failed { plan },
            LessonResult::Outage => Self::Suspended { plan },
        })
    }
}

/// Applies what the rows teach, in order.
pub(super) fn write_learned(connection: &Connection, rows: &[&JournalRow]) -> rusqlite::Result<()> {
    for row in rows {
        for (template, change) in &row.change.learned {
            LearnedAt { connection, row, template }.write(change)?;
        }
    }
    Ok(())
}

/// The template that an event is about.
struct LearnedAt<'a> {
    connection: &'a Connection,
    row: &'a JournalRow,
    template: &'a str,
}

impl LearnedAt<'_> {
    fn write(&self, change: &LearnedChange) -> rusqlite::Result<()> {
        match change {
            LearnedChange::Succeeded { words, plan, flow, user } => {
                let made = plan.as_deref().map(|plan| (plan, flow.as_deref()));
                self.succeeded(words, made, user)?;
            }
            LearnedChange::Failed { plan } => {
                let set = "successes = 0, failures = failures + 1, demoted = coalesce(demoted, 'failure')";
                self.update(set, plan.as_deref())?;
            }
            LearnedChange::Suspended { plan } => {
                let until = self.row.at.saturating_add(SUSPENSION_NANOS);
                self.update(&format!("suspended_until = {until}"), plan.as_deref())?;
            }
            LearnedChange::Used => _ = self.update("uses = uses + 1", None)?,
            LearnedChange::Changed => {
                self.update("successes = 0, demoted = coalesce(demoted, 'definition')", None)?;
            }
            LearnedChange::Rated { score: PlanScore::Bad } => {
                self.update("successes = 0, demoted = 'rating'", None)?;
            }
            LearnedChange::Rated { score: PlanScore::Good } => {
                self.update("demoted = CASE WHEN demoted = 'rating' THEN NULL ELSE demoted END", None)?;
            }
        }
        Ok(())
    }

    /// Updates the template's row, if it has this plan or no plan is given. Returns whether it did.
    fn update(&self, set: &str, plan: Option<&str>) -> rusqlite::Result<bool> {
        let sql = format!(
            "UPDATE learned_plans SET {set} WHERE tenant = ?1 AND template = ?2 AND (?3 IS NULL OR plan = ?3)"
        );
        let changed =
            self.connection.execute(&sql, params![self.row.tenant.as_str(), self.template, plan])?;
        Ok(changed > 0)
    }

    /// Executes a statement about the template.
    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute(sql, [self.row.tenant.as_str(), self.template]).map(drop)
    }

    fn succeeded(&self, words: &str, made: Option<(&str, Option<&str>)>, user: &str) -> rusqlite::Result<()> {
        let plan = made.map(|(plan, _)| plan);
        if !self.has_room()? {
            return Ok(());
        }
        let known = self.update("seen = max(seen, created)", plan)?;
        match (known, made) {
            (true, _) => {}
            // The plan that was recalled is gone.
            (false, None) => return Ok(()),
            (false, Some(made)) => self.learn(words, made)?,
        }
        self.update(&format!("successes = successes + 1, seen = {}", self.row.at), plan)?;
        self.count_user(user)
    }

    /// Whether the conversation can be remembered, so that the template is erased with it if need be.
    fn has_room(&self) -> rusqlite::Result<bool> {
        let mut count = self.connection.prepare_cached(
            "SELECT count(*) FROM learned_sources WHERE tenant = ? AND template = ? AND session <> ?",
        )?;
        let (tenant, session) = (self.row.tenant.as_str(), self.row.session.as_str());
        let sources: u32 = count.query_row([tenant, self.template, session], |row| row.get(0))?;
        Ok(sources < MAX_SOURCES)
    }

    /// Puts a plan in place of what was known of the template, and makes room for it.
    fn learn(&self, words: &str, (plan, flow): (&str, Option<&str>)) -> rusqlite::Result<()> {
        self.execute("DELETE FROM learned_plans WHERE tenant = ?1 AND template = ?2")?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO learned_plans (tenant, template, words, plan, successes, created, seen, flow) \
             VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5, ?6)",
        )?;
        insert.execute(params![self.row.tenant.as_str(), self.template, words, plan, self.row.at, flow])?;
        let sql = format!(
            "DELETE FROM learned_plans WHERE tenant = ?1 AND template <> ?2 AND template IN (SELECT template \
             FROM learned_plans WHERE tenant = ?1 AND template <> ?2 ORDER BY kept DESC, seen DESC, template \
             LIMIT -1 OFFSET {})",
            MAX_TEMPLATES - 1
        );
        self.execute(&sql)
    }

    /// Counts the user and remembers the conversation, until enough users said such requests.
    fn count_user(&self, user: &str) -> rusqlite::Result<()> {
        let (tenant, template) = (self.row.tenant.as_str(), self.template);
        let mut read = self
            .connection
            .prepare_cached("SELECT kept FROM learned_plans WHERE tenant = ? AND template = ?")?;
        let kept: bool = read.query_row([tenant, template], |row| row.get(0))?;
        if kept {
            return Ok(());
        }
        let sql =
            "INSERT INTO learned_users (tenant, template, user) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
        self.connection.prepare_cached(sql)?.execute([tenant, template, user])?;
        let sql =
            "INSERT INTO learned_sources (tenant, session, template) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
        self.connection.prepare_cached(sql)?.execute([tenant, self.row.session.as_str(), template])?;
        let count = "(SELECT count(*) FROM learned_users WHERE tenant = ?1 AND template = ?2)";
        self.update(&format!("users = {count}, kept = {count} >= {KEPT_USERS}"), None)?;
        for table in ["learned_users", "learned_sources"] {
            let sql = format!(
                "DELETE FROM {table} WHERE tenant = ?1 AND template = ?2 AND EXISTS (SELECT 1 FROM learned_plans \
                 WHERE tenant = ?1 AND template = ?2 AND kept)"
            );
            self.execute(&sql)?;
        }
        Ok(())
    }
}
