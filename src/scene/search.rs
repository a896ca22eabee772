//! Finds the scenes that a text may be about, by their words: Okapi BM25 (Robertson and Zaragoza, "The Probabilistic
//! Relevance Framework", 2009) over names, descriptions, tools and examples.
//!
//! A word counts by its stems and by its rows of the lexicon, so that "meteo" finds "weather". Deterministic: equal
//! scores are ordered by name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::{Catalogue, Scene};
use crate::language::lexicon;
use crate::language::text::{self, Features};

/// How fast repetitions of a word lose weight.
const K1: f64 = 1.2;
/// How much long descriptions are discounted, from 0 to 1.
const B: f64 = 0.75;
/// How often each part of a scene counts.
const NAME_WEIGHT: u32 = 3;
const EXAMPLE_WEIGHT: u32 = 2;

/// One feature of a word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Term {
    /// An English or Italian stem, or the word itself.
    Stem(String),
    /// A row of the lexicon.
    Concept(u16),
}

/// The index of a catalogue.
#[derive(Debug, Default)]
pub(crate) struct SceneSearch {
    /// By term: the scenes that contain it, by their place in the catalogue, and its weight there.
    postings: HashMap<Term, Vec<(usize, f64)>>,
}

impl SceneSearch {
    pub(super) fn of(catalogue: &Catalogue) -> Self {
        let counts: Vec<BTreeMap<Term, u32>> = catalogue.iter().map(counted_terms).collect();
        let lengths: Vec<f64> = counts.iter().map(|terms| terms.values().sum::<u32>().into()).collect();
        let average = (lengths.iter().sum::<f64>() / lengths.len().max(1) as f64).max(1.0);
        let mut containing: HashMap<Term, Vec<(usize, f64)>> = HashMap::new();
        for (place, terms) in counts.into_iter().enumerate() {
            let long = 1.0 - B + B * lengths[place] / average;
            for (term, count) in terms {
                let count = f64::from(count);
                containing.entry(term).or_default().push((place, count * (K1 + 1.0) / (count + K1 * long)));
            }
        }
        let all = lengths.len() as f64;
        for found in containing.values_mut() {
            let with = found.len() as f64;
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            found.iter_mut().for_each(|(_, weight)| *weight *= rarity);
        }
        Self { postings: containing }
    }

    /// The places in the catalogue of the scenes that share a word with `text`, the best first.
    pub(crate) fn ranking(&self, text: &str) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for word in text::norms(text).filter(|word| !lexicon::is_stop_word(word)) {
            for term in terms(&text::features(&word)) {
                if !seen.insert(term.clone()) {
                    continue;
                }
                for (place, weight) in self.postings.get(&term).into_iter().flatten() {
                    *scores.entry(*place).or_default() += weight;
                }
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        ranked.into_iter().map(|(place, _)| place).collect()
    }
}

fn terms(word: &Features) -> Vec<Term> {
    let mut terms = vec![Term::Stem(word.en.clone())];
    if word.it != word.en {
        terms.push(Term::Stem(word.it.clone()));
    }
    terms.extend(word.concepts.iter().map(|row| Term::Concept(*row)));
    terms
}

fn counted_terms(scene: &Arc<Scene>) -> BTreeMap<Term, u32> {
    let mut counts = BTreeMap::new();
    let mut count = |word: &str, weight: u32| {
        if !lexicon::is_stop_word(word) {
            for term in terms(&text::features(word)) {
                *counts.entry(term).or_default() += weight;
            }
        }
    };
    text::name_words(&scene.name).iter().for_each(|word| count(word, NAME_WEIGHT));
    text::norms(&scene.description).for_each(|word| count(&word, 1));
    for tool in &scene.tools {
        text::name_words(&tool.name).iter().for_each(|word| count(word, 1));
        text::norms(&tool.description).for_each(|word| count(&word, 1));
    }
    for example in &scene.examples {
        text::norms(&example.say).for_each(|word| count(&word, EXAMPLE_WEIGHT));
    }
    counts
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::SceneTool;
    use super::*;
    use crate::run::Effect;
    use crate::tools::{ToolContext, native};

    fn catalogue() -> Catalogue {
        let scene = |name: &str, about: &str| {
            let work = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
            let tool = SceneTool::dynamic("Find", "Finds it.", Effect::Read, json!({"type": "object"}), work);
            Scene::builder(name).description(about).instructions("Be brief.").tool(tool).build().unwrap()
        };
        Catalogue::new([
            scene("Weather", "Forecasts for cities."),
            scene("Invoices", "Lists, pays and archives invoices of suppliers."),
            scene("Vacations", "Requests days off and lists the days left."),
            scene("Rooms", "Books meeting rooms for a day."),
        ])
    }

    fn found(text: &str) -> Vec<String> {
        let catalogue = catalogue();
        catalogue.matching(text).map(|scene| scene.name.clone()).collect()
    }

    #[test]
    fn ranks_the_scene_with_the_rarer_word_first() {
        assert_eq!(found("pay the supplier's invoice of today")[0], "Invoices");
        assert_eq!(found("a room for tomorrow's meeting")[0], "Rooms");
    }

    #[test]
    fn finds_words_of_another_language_by_their_concept() {
        assert_eq!(found("che tempo fa a Milano?")[0], "Weather");
    }

    #[test]
    fn finds_nothing_for_unknown_words() {
        assert_eq!(found("xyzzy"), Vec::<String>::new());
    }
}
