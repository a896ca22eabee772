//! The search index of the catalogue: the words of each tool's texts, the weight of each word, and the words
//! of each example.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use jiff::civil::Date;

use super::entities::{self, Entities};
use super::lexicon;
use super::pattern;
use super::phrases::{MINDS, POLITE};
use super::prompt::{SceneCard, ToolCard};
use super::pronouns;
use super::routing::Hit;
use super::schema::{self, ArgumentField, ArgumentKind};
use super::scored_clause::asks_how_many;
use super::senses::senses;
use super::text::{self, Features, Token, TokenCache, features, name_words};
use super::weights;

/// Maximum number of examples of a scene; the rest is not read.
const MAX_EXAMPLES: usize = 120;

/// A feature that an example and a clause may share besides words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Date,
    Number,
    Name,
    Value,
    /// Being a question rather than an order.
    Question,
}

/// All slots, in the order in which they are compared.
pub(super) const SLOTS: [Slot; 5] = [Slot::Date, Slot::Number, Slot::Name, Slot::Value, Slot::Question];

impl Slot {
    fn word(self) -> &'static str {
        match self {
            Self::Date => "#date",
            Self::Number => "#number",
            Self::Name => "#name",
            Self::Value => "#value",
            Self::Question => "#asks",
        }
    }

    /// Its weight if a clause and an example share it.
    pub fn weight(self) -> f64 {
        match self {
            Self::Date => weights::DATE_SLOT,
            Self::Number => weights::NUMBER_SLOT,
            Self::Name => weights::NAME_SLOT,
            Self::Value => weights::VALUE_SLOT,
            Self::Question => weights::QUESTION_SLOT,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SlotSet([bool; SLOTS.len()]);

impl SlotSet {
    /// Adds a slot.
    pub fn insert(&mut self, slot: Slot) {
        self.0[slot as usize] = true;
    }

    /// Whether the text has a slot.
    pub fn contains(self, slot: Slot) -> bool {
        self.0[slot as usize]
    }
}

pub(super) struct CatalogueIndex {
    /// The scenes of the prompt.
    pub scenes: Vec<SceneCard>,
    /// All tools of all scenes, in the order of the catalogue.
    pub tools: Vec<IndexedTool>,
    /// By scene: words that are values of its enumerations.
    pub values: Vec<HashSet<usize>>,
    /// By word: its weight, from 0 to 1.
    pub weight: Vec<f64>,
    /// By scene and word: the tools whose names have that word after their verb.
    pub named: HashMap<(usize, usize), Vec<usize>>,
    /// Its words.
    pub terms: Vec<Rc<Features>>,
    /// By key of similarity: the words that have it.
    pub by_key: HashMap<String, Vec<usize>>,
    example_terms: BTreeSet<usize>,
    /// Cache of similar words: splitting a request looks up the same words several times.
    similar_cache: RefCell<HashMap<String, SimilarWords>>,
    /// Cache of routing results, by day and previous scene.
    pub route_cache: RefCell<RouteCache>,
}

/// Routing results of a text, by day and previous scene.
type RouteCache = TokenCache<(Date, Option<usize>), Vec<Hit>>;

/// Words of the catalogue with their similarity to another word.
type SimilarWords = Rc<Vec<(usize, f64)>>;

/// Maximum number of words in the cache of similar words.
const MAX_CACHED_WORDS: usize = 4096;

pub(super) struct IndexedTool {
    /// Index of its scene.
    pub scene: usize,
    /// Its index within the scene.
    pub tool: usize,
    /// Words of its texts with their weights, from [`weights::ARGUMENT_WORD`] to [`weights::EXAMPLE_WORD`].
    pub words: HashMap<usize, f64>,
    /// Its examples: sorted words with their weights.
    pub examples: Vec<Vec<(usize, f64)>>,
    /// Whether it takes a thing of any kind, so that an unknown noun may be its object.
    pub takes_any_thing: bool,
    /// Whether it takes free text, so that the words after its verb are not a subject.
    pub takes_free_text: bool,
    /// The first word of its name: its action.
    pub verb: Option<usize>,
    /// The words that open its examples of orders: "set", "porta".
    pub openers: Vec<usize>,
    /// Whether one of its examples asks how many there are.
    pub counts: bool,
    /// The other words of its name.
    pub subjects: Vec<usize>,
    /// Whether its name contains an action that users always state explicitly.
    pub has_special_action: bool,
    /// Its arguments.
    pub fields: Vec<ArgumentField>,
}

impl IndexedTool {
    /// Whether a word stands in the tool's own texts, and not only in those of its scene.
    pub fn has_own_word(&self, id: usize) -> bool {
        self.words.get(&id).is_some_and(|weight| *weight > weights::SCENE_WORD)
    }
}

thread_local! {
    static LAST: RefCell<Vec<(String, Rc<CatalogueIndex>)>> = const { RefCell::new(Vec::new()) };
}

impl CatalogueIndex {
    /// The index of a prompt's catalogue `section`. The last two are cached for the thread.
    pub fn of_catalogue(section: &str, scenes: impl FnOnce() -> Vec<SceneCard>) -> Rc<CatalogueIndex> {
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

    /// The tool of a routing hit.
    pub fn indexed_tool(&self, hit: Hit) -> Option<&IndexedTool> {
        // The tools are sorted by scene and index.
        let at = self.tools.binary_search_by_key(&(hit.scene, hit.tool), |e| (e.scene, e.tool)).ok()?;
        self.tools.get(at)
    }

    /// Whether some text of the catalogue has this word or a similar one.
    pub fn has_similar_word(&self, word: &Features) -> bool {
        similarity_keys(word).iter().any(|k| self.by_key.contains_key(k))
    }

    /// Whether a word is the verb of some tool: of its name, or of an order among its examples.
    pub fn has_verb(&self, word: &Features) -> bool {
        let similar = self.similar_words(word);
        let is_verb =
            |id: usize| self.tools.iter().any(|tool| tool.verb == Some(id) || tool.openers.contains(&id));
        similar.iter().any(|(id, similarity)| *similarity >= weights::SURE_MATCH && is_verb(*id))
    }

    /// The word number of a slot, if some example has it.
    pub fn slot_number(&self, slot: Slot) -> Option<usize> {
        self.by_key.get(slot.word()).and_then(|ids| ids.first().copied())
    }

    /// The words of the catalogue that are similar to this one, with their similarity.
    pub fn similar_words(&self, word: &Features) -> SimilarWords {
        if let Some(known) = self.similar_cache.borrow().get(&word.norm) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.find_similar_words(word));
        let mut memory = self.similar_cache.borrow_mut();
        if memory.len() >= MAX_CACHED_WORDS {
            memory.clear();
        }
        memory.insert(word.norm.clone(), Rc::clone(&found));
        found
    }

    fn find_similar_words(&self, word: &Features) -> Vec<(usize, f64)> {
        let mut out: Vec<(usize, f64)> = Vec::new();
        for key in similarity_keys(word) {
            for id in self.by_key.get(&key).into_iter().flatten() {
                if !out.iter().any(|(known, _)| known == id) {
                    let sim = self.terms[*id].similarity(word);
                    if sim > 0.0 {
                        out.push((*id, sim));
                    }
                }
            }
        }
        if out.is_empty() && word.norm.len() >= weights::MISSPELT_FROM {
            let of_examples =
                self.example_terms.iter().filter(|id| self.terms[**id].shares_foreign_stem(word));
            out.extend(of_examples.map(|id| (*id, weights::FOREIGN_FORM)));
        }
        if out.is_empty() {
            out.extend(self.separated_verbs(word).into_iter().map(|id| (id, weights::FOREIGN_FORM)));
        }
        if out.is_empty() && word.norm.len() >= weights::MISSPELT_FROM && word.concepts.is_empty() {
            for (id, term) in self.terms.iter().enumerate() {
                if term.norm.len() >= weights::MISSPELT_FROM
                    && term.norm.as_bytes().first() == word.norm.as_bytes().first()
                    && strsim::jaro_winkler(&term.norm, &word.norm) > weights::MISSPELT_ABOVE
                    && strsim::damerau_levenshtein(&term.norm, &word.norm) <= weights::MISSPELT_WITHIN
                {
                    out.push((id, weights::MISSPELT));
                }
            }
        }
        out
    }
}

/// The role of a word in a request.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum WordKind {
    Subject,
    Action,
    /// Question words, units of time.
    Helper,
}

/// The kind of a word and its maximum weight.
pub(super) fn word_kind(f: &Features) -> (WordKind, f64) {
    if lexicon::is_question_word(&f.norm) {
        (WordKind::Helper, weights::QUESTION_WORD)
    } else if lexicon::is_time_unit(&f.norm) {
        (WordKind::Helper, weights::TIME_UNIT)
    } else if lexicon::is_action(&f.concepts) || pronouns::is_suffixed(&f.norm) {
        (WordKind::Action, weights::ACTION)
    } else {
        (WordKind::Subject, weights::SUBJECT)
    }
}

/// Whether the words ask for information rather than an action.
pub(super) fn asks_for_information(tokens: &[Token]) -> bool {
    const TELLS: &[&str] = &[
        "dimmi", "mostrami", "mostra", "sapere", "know", "show", "tell", "list", "elenca", "elencami",
        "vedere", "see", "dammi", "leggi", "telling",
    ];
    // After "would you be so kind as to".
    const TELLS_POLITELY: &[&str] = &[
        "dirmi", "dirci", "mostrarmi", "indicarmi", "farmi", "elencarmi", "check", "controllare",
        "verificare", "find", "explain",
    ];
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let lead = polite_lead(&words);
    let asked = lead.unwrap_or(&words);
    let polite = lead.is_some()
        || super::doubts::asks_to_act(pattern::strip_fillers(&words))
        || words.first().is_some_and(|t| {
            t.is(&["puoi", "potresti", "can", "could", "would", "will", "potete", "may", "mi", "ci"])
        });
    let early = asked
        .iter()
        .take(4)
        .any(|t| lexicon::is_question_word(&t.norm) && !t.is(&["perche", "why", "que", "como"]));
    let told = asked.iter().take(6).any(|t| t.is(TELLS))
        || lead.is_some_and(|asked| asked.iter().take(3).any(|t| t.is(TELLS_POLITELY)));
    let mark = tokens.iter().any(|t| t.raw == "?");
    early || told || (mark && !polite)
}

/// What is asked for after the opening of a polite request in the form of a question: "Hi, could you please …".
pub(super) fn polite_lead<'w, 't>(words: &'w [&'t Token]) -> Option<&'w [&'t Token]> {
    let own = pattern::strip_fillers(words);
    let ends = POLITE.ends(own, 0).chain(MINDS.ends(own, 0));
    ends.max().and_then(|after| own.get(after..))
}

