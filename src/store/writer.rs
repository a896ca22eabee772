//! The connection that writes the journal, and what it remembers of the streams.
//!
//! It is not of a pool: giving a connection back to one is a message to the database's thread, and one
//! back, for each commit.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::PATIENCE;
use super::heads::Heads;

/// The connection, for one at a time.
#[derive(Debug)]
pub(super) struct Writer {
    options: SqliteConnectOptions,
    slot: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Opened when it is needed first, and after it was let go of in the middle of something.
    connection: Option<SqliteConnection>,
    /// Where streams stand that were written lately: who writes is the only one that changes them.
    heads: Heads,
    closed: bool,
}

/// Somebody is alone with the connection.
pub(super) struct Writing<'w> {
    options: &'w SqliteConnectOptions,
    slot: MutexGuard<'w, Slot>,
    /// In the middle of a transaction. Dropped there, the connection is closed, which undoes it.
    open: bool,
}

impl Writer {
    /// A connection that is opened when it is needed.
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self { options, slot: Mutex::default() }
    }

    /// Waits for whoever is alone with the connection now.
    pub(super) async fn alone(&self) -> Result<Writing<'_>, sqlx::Error> {
        let slot = tokio::time::timeout(PATIENCE, self.slot.lock());
        let slot = slot.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        if slot.closed {
            return Err(sqlx::Error::PoolClosed);
        }
        Ok(Writing { options: &self.options, slot, open: false })
    }

    /// Closes the connection, once nobody is at work with it, and for good.
    pub(super) async fn close(&self) {
        let mut slot = self.slot.lock().await;
        let closing = std::mem::replace(&mut *slot, Slot { closed: true, ..Slot::default() });
        if let Some(connection) = closing.connection
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "the database was not closed in good order");
        }
    }
}

impl Writing<'_> {
    /// The connection, for whatever changes of the database; what is remembered of streams is forgotten.
    pub(super) async fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        self.slot.heads.clear();
        let (connection, _) = self.journal().await?;
        // The journal may have left it otherwise.
        sqlx::query("PRAGMA synchronous = FULL").execute(&mut *connection).await?;
        Ok(connection)
    }

    /// The connection, and where streams stand that were written lately.
    pub(super) async fn journal(&mut self) -> Result<(&mut SqliteConnection, &mut Heads), sqlx::Error> {
        let Slot { connection, heads, .. } = &mut *self.slot;
        let connection = match connection {
            Some(connection) => connection,
            none => none.insert(SqliteConnection::connect_with(self.options).await?),
        };
        Ok((connection, heads))
    }

    /// A transaction begins, whose statements bring it to its end, too.
    pub(super) fn begin(&mut self) {
        self.open = true;
    }

    /// The transaction is at its end.
    pub(super) fn end(&mut self) {
        self.open = false;
    }

    /// Lets go of the connection, which undoes what is not at its end, and forgets. (To ask for that on a
    /// connection that has just failed may be to wait for ever: its thread may be gone.)
    pub(super) fn discard(&mut self) {
        self.slot.connection = None;
        self.slot.heads.clear();
        self.open = false;
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.open {
            self.discard();
        }
    }
}
