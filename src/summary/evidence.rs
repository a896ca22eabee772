//! The statements of sources, and whether one of them supports a result.
//!
//! A text is analysed once, when it is first asked about: the sources of a summary share the text around them, and most
//! sentences rest on a few of them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::compose::CitedText;
use super::decimal::{Decimal, DigitMarks, readings};
use super::figures::{DateFigure, Figure, FigureKind, NumberFigure, Unit, bare, figures, is_function_word};
use super::sentences;
use super::stems::{Stems, WordForms};
use crate::language::words;

/// What a text states.
#[derive(Default)]
struct StatedFigures {
    /// Numbers, with their signs and what they count.
    numbers: HashSet<(Decimal, bool, Option<Unit>)>,
    /// What is counted anywhere in the text.
    units: HashSet<Unit>,
    dates: Vec<DateFigure>,
    weekdays: HashSet<i8>,
    codes: HashSet<String>,
    /// All words, in lower case and without accents, and their stems.
    words: HashSet<Rc<str>>,
}

impl StatedFigures {
    /// Everything that a text states. Sentence by sentence, so that figures of two are not read as one.
    fn of(text: &str, language: Option<&str>, stems: &mut Stems) -> Self {
        let mut stated = Self::default();
        for span in sentences(text) {
            let Some(sentence) = span.of(text) else { continue };
            for figure in figures(sentence, language) {
                stated.add_figure(figure);
            }
            stated.add_words(sentence, stems);
        }
        stated
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

    fn add_words(&mut self, sentence: &str, stems: &mut Stems) {
        for token in crate::language::text::tokens(sentence).iter().filter(|token| token.word) {
            if token.digit() {
                self.codes.insert(bare(&token.norm));
            }
            if token.norm == "%" {
                self.units.insert(Unit::Percent);
            }
        }
        for word in words(sentence) {
            let WordForms { norm, stem } = stems.forms(word);
            self.words.insert(norm);
            self.words.insert(stem);
        }
    }
}

/// What several texts state together.
#[derive(Clone, Copy)]
struct StatedTogether<'t>(&'t [&'t StatedFigures]);

impl StatedTogether<'_> {
    /// Whether they state the figure. A word that carries no name is none.
    fn states(self, figure: &Figure, stems: &mut Stems) -> bool {
        match &figure.kind {
            FigureKind::Number(number) => self.has_number(number),
            FigureKind::Date(date) => self.has_date(date),
            FigureKind::Weekday(day) => self.0.iter().any(|stated| stated.weekdays.contains(day)),
            FigureKind::Code(code) => self.0.iter().any(|stated| stated.codes.contains(code)),
            FigureKind::Name { norm, leads } => {
                (*leads && is_function_word(norm)) || self.has_name(&figure.written, stems)
            }
        }
    }

    fn has_number(self, number: &NumberFigure) -> bool {
        let has = |value: &Decimal| match number.unit {
            None => [None, Some(Unit::Percent), Some(Unit::Euro), Some(Unit::Dollar), Some(Unit::Pound)]
                .into_iter()
                .any(|unit| self.has_value(value, number.negative, unit)),
            // The unit may stand in the name of a column.
            Some(unit) => {
                self.has_value(value, number.negative, Some(unit))
                    || (self.has_unit(unit) && self.has_value(value, number.negative, None))
            }
        };
        number.values.iter().any(has) || (number.apart.len() > 1 && number.apart.iter().all(has))
    }

    fn has_value(self, value: &Decimal, negative: bool, unit: Option<Unit>) -> bool {
        let number = (value.clone(), negative, unit);
        self.0.iter().any(|stated| stated.numbers.contains(&number))
    }

    fn has_unit(self, unit: Unit) -> bool {
        let names: &[&str] = match unit {
            Unit::Percent => {
                &["percent", "percento", "prozent", "percentage", "percentuale", "anteil", "share"]
            }
            Unit::Euro => &["euro", "euros", "eur"],
            Unit::Dollar => &["dollar", "dollars", "usd"],
            Unit::Pound => &["pound", "pounds", "gbp"],
        };
        self.0.iter().any(|stated| stated.units.contains(&unit))
            || names.iter().any(|name| self.has_word(name))
    }

    fn has_date(self, date: &DateFigure) -> bool {
        let fits = |known: &DateFigure| {
            let year = date.year.is_none()
                || date.year == known.year
                || (known.year.is_none() && date.year.is_some_and(|year| self.has_year(year)));
            let month = date.month.is_none() || date.month == known.month;
            year && month && (date.day.is_none() || date.day == known.day)
        };
        self.0.iter().flat_map(|stated| &stated.dates).any(fits)
    }

    fn has_year(self, year: i16) -> bool {
        u64::try_from(year).is_ok_and(|year| self.has_value(&Decimal::whole(year), false, None))
    }

    /// Whether all parts of a word occur, in any case, number and case ending.
    fn has_name(self, written: &str, stems: &mut Stems) -> bool {
        let mut parts = words(written).peekable();
        parts.peek().is_some()
            && parts.all(|part| {
                let WordForms { norm, stem } = stems.forms(part);
                let plain = norm.strip_suffix('s').filter(|plain| plain.len() > 2);
                self.has_word(&norm)
                    || plain.is_some_and(|plain| self.has_word(plain))
                    || self.has_word(&stem)
            })
    }

    fn has_word(self, norm: &str) -> bool {
        self.0.iter().any(|stated| stated.words.contains(norm))
    }
}

/// The statements of a summary's sources, each with the text around it.
pub(super) struct SourceFigures<'s> {
    /// The language of the sources (ISO 639-1).
    language: Option<&'s str>,
    stems: Stems,
    /// The texts of all sources, each once, with what they state if that was asked.
    texts: Vec<(&'s str, Option<StatedFigures>)>,
    /// Of each source, its own text and the one around it, by their places in `texts`.
    sources: Vec<[usize; 2]>,
    /// The stems of the words of all texts that are written without a capital.
    ordinary: Option<HashSet<Rc<str>>>,
}

impl<'s> SourceFigures<'s> {
    /// The figures of these sources, in this language (ISO 639-1).
    pub fn new(sources: &'s [CitedText], language: Option<&'s str>) -> Self {
        Self::of_texts(sources.iter().map(|source| [source.text.as_str(), &source.around]), language)
    }

