//! Reads chat completions as servers really send them, which is not always as the protocol says.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use super::super::error::ErrorKind;
use super::transport::error_object;
use crate::run::{Reply, ReplyCall};

/// Maximum number of calls in one reply; far more than any reader uses.
pub(super) const MAX_CALLS: usize = 1024;

/// The largest plausible number of tokens in a reported usage. It exceeds every context window; a report beyond
/// it is ignored, as if the provider had reported nothing.
const MAX_TOKENS: u64 = 100_000_000;

#[derive(Debug, Default)]
pub(super) struct ProviderReply {
    pub(super) reply: Reply,
    /// Absent if the server did not report it.
    pub(super) usage: Option<TokenUsage>,
    /// The time to the beginning of a streamed reply.
    pub(super) first_token: Option<Duration>,
}

/// Tokens as reported by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenUsage {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
}

/// Reads a completion that was not streamed.
pub(super) fn parse_whole(body: &Value) -> Result<ProviderReply, ErrorKind> {
    if body.get("error").is_some_and(|error| !error.is_null()) {
        return Err(error_object(body));
    }
    // A list, or an object with numbers for names.
    let choices = body.get("choices");
    let choice = choices.and_then(|choices| choices.get(0).or_else(|| choices.get("0")));
    let choice = choice.filter(|choice| choice.is_object()).ok_or_else(|| {
        let keys: Vec<&str> =
            body.as_object().map_or(vec![], |o| o.keys().take(8).map(String::as_str).collect());
        ErrorKind::Malformed { detail: format!("there is no choices[0]; its keys are {keys:?}") }
    })?;
    let message = choice.get("message").unwrap_or(choice);
    let fragments = calls_of(message);
    if fragments.len() > MAX_CALLS {
        return Err(too_many_calls());
    }
    let mut calls: Vec<ReplyCall> = fragments.into_iter().map(CallFragment::call).collect();
    make_ids_unique(&mut calls);
    let reply =
        Reply { text: words(message), calls, finish_reason: finish_reason(choice), model: String::new() };
    Ok(ProviderReply { reply, usage: usage(body), first_token: None })
}

/// The text of a message or delta: a string, parts, a refusal, or (old servers) `text`.
pub(super) fn words(message: &Value) -> String {
    for key in ["content", "refusal", "text"] {
        let text = flat(message.get(key).unwrap_or(&Value::Null));
        if !text.is_empty() {
            return text;
        }
    }
    String::new()
}

fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(flat).collect(),
        Value::Object(part) => part.get("text").map(flat).unwrap_or_default(),
        _ => String::new(),
    }
}

#[derive(Debug, Default)]
pub(super) struct CallFragment {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: String,
}

impl CallFragment {
    fn call(self) -> ReplyCall {
        ReplyCall {
            id: self.id.unwrap_or_default(),
            name: self.name.unwrap_or_default(),
            arguments: self.arguments,
        }
    }
}

/// The calls in a message or delta, with or without the `function` around name and arguments; also
/// the `function_call` of old servers.
pub(super) fn calls_of(message: &Value) -> Vec<CallFragment> {
    let old = message.get("function_call").filter(|call| call.is_object());
    match message.get("tool_calls") {
        Some(Value::Array(calls)) if !calls.is_empty() => calls.iter().map(part).collect(),
        Some(call @ Value::Object(_)) => vec![part(call)],
        _ => old.map(part).into_iter().collect(),
    }
}

fn part(call: &Value) -> CallFragment {
    let function = call.get("function").filter(|f| f.is_object()).unwrap_or(call);
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    CallFragment {
        index: call.get("index").and_then(Value::as_u64),
        id: text(call.get("id")),
        name: text(function.get("name")),
        arguments: match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(object) => object.to_string(),
        },
    }
}

/// Gives every call a unique id, by which results are matched to calls.
pub(super) fn make_ids_unique(calls: &mut [ReplyCall]) {
    let mut taken: HashSet<String> = HashSet::new();
    // Never reset, so that duplicate ids cost only one pass over all of them.
    let mut n = 0;
    for call in calls {
        while call.id.is_empty() || taken.contains(&call.id) {
            n += 1;
            call.id = format!("call_{n}");
        }
        taken.insert(call.id.clone());
    }
}

/// The error of a reply with more calls than [`MAX_CALLS`].
pub(super) fn too_many_calls() -> ErrorKind {
    ErrorKind::Malformed { detail: format!("more than {MAX_CALLS} calls in one reply") }
}

pub(super) fn finish_reason(choice: &Value) -> Option<String> {
    choice
        .get("finish_reason")
        .and_then(Value::as_str)
        .filter(|reported| !reported.is_empty())
        .map(str::to_owned)
}

