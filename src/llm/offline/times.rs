//! Times of day as people say them.

use jiff::civil::Time;

use super::dates::{Role, month};
use super::text::Token;

/// A time of day with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hour {
    /// Index of its first token, the preposition included.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// The time.
    pub time: Time,
    /// Which end of a range it is.
    pub role: Role,
}

const LEADS: &[&str] = &[
    "alle", "alla", "all", "ore", "dalle", "dall", "at", "um", "las", "les", "le", "verso", "around", "h",
    "per",
];
const EVENING: &[&str] = &["stasera", "sera", "serata", "cena", "tonight", "evening", "dinner"];
const AFTERNOON: &[&str] = &["pomeriggio", "afternoon", "pranzo", "lunch"];

/// All times of a text, in order. `dated` says that the text names a day elsewhere, which lets
/// "from 10 to 12" be hours.
pub(super) fn find(tokens: &[Token], dated: bool) -> Vec<Hour> {
    let says = |words: &[&str]| tokens.iter().any(|t| t.is(words));
    let reader = Reader { tokens, evening: says(EVENING), afternoon: says(AFTERNOON), dated };
    let mut out: Vec<Hour> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        match reader.range(i).or_else(|| reader.one(i, false).map(|(hour, next)| (vec![hour], next))) {
            Some((hours, next)) => {
                out.extend(hours);
                i = next.max(i + 1);
            }
            None => i += 1,
        }
    }
    out
}

struct Reader<'a> {
    tokens: &'a [Token],
    evening: bool,
    afternoon: bool,
    dated: bool,
}

