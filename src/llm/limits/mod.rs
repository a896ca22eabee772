//! Rate limits: requests and tokens a minute and attempts at once, of each tenant and of each model.
//!
//! An attempt waits for its turn up to a bound and is then refused, with the time after which to come
//! again. Tokens are taken by estimate before it and settled by the actual figure after it. Like the
//! budget this is a handle and not an actor: taking from a bucket is a few atomic steps, and waiting is
//! the caller's own.

mod bucket;
mod options;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::ticks::Ticks;
use crate::run::TenantId;
use bucket::{Blocked, Bucket};

pub use options::{Options, Rates};

/// What to say of when a place will be free: no one knows.
const SOON: Duration = Duration::from_secs(1);

/// Why an attempt was not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRefusal {
    /// Whose limit: `tenant "acme"`, `model "main"`.
    pub of: String,
    /// The limit's key, such as `limits.tenant.tokens_per_minute`.
    pub key: String,
    /// Its value.
    pub limit: u32,
    /// What the attempt needs of it.
    pub needs: u64,
    /// When to come again; absent where it can never pass.
    pub retry_after: Option<Duration>,
    /// Whether it is the model's limit, so that another model may serve.
    pub models: bool,
}

impl std::fmt::Display for LimitRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LimitRefusal { of, key, limit, needs, .. } = self;
        match self.retry_after {
            Some(after) => {
                let seconds = after.as_secs_f64().ceil();
                write!(
                    f,
                    "the limit of {of} is reached (`{key}` = {limit}, this call needs {needs}): try again in {seconds} s"
                )
            }
            None => write!(
                f,
                "it needs {needs}, and `{key}` = {limit} of {of} never lets so much pass: raise it, or lower \
                 `max_output_tokens` or the request's length"
            ),
        }
    }
}

/// Attempts that were refused since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitStats {
    /// By a limit of their tenant.
    pub tenant: u64,
    /// By a limit of their model.
    pub model: u64,
}

/// The limits; clones share them.
#[derive(Clone)]
pub struct RateLimits {
    inner: Arc<LimitsState>,
}

struct LimitsState {
    options: Options,
    /// As many as there are tenants, which are configured.
    tenants: Mutex<HashMap<TenantId, RateGate>>,
    models: HashMap<String, RateGate>,
    refused_tenant: AtomicU64,
    refused_model: AtomicU64,
    clock: Ticks,
}

/// The limits of one tenant or model.
#[derive(Clone)]
struct RateGate {
    of: String,
    section: String,
    rates: Rates,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    places: Option<Arc<Semaphore>>,
}

impl RateGate {
    fn new(of: String, section: String, rates: &Rates, clock: &Ticks) -> Self {
        // The configuration knows no rate of 0.
        let bucket = |most: Option<u32>| {
            most.map(|most| Bucket::new(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN), clock.clone()))
        };
        Self {
            of,
            section,
            requests: bucket(rates.requests_per_minute),
            tokens: bucket(rates.tokens_per_minute),
            places: rates.concurrent.map(|most| Arc::new(Semaphore::new(most as usize))),
            rates: rates.clone(),
        }
    }

    /// Waits until `deadline` for a place, a request and `tokens`; holds all or nothing.
    async fn enter(&self, tokens: u64, deadline: Instant, models: bool) -> Result<GatePermit, LimitRefusal> {
        let refusal =
            |field: &str, limit: Option<u32>, needs: u64, retry_after: Option<Duration>| LimitRefusal {
                of: self.of.clone(),
                key: format!("{}.{field}", self.section),
                limit: limit.unwrap_or(0),
                needs,
                retry_after,
                models,
            };
        let tokens_refused =
            |after| refusal("tokens_per_minute", self.rates.tokens_per_minute, tokens, after);
        if let Some(bucket) = &self.tokens {
            bucket.possible(tokens).map_err(|_| tokens_refused(None))?;
        }
        let place = match &self.places {
            Some(places) => match tokio::time::timeout_at(deadline, places.clone().acquire_owned()).await {
                Ok(Ok(place)) => Some(place),
                // The semaphore is never closed.
                Ok(Err(_)) | Err(_) => {
                    return Err(refusal("concurrent", self.rates.concurrent, 1, Some(SOON)));
                }
            },
            None => None,
        };
        if let Some(bucket) = &self.requests {
            wait(bucket, 1, deadline)
                .await
                .map_err(|after| refusal("requests_per_minute", self.rates.requests_per_minute, 1, after))?;
        }
        // From here on what was taken is given back if the attempt goes no further.
        let mut entered = GatePermit { gate: self.clone(), _place: place, tokens: 0, sent: false };
        if let Some(bucket) = &self.tokens {
            wait(bucket, tokens, deadline).await.map_err(tokens_refused)?;
            entered.tokens = tokens;
        }
        Ok(entered)
    }
}

