//! The cache of model replies, with single flight: equal questions in progress share one reply, each with its
//! own list of waiting callers.
//!
//! After a panic the cache is empty. A handle keeps the flights in progress, so questions that ask again still
//! find them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::supervised::{Behavior, GUARD_CAPACITY, Mailbox, MailboxError, SupervisionOptions};
use crate::llm::cache::{
    self, CacheKey, CacheLookup, CacheReport, CachedReply, Flight, FlightResult, FlightReturns, FlightTable,
    FlightTurn, Mode, time_to_live,
};
use crate::llm::{Caller, GuardUnavailable, Purpose};
use crate::mutex::lock;
use crate::telemetry::{Component, ServerMetrics};

/// How a cache is started.
pub struct Options {
    /// Its size, its times and what uses it.
    pub cache: cache::Options,
    /// Records depth, waiting times and restarts.
    pub metrics: ServerMetrics,
}

/// A handle to the cache; clones share it.
#[derive(Debug, Clone)]
pub struct Handle(Arc<CacheShared>);

struct CacheShared {
    mailbox: Mailbox<ResponseCache>,
    options: ArcSwap<cache::Options>,
    flights: Mutex<OpenFlights>,
}

/// The flights in progress, for a new actor.
#[derive(Debug, Default)]
struct OpenFlights {
    flights: HashMap<CacheKey, u64>,
    last_id: u64,
}

impl Handle {
    /// A cache whose actor is not started yet; lookups wait for it.
    pub fn new(options: Options) -> Self {
        Self(Arc::new_cyclic(|shared: &Weak<CacheShared>| {
            let supervision = SupervisionOptions::of_guard(Component::ResponseCache, options.metrics);
            let weak = shared.clone();
            CacheShared {
                mailbox: Mailbox::new(supervision, move |_| ResponseCache::build(&weak)),
                options: ArcSwap::from_pointee(options.cache),
                flights: Mutex::default(),
            }
        }))
    }

    /// Starts the actor on a runtime.
    pub fn start(&self, runtime: tokio::runtime::Handle) {
        self.0.mailbox.start(runtime);
    }

    /// Applies other options. The cache is then empty.
    pub fn configure(&self, options: cache::Options) {
        self.0.options.store(Arc::new(options));
        self.0.mailbox.notify(CacheMessage::Configure);
        // A cache that was turned off gets no lookup, and would keep its replies.
        self.0.mailbox.wake();
    }

    /// Stops the actor.
    pub fn stop(&self) {
        self.0.mailbox.stop();
    }
}

#[async_trait]
impl cache::ReplyCache for Handle {
    fn mode(&self, caller: &Caller, purpose: Purpose) -> Mode {
        self.0.options.load().mode(caller.cache, purpose)
    }

    async fn look_up(&self, key: CacheKey) -> Result<CacheLookup, GuardUnavailable> {
        self.0.mailbox.ask(|reply| CacheMessage::LookUp(key, reply)).await.map_err(unavailable)
    }

    fn store(&self, key: CacheKey, reply: CachedReply) {
        self.0.mailbox.notify(CacheMessage::Store(key, reply));
    }

    fn reject(&self, key: CacheKey) {
        self.0.mailbox.notify(CacheMessage::Reject(key));
    }

    async fn report(&self) -> Result<CacheReport, GuardUnavailable> {
        self.0.mailbox.ask(CacheMessage::Report).await.map_err(unavailable)
    }
}

fn unavailable(error: MailboxError) -> GuardUnavailable {
    error.of_guard("cache of replies")
}

impl CacheShared {
    fn flights(&self) -> MutexGuard<'_, OpenFlights> {
        lock(&self.flights)
    }

    fn open(self: &Arc<Self>, key: CacheKey) -> (u64, Flight) {
        let mut flights = self.flights();
        flights.last_id += 1;
        let id = flights.last_id;
        flights.flights.insert(key, id);
        (id, Flight::new(self.clone(), key, id))
    }
}

impl FlightReturns for CacheShared {
    fn land(&self, key: CacheKey, flight: u64, result: Option<FlightResult>) {
        let mut flights = self.flights();
        if flights.flights.get(&key) == Some(&flight) {
            flights.flights.remove(&key);
        }
        self.mailbox.notify(CacheMessage::Land(key, flight, result));
    }
}

impl std::fmt::Debug for CacheShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseCache").field("options", &self.options.load()).finish_non_exhaustive()
    }
}

type LookupReply = oneshot::Sender<CacheLookup>;

/// What handles send. The first two are questions.
enum CacheMessage {
    LookUp(CacheKey, LookupReply),
    Report(oneshot::Sender<CacheReport>),
    Store(CacheKey, CachedReply),
    Reject(CacheKey),
    Land(CacheKey, u64, Option<FlightResult>),
    Configure,
    #[cfg(test)]
    #[expect(dead_code, reason = "dropped with the message")]
    Panic(oneshot::Sender<()>),
    #[cfg(test)]
    Advance(std::time::Duration),
}

