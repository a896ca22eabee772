//! The database of a backup: one read transaction of the source, copied page by page.
//!
//! The read transaction is the moment of the backup. It blocks no writer, and since the pages are copied within it, writes
//! do not start the copy again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::super::error::{Error, ErrorCode};
use super::super::{BUSY_TIMEOUT, schema};
use super::files;
use super::manifest::BackupCounts;
use super::watch::CopyWatch;
use crate::run::DocumentId;

/// Pages that are copied at once: one mebibyte.
const PAGES: i32 = 256;
/// The log of the source cannot be used again while it is read. It may grow to this many bytes, and leaves at least so many
/// free on its disk, so that a backup never stops a server.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;
/// How long to wait for a lock before the next try, and how often.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const MAX_LOCKED: u32 = 500;
const MAX_FOLDS: u32 = 100;
/// The schema version that added documents.
const DOCUMENTS_VERSION: usize = 16;
/// Virtual instructions between two looks at the watch.
const INSTRUCTIONS: i32 = 100_000;

/// The database of a data directory at one moment.
pub(super) struct DatabaseSnapshot {
    connection: Connection,
    path: PathBuf,
    /// When it was opened: what is stored later is not in it.
    pub(super) taken: Timestamp,
    /// Its schema version, at most this program's.
    pub(super) schema: usize,
}

/// A document as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredDocument {
    pub(super) id: DocumentId,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl DatabaseSnapshot {
    /// Opens the database at `path` and begins the read transaction.
    ///
    /// # Errors
    /// `store.absent`, `store.foreign`, `store.newer_schema`, `store.locked`, `store.corrupt`, and other database errors.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::sqlite(path, "read the database", &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match path.try_exists() {
            Ok(false) => {
                let what = format!("{}: nothing is stored here yet", path.display());
                return Err(Error::new(ErrorCode::Absent, what));
            }
            _ => Connection::open_with_flags(path, flags).map_err(failed)?,
        };
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        let taken = Timestamp::now();
        connection.execute_batch("BEGIN").map_err(failed)?;
        let read = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failed);
        let marks = schema::DatabaseMarks {
            application: read("PRAGMA application_id")?,
            version: read("PRAGMA user_version")?,
            tables: read("SELECT count(*) FROM sqlite_schema")?,
        };
        let schema = schema::check_version(path, marks, schema::MIGRATIONS.len())?;
        if schema == 0 {
            let what = format!("{}: nothing is stored here yet", path.display());
            return Err(Error::new(ErrorCode::Absent, what));
        }
        Ok(Self { connection, path: path.to_owned(), taken, schema })
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        Error::sqlite(&self.path, "read the database", error)
    }

    fn count(&self, sql: &str) -> Result<u64, Error> {
        let count: i64 =
            self.connection.query_row(sql, [], |row| row.get(0)).map_err(|error| self.failed(&error))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// The length of the database in bytes.
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        Ok(self.count("PRAGMA page_count")?.saturating_mul(self.count("PRAGMA page_size")?))
    }

    /// How much is in it.
    pub(super) fn counts(&self) -> Result<BackupCounts, Error> {
        Ok(BackupCounts {
            runs: self.count("SELECT count(*) FROM runs")?,
            unfinished_runs: self
                .count("SELECT count(*) FROM runs WHERE status IN ('queued', 'running', 'waiting')")?,
            conversations: self.count("SELECT count(*) FROM sessions")?,
            documents: self.documents()?.len() as u64,
        })
    }

    pub(super) fn documents(&self) -> Result<Vec<StoredDocument>, Error> {
        if self.schema < DOCUMENTS_VERSION {
            return Ok(Vec::new());
        }
        let failed = |error| self.failed(&error);
        let mut query =
            self.connection.prepare("SELECT id, bytes, sha256 FROM documents ORDER BY id").map_err(failed)?;
        let rows = query
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get(2)?)))
            .map_err(failed)?;
        let document = |row: rusqlite::Result<(String, i64, String)>| -> Result<StoredDocument, Error> {
            let (id, bytes, sha256) = row.map_err(failed)?;
            let id = id.parse().map_err(|_| {
                let what = format!("{}: {id:?} is not the id of a document", self.path.display());
                Error::new(ErrorCode::Corrupt, what)
            })?;
            Ok(StoredDocument { id, bytes: u64::try_from(bytes).unwrap_or_default(), sha256 })
        };
        rows.map(document).collect()
    }

    /// Copies the database into the empty file `to`.
    ///
    /// # Errors
    /// `backup.log_too_large`, those of the watch, and database errors.
    pub(super) fn copy_to(&self, to: &Path, watch: &CopyWatch) -> Result<(), Error> {
        let failed = |error| Error::sqlite(to, "write the copy", &error);
        let mut target = open_copy(to)?;
        // It is synced as a whole at the end.
        target.pragma_update(None, "journal_mode", "OFF").map_err(failed)?;
        target.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
        self.copy_pages(&mut target, to, watch)?;
        target.close().map_err(|(_, error)| failed(error))
    }

    /// Gives up where the log of the source has grown too much, or has no room to grow.
    fn check_log(&self) -> Result<(), Error> {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let bytes = std::fs::metadata(log).map_or(0, |metadata| metadata.len());
        let has_room = files::check_free(files::parent(&self.path), MIN_FREE_BYTES);
        if bytes <= MAX_LOG_BYTES && (has_room || bytes == 0) {
            return Ok(());
        }
        let what = format!(
            "{}: its log has {bytes} bytes by now, which a backup keeps from being used again: take the backup while less is \
             written, onto a faster disk, or with more free space",
            self.path.display()
        );
        Err(Error::new(ErrorCode::BackupLog, what))
    }

    fn copy_pages(&self, target: &mut Connection, to: &Path, watch: &CopyWatch) -> Result<(), Error> {
        let page_bytes = self.count("PRAGMA page_size")?;
        let failed = |error| Error::sqlite(to, "write the copy", &error);
        let backup = Backup::new(&self.connection, target).map_err(failed)?;
        let (mut locked, mut copied) = (0, 0_u64);
        loop {
            watch.check()?;
            self.check_log()?;
            let step = backup.step(PAGES).map_err(failed)?;
            let pages = backup.progress();
            let now = u64::try_from(pages.pagecount.saturating_sub(pages.remaining)).unwrap_or_default();
            watch.advance(now.saturating_sub(copied).saturating_mul(page_bytes));
            copied = now;
            match step {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                _ if locked < MAX_LOCKED => {
                    locked += 1;
                    watch.pause(LOCK_PAUSE);
                }
                _ => {
                    let what = format!(
                        "{}: another program keeps the database locked; close it and try again",
                        self.path.display()
                    );
                    return Err(Error::new(ErrorCode::Locked, what));
                }
            }
        }
    }
}

