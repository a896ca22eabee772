//! Previews of the answer: the part of a streamed reply that may be shown to the user already.

use std::collections::BTreeSet;

use super::read::only_repeats;
use super::tools::{ANSWER, CHECK_CONTINUATION, SHOULD_CONTINUE};
use crate::language::lower_words;
use crate::llm::reader::{self, Partial};
use crate::run::{Reply, RunState, Subject};

/// Extracts the answer from the chunks of one reply: its text, or the `answer` of the forced check. The
/// output is always a prefix of the answer that the complete reply will yield, unless the reply turns out
/// to be unusable. Pure.
#[derive(Debug)]
pub struct AnswerPreview {
    source: PreviewSource,
    /// Text that was received and not returned yet.
    held: String,
    /// Whether any text was returned.
    begun: bool,
}

#[derive(Debug)]
enum PreviewSource {
    /// The text of the reply, without thoughts at its beginning and surrounding whitespace.
    Text,
    /// A field of the forced call, or of the JSON in its place from models that are forced by a schema.
    Call {
        partial: Partial,
        /// Whether there is a call, so that the text is not the answer.
        called: bool,
        request: String,
        /// The request's words, once a chunk is compared with them. An echo of the request is not an answer, so text
        /// is held back until it contains a new word.
        asked: Option<BTreeSet<String>>,
    },
}

impl AnswerPreview {
    /// The preview of a reply to a question about `subject`; `None` if no part of it can be the answer.
    pub fn of(state: &RunState, subject: Subject) -> Option<Self> {
        let source = match subject {
            Subject::Answer => PreviewSource::Text,
            // Without results, the answer is a plain list, whatever the check says.
            Subject::Continuation { .. } if state.settings().answer_with_check && !state.has_no_results() => {
                PreviewSource::Call {
                    partial: answer_of_verdict(),
                    called: false,
                    request: state.request().to_owned(),
                    asked: None,
                }
            }
            Subject::Continuation { .. }
            | Subject::Plan { .. }
            | Subject::Scene { .. }
            | Subject::Path { .. }
            | Subject::Node { .. }
            | Subject::Summary { .. }
            | Subject::Program { .. }
            | Subject::Ranking
            | Subject::Consultation { .. }
            | Subject::Vote { .. } => return None,
        };
        Some(Self { source, held: String::new(), begun: false })
    }

    /// The reply restarts.
    pub fn restart(&mut self) {
        self.held.clear();
        self.begun = false;
        if let PreviewSource::Call { partial, called, .. } = &mut self.source {
            *partial = answer_of_verdict();
            *called = false;
        }
    }

    /// Takes a chunk of the reply's text; returns what may be shown.
    pub fn push_text(&mut self, piece: &str) -> String {
        match &self.source {
            PreviewSource::Call { called: false, .. } => return self.push_json(piece),
            PreviewSource::Call { .. } => return String::new(),
            PreviewSource::Text => {}
        }
        self.held.push_str(piece);
        if !self.begun {
            match reader::after_reasoning(&self.held) {
                Some(text) => self.held = text.trim_start().to_owned(),
                None => return String::new(),
            }
        }
        // Trailing whitespace is part of the answer only if text follows.
        let end = self.held.trim_end().len();
        let rest = self.held.split_off(end);
        let given = std::mem::replace(&mut self.held, rest);
        self.begun |= !given.is_empty();
        given
    }

    /// Takes a chunk of the arguments of a call; returns what may be shown.
    pub fn push_arguments(&mut self, call: usize, name: &str, piece: &str) -> String {
        let PreviewSource::Call { partial, called, .. } = &mut self.source else { return String::new() };
        if call != 0 || !reader::names_function(CHECK_CONTINUATION, name) {
            return String::new();
        }
        if !*called {
            // Text before a call is not part of it.
            *partial = answer_of_verdict();
            *called = true;
        }
        self.push_json(piece)
    }

    /// Takes a chunk of the JSON.
    fn push_json(&mut self, piece: &str) -> String {
        let PreviewSource::Call { partial, request, asked, .. } = &mut self.source else {
            return String::new();
        };
        let piece = partial.feed(piece);
        if self.begun {
            return piece;
        }
        self.held.push_str(&piece);
        // The last word may continue in the next chunk.
        let whole = self.held.trim_end_matches(char::is_alphanumeric);
        let asked = asked.get_or_insert_with(|| lower_words(request).into_iter().collect());
        if lower_words(whole).iter().all(|word| asked.contains(word)) {
            return String::new();
        }
        self.begun = true;
        std::mem::take(&mut self.held)
    }

