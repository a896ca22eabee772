//! The limits of one tenant or model.

use std::num::NonZeroU32;
use std::time::Duration;

use super::bucket::{Blocked, Bucket};
use super::{LimitRefusal, PermitUse, Rates};
use crate::llm::ticks::Ticks;

/// The delay that is reported if it is unknown when a place will be free.
const SOON: Duration = Duration::from_secs(1);

/// Requests, tokens and places of one tenant or model.
#[derive(Debug)]
pub(super) struct RateGate {
    of: String,
    section: String,
    is_model: bool,
    rates: Rates,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    taken: u32,
}

/// Why an attempt cannot pass a gate now.
#[derive(Debug)]
pub(super) struct GateRefusal {
    pub(super) refusal: LimitRefusal,
    /// When it could pass, if only time prevents that.
    pub(super) wait: Option<Duration>,
    /// Whether attempts in progress may return enough for it to pass earlier.
    pub(super) may_shorten: bool,
}

/// The needs of the attempts before a certain one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct QueuedNeeds {
    pub(super) requests: u64,
    pub(super) tokens: u64,
}

impl RateGate {
    pub(super) fn of_tenant(tenant: &str, rates: &Rates, clock: &Ticks) -> Self {
        Self::new(format!("tenant {tenant:?}"), "limits.tenant".to_owned(), false, rates, clock)
    }

    pub(super) fn of_model(model: &str, rates: &Rates, clock: &Ticks) -> Self {
        Self::new(format!("model {model:?}"), format!("limits.models.{model}"), true, rates, clock)
    }

    fn new(of: String, section: String, is_model: bool, rates: &Rates, clock: &Ticks) -> Self {
        // The configuration knows no rate of 0.
        let bucket = |max: Option<u32>| {
            max.map(|max| Bucket::new(NonZeroU32::new(max).unwrap_or(NonZeroU32::MIN), clock.clone()))
        };
        Self {
            of,
            section,
            is_model,
            requests: bucket(rates.requests_per_minute),
            tokens: bucket(rates.tokens_per_minute),
            rates: rates.clone(),
            taken: 0,
        }
    }

    /// Checks that so many tokens can pass at all.
    pub(super) fn check_possible(&self, tokens: u64) -> Result<(), LimitRefusal> {
        match &self.tokens {
            Some(bucket) if bucket.possible(tokens).is_err() => Err(self.refuse_tokens(tokens, None)),
            _ => Ok(()),
        }
    }

    /// Takes a place, a request and `tokens`, or nothing.
    pub(super) fn take(&mut self, tokens: u64) -> Result<(), GateRefusal> {
        if self.rates.concurrent.is_some_and(|max| self.taken >= max) {
            return Err(GateRefusal { refusal: self.refuse_place(), wait: None, may_shorten: true });
        }
        if let Some(bucket) = &self.requests
            && let Err(blocked) = bucket.take(1)
        {
            let wait = blocked.wait();
            return Err(GateRefusal { refusal: self.refuse_request(wait), wait, may_shorten: false });
        }
        if let Some(bucket) = &self.tokens
            && let Err(blocked) = bucket.take(tokens)
        {
            if let Some(requests) = &self.requests {
                requests.settle(1, 0);
            }
            let wait = blocked.wait();
            let may_shorten = self.taken > 0;
            return Err(GateRefusal { refusal: self.refuse_tokens(tokens, wait), wait, may_shorten });
        }
        self.taken = self.taken.saturating_add(1);
        Ok(())
    }

    /// Takes what an attempt in progress holds, even if that exceeds the limits.
    pub(super) fn take_unchecked(&mut self, tokens: u64) {
        self.taken = self.taken.saturating_add(1);
        for (bucket, amount) in [(&self.requests, 1), (&self.tokens, tokens)] {
            if let Some(bucket) = bucket {
                bucket.settle(0, amount);
            }
        }
    }

    /// Returns what an attempt took.
    pub(super) fn give_back(&mut self, tokens: u64, usage: PermitUse) {
        self.taken = self.taken.saturating_sub(1);
        let used = match usage {
            PermitUse::Unknown => return,
            PermitUse::Tokens(used) => used,
            PermitUse::Unused => {
                if let Some(bucket) = &self.requests {
                    bucket.settle(1, 0);
                }
                0
            }
        };
        if let Some(bucket) = &self.tokens {
            bucket.settle(tokens, used);
        }
    }

    /// Why an attempt that has waited until its deadline is refused.
    pub(super) fn refuse_expired(&mut self, tokens: u64) -> LimitRefusal {
        match self.take(tokens) {
            Err(blocked) => blocked.refusal,
            Ok(()) => {
                self.give_back(tokens, PermitUse::Unused);
                self.refuse_place()
            }
        }
    }

    /// A lower bound of how long the rates alone make an attempt wait behind a first one, which waits for `first`, and
    /// those `between`: attempts in progress may return any number of tokens, but no requests. Also returns the refusal
    /// for a wait that is too long.
    pub(super) fn least_wait(
        &self,
        first: Duration,
        between: QueuedNeeds,
        tokens: u64,
    ) -> (Duration, LimitRefusal) {
        let minutes = |amount: u64, max: Option<u32>| {
            max.map_or(Duration::ZERO, |max| Duration::from_secs(60).mul_f64(amount as f64 / f64::from(max)))
        };
        let requests = first + minutes(between.requests + 1, self.rates.requests_per_minute);
        let by_tokens = first + minutes(between.tokens + tokens, self.rates.tokens_per_minute);
        if by_tokens > requests && self.taken == 0 {
            (by_tokens, self.refuse_tokens(tokens, Some(by_tokens)))
        } else {
            (requests, self.refuse_request(Some(requests)))
        }
    }

    pub(super) fn refuse_place(&self) -> LimitRefusal {
        self.refuse("concurrent", self.rates.concurrent, 1, Some(SOON))
    }

    fn refuse_request(&self, retry_after: Option<Duration>) -> LimitRefusal {
        self.refuse("requests_per_minute", self.rates.requests_per_minute, 1, retry_after)
    }

    fn refuse_tokens(&self, tokens: u64, retry_after: Option<Duration>) -> LimitRefusal {
        self.refuse("tokens_per_minute", self.rates.tokens_per_minute, tokens, retry_after)
    }

    fn refuse(
        &self,
        field: &str,
        limit: Option<u32>,
        needs: u64,
        retry_after: Option<Duration>,
    ) -> LimitRefusal {
        LimitRefusal {
            of: self.of.clone(),
            key: format!("{}.{field}", self.section),
            limit: limit.unwrap_or(0),
            needs,
            retry_after,
            models: self.is_model,
        }
    }
}

impl Blocked {
    /// How long to wait; absent if it can never pass.
    fn wait(self) -> Option<Duration> {
        match self {
            Blocked::For(time) => Some(time),
            Blocked::Forever(_) => None,
        }
    }
}
