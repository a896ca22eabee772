//! Fills a tool's arguments from words: each kind of argument by its own reader, the surest first.
//! What was not said stays empty.

use jiff::{SpanRound, Unit, Zoned};
use serde_json::{Map, Value, json};

use super::dates::Role;
use super::schema::{Field, Kind};
use super::source::Source;
use super::{days, freetext, names, options};

/// Arguments read from a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Filled {
    /// By name.
    pub values: Map<String, Value>,
    /// What each of several calls has of its own, where several values were said ("Milano e Roma"), in the
    /// order of the words; laid over `values`. Empty where one call does it.
    pub several: Vec<Map<String, Value>>,
    /// By token of the text: whether a value was made of it.
    pub used: Vec<bool>,
}

impl Filled {
    /// Says that the argument has several values, each for a call of its own. The first who says so decides.
    pub fn say_several(&mut self, name: &str, all: impl IntoIterator<Item = Value>) {
        if self.several.is_empty() {
            self.several = all.into_iter().map(|value| Map::from_iter([(name.to_owned(), value)])).collect();
        }
    }

    /// Required arguments that are not there, by name.
    pub fn missing<'f>(&self, fields: &'f [Field]) -> Vec<&'f Field> {
        fields.iter().filter(|f| f.required && !self.values.contains_key(&f.name)).collect()
    }
}

/// Reads the arguments `fields` from `text`. `verbs` are the words of the tool's own name, which are
/// no content. With `alone` the text is the reply to a question: a bare value is enough.
pub(super) fn fill(fields: &[Field], text: &str, now: &Zoned, verbs: &[String], alone: bool) -> Filled {
    fill_from(fields, &mut Source::new(text, now), verbs, alone)
}

