//! Parses date expressions and resolves them against today: single days, ranges, weekdays, relative days.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::calendar_words::{BETWEEN, TO};
pub(crate) use super::calendar_words::{is_calendar_word, month, weekday};
use super::text::Token;

/// The role of a date or time in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeRole {
    /// Not an end of a range.
    Single,
    /// The beginning.
    From,
    To,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateSpan {
    /// Index of its first token, including the preposition of a range.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// The day.
    pub date: Date,
    /// Its role in a range.
    pub role: RangeRole,
}

/// A date as written, before missing parts are resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WrittenDate {
    Exact(Date),
    Parts {
        day: i8,
        month: Option<i8>,
        year: Option<i16>,
    },
    Weekday(Weekday),
    /// First and last day.
    Between(Date, Date),
}

/// Maximum length in days of a range whose day numbers decrease: "from 28 to 3 July".
const MAX_WRAPPED_DAYS: i64 = 14;

const FROM: &[&str] = &[
    "dal", "dall", "dalla", "da", "from", "between", "tra", "fra", "du", "vom", "von", "del", "desde",
    "starting", "entre",
];
const FILLER_WORDS: &[&str] = &[
    "il", "lo", "l", "the", "giorno", "day", "di", "of", "le", "el", "al", "a", "all", "alla", "on", "e",
    "including", "zum", "den",
];

/// Words before a number that is no day: what is counted or numbered.
const COUNTED_OR_NUMBERED: &str = "for of per di number numero nummer no n nr id request richiesta booking prenotazione appointment \
appuntamento order ordine loan prestito room sala ticket";
/// Verbs that move something to a day.
const MOVES: &str = "move reschedule postpone shift push change bring switch transfer extend sposta spostare rimanda rinvia posticipa \
anticipa cambia prolunga verschiebe reporte deplace mueve aplaza";

/// A parsed range of dates, with the index of the token after it.
pub(crate) enum DateRange {
    /// A beginning and an end.
    Days(Vec<DateSpan>, usize),
    /// The dates contradict each other: "from 17 to 15 June".
    Contradictory(usize),
}

/// Parses dates from tokens. Methods take a token index and return the index after the match.
pub(crate) struct DateReader<'a> {
    /// The tokens of the text.
    pub tokens: &'a [Token],
    /// The local day on which the request was made.
    pub today: Date,
    /// By token: whether it is already part of another entity.
    pub taken: &'a [bool],
}

