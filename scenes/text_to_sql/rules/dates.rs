//! Dates in words: half-open ranges of days, by the day on which the question is asked.

use jiff::ToSpan;
use jiff::civil::{Date, date};

use super::Tongue;
use super::tokens::Token;

/// Days from `from` up to, not including, `to`; either side may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    /// The first day.
    pub from: Option<Date>,
    /// The day after the last.
    pub to: Option<Date>,
    /// What it says if it is about a number that is a year.
    pub year: Option<YearTest>,
    /// Whether a preposition stood before it.
    pub led: bool,
    /// Whether it depends on today.
    pub guessed: bool,
}

/// A comparison with a year as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YearTest {
    /// That year.
    Is(i16),
    /// Before it.
    Before(i16),
    /// After it.
    After(i16),
    /// It or later.
    Since(i16),
    /// It or earlier.
    Until(i16),
    /// From one to the other, both included.
    Between(i16, i16),
}

/// What stands at a place in the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A range, and the number of words.
    Days(Days, usize),
    /// A date that can be read in two ways, as written.
    Unclear(String),
}

/// How a preposition bounds what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    In,
    Since,
    After,
    Before,
    Until,
    Between,
    FromTo,
}

/// A period: its first day, the day after it, and its year if it is one.
#[derive(Clone, Copy)]
struct Span {
    from: Date,
    to: Date,
    year: Option<i16>,
    len: usize,
    guessed: bool,
    /// Whether it is the start of a longer period: a bound, but no day.
    start: bool,
}

const ENGLISH_BOUNDS: &[(&str, Bound)] = &[
    ("in the course of", Bound::In),
    ("in the month of", Bound::In),
    ("in the year", Bound::In),
    ("over the", Bound::In),
    ("in the", Bound::In),
    ("within the", Bound::In),
    ("during the", Bound::In),
    ("during", Bound::In),
    ("dated", Bound::In),
    ("in", Bound::In),
    ("on the", Bound::In),
    ("on", Bound::In),
    ("of the", Bound::In),
    ("of", Bound::In),
    ("for", Bound::In),
    ("from", Bound::FromTo),
    ("from the", Bound::FromTo),
    ("since", Bound::Since),
    ("starting from", Bound::Since),
    ("on or after", Bound::Since),
    ("no earlier than", Bound::Since),
    ("later than", Bound::After),
    ("after", Bound::After),
    ("earlier than", Bound::Before),
    ("prior to", Bound::Before),
    ("before", Bound::Before),
    ("on or before", Bound::Until),
    ("no later than", Bound::Until),
    ("up to", Bound::Until),
    ("until", Bound::Until),
    ("till", Bound::Until),
    ("between", Bound::Between),
];

const ITALIAN_BOUNDS: &[(&str, Bound)] = &[
    ("nel corso del", Bound::In),
    ("nel corso dell", Bound::In),
    ("nel mese di", Bound::In),
    ("del mese di", Bound::In),
    ("nell anno", Bound::In),
    ("nel", Bound::In),
    ("nell", Bound::In),
    ("nella", Bound::In),
    ("nello", Bound::In),
    ("negli", Bound::In),
    ("nelle", Bound::In),
    ("nei", Bound::In),
    ("in", Bound::In),
    ("a", Bound::In),
    ("ad", Bound::In),
    ("di", Bound::In),
    ("del", Bound::In),
    ("dell", Bound::In),
    ("della", Bound::In),
    ("dello", Bound::In),
    ("degli", Bound::In),
    ("dei", Bound::In),
    ("delle", Bound::In),
    ("il", Bound::In),
    ("l", Bound::In),
    ("lo", Bound::In),
    ("durante", Bound::In),
    ("durante il", Bound::In),
    ("da", Bound::FromTo),
    ("dal", Bound::FromTo),
    ("dalla", Bound::FromTo),
    ("dagli", Bound::FromTo),
    ("alla", Bound::In),
    ("all", Bound::In),
    ("dall", Bound::FromTo),
    ("dallo", Bound::FromTo),
    ("a partire da", Bound::Since),
    ("a partire dal", Bound::Since),
    ("dopo", Bound::After),
    ("dopo il", Bound::After),
    ("dopo l", Bound::After),
    ("successivi al", Bound::After),
    ("prima di", Bound::Before),
    ("prima del", Bound::Before),
    ("prima dell", Bound::Before),
    ("precedenti al", Bound::Before),
    ("fino a", Bound::Until),
    ("fino al", Bound::Until),
    ("entro", Bound::Until),
    ("entro il", Bound::Until),
    ("tra", Bound::Between),
    ("fra", Bound::Between),
    ("tra il", Bound::Between),
    ("fra il", Bound::Between),
    ("compresi tra", Bound::Between),
];

