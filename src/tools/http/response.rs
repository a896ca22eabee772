//! Turns a response into a result or an error.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::HttpTool;
use super::charset::{charset, in_utf8};
use crate::long_integers;
use crate::retry_after::retry_after;
use crate::run::FaultClass;
use crate::tools::ToolError;

/// How much of an error response's body is read, in bytes, and reported, in characters.
const REFUSAL_BYTES: usize = 4096;
const REFUSAL_CHARS: usize = 300;
/// How long the body of an error response is waited for: its status says already whether a write was done.
const REFUSAL_WAIT: Duration = Duration::from_millis(500);

/// The kind of content, from `Content-Type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Json,
    Text,
    /// HTML that the tool did not ask for: a page for people, or anything from a server that labels all so.
    Html,
    Unspecified,
    Other,
}

impl HttpTool {
    /// Reads the response's result or error. `taken` means that a server that redirected here
    /// may have executed the write, so that this may be only its response.
    pub(super) async fn read_response(
        &self,
        place: &str,
        mut response: Response,
        taken: bool,
    ) -> Result<Value, ToolError> {
        let status = response.status();
        if !status.is_success() {
            let body = tokio::time::timeout(REFUSAL_WAIT, read_bounded(&mut response, REFUSAL_BYTES)).await;
            let (body, _) = body.ok().and_then(Result::ok).unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            let wait = retry_after(response.headers(), Timestamp::now());
            return Err(self.error_status(place, status, &body, taken).after(wait));
        }
        let named = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let charset = named.and_then(charset);
        let content_type =
            named.map(|value| value.split(';').next().unwrap_or_default().trim().to_lowercase());
        let kind = match content_type.as_deref() {
            None | Some("") => ContentKind::Unspecified,
            Some(t) if t.ends_with("/json") || t.ends_with("+json") => ContentKind::Json,
            Some("text/html" | "application/xhtml+xml") if !self.chooses_content() => ContentKind::Html,
            Some(t) if t.starts_with("text/") => ContentKind::Text,
            Some(_) => ContentKind::Other,
        };
        if kind == ContentKind::Other {
            let content_type = content_type.unwrap_or_default();
            return self.unexpected_answer(
                json!({"status": status.as_u16(), "content_type": content_type}),
                format!("{place} answered with {content_type}, but only JSON and text are supported"),
            );
        }
        let (bytes, cut) = read_bounded(&mut response, self.max_response_bytes).await.map_err(|_| {
            self.unknown_outcome(
                "http.connection_lost",
                FaultClass::Unavailable,
                format!("{place} answered {status}, and the response was interrupted"),
            )
        })?;
        let Some(bytes) = in_utf8(&bytes, charset.as_deref()) else {
            let charset = charset.unwrap_or_default();
            return self.unexpected_answer(
                json!({"status": status.as_u16(), "charset": charset}),
                format!("{place} answered in {charset}, but only UTF-8 and Latin-1 are supported"),
            );
        };
        self.result(place, status, kind, &bytes, cut.then(|| response.content_length()))
    }

    fn result(
        &self,
        place: &str,
        status: StatusCode,
        kind: ContentKind,
        bytes: &[u8],
        cut: Option<Option<u64>>,
    ) -> Result<Value, ToolError> {
        let text = String::from_utf8_lossy(bytes);
        if kind == ContentKind::Html && text.trim_start().starts_with('<') {
            let message = format!("{place} answered {status} with a web page instead of data");
            // Often a login form, so a write may not have been done.
            return Err(self.unknown_outcome("http.unexpected_answer", FaultClass::BadData, message));
        }
        if let Some(total) = cut {
            return self.truncated_result(place, kind, &text, (bytes.len(), total));
        }
        if text.trim().is_empty() {
            let nothing = json!({"status": status.as_u16()});
            return match self.result {
                None => Ok(nothing),
                Some(_) => {
                    self.unexpected_answer(nothing, format!("{place} answered {status} with an empty body"))
                }
            };
        }
        let parsed = match kind {
            ContentKind::Text => None,
            _ => long_integers::parse(bytes).ok(),
        };
        let value = match parsed {
            Some(value) => self.redact_value(value),
            None => {
                if kind == ContentKind::Json || self.result.is_some() {
                    return self.unexpected_answer(
                        json!({"status": status.as_u16()}),
                        format!("{place} answered {status} with a body that is not JSON"),
                    );
                }
                Value::String(self.redact(text.into_owned()))
            }
        };
        match &self.result {
            None => Ok(value),
            Some(pointer) => match value.pointer(pointer) {
                Some(found) => Ok(found.clone()),
                None => self.unexpected_answer(
                    value.clone(),
                    format!("the answer of {place} has nothing at {pointer}"),
                ),
            },
        }
    }

