//! `SessionRegistry`: which conversations are awake, and where. Every request goes through it, so
//! that putting one to sleep cannot lose a request that is on its way.

use std::collections::HashMap;
use std::sync::Arc;

use actix::prelude::*;
use jiff::Timestamp;
use tokio::sync::{Semaphore, oneshot};

use super::launch;
use super::scene_manager::{
    self, CarryOnMessage, CommandMessage, EraseMessage, RequestMessage, SceneManager, SessionDelivery,
    SessionMessage,
};
use crate::conversation::{self, MAX_COMMANDS};
use crate::planner::Refused;
use crate::run::{Fault, SessionId, TenantId};
use crate::telemetry::{Outside, Part, Queued};

/// The registry as others see it.
#[derive(Clone)]
pub(crate) struct Address {
    registry: Addr<SessionRegistry>,
    outside: Outside,
}

impl Address {
    /// Starts the registry; conversations are spread over `arbiters`.
    pub(crate) fn start(
        own: &ArbiterHandle,
        arbiters: Arc<[ArbiterHandle]>,
        options: scene_manager::Options,
        max_awake: usize,
        mailbox: usize,
    ) -> Self {
        let registry = SessionRegistry { arbiters, options, max_awake, awake: HashMap::new(), started: 0 };
        let outside = registry.options.outside.clone();
        Self { registry: launch::start(own, mailbox, registry), outside }
    }

    /// Hands a request to its conversation, awake or asleep.
    pub(crate) fn submit(
        &self,
        tenant: TenantId,
        session: SessionId,
        submit: RequestMessage,
    ) -> Result<(), Fault> {
        let waiting = self.outside.queued(Part::SessionRegistry);
        self.registry.try_send(RequestToSession { tenant, session, submit, waiting }).map_err(|_| {
            self.outside.shed(Part::SessionRegistry);
            Fault::new("engine.busy", "too many requests are waiting to be accepted; try again later")
        })
    }

    /// Hands what somebody wants of a run to its conversation, awake or asleep.
    pub(crate) fn command(
        &self,
        tenant: TenantId,
        session: SessionId,
        wish: CommandMessage,
    ) -> Result<(), Fault> {
        self.registry.try_send(CommandToSession { tenant, session, wish }).map_err(|_| {
            self.outside.shed(Part::SessionRegistry);
            Fault::new("engine.busy", "too many requests are waiting to be accepted; try again later")
        })
    }

    /// Has a conversation erased, awake or asleep, unless it has changed at `since` or later.
    pub(crate) async fn erase(
        &self,
        tenant: TenantId,
        session: SessionId,
        since: Option<Timestamp>,
    ) -> Result<bool, Fault> {
        let (reply, erased) = oneshot::channel();
        let erase = EraseMessage { since, reply };
        self.registry.try_send(EraseSession { tenant, session, erase }).map_err(|_| {
            Fault::new("engine.busy", "too many requests are waiting to be accepted; try again later")
        })?;
        erased.await.map_err(|_| {
            Fault::new("engine.stopped", "the conversation stopped before it was erased; try again")
        })?
    }

    /// Has what an earlier process left unfinished in a conversation carried on, and waits for the end of
    /// it. Waits for room, too: nobody's request does so here.
    pub(crate) async fn carry_on(&self, tenant: TenantId, session: SessionId) {
        let (woken, _) = oneshot::channel();
        let (done, carried) = oneshot::channel();
        if self
            .registry
            .send(CarryOnSession { tenant, session, wish: CarryOnMessage { woken, done } })
            .await
            .is_ok()
        {
            // Told, or its conversation ended for another reason.
            let _ = carried.await;
        }
    }

    /// The same, and waits only until it can be followed.
    pub(crate) async fn wake(&self, tenant: TenantId, session: SessionId) {
        let (woken, taken_up) = oneshot::channel();
        let (done, _) = oneshot::channel();
        if self
            .registry
            .send(CarryOnSession { tenant, session, wish: CarryOnMessage { woken, done } })
            .await
            .is_ok()
        {
            let _ = taken_up.await;
        }
    }

