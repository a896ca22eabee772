//! Addresses, such as those of e-mail: one that has the words of another, in another order or with other marks, leads elsewhere. So a
//! value has to have an address as it was said or found.

use serde_json::Value;

use super::words::cut;
use super::{Evidence, MAX_FOUND};

impl Evidence<'_> {
    /// Whether every address in the text was said or found as it is, in upper or lower case or spelled out, or is the user's name.
    pub(super) fn has_its_addresses(&self, text: &str) -> bool {
        !self.sources.exact || addresses(text).all(|address| self.has_address(&address.to_lowercase()))
    }

    fn has_address(&self, address: &str) -> bool {
        let is_in = |text: &str| stands_alone(&cut(text).to_lowercase(), address);
        self.user.to_lowercase() == address
            || (address.is_ascii() && stands_alone(&self.words().spelled, address))
            || self.sources.said.iter().any(|said| is_in(said))
            || self.is_found(&is_in)
    }

    /// Whether this holds for a text or a name in what was found.
    fn is_found(&self, holds: &dyn Fn(&str) -> bool) -> bool {
        let mut open: Vec<&Value> = self.sources.found.iter().map(AsRef::as_ref).collect();
        let mut left = MAX_FOUND;
        while let Some(value) = open.pop().filter(|_| left > 0) {
            left -= 1;
            match value {
                Value::String(text) if holds(text) => return true,
                Value::Array(list) => open.extend(list),
                Value::Object(map) if map.keys().any(|name| holds(name)) => return true,
                Value::Object(map) => open.extend(map.values()),
                _ => {}
            }
        }
        false
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
fn stands_alone(text: &str, part: &str) -> bool {
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
