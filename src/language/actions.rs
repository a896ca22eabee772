//! Whether somebody's words name an action.

use std::rc::Rc;

use super::lexicon;
use super::text::{self, Features};

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

#[cfg(test)]
mod tests {
    use super::*;

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
