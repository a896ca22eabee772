//! What the conversation remembers: the folds of the session's stream, in its order, and its owner.

use std::collections::BTreeMap;

use crate::memory::{self, FactCounts, FactLedger, Memory, MemoryFill, PackedHistory, SummaryJob};
use crate::run::{RunId, SessionEvent};

/// The folds are packed: an awake conversation waits for its user most of the time. They are unpacked for the start of a run, and
/// to take events.
#[derive(Debug)]
pub(super) struct SessionHistory {
    options: memory::Options,
    /// `None` before the first event.
    packed: Option<PackedHistory>,
    outline: HistoryOutline,
    /// What of the ledger was counted, or was there before this process read it.
    counted: FactCounts,
    /// The sequence number of the last event that was folded.
    last: u64,
    /// Events that arrived before an earlier one: several runs may end at once.
    early: BTreeMap<u64, SessionEvent>,
    /// The user of its first request, once that is in the journal.
    pub(super) owner: Option<String>,
}

/// What the conversation remembers, unpacked.
pub(super) struct RememberedHistory {
    pub(super) memory: Memory,
    pub(super) ledger: FactLedger,
}

/// What is asked of the folds at every input. Of what a window has room for, what the answer depends on: the window may change.
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
    pub(super) fn new(options: memory::Options) -> Self {
        let outline = HistoryOutline::of(&Memory::new(options.clone()), &FactLedger::default());
        Self {
            options,
            packed: None,
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
        let RememberedHistory { mut memory, mut ledger } = self.remembered()?;
        let mut last = self.last;
        while let Some(event) = self.early.get(&(last + 1)) {
            last += 1;
            memory.apply(event);
            ledger.apply(last, event);
        }
        self.packed = Some(PackedHistory::of(&memory, &ledger)?);
        self.outline = HistoryOutline::of(&memory, &ledger);
        self.last = last;
        self.early.retain(|seq, _| *seq > last);
        Some(())
    }

    /// What the conversation remembers. `None` if it cannot be read: what this process has packed always can.
    pub(super) fn remembered(&self) -> Option<RememberedHistory> {
        let (memory, ledger) = match &self.packed {
            Some(packed) => packed.unpacked()?,
            None => (Memory::new(self.options.clone()), FactLedger::default()),
        };
        Some(RememberedHistory { memory, ledger })
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

    /// Whether an event is known that follows one which is not: the run that appended it has not been reported yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.early.is_empty()
    }

    /// What to summarise now, for a window of so many tokens.
    pub(super) fn needs_summary(&self, window: usize) -> Option<SummaryJob> {
        if !self.outline.fill.needs_summary(&self.options, window) {
            return None;
        }
        self.remembered()?.memory.needs_summary(window)
    }

    /// Whether it has to be summarised before the next request, for a window of so many tokens.
    pub(super) fn is_overdue(&self, window: usize) -> bool {
        self.outline.fill.is_overdue(&self.options, window)
    }

    /// What the conversation has cost, in billionths of a US dollar.
    pub(super) fn cost_nano_usd(&self) -> u64 {
        self.outline.cost_nano_usd
    }

    /// The run whose question is pending, where a plain yes confirms something.
    pub(super) fn asked_by(&self) -> Option<RunId> {
        self.outline.asked_by
    }

    /// Whether a plain yes to the pending question confirms something.
    pub(super) fn confirms(&self) -> bool {
        self.outline.confirms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{FactKind, FactSource, StatedFact};

    impl SessionHistory {
        /// What the conversation remembers, once the outline says the same of it.
        pub(in crate::conversation) fn checked(&self) -> RememberedHistory {
            let remembered = self.remembered().unwrap();
            let RememberedHistory { memory, ledger } = &remembered;
            assert_eq!(self.outline, HistoryOutline::of(memory, ledger));
            for window in [0, 100, 1_000, 10_000, 100_000] {
                assert_eq!(self.needs_summary(window), memory.needs_summary(window));
                assert!(!self.is_overdue(window) || self.needs_summary(window).is_some());
            }
            remembered
        }
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

    #[test]
    fn history_that_cannot_be_read_stays_behind_its_stream() {
        let mut history = SessionHistory::new(memory::Options::default());
        history.load(vec![(1, stated("a"))]);
        history.packed = Some(PackedHistory::unreadable());
        history.extend(vec![(2, stated("b"))]);
        assert!(history.is_behind() && history.remembered().is_none());
    }
}
