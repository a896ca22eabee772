//! Identifies the steps of a plan that some words refer to, if every word is understood.

use std::collections::BTreeSet;

use serde_json::Value;

use super::entities::Entities;
use super::index::CatalogueIndex;
use super::lexicon;
use super::plan_changes::{self, NumberedStep};
use super::text::{self, Token};

/// Similarity above which two words have the same meaning.
const SAME_WORD_SIMILARITY: f64 = 0.8;

/// Negations that exclude something from a plan.
const NEGATION_WORDS: [&str; 6] = ["not", "no", "non", "nicht", "dont", "doesnt"];

/// Words about wanting or handling a step; they identify no step.
const HANDLING_WORDS: [&str; 34] = [
    "need", "needs", "needed", "want", "wanted", "serve", "interessa", "interested", "care", "necessary",
    "necessario", "ask", "request", "book", "do", "check", "look", "get", "fetch", "include", "keep", "show",
    "chiedere", "richiedere", "prenotare", "fare", "controllare", "guardare", "cercare", "includere",
    "tieni", "lascia", "plan", "piano",
];

pub(super) fn is_negation(token: &Token) -> bool {
    token.is(&NEGATION_WORDS)
}

/// Whether the tokens contain a negation, including "don't".
pub(super) fn has_negation(tokens: &[Token]) -> bool {
    let short = |pair: &[Token]| pair[0].lower.ends_with('n') && pair[1].lower == "t";
    tokens.iter().any(is_negation) || tokens.windows(2).any(short)
}

/// The numbers of the steps that `words` refer to by number or by name. `None` if a word is not understood or
/// contradicts the plan of a step. `planned` is the plan that the words alone would produce.
pub(super) fn find_intended_steps(
    known: &[NumberedStep],
    words: &str,
    planned: &Value,
    index: &CatalogueIndex,
    now: &jiff::Zoned,
) -> Option<Vec<u64>> {
    let tokens = text::tokens(words);
    let numbers = plan_changes::numbered_steps(&tokens);
    let at = |number: &u64| known.iter().position(|step| step.number == *number);
    let numbered: Vec<usize> = numbers.iter().map(at).collect::<Option<_>>()?;
    let dated = Entities::in_tokens(&tokens, now.date());
    let words = StepWords {
        known,
        tokens: &tokens,
        dated: &dated,
        numbers: &numbers,
        planned: planned_steps(known, planned),
    };
    let (mentioned, named) = words.find_mentioned_steps(index)?;
    let all: BTreeSet<usize> = numbered.iter().copied().chain(mentioned).collect();
    // "Not in Rome" names a value and no step.
    let soft = has_negation(&tokens);
    if all.is_empty() || (soft && !named && numbered.is_empty()) {
        return None;
    }
    // If steps are named by number and by other words, both must agree.
    if !numbered.is_empty() && all.len() > numbered.len() {
        return None;
    }
    let same_days = has_days_of_steps(&dated, all.iter().map(|at| &known[*at]), now);
    same_days.then(|| all.iter().map(|at| known[*at].number).collect())
}

/// Indexes of the steps whose tools the words alone would lead to. Empty if the words also lead to other
/// tools: then they do more than identify a step.
fn planned_steps(known: &[NumberedStep], planned: &Value) -> BTreeSet<usize> {
    let led: Vec<&Value> = planned["steps"].as_array().into_iter().flatten().collect();
    let elsewhere = led.iter().any(|step| !known.iter().any(|k| k.serves(step)));
    let serves = |at: &usize| !elsewhere && led.iter().any(|step| known[*at].serves(step));
    (0..known.len()).filter(serves).collect()
}

/// Whether the days of the words are exactly those of the steps, or the words contain no day. A time of day
/// identifies no step.
fn has_days_of_steps<'s>(
    dated: &Entities,
    steps: impl Iterator<Item = &'s NumberedStep>,
    now: &jiff::Zoned,
) -> bool {
    let own: Vec<_> = steps
        .flat_map(|step| Entities::in_tokens(&text::tokens(&step.purpose), now.date()).days)
        .map(|day| day.date)
        .collect();
    let mentioned: Vec<_> = dated.days.iter().map(|day| day.date).collect();
    let every = mentioned.is_empty() || own.iter().all(|day| mentioned.contains(day));
    every && mentioned.iter().all(|day| own.contains(day)) && dated.times.is_empty()
}

/// Words that refer to steps of a plan.
struct StepWords<'a> {
    known: &'a [NumberedStep],
    tokens: &'a [Token],
    dated: &'a Entities,
    numbers: &'a [u64],
    /// Indexes of the steps whose tools the words lead to.
    planned: BTreeSet<usize>,
}

impl StepWords<'_> {
    /// Indexes of the steps that the words mention, and whether some word other than a value does. `None` if
    /// a word is not understood.
    fn find_mentioned_steps(&self, index: &CatalogueIndex) -> Option<(BTreeSet<usize>, bool)> {
        let mut all = BTreeSet::new();
        let mut item: Option<BTreeSet<usize>> = None;
        let mut named = false;
        for (i, token) in self.tokens.iter().enumerate() {
            // "Without the weather, the hotel and the train": each item is matched separately.
            if token.raw == "," || token.is_and() {
                all.extend(item.take().into_iter().flatten());
                continue;
            }
            if !self.identifies_step(i) {
                continue;
            }
            let value = token.digit() || (token.capital() && !token.first);
            let hits = self.steps_with_word(token, value, index);
            let both = item.as_ref().map_or(hits.clone(), |item| item & &hits);
            if hits.is_empty() || both.is_empty() {
                return None;
            }
            named |= !value;
            item = Some(both);
        }
        all.extend(item.into_iter().flatten());
        Some((all, named))
    }

    /// Whether a token is a content word that has to match a step.
    fn identifies_step(&self, i: usize) -> bool {
        let token = &self.tokens[i];
        let content = token.word
            && !self.dated.taken[i]
            && !plan_changes::is_removal(token)
            && !plan_changes::is_only(token);
        let counted =
            !self.numbers.is_empty() && (plan_changes::is_step(token) || token.raw.parse::<u64>().is_ok());
        let plain = lexicon::is_stop_word(&token.norm)
            || lexicon::is_pleasantry(&token.norm)
            || token.is(&HANDLING_WORDS);
        // "Don't", "doesn't".
        let short_not = token.lower.ends_with('n') && self.tokens.get(i + 1).is_some_and(|t| t.lower == "t");
        content && !short_not && !counted && (!plain || lexicon::is_question_word(&token.norm))
    }

    /// Indexes of the steps that a word matches.
    fn steps_with_word(&self, token: &Token, value: bool, index: &CatalogueIndex) -> BTreeSet<usize> {
        let features = token.features();
        let like = |step: &NumberedStep| {
            step.words().iter().any(|word| word.similarity(&features) > SAME_WORD_SIMILARITY)
        };
        let hits: BTreeSet<usize> = (0..self.known.len()).filter(|at| like(&self.known[*at])).collect();
        if hits.is_empty() && !value && index.has_similar_word(&features) {
            return self.planned.clone();
        }
        hits
    }
}
