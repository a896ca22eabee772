//! Assigns days to one of several arguments by the cue words before them: "pick up tomorrow, drop off on
//! Friday", "return on 3 May".

use std::borrow::Cow;
use std::rc::Rc;

use jiff::civil::Date;
use serde_json::json;

use super::dates::RangeRole;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;

/// Number of tokens before a day that are searched for cues.
const CUE_DISTANCE: usize = 4;

/// Cue words for the beginning of a journey, stay or hire.
const BEGIN_CUES: &[&str] = &[
    "pickup", "leave", "leaving", "depart", "departing", "departure", "checkin", "arrive", "arriving",
    "outbound", "starting", "start", "ritiro", "ritirare", "ritiro", "partenza", "partire", "parto",
    "partiamo", "arrivo", "andata", "arriviamo", "collect",
];

const END_CUES: &[&str] = &[
    "dropoff", "return", "returning", "checkout", "inbound", "ending", "end", "ritorno", "rientro",
    "tornare", "torno", "torniamo", "riconsegna", "riconsegnare", "restituire", "restituzione",
    "restituisco", "partenza",
];

/// Fills days that have a cue word. Returns the arguments that are still open, or all arguments if no day has
/// a cue.
pub(super) fn fill<'f>(
    fields: &'f [ArgumentField],
    source: &mut SourceText,
    out: &mut Filled,
) -> Cow<'f, [ArgumentField]> {
    let ends: Vec<&ArgumentField> =
        fields.iter().filter(|f| f.kind == ArgumentKind::Date && f.role != RangeRole::Single).collect();
    if ends.len() < 2 || source.found.days.is_empty() || !are_separate_ends(&ends) {
        return Cow::Borrowed(fields);
    }
    let mut gone = Vec::new();
    for (n, day) in source.found.days.iter().enumerate().filter(|(_, d)| d.role == RangeRole::Single) {
        let Some(role) = announced_role(source, day.first) else { continue };
        let open = |f: &&&ArgumentField| f.role == role && !out.values.contains_key(&f.name);
        if let Some(field) = ends.iter().find(open) {
            out.values.insert(field.name.clone(), json!(day.date.to_string()));
            gone.push(n);
        }
    }
    if gone.is_empty() {
        return Cow::Borrowed(fields);
    }
    let dates: Vec<Date> = gone.iter().map(|n| source.found.days[*n].date).collect();
    for n in gone.iter().rev() {
        let day = Rc::make_mut(&mut source.found).days.remove(*n);
        source.take(day.first, day.last);
    }
    // A remaining day may be the other end, but only if it is not before the stated one.
    let later = source.found.days.iter().all(|d| dates.iter().all(|date| d.date >= *date));
    let is_open = |f: &&ArgumentField| {
        !out.values.contains_key(&f.name)
            && (f.kind != ArgumentKind::Date
                || f.role == RangeRole::Single
                || later
                || f.role == RangeRole::From)
    };
    Cow::Owned(fields.iter().filter(is_open).cloned().collect())
}

/// The range role given by the cue words before a token.
pub(super) fn announced_role(source: &SourceText, first: usize) -> Option<RangeRole> {
    let tokens = &source.tokens;
    let from = first.saturating_sub(CUE_DISTANCE);
    for i in (from..first).rev() {
        if source.found.taken[i] || matches!(tokens[i].raw.as_str(), "." | ";" | "?" | "!") {
            return None;
        }
        let joined = tokens.get(i + 1).map(|next| format!("{}{}", tokens[i].norm, next.norm));
        let says = |list: &[&str]| tokens[i].is(list) || joined.as_deref().is_some_and(|j| list.contains(&j));
        match (says(BEGIN_CUES), says(END_CUES)) {
            (true, false) => return Some(RangeRole::From),
            (false, true) => return Some(RangeRole::To),
            _ => {}
        }
    }
    None
}

/// Whether one stated day never fills both ends: they belong to a journey, stay or hire, or are two
/// independent days.
pub(super) fn are_separate_ends(ends: &[&ArgumentField]) -> bool {
    const JOURNEY: &[&str] = &[
        "pickup", "dropoff", "leaving", "leave", "departure", "depart", "return", "arrival", "outbound",
        "inbound", "check", "checkin", "checkout", "pick", "drop", "ritiro", "riconsegna", "partenza",
        "ritorno", "arrivo",
    ];
    let single = ends.len() > 1 && ends.iter().filter(|f| f.required).all(|f| f.role == RangeRole::Single);
    single || ends.iter().any(|f| f.named(JOURNEY))
}
