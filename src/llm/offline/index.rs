//! The catalogue, prepared for comparison: which words each tool's texts have, how telling each word
//! is, and each example as the words it is made of.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use jiff::civil::Date;

use super::entities::{self, Entities};
use super::lexicon;
use super::prompt::SceneCard;
use super::pronouns;
use super::routing::Hit;
use super::schema::{self, ArgumentField, ArgumentKind};
use super::text::{self, Features, Token, TokenCache, features, name_words};

const MAX_EXAMPLES: usize = 40;

/// Places that values fill, and the mood: what an example and a clause have alike besides words.
/// A date, a number, a name, a value of an enumeration; a question rather than an order.
pub(super) const SLOTS: [&str; 5] = ["#date", "#number", "#name", "#value", "#asks"];

/// How much having a slot in common weighs.
pub(super) const SLOT_WEIGHT: [f64; 5] = [0.25, 0.2, 0.2, 0.25, 0.4];

/// The catalogue, prepared for comparison.
pub(super) struct Index {
    /// The scenes as told.
    pub scenes: Vec<SceneCard>,
    /// All tools of all scenes.
    pub tools: Vec<IndexedTool>,
    /// By scene: words that are values of its enumerations.
    pub values: Vec<HashSet<usize>>,
    /// By word: how telling it is, from 0 to 1.
    pub weight: Vec<f64>,
    terms: Vec<Rc<Features>>,
    by_key: HashMap<String, Vec<usize>>,
    /// Words looked up before: the same words are judged several times while a request is split.
    looked_up: RefCell<HashMap<String, Likes>>,
    /// What words were found to lead to, by the day and the scene spoken of before.
    pub routed: RefCell<Routed>,
}

/// By the day and the scene spoken of before: the tools that words come near to.
type Routed = TokenCache<(Date, Option<usize>), Vec<Hit>>;

/// Words of the catalogue, each with how like it is.
type Likes = Rc<Vec<(usize, f64)>>;

/// Most words whose likes are remembered.
const MAX_MEMORY: usize = 4096;

/// One tool.
pub(super) struct IndexedTool {
    /// Index of its scene.
    pub scene: usize,
    /// Its index in the scene.
    pub tool: usize,
    /// Words that speak of it, from 0.45 (an argument's) to 1 (an example's).
    pub words: HashMap<usize, f64>,
    /// Its examples: words, sorted, with their weights.
    pub examples: Vec<Vec<(usize, f64)>>,
    /// It takes a thing of any kind, so an unknown noun may be its object.
    pub open: bool,
    /// It takes a text that only the user can word, so the words behind its verb are no subject.
    pub free: bool,
    /// The first word of its name: what it does.
    pub verb: Option<usize>,
    /// Its name says a doing that nobody means without saying it.
    pub special: bool,
    /// Its arguments.
    pub fields: Vec<ArgumentField>,
}

thread_local! {
    static LAST: RefCell<Vec<(String, Rc<Index>)>> = const { RefCell::new(Vec::new()) };
}

impl Index {
    /// The index of a catalogue as it stands in a prompt; the last two are remembered.
    pub fn of(section: &str, scenes: impl FnOnce() -> Vec<SceneCard>) -> Rc<Index> {
        if let Some(known) =
            LAST.with(|l| l.borrow().iter().find(|(s, _)| s == section).map(|(_, i)| Rc::clone(i)))
        {
            return known;
        }
        let index = Rc::new(IndexBuilder::default().build(scenes()));
        LAST.with(|l| {
            let mut last = l.borrow_mut();
            if last.len() >= 2 {
                last.remove(0);
            }
            last.push((section.to_owned(), Rc::clone(&index)));
        });
        index
    }

    /// A tool, by its scene and its place in it.
    pub fn entry(&self, hit: Hit) -> Option<&IndexedTool> {
        // They stand in the order of the catalogue.
        let at = self.tools.binary_search_by_key(&(hit.scene, hit.tool), |e| (e.scene, e.tool)).ok()?;
        self.tools.get(at)
    }

    /// Whether some text of the catalogue has this word or one like it.
    pub fn knows(&self, word: &Features) -> bool {
        keys(word).iter().any(|k| self.by_key.contains_key(k))
    }

    /// The number of a slot, where some example has it.
    pub fn slot(&self, slot: &str) -> Option<usize> {
        self.by_key.get(slot).and_then(|ids| ids.first().copied())
    }