/// [`fill`] from a source, which is left with what the arguments have taken of it.
pub(super) fn fill_from(fields: &[Field], source: &mut Source, verbs: &[String], alone: bool) -> Filled {
    let mut out = Filled::default();
    for field in fields {
        if let Kind::Fixed(value) = &field.kind {
            out.values.insert(field.name.clone(), value.clone());
        }
    }
    addresses(fields, source, &mut out);
    options::choices(fields, source, &mut out, alone);
    days::moments(fields, source, &mut out);
    numbers(fields, source, &mut out, alone);
    names::fill(fields, source, &mut out, alone, verbs);
    options::flags(fields, source, &mut out, alone);
    freetext::fill(fields, source, &mut out, verbs, alone);
    names::rest(fields, source, &mut out, verbs, alone);
    for field in fields {
        match &field.kind {
            Kind::Object(inner) => {
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
    out.used = consumed(source, &out);
    out
}

/// By token: whether a value was made of it. Days and times count where an argument took one.
fn consumed(source: &Source, out: &Filled) -> Vec<bool> {
    let mut used = source.used.clone();
    let said: Vec<String> =
        out.values.values().chain(out.several.iter().flat_map(Map::values)).map(Value::to_string).collect();
    let found = &source.found;
    let days = found.days.iter().map(|d| (d.first, d.last, d.date.to_string()));
    let hours = found.hours.iter().map(|h| (h.first, h.last, h.time.strftime("%H:%M").to_string()));
    for (first, last, text) in days.chain(hours) {
        if said.iter().any(|value| value.contains(&text)) {
            used[first..=last].fill(true);
        }
    }
    used
}

/// E-mail and web addresses.
fn addresses(fields: &[Field], source: &mut Source, out: &mut Filled) {
    for (mark, kind) in [("@", Kind::Email), ("://", Kind::Uri)] {
        let mut found: Vec<usize> =
            (0..source.tokens.len()).filter(|i| source.tokens[*i].raw.contains(mark)).collect();
        if kind == Kind::Email {
            found.retain(|i| source.tokens[*i].raw.contains('.'));
        }
        let mut left = found.iter().copied();
        for field in fields {
            match &field.kind {
                k if *k == kind => {
                    if let Some(i) = left.next() {
                        out.values.insert(field.name.clone(), json!(source.tokens[i].raw));
                        source.take(i, i);
                    }
                }
                Kind::List(inner) if inner.kind == kind => {
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

/// Numbers, each to the argument whose words stand beside it.
fn numbers(fields: &[Field], source: &mut Source, out: &mut Filled, alone: bool) {
    let wanted: Vec<&Field> = fields.iter().filter(|f| matches!(f.kind, Kind::Number(_))).collect();
    let found = source.found.numbers.clone();
    let mut pairs: Vec<(f64, usize, usize, f64)> = Vec::new();
    for (f, field) in wanted.iter().enumerate() {
        for (n, number) in found.iter().enumerate() {
            if (number.first..=number.last).any(|i| source.used[i]) {
                continue;
            }
            let (score, value) = suits(field, number.value, number.first, number.last, source, alone);
            let whole = matches!(field.kind, Kind::Number(true));
            if whole && value.fract() != 0.0 {
                continue;
            }
            let outside = field.min.is_some_and(|m| value < m) || field.max.is_some_and(|m| value > m);
            let score = if outside { score - 0.15 } else { score };
            if score >= if field.required { 0.2 } else { 0.5 } {
                pairs.push((score, f, n, value));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)).then(a.1.cmp(&b.1)));
    let mut taken = vec![false; found.len()];
    for (_, f, n, value) in pairs {
        let field = wanted[f];
        if taken[n] || out.values.contains_key(&field.name) {
            continue;
        }
        taken[n] = true;
        out.values.insert(field.name.clone(), number(value));
        source.take(found[n].first, found[n].last);
    }
    // "Al primo turno", "the second shift".
    for field in &wanted {
        let ordinal = |i: usize| {
            let rank = [
                &["primo", "prima", "first"],
                &["secondo", "seconda", "second"],
                &["terzo", "terza", "third"],
                &["quarto", "quarta", "fourth"],
            ];
            rank.iter().position(|names| source.is(i, *names)).map(|n| n as f64 + 1.0)
        };
        let beside = |i: usize| {
            source
                .tokens
                .get(i)
                .is_some_and(|t| t.word && field.cues.iter().any(|c| c.similarity(&t.features()) > 0.8))
        };
        if out.values.contains_key(&field.name) {
            continue;
        }
        if let Some(i) = (0..source.tokens.len())
            .find(|i| ordinal(*i).is_some() && (beside(i + 1) || (*i > 0 && beside(i - 1))))
        {
            out.values.insert(field.name.clone(), number(ordinal(i).unwrap_or(1.0)));
            source.take(i, i);
        }
    }
    // Nights and days between two days that were said.
    let first = source.found.days.iter().find(|d| d.role == Role::From);
    let last = source.found.days.iter().find(|d| d.role == Role::To);
    if let (Some(first), Some(last)) = (first, last) {
        let days = last
            .date
            .since(first.date)
            .ok()
            .and_then(|s| s.round(SpanRound::new().largest(Unit::Day).days_are_24_hours()).ok());
        let days = days.map_or(0, |s| s.get_days());
        // A beginning that has its end as an argument needs no count beside it.
        let ended = fields.iter().any(|f| f.kind == Kind::Date && f.role == Role::To);
        for field in wanted
            .iter()
            .filter(|f| (f.required || !ended) && !out.values.contains_key(&f.name))
            .collect::<Vec<_>>()
        {
            if field.named(&["nights", "notti"]) {
                out.values.insert(field.name.clone(), json!(days));
            } else if field.named(&["days", "giorni"]) {
                out.values.insert(field.name.clone(), json!(days + 1));
            }
        }
    }
}

fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Minutes in a unit of time.
fn unit_minutes(norm: &str) -> Option<f64> {
    Some(match norm {
        "minuti" | "minuto" | "minutes" | "minute" | "min" | "mins" => 1.0,
        "ora" | "ore" | "hour" | "hours" | "h" => 60.0,
        "giorno" | "giorni" | "day" | "days" => 1440.0,
        "notte" | "notti" | "night" | "nights" => 1440.0,
        "settimana" | "settimane" | "week" | "weeks" => 10_080.0,
        "mese" | "mesi" | "month" | "months" => 43_800.0,
        "anno" | "anni" | "year" | "years" => 525_600.0,
        _ => return None,
    })
}

/// How well a number suits an argument, and its value in the argument's unit.
fn suits(field: &Field, value: f64, first: usize, last: usize, source: &Source, alone: bool) -> (f64, f64) {
    let word = |i: usize| source.tokens.get(i).filter(|t| t.word);
    let content = |i: usize| word(i).filter(|t| !super::lexicon::is_stop(&t.norm) && !source.found.taken[i]);
    // The noun it counts: the next word, behind "di" or an adjective at most.
    let after: Vec<usize> =
        (last + 1..=last + 3).take_while(|i| word(*i).is_some() && !source.found.taken[*i]).collect();
    let mut score: f64 = 0.0;
    for (distance, i) in after.iter().enumerate() {
        if let Some(token) = content(*i) {
            score = score.max(field.speaks_of(&token.features()) - 0.12 * distance as f64);
        }
    }
    let mut seen = 0;
    for i in (first.saturating_sub(4)..first).rev() {
        let Some(token) = source.tokens.get(i) else { break };
        if !token.word && !matches!(token.raw.as_str(), ":" | "#" | "=" | "€" | "$") {
            break;
        }
        if let Some(token) = content(i) {
            score = score.max(field.speaks_of(&token.features()) * 0.9 - 0.1 * f64::from(seen));
            seen += 1;
            if seen == 2 {
                break;
            }
        }
    }
    let unit = word(last + 1).and_then(|t| unit_minutes(&t.norm));
    let own = field.cues.iter().chain(&field.hints).find_map(|f| unit_minutes(&f.norm));
    let lasts = field.says(&["duration", "durata", "length", "long"]);
    if let Some(unit) = unit {
        return match own {
            Some(own) if own == unit => (score.max(0.9), value),
            Some(own) => (if lasts || own < unit { score.max(0.8) } else { score * 0.3 }, value * unit / own),
            None if lasts => (score.max(0.7), value),
            // Days and hours count nothing else than days and hours.
            None => {
                (if field.speaks_of(&source.tokens[last + 1].features()) > 0.5 { score } else { 0.0 }, value)
            }
        };
    }
    let people = field.says(&[
        "people",
        "persons",
        "guests",
        "persone",
        "coperti",
        "ospiti",
        "attendees",
        "partecipanti",
        "diners",
        "party",
        "seats",
        "posti",
    ]);
    let lone = content(last + 1).is_none();
    let led = first > 0 && source.is(first - 1, &["per", "for", "in", "of", "pour", "fur", "para"]);
    if people && lone && led {
        score = score.max(0.75);
    }
    let money = field
        .says(&["amount", "importo", "euro", "price", "prezzo", "cost", "budget", "eur", "cifra", "somma"]);
    let coin = |i: usize| {
        word(i).is_some_and(|t| t.is(&["euro", "eur", "dollar", "dollars", "dollari", "usd", "pounds"]))
    };
    if money && (coin(last + 1) || (first > 0 && coin(first - 1))) {
        score = score.max(0.95);
    }
    let year = (1900.0..2200.0).contains(&value) && value.fract() == 0.0 && last == first;
    if field.named(&["year", "anno"]) {
        return (if year { score.max(0.9) } else { 0.0 }, value);
    }
    let numbering = field.identifies();
    if score < 0.2 && field.required && (lone || !numbering) {
        // Nothing else claims it: a number that counts no other thing.
        score = if lone { 0.3 } else { 0.2 };
    }
    if alone && lone {
        score = score.max(0.6);
    }
    (score, value)
}
