//! The journal as others see it.

use std::sync::Arc;

use actix::prelude::*;
use tokio::sync::oneshot;

use super::inbox::{Done, Item};
use super::shared::{Shared, Stats, stopped};
use super::{Committed, Journal, Wake};
use crate::run::{Envelope, Event};
use crate::store::{Code, Error, Record, Row, Stream};

/// The way to the journal. Clones share it; when the last is dropped, the journal writes what it has
/// and ends.
#[derive(Clone)]
pub struct Handle {
    pub(super) actor: Addr<Journal>,
    pub(super) shared: Arc<Shared>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("journal::Handle").field("stats", &self.stats()).finish()
    }
}

impl Handle {
    /// Shows the journal's subscriber what was written of a run before this process carries it on; it
    /// counts nothing of it again.
    pub fn known(&self, events: Vec<Envelope<Event>>) {
        if self.shared.watched {
            // Where there is no room the run's figures begin where it is taken over.
            let _ = self.send(Item::Known(events));
        }
    }

    /// Appends records in the order given; appends to one stream are in the order of the calls. With
    /// `durable` it returns once they are on disk; without, once their order is taken. Waits while
    /// `max_pending` events are waiting to be written.
    ///
    /// The records of one stream stand or fall together; where several streams are given, each by
    /// itself, and the error is the first one's. Dropping the future after its first poll does not
    /// take back what was accepted.
    ///
    /// # Errors
    /// A run whose append failed refuses every later one with that error until [`Handle::reopen`]: an
    /// append that was not durable tells of its failure here. (To a conversation's own stream only those
    /// append who wait, so each hears of its own.)
    /// Where the disk takes nothing just now, as when it is full, what begins a run is refused with that
    /// error, and whatever belongs to a run that has begun waits until the disk takes it: up to a day.
    /// `store.conflict` when another writer has been at the stream; `store.busy` when the journal does
    /// not keep up even with its bounded queue; `store.stopped` when it has ended;
    /// `store.bad_record` when a record cannot be stored as it is; else why the commit failed.
    pub async fn append(&self, records: Vec<Record>, durable: bool) -> Result<(), Error> {
        self.append_and_tell(records, durable, None).await
    }

    /// The same, and `committed` is told once it is committed: on the disk where somebody is there to be
    /// shown it, for whom the commit begins at once.
    ///
    /// # Errors
    /// As [`Handle::append`].
    pub(crate) async fn append_and_tell(
        &self,
        records: Vec<Record>,
        durable: bool,
        committed: Option<Committed>,
    ) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let rows = records.iter().map(Record::row).collect::<Result<Vec<Row>, Error>>()?;
        let records = if self.shared.watched { records } else { Vec::new() };
        let begins = rows.iter().any(Row::begins_a_run);
        let permit = self.shared.room(rows.len(), begins).await?;
        // Looked at after the wait, in one breath with taking the order.
        if let Some(error) = rows.iter().find_map(|row| self.shared.stuck(&row.stream)) {
            return Err(error);
        }
        if durable {
            self.ask(|done| Item::Append { records, rows, permit, done: Some(done), committed }).await
        } else {
            self.send(Item::Append { records, rows, permit, done: None, committed })
        }
    }

    /// Returns when everything appended before is on disk or its failure is known to its stream.
    ///
    /// # Errors
    /// The first commit that was given up as a whole since the flush before; why the disk takes nothing
    /// just now, where something waits for that; `store.busy`, `store.stopped`.
    pub async fn flush(&self) -> Result<(), Error> {
        match self.shared.refusing() {
            Some(error) => Err(error),
            None => self.ask(Item::Flush).await,
        }
    }

    /// The same for whoever reads afterwards, and takes what is on disk for what there is: what could not
    /// be written is no reason to show nothing of what was.
    ///
    /// # Errors
    /// `store.busy`, `store.stopped`.
    pub async fn flush_to_read(&self) -> Result<(), Error> {
        match self.flush().await {
            Err(error) if matches!(error.kind(), Code::Busy | Code::Stopped) => Err(error),
            _ => Ok(()),
        }
    }

    /// Lets a stream that failed be appended to again, after everything appended to it before was
    /// answered. The caller then reads the stream from the store and goes on from what it finds.
    ///
    /// # Errors
    /// Why the disk takes nothing just now, where something of the stream waits for that; `store.busy`,
    /// `store.stopped`.
    pub async fn reopen(&self, stream: Stream) -> Result<(), Error> {
        self.ask(|done| Item::Reopen(stream, done)).await
    }

    /// Refuses new appends, writes what waits, and ends the actor.
    ///
    /// # Errors
    /// The first commit that was given up as a whole and that no flush has told of; `store.stopped` when it
    /// has ended already.
    pub async fn stop(&self) -> Result<(), Error> {
        self.shared.close();
        self.ask(Item::Stop).await
    }

    /// Figures since the start.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    async fn ask(&self, item: impl FnOnce(Done) -> Item) -> Result<(), Error> {
        let (done, answer) = oneshot::channel();
        self.send(item(done))?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    fn send(&self, item: Item) -> Result<(), Error> {
        if !self.shared.put(item)? {
            return Ok(());
        }
        match self.actor.try_send(Wake) {
            // Where messages wait, it will look.
            Ok(()) | Err(SendError::Full(_)) => Ok(()),
            Err(SendError::Closed(_)) => Err(stopped()),
        }
    }
}
