//! How well each tool works lately, for each tenant: fed by the drivers as outcomes are appended, and asked before a
//! call is made. Like the breakers of models, it is a lock around pure rules ([`ToolHealth`]), so that the next call
//! already knows of the last outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;

use crate::adapt::{HealthReport, ToolBreakerConfig, ToolBreakerState, ToolForecast, ToolHealth, ToolUse};
use crate::mutex::lock;
use crate::run::{Effect, Envelope, Event, Fault, RunState, TenantId};
use crate::scene::Catalogue;

/// Maximum number of tools of all tenants; of more, the one that was not called for the longest time is forgotten.
const MAX_TOOLS: usize = 20_000;

/// A tool of a tenant's scene.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ToolKey {
    tenant: TenantId,
    scene: String,
    tool: String,
}

impl ToolKey {
    pub(crate) fn new(tenant: &TenantId, scene: &str, tool: &str) -> Self {
        Self { tenant: tenant.clone(), scene: scene.to_owned(), tool: tool.to_owned() }
    }

    /// Another tool of the same scene.
    fn beside(&self, tool: &str) -> Self {
        Self::new(&self.tenant, &self.scene, tool)
    }
}

/// What the end of a call says about its tool.
#[derive(Debug, Clone)]
pub(crate) struct EndedCall {
    key: ToolKey,
    report: HealthReport,
    took_ms: u64,
    at: Timestamp,
}

impl EndedCall {
    /// Of an event of a run; `None` if it ends no call, or says nothing about the tool. The run may be in any state since the
    /// call was started.
    pub(crate) fn of(state: &RunState, envelope: &Envelope<Event>) -> Option<Self> {
        let Event::ToolCompleted { call, outcome, millis, .. } = &envelope.body else { return None };
        let call = state.calls.get(call)?;
        let key = ToolKey::new(&envelope.tenant, &call.scene, &call.requested.tool);
        Some(Self { key, report: call.health_report(outcome)?, took_ms: *millis, at: envelope.at })
    }
}

/// The health of all tools. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolHealths(Arc<Mutex<HashMap<ToolKey, ToolHealth>>>);

impl ToolHealths {
    pub(crate) fn record(&self, ended: EndedCall, config: ToolBreakerConfig) {
        let EndedCall { key, report, took_ms, at } = ended;
        let mut all = self.lock();
        if !all.contains_key(&key) && all.len() >= MAX_TOOLS {
            let oldest = all.iter().min_by_key(|(_, health)| health.last_call()).map(|(key, _)| key.clone());
            oldest.map(|key| all.remove(&key));
        }
        all.entry(key).or_insert_with(|| ToolHealth::new(at)).record(report, took_ms, at, config);
    }

    /// Why a call with this effect is not to be made: its tool's breaker is open.
    pub(crate) fn refusal(
        &self,
        key: &ToolKey,
        effect: Effect,
        catalogue: &Catalogue,
        at: Timestamp,
    ) -> Option<Fault> {
        let mut all = self.lock();
        all.get(key).filter(|health| health.state(at) != ToolBreakerState::Closed)?;
        let scene = catalogue.get(&key.scene)?;
        let tool_use = match effect {
            Effect::Read => ToolUse::Read { timeout_ms: scene.tool(&key.tool)?.timeout_ms },
            Effect::Write => {
                let reads = scene.tools.iter().filter(|tool| tool.effect == Effect::Read);
                ToolUse::write(reads.filter_map(|read| all.get(&key.beside(&read.name))), at)
            }
        };
        all.get_mut(key)?.refusal(&key.tool, tool_use, at)
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
        let forecast = |tool: &str| all.get(&ToolKey::new(tenant, scene, tool))?.forecast(tool, at);
        tools.filter_map(forecast).collect()
    }

    /// The state of each tool's breaker, by scene and tool: the worst of all tenants.
    pub(crate) fn states(&self, at: Timestamp) -> BTreeMap<(String, String), ToolBreakerState> {
        let mut worst = BTreeMap::new();
        for (ToolKey { scene, tool, .. }, health) in self.lock().iter() {
            let state = worst.entry((scene.clone(), tool.clone())).or_insert(ToolBreakerState::Closed);
            *state = health.state(at).max(*state);
        }
        worst
    }

