//! One scene: holds its tools, bounds its concurrency, asks its model, calls its tools and reports each outcome.
//!
//! Tenants share the scene's places ([`crate::fairness`]): each has a share of those in which calls run, of those
//! in which they wait, and of the permits for model calls, and waiting calls are served tenant by tenant.
//!
//! A call that finds a free place starts at once: only its tool runs on another thread. The scene's actor holds the
//! calls that wait.
//!
//! Supervision: tools run on the worker runtime, where a panic ends only that call; a dead actor is
//! replaced at the next message, and the calls that wait are kept. The reply channel travels with the call, so neither
//! case loses calls in progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix::prelude::{Addr, ArbiterHandle, AsyncContext, Context, Handler, Message, SendError};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::launch;
use crate::fairness::{FairPermit, FairPermits, NoPermit, SharedPlaces, Sharers};
use crate::llm::{self, Caller, DigestedRequest, Gateway, Replied, Sink};
use crate::nesting;
use crate::run::{Attempt, Effect, Fault, FaultClass, Outcome, RunId, SessionId, TenantId};
use crate::scene::{Scene, SceneTool};
use crate::telemetry::{Component, QueueGuard, ServerMetrics};
use crate::tools::{Principal, SceneStore, ToolContext, ToolError, ToolErrorKind, bound, phrase};

/// The services that every scene uses.
#[derive(Clone)]
pub struct Options {
    /// The LLM gateway.
    pub gateway: Gateway,
    /// Scene data.
    pub store: SceneStore,
    /// The tools' HTTP client, which enforces the network policy.
    pub http: reqwest::Client,
    /// The multi-threaded runtime that tools run on, so that a blocking tool stalls no actor.
    pub workers: tokio::runtime::Handle,
    /// The thread that the actor runs on.
    pub arbiter: ArbiterHandle,
    /// Records queued and shed work.
    pub outside: ServerMetrics,
    /// Which tenants share the scenes.
    pub tenants: Sharers<TenantId>,
}

/// A tool call to execute.
#[derive(Debug, Clone)]
pub struct SceneCall {
    /// The tool's name.
    pub tool: String,
    /// Its validated arguments.
    pub arguments: Value,
    /// The requester.
    pub principal: Principal,
    /// The run's frozen local time.
    pub now: jiff::Zoned,
    /// The user's language.
    pub language: Option<String>,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// The idempotency key, for writes only.
    pub idempotency_key: Option<String>,
    /// Fires when the run ends.
    pub cancelled: CancellationToken,
}

/// A model call without a reply, with the cost of its attempts.
#[derive(Debug, Clone)]
pub struct FailedModelCall {
    /// Why it failed.
    pub fault: Fault,
    /// Each attempt, with its tokens and money.
    pub attempts: Vec<Attempt>,
}

impl FailedModelCall {
    /// A failure before any model was called.
    pub(super) fn without_attempts(fault: Fault) -> Self {
        Self { fault, attempts: Vec::new() }
    }
}

impl From<llm::Error> for FailedModelCall {
    fn from(error: llm::Error) -> Self {
        Self { attempts: error.attempts().to_vec(), fault: error.into() }
    }
}

/// A handle to a scene.
#[derive(Clone)]
pub struct Handle {
    scene: Arc<Scene>,
    options: Options,
    address: Arc<Mutex<Addr<SceneActor>>>,
    /// The calls in progress, at most the scene's `concurrency`, and those that wait.
    places: ScenePlaces,
    /// Permits for tool calls, running (`concurrency`) and waiting (`mailbox`). They are taken before a call is
    /// sent, so that a flood cannot fill the actor's mailbox for other tenants.
    tool_permits: FairPermits<TenantId>,
    /// Permits for concurrent model calls, as many as the scene's `mailbox`. They are separate from tool
    /// calls, because the gateway bounds the load on providers. Model calls do not pass through the actor.
    model_permits: FairPermits<TenantId>,
}

impl Handle {
    /// Starts the scene's actor.
    pub fn start(scene: Arc<Scene>, options: Options) -> Self {
        let places = ScenePlaces::new(scene.concurrency as usize);
        let address = Arc::new(Mutex::new(SceneActor::launch(&scene, &options, &places)));
        let tool_permits = FairPermits::new(calls_at_once(&scene));
        let model_permits = FairPermits::new(scene.mailbox as usize);
        Self { scene, options, address, places, tool_permits, model_permits }
    }

    /// Asks the scene's model for `caller`, which is a task of the gateway.
    ///
    /// # Errors
    /// The gateway's, or `scene.busy` when too many model calls are in progress.
    pub async fn ask(
        &self,
        caller: Caller,
        request: DigestedRequest,
        fallback: bool,
        cancelled: CancellationToken,
    ) -> Result<Replied, FailedModelCall> {
        let _permit =
            self.permit(&self.model_permits, &caller.tenant).map_err(FailedModelCall::without_attempts)?;
        let asked =
            self.options.gateway.complete_in_task(caller, request, fallback, &cancelled, Sink::default());
        asked.await.map_err(FailedModelCall::from)
    }

