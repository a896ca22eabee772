//! The engine: everything together, as a library user and the command line see it.
//!
//! It owns an actix system on a thread of its own, so it can be started from any async runtime.

pub(crate) mod again;
mod builder;
mod carry;
mod cast;
mod command;
mod confirm;
mod expiry;
mod once;
mod past;
mod reload;
mod sessions;
mod ticket;
mod unreadable;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use self::builder::{Current, IDLE, Parts, Sources, http_client, make_tables, seed};
use self::cast::{System, shared};
use self::ticket::{Intake, MAX_REQUEST_CHARS, new_session};
use crate::actors::driver::store_fault;
use crate::actors::live::Watch;
use crate::actors::scene_manager::RequestMessage;
use crate::answer::Answer;
use crate::config::Config;
use crate::llm::Gateway;
use crate::nested;
use crate::plan;
use crate::planner::{Command, Wish};
use crate::public::{EventId, PublicStream};
use crate::run::{Envelope, Event, Fault, Idempotency, RunId, RunState, RunStatus, SessionId, TenantId};
use crate::scene::Catalogue;
use crate::store::{self, Store};
use crate::telemetry::{self, Exposition, Outside};

pub use builder::{Builder, StartError};
pub use once::Submitted;
pub use ticket::{ChatRequest, Ticket};

/// A running engine.
pub struct Engine {
    parts: Parts,
    system: System,
    workers: Option<tokio::runtime::Runtime>,
    once: once::Locks,
    earlier: again::Earlier,
}

impl Engine {
    /// An engine to be configured further.
    pub fn builder(config: Config) -> Builder {
        Builder { config, sources: Sources::default(), idle: IDLE }
    }

    /// Submits a request: when this returns, it is in the journal.
    ///
    /// # Errors
    /// `request.empty`, `request.too_long`, a full queue, or the store's reason. `request.duplicate`
    /// where it has an idempotency key and was accepted before; [`Engine::submit_once`] gives the run.
    pub async fn submit(&self, request: ChatRequest) -> Result<Ticket, Fault> {
        match self.submit_once(request).await? {
            Submitted::New(ticket) => Ok(ticket),
            Submitted::Before { run, .. } => Err(Fault::new(
                "request.duplicate",
                format!("this request was accepted before, as run {run}; ask for that run"),
            )),
        }
    }

    async fn accept(
        intake: &Intake,
        request: ChatRequest,
        idempotency: Option<Idempotency>,
    ) -> Result<Ticket, Fault> {
        let received = Instant::now();
        let length = request.message.chars().count();
        if request.message.trim().is_empty() {
            return Err(Fault::new("request.empty", "the message is empty: say what you want"));
        }
        if length > MAX_REQUEST_CHARS {
            let message =
                format!("the message has {length} characters; at most {MAX_REQUEST_CHARS} are taken");
            return Err(Fault::new("request.too_long", message));
        }
        if let Some(plan) = &request.plan {
            plan::taken(plan).map_err(|problem| Fault::new(&problem.code, problem.message))?;
            if nested::is_too_deep(
                plan.steps.iter().flat_map(|s| &s.prepared_calls).flat_map(|c| c.arguments.values()),
            ) {
                let what =
                    format!("the plan's arguments are nested deeper than {} levels", nested::MAX_DEPTH);
                return Err(Fault::new("request.too_deep", what));
            }
        }
        if let Some(session) = request.session.as_ref().filter(|session| session.is_path_step()) {
            let message = format!(
                "a conversation cannot be named `{session}`: in an address this is a step of the path; choose another name"
            );
            return Err(Fault::new("request.session", message));
        }
        let is_first = request.session.is_none();
        let session = match request.session.clone() {
            Some(session) => session,
            None => new_session()?,
        };
        // Held until the request is in the journal: a question is answered once.
        let found = confirm::question(intake, &request).await?;
        let (reply, accepted) = oneshot::channel();
        let submit = RequestMessage {
            is_first,
            message: request.message,
            user: request.user,
            no_own_approval: request.no_own_approval,
            own_session: request.own_session,
            plan_only: request.plan_only,
            idempotency,
            asked: request.asked,
            history: request.history,
            instructions: request.instructions,
            cache: request.cache,
            require_approval: request.require_approval,
            dry_run: request.dry_run,
            plan: request.plan,
            pending: found.as_ref().map(|found| found.pending.clone()),
            received,
            reply,
            waiting: None,
        };
        let tenant = request.tenant.clone();
        intake.registry.submit(request.tenant, session.clone(), submit)?;
        let accepted = accepted.await.map_err(|_| {
            Fault::new("engine.stopped", "the engine stopped before the request was accepted")
        })??;
        drop(found);
        let run = accepted.watch.run;
        Ok(Ticket {
            run,
            session,
            watch: accepted.watch,
            from_start: accepted.before == 0,
            after: EventId::behind(accepted.before),
            source: intake.source(tenant, run),
            answer: accepted.answer,
        })
    }

