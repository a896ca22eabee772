//! Deleting documents, with everything that is derived from them.

use std::io::ErrorKind;

use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::super::error::Error;
use super::super::read::decode;
use super::super::tenant_bytes;
use super::content::blocking;
use super::{Documents, nanoseconds};
use crate::run::{DocumentId, TenantId};

/// What is deleted with document `?1`, in the same transaction, before its row. Each table that holds something derived
/// from documents has a column with the document's id, and its statement here.
const DERIVED: &[&str] = &[];

impl Documents {
    /// Deletes a document of the tenant and everything that is derived from it: its row and the rows that [`DERIVED`]
    /// names, overwritten in the database file and in the write-ahead log, and then its file. What runs recorded when
    /// they used it, such as its name and the results of tools that read it, is erased with these runs. Returns whether
    /// the tenant had it.
    ///
    /// Everything that deletes documents comes here: a request, retention, and [`Documents::delete_of_user`]. To store something
    /// derived from documents, add its statement to [`DERIVED`].
    ///
    /// # Errors
    /// `store.read_only` and database errors. If only the file could not be removed, that is logged, and done at the
    /// next start.
    pub async fn delete(&self, tenant: &TenantId, id: DocumentId) -> Result<bool, Error> {
        self.delete_if(tenant, id, None).await
    }

    /// Deletes all documents of a user. Returns how many.
    ///
    /// # Errors
    /// As [`Documents::delete`].
    pub async fn delete_of_user(&self, tenant: &TenantId, user: &str) -> Result<usize, Error> {
        let sql = "SELECT tenant, id FROM documents WHERE tenant = ? AND user = ?";
        let rows = sqlx::query_as(sql).bind(tenant.as_str()).bind(user).fetch_all(self.store.pool()).await;
        let mut deleted = 0;
        for (tenant, id) in self.ids(rows)? {
            deleted += usize::from(self.delete(&tenant, id).await?);
        }
        Ok(deleted)
    }

    /// Deletes documents of all tenants that were last used before `since`, at most a thousand, those unused for the
    /// longest time first. Returns how many.
    ///
    /// # Errors
    /// As [`Documents::delete`].
    pub async fn delete_unused(&self, since: Timestamp) -> Result<usize, Error> {
        let before = nanoseconds(since);
        let sql = "SELECT tenant, id FROM documents WHERE used < ? ORDER BY used, id LIMIT 1000";
        let rows = sqlx::query_as(sql).bind(before).fetch_all(self.store.pool()).await;
        let mut deleted = 0;
        for (tenant, id) in self.ids(rows)? {
            deleted += usize::from(self.delete_if(&tenant, id, Some(before)).await?);
        }
        Ok(deleted)
    }

    fn ids(
        &self,
        rows: Result<Vec<(String, String)>, sqlx::Error>,
    ) -> Result<Vec<(TenantId, DocumentId)>, Error> {
        let read = |(tenant, id): (String, String)| {
            Ok((decode(TenantId::new(&tenant))?, decode(id.parse::<DocumentId>())?))
        };
        let rows = rows.map_err(|e| self.read_error(&e))?;
        rows.into_iter().map(read).collect::<Result<_, sqlx::Error>>().map_err(|e| self.read_error(&e))
    }

    /// Deletes a document, unless it was used at `unused_since` or later.
    async fn delete_if(
        &self,
        tenant: &TenantId,
        id: DocumentId,
        unused_since: Option<i64>,
    ) -> Result<bool, Error> {
        self.check_owner()?;
        let doing = format!("delete document {id}");
        let failed = |e| Error::database(self.store.path(), &doing, &e);
        let mut writing = self.store.writer(&doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        sqlx::query("PRAGMA secure_delete = ON").execute(&mut *connection).await.map_err(failed)?;
        let mut tx =
            sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        let deleted = delete_rows(&mut tx, tenant, id, unused_since).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        if !deleted {
            return Ok(false);
        }
        // The log still holds the old pages. If a reader blocks this checkpoint, the next one removes them.
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *connection).await.map_err(failed)?;
        drop(writing);
        self.remove_file(id).await;
        Ok(true)
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
    tenant: &TenantId,
    id: DocumentId,
    unused_since: Option<i64>,
) -> Result<bool, sqlx::Error> {
    let id = id.to_string();
    let sql = "SELECT bytes FROM documents WHERE id = ? AND tenant = ? AND used < coalesce(?, used + 1)";
    let bytes: Option<i64> = sqlx::query_scalar(sql)
        .bind(&id)
        .bind(tenant.as_str())
        .bind(unused_since)
        .fetch_optional(&mut *tx)
        .await?;
    let Some(bytes) = bytes else { return Ok(false) };
    for sql in DERIVED {
        sqlx::query(*sql).bind(&id).execute(&mut *tx).await?;
    }
    tenant_bytes::subtract(&mut *tx, tenant, bytes).await?;
    let done = sqlx::query("DELETE FROM documents WHERE id = ?").bind(&id).execute(tx).await?;
    Ok(done.rows_affected() > 0)
}