    /// The figures of one text.
    pub fn of_text(text: &'s str, language: Option<&'s str>) -> Self {
        Self::of_texts(std::iter::once([text, ""]), language)
    }

    fn of_texts(sources: impl Iterator<Item = [&'s str; 2]>, language: Option<&'s str>) -> Self {
        let (mut texts, mut places) = (Vec::new(), HashMap::new());
        let mut place = |text: &'s str| {
            *places.entry(text).or_insert_with(|| {
                texts.push((text, None));
                texts.len() - 1
            })
        };
        let sources = sources.map(|source| source.map(&mut place)).collect();
        Self { language, stems: Stems::of(language), texts, sources, ordinary: None }
    }

    /// The figures of a sentence, as it writes them, that a source does not state.
    pub fn missing(&mut self, source: usize, sentence: &str, language: Option<&str>) -> Vec<String> {
        let missing = figures(sentence, language).into_iter().filter(|figure| !self.states(source, figure));
        missing.map(|figure| figure.written).collect()
    }

    /// Returns whether a source states the figure, with the text around it.
    pub fn states(&mut self, source: usize, figure: &Figure) -> bool {
        let Some([own, around]) = self.sources.get(source).copied() else { return false };
        // What a text states by itself, it states together with another one.
        self.read(own);
        if self.state_together(&[own], figure) {
            return true;
        }
        self.read(around);
        self.state_together(&[own, around], figure)
    }

    /// Returns whether any source states the figure.
    pub fn any_states(&mut self, figure: &Figure) -> bool {
        (0..self.sources.len()).any(|source| self.states(source, figure))
    }

