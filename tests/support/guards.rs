//! The gateway's guards outside of an engine.

use std::sync::{Arc, OnceLock};

use jiff::Zoned;
use jiff::tz::TimeZone;
use proscenium::actors::{cost_budget, rate_limiter, response_cache};
use proscenium::llm::budget::{AccountBalance, AccountKey, Budget};
use proscenium::llm::{Caller, Guards, budget, cache, limits};
use proscenium::telemetry::ServerMetrics;
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime on which these actors run.
fn runtime() -> Handle {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let start = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    RUNTIME.get_or_init(start).handle().clone()
}

/// A budget in UTC, over an empty journal.
pub fn cost_budget(limits: &budget::Options) -> Arc<dyn Budget> {
    let budget = cost_budget::Handle::new(cost_budget::Options {
        limits: limits.clone(),
        now: Arc::new(|| Zoned::now().with_time_zone(TimeZone::UTC)),
        metrics: ServerMetrics::default(),
    });
    budget.start(runtime(), Box::new(|| Box::pin(async { Ok(budget::Spending::default()) })));
    Arc::new(budget)
}

/// Rate limits.
pub fn rate_limits(limits: &limits::Options) -> Arc<dyn limits::RateLimits> {
    let limits = rate_limiter::Options { limits: limits.clone(), metrics: ServerMetrics::default() };
    let limits = rate_limiter::Handle::new(limits);
    limits.start(runtime());
    Arc::new(limits)
}

/// A cache of replies.
pub fn response_cache(options: &cache::Options) -> Arc<dyn cache::ReplyCache> {
    let options = response_cache::Options { cache: options.clone(), metrics: ServerMetrics::default() };
    let cache = response_cache::Handle::new(options);
    cache.start(runtime());
    Arc::new(cache)
}

/// What the caller's tenant has spent and reserved.
pub async fn tenant_balance(guards: &Guards, who: &Caller) -> AccountBalance {
    guards.budget.balance(AccountKey::Tenant(who.tenant.clone())).await.unwrap()
}

/// What the caller's tenant has spent today and reserved.
pub async fn day_balance(guards: &Guards, who: &Caller) -> AccountBalance {
    guards.budget.balance(AccountKey::Day(who.tenant.clone())).await.unwrap()
}
