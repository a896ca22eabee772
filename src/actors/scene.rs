//! The actor of one scene: holds its tools, bounds its concurrency, asks its model, calls its tools and
//! reports each outcome.
//!
//! Tenants share the scene's places ([`crate::fairness`]): each has a share of those in which calls run, of those
//! in which they wait, and of the permits for model calls, and waiting calls are served tenant by tenant.
//!
//! Supervision: calls run on the worker runtime, where a panic ends only that call; a dead actor is
//! replaced at the next message. The reply channel travels with the call, so neither case loses calls in
//! progress.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix::prelude::{
    ActorFutureExt, Addr, ArbiterHandle, AsyncContext, Context, Handler, Message, WrapFuture,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::launch;
use crate::fairness::{FairPermit, FairPermits, NoPermit, SharedPlaces, Sharers};
use crate::llm::{self, Caller, Gateway, Replied, Sink};
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
        let address = Arc::new(Mutex::new(SceneActor::launch(&scene, &options)));
        let tool_permits = FairPermits::new(calls_at_once(&scene));
        let model_permits = FairPermits::new(scene.mailbox as usize);
        Self { scene, options, address, tool_permits, model_permits }
    }

    /// Asks the scene's model for `caller`.
    ///
    /// # Errors
    /// The gateway's, or `scene.busy` when too many model calls are in progress.
    pub async fn ask(
        &self,
        caller: Caller,
        request: llm::Request,
        fallback: bool,
        cancelled: CancellationToken,
    ) -> Result<Replied, FailedModelCall> {
        let _permit =
            self.permit(&self.model_permits, &caller.tenant).map_err(FailedModelCall::without_attempts)?;
        // The gateway calls the model in its own task; this future only waits for it.
        let asked =
            self.options.gateway.complete_streaming(caller, request, fallback, &cancelled, Sink::default());
        asked.await.map_err(FailedModelCall::from)
    }

    /// Calls one of the scene's tools. The outcome of a write that was interrupted or timed out is `Unknown`.
    pub async fn call(&self, call: SceneCall) -> Outcome {
        let effect = self.scene.tool(&call.tool).map_or(Effect::Read, |t| t.effect);
        let (reply, answer) = oneshot::channel();
        if let Err(error) = self.send(call, reply) {
            return Outcome::Failed { error };
        }
        match answer.await {
            Ok(outcome) => outcome,
            Err(_) if effect == Effect::Write => Outcome::Unknown { error: self.lost() },
            Err(_) => Outcome::Failed { error: self.lost() },
        }
    }

    fn send(&self, call: SceneCall, reply: oneshot::Sender<Outcome>) -> Result<(), Fault> {
        let permit = self.permit(&self.tool_permits, &call.principal.tenant)?;
        let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        if !address.connected() {
            tracing::warn!(scene = %self.scene.name, "the scene's actor died and is replaced");
            self.options.outside.record_restart(Component::Scene);
            *address = SceneActor::launch(&self.scene, &self.options);
        }
        let outside = &self.options.outside;
        let waiting = outside.enqueue(Component::Scene);
        // The mailbox has room for every call with a permit.
        address.try_send(QueuedSceneCall { call, reply, waiting, permit }).map_err(|_| {
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

struct SceneActor {
    scene: Arc<Scene>,
    options: Options,
    /// The calls in progress, at most the scene's `concurrency`, and those that wait.
    places: SharedPlaces<TenantId, QueuedSceneCall>,
}

impl SceneActor {
    fn launch(scene: &Arc<Scene>, options: &Options) -> Addr<Self> {
        let actor = Self {
            scene: scene.clone(),
            options: options.clone(),
            places: SharedPlaces::new(scene.concurrency as usize),
        };
        launch::start_actor(&options.arbiter, calls_at_once(scene), actor)
    }

    /// Starts the calls that may run now.
    fn start_calls(&mut self, ctx: &mut Context<Self>) {
        while let Some((tenant, work)) = self.places.next(self.options.tenants.is_shared()) {
            self.start_call(tenant, work, ctx);
        }
    }

    fn start_call(&mut self, tenant: TenantId, work: QueuedSceneCall, ctx: &mut Context<Self>) {
        let QueuedSceneCall { call, reply, waiting, permit } = work;
        drop(waiting);
        // A call whose driver is gone, or whose run was cancelled while it waited, has certainly done nothing:
        // it stays so.
        if reply.is_closed() || call.cancelled.is_cancelled() {
            self.places.give_back(&tenant);
            drop(permit);
            let error = Fault::new("tool.cancelled", format!("{} was cancelled before it began", call.tool));
            let _ = reply.send(Outcome::Failed { error });
            return;
        }
        let scene = self.scene.clone();
        let options = self.options.clone();
        // A separate task, so that it outlives this actor.
        let task = self.options.workers.spawn(async move {
            let outcome = run_tool(&scene, &options, call).await;
            // Before the reply, because its receiver may call again at once.
            drop(permit);
            // The caller may have dropped its future.
            let _ = reply.send(outcome);
        });
        let ended = async move {
            if let Err(error) = task.await {
                tracing::error!(%error, "the task of a tool call panicked");
            }
        };
        ctx.spawn(ended.into_actor(self).map(move |(), actor, ctx| {
            actor.places.give_back(&tenant);
            actor.start_calls(ctx);
        }));
    }
}

impl actix::Actor for SceneActor {
    type Context = Context<Self>;
}

impl Handler<QueuedSceneCall> for SceneActor {
    type Result = ();

    fn handle(&mut self, work: QueuedSceneCall, ctx: &mut Context<Self>) {
        self.places.queue(work.call.principal.tenant.clone(), work);
        self.start_calls(ctx);
    }
}

/// Executes one call, with its timeout and its result bound. A panic of the tool is an ordinary outcome.
async fn run_tool(scene: &Arc<Scene>, options: &Options, call: SceneCall) -> Outcome {
    let Some(tool) = scene.tool(&call.tool).cloned() else {
        let message = format!("scene {} has no tool {}", scene.name, call.tool);
        return Outcome::Refused { error: Fault::new("tool.unknown", message) };
    };
    let context = ToolContext {
        principal: call.principal,
        now: call.now,
        language: call.language.clone(),
        session: call.session,
        run: call.run,
        step: call.step,
        idempotency_key: call.idempotency_key,
        store: options.store.clone(),
        http: options.http.clone(),
        settings: scene.settings.clone(),
        cancelled: call.cancelled.clone(),
    };
    let started = Instant::now();
    let limit = Duration::from_millis(tool.timeout_ms);
    let body = tool.tool.clone();
    let arguments = call.arguments.clone();
    let mut task = tokio::spawn(async move { body.call(context, arguments).await });
    let ended = tokio::select! {
        ended = tokio::time::timeout(limit, &mut task) => ended.map_err(|_| "tool.timeout"),
        () = cancelled_if_read(&call.cancelled, tool.effect) => Err("tool.cancelled"),
    };
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
            task.abort();
            unfinished_outcome(&tool, "tool.cancelled", format!("{} was cancelled with its run", tool.name))
        }
        Err(code) => {
            task.abort();
            unfinished_outcome(
                &tool,
                code,
                format!("{} did not answer within {} ms", tool.name, tool.timeout_ms),
            )
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
