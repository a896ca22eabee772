//! The rate limiter: grants permits for attempts at models, in order, fair between tenants.
//!
//! A handle keeps the open permits. After a panic the new actor takes their places again before it grants
//! anything, so no place is lost or granted twice; rates start unused, but for the attempts in progress. Waiting
//! attempts ask again.
//!
//! Where neither the tenant nor the model is limited, a permit is granted without asking.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::supervised::{Behavior, Mailbox, MailboxError, SupervisionOptions};
use crate::llm::GuardUnavailable;
use crate::llm::limits::{
    self, AttemptPermit, AttemptRequest, LimitError, LimitRefusal, LimitStats, PermitGrant, PermitReturns,
    PermitUse, RateLimits, Rates, Scheduler,
};
use crate::mutex::lock;
use crate::run::TenantId;
use crate::telemetry::{Component, ServerMetrics};

/// How a rate limiter is started.
pub struct Options {
    /// The limits.
    pub limits: limits::Options,
    /// Records depth, waiting times and restarts.
    pub metrics: ServerMetrics,
}

/// A handle to the rate limiter; clones share it.
#[derive(Debug, Clone)]
pub struct Handle(Arc<LimiterShared>);

struct LimiterShared {
    mailbox: Mailbox<RateLimiter>,
    limits: ArcSwap<limits::Options>,
    permits: Mutex<OpenPermits>,
}

/// What the actor granted, for a new actor.
#[derive(Debug, Default)]
struct OpenPermits {
    permits: HashMap<u64, PermitGrant>,
    last_id: u64,
}

impl Handle {
    /// A rate limiter whose actor is not started yet; questions wait for it.
    pub fn new(options: Options) -> Self {
        Self(Arc::new_cyclic(|shared: &Weak<LimiterShared>| {
            let supervision = SupervisionOptions::of_guard(Component::RateLimiter, options.metrics);
            let weak = shared.clone();
            LimiterShared {
                mailbox: Mailbox::new(supervision, move |_| RateLimiter::build(&weak)),
                limits: ArcSwap::from_pointee(options.limits),
                permits: Mutex::default(),
            }
        }))
    }

    /// Starts the actor on a runtime.
    pub fn start(&self, runtime: runtime::Handle) {
        self.0.mailbox.start(runtime);
    }

    /// Applies other limits, of which only the attempts in progress use anything.
    pub fn configure(&self, limits: limits::Options) {
        self.0.limits.store(Arc::new(limits));
        self.0.mailbox.notify(LimiterMessage::Configure);
    }

    /// Stops the actor; waiting attempts get an error.
    pub fn stop(&self) {
        self.0.mailbox.stop();
    }
}

#[async_trait]
impl RateLimits for Handle {
    async fn enter(&self, tenant: &TenantId, model: &str, tokens: u64) -> Result<AttemptPermit, LimitError> {
        let limits = self.0.limits.load_full();
        let grant = PermitGrant { tenant: tenant.clone(), model: model.to_owned(), tokens };
        if is_unlimited(&limits, model)
            && let Some(permit) = self.0.grant_unlimited(&grant)
        {
            return Ok(permit);
        }
        let deadline = Instant::now() + Duration::from_millis(limits.max_wait_ms);
        let message = |reply| LimiterMessage::Enter(AttemptRequest { grant: grant.clone(), deadline, reply });
        let reply = self.0.mailbox.ask(message).await.map_err(unavailable)?;
        reply.map_err(LimitError::Refused)
    }

    async fn stats(&self) -> Result<LimitStats, GuardUnavailable> {
        self.0.mailbox.ask(LimiterMessage::Stats).await.map_err(unavailable)
    }
}

/// Whether neither a tenant nor this model is limited.
fn is_unlimited(limits: &limits::Options, model: &str) -> bool {
    limits.tenant == Rates::default() && !limits.models.contains_key(model)
}

fn unavailable(error: MailboxError) -> GuardUnavailable {
    error.of_guard("rate limiter")
}

