//! The days mentioned in texts, parsed leniently: all readings of an ambiguous passage count, since the
//! model had to choose one of them.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::DayNames;
use super::mentions::{DateMention, MentionKind, MentionReader, near_year, recent};
use super::quantity;
use super::terms::{AFTER, BEFORE, LAST, NEXT, PAST, THIS, WEEK};
use super::words::SourceWord;

/// Maximum number of days that are kept.
const MAX_DATES: usize = 2000;

/// The days mentioned in texts.
#[derive(Debug)]
pub(super) struct MentionedDates {
    today: Date,
    /// Which names of days have a source.
    names: DayNames,
    dates: BTreeSet<Date>,
    /// First and last day of a range, which includes the days between.
    spans: Vec<(Date, Date)>,
    /// Days of the month that were mentioned without a month.
    open: BTreeSet<i8>,
    /// Months that were mentioned, with their year if given.
    months: BTreeSet<(i8, Option<i16>)>,
    years: BTreeSet<i16>,
    /// Lengths in days, and in months.
    days: BTreeSet<i64>,
    shifts: BTreeSet<i64>,
    /// Recurring weekdays.
    every: BTreeSet<i8>,
}

impl MentionedDates {
    /// No texts yet.
    pub fn new(today: Date, names: DayNames) -> Self {
        Self {
            today,
            names,
            dates: BTreeSet::new(),
            spans: Vec::new(),
            open: BTreeSet::new(),
            months: BTreeSet::new(),
            years: BTreeSet::new(),
            days: BTreeSet::new(),
            shifts: BTreeSet::new(),
            every: BTreeSet::new(),
        }
    }

    /// Reads a text; returns which of its words are part of a complete date and therefore not quantities.
    pub fn read(&mut self, words: &[SourceWord]) -> Vec<bool> {
        let reader = MentionReader {
            words,
            today: self.today,
            past: words.iter().any(|w| w.is(PAST) || w.is(LAST)),
            names: self.names,
        };
        let items = reader.items();
        let mut dated = vec![false; words.len()];
        let mut resolved: Vec<(usize, usize, Vec<Date>)> = Vec::new();
        let mut excluded: BTreeSet<Date> = BTreeSet::new();
        for (k, item) in items.iter().enumerate() {
            match &item.what {
                MentionKind::Month(month, year) => {
                    self.months.insert((*month, *year));
                    self.whole_month(&reader, &items, k);
                }
                MentionKind::Year(year) => {
                    self.years.insert(*year);
                }
                _ => {}
            }
            let (dates, whole) = reader.dates_of(&items, k);
            if let MentionKind::Day(day) = item.what
                && !item.negated
                && !whole
                && reader.is_marked_as_day(item)
            {
                self.open.insert(day);
            }
            if whole {
                dated[item.first..item.next].fill(true);
            }
            if item.negated {
                excluded.extend(dates);
            } else if !dates.is_empty() {
                let mut dates = dates;
                if let (MentionKind::Weekday(day), Some((_, _, before))) = (&item.what, resolved.last()) {
                    dates.extend(before.iter().take(4).map(|from| following(*from, *day)));
                }
                resolved.push((item.first, item.next, dates));
            }
            if let MentionKind::Weekday(day) = item.what
                && reader.near(
                    item,
                    2,
                    &["every", "each", "ogni", "tutti", "tutte", "jeden", "chaque", "cada"],
                )
            {
                self.every.insert(day.to_monday_zero_offset());
            }
        }
        self.ranges(&reader, &items, &resolved, &excluded);
        let mentioned: Vec<Date> = resolved.into_iter().flat_map(|(_, _, dates)| dates).collect();
        self.weeks(&reader, &mentioned);
        self.weekdays_beside(&items, &reader, &mentioned);
        self.add(mentioned);
        self.lengths(&reader);
        dated
    }

    /// All mentioned days.
    pub fn all(&self) -> impl Iterator<Item = Date> {
        self.dates.iter().copied()
    }

    fn add(&mut self, dates: impl IntoIterator<Item = Date>) {
        for date in dates {
            if self.dates.len() < MAX_DATES {
                self.dates.insert(date);
            }
        }
    }

