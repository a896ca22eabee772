//! The journal's words: every thing that can happen to a run, and the envelope it travels in.
//!
//! An event is appended before it takes effect, so these types are a storage format: fields are
//! added with a default, never renamed or given another meaning without raising [`SCHEMA`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval::{Decision, Matter, Needed, Undo};
use super::attempt::Attempt;
use super::context::{Context, Turn};
use super::ids::{RunId, SessionId, TenantId};
use super::settings::{CacheMode, Settings};
use crate::plan::{Plan, PlanStatus, Problem, TaskId};

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
    /// What an approval covered has changed: it does not count any more.
    ApprovalLapsed {
        /// The approval's ordinal.
        approval: u32,
        /// What it was about.
        matter: Matter,
        /// What has changed.
        why: Vec<String>,
        /// What a new approval covers.
        needed: Needed,
    },
    /// A plan that was only approved begins.
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

/// The request as it was accepted: everything that carrying it out needs, so that whoever takes it over
/// has it, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunQueued {
    /// The user's words.
    pub request: String,
    /// Who asks: known from the key or the configuration, never from the words.
    pub user: String,
    /// The public id of the plan.
    pub task: TaskId,
    /// Only a plan is wanted: the run ends when there is one, and the plan stays a draft.
    #[serde(default)]
    pub plan_only: bool,
    /// Its client's name for it, so that it can be sent again without being carried out again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    /// What was asked, by whom and from where, as a hash in hex, where clients send again without a name: by
    /// it a further try is known after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The conversation as the client tells it, where it is not kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Turn>>,
    /// The chatbot's own instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How its questions use the cache, where not as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheMode>,
    /// Its plan is to be approved by a person, whatever the settings say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_approval: bool,
    /// Nothing is written: writes are told and not done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The plan, made by a person; none is asked for then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

impl RunQueued {
    /// What `user` asks for in these words, to be carried out as it is configured.
    pub fn new(request: impl Into<String>, user: impl Into<String>, task: TaskId) -> Self {
        Self {
            request: request.into(),
            user: user.into(),
            task,
            plan_only: false,
            idempotency: None,
            asked: None,
            history: None,
            instructions: None,
            cache: None,
            require_approval: false,
            dry_run: false,
            plan: None,
        }
    }
}

/// What tells a request again that decided about a run, as [`RunQueued`] has it of one that began a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Its client's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
    /// What was asked, by whom and from where, as a hash in hex, where it has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}

/// A client's name for a request, and what was asked under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The name: 1 to 255 printable ASCII characters. Within a tenant it is one request's.
    pub key: String,
    /// SHA-256 of the canonical request, in hex: another request under the same name is an error.
    pub hash: String,
}

/// Everything that the run's decisions depend on, frozen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The local time that "today" refers to, RFC 9557 (with the time zone's name).
    pub now: jiff::Zoned,
    /// The user's language, ISO 639-1 (`it`), where it could be told.
    pub language: Option<String>,
    /// Bounds and choices.
    pub settings: Settings,
    /// SHA-256 of the catalogue of scenes, in hex.
    pub catalogue: String,
    /// What is remembered of the conversation.
    pub context: Context,
}

/// Why a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The request itself.
    Request,
    /// The continuation check asked for more.
    Continuation,
    /// A person wanted it changed, in words.
    Feedback,
    /// A person changed it.
    Edit,
}

/// What a question to a model is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// The plan of this version.
    Plan {
        /// From 1.
        version: u32,
    },
    /// A step's next move.
    Scene {
        /// The step's number.
        step: u32,
    },
    /// Whether the request is answered.
    Continuation {
        /// From 1.
        round: u32,
    },
    /// The words of the answer.
    Answer,
}

/// Which maker wrote a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// The DeterministicPlanner, with a configured model.
    Deterministic,
    /// The embedded rules in place of models that failed: never writes without a person's yes.
    Fallback,
    /// A person.
    Person,
}

