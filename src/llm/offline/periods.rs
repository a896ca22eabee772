//! Times in a request that are no day, such as "in May", "this week" or "around 15 December".

use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::date_expression::DateExpression;
use super::dates::{self, RangeRole};
use super::schema::{ArgumentField, ArgumentKind};
use super::source::SourceText;
use crate::language::calendar_words::{MONTH, WEEK};

/// A time that is no day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    /// A month by its name, from 1.
    Named(i8),
    /// The month so many months after the present one.
    Month(i64),
    /// The present week.
    ThisWeek,
    /// Any other: its days are not known.
    Other,
}

/// Words before a month or a season that is no exact day: "in May", "next summer".
const LEADS: &[&str] = &[
    "in", "a", "ad", "di", "en", "im", "em", "de", "this", "next", "last", "for", "during", "per", "questo",
    "questa", "prossimo", "prossima", "scorso", "scorsa", "cet", "cette", "este", "esta", "d", "nel", "nell",
    "durante", "diesen", "nachsten", "the", "il", "l",
];
const SEASONS: &[&str] = &[
    "summer", "winter", "autumn", "spring", "estate", "inverno", "autunno", "primavera", "sommer", "herbst",
    "fruhling", "hiver", "automne", "printemps", "verano", "invierno", "otono",
];
const THIS: &[&str] =
    &["this", "questa", "questo", "diese", "diesen", "dieser", "diesem", "cette", "ce", "esta", "este"];
const NEXT: &[&str] = &["next", "prossimo", "nachsten", "nachster", "prochain", "proximo"];
const LAST: &[&str] = &["last", "scorso", "letzten", "letzter", "dernier", "pasado"];

impl Period {
    /// Its first and last day. Of months by their names, the last one that has begun if it is `in_past`, or the next one that
    /// has not ended.
    pub fn days(self, today: Date, in_past: bool) -> Option<(Date, Date)> {
        let this = today.first_of_month();
        let first = match self {
            Self::Other => return None,
            Self::ThisWeek => {
                let monday = today.saturating_sub(i64::from(today.weekday().to_monday_zero_offset()).days());
                return Some((monday, monday.saturating_add(6.days())));
            }
            Self::Month(ahead) => this.saturating_add(ahead.months()),
            Self::Named(month) => {
                let years = i64::from(in_past && month > today.month());
                let years = if !in_past && month < today.month() { -1 } else { years };
                let back = i64::from(today.month()) - i64::from(month) + years * 12;
                this.saturating_sub(back.months())
            }
        };
        Some((first, first.last_of_month()))
    }
}

/// The time that the text speaks of if it names no day. `used`: by token, whether a value contains it.
pub(super) fn unread_time(source: &SourceText, used: &[bool]) -> Option<Period> {
    if !source.found.days.is_empty() {
        return None;
    }
    let is_free = |i: usize| {
        let flag = |flags: &[bool]| flags.get(i).copied().unwrap_or_default();
        !flag(used) && !flag(&source.found.quoted)
    };
    let is_unclear = |e: &DateExpression| e.days.is_empty() && is_free(e.last);
    if source.found.date_expressions.iter().any(is_unclear) {
        return Some(Period::Other);
    }
    (0..source.tokens.len()).filter(|i| is_free(*i)).find_map(|i| period_at(source, i))
}

fn period_at(source: &SourceText, i: usize) -> Option<Period> {
    let before = |words: &[&str]| i > 0 && source.is(i - 1, words);
    let beside = |words: &[&str]| before(words) || source.is(i + 1, words);
    let month = source.tokens.get(i).and_then(|t| dates::month(&t.norm));
    match () {
        () if before(LEADS) && month.is_some() => month.map(Period::Named),
        () if before(LEADS) && source.is(i, SEASONS) => Some(Period::Other),
        () if source.is(i, WEEK) && beside(THIS) => Some(Period::ThisWeek),
        () if source.is(i, MONTH) && beside(THIS) => Some(Period::Month(0)),
        () if source.is(i, MONTH) && beside(NEXT) => Some(Period::Month(1)),
        () if source.is(i, MONTH) && beside(LAST) => Some(Period::Month(-1)),
        () => None,
    }
}