    /// Calls one of the scene's tools. The outcome of a write that was interrupted or timed out is `Unknown`.
    pub async fn call(&self, call: SceneCall) -> Outcome {
        let permit = match self.permit(&self.tool_permits, &call.principal.tenant) {
            Ok(permit) => permit,
            Err(error) => return Outcome::Failed { error },
        };
        if let Some(place) = self.free_place(&call.principal.tenant) {
            let _queued = self.options.outside.enqueue(Component::Scene);
            return run_tool(&self.scene, &self.options, call, HeldPlace { _place: place, _permit: permit })
                .await;
        }
        let effect = self.scene.tool(&call.tool).map_or(Effect::Read, |t| t.effect);
        let (reply, answer) = oneshot::channel();
        if let Err(error) = self.send(call, reply, permit) {
            return Outcome::Failed { error };
        }
        match answer.await {
            Ok(outcome) => outcome,
            Err(_) if effect == Effect::Write => Outcome::Unknown { error: self.lost() },
            Err(_) => Outcome::Failed { error: self.lost() },
        }
    }

    /// A place in which a call of `tenant` may run now.
    fn free_place(&self, tenant: &TenantId) -> Option<CallPlace> {
        let is_free = self.places.lock().calls.take(tenant, self.options.tenants.is_shared());
        is_free.then(|| CallPlace {
            places: self.places.clone(),
            tenant: tenant.clone(),
            actor: lock(&self.address).clone(),
        })
    }

    fn send(
        &self,
        call: SceneCall,
        reply: oneshot::Sender<Outcome>,
        permit: FairPermit<TenantId>,
    ) -> Result<(), Fault> {
        let mut address = lock(&self.address);
        if !address.connected() {
            tracing::warn!(scene = %self.scene.name, "the scene's actor died and is replaced");
            self.options.outside.record_restart(Component::Scene);
            *address = SceneActor::launch(&self.scene, &self.options, &self.places);
        }
        let outside = &self.options.outside;
        let waiting = outside.enqueue(Component::Scene);
        // The mailbox has room for every call with a permit.
        let sent = address.try_send(QueuedSceneCall { call, reply, waiting, permit });
        sent.map_err(|_| {
            outside.shed(Component::Scene);
            busy(&self.scene, NoPermit::AllTaken)
        })
    }

    /// A permit for a call of `tenant`.
    fn permit(
        &self,
        permits: &FairPermits<TenantId>,
        tenant: &TenantId,
    ) -> Result<FairPermit<TenantId>, Fault> {
        self.options.tenants.see(tenant);
        permits.take(tenant, self.options.tenants.is_shared()).map_err(|no| {
            self.options.outside.shed(Component::Scene);
            busy(&self.scene, no)
        })
    }

    fn lost(&self) -> Fault {
        Fault::new("scene.lost", format!("scene {} failed during the call", self.scene.name))
            .classed(FaultClass::Unavailable)
    }
}

/// The number of tool calls that may run or wait.
fn calls_at_once(scene: &Scene) -> usize {
    (scene.concurrency as usize).saturating_add(scene.mailbox as usize)
}

fn busy(scene: &Scene, no: NoPermit) -> Fault {
    let (name, mailbox) = (&scene.name, scene.mailbox);
    Fault::new(
        "scene.busy",
        match no {
            NoPermit::AllTaken => {
                format!("scene {name} already has {mailbox} calls waiting; try again later")
            }
            NoPermit::ShareReached { held } => {
                format!("scene {name} has {held} calls of this tenant, which is its share; try again later")
            }
        },
    )
    .classed(FaultClass::RateLimit)
}

/// A queued tool call and the channel that receives its outcome.
#[derive(Message)]
#[rtype(result = "()")]
struct QueuedSceneCall {
    call: SceneCall,
    reply: oneshot::Sender<Outcome>,
    waiting: QueueGuard,
    /// Held until the call has ended.
    permit: FairPermit<TenantId>,
}

/// The places of a scene, shared by its handles and its actor.
#[derive(Clone)]
struct ScenePlaces(Arc<Mutex<PlacesState>>);

struct PlacesState {
    calls: SharedPlaces<TenantId, QueuedSceneCall>,
    /// Whether a [`PlaceFreed`] is on its way to the actor: one is enough.
    is_actor_told: bool,
}

impl ScenePlaces {
    fn new(total: usize) -> Self {
        let calls = SharedPlaces::new(total);
        Self(Arc::new(Mutex::new(PlacesState { calls, is_actor_told: false })))
    }

