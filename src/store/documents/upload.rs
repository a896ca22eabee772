//! Adding documents: written to a temporary file piece by piece, checked and hashed on the way.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, SqliteConnection};
use uuid::Uuid;

use super::super::dir::private_no_follow;
use super::super::error::{Error, ErrorCode};
use super::super::tenant_bytes;
use super::content::blocking;
use super::outline::{HEAD_BYTES, Outline};
use super::{COLUMNS, DocumentRow, Documents, document_row, nanoseconds};
use crate::invisible::is_invisible;
use crate::mutex::lock;
use crate::run::{DocumentId, DocumentMedia, TenantId};

/// How much is written at once, in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The ending of temporary files.
pub(super) const PART: &str = "part";

/// A document to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    /// The tenant.
    pub tenant: TenantId,
    /// The user whose it will be.
    pub user: String,
    /// Its name: 1 to 200 visible characters.
    pub name: String,
    /// Its media type.
    pub media: DocumentMedia,
}

/// How large documents may be, and how many a user may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// The largest document, in bytes.
    pub max_bytes: u64,
    /// Maximum number of documents of one user.
    pub max_per_user: u32,
}

/// A document that was added, or that was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedDocument {
    /// The document.
    pub document: DocumentRow,
    /// Whether it is new. The same content of the same user is one document, with its first name.
    pub is_new: bool,
}

/// A document that is being added. Dropping it removes what was written.
#[derive(Debug)]
pub struct DocumentUpload {
    documents: Documents,
    new: NewDocument,
    limits: DocumentLimits,
    /// What the tenant has stored, as last read.
    stored: u64,
    /// The bytes so far, which count among the tenant's uploads in progress.
    held: HeldBytes,
    /// What is not written yet; after a write, at most the beginning of a character.
    buffer: Vec<u8>,
    /// Absent after an error.
    file: Option<PartFile>,
}

impl Documents {
    /// Begins to add a document.
    ///
    /// # Errors
    /// `document.name`, `store.full`, `store.quota` if the tenant has no room left, `store.read_only`, `store.io`.
    pub async fn begin(&self, new: NewDocument, limits: DocumentLimits) -> Result<DocumentUpload, Error> {
        self.check_owner()?;
        check_name(&new.name)?;
        self.store.check_room()?;
        let stored = self.store.tenant_bytes(&new.tenant).await?;
        if let Some(max) = self.store.max_tenant_bytes().filter(|max| stored >= *max) {
            return Err(tenant_bytes::quota_error(&new.tenant, stored, max));
        }
        let held = HeldBytes { uploads: self.store.uploads(), tenant: new.tenant.clone(), bytes: 0 };
        let (dir, id) = (self.dir(), DocumentId(Uuid::now_v7()));
        let file = blocking(move || PartFile::create(&dir, id)).await?;
        let (documents, buffer) = (self.clone(), Vec::new());
        Ok(DocumentUpload { documents, new, limits, stored, held, buffer, file: Some(file) })
    }
}