const MONTHS: [(&str, &str); 12] = [
    ("january", "gennaio"),
    ("february", "febbraio"),
    ("march", "marzo"),
    ("april", "aprile"),
    ("may", "maggio"),
    ("june", "giugno"),
    ("july", "luglio"),
    ("august", "agosto"),
    ("september", "settembre"),
    ("october", "ottobre"),
    ("november", "novembre"),
    ("december", "dicembre"),
];

/// A day in the question's language, from today's point of view.
#[derive(Clone, Copy)]
pub struct Calendar {
    /// The day on which it is asked.
    pub today: Date,
    /// The language of the question.
    pub tongue: Tongue,
}

impl Calendar {
    /// The date phrase that starts at the first of these words, with its preposition.
    pub fn phrase(self, words: &[Token]) -> Option<Found> {
        if let Some(found) = self.ago(words) {
            return Some(found);
        }
        let bounds = if self.tongue == Tongue::Italian { ITALIAN_BOUNDS } else { ENGLISH_BOUNDS };
        let mut led: Vec<(usize, Bound)> = bounds
            .iter()
            .filter(|(phrase, _)| begins(words, phrase))
            .map(|(phrase, bound)| (phrase.split(' ').count(), *bound))
            .collect();
        led.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
        for (len, bound) in led {
            let rest = words.get(len..).unwrap_or_default();
            // "In the last year" may be twelve months or the year before this one.
            let text = |at: usize| rest.get(at).map_or("", |word| word.text.as_str());
            let article = words.get(len - 1).is_some_and(|word| word.text == "the");
            if article && matches!(text(0), "last" | "past") && self.unit(text(1), 0).is_some() {
                let said: Vec<&str> = words.iter().take(len + 2).map(|word| word.written.as_str()).collect();
                return Some(Found::Unclear(said.join(" ")));
            }
            if let Some(found) = self.bounded(bound, rest) {
                return Some(match found {
                    Found::Days(days, more) => Found::Days(Days { led: true, ..days }, len + more),
                    unclear @ Found::Unclear(_) => unclear,
                });
            }
        }
        self.bounded(Bound::In, words)
    }

    fn bounded(self, bound: Bound, words: &[Token]) -> Option<Found> {
        if let Some(found) = self.days_of_month(bound, words) {
            return Some(found);
        }
        let first = match self.period(words)? {
            Ok(span) => span,
            Err(unclear) => return Some(Found::Unclear(unclear)),
        };
        // "At the start of 2026" is not its first day.
        if first.start && bound == Bound::In {
            let said: Vec<&str> = words.iter().take(first.len).map(|word| word.written.as_str()).collect();
            return Some(Found::Unclear(said.join(" ")));
        }
        let days = |from, to, year| {
            Found::Days(Days { from, to, year, led: false, guessed: first.guessed }, first.len)
        };
        let test = |test: fn(i16) -> YearTest| first.year.map(test);
        Some(match bound {
            Bound::In => days(Some(first.from), Some(first.to), test(YearTest::Is)),
            Bound::Since => days(Some(first.from), None, test(YearTest::Since)),
            Bound::After => days(Some(first.to), None, test(YearTest::After)),
            Bound::Before => days(None, Some(first.from), test(YearTest::Before)),
            Bound::Until => days(None, Some(first.to), test(YearTest::Until)),
            Bound::Between => return self.pair(first, words, &["and", "e", "ed"]),
            Bound::FromTo => {
                let to: &[&str] = &["to", "until", "till", "through", "al", "a", "all", "fino"];
                let pair = self.pair(first, words, to);
                let onwards = [&["onwards"][..], &["onward"], &["on"], &["in", "poi"]];
                let follows = |tail: &&&[&str]| {
                    tail.iter()
                        .enumerate()
                        .all(|(at, part)| words.get(first.len + at).is_some_and(|word| word.text == *part))
                };
                let since = days(Some(first.from), None, test(YearTest::Since));
                let alone = if let Some(tail) = onwards.iter().find(follows) {
                    match since {
                        Found::Days(days, len) => Found::Days(days, len + tail.len()),
                        unclear @ Found::Unclear(_) => unclear,
                    }
                } else if self.tongue == Tongue::Italian || first.start {
                    since
                } else {
                    days(Some(first.from), Some(first.to), test(YearTest::Is))
                };
                return Some(pair.unwrap_or(alone));
            }
        })
    }

