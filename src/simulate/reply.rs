//! Replies on the wire: whole, or as the events of a stream; and the faults that are part of their content.

use actix_web::web::Bytes;
use serde_json::{Value, json};

use super::fate::FaultKind;
use crate::llm::tokens;
use crate::run::{Reply, ReplyCall};

/// The fewest bytes of a piece of text: about a token.
const MIN_PIECE: usize = 4;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SimulatedUsage {
    pub(super) prompt: u64,
    /// Of these, reported as cached.
    pub(super) cached: u64,
    pub(super) completion: u64,
}

impl SimulatedUsage {
    fn json(self) -> Value {
        json!({"prompt_tokens": self.prompt, "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion, "prompt_tokens_details": {"cached_tokens": self.cached}})
    }
}

/// A part of a reply that is sent at once.
#[derive(Debug, Clone)]
pub(super) struct ReplyPiece {
    pub(super) bytes: Bytes,
    pub(super) tokens: u64,
}

#[derive(Debug, Clone)]
pub(super) struct SimulatedReply {
    pub(super) id: String,
    /// The model's name, as in the request.
    pub(super) model: String,
    /// Text and calls.
    pub(super) reply: Reply,
    /// Whether the arguments of its call are its text.
    pub(super) as_text: bool,
    /// Whether it was cut off at the most tokens that the request allows.
    pub(super) is_cut: bool,
    pub(super) usage: SimulatedUsage,
    pub(super) usage_reported: bool,
}

impl SimulatedReply {
    /// The same with a fault in its content; others leave it as it is.
    pub(super) fn spoiled(&self, fault: FaultKind) -> Self {
        let mut spoiled = self.clone();
        let reply = &mut spoiled.reply;
        match fault {
            FaultKind::MalformedCall => {
                if let Some(call) = reply.calls.last_mut() {
                    // An object that is cut off before its end is no JSON.
                    let half = call.arguments.len() / 2;
                    truncate(&mut call.arguments, half);
                }
            }
            FaultKind::WrongCall => {
                for call in &mut reply.calls {
                    call.name = "a_function_nobody_offered".to_owned();
                    call.arguments = json!({"unexpected": true}).to_string();
                }
            }
            FaultKind::IgnoredChoice => {
                reply.calls.clear();
                reply.text = "I will see to that right away.".to_owned();
            }
            FaultKind::RateLimited
            | FaultKind::ServerError
            | FaultKind::Timeout
            | FaultKind::SlowDrip
            | FaultKind::CutStream => {}
        }
        spoiled.usage.completion = tokens::reply(&spoiled.reply);
        spoiled
    }

    /// Cuts text and arguments off behind about so many tokens.
    pub(super) fn cut_at(&mut self, max: u64) {
        if tokens::reply(&self.reply) <= max {
            return;
        }
        let mut left = usize::try_from(max.saturating_mul(7) / 2).unwrap_or(usize::MAX);
        let reply = &mut self.reply;
        for text in
            std::iter::once(&mut reply.text).chain(reply.calls.iter_mut().map(|call| &mut call.arguments))
        {
            truncate(text, left);
            left = left.saturating_sub(text.len());
        }
        self.is_cut = true;
        self.usage.completion = tokens::reply(&self.reply).min(max);
    }

    /// The calls and the text as they are sent.
    fn sent(&self) -> (&str, &[ReplyCall]) {
        match self.reply.calls.as_slice() {
            [call] if self.as_text => (&call.arguments, &[]),
            calls => (&self.reply.text, calls),
        }
    }

    fn finish_reason(&self) -> &'static str {
        match self.sent().1 {
            _ if self.is_cut => "length",
            [] => "stop",
            _ => "tool_calls",
        }
    }

    pub(super) fn whole(&self) -> Bytes {
        let (text, calls) = self.sent();
        let calls: Vec<Value> = calls.iter().map(|call| whole_call(None, call)).collect();
        let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
        let mut body = json!({"id": self.id, "object": "chat.completion", "created": 0, "model": self.model,
            "choices": [choice]});
        if self.usage_reported {
            body["usage"] = self.usage.json();
        }
        Bytes::from(body.to_string())
    }

    /// The reply as at most `max` events (4 or more), and the end of the stream behind the last of them.
    pub(super) fn events(&self, max: usize, with_usage: bool) -> Vec<ReplyPiece> {
        let with_usage = with_usage && self.usage_reported;
        let mut deltas = self.deltas(max.saturating_sub(1 + usize::from(with_usage)).max(2));
        if let Some((first, _)) = deltas.first_mut() {
            first["role"] = "assistant".into();
        }
        let mut events: Vec<(Value, u64)> = Vec::with_capacity(deltas.len() + 2);
        events.extend(deltas.into_iter().map(|(delta, tokens)| (self.chunk(delta, None), tokens)));
        events.push((self.chunk(json!({}), Some(self.finish_reason())), 0));
        if with_usage {
            let mut last = self.chunk(json!({}), None);
            last["choices"] = json!([]);
            last["usage"] = self.usage.json();
            events.push((last, 0));
        }
        let end = events.len().saturating_sub(1);
        let event = |(at, (chunk, tokens)): (usize, (Value, u64))| {
            let done = if at == end { "data: [DONE]\n\n" } else { "" };
            ReplyPiece { bytes: Bytes::from(format!("data: {chunk}\n\n{done}")), tokens }
        };
        events.into_iter().enumerate().map(event).collect()
    }

    fn chunk(&self, delta: Value, finish: Option<&str>) -> Value {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        json!({"id": self.id, "object": "chat.completion.chunk", "created": 0, "model": self.model,
            "choices": [choice]})
    }

    /// The content in at most `room` parts, with their tokens.
    fn deltas(&self, room: usize) -> Vec<(Value, u64)> {
        let (text, calls) = self.sent();
        let parts = split(text, if calls.is_empty() { room } else { 1 });
        let mut deltas: Vec<(Value, u64)> =
            parts.into_iter().map(|part| (json!({"content": part}), tokens::text(part))).collect();
        let left = room.saturating_sub(deltas.len()).max(1);
        let tokens_of = |call: &ReplyCall| tokens::text(&call.name) + tokens::text(&call.arguments);
        if calls.len() > left {
            let numbered: Vec<(usize, &ReplyCall)> = calls.iter().enumerate().collect();
            for group in numbered.chunks(calls.len().div_ceil(left)) {
                let whole: Vec<Value> =
                    group.iter().map(|(index, call)| whole_call(Some(*index), call)).collect();
                let tokens = group.iter().map(|(_, call)| tokens_of(call)).sum();
                deltas.push((json!({"tool_calls": whole}), tokens));
            }
            return deltas;
        }
        for (index, call) in calls.iter().enumerate() {
            let parts = split(&call.arguments, left / calls.len());
            let (first, others) =
                parts.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
            let begun = ReplyCall { arguments: first.to_owned(), ..call.clone() };
            deltas.push((json!({"tool_calls": [whole_call(Some(index), &begun)]}), tokens_of(&begun)));
            for part in others {
                let piece = json!({"index": index, "function": {"arguments": part}});
                deltas.push((json!({"tool_calls": [piece]}), tokens::text(part)));
            }
        }
        deltas
    }
}

/// Cuts a text off behind at most so many bytes.
fn truncate(text: &mut String, max: usize) {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

fn whole_call(index: Option<usize>, call: &ReplyCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    let mut whole = json!({"id": call.id, "type": "function", "function": function});
    if let Some(index) = index {
        whole["index"] = index.into();
    }
    whole
}

/// A text in at most `max` parts of about the same length.
fn split(text: &str, max: usize) -> Vec<&str> {
    let size = text.len().div_ceil(max.max(1)).max(MIN_PIECE);
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

/// A body in at most `max` pieces of the same length, which hold `tokens` together.
pub(super) fn body_pieces(body: &Bytes, max: usize, tokens: u64) -> Vec<ReplyPiece> {
    let size = body.len().div_ceil(max.max(1)).max(1);
    let count = body.len().div_ceil(size).max(1) as u64;
    let starts = (0..body.len()).step_by(size);
    let piece = |start: usize| ReplyPiece {
        bytes: body.slice(start..body.len().min(start + size)),
        tokens: tokens.div_ceil(count),
    };
    starts.map(piece).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply(text: &str, calls: &[String]) -> SimulatedReply {
        let call = |(n, arguments): (usize, &String)| ReplyCall {
            id: format!("call_{n}"),
            name: format!("Tool{n}"),
            arguments: arguments.clone(),
        };
        SimulatedReply {
            id: "chatcmpl-1".to_owned(),
            model: "m".to_owned(),
            reply: Reply {
                text: text.to_owned(),
                calls: calls.iter().enumerate().map(call).collect(),
                ..Reply::default()
            },
            as_text: false,
            is_cut: false,
            usage: SimulatedUsage { prompt: 90, cached: 30, completion: 7 },
            usage_reported: true,
        }
    }

    /// What a client puts together of the events.
    fn assembled(events: &[ReplyPiece]) -> (String, Vec<(String, String, String)>, Vec<Value>) {
        let (mut text, mut calls) = (String::new(), Vec::<(String, String, String)>::new());
        let stream: String = events.iter().map(|event| std::str::from_utf8(&event.bytes).unwrap()).collect();
        let lines: Vec<&str> = stream.split_terminator("\n\n").collect();
        assert_eq!(lines.last(), Some(&"data: [DONE]"));
        let chunks: Vec<Value> = lines[..lines.len() - 1]
            .iter()
            .map(|line| serde_json::from_str(&line["data: ".len()..]).unwrap())
            .collect();
        for chunk in &chunks {
            let delta = &chunk["choices"][0]["delta"];
            text += delta["content"].as_str().unwrap_or_default();
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                if at == calls.len() {
                    calls.push((part(&call["id"]), part(&call["function"]["name"]), String::new()));
                }
                calls[at].2 += call["function"]["arguments"].as_str().unwrap();
            }
        }
        (text, calls, chunks)
    }

    proptest! {
        #[test]
        fn stream_has_at_most_so_many_chunks_and_is_the_reply(
            text in "[ -~àè]{0,200}",
            calls in proptest::collection::vec("[ -~àè]{0,120}", 0..40),
            max in 4..=20_usize,
        ) {
            let reply = reply(&text, &calls);
            let (read, read_calls, chunks) = assembled(&reply.events(max, true));
            prop_assert!(chunks.len() <= max, "{} chunks", chunks.len());
            prop_assert_eq!(read, text);
            let expected: Vec<_> =
                calls.iter().enumerate().map(|(n, a)| (format!("call_{n}"), format!("Tool{n}"), a.clone())).collect();
            prop_assert_eq!(read_calls, expected);
            prop_assert_eq!(&chunks[chunks.len() - 1]["usage"]["prompt_tokens_details"]["cached_tokens"], &json!(30));
        }

        #[test]
        fn pieces_of_a_body_are_the_body(length in 0..5_000_usize, max in 1..=20_usize) {
            let body = Bytes::from(vec![b'x'; length]);
            let pieces = body_pieces(&body, max, 100);
            prop_assert!(pieces.len() <= max);
            prop_assert_eq!(pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>(), length);
        }
    }

    #[test]
    fn whole_reply_and_stream_say_the_same() {
        let whole: Value = serde_json::from_slice(&reply("", &["{\"a\":1}".to_owned()]).whole()).unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
        assert_eq!(whole["choices"][0]["message"]["content"], Value::Null);
        assert_eq!(whole["usage"]["total_tokens"], 97);
        let silent = SimulatedReply { usage_reported: false, ..reply("Hello", &[]) };
        assert!(serde_json::from_slice::<Value>(&silent.whole()).unwrap().get("usage").is_none());
        let (text, _, chunks) = assembled(&silent.events(20, true));
        assert_eq!(
            (text.as_str(), chunks.iter().any(|chunk| chunk.get("usage").is_some())),
            ("Hello", false)
        );
        let as_text = SimulatedReply { as_text: true, ..reply("", &["{\"a\":1}".to_owned()]) };
        let (text, calls, chunks) = assembled(&as_text.events(20, false));
        assert_eq!((text.as_str(), calls.len()), ("{\"a\":1}", 0));
        assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
    }

    #[test]
    fn reply_longer_than_allowed_is_cut_off_and_says_so() {
        let mut long = reply(&"à".repeat(70), &["{\"a\":1}".to_owned()]);
        long.cut_at(1_000);
        assert!(!long.is_cut);
        long.cut_at(10);
        assert_eq!(
            (long.reply.text.len(), long.reply.calls[0].arguments.as_str(), long.usage.completion),
            (34, "{", 10)
        );
        let whole: Value = serde_json::from_slice(&long.whole()).unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], "length");
    }

    #[test]
    fn spoiled_replies_are_what_their_fault_says() {
        let good = reply("", &["{\"città\":\"Forlì\"}".to_owned()]);
        let malformed = good.spoiled(FaultKind::MalformedCall);
        let arguments = &malformed.reply.calls[0].arguments;
        assert!(arguments.starts_with("{\"citt") && serde_json::from_str::<Value>(arguments).is_err());
        let wrong = good.spoiled(FaultKind::WrongCall);
        assert_ne!(wrong.reply.calls[0].name, "Tool0");
        assert!(serde_json::from_str::<Value>(&wrong.reply.calls[0].arguments).is_ok());
        let ignored = good.spoiled(FaultKind::IgnoredChoice);
        assert!(ignored.reply.calls.is_empty() && !ignored.reply.text.contains('{'));
        assert_ne!(ignored.usage, good.usage, "its tokens are those of its words");
        let empty = reply("", &["{}".to_owned()]).spoiled(FaultKind::MalformedCall);
        assert_eq!(empty.reply.calls[0].arguments, "{");
    }
}