/// A plan and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanMade {
    /// From 1; a re-plan raises it.
    pub version: u32,
    /// Why it was made.
    pub cause: Cause,
    /// Who made it.
    pub maker: Maker,
    /// The plan, valid.
    pub plan: Plan,
    /// Why a person has to approve it, where one has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Needed>,
    /// Who made or wanted it, where a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl PlanMade {
    /// A plan that needs nobody's approval.
    pub fn new(version: u32, cause: Cause, maker: Maker, plan: Plan) -> Self {
        Self { version, cause, maker, plan, approval: None, by: None, why: None }
    }
}

/// A model's reply, as it came.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The message's text, often empty when there are calls.
    #[serde(default)]
    pub text: String,
    /// Function calls, in order.
    #[serde(default)]
    pub calls: Vec<ReplyCall>,
    /// `stop`, `tool_calls`, `length`, … as the server said it.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// The configured name of the model that replied.
    #[serde(default)]
    pub model: String,
}

/// One function call of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyCall {
    /// The provider's id. It repeats on some servers and is never a key here.
    pub id: String,
    /// The function's name as written.
    pub name: String,
    /// The arguments as written: JSON text, broken or not. An object that a server sends in place
    /// of text is written out.
    pub arguments: String,
}

/// Tokens and money of model calls. Money is in nano-USD, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Calls sent to a model.
    pub calls: u32,
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Prompt tokens that the provider had cached.
    pub cached_input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// Billionths of a US dollar.
    pub cost_nano_usd: u64,
}

impl Usage {
    /// What was used since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_sub(before.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost_nano_usd: self.cost_nano_usd.saturating_sub(before.cost_nano_usd),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_nano_usd = self.cost_nano_usd.saturating_add(other.cost_nano_usd);
    }
}

/// Why something did not work: a stable code, and words that name what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Fault {
    /// Stable, such as `tool.timeout`.
    pub code: String,
    /// For people and models.
    pub message: String,
    /// Milliseconds after which the same may work, where somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// A fault with its stable code and its message.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), retry_after_ms: None }
    }

    /// The same fault, which may be gone after this time.
    #[must_use]
    pub fn after(mut self, wait: Option<std::time::Duration>) -> Self {
        self.retry_after_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

/// Whether a tool changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only looks.
    Read,
    /// It changes something outside the run.
    Write,
}

/// How a write whose outcome is not known may be repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Not at all: a person says what happened.
    #[default]
    Never,
    /// With the same idempotency key, which the tool honours.
    Key,
}

/// A call that a scene's model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// Our own ordinal in the run, from 1.
    pub call: u32,
    /// The provider's id, sent back with the result.
    pub provider_id: String,
    /// The tool's name, as catalogued (as written, when unknown).
    pub tool: String,
    /// The arguments, read.
    pub arguments: Value,
    /// Scene, tool and canonical (identity) arguments: what makes two calls the same.
    pub key: String,
    /// Whether it writes.
    pub effect: Effect,
    /// How it may be repeated.
    pub repeat: Repeat,
    /// Why it is not even tried: unknown tool, arguments against the schema, not offered.
    pub problem: Option<Fault>,
    /// Why a person has to approve it, where one has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Needed>,
    /// How it is undone, where its tool says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Done.
    Ok {
        /// What the tool returned, cut to its bound.
        result: Value,
        /// The same in a sentence of the user's language, where the scene says how to phrase it.
        #[serde(default)]
        say: Option<String>,
    },
    /// The tool said no, and did nothing.
    Refused {
        /// Why.
        error: Fault,
    },
    /// It did not work, and nothing was done.
    Failed {
        /// Why.
        error: Fault,
    },
    /// A write of which nobody knows whether it was done. Never repeated blindly.
    Unknown {
        /// What is known.
        error: Fault,
    },
}

