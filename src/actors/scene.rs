//! `Scene`: one scene at work. Holds its tools and a bound on how much it does at once; asks its
//! model and calls its tools, and says how each ended.
//!
//! Watched over: calls run on the worker runtime, where a panic ends one piece of work and nothing
//! else; a dead actor is replaced at the next message. The reply travels with the work, so neither
//! loses what is under way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix::prelude::{
    ActorFutureExt, Addr, ArbiterHandle, AsyncContext, Context, Handler, Message, WrapFuture,
};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::launch;
use crate::llm::{self, Caller, Gateway, Replied, Sink};
use crate::nested;
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
    /// Places for questions, as many as the scene's `mailbox`. They take none from calls: how much a
    /// provider takes at once is the gateway's matter. A question needs nothing else of the actor, so it
    /// is not sent there.
    asking: Arc<Semaphore>,
}

impl Handle {
    /// Puts a scene to work.
    pub fn start(scene: Arc<Scene>, options: Options) -> Self {
        let address = Arc::new(Mutex::new(Actor::launch(&scene, &options)));
        let asking = Arc::new(Semaphore::new(scene.mailbox as usize));
        Self { scene, options, address, asking }
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
        let Ok(_place) = self.asking.try_acquire() else {
            self.options.outside.shed(Part::Scene);
            return Err(Failed::unasked(self.busy()));
        };
        // The gateway asks in a task of its own; here is only waited.
        let asked =
            self.options.gateway.complete_telling(caller, request, fallback, &cancelled, Sink::default());
        asked.await.map_err(Failed::from)
    }

    /// Calls one of the scene's tools. A write that was cut off, or timed out, is `Unknown`.
    pub async fn call(&self, call: Call) -> Outcome {
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

    fn send(&self, call: Call, reply: oneshot::Sender<Outcome>) -> Result<(), Fault> {
        let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        if !address.connected() {
            tracing::warn!(scene = %self.scene.name, "the scene's actor had died and is replaced");
            *address = Actor::launch(&self.scene, &self.options);
        }
        let outside = &self.options.outside;
        let waiting = outside.queued(Part::Scene);
        address.try_send(Work { call, reply, waiting }).map_err(|_| {
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

/// A call that waits until it begins or is refused, and who is told of its outcome.
#[derive(Message)]
#[rtype(result = "()")]
struct Work {
    call: Call,
    reply: oneshot::Sender<Outcome>,
    waiting: Queued,
}

struct Actor {
    scene: Arc<Scene>,
    options: Options,
    /// Calls that wait for a place.
    waiting: VecDeque<Work>,
    /// Calls under way, at most the scene's `concurrency`.
    calling: u32,
}

impl Actor {
    fn launch(scene: &Arc<Scene>, options: &Options) -> Addr<Self> {
        let actor =
            Self { scene: scene.clone(), options: options.clone(), waiting: VecDeque::new(), calling: 0 };
        launch::start(&options.arbiter, actor.scene.mailbox as usize, actor)
    }

    fn begin(&mut self, work: Work, ctx: &mut Context<Self>) {
        let Work { call, reply, waiting } = work;
        drop(waiting);
        let scene = self.scene.clone();
        let options = self.options.clone();
        self.calling += 1;
        // A task of its own: it outlives this actor.
        let task = self.options.workers.spawn(async move {
            // Whoever asked may have gone; then nobody is to be told.
            let _ = reply.send(carry_out(&scene, &options, call).await);
        });
        let ended = async move {
            if let Err(error) = task.await {
                tracing::error!(%error, "a piece of a scene's work panicked");
            }
        };
        ctx.spawn(ended.into_actor(self).map(|(), actor, ctx| {
            actor.calling -= 1;
            if actor.calling < actor.scene.concurrency
                && let Some(next) = actor.waiting.pop_front()
            {
                actor.begin(next, ctx);
            }
        }));
    }
}

impl actix::Actor for Actor {
    type Context = Context<Self>;
}

impl Handler<Work> for Actor {
    type Result = ();

    fn handle(&mut self, work: Work, ctx: &mut Context<Self>) {
        if self.calling < self.scene.concurrency {
            self.begin(work, ctx);
        } else if self.waiting.len() < self.scene.mailbox as usize {
            self.waiting.push_back(work);
        } else {
            self.options.outside.shed(Part::Scene);
            drop(work.waiting);
            let _ = work.reply.send(Outcome::Failed { error: busy(&self.scene) });
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
            let result = nested::shallow(result);
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
