//! One conversation as a pure state machine: which of its runs are queued, read or driven, what its next
//! words decide, and when its actor may sleep.
//!
//! [`ConversationState::on`] takes an [`Input`], which is something that the outside found out, and returns
//! the [`SideEffect`]s that the actor performs. A completed side effect is the next input.
//!
//! **Invariants**, each of which is a property test in `tests/laws.rs`:
//!
//! - A run has at most one driver, and at most one run of the queue is driven at a time.
//! - Each caller gets exactly one reply, and each caller that waits for a run's answer exactly one answer.
//! - A request is accepted, and a run is driven, only after the run is in the journal.
//! - Words decide only what the conversation's last answer showed, in its current form.
//! - The actor stops only when nothing is queued, read, driven or being appended, and the registry agrees.
//! - Runs of the queue start in the order in which they were appended, also across crashes of the process.
//! - Nothing starts while the conversation is held, and what it remembers is read again afterwards.
//! - Facts that people state are appended one after another, each judged by the ledger before it.
//! - A person's decision waits neither for requests in the queue nor for one that is being appended.
//! - The memory is the fold of the session's stream, in whatever order its runs end.
//! - At most one summary is made at a time. A run of the queue waits for it only while the memory is overdue, and then the summary
//!   is hurried.
//! - A run of the queue starts with every turn whose run was answered, and never with a memory that is overdue.
//!
//! **Architecture invariant:** this module knows `run`, `planner` and `memory`: no actor, channel, store or
//! clock. Reply channels, live runs and times stay with the actor, which finds them by id. All that conversations share is
//! which of their histories are packed, and no result depends on that.

mod commands;
mod context;
mod document_choice;
mod driving;
mod erase;
mod faults;
mod history;
mod hold;
mod idle_table;
mod input;
mod lifecycle;
mod loading;
mod requests;
mod run_condition;
mod side_effect;
mod slots;
mod statements;
#[cfg(test)]
mod tests;
mod waiting_history;
mod word_decision;

use std::collections::VecDeque;

use crate::memory::{self, FactCounts};
use crate::run::{Fault, RunId, SessionId};
pub(crate) use context::StartingContext;
pub(crate) use document_choice::ChosenDocuments;
use history::SessionHistory;
pub(crate) use idle_table::IdleTable;
pub(crate) use input::{
    CallerId, DriverReport, IncomingRequest, Input, LoadedConversation, RunCondition, RunReading,
    StoredDecisions,
};
pub(crate) use side_effect::{NewRun, ReadAttempt, SideEffect, WordDecision};
use slots::RunTable;
pub(crate) use statements::FactStatement;
pub(crate) use waiting_history::OpenHistories;
pub(crate) use word_decision::may_decide_by_words;

pub(crate) use faults::{behind, queue_full, session_busy, sessions_full, too_many_commands};
pub(crate) use lifecycle::may_sleep;
pub(crate) use loading::is_taken_up;

/// How often drivers of one run may panic in this process. The run machine quarantines a run before that
/// (`run.poisonous`); this bound is for a run whose driver cannot even record it.
pub(crate) const MAX_PANICS: u32 = 5;

/// The maximum number of commands that wait for one run, or for the conversation to be loaded.
pub(crate) const MAX_COMMANDS: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct ConversationLimits {
    /// The maximum number of its requests that wait.
    pub(crate) max_queued: usize,
    /// How much it remembers verbatim.
    pub(crate) memory: memory::Options,
    /// The context window of the model that plans, in tokens.
    pub(crate) window: usize,
    /// The unpacked memories of conversations in use.
    pub(crate) open: OpenHistories,
}

#[derive(Debug)]
pub(crate) struct ConversationState {
    session: SessionId,
    limits: ConversationLimits,
    phase: Phase,
    history: SessionHistory,
    /// Every run of the conversation that is not over, or for which a command came.
    runs: RunTable,
    backlog: Backlog,
    resume_callers: Vec<ResumeCaller>,
    /// The messages of the registry that arrived; from it the registry knows whether one is on its way.
    received: u64,
    /// Whether the registry was asked to let the actor sleep and has not replied.
    sleep_requested: bool,
}

/// What the conversation is doing as a whole.
#[derive(Debug)]
enum Phase {
    /// Its stream and its unfinished runs are being read. Everything that arrives waits in the backlog.
    Loading,
    /// It serves requests.
    Awake(Awake),
    /// It is being erased for these callers. Everything that arrives waits in the backlog.
    Erasing {
        erasures: Vec<CallerId>,
        /// Why it could not be read, if it could not.
        unreadable: Option<Fault>,
    },
    /// Its stream is being rewritten. Everything that arrives waits in the backlog.
    Held,
    /// It cannot be read, or its stream rejects writes. Nothing starts. Once none of its runs is being driven, it is
    /// erased or stops, and the next actor reads it again. Another actor before that would drive the same runs a
    /// second time.
    Failing { fault: Fault, appending: Option<Appending>, summarising: bool, stating: bool },
    /// The actor ends.
    Stopped,
}

