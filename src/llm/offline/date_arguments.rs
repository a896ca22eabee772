//! Assigns days and times to arguments: beginnings to beginnings, ends to ends.

use jiff::civil::{Date, Time, Weekday};
use jiff::{ToSpan, Zoned};
use serde_json::{Map, Value, json};

use super::cue_words;
use super::date_expression::{self, DateExpressionKind, DayRun};
use super::dates::RangeRole;
use super::number_arguments::unit_minutes;
use super::schema::{self, ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;
use crate::language::calendar_words::{BETWEEN, DAYS, WEEKS};
use crate::language::holidays::may_be_free;

pub(super) fn fill_dates_and_times(fields: &[ArgumentField], source: &mut SourceText, out: &mut Filled) {
    let of = |kinds: &[ArgumentKind]| -> Vec<&ArgumentField> {
        fields.iter().filter(|f| kinds.contains(&f.kind)).collect()
    };
    let days = of(&[ArgumentKind::Date]);
    let times = of(&[ArgumentKind::Time]);
    let both = of(&[ArgumentKind::DateTime]);
    let nights = fields
        .iter()
        .any(|f| f.mentions(&["night", "nights", "notte", "notti", "checkin", "checkout", "hotel"]))
        || fields.iter().any(|f| f.named(&["check"]))
        || cue_words::are_separate_ends(&days);
    if !days.is_empty() {
        fill_days(&days, source, out, nights);
    }
    if !times.is_empty() {
        fill_times(&times, source, out);
    }
    if !both.is_empty() {
        fill_date_times(&both, source, out);
    }
    fill_one_sided(fields, source, out);
    for field in fields {
        if let ArgumentKind::List(inner) = &field.kind
            && inner.kind == ArgumentKind::Date
            && !source.found.days.is_empty()
        {
            let all: Vec<String> =
                date_expression::expand_runs(&date_expression::resolve_runs(&source.found.date_expressions))
                    .iter()
                    .map(Date::to_string)
                    .collect();
            if all.is_empty() {
                continue;
            }
            out.values.insert(field.name.clone(), json!(all));
        }
    }
}

/// Fills times. "At 10 and at 15" gives one call for each time, "at 10 or 11" fills none.
fn fill_times(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled) {
    let hours = &source.found.times;
    let between = |words: &[&str]| {
        hours.windows(2).any(|pair| (pair[0].last + 1..pair[1].first).any(|i| source.is(i, words)))
    };
    let single = hours.iter().all(|h| h.role == RangeRole::Single);
    if single && hours.len() > 1 && are_times_listed(source) && between(&["or", "o", "oppure", "od"]) {
        return;
    }
    let text = |time: Time| json!(time.strftime("%H:%M").to_string());
    let roles: Vec<(RangeRole, Time)> = hours.iter().map(|h| (h.role, h.time)).collect();
    let span = stated_duration(source);
    for (field, time) in assign_ends(fields, &roles, false, span.map(|s| move |t: Time| t.saturating_add(s)))
    {
        out.values.insert(field.name.clone(), text(time));
    }
    if let [field] = fields
        && single
        && hours.len() > 1
        && are_times_listed(source)
    {
        out.set_several(&field.name, hours.iter().map(|h| text(h.time)));
    }
}

/// Whether the times form one list: "at 10, 12 and 15".
fn are_times_listed(source: &SourceText) -> bool {
    source.found.times.windows(2).all(|pair| {
        let mut between = pair[0].last + 1..pair[1].first;
        let link = |i: usize| {
            source
                .is(i, &["and", "e", "ed", "or", "o", "oppure", "od", "at", "alle", "again", "also", "anche"])
                || source.tokens.get(i).is_some_and(|t| t.raw == ",")
        };
        // "alle 10 e alle 15": the preposition is part of the time's span.
        !between.is_empty() && between.all(link)
    })
}

fn fill_days(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled, nights: bool) {
    if fill_day_runs(fields, source, out) {
        return;
    }
    let said: Vec<(RangeRole, Date)> = source.found.days.iter().map(|d| (d.role, d.date)).collect();
    let has = |role: RangeRole| fields.iter().any(|field| field.role == role);
    let takes_range = has(RangeRole::From) && has(RangeRole::To);
    if takes_range && (!nights && are_unjoined(source) || are_within_period(source)) {
        return;
    }
    let nights_ahead = stated_nights(source);
    let counted = if nights || nights_ahead.is_some() { None } else { counted_days_ahead(source) };
    let span = nights_ahead.or(counted);
    let grow = span.map(|days| move |date: Date| date.saturating_add(days.days()));
    let one_is_both = !nights && !source.found.has_unclear_days() && !mentions_day_count(source);
    let placed = assign_ends(fields, &said, one_is_both, grow);
    // A last day that is counted and not stated is proposed.
    out.doubtful |= counted.is_some() && placed.len() > 1;
    let end = |role: RangeRole| placed.iter().find(|(field, _)| field.role == role).map(|(_, date)| *date);
    if let (Some(from), Some(to)) = (end(RangeRole::From), end(RangeRole::To)) {
        match counted_range(source, from, to) {
            // A range that ends before it begins was not meant.
            _ if to < from => return,
            CountedRange::Fits => {}
            CountedRange::Within => return,
            CountedRange::Contradicts => out.doubtful = true,
        }
    }
    for (field, date) in placed {
        out.values.insert(field.name.clone(), json!(date.to_string()));
    }
    // One argument and several single days: one call for each day.
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
            out.set_several(&field.name, all);
        }
    }
}

