//! Mentions of days, months, years and weekdays in a text, and the days that each may mean.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::terms::{self, CUES, LAST, LINKS, NEXT, THIS};
use super::words::SourceWord;
use super::{DayNames, quantity};
use crate::language;
use crate::language::calendar_words::{self, BETWEEN, EXCLUDING, LAST_OF_SEVERAL, MONTH, TO};
use crate::language::function_words::AND;

/// Maximum number of days, months and years of one text.
const MAX_ITEMS: usize = 1000;
/// How many days back a date without a year may be, if nothing in the text refers to the past.
const RECENT: i64 = 92;

/// The part of a date that a mention names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MentionKind {
    /// The readings of a date that is complete, or needs no month.
    Dates(Vec<Date>),
    Day(i8),
    Month(i8, Option<i16>),
    Year(i16),
    Weekday(Weekday),
}

/// A mention of a date or a part of one.
#[derive(Debug, Clone)]
pub(super) struct DateMention {
    /// The part of a date that it names.
    pub what: MentionKind,
    /// Index of its first word.
    pub first: usize,
    /// Index after its last word.
    pub next: usize,
    /// Whether it was explicitly excluded.
    pub negated: bool,
}

/// Finds the mentions in a text, and the days that they may mean.
pub(super) struct MentionReader<'a> {
    /// The text.
    pub words: &'a [SourceWord],
    /// The frozen local day.
    pub today: Date,
    /// Whether the text refers to the past.
    pub past: bool,
    /// Which names of days have a source.
    pub names: DayNames,
}

