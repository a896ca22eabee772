//! A request to an engine, and the ticket of an accepted request.

use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::idempotency::KeyLocks;
use crate::actors::active_runs::RunWatch;
pub(crate) use crate::actors::answer_feed::FeedFollowerGuard;
use crate::actors::journal;
use crate::actors::session_registry;
use crate::answer::{Answer, lost_run_fault};
use crate::public::{EventId, EventSource, PublicStream};
use crate::run::{
    DocumentId, Envelope, Event, Fault, PlanGuidance, RequestOptions, RunId, SessionId, TenantId, Turn,
};
use crate::store::Store;
use crate::trace_context::TraceParent;

/// Maximum length of a message, in characters.
pub(super) const MAX_REQUEST_CHARS: usize = 32_000;

/// A request to the engine.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The user's message.
    pub message: String,
    /// The conversation; a new one if absent.
    pub session: Option<SessionId>,
    /// The tenant, which pays.
    pub tenant: TenantId,
    /// The user.
    pub user: String,
    /// Whether a "yes" in this message must not approve the user's own requests.
    pub no_own_approval: bool,
    /// Whether the conversation has to belong to the user or be new. If false, the caller is trusted with all
    /// conversations.
    pub own_session: bool,
    /// The conversation so far, if the client keeps it; otherwise the server keeps it.
    pub history: Option<Vec<Turn>>,
    /// The chatbot's instructions; they are added to the memory.
    pub instructions: Option<String>,
    /// Only make a plan, without carrying it out.
    pub plan_only: bool,
    /// Whether the plan needs approval, nothing is written, and how the cache is used.
    pub options: RequestOptions,
    /// Constraints of its plan, and the state of things as the caller knows it.
    pub guidance: Option<PlanGuidance>,
    /// The documents that it names, at most 16. Its tools can read these, and no others. They must belong to the user.
    pub documents: Vec<DocumentId>,
    /// A plan made by a person; no model is asked for one.
    pub plan: Option<crate::plan::Plan>,
    /// The idempotency key, so that retries are not carried out again: 1 to 255 printable ASCII characters.
    /// See [`Engine::submit_once`].
    pub idempotency: Option<String>,
    /// A hash in hex of what is asked, by whom and from where. It recognizes retries without an idempotency
    /// key, even after a restart.
    pub fingerprint: Option<String>,
    /// The request's place in its client's trace.
    pub trace_parent: Option<TraceParent>,
}

impl ChatRequest {
    /// A request with this message and default options.
    pub fn new(message: impl Into<String>, tenant: TenantId, user: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            session: None,
            tenant,
            user: user.into(),
            no_own_approval: false,
            own_session: false,
            history: None,
            instructions: None,
            plan_only: false,
            options: RequestOptions::default(),
            guidance: None,
            documents: Vec::new(),
            plan: None,
            idempotency: None,
            fingerprint: None,
            trace_parent: None,
        }
    }
}

/// An accepted request. It will end exactly once, even without a waiting caller.
pub struct RunTicket {
    /// The run.
    pub run: RunId,
    /// The conversation.
    pub session: SessionId,
    pub(super) watch: RunWatch,
    /// Whether `watch` was subscribed before the run's first event.
    pub(super) from_start: bool,
    /// The last event before the request. If the request decided about a waiting run, earlier events do not
    /// belong to it.
    pub(super) after: EventId,
    pub(super) source: EventSource,
    pub(super) answer: oneshot::Receiver<Result<Answer, Fault>>,
}

impl std::fmt::Debug for RunTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { run, session, .. } = self;
        f.debug_struct("RunTicket").field("run", run).field("session", session).finish_non_exhaustive()
    }
}

impl RunTicket {
    /// The next event of the run; `None` when there will be no more. A subscriber that lags more than 64 events behind loses
    /// the oldest; they are in the journal.
    pub async fn next(&mut self) -> Option<Arc<Envelope<Event>>> {
        self.watch.next().await
    }

    /// The last event before the request: the beginning, unless the request decided about a waiting run.
    pub fn after(&self) -> EventId {
        self.after
    }

    /// The run's public events from the request on. The stream outlives the ticket. If taken first, it does
    /// not read the store; [`RunTicket::next`] then returns later events only.
    pub fn stream(&mut self) -> PublicStream {
        let later = self.watch.resubscribe();
        let watch = std::mem::replace(&mut self.watch, later);
        if std::mem::take(&mut self.from_start) {
            PublicStream::fresh(self.source.clone(), watch)
        } else {
            PublicStream::resumed(self.source.clone(), Some(watch), self.after)
        }
    }

    /// Another subscription to the run from now on.
    pub fn watch(&self) -> RunWatch {
        self.watch.resubscribe()
    }

    /// Cancels the run at its next safe point.
    pub async fn cancel(&self, by: &str) {
        // An ended run cannot be cancelled.
        self.watch.cancel(by);
    }

    /// Takes the guard that keeps the answer streamed while the ticket waits for the whole one.
    pub(crate) fn take_follower(&mut self) -> Option<FeedFollowerGuard> {
        self.watch.take_follower()
    }

    /// Waits for the answer. Models then need not stream it, unless others read it.
    ///
    /// # Errors
    /// Why the run could not continue, for example because the disk is full. Its events show what it did.
    pub async fn answer(self) -> Result<Answer, Fault> {
        let Self { run, watch, answer, .. } = self;
        drop(watch);
        answer.await.unwrap_or_else(|_| Err(lost_run_fault(run)))
    }
}

/// The parts that accept a request, cloneable for tasks that outlive their caller.
#[derive(Clone)]
pub(super) struct Intake {
    pub(super) registry: session_registry::Address,
    pub(super) journal: journal::Handle,
    pub(super) store: Store,
    pub(super) locks: KeyLocks,
}

impl Intake {
    pub(super) fn source(&self, tenant: TenantId, run: RunId) -> EventSource {
        EventSource { store: self.store.clone(), journal: self.journal.clone(), tenant, run }
    }
}

pub(super) fn new_session() -> Result<SessionId, Fault> {
    SessionId::new(&Uuid::now_v7().to_string()).map_err(|error| Fault::new("session.id", error.to_string()))
}
