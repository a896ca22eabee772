//! Characters that a screen does not show, or that change where it shows others: the one list of them, by
//! which everything that people approve is shown. What is written with them looks like something else, so
//! they are shown as escapes. The exact text stays as it is; only what is shown of it is made here.
//!
//! **Invariant:** this module is pure and knows no other module of the crate.

use std::fmt::Write;

use serde_json::Value;

/// Whether a character commands a terminal or turns the reading direction.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is not seen where it stands: it steers, has no width, is blank without being a space,
/// or only says how another is drawn. (Unicode's default-ignorable code points are among them.)
pub fn is_unseen(c: char) -> bool {
    steers(c)
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Words with what is unseen written as `\u{200b}`. What joins two emoji, or has one drawn in colour, stays:
/// it is seen.
pub fn text(text: &str) -> String {
    escaped(text, |c, out| {
        // Writing into a String cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    })
}

/// The words on one line, their blanks made one, without characters that command a terminal, and with what
/// is unseen otherwise as [`text`] writes it.
pub fn one_line(words: &str) -> String {
    let words = words.split_whitespace().map(|word| {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        text(&word)
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// JSON that means the same, with what is unseen as JSON's own escapes: `\u200b`.
pub fn json(json: &str) -> String {
    escaped(json, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// The same of a value, over several lines.
pub fn json_lines(value: &Value) -> String {
    let lines: Vec<String> = format!("{value:#}").lines().map(json).collect();
    lines.join("\n")
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = Before::Other;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        let is_seen = match c {
            '\u{fe0f}' => before == Before::Emoji || (before == Before::Key && next == Some('\u{20e3}')),
            '\u{200d}' => before != Before::Other && before != Before::Key && next.is_some_and(is_emoji),
            c => !is_unseen(c),
        };
        match is_seen {
            true => out.push(c),
            false => escape(c, &mut out),
        }
        before = match c {
            '\u{fe0f}' if is_seen => Before::Drawn,
            '0'..='9' | '#' | '*' => Before::Key,
            c if is_emoji(c) => Before::Emoji,
            _ => Before::Other,
        };
    }
    out
}

/// What a character follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Emoji,
    /// An emoji that is said to be drawn in colour.
    Drawn,
    /// A character of a telephone's keys.
    Key,
    Other,
}

/// Whether a character is drawn as a picture, or can be.
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
    fn what_is_not_seen_is_written_as_an_escape() {
        for c in "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{61c}\u{3164}\u{e0000}\u{e0041}\u{e007f}\
                  \u{fe00}\u{fe0f}\u{e0100}\u{e01ef}\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{34f}\
                  \u{115f}\u{1160}\u{17b4}\u{180e}\u{2028}\u{206f}\u{ffa0}\u{fff9}\u{1d173}\u{2800}\u{9b}\u{1b}"
            .chars()
        {
            let given = format!("pay{c}pal");
            assert_eq!(text(&given), format!("pay\\u{{{:x}}}pal", u32::from(c)));
            let value = serde_json::json!({ given.as_str(): [given] });
            for shown in [json(&value.to_string()), json_lines(&value)] {
                assert!(shown.chars().all(|c| c == '\n' || !is_unseen(c)), "{shown:?}");
                assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value, "{shown}");
            }
        }
    }

    #[test]
    fn what_is_seen_stays_as_it_is() {
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
            assert_eq!(text(seen), seen);
        }
        // Not between emoji, and not twice.
        assert_eq!(text("a\u{200d}b"), "a\\u{200d}b");
        assert_eq!(text("👩\u{200d}b"), "👩\\u{200d}b");
        assert_eq!(text("1\u{fe0f}"), "1\\u{fe0f}");
        assert_eq!(text("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line(" a\u{1b}[31m\n b\u{202e}c\t\u{2028}d "), "a[31m b\\u{202e}c d");
    }
}
