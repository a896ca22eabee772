//! Published events that the actor has not counted: a bounded queue, and beyond its bound the places of the
//! records in their streams.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::mutex::lock;
use crate::run::RunId;
use crate::store::{Record, StreamId};
use crate::telemetry::LabelNames;

/// How many streams the actor may lag in. Beyond it, it starts again with empty metrics.
pub(super) const MAX_MISSED_STREAMS: usize = 262_144;

/// How many missed records are read at once.
pub(super) const PAGE: u32 = 256;

/// Published events that are not counted yet. It outlives a panic of the actor.
pub(super) struct PublishedQueue {
    capacity: usize,
    /// The current label names, also for the actor after a panic.
    names: Mutex<Arc<LabelNames>>,
    state: Mutex<PublishedState>,
}

#[derive(Default)]
pub(super) struct PublishedState {
    items: VecDeque<PublishedItem>,
    /// How many of them are records.
    events: usize,
    /// First and last missed sequence number of each stream; empty unless the actor lags. Nothing is missing
    /// between them: every record is either queued or in a range.
    pub(super) missed: BTreeMap<StreamId, (u64, u64)>,
    /// Number of records in `missed` and in the queue's ranges.
    missed_events: u64,
    next_barrier: u64,
    /// The run that is being restored: if the actor panics, its successor does not restore it.
    pub(super) restoring: Option<RunId>,
    /// Whether the actor was woken and has not looked yet.
    is_woken: bool,
    is_closed: bool,
}

#[expect(clippy::large_enum_variant, reason = "most items are records")]
pub(super) enum PublishedItem {
    Record(Record),
    /// Records to be read from the store.
    Missed {
        stream: StreamId,
        first: u64,
        last: u64,
    },
    /// Here the actor began to lag.
    CatchUp,
    Forget(StreamId),
    NamesExtended,
    /// The question with this number can be answered.
    Barrier(u64),
    /// Too much was missed: the metrics start again.
    Reset,
    #[cfg(test)]
    Panic,
}

impl PublishedQueue {
    pub(super) fn new(capacity: usize, names: LabelNames) -> Self {
        Self { capacity, names: Mutex::new(Arc::new(names)), state: Mutex::default() }
    }

    /// How many records are not counted yet.
    pub(super) fn backlog(&self) -> u64 {
        let state = self.lock();
        state.events as u64 + state.missed_events
    }

    /// Queues the records, or remembers where they are if there is no room. Returns whether the actor has to
    /// be woken.
    pub(super) fn publish(&self, records: Vec<Record>) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        if state.missed.is_empty() && state.events + records.len() <= self.capacity {
            state.events += records.len();
            state.items.extend(records.into_iter().map(PublishedItem::Record));
        } else {
            state.miss(&records);
        }
        state.must_wake()
    }

    /// Queues an item that is not an event. Returns whether the actor has to be woken.
    pub(super) fn push(&self, item: PublishedItem) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        state.items.push_back(item);
        state.must_wake()
    }

    pub(super) fn push_barrier(&self) -> u64 {
        let mut state = self.lock();
        let number = state.next_barrier;
        state.next_barrier += 1;
        state.items.push_back(PublishedItem::Barrier(number));
        number
    }

    pub(super) fn pop(&self) -> Option<PublishedItem> {
        let mut state = self.lock();
        state.is_woken = false;
        let item = state.items.pop_front()?;
        state.events -= usize::from(matches!(item, PublishedItem::Record(_)));
        Some(item)
    }

    pub(super) fn put_back(&self, item: PublishedItem) {
        let mut state = self.lock();
        state.events += usize::from(matches!(item, PublishedItem::Record(_)));
        state.items.push_front(item);
    }

    /// Replaces the missed records at the front by those that were read. `None` if they are not at the front
    /// any more.
    pub(super) fn replace_missed(&self, stream: &StreamId, from: u64, records: Vec<Record>) -> Option<()> {
        let mut state = self.lock();
        let Some(PublishedItem::Missed { stream: missed, first, last }) = state.items.front() else {
            return None;
        };
        if missed != stream || *first != from {
            return None;
        }
        let last = *last;
        state.items.pop_front();
        let next = records.last().map_or(last, sequence_number).saturating_add(1);
        if records.len() as u64 >= u64::from(PAGE) && next <= last {
            let rest = PublishedItem::Missed { stream: stream.clone(), first: next, last };
            state.items.push_front(rest);
            state.missed_events = state.missed_events.saturating_sub(next - from);
        } else {
            state.missed_events = state.missed_events.saturating_sub(last - from + 1);
        }
        state.events += records.len();
        for record in records.into_iter().rev() {
            state.items.push_front(PublishedItem::Record(record));
        }
        Some(())
    }

    /// Ends the lag: what was missed so far comes next, and records are queued again.
    pub(super) fn end_lag(&self) {
        let mut state = self.lock();
        for (stream, (first, last)) in std::mem::take(&mut state.missed).into_iter().rev() {
            state.items.push_front(PublishedItem::Missed { stream, first, last });
        }
    }

    /// Refuses further items and drops the queued ones.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let left = std::mem::replace(&mut *state, PublishedState { is_closed: true, ..Default::default() });
        drop(state);
        drop(left);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PublishedState> {
        lock(&self.state)
    }

    pub(super) fn lock_names(&self) -> MutexGuard<'_, Arc<LabelNames>> {
        lock(&self.names)
    }
}

impl PublishedState {
    pub(super) fn miss(&mut self, records: &[Record]) {
        if self.missed.is_empty() {
            self.items.push_back(PublishedItem::CatchUp);
        }
        for record in records {
            let Ok(stream) = record.stream() else { continue };
            let seq = sequence_number(record);
            self.missed.entry(stream).and_modify(|(_, last)| *last = seq).or_insert((seq, seq));
            self.missed_events += 1;
        }
        if self.missed.len() > MAX_MISSED_STREAMS {
            self.items
                .retain(|item| matches!(item, PublishedItem::Barrier(_) | PublishedItem::NamesExtended));
            self.missed.clear();
            (self.events, self.missed_events) = (0, 0);
            self.items.push_front(PublishedItem::Reset);
        }
    }

    fn must_wake(&mut self) -> bool {
        !std::mem::replace(&mut self.is_woken, true)
    }
}

fn sequence_number(record: &Record) -> u64 {
    match record {
        Record::Run(envelope) => envelope.seq,
        Record::Session(envelope) => envelope.seq,
    }
}