impl MentionReader<'_> {
    fn is(&self, i: usize, list: &[&str]) -> bool {
        self.words.get(i).is_some_and(|w| w.is(list))
    }

    fn before(&self, i: usize, back: usize, list: &[&str]) -> bool {
        i.checked_sub(back).is_some_and(|k| self.is(k, list))
    }

    pub fn items(&self) -> Vec<DateMention> {
        let mut out = Vec::new();
        let mut i = 0;
        while i < self.words.len() && out.len() < MAX_ITEMS {
            let found = self
                .numeric(i)
                .or_else(|| self.named(i))
                .or_else(|| self.day(i).map(|(day, next)| (MentionKind::Day(day), next)));
            match found {
                Some((what, next)) => {
                    out.push(DateMention { what, first: i, next, negated: self.negated(i) });
                    i = next.max(i + 1);
                }
                None => i += 1,
            }
        }
        out
    }

    /// "not 16", "tranne il 16", "except for the 16th".
    fn negated(&self, i: usize) -> bool {
        let fillers =
            ["the", "il", "l", "'", "for", "on", "del", "il", "per", "al", "lo", "den", "am", "el", "le"];
        (1..=3).any(|back| {
            (self.before(i, back, EXCLUDING) || self.before(i, back, &["menos", "skip"]))
                && (1..back).all(|between| self.before(i, between, &fillers))
        })
    }

    /// Digits joined by punctuation without spaces.
    fn figures(&self, i: usize) -> (Vec<&SourceWord>, String, usize) {
        let mut parts = Vec::new();
        let mut marks = String::new();
        let mut next = i;
        while let Some(word) = self.words.get(next).filter(|w| w.figure().is_some()) {
            parts.push(word);
            next += 1;
            let (Some(mark), Some(more)) = (self.words.get(next), self.words.get(next + 1)) else { break };
            if !(mark.glued && more.glued && more.figure().is_some() && mark.is(&["-", "/", ".", ":"])) {
                break;
            }
            if parts.len() == 3 || (mark.norm == ":") {
                break;
            }
            marks.push_str(&mark.norm);
            next += 1;
        }
        (parts, marks, next)
    }

    /// `2026-06-15`, `20260615`, `15/06/2026`, `09/10, 2026`, `11-15`.
    fn numeric(&self, i: usize) -> Option<(MentionKind, usize)> {
        let (parts, marks, next) = self.figures(i);
        let value = |word: &SourceWord| word.figure().and_then(|v| i16::try_from(v).ok());
        let small = |word: &SourceWord| word.figure().filter(|v| *v < 32).and_then(|v| i8::try_from(v).ok());
        let exact = |y: Option<i16>, m: Option<i8>, d: Option<i8>| Date::new(y?, m?, d?).ok();
        match parts.as_slice() {
            [one] if one.norm.len() == 8 => {
                let part = |range: std::ops::Range<usize>| one.norm.get(range).and_then(|p| p.parse().ok());
                let year = one.norm.get(..4).and_then(|p| p.parse::<i16>().ok());
                let date = exact(year.filter(|y| (1900..2200).contains(y)), part(4..6), part(6..8))?;
                Some((MentionKind::Dates(vec![date]), next))
            }
            [y, m, d] if y.norm.len() == 4 => {
                let all = [exact(value(y), small(m), small(d)), exact(value(y), small(d), small(m))];
                let swapped = marks.contains('/');
                let all: Vec<Date> = all.into_iter().take(1 + usize::from(swapped)).flatten().collect();
                (!all.is_empty()).then_some((MentionKind::Dates(all), next))
            }
            [a, b, y] if matches!(y.norm.len(), 2 | 4) => {
                let year = value(y).map(|y| if y < 100 { 2000 + y } else { y });
                let all = [exact(year, small(b), small(a)), exact(year, small(a), small(b))];
                let all: Vec<Date> = all.into_iter().flatten().collect();
                (!all.is_empty()).then_some((MentionKind::Dates(all), next))
            }
            [a, b] if a.norm.len() <= 2 && b.norm.len() <= 2 => {
                self.two_figures(i, small(a)?, small(b)?, &marks, next)
            }
            _ => None,
        }
    }

    fn two_figures(&self, i: usize, a: i8, b: i8, mark: &str, next: usize) -> Option<(MentionKind, usize)> {
        let month = |k: usize| {
            self.words.get(k).is_some_and(|w| terms::month(&w.norm, self.names.short_months).is_some())
        };
        let clock = self.is(next, &[":", "am", "pm"]) || self.before(i, 1, &[":", "at", "alle", "ore", "um"]);
        // "15-17 June", "June 15-17", "10-12:30"
        if month(next) || month(next + 1) || i.checked_sub(1).is_some_and(month) || clock {
            return None;
        }
        let (year, end) = self.year_after(next);
        let mut all = self.complete(a, b, year);
        if mark != "." {
            all.extend(self.complete(b, a, year));
        }
        (!all.is_empty()).then_some((MentionKind::Dates(all), if year.is_some() { end } else { next }))
    }

    /// ", 2026", "of the year 2026".
    fn year_after(&self, mut i: usize) -> (Option<i16>, usize) {
        for _ in 0..4 {
            match self.words.get(i) {
                Some(word) if word.is(&[",", "of", "the", "year", "del", "dell", "de", "anno", "'"]) => {
                    i += 1
                }
                Some(word) => {
                    return (year(word), i + 1);
                }
                None => break,
            }
        }
        (None, i)
    }

    /// Months, weekdays, years, "tomorrow", holidays.
    fn named(&self, i: usize) -> Option<(MentionKind, usize)> {
        let word = self.words.get(i)?;
        if let Some((what, next)) = self.relative_month(i) {
            return Some((what, next));
        }
        if let Some((month, other)) = terms::month(&word.norm, self.names.short_months) {
            let number = |k: usize| {
                self.words.get(k).is_some_and(|w| {
                    w.figure().is_some_and(|v| v < 32 || w.norm.len() == 4) || w.ordinal().is_some()
                })
            };
            // "mai 5 cose" is not the fifth of May.
            let counts = self.words.get(i + 2).is_some_and(|w| w.alphabetic() && !is_no_counted_thing(w));
            let beside = (number(i + 1) && !counts)
                || (self.is(i + 1, &["the", "."]) && number(i + 2))
                || (1..=2).any(|back| i.checked_sub(back).is_some_and(number))
                || self.before(i, 1, &["in", "of", "di", "a", "en", "im"])
                || self.before(i, 1, NEXT);
            return (!other || beside).then_some((MentionKind::Month(month, None), i + 1));
        }
        if let Some(day) = calendar_words::possible_weekday(&word.norm) {
            let short = word.norm.len() <= 4;
            return (!short || word.capital).then_some((MentionKind::Weekday(day), i + 1));
        }
        if let Some(year) = year(word) {
            return Some((MentionKind::Year(year), i + 1));
        }
        let words = |ahead: usize| self.words.get(i + ahead).map(|w| w.norm.as_str());
        if self.names.several_words
            && let Some((days, length)) = language::day_of_several_words(words)
        {
            let date = self.today.saturating_add(days.days());
            return Some((MentionKind::Dates(vec![date]), i + length));
        }
        if let Some(days) = terms::offset(&word.norm) {
            let after =
                word.is(&["tomorrow"]) && self.before(i, 1, &["after"]) && self.before(i, 2, &["day"]);
            let date = self.today.saturating_add((days + i64::from(after)).days());
            return Some((MentionKind::Dates(vec![date]), i + 1));
        }
        let before = i.checked_sub(1).and_then(|k| self.words.get(k)).map(|w| w.norm.as_str());
        let next = self.words.get(i + 1).map(|w| w.norm.as_str());
        let all = terms::holiday(&word.norm, before, next, self.today, self.names.several_words);
        (!all.is_empty()).then_some((MentionKind::Dates(all), i + 1))
    }

    /// "next month", "il mese prossimo", "the eleventh month", "month 11", "end of the year".
    fn relative_month(&self, i: usize) -> Option<(MentionKind, usize)> {
        let word = self.words.get(i)?;
        let is_month = word.is(MONTH);
        let ranked = self.is(i + 1, MONTH).then(|| word.ordinal()).flatten();
        let named = self.words.get(i + 1).filter(|_| is_month).and_then(SourceWord::figure);
        if let Some(month) =
            ranked.or(named).and_then(|m| i8::try_from(m).ok()).filter(|m| (1..=12).contains(m))
        {
            return Some((MentionKind::Month(month, None), i + 2));
        }
        if word.is(&["year", "anno", "jahr", "annee"])
            && (1..=3).any(|n| self.before(i, n, &["end", "fine", "ende"]))
        {
            return Some((MentionKind::Dates(vec![Date::new(self.today.year(), 12, 31).ok()?]), i + 1));
        }
        let at = if is_month { i } else { return None };
        let around = |list: &[&str]| self.before(at, 1, list) || self.is(at + 1, list);
        let ahead: i64 = if around(NEXT) {
            1
        } else if around(LAST) {
            -1
        } else if around(THIS) || self.before(at, 1, &["the", "del", "of"]) {
            0
        } else {
            return None;
        };
        let first = self.today.first_of_month().saturating_add(ahead.months());
        Some((MentionKind::Month(first.month(), Some(first.year())), at + 1))
    }

    /// A number that may be a day of the month.
    fn day(&self, i: usize) -> Option<(i8, usize)> {
        let word = self.words.get(i)?;
        let clock = (self.is(i + 1, &[":"]) && self.words.get(i + 2).is_some_and(|w| w.glued))
            || (word.glued && self.before(i, 1, &[":", "t"]))
            || self.is(i + 1, &["%", "€", "$", "am", "pm"]);
        if clock {
            return None;
        }
        let (value, next) = match word.figure().filter(|_| word.norm.len() <= 2) {
            Some(value) => (value, i + 1),
            None => match word.ordinal() {
                Some(rank) => (rank, i + 1),
                None => {
                    let found = quantity::at(self.words, i).filter(|f| f.values.len() == 1)?;
                    let tens = found.values.first().filter(|v| v.fract() == 0.0).map(|v| *v as u32)?;
                    // "twenty-first"
                    let skip = usize::from(self.is(found.next, &["-"]));
                    let unit = self.words.get(found.next + skip).and_then(SourceWord::ordinal);
                    match unit.filter(|unit| *unit < 10 && tens >= 20) {
                        Some(unit) => (tens.saturating_add(unit), found.next + skip + 1),
                        None => (tens, found.next),
                    }
                }
            },
        };
        // "15 June, 10 days"
        if self.words.get(next).is_some_and(|w| counted(&w.norm)) {
            return None;
        }
        i8::try_from(value).ok().filter(|day| (1..=31).contains(day)).map(|day| (day, next))
    }

    /// Returns whether a number reads as a day without an adjacent month: "the 15th", "il 15".
    pub fn is_marked_as_day(&self, item: &DateMention) -> bool {
        let ranked = self.words.get(item.first).is_some_and(|w| w.ordinal().is_some());
        let led = self.before(item.first, 1, CUES)
            || (self.before(item.first, 1, &["'"]) && self.before(item.first, 2, CUES))
            || item
                .first
                .checked_sub(1)
                .and_then(|k| self.words.get(k))
                .is_some_and(|w| calendar_words::possible_weekday(&w.norm).is_some())
            || self.words.len() <= 2;
        let free = self.words.get(item.next).is_none_or(|w| !w.alphabetic() || is_no_counted_thing(w));
        (ranked || led) && free
    }

    pub fn near(&self, item: &DateMention, reach: usize, list: &[&str]) -> bool {
        (item.first.saturating_sub(reach)..item.first).any(|k| self.is(k, list))
    }

    /// Returns whether there are only links and other days between two mentions.
    pub fn linked(&self, items: &[DateMention], a: usize, b: usize) -> bool {
        let (Some(from), Some(to)) = (items.get(a), items.get(b)) else { return false };
        let inside = |k: usize| items.iter().take(b).skip(a + 1).any(|i| (i.first..i.next).contains(&k));
        to.first.saturating_sub(from.next) <= 24
            && (from.next..to.first).all(|k| inside(k) || self.is(k, LINKS))
    }

    fn adjacent(&self, a: &DateMention, b: &DateMention) -> bool {
        let fillers = ["of", "di", "de", "del", "dell", "d", "'", "the", ".", ",", "l"];
        a.next <= b.first && (a.next..b.first).all(|k| self.is(k, &fillers)) && b.first - a.next <= 3
    }

    /// Returns whether a word between two days makes them the ends of a range.
    pub fn joined(&self, items: &[DateMention], start: usize, end: usize, first: usize) -> bool {
        let month = |k: usize| {
            let of = |i: &DateMention| {
                matches!(i.what, MentionKind::Month(..) | MentionKind::Year(_) | MentionKind::Weekday(_))
            };
            items.iter().any(|i| of(i) && (i.first..i.next).contains(&k))
        };
        let between: Vec<usize> = (end..first).filter(|k| !month(*k)).collect();
        let opens = (1..=3).any(|n| self.before(start, n, BETWEEN));
        between.len() <= 8
            && between.iter().all(|k| self.is(*k, LINKS))
            && between
                .iter()
                .any(|k| self.is(*k, TO) || self.is(*k, &["-", "zum"]) || (opens && self.is(*k, AND)))
    }

    /// The dates of a day, and whether it is adjacent to its month.
    pub fn dates_of(&self, items: &[DateMention], k: usize) -> (Vec<Date>, bool) {
        let item = &items[k];
        match &item.what {
            MentionKind::Dates(dates) => (dates.clone(), true),
            MentionKind::Weekday(day) => (self.weekday(items, k, *day), false),
            MentionKind::Day(day) => self.day_of(items, k, *day),
            MentionKind::Month(..) | MentionKind::Year(_) => {
                (Vec::new(), matches!(item.what, MentionKind::Year(_)))
            }
        }
    }

    fn day_of(&self, items: &[DateMention], k: usize, day: i8) -> (Vec<Date>, bool) {
        let month = |n: usize| items.get(n).filter(|i| matches!(i.what, MentionKind::Month(..)));
        let beside: Vec<usize> = [k.checked_sub(1), Some(k + 1)]
            .into_iter()
            .flatten()
            .filter(|n| month(*n).is_some_and(|m| self.adjacent(m, &items[k]) || self.adjacent(&items[k], m)))
            .collect();
        // A month directly after a day belongs to it, whatever precedes it: "12 July, 19 August".
        let tight = |n: usize| n > k && items[n].first - items[k].next <= 1;
        let (all, whole): (Vec<usize>, bool) = if let Some(n) = beside.iter().find(|n| tight(**n)) {
            (vec![*n], true)
        } else if !beside.is_empty() {
            (beside, true)
        } else {
            let after = (k + 1..items.len().min(k + 12)).find(|n| month(*n).is_some());
            let before = (k.saturating_sub(12)..k).rev().find(|n| month(*n).is_some());
            let near =
                [after.filter(|n| self.linked(items, k, *n)), before.filter(|n| self.linked(items, *n, k))];
            let near: Vec<usize> = near.into_iter().flatten().collect();
            let any = || (0..items.len()).filter(|n| month(*n).is_some()).take(4).collect();
            match (near.is_empty(), self.is_marked_as_day(&items[k])) {
                (false, _) => {
                    // "who is 30, on 15 June" may be two things.
                    let last = near.iter().map(|n| (*n).max(k)).max().unwrap_or(k);
                    let apart =
                        (items[k].next..items[last].first).any(|i| self.is(i, &["on", "in", "am", "im"]));
                    (near, !apart)
                }
                (true, true) => (any(), false),
                (true, false) => (Vec::new(), false),
            }
        };
        let mut out = Vec::new();
        for n in all {
            let MentionKind::Month(month, own) = items[n].what else { continue };
            for year in self.years_of(items, n, own) {
                out.extend(self.complete(day, month, year));
            }
        }
        (out, whole)
    }

    /// The year adjacent to a month; otherwise any mentioned year, or none.
    fn years_of(&self, items: &[DateMention], n: usize, own: Option<i16>) -> Vec<Option<i16>> {
        if own.is_some() {
            return vec![own];
        }
        let said =
            |item: &DateMention| if let MentionKind::Year(year) = item.what { Some(year) } else { None };
        let close = |k: usize, item: &DateMention| {
            let gap = if k > n { item.first - items[n].next } else { items[n].first - item.next };
            gap <= 3 || (k.abs_diff(n) == 2 && gap <= 5)
        };
        let all: Vec<(usize, i16)> =
            items.iter().enumerate().filter_map(|(k, item)| said(item).map(|year| (k, year))).collect();
        let after = all.iter().find(|(k, _)| *k > n && close(*k, &items[*k]));
        let beside = after.or_else(|| all.iter().rev().find(|(k, _)| *k < n && close(*k, &items[*k])));
        match beside {
            Some((_, year)) => vec![Some(*year)],
            None => all.iter().take(4).map(|(_, year)| Some(*year)).chain([None]).collect(),
        }
    }

    /// The dates that a day and a month may mean.
    pub fn complete(&self, day: i8, month: i8, year: Option<i16>) -> Vec<Date> {
        if let Some(year) = year {
            return Date::new(year, month, day).into_iter().collect();
        }
        let next = (0..9_i16)
            .filter_map(|ahead| Date::new(self.today.year().saturating_add(ahead), month, day).ok())
            .find(|date| *date >= self.today);
        let last = (0..9_i16)
            .filter_map(|back| Date::new(self.today.year().saturating_sub(back), month, day).ok())
            .find(|date| *date <= self.today)
            .filter(|date| self.past || recent(self.today, *date));
        next.into_iter().chain(last).collect()
    }

    fn weekday(&self, items: &[DateMention], k: usize, day: Weekday) -> Vec<Date> {
        let item = &items[k];
        let dated = items.get(k + 1).is_some_and(|next| {
            matches!(next.what, MentionKind::Day(_) | MentionKind::Dates(_))
                && next.first - item.next <= 2
                && (item.next..next.first).all(|i| self.is(i, &[",", "the", "il", "den", "el", "le"]))
        });
        if dated {
            return Vec::new();
        }
        let offset = i64::from(day.to_monday_zero_offset() - self.today.weekday().to_monday_zero_offset());
        let ahead = offset.rem_euclid(7);
        let around = |list: &[&str]| self.before(item.first, 1, list) || self.is(item.next, list);
        let mut out = vec![self.today.saturating_add(ahead.days())];
        if ahead == 0 || around(NEXT) {
            out.push(self.today.saturating_add((ahead + 7).days()));
        }
        if self.past {
            out.push(self.today.saturating_sub((7 - ahead).days()));
        }
        out.extend(self.nth(items, k, day));
        out
    }

    /// "the first Monday of March", "l'ultimo venerdì del mese".
    fn nth(&self, items: &[DateMention], k: usize, day: Weekday) -> Vec<Date> {
        let item = &items[k];
        let rank = item.first.checked_sub(1).and_then(|i| self.words.get(i)).and_then(|w| {
            if w.is(LAST_OF_SEVERAL) { Some(-1) } else { w.ordinal().and_then(|n| i8::try_from(n).ok()) }
        });
        let month = items.get(k + 1).filter(|next| next.first - item.next <= 2);
        let (Some(rank), Some(MentionKind::Month(month, year))) = (rank, month.map(|m| &m.what)) else {
            return Vec::new();
        };
        let firsts = self.years_of(items, k + 1, *year).into_iter().flat_map(|year| {
            let this = year.is_none().then(|| Date::new(self.today.year(), *month, 1).ok()).flatten();
            self.complete(1, *month, year).into_iter().chain(this)
        });
        let all = firsts.filter_map(|first| first.nth_weekday_of_month(rank, day).ok());
        all.filter(|date| year.is_some() || near_year(self.today, *date)).collect()
    }
}