    /// Follows a tenant's run from now on; `None` where it has none of that id under way here.
    pub fn watch(&self, tenant: &TenantId, run: RunId) -> Option<Watch> {
        self.parts.live.watch(tenant, run)
    }

    /// Asks a tenant's run to stop at its next safe point; `by` says who wants it. False where it has no
    /// run of that id under way here.
    ///
    /// # Errors
    /// The store's.
    pub async fn cancel(&self, tenant: &TenantId, run: RunId, by: &str) -> Result<bool, Fault> {
        let heard = self.follow(tenant, run).await?.is_some_and(|watch| watch.cancel(by));
        // Its driver may have left just before; where it left after, it has heard the wish.
        if heard && !self.parts.live.is_left(tenant, run) {
            return Ok(true);
        }
        // One that waits for a person is not under way.
        let row = self.parts.store.run(tenant, run).await.map_err(|error| store_fault(&error))?;
        let Some(row) = row.filter(|row| !row.status.is_terminal()) else { return Ok(false) };
        if row.status != RunStatus::Waiting {
            // Nor is one that cannot be read, and it never will be.
            return self.cancel_unreadable(tenant, run, by).await;
        }
        let wish = Wish::Cancel;
        let command = Command { by: by.to_owned(), note: None, wish, no_own_approval: false, keyed: false };
        match self.command(tenant, run, command).await {
            Ok(()) => Ok(true),
            Err(refused) if refused.fault.code == "run.ended" => Ok(false),
            Err(refused) => Err(refused.fault),
        }
    }

    /// The answer document of a tenant's run, once it has ended; where it is not under way here, as far as
    /// it got.
    ///
    /// # Errors
    /// `run.unknown` where the tenant has no such run; the store's.
    pub async fn wait(&self, tenant: &TenantId, run: RunId) -> Result<Answer, Fault> {
        if let Some(mut watch) = self.follow(tenant, run).await? {
            while watch.next().await.is_some() {}
        }
        let answer = self.answer_of(tenant, run).await?;
        answer.ok_or_else(|| Fault::new("run.unknown", format!("there is no run {run}")))
    }

    /// How many runs are under way, those that wait for their turn included.
    pub fn runs_in_flight(&self) -> usize {
        self.parts.live.count()
    }

    /// What clients see of a tenant's run: everything after `last`, or everything. Of a run under way it
    /// tells what happens until its end; where `last` tells of an answer's words that may not be the
    /// answer any more, it begins with `answer_reset`.
    ///
    /// # Errors
    /// `run.unknown` where the tenant has no such run; the store's.
    pub async fn stream(
        &self,
        tenant: &TenantId,
        run: RunId,
        last: Option<EventId>,
    ) -> Result<PublicStream, Fault> {
        // Before the journal is read, so that what happens in between is heard.
        let watch = self.follow(tenant, run).await?;
        if watch.is_none() {
            let stored = self.parts.store.run(tenant, run).await.map_err(|error| store_fault(&error))?;
            if stored.is_none() {
                return Err(Fault::new(
                    "run.unknown",
                    format!("there is no run {run}; GET /api/runs lists them"),
                ));
            }
        }
        Ok(PublicStream::resumed(self.intake().source(tenant.clone(), run), watch, last.unwrap_or_default()))
    }

