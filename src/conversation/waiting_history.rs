//! The memories of conversations between their events. Those that were used last are unpacked, within a bound in bytes;
//! all others are packed. Of ten thousand awake conversations a few hundred are in use at a time: these are not packed
//! and unpacked again and again, however long they are, and each of the others takes a few kilobytes.
//!
//! **Invariant:** a read returns what was written last, whether it was packed in between or not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use crate::memory::{FactLedger, Memory, PackedHistory};
use crate::mutex::lock;

/// The memory of a conversation, unpacked.
#[derive(Debug)]
pub(super) struct RememberedHistory {
    pub(super) memory: Memory,
    pub(super) ledger: FactLedger,
}

impl RememberedHistory {
    /// Its size in bytes, about.
    fn bytes(&self) -> usize {
        self.memory.bytes() + self.ledger.bytes()
    }
}

/// The conversations of one engine whose histories are unpacked. Shared by its clones.
#[derive(Debug, Clone)]
pub(crate) struct OpenHistories(Arc<OpenShared>);

#[derive(Debug)]
struct OpenShared {
    max: usize,
    uses: Mutex<OpenUses>,
}

#[derive(Debug, Default)]
struct OpenUses {
    /// The number of the last use.
    last: u64,
    /// The unpacked histories, by the number of their last use.
    open: BTreeMap<u64, OpenHistory>,
    /// The size of all of them in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct OpenHistory {
    bytes: usize,
    history: Weak<Mutex<HistoryForm>>,
}

impl OpenHistories {
    /// Unpacked histories of at most `max` bytes in all, about. A larger one is packed at once.
    pub(crate) fn new(max: usize) -> Self {
        Self(Arc::new(OpenShared { max, uses: Mutex::default() }))
    }

    /// Records the use of a history of this size, whose previous use had the number `earlier`. Packs the least recently
    /// used ones until the bound holds. Returns the number of this use.
    fn used(&self, history: &Arc<Mutex<HistoryForm>>, earlier: u64, bytes: usize) -> u64 {
        let mut over = Vec::new();
        let place = {
            let mut uses = lock(&self.0.uses);
            uses.remove(earlier);
            uses.last += 1;
            let place = uses.last;
            uses.bytes += bytes;
            uses.open.insert(place, OpenHistory { bytes, history: Arc::downgrade(history) });
            while uses.bytes > self.0.max
                && let Some((first, _)) = uses.open.first_key_value()
            {
                let first = *first;
                over.extend(uses.remove(first));
            }
            place
        };
        // Outside the lock, since it takes a while.
        for history in over.iter().filter_map(Weak::upgrade) {
            lock(&history).pack();
        }
        place
    }

    fn forget(&self, place: u64) {
        lock(&self.0.uses).remove(place);
    }
}

impl OpenUses {
    fn remove(&mut self, place: u64) -> Option<Weak<Mutex<HistoryForm>>> {
        let OpenHistory { bytes, history } = self.open.remove(&place)?;
        self.bytes -= bytes;
        Some(history)
    }
}

#[derive(Debug)]
enum HistoryForm {
    Open(Box<RememberedHistory>),
    Packed(PackedHistory),
}

impl HistoryForm {
    /// `None` if what was packed cannot be read.
    fn open(&mut self) -> Option<&mut RememberedHistory> {
        if let Self::Packed(packed) = self {
            let (memory, ledger) = packed.unpacked()?;
            *self = Self::Open(Box::new(RememberedHistory { memory, ledger }));
        }
        match self {
            Self::Open(history) => Some(history),
            Self::Packed(_) => None,
        }
    }

    /// A history that cannot be packed, which no event leads to, stays as it is.
    fn pack(&mut self) {
        if let Self::Open(history) = self
            && let Some(packed) = PackedHistory::of(&history.memory, &history.ledger)
        {
            *self = Self::Packed(packed);
        }
    }
}

/// The memory of one conversation between its events.
#[derive(Debug)]
pub(super) struct WaitingHistory {
    /// A panic while it is read does not change it; one while it is changed ends its conversation's actor.
    form: Arc<Mutex<HistoryForm>>,
    open: OpenHistories,
    /// The number of its last use; 0 before the first.
    place: u64,
}

impl WaitingHistory {
    pub(super) fn new(memory: Memory, open: OpenHistories) -> Self {
        let ledger = FactLedger::default();
        let history = RememberedHistory { memory, ledger };
        let form = Arc::new(Mutex::new(HistoryForm::Open(Box::new(history))));
        Self { form, open, place: 0 }
    }