    /// Returns whether the word occurs without a capital in any source.
    pub fn has_ordinary_word(&mut self, figure: &Figure) -> bool {
        let Self { texts, stems, .. } = self;
        let ordinary = self.ordinary.get_or_insert_with(|| {
            let mut found = HashSet::new();
            for (text, _) in texts.iter() {
                let sentences = sentences(text).into_iter().filter_map(|span| span.of(text));
                let ordinary = sentences.flat_map(words).filter(|word| word.starts_with(char::is_lowercase));
                found.extend(ordinary.map(|word| stems.stem(word)));
            }
            found
        });
        ordinary.contains(&stems.stem(&figure.written))
    }

    /// Analyses a text, unless that was done.
    fn read(&mut self, text: usize) {
        if let Some((text, stated @ None)) = self.texts.get_mut(text) {
            *stated = Some(StatedFigures::of(text, self.language, &mut self.stems));
        }
    }

    fn state_together(&mut self, texts: &[usize], figure: &Figure) -> bool {
        let stated = texts.iter().filter_map(|text| self.texts.get(*text)?.1.as_ref());
        let stated: Vec<&StatedFigures> = stated.collect();
        StatedTogether(&stated).states(figure, &mut self.stems)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    impl StatedFigures {
        /// What both state, in one.
        fn with(mut self, other: Self) -> Self {
            self.numbers.extend(other.numbers);
            self.units.extend(other.units);
            self.dates.extend(other.dates);
            self.weekdays.extend(other.weekdays);
            self.codes.extend(other.codes);
            self.words.extend(other.words);
            self
        }
    }

    /// Texts of which one has what another one lacks: a unit, a year, a part of a name.
    fn any_text() -> impl Strategy<Value = String> {
        const PIECES: [&str; 24] = [
            "40", "%", "percent", "Share (%)", "1,200", "1.200", "12 500", "euros", "EUR", "12 March",
            "March 2026", "12/03/2026", "2026", "Monday", "Rossi", "Anna-Maria", "maria", "anna", "B-12",
            "B12", "-5", "not", ". ", "\n\n",
        ];
        proptest::collection::vec(select(&PIECES[..]), 0..8).prop_map(|pieces| pieces.join(" "))
    }

    fn missing(result: &str, source: &str, languages: (&str, &str)) -> Vec<String> {
        SourceFigures::of_text(source, Some(languages.1)).missing(0, result, Some(languages.0))
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn sources_state_what_their_texts_state_together(
            texts in proptest::collection::vec((any_text(), select(vec![0, 0, 1, 2])), 1..6),
            arounds in [any_text(), any_text(), any_text()],
            said in any_text(),
            language in select(vec![Some("en"), Some("it"), None]),
        ) {
            let sources: Vec<CitedText> = texts
                .iter()
                .map(|(text, around)| CitedText { text: text.clone(), around: arounds[*around].as_str().into() })
                .collect();
            let mut shared = SourceFigures::new(&sources, language);
            let mut stems = Stems::of(language);
            for figure in figures(&said, Some("en")) {
                let mut any_states = false;
                // The last one first: what was analysed for one source is no other one's.
                for (at, source) in sources.iter().enumerate().rev() {
                    let own = StatedFigures::of(&source.text, language, &mut stems);
                    let all = own.with(StatedFigures::of(&source.around, language, &mut stems));
                    let states = StatedTogether(&[&all]).states(&figure, &mut stems);
                    prop_assert_eq!(shared.states(at, &figure), states, "{:?} in {:?}", figure, source);
                    any_states |= states;
                }
                prop_assert_eq!(shared.any_states(&figure), any_states);
                let stem = stems.stem(&figure.written);
                let all = sources.iter().flat_map(|source| [source.text.as_str(), &source.around]);
                let small = all.flat_map(words).filter(|word| word.starts_with(char::is_lowercase));
                let is_ordinary = small.map(|word| stems.stem(word)).any(|own| own == stem);
                prop_assert_eq!(shared.has_ordinary_word(&figure), is_ordinary);
            }
        }
    }

    #[test]
    fn figures_that_the_source_does_not_state_are_missing() {
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