    /// The catalogue's words that are like this one, with how like they are.
    pub fn like(&self, word: &Features) -> Likes {
        if let Some(known) = self.looked_up.borrow().get(&word.norm) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.look_up(word));
        let mut memory = self.looked_up.borrow_mut();
        if memory.len() >= MAX_MEMORY {
            memory.clear();
        }
        memory.insert(word.norm.clone(), Rc::clone(&found));
        found
    }

    fn look_up(&self, word: &Features) -> Vec<(usize, f64)> {
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
                    && term.norm.as_bytes().first() == word.norm.as_bytes().first()
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

/// What sort of word something is: what a request is about, what is done, or what only helps.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sort {
    /// What it is about.
    Subject,
    /// What is done.
    Action,
    /// Question words, units of time.
    Helper,
}

/// The sort of a word and how much it can tell at most.
pub(super) fn sort(f: &Features) -> (Sort, f64) {
    if lexicon::is_asking(&f.norm) {
        (Sort::Helper, 0.3)
    } else if lexicon::is_measure(&f.norm) {
        (Sort::Helper, 0.35)
    } else if lexicon::is_action(&f.concepts) || pronouns::is_suffixed(&f.norm) {
        (Sort::Action, 0.6)
    } else {
        (Sort::Subject, 1.0)
    }
}

/// The words that a token stands for: itself, in the sense it has here, and with its neighbour what
/// the pair means.
pub(super) fn senses(tokens: &[Token], i: usize) -> Vec<&str> {
    let Some(token) = tokens.get(i) else { return Vec::new() };
    let pair = tokens.get(i + 1).and_then(|next| lexicon::pair(&token.norm, &next.norm));
    // "Book" opens an order or follows "to": then it is what is done, not what is read.
    let before = i.checked_sub(1).and_then(|b| tokens.get(b)).filter(|t| t.word);
    let does = token.norm == "book"
        && before.is_none_or(|t| {
            t.is(&["to", "please", "and", "then", "you", "first", "also", "i", "we", "me", "just", "must"])
        });
    let own = if does { "reserve" } else { token.norm.as_str() };
    std::iter::once(own).chain(pair).collect()
}

/// Whether the words ask for something to be told, rather than done.
pub(super) fn asks(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let polite = words.first().is_some_and(|t| {
        t.is(&["puoi", "potresti", "can", "could", "would", "will", "potete", "may", "mi", "ci"])
    });
    let early =
        words.iter().take(4).any(|t| lexicon::is_asking(&t.norm) && !t.is(&["perche", "why", "que", "como"]));
    let told = words.iter().take(6).any(|t| {
        t.is(&[
            "dimmi", "mostrami", "mostra", "sapere", "know", "show", "tell", "list", "elenca", "elencami",
            "vedere", "see", "dammi", "leggi", "telling",
        ])
    });
    let mark = tokens.iter().any(|t| t.raw == "?");
    early || told || (mark && !polite)
}

/// The slots that a text has, in the order of [`SLOTS`]; values of enumerations are not seen here.
pub(super) fn slots(tokens: &[Token], entities: &Entities) -> [bool; 5] {
    [
        !entities.days.is_empty(),
        entities.numbers.iter().any(|n| !entities.taken[n.first]),
        tokens.iter().enumerate().any(|(i, t)| t.capital() && !t.first && !entities.taken[i]),
        false,
        asks(tokens),
    ]
}

