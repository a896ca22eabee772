//! Stored replies that were found valid, and single flight for equal questions.
//!
//! Questions are equal if their tenant, model and whole request are equal. A reply is stored if it ended by itself and
//! its reader accepted it ([`Confirm`]): errors, truncated and unusable replies are not.
//!
//! [`ReplyCache`] is the interface for the gateway; the actor `ResponseCache` implements it, by the rules of
//! [`FlightTable`].

mod confirm;
mod flights;
mod options;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::guards::GuardUnavailable;
use super::{CallControl, Caller, Completion, Error, ErrorKind, Purpose, RequestDigest};
use crate::run::{Attempt, Reply, TenantId, Usage};

pub use confirm::Confirm;
pub(crate) use flights::{FlightTable, FlightTurn};
pub use options::{Mode, Options};

/// Approximate bytes that an entry takes besides its texts: its key, its positions in the orders of use and age, and
/// the waste of small allocations.
const ENTRY_OVERHEAD: usize = 768;

/// Approximate bytes that a function call of a reply takes besides its texts.
const CALL_OVERHEAD: usize = 256;

/// The cache of replies. An implementation may be in another process, and reply later.
#[async_trait]
pub trait ReplyCache: Send + Sync + std::fmt::Debug {
    /// How a caller's question uses the cache.
    fn mode(&self, caller: &Caller, purpose: Purpose) -> Mode;

    /// Looks a question up. Waits while an equal one is in progress.
    async fn look_up(&self, key: CacheKey) -> Result<CacheLookup, GuardUnavailable>;

    /// Stores a reply that its reader accepted.
    fn store(&self, key: CacheKey, reply: CachedReply);

    /// Drops a reply that a reader could not use.
    fn reject(&self, key: CacheKey);

    /// What happened since the start, and how many replies are stored.
    async fn report(&self) -> Result<CacheReport, GuardUnavailable>;
}

/// The result of a lookup.
#[derive(Debug)]
pub enum CacheLookup {
    /// A stored reply.
    Hit(Arc<CachedReply>),
    /// How an equal question that was in progress ended.
    Joined(FlightResult),
    /// Nothing: the caller asks. Equal questions wait for the end of its flight.
    Ask(Option<Flight>),
}

/// How a question to a model ended.
pub type FlightResult = Result<Completion, Error>;

/// The key by which two questions are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of the request with this digest, of `tenant`, to the model that `model` identifies.
    pub(crate) fn new(tenant: &TenantId, model: &str, request: &RequestDigest) -> Self {
        let mut hash = Sha256::new();
        // Each text is preceded by its length, so that no two different triples have the same bytes.
        for text in [tenant.as_str(), model] {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        hash.update(request.bytes());
        Self(hash.finalize().into())
    }
}

/// A reply that can be given again.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedReply {
    /// The reply.
    pub reply: Reply,
    /// The cost of getting it.
    pub cost: Usage,
    /// What it is for, which decides how long it is kept.
    pub purpose: Purpose,
}

impl CachedReply {
    /// Its approximate size in bytes.
    pub(crate) fn weight(&self) -> u32 {
        let reply = &self.reply;
        let calls: usize =
            reply.calls.iter().map(|c| CALL_OVERHEAD + c.id.len() + c.name.len() + c.arguments.len()).sum();
        u32::try_from(ENTRY_OVERHEAD + reply.text.len() + calls).unwrap_or(u32::MAX)
    }
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Questions answered with a stored reply.
    pub hits: u64,
    /// Questions answered with the reply to an equal one that was in progress.
    pub shared: u64,
    /// Questions that a model had to answer although the cache was asked.
    pub misses: u64,
    /// Replies that were stored.
    pub stored: u64,
    /// Replies that their readers refused.
    pub rejected: u64,
    /// What hits and shared replies would have cost, in nano-USD.
    pub saved_nano_usd: u64,
    /// Replies that are stored now.
    pub entries: u64,
}

/// Where flights end. One-way: called in destructors.
pub trait FlightReturns: Send + Sync {
    /// The flight ended: with a result for equal questions, or without one, so that one of them asks.
    fn land(&self, key: CacheKey, flight: u64, result: Option<FlightResult>);
}

/// A question in progress that equal ones wait for. Dropped without a result, one of them asks instead.
pub struct Flight {
    returns: Option<Arc<dyn FlightReturns>>,
    key: CacheKey,
    id: u64,
}

impl Flight {
    /// The open flight with this id, which `returns` ends.
    pub(crate) fn new(returns: Arc<dyn FlightReturns>, key: CacheKey, id: u64) -> Self {
        Self { returns: Some(returns), key, id }
    }

