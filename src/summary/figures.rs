//! The parts of a text that can be looked up in its source: numbers, dates, codes and names.

use super::decimal::{Decimal, DigitMarks, readings, scale};
use crate::language::function_words::NUMBER_JOINTS;
use crate::language::number_words::number_word;
use crate::language::text::{Token, tokens};
use crate::language::{dates, lexicon};

/// Words that are numbers, and more often something else.
const VAGUE: &[&str] = &[
    "one", "uno", "sei", "couple", "pair", "both", "coppia", "paio", "entrambi", "entrambe", "ambedue",
    "once",
];
/// Words that join the parts of a date.
const DATE_JOINTS: &[&str] = &["of", "the", "di", "de", "del", "dell"];

/// The thing that a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    /// Per cent.
    Percent,
    Euro,
    Dollar,
    Pound,
}

/// Something that a text states.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// As it is written.
    pub written: String,
    /// Its kind.
    pub kind: FigureKind,
}

impl Figure {
    /// Returns whether it may be an ordinary word that begins a sentence.
    pub fn leads(&self) -> bool {
        matches!(self.kind, FigureKind::Name { leads: true, .. })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FigureKind {
    Number(NumberFigure),
    /// A date, or parts of one.
    Date(DateFigure),
    /// A day of the week, from Monday (1).
    Weekday(i8),
    /// Letters and digits that are no number: `14:30`, `A4`, `1.2.3`.
    Code(String),
    /// A word that begins with a capital.
    Name {
        /// In lower case and without accents.
        norm: String,
        /// Whether the capital may be that of a sentence.
        leads: bool,
    },
}

/// A number as a text states it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NumberFigure {
    /// The values that it may have.
    pub values: Vec<Decimal>,
    /// The numbers that it may be instead: `12 500` is one number or two.
    pub apart: Vec<Decimal>,
    /// Whether it has the sign of negative numbers.
    pub negative: bool,
    /// What it counts, where that stands beside it.
    pub unit: Option<Unit>,
}

/// The parts of a date that are stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateFigure {
    pub year: Option<i16>,
    pub month: Option<i8>,
    pub day: Option<i8>,
}

/// All figures of a text of at most a few thousand characters, in order.
pub(super) fn figures(text: &str, language: Option<&str>) -> Vec<Figure> {
    let tokens = tokens(text);
    let reader = FigureReader { text, tokens: &tokens, language, marks: DigitMarks::of(language) };
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let next = reader.read(at, &mut found);
        at = next.max(at + 1);
    }
    found
}

struct FigureReader<'t> {
    text: &'t str,
    tokens: &'t [Token],
    language: Option<&'t str>,
    marks: DigitMarks,
}

