//! The connections that write: one that appends to the journal, with its cache of stream heads, and one for all other
//! changes. Only one of them is used at a time.
//!
//! Appends have a connection on the caller's thread, since most of what this process writes is theirs: a connection on a
//! thread of its own costs a wake-up for each statement, and each statement of several rows is compiled anew.

use std::path::PathBuf;

use rusqlite::OpenFlags;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::heads::HeadCache;
use super::{BUSY_TIMEOUT, CHECKPOINT_PAGES, SECURE_DELETE};

/// Maximum number of statements that the appending connection keeps compiled.
const MAX_STATEMENTS: usize = 64;

/// The writing connections, behind a lock.
#[derive(Debug)]
pub(super) struct JournalWriter {
    options: SqliteConnectOptions,
    path: PathBuf,
    vfs: Option<&'static str>,
    slot: Mutex<WriterSlot>,
}

/// Each connection is opened on first use, and again after it was discarded.
#[derive(Debug, Default)]
struct WriterSlot {
    /// Appends to the journal.
    journal: Option<rusqlite::Connection>,
    /// Makes all other changes.
    connection: Option<SqliteConnection>,
    /// The heads of recently written streams. Only these connections change streams.
    heads: HeadCache,
    /// Whether commits of the journal's connection are synced to disk, as last set; `None` if that is not known.
    synced: Option<bool>,
    closed: bool,
}

/// Exclusive access to the connections.
pub(super) struct WriterGuard<'w> {
    writer: &'w JournalWriter,
    slot: MutexGuard<'w, WriterSlot>,
    /// Whether a transaction is open. Dropping the guard then closes the connection, which rolls it back.
    in_transaction: bool,
}

impl JournalWriter {
    /// Connections to the database at `path`, with the file system of SQLite that `vfs` names.
    pub(super) fn new(options: SqliteConnectOptions, path: PathBuf, vfs: Option<&'static str>) -> Self {
        Self { options, path, vfs, slot: Mutex::default() }
    }

    /// Waits for exclusive access.
    pub(super) async fn lock(&self) -> Result<WriterGuard<'_>, sqlx::Error> {
        let slot = tokio::time::timeout(BUSY_TIMEOUT, self.slot.lock());
        let slot = slot.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if slot.closed {
            return Err(sqlx::Error::PoolClosed);
        }
        Ok(WriterGuard { writer: self, slot, in_transaction: false })
    }

    /// Waits for exclusive access, then closes the connections for good.
    pub(super) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        let closing = std::mem::replace(&mut *slot, WriterSlot { closed: true, ..WriterSlot::default() });
        drop(closing.journal);
        if let Some(connection) = closing.connection
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
    }

    /// Opens the connection that appends. The database exists and is in the mode of write-ahead logging.
    fn open_journal(&self) -> rusqlite::Result<rusqlite::Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match self.vfs {
            Some(vfs) => rusqlite::Connection::open_with_flags_and_vfs(&self.path, flags, vfs)?,
            None => rusqlite::Connection::open_with_flags(&self.path, flags)?,
        };
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, SECURE_DELETE.0, SECURE_DELETE.1)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
        Ok(connection)
    }
}

impl WriterGuard<'_> {
    /// The connection for any change of the database. Clears the cached stream heads.
    pub(super) async fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        self.slot.heads.clear();
        self.unchecked_connection().await
    }

    /// The connection for statements that change no stream.
    pub(super) async fn unchecked_connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        match &mut self.slot.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(SqliteConnection::connect_with(&self.writer.options).await?)),
        }
    }

    /// The connection that appends, and the cached heads of recently written streams. Its statements are executed on the
    /// caller's thread.
    pub(super) fn journal(&mut self) -> rusqlite::Result<(&rusqlite::Connection, &mut HeadCache)> {
        let WriterSlot { journal, heads, .. } = &mut *self.slot;
        let connection = match journal {
            Some(connection) => connection,
            none => none.insert(self.writer.open_journal()?),
        };
        Ok((connection, heads))
    }

    /// Has commits of the connection that appends be synced to disk, or not. SQLite accepts this outside a transaction
    /// only.
    pub(super) fn set_synced(&mut self, synced: bool) -> rusqlite::Result<()> {
        if self.slot.synced != Some(synced) {
            let (connection, _) = self.journal()?;
            connection.pragma_update(None, "synchronous", if synced { "FULL" } else { "NORMAL" })?;
            self.slot.synced = Some(synced);
        }
        Ok(())
    }

    /// Closes the connection that appends, which rolls back its transaction, and clears the cached heads.
    pub(super) fn discard_journal(&mut self) {
        self.slot.journal = None;
        self.slot.heads.clear();
        self.slot.synced = None;
    }

    /// Marks the beginning of a transaction, whose statements also end it.
    pub(super) fn begin_transaction(&mut self) {
        self.in_transaction = true;
    }

    pub(super) fn end_transaction(&mut self) {
        self.in_transaction = false;
    }

    /// Drops the connection, which rolls back an open transaction, and clears the cached heads. An explicit
    /// rollback could wait forever, since the thread of a failed connection may be gone.
    fn discard(&mut self) {
        self.slot.connection = None;
        self.slot.heads.clear();
        self.in_transaction = false;
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        if self.in_transaction {
            self.discard();
        }
        // An append panicked: its transaction would keep all others from writing.
        if self.slot.journal.as_ref().is_some_and(|journal| !journal.is_autocommit()) {
            self.discard_journal();
        }
    }
}
