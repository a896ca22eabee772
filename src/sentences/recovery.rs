//! Questions to users about what failed.

use super::pick;

/// The question how to continue after `what` could not be done; `why` is a sentence for users.
pub(crate) fn ask_how_to_continue(language: Option<&str>, what: &str, why: &str) -> String {
    let failed = pick(
        language,
        [
            "could not be done:",
            "non è riuscito:",
            "konnte nicht erledigt werden:",
            "n'a pas pu être fait :",
            "no se ha podido hacer:",
        ],
    );
    let question = pick(
        language,
        [
            "Should it be tried again, done differently or left out?",
            "Va riprovato, fatto diversamente o tralasciato?",
            "Soll es noch einmal versucht, anders gemacht oder weggelassen werden?",
            "Faut-il réessayer, faire autrement ou laisser de côté ?",
            "¿Hay que intentarlo de nuevo, hacerlo de otra manera o dejarlo?",
        ],
    );
    format!("{what} {failed} {} {question}", why.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_names_what_failed_and_why() {
        let text = ask_how_to_continue(Some("en"), "Look: Milan", "Nothing was found for this.");
        assert_eq!(
            text,
            "Look: Milan could not be done: Nothing was found for this. Should it be tried again, done differently or \
             left out?"
        );
        for language in ["it", "de", "fr", "es"] {
            let other = ask_how_to_continue(Some(language), "Look: Milan", "Why.");
            assert!(other.starts_with("Look: Milan ") && !other.contains("could not"), "{other}");
        }
    }
}