    /// The end of a range whose start was read.
    fn pair(self, first: Span, words: &[Token], joints: &[&str]) -> Option<Found> {
        let rest = words.get(first.len..)?;
        rest.first().filter(|word| joints.contains(&word.text.as_str()))?;
        let skip = 1 + rest
            .iter()
            .skip(1)
            .take_while(|word| ["the", "il", "al", "l"].contains(&&*word.text))
            .count();
        let second = match self.period(rest.get(skip..)?)? {
            Ok(span) => span,
            Err(unclear) => return Some(Found::Unclear(unclear)),
        };
        // "between March and May 2025": the year stands once, at the end.
        let mut from = first.from;
        if first.year.is_none() && first.len == 1 && second.from.year() != from.year() && second.len > 1 {
            from = date(second.from.year(), from.month(), from.day());
        }
        let year = first.year.zip(second.year).map(|(from, to)| YearTest::Between(from, to));
        let guessed = second.guessed;
        let days = Days { from: Some(from), to: Some(second.to), year, led: false, guessed };
        (from < second.to).then_some(Found::Days(days, first.len + skip + second.len))
    }

    /// "between 1 and 15 October 2026", "dal 1 al 15 ottobre 2026"
    fn days_of_month(self, bound: Bound, words: &[Token]) -> Option<Found> {
        if !matches!(bound, Bound::Between | Bound::FromTo) {
            return None;
        }
        let mut at = 0;
        skip(words, &mut at, &["l", "il", "the"]);
        let first = day_number(words, &mut at)?;
        let joint = words.get(at)?.text.as_str();
        if !matches!(joint, "and" | "e" | "to" | "al" | "all" | "a" | "until") {
            return None;
        }
        at += 1;
        skip(words, &mut at, &["l", "il", "the"]);
        match self.month_and_day(words.get(at..)?)? {
            Ok(last) => {
                let from = Date::new(last.from.year(), last.from.month(), first).ok()?;
                let (from, to) = (Some(from), Some(last.to));
                let days = Days { from, to, year: None, led: false, guessed: last.guessed };
                (last.from.tomorrow().ok() == to).then_some(Found::Days(days, at + last.len))
            }
            Err(unclear) => Some(Found::Unclear(unclear)),
        }
    }

    /// "the 1990s", "anni 90"
    fn decade(words: &[Token]) -> Option<Span> {
        let mut at = 0;
        skip(words, &mut at, &["the", "gli"]);
        let text = words.get(at)?.text.as_str();
        let (year, len) = if text == "anni" {
            at += 1;
            skip(words, &mut at, &["'", "’"]);
            let two: i16 = words.get(at)?.text.parse().ok().filter(|two| *two % 10 == 0)?;
            (if two < 100 { 1900 + two } else { two }, at + 1)
        } else {
            (text.strip_suffix('s')?.parse().ok()?, at + 1)
        };
        (1900..=2090).contains(&year).then_some(())?;
        let (from, to) = (date(year, 1, 1), date(year + 10, 1, 1));
        (year % 10 == 0).then_some(Span { from, to, year: None, len, guessed: false, start: false })
    }

