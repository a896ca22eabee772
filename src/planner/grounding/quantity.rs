//! Numbers as people write them, with their units.

use std::collections::BTreeSet;

use super::words::SourceWord;
use crate::language::calendar_words::{LIST_JOINTS, MONTH_UNITS, WEEKS};
use crate::language::function_words::NUMBER_JOINTS;

/// The numbers in a text, in thousandths, so that they can be compared exactly.
#[derive(Debug, Default)]
pub(super) struct MentionedNumbers {
    values: BTreeSet<i64>,
    /// Ordinals: "the first", "al terzo".
    ranks: BTreeSet<i64>,
    /// Whether a thing was mentioned in the singular, with an article.
    singular: bool,
    /// Whether the speaker alone was mentioned: "for me", "per me", "just myself".
    speaker_only: bool,
    /// Whether "nothing" or "none" was mentioned.
    none: bool,
}

/// A number with its position and unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParsedNumber {
    /// Index of its first word.
    pub first: usize,
    /// Index after its last word, without the unit.
    pub next: usize,
    /// Its possible values: `2,500` has two.
    pub values: Vec<f64>,
}

/// The number that begins at `i`.
pub(super) fn at(words: &[SourceWord], i: usize) -> Option<ParsedNumber> {
    figures(words, i).or_else(|| in_words(words, i))
}

/// `12`, `2,500`, `3.5`, `1.5k`, `90min`.
fn figures(words: &[SourceWord], i: usize) -> Option<ParsedNumber> {
    let first = words.get(i)?;
    let split = |norm: &str| {
        let at = norm.find(|c: char| !c.is_ascii_digit()).unwrap_or(norm.len());
        (norm[..at].to_owned(), norm[at..].to_owned())
    };
    let (mut digits, mut suffix) = split(&first.norm);
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut parts = vec![std::mem::take(&mut digits)];
    let mut next = i + 1;
    let mut marks = String::new();
    while suffix.is_empty()
        && parts.len() < 5
        && let (Some(mark), Some(more)) = (words.get(next), words.get(next + 1))
        && mark.glued
        && more.glued
        && mark.is(&[".", ",", "'"])
    {
        let (more, rest) = split(&more.norm);
        if more.is_empty() || more.len() > 9 {
            break;
        }
        marks.push_str(&mark.norm);
        parts.push(more);
        suffix = rest;
        next += 2;
    }
    let scale = match suffix.as_str() {
        "k" | "mila" => 1e3,
        "m" | "mln" => 1e6,
        _ => 1.0,
    };
    let mut values = readings(&parts);
    if scale > 1.0 {
        let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
        values.extend(scaled);
    }
    match words.get(next).map(|w| w.norm.as_str()) {
        Some("thousand" | "mila" | "k" | "mille" | "tausend") => {
            values = values.iter().map(|v| v * 1e3).collect();
            next += 1;
        }
        Some("million" | "millions" | "milioni" | "milione" | "mln" | "millionen") => {
            values = values.iter().map(|v| v * 1e6).collect();
            next += 1;
        }
        _ => {}
    }
    Some(ParsedNumber { first: i, next, values })
}

/// `2,500` is 2500 in some languages and 2.5 in others.
fn readings(parts: &[String]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::new();
    let mut add = |text: String| out.extend(text.parse::<f64>().ok());
    match parts {
        [] => {}
        [one] => add(one.clone()),
        [head @ .., last] => {
            if head.iter().skip(1).chain([last]).all(|p| p.len() == 3) {
                add(parts.concat());
            }
            if head.iter().skip(1).all(|p| p.len() == 3) {
                add(format!("{}.{last}", head.concat()));
            }
            if out.is_empty() {
                return parts.iter().filter_map(|p| p.parse().ok()).collect();
            }
        }
    }
    out
}

/// "twenty-five", "one hundred and twenty", "duecento", "half".
fn in_words(words: &[SourceWord], i: usize) -> Option<ParsedNumber> {
    let first = words.get(i)?;
    if first.is(&["half", "mezzo", "mezza", "mezz", "halb", "halbe", "demi", "demie", "media", "medio"]) {
        return Some(ParsedNumber { first: i, next: i + 1, values: vec![0.5] });
    }
    let mut total = 0.0;
    let mut group = f64::from(first.spoken()?);
    let mut next = i + 1;
    for _ in 0..12 {
        let skip = usize::from(
            words
                .get(next)
                .is_some_and(|w| (w.norm == "-" && w.glued) || (group >= 100.0 && w.is(NUMBER_JOINTS))),
        );
        let Some(more) = words.get(next + skip).and_then(SourceWord::spoken).map(f64::from) else { break };
        if more >= 1000.0 && group < more {
            total += group * more;
            group = 0.0;
        } else if more == 100.0 && group < 10.0 {
            group *= 100.0;
        } else if (group >= 100.0 && more < 100.0) || (20.0..100.0).contains(&group) && more < 10.0 {
            group += more;
        } else if group == 0.0 && total > 0.0 {
            group = more;
        } else {
            break;
        }
        next += skip + 1;
    }
    // "two and a half", "due e mezzo"
    let mut values = vec![total + group];
    if words.get(next).is_some_and(|w| w.is(NUMBER_JOINTS)) {
        let skip = usize::from(words.get(next + 1).is_some_and(|w| w.is(&["a", "un"])));
        if words.get(next + 1 + skip).is_some_and(|w| w.is(&["half", "mezzo", "mezza", "demi", "media"])) {
            values.push(total + group + 0.5);
        }
    }
    Some(ParsedNumber { first: i, next, values })
}