/// The bytes of that opening.
pub(super) fn polite_lead_span(tokens: &[Token]) -> Range<usize> {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let asked = polite_lead(&words).map_or(words.len(), <[_]>::len);
    let lead = &words[..words.len() - asked];
    match (lead.first(), lead.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    }
}

/// The slots of a text. Values of enumerations are not detected here.
pub(super) fn slots_of_text(tokens: &[Token], entities: &Entities) -> SlotSet {
    let named = |(i, t): (usize, &Token)| t.capital() && !t.first && !entities.taken[i];
    let mut slots = SlotSet::default();
    for (slot, present) in [
        (Slot::Date, !entities.days.is_empty()),
        (Slot::Number, entities.numbers.iter().any(|n| !entities.taken[n.first])),
        (Slot::Name, tokens.iter().enumerate().any(named)),
        (Slot::Question, asks_for_information(tokens)),
    ] {
        if present {
            slots.insert(slot);
        }
    }
    slots
}

/// The slot of a code by its leading letters, which codes of one kind share: `INC-12` → `#code-inc`.
pub(super) fn code_prefix(norm: &str) -> Option<String> {
    let letters: String = norm.chars().take_while(char::is_ascii_alphabetic).collect();
    let digits = norm.chars().filter(char::is_ascii_digit).count();
    (letters.len() >= 2 && digits >= 1 && norm.len() >= 4).then(|| format!("#code-{letters}"))
}

