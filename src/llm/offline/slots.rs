//! Slot filling: fills a tool's arguments from a text, each kind of argument by its own reader, the most
//! certain first. Arguments that the text does not mention stay empty.

use jiff::Zoned;
use serde_json::{Map, Value, json};

use super::schema::{ArgumentField, ArgumentKind};
use super::source::SourceText;
use super::{cue_words, date_arguments, free_text, names, number_arguments, options, tuples};

/// Maximum number of calls by combining several values of two arguments.
pub(super) const MAX_COMBINED: usize = 62;

/// Arguments read from a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Filled {
    /// By name.
    pub values: Map<String, Value>,
    /// The individual values of several calls ("Milano e Roma"), in the order of the words; they override
    /// `values`. Empty if there is one call.
    pub several: Vec<Map<String, Value>>,
    /// Whether the several values are joined by "or": a read is made with each, a write asks.
    pub alternatives: bool,
    /// By token of the text: whether a value contains it.
    pub used: Vec<bool>,
    /// Whether a value may not be what the user meant: it comes from words about something else, or several
    /// persons may be one party.
    pub doubtful: bool,
    /// The argument that takes one day although the text has a range of days.
    pub spread: Option<String>,
}

/// Equality of the arguments, whatever words they come from.
impl PartialEq for Filled {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values && self.several == other.several
    }
}

impl Filled {
    /// Sets several values of an argument, one for each call. Those of two arguments are combined: "Rome and Milan, today and
    /// tomorrow"; whether all combinations are meant is not certain.
    pub fn set_several(&mut self, name: &str, all: impl IntoIterator<Item = Value>) {
        if self.several.iter().any(|own| own.contains_key(name)) {
            return;
        }
        let all: Vec<Value> = all.into_iter().collect();
        let each = if self.several.is_empty() { vec![Map::new()] } else { std::mem::take(&mut self.several) };
        self.doubtful |= each.len() > 1;
        let with = |own: &Map<String, Value>, value: &Value| {
            let mut own = own.clone();
            own.insert(name.to_owned(), value.clone());
            own
        };
        let combined = each.iter().flat_map(|own| all.iter().map(move |value| with(own, value)));
        self.several = combined.take(MAX_COMBINED).collect();
    }

    /// Required arguments without a value.
    pub fn missing<'f>(&self, fields: &'f [ArgumentField]) -> Vec<&'f ArgumentField> {
        fields.iter().filter(|f| f.required && !self.values.contains_key(&f.name)).collect()
    }
}

/// Reads the arguments `fields` from `text`. `verbs` are the words of the tool's name, which are no values.
/// With `alone` the text is the reply to a question, so that a bare value is enough.
pub(super) fn fill(
    fields: &[ArgumentField],
    text: &str,
    now: &Zoned,
    verbs: &[String],
    alone: bool,
) -> Filled {
    fill_from(fields, &mut SourceText::new(text, now), verbs, alone)
}

/// [`fill`] from a source, in which the tokens of the arguments are marked as taken.
pub(super) fn fill_from(
    fields: &[ArgumentField],
    source: &mut SourceText,
    verbs: &[String],
    alone: bool,
) -> Filled {
    let mut out = Filled::default();
    for field in fields {
        if let ArgumentKind::Fixed(value) = &field.kind {
            out.values.insert(field.name.clone(), value.clone());
        }
    }
    fill_addresses(fields, source, &mut out);
    options::fill_enums(fields, source, &mut out, alone);
    let open = cue_words::fill(fields, source, &mut out);
    date_arguments::fill_dates_and_times(&open, source, &mut out);
    number_arguments::fill(fields, source, &mut out, alone);
    names::fill(fields, source, &mut out, alone, verbs);
    options::fill_flags(fields, source, &mut out, alone);
    free_text::fill(fields, source, &mut out, verbs, alone);
    names::fill_without_candidate(fields, source, &mut out, verbs, alone);
    for field in fields {
        match &field.kind {
            ArgumentKind::Object(inner) => {
                let nested = fill(inner, source.text, source.now, verbs, false);
                if !nested.values.is_empty() && nested.missing(inner).is_empty() {
                    out.values.insert(field.name.clone(), Value::Object(nested.values));
                }
            }
            _ => {
                if field.required
                    && !out.values.contains_key(&field.name)
                    && let Some(default) = &field.default
                {
                    out.values.insert(field.name.clone(), default.clone());
                }
            }
        }
    }
    out.used = used_tokens(source, &out);
    tuples::remove_unpaired(fields, source, &mut out);
    tuples::spread_days(fields, source, &mut out);
    out
}

/// By token: whether a value contains it. Days and times count if some value contains them.
fn used_tokens(source: &SourceText, out: &Filled) -> Vec<bool> {
    let mut used = source.used.clone();
    let values: Vec<String> =
        out.values.values().chain(out.several.iter().flat_map(Map::values)).map(Value::to_string).collect();
    let found = &source.found;
    let days = found.days.iter().map(|d| (d.first, d.last, d.date.to_string()));
    let hours = found.times.iter().map(|h| (h.first, h.last, h.time.strftime("%H:%M").to_string()));
    for (first, last, text) in days.chain(hours) {
        if values.iter().any(|value| value.contains(&text)) {
            used[first..=last].fill(true);
        }
    }
    used
}

/// Fills e-mail and web addresses.
fn fill_addresses(fields: &[ArgumentField], source: &mut SourceText, out: &mut Filled) {
    for (mark, kind) in [("@", ArgumentKind::Email), ("://", ArgumentKind::Uri)] {
        let mut found: Vec<usize> =
            (0..source.tokens.len()).filter(|i| source.tokens[*i].raw.contains(mark)).collect();
        if kind == ArgumentKind::Email {
            found.retain(|i| source.tokens[*i].raw.contains('.'));
        }
        let mut left = found.iter().copied();
        for field in fields {
            match &field.kind {
                k if *k == kind => {
                    if let Some(i) = left.next() {
                        out.values.insert(field.name.clone(), json!(source.tokens[i].raw.as_str()));
                        source.take(i, i);
                    }
                }
                ArgumentKind::List(inner) if inner.kind == kind => {
                    let all: Vec<&str> = left.by_ref().map(|i| source.tokens[i].raw.as_str()).collect();
                    if !all.is_empty() {
                        out.values.insert(field.name.clone(), json!(all));
                    }
                }
                _ => {}
            }
        }
    }
}
