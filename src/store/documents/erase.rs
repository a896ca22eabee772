//! Deleting documents, with everything that is derived from them.
//!
//! A deletion is decided in one transaction, which checks that no conversation that remembers the document is at work: before it
//! nothing is forgotten, and after it the document is there for no request any more. Then conversations forget it one by one,
//! each in a transaction of its own, and at last the document goes. What a crash interrupts, or a conversation that is at work
//! again, is completed by the next deletion, or by the next round of retention.

use std::io::ErrorKind;

use jiff::Timestamp;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::super::error::Error;
use super::super::read::decode;
use super::super::{erase, tenant_bytes};
use super::content::blocking;
use super::forget::{IS_ACTIVE, check_at_rest, deletion_continues, uses_of};
use super::{DocumentOwner, Documents, OF_OWNER, nanoseconds};
use crate::run::{DocumentId, RunId, SessionId, TenantId};

/// What is deleted with document `?1`, in the same transaction, before its row. Each table that holds something derived
/// from documents has a column with the document's id, and its statement here.
const DERIVED: &[&str] =
    &["DELETE FROM document_uses WHERE document = ?1", "DELETE FROM document_listings WHERE document = ?1"];

/// How often the conversations of a document are gone through, since requests may name it meanwhile.
const MAX_ROUNDS: usize = 3;

/// The data that was deleted with a document, and what is left of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedDocument {
    /// The runs that named it, or that did nothing but to ask which one is meant and listed it: they are erased.
    pub runs: Vec<RunId>,
    /// Their conversations. These forgot what the document said, and its name in lists; the users' own words are kept, and so are
    /// the journals of later runs, and of runs that listed it and did something else, until a conversation is erased.
    pub sessions: Vec<SessionId>,
}

/// Keeps a conversation from being used while it forgets a document: its actor remembers what is about to be erased.
#[async_trait::async_trait]
pub(crate) trait ConversationHold: Sync {
    /// Why a conversation cannot be held, or a document not be deleted.
    type Error: From<Error> + std::fmt::Display + Send;

    /// Until the result is dropped, nothing happens in the conversation, and no event of it is pending. Then it is read
    /// again.
    async fn hold(&self, tenant: &TenantId, session: &SessionId) -> Result<Box<dyn Send>, Self::Error>;

    fn code(error: &Self::Error) -> &str;
}

/// The codes of errors about one document or conversation: retention passes over it.
const PASSED_OVER: &[&str] = &[
    "document.in_use", "engine.busy", "engine.sessions_full", "session.behind", "store.gap",
    "store.unreadable",
];

/// Nothing else uses the data directory.
struct NoActors;

#[async_trait::async_trait]
impl ConversationHold for NoActors {
    type Error = Error;

    async fn hold(&self, _: &TenantId, _: &SessionId) -> Result<Box<dyn Send>, Error> {
        Ok(Box::new(()))
    }

    fn code(error: &Error) -> &str {
        error.code()
    }
}

