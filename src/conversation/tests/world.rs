//! What proptest chooses: bounds, how much goes wrong, and a tape of dice.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::memory;

/// One invented world.
#[derive(Debug, Clone)]
pub struct World {
    pub max_queued: usize,
    pub memory: memory::Options,
    /// How many things happen before everything that began ends.
    pub moves: usize,
    /// Out of 16: how often a read, an append or a summary fails.
    pub faults: u16,
    /// Out of 24: how often a driver panics.
    pub panics: u16,
    /// The maximum number of crashes of the process.
    pub crashes: u32,
    /// Out of 8: how often a message is not a request.
    pub people: u16,
    /// Choices, in the order in which they are made; then `seed` continues.
    pub tape: Vec<u16>,
    pub seed: u64,
}

/// Worlds in which everything can go wrong.
pub fn worlds() -> impl Strategy<Value = World> {
    let faults = prop_oneof![3 => Just(0u16), 2 => 1..3u16, 1 => 3..9u16];
    let panics = prop_oneof![3 => Just(0u16), 2 => 1..4u16, 1 => 12..24u16];
    let memory = (1..3usize, 1..6usize).prop_map(|(keep_turns, more)| memory::Options {
        keep_turns,
        max_turns_in_prompt: keep_turns + more,
        ..memory::Options::default()
    });
    let tape = (vec(any::<u16>(), 0..160), any::<u64>());
    (1..5usize, memory, 10..160usize, faults, panics, 0..4u32, 1..8u16, tape).prop_map(
        |(max_queued, memory, moves, faults, panics, crashes, people, (tape, seed))| World {
            max_queued,
            memory,
            moves,
            faults,
            panics,
            crashes,
            people,
            tape,
            seed,
        },
    )
}

/// Worlds in which nothing fails: only orders differ.
pub fn calm_worlds() -> impl Strategy<Value = World> {
    worlds().prop_map(|world| World { faults: 0, panics: 0, crashes: 0, ..world })
}
