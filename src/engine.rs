//! The engine: everything together, as a library user and the command line see it.
//!
//! It owns an actix system on a thread of its own, so it can be started from any async runtime.

pub(crate) mod again;
mod carry;
mod once;
mod past;
mod reload;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use actix::{Arbiter, ArbiterHandle};
use arc_swap::ArcSwap;
use jiff::Zoned;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::actors::clock::Clock;
use crate::actors::driver::{Shared, store_fault};
use crate::actors::journal::{self, Journal};
use crate::actors::live::{Live, Watch};
use crate::actors::scene_manager::{self, Submit};
use crate::actors::{scene as scene_actor, session_registry};
use crate::answer::Answer;
use crate::config::Config;
use crate::llm::budget::Scope;
use crate::llm::{Budget, Cache, Gateway, Guards, Limits};
use crate::public::{EventId, PublicStream, Source};
use crate::run::{Envelope, Event, Fault, Idempotency, RunId, RunState, SessionId, TenantId, Turn};
use crate::scene::{self, Catalogue, Folder, Scene};
use crate::store::{self, DataDir, Store};
use crate::telemetry::{self, Exposition, Figures, Kpis, Names, Outside, Subscriber};
use crate::tools::{NativeTools, SceneStore};

pub use once::Submitted;

/// Most characters of one request.
const MAX_REQUEST_CHARS: usize = 32_000;
/// Most conversations awake at once.
const MAX_AWAKE: usize = 100_000;
/// Most requests on their way to conversations.
const REGISTRY_MAILBOX: usize = 4096;
/// How long a conversation stays awake with nothing to do.
const IDLE: Duration = Duration::from_secs(60);

/// What an engine is made of.
pub struct Builder {
    config: Config,
    sources: Sources,
    idle: Duration,
}

/// Where scenes come from, beside the configuration.
#[derive(Clone, Default)]
struct Sources {
    native: NativeTools,
    builtin: Option<&'static include_dir::Dir<'static>>,
    scenes: Vec<Scene>,
}

impl Sources {
    fn load(&self, config: &Config) -> scene::Loaded {
        let folders = self.builtin.map(|dir| Folder::embedded("scenes", dir)).unwrap_or_default();
        let mut loaded = scene::load(&config.scenes, folders, &self.native);
        loaded.scenes.extend(self.scenes.iter().cloned());
        loaded
    }
}

impl Builder {
    /// Tools written in Rust, by the names that `scene.toml` files use.
    #[must_use]
    pub fn native_tools(mut self, tools: NativeTools) -> Self {
        self.sources.native = tools;
        self
    }

    /// Scene folders that are part of the program; used unless `scenes.builtin` is false.
    #[must_use]
    pub fn builtin_scenes(mut self, folders: &'static include_dir::Dir<'static>) -> Self {
        self.sources.builtin = Some(folders);
        self
    }

    /// A scene made in Rust.
    #[must_use]
    pub fn scene(mut self, scene: Scene) -> Self {
        self.sources.scenes.push(scene);
        self
    }

    /// How long a conversation stays awake with nothing to do; a minute unless told. A sleeping one
    /// is in the store only, and wakes with its next request.
    #[must_use]
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Reads the scenes without starting anything: what `check` reports.
    pub fn load_scenes(&self) -> scene::Loaded {
        self.sources.load(&self.config)
    }

