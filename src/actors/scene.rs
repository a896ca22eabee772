//! `Scene`: one scene at work. Holds its tools and a bound on how much it does at once; asks its
//! model and calls its tools, and says how each ended.
//!
//! Watched over: work runs on the worker runtime, where a panic ends one piece of work and nothing
//! else; a dead actor is replaced at the next message. The reply travels with the work, so neither
//! loses what is under way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix::prelude::{
    ActorFutureExt, Addr, ArbiterHandle, AsyncContext, Context, Handler, Message, WrapFuture,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::launch;
use crate::llm::{self, Caller, Gateway, Replied, Sink};
use crate::run::{Attempt, Effect, Fault, Outcome, RunId, SessionId};
use crate::scene::{Scene, SceneTool};
use crate::telemetry::{Outside, Part, Queued};
use crate::tools::{Principal, SceneStore, ToolContext, ToolErrorKind, bound, phrase};

/// What every scene works with.
#[derive(Clone)]
pub struct Options {
    /// The way to models.
    pub gateway: Gateway,
    /// Scene data.
    pub store: SceneStore,
    /// The guarded HTTP client of tools.
    pub http: reqwest::Client,
    /// Where tools run: many threads, so that a tool that blocks holds up no actor.
    pub workers: tokio::runtime::Handle,
    /// The thread that the actor lives on.
    pub arbiter: ArbiterHandle,
    /// Hears of what waits and of what is refused.
    pub outside: Outside,
}

/// A tool call to be carried out.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, checked.
    pub arguments: Value,
    /// Who asks.
    pub principal: Principal,
    /// The run's frozen local time.
    pub now: jiff::Zoned,
    /// The user's language.
    pub language: Option<String>,
    /// The conversation.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// For writes.
    pub idempotency_key: Option<String>,
    /// Fires when the run ends.
    pub cancelled: CancellationToken,
}

/// A question to a model that got no reply, and what it cost all the same.
#[derive(Debug, Clone)]
pub struct Failed {
    /// Why.
    pub fault: Fault,
    /// Each attempt, with its tokens and money.
    pub attempts: Vec<Attempt>,
}

impl Failed {
    /// No model was asked.
    fn unasked(fault: Fault) -> Self {
        Self { fault, attempts: Vec::new() }
    }
}

impl From<llm::Error> for Failed {
    fn from(error: llm::Error) -> Self {
        Self { attempts: error.attempts().to_vec(), fault: error.into() }
    }
}

/// A scene as others see it.
#[derive(Clone)]
pub struct Handle {
    scene: Arc<Scene>,
    options: Options,
    address: Arc<Mutex<Addr<Actor>>>,
}

impl Handle {
    /// Puts a scene to work.
    pub fn start(scene: Arc<Scene>, options: Options) -> Self {
        let address = Arc::new(Mutex::new(Actor::launch(&scene, &options)));
        Self { scene, options, address }
    }

    /// Asks the scene's model for `caller`.
    ///
    /// # Errors
    /// The gateway's, or `scene.busy` when too much waits.
    pub async fn ask(
        &self,
        caller: Caller,
        request: llm::Request,
        fallback: bool,
        cancelled: CancellationToken,
    ) -> Result<Replied, Failed> {
        let (reply, answer) = oneshot::channel();
        let work = Work::Ask { caller, request: Box::new(request), fallback, cancelled, reply };
        if let Err(fault) = self.send(work) {
            return Err(Failed::unasked(fault));
        }
        answer.await.unwrap_or_else(|_| Err(Failed::unasked(self.lost())))
    }

    /// Calls one of the scene's tools. A write that was cut off, or timed out, is `Unknown`.
    pub async fn call(&self, call: Call) -> Outcome {
        let effect = self.scene.tool(&call.tool).map_or(Effect::Read, |t| t.effect);
        let (reply, answer) = oneshot::channel();
        if let Err(error) = self.send(Work::Call { call: Box::new(call), reply }) {
            return Outcome::Failed { error };
        }
        match answer.await {
            Ok(outcome) => outcome,
            Err(_) if effect == Effect::Write => Outcome::Unknown { error: self.lost() },
            Err(_) => Outcome::Failed { error: self.lost() },
        }
    }

    fn send(&self, work: Work) -> Result<(), Fault> {
        let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        if !address.connected() {
            tracing::warn!(scene = %self.scene.name, "the scene's actor had died and is replaced");
            *address = Actor::launch(&self.scene, &self.options);
        }
        let outside = &self.options.outside;
        let waiting = outside.queued(Part::Scene);
        address.try_send(Sent { work, waiting }).map_err(|_| {
            outside.shed(Part::Scene);
            self.busy()
        })
    }

    fn busy(&self) -> Fault {
        busy(&self.scene)
    }

    fn lost(&self) -> Fault {
        Fault::new("scene.lost", format!("scene {} failed while it was at work", self.scene.name))
    }
}

fn busy(scene: &Scene) -> Fault {
    Fault::new(
        "scene.busy",
        format!("scene {} has {} pieces of work waiting already; try again later", scene.name, scene.mailbox),
    )
}

/// A piece of work that waits until it begins or is refused.
#[derive(Message)]
#[rtype(result = "()")]
struct Sent {
    work: Work,
    waiting: Queued,
}

enum Work {
    Ask {
        caller: Caller,
        request: Box<llm::Request>,
        fallback: bool,
        cancelled: CancellationToken,
        reply: oneshot::Sender<Result<Replied, Failed>>,
    },
    Call {
        call: Box<Call>,
        reply: oneshot::Sender<Outcome>,
    },
}

