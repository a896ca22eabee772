//! What of a reply may be shown to the user as the answer while the reply still comes.

use std::collections::BTreeSet;

use super::read::{only_repeats, words};
use super::tools::CHECK_CONTINUATION;
use crate::llm::reader::{self, Partial};
use crate::run::{Reply, RunState, Subject};

/// The answer out of the pieces of one reply: the words of the answer call, or the `answer` of the
/// forced check. Whatever is given is how the answer begins that the whole reply will be read as, unless
/// the reply turns out to be of no use. Pure.
#[derive(Debug)]
pub struct Shown {
    source: Source,
    /// What came and was not given yet.
    held: String,
    /// Something was given.
    begun: bool,
}

#[derive(Debug)]
enum Source {
    /// The text of the reply, without the blanks around it.
    Text,
    /// A field of the forced call, or of the JSON in its place, as with models that are forced by a schema.
    Call {
        partial: Partial,
        /// There is a call, so the text is not it.
        called: bool,
        request: String,
        /// The request's words: a model that gives them back has not answered it, so an answer is held
        /// until it has said a word of its own.
        asked: BTreeSet<String>,
    },
}

impl Shown {
    /// For the reply to a question about `subject`; `None` where no part of it can be the answer.
    pub fn of(state: &RunState, subject: Subject) -> Option<Self> {
        let source = match subject {
            Subject::Answer => Source::Text,
            // Where nothing was found, the answer only lists that, whatever the check says.
            Subject::Continuation { .. } if state.settings().answer_with_check && !state.empty_handed() => {
                Source::Call {
                    partial: Partial::new(),
                    called: false,
                    request: state.request().to_owned(),
                    asked: words(state.request()).into_iter().collect(),
                }
            }
            Subject::Continuation { .. } | Subject::Plan { .. } | Subject::Scene { .. } => return None,
        };
        Some(Self { source, held: String::new(), begun: false })
    }

    /// The reply begins anew.
    pub fn restart(&mut self) {
        self.held.clear();
        self.begun = false;
        if let Source::Call { partial, called, .. } = &mut self.source {
            *partial = Partial::new();
            *called = false;
        }
    }

    /// A piece of the reply's text; gives what may be shown.
    pub fn text(&mut self, piece: &str) -> String {
        match &self.source {
            Source::Call { called: false, .. } => return self.object(piece),
            Source::Call { .. } => return String::new(),
            Source::Text => {}
        }
        self.held.push_str(piece);
        if !self.begun {
            self.held = self.held.trim_start().to_owned();
        }
        // Blanks at the end are part of the answer only if words follow.
        let end = self.held.trim_end().len();
        let rest = self.held.split_off(end);
        let given = std::mem::replace(&mut self.held, rest);
        self.begun |= !given.is_empty();
        given
    }

    /// A piece of the arguments of a call of the reply; gives what may be shown.
    pub fn arguments(&mut self, call: usize, name: &str, piece: &str) -> String {
        let Source::Call { partial, called, .. } = &mut self.source else { return String::new() };
        if call != 0 || !reader::same(CHECK_CONTINUATION, name) {
            return String::new();
        }
        if !*called {
            // Words before a call are not part of it.
            *partial = Partial::new();
            *called = true;
        }
        self.object(piece)
    }

    /// A piece of the JSON.
    fn object(&mut self, piece: &str) -> String {
        let Source::Call { partial, asked, .. } = &mut self.source else { return String::new() };
        let piece = partial.feed(piece);
        if self.begun {
            return piece;
        }
        self.held.push_str(&piece);
        // The last word may go on with the next piece.
        let whole = self.held.trim_end_matches(char::is_alphanumeric);
        if words(whole).iter().all(|word| asked.contains(word)) {
            return String::new();
        }
        self.begun = true;
        std::mem::take(&mut self.held)
    }

    /// The whole reply; gives all that may be shown of it, nothing where that takes more than reading it
    /// straight through.
    pub fn whole(&mut self, reply: &Reply) -> String {
        self.restart();
        let Source::Call { partial, request, .. } = &mut self.source else {
            return reply.text.trim().to_owned();
        };
        let arguments = match reply.calls.first() {
            Some(call) if reader::same(CHECK_CONTINUATION, &call.name) => &call.arguments,
            Some(_) => return String::new(),
            None => &reply.text,
        };
        let text = partial.feed(arguments);
        let is_answer = partial.is_whole() && !text.trim().is_empty() && !only_repeats(&text, request);
        if is_answer { text } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::{ReplyCall, RunId};

    fn shown(request: &str) -> Shown {
        Shown {
            source: Source::Call {
                partial: Partial::new(),
                called: false,
                request: request.to_owned(),
                asked: words(request).into_iter().collect(),
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
    fn blanks_around_a_spoken_answer_are_not_shown() {
        let state = RunState::new(RunId(uuid::Uuid::nil()));
        let mut shown = Shown::of(&state, Subject::Answer).unwrap();
        let given: Vec<String> =
            [" \n", " It", " is ", "\n\n", "so. ", " \n"].iter().map(|p| shown.text(p)).collect();
        assert_eq!(given, ["", "It", " is", "", " \n\nso.", ""]);
        assert_eq!(shown.whole(&reply(" It is. \n", &[])), "It is.");
        assert_eq!(shown.arguments(0, CHECK_CONTINUATION, &verdict("no")), "");
    }

    #[test]
    fn an_answer_that_repeats_the_request_is_held_back_until_it_says_something_else() {
        let mut parrot = shown("What is up?");
        assert_eq!(parrot.arguments(0, CHECK_CONTINUATION, &verdict("what is UP")), "");
        assert_eq!(parrot.whole(&reply("", &[(CHECK_CONTINUATION, &verdict("what is UP"))])), "");
        let mut speaker = shown("What is up?");
        let text = verdict("What is up there is the sky.");
        let (before, after) = text.split_at(text.find(" there").unwrap());
        assert_eq!(speaker.arguments(0, CHECK_CONTINUATION, before), "");
        assert_eq!(speaker.arguments(0, CHECK_CONTINUATION, after), "What is up there is the sky.");
    }

    #[test]
    fn only_the_forced_call_or_json_in_its_place_is_shown() {
        let text = verdict("Yes.");
        let mut other = shown("x");
        assert_eq!(other.arguments(0, "SomethingElse", &text), "");
        assert_eq!(other.arguments(1, CHECK_CONTINUATION, &text), "");
        assert_eq!(other.whole(&reply("", &[("SomethingElse", &text)])), "");
        for name in ["functions.CheckContinuation", "checkcontinuation"] {
            assert_eq!(shown("x").arguments(0, name, &text), "Yes.");
        }
        let mut spoken = shown("x");
        assert_eq!(spoken.text("Let me see: "), "");
        assert_eq!(spoken.arguments(0, CHECK_CONTINUATION, &text), "Yes.");
        assert_eq!(spoken.text(&text), "");
        assert_eq!(shown("x").text(&text), "Yes.");
        assert_eq!(shown("x").text(&format!("```json\n{text}\n```")), "");
        assert_eq!(shown("x").whole(&reply(&text, &[])), "Yes.");
        assert_eq!(shown("x").whole(&reply(&format!("{text} {text}"), &[])), "");
    }
}