    fn lock(&self) -> MutexGuard<'_, PlacesState> {
        lock(&self.0)
    }
}

/// Changes are one step each, so the state is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in which a call runs. It is returned when this is dropped; a call that waits for it is then started.
struct CallPlace {
    places: ScenePlaces,
    tenant: TenantId,
    actor: Addr<SceneActor>,
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.calls.give_back(&self.tenant);
        if places.is_actor_told || places.calls.waiting() == 0 {
            return;
        }
        // With a full mailbox the actor starts the call when it handles its next message.
        places.is_actor_told = match self.actor.try_send(PlaceFreed) {
            Ok(()) => true,
            Err(SendError::Full(_)) => false,
            Err(SendError::Closed(_)) => {
                // Nobody would start them: their callers hear that they are lost.
                let lost = places.calls.remove_waiting();
                drop(places);
                drop(lost);
                return;
            }
        };
    }
}

/// What a call holds until it has ended.
struct HeldPlace {
    _place: CallPlace,
    _permit: FairPermit<TenantId>,
}

/// A call has ended while others waited.
#[derive(Message)]
#[rtype(result = "()")]
struct PlaceFreed;

struct SceneActor {
    scene: Arc<Scene>,
    options: Options,
    places: ScenePlaces,
}

impl SceneActor {
    fn launch(scene: &Arc<Scene>, options: &Options, places: &ScenePlaces) -> Addr<Self> {
        let actor = Self { scene: scene.clone(), options: options.clone(), places: places.clone() };
        launch::start_actor(&options.arbiter, calls_at_once(scene), actor)
    }

    /// Starts the calls that may run now.
    fn start_calls(&self, actor: &Addr<Self>) {
        self.places.lock().is_actor_told = false;
        loop {
            let next = self.places.lock().calls.next(self.options.tenants.is_shared());
            let Some((tenant, work)) = next else { return };
            let place = CallPlace { places: self.places.clone(), tenant, actor: actor.clone() };
            self.start_call(place, work);
        }
    }

    fn start_call(&self, place: CallPlace, work: QueuedSceneCall) {
        let QueuedSceneCall { call, reply, waiting, permit } = work;
        drop(waiting);
        let held = HeldPlace { _place: place, _permit: permit };
        // A call whose driver is gone has certainly done nothing: it stays so.
        if reply.is_closed() {
            return;
        }
        let (scene, options) = (self.scene.clone(), self.options.clone());
        // A separate task, so that it outlives this actor.
        self.options.workers.spawn(async move {
            let outcome = run_tool(&scene, &options, call, held).await;
            // The caller may have dropped its future.
            let _ = reply.send(outcome);
        });
    }
}

impl actix::Actor for SceneActor {
    type Context = Context<Self>;

    /// Calls may have been waiting for the actor that this one replaces.
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.start_calls(&ctx.address());
    }
}

impl Handler<QueuedSceneCall> for SceneActor {
    type Result = ();

    fn handle(&mut self, work: QueuedSceneCall, ctx: &mut Context<Self>) {
        self.places.lock().calls.queue(work.call.principal.tenant.clone(), work);
        self.start_calls(&ctx.address());
    }
}

impl Handler<PlaceFreed> for SceneActor {
    type Result = ();

    fn handle(&mut self, _: PlaceFreed, ctx: &mut Context<Self>) {
        self.start_calls(&ctx.address());
    }
}

/// A tool at work on the tools' threads, with what its call holds. If nobody waits for it any more, a read is
/// aborted, and a write completes within its time.
struct ToolTask {
    /// Absent once it has ended or was given up.
    running: Option<(JoinHandle<Result<Value, ToolError>>, HeldPlace)>,
    effect: Effect,
    limit: Duration,
    workers: tokio::runtime::Handle,
}

/// How a tool ended: with its result, unless it panicked, or was given up with a code.
type ToolEnd = Result<Result<Result<Value, ToolError>, tokio::task::JoinError>, &'static str>;

impl ToolTask {
    fn start(
        tool: &SceneTool,
        call: &SceneCall,
        context: ToolContext,
        held: HeldPlace,
        options: &Options,
    ) -> Self {
        let (body, arguments) = (tool.tool.clone(), call.arguments.clone());
        let workers = options.workers.clone();
        let task = workers.spawn(async move { body.call(context, arguments).await });
        let limit = Duration::from_millis(tool.timeout_ms);
        Self { running: Some((task, held)), effect: tool.effect, limit, workers }
    }

    /// Waits for the end. What the call holds is returned then, because its caller may call again at once.
    async fn end(mut self, cancelled: &CancellationToken) -> ToolEnd {
        let Some((task, _)) = &mut self.running else { return Err("tool.cancelled") };
        let ended = tokio::select! {
            ended = tokio::time::timeout(self.limit, &mut *task) => ended.map_err(|_| "tool.timeout"),
            () = cancelled_if_read(cancelled, self.effect) => Err("tool.cancelled"),
        };
        if ended.is_err() {
            task.abort();
        }
        self.running = None;
        ended
    }
}

