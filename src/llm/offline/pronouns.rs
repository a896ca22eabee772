//! Pronouns as objects of orders: "potresti prenotarlo?", "please book it".

use super::lexicon;
use super::text::Token;

/// Maximum length in words of an order that only refers back.
const MAX_ORDER_WORDS: usize = 9;

/// Pronouns that Italian appends to a verb, longer ones first.
const ENDINGS: &[&str] = &[
    "glielo", "gliela", "glieli", "gliele", "melo", "mela", "meli", "mele", "celo", "cela", "celi", "cele",
    "lo", "la", "li", "le",
];

/// Pronouns that Italian appends to a verb for whom something is done.
const PERSONS: &[&str] = &["mi", "ti", "ci", "gli"];

/// A word without such a pronoun at its end: "prenotami" → "prenota".
pub(super) fn without_person(norm: &str) -> Option<&str> {
    PERSONS.iter().find_map(|person| norm.strip_suffix(person)).filter(|verb| verb.len() >= 4)
}

/// Whether a word is a verb with a suffixed object pronoun: "prenotarlo", "prestarmelo", "prenotali".
pub(super) fn is_suffixed(norm: &str) -> bool {
    if norm.len() < 6 {
        return false;
    }
    ENDINGS.iter().filter_map(|ending| norm.strip_suffix(ending)).any(|verb| {
        let infinitive = verb.len() >= 4 && verb.ends_with(['r']) && {
            let before = verb.as_bytes().get(verb.len() - 2).copied();
            matches!(before, Some(b'a' | b'e' | b'i'))
        };
        infinitive || verb.len() >= 4 && lexicon::is_action(&super::text::features(verb).concepts)
    })
}

/// Pronouns that French joins to an order by a hyphen, and those that Spanish and Italian append to one.
const JOINED: &[&str] = &["la", "le", "les", "lo", "los", "las", "li"];

/// A word without each pronoun that may be joined to its end: "spostale" → "sposta".
pub(super) fn without_joined(norm: &str) -> impl Iterator<Item = &str> {
    JOINED.iter().filter_map(|pronoun| norm.strip_suffix(pronoun)).map(|verb| verb.trim_end_matches('-'))
}

/// A text whose first word is an order with a joined object pronoun, with the pronoun as a word of its own: "chiudilo" →
/// "chiudi lo", "ferme-le" → "ferme le", "ciérrala" → "cierra la". `is_known` says whether a word is a verb that somebody
/// knows; `None` where there is no such order.
pub(super) fn with_own_pronoun(words: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let tokens = super::text::tokens(words);
    let all: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let order = *super::pattern::strip_fillers(&all).first()?;
    let is_whole = tokens.iter().all(|t| t.word || matches!(t.raw.as_str(), "." | "!" | "," | "'"));
    if !is_whole || is_known(&order.norm) {
        return None;
    }
    let (verb, pronoun) = JOINED.iter().find_map(|pronoun| {
        let verb = order.norm.strip_suffix(pronoun)?.trim_end_matches('-');
        (verb.len() >= 4 && !verb.ends_with('r') && is_known(verb)).then_some((verb, *pronoun))
    })?;
    Some(format!("{}{verb} {pronoun}{}", words.get(..order.start)?, words.get(order.end..)?))
}

/// Whether words end with an order and its object, a pronoun: "annulla la", "puoi annullarla?"
pub(super) fn ends_with_object(tokens: &[Token]) -> bool {
    let is_small = |token: &Token| lexicon::is_pleasantry(&token.norm) || lexicon::is_stop_word(&token.norm);
    let says_nothing = |token: &&&Token| is_small(token) && !token.is(JOINED);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let asked = words.len() - words.iter().rev().take_while(says_nothing).count();
    match &words[..asked] {
        [.., order, pronoun] if pronoun.is(JOINED) => lexicon::may_be_action(&order.features().concepts),
        [.., order] => is_suffixed(&order.norm),
        [] => false,
    }
}

/// Which of several things somebody means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The one with this number, from 0.
    Nth(usize),
    Last,
}

