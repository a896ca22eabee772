//! Scripted replies and their form on the wire.

use serde_json::{Value, json};

use super::gate::Gate;
use super::request::forced_tool;

/// One reply.
#[derive(Debug, Clone)]
pub enum Scripted {
    /// One call.
    Call { name: String, arguments: Value },
    /// One call with this text as arguments, JSON or not.
    RawCall { name: String, arguments: String },
    /// Several calls, with text before them unless `text` is empty.
    Calls { text: String, calls: Vec<ScriptedCall> },
    /// Text.
    Text(String),
    /// This whole body with status 200.
    Json(Value),
    /// A status with headers and a body.
    Status { code: u16, headers: Vec<(String, String)>, body: String },
    /// Raw events (see [`chunk`]), and how the stream ends.
    Stream(Vec<String>, StreamEnd),
    /// Events of a stream, a pause until the gate is open, then the events of another stream.
    Paused(Vec<String>, Gate, Box<Scripted>),
    /// Status 200 and this line, repeated forever with short pauses.
    Drip(String),
    /// The request is accepted, and never answered.
    Silence,
    /// Status 200 with JSON's content type and this text.
    Malformed(String),
    /// Status 200 with an HTML page.
    WrongContentType,
    /// A completion whose text has this many bytes.
    Oversize(usize),
    /// Another reply (a call, calls or text) that reports this usage, or none.
    Metered(Box<Scripted>, Option<ReportedUsage>),
    /// Another reply (a call, calls or text) with this `finish_reason`.
    Finished(Box<Scripted>, String),
    /// Another reply, once the gate is open.
    Held(Box<Scripted>, Gate),
}

/// A call of a scripted reply.
#[derive(Debug, Clone)]
pub struct ScriptedCall {
    /// Ids may repeat, as with real servers.
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// The usage that a scripted reply reports.
#[derive(Debug, Clone, Copy)]
pub struct ReportedUsage {
    pub prompt: u64,
    pub cached: u64,
    pub completion: u64,
}

impl Default for ReportedUsage {
    fn default() -> Self {
        Self { prompt: 10, cached: 0, completion: 5 }
    }
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// With `[DONE]`.
    Done,
    /// Properly ended HTTP, but without `[DONE]`.
    Unsaid,
    /// With a broken connection.
    Cut,
    /// Never: the connection stays open.
    Never,
}

impl Scripted {
    /// One call.
    pub fn call(name: &str, arguments: Value) -> Self {
        Scripted::Call { name: name.to_owned(), arguments }
    }

    /// The reply to a forced question, in the forcing mode of the request.
    pub fn forced(request: &Value, arguments: Value) -> Self {
        match forced_tool(request) {
            Some(_) if request.get("response_format").is_some() => Scripted::Text(arguments.to_string()),
            Some(name) => Scripted::call(name, arguments),
            None => panic!("the request forces nothing: {request:#}"),
        }
    }

    /// The continuation check's verdict that the request is answered, with the answer or without one.
    pub fn answered(request: &Value, answer: impl Into<Value>) -> Self {
        let answer: Value = answer.into();
        let verdict = json!({"should_continue": false, "can_answer_now": true, "reasoning": "Done.",
                             "missing_information": null, "answer": answer});
        Self::forced(request, verdict)
    }

    /// A status without a body of its own.
    pub fn status(code: u16) -> Self {
        let body = json!({"error": {"message": format!("scripted {code}"), "type": "scripted"}}).to_string();
        Scripted::Status { code, headers: vec![], body }
    }

    /// Adds a header, if it is a status.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Scripted::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Reports this usage.
    pub fn metered(self, prompt: u64, cached: u64, completion: u64) -> Self {
        Scripted::Metered(Box::new(self), Some(ReportedUsage { prompt, cached, completion }))
    }

    /// Reports no usage.
    pub fn unmetered(self) -> Self {
        Scripted::Metered(Box::new(self), None)
    }

    /// Sets `finish_reason`.
    pub fn finished(self, reason: &str) -> Self {
        Scripted::Finished(Box::new(self), reason.to_owned())
    }

    /// Holds the reply until the gate is open.
    pub fn held(self, gate: &Gate) -> Self {
        Scripted::Held(Box::new(self), gate.clone())
    }

