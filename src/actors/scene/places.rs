//! The places of a scene, in which its calls run, and the actor that holds the calls that wait for one.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use actix::prelude::{Addr, Context, Handler, Message};
use tokio::sync::oneshot;
use tracing::{Instrument, Span};

use super::tool_call::run_tool;
use super::{Options, SceneCall, calls_at_once};
use crate::actors::launch;
use crate::fairness::{FairPermit, SharedPlaces};
use crate::mutex::lock;
use crate::run::{Fault, FaultClass, Outcome, TenantId};
use crate::scene::{CallEnd, Scene};
use crate::telemetry::QueueGuard;

/// A queued tool call and the channel that receives its outcome.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct QueuedSceneCall {
    pub(super) call: SceneCall,
    pub(super) reply: oneshot::Sender<CallEnd>,
    pub(super) waiting: QueueGuard,
    /// Held until the call has ended.
    pub(super) permit: FairPermit<TenantId>,
    /// The context of its log lines.
    pub(super) span: Span,
}

/// The places of a scene, shared by its handles, its actor and its calls.
#[derive(Clone)]
pub(super) struct ScenePlaces {
    pub(super) state: Arc<Mutex<PlacesState>>,
    /// The actor that starts waiting calls; gone with the last handle.
    pub(super) actor: Weak<Mutex<Addr<SceneActor>>>,
}

pub(super) struct PlacesState {
    pub(super) calls: SharedPlaces<TenantId, QueuedSceneCall>,
    /// Whether a [`PlaceFreed`] is on its way to the actor: one is enough.
    is_actor_told: bool,
}

impl PlacesState {
    pub(super) fn new(total: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { calls: SharedPlaces::new(total), is_actor_told: false }))
    }
}

impl ScenePlaces {
    pub(super) fn lock(&self) -> MutexGuard<'_, PlacesState> {
        lock(&self.state)
    }

    /// Returns a place, and has the actor start a call that waits for it. Without an actor, returns the waiting calls:
    /// nobody would start them.
    fn give_back(&self, tenant: &TenantId) -> Vec<QueuedSceneCall> {
        let mut state = self.lock();
        state.calls.give_back(tenant);
        if state.calls.waiting() == 0 {
            return Vec::new();
        }
        let actor = self.actor.upgrade().map(|address| lock(&address).clone());
        let Some(actor) = actor.filter(Addr::connected) else { return state.calls.remove_waiting() };
        if !state.is_actor_told {
            // With a full mailbox the actor starts the call when it handles its next message.
            state.is_actor_told = actor.try_send(PlaceFreed).is_ok();
        }
        Vec::new()
    }
}

/// A place in which a call runs. It is returned when this is dropped.
pub(super) struct CallPlace {
    pub(super) places: ScenePlaces,
    pub(super) tenant: TenantId,
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        for QueuedSceneCall { call, reply, .. } in self.places.give_back(&self.tenant) {
            let message = format!("the scene failed before {} began", call.tool);
            let error = Fault::new("scene.lost", message).classed(FaultClass::Unavailable);
            // The caller may have dropped its future.
            let _ = reply.send(Outcome::Failed { error }.into());
        }
    }
}

/// The places that a call holds until it has ended.
pub(super) struct HeldPlace {
    pub(super) _place: CallPlace,
    pub(super) _permit: FairPermit<TenantId>,
}

/// A call has ended while others waited.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct PlaceFreed;

pub(super) struct SceneActor {
    scene: Arc<Scene>,
    options: Options,
    places: ScenePlaces,
}

impl SceneActor {
    pub(super) fn launch(scene: &Arc<Scene>, options: &Options, places: &ScenePlaces) -> Addr<Self> {
        let actor = Self { scene: scene.clone(), options: options.clone(), places: places.clone() };
        launch::start_actor(&options.arbiter, calls_at_once(scene), actor)
    }

    /// Starts the calls that may run now.
    fn start_calls(&self) {
        self.places.lock().is_actor_told = false;
        loop {
            let next = self.places.lock().calls.next(self.options.tenants.is_shared());
            let Some((tenant, work)) = next else { return };
            let place = CallPlace { places: self.places.clone(), tenant };
            self.start_call(place, work);
        }
    }

    fn start_call(&self, place: CallPlace, work: QueuedSceneCall) {
        let QueuedSceneCall { call, reply, waiting, permit, span } = work;
        drop(waiting);
        let held = HeldPlace { _place: place, _permit: permit };
        // A call whose driver is gone has certainly done nothing, so it is not started.
        if reply.is_closed() {
            return;
        }
        let (scene, options) = (self.scene.clone(), self.options.clone());
        // A separate task, so that it outlives this actor.
        let work = async move {
            let end = run_tool(&scene, &options, call, held).await;
            // The caller may have dropped its future.
            let _ = reply.send(end);
        };
        self.options.workers.spawn(work.instrument(span));
    }
}

impl actix::Actor for SceneActor {
    type Context = Context<Self>;

    /// Starts the calls that waited for the actor that this one replaces.
    fn started(&mut self, _: &mut Context<Self>) {
        self.start_calls();
    }
}

impl Handler<QueuedSceneCall> for SceneActor {
    type Result = ();

    fn handle(&mut self, work: QueuedSceneCall, _: &mut Context<Self>) {
        self.places.lock().calls.queue(work.call.principal.tenant.clone(), work);
        self.start_calls();
    }
}

impl Handler<PlaceFreed> for SceneActor {
    type Result = ();

    fn handle(&mut self, _: PlaceFreed, _: &mut Context<Self>) {
        self.start_calls();
    }
}
