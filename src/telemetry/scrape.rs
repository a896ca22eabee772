//! Figures that are looked up when they are asked for.

use super::exposition::Exposition;
use super::{Outside, Part};
use crate::llm::Gateway;
use crate::llm::breaker::BreakerState;
use crate::llm::budget::BudgetScope;
use crate::store::Waiting;

fn usd(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// What the gateway's guards and breakers know.
pub async fn gateway(to: &mut Exposition, gateway: &Gateway) {
    let guards = gateway.guards();
    let cache = guards.cache.stats();
    to.counter(
        "llm_cache_requests_total",
        "Questions that the cache of replies was asked for: hit, joined (an equal one was under way) or miss.",
        &["result"],
        [("hit", cache.hits), ("joined", cache.shared), ("miss", cache.misses)]
            .map(|(result, count)| (vec![result.to_owned()], count as f64)),
    );
    to.counter(
        "llm_cache_saved_usd_total",
        "US dollars that hit and joined replies would have cost.",
        &[],
        [(vec![], usd(cache.saved_nano_usd))],
    );
    let entries = guards.cache.entries().await;
    to.gauge("llm_cache_entries", "Replies that are kept.", &[], [(vec![], entries as f64)]);
    let limits = guards.limits.stats();
    to.counter(
        "rate_limited_total",
        "Attempts at models that a limit refused, by whose it is (tenant, model).",
        &["scope"],
        [("tenant", limits.tenant), ("model", limits.model)]
            .map(|(scope, count)| (vec![scope.to_owned()], count as f64)),
    );
    let budget = &guards.budget;
    to.counter(
        "budget_refused_total",
        "Attempts at models that a budget refused, by which one.",
        &["scope"],
        budget.refused_by().map(|(scope, count)| (vec![scope.to_string()], count as f64)),
    );
    to.gauge(
        "budget_spent_usd",
        "US dollars spent by the one of each scope that has spent most: the run, conversation, tenant (ever, where \
         budgets are limited, else since the start) and tenant today.",
        &["scope"],
        budget.most_spent().map(|(scope, spent)| (vec![scope.to_string()], usd(spent))),
    );
    to.gauge(
        "budget_limit_usd",
        "US dollars that one of each scope may spend, where that is limited.",
        &["scope"],
        BudgetScope::ALL
            .into_iter()
            .filter_map(|scope| Some((vec![scope.to_string()], usd(budget.limit(scope)?)))),
    );
    to.gauge(
        "provider_breaker_state",
        "Whether a model is asked: 0 it is, 1 one attempt finds out, 2 it is left alone.",
        &["model"],
        gateway.breakers().into_iter().map(|(model, state)| {
            let value = match state {
                BreakerState::Closed => 0.0,
                BreakerState::HalfOpen => 1.0,
                BreakerState::Open => 2.0,
            };
            (vec![model], value)
        }),
    );
    to.counter(
        "provider_fallbacks_total",
        "Times that another model was asked in place of this one, which did not reply.",
        &["model"],
        gateway.fallbacks().into_iter().map(|(model, count)| (vec![model], count as f64)),
    );
}

/// What waits, and what was refused; `pending` events wait for the journal.
pub fn journal(to: &mut Exposition, outside: &Outside, pending: u64) {
    let name = |part: Part| vec![part.name().to_owned()];
    to.counter(
        "shed_total",
        "Pieces of work refused because too much was waiting, by who refused.",
        &["actor"],
        Part::ALL.map(|part| (name(part), outside.sheds(part) as f64)),
    );
    to.gauge(
        "mailbox_depth",
        "Pieces of work that wait, by for whom; events for the journal.",
        &["actor"],
        Part::ALL.map(|part| {
            let depth = if part == Part::Journal { pending } else { outside.depth(part) };
            (name(part), depth as f64)
        }),
    );
}

/// What waits for people.
pub fn people(to: &mut Exposition, waiting: Waiting) {
    to.gauge(
        "approvals_open",
        "What waits for people, by what it is about: a plan, a call, or the outcome of a write that nobody knows.",
        &["about"],
        [("plan", waiting.plans), ("call", waiting.calls), ("outcome", waiting.outcomes)]
            .map(|(about, count)| (vec![about.to_owned()], count as f64)),
    );
}

/// Conversations: awake ones, and of all `stored` the others, where that is known.
pub fn sessions(to: &mut Exposition, outside: &Outside, stored: Option<u64>) {
    let awake = outside.awake();
    let asleep = stored.map(|stored| ("asleep", stored.saturating_sub(awake)));
    to.gauge(
        "sessions",
        "Conversations, by whether they are awake in memory or asleep in the store.",
        &["state"],
        [("awake", awake)]
            .into_iter()
            .chain(asleep)
            .map(|(state, count)| (vec![state.to_owned()], count as f64)),
    );
}
