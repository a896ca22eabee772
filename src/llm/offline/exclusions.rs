//! What a request leaves out at its end: "close 131 but not 120", "chiudi il 131, il 120 no". It is left out before the request is
//! planned, where the words only name a value that the rest does not name; anything else stays, and is asked about.

use super::entities::Entities;
use super::lexicon;
use super::mood;
use super::pattern::is_verb;
use super::speech;
use super::text::{self, Token};

/// The most words of such a part.
const MAX_WORDS: usize = 6;
const BUT: &[&str] = &["but", "ma", "pero", "mais", "aber"];
const NOT: &[&str] = &["not", "non", "nicht", "pas", "no"];
/// Words that stress a negation, or set it against what was said before.
const STRESS: &[&str] = &[
    "definitely",
    "certainly",
    "please",
    "assolutamente",
    "invece",
    "surtout",
    "auf",
    "keinen",
    "fall",
    "bitte",
    "instead",
    "ojo",
    "though",
    "por",
    "favor",
];
/// Small words before the value.
const LEADS: &[&str] = &[
    "the", "il", "lo", "la", "l", "le", "i", "gli", "les", "der", "die", "das", "den", "el", "los", "las",
    "number", "numero", "nummer", "to", "a", "ad", "zu", "of", "for",
];

/// The request without the value that its end leaves out. `None` if there is none.
pub(super) fn without_exclusion(request: &str) -> Option<String> {
    let tokens = text::tokens(request);
    if speech::quoted(&tokens).contains(&true)
        || tokens.iter().any(|token| matches!(token.raw.as_str(), "?" | ":"))
    {
        return None;
    }
    let end = tokens.iter().rposition(|token| token.word)? + 1;
    let is_end = tokens[end..].iter().all(|token| matches!(token.raw.as_str(), "." | "!"));
    let starts = (1..end).filter(|at| is_end && (tokens[*at].is(BUT) || tokens[*at].raw == ","));
    starts.rev().find_map(|at| {
        let mark = at.checked_sub(1).filter(|mark| tokens[*mark].raw == ",").unwrap_or(at);
        let said = &tokens[..mark];
        let part: Vec<&Token> = tokens[at..end]
            .iter()
            .filter(|token| token.word && !token.is(STRESS) && !token.is(BUT))
            .collect();
        let contrasts = tokens[at].is(BUT);
        let is_left_out = is_excluded(&part, contrasts) && is_new(&part, said);
        // "From 8 to 10 February but not the 9th": days are read with their exceptions.
        let may_be_day = has_days(request) && part.iter().any(|word| word.digit() && word.norm.len() < 3);
        (is_left_out && !may_be_day && said.iter().any(|token| token.word)).then(|| {
            let tail = request.get(tokens[end - 1].end..).unwrap_or_default();
            format!("{}{tail}", request.get(..tokens[mark].start).unwrap_or_default().trim_end())
        })
    })
}

/// Whether words are a negation and a value, in either order. After a comma, "no" before a value corrects what precedes it.
fn is_excluded(words: &[&Token], contrasts: bool) -> bool {
    let negated = words.iter().filter(|word| word.is(NOT)).count() == 1 && words.len() <= MAX_WORDS;
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    let value = match () {
        () if first.is(NOT) && (contrasts || !first.is(&["no"])) => &words[1..],
        () if last.is(NOT) => &words[..words.len() - 1],
        () => return false,
    };
    negated && is_value(value)
}

/// Whether words are no more than a value, with a noun before it: "il 120", "the bay C7", "Omar".
fn is_value(words: &[&Token]) -> bool {
    let own: Vec<&&Token> = words.iter().skip_while(|word| word.is(LEADS)).collect();
    let Some((value, nouns)) = own.split_last() else { return false };
    let is_name = value.capital() && !lexicon::is_stop_word(&value.norm);
    let is_plain = |word: &&&Token| !is_verb(word) && !lexicon::is_stop_word(&word.norm) && !word.digit();
    (value.digit() || is_name)
        && nouns.len() <= 1
        && nouns.iter().all(is_plain)
        && !own.iter().any(|word| is_day(word))
}

/// Whether a word belongs to a day or a time, which are read with their exceptions.
fn is_day(word: &Token) -> bool {
    (mood::is_date_token(word) && !word.digit())
        || lexicon::is_time_unit(&word.norm)
        || word.raw.contains(['/', '.', ':'])
}

fn has_days(request: &str) -> bool {
    !Entities::in_text(request, jiff::civil::Date::constant(2026, 1, 1)).days.is_empty()
}

/// Whether the rest of the request does not name the value, and has another one of its kind.
fn is_new(part: &[&Token], said: &[Token]) -> bool {
    let is_value = |word: &Token| word.digit() || word.capital() && !lexicon::is_stop_word(&word.norm);
    part.iter().filter(|word| is_value(word)).all(|word| {
        let is_like =
            |token: &Token| token.word && token.digit() == word.digit() && is_value(token) && !token.first;
        !said.iter().any(|token| token.norm == word.norm) && said.iter().any(is_like)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_that_is_left_out_is_no_part_of_the_request() {
        for (said, own) in [
            ("Close ticket 131 but not 120", "Close ticket 131"),
            ("Close ticket 131, not 120.", "Close ticket 131."),
            ("Close 131 but definitely not ticket 120", "Close 131"),
            ("Chiudi il ticket 131, il 120 no", "Chiudi il ticket 131"),
            ("Blocca la baia B3 ma non la C7", "Blocca la baia B3"),
            ("Ferme le ticket 131 mais pas le 120", "Ferme le ticket 131"),
            ("Bloque la travée B3, mais surtout pas la C7", "Bloque la travée B3"),
            ("Schließe Ticket 131, aber nicht 120", "Schließe Ticket 131"),
            ("Sperre Platz B3, C7 aber nicht", "Sperre Platz B3"),
            ("Cierra la incidencia 131 pero no la 120", "Cierra la incidencia 131"),
            ("Assign ticket 131 to Omar, not to Laura", "Assign ticket 131 to Omar"),
        ] {
            assert_eq!(without_exclusion(said).as_deref(), Some(own), "{said}");
        }
    }

    #[test]
    fn what_may_mean_more_stays() {
        for said in [
            "Close ticket 131",
            "Close ticket 131, not yet",
            "Close ticket 131, not now",
            "Close tickets 120, 131 and 133, well, not 133",
            "Close ticket 131 but not before Laura agrees",
            "Close ticket 131 but don't close 120",
            "Cierra la 120, no la 131",
            "Cierra la 120, no, la 131",
            "Ship order 5512 on 3 December, not on 4 December",
            "Richiedi ferie dall'8 al 10 febbraio ma non il 9",
            "Did you close ticket 131 but not 120?",
            "Close it but not 120",
            "Annulla la richiesta 1, no",
            "Lend \"Love, not 5\" to Ada",
            "Not 120",
            "",
        ] {
            assert_eq!(without_exclusion(said), None, "{said}");
        }
    }
}
