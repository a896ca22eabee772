//! The connection that writes the journal, with its cache of stream heads.
//!
//! It is not pooled: returning a connection to a pool costs a round trip to the database's thread for each
//! commit.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::BUSY_TIMEOUT;
use super::heads::HeadCache;

/// The writing connection, behind a lock.
#[derive(Debug)]
pub(super) struct JournalWriter {
    options: SqliteConnectOptions,
    slot: Mutex<WriterSlot>,
}

#[derive(Debug, Default)]
struct WriterSlot {
    /// Opened on first use, and again after it was discarded.
    connection: Option<SqliteConnection>,
    /// The heads of recently written streams. Only this connection changes streams.
    heads: HeadCache,
    /// Whether its commits are synced to disk, as last set; `None` if that is not known.
    synced: Option<bool>,
    closed: bool,
}

/// Exclusive access to the connection.
pub(super) struct WriterGuard<'w> {
    options: &'w SqliteConnectOptions,
    slot: MutexGuard<'w, WriterSlot>,
    /// Whether a transaction is open. Dropping the guard then closes the connection, which rolls it back.
    in_transaction: bool,
}

impl JournalWriter {
    /// A connection that is opened on first use.
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self { options, slot: Mutex::default() }
    }

    /// Waits for exclusive access.
    pub(super) async fn lock(&self) -> Result<WriterGuard<'_>, sqlx::Error> {
        let slot = tokio::time::timeout(BUSY_TIMEOUT, self.slot.lock());
        let slot = slot.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if slot.closed {
            return Err(sqlx::Error::PoolClosed);
        }
        Ok(WriterGuard { options: &self.options, slot, in_transaction: false })
    }

    /// Waits for exclusive access, then closes the connection for good.
    pub(super) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        let closing = std::mem::replace(&mut *slot, WriterSlot { closed: true, ..WriterSlot::default() });
        if let Some(connection) = closing.connection
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
    }
}

impl WriterGuard<'_> {
    /// The connection for any change of the database. Clears the cached stream heads.
    pub(super) async fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        self.slot.heads.clear();
        // A journal append may have changed this setting, and other callers change it, too.
        self.slot.synced = None;
        let (connection, _) = self.connection_and_heads().await?;
        sqlx::query("PRAGMA synchronous = FULL").execute(&mut *connection).await?;
        Ok(connection)
    }

    /// What has to precede the next transaction so that its commit is synced to disk, or not; it counts as executed.
    pub(super) fn synchronous(&mut self, synced: bool) -> &'static str {
        match (self.slot.synced.replace(synced), synced) {
            (before, now) if before == Some(now) => "",
            (_, true) => "PRAGMA synchronous = FULL; ",
            (_, false) => "PRAGMA synchronous = NORMAL; ",
        }
    }

    /// The connection and the cached heads of recently written streams.
    pub(super) async fn connection_and_heads(
        &mut self,
    ) -> Result<(&mut SqliteConnection, &mut HeadCache), sqlx::Error> {
        let WriterSlot { connection, heads, .. } = &mut *self.slot;
        let connection = match connection {
            Some(connection) => connection,
            none => none.insert(SqliteConnection::connect_with(self.options).await?),
        };
        Ok((connection, heads))
    }

    /// Marks the beginning of a transaction, whose statements also end it.
    pub(super) fn begin_transaction(&mut self) {
        self.in_transaction = true;
    }

    /// Marks the end of the transaction.
    pub(super) fn end_transaction(&mut self) {
        self.in_transaction = false;
    }

    /// Drops the connection, which rolls back an open transaction, and clears the cached heads. An explicit
    /// rollback could wait forever, since the thread of a failed connection may be gone.
    pub(super) fn discard(&mut self) {
        self.slot.connection = None;
        self.slot.heads.clear();
        self.slot.synced = None;
        self.in_transaction = false;
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        if self.in_transaction {
            self.discard();
        }
    }
}
