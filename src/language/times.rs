//! Reads times of day in natural language.

use jiff::ToSpan;
use jiff::civil::Time;

use super::calendar_words::MIDNIGHT;
use super::dates::{RangeRole, month};
use super::text::Token;

/// A time of day in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hour {
    /// Index of its first token, the preposition included.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// The time.
    pub time: Time,
    /// Which end of a range it is.
    pub role: RangeRole,
}

const LEADS: &[&str] = &[
    "alle", "alla", "all", "ore", "dalle", "dall", "at", "um", "las", "les", "le", "verso", "around", "h",
    "per",
];
const EVENING: &[&str] = &["stasera", "sera", "serata", "cena", "tonight", "evening", "dinner"];
const AFTERNOON: &[&str] = &["pomeriggio", "afternoon", "pranzo", "lunch"];

/// Words for hours, after a number: "neuf heures et demie", "a las 15 h".
const HOUR_NAMES: &[&str] = &["heures", "heure", "h", "horas"];
/// Words before an hour in French, German and Spanish, where numbers are read in these languages, too.
const FOREIGN_LEADS: &[&str] = &["las", "um", "gegen", "les", "vers"];
/// Words for the second half of a day.
const LATE: &[&str] = &[
    "sera", "pomeriggio", "evening", "afternoon", "night", "soir", "apres-midi", "tarde", "noche", "abends",
    "nachmittags",
];
/// Words for the first half of a day.
const EARLY: &[&str] =
    &["mattina", "mattino", "morning", "notte", "matin", "manana", "madrugada", "morgens", "vormittags"];

/// All times of a text, in order. `dated`: whether the text names a day elsewhere, so that "from 10 to 12" may
/// be hours.
pub(crate) fn find(tokens: &[Token], dated: bool) -> Vec<Hour> {
    let says = |words: &[&str]| tokens.iter().any(|t| t.is(words));
    let reader = TimeReader { tokens, evening: says(EVENING), afternoon: says(AFTERNOON), dated };
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

struct TimeReader<'a> {
    tokens: &'a [Token],
    evening: bool,
    afternoon: bool,
    dated: bool,
}