impl Documents {
    /// Deletes a document of the owner and everything that is derived from it: the runs that named it, with their events
    /// (so also summaries, and what tools and models said of it), what their conversations remember of it, the rows that
    /// [`DERIVED`] names, and its own row, overwritten in the database file and in the write-ahead log; then its file.
    /// `None` if the owner has none with this id.
    ///
    /// Everything that deletes documents comes here: a request, and retention. To store something derived from
    /// documents outside the events of runs, add its statement to [`DERIVED`].
    ///
    /// The caller must flush the journal first, so that no event of these runs is pending, and use none of their
    /// conversations meanwhile.
    ///
    /// # Errors
    /// `document.in_use` if a run that named it, or one that may know of it since it came later in the same conversation,
    /// has not ended, or the outcome of a write is to be decided; `store.read_only`; `store.unreadable` if one of the
    /// conversations cannot be read (erase it); and database errors. If only the file could not be removed, that is
    /// logged, and done at the next start.
    pub async fn delete(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<DeletedDocument>, Error> {
        self.delete_holding(owner, id, &NoActors).await
    }

    /// Like [`Documents::delete`], and holds each conversation while it forgets the document.
    pub(crate) async fn delete_holding<H: ConversationHold>(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
        hold: &H,
    ) -> Result<Option<DeletedDocument>, H::Error> {
        let deleted = self.delete_if(owner, id, None, hold).await?;
        if deleted.is_some() {
            self.truncate_log().await?;
        }
        Ok(deleted)
    }

    /// Deletes documents of all tenants whose deletion has begun, at most a hundred, and those that were last used before `since`
    /// and that no active run names, at most a thousand, unused for the longest time first. Returns how many.
    ///
    /// # Errors
    /// As [`Documents::delete`].
    pub async fn delete_unused(&self, since: Timestamp) -> Result<usize, Error> {
        self.delete_unused_holding(since, &NoActors).await
    }

    /// Like [`Documents::delete_unused`], and holds each conversation while it forgets a document.
    pub(crate) async fn delete_unused_holding<H: ConversationHold>(
        &self,
        since: Timestamp,
        hold: &H,
    ) -> Result<usize, H::Error> {
        let before = nanoseconds(since);
        let sql = format!(
            "SELECT * FROM (SELECT tenant, id FROM documents WHERE deleting = 1 ORDER BY random() LIMIT 100) UNION ALL \
             SELECT * FROM (SELECT tenant, id FROM documents AS d WHERE deleting = 0 AND used < ? AND NOT EXISTS (SELECT 1 \
             FROM document_uses AS u JOIN runs AS r ON r.run = u.run WHERE u.document = d.id AND {IS_ACTIVE}) \
             ORDER BY used, id LIMIT 1000)"
        );
        let rows = sqlx::query_as(AssertSqlSafe(sql)).bind(before).fetch_all(self.store.pool()).await;
        let rows: Vec<(String, String)> = rows.map_err(|e| self.read_error(&e))?;
        let mut deleted = 0;
        for (tenant, id) in rows {
            let tenant = decode(TenantId::new(&tenant)).map_err(|e| self.read_error(&e))?;
            let id = decode(id.parse::<DocumentId>()).map_err(|e| self.read_error(&e))?;
            match self.delete_if(&DocumentOwner::anyone(&tenant), id, Some(before), hold).await {
                Ok(done) => deleted += usize::from(done.is_some()),
                // It was named just now, one of its conversations is at work, or cannot be read.
                Err(error) if PASSED_OVER.contains(&H::code(&error)) => {
                    tracing::warn!(document = %id, %tenant, code = H::code(&error), "a document is not deleted yet: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        if deleted > 0 {
            self.truncate_log().await?;
        }
        Ok(deleted)
    }

    /// Deletes a document, unless it was used at `unused_since` or later.
    async fn delete_if<H: ConversationHold>(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
        unused_since: Option<i64>,
        hold: &H,
    ) -> Result<Option<DeletedDocument>, H::Error> {
        self.check_owner()?;
        let mut deleted = DeletedDocument::default();
        for _ in 0..MAX_ROUNDS {
            // An owner who does not have it learns nothing.
            if !self.begin_deletion(owner, id, unused_since).await? {
                return Ok(None);
            }
            let mut at_work = None;
            for session in self.remembering(id).await? {
                match self.forget_holding(owner.tenant, id, &session, hold).await {
                    Ok(runs) => {
                        deleted.runs.extend(runs);
                        if !deleted.sessions.contains(&session) {
                            deleted.sessions.push(session);
                        }
                    }
                    // The others forget it nevertheless.
                    Err(error) if PASSED_OVER.contains(&H::code(&error)) => at_work = Some(error),
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = at_work {
                return Err(error);
            }
            if self.delete_forgotten(owner, id).await? {
                self.remove_file(id).await;
                return Ok(Some(deleted));
            }
        }
        Err(deletion_continues(id, "a new request about it").into())
    }

    /// Decides the deletion of a document, unless it was used at `unused_since` or later: from here on it is there for no
    /// request. Returns whether there is one to be deleted; one whose deletion was decided before is.
    ///
    /// # Errors
    /// `document.in_use`, `store.unreadable`, and then nothing has changed; database errors.
    async fn begin_deletion(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
        unused_since: Option<i64>,
    ) -> Result<bool, Error> {
        if self.get(owner, id).await?.is_none() {
            return Ok(self.get_to_delete(owner, id).await?.is_some());
        }
        // What cannot be read cannot be forgotten.
        for session in self.remembering(id).await? {
            self.store.session_events(owner.tenant, &session).await?;
        }
        let doing = format!("begin to delete document {id}");
        let failed = |e| Error::database(self.store.path(), &doing, &e);
        let mut writing = self.store.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx = sqlx::Connection::begin_with(connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        if let Some(error) = check_at_rest(&mut tx, id, owner.tenant).await.map_err(failed)? {
            return Err(error);
        }
        let sql = format!(
            "UPDATE documents SET deleting = 1 WHERE {OF_OWNER} AND id = ?3 AND used < coalesce(?4, used + 1)"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(owner.tenant.as_str()).bind(owner.user);
        let query = query.bind(id.to_string()).bind(unused_since);
        let begun = query.execute(&mut *tx).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(begun.rows_affected() > 0)
    }

    /// Has a conversation forget a document while nothing happens in it.
    async fn forget_holding<H: ConversationHold>(
        &self,
        tenant: &TenantId,
        id: DocumentId,
        session: &SessionId,
        hold: &H,
    ) -> Result<Vec<RunId>, H::Error> {
        let held = hold.hold(tenant, session).await?;
        let runs = self.forget(tenant, id, session).await?;
        drop(held);
        Ok(runs)
    }

    /// Deletes the row of a document that no run names any more. Returns whether that is done.
    async fn delete_forgotten(&self, owner: &DocumentOwner<'_>, id: DocumentId) -> Result<bool, Error> {
        let doing = format!("delete document {id}");
        let failed = |e| Error::database(self.store.path(), &doing, &e);
        let mut writing = self.store.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        let uses = uses_of(&mut tx, id).await.map_err(failed)?;
        let is_done = uses.is_empty() && delete_rows(&mut tx, owner, id).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(is_done)
    }

    /// Removes deleted pages from the write-ahead log. If a reader blocks it, the next one removes them.
    async fn truncate_log(&self) -> Result<(), Error> {
        let doing = "truncate the log";
        let failed = |e| Error::database(self.store.path(), doing, &e);
        let mut writing = self.store.writer(doing).await?;
        erase::truncate_log(&mut writing).await.map_err(failed)
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

/// Deletes the row, what hangs on it, and its share of the tenant's stored bytes. Returns whether there was one.
pub(super) async fn delete_rows(
    tx: &mut SqliteConnection,
    owner: &DocumentOwner<'_>,
    id: DocumentId,
) -> Result<bool, sqlx::Error> {
    let id = id.to_string();
    let sql = format!("SELECT bytes FROM documents WHERE {OF_OWNER} AND id = ?3");
    let bytes: Option<i64> = sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(owner.tenant.as_str())
        .bind(owner.user)
        .bind(&id)
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
