//! Several values that belong together: "the dentist on 9 December and the cardiologist on the 10th". Each
//! call gets what was said of it; where nobody can tell what belongs to what, the value is asked for.

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::date_expression::{self, DateExpressionKind};
use super::dates::RangeRole;
use super::lexicon;
use super::number_arguments;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::{Filled, fill};
use super::source::SourceText;
use super::text::features;

/// Most places at which a text is tried to be two requests.
const MAX_SPLITS: usize = 8;
/// Most tuples of one text.
const MAX_TUPLES: usize = 8;
/// Most calls for which days and other values are combined.
const MAX_COMBINED: usize = 62;

/// Reads tuples.
struct Tuples<'a> {
    fields: &'a [ArgumentField],
    needed: Vec<&'a ArgumentField>,
    now: &'a Zoned,
    verbs: &'a [String],
    /// What is filled without words.
    bare: Map<String, Value>,
}

/// "50 euros to Mario and 30 to Anna": a call for each part of a list that says what the others say. Nothing
/// where the text is no such list. What a part leaves open is null in its values.
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
    let all = Tuples { fields, needed, now, verbs, bare }.read(None, text, 0)?;
    let mut first = all.first().filter(|_| all.len() > 1)?.clone();
    first.several = all.iter().map(|tuple| tuple.values.clone()).collect();
    first.doubtful = all.iter().any(|tuple| tuple.doubtful);
    for next in all.into_iter().skip(1) {
        first.used.push(true);
        first.used.extend(next.used);
    }
    Some(first)
}

/// Whether the words `right`, which have no verb, only say again for other values what `left` says: "Block my
/// debit card and my credit card".
pub(super) fn repeats(fields: &[ArgumentField], left: &str, right: &str, now: &Zoned) -> bool {
    let bare = fill(fields, "", now, &[], false).values;
    let (first, second) = (fill(fields, left, now, &[], false), fill(fields, right, now, &[], false));
    let said = |filled: &Filled| -> Vec<String> {
        filled
            .values
            .iter()
            .filter(|(name, value)| bare.get(*name) != Some(value))
            .map(|(n, _)| n.clone())
            .collect()
    };
    let (a, b) = (said(&first), said(&second));
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
            || fields.iter().any(|f| speaks_of(f, &token.norm))
    })
}

impl Tuples<'_> {
    /// The tuples of a text that follows `before`.
    fn read(&self, before: Option<&Filled>, text: &str, depth: usize) -> Option<Vec<Filled>> {
        let source = SourceText::new(text, self.now);
        if depth < MAX_TUPLES {
            let joins = |i: &usize| {
                let token = &source.tokens[*i];
                let link = matches!(token.raw.as_str(), "." | ",") || token.lower == "e";
                (link || token.is(&["and", "ed"])) && !source.found.taken[*i] && !source.found.quoted[*i]
            };
            for i in (1..source.tokens.len()).filter(joins).take(MAX_SPLITS) {
                let token = &source.tokens[i];
                let (left, right) = (text.get(..token.start)?, text.get(token.end..)?);
                let Some(mut first) = self.accepted(before, self.filled(left)) else { continue };
                if let Some(rest) = self.read(Some(&first), right, depth + 1) {
                    first.used.resize(i, false);
                    return Some(std::iter::once(first).chain(rest).collect());
                }
            }
        }
        before?;
        let own = self.filled(text);
        self.accepted(before, own).map(|own| vec![own])
    }

    fn filled(&self, text: &str) -> Filled {
        fill(self.fields, text, self.now, self.verbs, false)
    }

    /// What was said, by name.
    fn said(&self, filled: &Filled) -> Vec<&ArgumentField> {
        let said = |f: &&ArgumentField| {
            filled.values.get(&f.name).is_some_and(|v| !v.is_null() && self.bare.get(&f.name) != Some(v))
        };
        self.fields.iter().filter(said).collect()
    }

    /// A tuple: the first says all that is required, and each other one again what differs.
    fn accepted(&self, before: Option<&Filled>, mut own: Filled) -> Option<Filled> {
        let whole = self.needed.iter().all(|f| own.values.contains_key(&f.name));
        if !own.several.is_empty() {
            return None;
        }
        let said = self.said(&own);
        let Some(before) = before else {
            return (whole && said.len() > 1).then_some(own);
        };
        let earlier = self.said(before);
        let differs = |f: &&&ArgumentField| own.values.get(&f.name) != before.values.get(&f.name);
        let heads = said.iter().filter(|f| !is_timed(f) && f.kind != ArgumentKind::Text);
        let apart = heads.clone().any(|f| differs(&f));
        if self.needed.len() < 2 {
            let same = said.iter().map(|f| &f.name).eq(earlier.iter().map(|f| &f.name));
            return (whole && same && apart && said.iter().all(|f| f.kind != ArgumentKind::Text))
                .then_some(own);
        }
        if whole && apart {
            return Some(own);
        }
        let varies = |f: &&&ArgumentField| is_timed(f) || matches!(f.kind, ArgumentKind::Number(_));
        // Only what was said before is said again.
        let again = |f: &&ArgumentField| earlier.iter().any(|e| e.name == f.name);
        let named = heads.clone().any(|f| matches!(f.kind, ArgumentKind::Enum(_)) && again(f) && differs(&f));
        let changed = said.iter().any(|f| differs(&f));
        let all = earlier.iter().filter(varies).all(|f| said.iter().any(|s| s.name == f.name));
        if !said.iter().all(again)
            || !(named || (said.len() > 1 && changed && all && earlier.iter().any(|f| varies(&f))))
        {
            return None;
        }
        let open: Vec<(String, Value)> = earlier
            .iter()
            .filter(|f| !said.iter().any(|s| s.name == f.name))
            .map(|f| {
                let value = before.values.get(&f.name).filter(|_| !varies(&f));
                (f.name.clone(), value.cloned().unwrap_or(Value::Null))
            })
            .collect();
        own.values.extend(open);
        Some(own)
    }
}

/// Whether a word is one of those by which an argument or one of its values is spoken of.
fn speaks_of(field: &ArgumentField, norm: &str) -> bool {
    let word = features(norm);
    let told = field.cues.iter().chain(&field.hints).any(|own| own.similarity(&word) > 0.8);
    let chosen = match &field.kind {
        ArgumentKind::Enum(choices) => {
            choices.iter().flat_map(|c| &c.words).flatten().any(|w| *w == word.norm)
        }
        _ => false,
    };
    told || chosen
}

fn is_timed(field: &ArgumentField) -> bool {
    matches!(field.kind, ArgumentKind::Date | ArgumentKind::Time | ArgumentKind::DateTime)
}

/// Takes back a day or a time where several were said for several things, and nobody knows which is whose.
pub(super) fn unpaired(fields: &[ArgumentField], source: &SourceText, out: &mut Filled) {
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

/// A range of days for a tool that takes one: a call for each day.
pub(super) fn spread(fields: &[ArgumentField], source: &SourceText, out: &mut Filled) {
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
