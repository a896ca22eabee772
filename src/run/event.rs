//! The journal's events: everything that can happen to a run, and the envelope that carries it.
//!
//! An event is appended before it takes effect, so these types are a storage format: fields are
//! added with a default, never renamed or given another meaning without raising [`SCHEMA`].

mod adaptation;
mod area;
mod consultation;
mod envelope;
mod facts;
mod payload;
mod program;
mod request;
mod status;
mod subject;
mod summary;
mod upcast;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::approval::{ApprovalSubject, Decision, EditedCall, RequiredApproval};
use super::attempt::{AskReservation, Attempt};
use super::learned::{PathRecall, PlanLesson, PlanRecall, PlanScore};
use crate::adapt::{
    AskRefusal, ConsultationOutcome, PolicyChoice, RecoveryAction, RefusedAction, ToolForecast, WeighedAction,
};
use crate::flow::{LeftPath, MissingNode, PathMaker};
use crate::plan::PlanProblem;

pub use crate::fault::{Fault, FaultClass};
pub use adaptation::{Adaptation, InterpretedResult, RecalledResult};
pub(in crate::run) use area::EventArea;
pub use consultation::{ConsultationChoice, ConsultationSubject};
pub use envelope::Envelope;
pub use facts::{Durability, EventFacts, Origin, StatusChange};
pub use payload::{
    Effect, Outcome, Question, Repeat, Reply, ReplyCall, RequestedCall, ResultNotes, Unconfirmed,
    UnpreparedCall, UnusableCall, Usage, Verdict,
};
pub use program::ProgramStop;
pub use request::{
    Idempotency, PlanCause, PlanMade, PlanMaker, PlanPatch, RequestIdentity, RequestOptions, RunQueued,
    RunStarted,
};
pub use status::RunStatus;
pub use subject::{Purpose, Subject, SubjectFacts};
pub use summary::{PartOutcome, SummarisedDocument, SummaryOutline, SummaryOwner};
pub use upcast::{SCHEMA, parse_event};

/// The ordinal in [`Event::ApprovalLapsed`] of a write for which no approval of its own was requested.
pub const NO_APPROVAL: u32 = 0;

/// The subject of an [`Event::Unexpected`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum UnexpectedSubject {
    /// An attempt of a call.
    Call {
        /// The call's ordinal.
        call: u32,
        /// From 1.
        attempt: u32,
    },
    /// A step that ended without doing its task; at the level `autonomous`, any step that ended.
    Step {
        /// Its number.
        step: u32,
    },
    /// The run itself: its further steps have no results.
    Run {
        /// How many steps in a row had none.
        idle_steps: u32,
    },
}

/// The purpose of a run's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum TimerSubject {
    /// The next attempt of a call.
    Retry {
        /// The call's ordinal.
        call: u32,
        /// The attempt to come.
        attempt: u32,
    },
}

