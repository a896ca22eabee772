//! Inputs of the conversation.

use jiff::Timestamp;

use super::statements::FactStatement;
use crate::run::{ApprovableLists, Fault, RunId, SessionEvent};

/// A caller that waits for a reply; the actor keeps its channel under this id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallerId(pub(crate) u64);

/// Something that happened outside.
#[derive(Debug)]
pub(crate) enum Input {
    /// A request arrived.
    Request(IncomingRequest),
    /// A person's command about a run arrived.
    Command { caller: CallerId, run: RunId },
    /// A person states a fact, or corrects one.
    State { caller: CallerId, statement: Box<FactStatement> },
    /// The conversation is to be erased, unless it changed at `since` or later.
    Erase { caller: CallerId, since: Option<Timestamp> },
    /// Nothing is to happen in the conversation until `Released`: its stream is about to be rewritten.
    Hold { caller: CallerId },
    /// The stream has been rewritten, or will not be.
    Released,
    /// A caller waits for the end of the runs that an earlier process left unfinished.
    Resume { caller: CallerId },
    /// The configuration was reloaded, and the planning model has another context window.
    WindowChanged { tokens: usize },
    /// The conversation was read from the store.
    Loaded(Box<LoadedConversation>),
    /// It could not be read.
    LoadFailed(Fault),
    /// These runs are in the journal, or were rejected.
    Appended(Vec<(RunId, Result<(), Fault>)>),
    /// The run's driver was leaving, so it did not take the command.
    CommandNotTaken { caller: CallerId, run: RunId },
    /// A run was read from its journal.
    RunRead { run: RunId, outcome: Result<RunReading, Fault> },
    /// A driver left its run.
    DriverEnded { run: RunId, report: DriverReport },
    /// A driver panicked.
    DriverPanicked { run: RunId },
    /// The oldest turns were summarised; the events are in the session's stream.
    Summarised { turns: Vec<(u64, SessionEvent)> },
    /// A stated fact is in the session's stream, or was rejected.
    FactAppended { caller: CallerId, result: Box<Result<(u64, SessionEvent), Fault>> },
    /// The session's stream rejected the summary.
    StreamFailed(Fault),
    /// The conversation was erased, had changed, or could not be erased.
    Erased(Result<bool, Fault>),
    /// The idle timer elapsed.
    IdleElapsed,
    /// The registry has forgotten this actor, since nothing is on its way to it.
    SleepAgreed,
    /// Something is on its way to this actor.
    SleepRefused,
}

/// A request, as far as the conversation must know it.
#[derive(Debug, Clone)]
pub(crate) struct IncomingRequest {
    pub(crate) caller: CallerId,
    /// The id of its run, if it becomes one. Ids increase in the order in which requests arrive.
    pub(crate) run: RunId,
    pub(crate) user: String,
    /// Whether the conversation must be its user's, or a new one.
    pub(crate) own_session: bool,
    /// Its words, if they may decide about a run that waits (`may_decide_by_words`).
    pub(crate) words: Option<String>,
    /// The current run of the queue, if its answer was published before the request arrived.
    pub(crate) answered: Option<RunId>,
}

/// A conversation as it is in the store.
#[derive(Debug, Default)]
pub(crate) struct LoadedConversation {
    /// The session's stream.
    pub(crate) events: Vec<(u64, SessionEvent)>,
    /// When its last event was appended.
    pub(crate) last_event_at: Option<Timestamp>,
    pub(crate) owner: Option<String>,
    /// Runs that an earlier process left, the oldest first.
    pub(crate) unfinished: Vec<RunId>,
    pub(crate) waiting: Vec<StoredDecisions>,
}

/// A stored run that waits for a person.
#[derive(Debug)]
pub(crate) struct StoredDecisions {
    pub(crate) run: RunId,
    pub(crate) open: OpenDecisions,
    pub(crate) since: Timestamp,
    /// Whether the plan was changed or lapsed since it was shown, or may have been.
    pub(crate) is_changed: bool,
}

/// The decisions that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenDecisions {
    /// The sequence number of the run's last event.
    pub(crate) seq: u64,
    /// Its open approvals, except those about outcomes.
    pub(crate) approvals: Vec<u32>,
    /// The lists that the user may change in words, if the only open approval is the user's and has some.
    pub(crate) lists: Option<ApprovableLists>,
    /// Whether a model may be asked what unclear words change in these lists.
    pub(crate) reads_words: bool,
    /// Whether its answer shows everything that is to be decided.
    pub(crate) is_shown_whole: bool,
    /// The language of its answer, as ISO 639-1, where known.
    pub(crate) language: Option<String>,
}

/// Where a run is when no driver has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunCondition {
    /// Something must happen now.
    Unfinished,
    /// It waits for a person.
    Waiting(OpenDecisions),
    /// It is over.
    Ended,
}

/// A run that was read from its journal.
#[derive(Debug)]
pub(crate) struct RunReading {
    pub(crate) condition: RunCondition,
    /// After a panic: the session's stream, to which the driver may have appended.
    pub(crate) turns: Vec<(u64, SessionEvent)>,
}

/// The last report of a driver.
#[derive(Debug)]
pub(crate) struct DriverReport {
    /// Never [`RunCondition::Unfinished`], unless `broken`.
    pub(crate) condition: RunCondition,
    /// The sequence number of the run's last event.
    pub(crate) seq: u64,
    /// The turns that it appended to the session's stream.
    pub(crate) turns: Vec<(u64, SessionEvent)>,
    /// Whether a request of the conversation decided about the run: then the run's answer is the reply.
    pub(crate) decided_by_words: bool,
    /// Why it could not continue: the journal rejected an event.
    pub(crate) broken: Option<Fault>,
}
