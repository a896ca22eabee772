//! State shared by the journal's handles and its actor: queue permits, failed streams and statistics.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::inbox::{Inbox, InboxError, InboxItem, InboxPoll};
use crate::mutex::lock;
use crate::store::{Error, ErrorCode, Options, StreamId};
use crate::telemetry::{Component, ServerMetrics};

/// How many failed streams are remembered with their error. The store still refuses a forgotten one,
/// because its next sequence number does not fit, but with a different error.
const MAX_FAILED_STREAMS: usize = 4096;

pub(super) struct JournalShared {
    permits: Arc<Semaphore>,
    inbox: Inbox,
    /// Whether written records are published, so that appends have to keep them.
    pub(super) has_sink: bool,
    pub(super) server_metrics: ServerMetrics,
    max_pending: usize,
    failed_streams: Mutex<FailedStreams>,
    /// Why the disk currently rejects writes; `None` while it accepts them.
    write_error: watch::Sender<Option<Error>>,
    commits: AtomicU64,
    syncs: AtomicU64,
    failed_commits: AtomicU64,
    events: AtomicU64,
    largest_batch: AtomicU64,
    commit_micros: AtomicU64,
}

#[derive(Default)]
struct FailedStreams {
    errors: HashMap<StreamId, Error>,
    order: VecDeque<StreamId>,
}

/// Statistics of the journal since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Successful commits.
    pub commits: u64,
    /// Commits that were synced to disk, and syncs without a commit.
    pub syncs: u64,
    /// Commits that failed as a whole.
    pub failed_commits: u64,
    /// Events in successful commits, those of refused streams included.
    pub events: u64,
    /// The largest number of events in one commit.
    pub largest_batch: u64,
    /// Total time spent in commits, in microseconds.
    pub commit_micros: u64,
    /// Events currently waiting to be written.
    pub pending: u64,
}

pub(super) fn stopped_error() -> Error {
    Error::new(ErrorCode::Stopped, "the journal has stopped and accepts no more events")
}

impl JournalShared {
    /// Creates the state with capacity for `spare` items beside the appends.
    pub(super) fn new(
        options: &Options,
        spare: usize,
        has_sink: bool,
        server_metrics: ServerMetrics,
    ) -> Self {
        let max_pending = options.max_pending.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            permits: Arc::new(Semaphore::new(max_pending)),
            inbox: Inbox::new(max_pending.saturating_add(spare), options.max_batch.max(1)),
            has_sink,
            server_metrics,
            max_pending,
            failed_streams: Mutex::default(),
            write_error: watch::Sender::new(None),
            commits: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            failed_commits: AtomicU64::new(0),
            events: AtomicU64::new(0),
            largest_batch: AtomicU64::new(0),
            commit_micros: AtomicU64::new(0),
        }
    }

    /// Reserves queue capacity for `events` and waits only when the queue is full. An append larger than
    /// the whole queue takes all of it. An append that `begins` a run is refused while the disk rejects
    /// writes.
    pub(super) async fn reserve(&self, events: usize, begins: bool) -> Result<OwnedSemaphorePermit, Error> {
        if !begins {
            return self.acquire_permits(events).await;
        }
        if let Some(error) = self.write_error() {
            return Err(error);
        }
        let mut refusing = self.write_error.subscribe();
        tokio::select! {
            biased;
            permit = self.acquire_permits(events) => permit,
            Ok(error) = refusing.wait_for(Option::is_some) => Err(error.clone().unwrap_or_else(stopped_error)),
        }
    }

    async fn acquire_permits(&self, events: usize) -> Result<OwnedSemaphorePermit, Error> {
        let events = u32::try_from(events.min(self.max_pending)).unwrap_or(u32::MAX);
        // The semaphore is fair: `try_acquire` fails while other callers wait.
        match Arc::clone(&self.permits).try_acquire_many_owned(events) {
            Ok(permit) => Ok(permit),
            Err(_) => Arc::clone(&self.permits).acquire_many_owned(events).await.map_err(|_| stopped_error()),
        }
    }

    /// Puts an item into the actor's queue. Returns whether the actor has to be woken.
    pub(super) fn push(&self, item: InboxItem) -> Result<bool, Error> {
        self.inbox.push(item, || self.has_room()).map_err(|refused| match refused {
            InboxError::Closed => stopped_error(),
            InboxError::Full => {
                self.server_metrics.shed(Component::Journal);
                let message = "the journal queue is full: the disk cannot keep up; try again later";
                Error::new(ErrorCode::Busy, message)
            }
        })
    }

    /// Why the disk currently rejects writes, if it does.
    pub(super) fn write_error(&self) -> Option<Error> {
        self.write_error.borrow().clone()
    }

    /// Records why the disk rejects writes, or with `None` that it accepts them again.
    pub(super) fn set_write_error(&self, why: Option<Error>) {
        self.write_error.send_replace(why);
    }

    /// The actor's next work.
    pub(super) fn poll_inbox(&self, hurry: bool) -> InboxPoll {
        self.inbox.poll(hurry, || self.has_room())
    }

    /// Whether more than half of the queue is free.
    fn has_room(&self) -> bool {
        self.permits.available_permits() * 2 > self.max_pending
    }

    /// Refuses all later reservations.
    pub(super) fn close(&self) {
        self.permits.close();
    }

    /// Also refuses all later items and drops the queued ones.
    pub(super) fn close_inbox(&self) {
        self.close();
        self.inbox.close();
    }

    /// The error with which the stream refuses appends, if it failed.
    pub(super) fn stream_error(&self, stream: &StreamId) -> Option<Error> {
        self.lock().errors.get(stream).cloned()
    }

    /// Makes the stream of a run refuse appends from now on; the first error is kept. A session's stream is
    /// exempt: its writers wait for every append, and the store enforces its sequence numbers.
    pub(super) fn fail_stream(&self, stream: StreamId, error: Error) {
        if matches!(stream, StreamId::Session(..)) {
            return;
        }
        let mut stuck = self.lock();
        if stuck.errors.contains_key(&stream) {
            return;
        }
        if stuck.order.len() >= MAX_FAILED_STREAMS
            && let Some(oldest) = stuck.order.pop_front()
        {
            stuck.errors.remove(&oldest);
        }
        stuck.order.push_back(stream.clone());
        stuck.errors.insert(stream, error);
    }

    /// Makes the stream accept appends again.
    pub(super) fn reopen_stream(&self, stream: &StreamId) {
        let mut stuck = self.lock();
        if stuck.errors.remove(stream).is_some() {
            stuck.order.retain(|other| other != stream);
        }
    }

    pub(super) fn record_commit(&self, events: usize, took: Duration, ok: bool, synced: bool) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.commit_micros.fetch_add(micros, Relaxed);
        if ok {
            self.commits.fetch_add(u64::from(events > 0), Relaxed);
            self.syncs.fetch_add(u64::from(synced), Relaxed);
            self.events.fetch_add(events as u64, Relaxed);
            self.largest_batch.fetch_max(events as u64, Relaxed);
        } else {
            self.failed_commits.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn stats(&self) -> JournalStats {
        JournalStats {
            commits: self.commits.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            failed_commits: self.failed_commits.load(Relaxed),
            events: self.events.load(Relaxed),
            largest_batch: self.largest_batch.load(Relaxed),
            commit_micros: self.commit_micros.load(Relaxed),
            pending: (self.max_pending - self.permits.available_permits().min(self.max_pending)) as u64,
        }
    }

    fn lock(&self) -> MutexGuard<'_, FailedStreams> {
        lock(&self.failed_streams)
    }
}
