//! Which argument gets which day and time: beginnings to beginnings, ends to ends.

use jiff::ToSpan;
use jiff::civil::{Date, Time};
use serde_json::{Map, Value, json};

use super::cue_words;
use super::dates::RangeRole;
use super::dayexpr::{self, DayExpr, DayRun};
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;

/// Days and times.
pub(super) fn moments(fields: &[ArgumentField], source: &mut SourceText, out: &mut Filled) {
    let of = |kinds: &[ArgumentKind]| -> Vec<&ArgumentField> {
        fields.iter().filter(|f| kinds.contains(&f.kind)).collect()
    };
    let days = of(&[ArgumentKind::Date]);
    let times = of(&[ArgumentKind::Time]);
    let both = of(&[ArgumentKind::DateTime]);
    let nights =
        fields.iter().any(|f| f.says(&["night", "nights", "notte", "notti", "checkin", "checkout", "hotel"]))
            || fields.iter().any(|f| f.named(&["check"]))
            || cue_words::are_apart(&days);
    if !days.is_empty() {
        place_days(&days, source, out, nights);
    }
    if !times.is_empty() {
        place_times(&times, source, out);
    }
    if !both.is_empty() {
        place_moments(&both, source, out);
    }
    place_sides(fields, source, out);
    for field in fields {
        if let ArgumentKind::List(inner) = &field.kind
            && inner.kind == ArgumentKind::Date
            && !source.found.days.is_empty()
        {
            let all: Vec<String> =
                dayexpr::dates(&dayexpr::runs(&source.found.said)).iter().map(Date::to_string).collect();
            if all.is_empty() {
                continue;
            }
            out.values.insert(field.name.clone(), json!(all));
        }
    }
}

/// Times; of "at 10 and at 15" one for each call, and of "at 10 or 11" none.
fn place_times(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled) {
    let hours = &source.found.hours;
    let between = |words: &[&str]| {
        hours.windows(2).any(|pair| (pair[0].last + 1..pair[1].first).any(|i| source.is(i, words)))
    };
    let single = hours.iter().all(|h| h.role == RangeRole::Single);
    if single && hours.len() > 1 && joined(source) && between(&["or", "o", "oppure", "od"]) {
        return;
    }
    let text = |time: Time| json!(time.strftime("%H:%M").to_string());
    let roles: Vec<(RangeRole, Time)> = hours.iter().map(|h| (h.role, h.time)).collect();
    let span = duration(source);
    for (field, time) in ends(fields, &roles, false, span.map(|s| move |t: Time| t.saturating_add(s))) {
        out.values.insert(field.name.clone(), text(time));
    }
    if let [field] = fields
        && single
        && hours.len() > 1
        && joined(source)
    {
        out.say_several(&field.name, hours.iter().map(|h| text(h.time)));
    }
}

/// Whether the times stand in one list: "at 10, 12 and 15".
fn joined(source: &SourceText) -> bool {
    source.found.hours.windows(2).all(|pair| {
        let mut between = pair[0].last + 1..pair[1].first;
        let link = |i: usize| {
            source
                .is(i, &["and", "e", "ed", "or", "o", "oppure", "od", "at", "alle", "again", "also", "anche"])
                || source.tokens.get(i).is_some_and(|t| t.raw == ",")
        };
        // "alle 10 e alle 15": the preposition is part of the time.
        !between.is_empty() && between.all(link)
    })
}

fn place_days(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled, nights: bool) {
    if runs_of(fields, source, out) {
        return;
    }
    let said: Vec<(RangeRole, Date)> = source.found.days.iter().map(|d| (d.role, d.date)).collect();
    let span = nights_said(source);
    let grow = span.map(|days| move |date: Date| date.saturating_add(days.days()));
    let one_is_both = !nights && !source.found.unclear_days() && !lasts_days(source);
    let placed = ends(fields, &said, one_is_both, grow);
    let end = |role: RangeRole| placed.iter().find(|(field, _)| field.role == role).map(|(_, date)| *date);
    if let (Some(from), Some(to)) = (end(RangeRole::From), end(RangeRole::To))
        && to < from
    {
        // What ends before it begins was not meant.
        return;
    }
    for (field, date) in placed {
        out.values.insert(field.name.clone(), json!(date.to_string()));
    }
    // One day asked for, several said, none of them a range: one call each.
    if let [field] = fields
        && said.len() > 1
        && said.iter().all(|(role, _)| *role == RangeRole::Single)
    {
        let mut all: Vec<Value> = Vec::new();
        for (_, date) in &said {
            let value = json!(date.to_string());
            if !all.contains(&value) {
                all.push(value);
            }
        }
        if all.len() > 1 {
            out.say_several(&field.name, all);
        }
    }
}

