//! The effects that the conversation has its actor perform.

use jiff::Timestamp;

use super::input::CallerId;
use crate::memory::SummaryJob;
use crate::planner::ApproverChoice;
use crate::run::{ApprovalId, Fault, RunId, StatedFact};

/// Work for the actor. What has a result becomes an [`Input`](super::Input).
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a handful exist at once, briefly")]
pub(crate) enum SideEffect {
    /// Read the conversation: `Loaded` or `LoadFailed`.
    Load,
    /// Append the first events of these runs, each by itself, in this order: `Appended`.
    Append(Vec<NewRun>),
    /// Reply that the request is accepted as this run.
    Accept { caller: CallerId, run: RunId },
    /// Reply that a request, a command or an erasure is refused. `is_shed` if there was no room for it.
    Refuse { caller: CallerId, fault: Fault, is_shed: bool },
    /// From here on the request is a command that decides about a run.
    DecideByWords { caller: CallerId, decision: WordDecision },
    /// Hand a command to the run's driver, or to its future one if it is queued. `CommandNotTaken` if the
    /// driver is leaving. The driver replies to a command that was taken.
    Deliver { caller: CallerId, run: RunId },
    /// Read a run from its journal: `RunRead`.
    ReadRun { run: RunId, attempt: ReadAttempt },
    /// Start a driver, and hand it these commands first: `DriverEnded` or `DriverPanicked`.
    Drive { run: RunId, commands: Vec<CallerId> },
    /// The run is not active any more: first release the commands that its driver refused, then remove it
    /// from the live runs, and then send these callers its answer, or the fault.
    Finish { run: RunId, callers: Vec<CallerId>, fault: Option<Fault> },
    /// Summarise: `Summarised` or `StreamFailed`.
    Summarise(SummaryJob),
    /// Something waits for the summary: it takes precedence over those of other conversations.
    HurrySummary,
    /// The summary is not needed any more; it ends earlier, with what it has cost.
    CancelSummary,
    /// Append a fact that a person stated: `FactAppended`.
    AppendFact { caller: CallerId, fact: StatedFact },
    /// Reply that a stated fact is in the session's stream; its id.
    ReplyStated { caller: CallerId, fact: String },
    /// Erase the conversation, unless it changed at `since` or later: `Erased`.
    Erase { since: Option<Timestamp> },
    /// Reply to an erasure whether anything was erased.
    ReplyErased { caller: CallerId, erased: bool },
    /// Reply that nothing happens in the conversation until the caller drops the hold: `Released`.
    Hold { caller: CallerId },
    /// Nothing of the conversation is stored any more: its sequence numbers and its account begin again.
    Reset,
    /// Reply that every run of an earlier process can be followed.
    ReplyReady { caller: CallerId },
    /// Reply that no run of an earlier process is left.
    ReplyResumed { caller: CallerId },
    /// Start the idle timer: `IdleElapsed`.
    StartTimer,
    /// Cancel the idle timer.
    CancelTimer,
    /// Ask the registry to forget this actor, which has received so many messages: `SleepAgreed` or
    /// `SleepRefused`.
    RequestSleep { received: u64 },
    /// Stop the actor.
    Stop,
}

/// A request that is to become a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRun {
    pub(crate) caller: CallerId,
    pub(crate) run: RunId,
    /// The run whose question the user saw last, if the request may answer it.
    pub(crate) answers: Option<RunId>,
}

/// The decision of a message about an open approval: yes, no, or yes with other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordDecision {
    pub(crate) approval: ApprovalId,
    pub(crate) choice: ApproverChoice,
    /// The sequence number of the run's last event before the decision.
    pub(crate) before: u64,
}

/// Why a run is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAttempt {
    /// A command is to be handled.
    ForCommand,
    /// Its driver panicked.
    AfterPanic,
    /// Its driver panicked for the last time: a run that is unfinished is ended with this as the reason, and
    /// reported as unfinished.
    AfterLastPanic,
}
