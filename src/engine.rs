//! The engine: the entry point for library users, the server and the command line.
//!
//! It owns an actix system on a separate thread, so it can be started from any async runtime.

mod actor_system;
mod builder;
mod command;
mod data_dir_census;
mod documents;
pub(crate) mod earlier_requests;
mod expiry;
mod facts;
mod flows;
mod guard_actors;
mod idempotency;
mod learned;
mod pending_question;
mod plans;
mod recovery;
mod reload;
mod sessions;
mod stored_answer;
mod switches;
mod ticket;
mod tool_health;
mod traces;
mod unreadable;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use uuid::Uuid;

use self::actor_system::{ActorSystem, run_services};
use self::builder::{
    ActiveConfig, DEFAULT_IDLE, EngineParts, MAX_IDLE_SHORT, SceneSources, apply_scene_schemas, http_client,
};
use self::ticket::{Intake, MAX_REQUEST_CHARS, new_session};
use crate::actors::active_runs::RunWatch;
use crate::actors::scene_manager::RequestMessage;
use crate::answer::{Answer, unknown_run_fault};
use crate::config::{Config, KeyLimitsConfig};
use crate::fairness::Sharers;
use crate::invisible;
use crate::learning;
use crate::llm::Gateway;
use crate::nesting;
use crate::plan::{self, TaskId};
use crate::planner::{Command, CommandAction};
use crate::public::{EventId, PublicStream};
use crate::run::{
    Envelope, Event, Fault, Idempotency, RunId, RunQueued, RunState, RunStatus, SessionId, TenantId,
};
use crate::scene::Catalogue;
use crate::store::{self, Store};
use crate::telemetry::{self, Exposition, ServerMetrics};

pub use builder::{Builder, StartError};
pub use idempotency::Submitted;
pub use plans::{PlanModification, UserPlans};
#[cfg(feature = "server")]
pub(crate) use ticket::FeedFollowerGuard;
pub use ticket::{ChatRequest, RunTicket};

/// A running engine.
pub struct Engine {
    parts: EngineParts,
    system: ActorSystem,
    workers: Option<tokio::runtime::Runtime>,
    key_locks: idempotency::KeyLocks,
    earlier: earlier_requests::EarlierRequests,
}

impl Engine {
    /// Returns a builder for an engine.
    pub fn builder(config: Config) -> Builder {
        let sources = SceneSources { sandbox: config.sandbox.clone(), ..SceneSources::default() };
        Builder { config, sources, idle: DEFAULT_IDLE, max_idle_short: MAX_IDLE_SHORT, cap: None }
    }

    /// Submits a request. When this returns, the request is in the journal.
    ///
    /// # Errors
    /// `request.empty`, `request.too_long`, `request.documents`, `document.unknown`, a full queue, or an error of the
    /// store. `request.duplicate` if a request with this idempotency key was accepted before; [`Engine::submit_once`]
    /// returns that run.
    pub async fn submit(&self, request: ChatRequest) -> Result<RunTicket, Fault> {
        match self.submit_once(request).await? {
            Submitted::New(ticket) => Ok(ticket),
            Submitted::Duplicate { run, .. } => Err(Fault::new(
                "request.duplicate",
                format!("this request was already accepted as run {run}; query that run"),
            )),
        }
    }

