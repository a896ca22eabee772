//! Values that a request corrects in the same sentence: "close ticket 120, sorry, 131" is "close ticket 131".
//!
//! Only a single number or name that stands alone after words of correction takes the place of the last value of its kind
//! before them. Anything else stays, and is asked about.

use super::dates;
use super::pattern::{Patterns, patterns};
use super::speech;
use super::text::{self, Token};

/// Words that announce a correction.
static MARKERS: &Patterns = patterns![
    "no/nope sorry/wait/actually/hang/pardon on?",
    "no or? rather",
    "no i mean/meant",
    "sorry i? mean/meant?",
    "i mean/meant",
    "or? rather",
    "oops/ops/pardon/quatsch/digo",
    "no? scusa/scusami/scusi/aspetta/anzi",
    "anzi/cioe no?",
    "enfin non?",
    "no? volevo dire",
    "no? intendevo",
    "o meglio",
    "euh non pardon?",
    "non pardon",
    "non? je veux/voulais dire",
    "ou? plutot",
    "nein ich? meine/meinte",
    "ich meine/meinte",
    "besser gesagt",
    "entschuldigung/perdon/perdona/perdone",
    "actually make? that/it?",
    "make that/it",
    "scratch/strike that",
    "no? mejor dicho",
    "no? quiero/queria/quise decir",
];

/// Small words before a corrected value.
pub(super) const LEADS: &[&str] = &[
    "the", "to", "for", "on", "at", "by", "il", "la", "lo", "l", "a", "ad", "al", "alla", "per", "di", "le",
    "les", "pour", "du", "de", "am", "an", "der", "die", "das", "den", "dem", "fur", "el", "para", "number",
    "numero", "nummer",
];

/// Marks before and after words of correction.
const MARKS: [&str; 7] = [",", ";", "-", "–", "—", "…", "("];

/// The request with the corrected value in the place of the first one. `None` if it corrects none.
pub(super) fn with_corrections(request: &str) -> Option<String> {
    let tokens = text::tokens(request);
    let quotes = speech::quoted(&tokens).contains(&true);
    if quotes || tokens.iter().any(|token| matches!(token.raw.as_str(), ":" | "?")) {
        return None;
    }
    // "Book 30 November... no, sorry, 1 December".
    let is_pause = |at: usize| tokens[at..].iter().take(2).filter(|token| token.raw == ".").count() > 1;
    (1..tokens.len()).filter(|at| is_mark(&tokens[*at]) || is_pause(*at)).find_map(|at| {
        let (first, last) = corrected_value(&tokens, at)?;
        let old = replaced_value(&tokens[..at], &tokens[first], tokens.get(first.checked_sub(1)?)?)?;
        let before = request.get(..tokens[old].start)?;
        let (value, old) = match month_after(&tokens, first) {
            Some(month) => (request.get(tokens[first].start..tokens[month].end)?, month_after(&tokens, old)?),
            None => (plain_number(&tokens[first]).unwrap_or(tokens[first].raw.as_str()), old),
        };
        let between = request.get(tokens[old].end..tokens[at].start)?.trim_end();
        Some(format!("{before}{value}{between}{}", request.get(tokens[last].end..)?))
    })
}

/// The words after an opening that only says that something before was meant otherwise: "I meant Friday".
pub(super) fn after_correction(clause: &str) -> &str {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let mut next = denied_value(&tokens, &words).unwrap_or(0);
    while let Some(end) = MARKERS.ends(&words, next).max().filter(|end| *end > next) {
        next = end;
    }
    words.get(next).filter(|_| next > 0).and_then(|word| clause.get(word.start..)).unwrap_or(clause)
}

