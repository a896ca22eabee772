//! Erasing a conversation.

use super::Store;
use super::error::{Code, Error};
use super::record::Stream;
use crate::run::{SessionId, TenantId};

impl Store {
    /// Erases a conversation: its own stream, its runs and their events, overwritten in the file and
    /// in its write-ahead log. Rows that its tools wrote into the scenes' tables are the company's
    /// data and stay. Returns whether there was anything.
    ///
    /// The caller makes sure that nothing of the session waits in the journal: it flushes it, and keeps
    /// the session from being used meanwhile.
    ///
    /// # Errors
    /// `store.session_busy` when a run of it has not ended.
    pub async fn erase_session(&self, tenant: &TenantId, session: &SessionId) -> Result<bool, Error> {
        let failed = |e| Error::database(self.path(), &format!("erase session {session}"), &e);
        let mut connection = self.writer()?.acquire().await.map_err(failed)?;
        sqlx::query("PRAGMA secure_delete = ON").execute(&mut *connection).await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        let busy: Option<String> = sqlx::query_scalar(
            "SELECT run FROM runs WHERE tenant = ? AND session = ? AND status IN ('queued', 'running', 'waiting')",
        )
        .bind(tenant.as_str())
        .bind(session.as_str())
        .fetch_optional(&mut *tx)
        .await
        .map_err(failed)?;
        if let Some(run) = busy {
            return Err(Error::new(
                Code::SessionBusy,
                format!(
                    "session {session} cannot be erased while its run {run} is at work: cancel it or wait for its end"
                ),
            ));
        }
        let mut erased = 0;
        for sql in [
            "DELETE FROM idempotency WHERE run IN (SELECT run FROM runs WHERE tenant = ?1 AND session = ?2)",
            "DELETE FROM journal WHERE stream IN (SELECT 'run:' || run FROM runs WHERE tenant = ?1 AND session = ?2)",
            "DELETE FROM runs WHERE tenant = ?1 AND session = ?2",
            "DELETE FROM sessions WHERE tenant = ?1 AND session = ?2",
        ] {
            let done = sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(session.as_str())
                .execute(&mut *tx)
                .await
                .map_err(failed)?;
            erased += done.rows_affected();
        }
        let own = Stream::Session(tenant.clone(), session.clone());
        let done = sqlx::query("DELETE FROM journal WHERE stream = ?")
            .bind(own.to_string())
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        erased += done.rows_affected();
        tx.commit().await.map_err(failed)?;
        // The log still holds the pages as they were. Where a reader is in the way, the next checkpoint
        // does it.
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *connection).await.map_err(failed)?;
        Ok(erased > 0)
    }
}