/// Whether some required argument takes a thing of any kind.
fn takes_any_thing(fields: &[ArgumentField]) -> bool {
    const GENERAL_NOUNS: &[&str] = &[
        "item", "product", "article", "articolo", "prodotto", "thing", "object", "goods", "material", "what",
        "supply",
    ];
    fields.iter().any(|f| f.required && f.kind == ArgumentKind::Thing && f.named(GENERAL_NOUNS))
}

/// Whether some required argument takes free text other than a search query.
fn takes_free_text(fields: &[ArgumentField]) -> bool {
    fields.iter().any(|f| {
        f.required && f.kind == ArgumentKind::Text && !f.named(&["query", "q", "search", "keywords", "topic"])
    })
}

/// Keys that similar words share.
fn similarity_keys(f: &Features) -> Vec<String> {
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
    // A quotation in a description is a sample value, not part of the vocabulary.
    let quotes = entities::quoted_spans(&tokens);
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
    /// By key: the scenes whose texts contain it.
    seen: HashMap<String, HashSet<usize>>,
    values: Vec<HashSet<usize>>,
    tools: Vec<IndexedTool>,
}

/// Words, each with the highest weight that it was added with.
struct WeightedWords(HashMap<usize, f64>);

impl WeightedWords {
    fn add(&mut self, words: impl IntoIterator<Item = usize>, weight: f64) {
        for word in words {
            let entry = self.0.entry(word).or_insert(0.0);
            *entry = entry.max(weight);
        }
    }
}

