//! A text from which arguments are read, and which of its tokens are already used.

use std::rc::Rc;

use jiff::Zoned;

use super::entities::Entities;
use super::text::{self, Token};

/// A text, its tokens and entities, and which tokens an argument has taken.
#[derive(Debug, Clone)]
pub(super) struct SourceText<'a> {
    /// The text.
    pub text: &'a str,
    /// Its tokens.
    pub tokens: Rc<Vec<Token>>,
    /// Days, times, numbers, quotations.
    pub found: Rc<Entities>,
    /// By token: taken by an argument.
    pub used: Vec<bool>,
    /// The frozen local time.
    pub now: &'a Zoned,
}

impl<'a> SourceText<'a> {
    /// Reads a text as of `now`.
    pub fn new(text: &'a str, now: &'a Zoned) -> Self {
        let tokens = text::tokens(text);
        let found = Entities::in_text(text, now.date());
        let used = vec![false; tokens.len()];
        Self { text, tokens, found, used, now }
    }

    /// Marks tokens as taken.
    pub fn take(&mut self, first: usize, last: usize) {
        for i in first..=last {
            if let Some(u) = self.used.get_mut(i) {
                *u = true;
            }
        }
    }

    /// Whether a token is taken by an argument, or is part of a day or a time.
    pub fn is_taken(&self, i: usize) -> bool {
        self.used.get(i).copied().unwrap_or(true) || self.found.taken.get(i).copied().unwrap_or(true)
    }

    /// The text between two tokens, both included, as written.
    pub fn span(&self, first: usize, last: usize) -> &'a str {
        text::span(self.text, &self.tokens, first, last)
    }

    /// Whether the token is one of these words.
    pub fn is(&self, i: usize, words: &[&str]) -> bool {
        self.tokens.get(i).is_some_and(|t| t.is(words))
    }
}