#[derive(Clone)]
struct StoredReply {
    reply: Arc<CachedReply>,
    at: Instant,
}

type StoredReplies = moka::sync::Cache<CacheKey, StoredReply>;

/// The actor's state.
struct ResponseCache {
    shared: Weak<CacheShared>,
    replies: StoredReplies,
    flights: FlightTable<LookupReply>,
    counts: CacheReport,
    #[cfg(test)]
    ahead: std::time::Duration,
}

impl ResponseCache {
    fn build(shared: &Weak<CacheShared>) -> Self {
        let found = shared.upgrade();
        let options = found.as_ref().map(|shared| shared.options.load_full()).unwrap_or_default();
        let in_progress = found.map(|shared| shared.flights().flights.clone()).unwrap_or_default();
        Self {
            shared: shared.clone(),
            replies: empty(&options),
            flights: FlightTable::new(GUARD_CAPACITY, in_progress),
            counts: CacheReport::default(),
            #[cfg(test)]
            ahead: std::time::Duration::ZERO,
        }
    }

    fn look_up(&mut self, key: CacheKey, reply: LookupReply) {
        if let Some(stored) = self.stored(&key) {
            self.counts.hits += 1;
            self.save(stored.cost.cost_nano_usd);
            return drop(reply.send(CacheLookup::Hit(stored)));
        }
        match self.flights.join(key, reply) {
            FlightTurn::Waits => {}
            FlightTurn::AsksAlone(reply) => drop(reply.send(CacheLookup::Ask(None))),
            FlightTurn::Asks(reply) => self.begin_flight(key, VecDeque::from([reply])),
        }
    }

    /// Lets the first of these callers that still waits ask; the others wait for it.
    fn begin_flight(&mut self, key: CacheKey, callers: VecDeque<LookupReply>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let begun = self.flights.begin(key, callers, oneshot::Sender::is_closed, || shared.open(key));
        let Some((first, flight)) = begun else { return };
        self.counts.misses += 1;
        // If it is gone by now, the dropped flight lands, and the next one asks.
        let _ = first.send(CacheLookup::Ask(Some(flight)));
    }

    fn land(&mut self, key: CacheKey, id: u64, result: Option<FlightResult>) {
        let Some(callers) = self.flights.land(key, id) else { return };
        let Some(result) = result else { return self.begin_flight(key, callers) };
        for waiting in callers {
            if waiting.is_closed() {
                continue;
            }
            if let Ok(done) = &result {
                self.counts.shared += 1;
                self.save(done.usage.cost_nano_usd);
            }
            let _ = waiting.send(CacheLookup::Joined(result.clone()));
        }
    }

    fn stored(&self, key: &CacheKey) -> Option<Arc<CachedReply>> {
        let stored = self.replies.get(key)?;
        let ttl = time_to_live(&self.shared.upgrade()?.options.load(), stored.reply.purpose);
        if self.now().saturating_duration_since(stored.at) < ttl {
            return Some(stored.reply);
        }
        self.replies.invalidate(key);
        None
    }

    fn save(&mut self, nano_usd: u64) {
        self.counts.saved_nano_usd = self.counts.saved_nano_usd.saturating_add(nano_usd);
    }

    fn report(&self) -> CacheReport {
        self.replies.run_pending_tasks();
        CacheReport { entries: self.replies.entry_count(), ..self.counts }
    }

    fn now(&self) -> Instant {
        #[cfg(test)]
        return Instant::now() + self.ahead;
        #[cfg(not(test))]
        Instant::now()
    }
}

fn empty(options: &cache::Options) -> StoredReplies {
    moka::sync::Cache::builder()
        .max_capacity(options.max_bytes)
        .weigher(|_, stored: &StoredReply| stored.reply.weight())
        .time_to_live(std::time::Duration::from_secs(options.ttl_s))
        .build()
}

impl Behavior for ResponseCache {
    type Message = CacheMessage;

    fn handle(&mut self, message: CacheMessage) {
        match message {
            CacheMessage::LookUp(key, reply) => self.look_up(key, reply),
            CacheMessage::Report(reply) => drop(reply.send(self.report())),
            CacheMessage::Store(key, reply) => {
                self.counts.stored += 1;
                let stored = StoredReply { reply: Arc::new(reply), at: self.now() };
                self.replies.insert(key, stored);
            }
            CacheMessage::Reject(key) => {
                self.counts.rejected += 1;
                self.replies.invalidate(&key);
            }
            CacheMessage::Land(key, flight, result) => self.land(key, flight, result),
            CacheMessage::Configure => {
                if let Some(shared) = self.shared.upgrade() {
                    self.replies = empty(&shared.options.load());
                }
            }
            #[cfg(test)]
            CacheMessage::Panic(_) => panic!("a test asked for it"),
            #[cfg(test)]
            CacheMessage::Advance(by) => self.ahead += by,
        }
    }

    fn awaits_notices(&self) -> bool {
        self.flights.has_waiting()
    }
}

#[cfg(test)]
mod tests;