    /// The message of a reply that has one: text, calls, usage and finish reason.
    pub(super) fn message(&self) -> Option<ScriptedReply> {
        let message = |text: &str, calls: Vec<ScriptedCall>| {
            let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
            let usage = Some(ReportedUsage::default());
            Some(ScriptedReply { text: text.to_owned(), calls, reason: reason.to_owned(), usage })
        };
        let one = |name: &str, arguments: String| {
            vec![ScriptedCall { id: "call_0".to_owned(), name: name.to_owned(), arguments }]
        };
        match self {
            Scripted::Call { name, arguments } => message("", one(name, arguments.to_string())),
            Scripted::RawCall { name, arguments } => message("", one(name, arguments.clone())),
            Scripted::Calls { text, calls } => message(text, calls.clone()),
            Scripted::Text(text) => message(text, vec![]),
            Scripted::Oversize(bytes) => message(&"x".repeat(*bytes), vec![]),
            Scripted::Metered(inner, usage) => {
                inner.message().map(|message| ScriptedReply { usage: *usage, ..message })
            }
            Scripted::Finished(inner, reason) => {
                inner.message().map(|message| ScriptedReply { reason: reason.clone(), ..message })
            }
            _ => None,
        }
    }
}

/// A message to be sent.
pub(super) struct ScriptedReply {
    text: String,
    calls: Vec<ScriptedCall>,
    reason: String,
    usage: Option<ReportedUsage>,
}

impl ScriptedReply {
    /// As one body.
    pub(super) fn whole(&self) -> Value {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments}})
            })
            .collect();
        let content = if self.text.is_empty() && !calls.is_empty() { Value::Null } else { json!(self.text) };
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let mut body = json!({"id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": self.reason}]});
        if let Some(usage) = self.usage {
            body["usage"] = usage.json();
        }
        body
    }

    /// As stream events: text and arguments in pieces, then the finish reason, then the usage.
    pub(super) fn events(&self) -> Vec<String> {
        let mut events = vec![chunk(json!({"delta": {"role": "assistant", "content": ""}}))];
        for piece in pieces(&self.text) {
            events.push(chunk(json!({"delta": {"content": piece}})));
        }
        for (index, call) in self.calls.iter().enumerate() {
            let part = |part: Value| chunk(json!({"delta": {"tool_calls": [part]}}));
            events.push(part(json!({"index": index, "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": ""}})));
            for piece in pieces(&call.arguments) {
                events.push(part(json!({"index": index, "function": {"arguments": piece}})));
            }
        }
        events.push(chunk(json!({"delta": {}, "finish_reason": self.reason})));
        if let Some(usage) = self.usage {
            events.push(format!("data: {}", json!({"choices": [], "usage": usage.json()})));
        }
        events
    }
}

impl ReportedUsage {
    fn json(self) -> Value {
        json!({"prompt_tokens": self.prompt, "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached}})
    }
}

/// A reply with these calls, all with the same id, as some servers give them.
pub fn calls(calls: &[(&str, Value)]) -> Scripted {
    let call = |(name, arguments): &(&str, Value)| ScriptedCall {
        id: "call_0".to_owned(),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    };
    Scripted::Calls { text: String::new(), calls: calls.iter().map(call).collect() }
}

/// A stream's event that carries one choice, such as `{"delta": {"content": "Hel"}}`.
pub fn chunk(choice: Value) -> String {
    let body = json!({"id": "scripted", "object": "chat.completion.chunk", "choices": [choice]});
    format!("data: {body}")
}

/// A stream event with text.
pub fn words(text: &str) -> String {
    chunk(json!({"delta": {"content": text}}))
}

/// A stream event with a piece of the arguments of its only call.
pub fn arguments(function: &str, text: &str) -> String {
    chunk(json!({"delta": {"tool_calls": [{"index": 0, "id": "call_0",
        "function": {"name": function, "arguments": text}}]}}))
}

/// A stream event with a finish reason.
pub fn finish(reason: &str) -> String {
    chunk(json!({"delta": {}, "finish_reason": reason}))
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(7).map(|piece| piece.iter().collect()).collect()
}
