//! Deleting documents, with everything that is derived from them.

use std::io::ErrorKind;

use jiff::Timestamp;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::super::erase::delete_run;
use super::super::error::{Error, ErrorCode};
use super::super::read::{MAX_PAGE, Page, decode};
use super::super::tenant_bytes;
use super::content::blocking;
use super::{DocumentOwner, Documents, OWNED, nanoseconds};
use crate::run::{DocumentId, RunId, SessionId, TenantId};

/// What is deleted with document `?1`, in the same transaction, before its row. Each table that holds something derived
/// from documents has a column with the document's id, and its statement here.
const DERIVED: &[&str] = &["DELETE FROM document_uses WHERE document = ?1"];

/// What was deleted with a document, and what is left of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedDocument {
    /// The runs that named it, which are erased.
    pub runs: Vec<RunId>,
    /// Their conversations. What these remember of the runs (requests, answers and shortened results) is kept until they
    /// are erased.
    pub sessions: Vec<SessionId>,
}

impl Documents {
    /// Deletes a document of the owner and everything that is derived from it: the runs that named it, with their events
    /// (so also summaries, and what tools and models said of it), the rows that [`DERIVED`] names, and its own row,
    /// overwritten in the database file and in the write-ahead log; then its file. `None` if the owner has none with this
    /// id. Kept is what the conversations of these runs remember of them.
    ///
    /// Everything that deletes documents comes here: a request, retention, and [`Documents::delete_of_user`]. To store
    /// something derived from documents outside the events of runs, add its statement to [`DERIVED`].
    ///
    /// The caller must flush the journal first, so that no event of these runs is pending.
    ///
    /// # Errors
    /// `document.in_use` if a run that named it has not ended or the outcome of one of its writes is to be decided,
    /// `store.read_only`, and database errors. If only the file could not be removed, that is logged, and done at the
    /// next start.
    pub async fn delete(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<DeletedDocument>, Error> {
        let deleted = self.delete_if(owner, id, None).await?;
        if deleted.is_some() {
            self.truncate_log().await?;
        }
        Ok(deleted)
    }

    /// Deletes all documents of a user that no active run names. Returns how many.
    ///
    /// # Errors
    /// `document.in_use` if some of them could not be deleted for that reason; otherwise as [`Documents::delete`].
    pub async fn delete_of_user(&self, tenant: &TenantId, user: &str) -> Result<usize, Error> {
        let owner = DocumentOwner::user(tenant, user);
        let (mut deleted, mut in_use) = (0, None);
        let mut page = Page { limit: MAX_PAGE, after: None };
        loop {
            let rows = self.list(&owner, &page).await?;
            for row in &rows {
                match self.delete_if(&owner, row.id, None).await {
                    Ok(done) => deleted += usize::from(done.is_some()),
                    Err(error) if error.kind() == ErrorCode::DocumentInUse => in_use = Some(error),
                    Err(error) => return Err(error),
                }
            }
            match rows.last() {
                Some(last) => page.after = Some(last.id),
                None => break,
            }
        }
        self.truncate_log().await?;
        in_use.map_or(Ok(deleted), Err)
    }

    /// Deletes documents of all tenants that were last used before `since` and that no active run names, at most a
    /// thousand, those unused for the longest time first. Returns how many.
    ///
    /// # Errors
    /// As [`Documents::delete`].
    pub async fn delete_unused(&self, since: Timestamp) -> Result<usize, Error> {
        let before = nanoseconds(since);
        let sql = format!(
            "SELECT tenant, id FROM documents AS d WHERE used < ? AND NOT EXISTS (SELECT 1 FROM document_uses AS u \
             JOIN runs AS r ON r.run = u.run WHERE u.document = d.id AND {IS_ACTIVE}) ORDER BY used, id LIMIT 1000"
        );
        let rows = sqlx::query_as(AssertSqlSafe(sql)).bind(before).fetch_all(self.store.pool()).await;
        let rows: Vec<(String, String)> = rows.map_err(|e| self.read_error(&e))?;
        let mut deleted = 0;
        for (tenant, id) in rows {
            let tenant = decode(TenantId::new(&tenant)).map_err(|e| self.read_error(&e))?;
            let id = decode(id.parse::<DocumentId>()).map_err(|e| self.read_error(&e))?;
            match self.delete_if(&DocumentOwner::anyone(&tenant), id, Some(before)).await {
                Ok(done) => deleted += usize::from(done.is_some()),
                // It was named just now.
                Err(error) if error.kind() == ErrorCode::DocumentInUse => {}
                Err(error) => return Err(error),
            }
        }
        if deleted > 0 {
            self.truncate_log().await?;
        }
        Ok(deleted)
    }

    /// Deletes a document, unless it was used at `unused_since` or later.
    async fn delete_if(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
        unused_since: Option<i64>,
    ) -> Result<Option<DeletedDocument>, Error> {
        self.check_owner()?;
        let doing = format!("delete document {id}");
        let failed = |e| Error::database(self.store.path(), &doing, &e);
        let mut writing = self.store.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        sqlx::query("PRAGMA secure_delete = ON").execute(&mut *connection).await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        let uses = uses_of(&mut tx, id).await.map_err(failed)?;
        if let Some((run, ..)) = uses.iter().find(|(.., is_active)| *is_active) {
            // An owner who does not have it learns nothing.
            if self.get(owner, id).await?.is_none() {
                return Ok(None);
            }
            let what = format!(
                "the document {id} cannot be deleted while run {run}, which names it, is active or has a write whose \
                 outcome is to be decided: cancel the run, wait for it to end, or decide"
            );
            return Err(Error::new(ErrorCode::DocumentInUse, what));
        }
        if !delete_rows(&mut tx, owner, id, unused_since).await.map_err(failed)? {
            return Ok(None);
        }
        let mut deleted = DeletedDocument::default();
        for (run, session, _) in uses {
            delete_run(&mut tx, owner.tenant, &run.to_string()).await.map_err(failed)?;
            deleted.runs.push(run);
            if !deleted.sessions.contains(&session) {
                deleted.sessions.push(session);
            }
        }
        tx.commit().await.map_err(failed)?;
        drop(writing);
        self.remove_file(id).await;
        Ok(Some(deleted))
    }

    /// Removes deleted pages from the write-ahead log. If a reader blocks it, the next one removes them.
    async fn truncate_log(&self) -> Result<(), Error> {
        let doing = "truncate the log";
        let failed = |e| Error::database(self.store.path(), doing, &e);
        let mut writing = self.store.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(connection).await.map(drop).map_err(failed)
    }

    async fn remove_file(&self, id: DocumentId) {
        let path = self.file(id);
        let shown = path.display().to_string();
        let removed = blocking(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(&path, "remove the file of a document", &error))
            }
            _ => Ok(()),
        });
        if let Err(error) = removed.await {
            tracing::warn!(path = shown, code = error.code(), %error, "the file of a deleted document is removed at the next start");
        }
    }
}

