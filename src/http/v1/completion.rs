//! The answer in the OpenAI protocol.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::MODEL;
use crate::run::RunId;
use crate::{Answer, AnswerUsage};

/// `chat.completion`
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Completion {
    /// `chatcmpl-` and the run's id.
    pub(crate) id: String,
    /// `chat.completion`.
    pub(crate) object: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// `proscenium`.
    pub(crate) model: String,
    /// One.
    pub(crate) choices: Vec<CompletionChoice>,
    /// Tokens of all calls to models that the answer took.
    pub(crate) usage: CompletionUsage,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CompletionChoice {
    /// 0.
    pub(crate) index: u32,
    /// The words.
    pub(crate) message: OutputMessage,
    /// None.
    #[schema(value_type = Option<Object>)]
    pub(crate) logprobs: Option<serde_json::Value>,
    /// `stop`.
    pub(crate) finish_reason: String,
}

/// The words of the answer.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct OutputMessage {
    /// `assistant`.
    pub(crate) role: String,
    /// The words.
    pub(crate) content: String,
    /// None.
    pub(crate) refusal: Option<String>,
}

/// Tokens.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct CompletionUsage {
    /// Of all prompts.
    pub(crate) prompt_tokens: u64,
    /// Of all replies.
    pub(crate) completion_tokens: u64,
    /// Both.
    pub(crate) total_tokens: u64,
    /// Of the prompts.
    pub(crate) prompt_tokens_details: PromptDetails,
}

/// Of the prompts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct PromptDetails {
    /// Those that providers had cached.
    pub(crate) cached_tokens: u64,
}

pub(crate) fn id(run: RunId) -> String {
    format!("chatcmpl-{run}")
}

pub(crate) fn now() -> i64 {
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

impl Completion {
    pub(crate) fn of(answer: &Answer, content: String) -> Self {
        let message = OutputMessage { role: "assistant".to_owned(), content, refusal: None };
        let choice = CompletionChoice { index: 0, message, logprobs: None, finish_reason: "stop".to_owned() };
        Self {
            id: id(answer.run_id),
            object: "chat.completion".to_owned(),
            created: now(),
            model: MODEL.to_owned(),
            choices: vec![choice],
            usage: CompletionUsage::of(&answer.usage),
        }
    }
}