/// Takes from a bucket as soon as it lets, until the deadline. The error says when to come again.
async fn wait(bucket: &Bucket, amount: u64, deadline: Instant) -> Result<(), Option<Duration>> {
    // Others may have been quicker after a wait; the deadline bounds the tries.
    loop {
        match bucket.take(amount) {
            Ok(()) => return Ok(()),
            Err(Blocked::Forever(_)) => return Err(None),
            Err(Blocked::For(time)) if Instant::now() + time > deadline => return Err(Some(time)),
            // At least a millisecond, which is as fine as the timer is.
            Err(Blocked::For(time)) => tokio::time::sleep(time.max(Duration::from_millis(1))).await,
        }
    }
}

/// What an attempt holds of one gate.
struct GatePermit {
    gate: RateGate,
    _place: Option<OwnedSemaphorePermit>,
    tokens: u64,
    /// What was taken is used, as far as is known.
    sent: bool,
}

impl Drop for GatePermit {
    fn drop(&mut self) {
        if self.sent {
            return;
        }
        if let Some(bucket) = &self.gate.requests {
            bucket.settle(1, 0);
        }
        if let Some(bucket) = &self.gate.tokens {
            bucket.settle(self.tokens, 0);
        }
    }
}

/// An attempt that was let through. Dropped before [`sent`](Self::sent) it gives everything back, and
/// after it nothing but its places.
pub(crate) struct AttemptPermit {
    entered: Vec<GatePermit>,
}

impl AttemptPermit {
    /// The model is asked from here on.
    pub(crate) fn sent(&mut self) {
        for entered in &mut self.entered {
            entered.sent = true;
        }
    }

    /// The attempt used so many tokens.
    pub(crate) fn settle(self, used: u64) {
        for GatePermit { gate, tokens, .. } in &self.entered {
            if let Some(bucket) = &gate.tokens {
                bucket.settle(*tokens, used);
            }
        }
    }
}

impl RateLimits {
    /// Limits, with nothing used of them.
    pub fn new(options: &Options) -> Self {
        let clock = Ticks::new();
        let gate = |(name, rates): (&String, &Rates)| {
            let gate =
                RateGate::new(format!("model {name:?}"), format!("limits.models.{name}"), rates, &clock);
            (name.clone(), gate)
        };
        let models = options.models.iter().map(gate).collect();
        let inner = LimitsState {
            options: options.clone(),
            tenants: Mutex::default(),
            models,
            refused_tenant: AtomicU64::new(0),
            refused_model: AtomicU64::new(0),
            clock,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Waits, up to the bound, until a call of `tenant` with about so many tokens may go to `model`.
    ///
    /// # Errors
    /// Which limit stands in the way, and when to come again.
    pub(crate) async fn enter(
        &self,
        tenant: &TenantId,
        model: &str,
        tokens: u64,
    ) -> Result<AttemptPermit, LimitRefusal> {
        let deadline = Instant::now() + Duration::from_millis(self.inner.options.max_wait_ms);
        // The tenant first: one that waits for itself keeps nothing of the model's from others.
        let entered = async {
            let mut entered = Vec::with_capacity(2);
            if let Some(gate) = self.tenant(tenant) {
                entered.push(gate.enter(tokens, deadline, false).await?);
            }
            if let Some(gate) = self.inner.models.get(model) {
                entered.push(gate.enter(tokens, deadline, true).await?);
            }
            Ok(AttemptPermit { entered })
        };
        let result: Result<AttemptPermit, LimitRefusal> = entered.await;
        if let Err(refusal) = &result {
            let LimitsState { refused_tenant, refused_model, .. } = &*self.inner;
            let count = if refusal.models { refused_model } else { refused_tenant };
            count.fetch_add(1, Relaxed);
        }
        result
    }

    /// Attempts that were refused since the start.
    pub fn refused(&self) -> u64 {
        let LimitStats { tenant, model } = self.stats();
        tenant + model
    }

    /// The same, by whose limit it was.
    pub fn stats(&self) -> LimitStats {
        let LimitsState { refused_tenant, refused_model, .. } = &*self.inner;
        LimitStats { tenant: refused_tenant.load(Relaxed), model: refused_model.load(Relaxed) }
    }

    fn tenant(&self, tenant: &TenantId) -> Option<RateGate> {
        let rates = &self.inner.options.tenant;
        if *rates == Rates::default() {
            return None;
        }
        // A map that is only inserted into is consistent at any time.
        let mut tenants = self.inner.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            RateGate::new(
                format!("tenant {:?}", tenant.as_str()),
                "limits.tenant".to_owned(),
                rates,
                &self.inner.clock,
            )
        };
        Some(tenants.entry(tenant.clone()).or_insert_with(new).clone())
    }
}

impl Default for RateLimits {
    /// None.
    fn default() -> Self {
        Self::new(&Options::default())
    }
}

impl std::fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