impl IndexBuilder {
    fn intern(&mut self, word: &str, scene: usize) -> Option<usize> {
        if word.len() < 2 || (lexicon::is_stop_word(word) && !lexicon::is_question_word(word)) {
            return None;
        }
        let terms = &mut self.terms;
        let id = *self.known.entry(word.to_owned()).or_insert_with(|| {
            terms.push(features(word));
            terms.len() - 1
        });
        for key in similarity_keys(&features(word)) {
            self.seen.entry(key).or_default().insert(scene);
        }
        Some(id)
    }

    fn intern_all(&mut self, words: impl IntoIterator<Item = String>, scene: usize) -> Vec<usize> {
        words.into_iter().filter_map(|w| self.intern(&w, scene)).collect()
    }

    fn build(mut self, scenes: Vec<SceneCard>) -> CatalogueIndex {
        for (s, scene) in scenes.iter().enumerate() {
            self.add_scene(s, scene);
        }
        let count = scenes.len().max(1) as f64;
        let weigh = |f: &Rc<Features>| {
            if let Some(slot) = SLOTS.into_iter().find(|slot| slot.word() == f.norm) {
                return slot.weight();
            }
            let scenes = similarity_keys(f)
                .iter()
                .take(3)
                .filter_map(|k| self.seen.get(k))
                .map(HashSet::len)
                .max()
                .unwrap_or(1);
            let rare = (1.0 + count / scenes.max(1) as f64).ln() / (1.0 + count).ln();
            rare * word_kind(f).1
        };
        let weight: Vec<f64> = self.terms.iter().map(weigh).collect();
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (id, f) in self.terms.iter().enumerate() {
            for key in similarity_keys(f) {
                by_key.entry(key).or_default().push(id);
            }
        }
        let mut named: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for tool in &self.tools {
            for word in &tool.subjects {
                named.entry((tool.scene, *word)).or_default().push(tool.tool);
            }
        }
        let examples = self.tools.iter().flat_map(|tool| &tool.examples).flatten();
        let example_terms: BTreeSet<usize> =
            examples.map(|(id, _)| *id).filter(|id| !self.terms[*id].norm.starts_with('#')).collect();
        for example in self.tools.iter_mut().flat_map(|e| &mut e.examples) {
            example.sort_by_key(|e| e.0);
            example.dedup_by_key(|e| e.0);
            for (id, w) in example.iter_mut() {
                *w = weight[*id];
            }
        }
        CatalogueIndex {
            scenes,
            tools: self.tools,
            values: self.values,
            weight,
            named,
            terms: self.terms,
            by_key,
            example_terms,
            similar_cache: RefCell::default(),
            route_cache: RefCell::default(),
        }
    }