impl FigureReader<'_> {
    fn norm(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.norm.as_str())
    }

    fn is(&self, at: usize, words: &[&str]) -> bool {
        words.contains(&self.norm(at))
    }

    /// The characters between two tokens.
    fn gap(&self, at: usize) -> &str {
        let (Some(one), Some(next)) = (self.tokens.get(at), self.tokens.get(at + 1)) else { return "" };
        self.text.get(one.end..next.start).unwrap_or_default()
    }

    fn push(&self, found: &mut Vec<Figure>, (first, next): (usize, usize), kind: FigureKind) {
        let written = crate::language::text::span(self.text, self.tokens, first, next.saturating_sub(1));
        found.push(Figure { written: written.to_owned(), kind });
    }

    /// Reads what begins at a token; returns the index after it.
    fn read(&self, at: usize, found: &mut Vec<Figure>) -> usize {
        if let Some((dates, next)) = self.date(at) {
            for date in dates {
                self.push(found, (at, next), FigureKind::Date(date));
            }
            return next;
        }
        let Some(token) = self.tokens.get(at) else { return at + 1 };
        if token.digit() {
            return self.digits(at, token, found);
        }
        if let Some((value, next)) = self.spoken(at) {
            let unit = self.unit_around(at, next);
            let number = NumberFigure { values: vec![value], apart: Vec::new(), negative: false, unit };
            self.push(found, (at, next), FigureKind::Number(number));
            return next;
        }
        if let Some(day) = dates::weekday(&token.norm) {
            self.push(found, (at, at + 1), FigureKind::Weekday(day.to_monday_one_offset()));
        } else if token.word && token.capital() && token.raw.chars().any(char::is_alphabetic) {
            let norm = token.norm.to_string();
            self.push(found, (at, at + 1), FigureKind::Name { norm, leads: self.leads(at, token) });
        }
        at + 1
    }

    /// Whether a capital is that of a sentence, unless another one follows.
    fn leads(&self, at: usize, token: &Token) -> bool {
        let opens = token.first
            || at == 0
            || self.tokens[..at]
                .iter()
                .rev()
                .find(|before| !matches!(before.raw.as_str(), "\"" | "«" | "“" | "*" | "("))
                .is_none_or(|before| matches!(before.raw.as_str(), ":" | "-" | "•" | "|" | "\n"));
        let mixed = token.raw.chars().skip(1).any(char::is_uppercase);
        let next = self.tokens.get(at + 1);
        let followed = self.gap(at) == " " && next.is_some_and(|next| next.word && next.capital());
        opens && !mixed && !followed
    }

    /// What a token with digits is: a number, several, or a code.
    fn digits(&self, at: usize, token: &Token, found: &mut Vec<Figure>) -> usize {
        if let Some((values, apart, next)) = self.number(at) {
            let power = self.scale_at(next);
            let scaled = |value: Decimal| value.times_ten_to(power.unwrap_or(0));
            let next = next + usize::from(power.is_some());
            let unit = self.unit_around(at, next);
            let number = NumberFigure {
                values: values.into_iter().map(scaled).collect(),
                apart,
                negative: self.is_negative(at),
                unit,
            };
            self.push(found, (at, next), FigureKind::Number(number));
            return next;
        }
        // A range such as 2020-2026 or 12/15.
        let parts: Vec<&str> = token.norm.split(['-', '/']).collect();
        let all: Vec<Vec<Decimal>> = parts.iter().map(|part| readings(part, self.marks)).collect();
        if parts.len() > 1 && all.iter().all(|values| !values.is_empty()) {
            let unit = self.unit_around(at, at + 1);
            for values in all {
                let number = NumberFigure { values, apart: Vec::new(), negative: false, unit };
                self.push(found, (at, at + 1), FigureKind::Number(number));
            }
        } else {
            self.push(found, (at, at + 1), FigureKind::Code(bare(&token.norm)));
        }
        at + 1
    }

    /// The number in digits that begins at a token, with the numbers that its groups would be by themselves.
    fn number(&self, at: usize) -> Option<(Vec<Decimal>, Vec<Decimal>, usize)> {
        let norm = self.norm(at);
        let digits = norm.trim_end_matches(|c: char| !c.is_ascii_digit());
        let suffix = norm.get(digits.len()..)?;
        let values = readings(digits, self.marks);
        if values.is_empty() {
            return None;
        }
        match suffix {
            "" => {}
            "st" | "nd" | "rd" | "th" | "o" | "a" | "er" | "e" | "eme" | "deg" => {
                return Some((values, Vec::new(), at + 1));
            }
            _ => {
                let power = scale(suffix)?;
                let scaled = values.into_iter().map(|value| value.times_ten_to(power)).collect();
                return Some((scaled, Vec::new(), at + 1));
            }
        }
        // 12 500, 12'500
        let (mut joined, mut apart, mut next) = (digits.to_owned(), values.clone(), at);
        while (1..=3).contains(&digits.len())
            && matches!(self.gap(next), " " | "'" | "’" | "\u{a0}" | "\u{202f}" | "\u{2009}")
            && let Some(group) = self.group(next + 1)
        {
            joined.push_str(group);
            apart.extend(readings(group, self.marks));
            next += 1;
        }
        if next == at {
            return Some((values, Vec::new(), at + 1));
        }
        Some((readings(&joined, self.marks), apart, next + 1))
    }

    /// Three digits that may continue a number.
    fn group(&self, at: usize) -> Option<&str> {
        let norm = self.norm(at);
        (norm.len() == 3 && norm.bytes().all(|byte| byte.is_ascii_digit())).then_some(norm)
    }

    fn scale_at(&self, at: usize) -> Option<i32> {
        scale(self.norm(at)).filter(|_| self.norm(at) != "k")
    }

    fn is_negative(&self, at: usize) -> bool {
        let Some(token) = self.tokens.get(at) else { return false };
        let mut before = self.text.get(..token.start).unwrap_or_default().chars().rev();
        let sign = before.next();
        let apart = before.next().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '|'));
        matches!(sign, Some('−')) || (sign == Some('-') && apart)
    }

    fn unit_around(&self, at: usize, next: usize) -> Option<Unit> {
        let two = |first: &str, second: &str| self.is(next, &[first]) && self.is(next + 1, &[second]);
        if two("per", "cent") || two("per", "cento") || two("pour", "cent") || two("por", "ciento") {
            return Some(Unit::Percent);
        }
        let before = at.checked_sub(1).map_or("", |at| self.norm(at));
        unit(self.norm(next)).or_else(|| unit(before).filter(|unit| *unit != Unit::Percent))
    }

    /// A number in words, such as "twenty-five thousand", with the index after it.
    fn spoken(&self, at: usize) -> Option<(Decimal, usize)> {
        let (mut total, mut group) = (0_u64, 0_u64);
        let (mut next, mut words) = (at, 0);
        while words < 12 {
            let joint = words > 0 && self.is(next, NUMBER_JOINTS) && group >= 100;
            let at = next + usize::from(joint);
            let Some(value) = self.word(at) else { break };
            match value {
                1_000.. if group > 0 && group < value => {
                    total = total.saturating_add(group.saturating_mul(value));
                    group = 0;
                }
                100 if group > 0 && group < 10 => group *= 100,
                _ if words == 0 || group == 0 => group = value,
                _ if (group >= 100 && value < 100) || ((20..100).contains(&group) && value < 10) => {
                    group += value
                }
                _ => break,
            }
            next = at + 1;
            words += 1;
        }
        let value = total.saturating_add(group);
        (words > 0 && value != 1).then(|| (Decimal::whole(value), next))
    }

    /// The value of one token that is a number word: "three", "twenty-five".
    fn word(&self, at: usize) -> Option<u64> {
        let token =
            self.tokens.get(at).filter(|token| token.word && !VAGUE.contains(&token.norm.as_str()))?;
        let of = |word: &str| match self.language {
            Some(language) => number_word(word, language),
            None => ["en", "it", "fr", "de", "es"].iter().find_map(|language| number_word(word, language)),
        };
        if let Some(value) = of(&token.norm) {
            return Some(value.into());
        }
        let (tens, ones) = token.norm.split_once('-')?;
        let (tens, ones) = (of(tens)?, of(ones)?);
        ((20..100).contains(&tens) && ones < 10).then(|| u64::from(tens + ones))
    }

    /// The readings of the date that begins at a token, with the index after it.
    fn date(&self, at: usize) -> Option<(Vec<DateFigure>, usize)> {
        if let Some(dates) = numeric_date(self.norm(at), self.marks) {
            return Some((dates, at + 1));
        }
        let joint = |at: usize| usize::from(self.is(at, DATE_JOINTS) || matches!(self.norm(at), "." | ","));
        if let Some(day) = dates::day_number(self.norm(at)) {
            let of = at + 1 + joint(at + 1);
            if let Some(month) = dates::month(self.norm(of)) {
                let (year, next) = self.year(of + 1);
                return Some((vec![DateFigure { year, month: Some(month), day: Some(day) }], next));
            }
            return None;
        }
        let month = dates::month(self.norm(at))?;
        let day_at = at + 1 + usize::from(self.is(at + 1, &["the"]));
        if let Some(day) = dates::day_number(self.norm(day_at)) {
            let (year, next) = self.year(day_at + 1);
            return Some((vec![DateFigure { year, month: Some(month), day: Some(day) }], next));
        }
        let (year, next) = self.year(at + 1);
        let token = self.tokens.get(at)?;
        // "May" and "March" are words, too; "Marco" is a person, "sept" a number.
        let is_word = matches!(token.norm.as_str(), "may" | "march" | "mars");
        let is_other = matches!(token.norm.as_str(), "marco" | "sept") || token.norm.len() < 4;
        let alone = !is_other && !(is_word && (token.first || !token.capital()));
        (year.is_some() || alone).then(|| (vec![DateFigure { year, month: Some(month), day: None }], next))
    }

    fn year(&self, at: usize) -> (Option<i16>, usize) {
        let skip = usize::from(self.is(at, DATE_JOINTS) || self.norm(at) == ",");
        let year =
            Some(self.norm(at + skip)).filter(|norm| norm.len() == 4).and_then(|norm| norm.parse().ok());
        match year.filter(|year| (1000..3000).contains(year)) {
            Some(year) => (Some(year), at + skip + 1),
            None => (None, at),
        }
    }
}

