//! Load tests: which requests are sent and when, what is recorded of them, and what the record says.
//!
//! **Invariant:** pure: times, ids and replies arrive as data; only [`usage`] reads the kernel's figures of this process.
//! Memory is bounded whatever the number of requests: latencies are histograms, and the ledger of runs has a limit.

pub mod compare;
pub mod ends;
pub mod events;
pub mod html;
pub mod latency;
pub mod measure;
pub mod mix;
pub mod outcome;
pub mod recorder;
pub mod report;
pub mod schedule;
pub mod server;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod threshold;
pub mod timeline;
pub mod usage;

/// A problem of a file or an argument of a load test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadFault {
    /// Stable, such as `load.require`.
    pub code: &'static str,
    /// The problem, its place, and what to write instead.
    pub message: String,
}

impl LoadFault {
    /// A fault with a stable code.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A number that depends on the seed and on `n` alone, evenly distributed (SplitMix64).
fn random(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A share from 0 to below 1 that depends on the seed and on `n` alone.
pub fn random_share(seed: u64, n: u64) -> f64 {
    (random(seed, n) >> 11) as f64 / (1_u64 << 53) as f64
}

/// One of several weights by its place: chosen by their shares, the same for the same seed and `n`; 0 if there are none.
pub fn pick(seed: u64, n: u64, weights: impl Iterator<Item = u32> + Clone) -> usize {
    let sum: u64 = weights.clone().map(u64::from).sum();
    let mut left = random(seed, n) % sum.max(1);
    let chosen = weights.map(u64::from).position(|weight| match left.checked_sub(weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    chosen.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_chosen_by_their_shares() {
        let mut counts = [0; 3];
        (0..3000).for_each(|n| counts[pick(1, n, [1, 0, 2].into_iter())] += 1);
        assert!((900..1100).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
        assert_eq!(pick(1, 1, std::iter::empty()), 0);
    }
}