    fn add_scene(&mut self, s: usize, scene: &SceneCard) {
        let fields: Vec<Vec<ArgumentField>> =
            scene.tools.iter().map(|t| schema::fields(&t.parameters)).collect();
        // In examples, sample values of a schema and values of enumerations fill slots; they are not
        // words of the example.
        let samples: HashSet<String> = fields
            .iter()
            .flatten()
            .flat_map(|f| &f.examples)
            .flat_map(|e| text::norms(e))
            .filter(|w| !lexicon::is_stop_word(w))
            .chain(person_names_in_examples(scene))
            .collect();
        let options: HashSet<String> = fields.iter().flatten().flat_map(option_words).collect();
        let values = self.intern_all(options.iter().cloned().collect::<BTreeSet<_>>(), s);
        self.values.push(values.into_iter().collect());
        let about =
            self.intern_all(words_of(&scene.description).into_iter().chain(name_words(&scene.scene)), s);
        let mut shared: HashMap<usize, f64> = about.into_iter().map(|id| (id, weights::SCENE_WORD)).collect();
        let mut examples: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        let mut openers: Vec<Option<usize>> = Vec::new();
        for example in scene.examples.iter().take(MAX_EXAMPLES) {
            let (words, places) = self.example_words(&example.say, s, &samples, &options);
            for id in &words {
                shared.entry(*id).or_insert(weights::NEIGHBOUR_WORD);
            }
            examples.push((example.tool.as_deref(), words.into_iter().chain(places).collect()));
            openers.push(opening_word(&example.say).and_then(|word| self.known.get(&word).copied()));
        }
        for (t, (tool, fields)) in scene.tools.iter().zip(fields).enumerate() {
            let is_its = |(name, _): &&(Option<&str>, Vec<usize>)| *name == Some(tool.name.as_str());
            let own = examples.iter().zip(&openers).filter(|(example, _)| is_its(example));
            let openers = own.filter_map(|(_, opener)| *opener).collect();
            let mut said = scene.examples.iter().take(MAX_EXAMPLES);
            let counts =
                said.any(|e| e.tool.as_deref() == Some(&*tool.name) && asks_how_many(&text::tokens(&e.say)));
            let entry =
                IndexedTool { openers, counts, ..self.index_tool((s, t), tool, fields, &shared, &examples) };
            self.tools.push(entry);
        }
    }

    /// The entry of the tool at `place` (scene and index within it). `shared` are the words of the scene's own
    /// texts, `examples` its examples with the tools that they name.
    fn index_tool(
        &mut self,
        place: (usize, usize),
        tool: &ToolCard,
        fields: Vec<ArgumentField>,
        shared: &HashMap<usize, f64>,
        examples: &[(Option<&str>, Vec<usize>)],
    ) -> IndexedTool {
        let (scene, index) = place;
        let mut words = WeightedWords(shared.clone());
        self.add_field_words(&fields, scene, &mut words);
        words.add(self.intern_all(words_of(&tool.description), scene), weights::DESCRIPTION_WORD);
        let parts = name_words(&tool.name);
        let joined: Vec<String> = parts.windows(2).map(|p| p.concat()).collect();
        let name = self.intern_all(parts.iter().cloned().chain(joined), scene);
        let verb = parts.first().and_then(|v| self.intern(v, scene));
        words.add(name, weights::NAME_WORD);
        let subjects = self.intern_all(parts.iter().skip(1).cloned(), scene);
        for (_, ids) in examples.iter().filter(|(name, _)| *name == Some(tool.name.as_str())) {
            words.add(ids.iter().copied(), weights::EXAMPLE_WORD);
        }
        let own = examples
            .iter()
            .filter(|(name, _)| name.is_none_or(|n| n == tool.name))
            .map(|(_, ids)| ids.iter().map(|id| (*id, 0.0)).collect())
            .collect();
        IndexedTool {
            scene,
            tool: index,
            words: words.0,
            examples: own,
            takes_any_thing: takes_any_thing(&fields),
            takes_free_text: takes_free_text(&fields),
            verb,
            openers: Vec::new(),
            counts: false,
            subjects,
            has_special_action: parts
                .iter()
                .take(2)
                .any(|w| lexicon::is_special_action(&features(w).concepts)),
            fields,
        }
    }

