//! Days and times that the words beside them give to one argument of several: "pick up tomorrow, drop off on
//! Friday", "return on 3 May".

use std::borrow::Cow;
use std::rc::Rc;

use jiff::civil::Date;
use serde_json::json;

use super::dates::RangeRole;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;

/// How many words before a day are looked at.
const NEAR: usize = 4;

/// Words that speak of the beginning of a journey, a stay or a hire.
const BEGINS: &[&str] = &[
    "pickup",
    "leave",
    "leaving",
    "depart",
    "departing",
    "departure",
    "checkin",
    "arrive",
    "arriving",
    "outbound",
    "starting",
    "start",
    "ritiro",
    "ritirare",
    "ritiro",
    "partenza",
    "partire",
    "parto",
    "partiamo",
    "arrivo",
    "andata",
    "arriviamo",
    "collect",
];

/// Words that speak of its end.
const ENDS: &[&str] = &[
    "dropoff",
    "return",
    "returning",
    "checkout",
    "inbound",
    "ending",
    "end",
    "ritorno",
    "rientro",
    "tornare",
    "torno",
    "torniamo",
    "riconsegna",
    "riconsegnare",
    "restituire",
    "restituzione",
    "restituisco",
    "partenza",
];

/// Fills days that their own words announce, and gives the arguments that are left to the others; all of them
/// where no day is announced.
pub(super) fn fill<'f>(
    fields: &'f [ArgumentField],
    source: &mut SourceText,
    out: &mut Filled,
) -> Cow<'f, [ArgumentField]> {
    let ends: Vec<&ArgumentField> =
        fields.iter().filter(|f| f.kind == ArgumentKind::Date && f.role != RangeRole::Single).collect();
    if ends.len() < 2 || source.found.days.is_empty() || !are_apart(&ends) {
        return Cow::Borrowed(fields);
    }
    let mut gone = Vec::new();
    for (n, day) in source.found.days.iter().enumerate().filter(|(_, d)| d.role == RangeRole::Single) {
        let Some(role) = announced(source, day.first) else { continue };
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
    // One day that was left over may be the other end, but only after the beginning that was said.
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

/// Which end the words before the token speak of.
fn announced(source: &SourceText, first: usize) -> Option<RangeRole> {
    let tokens = &source.tokens;
    let from = first.saturating_sub(NEAR);
    for i in (from..first).rev() {
        if source.found.taken[i] || matches!(tokens[i].raw.as_str(), "." | ";" | "?" | "!") {
            return None;
        }
        let joined = tokens.get(i + 1).map(|next| format!("{}{}", tokens[i].norm, next.norm));
        let says = |list: &[&str]| tokens[i].is(list) || joined.as_deref().is_some_and(|j| list.contains(&j));
        match (says(BEGINS), says(ENDS)) {
            (true, false) => return Some(RangeRole::From),
            (false, true) => return Some(RangeRole::To),
            _ => {}
        }
    }
    None
}

/// Whether the ends are those of a journey, a stay or a hire, or two days that have nothing to do with each
/// other: one day that was said is never both of them.
pub(super) fn are_apart(ends: &[&ArgumentField]) -> bool {
    const JOURNEY: &[&str] = &[
        "pickup",
        "dropoff",
        "leaving",
        "leave",
        "departure",
        "depart",
        "return",
        "arrival",
        "outbound",
        "inbound",
        "check",
        "checkin",
        "checkout",
        "pick",
        "drop",
        "ritiro",
        "riconsegna",
        "partenza",
        "ritorno",
        "arrivo",
    ];
    let single = ends.len() > 1 && ends.iter().filter(|f| f.required).all(|f| f.role == RangeRole::Single);
    single || ends.iter().any(|f| f.named(JOURNEY))
}
