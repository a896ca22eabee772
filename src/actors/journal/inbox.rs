//! The journal actor's queue, behind a lock. An append without a waiter is only queued: it wakes the
//! actor only if the actor would not check the queue in time by itself.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::oneshot;

use super::PendingAppend;
use crate::mutex::lock;
use crate::store::{Error, JournalRow, StreamId};

/// Completes a caller's request.
pub(super) type CompletionSender = oneshot::Sender<Result<(), Error>>;

/// A unit of work for the actor.
pub(super) enum InboxItem {
    /// Rows to write.
    Append { rows: Vec<JournalRow>, append: PendingAppend },
    /// Completes when everything queued before it is on disk.
    Flush(CompletionSender),
    /// Makes a failed stream accept appends again.
    Reopen(StreamId, CompletionSender),
    /// Stops the actor.
    Stop(CompletionSender),
}

impl InboxItem {
    fn is_awaited(&self) -> bool {
        match self {
            InboxItem::Append { append, .. } => append.is_awaited(),
            InboxItem::Flush(_) | InboxItem::Reopen(..) | InboxItem::Stop(_) => true,
        }
    }
}

/// What the actor is doing, as far as senders need to know to decide whether to wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeState {
    /// Idle: any item wakes it.
    Asleep,
    /// Delaying the queued items: an item with a waiter wakes it, and so does an item that fills the
    /// queue or a batch.
    Lingering,
    /// Already woken, or busy; it checks the queue when it is done.
    Awake,
}

/// The actor's next work.
pub(super) enum InboxPoll {
    /// Items to process.
    Ready(Vec<InboxItem>),
    /// Poll again when the delay is over.
    Linger,
    /// The queue is empty.
    Empty,
}

/// Why an item was not queued.
pub(super) enum InboxError {
    /// The queue is at its capacity.
    Full,
    /// The actor has stopped.
    Closed,
}

/// The queued items, in arrival order.
pub(super) struct Inbox {
    inner: Mutex<InboxState>,
    /// The maximum number of queued items.
    capacity: usize,
    /// The number of events that completes a batch, and of items that ends lingering.
    batch: usize,
}

struct InboxState {
    /// Each item, with whether it had a waiter when it was queued.
    items: VecDeque<(InboxItem, bool)>,
    /// How many of them had a waiter.
    awaited: usize,
    wake_state: WakeState,
    closed: bool,
}

impl Inbox {
    pub(super) fn new(capacity: usize, batch: usize) -> Self {
        let inner =
            InboxState { items: VecDeque::new(), awaited: 0, wake_state: WakeState::Asleep, closed: false };
        Self { inner: Mutex::new(inner), capacity, batch }
    }