impl Reader<'_> {
    fn is(&self, i: usize, words: &[&str]) -> bool {
        self.tokens.get(i).is_some_and(|t| t.is(words))
    }

    /// "dalle 10 alle 12", "from 10:00 to 12:00", "10-12" behind "ore".
    fn range(&self, i: usize) -> Option<(Vec<Hour>, usize)> {
        let clock = |t: &Token| t.norm.contains(':');
        if let Some(token) = self.tokens.get(i)
            && let Some((a, b)) = token.norm.split_once('-')
            && clock(token)
        {
            let hour = |text: &str, role| clock_time(text).map(|time| Hour { first: i, last: i, time, role });
            return Some((vec![hour(a, Role::From)?, hour(b, Role::To)?], i + 1));
        }
        let strict = self.is(i, &["dalle", "dall"]);
        if !strict && !self.is(i, &["from", "between", "tra", "fra"]) {
            return None;
        }
        let at = if self.is(i + 1, &["le", "l"]) { i + 2 } else { i + 1 };
        let (mut a, next) = self.one(at, true)?;
        if !self.is(next, &["alle", "all", "to", "until", "till", "and", "e", "fino", "-"]) {
            let clear = strict || self.tokens.get(at).is_some_and(clock) || a.last > at;
            a.first = i;
            a.role = Role::From;
            return clear.then_some((vec![a], next));
        }
        let mut at = next + 1;
        while self.is(at, &["alle", "all", "le", "l"]) && at < next + 4 {
            at += 1;
        }
        let (mut b, end) = self.one(at, true)?;
        let month_follows = self.tokens.get(end).is_some_and(|t| month(&t.norm).is_some());
        let clear =
            strict || b.last > at || [a.first, at].iter().any(|k| self.tokens.get(*k).is_some_and(clock));
        if month_follows || !(clear || self.dated) {
            return None;
        }
        // "from 2 to 4 pm"
        if b.time.hour() >= 12
            && a.time.hour() < 12
            && self.is(end - 1, &["pm"])
            && a.time.hour() + 12 < b.time.hour() + 1
        {
            a.time = later(a.time);
        }
        if b.time <= a.time && b.time.hour() < 12 {
            b.time = later(b.time);
        }
        a.first = i;
        a.role = Role::From;
        b.first = next;
        b.role = Role::To;
        Some((vec![a, b], end))
    }

    /// One time at `i`; `bare` allows a number alone.
    fn one(&self, i: usize, bare: bool) -> Option<(Hour, usize)> {
        let until = self.is(i, &["until", "till", "fino"]);
        let mut at = if until { i + 1 } else { i };
        let lead = self.is(at, LEADS);
        let soft = self.is(at, &["per", "le", "les", "alla", "verso", "around"]);
        while at < i + 4 && self.is(at, LEADS) {
            at += 1;
        }
        let token = self.tokens.get(at)?;
        let role = if until { Role::To } else { Role::Single };
        let done = |time: Time, next: usize| Some((Hour { first: i, last: next - 1, time, role }, next));
        if token.is(&["mezzogiorno", "noon", "midday"]) {
            return done(Time::constant(12, 0, 0, 0), at + 1);
        }
        if token.is(&["mezzanotte", "midnight"]) {
            return done(Time::constant(0, 0, 0, 0), at + 1);
        }
        let (raw, suffix) = meridiem(&token.norm);
        if let Some(time) = clock_time(raw).or_else(|| dotted(raw).filter(|_| lead || bare)) {
            let (time, next) = self.part_of_day(time, suffix, at + 1, true);
            return done(time, next);
        }
        let hour = raw.parse::<i8>().ok().filter(|_| raw.len() <= 2).or_else(|| {
            super::numbers::word(&token.norm).filter(|v| (0.0..=24.0).contains(v)).map(|v| v as i8)
        })?;
        let spoken = suffix.is_some() || self.is(at + 1, &["am", "pm", "oclock", "uhr"]);
        let part = self.part(at + 1).is_some();
        if !(0..=24).contains(&hour) || !(spoken || part || bare || lead) {
            return None;
        }
        // "per 4 persone", "le 3 notti", "alle 2 colleghe" count; they are no times.
        let follows = self.tokens.get(at + 1);
        let counts = follows.is_some_and(|t| {
            t.word
                && !super::lexicon::is_stop(&t.norm)
                && !super::dates::is_calendar(&t.norm)
                && !t.is(&[
                    "am",
                    "pm",
                    "mezza",
                    "oclock",
                    "uhr",
                    "oggi",
                    "domani",
                    "dopodomani",
                    "stasera",
                    "today",
                    "tomorrow",
                    "tonight",
                ])
        });
        let dated = follows.is_some_and(|t| month(&t.norm).is_some());
        let hour_word = follows.is_some_and(|t| t.is(&["ore"]));
        if !spoken
            && !part
            && ((counts && !hour_word)
                || dated
                || (soft && !self.is(at.wrapping_sub(1), &["ore"]) && !self.is(at.wrapping_sub(2), &["per"])))
        {
            return None;
        }
        let mut next = at + 1;
        let mut minute = 0;
        if self.is(next, &["e"]) {
            let more = self.tokens.get(next + 1);
            if more.is_some_and(|t| t.is(&["mezza", "mezzo"])) {
                minute = 30;
                next += 2;
            } else if more.is_some_and(|t| t.is(&["un"])) && self.is(next + 2, &["quarto"]) {
                minute = 15;
                next += 3;
            } else if let Some(m) =
                more.and_then(|t| super::numbers::word(&t.norm).or_else(|| super::numbers::digits(&t.norm)))
                && (1.0..60.0).contains(&m)
                && lead
                && self.tokens.get(next + 2).is_none_or(|t| !t.word || super::lexicon::is_stop(&t.norm))
            {
                minute = m as i8;
                next += 2;
            }
        }
        let time = Time::new(hour % 24, minute, 0, 0).ok()?;
        let (time, next) = self.part_of_day(time, suffix, next, hour >= 12);
        done(time, next)
    }

    /// The part of the day named at `i`: whether it is its second half, and where it ends.
    fn part(&self, i: usize) -> Option<(bool, usize)> {
        let lead = self.is(i, &["di", "del", "della", "in", "at"]);
        let mut at = if lead { i + 1 } else { i };
        if self.is(at, &["the"]) {
            at += 1;
        }
        let late = self.is(at, &["sera", "pomeriggio", "evening", "afternoon", "night"]);
        let early = self.is(at, &["mattina", "mattino", "morning", "notte"]);
        (lead && (late || early)).then_some((late, at + 1))
    }

    fn part_of_day(&self, time: Time, suffix: Option<bool>, mut next: usize, exact: bool) -> (Time, usize) {
        let mut late = suffix;
        if late.is_none() && self.is(next, &["am", "pm"]) {
            late = Some(self.is(next, &["pm"]));
            next += 1;
        }
        if self.is(next, &["oclock", "uhr", "ore"]) {
            next += 1;
        } else if self.is(next, &["o"]) && self.is(next + 1, &["clock"]) {
            next += 2;
        }
        if late.is_none()
            && let Some((second, end)) = self.part(next)
        {
            late = Some(second);
            next = end;
        }
        let guess = !exact && late.is_none() && {
            let hour = time.hour();
            (self.evening && (5..12).contains(&hour)) || (self.afternoon && (1..8).contains(&hour))
        };
        let evening_clock = exact && late.is_none() && self.evening && (6..12).contains(&time.hour());
        let time = match late {
            Some(true) if time.hour() < 12 => later(time),
            Some(false) if time.hour() == 12 => Time::new(0, time.minute(), 0, 0).unwrap_or(time),
            None if guess || evening_clock => later(time),
            _ => time,
        };
        (time, next)
    }
}

fn later(time: Time) -> Time {
    Time::new((time.hour() + 12).min(23), time.minute(), 0, 0).unwrap_or(time)
}

/// Takes `am`, `pm` or `h` off the end: the digits, and whether it is the second half of the day.
fn meridiem(norm: &str) -> (&str, Option<bool>) {
    let digits = norm.starts_with(|c: char| c.is_ascii_digit());
    if let Some(head) = norm.strip_suffix("pm").filter(|_| digits) {
        return (head, Some(true));
    }
    if let Some(head) = norm.strip_suffix("am").filter(|_| digits) {
        return (head, Some(false));
    }
    (norm, None)
}

/// `18:30`, `18h30`.
fn clock_time(text: &str) -> Option<Time> {
    let (h, m) = text.split_once(':').or_else(|| text.split_once('h'))?;
    if h.is_empty() || h.len() > 2 || m.len() > 2 {
        return None;
    }
    let minute = if m.is_empty() { 0 } else { m.parse().ok()? };
    Time::new(h.parse().ok()?, minute, 0, 0).ok()
}

/// `18.30`, where something else says that it is a time.
fn dotted(text: &str) -> Option<Time> {
    let (h, m) = text.split_once('.')?;
    if m.len() != 2 {
        return None;
    }
    Time::new(h.parse().ok()?, m.parse().ok()?, 0, 0).ok()
}
