//! The journal's words: every thing that can happen to a run, and the envelope it travels in.
//!
//! An event is appended before it takes effect, so these types are a storage format: fields are
//! added with a default, never renamed or given another meaning without raising [`SCHEMA`].

mod about;
mod request;
mod said;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::approval::{Decision, EditedCall, Matter, Needed};
use super::attempt::{Attempt, Reserved};
use super::ids::{RunId, SessionId, TenantId};
use crate::plan::Problem;

pub use about::RunStatus;
pub use request::{Cause, Idempotency, Maker, PlanMade, RunQueued, RunStarted, Subject, Word};
pub use said::{
    Effect, Fault, Outcome, Question, Repeat, Reply, ReplyCall, RequestedCall, Unconfirmed, Usage, Verdict,
};

/// The ordinal, in [`Event::ApprovalLapsed`], of what nobody was asked about by itself.
pub const NOT_PUT: u32 = 0;

/// The version of the event format that this program writes.
pub const SCHEMA: u16 = 1;

/// One record of the journal. `seq` counts from 1 within its stream: a run's, or (with `run` absent)
/// a session's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope<B> {
    /// Position in the stream, from 1 without gaps.
    pub seq: u64,
    /// The run, absent on a session's own stream.
    pub run: Option<RunId>,
    /// The conversation.
    pub session: SessionId,
    /// Who pays.
    pub tenant: TenantId,
    /// When it was appended, by the clock of the engine.
    pub at: Timestamp,
    /// How many times the run was taken over; a writer with an older epoch is refused.
    pub epoch: u32,
    /// The version of the format, see [`SCHEMA`].
    pub schema: u16,
    /// What happened.
    pub body: B,
}

