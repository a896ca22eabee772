//! What the conversation remembers: the folds of the session's stream, in its order, and its owner.

use std::collections::BTreeMap;

use crate::memory::{self, FactCounts, FactLedger, Memory};
use crate::run::SessionEvent;

#[derive(Debug)]
pub(super) struct SessionHistory {
    memory: Memory,
    ledger: FactLedger,
    /// What of the ledger was counted, or was there before this process read it.
    counted: FactCounts,
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
            counted: FactCounts::default(),
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

    /// Takes the events of the store, as [`SessionHistory::extend`]. Their facts were counted when they were recorded.
    pub(super) fn load(&mut self, events: Vec<(u64, SessionEvent)>) {
        self.extend(events);
        self.counted = self.ledger.counts();
    }

    /// The facts that were recorded since this was last asked.
    pub(super) fn take_new_facts(&mut self) -> FactCounts {
        let counts = self.ledger.counts();
        counts.since(&std::mem::replace(&mut self.counted, counts))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{FactKind, FactSource, StatedFact};

    fn stated(claim: &str) -> SessionEvent {
        let at = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
        let (kind, source, hash) = (FactKind::Given, FactSource::default(), String::new());
        let claim = claim.to_owned();
        let fact =
            StatedFact { kind, claim, source, hash, supersedes: None, replaces: None, confidence: None, at };
        SessionEvent::Fact { fact }
    }

    #[test]
    fn facts_are_new_once_and_never_if_the_store_had_them() {
        let mut history = SessionHistory::new(memory::Options::default());
        history.load(vec![(1, stated("a")), (2, stated("b"))]);
        assert_eq!(history.take_new_facts(), FactCounts::default());
        // The fourth event comes first, and waits.
        history.extend(vec![(4, stated("d"))]);
        assert_eq!(history.take_new_facts(), FactCounts::default());
        history.extend(vec![(2, stated("b")), (3, stated("c"))]);
        assert_eq!(history.take_new_facts().recorded, [2, 0, 0, 0, 0]);
        assert_eq!(history.take_new_facts(), FactCounts::default());
    }
}