/// The runs of a list of days, or of a range without some; `None` where the days are no such list.
fn listed(source: &SourceText) -> Option<Vec<DayRun>> {
    let said = &source.found.said;
    let listed = said.iter().any(|e| e.listed);
    let without = said.iter().any(|e| matches!(e.said, DayExpr::Excluded(..)));
    let plain = said
        .iter()
        .all(|e| matches!(e.said, DayExpr::Single(_) | DayExpr::Range(..) | DayExpr::Excluded(..)));
    // "On 12 July, and back on 19 July" is no list: only what is joined throughout is one.
    let whole = said.iter().filter(|e| !e.days.is_empty()).skip(1).all(|e| e.listed);
    (plain && whole && (listed || without)).then(|| dayexpr::runs(said))
}

/// One call for each run of listed days, or for each day where the tool takes one. Whether there was a list.
fn runs_of(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled) -> bool {
    let Some(runs) = listed(source) else { return false };
    let text = |date: Date| json!(date.to_string());
    match fields {
        [field] => {
            let all: Vec<Value> = dayexpr::dates(&runs).into_iter().map(text).collect();
            if let Some(first) = all.first() {
                out.values.insert(field.name.clone(), first.clone());
            }
            if all.len() > 1 {
                out.say_several(&field.name, all);
            }
            true
        }
        [a, b] => {
            let (from, to) =
                if a.role == RangeRole::To || b.role == RangeRole::From { (b, a) } else { (a, b) };
            let call = |run: &DayRun| {
                Map::from_iter([(from.name.clone(), text(run.from)), (to.name.clone(), text(run.to))])
            };
            let all: Vec<Map<String, Value>> = runs.iter().map(call).collect();
            if let Some(first) = all.first() {
                out.values.extend(first.clone());
            }
            if all.len() > 1 && out.several.is_empty() {
                out.several = all;
            }
            true
        }
        _ => false,
    }
}

/// "3 days", "a few days": longer than the one day that was said beside it.
fn lasts_days(source: &SourceText) -> bool {
    let unit = |i: usize| {
        source.is(i, &["days", "giorni", "weeks", "settimane", "week", "settimana", "nights", "notti"])
    };
    let counted = source.found.numbers.iter().any(|n| n.value > 1.0 && unit(n.last + 1));
    let vague = (0..source.tokens.len()).any(|i| {
        source.is(i, &["few", "some", "several", "qualche", "alcuni", "couple", "paio"])
            && (i + 1..i + 3).any(|k| unit(k) || source.is(k, &["giorno"]))
    });
    counted || vague
}

fn place_moments(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled) {
    let Some(first) = source.found.days.first() else { return };
    let last = source.found.days.iter().rev().find(|d| d.role == RangeRole::To).unwrap_or(first);
    let hours: Vec<(RangeRole, Time)> = source.found.hours.iter().map(|h| (h.role, h.time)).collect();
    let span = duration(source);
    let placed = ends(fields, &hours, false, span.map(|s| move |t: Time| t.saturating_add(s)));
    for (field, time) in &placed {
        let date = if field.role == RangeRole::To { last.date } else { first.date };
        out.values.insert(field.name.clone(), stamp(field, date, *time, source));
    }
    let dates = listed(source).map(|runs| dayexpr::dates(&runs)).unwrap_or_default();
    if dates.len() > 1 && !placed.is_empty() && out.several.is_empty() {
        let call = |date: &Date| {
            placed
                .iter()
                .map(|(field, time)| (field.name.clone(), stamp(field, *date, *time, source)))
                .collect()
        };
        out.several = dates.iter().map(call).collect();
    }
}

