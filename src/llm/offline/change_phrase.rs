//! Reads the changes requested to a plan from the prompt. Clauses that the user excluded are not reported as
//! unserved.
//!
//! Each line is one change: a line of the readable diff of two plans (`- step 1 Weather: …`), or the words
//! of the person who requested it.

use super::clauses::Clause;
use super::entities::Entities;
use super::lexicon;
use super::plan_changes::{is_only, is_out, leaves_out, numbered_steps};
use super::prompt::{Executed, PromptText};
use super::text::{self, Token, name_words};

/// Similarity above which two words have the same meaning.
const SAME: f64 = 0.8;

/// Words that separate wanted from unwanted things.
const BUT: [&str; 9] = ["but", "instead", "ma", "invece", "pero", "bensi", "mais", "sondern", "aber"];

/// The changes requested to the plan of a request.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Steps, or former purposes of steps, that are no longer in the plan.
    gone: Vec<String>,
    /// Phrases that exclude something.
    out: Vec<ChangePhrase>,
    /// Phrases that exclude everything else.
    only: Vec<ChangePhrase>,
}

/// What a phrase requests for its subject.
#[derive(Debug, Clone, Copy)]
enum ChangeKind {
    /// Exclude it.
    Out,
    /// Exclude everything else.
    Only,
}

/// A phrase of the requester, with the step numbers it names.
#[derive(Debug)]
struct ChangePhrase {
    text: String,
    steps: Vec<u64>,
}

impl Changed {
    /// Reads the section `changed` of a prompt; empty if it is absent.
    pub fn of(prompt: &PromptText) -> Self {
        let mut changed = Self::default();
        for line in prompt.get("changed").lines().map(str::trim).take(100) {
            changed.read(line);
        }
        changed
    }

    fn read(&mut self, line: &str) {
        if let Some(step) = line.strip_prefix("- step ") {
            // The old step number no longer applies, and tool names are not a subject.
            let told = step.split_once(' ').map_or(step, |(_, told)| told);
            let told = told.rfind(" [").map_or(told, |tools| &told[..tools]);
            let (scene, purpose) = told.split_once(':').unwrap_or((told, ""));
            self.gone.push(format!("{} {purpose}", name_words(scene).join(" ")));
        } else if let Some(step) = line.strip_prefix("~ step ") {
            let purpose = step.split_once(": purpose ").and_then(|(_, said)| said.rsplit_once(" -> "));
            self.gone.extend(purpose.map(|(before, _)| before.to_owned()));
        } else if !line.starts_with("+ step ") {
            self.said(line);
        }
    }

    /// Adds the exclusions in the requester's words, phrase by phrase.
    fn said(&mut self, line: &str) {
        let mut before = None;
        for part in parts(line) {
            let tokens = text::tokens(part);
            // "Senza il meteo, l'albergo e il treno": a comma continues the list.
            let acts = || tokens.iter().any(|t| t.word && lexicon::is_action(&t.features().concepts));
            let listed = before.filter(|_| part.starts_with(',') && !acts());
            let kind = match (tokens.iter().any(is_only), leaves_out(&tokens)) {
                (true, _) => Some(ChangeKind::Only),
                (_, true) => Some(ChangeKind::Out),
                _ => listed,
            };
            before = kind;
            let words = ChangePhrase { text: part.to_owned(), steps: numbered_steps(&tokens) };
            match kind {
                Some(ChangeKind::Only) => self.only.push(words),
                Some(ChangeKind::Out) => self.out.push(words),
                None => {}
            }
        }
    }

    /// Whether the changes exclude the clause at position `place` (from 1) of the request. A restriction
    /// ("only …") counts only if it names a step number or matches an `executed` step.
    pub fn took_out(&self, clause: &Clause, place: u64, executed: &[Executed]) -> bool {
        let subject = subject(&clause.text);
        let speaks = |text: &str| speaks_of(text, &subject);
        let kept = |words: &&ChangePhrase| {
            !words.steps.is_empty()
                || executed.iter().any(|step| {
                    let told = format!("{} {}", name_words(&step.scene).join(" "), step.purpose);
                    speaks_of(&words.text, &self::subject(&told))
                })
        };
        self.gone.iter().any(|text| speaks(text))
            || self.out.iter().any(|words| match words.steps.as_slice() {
                [] => speaks(&words.text),
                steps => steps.contains(&place),
            })
            || self.only.iter().filter(kept).any(|words| match words.steps.as_slice() {
                [] => !speaks(&words.text),
                steps => !steps.contains(&place),
            })
    }
}

/// Splits a line into phrases that may request different changes: "not in Milan but in Rome".
fn parts(line: &str) -> Vec<&str> {
    let tokens = text::tokens(line);
    let ends = |token: &&Token| {
        !token.word && matches!(token.raw.as_str(), "," | ";" | "." | "!" | "?") || token.is(&BUT)
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
fn subject(words: &str) -> Vec<Token> {
    let tokens = text::tokens(words);
    // The reference date does not matter: only the positions of dates are used.
    let found = Entities::within(words, jiff::civil::Date::constant(2026, 1, 1));
    let telling = |(token, dated): &(&Token, &bool)| {
        let common = lexicon::is_stop(&token.norm) || lexicon::is_measure(&token.norm);
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
fn speaks_of(text: &str, subject: &[Token]) -> bool {
    let tokens = text::tokens(text);
    let says = |t: &&Token| t.word && !is_out(t) && !is_only(t);
    let said: Vec<_> = tokens.iter().filter(says).map(Token::features).collect();
    subject.iter().map(Token::features).any(|word| said.iter().any(|other| other.similarity(&word) > SAME))
}
