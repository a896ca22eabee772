//! First layer: the length and the characters of the text.

use super::Limits;
use super::refusal::{Code, Layer, Refusal, TextPosition};

/// Refuses text that is empty, longer than `limits.max_bytes`, or that contains characters which engines, parsers and
/// people read differently: NUL, other control characters, marks that reorder text, and invisible ones. Joiners and
/// variation selectors may stand in strings (emoji need them); the names layer refuses them in identifiers.
///
/// # Errors
/// [`Code::Empty`], [`Code::TooLong`], [`Code::Character`].
pub fn check(sql: &str, limits: &Limits) -> Result<(), Refusal> {
    let refuse = |code, what: String, remedy: &str| Refusal::new(Layer::Text, code, what, remedy);
    if sql.trim().is_empty() {
        return Err(refuse(Code::Empty, "there is no statement".into(), "write one SELECT"));
    }
    if sql.len() > limits.max_bytes {
        let what = format!("the statement has {} bytes; at most {} are read", sql.len(), limits.max_bytes);
        return Err(refuse(Code::TooLong, what, "write a shorter query"));
    }
    let (mut line, mut column) = (1, 1);
    for character in sql.chars() {
        if is_forbidden(character) {
            let what = format!("the statement contains the character U+{:04X}", u32::from(character));
            return Err(refuse(Code::Character, what, "remove it").at(Some(TextPosition { line, column })));
        }
        (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    Ok(())
}

fn is_forbidden(character: char) -> bool {
    let control = character.is_control() && !matches!(character, '\t' | '\n' | '\r');
    // Soft hyphen, Arabic letter mark, Mongolian vowel separator, zero-width space, direction marks and overrides, line
    // and paragraph separators, word joiner and invisible operators, isolates, byte order mark, annotations, Hangul
    // fillers, tags, private use.
    control
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{115f}'..='\u{1160}' | '\u{3164}'
            | '\u{ffa0}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e007f}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(sql: &str) -> Option<Code> {
        check(sql, &Limits::default()).err().map(|refusal| refusal.code)
    }

    #[test]
    fn nul_control_and_invisible_characters_are_refused() {
        for bad in
            ["\0", "\u{8}", "\u{1b}", "\u{85}", "\u{200b}", "\u{202e}", "\u{2066}", "\u{feff}", "\u{e0041}"]
        {
            assert_eq!(code(&format!("SELECT 1{bad}")), Some(Code::Character), "{bad:?}");
            assert_eq!(code(&format!("SELECT '{bad}'")), Some(Code::Character), "{bad:?} in a string");
        }
    }

    #[test]
    fn the_place_of_a_forbidden_character_is_named() {
        let refusal = check("SELECT\n 1\0", &Limits::default()).unwrap_err();
        assert_eq!(refusal.at, Some(TextPosition { line: 2, column: 3 }));
    }

    #[test]
    fn empty_and_long_texts_are_refused() {
        assert_eq!(code(" \n\t"), Some(Code::Empty));
        assert_eq!(code(&" ".repeat(2)), Some(Code::Empty));
        assert_eq!(code(&"x".repeat(Limits::default().max_bytes + 1)), Some(Code::TooLong));
    }

    proptest! {
        #[test]
        fn ordinary_text_passes(sql in "[a-zA-Z0-9àèéìòù'\" ;\n\t(),*=<>👩🏽日本]{1,80}") {
            prop_assert_eq!(code(&format!("SELECT {sql}")), None);
        }
    }
}
