//! The actix system on its thread, with all actors of an engine.

use std::sync::Arc;

use actix::{Arbiter, ArbiterHandle};
use arc_swap::ArcSwap;
use tokio::runtime;
use tokio::sync::oneshot;

use super::builder::{ActiveConfig, EngineParts, StartError, start_fault, worker_threads};
use super::data_dir_census::DataDirCensus;
use super::expiry::{ApprovalExpiry, ApprovalNotifier};
use super::guard_actors::GuardActors;
use super::sessions;
use super::tool_health::restore_health;
use crate::actors::driver::{LearnedPlans, RunServices};
use crate::actors::idle_conversations::IdleConversations;
use crate::actors::journal::{self, Journal};
use crate::actors::summary_places::SummaryPlaces;
use crate::actors::{kpis, scene as scene_actor, scene_manager, session_registry};
use crate::config::Config;
use crate::conversation::OpenHistories;
use crate::notify::WebhookNotifier;
use crate::run::TenantId;
use crate::telemetry::{JournalTelemetry, LabelNames, TenantBound};
use crate::tools::SceneStore;

/// Maximum number of conversations in memory.
pub(super) const MAX_AWAKE: usize = 100_000;
/// Maximum size of all unpacked conversation histories together, in bytes, about.
const MAX_OPEN_HISTORY_BYTES: usize = 8 * 1024 * 1024;

/// Capacity of the session registry's mailbox.
pub(super) const REGISTRY_MAILBOX: usize = 4096;

/// The actix system on its thread.
pub(super) struct ActorSystem {
    pub(super) registry: session_registry::Address,
    pub(super) journal: journal::Handle,
    pub(super) kpis: kpis::Handle,
    pub(super) actix: actix::System,
    pub(super) arbiters: Arc<[ArbiterHandle]>,
    pub(super) services: Arc<ArcSwap<RunServices>>,
    guard_actors: GuardActors,
}

impl ActorSystem {
    pub(super) async fn start(parts: EngineParts) -> Result<Self, StartError> {
        let (reply, started) = oneshot::channel();
        let guard_actors = parts.guard_actors.clone();
        std::thread::Builder::new()
            .name("actors".to_owned())
            .spawn(move || {
                let runner = actix::System::new();
                let started = runner.block_on(start_actors(&parts));
                let failed = started.is_err();
                let _ = reply.send(started.map(|actors| (actors, actix::System::current())));
                if failed {
                    return;
                }
                if let Err(error) = runner.run() {
                    tracing::error!(%error, "the actor system ended with an error");
                }
            })
            .map_err(|error| start_fault("engine.threads", format!("no thread for the actors: {error}")))?;
        let (actors, actix) = started.await.map_err(|_| {
            start_fault("engine.start", "the actor thread ended before the actors had started")
        })??;
        let StartedActors { registry, journal, kpis, arbiters, services: shared } = actors;
        Ok(Self { registry, journal, kpis, actix, arbiters, services: shared, guard_actors })
    }

    /// Spawns work as a task on the actor thread, so that it outlives its caller. If the thread has ended,
    /// the work is dropped.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.actix.arbiter().spawn_fn(|| drop(tokio::spawn(work)));
    }

    pub(super) fn shut_down(&self) {
        // Drivers do not run on the actor threads.
        self.services.load().live.shut_down();
        self.guard_actors.stop();
        self.kpis.close();
        // The thread ends by itself. Joining it could block an async caller.
        self.actix.stop();
    }
}

/// The started actors, with what a reload of the configuration needs.
pub(super) struct StartedActors {
    pub(super) registry: session_registry::Address,
    pub(super) journal: journal::Handle,
    pub(super) kpis: kpis::Handle,
    pub(super) arbiters: Arc<[ArbiterHandle]>,
    pub(super) services: Arc<ArcSwap<RunServices>>,
}

pub(super) async fn start_actors(parts: &EngineParts) -> Result<StartedActors, StartError> {
    let current = parts.current.load_full();
    let config = &current.config;
    let runtime = current.gateway.runtime().map_err(|error| StartError::Other(error.into()))?;
    let kpis = start_kpis(parts, &current, runtime.clone()).await?;
    let watch =
        JournalTelemetry { sink: Some(Arc::new(kpis.clone())), server_metrics: parts.server_metrics.clone() };
    let journal = Journal::start_with_telemetry(parts.store.clone(), &config.store, watch).await?;
    parts.guard_actors.start(&runtime, &parts.store, &journal, &parts.clock);
    // Before anything is resumed or accepted.
    parts.guard_actors.configure_budget(&config.budget).await?;
    let arbiters = start_arbiters()?;
    let shared = Arc::new(ArcSwap::from_pointee(run_services(parts, &current, &arbiters, &journal)));
    let options = scene_manager::Options {
        shared: shared.clone(),
        store: parts.store.clone(),
        memory: config.memory.clone(),
        open: OpenHistories::new(MAX_OPEN_HISTORY_BYTES),
        idle_conversations: IdleConversations::new(parts.max_idle_short),
        max_queued: config.execution.max_queued_requests as usize,
        idle: parts.idle,
        server_metrics: parts.server_metrics.clone(),
        gate: parts.recovery_gate.clone(),
        summary_places: SummaryPlaces::new(worker_threads()),
        resumes_runs: parts.is_serving.clone(),
    };
    let registry = session_registry::Address::start(
        &arbiters[0],
        arbiters.clone(),
        options,
        MAX_AWAKE,
        REGISTRY_MAILBOX,
    );
    start_background_tasks(parts, config, &registry, &journal);
    Ok(StartedActors { registry, journal, kpis, arbiters, services: shared })
}

