//! The store: one SQLite file in the data directory that holds the journal, the lists projected from it,
//! and the tables of the scenes; and the documents, whose content is in files beside it.
//!
//! **Invariant:** the journal is the source of truth. The lists of runs, plans, approvals and sessions
//! change only in the transaction that appends the events they are projected from.

mod approvals;
mod audit;
mod audit_report;
mod backup;
mod breakdown;
mod claims;
mod dir;
mod documents;
mod erase;
mod erased_usage;
mod error;
mod heads;
mod in_place;
mod inspect;
mod key_holds;
mod keyring;
mod keys;
mod last_results;
mod learned;
mod missing_nodes;
mod notifications;
mod options;
mod owners;
mod permissions;
mod plans;
mod questions;
mod read;
mod recent_requests;
mod record;
mod recovery;
mod room;
mod scenes;
mod schema;
mod switches;
mod tenant_bytes;
#[cfg(test)]
pub(crate) mod tests;
mod unreadable_runs;
mod usage;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::watch;

pub use approvals::{About, ApprovalFilter, ApprovalRow, ApprovalState};
pub use audit_report::{AuditFailure, AuditReport, AuditRow};
pub use backup::{
    BACKUP_FORMAT, BackedUpFile, BackupCounts, BackupManifest, BackupOptions, BackupProgress,
    ChangeSinceKind, ChangedSince, ChangesSince, LaterRun, ProgressSink, RestoreOptions, RestoreReport,
    RestoredRun, SpentSince, UnknownSince, restore_backup, take_backup, verify_backup,
};
pub use breakdown::UsageRow;
pub use claims::ClaimedRequest;
pub use dir::DataDir;
pub(crate) use documents::ConversationHold;
use documents::UploadBytes;
pub use documents::{
    AddedDocument, DeletedDocument, DocumentLimits, DocumentOwner, DocumentRow, DocumentUpload, Documents,
    MAX_READ_BYTES, NewDocument, OpenDocument,
};
pub use error::{Error, ErrorCode};
use in_place::FileIdentity;
pub use inspect::{DataDirContents, DataDirReport, inspect};
pub use key_holds::KeyHold;
pub use keyring::KeyRing;
pub use keys::{ApiKey, ApiKeySecret, KeyRules};
pub use learned::{LearnedCount, LearnedRow};
pub use missing_nodes::MissingNodeRow;
pub use notifications::{PendingNotification, WaitingCounts};
pub use options::Options;
pub use owners::{OwnerScope, RunOwner};
pub use permissions::exposed_files;
pub use plans::{PlanFilter, PlanRow};
pub use read::{MAX_PAGE, Page, RunFilter, RunRow, SessionRow};
pub use recent_requests::RecentRequest;
pub(crate) use record::JournalRow;
pub use record::{Record, StreamId};
pub use room::DiskUsage;
pub use switches::{SwitchKind, SwitchRow, Switchboard, SwitchedOff};
use unreadable_runs::UnreadableRuns;
pub(crate) use write::AppendOutcome;
use writer::{JournalWriter, WriterGuard};

use crate::mutex::lock;

/// Name of the database file in the data directory.
pub const DATABASE_FILE: &str = "proscenium.db";

/// Name of the directory in the data directory that holds the content of documents.
pub const DOCUMENT_DIR: &str = "documents";

/// Connections for the scenes' data and for reads. Changes of the database itself have connections of their own
/// ([`JournalWriter`]), which a scene's long transaction cannot occupy.
const POOL_SIZE: u32 = 4;

/// The SQLite VFS that keeps the write-ahead log's index in memory instead of in a file, which a full disk
/// has no room for. Other processes cannot read the database meanwhile.
const EXCLUSIVE_VFS: &str = "unix-excl";

/// How often the database is opened exclusively until it works, and the pause in between.
const EXCLUSIVE_TRIES: u32 = 20;
const EXCLUSIVE_PAUSE: Duration = Duration::from_millis(25);

/// Pages of 4 KiB in the log from which it is checkpointed.
const CHECKPOINT_PAGES: &str = "4000";

/// What a statement deletes or replaces is overwritten with zeros, on every connection that writes and from its start: an
/// erasure finds the rows that there are, and not the text that an earlier statement left in a page.
///
/// Measured, it costs an insert and the update of a short row nothing: the page is written anyway. A commit that replaces a
/// row of several pages writes about a tenth more, since it also overwrites the pages that it frees. `FAST` would save
/// these, and leave their text in the file.
const SECURE_DELETE: (&str, &str) = ("secure_delete", "ON");

