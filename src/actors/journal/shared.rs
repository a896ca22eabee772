//! What the journal's handles and its actor both see: room in the queue, failed streams, figures.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::inbox::{Inbox, Item, Next, Refused};
use crate::store::{Code, Error, Options, Stream};
use crate::telemetry::{Outside, Part};

/// Most failed streams whose reason is kept. A forgotten one is still refused by the store, since its
/// next number does not fit, only with another reason.
const MAX_STUCK: usize = 4096;

pub(super) struct Shared {
    room: Arc<Semaphore>,
    inbox: Inbox,
    /// Whether somebody is shown what was written.
    pub(super) watched: bool,
    pub(super) outside: Outside,
    max_pending: usize,
    stuck: Mutex<Stuck>,
    /// Why nothing can be written just now, as long as that is so.
    refusing: watch::Sender<Option<Error>>,
    commits: AtomicU64,
    syncs: AtomicU64,
    failed_commits: AtomicU64,
    events: AtomicU64,
    largest_batch: AtomicU64,
    commit_micros: AtomicU64,
}

#[derive(Default)]
struct Stuck {
    errors: HashMap<Stream, Error>,
    order: VecDeque<Stream>,
}

/// Figures of the journal since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits that were written.
    pub commits: u64,
    /// Those of them that waited for the disk, and waits of their own.
    pub syncs: u64,
    /// Commits that failed as a whole.
    pub failed_commits: u64,
    /// Events in commits that reached the disk, those of refused streams included.
    pub events: u64,
    /// Most events in one of them.
    pub largest_batch: u64,
    /// Microseconds spent in all commits together.
    pub commit_micros: u64,
    /// Events that wait to be written now.
    pub pending: u64,
}

pub(super) fn stopped() -> Error {
    Error::new(Code::Stopped, "the journal has ended; nothing more can be appended")
}

impl Shared {
    /// With room for `spare` items beside the appends.
    pub(super) fn new(options: &Options, spare: usize, watched: bool, outside: Outside) -> Self {
        let max_pending = options.max_pending.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            room: Arc::new(Semaphore::new(max_pending)),
            inbox: Inbox::new(max_pending.saturating_add(spare), options.max_batch.max(1)),
            watched,
            outside,
            max_pending,
            stuck: Mutex::default(),
            refusing: watch::Sender::new(None),
            commits: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            failed_commits: AtomicU64::new(0),
            events: AtomicU64::new(0),
            largest_batch: AtomicU64::new(0),
            commit_micros: AtomicU64::new(0),
        }
    }

    /// Waits for room for `events`, not at all where there is some; an append larger than the whole
    /// queue takes all of it. What `begins` a run is refused while nothing can be written.
    pub(super) async fn room(&self, events: usize, begins: bool) -> Result<OwnedSemaphorePermit, Error> {
        if !begins {
            return self.free(events).await;
        }
        if let Some(error) = self.refusing() {
            return Err(error);
        }
        let mut refusing = self.refusing.subscribe();
        tokio::select! {
            biased;
            permit = self.free(events) => permit,
            Ok(error) = refusing.wait_for(Option::is_some) => Err(error.clone().unwrap_or_else(stopped)),
        }
    }

    async fn free(&self, events: usize) -> Result<OwnedSemaphorePermit, Error> {
        let events = u32::try_from(events.min(self.max_pending)).unwrap_or(u32::MAX);
        // Whoever waits is before whoever comes: while somebody does, nothing is free here.
        match Arc::clone(&self.room).try_acquire_many_owned(events) {
            Ok(permit) => Ok(permit),
            Err(_) => Arc::clone(&self.room).acquire_many_owned(events).await.map_err(|_| stopped()),
        }
    }

    /// Puts an item into the actor's queue; says whether the actor has to be woken.
    pub(super) fn put(&self, item: Item) -> Result<bool, Error> {
        self.inbox.put(item, || self.is_roomy()).map_err(|refused| match refused {
            Refused::Closed => stopped(),
            Refused::Full => {
                self.outside.shed(Part::Journal);
                let message = "too much waits for the journal: the disk does not keep up; try again later";
                Error::new(Code::Busy, message)
            }
        })
    }

    /// Why nothing can be written just now, if so.
    pub(super) fn refusing(&self) -> Option<Error> {
        self.refusing.borrow().clone()
    }

    /// From now on nothing can be written for this reason; without one, it can again.
    pub(super) fn refuse(&self, why: Option<Error>) {
        self.refusing.send_replace(why);
    }

    /// What the actor is to do now.
    pub(super) fn next(&self, hurry: bool) -> Next {
        self.inbox.next(hurry, || self.is_roomy())
    }

    /// Whether at least half of the queue is free.
    fn is_roomy(&self) -> bool {
        self.room.available_permits() * 2 > self.max_pending
    }

    /// From now on there is room for nothing.
    pub(super) fn close(&self) {
        self.room.close();
    }

    /// From now on nobody looks at what waits.
    pub(super) fn end(&self) {
        self.close();
        self.inbox.close();
    }

    /// Why the stream refuses appends, if it does.
    pub(super) fn stuck(&self, stream: &Stream) -> Option<Error> {
        self.lock().errors.get(stream).cloned()
    }

    /// From now on the stream of a run refuses appends; the first reason stays. A conversation's own does
    /// not: all who append to it wait for each append, and the store holds them to the next number.
    pub(super) fn stick(&self, stream: Stream, error: Error) {
        if matches!(stream, Stream::Session(..)) {
            return;
        }
        let mut stuck = self.lock();
        if stuck.errors.contains_key(&stream) {
            return;
        }
        if stuck.order.len() >= MAX_STUCK
            && let Some(oldest) = stuck.order.pop_front()
        {
            stuck.errors.remove(&oldest);
        }
        stuck.order.push_back(stream.clone());
        stuck.errors.insert(stream, error);
    }

    /// The stream takes appends again.
    pub(super) fn release(&self, stream: &Stream) {
        let mut stuck = self.lock();
        if stuck.errors.remove(stream).is_some() {
            stuck.order.retain(|other| other != stream);
        }
    }

    pub(super) fn count(&self, events: usize, took: Duration, ok: bool, synced: bool) {
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

    pub(super) fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            failed_commits: self.failed_commits.load(Relaxed),
            events: self.events.load(Relaxed),
            largest_batch: self.largest_batch.load(Relaxed),
            commit_micros: self.commit_micros.load(Relaxed),
            pending: (self.max_pending - self.room.available_permits().min(self.max_pending)) as u64,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stuck> {
        // Nothing in here panics half-way, so a poisoned map is still whole.
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
