//! The answer of a run while it is generated, for any number of readers at their own pace.
//!
//! All readers share one text; each holds a cursor and copies what follows it. Writers never wait for
//! readers, and a slow reader delays only itself. A text that turns out not to be the answer is
//! retracted: its *generation* ends and readers start over.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use crate::llm::{Listener, Sink};
use crate::mutex::lock;
use crate::planner::AnswerPreview;
use crate::run::{Event, Reply};

/// How many bytes of an answer are shown before it is journalled. A provider's reply is never longer.
const MAX_SHOWN_BYTES: usize = 4 * 1024 * 1024;

/// The answer so far; see the module documentation.
#[derive(Debug)]
pub(crate) struct AnswerFeed {
    inner: Mutex<FeedState>,
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

#[derive(Debug, Default)]
struct FeedState {
    text: String,
    /// Incremented when a shown text is retracted.
    generation: u64,
    /// The sequence number of the run's last event when this generation began.
    generation_start_seq: u64,
    /// The length in bytes of the longest text of earlier generations.
    longest_retracted: usize,
    /// The sequence number of the run's last event.
    seq: u64,
    /// The sequence number of the first event journalled by this process; 0 before it.
    first_seq: u64,
    /// The run's last sequence number when the text began.
    text_start_seq: u64,
    /// The number of the only writer that may write: the latest one.
    writer: u64,
    /// Whether a piece was dropped for lack of room. Later pieces would leave a gap.
    full: bool,
    /// Whether the answer is final, or there will be none.
    closed: bool,
}

/// A reader's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeedCursor {
    /// The generation it has read, if known.
    pub(crate) generation: Option<u64>,
    /// How many bytes it has read.
    pub(crate) offset: usize,
}

/// The next part of the answer for one reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedChunk {
    /// Whether what the reader has so far was retracted.
    pub(crate) reset: bool,
    /// The text after the reader's position.
    pub(crate) text: String,
}

impl AnswerFeed {
    pub(crate) fn new() -> Self {
        let (readers, followers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { inner: Mutex::default(), changed: watch::Sender::new(()), readers, followers }
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
    pub(crate) fn read(&self, cursor: &mut FeedCursor) -> FeedChunk {
        self.lock().read(cursor)
    }

    /// Reads what follows `cursor` and advances it, for a reader that has the run's events up to `seq`.
    /// Returns `None` if the text was written after a later event, which the reader has to receive first.
    pub(crate) fn read_after(&self, seq: u64, cursor: &mut FeedCursor) -> Option<FeedChunk> {
        let inner = self.lock();
        let has_begun = inner.text.is_empty() || inner.text_start_seq <= seq;
        has_begun.then(|| inner.read(cursor))
    }

    /// The position of a reader that had `offset` bytes when the run's last event was `seq`. The generation
    /// is unknown if these bytes may belong to a retracted text or to the text of an earlier process.
    pub(crate) fn resume(&self, seq: u64, offset: usize) -> FeedCursor {
        let inner = self.lock();
        let fits = inner.text.is_char_boundary(offset);
        let current =
            inner.generation == 0 || seq > inner.generation_start_seq || offset > inner.longest_retracted;
        // Text always follows the event of its model call.
        let ours = seq >= inner.first_seq;
        FeedCursor { generation: (fits && current && ours).then_some(inner.generation), offset }
    }

    /// Returns whether what `cursor` has read is a prefix of `text`.
    pub(crate) fn matches_prefix(&self, cursor: FeedCursor, text: &str) -> bool {
        let inner = self.lock();
        let had = inner.text.get(..cursor.offset);
        cursor.generation == Some(inner.generation) && had.is_some_and(|had| text.starts_with(had))
    }

    /// Returns whether the answer is final, or there will be none.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Applies a journalled event. `answered` sets the text to exactly the journal's; an event that shows
    /// that the text is not the answer retracts it.
    pub(crate) fn apply_event(&self, seq: u64, event: &Event) {
        let mut inner = self.lock();
        // First, so that a generation that begins now is newer than every reader's position.
        inner.seq = seq;
        if inner.first_seq == 0 {
            inner.first_seq = seq;
        }
        if inner.closed {
            return;
        }
        match event {
            Event::Answered { text, .. } => {
                inner.writer += 1;
                inner.closed = true;
                inner.full = false;
                inner.replace_text(text);
            }
            Event::ModelAsked { .. } | Event::ModelFailed { .. } | Event::ReplyRejected { .. } => {
                inner.writer += 1;
                inner.retract();
            }
            Event::Continuation { verdict, .. } if verdict.answer.is_none() => inner.retract(),
            last if last.is_terminal() => {
                inner.writer += 1;
                inner.closed = true;
                inner.retract();
            }
            _ => return,
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// The sink of a model's streamed reply. It is active until the next model call or the final answer.
    pub(crate) fn sink(self: &Arc<Self>, shown: AnswerPreview) -> Sink {
        let mut inner = self.lock();
        inner.writer += 1;
        Sink::to(Arc::new(FeedWriter { feed: self.clone(), number: inner.writer, shown: Mutex::new(shown) }))
    }

    /// Applies a writer's change, if that writer is still the active one.
    fn update(&self, writer: u64, change: impl FnOnce(&mut FeedState)) {
        let mut inner = self.lock();
        if inner.closed || inner.writer != writer {
            return;
        }
        change(&mut inner);
        drop(inner);
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        lock(&self.inner)
    }
}

impl FeedState {
    fn read(&self, cursor: &mut FeedCursor) -> FeedChunk {
        let mut piece = FeedChunk::default();
        let rest = match self.text.get(cursor.offset..) {
            Some(rest) if cursor.generation == Some(self.generation) => rest,
            _ => {
                piece.reset = cursor.offset > 0;
                self.text.as_str()
            }
        };
        piece.text.push_str(rest);
        *cursor = FeedCursor { generation: Some(self.generation), offset: self.text.len() };
        piece
    }

    fn push(&mut self, piece: &str) {
        self.full |= self.text.len() + piece.len() > MAX_SHOWN_BYTES;
        if !self.full {
            self.add(piece);
        }
    }

    fn add(&mut self, piece: &str) {
        if self.text.is_empty() {
            self.text_start_seq = self.seq;
        }
        self.text.push_str(piece);
    }

    fn retract(&mut self) {
        self.full = false;
        if self.text.is_empty() {
            return;
        }
        self.longest_retracted = self.longest_retracted.max(self.text.len());
        self.generation += 1;
        self.generation_start_seq = self.seq;
        self.text.clear();
    }

    fn replace_text(&mut self, text: &str) {
        match text.strip_prefix(self.text.as_str()) {
            Some(rest) => self.add(rest),
            None => {
                self.retract();
                self.add(text);
            }
        }
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
            self.feed.update(self.number, |inner| inner.push(piece));
        }
    }
}

impl Listener for FeedWriter {
    fn has_reader(&self) -> bool {
        self.feed.may_be_read()
    }

    fn restart(&self) {
        self.shown().restart();
        self.feed.update(self.number, FeedState::retract);
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
        let text = self.shown().whole_reply(reply);
        if text.len() <= MAX_SHOWN_BYTES {
            self.feed.update(self.number, |inner| inner.replace_text(&text));
        }
    }
}

#[cfg(test)]
mod tests;
