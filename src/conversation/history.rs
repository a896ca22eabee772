//! The memory of the conversation: the folds of the session's stream, in its order, and its owner.

use std::collections::BTreeMap;

use super::waiting_history::{OpenHistories, RememberedHistory, WaitingHistory};
use crate::memory::{self, FactCounts, FactLedger, Memory, MemoryFill, SummaryJob};
use crate::run::{RunId, SessionEvent};

/// The folds may be packed, because an awake conversation mostly waits for its user. So every input reads only a few
/// figures of them, the outline.
#[derive(Debug)]
pub(super) struct SessionHistory {
    options: memory::Options,
    folds: WaitingHistory,
    outline: HistoryOutline,
    /// The facts that [`SessionHistory::take_new_facts`] has returned, and those of the store.
    counted: FactCounts,
    /// The sequence number of the last event that was folded.
    last: u64,
    /// Events that arrived before an earlier one: several runs may end at once.
    early: BTreeMap<u64, SessionEvent>,
    /// The user of its first request, once that is in the journal.
    pub(super) owner: Option<String>,
}

/// The figures that every input reads. Answers that depend on the context window are not among them, only what they are
/// computed from: the window may change.
#[derive(Debug, PartialEq, Eq)]
struct HistoryOutline {
    fill: MemoryFill,
    counts: FactCounts,
    cost_nano_usd: u64,
    /// The run of the pending question, where a plain yes confirms something.
    asked_by: Option<RunId>,
    /// Whether a plain yes confirms something.
    confirms: bool,
}

impl HistoryOutline {
    fn of(memory: &Memory, ledger: &FactLedger) -> Self {
        let pending = memory.pending();
        Self {
            fill: memory.fill(),
            counts: ledger.counts(),
            cost_nano_usd: memory.usage().cost_nano_usd,
            asked_by: pending.and_then(|pending| pending.run),
            confirms: pending.is_some_and(|pending| !pending.unconfirmed.is_empty()),
        }
    }
}

impl SessionHistory {
    pub(super) fn new(options: memory::Options, open: OpenHistories) -> Self {
        let memory = Memory::new(options.clone());
        let outline = HistoryOutline::of(&memory, &FactLedger::default());
        Self {
            options,
            folds: WaitingHistory::new(memory, open),
            outline,
            counted: FactCounts::default(),
            last: 0,
            early: BTreeMap::new(),
            owner: None,
        }
    }

    /// Takes the events of the stream that are not folded yet, in any order.
    pub(super) fn extend(&mut self, events: Vec<(u64, SessionEvent)>) {
        let last = self.last;
        self.early.extend(events.into_iter().filter(|(seq, _)| *seq > last));
        if self.early.contains_key(&(last + 1)) {
            // Without this, it is behind the stream, and the conversation is read again.
            let _ = self.fold();
        }
        if self.early.is_empty() {
            // An emptied map keeps a node of several kilobytes, for as long as the conversation is awake.
            self.early = BTreeMap::new();
        }
    }

    /// Folds the events that follow each other. `None` if what was packed cannot be read.
    fn fold(&mut self) -> Option<()> {
        let (early, first) = (&self.early, self.last);
        let (last, outline) = self.folds.with(|RememberedHistory { memory, ledger }| {
            let mut last = first;
            while let Some(event) = early.get(&(last + 1)) {
                last += 1;
                memory.apply(event);
                ledger.apply(last, event);
            }
            (last, HistoryOutline::of(memory, ledger))
        })?;
        (self.outline, self.last) = (outline, last);
        self.early.retain(|seq, _| *seq > last);
        Some(())
    }

    /// Returns what `read` computes from what the conversation remembers, for a run that starts now. `None` if the
    /// packed memory cannot be read, which never happens to what this process has packed.
    pub(super) fn remembered<T>(&mut self, read: impl FnOnce(&RememberedHistory) -> T) -> Option<T> {
        self.folds.with(|history| read(history))
    }

    /// Like [`SessionHistory::remembered`] if no run starts: packed memory stays packed.
    pub(super) fn peeked<T>(&self, read: impl FnOnce(&RememberedHistory) -> T) -> Option<T> {
        self.folds.read(read)
    }

    /// Takes the events of the store, as [`SessionHistory::extend`]. Their facts were counted when they were recorded.
    pub(super) fn load(&mut self, events: Vec<(u64, SessionEvent)>) {
        self.extend(events);
        self.counted = self.outline.counts;
    }

    /// The facts that were recorded since this was last asked.
    pub(super) fn take_new_facts(&mut self) -> FactCounts {
        let counts = self.outline.counts;
        counts.since(&std::mem::replace(&mut self.counted, counts))
    }

    /// The sequence number of the last event that was folded.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns whether an event is known that follows one which is not: the run that appended it has not been reported yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.early.is_empty()
    }

    /// Returns what to summarise now, for a window of so many tokens.
    pub(super) fn needs_summary(&self, window: usize) -> Option<SummaryJob> {
        if !self.outline.fill.needs_summary(&self.options, window) {
            return None;
        }
        self.peeked(|known| known.memory.needs_summary(window))?
    }

    /// Returns whether a summary must be made before the next request, for a window of so many tokens.
    pub(super) fn is_overdue(&self, window: usize) -> bool {
        self.outline.fill.is_overdue(&self.options, window)
    }

    /// Returns the cost of the conversation, in billionths of a US dollar.
    pub(super) fn cost_nano_usd(&self) -> u64 {
        self.outline.cost_nano_usd
    }

    /// The run whose question is pending, where a plain yes confirms something.
    pub(super) fn asked_by(&self) -> Option<RunId> {
        self.outline.asked_by
    }

    /// Returns whether a plain yes to the pending question confirms something.
    pub(super) fn confirms(&self) -> bool {
        self.outline.confirms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{FactKind, FactSource, StatedFact};

    impl SessionHistory {
        /// Returns what the conversation remembers, after checking the outline against it.
        pub(in crate::conversation) fn checked(&self) -> (Memory, FactLedger) {
            let remembered = self.peeked(|known| (known.memory.clone(), known.ledger.clone())).unwrap();
            let (memory, ledger) = &remembered;
            assert_eq!(self.outline, HistoryOutline::of(memory, ledger));
            for window in [0, 100, 1_000, 10_000, 100_000] {
                assert_eq!(self.needs_summary(window), memory.needs_summary(window));
                assert!(!self.is_overdue(window) || self.needs_summary(window).is_some());
            }
            remembered
        }
    }

    fn new_history() -> SessionHistory {
        SessionHistory::new(memory::Options::default(), OpenHistories::new(0))
    }

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
        let mut history = new_history();
        history.load(vec![(1, stated("a")), (2, stated("b"))]);
        assert_eq!(history.take_new_facts(), FactCounts::default());
        // The fourth event comes first, and waits.
        history.extend(vec![(4, stated("d"))]);
        assert_eq!(history.take_new_facts(), FactCounts::default());
        history.extend(vec![(2, stated("b")), (3, stated("c"))]);
        assert_eq!(history.take_new_facts().recorded, [2, 0, 0, 0, 0]);
        assert_eq!(history.take_new_facts(), FactCounts::default());
    }

    #[test]
    fn history_that_cannot_be_read_stays_behind_its_stream() {
        let mut history = new_history();
        history.load(vec![(1, stated("a"))]);
        history.folds.spoil();
        history.extend(vec![(2, stated("b"))]);
        assert!(history.is_behind() && history.peeked(|_| ()).is_none());
    }
}