    /// "more than 10 years ago", "meno di 2 anni fa", "3 days ago"
    fn ago(self, words: &[Token]) -> Option<Found> {
        let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
        let (sign, start) = match (text(0), text(1)) {
            ("more", "than") | ("piu", "di") => (1, 2),
            ("over", _) | ("oltre", _) => (1, 1),
            ("less", "than") | ("meno", "di") => (-1, 2),
            _ => (0, 0),
        };
        let one = matches!(text(start), "a" | "an" | "un" | "one");
        let amount = text(start).parse().ok().or_else(|| super::numbers::in_words(text(start), self.tongue));
        let amount: i64 = amount.or(one.then_some(1)).filter(|amount| (1..=1_000).contains(amount))?;
        let day = self.back(amount, text(start + 1))?;
        matches!(text(start + 2), "ago" | "fa").then_some(())?;
        let (from, to) = match sign {
            1 => (None, Some(day)),
            -1 => (Some(day), self.today.tomorrow().ok()),
            _ if matches!(text(start + 1), "day" | "days" | "giorno" | "giorni") => {
                (Some(day), day.tomorrow().ok())
            }
            _ => return None,
        };
        Some(Found::Days(Days { from, to, year: None, led: false, guessed: true }, start + 3))
    }

    fn period(self, words: &[Token]) -> Option<Result<Span, String>> {
        if words.first()?.quoted {
            return None;
        }
        if let Some(span) = Self::decade(words) {
            return Some(Ok(span));
        }
        // "the start of 2026" is its first day.
        let starts: [&[&str]; 6] = [
            &["the", "beginning", "of"],
            &["the", "start", "of"],
            &["inizio", "del"],
            &["l", "inizio", "del"],
            &["inizio", "di"],
            &["inizio"],
        ];
        let follows = |start: &&&[&str]| {
            start.iter().enumerate().all(|(at, part)| words.get(at).is_some_and(|word| word.text == **part))
        };
        if let Some(start) = starts.iter().find(follows) {
            let mut rest = start.len();
            skip(words, &mut rest, &["the", "l", "il"]);
            return self.period(words.get(rest..)?).map(|found| {
                found.and_then(|span| {
                    let to = span.from.tomorrow().map_err(|error| error.to_string())?;
                    Ok(Span { to, year: None, len: span.len + rest, start: true, ..span })
                })
            });
        }
        self.written_date(words)
            .or_else(|| self.month_and_day(words))
            .or_else(|| self.part_of_year(words).map(Ok))
            .or_else(|| self.relative(words).map(Ok))
            .or_else(|| year_number(words).map(Ok))
    }

    /// `2026-03-05`, `2026-03`, `5/3/2026`.
    fn written_date(self, words: &[Token]) -> Option<Result<Span, String>> {
        let text = &words.first()?.text;
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        let number = |at: usize| parts.get(at).and_then(|part| part.parse::<i16>().ok());
        let widths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        match widths.as_slice() {
            [4, 2] if text.contains('-') => {
                let from = Date::new(number(0)?, i8::try_from(number(1)?).ok()?, 1).ok()?;
                Some(Ok(Span {
                    from,
                    to: from.checked_add(1.month()).ok()?,
                    year: None,
                    len: 1,
                    guessed: false,
                    start: false,
                }))
            }
            [4, 2, 2] => {
                let (month, day) = (i8::try_from(number(1)?).ok()?, i8::try_from(number(2)?).ok()?);
                day_span(Date::new(number(0)?, month, day).ok()?, 1).map(Ok)
            }
            [1 | 2, 1 | 2, 4] => {
                let (first, second, year) = (number(0)?, number(1)?, number(2)?);
                let unclear =
                    self.tongue == Tongue::English && first <= 12 && second <= 12 && first != second;
                if unclear {
                    return Some(Err(text.clone()));
                }
                let (day, month) = if second > 12 { (second, first) } else { (first, second) };
                let day = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
                day_span(day, 1).map(Ok)
            }
            _ => None,
        }
    }