    /// Gives the result to the waiting callers, unless it is a failure that concerns only this one.
    pub(crate) fn land(mut self, result: &FlightResult) {
        let concerns_others = result.as_ref().err().is_none_or(is_failure_of_model);
        if let Some(returns) = self.returns.take() {
            returns.land(self.key, self.id, concerns_others.then(|| result.clone()));
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(returns) = self.returns.take() {
            returns.land(self.key, self.id, None);
        }
    }
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flight").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The cost that an available reply saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheSaving {
    /// [`Attempt::CACHED`] or [`Attempt::JOINED`].
    pub(crate) how: &'static str,
    pub(crate) nano_usd: u64,
}

/// A reply, from the cache or not.
pub(crate) struct ResolvedReply {
    pub(crate) completion: Completion,
    pub(crate) cached: bool,
    /// The saving, if the reply was available.
    pub(crate) saved: Option<CacheSaving>,
    pub(crate) confirm: Confirm,
}

impl ResolvedReply {
    /// A reply that the cache has nothing to do with.
    pub(crate) fn uncached(completion: Completion) -> Self {
        Self { completion, cached: false, saved: None, confirm: Confirm::default() }
    }
}

/// How a question uses the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheUse {
    pub(crate) mode: Mode,
    pub(crate) purpose: Purpose,
    /// Maximum number of tokens of a reply that was not cut.
    pub(crate) max_output: u64,
}

/// Why there is no reply.
pub(crate) struct ResolveError {
    pub(crate) error: Error,
    /// Whether this is the end of an equal question that was in progress.
    pub(crate) joined: bool,
}

impl From<Error> for ResolveError {
    fn from(error: Error) -> Self {
        Self { error, joined: false }
    }
}

/// The reply stored under `key`, or that of an equal question in progress, or that of `ask`.
pub(crate) async fn resolve(
    cache: &Arc<dyn ReplyCache>,
    key: CacheKey,
    usage: CacheUse,
    ctl: &CallControl,
    ask: impl Future<Output = FlightResult>,
) -> Result<ResolvedReply, ResolveError> {
    let fresh = |completion| resolve_fresh(cache, key, usage, completion);
    if !usage.mode.reads() {
        return Ok(ask.await.map(fresh)?);
    }
    let found = ctl.within(cache.look_up(key)).await.map_err(|kind| Error::new("cache", kind))?;
    // The cache is an optimisation: if it fails, the model is asked.
    let found = found.unwrap_or_else(|error| {
        tracing::warn!(%error, "a question is asked without the cache");
        CacheLookup::Ask(None)
    });
    match found {
        CacheLookup::Hit(stored) => {
            Ok(resolve_free(cache, key, stored.reply.clone(), stored.cost, Attempt::CACHED))
        }
        CacheLookup::Joined(Ok(done)) => {
            Ok(resolve_free(cache, key, done.reply, done.usage, Attempt::JOINED))
        }
        CacheLookup::Joined(Err(error)) => {
            Err(ResolveError { error: error.costing(Usage::default()), joined: true })
        }
        CacheLookup::Ask(flight) => {
            let result = ask.await;
            if let Some(flight) = flight {
                flight.land(&result);
            }
            Ok(result.map(fresh)?)
        }
    }
}

/// A reply that costs its caller nothing.
fn resolve_free(
    cache: &Arc<dyn ReplyCache>,
    key: CacheKey,
    reply: Reply,
    cost: Usage,
    how: &'static str,
) -> ResolvedReply {
    let completion = Completion { reply, usage: Usage::default(), first_token: None };
    let saved = Some(CacheSaving { how, nano_usd: cost.cost_nano_usd });
    ResolvedReply { completion, cached: true, saved, confirm: Confirm::of(cache.clone(), key, None) }
}

fn resolve_fresh(
    cache: &Arc<dyn ReplyCache>,
    key: CacheKey,
    usage: CacheUse,
    completion: Completion,
) -> ResolvedReply {
    let CacheUse { mode, purpose, max_output } = usage;
    if mode == Mode::Off {
        return ResolvedReply::uncached(completion);
    }
    let is_stored = mode.writes() && is_whole(&completion, max_output);
    let reply = || CachedReply { reply: completion.reply.clone(), cost: completion.usage, purpose };
    let confirm = Confirm::of(cache.clone(), key, is_stored.then(reply));
    ResolvedReply { completion, cached: false, saved: None, confirm }
}

/// Whether the model ended its reply by itself.
fn is_whole(completion: &Completion, max_output: u64) -> bool {
    let ended = completion.reply.finish_reason.as_deref();
    ended.is_some_and(|reason| {
        ["stop", "tool_calls", "function_call"].iter().any(|whole| reason.eq_ignore_ascii_case(whole))
    }) && completion.usage.output_tokens < max_output
}

/// Whether callers with equal questions get this failure, too: because it is the model's, and not the caller's.
fn is_failure_of_model(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::Cancelled
            | ErrorKind::Timeout { .. }
            | ErrorKind::Budget(_)
            | ErrorKind::Limits(_)
            | ErrorKind::Unavailable(_)
            | ErrorKind::Internal { .. }
    )
}

/// How long a reply is stored.
pub(crate) fn time_to_live(options: &Options, purpose: Purpose) -> Duration {
    let max = if purpose.is_consultation() { options.consultation_ttl_s } else { u64::MAX };
    Duration::from_secs(options.ttl_s.min(max))
}
