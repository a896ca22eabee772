//! Sharing a bounded resource between tenants: a queue that serves them in turn, and the share that one of them
//! may hold. Nothing here waits, and nothing reads a clock.
//!
//! The share follows the dynamic thresholds of Choudhury and Hahne (1998): one tenant may take a further place
//! only if enough places stay free in proportion to what it holds. So a single tenant cannot take the last
//! place, places move to others as they are returned, and it need not be known in advance how many tenants are
//! active.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use crate::mutex::lock;

/// How many places one tenant may hold for each place that stays free: alone it gets up to four fifths.
const HELD_PER_FREE: usize = 4;

/// Returns whether a tenant that holds `held` of `total` places, of which `free` are free, may take another one. Its
/// first place it may always take. `is_shared` is false where there is only one tenant: it may take all.
pub fn may_take(held: usize, free: usize, is_shared: bool) -> bool {
    if free == 0 {
        return false;
    }
    !is_shared || held == 0 || (free - 1) * HELD_PER_FREE > held
}

/// A queue per key, served in turn: one item of each key, in order of arrival within a key.
#[derive(Debug)]
pub struct FairQueue<K, T> {
    queues: HashMap<K, VecDeque<T>>,
    /// The keys with items; the first one is served next.
    turns: VecDeque<K>,
    len: usize,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<K: Hash + Eq + Clone, T> FairQueue<K, T> {
    /// Appends an item to the queue of `key`.
    pub fn push(&mut self, key: K, item: T) {
        let queue = self.queues.entry(key.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(key);
        }
        queue.push_back(item);
        self.len += 1;
    }

    /// Removes the first item of the next key that `is_allowed`; that key is then served last.
    pub fn pop(&mut self, mut is_allowed: impl FnMut(&K, &T) -> bool) -> Option<(K, T)> {
        let turn = self.turns.iter().position(|key| {
            let first = self.queues.get(key).and_then(VecDeque::front);
            first.is_some_and(|item| is_allowed(key, item))
        })?;
        let key = self.turns.remove(turn)?;
        let queue = self.queues.get_mut(&key)?;
        let item = queue.pop_front()?;
        self.len -= 1;
        if queue.is_empty() {
            self.queues.remove(&key);
        } else {
            self.turns.push_back(key.clone());
        }
        Some((key, item))
    }

    /// Removes the items that `keep` refuses and returns them.
    pub fn remove_unless(&mut self, mut keep: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for queue in self.queues.values_mut() {
            let (kept, gone): (VecDeque<T>, VecDeque<T>) = queue.drain(..).partition(&mut keep);
            *queue = kept;
            removed.extend(gone);
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        self.turns.retain(|key| self.queues.contains_key(key));
        self.len -= removed.len();
        removed
    }

    /// The items of all keys, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.queues.values().flatten()
    }

    /// The number of items of one key.
    pub fn len_of(&self, key: &K) -> usize {
        self.queues.get(key).map_or(0, VecDeque::len)
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// A fixed number of places, and the items that wait for one.
#[derive(Debug)]
pub struct SharedPlaces<K, T> {
    total: usize,
    taken: usize,
    /// The places of each key that holds any.
    held: HashMap<K, usize>,
    waiting: FairQueue<K, T>,
}

impl<K: Hash + Eq + Clone, T> SharedPlaces<K, T> {
    /// `total` free places.
    pub fn new(total: usize) -> Self {
        Self { total, taken: 0, held: HashMap::new(), waiting: FairQueue::default() }
    }

    /// Takes a place for `key`. Returns false if its share does not allow another one, or if it already waits.
    pub fn take(&mut self, key: &K, is_shared: bool) -> bool {
        let may = self.waiting.len_of(key) == 0
            && may_take(self.held_by(key), self.total.saturating_sub(self.taken), is_shared);
        if may {
            self.hold(key.clone());
        }
        may
    }

    /// Has an item wait for a place.
    pub fn queue(&mut self, key: K, item: T) {
        self.waiting.push(key, item);
    }

    /// The next waiting item that may have a place, which is taken for it.
    pub fn next(&mut self, is_shared: bool) -> Option<(K, T)> {
        let free = self.total.saturating_sub(self.taken);
        let held = &self.held;
        let is_allowed = |key: &K, _: &T| may_take(held.get(key).copied().unwrap_or(0), free, is_shared);
        let (key, item) = self.waiting.pop(is_allowed)?;
        self.hold(key.clone());
        Some((key, item))
    }

    /// The number of waiting items.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Removes all waiting items and returns them.
    pub fn remove_waiting(&mut self) -> Vec<T> {
        self.waiting.remove_unless(|_| false)
    }

    /// Removes the waiting items that `keep` refuses.
    pub fn retain_waiting(&mut self, keep: impl FnMut(&T) -> bool) {
        drop(self.waiting.remove_unless(keep));
    }

    /// Returns a place of `key`. Without one this does nothing.
    pub fn give_back(&mut self, key: &K) {
        let Some(held) = self.held.get_mut(key) else { return };
        *held -= 1;
        self.taken -= 1;
        if *held == 0 {
            self.held.remove(key);
        }
    }

    /// The number of places that are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The number of places of one key.
    pub fn held_by(&self, key: &K) -> usize {
        self.held.get(key).copied().unwrap_or(0)
    }

    fn hold(&mut self, key: K) {
        *self.held.entry(key).or_default() += 1;
        self.taken += 1;
    }
}

/// Shared places without a queue: they are taken at once or not at all. Clones share them.
#[derive(Debug, Clone)]
pub struct FairPermits<K>(Arc<Mutex<SharedPlaces<K, ()>>>);

impl<K: Hash + Eq + Clone> FairPermits<K> {
    /// `total` free places.
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Mutex::new(SharedPlaces::new(total))))
    }

