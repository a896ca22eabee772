//! How well each tool works lately, for each tenant: fed by the drivers as outcomes are appended, and asked before a
//! call is made. Like the breakers of models, it is a lock around pure rules ([`ToolHealth`]), so that the next call
//! already knows of the last outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;

use crate::adapt::{ToolBreakerConfig, ToolBreakerState, ToolForecast, ToolHealth, ToolUse};
use crate::mutex::lock;
use crate::run::{CallState, Effect, Event, Fault, Outcome, RunState, TenantId};
use crate::scene::Catalogue;

/// Most tools of all tenants; of more, the one that was not called for the longest time is forgotten.
const MAX_TOOLS: usize = 20_000;

/// A tool of a tenant: scene, then tool.
type ToolKey = (TenantId, String, String);

/// The health of all tools. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolHealths(Arc<Mutex<HashMap<ToolKey, ToolHealth>>>);

impl ToolHealths {
    /// Records how a call ended.
    pub(crate) fn record(
        &self,
        tenant: &TenantId,
        call: &CallState,
        (outcome, took_ms): (&Outcome, u64),
        at: Timestamp,
        config: ToolBreakerConfig,
    ) {
        let Some(report) = call.health_report(outcome) else { return };
        let key = (tenant.clone(), call.scene.clone(), call.requested.tool.clone());
        let mut all = self.lock();
        if !all.contains_key(&key) && all.len() >= MAX_TOOLS {
            let oldest = all.iter().min_by_key(|(_, health)| health.last_call()).map(|(key, _)| key.clone());
            oldest.map(|key| all.remove(&key));
        }
        all.entry(key).or_insert_with(|| ToolHealth::new(at)).record(report, took_ms, at, config);
    }

    /// Why a call is not to be made: its tool's breaker is open.
    pub(crate) fn refusal(
        &self,
        tenant: &TenantId,
        call: &CallState,
        catalogue: &Catalogue,
        at: Timestamp,
    ) -> Option<Fault> {
        let mut all = self.lock();
        let key = |tool: &str| (tenant.clone(), call.scene.clone(), tool.to_owned());
        let tool = call.requested.tool.as_str();
        all.get(&key(tool)).filter(|health| health.state(at) != ToolBreakerState::Closed)?;
        let scene = catalogue.get(&call.scene)?;
        let tool_use = match call.requested.effect {
            Effect::Read => ToolUse::Read { timeout_ms: scene.tool(tool)?.timeout_ms },
            Effect::Write => {
                let reads = scene.tools.iter().filter(|tool| tool.effect == Effect::Read);
                ToolUse::write(reads.filter_map(|read| all.get(&key(&read.name))), at)
            }
        };
        all.get_mut(&key(tool))?.refusal(tool, tool_use, at)
    }

    /// The forecasts of a scene's tools, as far as they do not work well.
    pub(crate) fn forecast<'t>(
        &self,
        tenant: &TenantId,
        scene: &str,
        tools: impl Iterator<Item = &'t str>,
        at: Timestamp,
    ) -> Vec<ToolForecast> {
        let all = self.lock();
        if all.is_empty() {
            return Vec::new();
        }
        let forecast =
            |tool: &str| all.get(&(tenant.clone(), scene.to_owned(), tool.to_owned()))?.forecast(tool, at);
        tools.filter_map(forecast).collect()
    }

    /// The state of each tool's breaker, by scene and tool: the worst of all tenants.
    pub(crate) fn states(&self, at: Timestamp) -> BTreeMap<(String, String), ToolBreakerState> {
        let mut worst = BTreeMap::new();
        for ((_, scene, tool), health) in self.lock().iter() {
            let state = worst.entry((scene.clone(), tool.clone())).or_insert(ToolBreakerState::Closed);
            *state = health.state(at).max(*state);
        }
        worst
    }

    /// Records the calls of runs of an earlier process, unless calls of the same tools have been recorded here.
    pub(crate) fn restore(&self, ended: Vec<EndedCall>, config: ToolBreakerConfig) {
        let earlier = Self::default();
        for call in &ended {
            earlier.record(&call.tenant, &call.call, (&call.outcome, call.took_ms), call.at, config);
        }
        let restored = std::mem::take(&mut *earlier.lock());
        let mut all = self.lock();
        restored.into_iter().take(MAX_TOOLS).for_each(|(key, health)| {
            all.entry(key).or_insert(health);
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ToolKey, ToolHealth>> {
        lock(&self.0)
    }
}

/// A call of an earlier process, as its run's journal tells it.
pub(crate) struct EndedCall {
    tenant: TenantId,
    call: CallState,
    outcome: Outcome,
    took_ms: u64,
    at: Timestamp,
}

/// The ended calls of a run's journal, in order.
pub(crate) fn ended_calls(state: &RunState, journal: &[crate::run::Envelope<Event>]) -> Vec<EndedCall> {
    let ended = journal.iter().filter_map(|envelope| {
        let Event::ToolCompleted { call, outcome, millis, .. } = &envelope.body else { return None };
        Some(EndedCall {
            tenant: envelope.tenant.clone(),
            call: state.calls.get(call)?.clone(),
            outcome: outcome.clone(),
            took_ms: *millis,
            at: envelope.at,
        })
    });
    ended.collect()
}

/// In the order in which they ended.
pub(crate) fn sort_ended(calls: &mut [EndedCall]) {
    calls.sort_by_key(|call| call.at);
}