/// What can happen to a run. Names in `snake_case` are the journal's; those that clients see on a
/// stream are listed by [`Event::public_name`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The request was accepted: from here on it ends in exactly one terminal state.
    RunQueued(RunQueued),
    /// Its turn has come. Freezes everything that decisions depend on.
    RunStarted(RunStarted),
    /// Another process, or this one after a restart, carries the run on.
    RunResumed {
        /// The new epoch.
        epoch: u32,
        /// The process that carried it out ended, and the server itself counts how often that happens (see
        /// [`recovery`](crate::run::recovery)): what was cut off counts against nothing in the run. False
        /// where a driver panicked, and in journals of earlier releases.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        restart: bool,
    },
    /// The run was under way alone each time that the server died: it waits until somebody has it carried on.
    RunPutAside {
        /// Why.
        error: Fault,
    },
    /// A plan is to be made.
    Planning {
        /// The version to be made, from 1.
        version: u32,
        /// Why.
        cause: Cause,
    },
    /// A question goes out to a model. Appended before it is sent.
    ModelAsked {
        /// Our own ordinal in the run, from 1.
        call: u32,
        /// What it is about.
        subject: Subject,
        /// 0 for the first try, then the number of the repair.
        attempt: u32,
        /// Whether the embedded rules are asked in place of the configured models.
        fallback: bool,
        /// SHA-256 of the canonical request, in hex.
        prompt_hash: String,
        /// What was set aside for it: charged where nobody hears of the question again. Absent where it
        /// costs nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Reserved>,
    },
    /// A model replied. What the reply means is told by the event that follows.
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
    /// No usable reply came; the gateway has done its own retries.
    ModelFailed {
        /// The question's ordinal.
        call: u32,
        /// Why.
        error: Fault,
        /// What it cost all the same.
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
        /// Why.
        error: Fault,
    },
    /// A reply to a forced question could not be used; the next try is told why.
    ReplyRejected {
        /// The question's ordinal.
        call: u32,
        /// Every problem found.
        problems: Vec<Problem>,
    },
    /// The first plan is in force.
    PlanCreated(PlanMade),
    /// A later version is in force.
    Replanned(PlanMade),
    /// A person changed the plan: a further version is in force.
    PlanEdited(PlanMade),
    /// A person wants the plan changed, in words: a further version is to be made.
    ModificationAsked {
        /// The version to be made.
        version: u32,
        /// Who.
        by: String,
        /// The words.
        words: String,
    },
    /// A person has to decide something.
    ApprovalRequired {
        /// Its ordinal in the run, from 1.
        approval: u32,
        /// What about.
        matter: Matter,
        /// Why, and what a yes covers.
        needed: Needed,
    },
    /// A person has decided.
    Decided {
        /// The approval's ordinal.
        approval: u32,
        /// What it was about.
        matter: Matter,
        /// What was said.
        decision: Decision,
        /// By whom.
        by: String,
        /// Why, in that person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The request that it was said with, where it was said in the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<Word>,
    },
    /// What an approval covered has changed: it does not count any more. Of a write that the plan's yes, or
    /// that to an equal call, covered, `approval` is [`NOT_PUT`].
    ApprovalLapsed {
        /// The approval's ordinal.
        approval: u32,
        /// What it was about.
        matter: Matter,
        /// What has changed.
        why: Vec<String>,
        /// What a new approval covers.
        needed: Needed,
        /// The arguments that the call has instead, where somebody who did not ask for the run changed them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Box<EditedCall>>,
    },
    /// A plan that was only approved begins, or a run that was put aside goes on.
    Released {
        /// Who said so.
        by: String,
    },
    /// Nothing is left to do but what waits for a person.
    RunWaiting {},
    /// The plan cannot be carried out, as is known before its first step.
    PlanRefused {
        /// Its version.
        version: u32,
        /// Everything that stands against it.
        problems: Vec<Problem>,
    },
    /// A run that failed, or was done in part, is carried on from where it failed.
    RunReopened {
        /// Who said so.
        by: String,
    },
    /// A finished write is undone, since the run failed or was cancelled.
    Compensating {
        /// The write's ordinal.
        undoes: u32,
        /// The call that undoes it.
        requested: RequestedCall,
    },
    /// A step began.
    StepStarted {
        /// Its number.
        step: u32,
    },
    /// A scene's model said what it wants: calls, a question to the user, or its final words.
    SceneReplied {
        /// The step.
        step: u32,
        /// The model call that said it.
        call: u32,
        /// Its words; the step's result when there are no calls and no question.
        text: String,
        /// Calls it asks for, each with its ordinal in the run.
        calls: Vec<RequestedCall>,
        /// What only the user can say.
        question: Option<Question>,
        /// The tool that it decided for when it was asked what comes next: that tool is now asked of it
        /// by name. There are then no calls and no question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    },
    /// A step's calls are known without a question to its scene's model: they were confirmed by the user.
    Prepared {
        /// The step.
        step: u32,
        /// The calls, each with its ordinal in the run.
        calls: Vec<RequestedCall>,
    },
    /// A tool is about to be called. For a write this is the intent: on disk before the call.
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
        /// How, and with what.
        outcome: Outcome,
        /// How long it took, in milliseconds.
        millis: u64,
    },
    /// A call was not executed, since an equal one of this run already was.
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
    /// A step ended without what it was for.
    StepFailed {
        /// Its number.
        step: u32,
        /// How it ended: failed, blocked by another, needs input, or cancelled.
        status: crate::plan::StepStatus,
        /// Why.
        error: Fault,
    },
    /// The continuation check's verdict.
    Continuation {
        /// From 1.
        round: u32,
        /// What it said.
        verdict: Verdict,
        /// The check itself could not be made, and the run goes on with what it has.
        degraded: bool,
    },
    /// The answer is known.
    Answered {
        /// Its text.
        text: String,
        /// No model wrote it: it lists what was done.
        degraded: bool,
    },
    /// A person, or the run's deadline, wants it to stop at the next safe point.
    CancelRequested {
        /// Who or what.
        by: String,
        /// Whether time ran out; the run then ends as failed.
        deadline: bool,
        /// Why, in that person's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Terminal: `completed`, `partial` or `needs_input`.
    RunCompleted {
        /// How it ended.
        status: RunStatus,
    },
    /// Terminal: nothing that could be answered with.
    RunFailed {
        /// Why.
        error: Fault,
    },
    /// Terminal: stopped by a person.
    RunCancelled {
        /// By whom.
        by: String,
    },
}