    /// "in June": from its first day to its last, if no day of it was mentioned.
    fn whole_month(&mut self, reader: &MentionReader, items: &[DateMention], k: usize) {
        let MentionKind::Month(month, year) = items[k].what else { return };
        let dayed = items.iter().enumerate().any(|(n, item)| {
            matches!(item.what, MentionKind::Day(_))
                && n.abs_diff(k) < 4
                && reader.linked(items, n.min(k), n.max(k))
        });
        let middle = reader.near(&items[k], 3, &["mid", "middle", "meta", "mitte", "milieu", "mediados"]);
        for first in reader.complete(1, month, year) {
            if !dayed {
                self.add([first, first.last_of_month()]);
            }
            if middle {
                self.add([first.saturating_add(14.days())]);
            }
        }
    }

    /// "from 15 to 17 June": the days between, without excluded ones.
    fn ranges(
        &mut self,
        reader: &MentionReader,
        items: &[DateMention],
        resolved: &[(usize, usize, Vec<Date>)],
        excluded: &BTreeSet<Date>,
    ) {
        for pair in resolved.windows(2) {
            let [(start, end, from), (first, _, to)] = pair else { continue };
            if !reader.joined(items, *start, *end, *first) {
                continue;
            }
            for a in from.iter().take(4) {
                for b in to.iter().take(4) {
                    let long = b.duration_since(*a).as_hours() / 24;
                    if !(1..=366).contains(&long) || self.spans.len() >= 200 {
                        continue;
                    }
                    let mut begin = *a;
                    for out in excluded.range(*a..=*b) {
                        if *out > begin {
                            self.spans.push((begin, out.saturating_sub(1.days())));
                        }
                        begin = out.saturating_add(1.days());
                    }
                    if begin <= *b {
                        self.spans.push((begin, *b));
                    }
                }
            }
        }
    }

    /// "next week", "the week after 15 June", "the weekend".
    fn weeks(&mut self, reader: &MentionReader, mentioned: &[Date]) {
        let has = |list: &[&str]| reader.words.iter().any(|w| w.is(list));
        let monday =
            |date: Date| date.saturating_sub(i64::from(date.weekday().to_monday_zero_offset()).days());
        let this = monday(self.today);
        if has(&["weekend", "wochenende"]) || (has(&["fine"]) && has(&["settimana"])) {
            for ahead in [5_i64, 12] {
                let saturday = this.saturating_add(ahead.days());
                self.spans.push((saturday, saturday.saturating_add(1.days())));
            }
        }
        if !has(WEEK) {
            return;
        }
        let mut week = |first: Date| self.spans.push((first, first.saturating_add(6.days())));
        for (i, _) in reader.words.iter().enumerate().filter(|(_, w)| w.is(WEEK)) {
            let around = |list: &[&str]| {
                (i.saturating_sub(2)..=i + 1)
                    .any(|k| k != i && reader.words.get(k).is_some_and(|w| w.is(list)))
            };
            if around(NEXT) {
                week(this.saturating_add(7.days()));
            }
            if around(THIS) {
                week(this);
            }
            if around(LAST) {
                week(this.saturating_sub(7.days()));
            }
            if reader.words[i..].iter().take(3).any(|w| w.is(AFTER)) && mentioned.is_empty() {
                week(this.saturating_add(7.days()));
            }
        }
        for date in mentioned.iter().take(16) {
            if has(AFTER) {
                week(date.saturating_add(1.days()));
                week(monday(*date).saturating_add(7.days()));
            }
            if has(BEFORE) {
                week(date.saturating_sub(7.days()));
                week(monday(*date).saturating_sub(7.days()));
            }
            if has(&["of", "del", "dell", "di", "beginning", "starting", "der", "vom", "du", "from", "dal"]) {
                week(*date);
                week(monday(*date));
            }
        }
    }

