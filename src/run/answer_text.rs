//! The text that is shown as the answer while it is generated: what is added, what is retracted, and what a reader with a
//! cursor has not read. A text that turns out not to be the answer is retracted: its *generation* ends and readers start over.

use super::event::Event;

/// The text that is shown as the answer, until it is final.
#[derive(Debug, Default)]
pub(crate) struct AnswerText {
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
pub(crate) struct AnswerCursor {
    /// The generation it has read, if known.
    pub(crate) generation: Option<u64>,
    /// How many bytes it has read.
    pub(crate) offset: usize,
}

/// The next part of the answer for one reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerChunk {
    /// Whether what the reader has so far was retracted.
    pub(crate) reset: bool,
    /// The text after the reader's position.
    pub(crate) text: String,
}

impl AnswerText {
    /// How many bytes of an answer are shown before it is journalled. A provider's reply is never longer.
    pub(crate) const MAX_BYTES: usize = 4 * 1024 * 1024;

    /// Returns whether the answer is final, or there will be none.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Applies a journalled event: `answered` sets the text to exactly the journal's; an event that shows that the text is
    /// not the answer retracts it. Returns whether readers have to look again.
    pub(crate) fn apply_event(&mut self, seq: u64, event: &Event) -> bool {
        // First, so that a generation that begins now is newer than every reader's position.
        self.seq = seq;
        if self.first_seq == 0 {
            self.first_seq = seq;
        }
        if self.closed {
            return false;
        }
        match event {
            Event::Answered { text, .. } => {
                self.writer += 1;
                self.closed = true;
                self.full = false;
                self.replace_text(text);
            }
            Event::ModelAsked { .. } | Event::ModelFailed { .. } | Event::ReplyRejected { .. } => {
                self.writer += 1;
                self.retract();
            }
            Event::Continuation { verdict, .. } if verdict.answer.is_none() => self.retract(),
            last if last.is_terminal() => {
                self.writer += 1;
                self.closed = true;
                self.retract();
            }
            _ => return false,
        }
        true
    }

    /// The number of a new writer. It is active until the next model call or the final answer.
    pub(crate) fn begin_writer(&mut self) -> u64 {
        self.writer += 1;
        self.writer
    }

    /// Returns whether a writer may change the text.
    pub(crate) fn is_active(&self, writer: u64) -> bool {
        !self.closed && self.writer == writer
    }

    /// Reads what follows `cursor` and advances it, for a reader that has the run's events up to `seq`.
    /// Returns `None` if the text was written after a later event, which the reader has to receive first.
    pub(crate) fn read_after(&self, seq: u64, cursor: &mut AnswerCursor) -> Option<AnswerChunk> {
        let has_begun = self.text.is_empty() || self.text_start_seq <= seq;
        has_begun.then(|| self.read(cursor))
    }

    /// The position of a reader that had `offset` bytes when the run's last event was `seq`. The generation
    /// is unknown if these bytes may belong to a retracted text or to the text of an earlier process.
    pub(crate) fn resume(&self, seq: u64, offset: usize) -> AnswerCursor {
        let fits = self.text.is_char_boundary(offset);
        let current =
            self.generation == 0 || seq > self.generation_start_seq || offset > self.longest_retracted;
        // Text always follows the event of its model call.
        let ours = seq >= self.first_seq;
        AnswerCursor { generation: (fits && current && ours).then_some(self.generation), offset }
    }

    /// Returns whether what `cursor` has read is a prefix of `text`.
    pub(crate) fn matches_prefix(&self, cursor: AnswerCursor, text: &str) -> bool {
        let had = self.text.get(..cursor.offset);
        cursor.generation == Some(self.generation) && had.is_some_and(|had| text.starts_with(had))
    }

    /// Reads what follows `cursor` and advances it, for a reader that has every event.
    pub(crate) fn read(&self, cursor: &mut AnswerCursor) -> AnswerChunk {
        let mut piece = AnswerChunk::default();
        let rest = match self.text.get(cursor.offset..) {
            Some(rest) if cursor.generation == Some(self.generation) => rest,
            _ => {
                piece.reset = cursor.offset > 0;
                self.text.as_str()
            }
        };
        piece.text.push_str(rest);
        *cursor = AnswerCursor { generation: Some(self.generation), offset: self.text.len() };
        piece
    }

    /// Adds a piece, if there is room.
    pub(crate) fn push(&mut self, piece: &str) {
        self.full |= self.text.len() + piece.len() > Self::MAX_BYTES;
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

    /// Takes the text back: it is not the answer.
    pub(crate) fn retract(&mut self) {
        self.full = false;
        if self.text.is_empty() {
            return;
        }
        self.longest_retracted = self.longest_retracted.max(self.text.len());
        self.generation += 1;
        self.generation_start_seq = self.seq;
        self.text.clear();
    }

    /// Shows a whole reply, if there is room.
    pub(crate) fn show_whole(&mut self, text: &str) {
        if text.len() <= Self::MAX_BYTES {
            self.replace_text(text);
        }
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