    async fn accept_request(
        intake: &Intake,
        mut request: ChatRequest,
        idempotency: Option<Idempotency>,
    ) -> Result<RunTicket, Fault> {
        let received = Instant::now();
        check_request(&request)?;
        if let Some(session) = pending_question::find_waiting_conversation(intake, &request).await? {
            // The server has that conversation, too, and the reply continues it.
            request.session = Some(session);
            request.history = None;
        }
        let is_first = request.session.is_none();
        let session = match request.session.clone() {
            Some(session) => session,
            None => new_session()?,
        };
        let documents = documents::named_documents(intake, &request).await?;
        // Held until the request is in the journal, so that a question is answered only once.
        let found = pending_question::find_question(intake, &request).await?;
        let (reply, accepted) = oneshot::channel();
        let queued = RunQueued {
            plan_only: request.plan_only,
            idempotency,
            asked: request.fingerprint,
            trace_parent: request.trace_parent,
            history: request.history,
            instructions: request.instructions,
            options: request.options,
            guidance: request.guidance.map(Box::new),
            documents,
            plan: request.plan,
            pending: found.as_ref().map(|found| found.pending.clone()),
            ..RunQueued::new(request.message, request.user, TaskId(Uuid::now_v7()))
        };
        let message = RequestMessage {
            queued,
            is_first,
            no_own_approval: request.no_own_approval,
            own_session: request.own_session,
            received,
            reply,
            waiting: None,
        };
        let tenant = request.tenant.clone();
        intake.registry.submit(request.tenant, session.clone(), message)?;
        let accepted = accepted.await.map_err(|_| {
            Fault::new("engine.stopped", "the engine stopped before the request was accepted")
        })??;
        drop(found);
        let run = accepted.watch.run;
        Ok(RunTicket {
            run,
            session,
            watch: accepted.watch,
            from_start: accepted.before == 0,
            after: EventId::after_seq(accepted.before),
            source: intake.source(tenant, run),
            answer: accepted.answer,
        })
    }

    /// Subscribes to a tenant's run from now on; `None` if it is not in progress in this process.
    pub fn watch(&self, tenant: &TenantId, run: RunId) -> Option<RunWatch> {
        self.parts.active_runs.watch(tenant, run)
    }