/// How long a statement waits for another connection's write, and a caller waits for a free connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An open store. Clones share it. The lock on the data directory is released by [`Store::close`], or
/// when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

// Drop order matters: connections first, the lock last.
#[derive(Debug)]
struct StoreInner {
    pool: SqlitePool,
    writer: Option<JournalWriter>,
    path: PathBuf,
    dir: Mutex<Option<DataDir>>,
    unreadable: UnreadableRuns,
    /// The bytes of documents that are being added.
    uploads: Arc<UploadBytes>,
    /// How often a key was revoked, or got another role, through this store.
    key_changes: watch::Sender<u64>,
    /// The quota of a tenant's stored bytes; `u64::MAX` for none.
    max_tenant_bytes: AtomicU64,
    /// Until when the disk is known to have room.
    roomy_until: Mutex<Option<Instant>>,
    /// The database as this process opened it; `None` if it does not own the data directory.
    opened: Option<FileIdentity>,
}

impl Store {
    /// Opens the database in a directory that this process owns. Creates it on first use, migrates an older
    /// schema, and removes what interrupted uploads of documents left.
    ///
    /// # Errors
    /// `store.newer_schema`, `store.foreign`, `store.corrupt`, `store.read_only`, `store.full`,
    /// `store.io`, `store.locked`.
    pub async fn open(dir: DataDir) -> Result<Self, Error> {
        let store = Self::open_with(dir, schema::MIGRATIONS).await?;
        store.documents().sweep().await;
        Ok(store)
    }

    async fn open_with(dir: DataDir, migrations: &[&str]) -> Result<Self, Error> {
        let path = dir.path().join(DATABASE_FILE);
        dir.create_private_file(DATABASE_FILE)?;
        let (options, writer) = match Self::connect(&path, None, migrations).await {
            Err(error) if error.code() == ErrorCode::Full.as_str() => {
                tracing::error!(code = error.code(), %error, "disk full: the database is open for this process only until a restart with free space");
                Self::connect_exclusively(&path, migrations).await?
            }
            connected => connected?,
        };
        let pool = pool(POOL_SIZE).connect_lazy_with(options);
        Ok(Self::from_parts(pool, Some(writer), path, Some(dir)))
    }

