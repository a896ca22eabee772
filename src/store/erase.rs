//! Erasure of conversations and runs.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::erased_usage::keep_usage;
use super::error::{Error, ErrorCode};
use super::learned;
use super::record::StreamId;
use super::tenant_bytes::subtract_erased;
use super::usage::SESSION_STREAMS;
use super::writer::WriterGuard;
use super::{BUSY_TIMEOUT, Store};
use crate::run::{InvalidId, RunId, RunStatus, SessionId, TenantId};

/// How long the truncation of the log waits for readers.
const LOG_TIMEOUT: Duration = Duration::from_millis(250);

/// The stream of tenant `?1`'s run `?2`.
const RUN_STREAM: &str = "tenant = ?1 AND stream = 'run:' || ?2";

impl Store {
    /// Erases a conversation: its own stream, its runs and their events, overwritten in the file and in the
    /// write-ahead log. Kept are rows that its tools wrote into the scenes' tables, which are the company's
    /// data, its usage totals, and the audit log, which holds no content. Returns whether anything was
    /// erased.
    ///
    /// The caller must flush the journal first and keep the session from being used meanwhile, so that no
    /// event of it is pending.
    ///
    /// # Errors
    /// `store.session_busy` if one of its runs has not ended.
    pub async fn erase_session(&self, tenant: &TenantId, session: &SessionId) -> Result<bool, Error> {
        self.erase_if_unchanged(tenant, session, None).await
    }

    /// Like [`Store::erase_session`], but keeps a conversation that changed at `since` or later.
    pub(crate) async fn erase_if_unchanged(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        since: Option<Timestamp>,
    ) -> Result<bool, Error> {
        let doing = format!("erase session {session}");
        let failed = |e| Error::database(self.path(), &doing, &e);
        let mut writing = self.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        let busy = active_run(&mut tx, tenant, session).await.map_err(failed)?;
        if let Some(run) = busy {
            return Err(Error::new(
                ErrorCode::SessionBusy,
                format!(
                    "session {session} cannot be erased while its run {run} is active: cancel the run or wait for it to end"
                ),
            ));
        }
        if let Some(since) = since {
            let changed = last_change(&mut tx, tenant, session).await.map_err(failed)?;
            if changed.is_none_or(|changed| changed >= nanoseconds(since)) {
                return Ok(false);
            }
        }
        keep_usage(&mut tx, SESSION_STREAMS, tenant, session.as_str()).await.map_err(failed)?;
        subtract_erased(&mut tx, SESSION_STREAMS, tenant, session.as_str()).await.map_err(failed)?;
        let erased = delete_session(&mut tx, tenant, session).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        truncate_log(&mut writing).await.map_err(failed)?;
        Ok(erased > 0)
    }

    /// Erases an ended run: its events, its plan and its approvals, overwritten in the file and in the
    /// write-ahead log. Kept are its conversation's memory of it, its usage totals, and the audit log, which
    /// holds no content. Returns whether the tenant had such a run.
    ///
    /// The caller must ensure that no event of it is pending in the journal.
    ///
    /// # Errors
    /// `store.run_busy` if the run has not ended.
    pub async fn erase_run(&self, tenant: &TenantId, run: RunId) -> Result<bool, Error> {
        let doing = format!("erase run {run}");
        let failed = |e| Error::database(self.path(), &doing, &e);
        let mut writing = self.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        let id = run.to_string();
        let status: Option<String> =
            sqlx::query_scalar("SELECT status FROM runs WHERE tenant = ? AND run = ?")
                .bind(tenant.as_str())
                .bind(&id)
                .fetch_optional(&mut *tx)
                .await
                .map_err(failed)?;
        let Some(status) = status else { return Ok(false) };
        if !status.parse().is_ok_and(RunStatus::is_terminal) {
            let message =
                format!("run {run} cannot be erased while it is {status}: cancel it or wait for it to end");
            return Err(Error::new(ErrorCode::RunBusy, message));
        }
        delete_run(&mut tx, tenant, &id).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        truncate_log(&mut writing).await.map_err(failed)?;
        Ok(true)
    }