/// The number of words that only say which value was not meant: "not Rome, (Milan)", "nicht am 14., (am 15.)".
fn denied_value(tokens: &[Token], words: &[&Token]) -> Option<usize> {
    let comma = tokens.iter().position(|token| token.raw == ",")?;
    let denied = words.iter().take_while(|word| word.start < tokens[comma].start).count();
    let (no, value) = words.get(..denied)?.split_first()?;
    let is_small = |word: &&Token| {
        plain_number(word).is_some()
            || word.capital()
            || word.is(LEADS)
            || dates::is_calendar_word(&word.norm)
    };
    let denies = no.is(&["not", "no", "nope", "nein", "non", "nicht", "pas"]);
    (denies && value.len() <= 4 && value.iter().all(is_small) && denied < words.len()).then_some(denied)
}

fn is_mark(token: &Token) -> bool {
    MARKS.contains(&token.raw.as_str())
}

/// The first and last token of a value that stands alone after words of correction after the mark at `at`: the value, and the
/// dot that may belong to it.
fn corrected_value(tokens: &[Token], at: usize) -> Option<(usize, usize)> {
    let mut next = at;
    let mut is_announced = false;
    loop {
        next += tokens[next..].iter().take_while(|token| is_mark(token) || token.raw == ".").count();
        let words: Vec<&Token> = tokens[next..].iter().take_while(|token| token.word).collect();
        // "No, 131" corrects; "no la 131" only leaves something out.
        let is_plain_no = matches!(words.as_slice(), [no] if no.is(&["no", "nope", "nein", "non"]));
        match MARKERS.ends(&words, 0).max().or(is_plain_no.then_some(1)) {
            Some(end) => next += end,
            None => break,
        }
        is_announced = true;
    }
    next += tokens[next..].iter().take_while(|token| token.is(LEADS)).count();
    let value = tokens.get(next).filter(|_| is_announced)?;
    let is_value = plain_number(value).is_some() || is_name(value) || is_code(value) || is_weekday(value);
    let last = month_after(tokens, next).unwrap_or(next);
    let dot = usize::from(
        last == next && tokens.get(next + 1).is_some_and(|dot| dot.raw == "." && tokens.len() > next + 2),
    );
    let is_alone = tokens.get(last + 1 + dot).is_none_or(|after| !after.word);
    (is_value && is_alone).then_some((next, last + dot))
}

/// The token of the month after the number at `at`: "4 December", "4. Dezember", "4 de diciembre".
fn month_after(tokens: &[Token], at: usize) -> Option<usize> {
    let is_small = |token: &Token| token.raw == "." || token.is(&["of", "de", "di"]);
    let next = at + 1 + usize::from(tokens.get(at + 1).is_some_and(is_small));
    let is_month = tokens.get(next).is_some_and(|token| dates::month(&token.norm).is_some());
    (is_month && plain_number(tokens.get(at)?).is_some()).then_some(next)
}

/// The token of the last value of the kind of `value`, after the same small word if one leads it.
fn replaced_value(tokens: &[Token], value: &Token, lead: &Token) -> Option<usize> {
    if plain_number(value).is_some() {
        return tokens.iter().rposition(|token| plain_number(token).is_some());
    }
    if is_code(value) {
        return tokens.iter().rposition(is_code);
    }
    if is_weekday(value) {
        return tokens.iter().rposition(is_weekday);
    }
    let is_led = |at: usize| !lead.is(LEADS) || at > 0 && tokens[at - 1].norm == lead.norm;
    (0..tokens.len()).rev().find(|at| is_name(&tokens[*at]) && is_led(*at))
}

