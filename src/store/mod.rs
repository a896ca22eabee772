//! The store: one SQLite file in the data directory that holds the journal, the lists projected from it,
//! and the tables of the scenes.
//!
//! **Invariant:** the journal is the source of truth. The lists of runs, plans, approvals and sessions
//! change only in the transaction that appends the events they are projected from.

mod approvals;
mod asked;
mod audit;
mod audit_read;
mod breakdown;
mod claims;
mod dir;
mod erase;
mod erased;
mod error;
mod heads;
mod held;
mod keyring;
mod keys;
mod look;
mod options;
mod owners;
mod plans;
mod private;
mod questions;
mod read;
mod record;
mod recovery;
mod scenes;
mod schema;
#[cfg(test)]
pub(crate) mod tests;
mod told;
mod unreadable;
mod usage;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::watch;

pub use approvals::{About, ApprovalFilter, ApprovalRow, ApprovalState};
pub use asked::Asked;
pub use audit_read::{Audit, AuditRow, Broken};
pub use breakdown::UsageRow;
pub use claims::Claimed;
pub use dir::DataDir;
pub use error::{Code, Error};
pub use held::Held;
pub use keyring::KeyRing;
pub use keys::{ApiKey, KeyRules, Secret};
pub use look::{Holds, Standing, look};
pub use options::Options;
pub use owners::{Owner, Scope};
pub use plans::{PlanFilter, PlanRow};
pub use private::exposed;
pub use read::{MAX_PAGE, Page, RunFilter, RunRow, SessionRow};
pub(crate) use record::Row;
pub use record::{Record, Stream};
pub use told::{Untold, Waiting};
use unreadable::Unreadable;
pub(crate) use write::Outcome;
use writer::{Writer, Writing};

/// Name of the database file in the data directory.
pub const FILE: &str = "proscenium.db";

/// Connections for the scenes' data and for reads. The journal writer has its own connection, which a
/// scene's long transaction cannot occupy.
const READERS: u32 = 4;

/// The SQLite VFS that keeps the write-ahead log's index in memory instead of in a file, which a full disk
/// has no room for. Other processes cannot read the database meanwhile.
const ALONE: &str = "unix-excl";

/// How long a statement waits for another connection's write, and a caller waits for a free connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open store. Clones share it. The lock on the data directory is released by [`Store::close`], or
/// when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

// Drop order matters: connections first, the lock last.
#[derive(Debug)]
struct Inner {
    pool: SqlitePool,
    writer: Option<Writer>,
    path: PathBuf,
    dir: Mutex<Option<DataDir>>,
    unreadable: Unreadable,
    /// Number of keys revoked through this store.
    key_changes: watch::Sender<u64>,
}

impl Store {
    /// Opens the database in a directory that this process owns. Creates it on first use and migrates an
    /// older schema.
    ///
    /// # Errors
    /// `store.newer_schema`, `store.foreign`, `store.corrupt`, `store.read_only`, `store.full`,
    /// `store.io`, `store.locked`.
    pub async fn open(dir: DataDir) -> Result<Self, Error> {
        Self::open_with(dir, schema::MIGRATIONS).await
    }

    async fn open_with(dir: DataDir, migrations: &[&str]) -> Result<Self, Error> {
        let path = dir.path().join(FILE);
        dir.make_private(FILE)?;
        let (options, writer) = match Self::connected(&path, None, migrations).await {
            Err(error) if error.code() == Code::Full.as_str() => {
                tracing::error!(code = error.code(), %error, "disk full: the database is open for this process only until a restart with free space");
                Self::connected(&path, Some(ALONE), migrations).await?
            }
            connected => connected?,
        };
        let pool = pool(READERS).connect_lazy_with(options);
        Ok(Self::over(pool, Some(writer), path, Some(dir)))
    }

