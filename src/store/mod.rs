//! The store: one SQLite file under the data directory with the journal, the lists kept from it, and
//! the scenes' own tables.
//!
//! **Invariant:** the journal is the truth. The lists of runs, plans, approvals and sessions change only in
//! the transaction that appends the events they are made from.

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

/// The database's name in the data directory.
pub const FILE: &str = "proscenium.db";

/// Connections for the scenes' data and for reading. The journal's writer has one of its own, so that
/// a scene's long transaction never takes its place.
const READERS: u32 = 4;

/// SQLite's way to keep the index of the log in memory and not in a file, for which a full disk has no room.
/// Then no other process reads beside this one.
const ALONE: &str = "unix-excl";

/// How long a statement waits for another connection's write, and a caller for a free connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open store. Clones share it; the data directory's lock is given back when it is closed, or else
/// with the last of them.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

// The fields are dropped in this order: connections first, the lock last.
#[derive(Debug)]
struct Inner {
    pool: SqlitePool,
    writer: Option<Writer>,
    path: PathBuf,
    dir: Mutex<Option<DataDir>>,
    unreadable: Unreadable,
    /// Counts the keys that were revoked through this store.
    key_changes: watch::Sender<u64>,
}

impl Store {
    /// Opens the database in a directory that this process owns; makes it on first use and brings an
    /// older one up to date.
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
                tracing::error!(code = error.code(), %error, "opened for this process alone until it starts with room");
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

    /// The database at `path`, made or brought up to date where need be.
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

    /// Opens the database under `path` for looking only, beside the process that owns it or without one.
    /// Nothing is made and nothing is locked.
    ///
    /// # Errors
    /// `store.absent` when nothing is stored there yet, `store.older_schema` when the file has to be
    /// brought up to date first, and those of [`Store::open`].
    pub async fn open_reading(path: &Path) -> Result<Self, Error> {
        let path = path.join(FILE);
        let options = SqliteConnectOptions::new().filename(&path).read_only(true).busy_timeout(PATIENCE);
        let pool = pool(READERS).connect_lazy_with(options);
        let remedy = "run a command that writes, such as `proscenium chat`, which brings it up to date";
        up_to_date(&path, &pool, remedy).await?;
        Ok(Self::over(pool, None, path, None))
    }

    /// Opens the database under `path` for a short change beside the process that owns the directory,
    /// such as a key that is made while a server is at work. Nothing is locked but for the moment of a
    /// write, which SQLite sees to; what belongs to the journal is the owner's alone.
    ///
    /// # Errors
    /// `store.absent` when nothing is stored there yet, `store.older_schema` when the owner is an older
    /// program, and those of [`Store::open`].
    pub async fn open_beside(path: &Path) -> Result<Self, Error> {
        let path = path.join(FILE);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(PATIENCE);
        let pool = pool(1).connect_lazy_with(options.clone());
        let remedy = "stop the process that works with it and try again, which brings it up to date";
        up_to_date(&path, &pool, remedy).await?;
        let writer = Some(Writer::new(options));
        Ok(Self::over(pool, writer, path, None))
    }

    /// The pool for scene data and reads: a few connections, waiting up to ten seconds for a free one
    /// and for another connection's write. A transaction that reads before it writes begins with
    /// `BEGIN IMMEDIATE`.
    pub fn pool(&self) -> &SqlitePool {
        &self.inner.pool
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Closes all connections, which writes everything back into the one file, and gives the data
    /// directory back, whoever still holds a clone. Stop the journal before. What is used afterwards says
    /// `store.stopped`.
    pub async fn close(&self) {
        self.inner.pool.close().await;
        if let Some(writer) = &self.inner.writer {
            writer.close().await;
        }
        // Nothing can be written any more.
        drop(self.inner.dir.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The connection that writes, for a change beside the journal. What was changed by it, the journal
    /// reads anew.
    async fn writer(&self, doing: &str) -> Result<Writing<'_>, Error> {
        self.journal_writer()?.alone().await.map_err(|e| Error::database(self.path(), doing, &e))
    }

    /// The one connection that writes the journal.
    fn journal_writer(&self) -> Result<&Writer, Error> {
        self.inner.writer.as_ref().ok_or_else(|| {
            Error::new(
                Code::ReadOnly,
                format!("{}: the database was opened for looking only", self.path().display()),
            )
        })
    }
}

/// Looks whether the database is there and of this program's version; nothing is changed.
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
    // Connections live as long as the store: SQLite's have nothing to go stale.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}