    /// Opens the data directory, reads the scenes and starts the actors.
    ///
    /// # Errors
    /// Every fault of the scenes, or why the data directory, the models or the threads could not be
    /// had.
    pub async fn start(self) -> Result<Engine, StartError> {
        let loaded = self.load_scenes();
        if loaded.failed() {
            return Err(StartError::Scenes(loaded.faults));
        }
        let config = self.config;
        let zone = config
            .execution
            .zone()
            .map_err(|error| start_fault("config.time_zone", format!("execution.time_zone: {error}")))?;
        let clock = Clock::new(zone, config.execution.fixed_now);
        let http = http_client(&config)?;
        let guards = Guards {
            cache: Cache::new(&config.cache),
            budget: Budget::new(&config.budget, clock.zone()),
            limits: Limits::new(&config.limits),
        };
        let gateway = Gateway::new(config.llm.clone(), Arc::new(crate::llm::offline::Offline))
            .map_err(|error| StartError::Other(error.into()))?
            .guarded(guards);
        let dir = DataDir::open(&config.store.data_dir)?;
        let store = Store::open(dir).await?;
        // Before anything is accepted or carried on here.
        let earlier = again::Earlier::read(&store).await?;
        seed(&gateway.guards().budget, &store, &clock).await?;
        make_tables(&store, &loaded.scenes).await?;
        let workers = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads())
            .thread_name("tools")
            .enable_all()
            .build()
            .map_err(|error| start_fault("engine.threads", format!("no threads for tools: {error}")))?;
        let catalogue = Arc::new(Catalogue::new(loaded.scenes));
        let names = Names::new(&catalogue, &gateway.configured());
        let kpis = if config.telemetry.metrics { Some(Kpis::new(&names)) } else { None };
        let kpis = kpis.transpose().map(|kpis| kpis.map(Arc::new));
        let kpis = kpis.map_err(|error| start_fault("engine.metrics", error.to_string()))?;
        let workers_handle = workers.handle().clone();
        let parts = Parts {
            store,
            clock,
            workers: workers_handle,
            sources: self.sources,
            current: Arc::new(ArcSwap::from_pointee(Current { config, gateway, catalogue, http })),
            idle: self.idle,
            live: Live::default(),
            figures: Figures::new(names.into(), kpis),
            outside: Outside::default(),
            carries_on: Arc::default(),
        };
        let system = System::start(parts.clone()).await;
        let system = match system {
            Ok(system) => system,
            Err(error) => {
                workers.shutdown_background();
                return Err(error);
            }
        };
        Ok(Engine { parts, system, workers: Some(workers), once: once::Locks::default(), earlier })
    }
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The scenes have faults; all of them are here.
    #[error("the scenes have faults")]
    Scenes(Vec<scene::Fault>),
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Something else.
    #[error(transparent)]
    Other(#[from] Fault),
}

fn start_fault(code: &str, message: impl Into<String>) -> StartError {
    StartError::Other(Fault::new(code, message))
}

#[derive(Clone)]
struct Parts {
    store: Store,
    clock: Clock,
    workers: tokio::runtime::Handle,
    sources: Sources,
    current: Arc<ArcSwap<Current>>,
    idle: Duration,
    live: Live,
    figures: Figures,
    outside: Outside,
    carries_on: Arc<AtomicBool>,
}

/// What a configuration makes, and a changed one makes anew.
struct Current {
    config: Config,
    gateway: Gateway,
    catalogue: Arc<Catalogue>,
    /// For tools.
    http: reqwest::Client,
}

fn http_client(config: &Config) -> Result<reqwest::Client, StartError> {
    crate::tools::guard::http_client(&config.scenes.network())
        .map_err(|error| start_fault("http.client", format!("no HTTP client for tools: {error}")))
}

async fn make_tables(store: &Store, scenes: &[Scene]) -> Result<(), StartError> {
    for scene in scenes {
        if let Some(sql) = &scene.schema_sql {
            store.apply_scene_schema(&scene.name, sql).await?;
        }
    }
    Ok(())
}

/// A request to the engine.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The user's words.
    pub message: String,
    /// The conversation; a new one where absent.
    pub session: Option<SessionId>,
    /// Who pays.
    pub tenant: TenantId,
    /// Who asks.
    pub user: String,
    /// The conversation so far, where the client keeps it; otherwise it is kept here.
    pub history: Option<Vec<Turn>>,
    /// The chatbot's own instructions, in words; they are told with what is remembered.
    pub instructions: Option<String>,
    /// How its questions to models use the cache, where not as configured for their purposes.
    pub cache: Option<crate::llm::cache::Mode>,
    /// Only make a plan.
    pub plan_only: bool,
    /// The client's name for this request, so that it can be sent again without being carried out
    /// again: 1 to 255 printable ASCII characters. See [`Engine::submit_once`].
    pub idempotency: Option<String>,
    /// What was asked, by whom and from where, as a hash in hex: for a client that sends again without a
    /// name, and is to be known after a restart.
    pub asked: Option<String>,
}

