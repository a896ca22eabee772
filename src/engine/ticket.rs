//! A request to an engine, and the ticket that whoever made it holds.

use std::sync::Arc;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::once::Locks;
use crate::actors::active_runs::RunWatch;
use crate::actors::journal;
use crate::actors::session_registry;
use crate::answer::Answer;
use crate::public::{EventId, PublicStream, Source};
use crate::run::{Envelope, Event, Fault, RunId, SessionId, TenantId, Turn};
use crate::store::Store;

/// Most characters of one request.
pub(super) const MAX_REQUEST_CHARS: usize = 32_000;

/// A request to the engine.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The user's words.
    pub message: String,
    /// The conversation; a new one where absent.
    pub session: Option<SessionId>,
    /// Who pays.
    pub tenant: TenantId,
    /// Who asks.
    pub user: String,
    /// Whether a yes in its words may not approve what its own user has asked for.
    pub no_own_approval: bool,
    /// Whether its conversation has to be one of its own user, or a new one. Where not, whoever asks is
    /// trusted with all of them.
    pub own_session: bool,
    /// The conversation so far, where the client keeps it; otherwise it is kept here.
    pub history: Option<Vec<Turn>>,
    /// The chatbot's own instructions, in words; they are told with what is remembered.
    pub instructions: Option<String>,
    /// How its questions to models use the cache, where not as configured for their purposes.
    pub cache: Option<crate::llm::cache::Mode>,
    /// Only make a plan.
    pub plan_only: bool,
    /// Have a person approve the plan before it is carried out, whatever the configuration says.
    pub require_approval: bool,
    /// Write nothing: tell what would have been written.
    pub dry_run: bool,
    /// The plan, made by a person; no model is asked for one.
    pub plan: Option<crate::plan::Plan>,
    /// The client's name for this request, so that it can be sent again without being carried out
    /// again: 1 to 255 printable ASCII characters. See [`Engine::submit_once`].
    pub idempotency: Option<String>,
    /// What was asked, by whom and from where, as a hash in hex: for a client that sends again without a
    /// name, and is to be known after a restart.
    pub asked: Option<String>,
}

impl ChatRequest {
    /// A request with these words, and nothing else said of it.
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
            cache: None,
            plan_only: false,
            require_approval: false,
            dry_run: false,
            plan: None,
            idempotency: None,
            asked: None,
        }
    }
}

/// A request that was accepted: it will end in exactly one way, whether anybody waits or not.
pub struct Ticket {
    /// The run.
    pub run: RunId,
    /// The conversation.
    pub session: SessionId,
    pub(super) watch: RunWatch,
    /// Whether `watch` has been there from the beginning.
    pub(super) from_start: bool,
    /// The last event before the request: of a run that it decided about, what came before is not its own.
    pub(super) after: EventId,
    pub(super) source: Source,
    pub(super) answer: oneshot::Receiver<Result<Answer, Fault>>,
}

impl Ticket {
    /// The next event of the run; `None` when there will be no more. A listener that lags more than
    /// a few hundred events behind loses the oldest; the journal has them.
    pub async fn next(&mut self) -> Option<Arc<Envelope<Event>>> {
        self.watch.next().await
    }

    /// The last event before the request. It is the beginning, unless the request was a word
    /// that decided about a run which waited.
    pub fn after(&self) -> EventId {
        self.after
    }

    /// What clients see of the run, from the request on; it goes on when the ticket is used up by
    /// [`Ticket::answer`]. Taken right away, it needs nothing of the store; [`Ticket::next`] then gives
    /// what happens from here on.
    pub fn stream(&mut self) -> PublicStream {
        let later = self.watch.resubscribe();
        let watch = std::mem::replace(&mut self.watch, later);
        if std::mem::take(&mut self.from_start) {
            PublicStream::fresh(self.source.clone(), watch)
        } else {
            PublicStream::resumed(self.source.clone(), Some(watch), self.after)
        }
    }

    /// Another way to follow the run from here on.
    pub fn watch(&self) -> RunWatch {
        self.watch.resubscribe()
    }

    /// Asks the run to stop at its next safe point.
    pub async fn cancel(&self, by: &str) {
        // A run that has ended has nothing to stop.
        self.watch.cancel(by);
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Where the run could not go on, as when the disk is full: what it did is in its events.
    pub async fn answer(self) -> Result<Answer, Fault> {
        self.answer.await.unwrap_or_else(|_| {
            Err(Fault::new(
                "run.lost",
                format!("run {} stopped without an answer; its events tell how far it got", self.run),
            ))
        })
    }
}

/// Where requests go in, for work that outlives its caller.
#[derive(Clone)]
pub(super) struct Intake {
    pub(super) registry: session_registry::Address,
    pub(super) journal: journal::Handle,
    pub(super) store: Store,
    pub(super) locks: Locks,
}

impl Intake {
    pub(super) fn source(&self, tenant: TenantId, run: RunId) -> Source {
        Source { store: self.store.clone(), journal: self.journal.clone(), tenant, run }
    }
}

pub(super) fn new_session() -> Result<SessionId, Fault> {
    SessionId::new(&Uuid::now_v7().to_string()).map_err(|error| Fault::new("session.id", error.to_string()))
}