/// `2026-06-15`, `15/06/2026`, `15.06.26`; in English and unknown languages also `06/15/2026`.
fn numeric_date(norm: &str, marks: DigitMarks) -> Option<Vec<DateFigure>> {
    let mark = norm.chars().find(|c| matches!(c, '-' | '/' | '.'))?;
    let parts: Vec<&str> = norm.split(mark).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    if !parts
        .iter()
        .all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return None;
    }
    let small = |text: &str| text.parse::<i8>().ok();
    let of = |year: &str, month: &str, day: &str| {
        let year: i16 = year.parse().ok()?;
        let year = if year < 100 { 2000 + year } else { year };
        let (month, day) = (small(month)?, small(day)?);
        let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && (1000..3000).contains(&year);
        fits.then_some(DateFigure { year: Some(year), month: Some(month), day: Some(day) })
    };
    let found: Vec<DateFigure> = if first.len() == 4 {
        of(first, second, third).into_iter().collect()
    } else if matches!(third.len(), 2 | 4) && first.len() <= 2 && second.len() <= 2 {
        let american = marks != DigitMarks::CommaDecimal;
        let swapped = of(third, first, second).filter(|_| american && first != second);
        of(third, second, first).into_iter().chain(swapped).collect()
    } else {
        Vec::new()
    };
    (!found.is_empty()).then_some(found)
}

