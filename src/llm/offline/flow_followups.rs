//! Elliptical questions for flows: "And in April?" after "How many orders were placed in March?".

use std::ops::Range;

use super::clauses;
use super::dates;
use super::entities::Entities;
use super::flow_questions;
use super::followup;
use super::lexicon;
use super::plan::OfflinePlanner;
use super::prompt::SceneCard;
use super::text::{self, Token};

/// Maximum number of turns searched for the question that is followed.
const MAX_TURNS: usize = 12;

/// Words before a value that belong to it.
const PREPOSITIONS: &[&str] = &[
    "in", "from", "of", "at", "for", "by", "on", "since", "a", "ad", "al", "alla", "da", "dal", "dalla",
    "di", "del", "della", "nel", "nella", "per",
];

impl OfflinePlanner {
    /// The whole question that an elliptical one stands for, if what was asked last is a question that one of these flows
    /// answers. `None` for words that lead to a scene by themselves.
    pub fn whole_flow_question(&self, flows: &[SceneCard], words: &str) -> Option<String> {
        let is_elliptical = |words: &str| followup::is_mostly_new_value(&text::tokens(words), &self.now);
        if self.pending.is_some()
            || !is_elliptical(words)
            || self.index.route(words, self.today(), None).is_some()
        {
            return None;
        }
        let mut further = vec![words];
        for turn in self.conversation.turns.iter().rev().take(MAX_TURNS) {
            let said = turn.request.as_str();
            let calls = |flow: &SceneCard| turn.calls.iter().any(|call| call.scene == flow.scene);
            let is_of_scene = match turn.calls.is_empty() {
                true => self.index.route(said, self.today(), None).is_some(),
                false => !flows.iter().any(calls),
            };
            if is_of_scene {
                return None;
            }
            if flows.iter().any(|flow| flow_questions::asks_for_things(flow, said)) {
                let base = (clauses::split(said, self).len() == 1).then(|| said.to_owned())?;
                return further.into_iter().rev().try_fold(base, |base, new| self.with_value(&base, new));
            }
            if is_elliptical(said) {
                further.push(said);
            } else if !self.is_small_talk(said) {
                return None;
            }
        }
        None
    }

    /// A question with a value of its kind replaced by the new one or, where it has none, with the new one added.
    fn with_value(&self, question: &str, new: &str) -> Option<String> {
        let base = question.trim_end_matches(['?', '.', '!', ' ']);
        let value = self.values(new).into_iter().next_back()?;
        let own = self.values(base);
        // "The number of customers": what follows a preposition is a name only with a capital, or after the same preposition.
        let is_same = |other: &&Value| other.preposition == value.preposition;
        let is_alike = |other: &&Value| {
            other.is_when == value.is_when && (value.is_when || other.is_capital || is_same(other))
        };
        let alike: Vec<&Value> = own.iter().filter(is_alike).collect();
        let same: Vec<&Value> = alike.iter().copied().filter(is_same).collect();
        let old = match (alike.as_slice(), same.as_slice()) {
            ([only], _) | (_, [only]) => Some(*only),
            ([], _) if value.preposition.is_some() || value.is_when => None,
            _ => return None,
        };
        let said = new.get(value.place.clone())?;
        match old {
            Some(old) => {
                // "What about Berlin?" after "in Milan".
                let keeps_preposition = value.preposition.is_none() && !value.is_day;
                let start = if keeps_preposition { old.start } else { old.place.start };
                let (before, after) = (base.get(..start)?, base.get(old.place.end..)?);
                Some(format!("{before}{said}{after}?"))
            }
            None => Some(format!("{base} {said}?")),
        }
    }

    /// The days, months and names of a text, in order.
    fn values(&self, words: &str) -> Vec<Value> {
        let tokens = text::tokens(words);
        let found = Entities::in_tokens(&tokens, self.today());
        let is_year = |token: &Token| token.norm.len() == 4 && token.digit();
        let is_when =
            |i: usize| found.taken[i] || dates::is_calendar_word(&tokens[i].norm) || is_year(&tokens[i]);
        let leads = |i: usize| tokens[i].is(PREPOSITIONS);
        let is_name = |i: usize| {
            let token = &tokens[i];
            let may_be = token.word && !token.digit() && !lexicon::is_stop_word(&token.norm) && !is_when(i);
            may_be && (token.capital() && !token.first || i > 0 && leads(i - 1))
        };
        let mut values: Vec<Value> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let when = is_when(at);
            let goes_on = |i: usize| match when {
                true => is_when(i),
                false => is_name(i) && tokens[i].capital(),
            };
            if !when && !is_name(at) {
                at += 1;
                continue;
            }
            let end = (at + 1..tokens.len()).find(|i| !goes_on(*i)).unwrap_or(tokens.len());
            let lead = at.checked_sub(1).filter(|i| leads(*i));
            let start = lead.unwrap_or(at);
            values.push(Value {
                place: tokens[start].start..tokens[end - 1].end,
                preposition: lead.map(|i| tokens[i].norm.to_string()),
                start: tokens[at].start,
                is_when: when,
                is_capital: tokens[at].capital(),
                is_day: found.taken[at],
            });
            at = end;
        }
        values
    }
}

/// A value of a question, with the preposition before it.
#[derive(Debug)]
struct Value {
    /// Where it is, in bytes.
    place: Range<usize>,
    /// The preposition before it, if there is one.
    preposition: Option<String>,
    /// Where it begins without its preposition.
    start: usize,
    /// Whether it is a day, a month or a year.
    is_when: bool,
    /// Whether it begins with a capital.
    is_capital: bool,
    /// Whether it is a day.
    is_day: bool,
}