    /// Adds the words of a tool's arguments: their names, descriptions and options, and what their codes begin with.
    fn add_field_words(&mut self, fields: &[ArgumentField], scene: usize, words: &mut WeightedWords) {
        for field in fields {
            let described = words_of(&field.description);
            let codes: Vec<String> = field
                .examples
                .iter()
                .flat_map(|e| words_of(e))
                .chain(described.iter().cloned())
                .filter_map(|w| code_prefix(&w))
                .collect();
            words.add(self.intern_all(codes, scene), weights::NAME_WORD);
            let named = name_words(&field.name).into_iter().chain(described);
            words.add(self.intern_all(named, scene), weights::ARGUMENT_WORD);
            words.add(self.intern_all(option_words(field), scene), weights::OPTION_WORD);
        }
    }

    /// The words of an example and its slots.
    fn example_words(
        &mut self,
        say: &str,
        s: usize,
        samples: &HashSet<String>,
        options: &HashSet<String>,
    ) -> (Vec<usize>, Vec<usize>) {
        let tokens = text::tokens(say);
        let entities = Entities::in_tokens(&tokens, Date::constant(2026, 1, 1));
        let mut words: Vec<usize> = Vec::new();
        let mut there = slots_of_text(&tokens, &entities);
        let number = |i: usize| entities.numbers.iter().any(|n| (n.first..=n.last).contains(&i));
        for (i, token) in tokens.iter().enumerate().filter(|(i, _)| !number(*i)) {
            if let Some(code) = code_prefix(&token.norm) {
                words.extend(self.intern(&code, s));
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
            if samples.contains(token.norm.as_str()) {
                there.insert(Slot::Name);
            } else if options.contains(token.norm.as_str()) {
                there.insert(Slot::Value);
            } else {
                for word in senses(&tokens, i) {
                    words.extend(self.intern(word, s));
                }
            }
        }
        let places = SLOTS
            .into_iter()
            .filter(|slot| there.contains(*slot))
            .filter_map(|slot| self.intern(slot.word(), s))
            .collect();
        (words, places)
    }
}

/// The word that opens an order, after fillers: "set" of "please set the price …". `None` of a question or a wish.
fn opening_word(say: &str) -> Option<String> {
    let tokens = text::tokens(say);
    if asks_for_information(&tokens) {
        return None;
    }
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let first = pattern::strip_fillers(&words).first()?;
    let is_plain = lexicon::is_stop_word(&first.norm) || lexicon::is_pleasantry(&first.norm) || first.digit();
    let at = tokens.iter().position(|token| token.start == first.start)?;
    let sense = senses(&tokens, at).first().map(|word| (*word).to_owned());
    sense.filter(|_| !is_plain && (first.first || !first.capital()))
}

/// Person names in examples such as "who is mrossi?": the single content word that is neither in the
/// dictionary nor in a text of the scene.
fn person_names_in_examples(scene: &SceneCard) -> Vec<String> {
    let asked = |say: &str| {
        let tokens = text::tokens(say);
        let who = tokens.iter().find(|t| t.word)?.is(&["who", "chi", "qui", "wer", "quien"]);
        let content =
            |t: &&Token| t.word && !lexicon::is_stop_word(&t.norm) && !lexicon::is_question_word(&t.norm);
        let mut content = tokens.iter().filter(content);
        let one = content.next().filter(|t| who && t.features().concepts.is_empty())?;
        content.next().is_none().then(|| one.norm.to_string())
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

/// The single-word forms of an enumeration's values.
fn option_words(field: &ArgumentField) -> Vec<String> {
    match &field.kind {
        ArgumentKind::Enum(choices) => {
            choices.iter().flat_map(|c| &c.words).filter(|w| w.len() == 1).flatten().cloned().collect()
        }
        _ => Vec::new(),
    }
}
