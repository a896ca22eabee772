//! A place in a text, in bytes.

use serde::{Deserialize, Serialize};

/// A range of bytes of a text, on boundaries of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ByteSpan {
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

impl ByteSpan {
    /// The bytes from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u64, end: end as u64 }
    }

    /// How many bytes it has.
    pub fn len(self) -> usize {
        usize::try_from(self.end.saturating_sub(self.start)).unwrap_or(usize::MAX)
    }

    /// Returns whether it has no byte.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The text at this place; `None` where the text has no such place.
    pub fn of(self, text: &str) -> Option<&str> {
        text.get(usize::try_from(self.start).ok()?..usize::try_from(self.end).ok()?)
    }

    /// The same place of a text that begins `by` bytes earlier.
    pub fn moved(self, by: u64) -> Self {
        Self { start: self.start.saturating_add(by), end: self.end.saturating_add(by) }
    }
}

/// The place of the text without blanks at its beginning and end.
pub(super) fn trimmed(text: &str, span: ByteSpan) -> ByteSpan {
    let Some(own) = span.of(text) else { return span };
    let start = own.len() - own.trim_start().len();
    let len = own.trim().len();
    ByteSpan { start: span.start + start as u64, end: span.start + (start + len) as u64 }
}
