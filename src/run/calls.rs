//! The tool calls of a run, with the indexes that keep the cost of a decision proportional to unfinished work.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::event::{Effect, Outcome};
use super::state::{CallState, CallStatus};

/// Every tool call of a run, by ordinal. Reads like a map; changes go through methods that keep the indexes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    all: BTreeMap<u32, CallState>,
    /// Ordinals by the key of their call.
    by_key: BTreeMap<String, BTreeSet<u32>>,
    /// Calls that have not ended.
    open: BTreeSet<u32>,
    /// Writes whose outcome is unknown.
    unknown: BTreeSet<u32>,
    /// Calls whose end is unexpected and was not recorded as such yet.
    unnoted: BTreeSet<u32>,
    /// Calls that undo a write.
    undos: BTreeSet<u32>,
}

impl Calls {
    pub(super) fn insert(&mut self, number: u32, call: CallState) {
        self.by_key.entry(call.requested.key.clone()).or_default().insert(number);
        if call.undoes.is_some() {
            self.undos.insert(number);
        }
        self.all.insert(number, call);
        self.index_status(number);
    }

    /// Changes a call, if it exists. Returns what `change` returns.
    pub(super) fn change<T>(&mut self, number: u32, change: impl FnOnce(&mut CallState) -> T) -> Option<T> {
        let call = self.all.get_mut(&number)?;
        let key = call.requested.key.clone();
        let changed = change(call);
        if call.requested.key != key {
            let new = call.requested.key.clone();
            self.by_key.entry(new).or_default().insert(number);
            if let Some(same) = self.by_key.get_mut(&key) {
                same.remove(&number);
            }
        }
        self.index_status(number);
        Some(changed)
    }

    pub(super) fn change_open(&mut self, mut change: impl FnMut(&mut CallState)) {
        for number in self.open.clone() {
            self.change(number, &mut change);
        }
    }

    /// Marks reads as stale. No index depends on that.
    pub(super) fn mark_stale(&mut self, is_stale: impl Fn(&CallState) -> bool) {
        for call in self.all.values_mut().filter(|call| is_stale(call)) {
            call.stale = true;
        }
    }

    /// The calls with this key, by ordinal.
    pub(super) fn with_key<'a>(&'a self, key: &str) -> impl Iterator<Item = (u32, &'a CallState)> {
        self.get_all(self.by_key.get(key))
    }

    /// The calls that have not ended, by ordinal.
    pub fn open(&self) -> impl Iterator<Item = (u32, &CallState)> {
        self.get_all(Some(&self.open))
    }

    pub(super) fn is_open(&self, number: u32) -> bool {
        self.open.contains(&number)
    }

    /// The writes whose outcome is unknown, by ordinal.
    pub(super) fn unknown_writes(&self) -> impl Iterator<Item = (u32, &CallState)> {
        self.get_all(Some(&self.unknown))
    }

    /// The calls whose end is unexpected and was not recorded as such yet, by ordinal.
    pub(super) fn unrecorded_failures(&self) -> impl Iterator<Item = (u32, &CallState)> {
        self.get_all(Some(&self.unnoted))
    }

    /// The calls that undo a write, by ordinal.
    pub(super) fn undos(&self) -> impl Iterator<Item = (u32, &CallState)> {
        self.get_all(Some(&self.undos))
    }

    fn get_all<'a>(&'a self, of: Option<&'a BTreeSet<u32>>) -> impl Iterator<Item = (u32, &'a CallState)> {
        of.into_iter().flatten().filter_map(|number| Some((*number, self.all.get(number)?)))
    }

    fn index_status(&mut self, number: u32) {
        let Some(call) = self.all.get(&number) else { return };
        let is_open = !matches!(call.status, CallStatus::Done { .. } | CallStatus::Skipped { .. });
        let is_unknown = call.requested.effect == Effect::Write
            && matches!(call.status, CallStatus::Done { outcome: Outcome::Unknown { .. } });
        let is_unnoted = call.unnoted;
        let sets =
            [(&mut self.open, is_open), (&mut self.unknown, is_unknown), (&mut self.unnoted, is_unnoted)];
        for (set, holds) in sets {
            if holds {
                set.insert(number);
            } else {
                set.remove(&number);
            }
        }
    }
}

impl Deref for Calls {
    type Target = BTreeMap<u32, CallState>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Calls {
    type Item = (&'a u32, &'a CallState);
    type IntoIter = std::collections::btree_map::Iter<'a, u32, CallState>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

#[cfg(test)]
impl Calls {
    /// Checks the indexes against the calls.
    pub(super) fn assert_indexed(&self) {
        let mut by_key: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        let mut sets: [BTreeSet<u32>; 4] = Default::default();
        for (number, call) in &self.all {
            by_key.entry(&call.requested.key).or_default().insert(*number);
            let is_done = matches!(call.status, CallStatus::Done { .. } | CallStatus::Skipped { .. });
            let is_unknown = call.requested.effect == Effect::Write
                && matches!(call.status, CallStatus::Done { outcome: Outcome::Unknown { .. } });
            for (set, holds) in
                sets.iter_mut().zip([!is_done, is_unknown, call.unnoted, call.undoes.is_some()])
            {
                if holds {
                    set.insert(*number);
                }
            }
        }
        let kept: BTreeMap<&str, BTreeSet<u32>> = self
            .by_key
            .iter()
            .filter(|(_, calls)| !calls.is_empty())
            .map(|(key, calls)| (key.as_str(), calls.clone()))
            .collect();
        assert_eq!(kept, by_key);
        assert_eq!([&self.open, &self.unknown, &self.unnoted, &self.undos], sets.each_ref());
    }
}