impl DateReader<'_> {
    pub fn token_at(&self, i: usize) -> Option<&Token> {
        if self.taken.get(i).copied().unwrap_or(false) { None } else { self.tokens.get(i) }
    }

    pub fn is(&self, i: usize, words: &[&str]) -> bool {
        self.token_at(i).is_some_and(|t| t.is(words))
    }

    /// Parses two dates as a range.
    pub fn range(&self, i: usize) -> Option<DateRange> {
        if let Some(found) = self.dashed_range(i) {
            return Some(found);
        }
        let opens = self.is(i, FROM);
        let between = self.is(i, BETWEEN);
        let mut at = if opens { self.skip_fillers(i + 1) } else { i };
        let counts = !opens && self.is_first_of_range(at);
        let (a, next) = self.date_at(at, opens || counts)?;
        if let WrittenDate::Between(..) = a {
            return None;
        }
        at = next;
        let is_ordinal = self.token_at(at).is_some_and(|t| t.raw == ".") && self.is(at + 1, TO);
        if is_ordinal || self.token_at(at).is_some_and(|t| t.raw == ",") {
            at += 1;
        }
        let dash = self.token_at(at).is_some_and(|t| matches!(t.raw.as_str(), "-" | "–" | "—"));
        let joined = self.is(at, TO) || dash || (between && self.is(at, &["e", "ed", "and", "y", "et"]));
        let up_to = self.is(at, &["up"]) && self.is(at + 1, &["to"]);
        if !(joined || up_to || (self.is(at, &["e", "and"]) && self.is(at + 1, &["fino", "until"]))) {
            return None;
        }
        at = self.skip_fillers(at + if up_to { 2 } else { 1 });
        let (b, next) = self.date_at(at, true)?;
        let bare = |s: &WrittenDate| matches!(s, WrittenDate::Parts { month: None, .. });
        // "10 to 12" alone is not a range of dates.
        if bare(&a) && bare(&b) && !opens {
            return None;
        }
        let Some((from, to)) = self.resolve_range(a, b)? else { return Some(DateRange::Contradictory(next)) };
        let middle = at.saturating_sub(1).max(i);
        let days = vec![
            DateSpan { first: i, last: middle.saturating_sub(1).max(i), date: from, role: RangeRole::From },
            DateSpan { first: middle, last: next - 1, date: to, role: RangeRole::To },
        ];
        Some(DateRange::Days(days, next))
    }

    /// Whether a number may be the first day of a range whose month follows its last day: "8 to 10 February", "8. bis 10.
    /// Februar". Not what is counted or numbered, nor what is moved: "reschedule booking 8 to 10 February".
    fn is_first_of_range(&self, i: usize) -> bool {
        let is_day =
            self.token_at(i).is_some_and(|t| t.digit() && t.norm.len() <= 2 && day_number(&t.norm).is_some());
        let to = i + if self.token_at(i + 1).is_some_and(|t| t.raw == ".") { 2 } else { 1 };
        let is_led = i.checked_sub(1).is_some_and(|before| {
            self.tokens[before].among(COUNTED_OR_NUMBERED)
                || self.token_at(before).is_some_and(|t| t.raw == "#")
        });
        is_day && self.is(to, TO) && !is_led && !self.tokens[..i].iter().any(|t| t.among(MOVES))
    }

    /// Parses a dashed range: `15-17 June`, `June 15-17`.
    fn dashed_range(&self, i: usize) -> Option<DateRange> {
        let start = if self.is(i, FROM) { i + 1 } else { i };
        let month_first = self.token_at(start).and_then(|t| month(&t.norm));
        let at = if month_first.is_some() { start + 1 } else { start };
        let token = self.token_at(at)?;
        let (left, right) = token.norm.split_once('-')?;
        let (a, b) = (day_number(left)?, day_number(right)?);
        let mut next = at + 1;
        let month = match month_first {
            Some(m) => m,
            None => {
                if self.is(next, &["di", "of", "de"]) {
                    next += 1;
                }
                let m = self.token_at(next).and_then(|t| month(&t.norm))?;
                next += 1;
                m
            }
        };
        let (year, next) = self.year(next);
        let said = |day| WrittenDate::Parts { day, month: Some(month), year };
        let Some((from, to)) = self.resolve_range(said(a), said(b))? else {
            return Some(DateRange::Contradictory(next));
        };
        let day = |date, role| DateSpan { first: i, last: next - 1, date, role };
        Some(DateRange::Days(vec![day(from, RangeRole::From), day(to, RangeRole::To)], next))
    }

    /// Parses one date, optionally with a word that makes it a beginning or an end.
    pub fn single_date(&self, i: usize) -> Option<(Vec<DateSpan>, usize)> {
        let opens = self.is(i, FROM) && !self.is(i, &["del", "du", "von"]);
        let ends = self.is(i, &["until", "till", "til", "fino", "entro", "by", "bis", "hasta", "through"]);
        let dal = self.is(i, &["dal", "dall", "from", "starting"]);
        if let Some((WrittenDate::Exact(date), next)) = self.relative_date(i) {
            return Some((vec![DateSpan { first: i, last: next - 1, date, role: RangeRole::Single }], next));
        }
        let start = if opens || ends { self.skip_fillers(i + 1) } else { i };
        let (said, next) = self.date_at(start, (dal || ends) && !self.is_counted(start))?;
        if let WrittenDate::Between(from, to) = said {
            let day = |date, role| DateSpan { first: i, last: next - 1, date, role };
            return Some((vec![day(from, RangeRole::From), day(to, RangeRole::To)], next));
        }
        let date = self.resolve(self.with_next_month(said, next), self.today, false)?;
        let role = if ends {
            RangeRole::To
        } else if opens && !self.is(i, BETWEEN) {
            RangeRole::From
        } else {
            RangeRole::Single
        };
        Some((vec![DateSpan { first: i, last: next - 1, date, role }], next))
    }

    /// Completes a day without a month by the month of the day joined to it: "il 3 e il 4 agosto".
    fn with_next_month(&self, said: WrittenDate, mut at: usize) -> WrittenDate {
        let WrittenDate::Parts { day, month: None, year: None } = said else { return said };
        for _ in 0..4 {
            if !self.token_at(at).is_some_and(|t| t.raw == "," || t.is(&["e", "ed", "and", "o", "or"])) {
                break;
            }
            match self.date_at(self.skip_fillers(at + 1), true) {
                Some((WrittenDate::Parts { month: Some(month), year, .. }, _)) => {
                    return WrittenDate::Parts { day, month: Some(month), year };
                }
                Some((WrittenDate::Parts { .. }, next)) => at = next,
                _ => break,
            }
        }
        said
    }

    /// Returns whether the number at `i` counts something ("from 15 people") and so is not a day.
    pub fn is_counted(&self, i: usize) -> bool {
        self.tokens.get(i + 1).is_some_and(|t| {
            t.word && !super::lexicon::is_stop_word(&t.norm) && month(&t.norm).is_none() && !t.is(TO)
        })
    }

    fn skip_fillers(&self, mut i: usize) -> usize {
        let mut steps = 0;
        while steps < 3 && self.is(i, FILLER_WORDS) {
            i += 1;
            steps += 1;
        }
        i
    }

    pub fn year(&self, i: usize) -> (Option<i16>, usize) {
        let mut at = i;
        if self.token_at(at).is_some_and(|t| t.raw == ",") || self.is(at, &["del", "of", "de", "dell"]) {
            at += 1;
        }
        match self.token_at(at).filter(|t| t.norm.len() == 4).and_then(|t| t.norm.parse::<i16>().ok()) {
            Some(year) if (1900..2200).contains(&year) => (Some(year), at + 1),
            _ => (None, i),
        }
    }

    /// Parses a date at `i`; `bare` also accepts a day number alone.
    pub fn date_at(&self, i: usize, bare: bool) -> Option<(WrittenDate, usize)> {
        let token = self.token_at(i)?;
        if let Some(said) = parse_numeric_date(&token.norm) {
            return Some((said, i + 1));
        }
        if let Some((day, month)) = dotted_day(&token.norm).filter(|_| is_dotted_day(self.tokens, i)) {
            let has_dot = self.tokens.get(i + 1).is_some_and(|t| t.raw == ".");
            let said = WrittenDate::Parts { day, month: Some(month), year: None };
            return Some((said, i + 1 + usize::from(has_dot)));
        }
        if let Some(found) = self.relative_date(i).or_else(|| self.holiday(i)) {
            return Some(found);
        }
        if let Some(day) = weekday(&token.norm) {
            return Some(self.weekday_date(i, day));
        }
        if self.is(i, &["next", "this", "prossimo", "prossima", "questo", "questa", "coming", "on"])
            && let Some(day) = self.token_at(i + 1).and_then(|t| weekday(&t.norm))
        {
            return Some(self.weekday_date(i + 1, day));
        }
        // June 15th, 2026
        if let Some(month) = month(&token.norm) {
            let at = if self.is(i + 1, &["the"]) { i + 2 } else { i + 1 };
            let day = self.token_at(at).and_then(|t| day_number(&t.norm))?;
            let (year, next) = self.year(at + 1);
            return Some((WrittenDate::Parts { day, month: Some(month), year }, next));
        }
        let leads = self.is(i, &["il", "the", "giorno", "day", "l", "el", "le", "den"]);
        let at = if leads { self.skip_fillers(i + 1) } else { i };
        let number = self.token_at(at)?;
        let day = day_number(&number.norm).or(match number.norm.as_str() {
            "primo" | "first" => Some(1),
            _ => None,
        })?;
        let mut next = at + 1;
        if self.is(next, &["di", "of", "de", "."]) {
            next += 1;
        }
        if let Some(month) = self.token_at(next).and_then(|t| month(&t.norm)) {
            let (year, next) = self.year(next + 1);
            return Some((WrittenDate::Parts { day, month: Some(month), year }, next));
        }
        let ordinal = number.norm.len() > 2 && number.digit();
        let named = self.is(i, &["giorno", "day"]) || (leads && self.is(i + 1, &["giorno", "day"]));
        let led = self.is(i, &["il", "el"]);
        let lone = named || led || ordinal;
        let follows = self.tokens.get(at + 1);
        let followed = !named
            && follows.is_some_and(|t| {
                (t.word && !super::lexicon::is_stop_word(&t.norm) && !is_calendar_word(&t.norm) && !t.is(TO))
                    || matches!(t.raw.as_str(), "%" | "€")
            });
        let word = number.is(&["primo", "first"]);
        // "From the first to the 20th".
        let ranged = bare && self.is(at + 1, TO) && self.token_at(at + 2).is_some_and(Token::digit);
        ((bare || lone) && !followed && (!word || ranged))
            .then_some((WrittenDate::Parts { day, month: None, year: None }, at + 1))
    }

    /// Parses a weekday, or the date that follows it ("venerdì 12 giugno").
    fn weekday_date(&self, i: usize, day: Weekday) -> (WrittenDate, usize) {
        let mut next = i + 1;
        if self.token_at(next).is_some_and(|t| t.raw == ",") {
            next += 1;
        }
        if self.is(next, &["il", "the"]) {
            next += 1;
        }
        if self.token_at(next).is_some_and(|t| t.digit() || month(&t.norm).is_some())
            && let Some((said @ (WrittenDate::Parts { .. } | WrittenDate::Exact(_)), end)) =
                self.date_at(next, !self.is_counted(next))
        {
            return (said, end);
        }
        self.nearest_weekday(i, day)
    }

    /// Resolves the ends of a range; `Some(None)` if they contradict each other.
    #[expect(clippy::option_option, reason = "`None` is no range, `Some(None)` is a contradictory one")]
    fn resolve_range(&self, a: WrittenDate, b: WrittenDate) -> Option<Option<(Date, Date)>> {
        let mut turned = false;
        let a = match (a, b) {
            (
                WrittenDate::Parts { day, month: None, year: None },
                WrittenDate::Parts { month: Some(m), year, day: end },
            ) => {
                // "from 28 to 3 July" begins in the month before.
                turned = day > end;
                let before = if m == 1 { 12 } else { m - 1 };
                let year = if turned && m == 1 { year.map(|y| y - 1) } else { year };
                WrittenDate::Parts { day, month: Some(if turned { before } else { m }), year }
            }
            (
                WrittenDate::Parts { day, month, year: None },
                WrittenDate::Parts { month: Some(_), year, .. },
            ) => WrittenDate::Parts { day, month, year },
            (a, _) => a,
        };
        if let (
            WrittenDate::Parts { day, month: None, .. },
            WrittenDate::Parts { day: end, month: None, .. },
        ) = (a, b)
        {
            turned = day > end;
        }
        let from = self.resolve(a, self.today, false)?;
        let to = self.resolve(b, from, matches!(b, WrittenDate::Weekday(_)))?;
        let long = turned && from.saturating_add(MAX_WRAPPED_DAYS.days()) < to;
        // Without a year the end resolves to the next such day, which may be almost a year later.
        let wrapped = matches!(b, WrittenDate::Parts { month: Some(_), year: None, .. })
            && (to.month(), to.day()) < (from.month(), from.day())
            && super::date_expression::is_too_far_apart(from, to);
        Some((to >= from && !long && !wrapped).then_some((from, to)))
    }

    /// Resolves to the first such date from `since` on. A weekday that falls on `since` resolves to the next
    /// week if `after` is set or `since` is today.
    pub fn resolve(&self, said: WrittenDate, since: Date, after: bool) -> Option<Date> {
        match said {
            WrittenDate::Exact(date) => Some(date),
            WrittenDate::Between(date, _) => Some(date),
            WrittenDate::Parts { day, month: Some(month), year: Some(year) } => {
                Date::new(year, month, day).ok()
            }
            WrittenDate::Parts { day, month: Some(month), year: None } => (0..8)
                .filter_map(|ahead| Date::new(since.year() + ahead, month, day).ok())
                .find(|date| *date >= since),
            WrittenDate::Parts { day, month: None, .. } => (0..14)
                .filter_map(|ahead: i32| since.first_of_month().checked_add(ahead.months()).ok())
                .filter_map(|month| Date::new(month.year(), month.month(), day).ok())
                .find(|date| *date >= since),
            WrittenDate::Weekday(day) => {
                let ahead = i64::from(
                    (day.to_monday_zero_offset() - since.weekday().to_monday_zero_offset()).rem_euclid(7),
                );
                let ahead = if ahead == 0 && (after || since == self.today) { 7 } else { ahead };
                since.checked_add(ahead.days()).ok()
            }
        }
    }
}