/// Minutes in a unit of time.
pub(super) fn minutes(norm: &str) -> Option<f64> {
    Some(match norm {
        "second" | "seconds" | "sec" | "secondi" | "secondes" | "sekunden" => 1.0 / 60.0,
        "min" | "mins" | "minute" | "minutes" | "minuto" | "minuti" | "minuten" | "minutos" => 1.0,
        "h" | "hr" | "hrs" | "hour" | "hours" | "ora" | "ore" | "heure" | "heures" | "stunde" | "stunden"
        | "hora" | "horas" => 60.0,
        _ => return days(norm).map(|days| days * 1440.0),
    })
}

/// Days in a calendar unit of fixed length.
pub(super) fn days(norm: &str) -> Option<f64> {
    Some(match norm {
        "day" | "days" | "night" | "nights" | "giorno" | "giorni" | "notte" | "notti" | "giornata"
        | "giornate" | "jour" | "jours" | "nuit" | "nuits" | "tag" | "tage" | "tagen" | "nacht"
        | "nachte" | "dia" | "dias" | "noche" | "noches" => 1.0,
        _ if WEEKS.contains(&norm) => 7.0,
        "fortnight" | "fortnights" | "quindicina" => 14.0,
        _ => return None,
    })
}

/// Months in a unit.
pub(super) fn months(norm: &str) -> Option<f64> {
    Some(match norm {
        _ if MONTH_UNITS.contains(&norm) => 1.0,
        "year" | "years" | "anno" | "anni" | "an" | "ans" | "jahr" | "jahre" | "jahren" | "ano" | "anos" => {
            12.0
        }
        _ => return None,
    })
}

fn converted(value: f64, unit: &str) -> Vec<f64> {
    if let Some(length) = minutes(unit) {
        let all = value * length;
        return [1.0 / 60.0, 1.0, 60.0, 1440.0, 10_080.0].iter().map(|by| all / by).collect();
    }
    if let Some(length) = months(unit) {
        let all = value * length;
        return vec![all, all / 12.0, all * 30.0, all * 365.0 / 12.0];
    }
    match unit {
        "%" | "percent" | "percento" | "prozent" => vec![value / 100.0],
        "km" | "kg" | "kilometers" | "kilometres" | "chilometri" | "kilo" | "kilos" | "chili" | "chilo"
        | "k" | "l" | "litri" | "liters" | "litres" | "gb" => vec![value * 1000.0, value * 1024.0],
        "m" | "g" | "grams" | "grammi" | "meters" | "metri" | "ml" | "mb" => {
            vec![value / 1000.0, value / 1024.0]
        }
        "euro" | "euros" | "eur" | "€" | "$" | "dollar" | "dollars" | "dollari" | "usd" | "£" | "pounds"
        | "sterline" | "franchi" | "chf" => vec![value * 100.0],
        "cent" | "cents" | "centesimi" => vec![value / 100.0],
        "dozen" | "dozens" | "dozzina" | "dozzine" => vec![value * 12.0],
        _ => Vec::new(),
    }
}

const ARTICLES: &[&str] = &["a", "an", "un", "una", "uno", "ein", "eine", "einen", "une"];

impl MentionedNumbers {
    /// Adds the numbers of a text; `dated` are its words that are part of a day or a time.
    pub fn read(&mut self, words: &[SourceWord], dated: &[bool]) {
        let mut i = 0;
        while i < words.len() {
            let word = &words[i];
            if dated.get(i).copied().unwrap_or(false) {
                i += 1;
                continue;
            }
            self.speaker_only |=
                word.is(&["me", "myself", "alone", "solo", "sola", "single", "moi", "mich", "mir", "io"]);
            self.none |=
                word.is(&["no", "none", "without", "senza", "nessun", "nessuno", "nessuna", "nothing"]);
            if let Some(rank) = word.ordinal() {
                self.ranks.insert(i64::from(rank) * 1000);
            }
            let next = words.get(i + 1);
            if word.is(ARTICLES) && next.is_some_and(SourceWord::alphabetic) {
                self.singular = true;
                if let Some(unit) = next.filter(|w| minutes(&w.norm).is_some() || months(&w.norm).is_some()) {
                    self.add(1.0, Some(&unit.norm));
                    self.hours_and_more(words, 1.0, &unit.norm, i + 2);
                }
            }
            match at(words, i).filter(|found| !pronoun(words, found)) {
                Some(found) => {
                    self.found(words, &found);
                    i = found.next.max(i + 1);
                }
                None => i += 1,
            }
        }
        self.lists(words);
    }

