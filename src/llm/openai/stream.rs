//! Assembles a streamed reply.

use serde_json::Value;

use super::super::error::ErrorKind;
use super::super::tokens;
use super::redact::RedactingSink;
use super::reply::{
    CallFragment, MAX_CALLS, ProviderReply, TokenUsage, calls_of, finish_reason, make_ids_unique,
    too_many_calls, usage, words,
};
use super::transport::error_object;
use crate::run::{Reply, ReplyCall};

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    text: String,
    calls: Vec<ToolCallParts>,
    finish_reason: Option<String>,
    usage: Option<TokenUsage>,
}

#[derive(Debug, Default)]
struct ToolCallParts {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
    brackets: Brackets,
    /// Id and name that arrived after the arguments were complete: those of the next call, if there is one.
    next: Option<(Option<String>, Option<String>)>,
}

impl Accumulator {
    /// Returns whether the reply has no content yet.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.finish_reason.is_none()
    }

    /// Returns whether the server gave a reason for the end.
    pub(super) fn is_finished(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Estimated tokens so far, for a call that fails.
    pub(super) fn tokens(&self) -> u64 {
        let calls: u64 = self.calls.iter().map(|c| tokens::text(&c.name) + tokens::text(&c.arguments)).sum();
        tokens::text(&self.text) + calls
    }

    /// Adds one chunk and passes its content to `sink`. Errors: the chunk is an error of the server.
    pub(super) fn add(&mut self, chunk: &Value, sink: &mut RedactingSink<'_>) -> Result<(), ErrorKind> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error_object(chunk));
        }
        self.usage = usage(chunk).or(self.usage);
        let Some(choice) = chunk.pointer("/choices/0") else { return Ok(()) };
        // One choice is requested; another one is not part of this reply.
        if choice.get("index").and_then(Value::as_u64).is_some_and(|index| index != 0) {
            return Ok(());
        }
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            let words = words(delta);
            self.text.push_str(&words);
            sink.text(&words);
            for part in calls_of(delta) {
                self.add_part(part, sink);
                if self.calls.len() > MAX_CALLS {
                    return Err(too_many_calls());
                }
            }
        }
        self.finish_reason = finish_reason(choice).or(self.finish_reason.take());
        Ok(())
    }

    fn add_part(&mut self, part: CallFragment, sink: &mut RedactingSink<'_>) {
        let at = match self.find(&part) {
            Some(at) => at,
            None => {
                self.calls.push(ToolCallParts { index: part.index, ..ToolCallParts::default() });
                self.calls.len() - 1
            }
        };
        let count = self.calls.len();
        let Some(call) = self.calls.get_mut(at) else { return };
        if !call.brackets.closed() {
            let before = call.arguments.len();
            call.extend(part);
            sink.arguments(at, &call.name, call.arguments.get(before..).unwrap_or_default());
        } else if part.arguments.trim().is_empty() {
            call.next = Some((part.id, part.name));
        } else {
            // Nothing can follow a complete object: another call begins, whatever the index says.
            let (id, name) = call.next.take().unwrap_or_default();
            let name = part.name.or(name).unwrap_or_else(|| call.name.clone());
            let mut next =
                ToolCallParts { index: part.index, id: part.id.or(id), name, ..ToolCallParts::default() };
            next.push(&part.arguments);
            sink.arguments(count, &next.name, &part.arguments);
            self.calls.push(next);
        }
    }

    /// The call of a fragment: the last one of its index; without an index the last call, unless an id or a name
    /// begins another one.
    fn find(&self, part: &CallFragment) -> Option<usize> {
        if part.index.is_some() {
            return self.calls.iter().rposition(|call| call.index == part.index);
        }
        let last = self.calls.len().checked_sub(1)?;
        let call = self.calls.get(last)?;
        let other_id = part.id.is_some() && call.id.is_some() && part.id != call.id;
        let other_name = part.name.as_ref().is_some_and(|name| *name != call.name);
        let has_begun = !call.arguments.is_empty();
        if other_name && (other_id || has_begun) { None } else { Some(last) }
    }

    /// The complete reply. `done`: the stream ended with `[DONE]`. Errors: it was empty or incomplete.
    pub(super) fn finish(self, done: bool) -> Result<ProviderReply, ErrorKind> {
        if self.is_empty() {
            return Err(ErrorKind::EmptyStream);
        }
        if self.finish_reason.is_none() && !done {
            return Err(ErrorKind::CutStream);
        }
        let call = |c: ToolCallParts| ReplyCall {
            id: c.id.unwrap_or_default(),
            name: c.name,
            arguments: c.arguments,
        };
        let mut calls: Vec<ReplyCall> = self.calls.into_iter().map(call).collect();
        make_ids_unique(&mut calls);
        let reply = Reply { text: self.text, calls, finish_reason: self.finish_reason, model: String::new() };
        Ok(ProviderReply { reply, usage: self.usage, first_token: None })
    }
}