impl Work {
    fn refuse(self, fault: Fault) {
        // Whoever asked may have gone; then nobody is to be told.
        match self {
            Work::Ask { reply, .. } => {
                let _ = reply.send(Err(Failed::unasked(fault)));
            }
            Work::Call { reply, .. } => {
                let _ = reply.send(Outcome::Failed { error: fault });
            }
        }
    }
}

struct Actor {
    scene: Arc<Scene>,
    options: Options,
    /// Calls that wait for a place.
    waiting: VecDeque<Sent>,
    /// Calls under way, at most the scene's `concurrency`.
    calling: u32,
    /// Questions under way, at most the scene's `mailbox`. They take no place from calls: how much a
    /// provider takes at once is the gateway's matter.
    asking: u32,
}

impl Actor {
    fn launch(scene: &Arc<Scene>, options: &Options) -> Addr<Self> {
        let actor = Self {
            scene: scene.clone(),
            options: options.clone(),
            waiting: VecDeque::new(),
            calling: 0,
            asking: 0,
        };
        launch::start(&options.arbiter, actor.scene.mailbox as usize, actor)
    }

    fn begin(&mut self, sent: Sent, ctx: &mut Context<Self>) {
        let Sent { work, waiting } = sent;
        drop(waiting);
        let scene = self.scene.clone();
        let options = self.options.clone();
        let is_call = matches!(work, Work::Call { .. });
        *self.count(is_call) += 1;
        // A task of its own in both cases: it outlives this actor.
        let task = match work {
            // The gateway asks on threads of its own; here is only waited.
            Work::Ask { caller, request, fallback, cancelled, reply } => actix::spawn(async move {
                let asked =
                    options.gateway.complete_telling(caller, *request, fallback, &cancelled, Sink::default());
                let result = asked.await;
                let _ = reply.send(result.map_err(Failed::from));
            }),
            Work::Call { call, reply } => self.options.workers.spawn(async move {
                let _ = reply.send(carry_out(&scene, &options, *call).await);
            }),
        };
        let ended = async move {
            if let Err(error) = task.await {
                tracing::error!(%error, "a piece of a scene's work panicked");
            }
        };
        ctx.spawn(ended.into_actor(self).map(move |(), actor, ctx| {
            *actor.count(is_call) -= 1;
            if actor.calling < actor.scene.concurrency
                && let Some(next) = actor.waiting.pop_front()
            {
                actor.begin(next, ctx);
            }
        }));
    }

    fn count(&mut self, is_call: bool) -> &mut u32 {
        if is_call { &mut self.calling } else { &mut self.asking }
    }
}

impl actix::Actor for Actor {
    type Context = Context<Self>;
}

impl Handler<Sent> for Actor {
    type Result = ();

    fn handle(&mut self, sent: Sent, ctx: &mut Context<Self>) {
        let free = match &sent.work {
            Work::Ask { .. } => self.asking < self.scene.mailbox,
            Work::Call { .. } => self.calling < self.scene.concurrency,
        };
        if free {
            self.begin(sent, ctx);
        } else if matches!(sent.work, Work::Call { .. }) && self.waiting.len() < self.scene.mailbox as usize {
            self.waiting.push_back(sent);
        } else {
            self.options.outside.shed(Part::Scene);
            drop(sent.waiting);
            sent.work.refuse(busy(&self.scene));
        }
    }
}

/// One call, held to its timeout and its bound; a panic inside the tool is an outcome like any other.
async fn carry_out(scene: &Arc<Scene>, options: &Options, call: Call) -> Outcome {
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
        () = stopped(&call.cancelled, tool.effect) => Err("tool.cancelled"),
    };
    let outcome = match ended {
        Ok(Ok(Ok(result))) => {
            let say = phrase::say(&tool.say, call.language.as_deref(), &result, &call.arguments);
            Outcome::Ok { result: bound::bound(result, tool.max_result_bytes), say }
        }
        Ok(Ok(Err(error))) => {
            let fault = Fault::new(&error.code, error.message);
            match (error.kind, tool.effect) {
                (ToolErrorKind::Refused, _) => Outcome::Refused { error: fault },
                (ToolErrorKind::Unknown, Effect::Write) => Outcome::Unknown { error: fault },
                // A read changes nothing, so whether it was done does not matter.
                (ToolErrorKind::Failed, _) | (ToolErrorKind::Unknown, Effect::Read) => {
                    Outcome::Failed { error: fault }
                }
            }
        }
        Ok(Err(_panic)) => {
            unfinished(&tool, "tool.panicked", format!("{} stopped with an error of its own", tool.name))
        }
        Err("tool.cancelled") => {
            task.abort();
            unfinished(&tool, "tool.cancelled", format!("{} was stopped with its run", tool.name))
        }
        Err(code) => {
            task.abort();
            unfinished(&tool, code, format!("{} did not answer within {} ms", tool.name, tool.timeout_ms))
        }
    };
    tracing::debug!(scene = %scene.name, tool = %tool.name, elapsed = ?started.elapsed(), "tool call ended");
    outcome
}

/// Only a read stops with its run; a write that began is awaited.
async fn stopped(cancelled: &CancellationToken, effect: Effect) {
    match effect {
        Effect::Read => cancelled.cancelled().await,
        Effect::Write => std::future::pending().await,
    }
}

fn unfinished(tool: &SceneTool, code: &str, message: String) -> Outcome {
    match tool.effect {
        Effect::Read => Outcome::Failed { error: Fault::new(code, message) },
        Effect::Write => Outcome::Unknown {
            error: Fault::new(code, format!("{message}; nobody knows whether it was done")),
        },
    }
}
