//! Metrics that are collected on each scrape.

use super::exposition::Exposition;
use super::server_metrics::DataDirSizes;
use super::{Component, ServerMetrics, SpanFate};
use crate::adapt::ToolBreakerState;
use crate::llm::Gateway;
use crate::llm::breaker::BreakerState;
use crate::llm::budget::BudgetReport;
use crate::llm::cache::CacheReport;
use crate::llm::limits::LimitStats;
use crate::store::WaitingCounts;

fn usd(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// Adds the metrics of the gateway's guards and circuit breakers.
pub async fn add_gateway(to: &mut Exposition, gateway: &Gateway) {
    let guards = gateway.guards();
    // A guard that cannot be asked leaves its metrics out; the scrape shows its restarts.
    if let Ok(cache) = guards.cache.report().await {
        add_cache(to, cache);
    }
    if let Ok(limits) = guards.limits.stats().await {
        add_limits(to, limits);
    }
    if let Ok(budget) = guards.budget.report().await {
        add_budget(to, &budget);
    }
    add_models(to, gateway);
}

fn add_cache(to: &mut Exposition, cache: CacheReport) {
    to.counter(
        "llm_cache_requests_total",
        "Lookups in the reply cache: hit, joined (an equal request was in flight) or miss.",
        &["result"],
        [("hit", cache.hits), ("joined", cache.shared), ("miss", cache.misses)]
            .map(|(result, count)| (vec![result.to_owned()], count as f64)),
    );
    to.counter(
        "llm_cache_saved_usd_total",
        "US dollars saved by hit and joined replies.",
        &[],
        [(vec![], usd(cache.saved_nano_usd))],
    );
    to.gauge("llm_cache_entries", "Entries in the reply cache.", &[], [(vec![], cache.entries as f64)]);
}

fn add_limits(to: &mut Exposition, limits: LimitStats) {
    to.counter(
        "rate_limited_total",
        "Attempts at models refused by a rate limit, by scope of the limit (tenant, model).",
        &["scope"],
        [("tenant", limits.tenant), ("model", limits.model)]
            .map(|(scope, count)| (vec![scope.to_owned()], count as f64)),
    );
}

fn add_budget(to: &mut Exposition, budget: &BudgetReport) {
    to.counter(
        "budget_refused_total",
        "Attempts at models refused by a budget, by scope of the budget.",
        &["scope"],
        budget.refused_by.map(|(scope, count)| (vec![scope.to_string()], count as f64)),
    );
    to.gauge(
        "budget_spent_usd",
        "US dollars spent by the highest spender of each scope: run, conversation, tenant (ever if budgets are \
         limited, else since the start) and tenant today.",
        &["scope"],
        budget.most_spent.map(|(scope, spent)| (vec![scope.to_string()], usd(spent))),
    );
    to.gauge(
        "budget_limit_usd",
        "Budget limit per scope in US dollars, where one is set.",
        &["scope"],
        budget.limits.into_iter().filter_map(|(scope, limit)| Some((vec![scope.to_string()], usd(limit?)))),
    );
}

fn add_models(to: &mut Exposition, gateway: &Gateway) {
    to.gauge(
        "provider_breaker_state",
        "State of a model's circuit breaker: 0 closed, 1 half open (one probe), 2 open.",
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
        "Fallbacks to another model because this one did not reply.",
        &["model"],
        gateway.fallbacks().into_iter().map(|(model, count)| (vec![model], count as f64)),
    );
}

/// Adds the states of the breakers of tools, by scene and tool.
pub fn add_tools(to: &mut Exposition, breakers: impl Iterator<Item = ((String, String), ToolBreakerState)>) {
    to.gauge(
        "tool_breaker_state",
        "State of a tool's circuit breaker, the worst of all tenants: 0 closed, 1 half open (the next call decides), \
         2 open. Tools that were called.",
        &["scene", "tool"],
        breakers.map(|((scene, tool), state)| {
            let value = match state {
                ToolBreakerState::Closed => 0.0,
                ToolBreakerState::HalfOpen => 1.0,
                ToolBreakerState::Open => 2.0,
            };
            (vec![scene, tool], value)
        }),
    );
}

/// Adds queue depths and load shedding. `unwritten` events wait for the journal; `uncounted` events are written but not
/// yet in the metrics of runs.
pub fn add_queues(to: &mut Exposition, server_metrics: &ServerMetrics, unwritten: u64, uncounted: u64) {
    let name = |part: Component| vec![part.name().to_owned()];
    to.counter(
        "shed_total",
        "Work items refused because a queue was full, by component.",
        &["actor"],
        Component::ALL.map(|part| (name(part), server_metrics.shed_count(part) as f64)),
    );
    to.counter(
        "actor_restarts_total",
        "Restarts of actors that ended by a panic, by component.",
        &["actor"],
        Component::ALL.map(|part| (name(part), server_metrics.restarts(part) as f64)),
    );
    to.counter(
        "sandbox_programs_total",
        "Executions of programs in the sandbox, by where they stopped: at a call, at the end (finished), at a fault (its \
         code), or before they began (busy, unavailable).",
        &["outcome"],
        server_metrics.programs().by_outcome().map(|(outcome, count)| (vec![outcome.to_owned()], count as f64)),
    );
    to.gauge(
        "mailbox_depth",
        "Queued work items by component; events for the journal and the metrics of runs.",
        &["actor"],
        Component::ALL.map(|part| {
            let events = match part {
                Component::Journal => unwritten,
                Component::Kpis => uncounted,
                _ => 0,
            };
            (name(part), (server_metrics.depth(part) + events) as f64)
        }),
    );
}

/// Adds how many spans of runs met which fate.
pub fn add_spans(to: &mut Exposition, server_metrics: &ServerMetrics) {
    to.counter(
        "trace_spans_total",
        "Spans of runs, by what became of them: exported, dropped (no room, or the server stopped), failed (the receiver \
         could not be reached, or refused the export) or rejected (the receiver took others of the same export).",
        &["outcome"],
        SpanFate::ALL.map(|fate| (vec![fate.name().to_owned()], server_metrics.spans(fate) as f64)),
    );
}

/// Adds how many lines of the log were dropped.
pub fn add_log(to: &mut Exposition, server_metrics: &ServerMetrics) {
    to.counter(
        "log_lines_dropped_total",
        "Log lines that were dropped because nobody read standard error fast enough.",
        &[],
        [(vec![], server_metrics.dropped_log_lines() as f64)],
    );
}

/// Adds the open approvals.
pub fn add_approvals(to: &mut Exposition, waiting: WaitingCounts) {
    to.gauge(
        "approvals_open",
        "Open approvals, by subject: a plan, a call, or the unknown outcome of a write.",
        &["about"],
        [("plan", waiting.plans), ("call", waiting.calls), ("outcome", waiting.outcomes)]
            .map(|(about, count)| (vec![about.to_owned()], count as f64)),
    );
}

/// Adds the learned plans of all tenants, by standing.
pub fn add_learned(to: &mut Exposition, plans: impl IntoIterator<Item = (&'static str, u64)>) {
    to.gauge(
        "learned_plans",
        "Plans and paths through flows learned from executions, by state: proven (may be reused), unproven (has not succeeded often enough), \
         demoted (failed, rated badly, or a tool has changed) or suspended (a tool was out of service).",
        &["state"],
        plans.into_iter().map(|(state, count)| (vec![state.to_owned()], count as f64)),
    );
}

/// Adds the conversations in memory and, if the number of all `stored` ones is known, the others.
pub fn add_sessions(to: &mut Exposition, server_metrics: &ServerMetrics, stored: Option<u64>) {
    let awake = server_metrics.awake();
    let asleep = stored.map(|stored| ("asleep", stored.saturating_sub(awake)));
    to.gauge(
        "sessions",
        "Conversations, by state: awake (in memory) or asleep (only in the store).",
        &["state"],
        [("awake", awake)]
            .into_iter()
            .chain(asleep)
            .map(|(state, count)| (vec![state.to_owned()], count as f64)),
    );
}

/// Adds the identity of this build of the server.
pub fn add_build(to: &mut Exposition) {
    // The commit is known if the build set PROSCENIUM_COMMIT.
    let commit = option_env!("PROSCENIUM_COMMIT").filter(|commit| !commit.is_empty());
    let labels: &[&str] = if commit.is_some() { &["version", "commit"] } else { &["version"] };
    let values = [Some(env!("CARGO_PKG_VERSION")), commit].into_iter().flatten().map(str::to_owned);
    to.gauge("build_info", "The version of the server; the value is 1.", labels, [(values.collect(), 1.0)]);
}

/// Adds the sizes of the data directory and its free space, as far as they were read.
pub fn add_data_dir(to: &mut Exposition, server_metrics: &ServerMetrics) {
    let DataDirSizes { disk, documents } = server_metrics.data_dir();
    let (count, bytes) = documents.unzip();
    let parts = [("database", disk.database_bytes), ("wal", disk.wal_bytes), ("documents", bytes)];
    to.gauge(
        "data_dir_bytes",
        "Bytes in the data directory, by part: the database, its write-ahead log (wal), and documents; read every 15 \
         seconds, documents once a minute.",
        &["part"],
        parts.into_iter().filter_map(|(part, bytes)| Some((vec![part.to_owned()], bytes? as f64))),
    );
    let single = |value: Option<u64>| value.map(|value| (vec![], value as f64));
    to.gauge(
        "data_dir_free_bytes",
        "Bytes that are free on the disk of the data directory.",
        &[],
        single(disk.free_bytes),
    );
    to.gauge("documents", "Documents of all tenants.", &[], single(count));
}

/// Adds the facts that the ledgers of conversations recorded.
pub fn add_facts(to: &mut Exposition, server_metrics: &ServerMetrics) {
    let (recorded, superseded) = server_metrics.facts();
    to.counter(
        "facts_recorded_total",
        "Facts that conversations recorded, by kind: given by the user, verified by a tool, quoted from a document, \
         derived by a model, or a guess.",
        &["kind"],
        recorded.map(|(kind, count)| (vec![kind.name().to_owned()], count as f64)),
    );
    to.counter(
        "facts_superseded_total",
        "Facts whose place another one took: a correction, or a later result of an equal read.",
        &[],
        [(vec![], superseded as f64)],
    );
}