    /// Takes a place for `key`.
    ///
    /// # Errors
    /// Why it may not have one.
    pub fn take(&self, key: &K, is_shared: bool) -> Result<FairPermit<K>, NoPermit> {
        let mut places = lock(&self.0);
        if places.take(key, is_shared) {
            return Ok(FairPermit { places: self.clone(), key: key.clone() });
        }
        let held = places.held_by(key);
        Err(if places.taken() < places.total { NoPermit::ShareReached { held } } else { NoPermit::AllTaken })
    }

    /// The number of places that are taken.
    pub fn taken(&self) -> usize {
        lock(&self.0).taken()
    }
}

/// Why a place was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPermit {
    /// All are taken.
    AllTaken,
    /// The others are for other tenants.
    ShareReached {
        /// The places that this one holds.
        held: usize,
    },
}

/// A place, which is returned when this is dropped.
#[derive(Debug)]
pub struct FairPermit<K: Hash + Eq + Clone> {
    places: FairPermits<K>,
    key: K,
}

impl<K: Hash + Eq + Clone> Drop for FairPermit<K> {
    fn drop(&mut self) {
        lock(&self.places.0).give_back(&self.key);
    }
}

/// A count of the tenants that use this process, up to two: only with others must a tenant leave room for them. Clones
/// share what they know.
#[derive(Debug)]
pub struct Sharers<K>(Arc<Mutex<SharersSeen<K>>>);

/// At most two of each, which is enough to tell whether there are several.
#[derive(Debug)]
struct SharersSeen<K> {
    seen: HashSet<K>,
    expected: HashSet<K>,
}

impl<K> Clone for Sharers<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for Sharers<K> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(SharersSeen { seen: HashSet::new(), expected: HashSet::new() })))
    }
}

impl<K: Hash + Eq + Clone> Sharers<K> {
    /// Records one that has come.
    pub fn see(&self, key: &K) {
        let mut known = lock(&self.0);
        if known.seen.len() < 2 && !known.seen.contains(key) {
            known.seen.insert(key.clone());
        }
    }

    /// Replaces those that may come at any time, such as the tenants with keys; two of them are enough. Where
    /// there are any, those that came before and are not among them have left.
    pub fn expect(&self, keys: &[K]) {
        let mut known = lock(&self.0);
        if !keys.is_empty() {
            known.seen.retain(|key| keys.contains(key));
        }
        if keys.len().min(2) != known.expected.len() || !known.expected.iter().all(|key| keys.contains(key)) {
            known.expected = keys.iter().take(2).cloned().collect();
        }
    }

