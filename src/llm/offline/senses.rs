//! What a word of a clause means where it stands.

use super::candidates::asks_who_is;
use super::lexicon;
use super::text::Token;

/// Verbs of an order to show something, where it is the speaker's own: "see my requests", "give me my requests".
pub(super) const SEE: &[&str] = &[
    "see", "view", "give", "vedi", "vedere", "voir", "montre", "montrez", "zeig", "zeige", "zeigen", "ver",
    "muestra",
];
const OWN: &[&str] =
    &["my", "our", "mio", "mia", "miei", "mie", "mon", "mes", "meine", "meinen", "mi", "mis"];
/// Words between them.
const TO_ME: &[&str] = &[
    "me", "us", "mir", "moi", "all", "tutti", "tutte", "le", "i", "la", "il", "toutes", "tous", "alle",
    "todas", "todos",
];

/// The words that a token represents: the token in its sense here, and the meaning of the pair it forms
/// with the next token.
pub(super) fn senses(tokens: &[Token], i: usize) -> Vec<&str> {
    let Some(token) = tokens.get(i) else { return Vec::new() };
    let pair = tokens.get(i + 1).and_then(|next| lexicon::pair_meaning(&token.norm, &next.norm));
    // "Book" at the start of an order or after "to" is the verb, not the noun.
    let before = i.checked_sub(1).and_then(|b| tokens.get(b)).filter(|t| t.word);
    let does = token.norm == "book"
        && before.is_none_or(|t| {
            t.is(&["to", "please", "and", "then", "you", "first", "also", "i", "we", "me", "just", "must"])
        });
    // "Is tomorrow a holiday?", but "I need a holiday".
    let is_holiday = token.norm == "holiday"
        && before.is_some_and(|t| t.is(&["a"]))
        && tokens.iter().find(|t| t.word).is_some_and(|t| t.is(&["is", "was"]));
    // "Did it work?", "I can't work that day".
    let is_success = matches!(token.norm.as_str(), "work" | "works" | "worked")
        && before.is_some_and(|t| t.is(&["it", "this", "that", "t", "not", "cannot", "hasn", "didn"]));
    let asks_who = || {
        token.is(&["wer", "qui", "quien"]) && tokens.get(i + 1).is_some_and(|next| asks_who_is(token, next))
    };
    let shows_own = || {
        let next = tokens.get(i + 1..).unwrap_or_default().iter().find(|t| !t.is(TO_ME));
        token.is(SEE) && next.is_some_and(|t| t.is(OWN))
    };
    if is_success {
        return Vec::new();
    }
    let own = match () {
        () if does => "reserve",
        () if is_holiday => "holidays",
        () if asks_who() => "who",
        // In French, "férié" is no vacation.
        () if token.lower.starts_with("féri") => "holidays",
        () if shows_own() => "show",
        () => token.norm.as_str(),
    };
    std::iter::once(own).chain(pair).collect()
}
