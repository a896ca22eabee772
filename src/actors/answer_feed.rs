//! The answer of a run while it is generated, for any number of readers at their own pace.
//!
//! All readers share one [`AnswerText`], which says what is shown; each holds a cursor and copies what follows it. Writers
//! never wait for readers, and a slow reader delays only itself.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::llm::{Listener, Sink};
use crate::mutex::lock;
use crate::planner::AnswerPreview;
use crate::run::{AnswerChunk, AnswerCursor, AnswerText, Event, Reply};

/// The answer so far; see the module documentation.
#[derive(Debug)]
pub(crate) struct AnswerFeed {
    text: Mutex<AnswerText>,
    changed: watch::Sender<()>,
    /// The number of current readers.
    readers: AtomicUsize,
    /// The number of callers that may become readers.
    followers: AtomicUsize,
}

/// Counts one reader of the feed until it is dropped.
#[derive(Debug)]
pub(crate) struct FeedReaderGuard(Arc<AnswerFeed>);

impl Drop for FeedReaderGuard {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Relaxed);
    }
}

/// Counts a caller that may become a reader, until it is dropped: it has not said yet that it only waits for the whole
/// answer.
#[derive(Debug)]
pub(crate) struct FeedFollowerGuard(Arc<AnswerFeed>);

impl Drop for FeedFollowerGuard {
    fn drop(&mut self) {
        self.0.followers.fetch_sub(1, Relaxed);
    }
}

impl AnswerFeed {
    pub(crate) fn new() -> Self {
        let (readers, followers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { text: Mutex::default(), changed: watch::Sender::new(()), readers, followers }
    }

    pub(crate) fn add_reader(self: &Arc<Self>) -> FeedReaderGuard {
        self.readers.fetch_add(1, Relaxed);
        FeedReaderGuard(self.clone())
    }

    /// Registers a caller that may become a reader.
    pub(crate) fn add_follower(self: &Arc<Self>) -> FeedFollowerGuard {
        self.followers.fetch_add(1, Relaxed);
        FeedFollowerGuard(self.clone())
    }

    /// Returns whether there is any reader, or may soon be one.
    pub(crate) fn may_be_read(&self) -> bool {
        self.has_readers() || self.followers.load(Relaxed) > 0
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.readers.load(Relaxed) > 0
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Like [`read_after`](Self::read_after), for a reader that has every event.
    #[cfg(test)]
    pub(crate) fn read(&self, cursor: &mut AnswerCursor) -> AnswerChunk {
        self.lock().read(cursor)
    }

    /// Reads what follows `cursor` and advances it, for a reader that has the run's events up to `seq`.
    /// Returns `None` if the text was written after a later event, which the reader has to receive first.
    pub(crate) fn read_after(&self, seq: u64, cursor: &mut AnswerCursor) -> Option<AnswerChunk> {
        self.lock().read_after(seq, cursor)
    }

    /// The position of a reader that had `offset` bytes when the run's last event was `seq`.
    pub(crate) fn resume(&self, seq: u64, offset: usize) -> AnswerCursor {
        self.lock().resume(seq, offset)
    }

    /// Returns whether what `cursor` has read is a prefix of `text`.
    pub(crate) fn matches_prefix(&self, cursor: AnswerCursor, text: &str) -> bool {
        self.lock().matches_prefix(cursor, text)
    }

    /// Returns whether the answer is final, or there will be none.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed()
    }

    /// Applies a journalled event.
    pub(crate) fn apply_event(&self, seq: u64, event: &Event) {
        let is_changed = self.lock().apply_event(seq, event);
        if is_changed {
            self.changed.send_replace(());
        }
    }

    /// The sink of a model's streamed reply. It is active until the next model call or the final answer.
    pub(crate) fn sink(self: &Arc<Self>, shown: AnswerPreview) -> Sink {
        let number = self.lock().begin_writer();
        Sink::to(Arc::new(FeedWriter { feed: self.clone(), number, shown: Mutex::new(shown) }))
    }

    /// Applies a writer's change, if that writer is still the active one.
    fn update(&self, writer: u64, change: impl FnOnce(&mut AnswerText)) {
        let mut text = self.lock();
        if !text.is_active(writer) {
            return;
        }
        change(&mut text);
        drop(text);
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, AnswerText> {
        lock(&self.text)
    }
}

/// Writes the answer part of one model reply to the feed.
struct FeedWriter {
    feed: Arc<AnswerFeed>,
    number: u64,
    shown: Mutex<AnswerPreview>,
}

impl FeedWriter {
    fn shown(&self) -> MutexGuard<'_, AnswerPreview> {
        lock(&self.shown)
    }

    fn push(&self, piece: &str) {
        if !piece.is_empty() {
            self.feed.update(self.number, |text| text.push(piece));
        }
    }
}

impl Listener for FeedWriter {
    fn has_reader(&self) -> bool {
        self.feed.may_be_read()
    }

    fn restart(&self) {
        self.shown().restart();
        self.feed.update(self.number, AnswerText::retract);
    }

    fn text(&self, piece: &str) {
        let piece = self.shown().push_text(piece);
        self.push(&piece);
    }

    fn arguments(&self, call: usize, name: &str, piece: &str) {
        let piece = self.shown().push_arguments(call, name, piece);
        self.push(&piece);
    }

    fn whole(&self, reply: &Reply) {
        let whole = self.shown().whole_reply(reply);
        self.feed.update(self.number, |text| text.show_whole(&whole));
    }
}

#[cfg(test)]
mod tests;
