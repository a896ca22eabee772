//! Taking a backup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::super::error::{Error, ErrorCode};
use super::super::{DATABASE_FILE, DOCUMENT_DIR};
use super::database::{DatabaseSnapshot, StoredDocument, seal};
use super::files::{self, FileDigest};
use super::manifest::{BACKUP_FORMAT, BackedUpFile, BackupManifest, MANIFEST, MANIFEST_HASH, document_path};
use super::partial::{PartialBackup, check_target};
use super::watch::{CopyWatch, ProgressSink};
use crate::run::DocumentId;

/// How often a moment is chosen at which every document has its file.
const MAX_SNAPSHOTS: u32 = 20;
/// The pause before the next moment.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(20);

/// How a backup is taken.
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// How long it may take.
    pub timeout: Duration,
    /// Ends it early.
    pub stop: CancellationToken,
    /// Receives how far it is.
    pub progress: ProgressSink,
}

/// Takes a backup of the data directory at `data`, whether or not a process uses it, into the new directory `target`. It
/// is on disk when this returns; until then, nothing is at `target`.
///
/// # Errors
/// `backup.target`, `backup.in_progress`, `backup.document` if a document has no file or a damaged one, `backup.timeout`,
/// `backup.interrupted`, and those of the store: `store.absent`, `store.full`, `store.corrupt`, `store.locked`.
pub async fn take_backup(
    data: &Path,
    target: &Path,
    options: BackupOptions,
) -> Result<BackupManifest, Error> {
    let (data, target) = (data.to_owned(), target.to_owned());
    let BackupOptions { timeout, stop, progress } = options;
    let watch = Arc::new(CopyWatch::new(Some(timeout), stop, progress));
    let taken = tokio::task::spawn_blocking(move || take(&data, &target, &watch)).await;
    taken.unwrap_or_else(|_| Err(Error::new(ErrorCode::Stopped, "the process is ending")))
}

fn take(data: &Path, target: &Path, watch: &Arc<CopyWatch>) -> Result<BackupManifest, Error> {
    check_target(data, target)?;
    let database = data.join(DATABASE_FILE);
    let first = DatabaseSnapshot::open(&database)?;
    let known = first.documents()?;
    let database_bytes = first.bytes()?;
    let bytes = known.iter().fold(database_bytes, |sum, document| sum.saturating_add(document.bytes));
    // The log of the database can be checkpointed while documents are copied.
    drop(first);
    // The copy of the database is read once more, for its hash.
    watch.expect(bytes.saturating_add(database_bytes));
    files::check_room(files::parent(target), bytes)?;
    let partial = PartialBackup::create(target)?;
    let mut documents = DocumentCopies::create(data, partial.path(), watch)?;
    documents.copy(&known)?;
    let snapshot = documents.complete(&database)?;
    let copy = partial.path().join(DATABASE_FILE);
    files::write_new(&copy, &[])?;
    let (schema, taken, counts) = (snapshot.schema, snapshot.taken, snapshot.counts()?);
    snapshot.copy_to(&copy, watch)?;
    // From here on, the log of the database can be used again.
    drop(snapshot);
    seal(&copy, watch)?;
    let manifest = BackupManifest {
        format: BACKUP_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema,
        taken,
        counts,
        files: documents.into_files(&copy)?,
    };
    let (text, hash) = manifest.to_files()?;
    files::write_new(&partial.path().join(MANIFEST), text.as_bytes())?;
    files::write_new(&partial.path().join(MANIFEST_HASH), hash.as_bytes())?;
    watch.check()?;
    partial.publish(target)?;
    Ok(manifest)
}

/// The documents that were copied. The content of a document never changes, so a copy stays right whenever it was made.
struct DocumentCopies<'a> {
    from: PathBuf,
    to: PathBuf,
    watch: &'a CopyWatch,
    copied: BTreeMap<DocumentId, FileDigest>,
}

impl<'a> DocumentCopies<'a> {
    fn create(data: &Path, partial: &Path, watch: &'a CopyWatch) -> Result<Self, Error> {
        let to = partial.join(DOCUMENT_DIR);
        files::create_dir(&to).map_err(|error| files::file_error(&to, "create the directory", &error))?;
        Ok(Self { from: data.join(DOCUMENT_DIR), to, watch, copied: BTreeMap::new() })
    }

    /// Copies those that are not copied yet; returns one whose file is gone, if there is any.
    fn copy(&mut self, documents: &[StoredDocument]) -> Result<Option<DocumentId>, Error> {
        let mut gone = None;
        for StoredDocument { id, bytes, sha256 } in documents {
            if self.copied.contains_key(id) {
                continue;
            }
            let (from, to) = (self.from.join(id.to_string()), self.to.join(id.to_string()));
            let Some(digest) = files::copy(&from, &to, self.watch)? else {
                gone = Some(*id);
                continue;
            };
            if digest.bytes != *bytes || digest.sha256 != *sha256 {
                let what = format!(
                    "{}: the file of a document is not what was stored: delete the document ({id}), and add it again",
                    from.display()
                );
                return Err(Error::new(ErrorCode::BackupDocument, what));
            }
            self.copied.insert(*id, digest);
        }
        Ok(gone)
    }

    /// Chooses the moment of the backup: one at which each document that the database knows is copied. What was deleted
    /// before it is removed.
    fn complete(&mut self, database: &Path) -> Result<DatabaseSnapshot, Error> {
        let mut gone = None;
        for _ in 0..MAX_SNAPSHOTS {
            self.watch.check()?;
            let snapshot = DatabaseSnapshot::open(database)?;
            let documents = snapshot.documents()?;
            gone = self.copy(&documents)?;
            if gone.is_none() {
                self.keep(&documents)?;
                return Ok(snapshot);
            }
            // Deleted after this moment: at the next one, it is not known any more.
            drop(snapshot);
            self.watch.pause(SNAPSHOT_PAUSE);
        }
        let id = gone.map(|id| id.to_string()).unwrap_or_default();
        let what = format!(
            "{}: the file of the document {id} is gone: delete the document, or restore its file",
            self.from.display()
        );
        Err(Error::new(ErrorCode::BackupDocument, what))
    }

    /// Removes the copies of other documents.
    fn keep(&mut self, documents: &[StoredDocument]) -> Result<(), Error> {
        let known: std::collections::BTreeSet<DocumentId> =
            documents.iter().map(|document| document.id).collect();
        let deleted: Vec<DocumentId> = self.copied.keys().filter(|id| !known.contains(id)).copied().collect();
        for id in deleted {
            let path = self.to.join(id.to_string());
            std::fs::remove_file(&path)
                .map_err(|error| files::file_error(&path, "remove the copy of a deleted document", &error))?;
            self.copied.remove(&id);
        }
        files::sync_dir(&self.to)
    }

    /// The entries of the manifest, with that of the database at `copy`.
    fn into_files(self, copy: &Path) -> Result<Vec<BackedUpFile>, Error> {
        let database = files::sync_and_digest(copy, self.watch)?;
        let of = |path: String, digest: FileDigest| BackedUpFile {
            path,
            bytes: digest.bytes,
            sha256: digest.sha256,
        };
        let documents = self.copied.into_iter().map(|(id, digest)| of(document_path(id), digest));
        Ok(std::iter::once(of(DATABASE_FILE.to_owned(), database)).chain(documents).collect())
    }
}
