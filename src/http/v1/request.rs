//! Requests of the OpenAI protocol. Unsupported parameters that would change the meaning of the answer are
//! rejected by name; what chat applications send by default is read leniently.

use actix_web::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::super::messages::{self, ChatRole, ParsedChat, TextMessage};
use super::super::problem::Problem;
use super::error::Error;
use super::{MODEL, lenient};

/// The body of `POST /v1/chat/completions`. Fields that are not listed have no effect.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(expecting = "an object with `model` and `messages`")]
pub(crate) struct CompletionRequest {
    /// `proscenium`.
    #[schema(pattern = "^proscenium$")]
    pub(crate) model: String,
    /// The conversation; the last message of the user is the request.
    #[schema(min_items = 1)]
    pub(crate) messages: Vec<InputMessage>,
    /// Whether the answer is streamed; 1 and 0 are read as `true` and `false`.
    #[serde(default, deserialize_with = "lenient::flag", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = lenient::flag_schema)]
    pub(crate) stream: Option<bool>,
    /// The further contents of a stream besides the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream_options: Option<StreamOptions>,
    /// Not supported: this server's tools are its scenes. Ignored with `tool_choice: "none"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) tools: Option<Value>,
    /// Only `none` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(crate) tool_choice: Option<Value>,
    /// Not supported. Ignored with `function_call: "none"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) functions: Option<Value>,
    /// Only `none` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(crate) function_call: Option<Value>,
    /// Only `{"type": "text"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) response_format: Option<Value>,
    /// Only 1.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1)]
    pub(crate) n: Option<u32>,
    /// Not supported; empty strings are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(crate) stop: Option<Value>,
    /// Not supported.
    #[serde(default, deserialize_with = "lenient::flag", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = lenient::flag_schema)]
    pub(crate) logprobs: Option<bool>,
    /// Only 0.
    #[serde(default, deserialize_with = "lenient::count", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 0)]
    pub(crate) top_logprobs: Option<u32>,
    /// Not supported: what is searched is decided by scenes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) web_search_options: Option<Value>,
    /// Only `["text"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) modalities: Option<Vec<String>>,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) audio: Option<Value>,
}

/// The further contents of a stream besides the answer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(crate) struct StreamOptions {
    /// Whether to send a last chunk with the usage.
    #[serde(default, deserialize_with = "lenient::flag", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = lenient::flag_schema)]
    pub(crate) include_usage: Option<bool>,
}

/// One message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(expecting = "an object with `role` and `content`")]
pub(crate) struct InputMessage {
    /// `system`, `developer`, `user` or `assistant`. Messages of a `tool` or `function` are ignored if a message
    /// of the user follows.
    #[schema(pattern = "^(system|developer|user|assistant|tool|function)$")]
    pub(crate) role: String,
    /// Text, or parts of type `text`. Only a message of the user needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<MessageContent>,
    /// Calls of another model's tools; ignored if a message of the user follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub(crate) tool_calls: Option<Value>,
}

/// The content of a message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged, expecting = "expected text, or a list of objects with `type` and `text`")]
pub(crate) enum MessageContent {
    /// As text.
    Text(String),
    /// As parts.
    Parts(Vec<ContentPart>),
}

/// A part of a message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub(crate) struct ContentPart {
    /// `text`, also called `input_text` and `output_text`. A `refusal` of the assistant is ignored, and so are other
    /// parts, such as images, if a message of the assistant follows.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub(crate) kind: String,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

pub(crate) fn unknown_model(name: &str) -> Error {
    let name: String = name.chars().take(80).collect();
    let detail = format!("the model `{name}` does not exist here: this server is the model `{MODEL}`");
    Error::with_param(Problem::new(StatusCode::NOT_FOUND, "model_not_found", detail), "model")
}

