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

mod places;
mod tool_call;

use std::sync::{Arc, Mutex};

use actix::prelude::{Addr, ArbiterHandle};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::fairness::{FairPermit, FairPermits, NoPermit, Sharers};
use crate::llm::{self, Caller, DigestedRequest, Gateway, Replied, Sink};
use crate::mutex::lock;
use crate::program::Interpreter;
use crate::run::{Attempt, Effect, Fault, FaultClass, Outcome, RunId, SessionId, TenantId};
use crate::scene::{CallEnd, ResultTerms, Scene, ToolExpectations};
use crate::telemetry::{Component, ServerMetrics};
use crate::tools::{Principal, RunDocuments, SceneStore};
use crate::trace_context::TraceParent;
use places::{CallPlace, HeldPlace, PlacesState, QueuedSceneCall, SceneActor, ScenePlaces};
use tool_call::run_tool;

/// The services that every scene uses.
#[derive(Clone)]
pub struct Options {
    /// The LLM gateway.
    pub gateway: Gateway,
    /// Scene data.
    pub store: SceneStore,
    /// The tools' HTTP client, which enforces the network policy.
    pub http: reqwest::Client,
    /// What executes tools in Python.
    pub interpreter: Option<Arc<dyn Interpreter>>,
    /// The multi-threaded runtime that tools run on, so that a blocking tool stalls no actor.
    pub workers: tokio::runtime::Handle,
    /// The thread that the actor runs on.
    pub arbiter: ArbiterHandle,
    /// Records queued and shed work.
    pub server_metrics: ServerMetrics,
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
    /// The documents that the tool may read. Clones note together which of them a tool looked at.
    pub documents: RunDocuments,
    /// Fires when the run ends.
    pub cancelled: CancellationToken,
    /// The span of this attempt of the call.
    pub trace_parent: Option<TraceParent>,
    /// Whether its result is compared with what its tool declares.
    pub is_judged: bool,
    /// What its step expects of its result besides.
    pub expected: Option<Arc<ToolExpectations>>,
}

impl SceneCall {
    /// What decides about its result.
    fn terms(&self) -> ResultTerms<'_> {
        ResultTerms {
            arguments: &self.arguments,
            language: self.language.as_deref(),
            is_judged: self.is_judged,
            expected: self.expected.as_deref(),
        }
    }
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
        let state = PlacesState::new(scene.concurrency as usize);
        let address = Arc::new_cyclic(|actor| {
            let places = ScenePlaces { state: state.clone(), actor: actor.clone() };
            Mutex::new(SceneActor::launch(&scene, &options, &places))
        });
        let places = ScenePlaces { state, actor: Arc::downgrade(&address) };
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
        let asked = self.options.gateway.complete_in_task(
            caller,
            request,
            fallback,
            &cancelled,
            Sink::default(),
            u64::MAX,
        );
        asked.await.map_err(FailedModelCall::from)
    }

    /// Calls one of the scene's tools. The outcome of a write that was interrupted or timed out is `Unknown`.
    pub async fn call(&self, call: SceneCall) -> CallEnd {
        let permit = match self.permit(&self.tool_permits, &call.principal.tenant) {
            Ok(permit) => permit,
            Err(error) => return Outcome::Failed { error }.into(),
        };
        if let Some(place) = self.free_place(&call.principal.tenant) {
            // It has not waited.
            drop(self.options.server_metrics.enqueue(Component::Scene));
            return run_tool(&self.scene, &self.options, call, HeldPlace { _place: place, _permit: permit })
                .await;
        }
        let effect = self.scene.program_tool(&call.tool).map_or(Effect::Read, |t| t.effect);
        let (reply, answer) = oneshot::channel();
        if let Err(error) = self.send(call, reply, permit) {
            return Outcome::Failed { error }.into();
        }
        match answer.await {
            Ok(end) => end,
            Err(_) if effect == Effect::Write => Outcome::Unknown { error: self.lost() }.into(),
            Err(_) => Outcome::Failed { error: self.lost() }.into(),
        }
    }

    /// The end of a call with a result that another executor gave.
    pub fn end_with_given_result(&self, call: &SceneCall, result: Value, say: Option<String>) -> CallEnd {
        match self.scene.tool(&call.tool) {
            Some(tool) => tool.end_with_given_result(call.terms(), result, say),
            None => Outcome::Ok { result, say, whole: None }.into(),
        }
    }

    /// A place in which a call of `tenant` may run now.
    fn free_place(&self, tenant: &TenantId) -> Option<CallPlace> {
        let is_free = self.places.lock().calls.take(tenant, self.options.tenants.is_shared());
        is_free.then(|| CallPlace { places: self.places.clone(), tenant: tenant.clone() })
    }

    fn send(
        &self,
        call: SceneCall,
        reply: oneshot::Sender<CallEnd>,
        permit: FairPermit<TenantId>,
    ) -> Result<(), Fault> {
        let mut address = lock(&self.address);
        if !address.connected() {
            tracing::warn!(scene = %self.scene.name, "the scene's actor died and is replaced");
            self.options.server_metrics.record_restart(Component::Scene);
            *address = SceneActor::launch(&self.scene, &self.options, &self.places);
        }
        let server_metrics = &self.options.server_metrics;
        let waiting = server_metrics.enqueue(Component::Scene);
        // The mailbox has room for every call with a permit.
        let span = tracing::Span::current();
        let sent = address.try_send(QueuedSceneCall { call, reply, waiting, permit, span });
        sent.map_err(|_| {
            server_metrics.shed(Component::Scene);
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
            self.options.server_metrics.shed(Component::Scene);
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
