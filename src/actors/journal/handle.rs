//! The journal's public interface.

use std::sync::Arc;

use actix::prelude::*;
use tokio::sync::oneshot;

use super::inbox::{CompletionSender, InboxItem};
use super::shared::{JournalShared, JournalStats, stopped_error};
use super::{BoxedCommitHook, Journal, PendingAppend, Wake};
use crate::run::{RecalledResult, TenantId};
use crate::store::{Error, ErrorCode, JournalRow, Record, Store, StreamId};

/// A handle to the journal. Clones share one journal; when the last is dropped, it writes its pending
/// appends and stops.
#[derive(Clone)]
pub struct Handle {
    pub(super) actor: Addr<Journal>,
    pub(super) shared: Arc<JournalShared>,
    pub(super) store: Store,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("journal::Handle").field("stats", &self.stats()).finish()
    }
}

impl Handle {
    /// Appends records in the given order; appends to one stream keep the order of the calls. With
    /// `durable` it returns when they are on disk; otherwise as soon as they are queued. Waits while
    /// `max_pending` events are waiting to be written.
    ///
    /// The records of one stream are atomic: all of them are written or none. Several streams succeed or
    /// fail independently, and the error is that of the first one that failed. Dropping the future after
    /// its first poll does not revoke an accepted append.
    ///
    /// # Errors
    /// After a failed append, the stream of a run refuses every later append with the same error until
    /// [`Handle::reopen`]; this is how the failure of a non-durable append is reported. (Writers to a
    /// session's stream always wait, so each gets the error of its own append.)
    /// While the disk rejects writes or has next to no free space, an append that starts a run is
    /// refused with that error, and an append of a started run waits until the disk accepts it, for up to
    /// a day.
    /// `store.conflict` when another writer has appended to the stream; `store.busy` when the bounded
    /// queue is full because the journal cannot keep up; `store.stopped` when the journal has stopped;
    /// `store.bad_record` when a record cannot be stored; otherwise the error of the commit.
    pub async fn append(&self, records: Vec<Record>, durable: bool) -> Result<(), Error> {
        self.append_with_hook(records, durable, None).await
    }

    /// Like [`Handle::append`], and calls `commit_hook` after the commit. If the hook has readers, the
    /// commit starts at once and is synced to disk.
    ///
    /// # Errors
    /// As [`Handle::append`].
    pub(crate) async fn append_with_hook(
        &self,
        records: Vec<Record>,
        durable: bool,
        commit_hook: Option<BoxedCommitHook>,
    ) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let rows = records.iter().map(Record::to_row).collect::<Result<Vec<JournalRow>, Error>>()?;
        let records = if self.shared.has_sink { records } else { Vec::new() };
        let begins = rows.iter().any(JournalRow::starts_run);
        if begins {
            self.store.check_room()?;
        }
        let permit = self.shared.reserve(rows.len(), begins).await?;
        // Checked after the wait and, without another await, before the append is queued.
        if let Some(error) = rows.iter().find_map(|row| self.shared.stream_error(&row.stream)) {
            return Err(error);
        }
        let item = |done| {
            let append = PendingAppend { records, permit, done, commit_hook };
            InboxItem::Append { rows, append }
        };
        if durable { self.request(|done| item(Some(done))).await } else { self.send(item(None)) }
    }

    /// Returns when every earlier append is on disk or has failed its stream.
    ///
    /// # Errors
    /// The error of the first commit that was abandoned as a whole since the previous flush; why the disk
    /// rejects writes, while appends are held; `store.busy`, `store.stopped`.
    pub async fn flush(&self) -> Result<(), Error> {
        match self.shared.write_error() {
            Some(error) => Err(error),
            None => self.request(InboxItem::Flush).await,
        }
    }

    /// Flushes before a read. Write errors are ignored, because what is on disk can still be read.
    ///
    /// # Errors
    /// `store.busy`, `store.stopped`.
    pub async fn flush_for_read(&self) -> Result<(), Error> {
        match self.flush().await {
            Err(error) if matches!(error.kind(), ErrorCode::Busy | ErrorCode::Stopped) => Err(error),
            _ => Ok(()),
        }
    }

    /// The last result that was appended with the key, if its event is still there. An append that is not written yet is
    /// not seen.
    pub(crate) async fn last_result(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Option<RecalledResult>, Error> {
        self.store.last_result(tenant, key).await
    }

    /// Makes a failed stream accept appends again, after all its earlier appends were answered. The
    /// caller then reads the stream from the store and continues from its last event.
    ///
    /// # Errors
    /// Why the disk rejects writes, while appends of this stream are held; `store.busy`, `store.stopped`.
    pub async fn reopen(&self, stream: StreamId) -> Result<(), Error> {
        self.request(|done| InboxItem::Reopen(stream, done)).await
    }

    /// Refuses new appends, writes the pending ones and stops the actor.
    ///
    /// # Errors
    /// The error of the first commit that was abandoned as a whole and that no flush has reported;
    /// `store.stopped` when the journal has already stopped.
    pub async fn stop(&self) -> Result<(), Error> {
        self.shared.close();
        self.request(InboxItem::Stop).await
    }

    /// Statistics since the start.
    pub fn stats(&self) -> JournalStats {
        self.shared.stats()
    }

    async fn request(&self, item: impl FnOnce(CompletionSender) -> InboxItem) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.send(item(done))?;
        answer.await.unwrap_or_else(|_| Err(stopped_error()))
    }

    fn send(&self, item: InboxItem) -> Result<(), Error> {
        if !self.shared.push(item)? {
            return Ok(());
        }
        match self.actor.try_send(Wake) {
            // A full mailbox means that a wake-up is already pending.
            Ok(()) | Err(SendError::Full(_)) => Ok(()),
            Err(SendError::Closed(_)) => Err(stopped_error()),
        }
    }
}