/// What only the user can say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question, in the user's language.
    pub text: String,
    /// The tool that needs it, if one was meant.
    pub tool: Option<String>,
    /// Names of the missing arguments or facts.
    pub missing: Vec<String>,
    /// What is already known, as arguments of that tool.
    #[serde(default)]
    pub known: Value,
}

/// The continuation check's answer: the arguments of the forced tool `CheckContinuation`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// More has to be done, and scenes can do it.
    pub should_continue: bool,
    /// What was found is enough for an answer.
    pub can_answer_now: bool,
    /// Why.
    #[serde(default)]
    pub reasoning: String,
    /// What is missing, in words.
    #[serde(default)]
    pub missing_information: Option<String>,
    /// The answer itself, with `planning.answer_with_check`.
    #[serde(default)]
    pub answer: Option<String>,
}

/// Where a run stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Accepted; earlier requests of its conversation come first.
    Queued,
    /// At work.
    Running,
    /// Waits for a person's decision.
    Waiting,
    /// Ended with a question that only the user can answer.
    NeedsInput,
    /// Everything was done and answered.
    Completed,
    /// Some of it was done, and the answer says what was not.
    Partial,
    /// Nothing could be answered.
    Failed,
    /// Stopped by a person.
    Cancelled,
}

impl RunStatus {
    /// Whether nothing more happens to the run.
    pub fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting)
    }
}

impl Event {
    /// The name under which clients see the event on a stream; `None` for what stays inside.
    pub fn public_name(&self) -> Option<&'static str> {
        Some(match self {
            Event::RunStarted(_) => "run_started",
            Event::Planning { .. } => "planning",
            Event::PlanCreated(_) => "plan_created",
            Event::Replanned(_) | Event::PlanEdited(_) => "replanned",
            Event::ApprovalRequired { .. } => "approval_required",
            Event::Decided { matter: Matter::Plan { .. }, decision: Decision::Yes { .. }, .. } => {
                "plan_approved"
            }
            Event::StepStarted { .. } => "step_started",
            Event::ToolStarted { .. } => "tool_started",
            Event::ToolCompleted { .. } => "tool_completed",
            Event::ToolSkipped { .. } => "tool_skipped",
            Event::StepCompleted { .. } => "step_completed",
            Event::StepFailed { .. } => "step_failed",
            Event::Continuation { .. } => "continuation",
            Event::Answered { .. } => "answered",
            Event::RunWaiting {} => "run_waiting",
            Event::RunCompleted { .. } => "run_completed",
            Event::RunFailed { .. } => "run_failed",
            Event::RunCancelled { .. } => "run_cancelled",
            Event::RunQueued(_)
            | Event::RunResumed { .. }
            | Event::ModelAsked { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::PlanningFailed { .. }
            | Event::ReplyRejected { .. }
            | Event::SceneReplied { .. }
            | Event::Decided { .. }
            | Event::ModificationAsked { .. }
            | Event::ApprovalLapsed { .. }
            | Event::Released { .. }
            | Event::PlanRefused { .. }
            | Event::RunReopened { .. }
            | Event::Compensating { .. }
            | Event::CancelRequested { .. } => return None,
        })
    }

