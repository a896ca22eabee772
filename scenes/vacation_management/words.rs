//! Reasons and dates in the user's language: `words.toml`, filled in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::Date;
use serde::Deserialize;

use proscenium::tools::ToolError;

type ByLanguage<T> = BTreeMap<String, T>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    dates: ByLanguage<String>,
    months: ByLanguage<Vec<String>>,
    refused: BTreeMap<String, ByLanguage<String>>,
    none: ByLanguage<String>,
    holidays: BTreeMap<String, ByLanguage<String>>,
}

/// A fault in the file is found by a test; here it only costs the sentences, never the rules.
static TEXTS: LazyLock<Texts> =
    LazyLock::new(|| toml::from_str(include_str!("words.toml")).unwrap_or_default());

/// The languages there are; English stands in for the rest.
pub const LANGUAGES: [&str; 5] = ["it", "en", "fr", "de", "es"];

/// The words of one language.
#[derive(Clone, Copy)]
pub struct Words {
    language: &'static str,
}

impl Words {
    /// In the language with this ISO 639-1 code, where there is one.
    pub fn of(language: Option<&str>) -> Self {
        let wanted = language.unwrap_or_default().to_ascii_lowercase();
        let known = LANGUAGES.into_iter().find(|known| wanted.split(['-', '_']).next() == Some(known));
        Self { language: known.unwrap_or("en") }
    }

    /// A refusal with the code `vacation.<reason>`.
    pub fn refused(self, reason: &str, fields: &[(&str, &str)]) -> ToolError {
        let text = TEXTS.refused.get(reason).and_then(|texts| texts.get(self.language));
        let message = text.map_or_else(|| reason.to_owned(), |text| filled(text, fields));
        ToolError::refused(&format!("vacation.{reason}"), message)
    }

    /// A day, such as "15 giugno 2026".
    pub fn day(self, date: Date) -> String {
        self.dated(&date.day().to_string(), date)
    }

    /// One day, or a range such as "15–17 giugno 2026".
    pub fn period(self, from: Date, to: Date) -> String {
        if from == to {
            self.day(from)
        } else if (from.year(), from.month()) == (to.year(), to.month()) {
            // German has its point after each of the two numbers.
            let point = if self.language == "de" { "." } else { "" };
            self.dated(&format!("{}{point}–{}", from.day(), to.day()), to)
        } else {
            format!("{} – {}", self.day(from), self.day(to))
        }
    }

    /// The name of the holiday with this key.
    pub fn holiday(self, key: &str) -> &'static str {
        let name = TEXTS.holidays.get(key).and_then(|names| names.get(self.language));
        name.map_or("", String::as_str)
    }

    /// What a list without anything says.
    pub fn none(self) -> &'static str {
        TEXTS.none.get(self.language).map_or("", String::as_str)
    }

    fn dated(self, day: &str, date: Date) -> String {
        let month = usize::try_from(date.month() - 1).unwrap_or_default();
        let month = TEXTS.months.get(self.language).and_then(|months| months.get(month));
        match (TEXTS.dates.get(self.language), month) {
            (Some(pattern), Some(month)) => {
                filled(pattern, &[("day", day), ("month", month), ("year", &date.year().to_string())])
            }
            _ => date.to_string(),
        }
    }
}

/// `text` with each `{name}` replaced, once: what is filled in is not read again.
fn filled(text: &str, fields: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            rest = after;
            break;
        };
        let value = fields.iter().find(|(field, _)| *field == name).map_or("?", |(_, value)| value);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names between braces, sorted.
    fn places(text: &str) -> Vec<&str> {
        let mut found: Vec<_> =
            text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_text_is_there_in_every_language_with_the_same_places_to_fill() {
        let texts: Texts = toml::from_str(include_str!("words.toml")).unwrap();
        let none = "none".to_owned();
        let all = texts
            .refused
            .iter()
            .chain(&texts.holidays)
            .chain([(&none, &texts.none)])
            .map(|(key, by_language)| (key.clone(), by_language.clone()))
            .chain([("dates".to_owned(), texts.dates.clone())]);
        for (key, by_language) in all {
            assert_eq!(by_language.len(), LANGUAGES.len(), "{key}");
            for language in LANGUAGES {
                assert_eq!(places(&by_language[language]), places(&by_language["en"]), "{key} {language}");
            }
        }
        for language in LANGUAGES {
            assert_eq!(texts.months[language].len(), 12, "{language}");
        }
    }

    #[test]
    fn days_and_ranges_are_written_as_the_language_does() {
        let (a, b, c): (Date, Date, Date) =
            ("2026-06-15".parse().unwrap(), "2026-06-17".parse().unwrap(), "2027-01-02".parse().unwrap());
        assert_eq!(Words::of(Some("it")).period(a, b), "15–17 giugno 2026");
        assert_eq!(Words::of(Some("de")).period(a, b), "15.–17. Juni 2026");
        assert_eq!(Words::of(Some("es")).period(a, a), "15 de junio de 2026");
        assert_eq!(Words::of(Some("en-GB")).period(b, c), "17 June 2026 – 2 January 2027");
        assert_eq!(Words::of(Some("xx")).day(a), "15 June 2026");
        assert_eq!(Words::of(None).day(a), "15 June 2026");
    }

    #[test]
    fn what_is_filled_in_is_not_read_again() {
        assert_eq!(filled("a {x} b {y}", &[("x", "{y}"), ("y", "1")]), "a {y} b 1");
    }
}