    /// `5 March 2026`, `March 5th, 2026`, `March 2026`, `March`, `1° marzo`.
    fn month_and_day(self, words: &[Token]) -> Option<Result<Span, String>> {
        let mut at = 0;
        let mut day = day_number(words, &mut at);
        if day.is_some() {
            skip(words, &mut at, &["of", "di"]);
        }
        let month = self.month(words.get(at)?)?;
        at += 1;
        if day.is_none() && self.tongue == Tongue::English {
            let mut after = at;
            skip(words, &mut after, &["the"]);
            day = day_number(words, &mut after);
            if day.is_some() {
                at = after;
            }
        }
        let mut after = at;
        skip(words, &mut after, &[",", "of", "del", "dell", "anno", "in"]);
        let mut year = words.get(after).and_then(plain_year);
        let mut year_len = 1;
        if year.is_none() && after > at {
            let relative =
                words.get(after..).and_then(|rest| self.relative(rest)).filter(|span| span.year.is_some());
            (year, year_len) = relative.map_or((None, 1), |span| (span.year, span.len));
        }
        if year.is_some() {
            at = after + year_len;
        } else if day.is_none()
            && words.first().is_some_and(|word| word.text == "may" && word.written == "may")
        {
            // "may" the verb.
            return None;
        }
        let day_of_month = day.unwrap_or(1);
        let guess = || {
            let this_year = Date::new(self.today.year(), month, day_of_month).ok()?;
            (this_year <= self.today).then_some(this_year)
        };
        let from = match year {
            Some(year) => Date::new(year, month, day_of_month).ok()?,
            None => match guess() {
                Some(from) => from,
                None => {
                    let said: Vec<&str> = words.iter().take(at).map(|word| word.written.as_str()).collect();
                    return Some(Err(said.join(" ")));
                }
            },
        };
        let length = if day.is_some() { 1.day() } else { 1.month() };
        let guessed = year.is_none();
        Some(Ok(Span {
            from,
            to: from.checked_add(length).ok()?,
            year: None,
            len: at,
            guessed,
            start: false,
        }))
    }

    fn month(self, word: &Token) -> Option<i8> {
        let name = |(english, italian): &(&'static str, &'static str)| match self.tongue {
            Tongue::English => *english,
            Tongue::Italian => *italian,
        };
        let is = |month: &(&'static str, &'static str)| {
            let short =
                self.tongue == Tongue::English && word.text.len() == 3 && name(month).starts_with(&word.text);
            !word.quoted && (name(month) == word.text || short && word.text != "may")
        };
        MONTHS.iter().position(is).and_then(|at| i8::try_from(at + 1).ok())
    }

    /// `Q1 2026`, `first quarter of 2026`, `primo trimestre 2026`, `second half of 2025`.
    fn part_of_year(self, words: &[Token]) -> Option<Span> {
        let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
        let (number, months, mut at) = match (text(0), text(1)) {
            ("q1", _) => (0, 3, 1),
            ("q2", _) => (1, 3, 1),
            ("q3", _) => (2, 3, 1),
            ("q4", _) => (3, 3, 1),
            (nth, "quarter" | "trimestre") => (ordinal(nth)?, 3, 2),
            (nth @ ("first" | "second" | "prima" | "seconda"), "half" | "meta") => (ordinal(nth)?, 6, 2),
            (nth @ ("primo" | "secondo"), "semestre") => (ordinal(nth)?, 6, 2),
            _ => return None,
        };
        skip(words, &mut at, &["of", "del", "dell", "anno", "in", "the", "year", "nel", ","]);
        let year = plain_year(words.get(at)?)?;
        let from = date(year, 1, 1).checked_add((i64::from(number) * months).months()).ok()?;
        (number < 12 / i8::try_from(months).ok()?).then_some(())?;
        Some(Span {
            from,
            to: from.checked_add(months.months()).ok()?,
            year: None,
            len: at + 1,
            guessed: false,
            start: false,
        })
    }

    fn relative(self, words: &[Token]) -> Option<Span> {
        let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
        let day = |days: i64| {
            let span = day_span(self.today.checked_add(days.days()).ok()?, 1)?;
            Some(Span { guessed: true, ..span })
        };
        match text(0) {
            "today" | "oggi" => return day(0),
            "yesterday" | "ieri" => return day(-1),
            "tomorrow" | "domani" => return day(1),
            _ => {}
        }
        let shift = |word: &str| match word {
            "this" | "current" | "questo" | "questa" | "quest" | "corrente" => Some(0),
            "last" | "previous" | "scorso" | "scorsa" | "passato" | "passata" => Some(-1),
            "next" | "prossimo" | "prossima" => Some(1),
            _ => None,
        };
        if let Some((amount, len)) = last_so_many(words, self.tongue)
            && let Some(from) = self.back(amount, text(len))
        {
            return Some(Span {
                from,
                to: self.today.checked_add(1.day()).ok()?,
                year: None,
                len: len + 1,
                guessed: true,
                start: false,
            });
        }
        // "this month"; in Italian also "mese scorso".
        if let Some(by) = shift(text(0))
            && let Some(span) = self.unit(text(1), by)
        {
            return Some(Span { len: 2, guessed: true, ..span });
        }
        let by = shift(text(1)).filter(|_| self.tongue == Tongue::Italian)?;
        self.unit(text(0), by).map(|span| Span { len: 2, guessed: true, ..span })
    }

