//! Estimates the size of a text in tokens, without a tokenizer.
//!
//! By UTF-8 length, an ASCII character counts a quarter of a token, one of two bytes (accents, Greek,
//! Cyrillic) a half, one of three bytes (Chinese, Japanese, most symbols) one, one of four bytes (emoji)
//! two. Texts are measured as JSON, so escaped characters count with their escapes. All sums are in
//! quarters of a token.

use std::io::{self, Write};

use serde::Serialize;

/// The approximate number of tokens of `text`.
pub fn tokens(text: &str) -> usize {
    text.chars().map(quarters).sum::<usize>().div_ceil(4)
}

/// The approximate number of tokens of a value written as JSON.
pub(crate) fn json_tokens<T: Serialize>(value: &T) -> usize {
    json_size(value).div_ceil(4)
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
    let mut counted = CountedQuarters(0);
    // Our own types always serialise; a value that did not would not be sent and takes no room.
    serde_json::to_writer(&mut counted, value).map_or(0, |()| counted.0)
}

/// Counts the quarters of a token of what is written to it, which is UTF-8 in pieces that may split a character.
struct CountedQuarters(usize);

impl Write for CountedQuarters {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let quarters = |byte: &u8| match byte {
            0..=0x7f => 1,
            // Inside a character, whose first byte counts for all of it.
            0x80..=0xbf => 0,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 4,
            0xf0..=0xff => 8,
        };
        self.0 += bytes.iter().map(quarters).sum::<usize>();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
            let value = serde_json::json!({"a": [text, 1.5, null], "b": text});
            let written: usize = value.to_string().chars().map(quarters).sum();
            proptest::prop_assert_eq!(json_size(&value), written);
            proptest::prop_assert_eq!(json_tokens(&value), tokens(&value.to_string()));
        }
    }
}