    /// The status that the event gives to the run's plan, where it gives one. A plan that is being carried
    /// out stays so until it ends, whatever its later versions need; see `RunState::plan_after`.
    pub fn plan_status(&self) -> Option<PlanStatus> {
        Some(match self {
            Event::RunQueued(_) | Event::ModificationAsked { .. } => PlanStatus::Draft,
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                if made.approval.is_some() { PlanStatus::Draft } else { PlanStatus::Approved }
            }
            Event::ApprovalRequired { matter: Matter::Plan { .. }, .. } => PlanStatus::PendingApproval,
            Event::ApprovalLapsed { matter: Matter::Plan { .. }, .. } => PlanStatus::Draft,
            Event::Decided { matter: Matter::Plan { .. }, decision: Decision::Yes { .. }, .. } => {
                PlanStatus::Approved
            }
            Event::StepStarted { .. } | Event::RunReopened { .. } => PlanStatus::Executing,
            Event::RunCompleted { status: RunStatus::Completed } => PlanStatus::Completed,
            Event::RunCompleted { .. } | Event::RunFailed { .. } => PlanStatus::Failed,
            Event::RunCancelled { .. } => PlanStatus::Cancelled,
            _ => return None,
        })
    }

    /// Whether the run ends with it.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Event::RunCompleted { .. } | Event::RunFailed { .. } | Event::RunCancelled { .. })
    }

    /// What the event is about, in one word and a number: the same for the same thing in one run.
    pub fn key(&self) -> String {
        let number = match self {
            Event::RunResumed { epoch } => *epoch,
            Event::Planning { version, .. } | Event::PlanningFailed { version, .. } => *version,
            Event::ModelAsked { call, .. }
            | Event::ModelReplied { call, .. }
            | Event::ModelFailed { call, .. }
            | Event::ReplyRejected { call, .. }
            | Event::SceneReplied { call, .. }
            | Event::ToolStarted { call, .. }
            | Event::ToolCompleted { call, .. }
            | Event::ToolSkipped { call, .. } => *call,
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => made.version,
            Event::ModificationAsked { version, .. } | Event::PlanRefused { version, .. } => *version,
            Event::ApprovalRequired { approval, .. }
            | Event::Decided { approval, .. }
            | Event::ApprovalLapsed { approval, .. } => *approval,
            Event::Compensating { undoes, .. } => *undoes,
            Event::StepStarted { step }
            | Event::StepCompleted { step, .. }
            | Event::StepFailed { step, .. } => *step,
            Event::Continuation { round, .. } => *round,
            _ => 0,
        };
        format!("{}/{number}", self.name())
    }

    /// The event's name in the journal.
    pub fn name(&self) -> &'static str {
        match self {
            Event::RunQueued(_) => "run_queued",
            Event::RunResumed { .. } => "run_resumed",
            Event::ModelAsked { .. } => "model_asked",
            Event::ModelReplied { .. } => "model_replied",
            Event::ModelFailed { .. } => "model_failed",
            Event::PlanningFailed { .. } => "planning_failed",
            Event::ReplyRejected { .. } => "reply_rejected",
            Event::SceneReplied { .. } => "scene_replied",
            Event::CancelRequested { .. } => "cancel_requested",
            Event::PlanEdited(_) => "plan_edited",
            Event::Decided { .. } => "decided",
            Event::ModificationAsked { .. } => "modification_asked",
            Event::ApprovalLapsed { .. } => "approval_lapsed",
            Event::Released { .. } => "released",
            Event::PlanRefused { .. } => "plan_refused",
            Event::RunReopened { .. } => "run_reopened",
            Event::Compensating { .. } => "compensating",
            public => public.public_name().unwrap_or("unnamed"),
        }
    }

    /// Whether something outside depends on this event being on disk before the run goes on: an
    /// accepted request, a taking over, a write's intent and its outcome, a person's decision, an end.
    pub fn must_be_durable(&self, writes: bool) -> bool {
        match self {
            Event::RunQueued(_)
            // Or a process that it ends again and again would not be seen to.
            | Event::RunResumed { .. }
            | Event::CancelRequested { .. }
            // What somebody is told to decide has to be there when the decision comes, and the decision
            // when it is carried out.
            | Event::ApprovalRequired { .. }
            | Event::Decided { .. }
            | Event::PlanEdited(_)
            | Event::ModificationAsked { .. }
            | Event::ApprovalLapsed { .. }
            | Event::Released { .. }
            | Event::RunWaiting {}
            | Event::RunReopened { .. }
            | Event::RunCompleted { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => true,
            Event::ToolStarted { .. } | Event::ToolCompleted { .. } => writes,
            _ => false,
        }
    }
}