impl Phase {
    /// Nothing is in progress any more, and nothing can be.
    fn failing(fault: Fault) -> Self {
        Self::Failing { fault, appending: None, summarising: false, stating: false }
    }
}

/// What is in progress while requests are served, beside the runs.
#[derive(Debug, Default)]
struct Awake {
    /// Requests that wait until those before them are appended.
    admitted: VecDeque<IncomingRequest>,
    appending: Option<Appending>,
    /// Whether the oldest turns are being summarised. Queued runs start meanwhile, for as long as the memory is not overdue.
    summarising: bool,
    /// Whether that summary takes precedence over those of other conversations, since a run waits for it.
    hurried: bool,
    /// Whether a fact that a person stated is being appended.
    stating: bool,
    /// Whether the idle timer runs.
    timer: bool,
}

/// Requests on their way to the journal.
#[derive(Debug)]
struct Appending {
    runs: Vec<NewRun>,
    /// Whether its first request makes its user the owner of the conversation, if it is accepted.
    claims_ownership: bool,
}

/// What arrived and waits until the phase allows it.
#[derive(Debug, Default)]
struct Backlog {
    requests: VecDeque<IncomingRequest>,
    commands: VecDeque<(CallerId, RunId)>,
    statements: VecDeque<(CallerId, FactStatement)>,
    erasures: Vec<(CallerId, Option<jiff::Timestamp>)>,
    hold: Option<CallerId>,
}

impl Backlog {
    fn is_empty(&self) -> bool {
        let Self { requests, commands, statements, erasures, hold } = self;
        let is_asked = !erasures.is_empty() || hold.is_some();
        requests.is_empty() && commands.is_empty() && statements.is_empty() && !is_asked
    }
}

/// A caller that waits until the runs of an earlier process have ended.
#[derive(Debug)]
struct ResumeCaller {
    caller: CallerId,
    /// Whether it knows that these runs can be followed.
    is_ready: bool,
}

impl ConversationState {
    /// A conversation, and its first side effects. If it `is_new`, nothing of it is in the store.
    pub(crate) fn new(
        session: SessionId,
        limits: ConversationLimits,
        is_new: bool,
    ) -> (Self, Vec<SideEffect>) {
        let history = SessionHistory::new(limits.memory.clone(), limits.open.clone());
        let (phase, effects) = match is_new {
            true => (Phase::Awake(Awake::default()), Vec::new()),
            false => (Phase::Loading, vec![SideEffect::Load]),
        };
        let state = Self {
            session,
            limits,
            phase,
            history,
            runs: RunTable::default(),
            backlog: Backlog::default(),
            resume_callers: Vec::new(),
            received: 0,
            sleep_requested: false,
        };
        (state, effects)
    }

    /// Takes an input. The side effects are to be performed in their order.
    pub(crate) fn on(&mut self, input: Input) -> Vec<SideEffect> {
        let mut effects = Vec::new();
        let out = &mut effects;
        match input {
            Input::Request(request) => self.on_request(request, out),
            Input::Command { caller, run } => self.on_command(caller, run, out),
            Input::State { caller, statement } => self.on_statement(caller, *statement, out),
            Input::Erase { caller, since } => self.on_erase(caller, since, out),
            Input::Hold { caller } => self.on_hold(caller, out),
            Input::Released => self.on_released(out),
            Input::Resume { caller } => self.on_resume(caller),
            Input::WindowChanged { tokens } => self.limits.window = tokens,
            Input::Loaded(loaded) => self.on_loaded(*loaded),
            Input::LoadFailed(fault) => self.phase = Phase::failing(fault),
            Input::Appended(results) => self.on_appended(results, out),
            Input::CommandNotTaken { caller, run } => self.on_command_not_taken(caller, run, out),
            Input::RunRead { run, outcome } => self.on_run_read(run, outcome, out),
            Input::DriverEnded { run, report } => self.on_driver_ended(run, report, out),
            Input::DriverPanicked { run } => self.on_driver_panicked(run, out),
            Input::Summarised { turns } => self.on_summarised(turns),
            Input::FactAppended { caller, result } => self.on_fact_appended(caller, *result, out),
            Input::StreamFailed(fault) => self.on_stream_failed(&fault, out),
            Input::Erased(result) => self.on_erased(result, out),
            Input::IdleElapsed => self.on_idle_elapsed(out),
            Input::SleepAgreed => self.on_sleep_agreed(out),
            Input::SleepRefused => self.sleep_requested = false,
        }
        self.proceed(out);
        effects
    }

    /// Returns the cost of the conversation, its runs and its summaries.
    pub(crate) fn cost_nano_usd(&self) -> u64 {
        self.history.cost_nano_usd()
    }

    /// The facts that were recorded since this was last asked; those that the store had are not among them.
    pub(crate) fn take_new_facts(&mut self) -> FactCounts {
        self.history.take_new_facts()
    }

    /// The sequence number of the last event of its stream that it remembers, as all before it.
    pub(crate) fn last_known(&self) -> u64 {
        self.history.last()
    }

    /// The run of the queue that is driven now.
    pub(crate) fn current_run(&self) -> Option<RunId> {
        self.runs.of_the_queue()
    }
}
