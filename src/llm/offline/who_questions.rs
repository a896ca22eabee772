//! Questions about several people at once: "who are nweber and prossi?".

use super::clauses::Clause;
use super::lexicon;
use super::pattern::strip_fillers;
use super::text::{self, Token};

/// Splits "Who are nweber and prossi?" or "tell me who nweber is" into one question for each name, with the
/// name at its end. Returns any other clause unchanged.
pub(super) fn split_who_question(clause: &Clause) -> Vec<Clause> {
    let tokens = text::tokens(&clause.text);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let is = |t: &Token| t.lower == "è" || t.is(&["is", "are", "sono"]);
    let who = words.iter().position(|t| t.is(&["who", "chi"]));
    let names = who.and_then(|who| {
        let rest = words.get(who + 1..)?;
        let (first, last) = (rest.first()?, rest.last()?);
        match (is(first), is(last)) {
            (true, false) => rest.get(1..),
            (false, true) => rest.get(..rest.len() - 1),
            _ => None,
        }
    });
    let joins = |t: &&Token| t.is(&["and", "e", "ed"]);
    let name = |t: &Token| !lexicon::is_stop_word(&t.norm) && t.features().concepts.is_empty();
    let all = |names: &&[&Token]| !names.is_empty() && names.iter().all(|t| joins(t) || name(t));
    let (Some(who), Some(names)) = (who, names.filter(all)) else { return vec![clause.clone()] };
    let opens = clause.text.get(..words[who].end).unwrap_or_default();
    let verb = if words[who].is(&["chi"]) { "è" } else { "is" };
    let rows = names.split(joins).filter(|row| !row.is_empty());
    rows.filter_map(|row| {
        let named = clause.text.get(row.first()?.start..row.last()?.end)?;
        Some(Clause { text: format!("{opens} {verb} {named}?"), ..clause.clone() })
    })
    .collect()
}

/// Whether words begin with "who": nothing else is asked for before.
pub(super) fn opens_with_who(words: &str) -> bool {
    let tokens = text::tokens(words);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    strip_fillers(&words).first().is_some_and(|t| t.is(&["who", "chi"]))
}