/// Parses a day of a month: `15`, `15th`, `1°`.
pub(crate) fn day_number(norm: &str) -> Option<i8> {
    let digits = norm.trim_end_matches(|c: char| !c.is_ascii_digit());
    let tail = &norm[digits.len()..];
    if !matches!(tail, "" | "st" | "nd" | "rd" | "th" | "deg" | "o" | "er" | "°") || digits.len() > 2 {
        return None;
    }
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// The words of a text that name a day which no month has, such as "31 February" or "2027-02-30".
pub(crate) fn impossible_day(text: &str) -> Option<&str> {
    let tokens = super::text::tokens(text);
    let norm = |at: usize| tokens.get(at).map_or("", |token| token.norm.as_str());
    let year_at = |at: usize| norm(at).parse::<i16>().ok().filter(|year| (1000..=9999).contains(year));
    (0..tokens.len()).find_map(|at| {
        let of = at + 1 + usize::from(["of", "di", "de", "del"].contains(&norm(at + 1)));
        let last = if let (Some(day), Some(month)) = (day_number(norm(at)), month(norm(of))) {
            (!has_day(month, day, year_at(of + 1))).then_some(of)
        } else if let (Some(month), Some(day)) = (month(norm(at)), day_number(norm(at + 1))) {
            (!has_day(month, day, year_at(at + 2))).then_some(at + 1)
        } else {
            match parse_numeric_date(norm(at)) {
                Some(WrittenDate::Parts { day, month: Some(month), year }) => {
                    (!has_day(month, day, year)).then_some(at)
                }
                _ => None,
            }
        }?;
        Some(super::text::span(text, &tokens, at, last))
    })
}

/// Whether a month has such a day, in this year or else in some year.
fn has_day(month: i8, day: i8, year: Option<i16>) -> bool {
    // 2024 is a leap year.
    Date::new(year.unwrap_or(2024), month, day).is_ok()
}

/// The day and the month of `14.12`, which may as well be an amount or a time.
fn dotted_day(norm: &str) -> Option<(i8, i8)> {
    let (day, month) = norm.split_once('.')?;
    let (day, month) = (day.parse().ok()?, month.parse().ok()?);
    (has_day(month, day, None)).then_some((day, month))
}

/// Whether a token is a day and a month with a dot between, by the words and signs around it: "vom 14.12. bis 16.12.".
pub(crate) fn is_dotted_day(tokens: &[Token], i: usize) -> bool {
    let is_led = i > 0 && tokens[i - 1].is(&["am", "vom", "bis", "zum", "den", "dem", "ab"]);
    let has_dot =
        tokens.get(i + 1).is_some_and(|t| t.raw == ".") && tokens.get(i + 2).is_some_and(|t| t.word);
    (is_led || has_dot || is_end_of_dotted_range(tokens, i)) && dotted_day(&tokens[i].norm).is_some()
}

/// Whether a token is one of the ends of "14.12. - 16.12.".
fn is_end_of_dotted_range(tokens: &[Token], i: usize) -> bool {
    let begins = |at: usize| {
        let is = |at: usize, signs: &[&str]| tokens.get(at).is_some_and(|t| signs.contains(&t.raw.as_str()));
        let is_dotted = |at: usize| tokens.get(at).is_some_and(|t| dotted_day(&t.norm).is_some());
        is_dotted(at) && is(at + 1, &["."]) && is(at + 2, &["-", "–", "—"]) && is_dotted(at + 3)
    };
    begins(i) || i.checked_sub(3).is_some_and(begins)
}

/// Parses a numeric date: `2026-06-15`, `15/06`, `15/06/2026`, `15-06-2026`, `15.06.2026`.
fn parse_numeric_date(norm: &str) -> Option<WrittenDate> {
    let parts: Vec<&str> = norm.split(['-', '/', '.']).collect();
    if !parts.iter().all(|p| !p.is_empty() && p.len() <= 4 && p.chars().all(|c| c.is_ascii_digit())) {
        return None;
    }
    let number = |s: &str| s.parse::<i16>().ok();
    let small = |s: &str| s.parse::<i8>().ok();
    let fit = |day: i8, month: i8, year: Option<i16>| {
        let (day, month) = if month > 12 && (1..=12).contains(&day) { (month, day) } else { (day, month) };
        let year = year.map(|y| if y < 100 { 2000 + y } else { y });
        ((1..=31).contains(&day) && (1..=12).contains(&month)).then_some(WrittenDate::Parts {
            day,
            month: Some(month),
            year,
        })
    };
    match parts.as_slice() {
        [y, m, d] if y.len() == 4 => Date::new(number(y)?, small(m)?, small(d)?).ok().map(WrittenDate::Exact),
        [d, m, y] => fit(small(d)?, small(m)?, Some(number(y)?)),
        [d, m] if norm.contains('/') && d.len() <= 2 => fit(small(d)?, small(m)?, None),
        _ => None,
    }
}
