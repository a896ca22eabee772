//! Parses almost-JSON: exactly first, then with the deviations that are typical of models.

use serde_json::Value;

use super::scan::{MAX_DEPTH, depth};
use crate::long_integers;

/// The value of `piece`, or what is wrong with it. Beyond JSON it accepts JSON5 (trailing commas,
/// comments, single quotes, names without quotes), raw line breaks in strings, and Python's words for
/// true, false and null. Numbers that JSON does not have (NaN, Infinity) are refused.
pub(crate) fn parse(piece: &str) -> Result<Value, String> {
    let exact = match long_integers::parse(piece.as_bytes()) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    // The lenient parser recurses without a bound.
    if depth(piece) > MAX_DEPTH {
        return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
    }
    repair(piece).and_then(|repaired| json5::from_str(&repaired).ok()).ok_or(exact)
}

/// The piece with line breaks in strings escaped and Python's words translated; `None` for words that
/// have no JSON value.
fn repair(piece: &str) -> Option<String> {
    let mut out = String::with_capacity(piece.len() + 16);
    let mut rest = piece;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' | '\'' => string(rest, c, &mut out),
            '/' if rest.starts_with("//") || rest.starts_with("/*") => comment(rest),
            c if c.is_ascii_alphabetic() || c == '_' => word(rest, &mut out)?,
            c if c.is_ascii_digit() => number(rest, &mut out)?,
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..)?;
    }
    Some(out)
}

/// Copies a string, its line breaks and other control characters escaped.
fn string(rest: &str, quote: char, out: &mut String) -> usize {
    let mut escaped = false;
    for (i, c) in rest.char_indices() {
        match c {
            c if (c as u32) < 0x20 => {
                if escaped {
                    // A backslash before a raw line break: keep the break, drop the backslash's meaning.
                    out.push('\\');
                }
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
        if i > 0 && c == quote && !escaped {
            return i + c.len_utf8();
        }
        escaped = i > 0 && c == '\\' && !escaped;
    }
    rest.len()
}

fn comment(rest: &str) -> usize {
    let (end, skip) = if rest.starts_with("//") { ("\n", 0) } else { ("*/", 2) };
    rest.get(2..).and_then(|body| body.find(end)).map_or(rest.len(), |at| 2 + at + skip)
}

fn word(rest: &str, out: &mut String) -> Option<usize> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = &rest[..end];
    let is_key = rest[end..].trim_start().starts_with(':');
    out.push_str(match word {
        _ if is_key => word,
        "True" => "true",
        "False" => "false",
        "None" => "null",
        "NaN" | "Infinity" => return None,
        _ => word,
    });
    Some(end)
}

/// Copies a whole number, so that the `e` of `1e5` is not taken for a word. `None` for one that is too large: the lenient
/// parser would read null. An integer beyond 64 bits becomes a text, which keeps its digits.
fn number(rest: &str, out: &mut String) -> Option<usize> {
    let mut before = ' ';
    let end = rest.find(|c: char| {
        let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = c;
        !(c.is_ascii_alphanumeric() || c == '.' || is_sign)
    });
    let text = &rest[..end.unwrap_or(rest.len())];
    match long_integers::is_long_integer(text) {
        true => out.push_str(&format!("\"{text}\"")),
        false => out.push_str(text),
    }
    (!text.parse::<f64>().is_ok_and(f64::is_infinite)).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_liberties_that_models_take_are_understood() {
        for (given, meant) in [
            (r#"{"a": [1, 2,], }"#, json!({"a": [1, 2]})),
            ("{\"a\": 1 // one\n, /* two */ \"b\": 2}", json!({"a": 1, "b": 2})),
            ("{'a': 'it\\'s', b: \"x\"}", json!({"a": "it's", "b": "x"})),
            (
                "{'a': True, 'b': None, 'c': False, True: 1}",
                json!({"a": true, "b": null, "c": false, "True": 1}),
            ),
            ("{\"a\": \"two\nlines\tand a tab\"}", json!({"a": "two\nlines\tand a tab"})),
            (r#"{"a": "True // None", "b": -1.5e3,}"#, json!({"a": "True // None", "b": -1500.0})),
            (r#"{"a": 15e-1, "b": 0x1e,}"#, json!({"a": 1.5, "b": 30})),
            (
                r#"{"big": 18446744073709551615, "small": -9223372036854775808,}"#,
                json!({"big": u64::MAX, "small": i64::MIN}),
            ),
        ] {
            assert_eq!(parse(given), Ok(meant), "{given}");
        }
    }

    #[test]
    fn invalid_json_values_are_refused() {
        for given in [
            "{\"a\": NaN}", "{\"a\": -Infinity}", "{\"a\": 1e999}", "{\"a\": -1E+999,}", "{\"a\": }",
            "{\"a\": [1}", "{a b: 1}",
        ] {
            assert!(parse(given).is_err(), "{given}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_the_end_of_the_process() {
        let deep = format!("{}{}", "{a:[".repeat(100_000), "]}".repeat(100_000));
        assert!(parse(&deep).is_err());
    }
}
