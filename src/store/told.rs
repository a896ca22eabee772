//! Who was told that something waits: which messages are still to be sent, and how many wait for people.
//!
//! What is written here is nothing of the journal's, so it is written beside it.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::Store;
use super::approvals::{About, ApprovalRow, COLUMNS, approval_row};
use super::error::Error;
use super::usage::bound;
use crate::run::ApprovalId;

/// Something that waits for people and of which nobody was told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    /// What waits.
    pub approval: ApprovalRow,
    /// Times that a message of it was sent and did not arrive.
    pub attempts: u32,
}

/// How many of each kind wait for people, of all tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Runs that do nothing but wait.
    pub runs: u64,
    /// Open approvals of plans.
    pub plans: u64,
    /// Open approvals of calls.
    pub calls: u64,
    /// Writes whose outcome nobody knows and somebody has to tell.
    pub outcomes: u64,
}

impl Store {
    /// What waits for people of all tenants and of which they are to be told at `now`, the oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn untold(&self, now: Timestamp, limit: u32) -> Result<Vec<Untold>, Error> {
        let columns = COLUMNS.replacen("SELECT ", "SELECT attempts, ", 1);
        let sql = format!(
            "{columns} state = 'open' AND told IS NULL AND next_try <= ? ORDER BY created, run, approval LIMIT ?"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(bound(Some(now), i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await
            .map_err(|e| self.listing(&e))?;
        let read =
            |row: &SqliteRow| Ok(Untold { approval: approval_row(row)?, attempts: row.try_get("attempts")? });
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|e| self.listing(&e))
    }

    /// Somebody was told of it: it is not told again.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn set_told(&self, id: ApprovalId, at: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE approvals SET told = ?3, attempts = attempts + 1 WHERE run = ?1 AND approval = ?2";
        self.telling(sql, id, Some(at)).await
    }

    /// A message of it did not arrive: it is sent again at `next`, or not at all.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn put_off(&self, id: ApprovalId, next: Option<Timestamp>) -> Result<(), Error> {
        let sql =
            "UPDATE approvals SET next_try = ?3, attempts = attempts + 1 WHERE run = ?1 AND approval = ?2";
        self.telling(sql, id, next).await
    }

    async fn telling(&self, sql: &'static str, id: ApprovalId, at: Option<Timestamp>) -> Result<(), Error> {
        sqlx::query(sql)
            .bind(id.run.to_string())
            .bind(i64::from(id.approval))
            .bind(at.map(|at| bound(Some(at), i64::MAX)))
            .execute(self.pool())
            .await
            .map_err(|e| Error::database(self.path(), "remember who was told", &e))?;
        Ok(())
    }

    /// How many of each kind wait for people now, of all tenants.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn waiting(&self) -> Result<Waiting, Error> {
        let rows = sqlx::query(
            "SELECT about, count(*) AS n FROM approvals INDEXED BY approvals_open WHERE state = 'open' GROUP BY about \
             UNION ALL SELECT 'runs', count(*) FROM runs INDEXED BY runs_unfinished \
             WHERE status IN ('queued', 'running', 'waiting') AND status = 'waiting'",
        )
        .fetch_all(self.pool())
        .await
        .map_err(|e| self.listing(&e))?;
        let mut waiting = Waiting::default();
        for row in &rows {
            let read =
                || Ok::<_, sqlx::Error>((row.try_get::<&str, _>("about")?, row.try_get::<i64, _>("n")?));
            let (about, n) = read().map_err(|e| self.listing(&e))?;
            let n = n.unsigned_abs();
            match About::named(about) {
                Some(About::Plan) => waiting.plans = n,
                Some(About::Call) => waiting.calls = n,
                Some(About::Outcome) => waiting.outcomes = n,
                None => waiting.runs = n,
            }
        }
        Ok(waiting)
    }
}
