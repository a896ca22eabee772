//! Which tool of which scene serves some words: likeness to examples, and how much of the words the
//! tool's own texts cover.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::entities::Entities;
use super::lexicon;
use super::prompt::SceneCard;
use super::schema::{self, Field, Kind};
use super::text::{self, Features, Token, features, name_words};

/// Below this nothing fits.
pub(super) const FITS: f64 = 0.34;
/// From here on a part of a sentence may be a request of its own.
pub(super) const STRONG: f64 = 0.42;

const MAX_EXAMPLES: usize = 40;

/// The catalogue, prepared for comparison.
pub(super) struct Index {
    /// The scenes as told.
    pub scenes: Vec<SceneCard>,
    tools: Vec<Entry>,
    terms: Vec<Rc<Features>>,
    by_key: HashMap<String, Vec<usize>>,
    weight: Vec<f64>,
}

struct Entry {
    scene: usize,
    tool: usize,
    words: HashMap<usize, f64>,
    examples: Vec<Vec<(usize, f64)>>,
    /// Its name says a doing that nobody means without saying it.
    special: bool,
    fields: Vec<Field>,
}

/// A tool that fits some words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    /// Index of the scene.
    pub scene: usize,
    /// Index of the tool in the scene.
    pub tool: usize,
    /// How well, from 0 to about 1.
    pub score: f64,
    /// How far ahead of the best tool of any other scene.
    pub lead: f64,
}

/// One content word of a clause.
struct Word {
    weight: f64,
    matches: Vec<(usize, f64)>,
    kind: Sort,
    special: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Subject,
    Action,
    Asking,
}

// Slots that an example and a clause both have are a small likeness.
const SLOTS: [&str; 3] = ["#date", "#number", "#name"];

#[cfg(test)]
thread_local! {
    static SCORES: RefCell<Vec<Hit>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    static LAST: RefCell<Vec<(String, Rc<Index>)>> = const { RefCell::new(Vec::new()) };
}

impl Index {
    /// The index of a catalogue as it stands in a prompt; the last two are remembered.
    pub fn of(section: &str, scenes: impl FnOnce() -> Vec<SceneCard>) -> Rc<Index> {
        if let Some(known) = LAST.with(|l| l.borrow().iter().find(|(s, _)| s == section).map(|(_, i)| Rc::clone(i))) {
            return known;
        }
        let index = Rc::new(Index::build(scenes()));
        LAST.with(|l| {
            let mut last = l.borrow_mut();
            if last.len() >= 2 {
                last.remove(0);
            }
            last.push((section.to_owned(), Rc::clone(&index)));
        });
        index
    }

