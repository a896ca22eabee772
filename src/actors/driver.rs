//! The driver of one run: asks the run machine for the next actions, performs them, and appends every
//! outcome to the journal before it takes effect. It contains no rules.

mod append;
mod commands;
mod documents;
mod event_clock;
mod execution;
mod learning;
mod perform;
mod preflight;
mod replaced_parts;
mod run_timers;
mod summary;
mod takeover;
mod under_way;
mod wait_timer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::active_runs::{ActiveRun, ActiveRuns, CommandReceiver, RunCommand};
use super::clock::EngineClock;
use super::journal;
use super::recovery_gate::{GateOutcome, RunPermit};
use super::scene;
use super::scene_vectors::SceneRanking;
use super::stream_end::SharedStreamEnd;
use super::summary_room::SummaryRoom;
use super::tool_healths::ToolHealths;
use crate::adapt::{ExecutionLevel, ToolBreakerConfig};
use crate::config;
use crate::conversation::StartingContext;
use crate::crash;
use crate::llm::budget::{AccountKey, Hold};
use crate::llm::{self, Confirm, Gateway};
use crate::parts::ReplacedParts;
use crate::planner::{self, CommandRefusal};
use crate::program::{Stop, Unavailable};
use crate::run::{
    Action, BoundedAction, Envelope, Event, Fault, RunId, RunQueued, RunState, SessionEvent, SessionId,
    Settings, SummaryOwner, TenantId, TimerDriver, TimerSubject,
};
use crate::scene::Catalogue;
use crate::store::{Documents, Switchboard};
use crate::tools::Principal;
use crate::trace_context::TraceSampler;
use commands::next_command;
use event_clock::EventClock;
pub(crate) use learning::LearnedPlans;
use run_timers::RunTimers;
use under_way::{ActionsUnderWay, ExecutionsUnderWay};
use wait_timer::WaitTimer;

/// The maximum number of events of one run. Every loop has its own bound; this is the safety net.
const MAX_EVENTS: u64 = 20_000;
/// How many events a slow subscriber may lag behind before it has to read the journal. Each run has room for them from its
/// start.
pub(crate) const EVENT_BUFFER_CAPACITY: usize = 64;

/// The services that every run uses.
#[derive(Clone)]
pub(crate) struct RunServices {
    pub(crate) gateway: Gateway,
    pub(crate) journal: journal::Handle,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) catalogue_hash: Arc<str>,
    pub(crate) scenes: Arc<BTreeMap<String, scene::Handle>>,
    pub(crate) clock: EngineClock,
    pub(crate) settings: Settings,
    /// Approval settings, by tenant.
    pub(crate) approval: Arc<config::ApprovalConfig>,
    /// All other settings, by tenant.
    pub(crate) tenants: Arc<BTreeMap<String, config::TenantConfig>>,
    pub(crate) live: ActiveRuns,
    /// The things that operators have switched off.
    pub(crate) switches: Switchboard,
    /// How well the tools work lately.
    pub(crate) health: ToolHealths,
    /// When a tool is not called because of that.
    pub(crate) breaker: ToolBreakerConfig,
    /// The parts that a library user has replaced.
    pub(crate) replaced: ReplacedParts,
    /// Ranks the scenes by embeddings.
    pub(crate) ranking: SceneRanking,
    /// Plans of earlier executions.
    pub(crate) learned: LearnedPlans,
    pub(crate) documents: Documents,
    /// Room for the texts of those that are summarised.
    pub(crate) summary_room: SummaryRoom,
    /// Which runs are traced; `None` without traces.
    pub(crate) tracing: Option<TraceSampler>,
}

impl RunServices {
    /// Milliseconds for ranking the scenes by embeddings before a plan is made; 0 where they are not ranked: no model
    /// offers embeddings, the prompt describes all scenes, or no model makes plans.
    pub(crate) fn embeddings_timeout_ms(&self) -> u32 {
        let ranks =
            planner::needs_shortlist(&self.settings, &self.catalogue) && self.replaced.planner.is_none();
        if ranks { self.settings.embeddings_timeout_ms } else { 0 }
    }

    /// Computes the missing vectors of scenes in the background, if scenes are ranked by embeddings.
    pub(crate) fn prepare_ranking(&self) {
        if self.embeddings_timeout_ms() > 0 {
            self.ranking.prepare();
        }
    }