    fn from_parts(
        pool: SqlitePool,
        writer: Option<JournalWriter>,
        path: PathBuf,
        dir: Option<DataDir>,
    ) -> Self {
        let opened = dir.as_ref().and_then(|_| FileIdentity::at(&path));
        let (unreadable, key_changes) = (UnreadableRuns::default(), watch::Sender::default());
        let (dir, max_tenant_bytes) = (Mutex::new(dir), AtomicU64::new(u64::MAX));
        let (uploads, roomy_until) = (Arc::default(), Mutex::default());
        let inner = StoreInner {
            pool,
            writer,
            path,
            dir,
            unreadable,
            uploads,
            key_changes,
            max_tenant_bytes,
            roomy_until,
            opened,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Connects for this process only. The connection that failed before is closed by its own thread; until
    /// then a new one would share the index of the log that there is no room for.
    async fn connect_exclusively(
        path: &Path,
        migrations: &[&str],
    ) -> Result<(SqliteConnectOptions, JournalWriter), Error> {
        let mut tries = 1;
        loop {
            match Self::connect(path, Some(EXCLUSIVE_VFS), migrations).await {
                Err(error) if error.code() == ErrorCode::Full.as_str() && tries < EXCLUSIVE_TRIES => {
                    tries += 1;
                    tokio::time::sleep(EXCLUSIVE_PAUSE).await;
                }
                connected => return connected,
            }
        }
    }

    /// Connects to the database at `path`, creating or migrating it if needed.
    async fn connect(
        path: &Path,
        vfs: Option<&'static str>,
        migrations: &[&str],
    ) -> Result<(SqliteConnectOptions, JournalWriter), Error> {
        let mut options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // Most commits change the same pages: the rarer a checkpoint, the fewer copies of them it writes.
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .pragma(SECURE_DELETE.0, SECURE_DELETE.1)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        if let Some(vfs) = vfs {
            options = options.vfs(vfs);
        }
        let writing = options.clone().thread_name(|_| "journal-db".to_owned());
        let writer = JournalWriter::new(writing, path.to_owned(), vfs);
        let failed = |e| Error::database(path, "open the database", &e);
        let mut writing = writer.lock().await.map_err(failed)?;
        schema::migrate(writing.connection().await.map_err(failed)?, path, migrations).await?;
        drop(writing);
        Ok((options, writer))
    }

    /// Opens the database under `path` read-only, whether or not another process owns it. Creates nothing and
    /// takes no lock.
    ///
    /// # Errors
    /// `store.absent` when nothing is stored there yet, `store.older_schema` when the file must be migrated
    /// first, and those of [`Store::open`].
    pub async fn open_read_only(path: &Path) -> Result<Self, Error> {
        let path = path.join(DATABASE_FILE);
        let options = SqliteConnectOptions::new().filename(&path).read_only(true).busy_timeout(BUSY_TIMEOUT);
        let pool = pool(POOL_SIZE).connect_lazy_with(options);
        let remedy = "run a command that writes, such as `proscenium chat`, to migrate it";
        check_schema(&path, &pool, remedy).await?;
        Ok(Self::from_parts(pool, None, path, None))
    }

    /// Opens the database under `path` for a short write while another process owns the directory, for
    /// example to create a key while a server is running. SQLite locks the file only during the write. Only
    /// the owner may write to the journal.
    ///
    /// # Errors
    /// `store.absent` when nothing is stored there yet, `store.older_schema` when the owner is an older
    /// version of this program, and those of [`Store::open`].
    pub async fn open_shared(path: &Path) -> Result<Self, Error> {
        let path = path.join(DATABASE_FILE);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .synchronous(SqliteSynchronous::Full)
            .pragma(SECURE_DELETE.0, SECURE_DELETE.1)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = pool(1).connect_lazy_with(options.clone());
        let writer = Some(JournalWriter::new(options, path.clone(), None));
        let remedy = "stop the process that uses it and try again, which migrates it";
        check_schema(&path, &pool, remedy).await?;
        Ok(Self::from_parts(pool, writer, path, None))
    }

    /// The pool for scene data and reads. Callers wait up to ten seconds for a free connection, and
    /// statements as long for another connection's write. A transaction that reads before it writes must
    /// begin with `BEGIN IMMEDIATE`.
    pub fn pool(&self) -> &SqlitePool {
        &self.inner.pool
    }

    /// The bytes of documents that are being added.
    fn uploads(&self) -> Arc<UploadBytes> {
        self.inner.uploads.clone()
    }

    /// Whether this process owns the data directory through this store.
    fn is_owner(&self) -> bool {
        lock(&self.inner.dir).is_some()
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The write-ahead log beside it.
    fn wal_path(&self) -> PathBuf {
        let mut path = self.path().as_os_str().to_owned();
        path.push("-wal");
        path.into()
    }

    /// Closes all connections, which checkpoints the log into the database file, and releases the data
    /// directory even if clones remain. Stop the journal first. Later calls fail with `store.stopped`.
    pub async fn close(&self) {
        self.inner.pool.close().await;
        if let Some(writer) = &self.inner.writer {
            writer.close().await;
        }
        // All connections are closed, so nothing can be written any more.
        drop(lock(&self.inner.dir).take());
    }

    /// Exclusive access to the connections that write, for changes outside the journal.
    async fn writer(&self, doing: &str) -> Result<WriterGuard<'_>, Error> {
        self.journal_writer()?.lock().await.map_err(|e| Error::database(self.path(), doing, &e))
    }

    fn journal_writer(&self) -> Result<&JournalWriter, Error> {
        self.inner.writer.as_ref().ok_or_else(|| {
            Error::new(
                ErrorCode::ReadOnly,
                format!("{}: the database was opened read-only", self.path().display()),
            )
        })
    }
}

/// Checks that the database exists and has this program's schema version. Changes nothing.
async fn check_schema(path: &Path, pool: &SqlitePool, remedy: &str) -> Result<(), Error> {
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::new(
                ErrorCode::Absent,
                format!("{}: nothing is stored here yet", path.display()),
            ));
        }
        Err(e) => return Err(Error::io(path, "open the database", &e)),
    }
    let failed = |e| Error::database(path, "open the database", &e);
    let mut connection = pool.acquire().await.map_err(failed)?;
    let version = schema::version(&mut connection, path, schema::MIGRATIONS).await?;
    let needed = schema::MIGRATIONS.len();
    if version < needed {
        let message = format!(
            "{}: the database has schema version {version}, this program needs {needed}: {remedy}",
            path.display()
        );
        return Err(Error::new(ErrorCode::OlderSchema, message));
    }
    Ok(())
}

fn pool(connections: u32) -> SqlitePoolOptions {
    // Connections live as long as the store: a SQLite connection cannot go stale.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(BUSY_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}