/// A request that was accepted: it will end in exactly one way, whether anybody waits or not.
pub struct Ticket {
    /// The run.
    pub run: RunId,
    /// The conversation.
    pub session: SessionId,
    watch: Watch,
    /// Whether `watch` has been there from the beginning.
    from_start: bool,
    source: Source,
    answer: oneshot::Receiver<Result<Answer, Fault>>,
}

impl Ticket {
    /// The next event of the run; `None` when there will be no more. A listener that lags more than
    /// a few hundred events behind loses the oldest; the journal has them.
    pub async fn next(&mut self) -> Option<Arc<Envelope<Event>>> {
        self.watch.next().await
    }

    /// What clients see of the run, from its first event on; it goes on when the ticket is used up by
    /// [`Ticket::answer`]. Taken right away, it needs nothing of the store; [`Ticket::next`] then gives
    /// what happens from here on.
    pub fn stream(&mut self) -> PublicStream {
        let later = self.watch.again();
        let watch = std::mem::replace(&mut self.watch, later);
        if std::mem::take(&mut self.from_start) {
            PublicStream::fresh(self.source.clone(), watch)
        } else {
            PublicStream::resumed(self.source.clone(), Some(watch), EventId::default())
        }
    }

    /// Another way to follow the run from here on.
    pub fn watch(&self) -> Watch {
        self.watch.again()
    }

    /// Asks the run to stop at its next safe point.
    pub async fn cancel(&self, by: &str) {
        // A run that has ended has nothing to stop.
        self.watch.cancel(by);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Where the run could not go on, as when the disk is full: what it did is in its events.
    pub async fn answer(self) -> Result<Answer, Fault> {
        self.answer.await.unwrap_or_else(|_| {
            Err(Fault::new(
                "run.lost",
                format!("run {} stopped without an answer; its events tell how far it got", self.run),
            ))
        })
    }
}

/// Where requests go in, for work that outlives its caller.
#[derive(Clone)]
struct Intake {
    registry: session_registry::Address,
    journal: journal::Handle,
    store: Store,
}

impl Intake {
    fn source(&self, tenant: TenantId, run: RunId) -> Source {
        Source { store: self.store.clone(), journal: self.journal.clone(), tenant, run }
    }
}

/// A running engine.
pub struct Engine {
    parts: Parts,
    system: System,
    workers: Option<tokio::runtime::Runtime>,
    once: once::Locks,
    earlier: again::Earlier,
}

impl Engine {
    /// An engine to be configured further.
    pub fn builder(config: Config) -> Builder {
        Builder { config, sources: Sources::default(), idle: IDLE }
    }

    /// Submits a request: when this returns, it is in the journal.
    ///
    /// # Errors
    /// `request.empty`, `request.too_long`, a full queue, or the store's reason. `request.duplicate`
    /// where it has an idempotency key and was accepted before; [`Engine::submit_once`] gives the run.
    pub async fn submit(&self, request: ChatRequest) -> Result<Ticket, Fault> {
        match self.submit_once(request).await? {
            Submitted::New(ticket) => Ok(ticket),
            Submitted::Before { run, .. } => Err(Fault::new(
                "request.duplicate",
                format!("this request was accepted before, as run {run}; ask for that run"),
            )),
        }
    }

    async fn accept(
        intake: &Intake,
        request: ChatRequest,
        idempotency: Option<Idempotency>,
    ) -> Result<Ticket, Fault> {
        let received = Instant::now();
        let length = request.message.chars().count();
        if request.message.trim().is_empty() {
            return Err(Fault::new("request.empty", "the message is empty: say what you want"));
        }
        if length > MAX_REQUEST_CHARS {
            let message =
                format!("the message has {length} characters; at most {MAX_REQUEST_CHARS} are taken");
            return Err(Fault::new("request.too_long", message));
        }
        let is_first = request.session.is_none();
        let session = match request.session {
            Some(session) => session,
            None => new_session()?,
        };
        let (reply, accepted) = oneshot::channel();
        let submit = Submit {
            is_first,
            message: request.message,
            user: request.user,
            plan_only: request.plan_only,
            idempotency,
            asked: request.asked,
            history: request.history,
            instructions: request.instructions,
            cache: request.cache,
            received,
            reply,
            waiting: None,
        };
        let tenant = request.tenant.clone();
        intake.registry.submit(request.tenant, session.clone(), submit)?;
        let accepted = accepted.await.map_err(|_| {
            Fault::new("engine.stopped", "the engine stopped before the request was accepted")
        })??;
        let run = accepted.watch.run;
        Ok(Ticket {
            run,
            session,
            watch: accepted.watch,
            from_start: true,
            source: intake.source(tenant, run),
            answer: accepted.answer,
        })
    }

