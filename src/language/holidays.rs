//! The names of holidays and their days, in English, Italian, French, German, Spanish and Portuguese, without accents.
//!
//! Grounding reads them, too: a name that is added here changes which arguments of a recorded run have a source.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::dates::{DateReader, WrittenDate};
use super::text::Token;

/// Names, month and day. After the bar: names that are read since revision 17 of the rules.
const FIXED: &[(&str, i8, i8)] = &[
    ("christmas natale weihnachten noel navidad natal xmas |", 12, 25),
    ("vigilia | heiligabend nochebuena", 12, 24),
    ("epifania epiphany befana |", 1, 6),
    ("capodanno neujahr | neujahrstag", 1, 1),
    ("ferragosto |", 8, 15),
    ("valentine valentines valentino |", 2, 14),
    ("halloween |", 10, 31),
    ("ognissanti | allerheiligen toussaint", 11, 1),
    ("immacolata |", 12, 8),
    ("silvester | nochevieja saint-sylvestre", 12, 31),
];

const EASTER: &[&str] = &["easter", "pasqua", "ostern", "paques", "pascua", "pasquetta"];
/// Names for the Monday after Easter.
const EASTER_MONDAY: &[&str] = &["pasquetta", "ostermontag"];

/// Names that mean nothing but the day, wherever they stand.
const ONLY_DAYS: &[&str] = &[
    "saint-sylvestre", "ferragosto", "capodanno", "pasquetta", "ostermontag", "weihnachten", "heiligabend",
    "neujahr", "neujahrstag", "epifania", "halloween", "nochebuena", "nochevieja", "ognissanti",
    "allerheiligen", "xmas",
];
/// Names that are read as a day by the offline model only where the words around them say so: they are names of persons and
/// kinds of things, too.
const ALSO_OTHERS: &[&str] = &[
    "christmas", "natale", "noel", "navidad", "vigilia", "epiphany", "easter", "pasqua", "ostern", "paques",
    "pascua", "silvester",
];
/// Words before a holiday, besides words of grammar.
const LEADS: &[&str] = &[
    "eve", "giorno", "day", "until", "en", "em", "au", "zu", "zum", "an", "pour", "por", "para", "desde",
    "hasta", "between", "tra", "fra", "entre", "zwischen",
];
/// Words before "of" and a holiday.
const DAYS_OF: &[&str] =
    &["giorno", "day", "dia", "jour", "prima", "dopo", "antes", "despues", "partire", "lendemain", "veille"];
/// Words after which a verb or a question speaks about the holiday itself: "when is Christmas?"
const ABOUT: &[&str] = &["is", "was", "are", "ist", "est", "es", "fallt", "falls", "cade", "tombe", "cae"];
/// Words for a time around a holiday.
const AROUND: &[&str] = &[
    "week", "weeks", "holiday", "holidays", "break", "period", "time", "season", "vacation", "vacations",
    "settimana", "vacanze", "ferie", "feste", "festivita", "periodo", "woche", "ferien", "vacances",
    "semaine", "fetes", "semana", "vacaciones", "fiestas", "over", "during", "durante", "wahrend", "pendant",
];

static FIXED_BY_NAME: LazyLock<HashMap<&str, (i8, i8, bool)>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for (line, month, day) in FIXED {
        let (early, late) = line.split_once('|').unwrap_or((line, ""));
        names.extend(early.split_whitespace().map(|name| (name, (*month, *day, false))));
        names.extend(late.split_whitespace().map(|name| (name, (*month, *day, true))));
    }
    names
});

/// Month and day of a holiday by one word; `later`: also by those that are read since revision 17 of the rules.
pub(crate) fn fixed(norm: &str, later: bool) -> Option<(i8, i8)> {
    FIXED_BY_NAME.get(norm).filter(|(.., is_later)| later || !is_later).map(|(month, day, _)| (*month, *day))
}

/// Whether a word names Easter, and by how many days the day that it names is after Easter Sunday; `later` as for [`fixed`].
pub(crate) fn days_after_easter(norm: &str, next: Option<&str>, later: bool) -> Option<i64> {
    let is_monday = EASTER_MONDAY.contains(&norm) || next == Some("monday");
    (EASTER.contains(&norm) || later && EASTER_MONDAY.contains(&norm)).then_some(i64::from(is_monday))
}

