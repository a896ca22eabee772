//! The end of a session's stream, to which its conversation and the drivers of its runs append.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::run::SessionEvent;

/// The end of a session's stream, locked by the writer that appends.
pub(crate) type SharedStreamEnd = Arc<Mutex<StreamEnd>>;

/// The end of a session's stream.
///
/// Each writer tells the conversation what it appended, and these reports may overtake each other. When a user has read the
/// answer of a run, the next request must know that turn and every event before it. So a driver reports with its turn what
/// others appended before.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    /// The last sequence number.
    last: u64,
    /// The last events, of which the conversation may not know yet.
    unreported: Vec<(u64, SessionEvent)>,
}

impl StreamEnd {
    /// The end of a stream whose last event is this one. The conversation knows its events, or learns them in another way.
    pub(crate) fn at(last: u64) -> Self {
        Self { last, unreported: Vec::new() }
    }

    /// The last sequence number.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// These events were appended.
    pub(crate) fn appended(&mut self, events: impl IntoIterator<Item = (u64, SessionEvent)>) {
        self.unreported.extend(events);
        self.last = self.unreported.last().map_or(self.last, |(seq, _)| self.last.max(*seq));
    }

    /// The last events that the conversation may not know, in order.
    pub(crate) fn unreported(&self) -> &[(u64, SessionEvent)] {
        &self.unreported
    }

    /// The conversation knows the events up to this one.
    pub(crate) fn is_known_through(&mut self, seq: u64) {
        if !self.unreported.is_empty() {
            self.unreported.retain(|(own, _)| *own > seq);
        }
        if self.unreported.is_empty() {
            // An emptied vector keeps its room.
            self.unreported = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_unreported_until_the_conversation_knows_them() {
        let mut end = StreamEnd::at(3);
        let started = |seq| (seq, SessionEvent::SessionStarted {});
        end.appended([started(4), started(5)]);
        end.appended([started(6)]);
        assert_eq!((end.last(), end.unreported().len()), (6, 3));
        end.is_known_through(4);
        assert_eq!(end.unreported(), [started(5), started(6)]);
        end.is_known_through(6);
        assert_eq!((end.last(), end.unreported().len()), (6, 0));
    }
}