fn open_copy(path: &Path) -> Result<Connection, Error> {
    let failed = |error| Error::sqlite(path, "open the copy", &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    Ok(connection)
}

/// Makes a copy one file that needs no log, and checks it for damage.
///
/// # Errors
/// `store.corrupt` if the source was damaged, those of the watch, and database errors.
pub(super) fn seal(path: &Path, watch: &Arc<CopyWatch>) -> Result<(), Error> {
    let failed = |error| match watch.check() {
        Ok(()) => Error::sqlite(path, "check the copy", &error),
        Err(given_up) => given_up,
    };
    let connection = open_copy(path)?;
    let watched = Arc::clone(watch);
    connection.progress_handler(INSTRUCTIONS, Some(move || watched.must_end())).map_err(failed)?;
    connection
        .pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0))
        .map_err(failed)?;
    let found: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    if found == "ok" {
        return Ok(());
    }
    let what = format!(
        "the database is damaged: {found}; no backup was made: restore an earlier one, or move the database away"
    );
    Err(Error::new(ErrorCode::Corrupt, what))
}

/// Brings the log of a database into its file and removes the log, which only works where nothing else has it open.
///
/// # Errors
/// `store.locked` if another process has it open, those of the watch, and database errors.
pub(super) fn fold_log(path: &Path, watch: &CopyWatch) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        watch.check()?;
        match try_fold_log(path) {
            // A connection of this process may just be closing.
            Err(error) if error.kind() == ErrorCode::Locked && tries < MAX_FOLDS => {
                tries += 1;
                watch.pause(LOCK_PAUSE);
            }
            folded => return folded,
        }
    }
}

fn try_fold_log(path: &Path) -> Result<(), Error> {
    let failed = |error| Error::sqlite(path, "bring its log into the database", &error);
    let connection = open_copy(path)?;
    connection.busy_timeout(LOCK_PAUSE).map_err(failed)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))
        .map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    if mode == "delete" {
        return Ok(());
    }
    let what = format!("{}: another process has the database open: stop it and try again", path.display());
    Err(Error::new(ErrorCode::Locked, what))
}