/// Easter Sunday in the Gregorian calendar, by the anonymous algorithm of 1876 that Butcher and Meeus print.
pub(crate) fn easter(year: i16) -> Option<Date> {
    let y = i32::from(year);
    let (a, b, c) = (y % 19, y / 100, y % 100);
    let h = (19 * a + b - b / 4 - (b - (b + 8) / 25 + 1) / 3 + 15) % 30;
    let l = (32 + 2 * (b % 4) + 2 * (c / 4) - h - c % 4) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let sum = h + l - 7 * m + 114;
    Date::new(year, i8::try_from(sum / 31).ok()?, i8::try_from(sum % 31 + 1).ok()?).ok()
}

/// Days on which nobody works in some of the countries whose languages are read here, beside those of [`FIXED`]: the second days
/// of Christmas, and national ones.
const FREE: &[(i8, i8)] =
    &[(1, 6), (4, 25), (5, 1), (6, 2), (7, 14), (10, 3), (10, 12), (11, 2), (12, 6), (12, 26)];

/// Whether a day may be no working day: one of a weekend, or a holiday of some country.
pub(crate) fn may_be_free(date: Date) -> bool {
    let is = |month: i8, day: i8| (date.month(), date.day()) == (month, day);
    let around_easter = [-2_i64, 1, 39, 50, 60];
    let is_movable = easter(date.year()).is_some_and(|sunday| {
        around_easter.iter().any(|days| sunday.checked_add(days.days()).is_ok_and(|day| day == date))
    });
    matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
        || is_movable
        || FREE.iter().any(|(month, day)| is(*month, *day))
        || FIXED.iter().any(|(_, month, day)| is(*month, *day))
}

/// A holiday by its words.
enum Holiday {
    Fixed(i8, i8),
    /// So many days after Easter.
    Easter(i64),
}