    /// The level that a tenant's runs have unless their requests or scenes lower it.
    pub(crate) fn level_of(&self, tenant: &TenantId) -> Option<ExecutionLevel> {
        let of_tenant = self.tenants.get(tenant.as_str()).and_then(|tenant| tenant.level);
        ExecutionLevel::narrowed(self.settings.level, of_tenant)
    }
}

/// A request to cancel a run.
#[derive(Debug, Clone)]
pub struct CancelRequest {
    /// Who requested it.
    pub by: String,
}

/// An event as subscribers receive it.
pub type PublishedRunEvent = Arc<Envelope<Event>>;

/// A run whose `run_queued` is in the journal, ready to be driven.
pub(crate) struct AcceptedRun {
    /// The fold of its journalled events.
    pub(crate) state: RunState,
    pub(crate) live: Arc<ActiveRun>,
    /// Whether it had a driver before, so that it has to be taken over.
    pub(crate) taken_over: bool,
    /// Whether that was a driver of this process, which panicked.
    pub(crate) panicked: bool,
}

impl AcceptedRun {
    /// A new run, with only its request in the journal.
    pub(crate) fn new(run: RunId, queued: RunQueued, live: ActiveRun) -> Self {
        let mut state = RunState::new(run);
        if let Err(error) = state.apply(&Event::RunQueued(queued)) {
            tracing::error!(%run, %error, "a new run rejected its own request");
        }
        Self { state, live: Arc::new(live), taken_over: false, panicked: false }
    }
}

/// Drives one active run.
pub(crate) struct Driver {
    shared: RunServices,
    session: SessionId,
    principal: Principal,
    state: RunState,
    live: Arc<ActiveRun>,
    cancel_requests: watch::Receiver<Option<CancelRequest>>,
    taken_over: bool,
    panicked: bool,
    /// Its permit among the active runs, held until the driver leaves the run.
    permit: Option<RunPermit>,
    in_flight: ActionsUnderWay,
    executions: ExecutionsUnderWay,
    /// Model replies that were not parsed yet, by call number.
    unparsed: BTreeMap<u32, Confirm>,
    clock: EventClock,
    wait_timer: WaitTimer,
    timers: RunTimers,
    /// The end of the session's stream, locked by its writer.
    session_end: SharedStreamEnd,
    /// Commands of users to the run.
    commands: Option<CommandReceiver>,
    /// The last plan version that passed through the preflight check.
    checked_version: u32,
    /// The turns that its session remembers of it, and what others appended to the session's stream before them, with their
    /// sequence numbers there.
    turns: Vec<(u64, SessionEvent)>,
    /// Whether it was reopened after its end, which restarts its timeout.
    reopened: bool,
    /// How its model calls use the cache, if different from the configuration.
    cache: Option<llm::cache::Mode>,
    /// Whether a request in the session decided about it.
    decided_by_words: bool,
    /// Refused commands, answered when the run waits again: what the user says next in the session then
    /// refers to a waiting run.
    refused_commands: Vec<(CommandReplySender, CommandRefusal)>,
    /// Keeps the run's budget account open until its end.
    account: Hold,
    /// The texts that are summarised, as far as they were read.
    summaries: BTreeMap<SummaryOwner, summary::HeldText>,
}

/// Receives the result of a command.
type CommandReplySender = oneshot::Sender<Result<(), CommandRefusal>>;

/// The outcome of an action. For a model reply, also the channel that confirms whether it was usable.
type FinishedAction = (Event, Option<Confirm>);

/// Where the program of a step stopped, or why it was not executed, and the milliseconds that this took.
type EndedExecution = (u32, Result<Stop, Unavailable>, u64);

/// A run that its driver left: it ended, waits, or could not continue.
pub(crate) struct EndedRun {
    /// Its last state.
    pub(crate) state: RunState,
    /// Time spent without waiting for a model, a tool or a person.
    pub(crate) overhead: Duration,
    /// Why it could not continue: the journal refused an event.
    pub(crate) fault: Option<Fault>,
    /// The turns that its session remembers, if it ended here, and what others appended to the session's stream before
    /// them, with their sequence numbers there.
    pub(crate) turns: Vec<(u64, SessionEvent)>,
    /// Whether a request in the session decided about it here: the run's result is then its answer.
    pub(crate) decided_by_words: bool,
    /// The commands refused last, answered once the session knows the state of the run.
    refused_commands: Vec<(CommandReplySender, CommandRefusal)>,
}

