//! JSON with integers that 64 bits cannot hold. The JSON parser makes floats of them, which lose digits: an id of 20
//! digits would be told, looked up and written as another one. So they are read as texts, which keep them. Where a schema
//! requires an integer, a text does not fit, and the error says so.
//!
//! **Invariant:** this module is pure and depends on no other module of the crate.

use std::borrow::Cow;

use serde_json::Value;

/// Fewer digits than this always fit 64 bits.
const MIN_DIGITS: usize = 19;

/// Parses JSON, with integers beyond 64 bits as texts.
///
/// # Errors
/// As [`serde_json::from_slice`].
pub fn parse(json: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(&with_long_integers_as_texts(json))
}

/// Whether this is an integer, as JSON writes it, that 64 bits cannot hold.
pub(crate) fn is_long_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() >= MIN_DIGITS
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<i64>().is_err()
        && text.parse::<u64>().is_err()
}

/// The same JSON with quotes around integers beyond 64 bits.
pub(crate) fn with_long_integers_as_texts(json: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let (mut copied, mut at) = (0, 0);
    let (mut string, mut escaped) = (false, false);
    while let Some(byte) = json.get(at) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'-' | b'0'..=b'9' if !string => {
                let token = number(&json[at..]);
                if std::str::from_utf8(token).is_ok_and(is_long_integer) {
                    out.extend_from_slice(&json[copied..at]);
                    out.push(b'"');
                    out.extend_from_slice(token);
                    out.push(b'"');
                    copied = at + token.len();
                }
                at += token.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.extend_from_slice(&json[copied..]);
    Cow::Owned(out)
}

/// The number at the beginning of `json`.
fn number(json: &[u8]) -> &[u8] {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    &json[..json.iter().position(|byte| !is_part(byte)).unwrap_or(json.len())]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_beyond_64_bits_keep_their_digits_and_all_other_json_is_as_it_was() {
        for (given, meant) in [
            ("123456789012345678901", json!("123456789012345678901")),
            (
                r#"{"id":18446744073709551616,"n":[-9223372036854775809, 7]}"#,
                json!({"id": "18446744073709551616", "n": ["-9223372036854775809", 7]}),
            ),
            (
                r#"{"a": 18446744073709551615, "b": -9223372036854775808, "c": 1234567890123456789.5, "d": 1e25}"#,
                json!({"a": u64::MAX, "b": i64::MIN, "c": 1_234_567_890_123_456_789.5, "d": 1e25}),
            ),
            (
                r#"{"\"123456789012345678901": "a \\\" 99999999999999999999"}"#,
                json!({"\"123456789012345678901": "a \\\" 99999999999999999999"}),
            ),
            (r#""\\" "#, json!("\\")),
        ] {
            assert_eq!(parse(given.as_bytes()).unwrap(), meant, "{given}");
        }
        for wrong in
            ["[00000123456789012345678901]", "123456789012345678901x", "1 2", "[1-123456789012345678901]"]
        {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