    /// Follows a tenant's run from now on; `None` where it has none of that id under way here.
    pub fn watch(&self, tenant: &TenantId, run: RunId) -> Option<Watch> {
        self.parts.live.watch(tenant, run)
    }

    /// Asks a tenant's run to stop at its next safe point; `by` says who wants it. False where it has no
    /// run of that id under way here.
    ///
    /// # Errors
    /// The store's.
    pub async fn cancel(&self, tenant: &TenantId, run: RunId, by: &str) -> Result<bool, Fault> {
        Ok(self.follow(tenant, run).await?.is_some_and(|watch| watch.cancel(by)))
    }

    /// The answer document of a tenant's run, once it has ended; where it is not under way here, as far as
    /// it got.
    ///
    /// # Errors
    /// `run.unknown` where the tenant has no such run; the store's.
    pub async fn wait(&self, tenant: &TenantId, run: RunId) -> Result<Answer, Fault> {
        if let Some(mut watch) = self.follow(tenant, run).await? {
            while watch.next().await.is_some() {}
        }
        let answer = self.answer_of(tenant, run).await?;
        answer.ok_or_else(|| Fault::new("run.unknown", format!("there is no run {run}")))
    }

    /// How many runs are under way, those that wait for their turn included.
    pub fn runs_in_flight(&self) -> usize {
        self.parts.live.count()
    }

    /// What clients see of a tenant's run: everything after `last`, or everything. Of a run under way it
    /// tells what happens until its end; where `last` tells of an answer's words that may not be the
    /// answer any more, it begins with `answer_reset`.
    ///
    /// # Errors
    /// `run.unknown` where the tenant has no such run; the store's.
    pub async fn stream(
        &self,
        tenant: &TenantId,
        run: RunId,
        last: Option<EventId>,
    ) -> Result<PublicStream, Fault> {
        // Before the journal is read, so that what happens in between is heard.
        let watch = self.follow(tenant, run).await?;
        if watch.is_none() {
            let stored = self.parts.store.run(tenant, run).await.map_err(|error| store_fault(&error))?;
            if stored.is_none() {
                return Err(Fault::new(
                    "run.unknown",
                    format!("there is no run {run}; GET /api/runs lists them"),
                ));
            }
        }
        Ok(PublicStream::resumed(self.intake().source(tenant.clone(), run), watch, last.unwrap_or_default()))
    }

    fn intake(&self) -> Intake {
        Intake {
            registry: self.system.registry.clone(),
            journal: self.system.journal.clone(),
            store: self.parts.store.clone(),
        }
    }

    /// Submits a request and waits for its answer.
    ///
    /// # Errors
    /// Those of [`Engine::submit`] and [`Ticket::answer`].
    pub async fn chat(&self, request: ChatRequest) -> Result<Answer, Fault> {
        self.submit(request).await?.answer().await
    }

    /// A request of the configured default user, as a terminal or a library user makes it.
    pub fn request(&self, message: &str, session: Option<SessionId>) -> ChatRequest {
        let (tenant, user) = self.default_principal();
        ChatRequest {
            message: message.to_owned(),
            session,
            tenant,
            user,
            history: None,
            instructions: None,
            cache: None,
            plan_only: false,
            idempotency: None,
            asked: None,
        }
    }

    /// Who asks and who pays, where nobody has to say it.
    pub fn default_principal(&self) -> (TenantId, String) {
        let current = self.parts.current.load();
        let auth = &current.config.auth;
        (auth.default_tenant.clone(), auth.default_user.clone())
    }

    /// The time zone of dates and days.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        self.parts.clock.zone()
    }

    /// Whether requests can be taken: the journal is open and the store can be read.
    ///
    /// # Errors
    /// Why not.
    pub async fn ready(&self) -> Result<(), Fault> {
        let failed = |error| crate::actors::driver::store_fault(&error);
        self.system.journal.flush().await.map_err(failed)?;
        self.parts.store.unfinished_runs().await.map(drop).map_err(failed)
    }