/// "The second one", "il primo", "das zweite": the place of a thing in a list, if words name one thing so, and the token that
/// says it. A number before a noun or a month counts something else.
pub(super) fn place_in_list(tokens: &[Token]) -> Option<(usize, Place)> {
    const LAST: &[&str] =
        &["last", "ultimo", "ultima", "dernier", "derniere", "letzte", "letzten", "letztes"];
    const LEADS: &[&str] = &["the", "il", "lo", "la", "l", "le", "der", "die", "das", "den", "dem", "el"];
    let is_led = |at: usize| {
        let before = tokens[..at].iter().rev().find(|token| token.word);
        before.is_some_and(|token| token.is(LEADS))
    };
    let at = (1..tokens.len()).find(|at| is_led(*at) && place_of(&tokens[*at], LAST).is_some())?;
    let ends = tokens.get(at + 1).is_none_or(|next| {
        !next.word || next.is(&["one", "bitte", "please", "pls", "per", "svp", "por", "grazie", "then"])
    });
    place_of(&tokens[at], LAST).filter(|_| ends).map(|place| (at, place))
}

fn place_of(token: &Token, last: &[&str]) -> Option<Place> {
    if token.is(last) {
        return Some(Place::Last);
    }
    let number = crate::language::number_words::ordinal(&token.norm).filter(|_| !token.digit())?;
    usize::try_from(number).ok()?.checked_sub(1).map(Place::Nth)
}

/// The order at the end of a text whose object is a pronoun for the text before it.
pub(super) fn closing_order(words: &str) -> Option<&str> {
    let tokens = super::text::tokens(words);
    let mark = tokens.iter().rposition(|t| matches!(t.raw.as_str(), "," | ":" | ";" | "."))?;
    let last = tokens.get(mark + 1..).filter(|rest| hands_back(rest))?;
    words.get(last.first()?.start..)
}

/// Whether these words are a short order or question with a pronoun as its object.
pub(super) fn hands_back(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    if words.is_empty() || words.len() > MAX_ORDER_WORDS {
        return false;
    }
    let acts = |t: &Token| lexicon::may_be_action(&t.features().concepts);
    (0..words.len()).any(|i| {
        let before = i.checked_sub(1).map(|b| words[b]);
        let after = words.get(i + 1);
        if words[i].is(&["it", "them"]) {
            // "Reserve it", "lend it to me"; not "is it", "it is".
            return before
                .is_some_and(|t| !lexicon::is_stop_word(&t.norm) && !lexicon::is_question_word(&t.norm));
        }
        if words[i].is(&["lo", "la", "li", "le"]) {
            // "Me lo tieni?", "lo puoi prenotare?", "la prenoti?"; not "la sala".
            return ends_with_object(tokens)
                || before.is_some_and(|t| t.is(&["me", "te", "ce", "ve", "glie"]))
                || after.is_some_and(|t| t.is(&["puoi", "potete", "potresti", "potreste"]) || acts(t));
        }
        (words[i].first || !words[i].capital()) && is_suffixed(&words[i].norm)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::offline::text::tokens;

    #[test]
    fn joined_pronoun_becomes_a_word_of_its_own() {
        let known = |word: &str| ["chiudi", "ferme", "cierra", "vendi", "segnala"].contains(&word);
        for (said, own) in [
            ("chiudilo", Some("chiudi lo")),
            ("Per favore chiudila!", Some("Per favore chiudi la!")),
            ("ferme-le", Some("ferme le")),
            ("ciérrala", Some("cierra la")),
            ("segnala un guasto", None),
            ("chiuderlo", None),
            ("non chiuderlo", None),
            ("Il ticket è risolto: chiudilo", None),
            ("tavola", None),
            ("", None),
        ] {
            assert_eq!(with_own_pronoun(said, known).as_deref(), own, "{said}");
        }
    }

    #[test]
    fn place_in_a_list_is_read_where_nothing_else_is_counted() {
        for (said, place) in [
            ("Close the second one", Some(Place::Nth(1))),
            ("chiudi il primo", Some(Place::Nth(0))),
            ("chiudi l'ultimo", Some(Place::Last)),
            ("ferme le deuxième", Some(Place::Nth(1))),
            ("schließ das zweite", Some(Place::Nth(1))),
            ("cierra la segunda", Some(Place::Nth(1))),
            ("il primo dicembre", None),
            ("the second ticket", None),
            ("first close it", None),
            ("close the 2nd", None),
        ] {
            assert_eq!(place_in_list(&tokens(said)).map(|found| found.1), place, "{said}");
        }
    }
}
