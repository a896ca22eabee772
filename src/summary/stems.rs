//! The stems of words, by language.

use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};

/// The most bytes of a word that has a stem of its own: what is longer is no word.
const MAX_WORD: usize = 40;
/// How many stems are kept; a full cache is cleared.
const MAX_KEPT: usize = 50_000;

/// The stems of a language's words.
pub(super) struct Stems {
    stemmer: Option<Stemmer>,
    known: HashMap<String, String>,
}

impl Stems {
    /// Those of a language (ISO 639-1); in any other, each word is its own stem.
    pub fn of(language: Option<&str>) -> Self {
        let algorithm = match language {
            Some("en") => Some(Algorithm::English),
            Some("it") => Some(Algorithm::Italian),
            Some("fr") => Some(Algorithm::French),
            Some("de") => Some(Algorithm::German),
            Some("es") => Some(Algorithm::Spanish),
            _ => None,
        };
        Self { stemmer: algorithm.map(Stemmer::create), known: HashMap::new() }
    }

    /// The stem of a word, in lower case and without accents.
    pub fn stem(&mut self, word: &str) -> String {
        if let Some(known) = self.known.get(word) {
            return known.clone();
        }
        let lower = word.to_lowercase();
        let stem = match &self.stemmer {
            Some(stemmer) if lower.len() <= MAX_WORD => stemmer.stem(&lower).into_owned(),
            _ => lower,
        };
        let stem = if stem.is_ascii() { stem } else { crate::language::fold(&stem) };
        if self.known.len() >= MAX_KEPT {
            self.known.clear();
        }
        self.known.insert(word.to_owned(), stem.clone());
        stem
    }
}

/// The words of a text: letters and digits.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}