    fn build(scenes: Vec<SceneCard>) -> Self {
        let mut index =
            Index { scenes, tools: Vec::new(), terms: Vec::new(), by_key: HashMap::new(), weight: Vec::new() };
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut seen: HashMap<String, HashSet<usize>> = HashMap::new();
        let scenes = std::mem::take(&mut index.scenes);
        for (s, scene) in scenes.iter().enumerate() {
            let mut term = |index: &mut Index, word: &str| -> Option<usize> {
                let slot = SLOTS.contains(&word);
                if word.len() < 2 || (lexicon::is_stop(word) && !lexicon::is_asking(word)) {
                    return None;
                }
                let id = *known.entry(word.to_owned()).or_insert_with(|| {
                    index.terms.push(features(word));
                    index.terms.len() - 1
                });
                if !slot {
                    for key in keys(&features(word)) {
                        seen.entry(key).or_default().insert(s);
                    }
                }
                Some(id)
            };
            // Values that a schema gives as examples are no words of the requests that hold them.
            let values = sample_values(scene);
            let about: Vec<usize> = words_of(&scene.description)
                .into_iter()
                .chain(name_words(&scene.scene))
                .filter_map(|w| term(&mut index, &w))
                .collect();
            let mut siblings: HashMap<usize, f64> = HashMap::new();
            for id in about {
                siblings.insert(id, 0.6);
            }
            let mut examples: Vec<(Option<&str>, Vec<(usize, f64)>)> = Vec::new();
            for example in scene.examples.iter().take(MAX_EXAMPLES) {
                let tokens = text::tokens(&example.say);
                let entities = Entities::of(&tokens, jiff::civil::Date::constant(2026, 1, 1));
                let mut vector: Vec<(usize, f64)> = Vec::new();
                for (i, token) in tokens.iter().enumerate() {
                    if let Some(code) = code(&token.norm)
                        && let Some(id) = term(&mut index, &code)
                    {
                        vector.push((id, 0.0));
                        continue;
                    }
                    let value = values.contains(&token.norm) || (token.capital() && !token.first) || token.digit();
                    if !token.word || entities.taken[i] || entities.quoted[i] || value {
                        continue;
                    }
                    for word in [Some(token.norm.as_str()), paired(&tokens, i)].into_iter().flatten() {
                        if let Some(id) = term(&mut index, word) {
                            siblings.entry(id).or_insert(0.5);
                            vector.push((id, 0.0));
                        }
                    }
                }
                examples.push((example.tool.as_deref(), vector));
                let mut slots = slots(&tokens, &entities);
                slots[2] |= tokens.iter().any(|t| values.contains(&t.norm));
                if let Some((_, vector)) = examples.last_mut() {
                    for (slot, _) in SLOTS.iter().zip(slots).filter(|(_, there)| *there) {
                        if let Some(id) = term(&mut index, slot) {
                            vector.push((id, 0.0));
                        }
                    }
                }
            }
            for (t, tool) in scene.tools.iter().enumerate() {
                let mut words = siblings.clone();
                let mut put = |id: usize, weight: f64| {
                    let entry = words.entry(id).or_insert(0.0);
                    *entry = entry.max(weight);
                };
                let fields = schema::fields(&tool.parameters);
                for field in &fields {
                    let samples = field.examples.iter().flat_map(|e| words_of(e)).chain(words_of(&field.description));
                    let codes: Vec<String> = samples.filter_map(|w| code(&w)).collect();
                    for code in codes {
                        if let Some(id) = term(&mut index, &code) {
                            put(id, 0.9);
                        }
                    }
                    for word in name_words(&field.name).into_iter().chain(words_of(&field.description)) {
                        if let Some(id) = term(&mut index, &word) {
                            put(id, 0.45);
                        }
                    }
                    if let Kind::Enum(choices) = &field.kind {
                        for word in choices.iter().flat_map(|c| c.words.iter().flatten()) {
                            if let Some(id) = term(&mut index, word) {
                                put(id, 0.45);
                            }
                        }
                    }
                }
                for word in words_of(&tool.description) {
                    if let Some(id) = term(&mut index, &word) {
                        put(id, 0.8);
                    }
                }
                let parts = name_words(&tool.name);
                for word in parts.iter().cloned().chain(parts.windows(2).map(|p| p.concat())) {
                    if let Some(id) = term(&mut index, &word) {
                        put(id, 0.9);
                    }
                }
                let own: Vec<Vec<(usize, f64)>> = examples
                    .iter()
                    .filter(|(name, _)| name.is_none_or(|n| n == tool.name))
                    .map(|(_, vector)| vector.clone())
                    .collect();
                for (name, vector) in &examples {
                    if *name == Some(tool.name.as_str()) {
                        for (id, _) in vector {
                            put(*id, 1.0);
                        }
                    }
                }
                let special = parts.iter().take(2).any(|w| lexicon::is_special(&features(w).concepts));
                index.tools.push(Entry { scene: s, tool: t, words, examples: own, special, fields });
            }
        }
        let count = scenes.len().max(1) as f64;
        index.weight = index
            .terms
            .iter()
            .map(|f| {
                if SLOTS.contains(&f.norm.as_str()) {
                    return 0.25;
                }
                let scenes = keys(f).iter().take(3).filter_map(|k| seen.get(k)).map(HashSet::len).max().unwrap_or(1);
                let rare = (1.0 + count / scenes.max(1) as f64).ln() / (1.0 + count).ln();
                rare * sort(f).1
            })
            .collect();
        for (id, f) in index.terms.iter().enumerate() {
            for key in keys(f) {
                index.by_key.entry(key).or_default().push(id);
            }
        }
        for entry in &mut index.tools {
            for example in &mut entry.examples {
                example.sort_by_key(|e| e.0);
                example.dedup_by_key(|e| e.0);
                for (id, weight) in example.iter_mut() {
                    *weight = index.weight[*id];
                }
            }
        }
        index.scenes = scenes;
        index
    }

