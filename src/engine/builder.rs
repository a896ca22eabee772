//! Builds and starts an engine from a configuration.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};

use super::actor_system::ActorSystem;
use super::guard_actors::GuardActors;
use super::switches::SwitchReader;
use super::traces::run_traces;
use super::{Engine, earlier_requests, idempotency};
use crate::actors::active_runs::ActiveRuns;
use crate::actors::clock::EngineClock;
use crate::actors::recovery_gate::RecoveryGate;
use crate::actors::scene_vectors::SceneVectors;
use crate::actors::summary_room::SummaryRoom;
use crate::actors::tool_healths::ToolHealths;
use crate::config::Config;
use crate::fairness::Sharers;
use crate::llm::Gateway;
use crate::llm::budget::SpendingCap;
use crate::mutex::lock;
use crate::notify::WebhookTarget;
use crate::parts::{Executor, Generator, Planner, Recovery, ReplacedParts};
use crate::program::module::{PythonModule, ReadModule};
use crate::program::{Interpreter, Unavailable};
use crate::run::{Fault, TenantId};
use crate::sandbox;
use crate::scene::{self, Catalogue, EmbeddedScenes, Scene, SceneFolder};
use crate::store::{self, DataDir, Store};
use crate::telemetry::ServerMetrics;
use crate::telemetry::traces::RunTraces;
use crate::tools::NativeTools;

/// Default time that an idle conversation stays in memory.
pub(super) const DEFAULT_IDLE: Duration = Duration::from_secs(60);

/// Default for the number of idle conversations of one turn that stay in memory: 5 to 12 KB each.
pub(super) const MAX_IDLE_SHORT: usize = 256;

/// Builds an engine.
pub struct Builder {
    pub(super) config: Config,
    pub(super) sources: SceneSources,
    pub(super) idle: Duration,
    pub(super) max_idle_short: usize,
    pub(super) cap: Option<SpendingCap>,
}

/// Sources of scenes besides the configuration, and replaced parts.
#[derive(Clone, Default)]
pub(super) struct SceneSources {
    pub(super) native: NativeTools,
    pub(super) builtin: Option<&'static include_dir::Dir<'static>>,
    pub(super) folders: Vec<SceneFolder>,
    pub(super) scenes: Vec<Scene>,
    pub(super) replaced: ReplacedParts,
    /// The sandbox that reads `tools.py` files, as configured at the start: only a restart changes it.
    pub(super) sandbox: sandbox::Options,
    /// The contents of `tools.py` files, by the SHA-256 of their text: equal text is read once.
    pub(super) modules: Arc<Mutex<BTreeMap<[u8; 32], PythonModule>>>,
}

/// Maximum number of `tools.py` files whose contents are remembered.
const MAX_MODULES: usize = 1_000;

impl SceneSources {
    /// Reads the scenes, and waits for the workers that read `tools.py` files.
    pub(super) fn load(&self, options: &scene::Options) -> scene::LoadedScenes {
        let embedded = self.embedded();
        let (folders, scenes) = (self.folders.clone(), self.scenes.clone());
        scene::load(options, &|source| self.read_module(source), embedded, folders, &self.native, scenes)
    }

    fn embedded(&self) -> EmbeddedScenes {
        self.builtin.map(|dir| EmbeddedScenes::of("scenes", dir)).unwrap_or_default()
    }

    /// Returns what a `tools.py` declares. A worker reads it, or without workers the interpreter that replaces them.
    fn read_module(&self, source: &str) -> Result<ReadModule, Unavailable> {
        let known = || lock(&self.modules);
        let digest: [u8; 32] = Sha256::digest(source).into();
        if let Some(module) = known().get(&digest) {
            return Ok(Ok(module.clone()));
        }
        let read = match &self.replaced.interpreter {
            Some(interpreter) if self.sandbox.worker.is_none() => interpreter.read_module(source)?,
            _ => sandbox::read_module(&self.sandbox, source)?,
        };
        // Problems are not remembered: the worker may have been killed from outside.
        if let Ok(module) = &read {
            let mut known = known();
            if known.len() >= MAX_MODULES {
                known.clear();
            }
            known.insert(digest, module.clone());
        }
        Ok(read)
    }
}

impl Builder {
    /// Adds tools written in Rust, by the names that `scene.toml` files use.
    #[must_use]
    pub fn native_tools(mut self, tools: NativeTools) -> Self {
        self.sources.native = tools;
        self
    }