    /// Returns the result of `use_it`, which may change the history. `None` if it cannot be read, which never happens
    /// to what this process has packed.
    pub(super) fn with<T>(&mut self, use_it: impl FnOnce(&mut RememberedHistory) -> T) -> Option<T> {
        let (result, bytes) = {
            let mut form = lock(&self.form);
            let history = form.open()?;
            (use_it(history), history.bytes())
        };
        self.place = self.open.used(&self.form, self.place, bytes);
        Some(result)
    }

    /// Like [`WaitingHistory::with`] without changing anything: a packed history stays packed.
    pub(super) fn read<T>(&self, read: impl FnOnce(&RememberedHistory) -> T) -> Option<T> {
        match &*lock(&self.form) {
            HistoryForm::Open(history) => Some(read(history)),
            HistoryForm::Packed(packed) => {
                let (memory, ledger) = packed.unpacked()?;
                Some(read(&RememberedHistory { memory, ledger }))
            }
        }
    }

    /// Makes the history unreadable.
    #[cfg(test)]
    pub(super) fn spoil(&self) {
        *lock(&self.form) = HistoryForm::Packed(PackedHistory::unreadable());
    }
}

impl Drop for WaitingHistory {
    fn drop(&mut self) {
        self.open.forget(self.place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;

    use super::*;
    use crate::memory::Options;
    use crate::run::{RunStatus, SessionEvent, Turn, Usage};

    fn ended(request: String) -> SessionEvent {
        let (answer, status, calls) = ("Done.".to_owned(), RunStatus::Completed, Vec::new());
        let turn = Turn { run: None, request, answer, status, calls };
        SessionEvent::TurnEnded { turn, pending: None, usage: Usage::default(), origin: None }
    }

    fn is_packed(history: &WaitingHistory) -> bool {
        matches!(*lock(&history.form), HistoryForm::Packed(_))
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        // Three conversations take turns; the plain definition is that each keeps its folds.
        #[test]
        fn histories_are_the_same_and_within_the_bound_whichever_are_packed(
            turns in vec((0_usize..3, "My budget is [0-9]{2} euros\\.|Hello", proptest::bool::ANY), 0..24),
            max in 0_usize..30_000
        ) {
            let open = OpenHistories::new(max);
            let new = || WaitingHistory::new(Memory::new(Options::default()), open.clone());
            let mut histories = [new(), new(), new()];
            let mut plain = [(); 3].map(|()| (Memory::new(Options::default()), FactLedger::default()));
            for (seq, (at, request, is_read)) in (1..).zip(turns) {
                if is_read {
                    let same = histories[at].read(|own| own.memory == plain[at].0 && own.ledger == plain[at].1);
                    proptest::prop_assert_eq!(same, Some(true));
                }
                let event = ended(request);
                plain[at].0.apply(&event);
                plain[at].1.apply(seq, &event);
                let same = histories[at].with(|own| {
                    own.memory.apply(&event);
                    own.ledger.apply(seq, &event);
                    own.memory == plain[at].0 && own.ledger == plain[at].1
                });
                proptest::prop_assert_eq!(same, Some(true));
                let opened: Vec<_> = histories.iter().filter(|one| one.place > 0 && !is_packed(one)).collect();
                let bytes = opened.iter().filter_map(|one| one.read(RememberedHistory::bytes)).sum::<usize>();
                proptest::prop_assert!(bytes <= max, "{bytes} of {max}");
            }
            drop(histories);
            let uses = lock(&open.0.uses);
            proptest::prop_assert!(uses.open.is_empty() && uses.bytes == 0);
        }
    }

    #[test]
    fn history_that_was_used_first_is_packed_first() {
        let open = OpenHistories::new(12_000);
        let new = || WaitingHistory::new(Memory::new(Options::default()), open.clone());
        let mut histories = [new(), new(), new()];
        for at in [0, 1, 0, 2] {
            histories[at].with(|own| own.memory.apply(&ended("Hello".repeat(50)))).unwrap();
        }
        assert_eq!(histories.each_ref().map(is_packed), [false, true, false]);
        histories[1].with(|own| assert_eq!(own.memory.total_turns(), 1)).unwrap();
        assert_eq!(histories.each_ref().map(is_packed), [true, false, false]);
    }
}
