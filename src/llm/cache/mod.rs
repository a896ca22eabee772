//! Replies that were given once and found valid, and one flight for equal questions.
//!
//! What makes two questions equal is the tenant, the model and the whole request. What is kept is a
//! reply that ended by itself and that its reader accepted ([`Confirm`]): no error, nothing cut, and
//! nothing that could not be used.

mod confirm;
mod flight;
mod options;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::ticks::Ticks;
use super::{CallControl, Caller, Completion, Error, ErrorKind, Purpose, Request};
use crate::run::{Attempt, Reply, TenantId, Usage};
use flight::{FlightRole, Flights};

pub use confirm::Confirm;
pub use options::{Mode, Options};

/// What an entry takes beside its texts, about.
const OVERHEAD: usize = 256;

/// What makes two questions equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey([u8; 32]);

impl CacheKey {
    /// The key of a request of `tenant` to the model that `model` identifies.
    pub(crate) fn new(tenant: &TenantId, model: &str, request: &Request) -> Self {
        let mut hash = Hashing(Sha256::new());
        // As JSON, so that no two different triples are the same text. Writing into a hash cannot fail,
        // and a request is plain data.
        let _ = serde_json::to_writer(&mut hash, &(tenant, model, request));
        Self(hash.0.finalize().into())
    }
}

/// What is written into it is hashed.
struct Hashing(Sha256);

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct CachedReply {
    reply: Reply,
    /// What it cost to get.
    cost: Usage,
    /// When it was kept, by the cache's clock.
    at: Duration,
}

/// The cache; clones share it.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<CacheState>,
}

struct CacheState {
    replies: moka::future::Cache<CacheKey, Arc<CachedReply>>,
    flights: Flights,
    options: Options,
    clock: Ticks,
    counts: CacheCounters,
}

#[derive(Default)]
struct CacheCounters {
    hits: AtomicU64,
    shared: AtomicU64,
    misses: AtomicU64,
    stored: AtomicU64,
    rejected: AtomicU64,
    saved: AtomicU64,
}

/// What happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Questions answered with a kept reply.
    pub hits: u64,
    /// Questions answered with the reply to an equal one that was in progress.
    pub shared: u64,
    /// Questions that a model had to answer although the cache was asked.
    pub misses: u64,
    /// Replies that were kept.
    pub stored: u64,
    /// Replies that their readers refused.
    pub rejected: u64,
    /// What hits and shared replies would have cost, in nano-USD.
    pub saved_nano_usd: u64,
}

/// What a reply that was there already would have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Saved {
    /// [`Attempt::CACHED`] or [`Attempt::JOINED`].
    pub(crate) how: &'static str,
    pub(crate) nano_usd: u64,
}

/// A reply, from the cache or not.
pub(crate) struct CacheLookup {
    pub(crate) completion: Completion,
    pub(crate) cached: bool,
    /// What was saved, where it was there already.
    pub(crate) saved: Option<Saved>,
    pub(crate) confirm: Confirm,
}

