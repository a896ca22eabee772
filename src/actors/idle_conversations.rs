//! Idle conversations with short streams, which are quick to load again: a bounded number of them stays in memory. Most
//! requests of clients without conversations open a session that is never used again. There may be a thousand of these a
//! second, each of which would stay in memory for a minute. Longer conversations are not counted here, because loading them
//! again takes longer.

use std::sync::{Arc, Mutex};

use actix::prelude::*;

use crate::conversation::IdleTable;
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
        let left = lock(&self.table).leave(self.number);
        // Outside of the lock.
        drop(left);
    }
}
