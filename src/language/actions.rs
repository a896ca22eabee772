//! Actions that somebody's words name.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

use super::lexicon::WordSet;
use super::text::{self, Features, Token};
use super::{lexicon, pattern};

/// From this similarity on, two words mean the same.
const SAME: f64 = 0.8;

/// Returns whether a word of `said` means one of the actions that `about` names: a tool by its name, description and examples.
/// Where no word of it is known to be an action, any of its words will do.
pub(crate) fn names_action<'a>(said: &str, name: &str, about: impl Iterator<Item = &'a str>) -> bool {
    let words = |text: &str| -> Vec<Rc<Features>> {
        let tokens = text::tokens(text);
        let said = tokens.iter().filter(|token| token.word && !lexicon::is_stop_word(&token.norm));
        said.map(Token::features).collect()
    };
    let said = words(said);
    if said.is_empty() {
        return false;
    }
    let mut described: Vec<Rc<Features>> =
        text::name_words(name).iter().map(|word| text::features(word)).collect();
    described.extend(about.flat_map(words));
    let is_action = |word: &Rc<Features>| lexicon::may_be_action(&word.concepts);
    let has_actions = described.iter().any(is_action);
    let mut expected = described.iter().filter(|word| !has_actions || is_action(word));
    expected.any(|one| said.iter().any(|word| one.similarity(word) > SAME))
}

/// Verbs that carry no action of their own: "make a transfer", "please help me send it".
const LIGHT: &str = "make do take get put give have set go come let try help use want need keep please fai fare faccia prendi \
prendere metti mettere dai dare vai andare aiuta aiutami";

/// Verbs that ask to be told something, beside lookups.
const TELLING: &str = "explain describe know see wonder tell say read look show dimmi dirmi dammi mostrami spiega spiegami spiegare \
sapere racconta raccontami leggi";

static LIGHT_SET: WordSet = LazyLock::new(|| LIGHT.split_whitespace().collect());
static TELLING_SET: WordSet = LazyLock::new(|| TELLING.split_whitespace().collect());

/// The verb of a clause that asks for something to be done, as far as it is known to be one; `None` where the clause asks to
/// be told something.
pub(crate) fn asked_verb(clause: &str) -> Option<String> {
    let tokens = text::tokens(clause);
    let verb = tokens.iter().find(|token| may_be_asked(token));
    verb.filter(|token| !is_telling(token)).map(|token| token.norm.to_string())
}

/// Returns whether a clause asks to be told something, as far as its first verb is known.
pub(crate) fn asks_to_be_told(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    tokens.iter().find(|token| may_be_asked(token)).is_some_and(is_telling)
}

/// The verbs of a text of which [`asked_verb`] may find one in a clause of the text, each once, with blanks between; `None` where
/// only reading the clauses can tell, since a part of a mail or web address reads differently.
pub(crate) fn possible_verbs(text: &str) -> Option<String> {
    if text.contains('@') || text.contains("://") {
        return None;
    }
    let tokens = text::tokens(text);
    let verbs = tokens.iter().filter(|token| may_be_asked(token) && !is_telling(token));
    let verbs: BTreeSet<&str> = verbs.map(|token| token.norm.as_str()).collect();
    Some(verbs.into_iter().collect::<Vec<_>>().join(" "))
}

/// Whether a token is a verb with an action of its own.
fn may_be_asked(token: &Token) -> bool {
    let norm = token.norm.as_str();
    token.word && (pattern::is_verb(token) || TELLING_SET.contains(norm)) && !LIGHT_SET.contains(norm)
}

/// Whether a verb asks to be told something.
fn is_telling(verb: &Token) -> bool {
    TELLING_SET.contains(verb.norm.as_str()) || lexicon::is_lookup(&verb.features().concepts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verb_of_a_clause_is_what_is_asked_for() {
        for (clause, verb) in [
            ("Please send 50 euros to Bob", Some("send")),
            ("make a transfer of 50 euros", Some("transfer")),
            ("Write a poem about sending money", Some("write")),
            ("tell me how bookings work", None),
            ("Show my bookings", None),
            ("spiegami come si prenota una sala", None),
            ("vorrei prenotare la sala", Some("prenotare")),
            ("50 euros", None),
        ] {
            assert_eq!(asked_verb(clause).as_deref(), verb, "{clause}");
        }
    }

    #[test]
    fn action_is_named_in_other_words_and_languages() {
        let book = |said: &str| {
            names_action(
                said,
                "BookRoom",
                ["Books a meeting room for a day.", "Reserve the big room"].into_iter(),
            )
        };
        assert!(book("Book me room 5"));
        assert!(book("Could you reserve the room for tomorrow?"));
        assert!(book("Prenota la sala grande"));
        assert!(!book("Which rooms are free tomorrow?"));
        assert!(!book("Che sale sono libere domani?"));
    }

    #[test]
    fn any_word_will_do_where_no_action_is_known() {
        assert!(names_action("zorble it", "Zorble", std::iter::empty()));
        assert!(!names_action("look at it", "Zorble", std::iter::empty()));
    }
}
