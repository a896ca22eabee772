//! Values that people said exactly as a call contains them: the frequent case, which needs no reading of words, days
//! and times.
//!
//! **Invariant:** whatever is found here, reading would find as well. The reverse does not hold.

use std::borrow::Cow;

use super::OTHER_IN_ENGLISH;

/// Maximum number of bytes of texts that are searched. Reading is bounded, too, and reads more than these.
const MAX_BYTES: usize = 16 * 1024;

/// The words of people, as they wrote them.
#[derive(Debug)]
pub(super) struct LiteralTexts<'a> {
    /// The texts.
    pub texts: &'a [Cow<'a, str>],
    /// Their language.
    pub language: Option<&'a str>,
}

impl LiteralTexts<'_> {
    /// The first texts, up to [`MAX_BYTES`].
    fn searched(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().scan(0, |bytes, text| {
            *bytes += text.len();
            (*bytes <= MAX_BYTES).then_some(text.as_ref())
        })
    }

    /// Returns whether the value stands in a text, not as part of a longer word. Then `Vocabulary::has` has it as well.
    pub fn has(&self, value: &str) -> bool {
        let bytes = value.as_bytes();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
        if !value.is_ascii() || !first.is_ascii_alphanumeric() || !last.is_ascii_alphanumeric() {
            return false;
        }
        let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
        let is_special = |word: &str| OTHER_IN_ENGLISH.iter().any(|other| word.eq_ignore_ascii_case(other));
        if self.language == Some("en") && words.any(is_special) {
            return false;
        }
        self.searched().any(|text| contains_between_ascii_marks(text.as_bytes(), bytes))
    }

    /// Returns whether the number stands in a text as a quantity. Then `MentionedNumbers::supports` is true of it as well.
    pub fn has_number(&self, value: f64) -> bool {
        // A shorter number may be a part of a date, one up to 2400 a year or a time ("at 1830"), and a longer one a date.
        let is_quantity = (100.0..1000.0).contains(&value) || (2400.0..10_000_000.0).contains(&value);
        if !is_quantity || value.fract() != 0.0 {
            return false;
        }
        let digits = (value as u32).to_string();
        self.searched().any(|text| {
            let mut places = text.match_indices(&digits);
            places.any(|(at, _)| is_apart(&text[..at], &text[at + digits.len()..]))
        })
    }
}

/// Whether `part` stands in `text` in upper or lower case, between characters of ASCII that belong to no word.
fn contains_between_ascii_marks(text: &[u8], part: &[u8]) -> bool {
    let is_edge =
        |byte: Option<&u8>| byte.is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric());
    text.windows(part.len()).enumerate().any(|(at, window)| {
        window.eq_ignore_ascii_case(part)
            && is_edge(at.checked_sub(1).and_then(|before| text.get(before)))
            && is_edge(text.get(at + part.len()))
    })
}

/// Whether digits between two parts of a text are a number of their own, that no following word multiplies.
fn is_apart(before: &str, after: &str) -> bool {
    if before.chars().next_back().is_some_and(|c| !c.is_whitespace()) {
        return false;
    }
    let starts_apart = |rest: &str| rest.chars().next().is_none_or(char::is_whitespace);
    if let Some(rest) = after.strip_prefix([',', ';', '.', '?', '!']) {
        return starts_apart(rest);
    }
    // "thousand", "mila", "k"
    let multiplies = |c: char| !c.is_ascii() || matches!(c.to_ascii_lowercase(), 't' | 'm' | 'k');
    starts_apart(after) && !after.trim_start().starts_with(multiplies)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use jiff::civil::date;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::names::Vocabulary;
    use super::super::{DayNames, Figures, GroundingSources, source_words};
    use super::*;

    fn literal<'a>(texts: &'a [Cow<'a, str>], language: Option<&'a str>) -> LiteralTexts<'a> {
        LiteralTexts { texts, language }
    }

    #[test]
    fn said_words_and_numbers_are_found_as_they_are() {
        let said = [Cow::Borrowed(
            "Weather in Milan, leave of employee 4711, room 240. Due, 300 thousand, 12.500,at 1830",
        )];
        let texts = literal(&said, Some("en"));
        for value in ["Milan", "milan", "in MILAN, leave", "employee 4711", "4711", "12.500"] {
            assert!(texts.has(value), "{value}");
        }
        for value in ["Mila", "ilan", "due", "room 24", "", "(Milan)", "Milán"] {
            assert!(!texts.has(value), "{value}");
        }
        assert!(texts.has_number(4711.0) && texts.has_number(240.0));
        for number in [47.0, 471.0, 300.0, 500.0, 1830.0, 4711.5, -4711.0, f64::NAN] {
            assert!(!texts.has_number(number), "{number}");
        }
    }

    #[test]
    fn only_the_beginning_of_long_texts_is_searched() {
        let said =
            [Cow::Owned("a ".repeat(MAX_BYTES / 2 - 4)), Cow::Borrowed("Milan"), Cow::Borrowed("4711")];
        let texts = literal(&said, None);
        assert!(texts.has("Milan"));
        assert!(!texts.has("4711") && !texts.has_number(4711.0));
    }

    const PARTS: &[&str] = &[
        "4711", "471", "100", "0471", "2401", "1830", "2026", "20260615", "15", "June", "at", "ore",
        "thousand", "k", "K", "mila", "million", "Milan", "milan", "MILAN", "Milàn", "due", "once", "dix",
        "15T08", "l'una", "month", "of", "the", "first", "twenty", "half", "days", "%", "€", "-", "/", ".",
        ",", ":", "'", "?", "°", "º", "ª", "\u{200b}", "９", "ｋ", "\n", "am", "pm", "h", "not", "from",
        "to", "e", "x4711",
    ];

    fn texts() -> impl Strategy<Value = Vec<String>> {
        let parts = prop::collection::vec(
            (prop::sample::select(PARTS), prop::sample::select(vec![" ", " ", "", ","])),
            0..14,
        );
        let text =
            parts.prop_map(|parts| parts.into_iter().flat_map(|(part, gap)| [part, gap]).collect::<String>());
        prop::collection::vec(text, 1..3)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn whatever_is_found_literally_is_found_by_reading(
            said in texts(), english in any::<bool>(), from in 0..40_usize, length in 1..20_usize,
            other in prop::sample::select(PARTS), number in prop::sample::select(vec![100.0, 471.0, 711.0, 2401.0, 4711.0, 4712.0, 500.0]),
        ) {
            let said: Vec<Cow<'_, str>> = said.iter().map(|text| Cow::Borrowed(text.as_str())).collect();
            let language = english.then_some("en");
            let texts = literal(&said, language);
            let mut vocabulary = Vocabulary::default();
            for text in &said {
                vocabulary.read(&source_words(text, language));
            }
            let part: String = said[0].chars().skip(from).take(length).collect();
            for value in [part.trim(), other] {
                prop_assert!(!texts.has(value) || vocabulary.has(value), "{:?} in {:?}", value, said);
            }
            let now = date(2026, 11, 22).at(9, 30, 0, 0).in_tz("Europe/Rome").unwrap();
            let sources = GroundingSources {
                said: said.clone(), found: Vec::new(), user: "u", now: &now, language, strict: true, lists: true, exact: true, lookalikes: true, names: DayNames::ALL,
            };
            let figures = Figures::of(&sources, &Value::Null);
            prop_assert!(!texts.has_number(number) || figures.numbers.supports(number), "{} in {:?}", number, said);
        }
    }
}