    /// Queues an item. Returns whether the actor has to be woken. `is_roomy` tells whether the queue has
    /// room for more events; it is called after the item is queued.
    pub(super) fn push(&self, item: InboxItem, is_roomy: impl FnOnce() -> bool) -> Result<bool, InboxError> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(InboxError::Closed);
        }
        if inner.items.len() >= self.capacity {
            return Err(InboxError::Full);
        }
        let awaited = item.is_awaited();
        inner.awaited += usize::from(awaited);
        inner.items.push_back((item, awaited));
        let wake = match inner.wake_state {
            WakeState::Asleep => true,
            WakeState::Lingering => awaited || inner.items.len() >= self.batch || !is_roomy(),
            WakeState::Awake => false,
        };
        if wake {
            inner.wake_state = WakeState::Awake;
        }
        Ok(wake)
    }

    /// The actor's next work. Without `hurry` it lingers while no queued item has a waiter and there is
    /// room for more.
    pub(super) fn poll(&self, hurry: bool, is_roomy: impl FnOnce() -> bool) -> InboxPoll {
        let mut inner = self.lock();
        if inner.items.is_empty() {
            inner.wake_state = WakeState::Asleep;
            return InboxPoll::Empty;
        }
        if !hurry && inner.awaited == 0 && inner.items.len() < self.batch && is_roomy() {
            inner.wake_state = WakeState::Lingering;
            return InboxPoll::Linger;
        }
        inner.wake_state = WakeState::Awake;
        let mut work = Vec::new();
        let mut size = 0;
        while size < self.batch
            && let Some((item, awaited)) = inner.items.pop_front()
        {
            match &item {
                InboxItem::Append { rows, .. } => size += rows.len(),
                // Only items queued after it may see the stream open again.
                InboxItem::Reopen(..) if size > 0 => {
                    inner.items.push_front((item, awaited));
                    break;
                }
                InboxItem::Flush(_) | InboxItem::Reopen(..) | InboxItem::Stop(_) => {}
            }
            inner.awaited -= usize::from(awaited);
            work.push(item);
        }
        InboxPoll::Ready(work)
    }

    /// Refuses further items and drops the queued ones.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.awaited = 0;
        let left = std::mem::take(&mut inner.items);
        // Outside the lock, because dropping an item answers its waiter.
        drop(inner);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        lock(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::store::tests::record;

    fn append(seq: u64, done: Option<CompletionSender>) -> InboxItem {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let append = PendingAppend { records: Vec::new(), permit, done, commit_hook: None };
        InboxItem::Append { rows: vec![record(1, seq).to_row().unwrap()], append }
    }

    fn put(inbox: &Inbox, item: InboxItem) -> bool {
        inbox.push(item, || true).ok().unwrap()
    }

    fn ready_count(next: InboxPoll) -> Option<usize> {
        match next {
            InboxPoll::Ready(items) => Some(items.len()),
            InboxPoll::Linger | InboxPoll::Empty => None,
        }
    }

    #[test]
    fn first_unawaited_item_wakes_the_sleeping_actor() {
        let inbox = Inbox::new(16, 8);
        assert!(put(&inbox, append(1, None)), "it is idle");
        assert!(!put(&inbox, append(2, None)), "it was woken");
        assert!(matches!(inbox.poll(false, || true), InboxPoll::Linger));
        assert!(!put(&inbox, append(3, None)), "it polls when the delay is over");
        assert_eq!(ready_count(inbox.poll(true, || true)), Some(3));
        assert!(!put(&inbox, append(4, None)), "it polls after its commit");
        assert!(matches!(inbox.poll(false, || true), InboxPoll::Linger));
        assert_eq!(ready_count(inbox.poll(true, || true)), Some(1));
        assert!(matches!(inbox.poll(false, || true), InboxPoll::Empty));
        assert!(put(&inbox, append(5, None)), "it is idle again");
    }

    #[test]
    fn awaited_item_wakes_lingering_actor_once() {
        let inbox = Inbox::new(16, 8);
        put(&inbox, append(1, None));
        assert!(matches!(inbox.poll(false, || true), InboxPoll::Linger));
        let (done, _answer) = oneshot::channel();
        assert!(put(&inbox, append(2, Some(done))));
        let (done, _answer) = oneshot::channel();
        assert!(!put(&inbox, append(3, Some(done))), "it was woken");
        assert_eq!(ready_count(inbox.poll(false, || true)), Some(3));
    }

    #[test]
    fn full_queue_or_batch_ends_lingering() {
        let inbox = Inbox::new(16, 3);
        put(&inbox, append(1, None));
        assert!(matches!(inbox.poll(false, || true), InboxPoll::Linger));
        assert!(inbox.push(append(2, None), || false).ok().unwrap(), "the queue has no room for more events");
        assert_eq!(ready_count(inbox.poll(false, || false)), Some(2));
        put(&inbox, append(3, None));
        assert!(matches!(inbox.poll(false, || true), InboxPoll::Linger));
        assert!(!put(&inbox, append(4, None)));
        assert!(put(&inbox, append(5, None)), "the items fill a batch");
        assert_eq!(ready_count(inbox.poll(false, || true)), Some(3));
    }

    #[test]
    fn stream_reopens_only_after_earlier_appends() {
        let inbox = Inbox::new(16, 8);
        put(&inbox, append(1, None));
        let (done, _answer) = oneshot::channel();
        let stream = record(1, 1).stream().unwrap();
        put(&inbox, InboxItem::Reopen(stream, done));
        put(&inbox, append(2, None));
        assert_eq!(ready_count(inbox.poll(false, || true)), Some(1));
        assert_eq!(ready_count(inbox.poll(false, || true)), Some(2));
    }

    #[test]
    fn full_or_closed_inbox_refuses_items() {
        let inbox = Inbox::new(1, 8);
        put(&inbox, append(1, None));
        assert!(matches!(inbox.push(append(2, None), || true), Err(InboxError::Full)));
        inbox.close();
        assert!(matches!(inbox.push(append(3, None), || true), Err(InboxError::Closed)));
        assert!(matches!(inbox.poll(true, || true), InboxPoll::Empty));
    }
}
