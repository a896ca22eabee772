//! One rate a minute, with a credit for what was taken and not used.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::llm::ticks::Ticks;
use crate::mutex::lock;

/// After this long without new credit, the rate itself has filled up again, and the credit is void: together they never
/// exceed what was returned.
const FILLED: Duration = Duration::from_secs(60);

/// A rate a minute; all of it may be taken at once.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    inner: Arc<BucketState>,
}

#[derive(Debug)]
struct BucketState {
    max: NonZeroU32,
    clock: Ticks,
    rate: RateLimiter<NotKeyed, InMemoryState, Ticks, NoOpMiddleware<Nanos>>,
    credit: Mutex<Credit>,
}

/// What calls took and did not use; if negative, what they used beyond what they took. At most `max` either way.
#[derive(Debug)]
struct Credit {
    amount: i64,
    /// When, by the clock.
    given: Duration,
}

/// The limit that stands in the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Ask again after this long.
    For(Duration),
    /// The amount is more than can ever be taken: this much.
    Forever(u32),
}

impl Bucket {
    pub(super) fn new(max: NonZeroU32, clock: Ticks) -> Self {
        let rate = RateLimiter::direct_with_clock(Quota::per_minute(max), clock.clone());
        let credit = Mutex::new(Credit { amount: 0, given: clock.elapsed() });
        Self { inner: Arc::new(BucketState { max, clock, rate, credit }) }
    }

    /// Checks that `amount` can ever be taken.
    pub(super) fn possible(&self, amount: u64) -> Result<(), Blocked> {
        let max = self.inner.max.get();
        if amount > u64::from(max) { Err(Blocked::Forever(max)) } else { Ok(()) }
    }

    /// Takes `amount`, or nothing.
    pub(super) fn take(&self, amount: u64) -> Result<(), Blocked> {
        self.possible(amount)?;
        let mut credit = self.credit();
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        let max = i64::from(self.inner.max.get());
        // A debt is paid by the next call, as far as one call can pay it.
        let wanted = amount.saturating_sub(credit.amount).clamp(0, max);
        if let Some(wanted) = u32::try_from(wanted).ok().and_then(NonZeroU32::new) {
            match self.inner.rate.check_n(wanted) {
                Ok(Ok(())) => {}
                Ok(Err(not_until)) => {
                    return Err(Blocked::For(not_until.wait_time_from(self.inner.clock.now())));
                }
                Err(_) => return Err(Blocked::Forever(self.inner.max.get())),
            }
        }
        credit.amount = (credit.amount + wanted - amount).clamp(-max, max);
        Ok(())
    }

    /// Corrects the amount `taken` to the amount `used`.
    pub(super) fn settle(&self, taken: u64, used: u64) {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let max = i64::from(self.inner.max.get());
        let mut credit = self.credit();
        let change = signed(taken).saturating_sub(signed(used));
        credit.amount = credit.amount.saturating_add(change).clamp(-max, max);
        credit.given = self.inner.clock.elapsed();
    }

    fn credit(&self) -> MutexGuard<'_, Credit> {
        // Two numbers; no change of them can panic halfway.
        let mut credit = lock(&self.inner.credit);
        if self.inner.clock.elapsed().saturating_sub(credit.given) >= FILLED {
            credit.amount = credit.amount.min(0);
        }
        credit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(max: u32) -> Bucket {
        Bucket::new(NonZeroU32::new(max).unwrap(), Ticks::new())
    }

    #[test]
    fn tokens_of_a_minute_pass_at_once_and_then_at_the_rate() {
        let bucket = bucket(60);
        bucket.take(60).unwrap();
        let Err(Blocked::For(wait)) = bucket.take(2) else { panic!("two more passed") };
        assert!(wait > Duration::from_secs(1) && wait <= Duration::from_secs(2), "{wait:?}");
        bucket.inner.clock.advance(wait);
        bucket.take(2).unwrap();
        assert!(bucket.take(1).is_err());
    }

    #[test]
    fn unused_tokens_are_credited_within_a_bound() {
        let bucket = bucket(1_000);
        bucket.take(1_000).unwrap();
        bucket.settle(1_000, 100);
        bucket.take(900).unwrap();
        assert!(bucket.take(1).is_err());
        bucket.settle(900, 0);
        bucket.settle(1_000, 0);
        bucket.settle(1_000, 0);
        bucket.take(1_000).unwrap();
        assert!(bucket.take(1).is_err(), "the credit is bounded");
    }

    #[test]
    fn credit_is_void_once_the_rate_has_refilled() {
        let bucket = bucket(1_000);
        bucket.take(1_000).unwrap();
        bucket.settle(1_000, 0);
        bucket.inner.clock.advance(Duration::from_secs(60));
        bucket.take(1_000).unwrap();
        assert!(bucket.take(1).is_err());
    }

    #[test]
    fn more_used_than_taken_is_a_debt_that_the_next_call_pays() {
        let bucket = bucket(1_000);
        bucket.take(500).unwrap();
        bucket.settle(500, 800);
        assert!(bucket.take(201).is_err());
        bucket.take(200).unwrap();
    }

    #[test]
    fn call_above_the_rate_never_passes() {
        assert_eq!(bucket(10).take(11), Err(Blocked::Forever(10)));
        bucket(10).take(10).unwrap();
    }
}