impl Drop for ToolTask {
    fn drop(&mut self) {
        let Some((task, held)) = self.running.take() else { return };
        if self.effect == Effect::Read {
            return task.abort();
        }
        let (limit, abort) = (self.limit, task.abort_handle());
        self.workers.spawn(async move {
            if tokio::time::timeout(limit, task).await.is_err() {
                abort.abort();
            }
            drop(held);
        });
    }
}

/// Executes one call, with its timeout and its result bound. A panic of the tool is an ordinary outcome.
async fn run_tool(scene: &Arc<Scene>, options: &Options, call: SceneCall, held: HeldPlace) -> Outcome {
    let Some(tool) = scene.tool(&call.tool).cloned() else {
        let message = format!("scene {} has no tool {}", scene.name, call.tool);
        return Outcome::Refused { error: Fault::new("tool.unknown", message) };
    };
    // A call whose run was cancelled while it waited has certainly done nothing: it stays so.
    if call.cancelled.is_cancelled() {
        let message = format!("{} was cancelled before it began", tool.name);
        return Outcome::Failed { error: Fault::new("tool.cancelled", message) };
    }
    let context = ToolContext {
        principal: call.principal.clone(),
        now: call.now.clone(),
        language: call.language.clone(),
        session: call.session.clone(),
        run: call.run,
        step: call.step,
        idempotency_key: call.idempotency_key.clone(),
        store: options.store.clone(),
        http: options.http.clone(),
        settings: scene.settings.clone(),
        cancelled: call.cancelled.clone(),
    };
    let started = Instant::now();
    let ended = ToolTask::start(&tool, &call, context, held, options).end(&call.cancelled).await;
    let outcome = match ended {
        Ok(Ok(Ok(result))) => {
            let result = nesting::truncate_deep(result);
            let say = phrase::say(&tool.say, call.language.as_deref(), &result, &call.arguments);
            stored_result(result, tool.max_result_bytes, say)
        }
        Ok(Ok(Err(error))) => error_outcome(error, tool.effect),
        Ok(Err(_panic)) => {
            unfinished_outcome(&tool, "tool.panicked", format!("{} failed with an internal error", tool.name))
        }
        Err("tool.cancelled") => {
            unfinished_outcome(&tool, "tool.cancelled", format!("{} was cancelled with its run", tool.name))
        }
        Err(code) => {
            let message = format!("{} did not answer within {} ms", tool.name, tool.timeout_ms);
            unfinished_outcome(&tool, code, message)
        }
    };
    tracing::debug!(scene = %scene.name, tool = %tool.name, elapsed = ?started.elapsed(), "tool call ended");
    outcome
}

/// The largest result that is stored whole, in bytes of JSON. A model may be shown less.
const MAX_STORED_RESULT_BYTES: usize = 256 * 1024;

/// The outcome with a result, and with the whole of it where a model is shown less.
fn stored_result(result: Value, shown_bytes: usize, say: Option<String>) -> Outcome {
    let size = bound::size(&result);
    let whole =
        (size > shown_bytes.max(bound::MIN_BOUND) && size <= MAX_STORED_RESULT_BYTES).then(|| result.clone());
    Outcome::Ok { result: bound::truncate(result, shown_bytes), say, whole }
}

/// Resolves when a read's run is cancelled. A write is never interrupted once it has started.
async fn cancelled_if_read(cancelled: &CancellationToken, effect: Effect) {
    match effect {
        Effect::Read => cancelled.cancelled().await,
        Effect::Write => std::future::pending().await,
    }
}

fn error_outcome(error: ToolError, effect: Effect) -> Outcome {
    let fault = Fault::new(&error.code, error.message)
        .classed(error.class)
        .after(error.retry_after)
        .saying(error.say);
    match (error.kind, effect) {
        (ToolErrorKind::Refused, _) => Outcome::Refused { error: fault },
        (ToolErrorKind::Unknown, Effect::Write) => Outcome::Unknown { error: fault },
        // A read has no effect, so an unknown outcome is a failure.
        (ToolErrorKind::Failed, _) | (ToolErrorKind::Unknown, Effect::Read) => {
            Outcome::Failed { error: fault }
        }
    }
}

fn unfinished_outcome(tool: &SceneTool, code: &str, message: String) -> Outcome {
    let class = if code == "tool.timeout" { FaultClass::Timeout } else { FaultClass::Other };
    match tool.effect {
        Effect::Read => Outcome::Failed { error: Fault::new(code, message).classed(class) },
        Effect::Write => Outcome::Unknown {
            error: Fault::new(code, format!("{message}; whether it took effect is unknown")).classed(class),
        },
    }
}
