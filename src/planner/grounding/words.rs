//! Splits a text into words and figures, without case and accents.

use std::cell::OnceCell;

use crate::language::number_words;

/// Longest text that is read, in bytes.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// A run of letters and digits, or a punctuation mark.
#[derive(Debug, Clone)]
pub(super) struct SourceWord {
    /// Lower case, without accents.
    pub norm: String,
    /// Whether it directly follows the previous one.
    pub glued: bool,
    /// Whether it was capitalised.
    pub capital: bool,
    /// Its value as a number word, and as an ordinal: readers of days, times and numbers each ask for them.
    number: OnceCell<Option<u32>>,
    rank: OnceCell<Option<u32>>,
}

impl SourceWord {
    /// A word in lower case and without accents.
    pub fn new(norm: String, glued: bool, capital: bool) -> Self {
        Self { norm, glued, capital, number: OnceCell::new(), rank: OnceCell::new() }
    }

    /// Its value as a number word: "three".
    pub fn spoken(&self) -> Option<u32> {
        *self.number.get_or_init(|| number_words::spoken(&self.norm))
    }

    /// Its value as an ordinal: "third", "3rd".
    pub fn ordinal(&self) -> Option<u32> {
        *self.rank.get_or_init(|| number_words::ordinal(&self.norm))
    }

    /// Returns whether it is one of these.
    pub fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.norm.as_str())
    }

    /// Its value, if it consists of at most eight digits.
    pub fn figure(&self) -> Option<u32> {
        let digits = (1..=8).contains(&self.norm.len()) && self.norm.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| self.norm.parse().ok()).flatten()
    }

    /// Returns whether it consists of letters.
    pub fn alphabetic(&self) -> bool {
        self.norm.chars().all(char::is_alphabetic)
    }
}

/// Lower case, without accents.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { deunicode::deunicode(text).to_lowercase() }
}

/// The first [`MAX_TEXT`] bytes.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

pub(super) fn words(text: &str) -> Vec<SourceWord> {
    let mut out: Vec<SourceWord> = Vec::new();
    let mut run = String::new();
    let mut glued = false;
    let mut gap = true;
    for c in cut(text).chars().chain([' ']) {
        if c.is_alphanumeric() || matches!(c, '°' | 'º' | 'ª') {
            if run.is_empty() {
                glued = !gap;
            }
            run.push(c);
            gap = false;
            continue;
        }
        if !run.is_empty() {
            push(&mut out, &run, glued);
            run.clear();
        }
        if c.is_whitespace() {
            gap = true;
        } else {
            let mark = match c {
                '–' | '—' | '−' | '‑' => '-',
                '’' => '\'',
                other => other,
            };
            out.push(SourceWord::new(mark.to_string(), !gap, false));
            gap = false;
        }
    }
    out
}

fn push(out: &mut Vec<SourceWord>, run: &str, glued: bool) {
    let capital = run.chars().next().is_some_and(char::is_uppercase);
    let norm = match run.is_ascii() {
        true => run.to_ascii_lowercase(),
        // Ordinal indicators count as letters.
        false => fold(&run.replace(['°', 'º', 'ª'], "o")).chars().filter(|c| c.is_alphanumeric()).collect(),
    };
    // "15T08" of a date and time.
    if let Some((day, hour)) = norm.split_once('t')
        && [day, hour].iter().all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit()))
    {
        out.push(SourceWord::new(day.to_owned(), glued, false));
        out.push(SourceWord::new("t".to_owned(), true, false));
        out.push(SourceWord::new(hour.to_owned(), true, false));
        return;
    }
    out.push(SourceWord::new(norm, glued, capital));
}

/// The words of a property's name: `guestName` and `guest_name` yield "guest", "name".
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut lower = false;
    for c in name.chars().take(200) {
        if c.is_uppercase() && lower {
            spaced.push(' ');
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    spaced.split_whitespace().map(fold).collect()
}

/// The word without a plural ending, as common in property names.
pub(super) fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).unwrap_or(word)
}
