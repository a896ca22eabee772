//! Lists of values that belong together: "the dentist on 9 December and the cardiologist on the 10th". Each call
//! gets its own values; values that cannot be assigned are removed, so that the user is asked for them.

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::date_expression::{self, DateExpressionKind};
use super::dates::RangeRole;
use super::lexicon;
use super::number_arguments;
use super::pattern::is_verb;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::{Filled, MAX_COMBINED, fill};
use super::source::SourceText;
use super::text::{features, tokens};

/// Maximum number of positions at which a text is split.
const MAX_SPLITS: usize = 8;
/// Maximum number of tuples of one text.
const MAX_TUPLES: usize = 8;

/// Splits a text into tuples of values.
struct TupleReader<'a> {
    fields: &'a [ArgumentField],
    /// Required arguments without a default.
    needed: Vec<&'a ArgumentField>,
    now: &'a Zoned,
    verbs: &'a [String],
    /// The values that an empty text has.
    bare: Map<String, Value>,
    /// The verb that opens the text, which its later parts do not repeat: "lend Dune to Ada and Emma to Bob".
    verb: Option<String>,
}

/// "50 euros to Mario and 30 to Anna": one call for each part of a list whose parts have values for the same
/// arguments. `None` if the text is no such list. Missing values of a part are null.
pub(super) fn parallel(
    fields: &[ArgumentField],
    text: &str,
    now: &Zoned,
    verbs: &[String],
) -> Option<Filled> {
    let needed: Vec<&ArgumentField> = fields.iter().filter(|f| f.required && f.default.is_none()).collect();
    if needed.is_empty() || needed.iter().all(|f| is_timed(f)) {
        return None;
    }
    let bare = fill(fields, "", now, verbs, false).values;
    let opening = tokens(text).iter().find(|token| token.word).filter(|token| is_verb(token)).cloned();
    let verb = opening.map(|token| token.raw.to_string());
    let all = TupleReader { fields, needed, now, verbs, bare, verb }.read(None, text, 0)?;
    let mut first = all.first().filter(|_| all.len() > 1)?.clone();
    first.several = all.iter().map(|tuple| tuple.values.clone()).collect();
    first.doubtful = all.iter().any(|tuple| tuple.doubtful);
    for next in all.into_iter().skip(1) {
        first.used.push(true);
        first.used.extend(next.used);
    }
    Some(first)
}

/// Whether the words `right`, which have no verb, only have other values for the arguments of `left`: "Block my
/// debit card and my credit card".
pub(super) fn repeats(fields: &[ArgumentField], left: &str, right: &str, now: &Zoned) -> bool {
    let bare = fill(fields, "", now, &[], false).values;
    let (first, second) = (fill(fields, left, now, &[], false), fill(fields, right, now, &[], false));
    let stated = |filled: &Filled| -> Vec<String> {
        filled
            .values
            .iter()
            .filter(|(name, value)| bare.get(*name) != Some(value))
            .map(|(n, _)| n.clone())
            .collect()
    };
    let (a, b) = (stated(&first), stated(&second));
    let kind = |name: &String| fields.iter().find(|f| f.name == *name).map(|f| &f.kind);
    let plain = |kind: Option<&ArgumentKind>| {
        matches!(
            kind,
            Some(
                ArgumentKind::Text
                    | ArgumentKind::Thing
                    | ArgumentKind::Bool
                    | ArgumentKind::Date
                    | ArgumentKind::Time
                    | ArgumentKind::DateTime
            ) | None
        )
    };
    let sure = a.iter().any(|name| b.contains(name) && !plain(kind(name)));
    let heads = |name: &&String| !fields.iter().any(|f| f.name == **name && is_timed(f));
    if !sure || !a.iter().filter(heads).all(|name| b.contains(name)) {
        return false;
    }
    let source = SourceText::new(right, now);
    let before = SourceText::new(left, now);
    source.tokens.iter().enumerate().all(|(i, token)| {
        let known = !token.word || source.found.taken[i] || second.used.get(i) == Some(&true);
        known
            || lexicon::is_stop_word(&token.norm)
            || lexicon::is_pleasantry(&token.norm)
            || lexicon::is_time_unit(&token.norm)
            || number_arguments::is_currency(token)
            || before.tokens.iter().any(|t| t.features().similarity(&token.features()) > 0.8)
            || fields.iter().any(|f| is_word_of(f, &token.norm))
    })
}