    /// Returns whether there is more than one.
    pub fn is_shared(&self) -> bool {
        let known = lock(&self.0);
        known.seen.union(&known.expected).nth(1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_served_in_turn() {
        let mut queue = FairQueue::default();
        for (key, item) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            queue.push(key, item);
        }
        let served: Vec<u32> = std::iter::from_fn(|| queue.pop(|_, _| true)).map(|(_, item)| item).collect();
        assert_eq!(served, [1, 4, 5, 2, 6, 3]);
    }

    #[test]
    fn key_that_is_not_allowed_keeps_its_turn() {
        let mut queue = FairQueue::default();
        for (key, item) in [("a", 1), ("b", 2), ("b", 3), ("a", 4)] {
            queue.push(key, item);
        }
        assert_eq!(queue.pop(|key, _| *key != "a"), Some(("b", 2)));
        assert_eq!(queue.pop(|_, _| true), Some(("a", 1)));
        assert_eq!(queue.remove_unless(|item| *item != 3), [3]);
        assert_eq!((queue.pop(|_, _| true), queue.len()), (Some(("a", 4)), 0));
    }

    proptest! {
        #[test]
        fn share_leaves_room_for_another_tenant(total in 2_usize..5_000, others in 0_usize..50) {
            let mut free = total;
            let mut held = 0;
            while may_take(held, free, true) {
                held += 1;
                free -= 1;
            }
            prop_assert!(free >= 1);
            prop_assert!(held * 5 >= (total - 1) * 4 - 4, "{held} of {total}");
            for _ in 0..others.min(free) {
                prop_assert!(may_take(0, free, true));
                free -= 1;
            }
        }

        #[test]
        fn tenant_that_took_everything_makes_room(total in 20_usize..400, tenants in 2_usize..5) {
            // The first one holds everything that it may; each return is offered to all in turn.
            let mut held = vec![0; tenants];
            let mut free = total;
            let mut turn = 0;
            while may_take(held[0], free, true) {
                held[0] += 1;
                free -= 1;
            }
            for round in 0..total * 20 {
                // Some call ends: of all places in turn, so a tenant with more of them returns more.
                let mut place = round * 7_919 % (total - free);
                let returns = held.iter().position(|n| {
                    let ends = place < *n;
                    place = place.saturating_sub(*n);
                    ends
                });
                held[returns.unwrap()] -= 1;
                free += 1;
                for _ in 0..tenants {
                    turn = (turn + 1) % tenants;
                    if may_take(held[turn], free, true) {
                        held[turn] += 1;
                        free -= 1;
                    }
                }
            }
            let least = held.iter().min().unwrap();
            prop_assert!(least * 2 * (tenants + 1) >= total - tenants, "{held:?} of {total}");
        }

        /// Whatever comes, ends and gives up: no place is lost or returned twice, there are never more than
        /// `total`, and nobody waits who may have a place.
        #[test]
        fn places_are_neither_lost_nor_returned_twice(
            total in 1_usize..12,
            steps in prop::collection::vec((0_u8..4, 0_u8..4, any::<bool>()), 1..200),
        ) {
            let permits = FairPermits::new(total);
            let mut places: SharedPlaces<u8, usize> = SharedPlaces::new(total);
            let (mut dropped_later, mut running) = (Vec::new(), Vec::new());
            for (n, (step, key, is_shared)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        let free = total - permits.taken();
                        match permits.take(&key, is_shared) {
                            Ok(permit) => dropped_later.push(permit),
                            Err(no) => prop_assert_eq!(no == NoPermit::AllTaken, free == 0),
                        }
                    }
                    1 => places.queue(key, n),
                    // Ends in any order.
                    2 if !running.is_empty() => {
                        let ended: (u8, usize) = running.swap_remove(n % running.len());
                        places.give_back(&ended.0);
                    }
                    3 if !dropped_later.is_empty() => drop(dropped_later.swap_remove(n % dropped_later.len())),
                    _ => {}
                }
                while let Some(next) = places.next(is_shared) {
                    running.push(next);
                }
                prop_assert_eq!(permits.taken(), dropped_later.len());
                prop_assert_eq!(places.taken(), running.len());
                prop_assert!(places.taken() <= total && permits.taken() <= total);
                for key in 0..4 {
                    let held = running.iter().filter(|(of, _)| *of == key).count();
                    prop_assert_eq!(places.held_by(&key), held);
                    prop_assert!(!may_take(held, total - running.len(), is_shared) || places.waiting.len_of(&key) == 0);
                }
            }
            drop(dropped_later);
            prop_assert_eq!(permits.taken(), 0);
            for (key, _) in running {
                places.give_back(&key);
            }
            prop_assert_eq!((places.taken(), places.held.len()), (0, 0));
        }

        #[test]
        fn place_goes_to_those_who_wait_in_turn(total in 1_usize..6, flood in 1_usize..100) {
            let mut places: SharedPlaces<&str, usize> = SharedPlaces::new(total);
            for n in 0..flood {
                places.queue("flood", n);
            }
            let mut running: VecDeque<_> = std::iter::from_fn(|| places.next(true)).collect();
            places.queue("other", 0);
            running.extend(places.next(true));
            // A free place is left for the other one. Where there is but one place, each has its turn.
            for _ in 0..usize::from(total == 1) * 2 {
                if places.held_by(&"other") == 0
                    && let Some((key, _)) = running.pop_front()
                {
                    places.give_back(&key);
                    running.extend(places.next(true));
                }
            }
            let served = running.iter().any(|(key, _)| *key == "other");
            prop_assert!(served, "{running:?}");
        }
    }

    #[test]
    fn room_is_left_only_where_there_are_several() {
        let sharers = Sharers::default();
        sharers.see(&"a");
        sharers.expect(&["a"]);
        assert!(!sharers.is_shared());
        sharers.expect(&["a", "b"]);
        assert!(sharers.is_shared());
        sharers.expect(&[]);
        assert!(!sharers.is_shared(), "a key that was revoked");
        sharers.see(&"c");
        assert!(sharers.is_shared());
        sharers.expect(&["a"]);
        assert!(!sharers.is_shared(), "the keys of a tenant that was seen were revoked");
    }
}
