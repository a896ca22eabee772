//! Addresses, such as those of e-mail: one that has the words of another, in another order or with other marks, leads elsewhere. So a
//! value has to have an address as it was said or found.

use super::Evidence;

impl Evidence<'_> {
    /// Returns whether every address in the text was said or found as it is, in upper or lower case or spelled out, or is the
    /// user's name.
    pub(super) fn has_its_addresses(&self, text: &str) -> bool {
        !self.sources.exact || addresses(text).all(|address| self.has_address(&address.to_lowercase()))
    }

    fn has_address(&self, address: &str) -> bool {
        self.sources.user.to_lowercase() == address
            || (address.is_ascii() && contains_whole_address(&self.words().spelled, address))
            || self.sources.texts().iter().any(|text| contains_whole_address(&text.to_lowercase(), address))
    }
}

/// The words of a text with a sign for "at" inside, without the marks around them.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let is_around =
        |c: char| matches!(c, '<' | '>' | '(' | ')' | '[' | ']' | '"' | '\'' | '.' | ':' | '!' | '?');
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'))
        .map(move |word| word.trim_matches(is_around).trim_start_matches("mailto:").trim_start_matches('@'))
        .filter(|word| word.contains(['@', '\u{ff20}', '\u{fe6b}']))
}

/// Whether `part` occurs in `text`, not as part of a longer address.
fn contains_whole_address(text: &str, part: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '@' | '_' | '-' | '+' | '%');
    text.match_indices(part).any(|(at, _)| {
        let mut after = text[at + part.len()..].chars();
        let goes_on = match after.next() {
            Some('.') => after.next().is_some_and(joins),
            next => next.is_some_and(joins),
        };
        !goes_on && !text[..at].chars().next_back().is_some_and(|c| joins(c) || c == '.')
    })
}