impl TupleReader<'_> {
    /// The tuples of a text after the tuple `before`.
    fn read(&self, before: Option<&Filled>, text: &str, depth: usize) -> Option<Vec<Filled>> {
        let source = SourceText::new(text, self.now);
        if depth < MAX_TUPLES {
            let joins = |i: &usize| {
                let token = &source.tokens[*i];
                let link = matches!(token.raw.as_str(), "." | ",") || token.is_and();
                link && !source.found.taken[*i] && !source.found.quoted[*i]
            };
            let joins: Vec<usize> = (1..source.tokens.len()).filter(joins).take(MAX_SPLITS).collect();
            for (at, &i) in joins.iter().enumerate() {
                let token = &source.tokens[i];
                let (left, right) = (text.get(..token.start)?, text.get(token.end..)?);
                let own = self.filled(left);
                let again = before.is_none() && {
                    let parts = joins[at..].iter().enumerate().map(|(n, &from)| {
                        let end = joins.get(at + n + 1).map_or(text.len(), |&to| source.tokens[to].start);
                        text.get(source.tokens[from].end..end).unwrap_or_default()
                    });
                    parts.into_iter().all(|part| self.says_again(&own, left, part))
                };
                let accepted = if again { Some(own) } else { self.accepted_part(before, own, left) };
                let Some(mut first) = accepted else { continue };
                if let Some(rest) = self.read(Some(&first), right, depth + 1) {
                    first.used.resize(i, false);
                    return Some(std::iter::once(first).chain(rest).collect());
                }
            }
        }
        before?;
        let own = self.filled(text);
        self.accepted_part(before, own, text).map(|own| vec![own])
    }

    /// Accepts the tuple of a part, also as it is read after the verb of the whole text, or as bare values: "weather in Rome
    /// tomorrow and Milan on Friday".
    fn accepted_part(&self, before: Option<&Filled>, own: Filled, text: &str) -> Option<Filled> {
        self.accepted(before, own).or_else(|| {
            before?;
            let own = match &self.verb {
                Some(verb) => {
                    let mut own = self.filled(&format!("{verb} {}", text.trim_start()));
                    own.used.drain(..own.used.len().min(1));
                    own
                }
                None => fill(self.fields, text, self.now, self.verbs, true),
            };
            let is_whole = self.needed.iter().all(|f| own.values.contains_key(&f.name));
            is_whole.then(|| self.accepted(before, own)).flatten()
        })
    }

    /// Whether `right` says the same as `left` with another value for the only argument of both: "weather in
    /// Rome and weather in Milan".
    fn says_again(&self, first: &Filled, left: &str, right: &str) -> bool {
        let second = self.filled(right);
        let only = |filled: &Filled| match self.stated(filled)[..] {
            [field] if !is_timed(field) && field.kind != ArgumentKind::Text => Some(field.name.clone()),
            _ => None,
        };
        let Some(name) = only(first).filter(|name| only(&second).as_ref() == Some(name)) else {
            return false;
        };
        let single = first.several.is_empty() && second.several.is_empty();
        if !single || first.values == second.values || self.needed.iter().any(|f| f.name != name) {
            return false;
        }
        let free = |text: &str, used: &[bool]| -> Vec<String> {
            let source = SourceText::new(text, self.now);
            let tokens = source.tokens.iter().enumerate();
            tokens
                .filter(|(i, t)| t.word && used.get(*i) != Some(&true))
                .map(|(_, t)| t.norm.to_string())
                .collect()
        };
        let (left, right) = (free(left, &first.used), free(right, &second.used));
        right.iter().any(|word| !lexicon::is_stop_word(word)) && right.iter().all(|word| left.contains(word))
    }

    fn filled(&self, text: &str) -> Filled {
        fill(self.fields, text, self.now, self.verbs, false)
    }

    /// The arguments that the text has values for.
    fn stated(&self, filled: &Filled) -> Vec<&ArgumentField> {
        let stated = |f: &&ArgumentField| {
            filled.values.get(&f.name).is_some_and(|v| !v.is_null() && self.bare.get(&f.name) != Some(v))
        };
        self.fields.iter().filter(stated).collect()
    }

    /// Accepts a tuple: the first must have all required values, the others all values that differ.
    fn accepted(&self, before: Option<&Filled>, mut own: Filled) -> Option<Filled> {
        let whole = self.needed.iter().all(|f| own.values.contains_key(&f.name));
        if !own.several.is_empty() {
            return None;
        }
        let stated = self.stated(&own);
        let Some(before) = before else {
            return (whole && stated.len() > 1).then_some(own);
        };
        let earlier = self.stated(before);
        let differs = |f: &&&ArgumentField| own.values.get(&f.name) != before.values.get(&f.name);
        let heads = stated.iter().filter(|f| !is_timed(f) && f.kind != ArgumentKind::Text);
        let apart = heads.clone().any(|f| differs(&f));
        if self.needed.len() < 2 {
            let same = stated.iter().map(|f| &f.name).eq(earlier.iter().map(|f| &f.name));
            return (whole && same && apart && stated.iter().all(|f| f.kind != ArgumentKind::Text))
                .then_some(own);
        }
        if whole && apart {
            return Some(own);
        }
        let varies = |f: &&&ArgumentField| is_timed(f) || matches!(f.kind, ArgumentKind::Number(_));
        // Later tuples have only arguments of the earlier ones.
        let again = |f: &&ArgumentField| earlier.iter().any(|e| e.name == f.name);
        let named = heads.clone().any(|f| matches!(f.kind, ArgumentKind::Enum(_)) && again(f) && differs(&f));
        let changed = stated.iter().any(|f| differs(&f));
        let all = earlier.iter().filter(varies).all(|f| stated.iter().any(|s| s.name == f.name));
        if !stated.iter().all(again)
            || !(named || (stated.len() > 1 && changed && all && earlier.iter().any(|f| varies(&f))))
        {
            return None;
        }
        let open: Vec<(String, Value)> = earlier
            .iter()
            .filter(|f| !stated.iter().any(|s| s.name == f.name))
            .map(|f| {
                let value = before.values.get(&f.name).filter(|_| !varies(&f));
                (f.name.clone(), value.cloned().unwrap_or(Value::Null))
            })
            .collect();
        own.values.extend(open);
        Some(own)
    }
}

