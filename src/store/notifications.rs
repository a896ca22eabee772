//! Delivery state of approval notifications, and the counts of what waits for people.
//!
//! The delivery state is no part of the journal, so it is written separately.

use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};

use super::Store;
use super::approvals::{APPROVAL_COLUMNS, About, ApprovalRow};
use super::error::Error;
use super::usage::time_bound;
use crate::run::ApprovalId;

/// An open approval whose notification has not been delivered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingNotification {
    /// The approval.
    pub approval: ApprovalRow,
    /// Number of failed delivery attempts.
    pub attempts: u32,
}

/// How many runs and approvals wait for people, of all tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitingCounts {
    /// Waiting runs.
    pub runs: u64,
    /// Open approvals of plans.
    pub plans: u64,
    /// Open approvals of calls.
    pub calls: u64,
    /// Open approvals about the unknown outcome of a write.
    pub outcomes: u64,
}

impl Store {
    /// The notifications of all tenants that are due at `now`, oldest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn pending_notifications(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<PendingNotification>, Error> {
        let columns = APPROVAL_COLUMNS.replacen("SELECT ", "SELECT attempts, ", 1);
        let sql = format!(
            "{columns} state = 'open' AND told IS NULL AND next_try <= ? ORDER BY created, run, approval LIMIT ?"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(time_bound(Some(now), i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await
            .map_err(|e| self.list_error(&e))?;
        let read = |row: &SqliteRow| {
            Ok(PendingNotification {
                approval: ApprovalRow::from_row(row)?,
                attempts: row.try_get("attempts")?,
            })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(|e| self.list_error(&e))
    }

    /// Marks the notification as delivered; it is not sent again.
    ///
    /// # Errors
    /// Database errors.
    pub async fn set_notified(&self, id: ApprovalId, at: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE approvals SET told = ?3, attempts = attempts + 1 WHERE run = ?1 AND approval = ?2";
        self.update_notification(sql, id, Some(at)).await
    }

    /// Records a failed delivery: the notification is retried at `next`, or abandoned if that is `None`.
    ///
    /// # Errors
    /// Database errors.
    pub async fn postpone_notification(&self, id: ApprovalId, next: Option<Timestamp>) -> Result<(), Error> {
        let sql =
            "UPDATE approvals SET next_try = ?3, attempts = attempts + 1 WHERE run = ?1 AND approval = ?2";
        self.update_notification(sql, id, next).await
    }

    async fn update_notification(
        &self,
        sql: &'static str,
        id: ApprovalId,
        at: Option<Timestamp>,
    ) -> Result<(), Error> {
        sqlx::query(sql)
            .bind(id.run.to_string())
            .bind(i64::from(id.approval))
            .bind(at.map(|at| time_bound(Some(at), i64::MAX)))
            .execute(self.pool())
            .await
            .map_err(|e| Error::database(self.path(), "store the state of a notification", &e))?;
        Ok(())
    }

    /// How many runs and approvals wait for people now, of all tenants.
    ///
    /// # Errors
    /// Database errors.
    pub async fn waiting_counts(&self) -> Result<WaitingCounts, Error> {
        let rows = sqlx::query(
            "SELECT about, count(*) AS n FROM approvals INDEXED BY approvals_open WHERE state = 'open' GROUP BY about \
             UNION ALL SELECT 'runs', count(*) FROM runs INDEXED BY runs_unfinished \
             WHERE status IN ('queued', 'running', 'waiting') AND status = 'waiting'",
        )
        .fetch_all(self.pool())
        .await
        .map_err(|e| self.list_error(&e))?;
        let mut waiting = WaitingCounts::default();
        for row in &rows {
            let read =
                || Ok::<_, sqlx::Error>((row.try_get::<&str, _>("about")?, row.try_get::<i64, _>("n")?));
            let (about, n) = read().map_err(|e| self.list_error(&e))?;
            let n = n.unsigned_abs();
            match About::from_name(about) {
                Some(About::Plan) => waiting.plans = n,
                Some(About::Call) => waiting.calls = n,
                Some(About::Outcome) => waiting.outcomes = n,
                None => waiting.runs = n,
            }
        }
        Ok(waiting)
    }
}
