//! The runs of a conversation: one slot each.

use std::collections::BTreeMap;

use super::input::{CallerId, OpenDecisions};
use crate::run::RunId;

#[derive(Debug)]
pub(super) enum RunSlot {
    /// It waits for its turn.
    Queued { place: u64, active: ScheduledRun },
    /// It is being read from its journal, to be driven. It still waits for a person if it did before.
    Reading { active: ScheduledRun, parked: Option<ParkedRun> },
    Driven {
        active: ScheduledRun,
        /// Its sequence number when the conversation's last answer showed what it waits for, if it did.
        shown_at: Option<u64>,
    },
    /// It waits for a person, without a driver and without a state in memory.
    Parked(ParkedRun),
}

/// A run that is queued, read or driven.
#[derive(Debug)]
pub(super) struct ScheduledRun {
    pub(super) lane: Lane,
    /// Whether an earlier process left it unfinished.
    pub(super) is_recovered: bool,
    /// The callers that wait for its answer. Their commands, if they sent one, are with the driver.
    pub(super) callers: Vec<CallerId>,
    /// The callers whose commands no driver has yet: they came while the run was read, or while its driver
    /// was leaving.
    pub(super) held: Vec<CallerId>,
    /// How often its driver panicked.
    pub(super) panics: u32,
}

impl ScheduledRun {
    pub(super) fn queued(caller: Option<CallerId>) -> Self {
        let is_recovered = caller.is_none();
        let callers = caller.into_iter().collect();
        Self { lane: Lane::Queue, is_recovered, callers, held: Vec::new(), panics: 0 }
    }

    pub(super) fn commanded(held: Vec<CallerId>) -> Self {
        Self { lane: Lane::Beside, is_recovered: false, callers: Vec::new(), held, panics: 0 }
    }
}

/// How a run came to be driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// In its turn; one at a time.
    Queue,
    /// For a command, beside the queue.
    Beside,
}

/// A run that waits for a person.
#[derive(Debug, Clone)]
pub(super) struct ParkedRun {
    pub(super) open: OpenDecisions,
    /// Whether the conversation's last answer showed all of it as it is now: then words can decide.
    pub(super) is_shown: bool,
}

impl ParkedRun {
    /// Words never decide what was not shown whole, whatever else is true.
    pub(super) fn new(open: OpenDecisions, is_shown: bool) -> Self {
        let is_shown = is_shown && open.is_shown_whole;
        Self { open, is_shown }
    }
}

#[derive(Debug, Default)]
pub(super) struct RunTable {
    slots: BTreeMap<RunId, RunSlot>,
    last_place: u64,
}

impl RunTable {
    pub(super) fn get_mut(&mut self, run: RunId) -> Option<&mut RunSlot> {
        self.slots.get_mut(&run)
    }

    pub(super) fn insert(&mut self, run: RunId, slot: RunSlot) {
        self.slots.insert(run, slot);
    }

    pub(super) fn remove(&mut self, run: RunId) -> Option<RunSlot> {
        let removed = self.slots.remove(&run);
        if self.slots.is_empty() {
            // An emptied map keeps a node of kilobytes, and most conversations have no run most of the time.
            self.slots = BTreeMap::new();
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Puts a run at the end of the queue.
    pub(super) fn enqueue(&mut self, run: RunId, active: ScheduledRun) {
        self.last_place += 1;
        self.insert(run, RunSlot::Queued { place: self.last_place, active });
    }

    /// Removes the first run of the queue.
    pub(super) fn dequeue(&mut self) -> Option<(RunId, ScheduledRun)> {
        let place = |(run, slot): (&RunId, &RunSlot)| match slot {
            RunSlot::Queued { place, .. } => Some((*place, *run)),
            _ => None,
        };
        let (_, run) = self.slots.iter().filter_map(place).min()?;
        match self.remove(run) {
            Some(RunSlot::Queued { active, .. }) => Some((run, active)),
            _ => None,
        }
    }

    /// Returns whether the run is active and holds the caller's command for its next driver.
    #[cfg(test)]
    pub(super) fn is_held(&self, run: RunId, caller: CallerId) -> bool {
        self.slots.get(&run).and_then(RunSlot::active).is_some_and(|active| active.held.contains(&caller))
    }

    /// How many runs are queued.
    pub(super) fn queued(&self) -> usize {
        self.slots.values().filter(|slot| matches!(slot, RunSlot::Queued { .. })).count()
    }

    /// The run of the queue whose turn it is: it is driven, or read again after a panic.
    pub(super) fn of_the_queue(&self) -> Option<RunId> {
        let is_current = |slot: &RunSlot| match slot {
            RunSlot::Reading { active, .. } | RunSlot::Driven { active, .. } => active.lane == Lane::Queue,
            RunSlot::Queued { .. } | RunSlot::Parked(_) => false,
        };
        self.slots.iter().find(|(_, slot)| is_current(slot)).map(|(run, _)| *run)
    }

    /// Returns whether a run is queued, read or driven.
    pub(super) fn has_active(&self) -> bool {
        self.slots.values().any(|slot| slot.active().is_some())
    }

    /// Returns whether a run is read or driven.
    pub(super) fn has_begun(&self) -> bool {
        self.slots.values().any(|slot| matches!(slot, RunSlot::Reading { .. } | RunSlot::Driven { .. }))
    }

    /// Returns whether one that is queued, read or driven is one that an earlier process left.
    pub(super) fn has_recovered(&self) -> bool {
        self.slots.values().filter_map(RunSlot::active).any(|active| active.is_recovered)
    }

    /// Returns whether a later run than `run` is active or waits.
    pub(super) fn has_later_than(&self, run: RunId) -> bool {
        self.slots.last_key_value().is_some_and(|(last, _)| *last > run)
    }

    /// The runs that wait for a person, also while they are read for a command.
    pub(super) fn parked(&self) -> impl Iterator<Item = (RunId, &ParkedRun)> {
        self.slots.iter().filter_map(|(run, slot)| match slot {
            RunSlot::Parked(parked) | RunSlot::Reading { parked: Some(parked), .. } => Some((*run, parked)),
            _ => None,
        })
    }

    /// Another answer was given: what waits was not shown by the last one.
    pub(super) fn forget_shown(&mut self) {
        for slot in self.slots.values_mut() {
            match slot {
                RunSlot::Parked(parked) | RunSlot::Reading { parked: Some(parked), .. } => {
                    parked.is_shown = false
                }
                RunSlot::Driven { shown_at, .. } => *shown_at = None,
                RunSlot::Queued { .. } | RunSlot::Reading { parked: None, .. } => {}
            }
        }
    }
}

impl RunSlot {
    fn active(&self) -> Option<&ScheduledRun> {
        match self {
            RunSlot::Queued { active, .. }
            | RunSlot::Reading { active, .. }
            | RunSlot::Driven { active, .. } => Some(active),
            RunSlot::Parked(_) => None,
        }
    }
}
