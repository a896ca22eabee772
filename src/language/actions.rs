//! Whether somebody's words name an action.

use std::rc::Rc;

use super::text::{self, Features};
use super::{lexicon, pattern};

/// From this similarity on, two words mean the same.
const SAME: f64 = 0.8;

/// Whether a word of `said` means one of the actions that `about` names: a tool by its name, description and examples.
/// Where no word of it is known to be an action, any of its words will do.
pub(crate) fn names_action<'a>(said: &str, name: &str, about: impl Iterator<Item = &'a str>) -> bool {
    let words = |text: &str| -> Vec<Rc<Features>> {
        let norms = text::norms(text).filter(|word| !lexicon::is_stop_word(word));
        norms.map(|word| text::features(&word)).collect()
    };
    let mut described: Vec<Rc<Features>> =
        text::name_words(name).iter().map(|word| text::features(word)).collect();
    described.extend(about.flat_map(words));
    let actions: Vec<&Rc<Features>> =
        described.iter().filter(|word| lexicon::may_be_action(&word.concepts)).collect();
    let expected = if actions.is_empty() { described.iter().collect() } else { actions };
    words(said).iter().any(|word| expected.iter().any(|one| one.similarity(word) > SAME))
}

/// Verbs that carry no action of their own: "make a transfer", "please help me send it".
const LIGHT: &str = "make do take get put give have set go come let try help use want need keep please fai fare faccia prendi \
prendere metti mettere dai dare vai andare aiuta aiutami";

/// Verbs that ask to be told something, beside lookups.
const TELLING: &str = "explain describe know see wonder tell say read look show dimmi dirmi dammi mostrami spiega spiegami spiegare \
sapere racconta raccontami leggi";

/// The verb of a clause that asks for something to be done, as far as it is known to be one; `None` where the clause asks to
/// be told something.
pub(crate) fn asked_verb(clause: &str) -> Option<String> {
    let tokens = text::tokens(clause);
    let is_told =
        |token: &text::Token| token.among(TELLING) || lexicon::is_lookup(&token.features().concepts);
    let is_verb = |token: &text::Token| pattern::is_verb(token) || token.among(TELLING);
    let verb = tokens.iter().find(|token| token.word && is_verb(token) && !token.among(LIGHT));
    verb.filter(|token| !is_told(token)).map(|token| token.norm.clone())
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
