//! The rules of single flight: one of several callers with equal questions asks, and the others wait for its result.

use std::collections::{HashMap, VecDeque};

use super::CacheKey;

/// The questions in progress, and the callers that wait for them; `R` is what a caller is replied to with.
#[derive(Debug)]
pub(crate) struct FlightTable<R> {
    flights: HashMap<CacheKey, OpenFlight<R>>,
    /// How many callers wait.
    waiting: usize,
    /// Maximum number of callers that may wait.
    capacity: usize,
}

#[derive(Debug)]
struct OpenFlight<R> {
    id: u64,
    waiting: VecDeque<R>,
}

/// What a caller does whose question has no stored reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlightTurn<R> {
    /// It waits for an equal question.
    Waits,
    /// It asks, and equal questions are to wait for it: [`FlightTable::begin`].
    Asks(R),
    /// It asks by itself: an equal question is in progress, but the maximum number of callers waits already.
    AsksAlone(R),
}

impl<R> FlightTable<R> {
    /// A table of these flights, for which nobody waits yet; at most `capacity` callers will.
    pub(crate) fn new(capacity: usize, in_progress: impl IntoIterator<Item = (CacheKey, u64)>) -> Self {
        let open = |(key, id)| (key, OpenFlight { id, waiting: VecDeque::new() });
        Self { flights: in_progress.into_iter().map(open).collect(), waiting: 0, capacity }
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Takes a caller in.
    pub(crate) fn join(&mut self, key: CacheKey, caller: R) -> FlightTurn<R> {
        match self.flights.get_mut(&key) {
            None => FlightTurn::Asks(caller),
            Some(_) if self.waiting >= self.capacity => FlightTurn::AsksAlone(caller),
            Some(flight) => {
                self.waiting += 1;
                flight.waiting.push_back(caller);
                FlightTurn::Waits
            }
        }
    }

    /// Begins a flight: the first of these callers that has not gone asks, and the others wait for it. `open` makes the
    /// flight and its id. `None` if all have gone.
    pub(crate) fn begin<F>(
        &mut self,
        key: CacheKey,
        mut callers: VecDeque<R>,
        has_gone: impl Fn(&R) -> bool,
        open: impl FnOnce() -> (u64, F),
    ) -> Option<(R, F)> {
        while let Some(first) = callers.pop_front() {
            if has_gone(&first) {
                continue;
            }
            let (id, flight) = open();
            self.waiting += callers.len();
            self.flights.insert(key, OpenFlight { id, waiting: callers });
            return Some((first, flight));
        }
        None
    }

    /// Ends a flight. Returns the callers that waited for it; `None` if it is not the one in progress.
    pub(crate) fn land(&mut self, key: CacheKey, id: u64) -> Option<VecDeque<R>> {
        if self.flights.get(&key)?.id != id {
            return None;
        }
        let flight = self.flights.remove(&key)?;
        self.waiting -= flight.waiting.len();
        Some(flight.waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(n: u8) -> CacheKey {
        CacheKey([n; 32])
    }

    #[test]
    fn caller_beyond_the_capacity_asks_alone() {
        let mut table = FlightTable::new(1, [(key(1), 7)]);
        assert_eq!(table.join(key(1), 'a'), FlightTurn::Waits);
        assert_eq!(table.join(key(1), 'b'), FlightTurn::AsksAlone('b'));
        assert_eq!(table.join(key(2), 'c'), FlightTurn::Asks('c'));
        assert_eq!(table.land(key(1), 6), None, "another flight");
        assert_eq!(table.land(key(1), 7), Some(VecDeque::from(['a'])));
        assert!(!table.has_waiting());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Join(u8),
        /// A waiting caller goes away.
        Leave(prop::sample::Index),
        /// The flight of a key ends, with a result or without one.
        Land(u8, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3_u8).prop_map(Step::Join),
            1 => any::<prop::sample::Index>().prop_map(Step::Leave),
            2 => (0..3_u8, any::<bool>()).prop_map(|(key, replied)| Step::Land(key, replied)),
        ]
    }

    proptest! {
        /// Each caller that does not go asks or gets the end of a flight, exactly once; of equal questions one is in progress.
        #[test]
        fn each_caller_asks_or_is_replied_once(steps in prop::collection::vec(step(), 0..60)) {
            let mut table = FlightTable::new(4, []);
            let (mut waiting, mut gone) = (BTreeSet::new(), BTreeSet::new());
            let mut flights: HashMap<u8, u64> = HashMap::new();
            let (mut callers, mut ids) = (0_u32, 0_u64);
            for step in steps {
                let (n, begins) = match step {
                    Step::Join(n) => {
                        callers += 1;
                        match table.join(key(n), callers) {
                            FlightTurn::Waits => {
                                prop_assert!(flights.contains_key(&n));
                                waiting.insert(callers);
                                continue;
                            }
                            FlightTurn::AsksAlone(caller) => {
                                prop_assert!(caller == callers && flights.contains_key(&n) && waiting.len() >= 4);
                                continue;
                            }
                            FlightTurn::Asks(caller) => {
                                prop_assert!(!flights.contains_key(&n));
                                (n, VecDeque::from([caller]))
                            }
                        }
                    }
                    Step::Leave(index) => {
                        if !waiting.is_empty() {
                            gone.insert(*index.get(&waiting.iter().copied().collect::<Vec<_>>()));
                        }
                        continue;
                    }
                    Step::Land(n, replied) => {
                        let Some(id) = flights.remove(&n) else { continue };
                        prop_assert_eq!(table.land(key(n), id + 1_000), None);
                        let ended = table.land(key(n), id).unwrap();
                        for caller in &ended {
                            prop_assert!(waiting.remove(caller));
                        }
                        if replied { continue } else { (n, ended) }
                    }
                };
                ids += 1;
                let left: Vec<u32> = begins.iter().copied().filter(|caller| !gone.contains(caller)).collect();
                let rest = begins.clone();
                match table.begin(key(n), begins, |caller| gone.contains(caller), || (ids, ())) {
                    Some((first, ())) => {
                        prop_assert_eq!(Some(&first), left.first());
                        flights.insert(n, ids);
                        waiting.extend(rest.into_iter().skip_while(|caller| *caller != first).skip(1));
                    }
                    None => prop_assert!(left.is_empty()),
                }
                prop_assert_eq!(table.has_waiting(), !waiting.is_empty());
            }
        }
    }
}