    /// How many conversations are awake; those that sleep are in the store only.
    pub async fn awake(&self) -> usize {
        self.system.registry.awake().await
    }

    /// The scenes there are.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.parts.current.load().catalogue.clone()
    }

    /// Everything that operations see in figures, in Prometheus' text format (version 0.0.4); `None`
    /// with `telemetry.metrics = false`. Figures of runs are those of what is in the journal; what
    /// stands in memory is looked up now.
    pub async fn metrics(&self) -> Option<String> {
        let outside = &self.parts.outside;
        let mut text = Exposition::new(self.parts.figures.now().kpis.as_ref()?, outside);
        telemetry::gateway(&mut text, &self.gateway()).await;
        telemetry::journal(&mut text, outside, self.system.journal.stats().pending);
        let stored = self.parts.store.count_sessions().await;
        telemetry::sessions(&mut text, outside, stored.ok());
        Some(text.text())
    }

    /// The place to tell of what happens outside runs: what is refused, what waits.
    pub fn outside(&self) -> &Outside {
        &self.parts.outside
    }

    /// What lasts: runs, their events, conversations.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// The way to models.
    pub fn gateway(&self) -> Gateway {
        self.parts.current.load().gateway.clone()
    }

    /// A run as the fold of its stored events.
    ///
    /// # Errors
    /// The store's, or `run.illegal_event` where the events do not fold.
    pub async fn run(&self, tenant: &TenantId, run: RunId) -> Result<RunState, Fault> {
        let events = self.parts.store.run_events(tenant, run).await.map_err(|error| store_fault(&error))?;
        fold(run, &events)
    }

    /// Writes what is pending and ends every thread. Runs under way stop where they are; what they
    /// did is in the journal.
    ///
    /// # Errors
    /// The store's, where the last events could not be written.
    pub async fn stop(self) -> Result<(), store::Error> {
        self.shut_down().await
    }

    /// As [`Engine::stop`], for an engine that others still hold: what they ask of it from here on is
    /// refused.
    ///
    /// # Errors
    /// The store's, where the last events could not be written.
    pub async fn shut_down(&self) -> Result<(), store::Error> {
        let written = self.system.journal.stop().await;
        self.system.end();
        self.parts.store.close().await;
        written
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.system.end();
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

/// A run as the fold of its journal.
///
/// # Errors
/// `run.illegal_event` where the events do not follow each other: the journal was changed by hand, or
/// by a version of the program that knew other rules.
pub fn fold(run: RunId, journal: &[Envelope<Event>]) -> Result<RunState, Fault> {
    let mut state = RunState::new(run);
    for event in journal {
        state.apply(&event.body).map_err(|error| {
            Fault::new("run.illegal_event", format!("event {} of run {run}: {error}", event.seq))
        })?;
    }
    Ok(state)
}

/// The actix system on its thread.
struct System {
    registry: session_registry::Address,
    journal: journal::Handle,
    actix: actix::System,
    arbiters: Arc<[ArbiterHandle]>,
    shared: Arc<ArcSwap<Shared>>,
}

impl System {
    async fn start(parts: Parts) -> Result<Self, StartError> {
        let (tell, told) = oneshot::channel();
        std::thread::Builder::new()
            .name("actors".to_owned())
            .spawn(move || {
                let runner = actix::System::new();
                let started = runner.block_on(cast(&parts));
                let failed = started.is_err();
                let _ = tell.send(started.map(|cast| (cast, actix::System::current())));
                if failed {
                    return;
                }
                if let Err(error) = runner.run() {
                    tracing::error!(%error, "the actors' system ended with an error");
                }
            })
            .map_err(|error| start_fault("engine.threads", format!("no thread for the actors: {error}")))?;
        let (cast, actix) = told
            .await
            .map_err(|_| start_fault("engine.start", "the actors' thread ended before they had started"))??;
        let Cast { registry, journal, arbiters, shared } = cast;
        Ok(Self { registry, journal, actix, arbiters, shared })
    }

    /// Begins work that goes on whoever waits for it, as a task of the actors' thread. Where that has
    /// ended, the work is dropped.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.actix.arbiter().spawn_fn(|| drop(tokio::spawn(work)));
    }

    fn end(&self) {
        // Drivers are not on the actors' threads.
        self.shared.load().live.end();
        // The thread ends by itself; joining it here could block an async caller.
        self.actix.stop();
    }
}

