//! Replies of the OpenAI protocol.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::MODEL;
use crate::run::RunId;
use crate::{Answer, AnswerUsage};

/// A reply of the OpenAI protocol.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChatCompletion {
    /// `chatcmpl-` and the run's id.
    pub(crate) id: String,
    /// `chat.completion`.
    pub(crate) object: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// `proscenium`.
    pub(crate) model: String,
    /// Exactly one choice.
    pub(crate) choices: Vec<CompletionChoice>,
    /// Tokens of all model calls of the run.
    pub(crate) usage: CompletionUsage,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CompletionChoice {
    /// 0.
    pub(crate) index: u32,
    /// The text.
    pub(crate) message: OutputMessage,
    /// Always null.
    #[schema(value_type = Option<Object>)]
    pub(crate) logprobs: Option<serde_json::Value>,
    /// `stop`.
    pub(crate) finish_reason: String,
}

/// The answer as a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct OutputMessage {
    /// `assistant`.
    pub(crate) role: String,
    /// The text.
    pub(crate) content: String,
    /// Always null.
    pub(crate) refusal: Option<String>,
}

/// Token usage.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct CompletionUsage {
    /// Tokens of all prompts.
    pub(crate) prompt_tokens: u64,
    /// Tokens of all replies.
    pub(crate) completion_tokens: u64,
    /// The sum of both.
    pub(crate) total_tokens: u64,
    /// Details about the prompt tokens.
    pub(crate) prompt_tokens_details: PromptDetails,
}

/// Details about the prompt tokens.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct PromptDetails {
    /// Prompt tokens from the providers' caches.
    pub(crate) cached_tokens: u64,
}

pub(crate) fn completion_id(run: RunId) -> String {
    format!("chatcmpl-{run}")
}

pub(crate) fn unix_seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl CompletionUsage {
    pub(crate) fn of(usage: &AnswerUsage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached_input_tokens },
        }
    }
}

impl ChatCompletion {
    pub(crate) fn of(answer: &Answer, content: String) -> Self {
        let message = OutputMessage { role: "assistant".to_owned(), content, refusal: None };
        let choice = CompletionChoice { index: 0, message, logprobs: None, finish_reason: "stop".to_owned() };
        Self {
            id: completion_id(answer.run_id),
            object: "chat.completion".to_owned(),
            created: unix_seconds(),
            model: MODEL.to_owned(),
            choices: vec![choice],
            usage: CompletionUsage::of(&answer.usage),
        }
    }
}
