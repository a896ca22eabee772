//! What a word of a clause means where it stands.

use super::candidates::asks_who_is;
use super::lexicon;
use super::text::Token;

/// Verbs of an order to show something, where it is the speaker's own: "see my requests", "give me my requests".
pub(super) const SEE: &[&str] = &[
    "see", "view", "give", "vedi", "vedere", "voir", "montre", "montrez", "montre-moi", "montrez-moi",
    "zeig", "zeige", "zeigen", "ver", "muestra", "muestrame",
];
const OWN: &[&str] =
    &["my", "our", "mio", "mia", "miei", "mie", "mon", "mes", "meine", "meinen", "mi", "mis"];
/// Words between them.
const TO_ME: &[&str] = &[
    "me", "us", "mir", "moi", "all", "tutti", "tutte", "le", "i", "la", "il", "toutes", "tous", "alle",
    "todas", "todos",
];

/// Words that say that all of something is meant.
pub(super) const ENTIRE: &[&str] = &["full", "whole", "entire", "complete"];
/// Words before "work" where it is no place: "it worked", "I can't work", "I have to work".
const BEFORE_WORK: &[&str] = &[
    "it", "this", "that", "t", "not", "cannot", "hasn", "didn", "to", "ll", "will", "must", "m", "am", "be",
    "re",
];
const FOREIGN_WORK: &[&str] =
    &["lavoro", "lavorare", "travaille", "travailler", "trabajo", "trabajar", "arbeiten"];
const BEFORE_FOREIGN_WORK: &[&str] = &["non", "ne", "no", "devo", "dobbiamo", "dois", "que", "muss"];
/// Words before the verb "leave".
const LEAVES: &[&str] = &[
    "i", "we", "they", "he", "she", "m", "am", "re", "are", "be", "will", "ll", "can", "could", "must",
    "may", "might", "should", "would",
];
/// Words before "to leave".
const WANTS: &[&str] = &[
    "want", "wants", "need", "needs", "have", "has", "like", "love", "going", "plan", "planning", "got",
    "able", "allowed", "supposed", "wish", "prefer", "due", "possible", "ok", "okay",
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
    // "Is tomorrow a holiday?", "if it is not a holiday", but "I need a holiday".
    let is_holiday = token.norm == "holiday"
        && before.is_some_and(|t| t.is(&["a"]))
        && (tokens.iter().find(|t| t.word).is_some_and(|t| t.is(&["is", "was"]))
            || i > 1 && tokens[i - 2].is(&["is", "s", "was", "not", "t"]));
    let asks_who = || {
        token.is(&["wer", "qui", "quien"]) && tokens.get(i + 1).is_some_and(|next| asks_who_is(token, next))
    };
    let shows_own = || {
        let next = tokens.get(i + 1..).unwrap_or_default().iter().find(|t| !t.is(TO_ME));
        token.is(SEE) && next.is_some_and(|t| t.is(OWN))
    };
    if means_nothing(tokens, i) {
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

/// Whether a token names nothing here that its word names elsewhere: "did it work?", "I have to leave early", "the full list".
fn means_nothing(tokens: &[Token], i: usize) -> bool {
    let token = &tokens[i];
    let back = |count: usize| i.checked_sub(count).and_then(|at| tokens.get(at)).filter(|t| t.word);
    let before = |words: &[&str]| back(1).is_some_and(|t| t.is(words));
    // Where somebody works is a matter of their profile.
    let works = token.is(&["work", "works", "worked", "working"]) && before(BEFORE_WORK)
        || token.is(FOREIGN_WORK) && before(BEFORE_FOREIGN_WORK);
    // "I need leave", "entitled to leave": time off.
    let goes = token.is(&["leave", "leaving"])
        && (before(LEAVES) || before(&["to"]) && back(2).is_some_and(|t| t.is(WANTS)));
    works || goes || says_all(tokens, i)
}

/// Whether a token only says that all of something is meant: "the full list", "the whole day"; not "my full name".
pub(super) fn says_all(tokens: &[Token], i: usize) -> bool {
    let token = &tokens[i];
    let is_led = || i > 0 && tokens[i - 1].is(&["the", "a"]);
    token.is(ENTIRE)
        && (token.norm != "complete" || is_led())
        && !token.first
        && tokens.get(i + 1).is_some_and(|next| next.word && !next.is(&["name", "names"]))
}