    /// The result of an answer with more than the allowed bytes: what was read, if it is text and may be any text.
    fn truncated_result(
        &self,
        place: &str,
        kind: ContentKind,
        text: &str,
        (shown, total): (usize, Option<u64>),
    ) -> Result<Value, ToolError> {
        let shown = json!({
            "truncated": true, "shown_bytes": shown, "total_bytes": total,
            "value": self.redact_truncated(text.trim_end_matches('\u{fffd}').to_owned()),
        });
        if kind == ContentKind::Text && self.result.is_none() {
            return Ok(shown);
        }
        let max = self.max_response_bytes;
        self.unexpected_answer(shown, format!("{place} answered with more than {max} bytes: ask for less"))
    }

    /// Whether the tool has an `Accept` header of its own.
    fn chooses_content(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == ACCEPT)
    }

    /// A success with an unexpected response: a failure for a read, but a completed write, whose result is what
    /// can be shown of the response.
    fn unexpected_answer(&self, shown: Value, message: String) -> Result<Value, ToolError> {
        if self.write {
            // The message has the address with the arguments in it.
            tracing::warn!(
                code = "http.unexpected_answer",
                "the answer to a write is neither JSON nor text, or not as declared"
            );
            tracing::debug!("{}", self.redact(message));
            return Ok(shown);
        }
        Err(ToolError::failed("http.unexpected_answer", self.redact(message)).classed(FaultClass::BadData))
    }

    fn error_status(&self, place: &str, status: StatusCode, body: &str, taken: bool) -> ToolError {
        // Redacted before it is truncated, because half a secret would not be recognized.
        let words = self.redact(body.split_whitespace().collect::<Vec<_>>().join(" "));
        let mut message = self.redact(format!("{place} answered {status}"));
        if !words.is_empty() {
            message.push_str(": ");
            message.extend(words.chars().take(REFUSAL_CHARS));
        }
        let later = matches!(status, StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
        // Proxies send it for a back end that is slow, too.
        let slow = status == StatusCode::REQUEST_TIMEOUT;
        let error = match (self.write, status.is_client_error()) {
            (true, true) if !taken && later => ToolError::failed("http.status", message),
            (true, true) if !taken && !slow => ToolError::refused("http.status", message),
            (true, _) => ToolError::unknown("http.status", message),
            (false, _) => ToolError::failed("http.status", message),
        };
        let class = FaultClass::of_status(status.as_u16());
        ToolError { status: Some(status.as_u16()), ..error.classed(class) }
    }

    /// Redacts a response, because a server may echo the secrets it received.
    fn redact_value(&self, value: Value) -> Value {
        if self.secrets.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.redact(text)),
            Value::Array(elements) => {
                elements.into_iter().map(|element| self.redact_value(element)).collect()
            }
            Value::Object(fields) => Value::Object(
                fields.into_iter().map(|(name, v)| (self.redact(name), self.redact_value(v))).collect(),
            ),
            other => other,
        }
    }
}

/// Reads at most `max` bytes of the body. Returns whether there are more.
async fn read_bounded(response: &mut Response, max: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = max - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok((bytes, true));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, false))
}
