//! Language models: what is asked, what comes back, and who can be asked.
//!
//! [`Gateway`] is the only way from this program to a model. Behind it stand [`Provider`]s: servers of
//! the OpenAI protocol ([`openai`]) and the embedded rules. [`reader`] understands forced replies,
//! [`tokens`] and [`Price`] count what they cost.
//!
//! **Invariant:** nothing outside this module speaks to a provider; it knows `run` for the shapes of
//! replies and usage, and nothing of scenes, planners or actors.

pub mod breaker;
pub mod budget;
pub mod cache;
mod caller;
mod embedded;
mod error;
mod gateway;
mod guards;
pub mod language;
pub mod limits;
pub mod offline;
pub mod openai;
mod options;
mod prices;
mod probe;
mod provider;
pub mod reader;
mod retry;
pub mod sections;
pub mod signature;
mod sink;
mod ticks;
pub mod tokens;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run::{Attempt, Reply, ReplyCall, Usage};
use crate::schema::Schema;

pub use budget::Budget;
pub use cache::{Cache, Confirm};
pub use caller::Caller;
pub use error::{Error, ErrorKind};
pub use gateway::Gateway;
pub use guards::Guards;
pub use limits::RateLimits;
pub use options::{
    ADDRESS_VARIABLE, Forcing, KEY_VARIABLE, MODEL_VARIABLE, ModelOptions, OFFLINE, Options, StreamMode,
};
pub use prices::Price;
pub use probe::{Latency, Probe, Tried, Worked};
pub use provider::{CallControl, Provider};
pub use sink::{Listener, Sink};

/// What a call to a model is for. Models, limits, caching and figures can differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Make a plan.
    Plan,
    /// Judge whether the request is answered.
    Continuation,
    /// Carry out a step with a scene's tools.
    Scene,
    /// Word the answer.
    Answer,
    /// Shorten a conversation.
    Summary,
}

impl Purpose {
    /// Every purpose there is.
    pub const ALL: [Purpose; 5] =
        [Purpose::Plan, Purpose::Continuation, Purpose::Scene, Purpose::Answer, Purpose::Summary];

    /// Its name in the configuration, the journal and figures.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Plan => "plan",
            Purpose::Continuation => "continuation",
            Purpose::Scene => "scene",
            Purpose::Answer => "answer",
            Purpose::Summary => "summary",
        }
    }
}

impl std::fmt::Display for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One question to a model, independent of any provider's protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What it is for.
    pub purpose: Purpose,
    /// The conversation with the model, in order.
    pub messages: Vec<Message>,
    /// The functions it may call.
    pub tools: Vec<ToolSpec>,
    /// Whether and which function it must call.
    pub choice: ToolChoice,
    /// Sampling temperature; `None` leaves the provider's default.
    pub temperature: Option<f32>,
    /// Most tokens of the reply; `None` takes the model's own setting.
    pub max_output_tokens: Option<u32>,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Standing instructions.
    System {
        /// Text, in [`sections`] where it carries data.
        text: String,
    },
    /// What is asked.
    User {
        /// Text, in [`sections`] where it carries data.
        text: String,
    },
    /// An earlier reply of the model.
    Assistant {
        /// Its words.
        text: String,
        /// Its calls.
        calls: Vec<ReplyCall>,
    },
    /// The result of a call.
    Tool {
        /// The id of the call, as in the message before.
        call_id: String,
        /// The result, as JSON text.
        text: String,
    },
}

/// A function that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Schema,
    /// Whether the provider is to hold the model to the schema (`strict`).
    pub strict: bool,
}

/// Whether a model must call a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// It may not.
    None,
    /// It may.
    Auto,
    /// It must call this one.
    Forced(String),
}

/// A model's reply with what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// What came back.
    pub reply: Reply,
    /// Tokens and money; estimated where the provider did not say.
    pub usage: Usage,
    /// From the question to the beginning of the reply, where it was streamed.
    pub first_token: Option<Duration>,
}

/// A reply as the gateway gives it.
#[derive(Debug)]
pub struct Replied {
    /// What came back.
    pub reply: Reply,
    /// Tokens and money of all attempts; nothing for a reply that was there already.
    pub usage: Usage,
    /// Each attempt on the way, the last of which gave the reply.
    pub attempts: Vec<Attempt>,
    /// Whether no model was asked: the reply was kept, or an equal question was under way.
    pub cached: bool,
    /// To be told whether the reply could be used.
    pub confirm: Confirm,
}
