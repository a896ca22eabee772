//! Documents of users: a row with what is known of each, and its content in a file of its own, named after its id,
//! in the directory `documents` of the data directory.
//!
//! **Invariant:** a row is written after its file and deleted before it, so a crash leaves at most files without a
//! row; [`Documents::sweep`] removes them at the next start. The content of a document never changes.

mod content;
mod erase;
mod forget;
mod outline;
mod sweep;
mod upload;
mod uses;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use jiff::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::error::{Error, ErrorCode};
use super::read::{Page, decode, read_time};
use super::{DOCUMENT_DIR, Store};
use crate::run::{DocumentId, DocumentMedia, NamedDocument, TenantId};

pub(super) use content::blocking;
pub use content::{MAX_READ_BYTES, OpenDocument};
pub(crate) use erase::ConversationHold;
pub use erase::DeletedDocument;
pub(super) use upload::UploadBytes;
pub use upload::{AddedDocument, DocumentLimits, DocumentUpload, NewDocument};
pub(super) use uses::write_uses;

/// The stored facts of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRow {
    /// The id.
    pub id: DocumentId,
    /// The tenant, whose stored bytes it counts in.
    pub tenant: TenantId,
    /// The user whose it is.
    pub user: String,
    /// The name that the user gave it: 1 to 200 visible characters.
    pub name: String,
    /// Its media type.
    pub media: DocumentMedia,
    /// Length of its content, in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its first heading, or else its first line, cut to 120 characters.
    pub heading: Option<String>,
    /// Its language, ISO 639-1, where it could be detected.
    pub language: Option<String>,
    /// When it was uploaded.
    pub created: Timestamp,
    /// When it was last uploaded or named by a request.
    pub used: Timestamp,
}

impl DocumentRow {
    /// Returns what a run stores of it, for its prompts.
    pub fn named(&self) -> NamedDocument {
        NamedDocument {
            id: self.id,
            sha256: self.sha256.clone(),
            name: self.name.clone(),
            media: self.media.name().to_owned(),
            bytes: self.bytes,
            language: self.language.clone(),
            heading: self.heading.clone(),
        }
    }

    /// Returns what a list shows of it: nothing of its text, which is shown only where it was named.
    pub(crate) fn listed(&self) -> NamedDocument {
        NamedDocument { heading: None, ..self.named() }
    }
}

/// Whose documents are meant. Documents of others look as if they did not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentOwner<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
    /// The user; `None` for all users of the tenant, which is only for those who may read everything of it.
    pub user: Option<&'a str>,
}

impl<'a> DocumentOwner<'a> {
    /// One user.
    pub fn user(tenant: &'a TenantId, user: &'a str) -> Self {
        Self { tenant, user: Some(user) }
    }

    /// All users of a tenant.
    pub fn anyone(tenant: &'a TenantId) -> Self {
        Self { tenant, user: None }
    }
}

/// The documents of a store.
#[derive(Debug, Clone)]
pub struct Documents {
    store: Store,
}

impl Store {
    /// The documents.
    pub fn documents(&self) -> Documents {
        Documents { store: self.clone() }
    }
}

/// The columns of a row, in the order of [`DocumentRow`].
const COLUMNS: &str = "id, tenant, user, name, media, bytes, sha256, heading, language, created, used";

/// The documents of tenant `?1` and user `?2`, or of all users if that is NULL, also those whose deletion has begun.
const OF_OWNER: &str = "tenant = ?1 AND (?2 IS NULL OR user = ?2)";

/// Of these, the ones that are there for requests.
const OWNED: &str = "tenant = ?1 AND (?2 IS NULL OR user = ?2) AND deleting = 0";

impl Documents {
    /// A document of the owner.
    ///
    /// # Errors
    /// Database errors.
    pub async fn get(&self, owner: &DocumentOwner<'_>, id: DocumentId) -> Result<Option<DocumentRow>, Error> {
        self.row(owner, id, OWNED).await
    }

    /// A document of the owner, also one whose deletion has begun and has not ended.
    ///
    /// # Errors
    /// Database errors.
    pub async fn get_to_delete(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<DocumentRow>, Error> {
        self.row(owner, id, OF_OWNER).await
    }

    async fn row(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
        among: &str,
    ) -> Result<Option<DocumentRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM documents WHERE id = ?3 AND {among}");
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(owner.tenant.as_str())
            .bind(owner.user)
            .bind(id.to_string())
            .fetch_optional(self.store.pool())
            .await
            .map_err(|e| self.read_error(&e))?;
        row.as_ref().map(document_row).transpose().map_err(|e| self.read_error(&e))
    }