    fn over(pool: SqlitePool, writer: Option<Writer>, path: PathBuf, dir: Option<DataDir>) -> Self {
        let (unreadable, key_changes) = (Unreadable::default(), watch::Sender::default());
        let dir = Mutex::new(dir);
        Self { inner: Arc::new(Inner { pool, writer, path, dir, unreadable, key_changes }) }
    }

    /// Connects to the database at `path`, creating or migrating it if needed.
    async fn connected(
        path: &Path,
        vfs: Option<&'static str>,
        migrations: &[&str],
    ) -> Result<(SqliteConnectOptions, Writer), Error> {
        let mut options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(PATIENCE);
        if let Some(vfs) = vfs {
            options = options.vfs(vfs);
        }
        let writer = Writer::new(options.clone().thread_name(|_| "journal-db".to_owned()));
        let failed = |e| Error::database(path, "open the database", &e);
        let mut writing = writer.alone().await.map_err(failed)?;
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
    pub async fn open_reading(path: &Path) -> Result<Self, Error> {
        let path = path.join(FILE);
        let options = SqliteConnectOptions::new().filename(&path).read_only(true).busy_timeout(PATIENCE);
        let pool = pool(READERS).connect_lazy_with(options);
        let remedy = "run a command that writes, such as `proscenium chat`, to migrate it";
        up_to_date(&path, &pool, remedy).await?;
        Ok(Self::over(pool, None, path, None))
    }

    /// Opens the database under `path` for a short write while another process owns the directory, for
    /// example to create a key while a server is running. SQLite locks the file only during the write. Only
    /// the owner may write to the journal.
    ///
    /// # Errors
    /// `store.absent` when nothing is stored there yet, `store.older_schema` when the owner is an older
    /// version of this program, and those of [`Store::open`].
    pub async fn open_beside(path: &Path) -> Result<Self, Error> {
        let path = path.join(FILE);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(PATIENCE);
        let pool = pool(1).connect_lazy_with(options.clone());
        let remedy = "stop the process that uses it and try again, which migrates it";
        up_to_date(&path, &pool, remedy).await?;
        let writer = Some(Writer::new(options));
        Ok(Self::over(pool, writer, path, None))
    }

    /// The pool for scene data and reads. Callers wait up to ten seconds for a free connection, and
    /// statements as long for another connection's write. A transaction that reads before it writes must
    /// begin with `BEGIN IMMEDIATE`.
    pub fn pool(&self) -> &SqlitePool {
        &self.inner.pool
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Closes all connections, which checkpoints the log into the database file, and releases the data
    /// directory even if clones remain. Stop the journal first. Later calls fail with `store.stopped`.
    pub async fn close(&self) {
        self.inner.pool.close().await;
        if let Some(writer) = &self.inner.writer {
            writer.close().await;
        }
        // All connections are closed, so nothing can be written any more.
        drop(self.inner.dir.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The writing connection, for changes outside the journal. The journal rereads the stream heads
    /// afterwards.
    async fn writer(&self, doing: &str) -> Result<Writing<'_>, Error> {
        self.journal_writer()?.alone().await.map_err(|e| Error::database(self.path(), doing, &e))
    }

    /// The only connection that writes to the journal.
    fn journal_writer(&self) -> Result<&Writer, Error> {
        self.inner.writer.as_ref().ok_or_else(|| {
            Error::new(
                Code::ReadOnly,
                format!("{}: the database was opened read-only", self.path().display()),
            )
        })
    }
}

/// Checks that the database exists and has this program's schema version. Changes nothing.
async fn up_to_date(path: &Path, pool: &SqlitePool, remedy: &str) -> Result<(), Error> {
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::new(Code::Absent, format!("{}: nothing is stored here yet", path.display())));
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
        return Err(Error::new(Code::OlderSchema, message));
    }
    Ok(())
}

fn pool(connections: u32) -> SqlitePoolOptions {
    // Connections live as long as the store: a SQLite connection cannot go stale.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}
