//! What the conversation remembers: the folds of the session's stream, in its order, and its owner.

use std::collections::BTreeMap;

use crate::memory::{self, FactLedger, Memory};
use crate::run::SessionEvent;

#[derive(Debug)]
pub(super) struct SessionHistory {
    memory: Memory,
    ledger: FactLedger,
    /// The sequence number of the last event in `memory`.
    last: u64,
    /// Events that arrived before an earlier one: several runs may end at once.
    early: BTreeMap<u64, SessionEvent>,
    /// The user of its first request, once that is in the journal.
    pub(super) owner: Option<String>,
}

impl SessionHistory {
    pub(super) fn new(options: memory::Options) -> Self {
        Self {
            memory: Memory::new(options),
            ledger: FactLedger::default(),
            last: 0,
            early: BTreeMap::new(),
            owner: None,
        }
    }

    /// Takes the events of the stream that are not in the memory yet, in any order.
    pub(super) fn extend(&mut self, events: Vec<(u64, SessionEvent)>) {
        for (seq, event) in events {
            if seq == self.last + 1 {
                self.apply(&event);
            } else if seq > self.last {
                self.early.insert(seq, event);
            }
        }
        while let Some(event) = self.early.remove(&(self.last + 1)) {
            self.apply(&event);
        }
        // A whole stream, read after a panic, has them, too.
        self.early.retain(|seq, _| *seq > self.last);
        if self.early.is_empty() {
            // An emptied map keeps a node of several kilobytes, for as long as the conversation is awake.
            self.early = BTreeMap::new();
        }
    }

    fn apply(&mut self, event: &SessionEvent) {
        self.last += 1;
        self.memory.apply(event);
        self.ledger.apply(self.last, event);
    }

    /// Whether an event is known that follows one which is not: the run that appended it has not been reported yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.early.is_empty()
    }

    pub(super) fn ledger(&self) -> &FactLedger {
        &self.ledger
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }
}