    /// "the Monday after 15 June".
    fn weekdays_beside(&mut self, items: &[DateMention], reader: &MentionReader, mentioned: &[Date]) {
        let after = reader.words.iter().any(|w| w.is(AFTER));
        let before = reader.words.iter().any(|w| w.is(BEFORE));
        for item in items {
            let MentionKind::Weekday(day) = item.what else { continue };
            for date in mentioned.iter().take(16) {
                let ahead = i64::from(
                    (day.to_monday_zero_offset() - date.weekday().to_monday_zero_offset()).rem_euclid(7),
                );
                if after {
                    let ahead = if ahead == 0 { 7 } else { ahead };
                    self.add([date.saturating_add(ahead.days())]);
                }
                if before {
                    self.add([date.saturating_sub((7 - ahead).days())]);
                }
            }
        }
    }

    /// "3 days", "a week", "two months": from today if the text says so, and from every mentioned day.
    fn lengths(&mut self, reader: &MentionReader) {
        let words = reader.words;
        let one = |i: usize| words[i].is(&["a", "an", "un", "una", "ein", "eine", "einer", "une", "one"]);
        let mut i = 0;
        while i < words.len() {
            let number = quantity::at(words, i);
            let (values, next) = match number {
                Some(found) => (found.values, found.next),
                None if one(i) => (vec![1.0], i + 1),
                None if words[i].is(&["next", "following", "giorno", "day", "month", "mese", "indomani"]) => {
                    self.neighbours(words, i);
                    i += 1;
                    continue;
                }
                None => {
                    i += 1;
                    continue;
                }
            };
            let mut at = next;
            let fillers = [
                "of", "di", "-", "full", "whole", "working", "business", "giorni", "altri", "more",
                "calendar",
            ];
            while at < next + 2
                && words.get(at).is_some_and(|w| w.is(&fillers) && quantity::days(&w.norm).is_none())
            {
                at += 1;
            }
            if let Some(unit) = words.get(at) {
                for value in values.iter().filter(|v| (0.0..=1000.0).contains(*v)) {
                    self.length(reader, i, at, *value, &unit.norm);
                }
            }
            i = next.max(i + 1);
        }
    }

    fn length(&mut self, reader: &MentionReader, i: usize, unit_at: usize, value: f64, unit: &str) {
        let before = i.checked_sub(1).and_then(|k| reader.words.get(k));
        let ahead = before.is_some_and(|w| {
            w.is(&["in", "within", "tra", "fra", "entro", "dans", "en", "dentro", "for", "per"])
        }) || reader.words.get(unit_at + 1).is_some_and(|w| w.is(&["from", "da", "hence"]));
        let back = reader.words.get(unit_at + 1).is_some_and(|w| w.is(&["ago", "fa"]))
            || before.is_some_and(|w| w.is(&["vor", "hace"]));
        if let Some(length) = quantity::days(unit) {
            let days = (value * length).round() as i64;
            self.days.insert(days);
            if ahead {
                self.add([self.today.saturating_add(days.days())]);
            }
            if back {
                self.add([self.today.saturating_sub(days.days())]);
            }
        } else if let Some(length) = quantity::months(unit) {
            let months = (value * length).round() as i64;
            self.shifts.insert(months);
            if ahead {
                self.add([self.today.saturating_add(months.months())]);
            }
            if back {
                self.add([self.today.saturating_sub(months.months())]);
            }
        }
    }

    /// "the next day", "il giorno dopo", "a month later".
    fn neighbours(&mut self, words: &[SourceWord], i: usize) {
        let beside = |list: &[&str]| {
            (i.saturating_sub(2)..=i + 2).any(|k| k != i && words.get(k).is_some_and(|w| w.is(list)))
        };
        let near = beside(AFTER) || beside(BEFORE) || beside(NEXT);
        if words[i].is(&["indomani"]) || (near && words[i].is(&["day", "giorno"])) || (beside(&["day"])) {
            self.days.insert(1);
        }
        if near && words[i].is(&["month", "mese"]) {
            self.shifts.insert(1);
        }
    }

    /// Returns whether the day was mentioned, or can be derived from a mention.
    pub fn supports(&self, date: Date) -> bool {
        self.is_mentioned(date) || self.by_length(date)
    }

