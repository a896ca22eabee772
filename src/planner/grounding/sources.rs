//! The sources of values.

use std::borrow::Cow;

use jiff::Zoned;
use serde_json::Value;

use super::MAX_FOUND;
use super::words::cut;

/// The sources that a value may come from.
#[derive(Debug)]
pub struct GroundingSources<'a> {
    /// The request, the user's remembered turns, the history.
    pub said: Vec<Cow<'a, str>>,
    /// Tool results, arguments and results of earlier calls, and what was known when a question was asked.
    pub found: Vec<Cow<'a, Value>>,
    /// The acting user's name.
    pub user: &'a str,
    /// The frozen local time of the request.
    pub now: &'a Zoned,
    /// The request's language.
    pub language: Option<&'a str>,
    /// Whether values of several words, keys and signs need a source too (revision 2 of the rules).
    pub strict: bool,
    /// Whether a text that lists things with their numbers needs a source for each word (revision 6 of the rules).
    pub lists: bool,
    /// Whether addresses and invisible characters need a source that has them as they are, and hours and minutes with a
    /// dot may be an amount, too: "24.50" (revision 13 of the rules).
    pub exact: bool,
    /// Whether words with letters or digits that look like others need a source that has them as they are (revision 15 of
    /// the rules).
    pub lookalikes: bool,
    /// Which names of days have a source.
    pub names: DayNames,
}

/// Which names of days have a source: runs of earlier rules asked the user about the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayNames {
    /// Short names of months: "15 gen" (revision 16 of the rules).
    pub short_months: bool,
    /// Days by several words, such as "pasado mañana", and more names of holidays (revision 17 of the rules).
    pub several_words: bool,
}

#[cfg(test)]
impl DayNames {
    pub const ALL: Self = Self { short_months: true, several_words: true };
}

impl GroundingSources<'_> {
    /// The texts of all sources, and the names in what was found, each up to [`words::MAX_TEXT`](super::words::MAX_TEXT) bytes.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = self.said.iter().map(|text| cut(text)).collect();
        let mut open: Vec<&Value> = self.found.iter().map(AsRef::as_ref).collect();
        let mut left = MAX_FOUND;
        while let Some(value) = open.pop().filter(|_| left > 0) {
            left -= 1;
            match value {
                Value::String(text) => texts.push(cut(text)),
                Value::Array(list) => open.extend(list),
                Value::Object(map) => {
                    texts.extend(map.keys().map(|name| cut(name)));
                    open.extend(map.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        texts
    }
}