impl TimeReader<'_> {
    fn is(&self, i: usize, words: &[&str]) -> bool {
        self.tokens.get(i).is_some_and(|t| t.is(words))
    }

    /// "dalle 10 alle 12", "from 10:00 to 12:00", "10-12" after "ore".
    fn range(&self, i: usize) -> Option<(Vec<Hour>, usize)> {
        let clock = |t: &Token| t.norm.contains(':');
        if let Some(token) = self.tokens.get(i)
            && let Some((a, b)) = token.norm.split_once('-')
            && clock(token)
        {
            let hour = |text: &str, role| clock_time(text).map(|time| Hour { first: i, last: i, time, role });
            return Some((vec![hour(a, RangeRole::From)?, hour(b, RangeRole::To)?], i + 1));
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
            a.role = RangeRole::From;
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
        a.role = RangeRole::From;
        b.first = next;
        b.role = RangeRole::To;
        Some((vec![a, b], end))
    }

    /// One time at `i`. `bare`: whether a number alone is a time.
    fn one(&self, i: usize, bare: bool) -> Option<(Hour, usize)> {
        let until = self.is(i, &["until", "till", "fino"]);
        let mut at = if until { i + 1 } else { i };
        let lead = self.is(at, LEADS);
        let soft = self.is(at, &["per", "le", "les", "alla", "verso", "around"]);
        while at < i + 4 && self.is(at, LEADS) {
            at += 1;
        }
        let token = self.tokens.get(at)?;
        let role = if until { RangeRole::To } else { RangeRole::Single };
        let done = |time: Time, next: usize| Some((Hour { first: i, last: next - 1, time, role }, next));
        if let Some((time, next)) = self.before_or_past(at, lead && !soft) {
            return done(time, next);
        }
        if token.is(&["mezzogiorno", "noon", "midday", "midi", "mediodia"]) {
            let noon = Time::constant(12, 0, 0, 0);
            let (minutes, next) = self.fraction(at + 1, false).unwrap_or((0, at + 1));
            return done(noon.saturating_add(minutes.minutes()), next);
        }
        if token.is(MIDNIGHT) {
            return done(Time::constant(0, 0, 0, 0), at + 1);
        }
        let (raw, suffix) = meridiem(&token.norm);
        let is_led = lead || self.is(at.wrapping_sub(1), &["a", "vers", "pour"]);
        let is_named = self.is(at + 1, &["uhr"]) || is_led && self.is(at + 1, HOUR_NAMES);
        let is_foreign = is_named || self.is(at.wrapping_sub(1), FOREIGN_LEADS);
        if let Some(time) =
            clock_time(raw).or_else(|| dotted(raw).filter(|_| lead || bare || suffix.is_some()))
        {
            let (time, next) = self.part_of_day(time, suffix, at + 1, true);
            return done(time, next);
        }
        let hour = raw.parse::<i8>().ok().filter(|_| raw.len() <= 2).or_else(|| {
            // "All'una" is one o'clock; elsewhere "una" is an article.
            let one = token.is(&["una"]) && self.is(at.wrapping_sub(1), &["all", "dall", "l"]);
            let number = super::numbers::word(&token.norm).or(one.then_some(1.0));
            let number = number.or_else(|| foreign_number(&token.norm).filter(|_| is_foreign));
            number.filter(|v| (0.0..=24.0).contains(v)).map(|v| v as i8)
        })?;
        let dots = self.dotted_meridiem(at + 1).is_some();
        let after = at + 1 + usize::from(is_named);
        let fraction = self.fraction(after, lead || is_named);
        let spoken = suffix.is_some() || dots || is_named || self.is(at + 1, &["am", "pm", "oclock"]);
        let part = self.part(after).is_some();
        if !(0..=24).contains(&hour) || !(spoken || part || bare || lead) {
            return None;
        }
        let clear = spoken || part || fraction.is_some();
        if !clear && (self.counts(at) || (soft && !self.is_led(at))) {
            return None;
        }
        let (minutes, next) = fraction.unwrap_or((0, after));
        let time = Time::new(hour % 24, 0, 0, 0).ok()?;
        let (time, next) = self.part_of_day(time, suffix, next, hour >= 12);
        done(moved(time, minutes), next)
    }

    /// "per le 8", "alle ore 8": whether the words before make an ambiguous preposition one of time.
    fn is_led(&self, at: usize) -> bool {
        self.is(at.wrapping_sub(1), &["ore"]) || self.is(at.wrapping_sub(2), &["per"])
    }

    /// Whether the number counts something and is no time: "per 4 persone", "le 3 notti", "alle 2 colleghe"; or
    /// is a day: "3 giugno".
    fn counts(&self, at: usize) -> bool {
        self.tokens.get(at + 1).is_some_and(|t| {
            let noun =
                t.word && !super::lexicon::is_stop_word(&t.norm) && !super::dates::is_calendar_word(&t.norm);
            month(&t.norm).is_some() || (noun && !t.is(BEHIND))
        })
    }

    /// "half past one", "a quarter to nine", "20 past 8", "10 minutes to 5"; "10 to 5" only if `led` by a
    /// preposition, because it may be a range. In German, "halb neun" is half an hour before nine.
    fn before_or_past(&self, i: usize, led: bool) -> Option<(Time, usize)> {
        let at = if self.is(i, &["a", "un", "the"]) { i + 1 } else { i };
        let token = self.tokens.get(at)?;
        if token.is(&["halb"]) || token.is(&["dreiviertel"]) {
            return self.before_hour(at + 1, if token.is(&["halb"]) { 30 } else { 15 });
        }
        if token.is(&["drei"]) && self.is(at + 1, &["viertel"]) {
            return self.before_hour(at + 2, 15);
        }
        let in_german = self.is(at + 1, &["nach", "vor"]) && led;
        let foreign = |t: &Token| foreign_number(&t.norm).filter(|_| in_german);
        let value = |t: &Token| {
            super::numbers::word(&t.norm).or_else(|| super::numbers::digits(&t.norm)).or_else(|| foreign(t))
        };
        let (minutes, clear) = if token.is(&["half"]) {
            (30, true)
        } else if token.is(&["quarter", "quarto", "viertel"]) {
            (15, true)
        } else {
            (value(token).filter(|v| (1.0..60.0).contains(v) && v.fract() == 0.0)? as i64, false)
        };
        let minute = self.is(at + 1, &["minutes", "minute", "mins", "minuti"]);
        let link = at + 1 + usize::from(minute);
        let past = self.is(link, &["past"]) || self.is(link, &["nach"]) && (clear || led);
        let to = self.is(link, &["to", "vor"]) && (clear || minute || led)
            || self.is(link, &["alle", "all"]) && (token.is(&["quarto"]) || minute);
        if !(past || to) {
            return None;
        }
        let (raw, suffix) = meridiem(&self.tokens.get(link + 1)?.norm);
        let hour = raw.parse::<i8>().ok().or_else(|| {
            let foreign = || foreign_number(raw).filter(|_| self.is(link, &["nach", "vor"]));
            super::numbers::word(raw).or_else(foreign).map(|v| v as i8)
        });
        let noon = self.is(link + 1, &["noon", "midday", "mezzogiorno"]).then_some(12);
        let midnight = self.is(link + 1, &["midnight", "mezzanotte"]).then_some(0);
        let hour = hour.or(noon).or(midnight).filter(|hour| (0..=24).contains(hour))?;
        // "a quarter to 2 friends"
        let ends = suffix.is_some() || self.part(link + 2).is_some() || !self.counts(link + 1);
        if !ends {
            return None;
        }
        let time = Time::new(hour % 24, 0, 0, 0).ok()?;
        let (time, next) = self.part_of_day(time, suffix, link + 2, hour >= 12 || midnight.is_some());
        Some((moved(time, if past { minutes } else { -minutes }), next))
    }

    /// "(halb) neun": so many minutes before the hour at `i`.
    fn before_hour(&self, i: usize, minutes: i64) -> Option<(Time, usize)> {
        let (raw, _) = meridiem(&self.tokens.get(i)?.norm);
        let hour = raw.parse::<i8>().ok().or_else(|| foreign_number(raw).map(|v| v as i8));
        let hour = hour.filter(|hour| (1..=24).contains(hour) && !self.counts(i))?;
        let time = Time::new(hour % 24, 0, 0, 0).ok()?;
        let (time, next) = self.part_of_day(time, None, i + 1, hour > 12);
        Some((moved(time, -minutes), next))
    }

    /// Minutes after an hour: "e mezza", "et demie", "y media", "e un quarto", "moins le quart", "menos cuarto", "meno dieci",
    /// "thirty". `led`: whether a preposition or the word for hours marks the hour.
    fn fraction(&self, i: usize, led: bool) -> Option<(i64, usize)> {
        let less = self.is(i, &["meno", "moins", "menos"]);
        let joined = less || self.is(i, &["e", "et", "y", "und"]);
        let at = i + usize::from(joined);
        let sign = if less { -1 } else { 1 };
        if joined && !less && self.is(at, &["mezza", "mezzo", "demie", "demi", "media"]) {
            return Some((30, at + 1));
        }
        let article = usize::from(self.is(at, &["un", "le", "una"]));
        if (joined || article == 0 && led) && self.is(at + article, &["quarto", "quart", "cuarto"]) {
            return joined.then_some((15 * sign, at + article + 1));
        }
        if joined && self.is(at, &["tre"]) && self.is(at + 1, &["quarti"]) {
            return Some((45, at + 2));
        }
        let word = self.tokens.get(at)?;
        // "At five once a week": "once" is eleven in Spanish.
        let foreign = || foreign_number(&word.norm).filter(|_| joined || !word.is(&["once"]));
        let number = super::numbers::word(&word.norm).or_else(foreign);
        let value = if joined { number.or_else(|| super::numbers::digits(&word.norm)) } else { number };
        let value = value.filter(|v| (1.0..60.0).contains(v) && (joined || *v >= 10.0) && led)?;
        // "thirty five"
        let unit = self.tokens.get(at + 1).and_then(|t| super::numbers::word(&t.norm));
        let unit = unit.filter(|u| value >= 20.0 && value % 10.0 == 0.0 && (1.0..10.0).contains(u));
        let next = at + 1 + usize::from(unit.is_some());
        let ends = self
            .tokens
            .get(next)
            .is_none_or(|t| !t.word || super::lexicon::is_stop_word(&t.norm) || t.is(BEHIND));
        ends.then_some((sign * (value + unit.unwrap_or(0.0)) as i64, next))
    }

    /// "a.m.", "p.m.": whether it is the second half of the day, and the next token.
    fn dotted_meridiem(&self, i: usize) -> Option<(bool, usize)> {
        let dot = |k: usize| self.tokens.get(k).is_some_and(|t| t.raw == ".");
        let letters = self.is(i, &["a", "p"]) && dot(i + 1) && self.is(i + 2, &["m"]);
        letters.then(|| (self.is(i, &["p"]), i + 3 + usize::from(dot(i + 3))))
    }

    /// The part of the day at `i`: whether it is the second half of the day, and the next token.
    fn part(&self, i: usize) -> Option<(bool, usize)> {
        let alone = self.is(i, &["abends", "nachmittags", "morgens", "vormittags"]);
        let lead = alone || self.is(i, &["di", "del", "della", "in", "at", "de", "du", "por"]);
        let mut at = if lead && !alone { i + 1 } else { i };
        if self.is(at, &["the", "la", "l"]) {
            at += 1;
        }
        let late = self.is(at, LATE);
        let early = self.is(at, EARLY);
        (lead && (late || early)).then_some((late, at + 1))
    }

    fn part_of_day(&self, time: Time, suffix: Option<bool>, mut next: usize, exact: bool) -> (Time, usize) {
        let mut late = suffix;
        if late.is_none() && self.is(next, &["am", "pm"]) {
            late = Some(self.is(next, &["pm"]));
            next += 1;
        } else if late.is_none()
            && let Some((second, end)) = self.dotted_meridiem(next)
        {
            late = Some(second);
            next = end;
        }
        if self.is(next, &["oclock", "uhr", "ore"]) {
            next += 1;
        } else if self.is(next, &["o"]) && self.is(next + 1, &["clock"]) {
            next += 2;
        }
        if late.is_none()
            && let Some((second, end)) = self.part(next)
        {
            // "2 at night" and "le 2 di notte" are before the morning, "11 at night" is not.
            let night = self.is(end - 1, &["night", "notte"]);
            late = Some(if night { (6..12).contains(&time.hour()) } else { second });
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

/// Words that may follow an hour without being counted by it.
const BEHIND: &[&str] = &[
    "am", "pm", "mezza", "oclock", "uhr", "ore", "oggi", "domani", "dopodomani", "stasera", "stamattina",
    "domattina", "today", "tomorrow", "tonight", "sharp", "circa", "precise", "meno", "oppure", "until",
    "till", "e",
];

/// The time `minutes` later, wrapping at midnight.
fn moved(time: Time, minutes: i64) -> Time {
    time.wrapping_add(minutes.minutes())
}

fn later(time: Time) -> Time {
    Time::new((time.hour() + 12).min(23), time.minute(), 0, 0).unwrap_or(time)
}

/// Splits `am` or `pm` off the end: the digits, and whether it is the second half of the day.
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

/// A number word of any of the languages.
fn foreign_number(norm: &str) -> Option<f64> {
    super::number_words::spoken(norm).map(f64::from)
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

/// `18.30`, which is a time only in context.
fn dotted(text: &str) -> Option<Time> {
    let (h, m) = text.split_once('.')?;
    if m.len() != 2 {
        return None;
    }
    Time::new(h.parse().ok()?, m.parse().ok()?, 0, 0).ok()
}