impl DocumentUpload {
    /// Adds the next bytes. Writes them once enough have come.
    ///
    /// # Errors
    /// `document.too_large`, `document.encoding` (not UTF-8, or with a NUL), `store.quota`, `store.full`, `store.io`.
    /// After an error, every further call fails.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let in_progress = self.held.add(bytes.len() as u64);
        self.check_size(in_progress)?;
        for piece in bytes.chunks(PIECE_BYTES) {
            self.buffer.extend_from_slice(piece);
            if self.buffer.len() >= PIECE_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Stores the document. It is on disk when this returns. Once begun, it is completed even if the caller goes away.
    ///
    /// # Errors
    /// `document.empty`, `document.too_many`, and those of [`DocumentUpload::write`].
    pub async fn finish(mut self) -> Result<AddedDocument, Error> {
        self.flush().await?;
        if !self.buffer.is_empty() {
            let at = self.held.bytes.saturating_sub(self.buffer.len() as u64);
            return Err(not_text(at, "it ends within a character"));
        }
        let file = self.file.take().ok_or_else(upload_failed)?;
        let (documents, new, limits) = (self.documents.clone(), self.new.clone(), self.limits);
        let storing = tokio::spawn(async move { documents.store_file(file, new, limits).await });
        storing.await.unwrap_or_else(|_| Err(upload_failed()))
    }

    /// Checks the size so far, with `in_progress` bytes in all uploads of the tenant.
    fn check_size(&mut self, in_progress: u64) -> Result<(), Error> {
        let max = self.limits.max_bytes;
        let error = if self.held.bytes > max {
            too_large(max)
        } else {
            let all = self.stored.saturating_add(in_progress);
            let Some(max) = self.documents.store.max_tenant_bytes().filter(|max| all > *max) else {
                return Ok(());
            };
            tenant_bytes::quota_error(&self.new.tenant, all.saturating_sub(self.held.bytes), max)
        };
        self.file = None;
        Err(error)
    }

    async fn flush(&mut self) -> Result<(), Error> {
        self.documents.store.check_room()?;
        if self.documents.store.max_tenant_bytes().is_some() {
            self.stored = self.documents.store.tenant_bytes(&self.new.tenant).await?;
        }
        let mut file = self.file.take().ok_or_else(upload_failed)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = blocking(move || {
            file.write(&mut buffer)?;
            Ok((file, buffer))
        });
        let (file, buffer) = written.await?;
        (self.file, self.buffer) = (Some(file), buffer);
        Ok(())
    }
}

/// The bytes of documents that are being added, by tenant: they are on the disk, and in no quota yet.
#[derive(Debug, Default)]
pub(in crate::store) struct UploadBytes(Mutex<BTreeMap<TenantId, u64>>);

impl UploadBytes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TenantId, u64>> {
        lock(&self.0)
    }
}

/// The bytes of one upload, which count until this is dropped.
#[derive(Debug)]
struct HeldBytes {
    uploads: Arc<UploadBytes>,
    tenant: TenantId,
    bytes: u64,
}

impl HeldBytes {
    /// Counts more bytes. Returns those of all uploads of the tenant.
    fn add(&mut self, more: u64) -> u64 {
        self.bytes = self.bytes.saturating_add(more);
        let mut uploads = self.uploads.lock();
        let all = uploads.entry(self.tenant.clone()).or_default();
        *all = all.saturating_add(more);
        *all
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut uploads = self.uploads.lock();
        if let Some(all) = uploads.get_mut(&self.tenant) {
            *all = all.saturating_sub(self.bytes);
            if *all == 0 {
                uploads.remove(&self.tenant);
            }
        }
    }
}

/// The error for a document of more than `max` bytes.
pub(super) fn too_large(max: u64) -> Error {
    let what = format!("the document has more than {max} bytes (documents.max_bytes): split it");
    Error::new(ErrorCode::DocumentTooLarge, what)
}

impl DocumentLimits {
    /// Checks the length that a client announces, before anything is sent.
    ///
    /// # Errors
    /// `document.too_large`.
    pub fn check_length(&self, bytes: u64) -> Result<(), Error> {
        if bytes > self.max_bytes { Err(too_large(self.max_bytes)) } else { Ok(()) }
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    if fits && !name.trim().is_empty() && !name.chars().any(is_invisible) {
        return Ok(());
    }
    let what = format!("the name of a document has 1 to {MAX_NAME_CHARS} visible characters");
    Err(Error::new(ErrorCode::DocumentName, what))
}

fn upload_failed() -> Error {
    Error::new(ErrorCode::Stopped, "the document was not stored: an earlier part of it failed")
}

fn not_text(at: u64, why: &str) -> Error {
    let what =
        format!("the document is not UTF-8 text, from byte {at} on: {why}; convert it and send it again");
    Error::new(ErrorCode::DocumentEncoding, what)
}

/// A temporary file with the beginning of a document. Dropping it removes the file.
#[derive(Debug)]
struct PartFile {
    id: DocumentId,
    file: File,
    /// The file at present: the temporary one, or the final one once it is renamed.
    path: RemovedPath,
    hash: Sha256,
    bytes: u64,
    /// Whether it says anything: a text of blanks and marks alone does not.
    has_word: bool,
    head: Vec<u8>,
}

impl PartFile {
    fn create(dir: &Path, id: DocumentId) -> Result<Self, Error> {
        create_private_dir(dir)?;
        let path = dir.join(format!("{id}.{PART}"));
        let mut options = File::options();
        options.write(true).create_new(true);
        let file = private_no_follow(&mut options)
            .open(&path)
            .map_err(|error| Error::io(&path, "create the file of a document", &error))?;
        let path = RemovedPath(Some(path));
        Ok(Self { id, file, path, hash: Sha256::new(), bytes: 0, has_word: false, head: Vec::new() })
    }