/// The usage of a body or chunk; `None` also if a server reports no tokens for the prompt, or a number that is
/// implausible or unreadable: what is not known is charged as the most that it can cost.
pub(super) fn usage(body: &Value) -> Option<TokenUsage> {
    let usage = body.get("usage").filter(|usage| usage.is_object())?;
    let at = |path: &[&str]| path.iter().try_fold(usage, |value, name| value.get(name));
    let number = |paths: &[&[&str]]| {
        let mut found = paths.iter().filter_map(|path| at(path)).filter(|value| !value.is_null());
        found.next().map_or(Some(0), tokens_in)
    };
    let reported = TokenUsage {
        input: number(&[&["prompt_tokens"], &["input_tokens"]])?,
        cached: number(&[
            &["prompt_tokens_details", "cached_tokens"],
            &["input_tokens_details", "cached_tokens"],
            &["prompt_cache_hit_tokens"],
        ])?,
        output: number(&[&["completion_tokens"], &["output_tokens"]])?,
    };
    (reported.input > 0).then_some(reported)
}

/// A number of tokens, also as a text or with a fraction.
fn tokens_in(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64);
    let number = value.as_u64().or_else(float).or_else(|| value.as_str()?.parse().ok());
    number.filter(|tokens| *tokens <= MAX_TOKENS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(message: Value) -> Reply {
        parse_whole(&json!({"choices": [{"message": message, "surprise": 1}], "odd": {}})).unwrap().reply
    }

    #[test]
    fn content_is_read_in_every_form() {
        for (content, text) in [
            (json!("hello"), "hello"),
            (json!(null), ""),
            (json!([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]), "hello"),
            (json!(["hel", "lo"]), "hello"),
            (json!(7), ""),
        ] {
            assert_eq!(message(json!({"content": content})).text, text);
        }
        assert_eq!(message(json!({"content": null, "refusal": "no"})).text, "no");
    }

    #[test]
    fn calls_are_read_with_objects_for_arguments_and_without_ids() {
        let reply = message(json!({"tool_calls": [
            {"function": {"name": "a", "arguments": {"x": 1}}},
            {"id": "call_1", "function": {"name": "b", "arguments": "{"}},
            {"id": "call_1", "name": "c", "arguments": null},
        ]}));
        let calls: Vec<_> = reply.calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
        assert_eq!(calls, [("a", r#"{"x":1}"#), ("b", "{"), ("c", "")]);
        let ids: std::collections::BTreeSet<_> = reply.calls.iter().map(|c| &c.id).collect();
        assert_eq!(ids.len(), 3, "{:?}", reply.calls);
        let old = message(json!({"function_call": {"name": "a", "arguments": "{}"}}));
        assert_eq!(old.calls.len(), 1);
    }

    #[test]
    fn reported_usage_is_read() {
        let reported = usage(&json!({"usage": {"prompt_tokens": 9.0, "completion_tokens": "4",
            "prompt_tokens_details": {"cached_tokens": 3}}}));
        assert_eq!(reported, Some(TokenUsage { input: 9, cached: 3, output: 4 }));
        assert_eq!(usage(&json!({"usage": null})), None);
        assert_eq!(usage(&json!({"usage": {"prompt_tokens": 0}})), None);
        for absurd in [
            json!(1_u64 << 62),
            json!(u64::MAX),
            json!(1e300),
            json!(-5),
            json!("many"),
            json!(0),
            json!(null),
        ] {
            assert_eq!(usage(&json!({"usage": {"prompt_tokens": absurd, "completion_tokens": 4}})), None);
        }
        for absurd in [json!(-5), json!("many"), json!([4])] {
            assert_eq!(usage(&json!({"usage": {"prompt_tokens": 9, "completion_tokens": absurd}})), None);
        }
    }

    #[test]
    fn reply_with_too_many_calls_is_malformed() {
        let calls = |n: usize| -> Vec<Value> { (0..n).map(|_| json!({"function": {"name": "a"}})).collect() };
        let body = |n: usize| json!({"choices": [{"message": {"tool_calls": calls(n)}}]});
        assert_eq!(parse_whole(&body(MAX_CALLS)).unwrap().reply.calls.len(), MAX_CALLS);
        assert_eq!(parse_whole(&body(MAX_CALLS + 1)).unwrap_err().code(), "llm.malformed");
    }

    #[test]
    fn invalid_completions_are_distinguished() {
        let code = |body| parse_whole(&body).unwrap_err().code();
        assert_eq!(code(json!({"error": {"message": "busy", "code": 503}})), "llm.status");
        assert_eq!(code(json!({"choices": []})), "llm.malformed");
        assert_eq!(code(json!("hello")), "llm.malformed");
    }
}