    /// Cancels a tenant's run at its next safe point; `by` is the requester. False if the tenant has no such
    /// run that is in progress here or waits for a person.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn cancel(&self, tenant: &TenantId, run: RunId, by: &str) -> Result<bool, Fault> {
        let heard = self.watch_or_resume(tenant, run).await?.is_some_and(|watch| watch.cancel(by));
        // A driver that left just before did not see the cancellation; one that left later did.
        if heard && !self.parts.active_runs.has_no_driver(tenant, run) {
            return Ok(true);
        }
        // A run that waits for a person has no driver.
        let row = self.parts.store.run(tenant, run).await?;
        let Some(row) = row.filter(|row| !row.status.is_terminal()) else { return Ok(false) };
        if row.status != RunStatus::Waiting {
            // An unreadable run has no driver either, and never will have one.
            return self.cancel_unreadable(tenant, run, by).await;
        }
        let command = Command::new(by, CommandAction::Cancel);
        match self.command(tenant, run, command).await {
            Ok(()) => Ok(true),
            Err(refused) if refused.fault.code == "run.ended" => Ok(false),
            Err(refused) => Err(refused.fault),
        }
    }

    /// Waits until a tenant's run has ended and returns its answer document; if it is not in progress here,
    /// returns the document as it is.
    ///
    /// # Errors
    /// `run.unknown` if the tenant has no such run; errors of the store.
    pub async fn wait(&self, tenant: &TenantId, run: RunId) -> Result<Answer, Fault> {
        if let Some(mut watch) = self.watch_or_resume(tenant, run).await? {
            while watch.next().await.is_some() {}
        }
        let answer = self.answer_of(tenant, run).await?;
        answer.ok_or_else(|| unknown_run_fault(run))
    }

    /// Number of runs in progress, including those that wait for their turn.
    pub fn runs_in_flight(&self) -> usize {
        self.parts.active_runs.count()
    }

    /// The public events of a tenant's run after `last`, or all of them. For a run in progress the stream
    /// continues until its end. It starts with `answer_reset` if `last` covers answer text that may be
    /// obsolete.
    ///
    /// # Errors
    /// `run.unknown` if the tenant has no such run; errors of the store.
    pub async fn stream(
        &self,
        tenant: &TenantId,
        run: RunId,
        last: Option<EventId>,
    ) -> Result<PublicStream, Fault> {
        // Subscribe before reading the journal, so that no event is missed.
        let watch = self.watch_or_resume(tenant, run).await?;
        if watch.is_none() {
            let stored = self.parts.store.run(tenant, run).await?;
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
            locks: self.key_locks.clone(),
        }
    }

    /// Submits a request and waits for its answer.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`] and [`RunTicket::answer`].
    pub async fn chat(&self, request: ChatRequest) -> Result<Answer, Fault> {
        self.submit(request).await?.answer().await
    }

    /// A request of the configured default user, for terminals and library users.
    pub fn request(&self, message: &str, session: Option<SessionId>) -> ChatRequest {
        let (tenant, user) = self.default_principal();
        ChatRequest { session, ..ChatRequest::new(message, tenant, user) }
    }

    /// The configured default tenant and user.
    pub fn default_principal(&self) -> (TenantId, String) {
        let current = self.parts.current.load();
        let auth = &current.config.auth;
        (auth.default_tenant.clone(), auth.default_user.clone())
    }

    /// The time zone of dates and days.
    pub fn zone(&self) -> jiff::tz::TimeZone {
        self.parts.clock.zone()
    }

    /// Checks whether requests can be accepted: the journal is open, the data directory is in its place, and the store can be
    /// read.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub async fn ready(&self) -> Result<(), Fault> {
        self.system.journal.flush().await?;
        self.parts.store.check_place()?;
        self.parts.store.unfinished_runs().await.map(drop).map_err(Fault::from)
    }

    /// Number of conversations in memory; all others are only in the store.
    pub async fn awake_sessions(&self) -> usize {
        self.system.registry.awake().await
    }

    /// The scenes.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.parts.current.load().catalogue.clone()
    }

    /// All metrics of this engine in the Prometheus text format (version 0.0.4); `None` with `telemetry.metrics = false`. Those
    /// of its HTTP server and of the process are only on the server's `/metrics`.
    /// Metrics of runs count everything that the journal had published before the call; gauges of in-memory
    /// state are read now. If the actor of the metrics of runs fails, the other metrics are returned.
    pub async fn metrics(&self) -> Option<String> {
        Some(self.gather_metrics().await?.text())
    }

    /// Gathers what [`Engine::metrics`] formats.
    pub(crate) async fn gather_metrics(&self) -> Option<Exposition> {
        let server_metrics = &self.parts.server_metrics;
        let kpis = &self.system.kpis;
        if !kpis.is_counting() {
            return None;
        }
        let waiting = self.parts.store.waiting_counts().await.ok();
        let gathered = kpis.gather(waiting.map(|waiting| waiting.runs)).await;
        let mut text = gathered.unwrap_or_else(|error| {
            tracing::error!(code = error.code(), %error, "the metrics of runs are missing in this scrape");
            Exposition::default()
        });
        text.add_server(server_metrics);
        if let Some(waiting) = waiting {
            telemetry::add_approvals(&mut text, waiting);
        }
        let learned = self.parts.store.learned_counts(self.proven_after(), jiff::Timestamp::now()).await;
        if let Ok(learned) = learned {
            telemetry::add_learned(&mut text, learning::counted(&learned));
        }
        telemetry::add_gateway(&mut text, &self.gateway()).await;
        let catalogue = self.catalogue();
        let known = |(scene, tool): &(String, String)| catalogue.has_tool(&format!("{scene}.{tool}"));
        let breakers = self.parts.health.states(jiff::Timestamp::now()).into_iter();
        telemetry::add_tools(&mut text, breakers.filter(|(tool, _)| known(tool)));
        telemetry::add_queues(&mut text, server_metrics, self.system.journal.stats().pending, kpis.backlog());
        telemetry::add_spans(&mut text, server_metrics);
        telemetry::add_log(&mut text, server_metrics);
        let stored = self.parts.store.count_sessions().await;
        telemetry::add_sessions(&mut text, server_metrics, stored.ok());
        telemetry::add_facts(&mut text, server_metrics);
        telemetry::add_build(&mut text);
        telemetry::add_data_dir(&mut text, server_metrics);
        Some(text)
    }

    /// Records metrics of what happens outside runs, such as rejections and queues.
    pub fn server_metrics(&self) -> &ServerMetrics {
        &self.parts.server_metrics
    }

    /// The tenants that share this process.
    pub(crate) fn tenants(&self) -> &Sharers<TenantId> {
        &self.parts.tenants
    }

    /// The limits of one API key, as configured now.
    pub(crate) fn key_limits(&self) -> KeyLimitsConfig {
        self.parts.current.load().config.auth.limits
    }

    /// The store of runs, events and conversations.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// The gateway to the models.
    pub fn gateway(&self) -> Gateway {
        self.parts.current.load().gateway.clone()
    }

    /// The state of a run: the fold of its stored events.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn run(&self, tenant: &TenantId, run: RunId) -> Result<RunState, Fault> {
        let events = self.parts.store.run_events(tenant, run).await?;
        Ok(fold(run, &events))
    }

    /// Writes pending events and ends all threads. Runs in progress stop where they are; their events are in
    /// the journal.
    ///
    /// # Errors
    /// Errors of the store, if the last events could not be written.
    pub async fn stop(self) -> Result<(), store::Error> {
        self.shut_down().await
    }

    /// Like [`Engine::stop`], for an engine that others still hold. Their later calls fail.
    ///
    /// # Errors
    /// Errors of the store, if the last events could not be written.
    pub async fn shut_down(&self) -> Result<(), store::Error> {
        self.begin_shutdown().await;
        self.parts.vectors.stop();
        let written = self.system.journal.stop().await;
        // The last log lines of runs.
        self.system.kpis.stop().await;
        self.system.shut_down();
        self.parts.store.close().await;
        // Last, so that the data directory is not held for a receiver.
        if let Some(traces) = &self.parts.traces {
            traces.sink.stop().await;
        }
        written
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("runs_in_flight", &self.runs_in_flight()).finish_non_exhaustive()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.parts.vectors.stop();
        self.system.shut_down();
        if let Some(workers) = self.workers.take() {
            workers.shutdown_background();
        }
    }
}

