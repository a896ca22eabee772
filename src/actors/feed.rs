//! The answer of a run as far as it was written, for any number of readers, each at its own pace.
//!
//! One text is shared; a reader holds a place in it and copies what is behind that place. So nobody
//! who writes waits for anybody who reads, and what a slow reader holds up is itself. A text that turns
//! out not to be the answer is taken back: its *generation* ends, and readers begin anew.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::llm::{Listener, Sink};
use crate::planner::Shown;
use crate::run::{Event, Reply};

/// Most bytes of an answer that are shown before it is journalled; a provider's whole reply is not
/// longer.
const MAX_SHOWN_BYTES: usize = 4 * 1024 * 1024;

/// The answer so far; see the module.
#[derive(Debug)]
pub(crate) struct Feed {
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
    /// Who is shown what happens, just now.
    readers: AtomicUsize,
}

/// One who is shown what happens, as long as this is held.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Feed>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Default)]
struct Inner {
    text: String,
    /// Raised when a text that was shown is taken back.
    generation: u64,
    /// The number of the run's last event when this generation began.
    born: u64,
    /// Bytes of the longest text of earlier generations.
    older: usize,
    /// The number of the run's last event.
    seq: u64,
    /// That of the first event that was journalled here; 0 before.
    first: u64,
    /// What that was when the text began.
    since: u64,
    /// Which writer may write: the one that was made last.
    writer: u64,
    /// A piece found no room: what comes behind it would not join on.
    full: bool,
    /// The answer is known, or there will be none.
    closed: bool,
}

/// A reader's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Of which generation it has read; `None` where that is not known.
    pub(crate) generation: Option<u64>,
    /// How many bytes it has.
    pub(crate) offset: usize,
}

/// What a reader gets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What it had is not the answer.
    pub(crate) reset: bool,
    /// What comes behind what it has.
    pub(crate) text: String,
}

impl Feed {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::default(), changed: watch::Sender::new(()), readers: AtomicUsize::new(0) }
    }

    /// One more is shown what happens.
    pub(crate) fn reading(self: &Arc<Self>) -> Reading {
        self.readers.fetch_add(1, Relaxed);
        Reading(self.clone())
    }

    /// Whether somebody is shown what happens.
    pub(crate) fn is_read(&self) -> bool {
        self.readers.load(Relaxed) > 0
    }

    /// Wakes its receiver after each change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The same for a reader that has every event.
    #[cfg(test)]
    pub(crate) fn read(&self, cursor: &mut Cursor) -> Piece {
        self.lock().read(cursor)
    }

    /// What `cursor` has not, which moves behind it, for a reader that has the run's events up to `seq`;
    /// `None` where there are words that were written after a later event: it has to have that first.
    pub(crate) fn read_after(&self, seq: u64, cursor: &mut Cursor) -> Option<Piece> {
        let inner = self.lock();
        let begun = inner.text.is_empty() || inner.since <= seq;
        begun.then(|| inner.read(cursor))
    }

    /// The place of a reader that had `offset` bytes when the run's last event was `seq`. Where these
    /// may be of a text that was taken back, or that somebody else wrote before, its generation is unknown.
    pub(crate) fn resume(&self, seq: u64, offset: usize) -> Cursor {
        let inner = self.lock();
        let fits = inner.text.is_char_boundary(offset);
        let current = inner.generation == 0 || seq > inner.born || offset > inner.older;
        // Words come behind their question.
        let ours = seq >= inner.first;
        Cursor { generation: (fits && current && ours).then_some(inner.generation), offset }
    }

    /// Whether what `cursor` has is how `text` begins.
    pub(crate) fn agrees(&self, cursor: Cursor, text: &str) -> bool {
        let inner = self.lock();
        let had = inner.text.get(..cursor.offset);
        cursor.generation == Some(inner.generation) && had.is_some_and(|had| text.starts_with(had))
    }

    /// Whether the answer is known, or there will be none.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// An event was journalled. With `answered` the text is exactly the journal's; with whatever
    /// tells that the text was not the answer it is taken back.
    pub(crate) fn journalled(&self, seq: u64, event: &Event) {
        let mut inner = self.lock();
        // First, so that a generation that begins now is younger than what readers hold by then.
        inner.seq = seq;
        if inner.first == 0 {
            inner.first = seq;
        }
        if inner.closed {
            return;
        }
        match event {
            Event::Answered { text, .. } => {
                inner.writer += 1;
                inner.closed = true;
                inner.full = false;
                inner.become_text(text);
            }
            Event::ModelAsked { .. } | Event::ModelFailed { .. } | Event::ReplyRejected { .. } => {
                inner.writer += 1;
                inner.take_back();
            }
            Event::Continuation { verdict, .. } if verdict.answer.is_none() => inner.take_back(),
            last if last.is_terminal() => {
                inner.writer += 1;
                inner.closed = true;
                inner.take_back();
            }
            _ => return,
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// Where a model's reply goes while it comes. It may be told until the next question is asked, or
    /// the answer is known.
    pub(crate) fn sink(self: &Arc<Self>, shown: Shown) -> Sink {
        let mut inner = self.lock();
        inner.writer += 1;
        Sink::to(Arc::new(Writer { feed: self.clone(), number: inner.writer, shown: Mutex::new(shown) }))
    }

    /// Changes the text for the writer of that number, if it still may.
    fn write(&self, writer: u64, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        if inner.closed || inner.writer != writer {
            return;
        }
        change(&mut inner);
        drop(inner);
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way, so a poisoned text is still whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn read(&self, cursor: &mut Cursor) -> Piece {
        let mut piece = Piece::default();
        let rest = match self.text.get(cursor.offset..) {
            Some(rest) if cursor.generation == Some(self.generation) => rest,
            _ => {
                piece.reset = cursor.offset > 0;
                self.text.as_str()
            }
        };
        piece.text.push_str(rest);
        *cursor = Cursor { generation: Some(self.generation), offset: self.text.len() };
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
            self.since = self.seq;
        }
        self.text.push_str(piece);
    }

    fn take_back(&mut self) {
        self.full = false;
        if self.text.is_empty() {
            return;
        }
        self.older = self.older.max(self.text.len());
        self.generation += 1;
        self.born = self.seq;
        self.text.clear();
    }

    fn become_text(&mut self, text: &str) {
        match text.strip_prefix(self.text.as_str()) {
            Some(rest) => self.add(rest),
            None => {
                self.take_back();
                self.add(text);
            }
        }
    }
}

/// Shows of one question's reply what is the answer.
struct Writer {
    feed: Arc<Feed>,
    number: u64,
    shown: Mutex<Shown>,
}

impl Writer {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, piece: &str) {
        if !piece.is_empty() {
            self.feed.write(self.number, |inner| inner.push(piece));
        }
    }
}

impl Listener for Writer {
    fn restart(&self) {
        self.shown().restart();
        self.feed.write(self.number, Inner::take_back);
    }

    fn text(&self, piece: &str) {
        let piece = self.shown().text(piece);
        self.push(&piece);
    }

    fn arguments(&self, call: usize, name: &str, piece: &str) {
        let piece = self.shown().arguments(call, name, piece);
        self.push(&piece);
    }

    fn whole(&self, reply: &Reply) {
        let text = self.shown().whole(reply);
        if text.len() <= MAX_SHOWN_BYTES {
            self.feed.write(self.number, |inner| inner.become_text(&text));
        }
    }
}

#[cfg(test)]
mod tests;
