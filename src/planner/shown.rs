//! What of a reply may be shown to the user as the answer while the reply still comes.

use super::read::{bare_words, same_words};
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
        /// The request and what is held, without what does not matter: a model that gives the request
        /// back has not answered it.
        parroted: String,
        so_far: String,
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
                    parroted: bare_words(state.request()),
                    so_far: String::new(),
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
        if let Source::Call { partial, called, so_far, .. } = &mut self.source {
            *partial = Partial::new();
            *called = false;
            so_far.clear();
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
        let Source::Call { partial, parroted, so_far, .. } = &mut self.source else { return String::new() };
        let piece = partial.feed(piece);
        if self.begun {
            return piece;
        }
        so_far.push_str(&bare_words(&piece));
        self.held.push_str(&piece);
        if parroted.starts_with(so_far.as_str()) {
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
        let is_answer = partial.is_whole() && !text.trim().is_empty() && !same_words(&text, request);
        if is_answer { text } else { String::new() }
    }
}