/// Whether run `r` is active, or a person has to decide about one of its writes: an erased run could not tell of it.
const IS_ACTIVE: &str = "(r.status IN ('queued', 'running', 'waiting') OR EXISTS (SELECT 1 FROM approvals AS a \
     WHERE a.run = r.run AND a.about = 'outcome' AND a.state = 'open'))";

/// The runs that named a document, with their conversations, and whether they are active.
async fn uses_of(
    tx: &mut SqliteConnection,
    id: DocumentId,
) -> Result<Vec<(RunId, SessionId, bool)>, sqlx::Error> {
    let sql = format!(
        "SELECT r.run, r.session, {IS_ACTIVE} FROM document_uses AS u JOIN runs AS r ON r.run = u.run \
         WHERE u.document = ? ORDER BY r.run"
    );
    let rows: Vec<(String, String, bool)> =
        sqlx::query_as(AssertSqlSafe(sql)).bind(id.to_string()).fetch_all(tx).await?;
    let mut uses = Vec::with_capacity(rows.len());
    for (run, session, is_active) in rows {
        uses.push((decode(run.parse::<RunId>())?, decode(SessionId::new(&session))?, is_active));
    }
    Ok(uses)
}

/// Deletes the row, what hangs on it, and its share of the tenant's stored bytes. Returns whether there was one.
pub(super) async fn delete_rows(
    tx: &mut SqliteConnection,
    owner: &DocumentOwner<'_>,
    id: DocumentId,
    unused_since: Option<i64>,
) -> Result<bool, sqlx::Error> {
    let id = id.to_string();
    let sql =
        format!("SELECT bytes FROM documents WHERE {OWNED} AND id = ?3 AND used < coalesce(?4, used + 1)");
    let bytes: Option<i64> = sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(owner.tenant.as_str())
        .bind(owner.user)
        .bind(&id)
        .bind(unused_since)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(bytes) = bytes else { return Ok(false) };
    for sql in DERIVED {
        sqlx::query(*sql).bind(&id).execute(&mut *tx).await?;
    }
    tenant_bytes::subtract(&mut *tx, owner.tenant, bytes).await?;
    let done = sqlx::query("DELETE FROM documents WHERE id = ?").bind(&id).execute(tx).await?;
    Ok(done.rows_affected() > 0)
}