    /// Whether some text of the catalogue has this word or one like it.
    pub fn knows(&self, word: &Features) -> bool {
        keys(word).iter().any(|k| self.by_key.contains_key(k))
    }

    /// The arguments of a tool.
    pub fn fields(&self, hit: Hit) -> &[Field] {
        self.entry(hit.scene, hit.tool).map(|e| e.fields.as_slice()).unwrap_or_default()
    }

    fn entry(&self, scene: usize, tool: usize) -> Option<&Entry> {
        self.tools.iter().find(|e| e.scene == scene && e.tool == tool)
    }

    /// The scene and tool with these names.
    pub fn named(&self, scene: &str, tool: &str) -> Option<Hit> {
        let s = self.scenes.iter().position(|c| c.scene == scene)?;
        let t = self.scenes[s].tools.iter().position(|t| t.name == tool)?;
        Some(Hit { scene: s, tool: t, score: 1.0, lead: 1.0 })
    }

    /// The best tool for a clause, where one fits. `near` is the scene spoken of just before, which
    /// words that only point back belong to.
    pub fn route(&self, clause: &str, today: jiff::civil::Date, near: Option<usize>) -> Option<Hit> {
        self.best(clause, today, near).filter(|hit| hit.score >= FITS)
    }

    /// The best tool for a clause, however badly it fits.
    pub fn best(&self, clause: &str, today: jiff::civil::Date, near: Option<usize>) -> Option<Hit> {
        let tokens = text::tokens(clause);
        let entities = Entities::of(&tokens, today);
        let words = self.words(&tokens, &entities);
        let total: f64 = words.iter().map(|w| w.weight).sum();
        if total <= 0.0 {
            return None;
        }
        let mut slots = slots(&tokens, &entities);
        slots[2] |= words.iter().any(|w| w.weight == 0.05);
        let slot_ids: Vec<usize> = SLOTS
            .iter()
            .zip(slots)
            .filter(|(_, there)| *there)
            .filter_map(|(slot, _)| self.by_key.get(*slot).and_then(|ids| ids.first().copied()))
            .collect();
        let norm = (words.iter().map(|w| w.weight * w.weight).sum::<f64>() + 0.0625 * slot_ids.len() as f64).sqrt();
        let asks = tokens.iter().take(4).any(|t| lexicon::is_asking(&t.norm));
        let points_back = tokens.iter().any(|t| t.is(lexicon::BACK) || t.norm.ends_with("melo") || t.norm.ends_with("mela"));
        // An unknown thing that an action is done to: "book a flight" is no request for a table.
        let unknown = words.iter().filter(|w| w.matches.is_empty() && w.kind == Sort::Subject && w.weight > 0.5).count();
        let mut hits: Vec<Hit> = Vec::new();
        for entry in &self.tools {
            let mut cover = 0.0;
            let mut subject: f64 = 0.0;
            let mut action: f64 = 0.0;
            for word in &words {
                let best = word
                    .matches
                    .iter()
                    .filter_map(|(id, sim)| entry.words.get(id).map(|w| w * sim))
                    .fold(0.0, f64::max);
                cover += word.weight * best;
                match word.kind {
                    Sort::Subject => subject = subject.max(best),
                    Sort::Action => action = action.max(best),
                    Sort::Asking => {}
                }
            }
            let near_here = points_back && near == Some(entry.scene);
            let like = entry.examples.iter().map(|e| self.likeness(&words, &slot_ids, e, norm)).fold(0.0, f64::max);
            // "Chi è X?" may be all that an example says, too.
            let same = like > 0.93 && slots[2];
            if subject < 0.5 && !(action >= 0.6 && (unknown == 0 || near_here)) && !(near_here && cover > 0.0) && !same {
                continue;
            }
            let mut score = 0.55 * like + 0.45 * (cover / total);
            let tool = &self.scenes[entry.scene].tools[entry.tool];
            if entry.special && like < 0.93 && !words.iter().any(|w| w.special) {
                score -= 0.18;
            }
            if asks && tool.writes() {
                score -= 0.08;
            }
            let has = |wanted: &[Kind]| entry.fields.iter().any(|f| wanted.contains(&f.kind));
            if slots[0] {
                score += if has(&[Kind::Date, Kind::DateTime]) { 0.05 } else { -0.03 };
            }
            if subject < 0.5 {
                score *= if near_here { 1.3 } else { 0.9 };
            } else if near_here {
                score += 0.1;
            }
            hits.push(Hit { scene: entry.scene, tool: entry.tool, score, lead: 0.0 });
        }
        #[cfg(test)]
        SCORES.with(|s| *s.borrow_mut() = hits.clone());
        // Equal scores: the order of the catalogue decides, so that the choice is always the same.
        let mut best = hits.iter().copied().reduce(|a, b| if b.score > a.score + 1e-9 { b } else { a })?;
        let other = hits.iter().filter(|h| h.scene != best.scene).map(|h| h.score).fold(0.0, f64::max);
        best.lead = best.score - other;
        Some(best)
    }

