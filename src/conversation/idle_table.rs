//! Which idle conversations leave memory first.

use std::collections::BTreeMap;

/// The idle conversations, in the order in which they became idle.
pub(crate) struct IdleTable<T> {
    last: u64,
    waiting: BTreeMap<u64, T>,
}

impl<T> Default for IdleTable<T> {
    fn default() -> Self {
        Self { last: 0, waiting: BTreeMap::new() }
    }
}

impl<T> IdleTable<T> {
    /// Enters one. Returns its number and, if there are more than `max` then, those that came first: a sixteenth at a time,
    /// since a thread that is woken for each costs more than what it does.
    pub(crate) fn enter(&mut self, one: T, max: usize) -> (u64, Vec<T>) {
        self.last += 1;
        self.waiting.insert(self.last, one);
        let mut over = Vec::new();
        if self.waiting.len() > max {
            let staying = max - max / 16;
            while self.waiting.len() > staying
                && let Some((_, first)) = self.waiting.pop_first()
            {
                over.push(first);
            }
        }
        (self.last, over)
    }

    /// Takes out the one with this number, if it is there.
    pub(crate) fn leave(&mut self, number: u64) -> Option<T> {
        self.waiting.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_came_first_leave_when_there_are_too_many() {
        let mut table = IdleTable::default();
        let numbers: Vec<u64> = (0..32)
            .map(|one| table.enter(one, 32))
            .map(|(number, over)| {
                assert!(over.is_empty());
                number
            })
            .collect();
        // The second is in use again.
        table.leave(numbers[1]);
        assert!(table.enter(32, 32).1.is_empty());
        assert_eq!(table.enter(33, 32).1, [0, 2, 3]);
        assert_eq!(table.waiting.len(), 30);
    }

    #[test]
    fn without_room_each_leaves_at_once() {
        let mut table = IdleTable::default();
        assert_eq!(table.enter('a', 0).1, ['a']);
        assert!(table.enter('b', 1).1.is_empty());
        assert_eq!(table.enter('c', 1).1, ['b']);
    }
}