/// Whether the text speaks of the past: "did we sell", "abbiamo venduto", "haben wir … verkauft".
pub(super) fn is_about_past(source: &SourceText) -> bool {
    let words: Vec<&str> = source.tokens.iter().filter(|t| t.word).map(|t| t.norm.as_str()).collect();
    let ends = |word: &str, ends: &[&str]| word.len() > 3 && ends.iter().any(|end| word.ends_with(end));
    let perfect = words.windows(2).any(|pair| match pair[0] {
        "ho" | "hai" | "ha" | "abbiamo" | "avete" | "hanno" | "hemos" | "han" | "has" => {
            ends(pair[1], &["ato", "uto", "ito", "sto", "tto", "eso", "rso", "ado", "ido", "cho"])
        }
        "ai" | "as" | "avons" | "avez" | "ont" => ends(pair[1], &["e", "u", "i", "is", "it"]),
        _ => false,
    });
    let german = words.iter().any(|word| ["haben", "habe", "hast", "hat", "habt"].contains(word))
        && words.last().is_some_and(|word| ends(word, &["t"]));
    perfect
        || german
        || words.iter().any(|word| ["did", "was", "were", "war", "waren", "wurde", "wurden"].contains(word))
}

/// Fills the first and the last day into the arguments for both ends. Returns whether there are such arguments.
pub(super) fn fill(
    fields: &[&ArgumentField],
    days: Option<(Date, Date)>,
    values: &mut Map<String, Value>,
) -> bool {
    let end = |role: RangeRole| fields.iter().find(|f| f.kind == ArgumentKind::Date && f.role == role);
    let (Some((first, last)), Some(from), Some(to)) = (days, end(RangeRole::From), end(RangeRole::To)) else {
        return false;
    };
    values.insert(from.name.clone(), json!(first.to_string()));
    values.insert(to.name.clone(), json!(last.to_string()));
    true
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn perfect_tenses_are_about_the_past() {
        let now = date(2026, 11, 27).at(9, 0, 0, 0).in_tz("Europe/Rome").unwrap();
        let about_past = |text: &str| is_about_past(&SourceText::new(text, &now));
        for text in [
            "What did we sell in May?",
            "Cosa abbiamo venduto a maggio?",
            "Was haben wir im Mai verkauft?",
            "Qu'avons-nous vendu en mai ? Nous avons vendu",
            "¿Qué hemos vendido en mayo?",
        ] {
            assert!(about_past(text), "{text}");
        }
        for text in
            ["Che riunioni ho a maggio?", "Welche Termine haben wir im Mai?", "Which meetings are in May?"]
        {
            assert!(!about_past(text), "{text}");
        }
    }

    #[test]
    fn months_by_name_are_the_last_or_the_next_ones() {
        let today = date(2026, 11, 27);
        let first = |month: i8, in_past: bool| Period::Named(month).days(today, in_past).map(|days| days.0);
        assert_eq!(first(5, true), Some(date(2026, 5, 1)));
        assert_eq!(first(5, false), Some(date(2027, 5, 1)));
        assert_eq!(first(12, true), Some(date(2025, 12, 1)));
        assert_eq!(first(12, false), Some(date(2026, 12, 1)));
        assert_eq!((first(11, true), first(11, false)), (Some(date(2026, 11, 1)), Some(date(2026, 11, 1))));
        assert_eq!(Period::Month(-1).days(today, false), Some((date(2026, 10, 1), date(2026, 10, 31))));
        assert_eq!(Period::ThisWeek.days(today, false), Some((date(2026, 11, 23), date(2026, 11, 29))));
    }
}
