//! Reloads the configuration while requests are served.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::builder::{check_values, start_fault, webhook};
use super::{ActiveConfig, Engine, StartError, apply_scene_schemas, http_client, run_services};
use crate::config::Config;
use crate::sandbox;
use crate::scene::{Catalogue, SceneFaults};
use crate::store;

/// A key, and a function that compares it in two configurations.
type RestartOnlyKey = (&'static str, fn(&Config, &Config) -> bool);

/// Keys that only a restart can change.
const RESTART_ONLY_KEYS: [RestartOnlyKey; 10] = [
    ("server", |a, b| a.server != b.server),
    ("auth.allow_anonymous", |a, b| a.auth.allow_anonymous != b.auth.allow_anonymous),
    ("auth.require_keys", |a, b| a.auth.require_keys != b.auth.require_keys),
    ("store", |a, b| {
        let max_tenant_bytes = b.store.max_tenant_bytes;
        store::Options { max_tenant_bytes, ..a.store.clone() } != b.store
    }),
    ("documents.keep_days, documents.max_uploads", |a, b| {
        (a.documents.keep_days, a.documents.max_uploads) != (b.documents.keep_days, b.documents.max_uploads)
    }),
    ("memory", |a, b| a.memory != b.memory),
    ("sandbox", |a, b| {
        // The program sets the worker itself where it is absent.
        let worker = b.sandbox.worker.clone().or_else(|| a.sandbox.worker.clone());
        a.sandbox != sandbox::Options { worker, ..b.sandbox.clone() }
    }),
    ("telemetry", |a, b| a.telemetry != b.telemetry),
    ("execution.max_queued_requests", |a, b| {
        a.execution.max_queued_requests != b.execution.max_queued_requests
    }),
    ("execution.time_zone, execution.fixed_now", |a, b| {
        (&a.execution.time_zone, a.execution.fixed_now) != (&b.execution.time_zone, b.execution.fixed_now)
    }),
];

impl Engine {
    /// Applies another configuration, and loads the scenes again. Runs that start from now on use it; runs in
    /// progress keep the one they started with. Spending and cache entries are kept; changed rate limits
    /// start unused. Metrics of new scenes, tools and models get their labels from now on, and removed ones
    /// keep theirs.
    ///
    /// Returns the changed keys that need a restart.
    ///
    /// # Errors
    /// The errors of [`Builder::start`](super::Builder::start). In this case nothing changes.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, StartError> {
        check_values(&config)?;
        let parts = &self.parts;
        // Files are read, and workers that read files of functions are waited for.
        let (sources, options) = (parts.sources.clone(), config.scenes.clone());
        let loaded = tokio::task::spawn_blocking(move || sources.load(&options)).await;
        let loaded = loaded.map_err(|error| start_fault("engine.threads", format!("scenes: {error}")))?;
        if loaded.has_errors() {
            return Err(StartError::Scenes(SceneFaults(loaded.faults)));
        }
        let before = parts.current.load_full();
        let http = http_client(&config)?;
        let webhook = webhook(&config)?;
        let gateway =
            before.gateway.reloaded(config.llm.clone()).map_err(|error| StartError::Other(error.into()))?;
        apply_scene_schemas(&parts.store, &loaded.scenes).await?;
        parts.guard_actors.reload(&before.config, &config).await?;
        let needs_restart = RESTART_ONLY_KEYS
            .iter()
            .filter(|(_, differs)| differs(&before.config, &config))
            .map(|(key, _)| *key)
            .collect();
        parts.store.limit_tenant_bytes(config.store.max_tenant_bytes);
        let catalogue = Arc::new(Catalogue::new(loaded.scenes));
        self.system.kpis.extend_names(&catalogue, &gateway.configured());
        if let Some(traces) = &parts.traces {
            traces.options.models.replace(&config.llm);
        }
        let current = ActiveConfig { config, gateway, catalogue, http, webhook };
        let shared = run_services(parts, &current, &self.system.arbiters, &self.system.journal);
        if parts.is_serving.load(Ordering::Acquire) {
            shared.prepare_ranking();
        }
        self.system.services.store(Arc::new(shared));
        parts.current.store(Arc::new(current));
        Ok(needs_restart)
    }
}
