//! What people changed in a plan, as prompts tell it: what they took out is missed by nobody.
//!
//! A line is one change: a line of the readable difference of two plans (`- step 1 Weather: …`), or the
//! words in which somebody asked for it.

use super::clauses::Clause;
use super::entities::Entities;
use super::lexicon;
use super::plan_changes::{is_only, is_out, leaves_out, numbered_steps};
use super::prompt::{Executed, PromptText};
use super::text::{self, Token, name_words};

/// How like two words are that speak of the same.
const SAME: f64 = 0.8;

/// Words between things that are wanted and things that are not.
const BUT: [&str; 9] = ["but", "instead", "ma", "invece", "pero", "bensi", "mais", "sondern", "aber"];

/// What people changed in the plan of a request.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Steps, or what was in them, that are in the plan no more.
    gone: Vec<String>,
    /// Words by which something was left out.
    out: Vec<ChangePhrase>,
    /// Words by which everything else was left out.
    only: Vec<ChangePhrase>,
}

/// What somebody's words do with what they speak of.
#[derive(Debug, Clone, Copy)]
enum ChangeKind {
    /// Leave it out.
    Out,
    /// Leave everything else out.
    Only,
}

/// A part of somebody's words, with the numbers of the steps that it names.
#[derive(Debug)]
struct ChangePhrase {
    text: String,
    steps: Vec<u64>,
}

impl Changed {
    /// The section `changed` of a prompt; nothing where it is absent.
    pub fn of(prompt: &PromptText) -> Self {
        let mut changed = Self::default();
        for line in prompt.get("changed").lines().map(str::trim).take(100) {
            changed.read(line);
        }
        changed
    }

    fn read(&mut self, line: &str) {
        if let Some(step) = line.strip_prefix("- step ") {
            // Its number says nothing any more; its tools name no subject.
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

    /// Somebody's words: what they have left out, part by part.
    fn said(&mut self, line: &str) {
        let mut before = None;
        for part in parts(line) {
            let tokens = text::tokens(part);
            // "Senza il meteo, l'albergo e il treno": what follows a comma goes on with a list.
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

    /// Whether people took out what the clause at `place` (from 1) of the request asks for. What was
    /// `executed` tells what "only" was said of.
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

/// The parts of somebody's words that may say different things: "not in Milan but in Rome".
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

/// What words are about: no function words, no days, no names or figures, which other things have in common,
/// and what is done only where nothing else is said.
fn subject(words: &str) -> Vec<Token> {
    let tokens = text::tokens(words);
    // Which days they are does not matter here.
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

/// Whether `text` has a word like one of the `subject`. What only says that something is left out, or
/// alone is wanted, is none.
fn speaks_of(text: &str, subject: &[Token]) -> bool {
    let tokens = text::tokens(text);
    let says = |t: &&Token| t.word && !is_out(t) && !is_only(t);
    let said: Vec<_> = tokens.iter().filter(says).map(Token::features).collect();
    subject.iter().map(Token::features).any(|word| said.iter().any(|other| other.similarity(&word) > SAME))
}