/// Checks what can be checked without other data: the texts, the plan's size and the conversation's name.
fn check_request(request: &ChatRequest) -> Result<(), Fault> {
    let length = request.message.chars().count();
    if invisible::without_invisible(&request.message).trim().is_empty() {
        return Err(Fault::new("request.empty", "the message is empty: write what you want"));
    }
    if length > MAX_REQUEST_CHARS {
        let message = format!("the message has {length} characters; at most {MAX_REQUEST_CHARS} are allowed");
        return Err(Fault::new("request.too_long", message));
    }
    if let Some(plan) = &request.plan {
        plan::check_size(plan).map_err(|problem| Fault::new(&problem.code, problem.message))?;
        let arguments = plan.steps.iter().flat_map(|s| &s.prepared_calls).flat_map(|c| c.arguments.values());
        let schemas =
            plan.steps.iter().flat_map(|s| &s.expect).filter_map(|expected| expected.schema.as_ref());
        if nesting::is_too_deep(arguments.chain(schemas)) {
            let what = format!("the plan's values are nested deeper than {} levels", nesting::MAX_DEPTH);
            return Err(Fault::new("request.too_deep", what));
        }
    }
    if let Some(session) = request.session.as_ref().filter(|session| session.is_path_step()) {
        let message = format!(
            "a conversation cannot be named `{session}`: in a URL this is a path segment with a special meaning; choose another name"
        );
        return Err(Fault::new("request.session", message));
    }
    Ok(())
}

/// Folds a run's events into its state. Events have happened, so they are not validated.
pub fn fold(run: RunId, journal: &[Envelope<Event>]) -> RunState {
    RunState::from_journal(run, journal)
}