/// Words that may follow a day's number without being counted by it.
const FREE: &[&str] = &[
    "at", "alle", "alla", "for", "per", "with", "con", "please", "if", "se", "so", "instead", "invece", "um",
    "a", "h", "is", "are", "works", "would", "ok", "sera", "mattina", "pomeriggio", "morning", "afternoon",
    "evening", "included", "inclusive", "compreso", "incluso", "because", "perche", "since", "it", "me",
    "my", "i", "because", "next", "prossimo", "ore", "dopo", "prima", "sotto", "under", "mi", "vorrei",
];

/// Whether a word is not counted by the number before it.
fn is_no_counted_thing(word: &SourceWord) -> bool {
    LINKS.contains(&word.norm.as_str()) || FREE.contains(&word.norm.as_str())
}

/// Things that are counted and never follow a day of the month.
fn counted(norm: &str) -> bool {
    const THINGS: &[&str] = &[
        "people", "persons", "persone", "guests", "ospiti", "tickets", "ticket", "biglietti", "euro",
        "euros", "eur", "seats", "posti", "adults", "adulti", "copies", "copie", "pieces", "pezzi",
        "percent", "units",
    ];
    // "il 15 h 10", "on the 15th at 3 h": an hour may follow a day, so it is not one of these.
    quantity::days(norm).is_some()
        || quantity::months(norm).is_some()
        || (quantity::minutes(norm).is_some() && norm.len() > 3 && norm != "hora")
        || THINGS.contains(&norm)
}

fn year(word: &SourceWord) -> Option<i16> {
    let value = word.figure().filter(|_| word.norm.len() == 4)?;
    i16::try_from(value).ok().filter(|year| (1900..2200).contains(year))
}

/// Returns whether the date is in the last months.
pub(super) fn recent(today: Date, date: Date) -> bool {
    date <= today && date >= today.saturating_sub(RECENT.days())
}

/// Returns whether the date is the next occurrence, or a recent last one.
pub(super) fn near_year(today: Date, date: Date) -> bool {
    recent(today, date) || (date >= today && date < today.saturating_add(366.days()))
}