fn unit(norm: &str) -> Option<Unit> {
    Some(match norm {
        "%" | "percent" | "percento" | "prozent" => Unit::Percent,
        "euro" | "euros" | "eur" => Unit::Euro,
        "dollar" | "dollars" | "dollari" | "dolares" | "usd" => Unit::Dollar,
        "£" | "gbp" | "pound" | "pounds" | "sterline" => Unit::Pound,
        _ => return None,
    })
}

/// Only letters and digits.
pub(super) fn bare(norm: &str) -> String {
    norm.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns whether a word carries no name: a function word, or one that opens sentences.
pub(super) fn is_function_word(norm: &str) -> bool {
    const OPENERS: &[&str] = &[
        "according", "additionally", "all", "although", "among", "because", "both", "compared", "despite",
        "during", "each", "finally", "further", "furthermore", "however", "instead", "meanwhile", "moreover",
        "most", "nevertheless", "one", "other", "others", "overall", "several", "since", "still", "such",
        "therefore", "under", "until", "while", "without", "inoltre", "tuttavia", "durante", "secondo",
        "infine", "mentre", "nonostante", "oltre", "entro", "senza", "dopo", "prima", "complessivamente",
        "altri", "altre", "ogni", "pendant", "selon", "cependant", "toutefois", "enfin", "ensuite", "apres",
        "avant", "depuis", "malgre", "sans", "ils", "elle", "elles", "cette", "ce", "ces", "son", "sa",
        "ses", "leur", "tous", "un", "une", "dem", "den", "des", "sie", "es", "auch", "aber", "jedoch",
        "ausserdem", "insgesamt", "zudem", "wahrend", "laut", "nach", "seit", "bei", "bis", "dies", "diese",
        "dieser", "dieses", "alle", "ohne", "trotz", "sein", "ihre", "ihr", "kein", "keine", "nicht",
        "segun", "ademas", "sin", "tras", "desde", "hasta", "aunque", "este", "esta", "estos", "estas",
        "todo", "todos", "su", "sus", "en", "se", "no", "al", "lo", "le", "il",
    ];
    norm.chars().count() < 2 || lexicon::is_stop_word(norm) || OPENERS.contains(&norm)
}