impl Cache {
    /// An empty cache.
    pub fn new(options: &Options) -> Self {
        let replies = moka::future::Cache::builder()
            .max_capacity(options.max_bytes)
            .weigher(|_, kept: &Arc<CachedReply>| weight(&kept.reply))
            .time_to_live(Duration::from_secs(options.ttl_s))
            .build();
        let inner = CacheState {
            replies,
            flights: Flights::default(),
            options: options.clone(),
            clock: Ticks::new(),
            counts: CacheCounters::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// How a caller's question is to use the cache.
    pub(crate) fn mode(&self, caller: &Caller, purpose: Purpose) -> Mode {
        if self.inner.options.max_bytes == 0 {
            return Mode::Off;
        }
        caller.cache.unwrap_or_else(|| self.inner.options.purposes.get(&purpose).copied().unwrap_or_default())
    }

    /// What happened since the start.
    pub fn stats(&self) -> CacheStats {
        let counts = &self.inner.counts;
        CacheStats {
            hits: counts.hits.load(Relaxed),
            shared: counts.shared.load(Relaxed),
            misses: counts.misses.load(Relaxed),
            stored: counts.stored.load(Relaxed),
            rejected: counts.rejected.load(Relaxed),
            saved_nano_usd: counts.saved.load(Relaxed),
        }
    }

    /// How many replies are kept.
    pub async fn entries(&self) -> u64 {
        self.inner.replies.run_pending_tasks().await;
        self.inner.replies.entry_count()
    }

    /// The reply kept under `key`, or that of an equal question in progress, or that of `ask`, whose
    /// replies have at most `max_output` tokens unless they are cut.
    pub(crate) async fn through(
        &self,
        key: CacheKey,
        mode: Mode,
        max_output: u64,
        ctl: &CallControl,
        ask: impl Future<Output = Result<Completion, Error>>,
    ) -> Result<CacheLookup, Error> {
        if !mode.reads() {
            return ask.await.map(|completion| self.fresh(key, mode, max_output, completion));
        }
        // Each round waits for the end of a flight, and the deadline bounds them all.
        loop {
            if let Some(kept) = self.get(&key).await {
                self.inner.counts.hits.fetch_add(1, Relaxed);
                return Ok(self.free(key, kept.reply.clone(), kept.cost, Attempt::CACHED));
            }
            match self.inner.flights.place(key) {
                FlightRole::First(flight) => {
                    self.inner.counts.misses.fetch_add(1, Relaxed);
                    let result = ask.await;
                    flight.land(&result);
                    return result.map(|completion| self.fresh(key, mode, max_output, completion));
                }
                FlightRole::Behind(flight) => {
                    let landed =
                        ctl.within(flight.landed()).await.map_err(|kind| Error::new("cache", kind))?;
                    match landed {
                        Some(Ok(completion)) => {
                            self.inner.counts.shared.fetch_add(1, Relaxed);
                            return Ok(self.free(key, completion.reply, completion.usage, Attempt::JOINED));
                        }
                        Some(Err(error)) => return Err(error.costing(Usage::default())),
                        // Whoever was first gave up for reasons of its own: somebody else is first now.
                        None => {}
                    }
                }
            }
        }
    }

    async fn get(&self, key: &CacheKey) -> Option<Arc<CachedReply>> {
        let kept = self.inner.replies.get(key).await?;
        let age = self.inner.clock.elapsed().saturating_sub(kept.at);
        if age < Duration::from_secs(self.inner.options.ttl_s) {
            return Some(kept);
        }
        self.inner.replies.invalidate(key).await;
        None
    }

    /// A reply that costs its caller nothing.
    fn free(&self, key: CacheKey, reply: Reply, cost: Usage, how: &'static str) -> CacheLookup {
        self.inner.counts.saved.fetch_add(cost.cost_nano_usd, Relaxed);
        let completion = Completion { reply, usage: Usage::default(), first_token: None };
        let saved = Some(Saved { how, nano_usd: cost.cost_nano_usd });
        CacheLookup { completion, cached: true, saved, confirm: Confirm::of(self.clone(), key, None) }
    }

    fn fresh(&self, key: CacheKey, mode: Mode, max_output: u64, completion: Completion) -> CacheLookup {
        let confirm = match mode {
            Mode::Off => Confirm::default(),
            mode => {
                let keep = mode.writes() && is_whole(&completion, max_output);
                let kept = || CachedReply {
                    reply: completion.reply.clone(),
                    cost: completion.usage,
                    at: self.inner.clock.elapsed(),
                };
                Confirm::of(self.clone(), key, keep.then(kept))
            }
        };
        CacheLookup { completion, cached: false, saved: None, confirm }
    }

    async fn keep(&self, key: CacheKey, kept: CachedReply) {
        self.inner.counts.stored.fetch_add(1, Relaxed);
        self.inner.replies.insert(key, Arc::new(kept)).await;
    }

    async fn drop_rejected(&self, key: &CacheKey) {
        self.inner.counts.rejected.fetch_add(1, Relaxed);
        self.inner.replies.invalidate(key).await;
    }
}

impl Default for Cache {
    /// Keeps nothing.
    fn default() -> Self {
        Self::new(&Options { max_bytes: 0, ..Options::default() })
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Whether the model ended its reply by itself.
fn is_whole(completion: &Completion, max_output: u64) -> bool {
    let ended = completion.reply.finish_reason.as_deref();
    ended.is_some_and(|reason| {
        ["stop", "tool_calls", "function_call"].iter().any(|whole| reason.eq_ignore_ascii_case(whole))
    }) && completion.usage.output_tokens < max_output
}

fn weight(reply: &Reply) -> u32 {
    let calls: usize =
        reply.calls.iter().map(|c| OVERHEAD + c.id.len() + c.name.len() + c.arguments.len()).sum();
    u32::try_from(OVERHEAD + reply.text.len() + calls).unwrap_or(u32::MAX)
}

/// Whether others that asked the same may be told of this failure: it is the model's, not the caller's.
fn is_the_models(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::Cancelled
            | ErrorKind::Timeout { .. }
            | ErrorKind::Budget(_)
            | ErrorKind::Limits(_)
            | ErrorKind::Internal { .. }
    )
}
