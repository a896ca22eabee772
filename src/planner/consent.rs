//! Recognises messages that are a plain yes or no.

/// Words for yes, in the languages of the shipped scenes.
pub(super) const YES: [&str; 45] = [
    "yes", "y", "yep", "yeah", "ok", "okay", "approve", "approved", "go ahead", "do it", "confirm",
    "confirmed", "sure", "sì", "si", "va bene", "approvo", "approva", "confermo", "conferma", "procedi",
    "oui", "d'accord", "j'approuve", "ja", "einverstanden", "genehmigt", "sí", "de acuerdo", "apruebo",
    "certo", "hazlo", "claro", "correct", "that's right", "that's correct", "absolutely", "exactly",
    "esatto", "genau", "gerne", "passt", "vale", "exactement", "👍",
];

const NO: [&str; 37] = [
    "no", "n", "nope", "reject", "rejected", "don't", "do not", "deny", "denied", "cancel it", "rifiuto",
    "rifiuta", "annulla", "non farlo", "non", "je refuse", "refuser", "nein", "abgelehnt", "rechazo",
    "no lo hagas", "ablehnen", "neither", "none", "none of them", "neither of them", "of course not",
    "certo che no", "nessuno", "nessuna", "bien sûr que non", "aucun", "aucune", "natürlich nicht",
    "claro que no", "ninguno", "ninguna",
];

/// Polite words that may accompany a yes or a no.
pub(super) const POLITE: [&str; 14] = [
    "please", "thanks", "thank you", "per favore", "grazie", "merci", "s'il te plaît", "s'il vous plaît",
    "bitte", "danke", "gracias", "por favor", "thx", "pls",
];

/// `true` for a yes, `false` for a no, `None` for anything else. An ambiguous yes is not a yes, since it
/// would execute something.
pub fn parse_consent(message: &str) -> Option<bool> {
    let lower = message.to_lowercase().replace('’', "'");
    let phrases = lower.split([',', '.', '!', ';', '\n']).map(str::trim).filter(|phrase| !phrase.is_empty());
    let mut consent = None;
    for phrase in phrases {
        let mut words = phrase;
        for polite in POLITE {
            words = strip_politeness(words.strip_suffix(polite), |rest| rest.chars().next_back())
                .unwrap_or(words);
            words = strip_politeness(words.strip_prefix(polite), |rest| rest.chars().next()).unwrap_or(words);
        }
        let this = match words {
            "" => continue,
            yes if is_yes(yes) => true,
            no if NO.contains(&no) => false,
            _ => return None,
        };
        if consent.is_some_and(|before| before != this) {
            return None;
        }
        consent = Some(this);
    }
    consent
}

/// Whether a phrase is one or more words for yes: "yep go ahead".
fn is_yes(mut phrase: &str) -> bool {
    while !YES.contains(&phrase) {
        let rest = YES.iter().find_map(|yes| phrase.strip_prefix(yes)?.strip_prefix(' '));
        let Some(rest) = rest else { return false };
        phrase = rest;
    }
    true
}

/// Words that postpone a decision.
const LATER: [&str; 14] = [
    "not yet", "wait", "later", "not now", "non ancora", "aspetta", "più tardi", "non adesso", "noch nicht",
    "später", "pas encore", "plus tard", "todavía no", "aún no",
];

/// Words that qualify a yes or a no.
const BUT: [&str; 12] =
    ["but", "only", "except", "ma", "però", "solo", "aber", "nur", "mais", "seulement", "pero", "sino"];

/// Returns whether a message replies to a question without deciding it: "not yet", or a yes or no with a condition.
pub fn is_undecided(message: &str) -> bool {
    let lower = message.to_lowercase().replace('’', "'");
    let text = lower.trim().trim_end_matches(['.', '!', '…', ' ']);
    if LATER.contains(&text) {
        return true;
    }
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let decides = YES.contains(&first) || NO.contains(&first);
    decides && words.next().is_some_and(|second| BUT.contains(&second))
}

/// The phrase without a polite word, if that was a separate word.
fn strip_politeness(rest: Option<&str>, edge: impl Fn(&str) -> Option<char>) -> Option<&str> {
    rest.filter(|rest| edge(rest).is_none_or(char::is_whitespace)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_delays_decide_nothing() {
        for text in [
            "Yes, but from 20 to 21 July",
            "sì, ma solo il 20",
            "not yet",
            "Non ancora.",
            "No, only the weather",
        ] {
            assert!(is_undecided(text) && parse_consent(text).is_none(), "{text}");
        }
        for text in ["yes", "no", "What is the weather?", "But what is the weather?", "Yes, and the weather?"]
        {
            assert!(!is_undecided(text), "{text}");
        }
    }

    #[test]
    fn only_a_plain_yes_or_no_counts_as_consent() {
        for yes in [
            "yes", "Yes, please!", "Sì, grazie.", "OK", "va bene, procedi", "Ja bitte", "d’accord",
            "yep go ahead", "ok yes do it", "certo", "sí, hazlo", "Ja gerne", "That’s right.", "vale", "👍",
        ] {
            assert_eq!(parse_consent(yes), Some(true), "{yes}");
        }
        for no in
            ["No", "no, thanks", "Annulla.", "nein, danke", "do not", "neither", "certo che no", "no, none"]
        {
            assert_eq!(parse_consent(no), Some(false), "{no}");
        }
        for other in [
            "", "please", "yes, but two days only", "what is the weather?", "yes, no", "non lo so",
            "is it ok?", "approve the other one", "ok google", "danken", "bitten", "yesplease", "yes go",
        ] {
            assert_eq!(parse_consent(other), None, "{other}");
        }
    }
}
