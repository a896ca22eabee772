//! What models and tools say, as events carry it: replies, what they cost, calls, how these ended, and why
//! something did not work.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::approval::{Needed, Undo};

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
    /// Why the user has to confirm it before it is done, where the user has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Unconfirmed>,
    /// Of a repeatable tool: how many equal calls of its step, or of steps that come before it in the same
    /// plan, precede it. Calls with different numbers are different acts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub occurrence: u32,
    /// A read that is made each time: what it finds may change at any moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A write that is not done before the user has confirmed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// The question to the user, which names the exact call, in the user's language.
    pub question: String,
    /// Why it is asked, for the journal.
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
