//! Clauses that say what somebody else does, although their verbs are those of requests: "On Monday Ada returns Dune",
//! "domani il capo annulla la richiesta 5".

use crate::llm::offline::lexicon;
use crate::llm::offline::mood;
use crate::llm::offline::pattern::{is_verb, is_verb_form};
use crate::llm::offline::text::{Token, features};

/// Words before a name that make it no subject: "for Anna book a table".
const PREPOSITIONS: &[&str] = &[
    "for", "to", "with", "of", "by", "from", "per", "a", "ad", "al", "alla", "con", "di", "del", "della",
    "da", "dal", "dalla", "pour", "avec", "fur", "mit", "von", "para",
];

/// Verbs before the verb of what somebody does or is to do.
const AUXILIARIES: &[&str] = &[
    "will", "ll", "wants", "needs", "would", "should", "must", "has", "is", "deve", "vuole", "va",
    "dovrebbe", "vorrebbe", "sta", "wird", "mochte", "veut", "doit", "quiere", "debe",
];

/// First names that are also verbs: "mark request 5 as paid".
const VERBAL_NAMES: &[&str] = &["mark", "bill", "grant", "rob", "sue"];

/// Whether the first content word of a clause is somebody, and the next one what they do. `silent` says of each token whether
/// it is quoted or part of a day or a time.
pub(super) fn says_what_somebody_does(tokens: &[Token], silent: &[bool]) -> bool {
    let is_passed = |at: usize| {
        let token = &tokens[at];
        let is_small = lexicon::is_stop_word(&token.norm)
            || lexicon::is_time_unit(&token.norm)
            || lexicon::is_pleasantry(&token.norm)
            || mood::is_date_token(token);
        !token.word || silent[at] || (is_small && !is_somebody(token))
    };
    let Some(first) = (0..tokens.len()).find(|at| !is_passed(*at)) else { return false };
    let is_led = first.checked_sub(1).is_some_and(|before| tokens[before].is(PREPOSITIONS));
    if is_led || !is_somebody(&tokens[first]) {
        return false;
    }
    // "Mario Rossi", and "also", "just".
    let goes_on =
        |token: &&Token| token.is(&["also", "just", "then", "now", "anche", "poi", "ora"]) || is_name(token);
    let rest = &tokens[first + 1..];
    let passed = rest.iter().take_while(goes_on).count();
    let may_be_order = tokens[first].is(VERBAL_NAMES);
    rest.get(passed)
        .is_some_and(|verb| verb.is(AUXILIARIES) || is_third_person(verb) || (!may_be_order && is_verb(verb)))
}

fn is_somebody(token: &Token) -> bool {
    mood::is_person_noun(token) || is_name(token)
}

/// Whether a token is a name: a common first name, or a capital inside the sentence.
fn is_name(token: &Token) -> bool {
    let is_plain = token.raw.chars().all(char::is_alphabetic) && token.raw.chars().any(char::is_lowercase);
    // "Bitte Urlaub beantragen": German nouns have capitals.
    let is_known = lexicon::is_stop_word(&token.norm) || !token.features().concepts.is_empty();
    let is_inside = !token.first && !is_known && !is_verb(token);
    token.capital() && is_plain && (lexicon::is_first_name(&token.norm) || is_inside)
}

/// Whether a word is a verb in the third person: "sells", "returns", "venderà".
fn is_third_person(token: &Token) -> bool {
    let is_known = |stem: &str| is_verb_form(stem) || lexicon::may_be_action(&features(stem).concepts);
    let is_english = ["s", "es"].iter().any(|end| token.norm.strip_suffix(end).is_some_and(is_known));
    is_english || (token.norm.len() > 4 && (token.lower.ends_with("rà") || token.norm.ends_with("ranno")))
}
