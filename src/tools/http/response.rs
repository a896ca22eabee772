//! From a response to a result or an error.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use super::Http;
use crate::tools::ToolError;

/// How much of a refusal's body is read, in bytes, and told, in characters.
const REFUSAL_BYTES: usize = 4096;
const REFUSAL_CHARS: usize = 300;

/// What the `Content-Type` says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Text,
    Unsaid,
    Other,
}

impl Http {
    /// The result or the error that a response means. `taken`: it is only the answer to a write that
    /// was carried out before.
    pub(super) async fn answered(
        &self,
        place: &str,
        mut response: Response,
        taken: bool,
    ) -> Result<Value, ToolError> {
        let status = response.status();
        if !status.is_success() {
            let (body, _) = read(&mut response, REFUSAL_BYTES).await.unwrap_or_default();
            return Err(self.refusal(place, status, &String::from_utf8_lossy(&body), taken));
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(|value| value.split(';').next().unwrap_or_default().trim().to_lowercase());
        let kind = match content_type.as_deref() {
            None | Some("") => Kind::Unsaid,
            Some(t) if t.ends_with("/json") || t.ends_with("+json") => Kind::Json,
            Some(t) if t.starts_with("text/") => Kind::Text,
            Some(_) => Kind::Other,
        };
        if kind == Kind::Other {
            let content_type = content_type.unwrap_or_default();
            return self.odd(
                json!({"status": status.as_u16(), "content_type": content_type}),
                format!("{place} answered with {content_type}, and JSON or text can be read"),
            );
        }
        let (bytes, cut) = read(&mut response, self.max_response_bytes).await.map_err(|_| {
            self.lost("http.connection_lost", format!("{place} answered {status}, and its answer broke off"))
        })?;
        self.result(place, status, kind, &bytes, cut.then(|| response.content_length()))
    }

    fn result(
        &self,
        place: &str,
        status: StatusCode,
        kind: Kind,
        bytes: &[u8],
        cut: Option<Option<u64>>,
    ) -> Result<Value, ToolError> {
        let text = String::from_utf8_lossy(bytes);
        if let Some(total) = cut {
            let shown = json!({
                "truncated": true, "shown_bytes": bytes.len(), "total_bytes": total,
                "value": self.without_secrets_cut(text.trim_end_matches('\u{fffd}').to_owned()),
            });
            if kind == Kind::Text && self.result.is_none() {
                return Ok(shown);
            }
            let most = self.max_response_bytes;
            return self.odd(shown, format!("{place} answered with more than {most} bytes: ask for less"));
        }
        if text.trim().is_empty() {
            let nothing = json!({"status": status.as_u16()});
            return match self.result {
                None => Ok(nothing),
                Some(_) => self.odd(nothing, format!("{place} answered {status} with nothing")),
            };
        }
        let parsed = match kind {
            Kind::Text => None,
            _ => serde_json::from_slice::<Value>(bytes).ok(),
        };
        let value = match parsed {
            Some(value) => self.redacted(value),
            None => {
                let value = Value::String(self.without_secrets(text.into_owned()));
                if kind == Kind::Json || self.result.is_some() {
                    return self
                        .odd(value, format!("{place} answered {status} with something that is no JSON"));
                }
                value
            }
        };
        match &self.result {
            None => Ok(value),
            Some(pointer) => match value.pointer(pointer) {
                Some(found) => Ok(found.clone()),
                None => self.odd(value.clone(), format!("the answer of {place} has nothing at {pointer}")),
            },
        }
    }

    /// A success whose answer is not as expected: of no use to a read, but a write was carried out all
    /// the same, and what came back is its result.
    fn odd(&self, shown: Value, message: String) -> Result<Value, ToolError> {
        if self.write {
            return Ok(shown);
        }
        Err(ToolError::failed("http.unexpected_answer", self.without_secrets(message)))
    }

    fn refusal(&self, place: &str, status: StatusCode, body: &str, taken: bool) -> ToolError {
        // Blotted out before it is cut, since half a secret would not be recognised.
        let words = self.without_secrets(body.split_whitespace().collect::<Vec<_>>().join(" "));
        let mut message = self.without_secrets(format!("{place} answered {status}"));
        if !words.is_empty() {
            message.push_str(": ");
            message.extend(words.chars().take(REFUSAL_CHARS));
        }
        let later = matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        );
        match (self.write, status.is_client_error()) {
            (true, true) if !taken && later => ToolError::failed("http.status", message),
            (true, true) if !taken => ToolError::refused("http.status", message),
            (true, _) => ToolError::unknown("http.status", message),
            (false, _) => ToolError::failed("http.status", message),
        }
    }

    /// A server may send back what it was sent.
    fn redacted(&self, value: Value) -> Value {
        if self.secrets.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.without_secrets(text)),
            Value::Array(elements) => elements.into_iter().map(|element| self.redacted(element)).collect(),
            Value::Object(fields) => Value::Object(
                fields.into_iter().map(|(name, v)| (self.without_secrets(name), self.redacted(v))).collect(),
            ),
            other => other,
        }
    }
}

/// At most `most` bytes of the body, and whether there are more.
async fn read(response: &mut Response, most: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = most - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok((bytes, true));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, false))
}