/// Whether no words join the days to a range: "tomorrow I want to book 15 December", "Thursday in two weeks".
fn are_unjoined(source: &SourceText) -> bool {
    let days = &source.found.days;
    days.windows(2).any(|pair| pair[0].date != pair[1].date)
        && days.iter().all(|day| day.role == RangeRole::Single)
        && !days.iter().any(|day| cue_words::announced_role(source, day.first) == Some(RangeRole::To))
}

/// Whether some day or days of a period are meant: "a day between 14 and 18 December", "a few days next week". Not "every day next
/// week".
fn are_within_period(source: &SourceText) -> bool {
    const DAY: &[&str] = &["day", "giorno", "tag", "jour", "dia"];
    const ALL: &[&str] = &[
        "every", "each", "all", "whole", "full", "entire", "per", "ogni", "tutto", "jeden", "ganzen",
        "chaque", "cada", "todo",
    ];
    let said = &source.found.date_expressions;
    let is_free = |i: usize| !said.iter().any(|expr| (expr.first..=expr.last).contains(&i));
    let is_day = |i: usize| source.is(i, DAY) && is_free(i) && !(i > 0 && source.is(i - 1, ALL));
    let is_some = |i: usize| is_day(i) || is_vague_count(source, i, |unit| source.is(unit, DAYS));
    has_period(source) && (0..source.tokens.len()).any(is_some)
}

/// Whether a range of days is a period by one expression ("next week"), or its ends are joined by "between".
fn has_period(source: &SourceText) -> bool {
    let days = &source.found.days;
    days.windows(2).any(|ends| ends[0].first == ends[1].first || source.is(ends[0].first, BETWEEN))
}

/// The runs of a list of days, or of a range with exclusions; `None` if the days are neither.
fn listed_runs(source: &SourceText) -> Option<Vec<DayRun>> {
    let said = &source.found.date_expressions;
    let listed = said.iter().any(|e| e.listed);
    let without = said.iter().any(|e| matches!(e.kind, DateExpressionKind::Excluded(..)));
    let plain = said.iter().all(|e| {
        matches!(
            e.kind,
            DateExpressionKind::Single(_) | DateExpressionKind::Range(..) | DateExpressionKind::Excluded(..)
        )
    });
    // "On 12 July, and back on 19 July" is not a list: all days of a list are joined.
    let whole = said.iter().filter(|e| !e.days.is_empty()).skip(1).all(|e| e.listed);
    (plain && whole && (listed || without)).then(|| date_expression::resolve_runs(said))
}