impl ToolCallParts {
    fn extend(&mut self, part: CallFragment) {
        if self.id.is_none() {
            self.id = part.id;
        }
        match part.name {
            // Some servers repeat id and name in every chunk, or while the arguments arrive.
            Some(name) if name == self.name || !self.arguments.is_empty() => {}
            Some(name) if name.starts_with(&self.name) => self.name = name,
            Some(rest) => self.name.push_str(&rest),
            None => {}
        }
        self.push(&part.arguments);
    }

    fn push(&mut self, arguments: &str) {
        self.arguments.push_str(arguments);
        self.brackets.see(arguments);
    }
}

/// Tracks the brackets of JSON as it arrives.
#[derive(Debug, Default)]
struct Brackets {
    depth: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Brackets {
    fn see(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.depth += 1;
                    self.begun = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn closed(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::Sink;
    use super::super::key::ProviderKey;
    use super::*;

    fn add(so_far: &mut Accumulator, chunk: &Value) {
        let (sink, key) = (Sink::default(), ProviderKey::new(String::new().into()));
        so_far.add(chunk, &mut RedactingSink::new(&sink, &key)).unwrap();
    }

    fn read(deltas: &[Value]) -> Reply {
        let mut so_far = Accumulator::default();
        for delta in deltas {
            add(&mut so_far, &json!({"choices": [{"delta": delta}]}));
        }
        so_far.finish(true).unwrap().reply
    }

    fn calls(deltas: &[Value]) -> Vec<(String, String)> {
        read(deltas).calls.into_iter().map(|c| (c.name, c.arguments)).collect()
    }

    fn part(fields: Value) -> Value {
        json!({"tool_calls": [fields]})
    }

    fn expected(calls: &[(&str, &str)]) -> Vec<(String, String)> {
        calls.iter().map(|(n, a)| ((*n).to_owned(), (*a).to_owned())).collect()
    }

    #[test]
    fn a_call_is_put_together_from_its_pieces() {
        let pieces = [
            part(json!({"index": 0, "id": "x", "function": {"name": "plan", "arguments": ""}})),
            part(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
            part(json!({"index": 1, "id": "x", "function": {"name": "other", "arguments": "{}"}})),
            part(json!({"index": 0, "function": {"arguments": ":1}"}})),
        ];
        assert_eq!(calls(&pieces), expected(&[("plan", "{\"a\":1}"), ("other", "{}")]));
        assert_ne!(read(&pieces).calls[0].id, read(&pieces).calls[1].id);
    }

    #[test]
    fn a_name_and_an_id_in_every_chunk_are_one_call() {
        for index in [json!(0), json!(null)] {
            let piece = |id: &str, arguments: &str| {
                part(json!({"index": index, "id": id, "function": {"name": "plan", "arguments": arguments}}))
            };
            let pieces = [piece("a", ""), piece("a", "{\"a\""), piece("b", ":1}"), piece("c", "")];
            assert_eq!(calls(&pieces), expected(&[("plan", "{\"a\":1}")]));
        }
    }

    #[test]
    fn a_name_in_pieces_is_one_name() {
        let pieces = [
            part(json!({"index": 0, "function": {"name": "Create"}})),
            part(json!({"index": 0, "function": {"name": "Plan"}})),
            part(json!({"index": 0, "function": {"arguments": "{}"}})),
        ];
        assert_eq!(calls(&pieces), expected(&[("CreatePlan", "{}")]));
    }

    #[test]
    fn calls_are_separated_without_index_or_with_equal_ones() {
        for index in [json!(0), json!(null)] {
            let whole = |id: &str, name: &str, arguments: &str| {
                part(json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}))
            };
            let pieces = [
                whole("a", "x", "{\"n\":1}"),
                whole("b", "x", "{\"n\":2}"),
                whole("c", "y", ""),
                whole("c", "y", "{}"),
            ];
            let meant = expected(&[("x", "{\"n\":1}"), ("x", "{\"n\":2}"), ("y", "{}")]);
            assert_eq!(calls(&pieces), meant, "index {index}");
        }
    }

    #[test]
    fn arguments_in_one_object_and_a_whole_message_are_taken() {
        let pieces = [part(json!({"function": {"name": "x", "arguments": {"n": 1}}}))];
        assert_eq!(calls(&pieces), expected(&[("x", "{\"n\":1}")]));
        let mut so_far = Accumulator::default();
        add(&mut so_far, &json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}));
        assert_eq!(so_far.finish(false).unwrap().reply.text, "hi");
    }

    #[test]
    fn empty_and_incomplete_streams_are_distinguished() {
        let role = json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]});
        let mut so_far = Accumulator::default();
        add(&mut so_far, &role);
        assert_eq!(so_far.finish(true).unwrap_err(), ErrorKind::EmptyStream);
        let mut so_far = Accumulator::default();
        add(&mut so_far, &json!({"choices": [{"delta": {"content": "half"}}]}));
        assert_eq!(so_far.finish(false).unwrap_err(), ErrorKind::CutStream);
    }

    #[test]
    fn usage_comes_with_the_last_chunk_that_says_it() {
        let mut so_far = Accumulator::default();
        for chunk in [
            json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage": null}),
            json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
        ] {
            add(&mut so_far, &chunk);
        }
        assert_eq!(so_far.finish(true).unwrap().usage, Some(TokenUsage { input: 3, cached: 0, output: 1 }));
    }
}
