//! Language models: requests, replies and providers.
//!
//! [`Gateway`] is the only way from this program to a model. Behind it are [`Provider`]s: OpenAI-compatible
//! servers ([`openai`]) and the offline model. [`reader`] parses forced replies,
//! [`tokens`] and [`Price`] count what they cost.
//!
//! **Invariant:** nothing outside this module talks to a provider; it uses `run` for the types of
//! replies and usage, and nothing of scenes, planners or actors.

pub mod breaker;
pub mod budget;
pub mod cache;
mod caller;
mod digest;
mod embedded;
pub mod embeddings;
mod error;
mod fair_tasks;
pub mod functions;
mod gateway;
mod guards;
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
pub mod summaries;
mod ticks;
pub mod tokens;
mod vector_table;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run::{Attempt, Reply, ReplyCall, Usage};
use crate::schema::Schema;

pub use crate::run::Purpose;
pub use cache::Confirm;
pub use caller::Caller;
pub use digest::{DigestedRequest, RequestDigest};
pub use error::{Error, ErrorKind};
pub use gateway::Gateway;
pub use guards::{DisabledModels, GuardUnavailable, Guards, Unguarded};
pub use options::{
    ADDRESS_VARIABLE, Forcing, KEY_VARIABLE, MODEL_VARIABLE, ModelOptions, OFFLINE, Options, StreamMode,
};
pub use prices::Price;
pub use probe::{Latency, Probe, Tried, Worked};
pub use provider::{CallControl, Provider};
pub use sink::{Listener, Sink};
pub(crate) use vector_table::{VectorKey, VectorLookup, VectorTable};

/// One question to a model, independent of any provider's protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The purpose of the question.
    pub purpose: Purpose,
    /// The conversation with the model, in order.
    pub messages: Vec<Message>,
    /// The functions it may call.
    pub tools: Vec<ToolSpec>,
    /// Whether and which function it must call.
    pub choice: ToolChoice,
    /// Sampling temperature; `None` uses the provider's default.
    pub temperature: Option<f32>,
    /// Maximum number of reply tokens; `None` uses the model's setting.
    pub max_output_tokens: Option<u32>,
}

impl Request {
    /// The approximate size of its JSON text in bytes, so that a buffer need not grow.
    fn json_bytes(&self) -> usize {
        const FRAME: usize = 64;
        let message = |message: &Message| match message {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, calls } => {
                text.len() + calls.iter().map(|call| FRAME + call.arguments.len()).sum::<usize>()
            }
        };
        let messages: usize = self.messages.iter().map(|one| FRAME + message(one)).sum();
        let tool = |tool: &ToolSpec| FRAME + tool.description.len() + tool.parameters.json_bytes();
        // Quotes and line breaks are escaped.
        let texts = messages + self.tools.iter().map(tool).sum::<usize>();
        texts + texts / 8 + FRAME
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// System instructions.
    System {
        /// Text, in [`sections`] where it carries data.
        text: String,
    },
    /// The question.
    User {
        /// Text, in [`sections`] where it carries data.
        text: String,
    },
    /// An earlier reply of the model.
    Assistant {
        /// Its text.
        text: String,
        /// Its calls.
        calls: Vec<ReplyCall>,
    },
    /// The result of a call.
    Tool {
        /// The id of the call, as in the preceding message.
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
    /// A description of what it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Schema,
    /// Whether the provider must enforce the schema (`strict`).
    pub strict: bool,
}

/// The calls that a model may or must make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// No call allowed.
    None,
    /// Calls are optional.
    Auto,
    /// This function must be called.
    Forced(String),
}

/// A model's reply with what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The reply.
    pub reply: Reply,
    /// Tokens and cost; estimated if the provider did not report them.
    pub usage: Usage,
    /// Time to the first chunk of the reply, if it was streamed.
    pub first_token: Option<Duration>,
}

/// A reply as returned by the gateway.
#[derive(Debug)]
pub struct Replied {
    /// The reply.
    pub reply: Reply,
    /// Tokens and cost of all attempts; zero for a cached reply.
    pub usage: Usage,
    /// All attempts; the last one gave the reply.
    pub attempts: Vec<Attempt>,
    /// Whether no model was called: the reply was cached, or an equal question was in progress.
    pub cached: bool,
    /// Receives whether the reply was usable.
    pub confirm: Confirm,
}