/// A day and a time as the argument wants them.
fn stamp(field: &ArgumentField, date: Date, time: Time, source: &SourceText) -> Value {
    let moment = date.to_datetime(time);
    let upper = field.description.to_uppercase();
    let plain = upper.contains("YYYY-MM-DDTHH:MM") && !upper.contains("MM:SS") && !upper.contains('Z');
    let text = match moment.to_zoned(source.now.time_zone().clone()) {
        Ok(zoned) if !plain => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        _ => moment.strftime("%Y-%m-%dT%H:%M").to_string(),
    };
    json!(text)
}

/// "Before 15 June" for an argument that is called so.
fn place_sides(fields: &[ArgumentField], source: &SourceText, out: &mut Filled) {
    for expr in &source.found.said {
        let DayExpr::Beside(role, date) = expr.said else { continue };
        let names: &[&str] = match role {
            RangeRole::To => &["before", "prima", "until", "deadline", "due", "scadenza", "entro"],
            _ => &["after", "since", "dopo"],
        };
        let field = fields.iter().find(|f| f.kind == ArgumentKind::Date && f.named(names));
        if let Some(field) = field.filter(|f| !out.values.contains_key(&f.name)) {
            out.values.insert(field.name.clone(), json!(date.to_string()));
        }
    }
}

/// Which argument gets which value: beginnings to beginnings, ends to ends. `one_is_both` lets a
/// single day be both ends; `grow` makes an end from a beginning where a length was said.
fn ends<'f, T: Copy + PartialEq>(
    fields: &[&'f ArgumentField],
    said: &[(RangeRole, T)],
    one_is_both: bool,
    grow: Option<impl Fn(T) -> T>,
) -> Vec<(&'f ArgumentField, T)> {
    let mut out: Vec<(&ArgumentField, T)> = Vec::new();
    if said.is_empty() {
        return out;
    }
    let by = |role: RangeRole| said.iter().find(|(r, _)| *r == role).map(|(_, v)| *v);
    let singles: Vec<T> = said.iter().filter(|(r, _)| *r == RangeRole::Single).map(|(_, v)| *v).collect();
    let unclear = fields.len() == 2 && fields.iter().all(|f| f.role == RangeRole::Single);
    let role_of = |n: usize, field: &ArgumentField| match (unclear, n) {
        (true, 0) => RangeRole::From,
        (true, _) => RangeRole::To,
        _ => field.role,
    };
    let pair = fields.iter().enumerate().any(|(n, f)| role_of(n, f) == RangeRole::From)
        && fields.iter().enumerate().any(|(n, f)| role_of(n, f) == RangeRole::To);
    let mut next = singles.iter().copied();
    for (n, field) in fields.iter().enumerate() {
        let value = match role_of(n, field) {
            RangeRole::From => by(RangeRole::From)
                .or_else(|| next.next())
                .or_else(|| if pair { None } else { by(RangeRole::To) }),
            RangeRole::To if pair => by(RangeRole::To).or_else(|| {
                let start = by(RangeRole::From).or_else(|| singles.first().copied())?;
                match &grow {
                    Some(grow) => Some(grow(start)),
                    None if by(RangeRole::From).is_some() => next.next().filter(|v| *v != start),
                    None => match (singles.len(), one_is_both && field.required) {
                        (2.., _) => singles.get(1).copied(),
                        (1, true) => Some(start),
                        _ => None,
                    },
                }
            }),
            RangeRole::To => by(RangeRole::To).or_else(|| next.next()).or_else(|| by(RangeRole::From)),
            RangeRole::Single => next.next().or_else(|| by(RangeRole::From)).or_else(|| by(RangeRole::To)),
        };
        if let Some(value) = value {
            out.push((field, value));
        }
    }
    out
}

/// "2 ore", "for 90 minutes": how long something lasts.
fn duration(source: &SourceText) -> Option<jiff::Span> {
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
fn nights_said(source: &SourceText) -> Option<i64> {
    source.found.numbers.iter().find_map(|n| {
        let unit = source.tokens.get(n.last + 1)?;
        (unit.is(&["notti", "notte", "nights", "night"]) && (1.0..=365.0).contains(&n.value))
            .then_some(n.value as i64)
    })
}
