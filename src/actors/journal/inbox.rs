//! What waits for the journal's actor, behind a lock. An append that nobody waits for is put there and
//! no more: the actor is told of it only where it would not look by itself in time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Committed;

use crate::run::{Envelope, Event};
use crate::store::{Error, Record, Row, Stream};

/// Who waits for the end of something.
pub(super) type Done = oneshot::Sender<Result<(), Error>>;

/// A piece of work for the actor.
pub(super) enum Item {
    /// Rows to be written, the records behind them, and their place in the queue.
    Append {
        records: Vec<Record>,
        rows: Vec<Row>,
        permit: OwnedSemaphorePermit,
        done: Option<Done>,
        committed: Option<Committed>,
    },
    /// What the journal has of a run that is to go on, for whoever is shown what is written.
    Known(Vec<Envelope<Event>>),
    /// To be told when what came before is on disk.
    Flush(Done),
    /// A stream to be taken up again.
    Reopen(Stream, Done),
    /// The end.
    Stop(Done),
}

impl Item {
    fn is_awaited(&self) -> bool {
        match self {
            Item::Append { done, committed, .. } => {
                done.is_some() || committed.as_ref().is_some_and(|told| told.are_there())
            }
            Item::Known(_) => false,
            Item::Flush(_) | Item::Reopen(..) | Item::Stop(_) => true,
        }
    }
}

/// What the actor does, as far as those have to know who put something in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attention {
    /// It sleeps: whatever comes wakes it.
    Asleep,
    /// It gives what is here a little more time: what somebody waits for wakes it, and so does the item
    /// that leaves no room for more.
    Lingering,
    /// It was told, or is at work and looks when that is done.
    Awake,
}

/// What the actor is to do.
pub(super) enum Next {
    /// Carry this out.
    Work(Vec<Item>),
    /// Look again when the time is up.
    Linger,
    /// Nothing.
    Nothing,
}

/// Why an item was not taken.
pub(super) enum Refused {
    /// Too much waits.
    Full,
    /// Nobody will look any more.
    Closed,
}

/// The items, in the order in which they came.
pub(super) struct Inbox {
    inner: Mutex<Inner>,
    /// Most items that wait.
    capacity: usize,
    /// Events at which no more is taken out at once, and items at which nothing lingers.
    batch: usize,
}

struct Inner {
    /// Each with whether somebody waited for it when it came.
    items: VecDeque<(Item, bool)>,
    /// How many of them somebody waits for.
    awaited: usize,
    attention: Attention,
    closed: bool,
}

impl Inbox {
    pub(super) fn new(capacity: usize, batch: usize) -> Self {
        let inner = Inner { items: VecDeque::new(), awaited: 0, attention: Attention::Asleep, closed: false };
        Self { inner: Mutex::new(inner), capacity, batch }
    }

