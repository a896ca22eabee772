//! What a source states, and whether it states what a result says.

use std::collections::HashSet;

use super::decimal::{Decimal, DigitMarks, readings};
use super::figures::{DateFigure, Figure, FigureKind, NumberFigure, Unit, bare, figures, is_function_word};
use super::sentences;
use super::stems::{Stems, words};

/// What a source states.
pub(super) struct StatedFigures {
    language: Option<String>,
    stems: Stems,
    /// Numbers, with their signs and what they count.
    numbers: HashSet<(Decimal, bool, Option<Unit>)>,
    /// What is counted anywhere in the source.
    units: HashSet<Unit>,
    dates: Vec<DateFigure>,
    weekdays: HashSet<i8>,
    codes: HashSet<String>,
    /// All words, in lower case and without accents, and their stems.
    words: HashSet<String>,
    /// The stems of the words that are written without a capital.
    ordinary: HashSet<String>,
}

impl StatedFigures {
    /// Nothing so far, in this language (ISO 639-1).
    pub fn new(language: Option<&str>) -> Self {
        Self {
            language: language.map(str::to_owned),
            stems: Stems::of(language),
            numbers: HashSet::new(),
            units: HashSet::new(),
            dates: Vec::new(),
            weekdays: HashSet::new(),
            codes: HashSet::new(),
            words: HashSet::new(),
            ordinary: HashSet::new(),
        }
    }

    /// Everything that a text states.
    pub fn of(text: &str, language: Option<&str>) -> Self {
        let mut evidence = Self::new(language);
        evidence.add(text);
        evidence
    }

    /// Adds what a text states. Sentence by sentence, so that figures of two are not read as one.
    pub fn add(&mut self, text: &str) {
        for span in sentences(text) {
            let Some(sentence) = span.of(text) else { continue };
            let language = self.language.clone();
            for figure in figures(sentence, language.as_deref()) {
                self.add_figure(figure);
            }
            self.add_words(sentence);
        }
    }

    fn add_figure(&mut self, figure: Figure) {
        match figure.kind {
            FigureKind::Number(number) => {
                self.units.extend(number.unit);
                for value in number.values {
                    self.numbers.insert((value, number.negative, number.unit));
                }
                self.numbers.extend(number.apart.into_iter().map(|value| (value, false, number.unit)));
            }
            FigureKind::Date(date) => {
                let parts = [date.year.map(i64::from), date.day.map(i64::from)];
                for part in parts.into_iter().flatten().filter_map(|part| u64::try_from(part).ok()) {
                    self.numbers.insert((Decimal::whole(part), false, None));
                }
                self.dates.push(date);
            }
            FigureKind::Weekday(day) => _ = self.weekdays.insert(day),
            FigureKind::Code(code) => {
                let runs = code.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
                for value in runs.flat_map(|run| readings(run, DigitMarks::Unknown)) {
                    self.numbers.insert((value, false, None));
                }
            }
            FigureKind::Name { .. } => {}
        }
    }

    fn add_words(&mut self, sentence: &str) {
        for token in crate::language::text::tokens(sentence).iter().filter(|token| token.word) {
            if token.digit() {
                self.codes.insert(bare(&token.norm));
            }
            if token.norm == "%" {
                self.units.insert(Unit::Percent);
            }
        }
        for word in words(sentence) {
            self.words.insert(crate::language::fold(word));
            let stem = self.stems.stem(word);
            if word.starts_with(char::is_lowercase) {
                self.ordinary.insert(stem.clone());
            }
            self.words.insert(stem);
        }
    }

    /// The figures of a sentence, as it writes them, that this source does not state.
    pub fn missing(&mut self, sentence: &str, language: Option<&str>) -> Vec<String> {
        let missing = figures(sentence, language).into_iter().filter(|figure| !self.states(figure));
        missing.map(|figure| figure.written).collect()
    }

    /// Whether this source states the figure. A word that carries no name is none.
    pub fn states(&mut self, figure: &Figure) -> bool {
        match &figure.kind {
            FigureKind::Number(number) => self.has_number(number),
            FigureKind::Date(date) => self.has_date(date),
            FigureKind::Weekday(day) => self.weekdays.contains(day),
            FigureKind::Code(code) => self.codes.contains(code),
            FigureKind::Name { norm, leads } => {
                (*leads && is_function_word(norm)) || self.has_word(&figure.written)
            }
        }
    }

    /// Whether the word occurs without a capital.
    pub fn has_ordinary_word(&mut self, figure: &Figure) -> bool {
        let stem = self.stems.stem(&figure.written);
        self.ordinary.contains(&stem)
    }

    fn has_number(&self, number: &NumberFigure) -> bool {
        let has = |value: &Decimal| match number.unit {
            None => [None, Some(Unit::Percent), Some(Unit::Euro), Some(Unit::Dollar), Some(Unit::Pound)]
                .into_iter()
                .any(|unit| self.numbers.contains(&(value.clone(), number.negative, unit))),
            // The unit may stand in the name of a column.
            Some(unit) => {
                self.numbers.contains(&(value.clone(), number.negative, Some(unit)))
                    || (self.has_unit(unit) && self.numbers.contains(&(value.clone(), number.negative, None)))
            }
        };
        number.values.iter().any(has) || (number.apart.len() > 1 && number.apart.iter().all(has))
    }

