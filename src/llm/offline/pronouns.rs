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
            return before.is_some_and(|t| t.is(&["me", "te", "ce", "ve", "glie"]))
                || after.is_some_and(|t| t.is(&["puoi", "potete", "potresti", "potreste"]) || acts(t));
        }
        (words[i].first || !words[i].capital()) && is_suffixed(&words[i].norm)
    })
}