    fn found(&mut self, words: &[SourceWord], found: &ParsedNumber) {
        let own = words[found.first].norm.trim_start_matches(|c: char| c.is_ascii_digit());
        let glued = Some(own).filter(|unit| !unit.is_empty() && words[found.first].norm.len() > unit.len());
        let mut unit = glued.map(str::to_owned);
        if unit.is_none() {
            // "half an hour", "a couple of weeks", "3-day"
            let mut at = found.next;
            while at < found.next + 2
                && words.get(at).is_some_and(|w| w.is(&["an", "a", "of", "di", "-", "d", "'"]))
            {
                at += 1;
            }
            unit = words.get(at).map(|w| w.norm.clone());
        }
        // "€ 50"
        if let Some(mark) = found.first.checked_sub(1).map(|i| &words[i]).filter(|w| w.is(&["€", "$", "£"]))
        {
            unit = Some(mark.norm.clone());
        }
        for value in &found.values {
            self.add(*value, unit.as_deref());
        }
        if let (Some(hours), Some(unit)) = (found.values.first(), unit) {
            self.hours_and_more(words, *hours, &unit, found.next);
        }
    }

    /// "1h30", "an hour and 30 minutes", "2 ore e mezza".
    fn hours_and_more(&mut self, words: &[SourceWord], hours: f64, unit: &str, from: usize) {
        if minutes(unit) != Some(60.0) {
            return;
        }
        let after = words.get(from..).unwrap_or_default();
        let more = after.iter().take(4).find_map(|w| w.figure().or_else(|| w.spoken()));
        let half = after.iter().take(4).any(|w| w.is(&["half", "mezza", "mezzo", "demie", "media"]));
        if let Some(more) = more.map(f64::from).or(half.then_some(30.0)).filter(|more| *more < 60.0) {
            self.add(hours * 60.0 + more, Some("minutes"));
        }
    }

    /// Adds one number.
    pub fn add(&mut self, value: f64, unit: Option<&str>) {
        self.values.extend(key(value));
        for other in unit.map(|unit| converted(value, unit)).unwrap_or_default() {
            self.values.extend(key(other));
        }
    }

    /// Adds the lengths of lists in the text: "for me and Anna", "Emma, Anna e Luca".
    fn lists(&mut self, words: &[SourceWord]) {
        let joins = |w: &SourceWord| w.norm == "," || w.is(LIST_JOINTS);
        let ends = |w: &SourceWord| w.is(&[".", ";", "?", "!", ":"]);
        let (mut items, mut length) = (1, 0);
        for word in words.iter().chain([&SourceWord::new(".".to_owned(), true, false)]) {
            if joins(word) {
                if length > 0 {
                    items += 1;
                }
                length = 0;
            } else if ends(word) || length >= 4 {
                if items > 1 {
                    self.values.insert(items * 1000);
                    if length == 0 {
                        self.values.insert((items - 1) * 1000);
                    }
                }
                items = 1;
                length = usize::from(!ends(word));
            } else {
                length += 1;
            }
        }
    }

    /// Returns whether the number was mentioned, or can be derived from a mention.
    pub fn supports(&self, value: f64) -> bool {
        key(value.abs()).is_some_and(|key| self.values.contains(&key))
    }

    /// Returns whether it was mentioned as an ordinal ("the third").
    pub fn has_ordinal(&self, value: f64) -> bool {
        key(value).is_some_and(|key| self.ranks.contains(&key))
    }

    /// Returns whether one thing was mentioned in the singular.
    pub fn mentions_singular(&self) -> bool {
        self.singular
    }

    /// Returns whether only the speaker was mentioned.
    pub fn mentions_speaker_only(&self) -> bool {
        self.speaker_only
    }

    /// Returns whether "nothing" was mentioned explicitly.
    pub fn mentions_none(&self) -> bool {
        self.none
    }
}

/// "the one with the dentist", "that one": a pronoun, not a number. `sei` also means "you are".
fn pronoun(words: &[SourceWord], found: &ParsedNumber) -> bool {
    let word = &words[found.first];
    if found.next != found.first + 1 || !word.is(&["one", "uno", "sei", "una"]) {
        return false;
    }
    let next = words.get(found.next);
    let before = found.first.checked_sub(1).map(|i| &words[i]);
    if before.is_some_and(|w| w.is(&["number", "numero", "no", "nr", "room", "table", "#"])) {
        return false;
    }
    let pointed = before.is_some_and(|w| {
        w.is(&[
            "the", "that", "this", "which", "each", "every", "any", "no", "another", "first", "last", "other",
        ])
    });
    let counts = next.is_some_and(|w| {
        w.alphabetic()
            && !w.is(&[
                "with", "at", "on", "in", "of", "for", "from", "to", "that", "which", "who", "is", "was",
                "and", "or", "di", "con", "per", "che", "libero", "libera", "please", "tu", "a", "il", "la",
                "lo",
            ])
    });
    pointed || !counts
}

fn key(value: f64) -> Option<i64> {
    (value.is_finite() && value.abs() < 9e12).then(|| (value * 1000.0).round() as i64)
}
