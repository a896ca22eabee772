//! `SceneManager`: the actor of one live conversation. It holds what the pure
//! [`ConversationState`](crate::conversation) must not know: reply channels, live runs, the store, timers.
//! It turns messages and finished work into inputs, and performs the side effects.

mod callers;
mod messages;
mod perform;
mod reading;
mod recovery;
mod requests;
mod runs;
mod stream;
mod summary;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix::prelude::*;
use arc_swap::ArcSwap;

use super::driver::RunServices;
use super::idle_conversations::{IdleConversations, IdlePlace};
use super::launch;
use super::recovery_gate::RecoveryGate;
use super::session_registry;
use super::stream_end::SharedStreamEnd;
use super::summary_places::SummaryPlaces;
use crate::conversation::{
    self, CallerId, ConversationLimits, ConversationState, Input, OpenHistories, SideEffect,
};
use crate::llm::Purpose;
use crate::llm::budget::{AccountKey, Hold};
use crate::memory::{self, FactCounts};
use crate::run::{RunId, SessionId, TenantId};
use crate::store::Store;
use crate::telemetry::ServerMetrics;

use callers::WaitingCaller;
pub(crate) use messages::{
    CommandMessage, EraseMessage, HeldConversation, HoldMessage, RequestMessage, ResumeMessage,
    SessionDelivery, SessionMessage, StatementMessage,
};
use runs::RunEntry;
use summary::SummaryControl;

/// The options and shared parts of every conversation.
#[derive(Clone)]
pub(crate) struct Options {
    /// The services of runs that start now; replaced when the configuration is reloaded.
    pub(crate) shared: Arc<ArcSwap<RunServices>>,
    pub(crate) store: Store,
    pub(crate) memory: memory::Options,
    /// What the conversations that were used last remember.
    pub(crate) open: OpenHistories,
    /// The maximum number of waiting requests of one conversation.
    pub(crate) max_queued: usize,
    /// How long a conversation stays awake with nothing to do.
    pub(crate) idle: Duration,
    /// Those of them that are soon read again.
    pub(crate) idle_conversations: IdleConversations,
    /// Records what waits and what is refused.
    pub(crate) server_metrics: ServerMetrics,
    /// Admits runs.
    pub(crate) gate: RecoveryGate,
    pub(crate) summary_places: SummaryPlaces,
    /// Whether this process resumes runs that an earlier one left unfinished.
    pub(crate) resumes_runs: Arc<AtomicBool>,
}

impl Options {
    /// The context window of the model that plans, in tokens.
    fn window(&self) -> usize {
        self.shared.load().gateway.context_window(Purpose::Plan) as usize
    }
}

/// One conversation.
pub(crate) struct SceneManager {
    tenant: TenantId,
    session: SessionId,
    options: Options,
    registry: session_registry::Address,
    /// Which of the actors that the registry started this is.
    generation: usize,
    state: ConversationState,
    /// The first side effects, until the actor has started.
    first: Vec<SideEffect>,
    /// The context window that `state` knows.
    window: usize,
    callers: HashMap<CallerId, WaitingCaller>,
    last_caller: u64,
    /// The runs that are queued, read or driven, and those being appended. Boxed, since an emptied map keeps its
    /// buckets.
    runs: HashMap<RunId, Box<RunEntry>>,
    /// The end of the session's stream.
    end: SharedStreamEnd,
    /// Ends or hurries the summary in progress.
    summary: Option<SummaryControl>,
    timer: Option<SpawnHandle>,
    /// Its place among the idle conversations, while the timer runs.
    idle_place: Option<IdlePlace>,
    /// Keeps the conversation's budget account open while the actor lives.
    account: Option<Hold>,
}

impl SceneManager {
    pub(crate) fn launch(
        arbiter: &ArbiterHandle,
        tenant: TenantId,
        session: SessionId,
        options: Options,
        registry: session_registry::Address,
        generation: usize,
        is_new: bool,
    ) -> Addr<Self> {
        let window = options.window();
        let limits = ConversationLimits {
            max_queued: options.max_queued,
            memory: options.memory.clone(),
            window,
            open: options.open.clone(),
        };
        let (state, first) = ConversationState::new(session.clone(), limits, is_new);
        let mut manager = Self {
            tenant,
            session,
            options,
            registry,
            generation,
            state,
            first,
            window,
            callers: HashMap::new(),
            last_caller: 0,
            runs: HashMap::new(),
            end: SharedStreamEnd::default(),
            summary: None,
            timer: None,
            idle_place: None,
            account: None,
        };
        if is_new {
            manager.open_account();
        }
        // The registry holds a place for each message, of which there are so many.
        let capacity = manager.options.max_queued + conversation::MAX_COMMANDS;
        launch::start_actor(arbiter, capacity + 1, manager)
    }

    /// Passes an input to the conversation and performs what follows.
    fn feed(&mut self, input: Input, ctx: &mut Context<Self>) {
        let mut inputs = VecDeque::new();
        let tokens = self.options.window();
        if std::mem::replace(&mut self.window, tokens) != tokens {
            inputs.push_back(Input::WindowChanged { tokens });
        }
        inputs.push_back(input);
        while let Some(input) = inputs.pop_front() {
            for effect in self.state.on(input) {
                inputs.extend(self.perform(effect, ctx));
            }
        }
        // If it is locked, what is appended now is reported later, and then this, too.
        if let Ok(mut end) = self.end.try_lock() {
            end.is_known_through(self.state.last_known());
        }
        let new = self.state.take_new_facts();
        if new != FactCounts::default() {
            self.options.server_metrics.record_facts(new.recorded, new.superseded);
        }
    }

    /// Feeds what `work` results in, when it is done. Nothing else waits for it.
    fn feed_later<T: 'static>(
        &self,
        work: impl Future<Output = T> + 'static,
        then: impl FnOnce(&mut Self, T) -> Input + 'static,
        ctx: &mut Context<Self>,
    ) {
        ctx.spawn(work.into_actor(self).map(move |done, manager, ctx| {
            let input = then(manager, done);
            manager.feed(input, ctx);
        }));
    }

    fn open_account(&mut self) {
        let budget = self.options.shared.load().gateway.guards().budget.clone();
        // The account is forgotten with its last holder.
        self.account = None;
        let account = AccountKey::Session(self.tenant.clone(), self.session.clone());
        self.account = Some(budget.hold(account, 0));
    }
}

impl Actor for SceneManager {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        for effect in std::mem::take(&mut self.first) {
            // None of them has a result at once.
            let _ = self.perform(effect, ctx);
        }
    }
}