    /// The owner's documents, newest first.
    ///
    /// # Errors
    /// Database errors.
    pub async fn list(
        &self,
        owner: &DocumentOwner<'_>,
        page: &Page<DocumentId>,
    ) -> Result<Vec<DocumentRow>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM documents WHERE {OWNED} AND (?3 IS NULL OR id < ?3) ORDER BY id DESC LIMIT ?4"
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(owner.tenant.as_str())
            .bind(owner.user)
            .bind(page.after.map(|after| after.to_string()))
            .bind(page.limit)
            .fetch_all(self.store.pool())
            .await
            .map_err(|e| self.read_error(&e))?;
        rows.iter().map(document_row).collect::<Result<_, _>>().map_err(|e| self.read_error(&e))
    }

    /// How many documents the owner has.
    ///
    /// # Errors
    /// Database errors.
    pub async fn count(&self, owner: &DocumentOwner<'_>) -> Result<u64, Error> {
        let sql = format!("SELECT count(*) FROM documents WHERE {OWNED}");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(owner.tenant.as_str())
            .bind(owner.user)
            .fetch_one(self.store.pool())
            .await
            .map_err(|e| self.read_error(&e))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Opens a document of the owner for reading; `None` if there is none with this id.
    ///
    /// # Errors
    /// Database errors.
    pub async fn open(
        &self,
        owner: &DocumentOwner<'_>,
        id: DocumentId,
    ) -> Result<Option<OpenDocument>, Error> {
        let row = self.get(owner, id).await?;
        Ok(row.map(|row| OpenDocument::new(self.file(row.id), row)))
    }

    /// Notes that a request names these documents of the owner at `now`: they are kept as long as if they were uploaded
    /// then.
    ///
    /// # Errors
    /// `store.read_only` and database errors.
    pub async fn mark_used(
        &self,
        owner: &DocumentOwner<'_>,
        ids: &[DocumentId],
        now: Timestamp,
    ) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let doing = "note the use of a document";
        let failed = |e| Error::database(self.store.path(), doing, &e);
        let ids: Vec<String> = ids.iter().map(DocumentId::to_string).collect();
        let mut writing = self.store.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let sql = format!(
            "UPDATE documents SET used = max(used, ?3) WHERE {OWNED} AND id IN (SELECT value FROM json_each(?4))"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(owner.tenant.as_str()).bind(owner.user);
        let query = query.bind(nanoseconds(now)).bind(sqlx::types::Json(ids));
        query.execute(connection).await.map(drop).map_err(failed)
    }

    /// The number of documents of all tenants, and their bytes.
    ///
    /// # Errors
    /// Database errors.
    pub async fn totals(&self) -> Result<(u64, u64), Error> {
        let (count, bytes): (i64, i64) =
            sqlx::query_as("SELECT count(*), coalesce(sum(bytes), 0) FROM documents")
                .fetch_one(self.store.pool())
                .await
                .map_err(|e| self.read_error(&e))?;
        Ok((u64::try_from(count).unwrap_or(0), u64::try_from(bytes).unwrap_or(0)))
    }

    /// The directory of the files.
    fn dir(&self) -> PathBuf {
        self.store.path().with_file_name(DOCUMENT_DIR)
    }

    /// The file with a document's content.
    fn file(&self, id: DocumentId) -> PathBuf {
        self.dir().join(id.to_string())
    }

    /// Only the owner of the data directory adds and deletes documents.
    fn check_owner(&self) -> Result<(), Error> {
        if self.store.is_owner() {
            return Ok(());
        }
        let what = format!("{}: only the process that owns it changes documents", self.dir().display());
        Err(Error::new(ErrorCode::ReadOnly, what))
    }

    fn read_error(&self, error: &sqlx::Error) -> Error {
        Error::database(self.store.path(), "read the documents", error)
    }
}

fn document_row(row: &SqliteRow) -> Result<DocumentRow, sqlx::Error> {
    Ok(DocumentRow {
        id: decode(row.try_get::<&str, _>("id")?.parse())?,
        tenant: decode(TenantId::new(row.try_get("tenant")?))?,
        user: row.try_get("user")?,
        name: row.try_get("name")?,
        media: decode(row.try_get::<&str, _>("media")?.parse())?,
        bytes: u64::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0),
        sha256: row.try_get("sha256")?,
        heading: row.try_get("heading")?,
        language: row.try_get("language")?,
        created: read_time(row, "created")?,
        used: read_time(row, "used")?,
    })
}

fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}
