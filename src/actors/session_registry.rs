//! `SessionRegistry`: which conversations are awake, and where. Every message to a conversation passes
//! through it, so unloading a conversation cannot lose a message that is on its way.

use std::collections::HashMap;
use std::sync::Arc;

use actix::prelude::*;
use jiff::Timestamp;
use tokio::sync::{Semaphore, oneshot};

use super::launch;
use super::scene_manager::{
    self, CommandMessage, EraseMessage, HeldConversation, HoldMessage, RequestMessage, ResumeMessage,
    SceneManager, SessionDelivery, SessionMessage, StatementMessage,
};
use crate::conversation::{self, FactStatement, MAX_COMMANDS};
use crate::run::{Fault, SessionId, TenantId};
use crate::telemetry::{Component, QueueGuard, ServerMetrics};

/// The registry's handle.
#[derive(Clone)]
pub(crate) struct Address {
    registry: Addr<SessionRegistry>,
    server_metrics: ServerMetrics,
}

impl Address {
    /// Starts the registry on `arbiter`; conversations are spread over `arbiters`.
    pub(crate) fn start(
        arbiter: &ArbiterHandle,
        arbiters: Arc<[ArbiterHandle]>,
        options: scene_manager::Options,
        max_awake: usize,
        mailbox: usize,
    ) -> Self {
        let registry = SessionRegistry { arbiters, options, max_awake, awake: HashMap::new(), started: 0 };
        let server_metrics = registry.options.server_metrics.clone();
        Self { registry: launch::start_actor(arbiter, mailbox, registry), server_metrics }
    }

    /// Passes a request to its conversation.
    pub(crate) fn submit(
        &self,
        tenant: TenantId,
        session: SessionId,
        request: RequestMessage,
    ) -> Result<(), Fault> {
        self.try_send(tenant, session, SessionMessage::Request(Box::new(request)))
    }

    /// Passes a command to the conversation of its run.
    pub(crate) fn command(
        &self,
        tenant: TenantId,
        session: SessionId,
        command: CommandMessage,
    ) -> Result<(), Fault> {
        self.try_send(tenant, session, SessionMessage::Command(Box::new(command)))
    }

    /// States a fact of a conversation. Returns its id, once it is on disk.
    pub(crate) async fn state_fact(
        &self,
        tenant: TenantId,
        session: SessionId,
        statement: FactStatement,
    ) -> Result<String, Fault> {
        let (reply, stated) = oneshot::channel();
        let message = SessionMessage::Statement(Box::new(StatementMessage { statement, reply }));
        self.try_send(tenant, session, message)?;
        stated.await.map_err(|_| {
            Fault::new(
                "engine.stopped",
                "the conversation stopped; look whether the fact is there, and try again",
            )
        })?
    }

    /// Erases a conversation, unless it changed at `since` or later.
    pub(crate) async fn erase(
        &self,
        tenant: TenantId,
        session: SessionId,
        since: Option<Timestamp>,
    ) -> Result<bool, Fault> {
        let (reply, erased) = oneshot::channel();
        self.try_send(tenant, session, SessionMessage::Erase(EraseMessage { since, reply }))?;
        erased.await.map_err(|_| {
            Fault::new("engine.stopped", "the conversation stopped before it was erased; try again")
        })?
    }

    /// Holds a conversation: nothing happens in it until the hold is dropped, and then it is read again.
    ///
    /// # Errors
    /// `store.session_busy` if a request of it is in progress or waits.
    pub(crate) async fn hold(&self, tenant: TenantId, session: SessionId) -> Result<HeldConversation, Fault> {
        let (reply, held) = oneshot::channel();
        self.try_send(tenant, session, SessionMessage::Hold(HoldMessage { reply }))?;
        held.await.map_err(|_| {
            Fault::new("engine.stopped", "the conversation stopped before it could be changed; try again")
        })?
    }

    /// Resumes what an earlier process left unfinished in a conversation, and waits for its end.
    pub(crate) async fn resume(&self, tenant: TenantId, session: SessionId) {
        let (ready, _) = oneshot::channel();
        let (done, resumed) = oneshot::channel();
        self.send(tenant, session, ResumeMessage { ready, done }).await;
        // An error means that its actor ended for another reason.
        let _ = resumed.await;
    }

    /// Like [`resume`](Self::resume), but waits only until the runs can be followed.
    pub(crate) async fn wake(&self, tenant: TenantId, session: SessionId) {
        let (ready, is_ready) = oneshot::channel();
        let (done, _) = oneshot::channel();
        self.send(tenant, session, ResumeMessage { ready, done }).await;
        let _ = is_ready.await;
    }

    /// Asks whether an actor may stop: the registry agrees, and forgets the actor, if no message is on its
    /// way to it.
    pub(crate) async fn may_sleep(&self, request: SleepRequest) -> bool {
        self.registry.send(request).await.unwrap_or(true)
    }

    /// How many conversations are awake.
    pub(crate) async fn awake(&self) -> usize {
        self.registry.send(CountAwake).await.unwrap_or(0)
    }

    fn try_send(&self, tenant: TenantId, session: SessionId, message: SessionMessage) -> Result<(), Fault> {
        let is_request = matches!(message, SessionMessage::Request(_));
        let waiting = is_request.then(|| self.server_metrics.enqueue(Component::SessionRegistry));
        self.registry.try_send(ToSession { tenant, session, message, waiting }).map_err(|unsent| {
            if matches!(unsent, SendError::Closed(_)) {
                return Fault::new("engine.stopped", "the engine has stopped and accepts nothing more");
            }
            self.server_metrics.shed(Component::SessionRegistry);
            Fault::new("engine.busy", "too many requests are waiting to be accepted; try again later")
        })
    }