impl DateReader<'_> {
    /// Parses a holiday at `i`: "a Natale", "on New Year's Day", "Easter Monday 2027". Not what is named after it, such as
    /// "Christmas tea", and not "when is Christmas?".
    pub(super) fn holiday(&self, i: usize) -> Option<(WrittenDate, usize)> {
        let (holiday, next) = self.holiday_name(i)?;
        let (year, next) = self.year(next);
        let said = match holiday {
            Holiday::Fixed(month, day) => WrittenDate::Parts { day, month: Some(month), year },
            Holiday::Easter(days) => {
                let day = |year: i16| easter(year)?.checked_add(days.days()).ok();
                let coming = || {
                    let this = self.today.year();
                    [this, this.saturating_add(1)]
                        .into_iter()
                        .filter_map(day)
                        .find(|date| *date >= self.today)
                };
                WrittenDate::Exact(match year {
                    Some(year) => day(year)?,
                    None => coming()?,
                })
            }
        };
        Some((said, next))
    }

    /// Whether the words from `i` on are a time around a holiday, such as "over Christmas", "le vacanze di Natale" or
    /// "Christmas week", and the index after them.
    pub(super) fn around_holiday(&self, i: usize) -> Option<usize> {
        if self.is(i, AROUND) {
            let lead = |at: usize| self.is(at, &["di", "de", "of", "the", "at", "le", "les", "zu", "an"]);
            let at = i + 1 + usize::from(lead(i + 1));
            return self.holiday_words(at).map(|(_, next)| next).filter(|next| self.ends_name(*next));
        }
        let (_, next) = self.holiday_words(i)?;
        self.is(next, AROUND).then_some(next + 1)
    }

    fn holiday_name(&self, i: usize) -> Option<(Holiday, usize)> {
        let (holiday, next) = self.holiday_words(i)?;
        let before = i.checked_sub(1).and_then(|at| self.tokens.get(at));
        // "Prima di Natale", but not "il numero 3 di Natale".
        let is_of = before.is_some_and(|t| t.is(&["di", "de", "of", "del"]));
        let is_linked = !is_of || i > 1 && self.is(i - 2, DAYS_OF);
        let is_led =
            is_linked && before.is_some_and(|t| super::lexicon::is_stop_word(&t.norm) || t.is(LEADS));
        let is_whole = next > i + 1 || self.is(i, ONLY_DAYS) || self.is(next, &["off", "frei", "libero"]);
        let is_subject = before.is_some_and(|t| t.is(ABOUT) || t.raw == "è" || t.raw == "È");
        ((is_whole || is_led) && !is_subject && self.ends_name(next)).then_some((holiday, next))
    }

    /// Whether nothing that is named after a holiday follows: "Christmas tea", "Natale Rossi".
    fn ends_name(&self, next: usize) -> bool {
        self.tokens.get(next).is_none_or(|t: &Token| {
            !t.word
                || super::lexicon::is_stop_word(&t.norm)
                || t.digit() && t.norm.len() == 4
                || t.is(&["off", "frei", "libero", "free", "libre"])
        })
    }

    /// The words of a holiday at `i`, whatever stands around them.
    fn holiday_words(&self, i: usize) -> Option<(Holiday, usize)> {
        let word = self.token_at(i)?.norm.as_str();
        let is = |at: usize, words: &[&str]| self.is(i + at, words);
        let possessive = usize::from(is(2, &["s"]));
        match word {
            "new" if is(1, &["year", "years"]) => {
                let at = 2 + possessive;
                let is_any = i
                    .checked_sub(1)
                    .is_some_and(|before| self.is(before, &["the", "a", "this", "next", "last"]));
                return match () {
                    () if is(at, &["eve"]) => Some((Holiday::Fixed(12, 31), i + at + 1)),
                    () if is(at, &["day"]) => Some((Holiday::Fixed(1, 1), i + at + 1)),
                    // "In the new year" is no day.
                    () => (!is_any).then_some((Holiday::Fixed(1, 1), i + at)),
                };
            }
            "boxing" if is(1, &["day"]) => return Some((Holiday::Fixed(12, 26), i + 2)),
            "santo" if is(1, &["stefano"]) => return Some((Holiday::Fixed(12, 26), i + 2)),
            "san" if is(1, &["silvestro"]) => return Some((Holiday::Fixed(12, 31), i + 2)),
            "san" if is(1, &["valentino"]) => return Some((Holiday::Fixed(2, 14), i + 2)),
            "saint" if is(1, &["valentin"]) => return Some((Holiday::Fixed(2, 14), i + 2)),
            "saint" if is(1, &["sylvestre"]) => return Some((Holiday::Fixed(12, 31), i + 2)),
            "valentine" | "valentines" => {
                let at = 1 + usize::from(is(1, &["s"]));
                return is(at, &["day"]).then_some((Holiday::Fixed(2, 14), i + at + 1));
            }
            "nouvel" if is(1, &["an"]) => return Some((Holiday::Fixed(1, 1), i + 2)),
            "ano" if is(1, &["nuevo"]) => return Some((Holiday::Fixed(1, 1), i + 2)),
            "vigilia" | "veille" if is(1, &["di", "de"]) && is(2, &["natale", "noel"]) => {
                return Some((Holiday::Fixed(12, 24), i + 3));
            }
            "vigilia" | "veille" if is(1, &["di", "de"]) && is(2, &["capodanno"]) => {
                return Some((Holiday::Fixed(12, 31), i + 3));
            }
            _ => {}
        }
        if !(ONLY_DAYS.contains(&word) || ALSO_OTHERS.contains(&word)) {
            return None;
        }
        let next = self.token_at(i + 1).map(|t| t.norm.as_str());
        if let Some(days) = days_after_easter(word, next, true) {
            let is_named = next.is_some_and(|word| ["monday", "sunday"].contains(&word));
            return Some((Holiday::Easter(days), i + 1 + usize::from(is_named)));
        }
        let (month, day) = fixed(word, true)?;
        match next {
            Some("eve") if day > 1 => Some((Holiday::Fixed(month, day - 1), i + 2)),
            Some("day") => Some((Holiday::Fixed(month, day), i + 2)),
            _ => Some((Holiday::Fixed(month, day), i + 1)),
        }
    }
}