    /// Takes the complete reply; returns everything that may be shown of it, or nothing if it needs repair
    /// before it can be read.
    pub fn whole_reply(&mut self, reply: &Reply) -> String {
        self.restart();
        let PreviewSource::Call { partial, request, .. } = &mut self.source else {
            return reader::after_reasoning(&reply.text).unwrap_or_default().trim().to_owned();
        };
        let arguments = match reply.calls.first() {
            Some(call) if reader::names_function(CHECK_CONTINUATION, &call.name) => &call.arguments,
            Some(_) => return String::new(),
            None => &reply.text,
        };
        let text = partial.feed(arguments);
        let is_answer = partial.is_whole() && !text.trim().is_empty() && !only_repeats(&text, request);
        if is_answer { text } else { String::new() }
    }
}

/// Reads the answer that a continuation check carries, which counts only if nothing is to be continued.
fn answer_of_verdict() -> Partial {
    Partial::new(SHOULD_CONTINUE, ANSWER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::{ReplyCall, RunId};

    fn shown(request: &str) -> AnswerPreview {
        AnswerPreview {
            source: PreviewSource::Call {
                partial: answer_of_verdict(),
                called: false,
                request: request.to_owned(),
                asked: None,
            },
            held: String::new(),
            begun: false,
        }
    }

    fn verdict(answer: &str) -> String {
        format!(r#"{{"should_continue": false, "answer": {}}}"#, json!(answer))
    }

    fn reply(text: &str, calls: &[(&str, &str)]) -> Reply {
        let call = |(name, arguments): &(&str, &str)| ReplyCall {
            id: String::new(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        Reply { text: text.to_owned(), calls: calls.iter().map(call).collect(), ..Reply::default() }
    }

    #[test]
    fn whitespace_around_a_text_answer_is_not_shown() {
        let state = RunState::new(RunId(uuid::Uuid::nil()));
        let mut shown = AnswerPreview::of(&state, Subject::Answer).unwrap();
        let given: Vec<String> =
            [" \n", " It", " is ", "\n\n", "so. ", " \n"].iter().map(|p| shown.push_text(p)).collect();
        assert_eq!(given, ["", "It", " is", "", " \n\nso.", ""]);
        assert_eq!(shown.whole_reply(&reply(" It is. \n", &[])), "It is.");
        assert_eq!(shown.push_arguments(0, CHECK_CONTINUATION, &verdict("no")), "");
    }

    #[test]
    fn thoughts_before_a_text_answer_are_not_shown() {
        let state = RunState::new(RunId(uuid::Uuid::nil()));
        let mut shown = AnswerPreview::of(&state, Subject::Answer).unwrap();
        let pieces = [" <", "thi", "nk>Hm", "m.</th", "ink>", "\n It", " is."];
        let given: Vec<String> = pieces.iter().map(|p| shown.push_text(p)).collect();
        assert_eq!(given, ["", "", "", "", "", "It", " is."]);
        let whole = reply("<think>Hmm.</think>\n It is.", &[]);
        assert_eq!(shown.whole_reply(&whole), "It is.");
        // What only begins like thoughts is shown.
        let mut shown = AnswerPreview::of(&state, Subject::Answer).unwrap();
        assert_eq!(["<t", "d>1"].map(|piece| shown.push_text(piece)), ["", "<td>1"]);
    }

    #[test]
    fn answer_that_echoes_the_request_is_held_back() {
        let mut parrot = shown("What is up?");
        assert_eq!(parrot.push_arguments(0, CHECK_CONTINUATION, &verdict("what is UP")), "");
        assert_eq!(parrot.whole_reply(&reply("", &[(CHECK_CONTINUATION, &verdict("what is UP"))])), "");
        let mut speaker = shown("What is up?");
        let text = verdict("What is up there is the sky.");
        let (before, after) = text.split_at(text.find(" there").unwrap());
        assert_eq!(speaker.push_arguments(0, CHECK_CONTINUATION, before), "");
        assert_eq!(speaker.push_arguments(0, CHECK_CONTINUATION, after), "What is up there is the sky.");
    }

    #[test]
    fn only_the_forced_call_or_its_json_is_shown() {
        let text = verdict("Yes.");
        let mut other = shown("x");
        assert_eq!(other.push_arguments(0, "SomethingElse", &text), "");
        assert_eq!(other.push_arguments(1, CHECK_CONTINUATION, &text), "");
        assert_eq!(other.whole_reply(&reply("", &[("SomethingElse", &text)])), "");
        for name in ["functions.CheckContinuation", "checkcontinuation"] {
            assert_eq!(shown("x").push_arguments(0, name, &text), "Yes.");
        }
        let mut spoken = shown("x");
        assert_eq!(spoken.push_text("Let me see: "), "");
        assert_eq!(spoken.push_arguments(0, CHECK_CONTINUATION, &text), "Yes.");
        assert_eq!(spoken.push_text(&text), "");
        assert_eq!(shown("x").push_text(&text), "Yes.");
        assert_eq!(shown("x").push_text(&format!("```json\n{text}\n```")), "");
        assert_eq!(shown("x").whole_reply(&reply(&text, &[])), "Yes.");
        assert_eq!(shown("x").whole_reply(&reply(&format!("{text} {text}"), &[])), "");
    }
}
