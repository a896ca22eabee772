//! German verbs whose prefix stands at the end of an order: "absagen", "sage … ab".

use super::index::{CatalogueIndex, IndexedTool};
use super::text::{Features, features};

/// Prefixes that German verbs have at the end of an order: "absagen", "sage … ab".
const SEPARABLE: &[&str] = &[
    "ab", "an", "auf", "aus", "ein", "hinzu", "mit", "vor", "weg", "zu", "zuruck", "zusammen", "fest", "frei",
];

impl CatalogueIndex {
    /// The words that open orders among the examples of a tool, of which a German verb is another form with its prefix before it.
    pub fn separated_verbs(&self, word: &Features) -> Vec<usize> {
        let german = |word: &Features| word.foreign_stems()[1].clone();
        let mut found = Vec::new();
        for prefix in SEPARABLE {
            let Some(verb) = word.norm.strip_prefix(prefix).filter(|verb| verb.len() > 3) else { continue };
            let stem = german(&features(verb));
            let prefixes = self.by_key.get(*prefix).into_iter().flatten();
            let has_prefix = |tool: &&IndexedTool| prefixes.clone().any(|id| tool.words.contains_key(id));
            for tool in self.tools.iter().filter(has_prefix) {
                let is_form = |id: &&usize| german(&self.terms[**id]) == stem;
                found.extend(tool.openers.iter().filter(is_form).copied());
            }
        }
        found
    }
}