    /// Adds scene folders embedded in the program; used unless `scenes.builtin` is false.
    #[must_use]
    pub fn builtin_scenes(mut self, folders: &'static include_dir::Dir<'static>) -> Self {
        self.sources.builtin = Some(folders);
        self
    }

    /// Returns the embedded folders that `shipped:NAME` means, or a fault if there are none.
    #[cfg(feature = "eval")]
    pub(crate) fn shipped_scenes(&self, name: &str) -> (Vec<SceneFolder>, Vec<scene::SceneFault>) {
        self.sources.embedded().optional(name)
    }

    /// Adds folders of scenes that were read before; they replace built-in and configured scenes of the same name.
    #[must_use]
    pub fn scene_folders(mut self, folders: Vec<SceneFolder>) -> Self {
        self.sources.folders.extend(folders);
        self
    }

    /// Adds a scene or a flow built in Rust; it replaces a loaded one of the same name.
    #[must_use]
    pub fn scene(mut self, scene: Scene) -> Self {
        self.sources.scenes.push(scene);
        self
    }

    /// Replaces the planner: it plans and checks instead of the forced questions to a model.
    #[must_use]
    pub fn planner(mut self, planner: impl Planner + 'static) -> Self {
        self.sources.replaced.planner = Some(Arc::new(planner));
        self
    }

    /// Replaces the generator of plans that people decide about; otherwise the planner makes them.
    #[must_use]
    pub fn generator(mut self, generator: impl Generator + 'static) -> Self {
        self.sources.replaced.generator = Some(Arc::new(generator));
        self
    }

    /// Replaces or wraps the scenes' tools: it carries out the tool calls.
    #[must_use]
    pub fn executor(mut self, executor: impl Executor + 'static) -> Self {
        self.sources.replaced.executor = Some(Arc::new(executor));
        self
    }

    /// Sets the policy that is asked about failed calls in place of a model, from the level `adaptive` on.
    #[must_use]
    pub fn recovery(mut self, recovery: impl Recovery + 'static) -> Self {
        self.sources.replaced.recovery = Some(Arc::new(recovery));
        self
    }

    /// Sets what executes programs that are plans (`planning.maker`), in place of the sandbox of this crate.
    #[must_use]
    pub fn interpreter(mut self, interpreter: impl Interpreter + 'static) -> Self {
        self.sources.replaced.interpreter = Some(Arc::new(interpreter));
        self
    }

    /// Sets how long an idle conversation stays in memory; default: one minute. After that it is only in the
    /// store, and is loaded again with its next request.
    #[must_use]
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Sets how many idle conversations of one turn stay in memory for that time; default: 256. Of more, those that wait
    /// longest are unloaded, so that requests without a conversation, however many, take a bounded amount of memory. A
    /// conversation of one turn is soon loaded again; longer ones do not count.
    #[must_use]
    pub fn max_idle_short(mut self, max: usize) -> Self {
        self.max_idle_short = max;
        self
    }

    /// Limits what this engine and all others with the same cap together spend on models.
    #[must_use]
    pub fn spending_cap(mut self, cap: SpendingCap) -> Self {
        self.cap = Some(cap);
        self
    }

    /// Loads the scenes without starting anything, as `check` does.
    pub fn load_scenes(&self) -> scene::LoadedScenes {
        self.sources.load(&self.config.scenes)
    }