/// The digits of a whole number or ordinal: "4" of "4th".
fn plain_number(token: &Token) -> Option<&str> {
    let raw = token.raw.as_str();
    let digits = ["st", "nd", "rd", "th", "er"].iter().find_map(|end| raw.strip_suffix(end)).unwrap_or(raw);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// Whether a word is a code of letters and digits: "B3".
fn is_code(token: &Token) -> bool {
    token.raw.chars().any(|c| c.is_ascii_digit())
        && token.raw.starts_with(|c: char| c.is_ascii_uppercase())
        && token.raw.chars().all(char::is_alphanumeric)
}

fn is_weekday(token: &Token) -> bool {
    dates::weekday(&token.norm).is_some()
}

/// Whether a word inside a sentence is a name.
fn is_name(token: &Token) -> bool {
    token.word
        && token.capital()
        && !token.first
        && token.raw.chars().all(char::is_alphabetic)
        && !dates::is_calendar_word(&token.norm)
        && token.features().concepts.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrected_value_takes_the_place_of_the_last_one_of_its_kind() {
        for (said, meant) in [
            ("Close ticket 120, sorry, 131", "Close ticket 131"),
            ("Chiudi il ticket 120, scusa, il 131", "Chiudi il ticket 131"),
            ("Ferme le ticket 120, euh non, le 131", "Ferme le ticket 131"),
            ("Schließe Ticket 120, Quatsch, 131", "Schließe Ticket 131"),
            ("Cierra la incidencia 120, perdón, la 131", "Cierra la incidencia 131"),
            ("Sell 3 teapots, no, 4", "Sell 4 teapots"),
            ("Blocca la baia B3, anzi no, la C7", "Blocca la baia C7"),
            ("Bloque la travée B3, enfin je veux dire C7", "Bloque la travée C7"),
            ("Assegna il ticket 131 a Laura, cioè a Omar", "Assegna il ticket 131 a Omar"),
            ("Move 4 pallets of K17, or rather 5, to bay B3", "Move 5 pallets of K17, to bay B3"),
            ("Assign ticket 131 to Laura - no wait, to Omar", "Assign ticket 131 to Omar"),
            ("Request vacation on 4 March, actually make it 5 March", "Request vacation on 5 March"),
            ("Ship order 5512 on 3 December, scratch that, on 4 December", "Ship order 5512 on 4 December"),
            ("Richiedi ferie il 3 dicembre, anzi no, il 4 gennaio", "Richiedi ferie il 4 gennaio"),
            (
                "Book a visit for Argo on 3 December, no, I mean the 4th, at 10:30",
                "Book a visit for Argo on 4 December, at 10:30",
            ),
            (
                "Buche einen Termin für Argo am 3. Dezember, nein, am 4., um 10:30 Uhr",
                "Buche einen Termin für Argo am 4. Dezember, um 10:30 Uhr",
            ),
        ] {
            assert_eq!(with_corrections(said).as_deref(), Some(meant), "{said}");
        }
    }

    #[test]
    fn what_is_no_single_value_stays() {
        for said in [
            "Sell 3 teapots, no, 4 cups",
            "Sell 3 teapots, no, don't",
            "Close ticket 120, not 131",
            "Cierra la incidencia 120, no la 131",
            "Chiudi il ticket 120, non 131",
            "Close ticket 120 and 131",
            "Did you close ticket 120, no, 131?",
            "Write \"close 120, sorry, 131\"",
            "Close it, no, 131",
            "",
        ] {
            assert_eq!(with_corrections(said), None, "{said}");
        }
        assert_eq!(after_correction("I meant Friday"), "Friday");
        assert_eq!(after_correction("no, intendevo venerdì"), "venerdì");
        assert_eq!(after_correction("Ich meinte Freitag"), "Freitag");
        assert_eq!(after_correction("perdona, quería decir Sevilla"), "Sevilla");
        assert_eq!(after_correction("not Rome, Milan"), "Milan");
        assert_eq!(after_correction("Not the 14th, the 15th"), "the 15th");
        assert_eq!(after_correction("non a Roma, a Milano"), "a Milano");
        assert_eq!(after_correction("actually, tomorrow"), "tomorrow");
        assert_eq!(after_correction("nein, in Mailand"), "in Mailand");
        assert_eq!(after_correction("No thanks, I want Rome"), "No thanks, I want Rome");
        assert_eq!(after_correction("No"), "No");
        assert_eq!(after_correction("What about Friday?"), "What about Friday?");
    }
}