    /// Puts an item behind the others; says whether the actor has to be woken. `is_roomy` says whether
    /// there is room for more, looked at once the item is in its place.
    pub(super) fn put(&self, item: Item, is_roomy: impl FnOnce() -> bool) -> Result<bool, Refused> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(Refused::Closed);
        }
        if inner.items.len() >= self.capacity {
            return Err(Refused::Full);
        }
        let awaited = item.is_awaited();
        inner.awaited += usize::from(awaited);
        inner.items.push_back((item, awaited));
        let wake = match inner.attention {
            Attention::Asleep => true,
            Attention::Lingering => awaited || inner.items.len() >= self.batch || !is_roomy(),
            Attention::Awake => false,
        };
        if wake {
            inner.attention = Attention::Awake;
        }
        Ok(wake)
    }

    /// What the actor is to do now, unless it is at work. It lingers while there is something that
    /// nobody waits for and room for more, unless it is in a `hurry`.
    pub(super) fn next(&self, hurry: bool, is_roomy: impl FnOnce() -> bool) -> Next {
        let mut inner = self.lock();
        if inner.items.is_empty() {
            inner.attention = Attention::Asleep;
            return Next::Nothing;
        }
        if !hurry && inner.awaited == 0 && inner.items.len() < self.batch && is_roomy() {
            inner.attention = Attention::Lingering;
            return Next::Linger;
        }
        inner.attention = Attention::Awake;
        let mut work = Vec::new();
        let mut size = 0;
        while size < self.batch
            && let Some((item, awaited)) = inner.items.pop_front()
        {
            match &item {
                Item::Append { rows, .. } => size += rows.len(),
                // Only what was queued behind it may see the stream open again.
                Item::Reopen(..) if size > 0 => {
                    inner.items.push_front((item, awaited));
                    break;
                }
                Item::Known(_) | Item::Flush(_) | Item::Reopen(..) | Item::Stop(_) => {}
            }
            inner.awaited -= usize::from(awaited);
            work.push(item);
        }
        Next::Work(work)
    }

    /// Takes nothing more, and lets go of what nobody will look at.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.awaited = 0;
        let left = std::mem::take(&mut inner.items);
        // Outside of the lock: whoever waits is told by this.
        drop(inner);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way, so a poisoned queue is still whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::store::tests::record;

    fn append(seq: u64, done: Option<Done>) -> Item {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Item::Append {
            records: Vec::new(),
            rows: vec![record(1, seq).row().unwrap()],
            permit,
            done,
            committed: None,
        }
    }

    fn put(inbox: &Inbox, item: Item) -> bool {
        inbox.put(item, || true).ok().unwrap()
    }

    fn taken(next: Next) -> Option<usize> {
        match next {
            Next::Work(items) => Some(items.len()),
            Next::Linger | Next::Nothing => None,
        }
    }

    #[test]
    fn only_the_first_of_what_nobody_waits_for_wakes_the_actor() {
        let inbox = Inbox::new(16, 8);
        assert!(put(&inbox, append(1, None)), "it sleeps");
        assert!(!put(&inbox, append(2, None)), "it was told");
        assert!(matches!(inbox.next(false, || true), Next::Linger));
        assert!(!put(&inbox, append(3, None)), "it looks when the time is up");
        assert_eq!(taken(inbox.next(true, || true)), Some(3));
        assert!(!put(&inbox, append(4, None)), "it looks after its commit");
        assert!(matches!(inbox.next(false, || true), Next::Linger));
        assert_eq!(taken(inbox.next(true, || true)), Some(1));
        assert!(matches!(inbox.next(false, || true), Next::Nothing));
        assert!(put(&inbox, append(5, None)), "it sleeps again");
    }

    #[test]
    fn what_somebody_waits_for_wakes_an_actor_that_lingers_once() {
        let inbox = Inbox::new(16, 8);
        put(&inbox, append(1, None));
        assert!(matches!(inbox.next(false, || true), Next::Linger));
        let (done, _answer) = oneshot::channel();
        assert!(put(&inbox, append(2, Some(done))));
        let (done, _answer) = oneshot::channel();
        assert!(!put(&inbox, append(3, Some(done))), "it was told");
        assert_eq!(taken(inbox.next(false, || true)), Some(3));
    }

    #[test]
    fn nothing_lingers_where_there_is_no_room_for_more() {
        let inbox = Inbox::new(16, 3);
        put(&inbox, append(1, None));
        assert!(matches!(inbox.next(false, || true), Next::Linger));
        assert!(inbox.put(append(2, None), || false).ok().unwrap(), "the events are too many");
        assert_eq!(taken(inbox.next(false, || false)), Some(2));
        put(&inbox, append(3, None));
        assert!(matches!(inbox.next(false, || true), Next::Linger));
        assert!(!put(&inbox, append(4, None)));
        assert!(put(&inbox, append(5, None)), "the items fill a batch");
        assert_eq!(taken(inbox.next(false, || true)), Some(3));
    }

    #[test]
    fn a_stream_is_taken_up_again_only_after_what_came_before_was_written() {
        let inbox = Inbox::new(16, 8);
        put(&inbox, append(1, None));
        let (done, _answer) = oneshot::channel();
        let stream = record(1, 1).stream().unwrap();
        put(&inbox, Item::Reopen(stream, done));
        put(&inbox, append(2, None));
        assert_eq!(taken(inbox.next(false, || true)), Some(1));
        assert_eq!(taken(inbox.next(false, || true)), Some(2));
    }

    #[test]
    fn what_is_too_much_or_too_late_is_refused() {
        let inbox = Inbox::new(1, 8);
        put(&inbox, append(1, None));
        assert!(matches!(inbox.put(append(2, None), || true), Err(Refused::Full)));
        inbox.close();
        assert!(matches!(inbox.put(append(3, None), || true), Err(Refused::Closed)));
        assert!(matches!(inbox.next(true, || true), Next::Nothing));
    }
}
