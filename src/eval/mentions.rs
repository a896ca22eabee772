//! Mentions of values in words, and the equivalence of values.

use std::collections::BTreeSet;

use deunicode::deunicode;
use jiff::civil::{Date, Weekday};
use serde_json::Value;

/// Words that do not matter in a name or a text.
const SMALL: [&str; 31] = [
    "the", "a", "an", "of", "to", "in", "on", "at", "for", "by", "il", "lo", "la", "i", "gli", "le", "l",
    "un", "uno", "una", "di", "del", "della", "dello", "dei", "delle", "dell", "d", "in", "per", "a",
];
/// Numbers as words, from 0.
const NUMBERS: [&[&str]; 13] = [
    &["zero"],
    &["one", "first", "uno", "una", "un", "primo", "prima"],
    &["two", "second", "due", "secondo"],
    &["three", "third", "tre", "terzo"],
    &["four", "fourth", "quattro", "quarto"],
    &["five", "fifth", "cinque", "quinto"],
    &["six", "sixth", "sei", "sesto"],
    &["seven", "seventh", "sette", "settimo"],
    &["eight", "eighth", "otto", "ottavo"],
    &["nine", "ninth", "nove", "nono"],
    &["ten", "tenth", "dieci", "decimo"],
    &["eleven", "eleventh", "undici"],
    &["twelve", "twelfth", "dodici", "noon", "midday", "mezzogiorno", "midnight", "mezzanotte"],
];
const DAYS: [(Weekday, [&str; 2]); 7] = [
    (Weekday::Monday, ["monday", "lunedi"]),
    (Weekday::Tuesday, ["tuesday", "martedi"]),
    (Weekday::Wednesday, ["wednesday", "mercoledi"]),
    (Weekday::Thursday, ["thursday", "giovedi"]),
    (Weekday::Friday, ["friday", "venerdi"]),
    (Weekday::Saturday, ["saturday", "sabato"]),
    (Weekday::Sunday, ["sunday", "domenica"]),
];

/// Lower-case words of letters and digits, without accents.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let plain = deunicode(text).to_lowercase();
    plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|t| !t.is_empty()).map(str::to_owned).collect()
}

fn content(text: &str) -> Vec<String> {
    let all = tokens(text);
    let left: Vec<String> = all.iter().filter(|token| !SMALL.contains(&token.as_str())).cloned().collect();
    if left.is_empty() { all } else { left }
}

/// Returns whether an argument matches the label. `|` in the label separates alternatives; a text of several words
/// may contain more of the request's words.
pub(super) fn matches_label(labelled: &Value, actual: &Value, words: &str) -> bool {
    match (labelled, actual) {
        (Value::Number(expected), actual) => match actual {
            Value::String(text) => text.parse::<f64>().ok() == expected.as_f64(),
            actual => actual.as_f64() == expected.as_f64(),
        },
        (Value::String(expected), Value::String(actual)) => {
            expected.split('|').any(|expected| same_text(expected, actual, words))
        }
        (Value::String(expected), Value::Number(actual)) => *expected == actual.to_string(),
        _ => labelled == actual,
    }
}

fn same_text(expected: &str, actual: &str, words: &str) -> bool {
    let (expected, actual) = (content(expected), content(actual));
    if expected == actual {
        return true;
    }
    let all = content(words);
    expected.len() >= 3
        && actual.len() <= 2 * expected.len() + 2
        && expected.iter().all(|token| actual.contains(token))
        && actual.iter().all(|token| all.contains(token))
}

/// Returns whether a value derives from the words: from the numbers, days, times, names or enumeration values in
/// them. `schema` is the argument's schema, `today` the day of the clock.
pub(super) fn is_mentioned(value: &Value, schema: &Value, words: &str, today: Date) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|n| number_is_mentioned(n, words)),
        Value::String(text) => {
            if schema["enum"].is_array() {
                return alternative_is_mentioned(text, schema, words);
            }
            if let Ok(date) = text.parse::<Date>() {
                return day_is_mentioned(date, words, today);
            }
            match clock_time(text) {
                Some((hour, minute)) => time_is_mentioned(hour, minute, words),
                None => {
                    let all: BTreeSet<String> = tokens(words).into_iter().collect();
                    let value = content(text);
                    !value.is_empty() && value.iter().all(|token| all.contains(token))
                }
            }
        }
        Value::Array(items) => items.iter().all(|item| is_mentioned(item, &schema["items"], words, today)),
        Value::Bool(_) | Value::Null => true,
        Value::Object(_) => false,
    }
}

fn number_is_mentioned(number: f64, words: &str) -> bool {
    let spelled = |n: f64| n.fract() == 0.0 && (0.0..13.0).contains(&n);
    let named = spelled(number) && {
        let names = NUMBERS[number as usize];
        tokens(words).iter().any(|token| names.contains(&token.as_str()))
    };
    named || numbers(words).contains(&number.to_string())
}