    /// Returns whether anything of a conversation is stored.
    ///
    /// # Errors
    /// Database errors.
    pub async fn has_session(&self, tenant: &TenantId, session: &SessionId) -> Result<bool, Error> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM ({CHANGES}) WHERE tenant = ? AND session = ?)");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(tenant.as_str())
            .bind(session.as_str())
            .fetch_one(self.pool())
            .await
            .map_err(|e| Error::database(self.path(), "read the lists", &e))
    }

    /// The conversations of all tenants that last changed before `since` and have no active run, oldest
    /// first, at most `limit`. Reads the whole lists.
    ///
    /// # Errors
    /// Database errors.
    pub async fn unchanged_sessions(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(TenantId, SessionId)>, Error> {
        let failed = |e| Error::database(self.path(), "find unchanged conversations", &e);
        let sql = format!(
            "SELECT tenant, session FROM ({CHANGES}) GROUP BY tenant, session \
             HAVING max(updated) < ? AND NOT max(at_work) ORDER BY max(updated), tenant, session LIMIT ?"
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(nanoseconds(since))
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await
            .map_err(failed)?;
        let read = |row: &SqliteRow| {
            let decode = |e| sqlx::Error::Decode(Box::<InvalidId>::new(e));
            let tenant = TenantId::new(row.try_get("tenant")?).map_err(decode)?;
            Ok((tenant, SessionId::new(row.try_get("session")?).map_err(decode)?))
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)
    }
}

/// Removes erased pages from the write-ahead log, which still holds them. If a reader blocks it, such as a backup, the next
/// one removes them: nothing else is written while it waits, so it waits only shortly.
pub(super) async fn truncate_log(writing: &mut WriterGuard<'_>) -> Result<(), sqlx::Error> {
    // A connection with another timeout is not used again if this is given up halfway.
    writing.begin_transaction();
    let connection = writing.unchecked_connection().await?;
    set_busy_timeout(connection, LOG_TIMEOUT).await?;
    let truncated = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *connection).await;
    set_busy_timeout(connection, BUSY_TIMEOUT).await?;
    writing.end_transaction();
    truncated.map(drop)
}

async fn set_busy_timeout(connection: &mut SqliteConnection, time: Duration) -> Result<(), sqlx::Error> {
    let sql = format!("PRAGMA busy_timeout = {}", time.as_millis());
    sqlx::query(AssertSqlSafe(sql)).execute(connection).await.map(drop)
}

/// Deletes an ended run from all tables, and keeps its usage.
pub(super) async fn delete_run(
    tx: &mut SqliteConnection,
    tenant: &TenantId,
    id: &str,
) -> Result<(), sqlx::Error> {
    keep_usage(tx, RUN_STREAM, tenant, id).await?;
    subtract_erased(tx, RUN_STREAM, tenant, id).await?;
    for sql in [
        "DELETE FROM idempotency WHERE run = ?",
        "DELETE FROM audit_keys WHERE run = ?",
        "DELETE FROM plans WHERE run = ?",
        "DELETE FROM approvals WHERE run = ?",
        learned::FORGET_RUN,
        "DELETE FROM last_results WHERE run = ?",
        "DELETE FROM document_uses WHERE run = ?",
        "DELETE FROM document_listings WHERE run = ?",
        "DELETE FROM journal WHERE stream = 'run:' || ?",
        // The owner of the conversation is kept while anything else of it is left.
        "DELETE FROM session_owners WHERE (tenant, session) IN (SELECT tenant, session FROM runs WHERE run = ?1) \
         AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.tenant = session_owners.tenant \
         AND s.session = session_owners.session) \
         AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.tenant = session_owners.tenant \
         AND r.session = session_owners.session AND r.run <> ?1)",
        "DELETE FROM runs WHERE run = ?",
    ] {
        sqlx::query(sql).bind(id).execute(&mut *tx).await?;
    }
    Ok(())
}

/// A run of the session that has not ended.
async fn active_run(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT run FROM runs WHERE tenant = ? AND session = ? AND status IN ('queued', 'running', 'waiting')",
    )
    .bind(tenant.as_str())
    .bind(session.as_str())
    .fetch_optional(connection)
    .await
}

/// When the session or one of its runs last changed, in nanoseconds.
async fn last_change(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Option<i64>, sqlx::Error> {
    let sql = format!("SELECT max(updated) FROM ({CHANGES}) WHERE tenant = ? AND session = ?");
    sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_one(connection)
        .await
}

/// Deletes the session and its runs from all tables; returns the number of deleted rows.
async fn delete_session(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<u64, sqlx::Error> {
    let mut erased = 0;
    for sql in [
        "DELETE FROM idempotency WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        // Without the key, the audit log no longer reveals what was decided.
        "DELETE FROM audit_keys WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        "DELETE FROM plans WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        "DELETE FROM approvals WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        // A template of fewer than three users is theirs.
        learned::FORGET_SESSION,
        "DELETE FROM learned_sources WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM last_results WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        "DELETE FROM document_uses WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        "DELETE FROM document_listings WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
        "DELETE FROM journal WHERE stream IN (SELECT 'run:' || run FROM runs WHERE tenant = ?1 AND session = ?2)",
        "DELETE FROM runs WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM sessions WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM session_owners WHERE tenant = ?1 AND session = ?2",
    ] {
        let done =
            sqlx::query(sql).bind(tenant.as_str()).bind(session.as_str()).execute(&mut *connection).await?;
        erased += done.rows_affected();
    }
    let own = StreamId::Session(tenant.clone(), session.clone());
    let done =
        sqlx::query("DELETE FROM journal WHERE stream = ?").bind(own.to_string()).execute(connection).await?;
    Ok(erased + done.rows_affected())
}

/// When conversations changed. A conversation without a turn has only runs.
const CHANGES: &str = "SELECT tenant, session, updated, 0 AS at_work FROM sessions UNION ALL \
     SELECT tenant, session, updated, status IN ('queued', 'running', 'waiting') AS at_work FROM runs";

/// Saturates: a time that does not fit into 64 bits is far outside any journal.
fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(if at < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX })
}