    /// All candidates with their scores, for tests.
    #[cfg(test)]
    pub fn scores(&self, clause: &str, today: jiff::civil::Date) -> Vec<(String, f64)> {
        SCORES.with(|s| s.borrow_mut().clear());
        self.best(clause, today, None);
        let mut all: Vec<(String, f64)> = SCORES.with(|s| s.borrow().iter().map(|h| (self.scenes[h.scene].tools[h.tool].name.clone(), h.score)).collect());
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    fn likeness(&self, words: &[Word], slots: &[usize], example: &[(usize, f64)], norm: f64) -> f64 {
        let size: f64 = example.iter().map(|(_, w)| w * w).sum::<f64>().sqrt();
        if size <= 0.0 || norm <= 0.0 {
            return 0.0;
        }
        let weight_of = |id: usize| example.binary_search_by_key(&id, |e| e.0).ok().map(|at| example[at].1);
        let mut dot = 0.0;
        for word in words {
            dot += word
                .matches
                .iter()
                .filter_map(|(id, sim)| weight_of(*id).map(|w| w * sim * word.weight))
                .fold(0.0, f64::max);
        }
        for id in slots {
            if let Some(w) = weight_of(*id) {
                dot += w * 0.25;
            }
        }
        (dot / (size * norm)).min(1.0)
    }

    /// The content words of a clause with the words of the catalogue they are like.
    fn words(&self, tokens: &[Token], entities: &Entities) -> Vec<Word> {
        let mut out = Vec::new();
        let mut free = false;
        for (i, token) in tokens.iter().enumerate() {
            if token.raw == ":" || token.is(&["perche", "because", "poiche", "saying"]) {
                free = i > 0;
            }
            if !token.word || entities.taken[i] || entities.quoted[i] || token.norm.len() < 2 {
                continue;
            }
            let asking = lexicon::is_asking(&token.norm);
            if lexicon::is_stop(&token.norm) && !asking {
                continue;
            }
            let mut matches = self.like(&token.features());
            if let Some(joined) = paired(tokens, i) {
                matches.extend(self.like(&features(joined)));
            }
            let name = token.capital() && !token.first;
            if let Some(code) = code(&token.norm) {
                matches.extend(self.like(&features(&code)));
            }
            if matches.is_empty() && (token.digit() || asking) {
                continue;
            }
            let (kind, factor) = sort(&token.features());
            let known = matches.iter().map(|(id, _)| self.weight[*id]).fold(0.0, f64::max);
            let mut weight = if matches.is_empty() {
                let place = i > 0 && tokens[i - 1].is(&["a", "ad", "in", "at", "to", "da", "di", "for", "per", "from"]);
                match (name, place) {
                    (true, _) => 0.1,
                    (false, true) => 0.45,
                    (false, false) => 0.9 * factor,
                }
            } else {
                known
            };
            if name && !matches.is_empty() {
                weight *= 0.7;
            }
            if free {
                weight *= 0.15;
            }
            let special = lexicon::is_special(&token.features().concepts);
            out.push(Word { weight, matches, kind, special });
        }
        // A question word and one strange word: the strange word is a name.
        let strange = |w: &Word| w.matches.is_empty() && w.kind == Sort::Subject;
        if out.iter().filter(|w| strange(w)).count() == 1 && out.iter().all(|w| strange(w) || w.kind == Sort::Asking) {
            out.iter_mut().filter(|w| strange(w)).for_each(|w| w.weight = 0.05);
        }
        // A long account is no less a request than a short one.
        let unknown: f64 = out.iter().filter(|w| w.matches.is_empty()).map(|w| w.weight).sum();
        if unknown > 2.2 {
            for word in out.iter_mut().filter(|w| w.matches.is_empty()) {
                word.weight *= 2.2 / unknown;
            }
        }
        out
    }

    /// The catalogue's words that are like this one.
    fn like(&self, word: &Features) -> Vec<(usize, f64)> {
        let mut out: Vec<(usize, f64)> = Vec::new();
        for key in keys(word) {
            for id in self.by_key.get(&key).into_iter().flatten() {
                if !out.iter().any(|(known, _)| known == id) {
                    let sim = self.terms[*id].similarity(word);
                    if sim > 0.0 {
                        out.push((*id, sim));
                    }
                }
            }
        }
        if out.is_empty() && word.norm.len() >= 5 && word.concepts.is_empty() {
            for (id, term) in self.terms.iter().enumerate() {
                if term.norm.len() >= 5
                    && term.norm.as_bytes()[0] == word.norm.as_bytes()[0]
                    && strsim::jaro_winkler(&term.norm, &word.norm) > 0.93
                    && strsim::damerau_levenshtein(&term.norm, &word.norm) <= 2
                {
                    out.push((id, 0.75));
                }
            }
        }
        out
    }
}

/// The words of the example values in the schemas of a scene's tools.
fn sample_values(scene: &SceneCard) -> HashSet<String> {
    let texts = scene.tools.iter().flat_map(|t| schema::fields(&t.parameters)).flat_map(|f| f.examples);
    texts.flat_map(|t| text::tokens(&t)).map(|t| t.norm).filter(|w| !lexicon::is_stop(w)).collect()
}

/// The word that this one and its right neighbour stand for.
fn paired(tokens: &[Token], i: usize) -> Option<&'static str> {
    let next = tokens.get(i + 1)?;
    lexicon::pair(&tokens.get(i)?.norm, &next.norm)
}