    /// Whether a conversation may sleep: no request is on its way to it.
    pub(crate) async fn may_sleep(&self, wish: SleepRequest) -> bool {
        self.registry.send(wish).await.unwrap_or(true)
    }

    /// How many conversations are awake.
    pub(crate) async fn awake(&self) -> usize {
        self.registry.send(CountAwake).await.unwrap_or(0)
    }
}

#[derive(Message)]
#[rtype(result = "usize")]
struct CountAwake;

#[derive(Message)]
#[rtype(result = "()")]
struct RequestToSession {
    tenant: TenantId,
    session: SessionId,
    submit: RequestMessage,
    waiting: Queued,
}

#[derive(Message)]
#[rtype(result = "()")]
struct CommandToSession {
    tenant: TenantId,
    session: SessionId,
    wish: CommandMessage,
}

#[derive(Message)]
#[rtype(result = "()")]
struct EraseSession {
    tenant: TenantId,
    session: SessionId,
    erase: EraseMessage,
}

#[derive(Message)]
#[rtype(result = "()")]
struct CarryOnSession {
    tenant: TenantId,
    session: SessionId,
    wish: CarryOnMessage,
}

/// A conversation wants to sleep; `received` is how many requests have reached it.
#[derive(Message)]
#[rtype(result = "bool")]
pub(crate) struct SleepRequest {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    /// Which of the actors of this conversation it is that wants to.
    pub(crate) life: usize,
    pub(crate) received: u64,
}

struct AwakeSession {
    address: Addr<SceneManager>,
    life: usize,
    sent: u64,
    /// Places in the mailbox for requests.
    requests: Arc<Semaphore>,
    /// Places in the mailbox for everything else. A person's decision is not refused because requests fill
    /// the mailbox.
    commands: Arc<Semaphore>,
}

impl AwakeSession {
    /// Sends a message to the conversation, which then has received one more. Returns a message for which
    /// there is no place.
    fn send(&mut self, message: SessionMessage) -> Result<(), SessionMessage> {
        let places = match message {
            SessionMessage::Request(_) => &self.requests,
            _ => &self.commands,
        };
        let Ok(place) = places.clone().try_acquire_owned() else { return Err(message) };
        let sent = self.address.try_send(SessionDelivery { message, place });
        sent.map_err(|error| error.into_inner().message)?;
        self.sent += 1;
        Ok(())
    }
}

/// See the module.
pub(crate) struct SessionRegistry {
    arbiters: Arc<[ArbiterHandle]>,
    options: scene_manager::Options,
    max_awake: usize,
    awake: HashMap<(TenantId, SessionId), AwakeSession>,
    started: usize,
}

impl Actor for SessionRegistry {
    type Context = Context<Self>;
}

impl SessionRegistry {
    /// The conversation's actor, started if need be. Where the conversation is new, nothing of it is in
    /// the store.
    fn awake(
        &mut self,
        key: (TenantId, SessionId),
        is_new: bool,
        ctx: &Context<Self>,
    ) -> Result<&mut AwakeSession, Fault> {
        // An actor that died (its work panicked) is replaced; it wakes from the store.
        if self.awake.get(&key).is_some_and(|a| !a.address.connected()) {
            self.awake.remove(&key);
        }
        if !self.awake.contains_key(&key) && self.awake.len() >= self.max_awake {
            self.awake.retain(|_, a| a.address.connected());
        }
        if !self.awake.contains_key(&key) && self.awake.len() >= self.max_awake {
            let message =
                format!("{} conversations are awake, which is the bound; try again later", self.max_awake);
            self.options.outside.shed(Part::SessionRegistry);
            return Err(Fault::new("engine.sessions_full", message));
        }
        Ok(self.awake.entry(key).or_insert_with_key(|(tenant, session)| {
            let life = self.started;
            let arbiter = &self.arbiters[life % self.arbiters.len()];
            self.started = self.started.wrapping_add(1);
            let address = SceneManager::launch(
                arbiter,
                tenant.clone(),
                session.clone(),
                self.options.clone(),
                Address { registry: ctx.address(), outside: self.options.outside.clone() },
                life,
                is_new,
            );
            let requests = Arc::new(Semaphore::new(self.options.max_queued.max(1)));
            let commands = Arc::new(Semaphore::new(MAX_COMMANDS));
            AwakeSession { address, life, sent: 0, requests, commands }
        }))
    }
}

