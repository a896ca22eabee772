//! Fills a tool's arguments from words: each kind of argument by its own reader, the surest first.
//! What was not said stays empty.

use jiff::civil::{Date, Time};
use jiff::{SpanRound, ToSpan, Unit, Zoned};
use serde_json::{Map, Value, json};

use super::dates::Role;
use super::schema::{Field, Kind};
use super::source::Source;
use super::{freetext, names, options};

/// Arguments read from a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Filled {
    /// By name.
    pub values: Map<String, Value>,
    /// One argument of which several values were said ("Milano e Roma"), with all of them.
    pub several: Option<(String, Vec<Value>)>,
}

impl Filled {
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
    moments(fields, source, &mut out);
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
    out
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

/// Days and times.
fn moments(fields: &[Field], source: &mut Source, out: &mut Filled) {
    let of = |kinds: &[Kind]| -> Vec<&Field> { fields.iter().filter(|f| kinds.contains(&f.kind)).collect() };
    let days = of(&[Kind::Date]);
    let times = of(&[Kind::Time]);
    let both = of(&[Kind::DateTime]);
    let nights =
        fields.iter().any(|f| f.says(&["night", "nights", "notte", "notti", "checkin", "checkout", "hotel"]))
            || fields.iter().any(|f| f.named(&["check"]));
    if !days.is_empty() {
        place_days(&days, source, out, nights);
    }
    if !times.is_empty() {
        let roles: Vec<(Role, Time)> = source.found.hours.iter().map(|h| (h.role, h.time)).collect();
        let span = duration(source);
        for (field, time) in ends(&times, &roles, false, span.map(|s| move |t: Time| t.saturating_add(s))) {
            out.values.insert(field.name.clone(), json!(time.strftime("%H:%M").to_string()));
        }
    }
    if !both.is_empty() {
        place_moments(&both, source, out);
    }
    for field in fields {
        if let Kind::List(inner) = &field.kind
            && inner.kind == Kind::Date
            && !source.found.days.is_empty()
        {
            let all: Vec<String> = source.found.days.iter().map(|d| d.date.to_string()).collect();
            out.values.insert(field.name.clone(), json!(all));
        }
    }
}

fn place_days(fields: &[&Field], source: &Source, out: &mut Filled, nights: bool) {
    let said: Vec<(Role, Date)> = source.found.days.iter().map(|d| (d.role, d.date)).collect();
    let span = nights_said(source);
    let grow = span.map(|days| move |date: Date| date.saturating_add(days.days()));
    for (field, date) in ends(fields, &said, !nights, grow) {
        out.values.insert(field.name.clone(), json!(date.to_string()));
    }
    // One day asked for, several said, none of them a range: one call each.
    if let [field] = fields
        && said.len() > 1
        && said.iter().all(|(role, _)| *role == Role::Single)
    {
        let mut all: Vec<Value> = Vec::new();
        for (_, date) in &said {
            let value = json!(date.to_string());
            if !all.contains(&value) {
                all.push(value);
            }
        }
        if all.len() > 1 {
            out.several = Some((field.name.clone(), all));
        }
    }
}

fn place_moments(fields: &[&Field], source: &Source, out: &mut Filled) {
    let Some(first) = source.found.days.first() else { return };
    let last = source.found.days.iter().rev().find(|d| d.role == Role::To).unwrap_or(first);
    let zone = source.now.time_zone();
    let hours: Vec<(Role, Time)> = source.found.hours.iter().map(|h| (h.role, h.time)).collect();
    let span = duration(source);
    for (field, time) in ends(fields, &hours, false, span.map(|s| move |t: Time| t.saturating_add(s))) {
        let date = if field.role == Role::To { last.date } else { first.date };
        let moment = date.to_datetime(time);
        let plain = {
            let upper = field.description.to_uppercase();
            upper.contains("YYYY-MM-DDTHH:MM") && !upper.contains("MM:SS") && !upper.contains('Z')
        };
        let text = match moment.to_zoned(zone.clone()) {
            Ok(zoned) if !plain => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            _ => moment.strftime("%Y-%m-%dT%H:%M").to_string(),
        };
        out.values.insert(field.name.clone(), json!(text));
    }
}

/// Which argument gets which value: beginnings to beginnings, ends to ends. `one_is_both` lets a
/// single day be both ends; `grow` makes an end from a beginning where a length was said.
fn ends<'f, T: Copy + PartialEq>(
    fields: &[&'f Field],
    said: &[(Role, T)],
    one_is_both: bool,
    grow: Option<impl Fn(T) -> T>,
) -> Vec<(&'f Field, T)> {
    let mut out: Vec<(&Field, T)> = Vec::new();
    if said.is_empty() {
        return out;
    }
    let by = |role: Role| said.iter().find(|(r, _)| *r == role).map(|(_, v)| *v);
    let singles: Vec<T> = said.iter().filter(|(r, _)| *r == Role::Single).map(|(_, v)| *v).collect();
    let unclear = fields.len() == 2 && fields.iter().all(|f| f.role == Role::Single);
    let role_of = |n: usize, field: &Field| match (unclear, n) {
        (true, 0) => Role::From,
        (true, _) => Role::To,
        _ => field.role,
    };
    let pair = fields.iter().enumerate().any(|(n, f)| role_of(n, f) == Role::From)
        && fields.iter().enumerate().any(|(n, f)| role_of(n, f) == Role::To);
    let mut next = singles.iter().copied();
    for (n, field) in fields.iter().enumerate() {
        let value = match role_of(n, field) {
            Role::From => {
                by(Role::From).or_else(|| next.next()).or_else(|| if pair { None } else { by(Role::To) })
            }
            Role::To if pair => by(Role::To).or_else(|| {
                let start = by(Role::From).or_else(|| singles.first().copied())?;
                match &grow {
                    Some(grow) => Some(grow(start)),
                    None if by(Role::From).is_some() => next.next().filter(|v| *v != start),
                    None => match (singles.len(), one_is_both && field.required) {
                        (2.., _) => singles.get(1).copied(),
                        (1, true) => Some(start),
                        _ => None,
                    },
                }
            }),
            Role::To => by(Role::To).or_else(|| next.next()).or_else(|| by(Role::From)),
            Role::Single => next.next().or_else(|| by(Role::From)).or_else(|| by(Role::To)),
        };
        if let Some(value) = value {
            out.push((field, value));
        }
    }
    out
}

/// "2 ore", "for 90 minutes": how long something lasts.
fn duration(source: &Source) -> Option<jiff::Span> {
    source.found.numbers.iter().find_map(|n| {
        let unit = source.tokens.get(n.last + 1)?;
        let minutes = match unit.norm.as_str() {
            "ora" | "ore" | "hour" | "hours" | "h" => n.value * 60.0,
            "minuti" | "minuto" | "minutes" | "minute" | "min" => n.value,
            _ => return None,
        };
        (1.0..=10_000.0).contains(&minutes).then(|| (minutes as i64).minutes())
    })
}

/// "2 notti", "a week": days from a beginning to an end, where that is beyond doubt.
fn nights_said(source: &Source) -> Option<i64> {
    source.found.numbers.iter().find_map(|n| {
        let unit = source.tokens.get(n.last + 1)?;
        (unit.is(&["notti", "notte", "nights", "night"]) && (1.0..=365.0).contains(&n.value))
            .then_some(n.value as i64)
    })
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