fn slots(tokens: &[Token], entities: &Entities) -> [bool; 3] {
    [
        !entities.days.is_empty(),
        entities.numbers.iter().any(|n| !entities.taken[n.first]),
        tokens.iter().enumerate().any(|(i, t)| t.capital() && !t.first && !entities.taken[i]),
    ]
}

fn words_of(text: &str) -> Vec<String> {
    let tokens = text::tokens(text);
    let mut out: Vec<String> = Vec::new();
    // What a description quotes is a sample, no word of its own.
    let quotes = super::entities::quotes(&tokens);
    let quoted = |i: usize| quotes.iter().any(|(a, b)| (*a..=*b).contains(&i));
    for (i, token) in tokens.iter().enumerate().filter(|(i, t)| t.word && !quoted(*i)) {
        out.push(token.norm.clone());
        out.extend(paired(&tokens, i).map(str::to_owned));
        if token.norm.contains(['-', '/']) {
            out.extend(token.norm.split(['-', '/']).map(str::to_owned));
        }
    }
    out
}

/// The letters that a code begins with: `INC-12` → `#code-inc`. Codes of one kind share them.
fn code(norm: &str) -> Option<String> {
    let letters: String = norm.chars().take_while(char::is_ascii_alphabetic).collect();
    let digits = norm.chars().filter(char::is_ascii_digit).count();
    (letters.len() >= 2 && digits >= 1 && norm.len() >= 4).then(|| format!("#code-{letters}"))
}

/// What two words share when they are alike.
fn keys(f: &Features) -> Vec<String> {
    let mut keys = vec![f.norm.clone()];
    if f.norm.len() >= 3 {
        keys.push(format!("i:{}", f.it));
        keys.push(format!("e:{}", f.en));
    }
    keys.extend(f.concepts.iter().map(|c| format!("c:{c}")));
    keys
}

fn sort(f: &Features) -> (Sort, f64) {
    if lexicon::is_asking(&f.norm) {
        (Sort::Asking, 0.3)
    } else if lexicon::is_action(&f.concepts) {
        (Sort::Action, 0.6)
    } else {
        (Sort::Subject, 1.0)
    }
}