    /// Opens the data directory, reads the scenes and starts the actors. Call it, and the engine, within a Tokio runtime of any
    /// kind that has timers and I/O, such as that of `#[tokio::main]` or of actix.
    ///
    /// # Errors
    /// `engine.runtime` outside a Tokio runtime;
    /// `config.value` with all problems of the configuration's values, which [`Config::load`] would report, too; all faults of
    /// the scenes; or why the data directory, the models or the threads are not available.
    pub async fn start(self) -> Result<Engine, StartError> {
        check_runtime()?;
        check_values(&self.config)?;
        let loaded = self.load_scenes();
        if loaded.has_errors() {
            return Err(StartError::Scenes(scene::SceneFaults(loaded.faults)));
        }
        let config = self.config;
        let clock = clock(&config)?;
        let http = http_client(&config)?;
        let webhook = webhook(&config)?;
        let server_metrics = ServerMetrics::default();
        let guard_actors = GuardActors::new(&config, &clock, &server_metrics, self.cap);
        let gateway = gateway(&config, &guard_actors)?;
        let store = Store::open(DataDir::open(&config.store.data_dir)?).await?;
        store.limit_tenant_bytes(config.store.max_tenant_bytes);
        // Before anything is accepted or resumed here.
        let earlier = earlier_requests::EarlierRequests::read(&store).await?;
        let switches = SwitchReader::new(&store, &guard_actors.disabled);
        switches.read().await?;
        apply_scene_schemas(&store, &loaded.scenes).await?;
        let workers = tool_runtime()?;
        let catalogue = Arc::new(Catalogue::new(loaded.scenes));
        let workers_handle = workers.handle().clone();
        let traces = run_traces(&config, &workers_handle, &server_metrics)?;
        let mut sources = self.sources;
        if sources.replaced.interpreter.is_none() {
            sources.replaced.interpreter =
                sandbox::interpreter(&config.sandbox, &workers_handle, server_metrics.programs());
        }
        let active = ActiveConfig { config, gateway, catalogue, http, webhook };
        let parts = EngineParts {
            recovery_gate: RecoveryGate::new(store.clone()),
            vectors: SceneVectors::new(store.clone()),
            store,
            clock,
            workers: workers_handle,
            sources,
            current: Arc::new(ArcSwap::from_pointee(active)),
            idle: self.idle,
            max_idle_short: self.max_idle_short,
            active_runs: ActiveRuns::default(),
            server_metrics,
            guard_actors,
            is_serving: Arc::default(),
            tenants: Sharers::default(),
            switches,
            health: ToolHealths::default(),
            summary_room: SummaryRoom::default(),
            traces,
        };
        match ActorSystem::start(parts.clone()).await {
            Ok(system) => {
                let key_locks = idempotency::KeyLocks::default();
                Ok(Engine { parts, system, workers: Some(workers), key_locks, earlier })
            }
            Err(error) => {
                workers.shutdown_background();
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}

fn check_runtime() -> Result<(), StartError> {
    tokio::runtime::Handle::try_current().map(drop).map_err(|_| {
        let message =
            "an engine is started within a Tokio runtime that has timers and I/O: use #[tokio::main]";
        start_fault("engine.runtime", message)
    })
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The scenes have faults; contains all of them.
    #[error(transparent)]
    Scenes(scene::SceneFaults),
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Any other reason.
    #[error(transparent)]
    Other(#[from] Fault),
}

impl StartError {
    /// The stable code; `scene.faults` if scenes have faults, each of which has a code of its own.
    pub fn code(&self) -> &str {
        match self {
            Self::Scenes(_) => "scene.faults",
            Self::Store(error) => error.code(),
            Self::Other(fault) => &fault.code,
        }
    }
}

pub(super) fn start_fault(code: &str, message: impl Into<String>) -> StartError {
    StartError::Other(Fault::new(code, message))
}

#[derive(Clone)]
pub(super) struct EngineParts {
    pub(super) store: Store,
    pub(super) clock: EngineClock,
    pub(super) workers: tokio::runtime::Handle,
    pub(super) sources: SceneSources,
    pub(super) current: Arc<ArcSwap<ActiveConfig>>,
    pub(super) idle: Duration,
    pub(super) max_idle_short: usize,
    pub(super) active_runs: ActiveRuns,
    pub(super) server_metrics: ServerMetrics,
    pub(super) guard_actors: GuardActors,
    pub(super) is_serving: Arc<AtomicBool>,
    pub(super) recovery_gate: RecoveryGate,
    /// The vectors of the scenes, which outlive a reload.
    pub(super) vectors: SceneVectors,
    /// The tenants that use this process.
    pub(super) tenants: Sharers<TenantId>,
    /// The things that operators have switched off.
    pub(super) switches: SwitchReader,
    /// How well the tools work lately, which outlives a reload.
    pub(super) health: ToolHealths,
    /// Room for the texts of documents that are summarised.
    pub(super) summary_room: SummaryRoom,
    /// The traces of runs, if there is a receiver.
    pub(super) traces: Option<RunTraces>,
}

/// The parts that are made from the configuration, and replaced by a reload.
pub(super) struct ActiveConfig {
    pub(super) config: Config,
    pub(super) gateway: Gateway,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) http: reqwest::Client,
    /// The webhook that is notified of pending approvals.
    pub(super) webhook: Option<WebhookTarget>,
}

/// The webhook that is notified of pending approvals, with the secret from this process's environment.
pub(super) fn webhook(config: &Config) -> Result<Option<WebhookTarget>, StartError> {
    let get = |name: &str| std::env::var(name).ok();
    WebhookTarget::of(&config.approval.webhook, get).map_err(StartError::Other)
}

pub(super) fn http_client(config: &Config) -> Result<reqwest::Client, StartError> {
    crate::tools::guard::http_client(&config.scenes.network())
        .map_err(|error| start_fault("http.client", format!("no HTTP client for tools: {error}")))
}

/// Checks the bounds and the consistency of the values of a configuration that a program made.
pub(super) fn check_values(config: &Config) -> Result<(), StartError> {
    let problems: Vec<String> = config.problems().iter().map(ToString::to_string).collect();
    if problems.is_empty() { Ok(()) } else { Err(start_fault("config.value", problems.join("; "))) }
}

fn clock(config: &Config) -> Result<EngineClock, StartError> {
    let zone = config
        .execution
        .zone()
        .map_err(|error| start_fault("config.time_zone", format!("execution.time_zone: {error}")))?;
    Ok(EngineClock::new(zone, config.execution.fixed_now))
}

fn gateway(config: &Config, guard_actors: &GuardActors) -> Result<Gateway, StartError> {
    let gateway = Gateway::new(config.llm.clone(), Arc::new(crate::llm::offline::OfflineModel))
        .map_err(|error| StartError::Other(error.into()))?;
    Ok(gateway.guarded(guard_actors.guards()))
}

pub(super) async fn apply_scene_schemas(store: &Store, scenes: &[Scene]) -> Result<(), StartError> {
    for scene in scenes {
        if let Some(sql) = &scene.schema_sql {
            store.apply_scene_schema(&scene.name, sql).await?;
        }
    }
    Ok(())
}

/// The threads on which tools run.
fn tool_runtime() -> Result<tokio::runtime::Runtime, StartError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(worker_threads())
        .thread_name("tools")
        .enable_all()
        .build()
        .map_err(|error| start_fault("engine.threads", format!("no threads for tools: {error}")))
}

pub(super) fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn values_that_a_file_may_not_have_are_refused_before_anything_begins() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = dir.path().join("data");
        config.execution.max_rounds = 0;
        config.memory.max_turns_in_prompt = config.memory.keep_turns;
        config.telemetry.otlp.endpoint = "http://ada:hunter2@localhost:4318".to_owned();
        let Err(StartError::Other(fault)) = crate::Engine::builder(config.clone()).start().await else {
            panic!("it starts");
        };
        assert_eq!(fault.code, "config.value");
        for key in ["`execution.max_rounds`", "`memory.keep_turns`", "`telemetry.otlp.endpoint`"] {
            assert!(fault.message.contains(key), "{fault}");
        }
        assert!(!fault.message.contains("hunter2"), "{fault}");
        assert!(!config.store.data_dir.exists());
    }

