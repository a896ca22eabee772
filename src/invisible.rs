//! Invisible and direction-changing characters: the single list of them, used wherever people read what they
//! approve. Such characters can make a text look like another one, so they are shown as escapes. The stored
//! text does not change; this module only makes what is displayed.
//!
//! **Invariant:** this module is pure and depends on no other module of the crate.

use std::fmt::Write;

use serde_json::Value;

/// Returns whether a character controls a terminal or changes the text direction.
pub fn is_control_or_bidi(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is invisible: a control or bidi character, one without width, a blank other than a
/// space, or a variation selector. Includes Unicode's default-ignorable code points.
pub fn is_invisible(c: char) -> bool {
    is_control_or_bidi(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes invisible characters as `\u{200b}`. Joiners between emoji and colour selectors of emoji are kept,
/// because they are visible.
pub fn escape_text(text: &str) -> String {
    escape_with(text, |c, out| {
        // Writing into a String cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    })
}

/// The text without invisible characters. White space is kept, and what [`escape_text`] keeps.
pub fn without_invisible(text: &str) -> String {
    escape_with(text, |c, out| {
        if c.is_whitespace() {
            out.push(c);
        }
    })
}

/// Puts the text on one line: collapses white space, removes control characters, and escapes invisible
/// characters as [`escape_text`] does.
pub fn one_line(words: &str) -> String {
    let words = words.split_whitespace().map(|word| {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        escape_text(&word)
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The text unchanged if [`one_line`] would not change it, and otherwise as an escaped JSON string: two
/// different texts never look the same.
pub fn exact_line(text: &str) -> String {
    if one_line(text) == text { text.to_owned() } else { escape_json(&Value::from(text).to_string()) }
}

/// Equivalent JSON with invisible characters as JSON escapes: `\u200b`.
pub fn escape_json(json: &str) -> String {
    escape_with(json, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Like [`escape_json`], for a value, pretty-printed.
pub fn escape_json_lines(value: &Value) -> String {
    let lines: Vec<String> = format!("{value:#}").lines().map(escape_json).collect();
    lines.join("\n")
}

fn escape_with(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = PrecedingChar::Other;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        let is_seen = match c {
            '\u{fe0f}' => {
                before == PrecedingChar::Emoji
                    || (before == PrecedingChar::KeypadKey && next == Some('\u{20e3}'))
            }
            '\u{200d}' => {
                before != PrecedingChar::Other
                    && before != PrecedingChar::KeypadKey
                    && next.is_some_and(is_emoji)
            }
            c => !is_invisible(c),
        };
        match is_seen {
            true => out.push(c),
            false => escape(c, &mut out),
        }
        before = match c {
            '\u{fe0f}' if is_seen => PrecedingChar::ColourEmoji,
            '0'..='9' | '#' | '*' => PrecedingChar::KeypadKey,
            c if is_emoji(c) => PrecedingChar::Emoji,
            _ => PrecedingChar::Other,
        };
    }
    out
}

/// The kind of the previous character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrecedingChar {
    Emoji,
    /// An emoji with a colour selector.
    ColourEmoji,
    /// A character of a keypad: `0` to `9`, `#` and `*`.
    KeypadKey,
    Other,
}

/// Whether a character is or can be drawn as an emoji.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{25fe}' | '\u{2600}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped() {
        for c in "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{61c}\u{3164}\u{e0000}\u{e0041}\u{e007f}\
                  \u{fe00}\u{fe0f}\u{e0100}\u{e01ef}\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{34f}\
                  \u{115f}\u{1160}\u{17b4}\u{180e}\u{2028}\u{206f}\u{ffa0}\u{fff9}\u{1d173}\u{2800}\u{9b}\u{1b}"
            .chars()
        {
            let given = format!("pay{c}pal");
            assert_eq!(escape_text(&given), format!("pay\\u{{{:x}}}pal", u32::from(c)));
            let value = serde_json::json!({ given.as_str(): [given] });
            for shown in [escape_json(&value.to_string()), escape_json_lines(&value)] {
                assert!(shown.chars().all(|c| c == '\n' || !is_invisible(c)), "{shown:?}");
                assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value, "{shown}");
            }
        }
    }

    #[test]
    fn visible_characters_are_unchanged() {
        for seen in [
            "Perché no?",
            "日本語",
            "a\u{301}",
            "👩\u{200d}🚀",
            "👩🏽\u{200d}🚀",
            "❤\u{fe0f}\u{200d}🔥",
            "⚠\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
        ] {
            assert_eq!(escape_text(seen), seen);
        }
        // Not outside emoji sequences, and not twice.
        assert_eq!(escape_text("a\u{200d}b"), "a\\u{200d}b");
        assert_eq!(escape_text("👩\u{200d}b"), "👩\\u{200d}b");
        assert_eq!(escape_text("1\u{fe0f}"), "1\\u{fe0f}");
        assert_eq!(escape_text("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn invisible_characters_are_removed_and_white_space_is_kept() {
        let given = "pay\u{200b}pal\u{202e}\u{ad}\n\tto\u{a0}x\u{feff} 👩\u{200d}🚀";
        assert_eq!(without_invisible(given), "paypal\n\tto\u{a0}x 👩\u{200d}🚀");
    }

    #[test]
    fn one_line_joins_lines_and_escapes() {
        assert_eq!(one_line(" a\u{1b}[31m\n b\u{202e}c\t\u{2028}d "), "a[31m b\\u{202e}c d");
    }
}