impl LimiterShared {
    fn permits(&self) -> MutexGuard<'_, OpenPermits> {
        lock(&self.permits)
    }

    fn open(self: &Arc<Self>, permits: &mut OpenPermits, grant: PermitGrant) -> AttemptPermit {
        permits.last_id += 1;
        let id = permits.last_id;
        permits.permits.insert(id, grant);
        AttemptPermit::new(self.clone(), id)
    }

    /// A permit without asking the actor, if the limits still do not concern it. It is in the table before the
    /// actor reads the table for other limits, and then holds a place.
    fn grant_unlimited(self: &Arc<Self>, grant: &PermitGrant) -> Option<AttemptPermit> {
        let mut permits = self.permits();
        is_unlimited(&self.limits.load(), &grant.model).then(|| self.open(&mut permits, grant.clone()))
    }

    /// A scheduler with the current limits, in which the open permits are taken. Drops the notices of returned
    /// ones: these are not in it.
    fn scheduler(&self) -> Scheduler<PermitReply> {
        let mut scheduler = Scheduler::new(self.limits.load_full());
        let permits = self.permits();
        for grant in permits.permits.values() {
            scheduler.restore(grant);
        }
        self.mailbox.retain(|message| !matches!(message, LimiterMessage::GiveBack(..)));
        scheduler
    }
}

impl PermitReturns for LimiterShared {
    fn give_back(&self, permit: u64, usage: PermitUse) {
        let mut permits = self.permits();
        let Some(grant) = permits.permits.remove(&permit) else { return };
        // Under the lock: a new actor either gets this notice or does not find the permit.
        self.mailbox.notify(LimiterMessage::GiveBack(grant, usage));
    }
}

impl std::fmt::Debug for LimiterShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimiter").field("limits", &self.limits.load()).finish_non_exhaustive()
    }
}

type PermitReply = oneshot::Sender<Result<AttemptPermit, Box<LimitRefusal>>>;

/// What handles send. The first two are questions.
enum LimiterMessage {
    Enter(AttemptRequest<PermitReply>),
    Stats(oneshot::Sender<LimitStats>),
    GiveBack(PermitGrant, PermitUse),
    Configure,
    #[cfg(test)]
    Advance(Duration),
    #[cfg(test)]
    #[expect(dead_code, reason = "dropped with the message")]
    Panic(oneshot::Sender<()>),
}

/// The actor's state.
struct RateLimiter {
    shared: Weak<LimiterShared>,
    scheduler: Scheduler<PermitReply>,
    stats: LimitStats,
}

impl RateLimiter {
    fn build(shared: &Weak<LimiterShared>) -> Self {
        let scheduler = shared.upgrade().map(|shared| shared.scheduler());
        let scheduler = scheduler.unwrap_or_else(|| Scheduler::new(Arc::default()));
        Self { shared: shared.clone(), scheduler, stats: LimitStats::default() }
    }

    fn configure(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let waiting = self.scheduler.take_waiting();
        self.scheduler = shared.scheduler();
        for request in waiting {
            self.scheduler.enter(request, Instant::now(), oneshot::Sender::is_closed);
        }
    }

    fn advance(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        for (reply, outcome) in self.scheduler.advance(Instant::now(), oneshot::Sender::is_closed) {
            let outcome = match outcome {
                Ok(grant) => Ok(shared.open(&mut shared.permits(), grant)),
                Err(_) if reply.is_closed() => continue,
                Err(refusal) => {
                    let refused = if refusal.models { &mut self.stats.model } else { &mut self.stats.tenant };
                    *refused += 1;
                    Err(Box::new(refusal))
                }
            };
            // A permit in a reply without a receiver is returned.
            let _ = reply.send(outcome);
        }
    }
}

impl Behavior for RateLimiter {
    type Message = LimiterMessage;

    fn handle(&mut self, message: LimiterMessage) {
        match message {
            LimiterMessage::Enter(request) => {
                self.scheduler.enter(request, Instant::now(), oneshot::Sender::is_closed);
            }
            LimiterMessage::Stats(reply) => {
                let _ = reply.send(self.stats);
                return;
            }
            LimiterMessage::GiveBack(grant, usage) => self.scheduler.give_back(&grant, usage),
            LimiterMessage::Configure => self.configure(),
            #[cfg(test)]
            LimiterMessage::Advance(by) => self.scheduler.advance_clock(by),
            #[cfg(test)]
            LimiterMessage::Panic(_) => panic!("a test asked for it"),
        }
        self.advance();
    }

    fn timer(&self) -> Option<Instant> {
        self.scheduler.next_due()
    }

    fn on_timer(&mut self) {
        self.advance();
    }

    fn awaits_notices(&self) -> bool {
        self.scheduler.has_waiting()
    }
}

#[cfg(test)]
mod tests;
