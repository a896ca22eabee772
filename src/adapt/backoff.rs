//! How long a failed call waits before its next attempt.

/// The longest bound of a backoff, without what a server asks for.
const MAX_BACKOFF_MS: u64 = 10_000;

/// The longest wait that a timer is set to: the longest `Retry-After` that can be configured, and a backoff.
pub const MAX_TIMER_MS: u64 = 600_000 + MAX_BACKOFF_MS;

/// The delay before the attempt after `attempt`, which has just failed: what the server asked for, and a backoff that
/// doubles. Half of the backoff is fixed and half depends on `seed` alone, so that calls that failed together do not
/// return together and a replay waits equally. Calls that a server told to wait until the same moment are spread over a
/// quarter of that wait.
pub fn backoff_ms(attempt: u32, backoff_ms: u64, asked_ms: Option<u64>, seed: &str) -> u64 {
    let asked = asked_ms.unwrap_or(0);
    let doubled = backoff_ms.saturating_mul(2_u64.saturating_pow(attempt.saturating_sub(1)));
    let bound = doubled.max(asked / 4).min(MAX_BACKOFF_MS);
    let half = bound / 2;
    asked.saturating_add(half).saturating_add(fnv(seed) % (bound - half + 1))
}

/// FNV-1a, mixed so that seeds that differ in their last character spread.
fn fnv(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn backoff_doubles_up_to_ten_seconds() {
        let range = |attempt, base| {
            let all: Vec<u64> =
                (0..200).map(|n| backoff_ms(attempt, base, None, &format!("run.1.2.{n}"))).collect();
            (all.iter().copied().min().unwrap(), all.iter().copied().max().unwrap())
        };
        let (min, max) = range(1, 250);
        assert!((125..140).contains(&min) && (235..=250).contains(&max), "{min} {max}");
        let (min, max) = range(40, 250);
        assert!((5_000..5_500).contains(&min) && (9_500..=10_000).contains(&max), "{min} {max}");
    }

    proptest! {
        #[test]
        fn backoff_is_bounded_and_replays_equally(
            attempt in any::<u32>(), base in any::<u64>(), asked in proptest::option::of(any::<u64>()), seed in ".{0,20}"
        ) {
            let delay = backoff_ms(attempt, base, asked, &seed);
            prop_assert_eq!(delay, backoff_ms(attempt, base, asked, &seed));
            prop_assert!(delay >= asked.unwrap_or(0));
            prop_assert!(delay <= asked.unwrap_or(0).saturating_add(MAX_BACKOFF_MS));
        }
    }
}
