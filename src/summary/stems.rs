//! The stems of words, by language.

use std::collections::HashMap;
use std::rc::Rc;

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum size of a word that has a stem of its own, in bytes: what is longer is no word.
const MAX_WORD: usize = 40;
/// How many words are kept; a full cache is cleared.
const MAX_KEPT: usize = 50_000;

/// The stems of a language's words.
pub(super) struct Stems {
    stemmer: Option<Stemmer>,
    known: HashMap<String, WordForms>,
}

/// A word as it is compared with others.
#[derive(Clone)]
pub(super) struct WordForms {
    /// In lower case and without accents.
    pub norm: Rc<str>,
    /// Its stem, in lower case and without accents.
    pub stem: Rc<str>,
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

    /// The forms of a word.
    pub fn forms(&mut self, word: &str) -> WordForms {
        if let Some(known) = self.known.get(word) {
            return known.clone();
        }
        let lower = word.to_lowercase();
        let stem = match &self.stemmer {
            Some(stemmer) if lower.len() <= MAX_WORD => stemmer.stem(&lower),
            _ => lower.as_str().into(),
        };
        let stem = if stem.is_ascii() { stem } else { crate::language::fold(&stem).into() };
        let forms = WordForms { norm: crate::language::fold(word).into(), stem: stem.into() };
        if self.known.len() >= MAX_KEPT {
            self.known.clear();
        }
        self.known.insert(word.to_owned(), forms.clone());
        forms
    }

    /// The stem of a word, in lower case and without accents.
    pub fn stem(&mut self, word: &str) -> Rc<str> {
        self.forms(word).stem
    }
}