    /// Waits for room in the registry's mailbox, unlike a client's request.
    async fn send(&self, tenant: TenantId, session: SessionId, message: ResumeMessage) {
        let message = SessionMessage::Resume(message);
        // If the registry has ended, the reply channels are dropped with the message.
        let _ = self.registry.send(ToSession { tenant, session, message, waiting: None }).await;
    }
}

#[derive(Message)]
#[rtype(result = "usize")]
struct CountAwake;

/// A message for a conversation, awake or asleep.
#[derive(Message)]
#[rtype(result = "()")]
struct ToSession {
    tenant: TenantId,
    session: SessionId,
    message: SessionMessage,
    /// Counts a request as waiting for the registry.
    waiting: Option<QueueGuard>,
}

/// The actor of a conversation asks to stop.
#[derive(Message)]
#[rtype(result = "bool")]
pub(crate) struct SleepRequest {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    /// Which of the actors of this conversation it is.
    pub(crate) generation: usize,
    /// How many messages have reached it.
    pub(crate) received: u64,
}

struct AwakeSession {
    address: Addr<SceneManager>,
    generation: usize,
    /// How many messages were sent to it.
    sent: u64,
    /// Places in its mailbox for requests.
    requests: Arc<Semaphore>,
    /// Places for everything else, so that requests cannot fill the mailbox for people's decisions.
    commands: Arc<Semaphore>,
}

impl AwakeSession {
    /// Sends a message. Returns it if there is no place for it.
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

/// The conversations that are awake.
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
    /// The conversation's actor, started if need be. If the conversation `is_new`, nothing of it is in the
    /// store.
    fn awake(
        &mut self,
        key: (TenantId, SessionId),
        is_new: bool,
        ctx: &Context<Self>,
    ) -> Result<&mut AwakeSession, Fault> {
        // An actor that died (its work panicked) is replaced by one that reads the store.
        if self.awake.get(&key).is_some_and(|a| !a.address.connected()) {
            self.awake.remove(&key);
        }
        if !self.awake.contains_key(&key) && self.awake.len() >= self.max_awake {
            self.awake.retain(|_, a| a.address.connected());
        }
        if !self.awake.contains_key(&key) && self.awake.len() >= self.max_awake {
            self.options.server_metrics.shed(Component::SessionRegistry);
            return Err(conversation::sessions_full(self.max_awake));
        }
        Ok(self.awake.entry(key).or_insert_with_key(|(tenant, session)| {
            let generation = self.started;
            let arbiter = &self.arbiters[generation % self.arbiters.len()];
            self.started = self.started.wrapping_add(1);
            let address = SceneManager::launch(
                arbiter,
                tenant.clone(),
                session.clone(),
                self.options.clone(),
                Address { registry: ctx.address(), server_metrics: self.options.server_metrics.clone() },
                generation,
                is_new,
            );
            let requests = Arc::new(Semaphore::new(self.options.max_queued));
            let commands = Arc::new(Semaphore::new(MAX_COMMANDS));
            AwakeSession { address, generation, sent: 0, requests, commands }
        }))
    }

    /// The fault of a message for which a conversation has no room. A refused request is counted as shed.
    fn refusal(&self, message: &SessionMessage, session: &SessionId) -> Fault {
        match message {
            SessionMessage::Request(_) => {
                self.options.server_metrics.shed(Component::SceneManager);
                conversation::queue_full(self.options.max_queued)
            }
            SessionMessage::Command(_) | SessionMessage::Statement(_) => conversation::too_many_commands(),
            SessionMessage::Erase(_) | SessionMessage::Hold(_) | SessionMessage::Resume(_) => {
                conversation::session_busy(session)
            }
        }
    }
}

impl Handler<ToSession> for SessionRegistry {
    type Result = ();

    fn handle(&mut self, message: ToSession, ctx: &mut Context<Self>) {
        let ToSession { tenant, session, mut message, waiting } = message;
        drop(waiting);
        let mut is_new = false;
        if let SessionMessage::Request(request) = &mut message {
            is_new = request.is_first;
            request.waiting = Some(self.options.server_metrics.enqueue(Component::SceneManager));
        }
        match self.awake((tenant, session.clone()), is_new, ctx) {
            Ok(awake) => {
                if let Err(message) = awake.send(message) {
                    let fault = self.refusal(&message, &session);
                    message.refuse(fault);
                }
            }
            Err(fault) => message.refuse(fault),
        }
        self.options.server_metrics.set_awake(self.awake.len());
    }
}

impl Handler<SleepRequest> for SessionRegistry {
    type Result = bool;

    fn handle(&mut self, request: SleepRequest, _: &mut Context<Self>) -> bool {
        let key = (request.tenant, request.session);
        let known = self.awake.get(&key).map(|awake| (awake.generation, awake.sent));
        let agreed = conversation::may_sleep(known, (request.generation, request.received));
        if agreed && known.is_some_and(|(generation, _)| generation == request.generation) {
            self.awake.remove(&key);
            self.options.server_metrics.set_awake(self.awake.len());
        }
        agreed
    }
}

impl Handler<CountAwake> for SessionRegistry {
    type Result = usize;

    fn handle(&mut self, _: CountAwake, _: &mut Context<Self>) -> usize {
        self.awake.values().filter(|awake| awake.address.connected()).count()
    }
}