    fn intake(&self) -> Intake {
        Intake {
            registry: self.system.registry.clone(),
            journal: self.system.journal.clone(),
            store: self.parts.store.clone(),
            locks: self.once.clone(),
        }
    }

    /// Submits a request and waits for its answer.
    ///
    /// # Errors
    /// Those of [`Engine::submit`] and [`Ticket::answer`].
    pub async fn chat(&self, request: ChatRequest) -> Result<Answer, Fault> {
        self.submit(request).await?.answer().await
    }

    /// A request of the configured default user, as a terminal or a library user makes it.
    pub fn request(&self, message: &str, session: Option<SessionId>) -> ChatRequest {
        let (tenant, user) = self.default_principal();
        ChatRequest { session, ..ChatRequest::new(message, tenant, user) }
    }

    /// Who asks and who pays, where nobody has to say it.
    pub fn default_principal(&self) -> (TenantId, String) {
        let current = self.parts.current.load();
        let auth = &current.config.auth;
        (auth.default_tenant.clone(), auth.default_user.clone())
    }

    /// The time zone of dates and days.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        self.parts.clock.zone()
    }

    /// Whether requests can be taken: the journal is open and the store can be read.
    ///
    /// # Errors
    /// Why not.
    pub async fn ready(&self) -> Result<(), Fault> {
        let failed = |error| crate::actors::driver::store_fault(&error);
        self.system.journal.flush().await.map_err(failed)?;
        self.parts.store.unfinished_runs().await.map(drop).map_err(failed)
    }

    /// How many conversations are awake; those that sleep are in the store only.
    pub async fn awake(&self) -> usize {
        self.system.registry.awake().await
    }

    /// The scenes there are.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.parts.current.load().catalogue.clone()
    }

    /// Everything that operations see in figures, in Prometheus' text format (version 0.0.4); `None`
    /// with `telemetry.metrics = false`. Figures of runs are those of what is in the journal; what
    /// stands in memory is looked up now.
    pub async fn metrics(&self) -> Option<String> {
        let outside = &self.parts.outside;
        let kpis = self.parts.figures.now().kpis.clone()?;
        let waiting = self.parts.store.waiting().await.ok();
        if let Some(waiting) = waiting {
            kpis.set_waiting(waiting.runs);
        }
        let mut text = Exposition::new(&kpis, outside);
        if let Some(waiting) = waiting {
            telemetry::people(&mut text, waiting);
        }
        telemetry::gateway(&mut text, &self.gateway()).await;
        telemetry::journal(&mut text, outside, self.system.journal.stats().pending);
        let stored = self.parts.store.count_sessions().await;
        telemetry::sessions(&mut text, outside, stored.ok());
        Some(text.text())
    }

    /// The place to tell of what happens outside runs: what is refused, what waits.
    pub fn outside(&self) -> &Outside {
        &self.parts.outside
    }

    /// What lasts: runs, their events, conversations.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// The way to models.
    pub fn gateway(&self) -> Gateway {
        self.parts.current.load().gateway.clone()
    }

    /// A run as the fold of its stored events.
    ///
    /// # Errors
    /// The store's.
    pub async fn run(&self, tenant: &TenantId, run: RunId) -> Result<RunState, Fault> {
        let events = self.parts.store.run_events(tenant, run).await.map_err(|error| store_fault(&error))?;
        Ok(fold(run, &events))
    }

    /// Writes what is pending and ends every thread. Runs under way stop where they are; what they
    /// did is in the journal.
    ///
    /// # Errors
    /// The store's, where the last events could not be written.
    pub async fn stop(self) -> Result<(), store::Error> {
        self.shut_down().await
    }

    /// As [`Engine::stop`], for an engine that others still hold: what they ask of it from here on is
    /// refused.
    ///
    /// # Errors
    /// The store's, where the last events could not be written.
    pub async fn shut_down(&self) -> Result<(), store::Error> {
        self.stops().await;
        let written = self.system.journal.stop().await;
        self.system.end();
        self.parts.store.close().await;
        written
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.system.end();
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

/// A run as the fold of its journal. What the journal holds has happened: nothing of it is checked.
pub fn fold(run: RunId, journal: &[Envelope<Event>]) -> RunState {
    RunState::of(run, journal.iter().map(|event| &event.body))
}