    fn is_mentioned(&self, date: Date) -> bool {
        if self.dates.contains(&date) || self.spans.iter().any(|(a, b)| (*a..=*b).contains(&date)) {
            return true;
        }
        let soon = date >= self.today && date <= self.today.saturating_add(366.days());
        if soon && self.every.contains(&date.weekday().to_monday_zero_offset()) {
            return true;
        }
        self.open.contains(&date.day()) && self.open_month(date)
    }

    /// Whether a day without a month may be in the month of `date`: a mentioned month, or the next one with
    /// such a day.
    fn open_month(&self, date: Date) -> bool {
        let is_named = self.months.iter().any(|(month, year)| {
            *month == date.month()
                && match year {
                    Some(year) => *year == date.year(),
                    None => self.years.contains(&date.year()) || near_year(self.today, date),
                }
        });
        let beside = self.dates.iter().any(|d| (d.year(), d.month()) == (date.year(), date.month()));
        let next = (0..3_i64)
            .map(|ahead| self.today.first_of_month().saturating_add(ahead.months()))
            .filter_map(|month| Date::new(month.year(), month.month(), date.day()).ok())
            .find(|d| *d >= self.today);
        is_named || beside || next == Some(date) || recent(self.today, date)
    }

    fn by_length(&self, date: Date) -> bool {
        let near = |days: i64| {
            let ends = [date.checked_sub(days.days()), date.checked_add(days.days())];
            ends.into_iter().flatten().any(|anchor| self.is_mentioned(anchor))
        };
        let days = self.days.iter().take(64);
        if days.into_iter().any(|n| near(*n) || (*n > 1 && near(n - 1)) || self.working(date, *n)) {
            return true;
        }
        self.shifts.iter().take(32).any(|n| {
            let ends = [date.checked_sub(n.months()), date.checked_add(n.months())];
            let ends = ends.into_iter().flatten();
            ends.into_iter().any(|a| self.is_mentioned(a) || self.is_mentioned(a.saturating_add(1.days())))
        })
    }

    /// Whether `days` working days lead from a mentioned day to this one.
    fn working(&self, date: Date, days: i64) -> bool {
        if !(1..=60).contains(&days) {
            return false;
        }
        let mut at = date;
        let mut left = days;
        for _ in 0..100 {
            if !matches!(at.weekday(), Weekday::Saturday | Weekday::Sunday) {
                left -= 1;
            }
            // The first day counts for a stay, but not for a delay.
            if (left == 0 || left == -1) && self.is_mentioned(at) {
                return true;
            }
            if left < -1 {
                return false;
            }
            at = at.saturating_sub(1.days());
        }
        false
    }

    /// Returns whether the month of that year was mentioned, or contains a mentioned day.
    pub fn supports_month(&self, year: i16, month: i8) -> bool {
        let named = self.months.iter().any(|(m, y)| {
            *m == month
                && y.is_none_or(|y| y == year)
                && (self.years.contains(&year) || y.is_some() || { (year - self.today.year()).abs() <= 1 })
        });
        named || self.dates.iter().any(|d| d.year() == year && d.month() == month)
    }

    /// Returns whether the number is the day, month or year of a mentioned day.
    pub fn supports_part(&self, part: &str, value: i64) -> bool {
        let fits = |date: &Date| match part {
            "day" => i64::from(date.day()) == value,
            "month" => i64::from(date.month()) == value,
            _ => i64::from(date.year()) == value,
        };
        self.dates.iter().any(fits)
            || match part {
                "day" => self.open.iter().any(|day| i64::from(*day) == value),
                "month" => self.months.iter().any(|(month, _)| i64::from(*month) == value),
                _ => self.years.iter().any(|year| i64::from(*year) == value),
            }
    }
}

/// The first such weekday after a day.
fn following(date: Date, day: Weekday) -> Date {
    let ahead = (day.to_monday_zero_offset() - date.weekday().to_monday_zero_offset()).rem_euclid(7);
    date.saturating_add(i64::from(if ahead == 0 { 7 } else { ahead }).days())
}