fn start_arbiters() -> Result<Arc<[ArbiterHandle]>, StartError> {
    let start = |_| {
        Arbiter::try_new()
            .map(|arbiter| arbiter.handle())
            .map_err(|error| start_fault("engine.threads", format!("no thread for actors: {error}")))
    };
    (0..worker_threads()).map(start).collect()
}

/// What a serving process does at intervals.
fn start_background_tasks(
    parts: &EngineParts,
    config: &Config,
    registry: &session_registry::Address,
    journal: &journal::Handle,
) {
    let retention = sessions::RetentionTask {
        store: parts.store.clone(),
        registry: registry.clone(),
        days: config.store.keep_sessions_days,
        document_days: config.documents.keep_days,
        journal: journal.clone(),
    };
    tokio::spawn(retention.run_forever());
    let (current, serves) = (parts.current.clone(), parts.is_serving.clone());
    let expiry = ApprovalExpiry {
        store: parts.store.clone(),
        registry: registry.clone(),
        current: current.clone(),
        is_serving: serves.clone(),
    };
    tokio::spawn(expiry.run_forever());
    let notifier = ApprovalNotifier {
        messenger: WebhookNotifier::new(parts.store.clone()),
        current,
        is_serving: serves,
    };
    tokio::spawn(notifier.run_forever());
    tokio::spawn(restore_health(parts.store.clone(), parts.health.clone(), config.execution.breaker));
    tokio::spawn(parts.switches.clone().run_forever());
    if config.telemetry.metrics {
        let census = DataDirCensus { store: parts.store.clone(), metrics: parts.server_metrics.clone() };
        tokio::spawn(census.run_forever());
    }
}

/// Starts the actor of the metrics of runs.
async fn start_kpis(
    parts: &EngineParts,
    current: &ActiveConfig,
    runtime: runtime::Handle,
) -> Result<kpis::Handle, StartError> {
    let is_counting = current.config.telemetry.metrics;
    let tenants = if is_counting { labelled_tenants(parts, current).await } else { TenantBound::default() };
    let names = LabelNames::new(&current.catalogue, &current.gateway.configured());
    let options = kpis::Options {
        names: names.with_tenants(tenants),
        is_counting,
        capacity: kpis::CAPACITY,
        store: parts.store.clone(),
        runtime,
        server_metrics: parts.server_metrics.clone(),
        traces: parts.traces.clone(),
    };
    kpis::Handle::start(options).map_err(|error| start_fault("engine.metrics", error.to_string()))
}

/// The tenants with labels in metrics, in the same order at each start, so that they keep them: the configured ones, then
/// those with keys.
async fn labelled_tenants(parts: &EngineParts, current: &ActiveConfig) -> TenantBound {
    let max = current.config.telemetry.max_tenant_labels;
    let configured = current.config.tenants.keys().filter_map(|name| TenantId::new(name).ok());
    let keyed = parts.store.tenants_with_keys(u32::try_from(max).unwrap_or(u32::MAX)).await;
    let keyed = keyed.unwrap_or_else(|error| {
        tracing::warn!(code = error.code(), %error, "tenants with keys get labels in metrics as they come");
        Vec::new()
    });
    TenantBound { max, first: configured.chain(keyed).collect() }
}

/// The services for runs that start from now on.
pub(super) fn run_services(
    parts: &EngineParts,
    current: &ActiveConfig,
    arbiters: &[ArbiterHandle],
    journal: &journal::Handle,
) -> RunServices {
    let scenes = current.catalogue.all().zip(arbiters.iter().cycle()).map(|(scene, arbiter)| {
        let options = scene_actor::Options {
            gateway: current.gateway.clone(),
            store: SceneStore::new(parts.store.pool().clone()),
            http: current.http.clone(),
            interpreter: parts.sources.replaced.interpreter.clone(),
            workers: parts.workers.clone(),
            arbiter: arbiter.clone(),
            server_metrics: parts.server_metrics.clone(),
            tenants: parts.tenants.clone(),
        };
        (scene.name.clone(), scene_actor::Handle::start(scene.clone(), options))
    });
    RunServices {
        gateway: current.gateway.clone(),
        journal: journal.clone(),
        catalogue: current.catalogue.clone(),
        catalogue_hash: current.catalogue.hash().into(),
        scenes: Arc::new(scenes.collect()),
        clock: parts.clock.clone(),
        settings: current.config.run_settings(),
        approval: Arc::new(current.config.approval.clone()),
        tenants: Arc::new(current.config.tenants.clone()),
        live: parts.active_runs.clone(),
        switches: parts.switches.board.clone(),
        health: parts.health.clone(),
        breaker: current.config.execution.breaker,
        replaced: parts.sources.replaced.clone(),
        documents: parts.store.documents(),
        summary_room: parts.summary_room.clone(),
        tracing: parts.traces.as_ref().map(|traces| traces.options.sampler),
        learned: LearnedPlans { store: parts.store.clone(), after: current.config.planning.learn_after },
        ranking: parts.vectors.ranking(
            current.gateway.clone(),
            current.catalogue.clone(),
            current.config.auth.default_tenant.clone(),
        ),
    }
}
