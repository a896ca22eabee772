//! Numbers in digits and in words: Italian, English, and small numbers of other languages.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::text::Token;

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    /// Index of its first token.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// Its value.
    pub value: f64,
}

const UNITS: &[(&str, f64)] = &[
    ("zero", 0.0),
    ("uno", 1.0),
    ("one", 1.0),
    ("due", 2.0),
    ("two", 2.0),
    ("tre", 3.0),
    ("three", 3.0),
    ("quattro", 4.0),
    ("four", 4.0),
    ("cinque", 5.0),
    ("five", 5.0),
    ("sei", 6.0),
    ("six", 6.0),
    ("sette", 7.0),
    ("seven", 7.0),
    ("otto", 8.0),
    ("eight", 8.0),
    ("nove", 9.0),
    ("nine", 9.0),
    ("dieci", 10.0),
    ("ten", 10.0),
    ("undici", 11.0),
    ("eleven", 11.0),
    ("dodici", 12.0),
    ("twelve", 12.0),
    ("tredici", 13.0),
    ("thirteen", 13.0),
    ("quattordici", 14.0),
    ("fourteen", 14.0),
    ("quindici", 15.0),
    ("fifteen", 15.0),
    ("sedici", 16.0),
    ("sixteen", 16.0),
    ("diciassette", 17.0),
    ("seventeen", 17.0),
    ("diciotto", 18.0),
    ("eighteen", 18.0),
    ("diciannove", 19.0),
    ("nineteen", 19.0),
    ("dozen", 12.0),
    ("dozzina", 12.0),
    ("couple", 2.0),
    ("deux", 2.0),
    ("trois", 3.0),
    ("quatre", 4.0),
    ("cinq", 5.0),
    ("huit", 8.0),
    ("zwei", 2.0),
    ("drei", 3.0),
    ("vier", 4.0),
    ("funf", 5.0),
    ("sechs", 6.0),
    ("dos", 2.0),
    ("tres", 3.0),
    ("cuatro", 4.0),
    ("cinco", 5.0),
    ("seis", 6.0),
    ("ocho", 8.0),
];

const TENS: &[(&str, f64)] = &[
    ("venti", 20.0),
    ("trenta", 30.0),
    ("quaranta", 40.0),
    ("cinquanta", 50.0),
    ("sessanta", 60.0),
    ("settanta", 70.0),
    ("ottanta", 80.0),
    ("novanta", 90.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("fifty", 50.0),
    ("sixty", 60.0),
    ("seventy", 70.0),
    ("eighty", 80.0),
    ("ninety", 90.0),
];

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
    let mut words = HashMap::new();
    for (tens, value) in TENS {
        let stem = tens.trim_end_matches(['i', 'a']);
        for (unit, more) in UNITS.iter().filter(|(_, more)| *more < 10.0) {
            for joint in ["", "-"] {
                words.insert(format!("{tens}{joint}{unit}"), value + more);
                words.insert(format!("{stem}{joint}{unit}"), value + more);
            }
        }
    }
    words.extend(UNITS.iter().map(|(unit, value)| (format!("{unit}cento"), value * 100.0)));
    words.extend(UNITS.iter().chain(TENS).map(|(word, value)| ((*word).to_owned(), *value)));
    let round = [("hundred", 100.0), ("cento", 100.0), ("thousand", 1000.0), ("mille", 1000.0)];
    words.extend(round.map(|(word, value)| (word.to_owned(), value)));
    words
});

/// The value of one number word.
pub(crate) fn word(norm: &str) -> Option<f64> {
    WORDS.get(norm).copied()
}

/// Whether the word is an is_article, which is the number one only before a unit.
fn is_article(token: &Token) -> bool {
    token.is(&["un", "una", "a", "an"])
}

fn is_unit(token: &Token) -> bool {
    token.is(&[
        "ora",
        "hour",
        "week",
        "settimana",
        "notte",
        "night",
        "persona",
        "person",
        "mese",
        "month",
        "giorno",
        "day",
        "minuto",
        "minute",
        "anno",
        "year",
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
