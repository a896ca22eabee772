//! Numbers in digits and in words: Italian, English, and small numbers of other languages.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::number_words;
use super::text::Token;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    /// Index of its first token.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// Its value.
    pub value: f64,
}

/// Small numbers of other languages than Italian and English; not those that are also words of these, such as "dix" and "once".
const OF_OTHER_LANGUAGES: &str =
    "deux trois quatre cinq huit zwei drei vier funf sechs dos tres cuatro cinco seis ocho";
/// Words of number lists that are no quantity here: most of them stand beside what they count.
const NO_QUANTITIES: &str =
    "pair both paio coppia entrambi entrambe ambedue mila million millions milione milioni";

/// The value of digits: `12`, `3,5`, `3.5`, `1.000`, `1,000`.
pub(crate) fn digits(raw: &str) -> Option<f64> {
    if raw.is_empty() || raw.len() > 15 || !raw.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if !raw.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',')) {
        return None;
    }
    let parts: Vec<&str> = raw.split(['.', ',']).collect();
    match parts.as_slice() {
        [whole] => whole.parse().ok(),
        // Three digits after the separator are thousands, unless the first part is zero.
        [whole, rest] if rest.len() == 3 && *whole != "0" => format!("{whole}{rest}").parse().ok(),
        [whole, rest] => format!("{whole}.{rest}").parse().ok(),
        [head @ .., last] if head.iter().skip(1).all(|p| p.len() == 3) => {
            let head = head.concat();
            if last.len() == 3 {
                format!("{head}{last}").parse().ok()
            } else {
                format!("{head}.{last}").parse().ok()
            }
        }
        _ => None,
    }
}

/// Every number word and its value: ventuno, trentotto, twenty-five, duecento.
static WORDS: LazyLock<HashMap<String, f64>> = LazyLock::new(|| {
    let is_listed = |word: &str| NO_QUANTITIES.split(' ').all(|other| other != word);
    let mut words: HashMap<String, f64> = number_words::of_languages(&["en", "it"])
        .filter(|(word, _)| is_listed(word))
        .chain(OF_OTHER_LANGUAGES.split(' ').filter_map(|word| Some((word, number_words::spoken(word)?))))
        .map(|(word, value)| (word.to_owned(), f64::from(value)))
        .collect();
    let simple: Vec<(String, f64)> = words.iter().map(|(word, value)| (word.clone(), *value)).collect();
    let units = || simple.iter().filter(|(_, value)| *value < 20.0);
    for (tens, value) in simple.iter().filter(|(_, value)| (20.0..100.0).contains(value)) {
        let stem = tens.trim_end_matches(['i', 'a']);
        for (unit, more) in units().filter(|(_, more)| *more < 10.0) {
            for joint in ["", "-"] {
                words.insert(format!("{tens}{joint}{unit}"), value + more);
                words.insert(format!("{stem}{joint}{unit}"), value + more);
            }
        }
    }
    words.extend(units().map(|(unit, value)| (format!("{unit}cento"), value * 100.0)));
    words
});

/// The value of one number word.
pub(crate) fn word(norm: &str) -> Option<f64> {
    WORDS.get(norm).copied()
}

/// Whether the word is an article, which is the number one only before a unit.
fn is_article(token: &Token) -> bool {
    token.is(&["un", "una", "a", "an"])
}

fn is_unit(token: &Token) -> bool {
    token.is(&[
        "ora", "hour", "week", "settimana", "notte", "night", "persona", "person", "mese", "month", "giorno",
        "day", "minuto", "minute", "anno", "year",
    ])
}

/// Whether "one" is a pronoun and no number: "the one with the dentist", "another one".
fn is_pronoun(tokens: &[Token], i: usize) -> bool {
    if !tokens[i].is(&["one", "uno"]) {
        return false;
    }
    let before = i.checked_sub(1).map(|k| &tokens[k]);
    if before.is_some_and(|t| t.is(&["number", "numero", "no", "nr", "n"])) {
        return false;
    }
    let pointed = before.is_some_and(|t| {
        t.is(&[
            "the", "that", "this", "which", "each", "every", "another", "any", "other", "first", "last",
            "next", "only", "same", "new", "second", "third", "quell", "quello", "ognuno", "qualcuno",
            "nessuno",
        ])
    });
    let next = tokens.get(i + 1);
    pointed && !next.is_some_and(is_unit)
        || next.is_none_or(|t| !t.word || super::lexicon::is_stop_word(&t.norm))
}

fn is_minus(token: &Token) -> bool {
    matches!(token.raw.as_str(), "-" | "−")
}

/// Whether a minus belongs to the digits at `i`: it is written directly before them, and not directly behind a word ("3-5"), behind
/// a number ("2020 -2021"), or as the mark of a list's line.
fn has_minus(tokens: &[Token], i: usize) -> bool {
    let Some(minus) = i.checked_sub(1).and_then(|at| tokens.get(at)).filter(|token| is_minus(token)) else {
        return false;
    };
    if minus.end != tokens[i].start {
        return false;
    }
    match i.checked_sub(2).and_then(|at| tokens.get(at)) {
        None => !tokens.windows(2).any(|two| two[0].raw == "\n" && is_minus(&two[1])),
        Some(before) if before.raw == "\n" => false,
        Some(before) if before.end < minus.start => !before.digit(),
        Some(before) => {
            matches!(before.raw.as_str(), "(" | "[" | ":" | "=" | "\"" | "“" | "«" | "€" | "$" | "£")
        }
    }
}

/// All numbers of a text, in order. `sei` is a number unless it means "you are".
pub(crate) fn find(tokens: &[Token]) -> Vec<Number> {
    let mut out: Vec<Number> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let token = &tokens[i];
        let next = tokens.get(i + 1);
        if let Some(value) = digits(&token.norm) {
            out.push(match has_minus(tokens, i) {
                true => Number { first: i - 1, last: i, value: -value },
                false => Number { first: i, last: i, value },
            });
        } else if is_article(token) && next.is_some_and(is_unit) {
            out.push(Number { first: i, last: i, value: 1.0 });
        } else if token.is(&["mezz", "mezza", "half"]) && next.is_some_and(|t| t.is(&["ora", "an", "hour"])) {
            let last = if next.is_some_and(|t| t.is(&["an"])) { i + 1 } else { i };
            out.push(Number { first: i, last, value: 0.5 });
            i = last;
        } else if let Some(value) = word(&token.norm) {
            let lone_be =
                token.is(&["sei"]) && next.is_none_or(|t| !t.word || super::lexicon::is_stop_word(&t.norm));
            let pronoun = is_pronoun(tokens, i);
            if !lone_be && !pronoun {
                let mut value = value;
                let mut last = i;
                // twenty five, two hundred
                if let Some(more) = next.and_then(|t| word(&t.norm)) {
                    if (20.0..100.0).contains(&value) && more < 10.0 {
                        value += more;
                        last = i + 1;
                    } else if more >= 100.0 && value < 100.0 {
                        value *= more;
                        last = i + 1;
                    }
                }
                out.push(Number { first: i, last, value });
                i = last;
            }
        }
        i += 1;
    }
    out
}