impl EndedRun {
    /// Takes the refused commands, to be answered by the caller.
    pub(crate) fn take_refused_commands(&mut self) -> RefusedCommands {
        RefusedCommands(std::mem::take(&mut self.refused_commands))
    }
}

/// Commands that were refused and not answered yet.
pub(crate) struct RefusedCommands(Vec<(CommandReplySender, CommandRefusal)>);

impl RefusedCommands {
    /// Answers every command with its refusal.
    pub(crate) fn reply_all(self) {
        for (reply, refused) in self.0 {
            // The requester may have disconnected.
            let _ = reply.send(Err(refused));
        }
    }
}

impl Driver {
    /// A driver for a run that has not started or that its previous driver left.
    pub(crate) fn new(
        shared: RunServices,
        session: SessionId,
        tenant: TenantId,
        accepted: AcceptedRun,
        session_end: SharedStreamEnd,
    ) -> Self {
        let AcceptedRun { state, live, taken_over, panicked } = accepted;
        let queued = state.queued.as_ref();
        let user = queued.map(|queued| queued.user.clone()).unwrap_or_default();
        let cache = queued.and_then(|queued| queued.options.cache);
        let principal = Principal { tenant, user };
        let spent = state.usage.cost_nano_usd;
        let account = AccountKey::Run(principal.tenant.clone(), state.run);
        let account = shared.gateway.guards().budget.hold(account, spent);
        let mut cancel_requests = live.cancel_requests.clone();
        // A cancel request that arrived earlier counts too.
        if cancel_requests.borrow().is_some() {
            cancel_requests.mark_changed();
        }
        Self {
            shared,
            session,
            principal,
            state,
            cancel_requests,
            taken_over,
            panicked,
            permit: None,
            in_flight: ActionsUnderWay::default(),
            executions: ExecutionsUnderWay::default(),
            unparsed: BTreeMap::new(),
            clock: EventClock::start(),
            wait_timer: WaitTimer::default(),
            timers: RunTimers::default(),
            session_end,
            commands: live.take_commands(),
            live,
            checked_version: 0,
            turns: Vec::new(),
            reopened: false,
            cache,
            decided_by_words: false,
            refused_commands: Vec::new(),
            account,
            summaries: BTreeMap::new(),
        }
    }

    /// Drives the run until it ends or waits, with `context` as its memory of the session, or quarantines
    /// it.
    pub(crate) async fn run(mut self, context: StartingContext, turn: GateOutcome) -> EndedRun {
        let began = Instant::now();
        let mut broken = self.drive(context, turn).await.err();
        if let Some(fault) = broken.take_if(|fault| self.state.is_ended_by_force(fault)) {
            broken = self.force_end(fault).await.err();
        }
        // The run no longer needs what is still in flight.
        self.in_flight.stop();
        self.in_flight = ActionsUnderWay::default();
        self.executions = ExecutionsUnderWay::default();
        if let Some(fault) = &broken {
            tracing::error!(code = %fault.code, "{}", fault.message);
        }
        let overhead = began.elapsed().saturating_sub(self.wait_timer.total());
        EndedRun {
            state: self.state,
            overhead,
            fault: broken,
            turns: self.turns,
            decided_by_words: self.decided_by_words,
            refused_commands: self.refused_commands,
        }
    }

    /// Performs what must happen now, until nothing must.
    async fn perform_due(&mut self, context: &mut Option<StartingContext>) -> Result<(), Fault> {
        while let Some(action) = self.due_action() {
            match self.state.bounded(&action, crash::max_events(MAX_EVENTS)) {
                BoundedAction::Perform => self.perform(action, context).await?,
                BoundedAction::AwaitWrite => break,
                BoundedAction::End(fault) => self.force_end(fault).await?,
            }
        }
        Ok(())
    }

    /// Whether a model, a tool or a program is awaited.
    fn is_busy(&self) -> bool {
        !self.in_flight.is_empty() || !self.executions.is_empty()
    }

    /// The first action that is due and not under way.
    fn due_action(&self) -> Option<Action> {
        let is_under_way = |action: &&Action| matches!(action, Action::Execute { step } if self.executions.is_executing(*step));
        self.state.next().iter().find(|action| !is_under_way(action)).cloned()
    }