    /// Writes all whole characters of the buffer, and leaves the rest in it.
    fn write(&mut self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let whole = match std::str::from_utf8(buffer) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => {
                let at = self.bytes + error.valid_up_to() as u64;
                return Err(not_text(at, "these bytes are not a character"));
            }
        };
        let text = buffer.get(..whole).unwrap_or_default();
        if let Some(at) = text.iter().position(|byte| *byte == 0) {
            return Err(not_text(self.bytes + at as u64, "there is a NUL"));
        }
        let says = |text: &str| text.contains(char::is_alphanumeric);
        self.has_word = self.has_word || std::str::from_utf8(text).is_ok_and(says);
        self.file.write_all(text).map_err(|error| self.failed(&error))?;
        self.hash.update(text);
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(text.len());
        self.head.extend_from_slice(text.get(..missing).unwrap_or_default());
        self.bytes += whole as u64;
        buffer.drain(..whole);
        Ok(())
    }

    /// What the beginning says, without a character that was cut.
    fn outline(&self, media: DocumentMedia) -> Outline {
        let whole = self.head.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
        Outline::of(media, whole)
    }

    /// Gives the file its final name, on disk.
    fn keep_as(&mut self, path: &Path) -> Result<(), Error> {
        self.file.sync_all().map_err(|error| self.failed(&error))?;
        let from = self.path.0.as_deref().unwrap_or(path);
        std::fs::rename(from, path).map_err(|error| self.failed(&error))?;
        self.path = RemovedPath(Some(path.to_owned()));
        sync_dir(path).map_err(|error| self.failed(&error))
    }

    /// Takes the place of a file with the same content that was lost.
    fn replace(&mut self, path: &Path) -> Result<(), Error> {
        self.keep_as(path)?;
        self.path.0 = None;
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let path = self.path.0.as_deref().unwrap_or(Path::new(""));
        Error::io(path, "write a document", error)
    }
}

/// A file that is removed when this is dropped.
#[derive(Debug)]
struct RemovedPath(Option<PathBuf>);

impl Drop for RemovedPath {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // What is left is removed at the next start; a renamed file is not there any more.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn create_private_dir(dir: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let created = match builder.create(dir) {
        Ok(()) => sync_dir(dir),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !dir.is_symlink() => Ok(()),
        Err(error) => Err(error),
    };
    created.map_err(|error| Error::io(dir, "create the directory of documents", &error))
}

/// Writes the directory entry of a path to disk.
#[cfg(unix)]
fn sync_dir(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(not(unix))]
fn sync_dir(_: &Path) -> std::io::Result<()> {
    Ok(())
}

impl Documents {
    /// Gives the file its name and writes the row, or finds that the user has the same content already.
    async fn store_file(
        &self,
        mut file: PartFile,
        new: NewDocument,
        limits: DocumentLimits,
    ) -> Result<AddedDocument, Error> {
        if !file.has_word {
            let what = "the document is empty, without a word or a number: send its text as the body";
            return Err(Error::new(ErrorCode::DocumentEmpty, what));
        }
        let (now, outline) = (Timestamp::now(), file.outline(new.media));
        let document = DocumentRow {
            id: file.id,
            tenant: new.tenant,
            user: new.user,
            name: new.name,
            media: new.media,
            bytes: file.bytes,
            sha256: HEXLOWER.encode(&file.hash.clone().finalize()),
            heading: outline.heading,
            language: outline.language.map(str::to_owned),
            created: now,
            used: now,
        };
        let path = self.file(document.id);
        let mut file = blocking(move || {
            file.keep_as(&path)?;
            Ok(file)
        })
        .await?;
        match self.write_row(document, limits).await {
            Ok(added) if added.is_new => {
                file.path.0 = None;
                Ok(added)
            }
            Ok(added) => {
                let path = self.file(added.document.id);
                blocking(move || if path.exists() { Ok(()) } else { file.replace(&path) }).await?;
                Ok(added)
            }
            Err(unstored) => {
                if unstored.is_unclear {
                    file.path.0 = None;
                }
                Err(unstored.error)
            }
        }
    }

