//! What the first events of a run carry: the request, what its decisions depend on, and its plans.

use serde::{Deserialize, Serialize};

use super::super::approval::Needed;
use super::super::context::{ConfirmedCall, Context, Pending, Turn};
use super::super::ids::RunId;
use super::super::settings::{CacheMode, Settings};
use crate::plan::{Plan, TaskId};

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
    /// The question that the client's own conversation ended with, found by that conversation where it is
    /// not kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// The run whose question the user had heard last when this request was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<RunId>,
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
            pending: None,
            answers: None,
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
    /// The calls that the user confirms with this request: it does these and nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<ConfirmedCall>,
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
