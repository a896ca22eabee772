//! Sharing a bounded resource between tenants: a queue that serves them in turn, and the share that one of them
//! may hold. Pure.
//!
//! The share follows the dynamic thresholds of Choudhury and Hahne (1998): one tenant may take a further place
//! only if enough places stay free in proportion to what it holds. So a single tenant cannot take the last
//! place, places move to others as they are returned, and nobody has to know in advance how many tenants are
//! active.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// How many places one tenant may hold for each place that stays free: alone it gets up to four fifths.
const HELD_PER_FREE: usize = 4;

/// Whether a tenant that holds `held` of `total` places, of which `free` are free, may take another one. Its
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

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
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
    }
}
