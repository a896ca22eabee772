//! Passes a streamed reply on with the model's key redacted.

use super::super::Sink;
use super::key::{HeldSuffix, ProviderKey};
use crate::run::Reply;

/// A sink for chunks of a reply from which the key is redacted, also if it is split over several chunks.
pub(super) struct RedactingSink<'a> {
    sink: &'a Sink,
    key: &'a ProviderKey,
    text: HeldSuffix,
    /// The state of each call's arguments.
    calls: Vec<HeldSuffix>,
}

impl<'a> RedactingSink<'a> {
    /// A sink that has received nothing yet.
    pub(super) fn new(sink: &'a Sink, key: &'a ProviderKey) -> Self {
        Self { sink, key, text: HeldSuffix::default(), calls: Vec::new() }
    }

    /// A chunk of the message's text.
    pub(super) fn text(&mut self, piece: &str) {
        self.begin(piece);
        if self.sink.is_live() {
            self.sink.text(&self.text.next(self.key, piece));
        }
    }

    /// A chunk of the arguments of the call with this index; indices increase by one.
    pub(super) fn arguments(&mut self, call: usize, name: &str, piece: &str) {
        self.begin(piece);
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

    fn begin(&self, piece: &str) {
        if !piece.is_empty() {
            self.sink.begin();
        }
    }

    /// Passes on what was held back, once the reply is complete. (After an error it is discarded: it may be the
    /// beginning of the key.)
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

    /// The joined chunks that a receiver got: the text and each call's arguments.
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
    fn key_split_over_chunks_of_text_or_calls_is_redacted() {
        let key = ProviderKey::new("sk-secret".to_owned().into());
        let heard = Arc::new(Heard::default());
        let sink = Sink::to(heard.clone());
        let (mut redacted, mut so_far) = (RedactingSink::new(&sink, &key), Accumulator::default());
        let mut add = |delta: Value| {
            so_far.add(&json!({"choices": [{"delta": delta}]}), &mut redacted).unwrap();
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
        redacted.end(&reply);
        key.strike(&mut reply);
        let calls: Vec<String> = reply.calls.into_iter().map(|call| call.arguments).collect();
        assert_eq!((reply.text.as_str(), calls[0].as_str()), ("it is [key]; sk-", "{\"a\": \"[key]\"}"));
        assert_eq!(calls[1], "{\"b\": \"x sk-sec");
        assert_eq!(*heard.0.lock().unwrap(), (reply.text, calls));
    }
}
