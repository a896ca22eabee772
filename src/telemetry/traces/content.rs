//! Texts of users, models and tools as attributes: bounded, and without the passwords of URLs and the API keys of this
//! server. API keys of models and secrets of tools are redacted before anything is journalled.

use serde_json::{Value, json};

use super::span::AttributeValue;
use crate::run::Reply;
use crate::setting::redact_secrets;

/// Maximum size of one text, in bytes.
const MAX_BYTES: usize = 4096;
/// Maximum number of calls of a reply that are shown.
const MAX_CALLS: usize = 16;

pub(super) fn text(text: &str) -> String {
    let mut shown = redact_secrets(text.to_owned());
    if shown.len() > MAX_BYTES {
        let end = (0..=MAX_BYTES).rev().find(|end| shown.is_char_boundary(*end)).unwrap_or_default();
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

pub(super) fn value(value: &Value) -> AttributeValue {
    AttributeValue::Text(text(&value.to_string()))
}

/// One message with one text, in the form of `gen_ai.input.messages`.
pub(super) fn message(role: &str, said: &str) -> AttributeValue {
    let message = json!([{"role": role, "parts": [{"type": "text", "content": text(said)}]}]);
    AttributeValue::Text(message.to_string())
}

/// A model's reply, in the form of `gen_ai.output.messages`.
pub(super) fn reply(reply: &Reply) -> AttributeValue {
    let said = (!reply.text.is_empty()).then(|| json!({"type": "text", "content": text(&reply.text)}));
    let calls = reply.calls.iter().take(MAX_CALLS).map(|call| {
        let (id, name, arguments) = (text(&call.id), text(&call.name), text(&call.arguments));
        json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
    });
    let parts: Vec<Value> = said.into_iter().chain(calls).collect();
    let reason = reply.finish_reason.as_deref().map(text);
    AttributeValue::Text(json!([{"role": "assistant", "parts": parts, "finish_reason": reason}]).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_and_have_no_passwords() {
        assert_eq!(text("see https://u:hunter2@host/"), "see https://u:***@host/");
        let long = text(&"é".repeat(MAX_BYTES));
        assert!(long.len() <= MAX_BYTES + '…'.len_utf8() && long.ends_with("é…"), "{}", long.len());
        let AttributeValue::Text(shown) = message("user", "say \"yes\"") else { panic!("no text") };
        let read: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read[0]["parts"][0]["content"], "say \"yes\"");
    }
}