    /// Today less so many units.
    fn back(self, amount: i64, unit: &str) -> Option<Date> {
        let span = match unit {
            "day" | "days" | "giorno" | "giorni" => amount.days(),
            "week" | "weeks" | "settimana" | "settimane" => amount.weeks(),
            "month" | "months" | "mese" | "mesi" => amount.months(),
            "year" | "years" | "anno" | "anni" => amount.years(),
            _ => return None,
        };
        self.today.checked_sub(span).ok()
    }

    /// The week, month, quarter or year with today, moved by some.
    fn unit(self, unit: &str, by: i64) -> Option<Span> {
        let today = self.today;
        let first = date(today.year(), today.month(), 1);
        let (from, length) = match unit {
            "week" | "settimana" => {
                let since_monday = i64::from(today.weekday().to_monday_zero_offset());
                (today.checked_sub(since_monday.days()).ok()?, 1.week())
            }
            "month" | "mese" => (first, 1.month()),
            "quarter" | "trimestre" => {
                let month = (today.month() - 1) / 3 * 3 + 1;
                (date(today.year(), month, 1), 3.months())
            }
            "year" | "anno" => (date(today.year(), 1, 1), 1.year()),
            _ => return None,
        };
        let from = from.checked_add(length.checked_mul(by).ok()?).ok()?;
        let year = matches!(unit, "year" | "anno").then_some(from.year());
        Some(Span { from, to: from.checked_add(length).ok()?, year, len: 1, guessed: false, start: false })
    }
}

fn day_span(day: Date, len: usize) -> Option<Span> {
    Some(Span { from: day, to: day.tomorrow().ok()?, year: None, len, guessed: false, start: false })
}

/// `last 30 days`, `ultimi tre mesi`: how many, and the place of the unit.
fn last_so_many(words: &[Token], tongue: Tongue) -> Option<(i64, usize)> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let is_last =
        |word: &str| matches!(word, "last" | "past" | "previous" | "ultimi" | "ultime" | "scorsi" | "scorse");
    is_last(text(0)).then_some(())?;
    let amount = text(1).parse().ok().or_else(|| super::numbers::in_words(text(1), tongue))?;
    (1..=1_000).contains(&amount).then_some((amount, 2))
}

fn year_number(words: &[Token]) -> Option<Span> {
    let mut at = 0;
    skip(words, &mut at, &["year", "anno"]);
    let year = plain_year(words.get(at)?)?;
    Some(Span {
        from: date(year, 1, 1),
        to: date(year + 1, 1, 1),
        year: Some(year),
        len: at + 1,
        guessed: false,
        start: false,
    })
}

fn plain_year(word: &Token) -> Option<i16> {
    let year = word.text.parse().ok().filter(|_| word.text.len() == 4 && !word.quoted)?;
    (1900..=2100).contains(&year).then_some(year)
}

fn day_number(words: &[Token], at: &mut usize) -> Option<i8> {
    let text = &words.get(*at)?.text;
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|tail| text.strip_suffix(tail)).unwrap_or(text);
    let day = if text == "primo" { 1 } else { digits.parse().ok()? };
    if !(1..=31).contains(&day) {
        return None;
    }
    *at += 1;
    skip(words, at, &["°", "º"]);
    Some(day)
}

fn ordinal(word: &str) -> Option<i8> {
    Some(match word {
        "first" | "primo" | "prima" | "1st" => 0,
        "second" | "secondo" | "seconda" | "2nd" => 1,
        "third" | "terzo" | "3rd" => 2,
        "fourth" | "quarto" | "4th" => 3,
        _ => return None,
    })
}

fn skip(words: &[Token], at: &mut usize, these: &[&str]) {
    while words.get(*at).is_some_and(|word| these.contains(&word.text.as_str())) {
        *at += 1;
    }
}

fn begins(words: &[Token], phrase: &str) -> bool {
    phrase
        .split(' ')
        .enumerate()
        .all(|(at, part)| words.get(at).is_some_and(|word| word.text == part && !word.quoted))
}