    /// Records the calls of runs of an earlier process, in the order in which they ended, unless calls of the same tools have
    /// been recorded here.
    pub(crate) fn restore(&self, mut ended: Vec<EndedCall>, config: ToolBreakerConfig) {
        ended.sort_by_key(|call| call.at);
        let earlier = Self::default();
        ended.into_iter().for_each(|call| earlier.record(call, config));
        let restored = std::mem::take(&mut *earlier.lock());
        let mut all = self.lock();
        for (key, health) in restored {
            if all.len() >= MAX_TOOLS {
                return;
            }
            all.entry(key).or_insert(health);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ToolKey, ToolHealth>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::scene::{Scene, SceneTool};
    use crate::tools::{ToolContext, native};

    const CONFIG: ToolBreakerConfig = ToolBreakerConfig { failures: 2, pause_ms: 1_000 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_777_878_000_000 + ms).unwrap()
    }

    fn key(tenant: &str, scene: &str, tool: &str) -> ToolKey {
        ToolKey::new(&TenantId::new(tenant).unwrap(), scene, tool)
    }

    fn ended(key: &ToolKey, report: HealthReport, ms: i64) -> EndedCall {
        EndedCall { key: key.clone(), report, took_ms: 400, at: at(ms) }
    }

    /// Two scenes, each with tools that look, list and change.
    fn catalogue() -> Catalogue {
        let tool = |name: &str, effect| {
            let work = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
            SceneTool::dynamic(name, "Does it.", effect, json!({"type": "object", "properties": {}}), work)
        };
        Catalogue::new(["A", "B"].map(|name| {
            let scene = Scene::builder(name).description("Does it.").instructions("Do it.");
            let scene = scene.tool(tool("look", Effect::Read)).tool(tool("list", Effect::Read));
            scene.tool(tool("change", Effect::Write)).build().unwrap()
        }))
    }

    /// After two failures of each of these tools.
    fn failing(keys: &[&ToolKey]) -> ToolHealths {
        let healths = ToolHealths::default();
        for key in keys {
            (0..2).for_each(|_| healths.record(ended(key, HealthReport::Fails, 0), CONFIG));
        }
        healths
    }

    #[test]
    fn calls_are_refused_by_the_breaker_of_their_own_tool_and_tenant() {
        let (own, catalogue) = (key("acme", "A", "look"), catalogue());
        let healths = failing(&[&own]);
        let refused = |key: &ToolKey, effect| healths.refusal(key, effect, &catalogue, at(1)).is_some();
        for (other, effect, want) in [
            (own.clone(), Effect::Read, true),
            (own.beside("list"), Effect::Read, false),
            // It may succeed although a read of its scene does not: its own breaker decides.
            (own.beside("change"), Effect::Write, false),
            (key("acme", "B", "look"), Effect::Read, false),
            (key("globex", "A", "look"), Effect::Read, false),
        ] {
            assert_eq!(refused(&other, effect), want, "{other:?}");
        }
    }

    #[test]
    fn write_after_its_pause_waits_for_the_reads_of_its_own_scene() {
        let (write, catalogue) = (key("acme", "A", "change"), catalogue());
        for (read, want) in [
            (write.beside("look"), true),
            (key("acme", "B", "look"), false),
            (key("globex", "A", "look"), false),
        ] {
            let healths = failing(&[&write]);
            (0..2).for_each(|_| healths.record(ended(&read, HealthReport::Fails, 500), CONFIG));
            let refused = healths.refusal(&write, Effect::Write, &catalogue, at(1_000));
            assert_eq!(refused.map(|fault| fault.retry_after_ms), want.then_some(Some(500)), "{read:?}");
        }
    }

    #[test]
    fn tools_that_are_not_loaded_any_more_are_left_to_other_checks() {
        let (tool, scene) = (key("acme", "A", "gone"), key("acme", "Gone", "look"));
        let healths = failing(&[&tool, &scene]);
        for key in [tool, scene] {
            assert_eq!(healths.refusal(&key, Effect::Read, &catalogue(), at(1)), None, "{key:?}");
        }
    }

    #[test]
    fn forecasts_name_the_tools_of_one_tenants_scene_that_fail() {
        let own = key("acme", "A", "look");
        let healths = failing(&[&own, &key("globex", "A", "list"), &key("acme", "B", "list")]);
        healths.record(ended(&own.beside("change"), HealthReport::Works, 0), CONFIG);
        let told = healths.forecast(&own.tenant, "A", ["change", "list", "look"].into_iter(), at(1));
        let told: Vec<_> = told.iter().map(|told| (told.tool.as_str(), told.open)).collect();
        assert_eq!(told, [("look", true)]);
    }

    #[test]
    fn restored_calls_do_not_replace_what_was_recorded_since() {
        let (own, other) = (key("acme", "A", "look"), key("acme", "A", "list"));
        let healths = ToolHealths::default();
        healths.record(ended(&own, HealthReport::Works, 10), CONFIG);
        let earlier = [&own, &own, &other, &other].map(|key| ended(key, HealthReport::Fails, 0));
        healths.restore(earlier.to_vec(), CONFIG);
        let state = |key: &ToolKey| healths.lock()[key].state(at(11));
        assert_eq!((state(&own), state(&other)), (ToolBreakerState::Closed, ToolBreakerState::Open));
    }

    #[test]
    fn tool_that_was_not_called_for_longest_makes_room() {
        let healths = ToolHealths::default();
        let nth = |n: usize| key("acme", "A", &n.to_string());
        // The second half is called first.
        for n in 0..MAX_TOOLS {
            let ms = (n + MAX_TOOLS / 2) % MAX_TOOLS;
            healths.record(ended(&nth(n), HealthReport::Works, ms as i64), CONFIG);
        }
        healths.record(ended(&nth(MAX_TOOLS), HealthReport::Works, MAX_TOOLS as i64), CONFIG);
        let restored = (1..10).map(|n| ended(&nth(MAX_TOOLS + n), HealthReport::Works, 0));
        healths.restore(restored.collect(), CONFIG);
        let all = healths.lock();
        assert_eq!(all.len(), MAX_TOOLS);
        assert!(!all.contains_key(&nth(MAX_TOOLS / 2)) && all.contains_key(&nth(MAX_TOOLS)));
    }

    /// Calls of few tools, each at a time of its own.
    fn calls() -> impl Strategy<Value = Vec<EndedCall>> {
        let call = (0..2_usize, 0..2_usize, 0..3_usize, any::<bool>());
        prop::collection::vec(call, 0..40).prop_map(|calls| {
            let call = |(n, (tenant, scene, tool, works)): (usize, (usize, usize, usize, bool))| {
                let tools = ["look", "list", "change"];
                let key = key(["acme", "globex"][tenant], ["A", "B"][scene], tools[tool]);
                ended(&key, if works { HealthReport::Works } else { HealthReport::Fails }, n as i64)
            };
            calls.into_iter().enumerate().map(call).collect()
        })
    }

    proptest! {
        #[test]
        fn restoring_in_any_order_is_recording_in_order(
            (calls, shuffled) in calls().prop_flat_map(|calls| (Just(calls.clone()), Just(calls).prop_shuffle()))
        ) {
            let (recorded, restored) = (ToolHealths::default(), ToolHealths::default());
            calls.into_iter().for_each(|call| recorded.record(call, CONFIG));
            restored.restore(shuffled, CONFIG);
            prop_assert_eq!(&*recorded.lock(), &*restored.lock());
        }

        #[test]
        fn shown_state_is_the_worst_of_all_tenants(calls in calls(), later in 0_i64..3_000) {
            let healths = ToolHealths::default();
            calls.into_iter().for_each(|call| healths.record(call, CONFIG));
            let now = at(40 + later);
            for ((scene, tool), shown) in healths.states(now) {
                let of = |tenant| healths.lock().get(&key(tenant, &scene, &tool)).map(|health| health.state(now));
                prop_assert_eq!(Some(shown), of("acme").max(of("globex")));
            }
        }
    }
}
