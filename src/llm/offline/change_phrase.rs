//! Reads the changes requested to a plan from the prompt. Clauses that the user excluded are not reported as
//! unserved.
//!
//! Each line is one change: a line of the readable diff of two plans (`- step 1 Weather: …`), or the words
//! of the person who requested it.

use super::clauses::Clause;
use super::entities::Entities;
use super::lexicon;
use super::plan_changes::{has_removal, is_only, is_removal, numbered_steps};
use super::prompt::{Executed, PromptText};
use super::text::{self, Token, name_words};

/// Similarity above which two words have the same meaning.
const SAME_WORD_SIMILARITY: f64 = 0.8;

/// Words that separate wanted from unwanted things.
const CONTRAST_WORDS: [&str; 9] =
    ["but", "instead", "ma", "invece", "pero", "bensi", "mais", "sondern", "aber"];

/// The changes requested to the plan of a request.
#[derive(Debug, Default)]
pub(super) struct RequestedChanges {
    /// Steps, or former purposes of steps, that are no longer in the plan.
    removed_steps: Vec<String>,
    /// Phrases that exclude something.
    exclusions: Vec<ChangePhrase>,
    /// Phrases that exclude everything else.
    restrictions: Vec<ChangePhrase>,
}

/// What a phrase requests for its subject.
#[derive(Debug, Clone, Copy)]
enum ChangeKind {
    Exclude,
    /// Exclude everything else.
    KeepOnly,
}

/// A phrase of the requester, with the step numbers it names.
#[derive(Debug)]
struct ChangePhrase {
    text: String,
    steps: Vec<u64>,
}

impl RequestedChanges {
    /// Reads the section `changed` of a prompt; empty if it is absent.
    pub fn from_prompt(prompt: &PromptText) -> Self {
        let mut changed = Self::default();
        for line in prompt.get("changed").lines().map(str::trim).take(100) {
            changed.add_line(line);
        }
        changed
    }

    fn add_line(&mut self, line: &str) {
        if let Some(step) = line.strip_prefix("- step ") {
            // The old step number no longer applies, and tool names are not a subject.
            let told = step.split_once(' ').map_or(step, |(_, told)| told);
            let told = told.rfind(" [").map_or(told, |tools| &told[..tools]);
            let (scene, purpose) = told.split_once(':').unwrap_or((told, ""));
            self.removed_steps.push(format!("{} {purpose}", name_words(scene).join(" ")));
        } else if let Some(step) = line.strip_prefix("~ step ") {
            let purpose = step.split_once(": purpose ").and_then(|(_, said)| said.rsplit_once(" -> "));
            self.removed_steps.extend(purpose.map(|(before, _)| before.to_owned()));
        } else if !line.starts_with("+ step ") {
            self.add_user_words(line);
        }
    }

    /// Adds the exclusions in the requester's words, phrase by phrase.
    fn add_user_words(&mut self, line: &str) {
        let mut before = None;
        for part in split_phrases(line) {
            let tokens = text::tokens(part);
            // "Senza il meteo, l'albergo e il treno": a comma continues the list.
            let acts = || tokens.iter().any(|t| t.word && lexicon::is_action(&t.features().concepts));
            let listed = before.filter(|_| part.starts_with(',') && !acts());
            let kind = match (tokens.iter().any(is_only), has_removal(&tokens)) {
                (true, _) => Some(ChangeKind::KeepOnly),
                (_, true) => Some(ChangeKind::Exclude),
                _ => listed,
            };
            before = kind;
            let words = ChangePhrase { text: part.to_owned(), steps: numbered_steps(&tokens) };
            match kind {
                Some(ChangeKind::KeepOnly) => self.restrictions.push(words),
                Some(ChangeKind::Exclude) => self.exclusions.push(words),
                None => {}
            }
        }
    }

    /// Whether the changes exclude the clause at position `place` (from 1) of the request. A restriction
    /// ("only …") counts only if it names a step number or matches an `executed` step.
    pub fn excludes_clause(&self, clause: &Clause, place: u64, executed: &[Executed]) -> bool {
        let subject = subject_tokens(&clause.text);
        let speaks = |text: &str| mentions_subject(text, &subject);
        let kept = |words: &&ChangePhrase| {
            !words.steps.is_empty()
                || executed.iter().any(|step| {
                    let told = format!("{} {}", name_words(&step.scene).join(" "), step.purpose);
                    mentions_subject(&words.text, &self::subject_tokens(&told))
                })
        };
        self.removed_steps.iter().any(|text| speaks(text))
            || self.exclusions.iter().any(|words| match words.steps.as_slice() {
                [] => speaks(&words.text),
                steps => steps.contains(&place),
            })
            || self.restrictions.iter().filter(kept).any(|words| match words.steps.as_slice() {
                [] => !speaks(&words.text),
                steps => !steps.contains(&place),
            })
    }
}

/// Splits a line into phrases that may request different changes: "not in Milan but in Rome".
fn split_phrases(line: &str) -> Vec<&str> {
    let tokens = text::tokens(line);
    let ends = |token: &&Token| {
        !token.word && matches!(token.raw.as_str(), "," | ";" | "." | "!" | "?") || token.is(&CONTRAST_WORDS)
    };
    let mut out = Vec::new();
    let mut start = 0;
    for end in tokens.iter().filter(ends).map(|token| token.start).chain([line.len()]) {
        out.extend(line.get(start..end));
        start = end;
    }
    out
}

/// The tokens that express the subject of some words. Function words and dates are removed. Names, numbers
/// and actions are removed too unless nothing else is left.
fn subject_tokens(words: &str) -> Vec<Token> {
    let tokens = text::tokens(words);
    // The reference date does not matter: only the positions of dates are used.
    let found = Entities::in_text(words, jiff::civil::Date::constant(2026, 1, 1));
    let telling = |(token, dated): &(&Token, &bool)| {
        let common = lexicon::is_stop_word(&token.norm) || lexicon::is_time_unit(&token.norm);
        token.word && !**dated && !common && token.norm.chars().count() > 2
    };
    let mut told: Vec<Token> =
        tokens.iter().zip(&found.taken).filter(telling).map(|(token, _)| token.clone()).collect();
    let named = |token: &Token| token.digit() || (token.capital() && !token.first);
    let done = |token: &Token| lexicon::is_action(&token.features().concepts);
    for is_less in [&named as &dyn Fn(&Token) -> bool, &done] {
        if told.iter().any(|token| !is_less(token)) {
            told.retain(|token| !is_less(token));
        }
    }
    told
}

/// Whether `text` has a word similar to one of the `subject`, apart from words of exclusion and
/// restriction.
fn mentions_subject(text: &str, subject: &[Token]) -> bool {
    let tokens = text::tokens(text);
    let says = |t: &&Token| t.word && !is_removal(t) && !is_only(t);
    let said: Vec<_> = tokens.iter().filter(says).map(Token::features).collect();
    subject
        .iter()
        .map(Token::features)
        .any(|word| said.iter().any(|other| other.similarity(&word) > SAME_WORD_SIMILARITY))
}
