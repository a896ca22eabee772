//! Estimates the size of a text in tokens, without a tokenizer.
//!
//! By UTF-8 length, an ASCII character counts a quarter of a token, one of two bytes (accents, Greek,
//! Cyrillic) a half, one of three bytes (Chinese, Japanese, most symbols) one, one of four bytes (emoji)
//! two. Texts are measured as JSON, so escaped characters count with their escapes. All sums are in
//! quarters of a token.

use serde::Serialize;

/// The approximate number of tokens of `text`.
pub fn tokens(text: &str) -> usize {
    text.chars().map(quarters).sum::<usize>().div_ceil(4)
}

/// Quarters of a token for one character.
fn quarters(c: char) -> usize {
    match c.len_utf8() {
        1 => 1,
        2 => 2,
        3 => 4,
        _ => 8,
    }
}

/// Quarters of a token for one character inside a JSON string.
pub(super) fn json_quarters(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => quarters(c),
    }
}

/// Quarters of a token for a value written as JSON.
pub(super) fn json_size<T: Serialize>(value: &T) -> usize {
    // Our own types always serialise; a value that did not would not be sent and takes no room.
    serde_json::to_string(value).map_or(0, |text| text.chars().map(quarters).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_scripts_count_more_than_ascii() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("abcd"), 1);
        assert_eq!(tokens("abcde"), 2);
        assert_eq!(tokens("èéàù"), 2);
        assert_eq!(tokens("東京"), 2);
        assert_eq!(tokens("🎭"), 2);
    }

    proptest::proptest! {
        #[test]
        fn json_string_size_is_sum_of_character_sizes(text in "\\PC*|[ -~\n\t\"\\\\\u{1}]*") {
            let sum: usize = text.chars().map(json_quarters).sum();
            proptest::prop_assert_eq!(json_size(&text), sum + 2);
        }
    }
}