/// The numbers written in digits, `1,250.75` and `1.250,75` in both readings.
fn numbers(words: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for piece in words.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != ',') {
        if !piece.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let piece = piece.trim_end_matches(|c: char| !c.is_ascii_digit());
        let readings = [piece.replace(',', ""), piece.replace('.', "").replace(',', ".")];
        let parts = piece.split(|c: char| !c.is_ascii_digit()).map(str::to_owned);
        let read = readings.into_iter().chain(parts).filter_map(|text| text.parse::<f64>().ok());
        found.extend(read.map(|n| n.to_string()));
    }
    found
}

fn day_is_mentioned(date: Date, words: &str, today: Date) -> bool {
    let all = tokens(words);
    let has = |names: &[&str]| all.iter().any(|token| names.contains(&token.as_str()));
    let in_days = today.until(date).map_or(i32::MAX, |span| span.get_days());
    let relative = match in_days {
        0 => has(&["today", "oggi", "now", "adesso", "tonight", "stasera"]),
        1 => has(&["tomorrow", "domani"]),
        2 => has(&["dopodomani"]) || (has(&["after"]) && has(&["tomorrow"])),
        _ => false,
    };
    let weekday = DAYS.iter().find(|(day, _)| *day == date.weekday());
    let weekday = in_days < 15 && weekday.is_some_and(|(_, names)| has(names));
    relative || weekday || number_is_mentioned(f64::from(date.day()), words)
}

fn clock_time(text: &str) -> Option<(u32, u32)> {
    let (hour, minute) = text.split_once(':')?;
    Some((hour.parse().ok()?, minute.get(..2)?.parse().ok()?))
}

/// The hour, in 24 or 12 hours, or the next hour if minutes are counted back from it.
fn time_is_mentioned(hour: u32, minute: u32, words: &str) -> bool {
    let hours = if minute > 30 { vec![hour, hour + 1] } else { vec![hour] };
    let hours = hours.into_iter().flat_map(|hour| [hour, hour % 12, if hour == 0 { 12 } else { hour }]);
    hours.into_iter().any(|hour| number_is_mentioned(f64::from(hour), words)) || {
        let midday = hour == 12 || hour == 0;
        midday && number_is_mentioned(12.0, words)
    }
}

/// The value itself, or one of its synonyms in brackets: `van (furgone)`.
fn alternative_is_mentioned(value: &str, schema: &Value, words: &str) -> bool {
    let described = schema["description"].as_str().unwrap_or_default();
    let behind = described.split_once(&format!("{value} (")).and_then(|(_, rest)| rest.split_once(')'));
    let names = tokens(value).into_iter().chain(behind.map_or(vec![], |(names, _)| content(names)));
    let all = tokens(words);
    let alike = |name: &String, token: &String| {
        let shared = name.bytes().zip(token.bytes()).take_while(|(a, b)| a == b).count();
        name == token || shared >= name.len().saturating_sub(3).max(4)
    };
    names.into_iter().any(|name| all.iter().any(|token| alike(&name, token)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mentioned_values_are_recognised_in_other_forms() {
        let today: Date = "2026-11-22".parse().unwrap();
        let class = json!({"enum": ["small", "van"], "description": "small (utilitaria) or van (furgone)"});
        let none = Value::Null;
        for (value, schema, words, mentioned) in [
            (json!("13:30"), &none, "at half past 1 in the afternoon", true),
            (json!("08:45"), &none, "alle nove meno un quarto", true),
            (json!("13:30"), &none, "in the afternoon", false),
            (json!("2026-11-27"), &none, "venerdì", true),
            (json!("2026-11-22"), &none, "venerdì", false),
            (json!("2026-11-24"), &none, "the day after tomorrow", true),
            (json!("2027-06-16"), &none, "the 16th of June", true),
            (json!(1250.75), &none, "1.250,75 euro", true),
            (json!(1250.75), &none, "1,250.75 euros", true),
            (json!(1), &none, "cancel the one with the dentist", true),
            (json!(7), &none, "cancel the one with the dentist", false),
            (json!("van"), &class, "un furgone", true),
            (json!("small"), &class, "un furgone", false),
            (json!("Mario Rossi"), &none, "a Mario Rossi", true),
            (json!("Los Angeles"), &none, "by bus from Las Vegas", false),
        ] {
            assert_eq!(is_mentioned(&value, schema, words, today), mentioned, "{value} in {words:?}");
        }
    }

    #[test]
    fn labels_match_only_alternative_spellings() {
        let meant =
            |label: &str, actual: &str, words: &str| matches_label(&label.into(), &actual.into(), words);
        assert!(meant("Milan|Milano", "milano", "Milano"));
        assert!(!meant("Milan|Milano", "Roma", "Milano e Roma"));
        assert!(!meant("Sara Bianchi", "Bianchi", "Add Sara Bianchi"));
        let words = "Report a damage: the left mirror is cracked";
        assert!(meant("the left mirror is cracked", "left mirror is cracked", words));
        assert!(!meant("the left mirror is cracked", "the mirror", words));
    }
}