/// The actors that others speak to, and what a changed configuration needs of them.
struct Cast {
    registry: session_registry::Address,
    journal: journal::Handle,
    arbiters: Arc<[ArbiterHandle]>,
    shared: Arc<ArcSwap<Shared>>,
}

/// Starts the whole cast.
async fn cast(parts: &Parts) -> Result<Cast, StartError> {
    let subscriber = Subscriber::of(parts.figures.clone());
    let watch = telemetry::Watch { subscriber: Some(subscriber), outside: parts.outside.clone() };
    let current = parts.current.load_full();
    let config = &current.config;
    let journal = Journal::watched(parts.store.clone(), &config.store, watch).await?;
    let mut handles = Vec::new();
    for _ in 0..threads() {
        let arbiter = Arbiter::try_new()
            .map_err(|error| start_fault("engine.threads", format!("no thread for actors: {error}")))?;
        handles.push(arbiter.handle());
    }
    let arbiters: Arc<[ArbiterHandle]> = handles.into();
    let shared = Arc::new(ArcSwap::from_pointee(shared(parts, &current, &arbiters, &journal)));
    let options = scene_manager::Options {
        shared: shared.clone(),
        store: parts.store.clone(),
        memory: config.memory.clone(),
        max_queued: config.execution.max_queued_requests as usize,
        idle: parts.idle,
        outside: parts.outside.clone(),
        carries_on: parts.carries_on.clone(),
    };
    let registry = session_registry::Address::start(
        &arbiters[0],
        arbiters.clone(),
        options,
        MAX_AWAKE,
        REGISTRY_MAILBOX,
    );
    let days = config.store.keep_sessions_days;
    let janitor = sessions::Janitor { store: parts.store.clone(), registry: registry.clone(), days };
    tokio::spawn(janitor.work());
    Ok(Cast { registry, journal, arbiters, shared })
}

/// What runs that start now work with.
fn shared(parts: &Parts, current: &Current, arbiters: &[ArbiterHandle], journal: &journal::Handle) -> Shared {
    let scenes = current.catalogue.iter().zip(arbiters.iter().cycle()).map(|(scene, arbiter)| {
        let options = scene_actor::Options {
            gateway: current.gateway.clone(),
            store: SceneStore::new(parts.store.pool().clone()),
            http: current.http.clone(),
            workers: parts.workers.clone(),
            arbiter: arbiter.clone(),
            outside: parts.outside.clone(),
        };
        (scene.name.clone(), scene_actor::Handle::start(scene.clone(), options))
    });
    Shared {
        gateway: current.gateway.clone(),
        journal: journal.clone(),
        catalogue: current.catalogue.clone(),
        catalogue_hash: current.catalogue.hash().into(),
        scenes: Arc::new(scenes.collect()),
        clock: parts.clock.clone(),
        settings: current.config.run_settings(),
        live: parts.live.clone(),
    }
}

/// Tells the budget what was spent before, as the journal has it. What is not limited is not added up.
async fn seed(budget: &Budget, store: &Store, clock: &Clock) -> Result<(), StartError> {
    if budget.limit(Scope::Tenant).is_none() && budget.limit(Scope::Day).is_none() {
        return Ok(());
    }
    let midnight = Zoned::now()
        .with_time_zone(clock.zone())
        .start_of_day()
        .map_err(|error| start_fault("engine.clock", format!("today has no beginning: {error}")))?;
    let today = store.usage(Some(midnight.timestamp()), None).await?;
    for (tenant, total) in store.usage(None, None).await? {
        let spent_today = today.get(&tenant).map_or(0, |usage| usage.cost_nano_usd);
        budget.seed(&tenant, total.cost_nano_usd, spent_today);
    }
    Ok(())
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn new_session() -> Result<SessionId, Fault> {
    SessionId::new(&Uuid::now_v7().to_string()).map_err(|error| Fault::new("session.id", error.to_string()))
}
