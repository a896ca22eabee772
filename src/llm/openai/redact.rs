//! Tells what a stream brings, without the key of the model.

use super::super::Sink;
use super::key::{HeldSuffix, ProviderKey};
use crate::run::Reply;

/// A sink that is told a reply in pieces from which the key is redacted, also where it comes in several.
pub(super) struct RedactingSink<'a> {
    sink: &'a Sink,
    key: &'a ProviderKey,
    text: HeldSuffix,
    /// Of each call's arguments.
    calls: Vec<HeldSuffix>,
}

impl<'a> RedactingSink<'a> {
    /// Nothing was told yet.
    pub(super) fn new(sink: &'a Sink, key: &'a ProviderKey) -> Self {
        Self { sink, key, text: HeldSuffix::default(), calls: Vec::new() }
    }

    /// A piece of the message's text.
    pub(super) fn text(&mut self, piece: &str) {
        if self.sink.is_live() {
            self.sink.text(&self.text.next(self.key, piece));
        }
    }

    /// A piece of the arguments of the call with that index; indices count up by one.
    pub(super) fn arguments(&mut self, call: usize, name: &str, piece: &str) {
        if !self.sink.is_live() {
            return;
        }
        if self.calls.len() <= call {
            self.calls.resize_with(call + 1, HeldSuffix::default);
        }
        if let Some(held) = self.calls.get_mut(call) {
            self.sink.arguments(call, name, &held.next(self.key, piece));
        }
    }

    /// The reply is whole: what was held back is told. (After an error it is not: it may be the beginning
    /// of the key.)
    pub(super) fn end(mut self, reply: &Reply) {
        self.sink.text(self.text.rest(self.key));
        for (index, (held, call)) in self.calls.iter_mut().zip(&reply.calls).enumerate() {
            self.sink.arguments(index, &call.name, held.rest(self.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::super::super::Listener;
    use super::super::stream::Accumulator;
    use super::*;

    /// What a listener was told, joined: the text, and each call's arguments.
    #[derive(Default)]
    struct Heard(Mutex<(String, Vec<String>)>);

    impl Listener for Heard {
        fn restart(&self) {}

        fn text(&self, piece: &str) {
            self.0.lock().unwrap().0.push_str(piece);
        }

        fn arguments(&self, call: usize, name: &str, piece: &str) {
            assert_eq!(name, "f");
            let calls = &mut self.0.lock().unwrap().1;
            calls.resize_with(calls.len().max(call + 1), String::new);
            calls[call].push_str(piece);
        }

        fn whole(&self, _: &Reply) {}
    }

    #[test]
    fn a_key_in_the_pieces_of_a_text_or_of_calls_that_take_turns_is_told_to_nobody() {
        let key = ProviderKey::new("sk-secret".to_owned().into());
        let heard = Arc::new(Heard::default());
        let sink = Sink::to(heard.clone());
        let (mut told, mut so_far) = (RedactingSink::new(&sink, &key), Accumulator::default());
        let mut add = |delta: Value| {
            so_far.add(&json!({"choices": [{"delta": delta}]}), &mut told).unwrap();
            assert!(!format!("{:?}", heard.0.lock().unwrap()).contains("sk-s"));
        };
        let piece = |index: u64, text: &str| json!({"tool_calls": [{"index": index, "function": {"name": "f", "arguments": text}}]});
        for (text, first, second) in [
            ("it is s", "{\"a\": \"sk-", "{\"b\": \"x sk"),
            ("k-se", "secr", "-sec"),
            ("cret; sk-", "et\"}", ""),
        ] {
            add(json!({"content": text}));
            add(piece(0, first));
            add(piece(1, second));
        }
        let mut reply = so_far.finish(true).unwrap().reply;
        told.end(&reply);
        key.strike(&mut reply);
        let calls: Vec<String> = reply.calls.into_iter().map(|call| call.arguments).collect();
        assert_eq!((reply.text.as_str(), calls[0].as_str()), ("it is [key]; sk-", "{\"a\": \"[key]\"}"));
        assert_eq!(calls[1], "{\"b\": \"x sk-sec");
        assert_eq!(*heard.0.lock().unwrap(), (reply.text, calls));
    }
}
