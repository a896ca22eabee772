//! Requests of the OpenAI protocol. Unsupported parameters that would change the meaning of the answer are
//! rejected by name.

use actix_web::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::messages::{self, MessageRole, ParsedChat, TextMessage};
use super::super::problem::Problem;
use super::MODEL;
use super::error::Error;

/// The body of `POST /v1/chat/completions`. Fields that are not listed have no effect.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(crate) struct CompletionRequest {
    /// `proscenium`.
    #[schema(pattern = "^proscenium$")]
    pub(crate) model: String,
    /// The conversation; the last message of the user is the request.
    #[schema(min_items = 1)]
    pub(crate) messages: Vec<InputMessage>,
    /// Whether the answer is streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<bool>,
    /// What a stream contains besides the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream_options: Option<StreamOptions>,
    /// Not supported: this server's tools are its scenes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) tools: Option<Value>,
    /// Only `none` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(crate) tool_choice: Option<Value>,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) functions: Option<Value>,
    /// Only `{"type": "text"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) response_format: Option<Value>,
    /// Only 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1)]
    pub(crate) n: Option<u32>,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(crate) stop: Option<Value>,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) logprobs: Option<bool>,
    /// Only `["text"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) modalities: Option<Vec<String>>,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) audio: Option<Value>,
}

/// What a stream contains besides the answer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(crate) struct StreamOptions {
    /// Whether to send a last chunk with the usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) include_usage: Option<bool>,
}

/// One message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(crate) struct InputMessage {
    /// `system`, `developer`, `user` or `assistant`.
    #[schema(pattern = "^(system|developer|user|assistant)$")]
    pub(crate) role: String,
    /// Text, or parts of type `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<MessageContent>,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) tool_calls: Option<Value>,
}

/// The content of a message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum MessageContent {
    /// As text.
    Text(String),
    /// As parts.
    Parts(Vec<ContentPart>),
}

/// A part of a message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(crate) struct ContentPart {
    /// Only `text`.
    #[serde(rename = "type")]
    #[schema(rename = "type", pattern = "^text$")]
    pub(crate) kind: String,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// The error for any other model.
pub(crate) fn unknown_model(name: &str) -> Error {
    let name: String = name.chars().take(80).collect();
    let detail = format!("the model `{name}` does not exist here: this server is the model `{MODEL}`");
    Error::with_param(Problem::new(StatusCode::NOT_FOUND, "model_not_found", detail), "model")
}

fn is_present(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
}

impl CompletionRequest {
    pub(crate) fn is_streamed(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn with_usage(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_usage).unwrap_or(false)
    }

    /// Rejects unsupported parameters.
    pub(crate) fn check_supported(&self) -> Result<(), Error> {
        if self.model != MODEL {
            return Err(unknown_model(&self.model));
        }
        let tools = "this server's tools are its scenes; it does not call a client's tools. Remove it";
        for (name, value) in [("tools", &self.tools), ("functions", &self.functions)] {
            if is_present(value.as_ref()) {
                return Err(Error::unsupported(name, tools));
            }
        }
        if self
            .tool_choice
            .as_ref()
            .is_some_and(|choice| !choice.is_null() && !matches!(choice.as_str(), Some("none" | "auto")))
        {
            return Err(Error::unsupported("tool_choice", tools));
        }
        if let Some(format) = self.response_format.as_ref().filter(|format| !format.is_null())
            && format.get("type").and_then(Value::as_str) != Some("text")
        {
            return Err(Error::unsupported(
                "response_format",
                "answers are text; only {\"type\": \"text\"} is supported",
            ));
        }
        if self.n.is_some_and(|n| n != 1) {
            return Err(Error::unsupported("n", "there is exactly one answer; remove it, or send 1"));
        }
        if is_present(self.stop.as_ref()) {
            return Err(Error::unsupported("stop", "an answer is always complete; remove it"));
        }
        if self.logprobs == Some(true) {
            return Err(Error::unsupported(
                "logprobs",
                "they are not available for answers of scenes; remove it",
            ));
        }
        if self.modalities.as_ref().is_some_and(|kinds| kinds.iter().any(|kind| kind != "text")) {
            return Err(Error::unsupported("modalities", "only text is supported"));
        }
        if is_present(self.audio.as_ref()) {
            return Err(Error::unsupported("audio", "only text is supported"));
        }
        Ok(())
    }

    /// The conversation as text messages.
    pub(crate) fn into_chat(self, max: usize) -> Result<ParsedChat, Error> {
        let parsed: Result<Vec<TextMessage>, Error> =
            self.messages.into_iter().enumerate().map(|(i, message)| message.into_message(i)).collect();
        messages::parse_messages(parsed?, max).map_err(|problem| Error::with_param(problem, "messages"))
    }
}

impl InputMessage {
    fn into_message(self, at: usize) -> Result<TextMessage, Error> {
        let place = |field: &str| format!("messages[{at}].{field}");
        let role = match self.role.as_str() {
            "system" | "developer" => MessageRole::System,
            "user" => MessageRole::User,
            "assistant" => MessageRole::Assistant,
            "tool" | "function" => {
                return Err(Error::unsupported(&place("role"), "a client's own tools are not supported"));
            }
            _ => {
                let why = "must be `system`, `developer`, `user` or `assistant`";
                return Err(Error::unsupported(&place("role"), why));
            }
        };
        if is_present(self.tool_calls.as_ref()) {
            return Err(Error::unsupported(&place("tool_calls"), "a client's own tools are not supported"));
        }
        let text = match self.content {
            Some(MessageContent::Text(text)) => text,
            Some(MessageContent::Parts(parts)) => {
                let mut texts = Vec::with_capacity(parts.len());
                for part in parts {
                    match (part.kind.as_str(), part.text) {
                        ("text", Some(text)) => texts.push(text),
                        ("text", None) => {
                            return Err(Error::unsupported(
                                &place("content"),
                                "a part of type `text` needs `text`",
                            ));
                        }
                        (kind, _) => {
                            let kind: String = kind.chars().take(40).collect();
                            let why = format!("parts of type `{kind}` are not supported: only `text` is");
                            return Err(Error::unsupported(&place("content"), &why));
                        }
                    }
                }
                texts.join("\n")
            }
            None => return Err(Error::unsupported(&place("content"), "a message needs text")),
        };
        Ok(TextMessage { role, text })
    }
}