/// An event of a run. Names in `snake_case` are the journal's; those that clients see on a
/// stream are listed by [`Event::public_name`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// The request was accepted. The run ends in exactly one terminal state.
    RunQueued(RunQueued),
    /// The run left the queue. Freezes everything that its decisions depend on.
    RunStarted(RunStarted),
    /// Another process, or this one after a restart, resumed the run.
    RunResumed {
        /// The new epoch.
        epoch: u32,
        /// The process that executed the run ended. The server counts such crashes itself (see
        /// [`recovery`](crate::run::recovery)), so interrupted work does not count against the run. False
        /// where a driver panicked, and in journals of earlier releases.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        restart: bool,
        /// SHA-256 in hex of the scenes that are loaded now, where they differ from those that the run had before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        catalogue: Option<String>,
    },
    /// The run was quarantined: it was the only one in progress at several consecutive crashes of the
    /// server, or it was unfinished in a backup that was restored. It waits until a person resumes or cancels it.
    RunPutAside {
        /// The reason.
        error: Fault,
        /// When the backup was taken from which the run was restored: what it did later is not in its journal. Absent
        /// after crashes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copied: Option<Timestamp>,
    },
    /// A plan is to be made.
    Planning {
        /// The version to be made, from 1.
        version: u32,
        /// What caused it.
        cause: PlanCause,
    },
    /// Plans of earlier executions were looked up. A second one of a run withdraws the plan of the first.
    PlanRecalled(PlanRecall),
    /// What the run says about the plan of its template; in one commit with the run's end.
    PlanObserved(PlanLesson),
    /// Paths of earlier executions of a flow were looked up, before the path of its step is planned.
    PathRecalled {
        /// The flow's step.
        step: u32,
        /// What is known.
        recall: PathRecall,
    },
    /// What the run says about the path of a flow's step; in one commit with the run's end.
    PathObserved {
        /// The flow's step.
        step: u32,
        /// Its claim.
        lesson: PlanLesson,
    },
    /// A person has judged the plan, after the run's end.
    PlanRated {
        /// The template of the plan, if one was learned or recalled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template: Option<String>,
        /// The templates of the paths of its flows, if any were learned or recalled.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// The judgement.
        score: PlanScore,
        /// The person who judges.
        by: String,
        /// The person's reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A question to a model. Appended before it is sent.
    ModelAsked {
        /// Our own ordinal in the run, from 1.
        call: u32,
        /// Its subject.
        subject: Subject,
        /// 0 for the first attempt, then the number of the repair.
        attempt: u32,
        /// Whether the offline model is asked in place of the configured models.
        fallback: bool,
        /// SHA-256 of the canonical request, in hex.
        prompt_hash: String,
        /// The budget reserved for it; charged in full when its outcome is never known. Absent where it
        /// costs nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<AskReservation>,
    },
    /// A model replied. The event that follows says what the reply means.
    ModelReplied {
        /// The question's ordinal.
        call: u32,
        /// What came back.
        reply: Reply,
        /// Tokens and money.
        usage: Usage,
        /// How long it took, retries included, in milliseconds.
        millis: u64,
        /// Each attempt at a model on the way; their usages add up to `usage`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
    /// No usable reply; the gateway's own retries are exhausted.
    ModelFailed {
        /// The question's ordinal.
        call: u32,
        /// The reason.
        error: Fault,
        /// What it cost nevertheless.
        usage: Usage,
        /// How long it took, retries included, in milliseconds.
        millis: u64,
        /// Each attempt at a model on the way; their usages add up to `usage`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
    /// No plan could be made in any of the ways that the settings allow.
    PlanningFailed {
        /// The version that is missing.
        version: u32,
        /// The reason.
        error: Fault,
    },
    /// Which scenes resemble the request, by embeddings: the meaning of the reply about the ranking.
    ScenesRanked {
        /// The question's ordinal.
        call: u32,
        /// The names of the most similar scenes, the best first.
        scenes: Vec<String>,
    },
    /// A reply to a forced question could not be used; the next attempt gets the problems.
    ReplyRejected {
        /// The question's ordinal.
        call: u32,
        /// Every problem found.
        problems: Vec<PlanProblem>,
    },
    /// The first plan is in force.
    PlanCreated(PlanMade),
    /// A later version is in force.
    Replanned(PlanMade),
    /// A person changed the plan: a new version is in force.
    PlanEdited(PlanMade),
    /// A person asked for a change of the plan in free text: another version is to be made.
    ModificationAsked {
        /// The version to be made.
        version: u32,
        /// The person.
        by: String,
        /// The words.
        words: String,
    },
    /// A person has to decide something.
    ApprovalRequired {
        /// Its ordinal in the run, from 1.
        approval: u32,
        /// The subject of the decision.
        matter: ApprovalSubject,
        /// Why, and what an approval covers.
        needed: RequiredApproval,
    },
    /// A person has decided.
    Decided {
        /// The approval's ordinal.
        approval: u32,
        /// What it was about.
        matter: ApprovalSubject,
        /// The decision.
        decision: Decision,
        /// By whom.
        by: String,
        /// The person's reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The request that carried the decision, where it was made in the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<RequestIdentity>,
    },
    /// What an approval covered has changed, so the approval is void. `approval` is [`NO_APPROVAL`] for a
    /// write that was covered by the plan's approval or by that of an equal call.
    ApprovalLapsed {
        /// The approval's ordinal.
        approval: u32,
        /// What it was about.
        matter: ApprovalSubject,
        /// What has changed.
        why: Vec<String>,
        /// What a new approval covers.
        needed: RequiredApproval,
        /// The call's new arguments, where a person other than the requester changed them, or the requester in words that a
        /// model read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Box<EditedCall>>,
        /// Where a model was asked what the user's words change: the question's ordinal, 0 if none was asked. Without
        /// `edited`, they were not understood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<u32>,
    },
    /// The user replied to a question about lists in words that say no clear change: a model is asked what they change.
    ListChangeAsked {
        /// The approval's ordinal.
        approval: u32,
        /// The user.
        by: String,
        /// The words.
        words: String,
        /// The request that carried them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<RequestIdentity>,
    },
    /// An approved and held plan begins, or a quarantined run continues.
    Released {
        /// Who ordered it.
        by: String,
    },
    /// Everything that is left waits for a person.
    RunWaiting {},
    /// The preflight found that the plan cannot be executed.
    PlanRefused {
        /// Its version.
        version: u32,
        /// Every problem found.
        problems: Vec<PlanProblem>,
        /// Milliseconds after which a retry may succeed, if only the budget is exhausted and where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// A run that failed or completed in part resumes where it failed.
    RunReopened {
        /// Who ordered it.
        by: String,
    },
    /// A finished write is being undone because the run failed or was cancelled.
    Compensating {
        /// The write's ordinal.
        undoes: u32,
        /// The call that undoes it.
        requested: RequestedCall,
    },
    /// Tools that a step may call do not work at present, as recent calls of them show.
    Forecast {
        /// The step, which is about to begin.
        step: u32,
        /// The tools, with how they worked lately.
        tools: Vec<ToolForecast>,
    },
    /// A step began.
    StepStarted {
        /// Its number.
        step: u32,
    },
    /// A scene's model replied: with calls, a question to the user, or its final text.
    SceneReplied {
        /// The step.
        step: u32,
        /// The model call that it replied to.
        call: u32,
        /// Its text; the step's result when there are no calls and no question.
        text: String,
        /// The calls it requests, each with its ordinal in the run.
        calls: Vec<RequestedCall>,
        /// The question to the user.
        question: Option<Question>,
        /// The tool that it chose when it was asked what comes next. The next question forces that tool.
        /// There are then no calls and no question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
    /// A step's calls are known without asking its scene's model: the user confirmed them, or its plan prepared
    /// them.
    Prepared {
        /// The step.
        step: u32,
        /// The calls, each with its ordinal in the run.
        calls: Vec<RequestedCall>,
        /// What the plan expects and did not prepare so that it could be called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unprepared: Vec<UnpreparedCall>,
        /// The question to the user, where values are missing and the step's scene is not asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    },
    /// The path through a flow is known: the meaning of the reply about it, one that was recalled, or the graph itself.
    FlowPlanned {
        /// The flow's step.
        step: u32,
        /// The names of the nodes, in order. Where nobody planned it, those of a path through the full graph; empty if
        /// the given values suffice for none.
        path: Vec<String>,
        /// Who planned it.
        maker: PathMaker,
        /// The question's ordinal, if one was answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u32>,
        /// A node that the planner missed in the flow, if it named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing_node: Option<MissingNode>,
    },
    /// A node of a flow was entered: a step of its own began.
    NodeStarted {
        /// The new step's number.
        step: u32,
        /// The flow's step.
        parent: u32,
        /// The node's name.
        node: String,
        /// The scene whose tool it calls, or the flow.
        scene: String,
        /// How the node differs from the planned one, and why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<LeftPath>,
    },
    /// The model of a node, or of a step of kind llm, replied: with an object as that declares it.
    NodeReplied {
        /// The step.
        step: u32,
        /// The question's ordinal.
        call: u32,
        /// What it returned.
        output: serde_json::Value,
    },
    /// A model wrote the program of a step of kind code: the meaning of its reply.
    ProgramWritten {
        /// The step.
        step: u32,
        /// The question's ordinal.
        call: u32,
        /// The Python source.
        source: String,
        /// What its clock says in every execution, in milliseconds since 1970 UTC.
        now_ms: i64,
        /// Where its random numbers start in every execution.
        seed: u64,
        /// SHA-256 in hex of the definitions of the tools that it may call.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        functions: String,
    },
    /// An execution of a step's program stopped. Each begins at the program's start, with the outcomes of its calls so far.
    ProgramReplied {
        /// The step.
        step: u32,
        /// Where it stopped.
        stop: ProgramStop,
        /// Milliseconds that it took, without the wait for a worker.
        #[serde(default, skip_serializing_if = "super::is_default")]
        millis: u64,
    },
    /// The documents that a step, or a call of it, summarises were read and divided into chunks.
    SummaryPlanned {
        /// The step.
        step: u32,
        /// The call that the summary is the result of; absent where it is that of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call: Option<u32>,
        /// The chunks, and what they ask of models at most.
        outline: SummaryOutline,
    },
    /// A part of a summary is done: the meaning of the reply about it, or what needs no question.
    SummaryPart {
        /// The step.
        step: u32,
        /// The call that the summary is the result of; absent where it is that of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call: Option<u32>,
        /// The part, from 1: the chunks first, the summary itself last.
        part: u32,
        /// The question's ordinal, if one was answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<u32>,
        /// Its outcome.
        outcome: PartOutcome,
    },
    /// A summary cannot go on: its documents are not known, cannot be read, are too large, or cost more than is left.
    SummaryStopped {
        /// The step.
        step: u32,
        /// The call that the summary is the result of; absent where it is that of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call: Option<u32>,
        /// The reason.
        error: Fault,
        /// The question which documents are meant, where the request names none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    },
    /// A tool is about to be called. For a write this is the intent, which is on disk before the call.
    ToolStarted {
        /// The call's ordinal.
        call: u32,
        /// From 1; more than 1 only where repeating is safe.
        attempt: u32,
    },
    /// A call ended.
    ToolCompleted {
        /// The call's ordinal.
        call: u32,
        /// How it ended, and with what result.
        outcome: Outcome,
        /// How long it took, in milliseconds.
        millis: u64,
        /// What was found about its result, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Box<ResultNotes>>,
    },
    /// An attempt of a call failed, and predefined logic decided what follows.
    Unexpected {
        /// What failed.
        subject: UnexpectedSubject,
        /// The kind of failure.
        class: FaultClass,
        /// The fault's code.
        code: String,
        /// What was considered, in order; the last one was chosen.
        weighed: Vec<WeighedAction>,
        /// What is done.
        chosen: PolicyChoice,
        /// Why no model is asked about it. From revision 5 of the rules on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unasked: Option<AskRefusal>,
        /// What a model may choose, where one is to be asked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<RecoveryAction>,
    },
    /// One of several models has voted in a decision: the meaning of its reply.
    Voted {
        /// The consultation's ordinal.
        consultation: u32,
        /// The voter, from 1.
        voter: u32,
        /// The question's ordinal.
        question: u32,
        /// The alternative that it voted for: its place among those that the tool declares, from 0.
        at: u32,
        /// The model's reason, at most 300 characters. Never shown to end users.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// The configured name of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A consultation has ended: a model has chosen, or predefined logic decides.
    Consultation {
        /// Its ordinal in the run, from 1.
        consultation: u32,
        /// What it was about.
        subject: ConsultationSubject,
        /// The last question's ordinal, if one was put.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<u32>,
        /// Whether a model was asked, or why not.
        how: ConsultationOutcome,
        /// What was chosen; predefined logic decides where it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chosen: Option<ConsultationChoice>,
        /// Why the choice is not carried out: what holds now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<RefusedAction>,
        /// The model's reason, at most 300 characters. Never shown to end users.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// The configured name of the model that chose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The question to the user, where that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Question>,
        /// Why there is no choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Fault>,
    },
    /// A call waits before its next attempt.
    BackedOff {
        /// The call's ordinal.
        call: u32,
        /// The attempt to come.
        attempt: u32,
        /// How long it waits, in milliseconds.
        delay_ms: u64,
        /// How much of that the server asked for, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_ms: Option<u64>,
    },
    /// A timer of the run has fired.
    TimerFired {
        /// The timer.
        timer: TimerSubject,
    },
    /// Predefined logic changed the calls of the run.
    Adapted {
        /// The change.
        change: Adaptation,
    },
    /// A call was not executed because an equal one of this run already was.
    ToolSkipped {
        /// The call's ordinal.
        call: u32,
        /// The equal call whose outcome it shares.
        first: u32,
    },
    /// A step ended with a result.
    StepCompleted {
        /// Its number.
        step: u32,
        /// What it found or did, in words.
        result: String,
    },
    /// A step ended without achieving its purpose.
    StepFailed {
        /// Its number.
        step: u32,
        /// How it ended: failed, blocked by another, needs input, or cancelled.
        status: crate::plan::StepStatus,
        /// The reason.
        error: Fault,
    },
    /// The continuation check's verdict.
    Continuation {
        /// From 1.
        round: u32,
        /// The verdict.
        verdict: Verdict,
        /// The check itself failed, and the run continues with what it has.
        degraded: bool,
    },
    /// The answer is known.
    Answered {
        /// Its text.
        text: String,
        /// No model wrote it: it only lists what was done.
        degraded: bool,
        /// Why the run was ended before its work was, if it was: the answer only says so in the user's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Fault>,
    },
    /// A person or the run's deadline requested a stop at the next safe point.
    CancelRequested {
        /// Who or what.
        by: String,
        /// Whether time ran out; the run then ends as failed.
        deadline: bool,
        /// The person's reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Terminal: `completed`, `partial` or `needs_input`.
    RunCompleted {
        /// How it ended.
        status: RunStatus,
    },
    /// Terminal: nothing was achieved that could be answered with.
    RunFailed {
        /// The reason.
        error: Fault,
    },
    /// Terminal: stopped by a person.
    RunCancelled {
        /// By whom.
        by: String,
    },
}

impl Event {
    /// The end of a step that has failed.
    pub(super) fn step_failed(step: u32, error: Fault) -> Self {
        Self::StepFailed { step, status: crate::plan::StepStatus::Failed, error }
    }
}