    fn has_unit(&self, unit: Unit) -> bool {
        let names: &[&str] = match unit {
            Unit::Percent => {
                &["percent", "percento", "prozent", "percentage", "percentuale", "anteil", "share"]
            }
            Unit::Euro => &["euro", "euros", "eur"],
            Unit::Dollar => &["dollar", "dollars", "usd"],
            Unit::Pound => &["pound", "pounds", "gbp"],
        };
        self.units.contains(&unit) || names.iter().any(|name| self.words.contains(*name))
    }

    fn has_date(&self, date: &DateFigure) -> bool {
        let fits = |known: &DateFigure| {
            let year = date.year.is_none()
                || date.year == known.year
                || (known.year.is_none() && date.year.is_some_and(|year| self.has_year(year)));
            let month = date.month.is_none() || date.month == known.month;
            year && month && (date.day.is_none() || date.day == known.day)
        };
        self.dates.iter().any(fits)
    }

    fn has_year(&self, year: i16) -> bool {
        u64::try_from(year).is_ok_and(|year| self.numbers.contains(&(Decimal::whole(year), false, None)))
    }

    /// Whether all parts of a word occur, in any case, number and case ending.
    fn has_word(&mut self, written: &str) -> bool {
        let mut parts = words(written).peekable();
        parts.peek().is_some()
            && parts.all(|part| {
                let norm = crate::language::fold(part);
                let plain = norm.strip_suffix('s').filter(|plain| plain.len() > 2);
                self.words.contains(&norm)
                    || plain.is_some_and(|plain| self.words.contains(plain))
                    || self.words.contains(&self.stems.stem(part))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(result: &str, source: &str, languages: (&str, &str)) -> Vec<String> {
        StatedFigures::of(source, Some(languages.1)).missing(result, Some(languages.0))
    }

    #[test]
    fn figures_are_found_in_any_form() {
        for (result, source, languages) in [
            ("It cost 2.5 million euros.", "Der Preis war 2.500.000 €.", ("en", "de")),
            ("Ricavi di 1.250,50 euro", "Revenue was EUR 1,250.50.", ("it", "en")),
            ("On 12 March 2026 it began", "Inizio: 12/03/2026", ("en", "it")),
            ("Il 3 aprile", "On April 3rd, 2025, it rained.", ("it", "en")),
            ("In 2025 Rossi left", "Am 3. April 2025 ging Rossi.", ("en", "de")),
            ("Twenty-five people came", "There were 25 people.", ("en", "en")),
            ("Vennero 25 persone", "Vennero venticinque persone.", ("it", "it")),
            ("12 500 visiteurs", "Il y eut 12500 visiteurs.", ("fr", "fr")),
            ("at 14:30 in room B-12", "The meeting is at 14:30, room B12.", ("en", "en")),
            ("MULLER's share: 40%", "Müller holds 40 percent.", ("en", "en")),
            ("Share of 40%", "| Firm | Share (%) |\n| Rossi | 40 |", ("en", "en")),
            ("On Monday", "Lunedì si parte.", ("en", "it")),
            ("1,200 euros", "| item | cost (EUR) |\n|---|---|\n| rent | 1,200 |", ("en", "en")),
        ] {
            let around = missing(result, source, languages);
            // "Share", "Ricavi" and the like lead their sentences.
            let figures: Vec<_> =
                around.into_iter().filter(|word| word.chars().any(|c| c.is_ascii_digit())).collect();
            assert_eq!(figures, [""; 0], "{result}");
        }
    }

    #[test]
    fn what_the_source_does_not_state_is_missing() {
        for (result, source, languages, expected) in [
            ("it cost 2.5 million", "It cost 2.5 billion.", ("en", "en"), "2.5 million"),
            ("ricavi di 1.250 euro", "Revenue was EUR 1.250.", ("it", "en"), "1.250"),
            ("the 40% share", "There were 40 people.", ("en", "en"), "40"),
            ("in March 2027", "On 12 March 2026.", ("en", "en"), "March 2027"),
            ("on 13 March", "On 12 March 2026, 13 people.", ("en", "en"), "13 March"),
            ("signed by Anna Verdi", "Signed by Anna Rossi.", ("en", "en"), "Verdi"),
            ("thirty people", "There were 13 people.", ("en", "en"), "thirty"),
            ("a change of -5 points", "A change of 5 points.", ("en", "en"), "5"),
            ("room B13", "room B12, 13 chairs", ("en", "en"), "B13"),
            ("am Dienstag", "Am Montag.", ("de", "de"), "Dienstag"),
            ("at 14:30", "at 15:30", ("en", "en"), "14:30"),
        ] {
            assert_eq!(missing(result, source, languages), [expected], "{result}");
        }
    }
}