    #[tokio::test]
    async fn reload_refuses_values_that_a_start_refuses_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = dir.path().join("data");
        let engine = crate::Engine::builder(config.clone()).start().await.unwrap();
        let mut wrong = config.clone();
        wrong.execution.max_rounds = 0;
        wrong.auth.default_user = "boss".to_owned();
        let refused = engine.reload(wrong).await.unwrap_err();
        assert_eq!(refused.code(), "config.value");
        assert!(refused.to_string().contains("`execution.max_rounds`"), "{refused}");
        assert_eq!(engine.default_principal().1, config.auth.default_user);
        engine.stop().await.unwrap();
    }

    #[tokio::test]
    async fn stopped_engine_refuses_requests_as_stopped_and_not_as_busy() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = dir.path().join("data");
        let engine = crate::Engine::builder(config).start().await.unwrap();
        engine.shut_down().await.unwrap();
        // The actors end by themselves, soon after; until then, the journal refuses the request.
        for _ in 0..20 {
            let refused = engine.chat(engine.request("Where is order 12?", None)).await.unwrap_err();
            assert!(["engine.stopped", "store.stopped"].contains(&refused.code.as_str()), "{refused:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[test]
    fn start_outside_a_runtime_is_refused_with_a_code() {
        let start = crate::Engine::builder(Config::default()).start();
        let Err(StartError::Other(fault)) = futures::executor::block_on(start) else { panic!("it starts") };
        assert_eq!(fault.code, "engine.runtime");
    }
}
