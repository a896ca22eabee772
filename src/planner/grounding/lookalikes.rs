//! Letters and digits that look like others. Words are compared by how they read, so "ΑC-12" with a Greek letter has the
//! words of "AC-12", and is another code to a back end.

use super::Evidence;

impl Evidence<'_> {
    /// Returns whether every word that may be taken for another one was said or found as it is, in upper or lower case.
    pub(super) fn has_its_lookalikes(&self, text: &str) -> bool {
        if !self.sources.lookalikes || text.is_ascii() {
            return true;
        }
        let mut disguised = lookalike_words(text).map(str::to_lowercase).peekable();
        if disguised.peek().is_none() {
            return true;
        }
        let sources: Vec<String> = self.sources.texts().into_iter().map(str::to_lowercase).collect();
        disguised.all(|word| sources.iter().any(|source| source.contains(&word)))
    }
}

/// The words that have Latin letters together with such as look like them, or a letter or digit in a form that is read as
/// another one: fullwidth, mathematical, or digits of another script.
fn lookalike_words(text: &str) -> impl Iterator<Item = &str> {
    let is_mixed = |word: &str| word.contains(is_latin) && word.contains(is_like_latin);
    text.split(|c: char| !c.is_alphanumeric()).filter(move |word| is_mixed(word) || word.contains(is_variant))
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '\u{c0}'..='\u{24f}')
}

/// A letter of a script some of whose letters look like Latin ones: Greek, Cyrillic, Armenian, Cherokee, Coptic.
fn is_like_latin(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{1c80}'..='\u{1c8f}' | '\u{2c80}'..='\u{2cff}'
        | '\u{a640}'..='\u{a69f}' | '\u{ab70}'..='\u{abbf}')
}

/// A fullwidth or mathematical form, or a digit of Arabic, Devanagari or Bengali.
fn is_variant(c: char) -> bool {
    matches!(c, '\u{ff10}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}' | '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}'
        | '\u{966}'..='\u{96f}' | '\u{9e6}'..='\u{9ef}')
}
