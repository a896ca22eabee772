//! Payloads of events about models and tools: replies, usage, calls, outcomes and faults.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::approval::{RequiredApproval, Undo};
use super::super::document::{DocumentId, NamedDocument};
use crate::adapt::ToolPolicies;
use crate::fault::Fault;

/// A model's reply, as received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The message's text, often empty when there are calls.
    #[serde(default)]
    pub text: String,
    /// Function calls, in order.
    #[serde(default)]
    pub calls: Vec<ReplyCall>,
    /// `stop`, `tool_calls`, `length`, … as the provider reported it.
    pub finish_reason: Option<String>,
    /// The configured name of the model that replied.
    #[serde(default)]
    pub model: String,
}

impl Reply {
    /// The model's name in the reply of a part that a library's user has replaced.
    pub const REPLACED_MODEL: &str = "replaced";
}

/// One function call of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyCall {
    /// The provider's id. Some providers repeat ids, so it is never used as a key.
    pub id: String,
    /// The function's name as written.
    pub name: String,
    /// The arguments as written: JSON text, possibly malformed. An object sent in place of text is
    /// serialised.
    pub arguments: String,
}

/// Tokens and cost of model calls. Money is in nano-USD, so that sums are exact.
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
    /// Returns what was used since `before`.
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

/// The effect of a tool: it changes something, or only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It only reads.
    Read,
    /// It changes something outside the run.
    Write,
}

/// How a write with an unknown outcome may be repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Not at all: a person resolves the outcome.
    #[default]
    Never,
    /// With the same idempotency key, which the tool honours.
    Key,
}

/// A call requested by a scene's model, a plan or a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// Our own ordinal in the run, from 1.
    pub call: u32,
    /// The provider's id, sent back with the result.
    pub provider_id: String,
    /// The scene whose tool it is, where that is not its step's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scene: Option<String>,
    /// The tool's name as in the catalogue; as written, when unknown.
    pub tool: String,
    /// The parsed arguments.
    pub arguments: Value,
    /// Scene, tool and canonical (identity) arguments: calls with the same key are duplicates.
    pub key: String,
    /// Whether it writes.
    pub effect: Effect,
    /// How it may be repeated.
    pub repeat: Repeat,
    /// Why it is not executed at all: unknown tool, invalid arguments, not offered.
    pub problem: Option<Fault>,
    /// Why a person has to approve it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<RequiredApproval>,
    /// How it is undone, if its tool declares that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// Why the user has to confirm it before it is executed, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Unconfirmed>,
    /// For a repeatable tool: how many equal calls of its step, or of earlier steps of the same plan,
    /// precede it. Calls with different numbers are distinct.
    #[serde(default, skip_serializing_if = "crate::run::is_default")]
    pub occurrence: u32,
    /// A read whose result may change at any moment, so it is executed each time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// What its tool declares about its failures, in a run with a mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Box<ToolPolicies>>,
    /// SHA-256 in hex of what its tool does, in a run with a mode: an automatic repetition of a write calls the same
    /// tool or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

impl RequestedCall {
    /// A call that is made as it is: of its step's scene, needing no approval, of a tool that declares nothing but its effect.
    pub fn new(
        call: u32,
        tool: impl Into<String>,
        key: impl Into<String>,
        arguments: Value,
        effect: Effect,
    ) -> Self {
        Self {
            call,
            provider_id: String::new(),
            scene: None,
            tool: tool.into(),
            arguments,
            key: key.into(),
            effect,
            repeat: Repeat::Never,
            problem: None,
            approval: None,
            undo: None,
            confirm: None,
            occurrence: 0,
            volatile: false,
            policies: None,
            definition: None,
        }
    }
}

/// A call that a plan expects and that cannot be made as prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnpreparedCall {
    /// The tool.
    pub tool: String,
    /// The arguments as prepared; null if there are none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    /// Why it is not made.
    pub why: String,
}

/// A call that the author of a plan prepared and that cannot be made as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnusableCall {
    /// The number of its step.
    pub step: u32,
    /// The call, and what is wrong with it.
    pub call: UnpreparedCall,
}

/// A write that is not executed before the user has confirmed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// The question to the user, which names the exact call, in the user's language.
    pub question: String,
    /// Why confirmation is needed, for the journal.
    pub why: Vec<String>,
    /// SHA-256 in hex of the tool's definition at that time.
    pub tool: String,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Done.
    Ok {
        /// What the tool returned, truncated to what a model is shown of it.
        result: Value,
        /// The result as a sentence in the user's language, where the scene has a phrase for it.
        say: Option<String>,
        /// The whole result, where `result` is truncated and the whole is not too large to store. Undo
        /// arguments are taken from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Value>,
    },
    /// The tool refused, and did nothing.
    Refused {
        /// The reason.
        error: Fault,
    },
    /// It failed, and nothing was done.
    Failed {
        /// The reason.
        error: Fault,
    },
    /// A write whose outcome is unknown. Never repeated blindly.
    Unknown {
        /// What is known.
        error: Fault,
    },
}

impl Outcome {
    /// Why there is no result; `None` if there is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Ok { .. } => None,
            Self::Refused { error } | Self::Failed { error } | Self::Unknown { error } => Some(error),
        }
    }
}

/// Notes of the process that made a call about its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultNotes {
    /// In which ways the result is not as the tool declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<String>,
    /// The result of a read that was rejected for that: no evidence for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Value>,
    /// Whether `rejected` is the whole result of a read that has another shape than expected, and whose tool lets a model
    /// say where the expected values are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mappable: bool,
    /// The key under which the result is found later, when an equal call fails: SHA-256 in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
    /// The documents that the tool looked at: its result is what they say, and no evidence for the values of a write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<DocumentId>,
}

/// A question that only the user can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question, in the user's language.
    pub text: String,
    /// The tool that needs the answer, if any.
    pub tool: Option<String>,
    /// Names of the missing arguments or facts.
    pub missing: Vec<String>,
    /// What is known already, as arguments of that tool.
    #[serde(default)]
    pub known: Value,
    /// The documents of the user of which the reply may name some, where these are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<NamedDocument>,
}

/// The continuation check's verdict: the arguments of the forced tool `CheckContinuation`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// More work is needed, and scenes can do it.
    pub should_continue: bool,
    /// The results suffice for an answer.
    pub can_answer_now: bool,
    /// The reason.
    #[serde(default)]
    pub reasoning: String,
    /// A description of what is missing.
    pub missing_information: Option<String>,
    /// The answer itself, with `planning.answer_with_check`.
    pub answer: Option<String>,
}
