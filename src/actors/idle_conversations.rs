//! Idle conversations with short streams, which are quick to load again: a bounded number of them stays in memory. Most
//! requests of clients without conversations open a session that is never used again. There may be a thousand of these a
//! second, each of which would stay in memory for a minute. Longer conversations are not counted here, because loading them
//! again takes longer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix::prelude::*;

use crate::mutex::lock;

/// Maximum number of events in a short stream: that of a conversation with one turn.
pub(crate) const SHORT_STREAM: u64 = 1;

/// Asks a conversation to end its actor now, if it has nothing to do.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct UnloadMessage;

/// The idle conversations of one engine with short streams. Shared by its clones.
#[derive(Clone)]
pub(crate) struct IdleConversations {
    max: usize,
    table: Arc<Mutex<IdleTable<Recipient<UnloadMessage>>>>,
}

impl IdleConversations {
    /// Room for `max` conversations.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, table: Arc::default() }
    }

    /// Adds a conversation that is idle until it drops the returned place. If there are too many, asks those that have been
    /// idle longest to unload.
    pub(crate) fn enter(&self, conversation: Recipient<UnloadMessage>) -> IdlePlace {
        let (number, over) = lock(&self.table).enter(conversation, self.max);
        for conversation in over {
            // One that has ended needs nothing, and one with a full mailbox is not idle: it enters again.
            let _ = conversation.try_send(UnloadMessage);
        }
        IdlePlace { number, table: self.table.clone() }
    }
}

/// The place of a conversation among the idle ones.
pub(crate) struct IdlePlace {
    number: u64,
    table: Arc<Mutex<IdleTable<Recipient<UnloadMessage>>>>,
}

impl Drop for IdlePlace {
    fn drop(&mut self) {
        let left = lock(&self.table).waiting.remove(&self.number);
        // Outside of the lock.
        drop(left);
    }
}

/// The idle conversations, in the order in which they became idle.
struct IdleTable<T> {
    last: u64,
    waiting: BTreeMap<u64, T>,
}

impl<T> Default for IdleTable<T> {
    fn default() -> Self {
        Self { last: 0, waiting: BTreeMap::new() }
    }
}

impl<T> IdleTable<T> {
    /// Enters one. Returns its number and, if there are more than `max` then, those that came first: a sixteenth at a time,
    /// since a thread that is woken for each costs more than what it does.
    fn enter(&mut self, one: T, max: usize) -> (u64, Vec<T>) {
        self.last += 1;
        self.waiting.insert(self.last, one);
        let mut over = Vec::new();
        if self.waiting.len() > max {
            let staying = max - max / 16;
            while self.waiting.len() > staying
                && let Some((_, first)) = self.waiting.pop_first()
            {
                over.push(first);
            }
        }
        (self.last, over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_came_first_leave_when_there_are_too_many() {
        let mut table = IdleTable::default();
        let numbers: Vec<u64> = (0..32)
            .map(|one| table.enter(one, 32))
            .map(|(number, over)| {
                assert!(over.is_empty());
                number
            })
            .collect();
        // The second is in use again.
        table.waiting.remove(&numbers[1]);
        assert!(table.enter(32, 32).1.is_empty());
        assert_eq!(table.enter(33, 32).1, [0, 2, 3]);
        assert_eq!(table.waiting.len(), 30);
    }

    #[test]
    fn without_room_each_leaves_at_once() {
        let mut table = IdleTable::default();
        assert_eq!(table.enter('a', 0).1, ['a']);
        assert!(table.enter('b', 1).1.is_empty());
        assert_eq!(table.enter('c', 1).1, ['b']);
    }
}