    /// Applies a cancel request that arrived while the run came to rest.
    async fn cancel_resting_run(&mut self) -> Result<(), Fault> {
        let is_requested =
            !self.state.status.is_terminal() && self.cancel_requests.has_changed().unwrap_or(false);
        let request = if is_requested { self.cancel_requests.borrow_and_update().clone() } else { None };
        match request {
            Some(CancelRequest { by }) => {
                self.record(Event::CancelRequested { by, deadline: false, note: None }).await
            }
            None => Ok(()),
        }
    }

    /// The run's timer that fires first.
    fn first_timer(&mut self) -> Option<(TimerSubject, tokio::time::Instant)> {
        let suspect = self.is_suspect();
        let driver = TimerDriver { run: self.state.run, taken_over: self.taken_over, suspect };
        self.timers.first(self.state.timers(), self.clock.now(), driver)
    }

    /// How long a driver may execute the run.
    fn time_limit(&self) -> Duration {
        let settings = self.state.started.as_ref().map_or(&self.shared.settings, |started| &started.settings);
        Duration::from_millis(settings.run_timeout_ms)
    }

    /// Whether the run has ended or waits for a person, and nothing of it is in flight.
    fn is_at_rest(&self) -> bool {
        !self.state.is_unfinished() && self.in_flight.is_empty()
    }

    async fn drive(&mut self, context: StartingContext, turn: GateOutcome) -> Result<(), Fault> {
        let mut context = Some(context);
        self.take_over(turn).await?;
        // A takeover restarts the timeout: time without a driver does not count.
        let time = self.time_limit();
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        let mut late = false;
        // First, so that a decision about an outdated approval is refused before the new one is requested.
        self.handle_pending_commands().await?;
        // The tools of an approved call may have changed since.
        self.record_lapsed_approvals().await?;
        loop {
            self.handle_pending_commands().await?;
            if std::mem::take(&mut self.reopened) {
                late = false;
                deadline.as_mut().reset(tokio::time::Instant::now() + time);
            }
            self.perform_due(&mut context).await?;
            if self.is_at_rest() {
                if self.leave_if_idle() {
                    return Ok(());
                }
                self.cancel_resting_run().await?;
                continue;
            }
            // The run continues, so the refusals need not wait for it to rest.
            RefusedCommands(std::mem::take(&mut self.refused_commands)).reply_all();
            let timer = self.first_timer();
            self.wait_timer.set_waiting(self.is_busy() || timer.is_some());
            let next = tokio::select! {
                Some(done) = self.in_flight.next() => Next::Event(done),
                Some(ended) = self.executions.next() => Next::Execution(ended),
                Some(command) = next_command(&mut self.commands) => Next::Command(command),
                Ok(()) = self.cancel_requests.changed() => Next::CancelRequest,
                Some(timer) = fired(timer) => Next::Event((Event::TimerFired { timer }, None)),
                () = &mut deadline, if !late => {
                    late = true;
                    let by = "deadline".to_owned();
                    Next::Event((Event::CancelRequested { by, deadline: true, note: None }, None))
                }
            };
            self.wait_timer.set_waiting(false);
            self.handle(next).await?;
        }
    }

    /// Records what the run waited for.
    async fn handle(&mut self, next: Next) -> Result<(), Fault> {
        let (event, confirm) = match next {
            Next::Event(finished) => finished,
            Next::Execution(ended) => return self.record_execution(ended).await,
            Next::Command(command) => return self.handle_command(*command).await,
            Next::CancelRequest => {
                let request = self.cancel_requests.borrow_and_update().clone();
                let Some(CancelRequest { by }) = request else { return Ok(()) };
                (Event::CancelRequested { by, deadline: false, note: None }, None)
            }
        };
        if let (Event::ModelReplied { call, .. }, Some(confirm)) = (&event, confirm) {
            self.unparsed.insert(*call, confirm);
        }
        self.record(event).await
    }
}

/// What a driver waited for.
#[expect(
    clippy::large_enum_variant,
    reason = "it is handled at once, and an event is not worth an allocation"
)]
enum Next {
    /// An action ended, a timer fired, or the time is over.
    Event(FinishedAction),
    Execution(EndedExecution),
    Command(Box<RunCommand>),
    CancelRequest,
}

/// The timer, once it has fired; nothing if none runs.
async fn fired(timer: Option<(TimerSubject, tokio::time::Instant)>) -> Option<TimerSubject> {
    let (timer, due) = timer?;
    tokio::time::sleep_until(due).await;
    Some(timer)
}