/// The letters that a code begins with: `INC-12` → `#code-inc`. Codes of one kind share them.
pub(super) fn code(norm: &str) -> Option<String> {
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

fn words_of(text: &str) -> Vec<String> {
    let tokens = text::tokens(text);
    // What a description quotes is a sample, no word of its own.
    let quotes = entities::quotes(&tokens);
    let quoted = |i: usize| quotes.iter().any(|(a, b)| (*a..=*b).contains(&i));
    let mut out: Vec<String> = Vec::new();
    for (i, token) in tokens.iter().enumerate().filter(|(i, t)| t.word && !quoted(*i)) {
        out.extend(senses(&tokens, i).into_iter().map(str::to_owned));
        if token.norm.contains(['-', '/']) {
            out.extend(token.norm.split(['-', '/']).map(str::to_owned));
        }
    }
    out
}

#[derive(Default)]
struct IndexBuilder {
    terms: Vec<Rc<Features>>,
    known: HashMap<String, usize>,
    /// By key: the scenes whose texts have it.
    seen: HashMap<String, HashSet<usize>>,
    values: Vec<HashSet<usize>>,
    tools: Vec<IndexedTool>,
}

impl IndexBuilder {
    fn term(&mut self, word: &str, scene: usize) -> Option<usize> {
        if word.len() < 2 || (lexicon::is_stop(word) && !lexicon::is_asking(word)) {
            return None;
        }
        let terms = &mut self.terms;
        let id = *self.known.entry(word.to_owned()).or_insert_with(|| {
            terms.push(features(word));
            terms.len() - 1
        });
        for key in keys(&features(word)) {
            self.seen.entry(key).or_default().insert(scene);
        }
        Some(id)
    }

    fn all(&mut self, words: impl IntoIterator<Item = String>, scene: usize) -> Vec<usize> {
        words.into_iter().filter_map(|w| self.term(&w, scene)).collect()
    }

    fn build(mut self, scenes: Vec<SceneCard>) -> Index {
        for (s, scene) in scenes.iter().enumerate() {
            self.scene(s, scene);
        }
        let count = scenes.len().max(1) as f64;
        let weigh = |f: &Rc<Features>| {
            if let Some(slot) = SLOTS.iter().position(|s| *s == f.norm) {
                return SLOT_WEIGHT[slot];
            }
            let scenes =
                keys(f).iter().take(3).filter_map(|k| self.seen.get(k)).map(HashSet::len).max().unwrap_or(1);
            let rare = (1.0 + count / scenes.max(1) as f64).ln() / (1.0 + count).ln();
            rare * sort(f).1
        };
        let weight: Vec<f64> = self.terms.iter().map(weigh).collect();
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (id, f) in self.terms.iter().enumerate() {
            for key in keys(f) {
                by_key.entry(key).or_default().push(id);
            }
        }
        for example in self.tools.iter_mut().flat_map(|e| &mut e.examples) {
            example.sort_by_key(|e| e.0);
            example.dedup_by_key(|e| e.0);
            for (id, w) in example.iter_mut() {
                *w = weight[*id];
            }
        }
        Index {
            scenes,
            tools: self.tools,
            values: self.values,
            weight,
            terms: self.terms,
            by_key,
            looked_up: RefCell::default(),
            routed: RefCell::default(),
        }
    }

    fn scene(&mut self, s: usize, scene: &SceneCard) {
        let fields: Vec<Vec<ArgumentField>> =
            scene.tools.iter().map(|t| schema::fields(&t.parameters)).collect();
        // Values that a schema gives as examples are no words of the requests that hold them; values
        // of enumerations fill a place in an example, they do not make it.
        let samples: HashSet<String> = fields
            .iter()
            .flatten()
            .flat_map(|f| &f.examples)
            .flat_map(|e| text::norms(e))
            .filter(|w| !lexicon::is_stop(w))
            .chain(somebody(scene))
            .collect();
        let options: HashSet<String> = fields.iter().flatten().flat_map(option_words).collect();
        let values = self.all(options.iter().cloned().collect::<std::collections::BTreeSet<_>>(), s);
        self.values.push(values.into_iter().collect());
        let about = self.all(words_of(&scene.description).into_iter().chain(name_words(&scene.scene)), s);
        let mut shared: HashMap<usize, f64> = about.into_iter().map(|id| (id, 0.6)).collect();
        let mut examples: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        for example in scene.examples.iter().take(MAX_EXAMPLES) {
            let (words, places) = self.example(&example.say, s, &samples, &options);
            for id in &words {
                shared.entry(*id).or_insert(0.5);
            }
            examples.push((example.tool.as_deref(), words.into_iter().chain(places).collect()));
        }
        for (t, (tool, fields)) in scene.tools.iter().zip(fields).enumerate() {
            let mut words = shared.clone();
            let mut put = |ids: Vec<usize>, weight: f64| {
                for id in ids {
                    let entry = words.entry(id).or_insert(0.0);
                    *entry = entry.max(weight);
                }
            };
            for field in &fields {
                let said = words_of(&field.description);
                let codes: Vec<String> = field
                    .examples
                    .iter()
                    .flat_map(|e| words_of(e))
                    .chain(said.iter().cloned())
                    .filter_map(|w| code(&w))
                    .collect();
                put(self.all(codes, s), 0.9);
                put(self.all(name_words(&field.name).into_iter().chain(said), s), 0.45);
                put(self.all(option_words(field), s), 0.6);
            }
            put(self.all(words_of(&tool.description), s), 0.8);
            let parts = name_words(&tool.name);
            let joined: Vec<String> = parts.windows(2).map(|p| p.concat()).collect();
            let name = self.all(parts.iter().cloned().chain(joined), s);
            let verb = parts.first().and_then(|v| self.term(v, s));
            put(name, 0.9);
            for (_, ids) in examples.iter().filter(|(name, _)| *name == Some(tool.name.as_str())) {
                put(ids.clone(), 1.0);
            }
            let own = examples
                .iter()
                .filter(|(name, _)| name.is_none_or(|n| n == tool.name))
                .map(|(_, ids)| ids.iter().map(|id| (*id, 0.0)).collect())
                .collect();
            let special = parts.iter().take(2).any(|w| lexicon::is_special(&features(w).concepts));
            let general = [
                "item", "product", "article", "articolo", "prodotto", "thing", "object", "goods", "material",
                "what", "supply",
            ];
            let open =
                fields.iter().any(|f| f.required && f.kind == ArgumentKind::Thing && f.named(&general));
            let free = fields.iter().any(|f| {
                f.required
                    && f.kind == ArgumentKind::Text
                    && !f.named(&["query", "q", "search", "keywords", "topic"])
            });
            self.tools.push(IndexedTool {
                scene: s,
                tool: t,
                words,
                examples: own,
                open,
                free,
                verb,
                special,
                fields,
            });
        }
    }

    /// The words of an example, and its slots.
    fn example(
        &mut self,
        say: &str,
        s: usize,
        samples: &HashSet<String>,
        options: &HashSet<String>,
    ) -> (Vec<usize>, Vec<usize>) {
        let tokens = text::tokens(say);
        let entities = Entities::of(&tokens, Date::constant(2026, 1, 1));
        let mut words: Vec<usize> = Vec::new();
        let mut there = slots(&tokens, &entities);
        let number = |i: usize| entities.numbers.iter().any(|n| (n.first..=n.last).contains(&i));
        for (i, token) in tokens.iter().enumerate().filter(|(i, _)| !number(*i)) {
            if let Some(code) = code(&token.norm) {
                words.extend(self.term(&code, s));
                continue;
            }
            if !token.word
                || entities.taken[i]
                || entities.quoted[i]
                || token.digit()
                || (token.capital() && !token.first)
            {
                continue;
            }
            if samples.contains(&token.norm) {
                there[2] = true;
            } else if options.contains(&token.norm) {
                there[3] = true;
            } else {
                for word in senses(&tokens, i) {
                    words.extend(self.term(word, s));
                }
            }
        }
        let places = SLOTS
            .iter()
            .zip(there)
            .filter(|(_, there)| *there)
            .filter_map(|(slot, _)| self.term(slot, s))
            .collect();
        (words, places)
    }
}

/// Names in examples that ask who somebody is ("who is mrossi?"): the one word that is in no text of the scene
/// and in no dictionary.
fn somebody(scene: &SceneCard) -> Vec<String> {
    let asked = |say: &str| {
        let tokens = text::tokens(say);
        let who = tokens.iter().find(|t| t.word)?.is(&["who", "chi", "qui", "wer", "quien"]);
        let content = |t: &&Token| t.word && !lexicon::is_stop(&t.norm) && !lexicon::is_asking(&t.norm);
        let mut content = tokens.iter().filter(content);
        let one = content.next().filter(|t| who && t.features().concepts.is_empty())?;
        content.next().is_none().then(|| one.norm.clone())
    };
    let mut names: Vec<String> =
        scene.examples.iter().take(MAX_EXAMPLES).filter_map(|e| asked(&e.say)).collect();
    if !names.is_empty() {
        let tools =
            scene.tools.iter().flat_map(|t| words_of(&t.description).into_iter().chain(name_words(&t.name)));
        let texts: HashSet<String> =
            words_of(&scene.description).into_iter().chain(name_words(&scene.scene)).chain(tools).collect();
        names.retain(|name| !texts.contains(name));
    }
    names
}

/// The words of the values of an enumeration, where one word says the value.
fn option_words(field: &ArgumentField) -> Vec<String> {
    match &field.kind {
        ArgumentKind::Enum(choices) => {
            choices.iter().flat_map(|c| &c.words).filter(|w| w.len() == 1).flatten().cloned().collect()
        }
        _ => Vec::new(),
    }
}