/// Whether a word belongs to the texts of an argument or to one of its values.
fn is_word_of(field: &ArgumentField, norm: &str) -> bool {
    let word = features(norm);
    let in_texts = field.cues.iter().chain(&field.hints).any(|own| own.similarity(&word) > 0.8);
    let in_values = match &field.kind {
        ArgumentKind::Enum(choices) => {
            choices.iter().flat_map(|c| &c.words).flatten().any(|w| *w == word.norm)
        }
        _ => false,
    };
    in_texts || in_values
}

fn is_timed(field: &ArgumentField) -> bool {
    matches!(field.kind, ArgumentKind::Date | ArgumentKind::Time | ArgumentKind::DateTime)
}

/// Removes a day or a time if the text has several for several calls and it is unclear which belongs to which.
pub(super) fn remove_unpaired(fields: &[ArgumentField], source: &SourceText, out: &mut Filled) {
    let has = |name: &String| out.several.iter().any(|own| own.contains_key(name));
    if out.several.len() < 2 {
        return;
    }
    let days = source.found.days.iter().filter(|d| d.role == RangeRole::Single).map(|d| d.date.to_string());
    let hours = source.found.times.iter().filter(|h| h.role == RangeRole::Single).map(|h| h.time.to_string());
    let distinct = |all: Vec<String>| all.iter().any(|one| *one != all[0]);
    let (days, hours) = (distinct(days.collect()), distinct(hours.collect()));
    let loose: Vec<&ArgumentField> = fields
        .iter()
        .filter(|f| out.values.contains_key(&f.name) && !has(&f.name))
        .filter(|f| (f.kind == ArgumentKind::Date && days) || (f.kind == ArgumentKind::Time && hours))
        .collect();
    // Two times may be the two ends of one span.
    let ends = loose.iter().filter(|f| f.kind == ArgumentKind::Time).count() > 1;
    for field in loose.into_iter().filter(|f| f.kind == ArgumentKind::Date || !ends) {
        out.values.remove(&field.name);
        out.doubtful = true;
    }
}

/// Spreads a range of days over several calls of a tool that takes one day.
pub(super) fn spread_days(fields: &[ArgumentField], source: &SourceText, out: &mut Filled) {
    let mut days = fields.iter().filter(|f| matches!(f.kind, ArgumentKind::Date | ArgumentKind::DateTime));
    let (Some(field), None) = (days.next(), days.next()) else { return };
    // "For 3 nights" is the length of it.
    let counted = fields.iter().any(|f| {
        matches!(f.kind, ArgumentKind::Number(_))
            && f.named(&["nights", "notti", "days", "giorni", "duration", "durata"])
    });
    let ranged = source
        .found
        .date_expressions
        .iter()
        .any(|e| matches!(e.kind, DateExpressionKind::Range(from, to) if from < to));
    let placed =
        out.values.contains_key(&field.name) && !out.several.iter().any(|own| own.contains_key(&field.name));
    if !ranged || counted || !placed || field.kind != ArgumentKind::Date || field.role != RangeRole::Single {
        return;
    }
    let all: Vec<Date> =
        date_expression::expand_runs(&date_expression::resolve_runs(&source.found.date_expressions));
    let each = if out.several.is_empty() { vec![Map::new()] } else { std::mem::take(&mut out.several) };
    let with = |own: &Map<String, Value>, date: &Date| {
        let mut own = own.clone();
        own.insert(field.name.clone(), json!(date.to_string()));
        own
    };
    out.several =
        each.iter().flat_map(|own| all.iter().map(move |date| with(own, date))).take(MAX_COMBINED).collect();
    out.spread = Some(field.name.clone());
}