/// Whether a parameter says anything: not null, and not an empty string, list or object.
fn is_present(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => list.iter().any(|item| is_present(Some(item))),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

/// Whether a choice of tools is this word.
fn is_choice(choice: Option<&Value>, word: &str) -> bool {
    choice.and_then(Value::as_str) == Some(word)
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
        self.check_tools()?;
        if let Some(format) = self.response_format.as_ref().filter(|format| is_present(Some(format)))
            && format.get("type").and_then(Value::as_str) != Some("text")
        {
            return Err(Error::unsupported(
                "response_format",
                "answers are text; only {\"type\": \"text\"} is supported",
            ));
        }
        let has_search = self.web_search_options.as_ref().is_some_and(|options| !options.is_null());
        let is_spoken = self.modalities.as_ref().is_some_and(|kinds| kinds.iter().any(|kind| kind != "text"));
        let scores = "they are not available for answers of scenes; remove it";
        for (name, is_refused, why) in [
            ("n", self.n.is_some_and(|n| n != 1), "there is exactly one answer; remove it, or send 1"),
            ("stop", is_present(self.stop.as_ref()), "an answer is always complete; remove it"),
            ("logprobs", self.logprobs == Some(true), scores),
            ("top_logprobs", self.top_logprobs.is_some_and(|count| count != 0), scores),
            ("web_search_options", has_search, "the scenes decide what is searched; remove it"),
            ("modalities", is_spoken, "only text is supported"),
            ("audio", is_present(self.audio.as_ref()), "only text is supported"),
        ] {
            if is_refused {
                return Err(Error::unsupported(name, why));
            }
        }
        Ok(())
    }

    /// Rejects tools of the client, unless it forbids their use.
    fn check_tools(&self) -> Result<(), Error> {
        let why = "this server's tools are its scenes; it does not call a client's tools. Remove it";
        for (tools, tool_list, choice, chosen) in [
            ("tools", &self.tools, "tool_choice", &self.tool_choice),
            ("functions", &self.functions, "function_call", &self.function_call),
        ] {
            let is_forbidden = is_choice(chosen.as_ref(), "none");
            if is_present(tool_list.as_ref()) && !is_forbidden {
                return Err(Error::unsupported(tools, why));
            }
            if is_present(chosen.as_ref()) && !is_forbidden && !is_choice(chosen.as_ref(), "auto") {
                return Err(Error::unsupported(choice, why));
            }
        }
        Ok(())
    }

    /// The conversation as text messages, and how many of the oldest were left out because there are more than
    /// `max`.
    pub(crate) fn into_chat(self, max: usize) -> Result<(ParsedChat, usize), Error> {
        let last_of = |role: &str| self.messages.iter().rposition(|message| message.role == role);
        let (request_at, answered_at) = (last_of("user"), last_of("assistant"));
        let mut texts = Vec::with_capacity(self.messages.len());
        for (at, message) in self.messages.into_iter().enumerate() {
            let is_history = request_at.is_some_and(|request| at < request);
            let is_answered = answered_at.is_some_and(|answer| at < answer);
            texts.extend(message.into_message(at, is_history, is_answered)?);
        }
        let invalid = |problem| Error::with_param(problem, "messages");
        let omitted = messages::omit_oldest(&mut texts, max);
        let chat = messages::parse_messages(texts, max).map_err(invalid)?;
        Ok((chat, omitted))
    }
}

impl InputMessage {
    /// The message as text; `None` if it says nothing. `is_history` if a message of the user follows, `is_answered`
    /// if one of the assistant does.
    fn into_message(
        self,
        at: usize,
        is_history: bool,
        is_answered: bool,
    ) -> Result<Option<TextMessage>, Error> {
        let place = |field: &str| format!("messages[{at}].{field}");
        let own_tools = "a client's own tools are not supported";
        let role = match self.role.as_str() {
            "system" | "developer" => ChatRole::System,
            "user" => ChatRole::User,
            "assistant" => ChatRole::Assistant,
            "tool" | "function" if is_history => return Ok(None),
            "tool" | "function" => return Err(Error::unsupported(&place("role"), own_tools)),
            _ => {
                let why = "must be `system`, `developer`, `user` or `assistant`";
                return Err(Error::unsupported(&place("role"), why));
            }
        };
        if is_present(self.tool_calls.as_ref()) && !is_history {
            return Err(Error::unsupported(&place("tool_calls"), own_tools));
        }
        let content = self.content.map(|content| content.into_text(role, is_answered)).transpose();
        let content = content.map_err(|why| Error::unsupported(&place("content"), &why))?;
        match (role, content) {
            (ChatRole::System, None) => Ok(None),
            (ChatRole::User, None) => Err(Error::unsupported(&place("content"), "a message needs text")),
            // An answer that was cut off keeps its place: the request before it is not repeated.
            (_, content) => Ok(Some(TextMessage { role, text: content.unwrap_or_default() })),
        }
    }
}

impl MessageContent {
    /// The text, or why there is none. Images and other parts of a message that was answered are ignored: another
    /// model may have seen them.
    fn into_text(self, role: ChatRole, is_answered: bool) -> Result<String, String> {
        let parts = match self {
            Self::Text(text) => return Ok(text),
            Self::Parts(parts) => parts,
        };
        let mut texts = Vec::with_capacity(parts.len());
        for part in parts {
            match (part.kind.as_str(), part.text) {
                ("text" | "input_text" | "output_text", Some(text)) => texts.push(text),
                ("text" | "input_text" | "output_text", None) => {
                    return Err(format!("a part of type `{}` needs `text`", part.kind));
                }
                ("refusal", _) if role == ChatRole::Assistant => {}
                _ if is_answered => {}
                (kind, _) => {
                    let kind: String = kind.chars().take(40).collect();
                    return Err(format!("parts of type `{kind}` are not supported: only `text` is"));
                }
            }
        }
        Ok(texts.join("\n"))
    }
}