impl Handler<RequestToSession> for SessionRegistry {
    type Result = ();

    fn handle(&mut self, message: RequestToSession, ctx: &mut Context<Self>) {
        let RequestToSession { tenant, session, mut submit, waiting } = message;
        drop(waiting);
        let (outside, max_queued) = (self.options.outside.clone(), self.options.max_queued);
        let awake = match self.awake((tenant, session), submit.is_first, ctx) {
            Ok(awake) => awake,
            Err(fault) => {
                let _ = submit.reply.send(Err(fault));
                return;
            }
        };
        submit.waiting = Some(outside.queued(Part::SceneManager));
        if let Err(SessionMessage::Request(mut submit)) =
            awake.send(SessionMessage::Request(Box::new(submit)))
        {
            submit.waiting = None;
            outside.shed(Part::SceneManager);
            let _ = submit.reply.send(Err(conversation::queue_full(max_queued)));
        }
        outside.set_awake(self.awake.len());
    }
}

impl Handler<EraseSession> for SessionRegistry {
    type Result = ();

    /// By way of the conversation's own actor, so that a request comes either before or after it.
    fn handle(&mut self, message: EraseSession, ctx: &mut Context<Self>) {
        let EraseSession { tenant, session, erase } = message;
        let awake = match self.awake((tenant, session.clone()), false, ctx) {
            Ok(awake) => awake,
            Err(fault) => {
                let _ = erase.reply.send(Err(fault));
                return;
            }
        };
        if let Err(SessionMessage::Erase(erase)) = awake.send(SessionMessage::Erase(erase)) {
            let _ = erase.reply.send(Err(conversation::session_busy(&session)));
        }
    }
}

impl Handler<CommandToSession> for SessionRegistry {
    type Result = ();

    fn handle(&mut self, message: CommandToSession, ctx: &mut Context<Self>) {
        let CommandToSession { tenant, session, wish } = message;
        let refuse = |command: CommandMessage, fault: Fault| {
            let refused = Refused { fault, difference: Vec::new(), record: None };
            // The caller may have disconnected.
            let _ = command.reply.send(Err(refused));
        };
        match self.awake((tenant, session), false, ctx) {
            Ok(awake) => {
                if let Err(SessionMessage::Command(command)) =
                    awake.send(SessionMessage::Command(Box::new(wish)))
                {
                    refuse(*command, conversation::too_many_commands());
                }
            }
            Err(fault) => refuse(wish, fault),
        }
        self.options.outside.set_awake(self.awake.len());
    }
}

impl Handler<CarryOnSession> for SessionRegistry {
    type Result = ();

    fn handle(&mut self, message: CarryOnSession, ctx: &mut Context<Self>) {
        let CarryOnSession { tenant, session, wish } = message;
        // Where it cannot be woken now, it is carried on when it wakes.
        if let Ok(awake) = self.awake((tenant, session), false, ctx) {
            // Nor if there is no place for the message.
            let _ = awake.send(SessionMessage::CarryOn(wish));
        }
        self.options.outside.set_awake(self.awake.len());
    }
}

impl Handler<SleepRequest> for SessionRegistry {
    type Result = bool;

    fn handle(&mut self, wish: SleepRequest, _: &mut Context<Self>) -> bool {
        let key = (wish.tenant, wish.session);
        match self.awake.get(&key) {
            Some(awake) if awake.life == wish.life => {
                let agreed = awake.sent == wish.received;
                if agreed {
                    self.awake.remove(&key);
                    self.options.outside.set_awake(self.awake.len());
                }
                agreed
            }
            // Forgotten already: nothing more comes to it, and what is awake by its name is another.
            _ => true,
        }
    }
}

impl Handler<CountAwake> for SessionRegistry {
    type Result = usize;

    fn handle(&mut self, _: CountAwake, _: &mut Context<Self>) -> usize {
        self.awake.values().filter(|awake| awake.address.connected()).count()
    }
}