    async fn write_row(
        &self,
        document: DocumentRow,
        limits: DocumentLimits,
    ) -> Result<AddedDocument, UnstoredRow> {
        let doing = "add a document";
        let failed = |e| Error::database(self.store.path(), doing, &e);
        let mut writing = self.store.writer(doing).await?;
        let connection = writing.connection().await.map_err(failed)?;
        let mut tx = sqlx::Connection::begin_with(connection, "BEGIN IMMEDIATE").await.map_err(failed)?;
        if let Some(document) = same_content(&mut tx, &document).await.map_err(failed)? {
            tx.commit().await.map_err(failed)?;
            return Ok(AddedDocument { document, is_new: false });
        }
        let held = count_of_user(&mut tx, &document).await.map_err(failed)?;
        if held >= i64::from(limits.max_per_user) {
            return Err(too_many(held, limits.max_per_user).into());
        }
        let stored = tenant_bytes::stored(&mut tx, &document.tenant).await.map_err(failed)?;
        if let Some(max) = self.store.max_tenant_bytes()
            && stored.saturating_add(document.bytes) > max
        {
            return Err(tenant_bytes::quota_error(&document.tenant, stored, max).into());
        }
        tenant_bytes::add(&mut tx, &document.tenant, document.bytes).await.map_err(failed)?;
        insert(&mut tx, &document).await.map_err(failed)?;
        tx.commit().await.map_err(|error| UnstoredRow { error: failed(error), is_unclear: true })?;
        Ok(AddedDocument { document, is_new: true })
    }
}

/// Why a row was not written.
struct UnstoredRow {
    error: Error,
    /// Whether it may have been written nevertheless: then its file is kept, and the next start decides.
    is_unclear: bool,
}

impl From<Error> for UnstoredRow {
    fn from(error: Error) -> Self {
        Self { error, is_unclear: false }
    }
}

/// The document of the same user with the same content, which was used just now.
async fn same_content(
    tx: &mut SqliteConnection,
    document: &DocumentRow,
) -> Result<Option<DocumentRow>, sqlx::Error> {
    let sql = format!(
        "UPDATE documents SET used = max(used, ?) WHERE tenant = ? AND user = ? AND sha256 = ? \
         AND deleting = 0 RETURNING {COLUMNS}"
    );
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(nanoseconds(document.used))
        .bind(document.tenant.as_str())
        .bind(&document.user)
        .bind(&document.sha256)
        .fetch_optional(tx)
        .await?;
    row.as_ref().map(document_row).transpose()
}

/// How many documents the user of this one has.
async fn count_of_user(tx: &mut SqliteConnection, document: &DocumentRow) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM documents WHERE tenant = ? AND user = ?")
        .bind(document.tenant.as_str())
        .bind(&document.user)
        .fetch_one(tx)
        .await
}

fn too_many(held: i64, max: u32) -> Error {
    let what = format!(
        "this user has {held} documents, of {max} allowed (documents.max_per_user): delete some \
         (DELETE /api/documents/ID)"
    );
    Error::new(ErrorCode::TooManyDocuments, what)
}

async fn insert(tx: &mut SqliteConnection, document: &DocumentRow) -> Result<(), sqlx::Error> {
    let sql = format!("INSERT INTO documents ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    sqlx::query(AssertSqlSafe(sql))
        .bind(document.id.to_string())
        .bind(document.tenant.as_str())
        .bind(&document.user)
        .bind(&document.name)
        .bind(document.media.name())
        .bind(i64::try_from(document.bytes).unwrap_or(i64::MAX))
        .bind(&document.sha256)
        .bind(&document.heading)
        .bind(&document.language)
        .bind(nanoseconds(document.created))
        .bind(nanoseconds(document.used))
        .execute(tx)
        .await
        .map(drop)
}