/// Fills one call for each run of listed days, or for each day if the tool takes one day. Returns whether
/// there was a list.
fn fill_day_runs(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled) -> bool {
    let Some(runs) = listed_runs(source) else { return false };
    let text = |date: Date| json!(date.to_string());
    match fields {
        [field] => {
            let all: Vec<Value> = date_expression::expand_runs(&runs).into_iter().map(text).collect();
            if let Some(first) = all.first() {
                out.values.insert(field.name.clone(), first.clone());
            }
            if all.len() > 1 {
                out.set_several(&field.name, all);
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

const NIGHT_WORDS: &[&str] =
    &["night", "nights", "notte", "notti", "nacht", "nachte", "nachten", "nuit", "nuits", "noche", "noches"];

/// Words behind a number of days that is no length: "3 days before", "2 days ago".
const DISTANCE: &[&str] =
    &["before", "after", "ago", "earlier", "later", "prima", "dopo", "fa", "avant", "apres", "antes"];

/// Whether the text mentions a length of several days: "3 days", "a week", "a few days". One stated date is then not both
/// ends.
fn mentions_day_count(source: &SourceText) -> bool {
    let is_unit = |i: usize| [DAYS, WEEKS, NIGHT_WORDS].iter().any(|words| source.is(i, words));
    let counted = source
        .found
        .numbers
        .iter()
        .any(|n| n.value > 1.0 && is_unit(n.last + 1) && !source.is(n.last + 2, DISTANCE));
    let is_week =
        |i: usize| source.is(i, &["a", "an", "one", "un", "una", "eine", "une"]) && source.is(i + 1, WEEKS);
    counted || (0..source.tokens.len()).any(|i| is_week(i) || is_vague_count(source, i, is_unit))
}

/// Whether words at a token say an inexact number of units: "a few days".
fn is_vague_count(source: &SourceText, i: usize, is_unit: impl Fn(usize) -> bool) -> bool {
    const AMOUNTS: &[&str] =
        &["few", "some", "several", "qualche", "alcuni", "couple", "paio", "einige", "quelques", "algunos"];
    source.is(i, AMOUNTS) && (i + 1..i + 3).any(is_unit)
}

/// Removes the last day from the values of a reply if it is also the first one and the `request` asks for several days.
pub(super) fn remove_equal_end(
    request: &SourceText,
    fields: &[ArgumentField],
    values: &mut Map<String, Value>,
) {
    if let Some((_, to)) = equal_ends(fields, values).filter(|_| mentions_day_count(request)) {
        values.remove(&to.name);
    }
}

/// The arguments for a first and a last day, by a tool's parameters, that have the same value although `text` asks for several
/// days.
pub(crate) fn single_day_of_several(
    text: &str,
    parameters: &Value,
    arguments: &Map<String, Value>,
    now: &Zoned,
) -> Option<(String, String)> {
    let fields = schema::fields(parameters);
    let (from, to) = equal_ends(&fields, arguments)?;
    mentions_day_count(&SourceText::new(text, now)).then(|| (from.name.clone(), to.name.clone()))
}

/// The arguments for a first and a last day if they have the same value.
fn equal_ends<'f>(
    fields: &'f [ArgumentField],
    values: &Map<String, Value>,
) -> Option<(&'f ArgumentField, &'f ArgumentField)> {
    let named = |role: RangeRole| fields.iter().find(|f| f.kind == ArgumentKind::Date && f.role == role);
    let (from, to) = (named(RangeRole::From)?, named(RangeRole::To)?);
    values.get(&from.name).is_some_and(|day| values.get(&to.name) == Some(day)).then_some((from, to))
}

/// The number of days that the text states, if it is more than one: "3 days".
fn stated_days(source: &SourceText) -> Option<i64> {
    let mut numbers = source.found.numbers.iter();
    let days = numbers.find(|n| n.value > 1.0 && source.is(n.last + 1, DAYS))?.value;
    (days.fract() == 0.0 && days <= 365.0).then_some(days as i64)
}

/// How many days after the only stated day a number of days ends that begins on it: 2 for "3 days from 15 December". Only
/// where all of them are working days for everybody: others count the free ones, too, or do not.
fn counted_days_ahead(source: &SourceText) -> Option<i64> {
    let [day] = source.found.days.as_slice() else { return None };
    let opening = (day.first.saturating_sub(2)..=day.first).any(|i| source.is(i, BEGINNING));
    let number = source.found.numbers.iter().find(|n| n.value > 1.0 && source.is(n.last + 1, DAYS))?;
    // "3 days before", "every 3 days".
    let elsewhere = source.is(number.last + 2, DISTANCE)
        || number
            .first
            .checked_sub(1)
            .is_some_and(|i| source.is(i, &["every", "ogni", "alle", "tous", "cada", "in"]));
    if !(opening || day.role == RangeRole::From) || elsewhere {
        return None;
    }
    let ahead = stated_days(source)? - 1;
    let mut days = day.date.series(1.day()).take(usize::try_from(ahead).ok()? + 1);
    (!days.any(may_be_free)).then_some(ahead)
}

/// Words before the day on which something begins.
const BEGINNING: &[&str] = &["from", "starting", "beginning", "partire", "partir", "dal", "ab", "desde"];

/// How the days that the text states relate to a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountedRange {
    /// None are stated, or they are the days or the working days of the range. Those of a range from day to day may be fewer by
    /// two holidays.
    Fits,
    /// "3 days next week", "3 days between 14 and 24 June": they are some of a period.
    Within,
    /// "3 days from 14 to 15 June".
    Contradicts,
}

fn counted_range(source: &SourceText, from: Date, to: Date) -> CountedRange {
    let Some(stated) = stated_days(source) else { return CountedRange::Fits };
    let is_working = |day: &Date| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
    let days: Vec<Date> = from.series(1.day()).take_while(|day| *day <= to).take(400).collect();
    let (all, working) = (days.len() as i64, days.iter().filter(|day| is_working(day)).count() as i64);
    match () {
        () if stated == all || stated == working => CountedRange::Fits,
        () if has_period(source) && stated < all => CountedRange::Within,
        () if stated < working && stated + 2 >= working => CountedRange::Fits,
        () => CountedRange::Contradicts,
    }
}

fn fill_date_times(fields: &[&ArgumentField], source: &SourceText, out: &mut Filled) {
    let Some(first) = source.found.days.first() else { return };
    let last = source.found.days.iter().rev().find(|d| d.role == RangeRole::To).unwrap_or(first);
    let hours: Vec<(RangeRole, Time)> = source.found.times.iter().map(|h| (h.role, h.time)).collect();
    let span = stated_duration(source);
    let placed = assign_ends(fields, &hours, false, span.map(|s| move |t: Time| t.saturating_add(s)));
    for (field, time) in &placed {
        let date = if field.role == RangeRole::To { last.date } else { first.date };
        out.values.insert(field.name.clone(), date_time_value(field, date, *time, source));
    }
    let dates = listed_runs(source).map(|runs| date_expression::expand_runs(&runs)).unwrap_or_default();
    if dates.len() > 1 && !placed.is_empty() && out.several.is_empty() {
        let call = |date: &Date| {
            placed
                .iter()
                .map(|(field, time)| (field.name.clone(), date_time_value(field, *date, *time, source)))
                .collect()
        };
        out.several = dates.iter().map(call).collect();
    }
}

/// Formats a date and time as the argument requires.
fn date_time_value(field: &ArgumentField, date: Date, time: Time, source: &SourceText) -> Value {
    let moment = date.to_datetime(time);
    let upper = field.description.to_uppercase();
    let plain = upper.contains("YYYY-MM-DDTHH:MM") && !upper.contains("MM:SS") && !upper.contains('Z');
    let text = match moment.to_zoned(source.now.time_zone().clone()) {
        Ok(zoned) if !plain => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        _ => moment.strftime("%Y-%m-%dT%H:%M").to_string(),
    };
    json!(text)
}

/// Fills "before 15 June" into an argument named after that side.
fn fill_one_sided(fields: &[ArgumentField], source: &SourceText, out: &mut Filled) {
    for expr in &source.found.date_expressions {
        let DateExpressionKind::BeforeOrAfter(role, date) = expr.kind else { continue };
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

/// Assigns values to arguments by range role. `one_is_both` lets a single value be both ends; `grow` computes
/// an end from a beginning if a length was stated.
fn assign_ends<'f, T: Copy + PartialEq>(
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

/// The stated duration: "2 ore", "for 90 minutes".
fn stated_duration(source: &SourceText) -> Option<jiff::Span> {
    source.found.numbers.iter().find_map(|n| {
        let unit = source.tokens.get(n.last + 1)?;
        let minutes = unit_minutes(&unit.norm).filter(|minutes| *minutes <= 60.0)? * n.value;
        (1.0..=10_000.0).contains(&minutes).then(|| (minutes as i64).minutes())
    })
}

/// The stated number of nights ("2 notti"), which is the distance between the ends.
fn stated_nights(source: &SourceText) -> Option<i64> {
    source.found.numbers.iter().find_map(|n| {
        let unit = source.tokens.get(n.last + 1)?;
        (unit.is(&["notti", "notte", "nights", "night"]) && (1.0..=365.0).contains(&n.value))
            .then_some(n.value as i64)
    })
}
