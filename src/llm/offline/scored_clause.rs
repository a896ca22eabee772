//! A clause, prepared for a comparison with tools: its content words, each with the similar words of the catalogue, and what
//! kind of clause it is.

use std::ops::Range;
use std::rc::Rc;

use jiff::civil::Date;

use super::candidates;
use super::doubts::is_foreign_lead;
use super::entities::Entities;
use super::index::{
    CatalogueIndex, Slot, SlotSet, WordKind, code_prefix, polite_lead, polite_lead_span, slots_of_text,
    word_kind,
};
use super::lexicon;
use super::opening_act::OpeningAct;
use super::own_matters::{asks_days_left, asks_own_acts, asks_permission, asks_who_speaks, lists_own_acts};
use super::pattern::{self, patterns};
use super::pronouns;
use super::senses::{ENTIRE, says_all, senses};
use super::text::{self, Features, Token, features};
use super::weights;
use crate::language;

pub(super) struct ContentWord {
    pub weight: f64,
    /// Similar words of the catalogue, with their similarity.
    pub matches: Vec<(usize, f64)>,
    pub kind: WordKind,
    /// Whether it is an action that users always state explicitly.
    pub special: bool,
    /// Whether it is a name that a question asks about.
    pub name: bool,
    /// Whether it begins with a prefix of the catalogue's codes.
    pub code: bool,
    /// Whether it refers to a thing without naming it.
    pub vague: bool,
}

impl ContentWord {
    /// The words of the catalogue that are this one without doubt.
    pub fn sure(&self) -> impl Iterator<Item = usize> + '_ {
        self.matches.iter().filter(|(_, similarity)| *similarity >= weights::SURE_MATCH).map(|(id, _)| *id)
    }

    /// Whether the catalogue has no similar word and the clause may be about it.
    pub fn is_unknown_subject(&self) -> bool {
        self.matches.is_empty() && self.kind == WordKind::Subject
    }
}

/// A clause, prepared for comparison.
pub(super) struct ScoredClause {
    pub words: Vec<ContentWord>,
    /// The slots it has.
    pub slots: SlotSet,
    /// Whether it refers back to something mentioned before ("ne", "it").
    pub refers_back: bool,
    /// Whether it is about the speaker ("my", "ho").
    pub about_speaker: bool,
    /// Whether it asks what the speaker has done: "which days have I booked?"
    pub asks_own_acts: bool,
    /// Whether it names nothing but what the speaker has asked for: "see my requests".
    pub lists_own_acts: bool,
    /// Whether it asks how many there are, and names no action.
    pub asks_count: bool,
    /// Whether it asks for a number of things that no text of the catalogue names: "how many apples do I have left?"
    pub counts_unknown: bool,
    /// Whether it asks which things there are, and names none: "which cities do you know?"
    pub asks_which: bool,
    /// Indices of the words that name things, and no person: "the customers", "all orders".
    pub things: Vec<usize>,
    /// The noun of which it asks for the one that is first in something: "which is the warmest city?"
    pub asked_first: Option<Rc<Features>>,
    /// Whether it asks who belongs to something, or about a group of people: "who works in Sales?", "the emails of my colleagues"
    pub asks_members: bool,
    /// Whether it opens with an order to change or to undo something that is there: "move", "annulla".
    pub opens_with: Option<OpeningAct>,
    /// Index of the word that opens it.
    pub lead: Option<usize>,
    /// Whether that word is a lookup action.
    pub lead_is_lookup: bool,
    /// Whether its verb introduces a content: "ricordami di …", "report that …".
    pub introduces_content: bool,
    /// Whether it begins with a question word.
    pub wh_question: bool,
    /// Whether it contains a time of day.
    pub has_time: bool,
    /// Whether it asks for an action ("vorrei", "I need") and not for information.
    pub expresses_wish: bool,
    /// Whether it asks if or which things exist: "c'è …", "do you have …".
    pub asks_existence: bool,
    /// The thing whose existence it asks about, if named: "c'è un …", "are there any …".
    pub asked_thing: Option<Rc<Features>>,
    /// What it asks for by "what is …", word by word.
    pub asked_words: Vec<Vec<(usize, f64)>>,
    /// Whether it asks how something is done in general, or for a superlative of the whole world.
    pub is_general: bool,
    /// Index of the verb of a question about a person: "who owns …?".
    pub who_verb: Option<usize>,
}

impl ScoredClause {
    /// Its words that name what it is about.
    pub fn subjects(&self) -> impl Iterator<Item = &ContentWord> {
        self.words.iter().filter(|word| word.kind == WordKind::Subject)
    }
}

impl CatalogueIndex {
    /// The content words of a clause, and what kind of clause it is.
    pub fn analyse_clause(&self, text: &str, today: Date) -> ScoredClause {
        let tokens = text::tokens(text);
        let entities = Entities::in_text(text, today);
        let mut opening = tokens.iter().filter(|t| t.word).take(weights::QUESTION_WORDS_WITHIN);
        let wh_question = opening.any(|t| lexicon::is_question_word(&t.norm));
        let is_foreign = matches!(language::detect(text), Some("fr" | "de" | "es" | "pt"));
        let mut reader = ContentReader::new(self, &tokens, &entities, wh_question, is_foreign);
        for i in 0..tokens.len() {
            reader.add_token(i);
        }
        if asks_who_speaks(&tokens) {
            reader.add_meaning("username");
        }
        if asks_days_left(&tokens) && reader.words.iter().all(|word| word.kind == WordKind::Helper) {
            reader.add_meaning("left");
        }
        let who_verb = reader.who_verb();
        let asks_names = reader.mark_asked_names(who_verb);
        reader.limit_unknown_weight();
        let mut slots = slots_of_text(&tokens, &entities);
        if asks_names {
            slots.insert(Slot::Name);
        }
        let (asks_existence, asked_thing) = asks_for_stock(&tokens);
        ScoredClause {
            slots,
            refers_back: tokens.iter().any(|t| t.is(lexicon::BACK_REFERENCES))
                || tokens.iter().any(|t| t.is(&["instead", "invece", "stattdessen"]))
                || pronouns::hands_back(&tokens),
            about_speaker: is_about_speaker(&tokens),
            asks_own_acts: (slots.contains(Slot::Question)
                || tokens.last().is_some_and(|end| end.raw == "?"))
                && asks_own_acts(&tokens),
            lists_own_acts: lists_own_acts(&tokens),
            introduces_content: reader.introduces_content,
            wh_question,
            has_time: !entities.times.is_empty(),
            expresses_wish: asks_permission(&tokens) && slots.contains(Slot::Date)
                || !slots.contains(Slot::Question)
                    && (reader.begins_with_action() || has_wish_word(&tokens) || asks_politely(&tokens)),
            asks_existence,
            asked_thing,
            asked_words: self.asked_words(&tokens),
            is_general: asks_in_general(&tokens) || asks_for_causes(&tokens),
            who_verb,
            asks_count: asks_how_many(&tokens)
                && !reader.words.iter().any(|word| word.kind == WordKind::Action),
            counts_unknown: reader.counts_unknown(),
            asks_which: asks_which(&tokens),
            asked_first: asked_first(&tokens).filter(|_| wh_question),
            asks_members: asks_members(&tokens),
            things: reader.things(),
            opens_with: reader
                .lead
                .and_then(|n| reader.places.get(n))
                .and_then(|at| OpeningAct::of(&tokens[*at..])),
            lead: reader.lead,
            lead_is_lookup: reader.lead_is_lookup,
            words: reader.words,
        }
    }

    /// "What is the Italian word for …": the words for what a question asks, each with the similar words of
    /// the catalogue. Words after a preposition only qualify them. Empty if they contain codes or numbers,
    /// which no scene has among its words.
    fn asked_words(&self, tokens: &[Token]) -> Vec<Vec<(usize, f64)>> {
        let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
        let what = words.first().is_some_and(|t| t.is(&["what", "which", "qual", "quale", "quali", "cos"]));
        let is = words.get(1).is_some_and(|t| t.lower == "è" || t.is(&["is", "are", "s", "sono"]));
        if !what || !is {
            return Vec::new();
        }
        let asked = words.iter().skip(2).take_while(|t| {
            !t.is(&["of", "for", "in", "at", "on", "di", "del", "della", "dei", "delle", "per", "al", "a"])
        });
        let is_name = |t: &&Token| t.is(&["name", "names"]);
        let is_empty =
            |t: &Token| lexicon::is_stop_word(&t.norm) || t.is(ENTIRE) && !words.iter().any(is_name);
        let asked: Vec<_> = asked.filter(|t| !is_empty(t)).collect();
        if asked.iter().any(|t| t.digit()) {
            return Vec::new();
        }
        asked.iter().map(|t| self.similar_words(&t.features()).to_vec()).collect()
    }
}

/// Groups of people to whom who asks may belong.
const OTHERS: &str = "colleagues coworkers team teammates employees colleghi colleghe squadra collegues equipe kollegen \
kolleginnen companeros companeras equipo";

/// English words before a noun.
const ENGLISH_LEADS: &[&str] =
    &["my", "our", "your", "the", "all", "this", "that", "personal", "user", "customer"];

/// What "off" after a day means.
const TIME_OFF: &str = "vacation";

/// Reads the content words of a clause, token by token.
struct ContentReader<'a> {
    index: &'a CatalogueIndex,
    tokens: &'a [Token],
    entities: &'a Entities,
    wh_question: bool,
    words: Vec<ContentWord>,
    /// By word: index of its token.
    places: Vec<usize>,
    /// Index of the word that opens the clause.
    lead: Option<usize>,
    /// Whether that word is a lookup action.
    lead_is_lookup: bool,
    /// Whether that word introduces a content: "ricordami di …".
    introduces_content: bool,
    /// Whether the tokens so far opened an explanation: "because …", "…: …".
    in_explanation: bool,
    /// The bytes of the opening of a polite request, which say nothing about its content.
    lead_span: Range<usize>,
    /// The token that says which of several things is meant: "the second one".
    place: Option<usize>,
    /// Whether the language is one of which only a few words are known.
    is_foreign: bool,
}

impl<'a> ContentReader<'a> {
    fn new(
        index: &'a CatalogueIndex,
        tokens: &'a [Token],
        entities: &'a Entities,
        wh_question: bool,
        is_foreign: bool,
    ) -> Self {
        Self {
            index,
            tokens,
            entities,
            wh_question,
            words: Vec::new(),
            places: Vec::new(),
            lead: None,
            lead_is_lookup: false,
            introduces_content: false,
            in_explanation: false,
            lead_span: polite_lead_span(tokens),
            place: pronouns::place_in_list(tokens).map(|(at, _)| at),
            is_foreign,
        }
    }

    /// Adds what all words together mean, where none of them says it.
    fn add_meaning(&mut self, word: &str) {
        let matches = self.index.similar_words(&features(word)).to_vec();
        let weight = matches.iter().map(|(id, _)| self.index.weight[*id]).fold(0.0, f64::max);
        let kind = WordKind::Subject;
        self.places.push(0);
        self.words.push(ContentWord {
            weight,
            matches,
            kind,
            special: false,
            name: false,
            code: false,
            vague: false,
        });
    }

    fn add_token(&mut self, i: usize) {
        let tokens = self.tokens;
        let token = &tokens[i];
        self.in_explanation |= i > 0
            && ((token.raw == ":" && !pronouns::hands_back(&tokens[i + 1..]))
                || token.is(&["perche", "because", "poiche", "saying"]));
        let asking = lexicon::is_question_word(&token.norm);
        let is_off = self.is_time_off(i);
        let is_silent = self.is_value(i) || (lexicon::is_stop_word(&token.norm) && !asking);
        if self.lead_span.contains(&token.start) || (is_silent && !is_off) || says_all(tokens, i) {
            return;
        }
        let senses = if is_off { vec![TIME_OFF] } else { senses(tokens, i) };
        let (matches, coded) = self.matches(i, &senses);
        let is_lead = self.is_foreign && is_foreign_lead(token);
        if matches.is_empty() && (token.digit() || asking || is_lead) || self.place == Some(i) {
            return;
        }
        let own = features(senses.first().copied().unwrap_or_default());
        let (mut kind, mut factor) = word_kind(&own);
        // "Days off": the pair is more specific than its first word.
        if let Some(joined) = senses.get(1) {
            let pair = word_kind(&features(joined));
            if pair.1 > factor {
                (kind, factor) = pair;
            }
        }
        let weight = self.weight(i, &matches, factor);
        if self.lead.is_none() && !asking && self.may_open_clause(i) {
            self.lead = Some(self.words.len());
            self.lead_is_lookup = lexicon::is_lookup(&own.concepts);
            self.introduces_content = self.is_followed_by_content(i);
        }
        self.places.push(i);
        self.words.push(ContentWord {
            weight,
            matches,
            kind,
            special: lexicon::is_special_action(&own.concepts),
            name: false,
            code: coded,
            vague: token.is(lexicon::VAGUE_NOUNS),
        });
    }

    /// Whether a token is the "off" of "Friday off", where some scene knows time off.
    fn is_time_off(&self, i: usize) -> bool {
        const OFF: &[&str] = &["off", "frei", "libero", "libera", "libre"];
        let token = &self.tokens[i];
        let of_day = i > 0 && self.entities.taken[i - 1] && token.is(OFF);
        // "Off on 14 December", "tomarme libre el lunes", "poser le 14 décembre".
        let before_day = || (i + 1..i + 3).any(|at| self.entities.taken.get(at) == Some(&true));
        let takes = || i > 0 && ["tom", "cog"].iter().any(|verb| self.tokens[i - 1].norm.starts_with(verb));
        let after_unit = || i > 0 && lexicon::is_time_unit(&self.tokens[i - 1].norm);
        let is_verb = || {
            token.is(&["off"]) && !after_unit()
                || token.is(&["poser", "pose", "posez", "pose-moi"])
                || token.is(&["libre"]) && takes()
        };
        (of_day || is_verb() && before_day()) && !self.index.similar_words(&features(TIME_OFF)).is_empty()
    }

    /// Whether a token is punctuation or part of a value, and so no content word.
    fn is_value(&self, i: usize) -> bool {
        let token = &self.tokens[i];
        !token.word
            || self.entities.taken[i]
            || self.entities.quoted[i]
            || token.norm.len() < weights::MIN_CONTENT_WORD
            || token.raw.contains('@')
            || token.raw.contains("://")
            || self.entities.numbers.iter().any(|n| (n.first..=n.last).contains(&i))
    }

    /// The words of the catalogue that are similar to a token, and whether the token has a code's prefix.
    fn matches(&self, i: usize, senses: &[&str]) -> (Vec<(usize, f64)>, bool) {
        let token = &self.tokens[i];
        let similar = |word: &str| self.index.similar_words(&features(word)).to_vec();
        let mut matches: Vec<(usize, f64)> = senses.iter().flat_map(|w| similar(w)).collect();
        if self.is_asked_name(i) {
            // "Who is prossi?": a name is no misspelt word.
            matches.retain(|(_, similarity)| *similarity > weights::MISSPELT);
        }
        // In English, data are no date.
        if token.norm == "data" && i > 0 && self.tokens[i - 1].is(ENGLISH_LEADS) {
            matches.clear();
        }
        let before = matches.len();
        matches.extend(code_prefix(&token.norm).into_iter().flat_map(|c| similar(&c)));
        let coded = matches.len() > before;
        // "Marco Villa": after a first name a capital is a name, whatever else the word means.
        let named = i > 0
            && token.capital()
            && self.tokens[i - 1].capital()
            && lexicon::is_first_name(&self.tokens[i - 1].norm);
        if named && !coded {
            matches.clear();
        }
        (matches, coded)
    }

    /// Whether a token is in the place of a name: "who is …", "chi è …".
    fn is_asked_name(&self, i: usize) -> bool {
        i >= 2 && candidates::asks_who_is(&self.tokens[i - 2], &self.tokens[i - 1])
    }

    fn weight(&self, i: usize, matches: &[(usize, f64)], factor: f64) -> f64 {
        let tokens = self.tokens;
        let name = tokens[i].capital() && !tokens[i].first;
        let weight = if matches.is_empty() {
            let led = i > 0
                && !is_article(tokens, i - 1)
                && tokens[i - 1].is(&["a", "ad", "in", "at", "to", "da", "di", "for", "per", "from", "of"]);
            match (name, led) {
                (true, _) => weights::UNKNOWN_NAME,
                (false, true) => weights::UNKNOWN_COMPLEMENT,
                (false, false) if self.wh_question => factor * weights::UNKNOWN_IN_QUESTION,
                (false, false) => factor * weights::UNKNOWN_ELSEWHERE,
            }
        } else {
            matches.iter().map(|(id, _)| self.index.weight[*id]).fold(0.0, f64::max)
                * if name { weights::KNOWN_NAME } else { 1.0 }
        };
        if self.in_explanation { weight * weights::EXPLANATION } else { weight }
    }

    fn may_open_clause(&self, i: usize) -> bool {
        let before = self.tokens[..i].iter().filter(|t| t.word && !self.lead_span.contains(&t.start));
        self.words.iter().all(|w| w.kind == WordKind::Helper) && before.count() < weights::OPENS_BEFORE
    }

    /// Whether the words after an opening verb are its content: "ricordami di …", "report that …".
    fn is_followed_by_content(&self, i: usize) -> bool {
        let tokens = self.tokens;
        let after = (i + 1..tokens.len())
            .find(|k| !self.entities.taken[*k] && !tokens[*k].is(&["me", "mi", "us", "ci"]));
        after.is_some_and(|k| tokens[k].is(&["di", "che", "that", "to", ":"]) || tokens[k].raw == ":")
    }

    /// "Who owns …?": the word after the question word is its verb, unless a form of "to be" follows ("who X
    /// is").
    fn who_verb(&self) -> Option<usize> {
        let tokens = self.tokens;
        self.places.iter().position(|i| {
            let next = tokens.get(i + 1).filter(|t| t.word);
            let is = |t: &Token| t.lower == "è" || t.is(&["is", "are", "sono", "and", "e", "ed", "or", "o"]);
            *i > 0 && tokens[i - 1].is(&["who", "chi"]) && next.is_some_and(|t| !is(t))
        })
    }

    /// Marks the unknown words of a question as names if it has no other content: a question word and one
    /// unknown word, or a list of them. Returns whether it did.
    fn mark_asked_names(&mut self, who_verb: Option<usize>) -> bool {
        let unknown: Vec<usize> = self
            .words
            .iter()
            .zip(&self.places)
            .filter(|(w, _)| w.is_unknown_subject())
            .map(|(_, i)| *i)
            .collect();
        let joined = |pair: &[usize]| {
            self.tokens[pair[0] + 1..pair[1]]
                .iter()
                .all(|t| t.raw == "," || t.is(&["and", "e", "ed", "or", "o"]))
        };
        let names = !unknown.is_empty()
            && !asks_who_has(self.tokens)
            && self.tokens.iter().any(|t| lexicon::is_question_word(&t.norm))
            && !who_verb.is_some_and(|n| self.words[n].is_unknown_subject())
            && unknown.windows(2).all(joined)
            && self.words.iter().all(|w| w.is_unknown_subject() || w.kind == WordKind::Helper);
        if names {
            for word in self.words.iter_mut().filter(|w| w.is_unknown_subject()) {
                word.weight = weights::ASKED_NAME;
                word.name = true;
            }
        }
        names
    }

    /// Bounds the weight of unknown words, so that a long account counts as much as a short one.
    fn limit_unknown_weight(&mut self) {
        let unknown: f64 = self.words.iter().filter(|w| w.matches.is_empty()).map(|w| w.weight).sum();
        if unknown > weights::ALL_UNKNOWN {
            for word in self.words.iter_mut().filter(|w| w.matches.is_empty()) {
                word.weight *= weights::ALL_UNKNOWN / unknown;
            }
        }
    }

    /// Whether the one noun behind "how many" is unknown to the catalogue.
    fn counts_unknown(&self) -> bool {
        let joins = |at: usize| self.tokens[at].is(&["de", "d", "more", "other", "ancora", "'", "’"]);
        let Some(many) = self.tokens.iter().position(|token| token.is(MANY)) else { return false };
        let place = |at: usize| self.places.iter().position(|place| *place == at);
        let counted = (many + 1..self.tokens.len()).find(|at| !joins(*at));
        // "How many sick days".
        let is_unit = |at: usize| self.tokens.get(at).is_some_and(|t| lexicon::is_time_unit(&t.norm));
        counted.is_some_and(|at| {
            let is_unknown = place(at).is_some_and(|n| self.words[n].is_unknown_subject());
            is_unknown && (place(at + 1).is_none() || is_unit(at + 1) && place(at + 2).is_none())
        })
    }

    /// Indices of the words that name things, and no person: nouns behind an article or a word for all, which no name has. None if
    /// some are of who asks.
    fn things(&self) -> Vec<usize> {
        const OWN: &[&str] =
            &["my", "our", "mio", "mia", "miei", "mie", "nostro", "nostra", "mon", "mes", "notre"];
        const ALL: &[&str] = &[
            "the", "all", "every", "tutti", "tutte", "gli", "le", "les", "tous", "toutes", "los", "las",
            "todos", "todas",
        ];
        if self.tokens.iter().any(|token| token.is(OWN)) {
            return Vec::new();
        }
        let is_thing = |at: usize| {
            let is_led = at.checked_sub(1).is_some_and(|before| self.tokens[before].is(ALL));
            let next = self.tokens.get(at + 1);
            let ends = next.is_none_or(|token| !token.word || lexicon::is_stop_word(&token.norm));
            is_led && ends && !self.tokens[at].capital()
        };
        let words = self.words.iter().zip(&self.places).enumerate();
        let things = words.filter(|(_, (word, at))| word.kind == WordKind::Subject && is_thing(**at));
        things.map(|(n, _)| n).collect()
    }

    fn begins_with_action(&self) -> bool {
        let lead = self.lead.and_then(|n| self.words.get(n));
        lead.is_some_and(|w| w.kind == WordKind::Action) && !self.lead_is_lookup
    }
}

/// Whether a question asks who has a thing, so that what follows is the thing and no name of somebody: "who has Dune?".
fn asks_who_has(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    pattern::any(
        pattern::strip_fillers(&words),
        0,
        patterns![
            "who has/owns/holds/borrowed",
            "chi ha/possiede/tiene",
            "qui a/possede",
            "wer hat/besitzt",
            "quien tiene"
        ],
    )
    .is_some()
}

fn has_wish_word(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| {
        t.is(&["vorrei", "voglio", "vogliamo", "want", "like", "need", "serve", "servono", "bisogno"])
    })
}

/// Whether a clause is a polite request in the form of a question: "could you …?".
fn asks_politely(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    polite_lead(&words).is_some()
}

/// Whether a clause is about the speaker: "my leave", "ho prenotato".
fn is_about_speaker(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| t.is(SPEAKER) || t.is(&["i"]))
}

/// Whether a text asks which things there are, and names none.
fn asks_which(tokens: &[Token]) -> bool {
    let mut words = tokens.iter().filter(|t| t.word);
    let asks = words
        .next()
        .is_some_and(|t| t.is(&["which", "what", "quali", "welche", "quelles", "quels", "cuales"]));
    asks && !words.any(|t| t.capital() || t.digit())
}

/// The noun beside a superlative: "the warmest city", "la città più calda", "die wärmste Stadt".
fn asked_first(tokens: &[Token]) -> Option<Rc<Features>> {
    const NO_SUPERLATIVES: &str = "request forest guest interest test rest contest harvest protest latest";
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let noun = |at: usize| words.get(at).filter(|t| !lexicon::is_stop_word(&t.norm)).map(|t| t.features());
    let is_led =
        |at: usize| at.checked_sub(1).is_some_and(|before| words[before].is(&["the", "die", "der", "das"]));
    words.iter().enumerate().find_map(|(at, word)| {
        let ends = ["est", "ste"].iter().any(|end| word.norm.len() > 5 && word.norm.ends_with(end));
        match () {
            () if ends && is_led(at) && !word.among(NO_SUPERLATIVES) => noun(at + 1),
            () if word.is(&["most", "least"]) && is_led(at) => noun(at + 2),
            () if word.is(&["piu", "meno", "mas"]) => at.checked_sub(1).and_then(noun),
            () if word.is(&["plus", "moins"]) => at.checked_sub(2).and_then(noun),
            () => None,
        }
    })
}

/// Whether a text asks who belongs to something, or speaks of a group of people.
fn asks_members(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let asks = patterns![
        "who works/work/is/are/s/sits in/at",
        "chi lavora/sta/e in/nel/nella/nell",
        "wer arbeitet/ist/sitzt in/im/bei",
        "qui travaille/est dans/au/en",
        "quien/quienes trabaja/trabajan/esta/estan en",
    ];
    let asks_who = asks.ends(&words, 0).next().is_some() && !is_about_speaker(tokens);
    asks_who || words.iter().skip(1).any(|word| word.among(OTHERS) && !word.capital())
}

/// Words that ask for a number of things.
const MANY: &[&str] = &["many", "quanti", "quante", "viele", "combien", "cuantos", "cuantas"];

/// Whether a text begins by asking how many there are, or if there are any: "how many …", "quante …", "do we still have …".
pub(super) fn asks_how_many(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let have = patterns![
        "do/have we/you still have/got any?",
        "do we have/got any?",
        "abbiamo ancora?",
        "avete/ci sono ancora",
        "haben wir/sie noch",
        "avons-nous/avez-vous encore des",
        "tenemos/quedan todavia/aun?",
    ];
    let asks = tokens.last().is_some_and(|end| end.raw == "?");
    words.iter().take(3).any(|t| t.is(MANY)) || asks && pattern::any(&words, 0, have).is_some()
}

/// Words for the speaker, but "I": an Italian article is written so, too.
const SPEAKER: &[&str] =
    &["mio", "mia", "miei", "mie", "my", "mi", "me", "ho", "abbiamo", "our", "nostro", "nostra", "we"];

/// Whether a clause asks how something is done in general, or for a superlative of the whole world: no scene
/// knows that.
fn asks_in_general(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let how = patterns![
        "how do/does/can/could/should/would/to i/you/we/one/people?",
        "come si/faccio/posso/potrei/facciamo/devo/dovrei",
        "in che modo si/posso",
    ];
    let most = patterns![
        "in/of the? world/universe/history",
        "in the whole world",
        "of all time",
        "ever",
        "del/al mondo",
        "della storia",
        "di sempre",
    ];
    let mut opening = words.iter().take(weights::GENERAL_QUESTION_WITHIN);
    let asks = opening.any(|t| lexicon::is_question_word(&t.norm) || t.is(&["qual"]));
    pattern::any(&words, 0, how).is_some() || asks && pattern::find(&words, words.len(), most).is_some()
}

/// Whether a clause asks why or of what things of the world come about: "da che cosa nascono …", "why do …". What is the
/// speaker's own may be what a scene knows.
fn asks_for_causes(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let causes = patterns![
        "why do/does/is/are/did/was/were",
        "what causes/caused/makes/made",
        "perche",
        "come mai",
        "da/di che? cosa",
    ];
    let own = |t: &Token| t.is(SPEAKER) || t.raw == "I";
    !tokens.iter().any(own) && pattern::any(&words, 0, causes).is_some()
}

/// Whether an "a" is the English article, after a verb that cannot be Italian: "call a taxi", "call me a taxi".
fn is_article(tokens: &[Token], at: usize) -> bool {
    let verb =
        tokens[..at].iter().rev().find(|t| !t.is(&["me", "us", "him", "her", "them", "myself", "ourselves"]));
    tokens[at].is(&["a"])
        && verb.is_some_and(|verb| {
            let english = !verb.norm.ends_with(['a', 'e', 'i', 'o', 'u'])
                || verb.norm.ends_with('e') && !verb.norm.ends_with("re");
            english && pattern::is_verb(verb)
        })
}

/// Whether the words ask for what exists ("c'è …", "ci sono …", "avete …", "is there …", "have you got …"),
/// and the thing, if it follows directly.
fn asks_for_stock(tokens: &[Token]) -> (bool, Option<Rc<Features>>) {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let then = |i: usize, list: &[&str]| words.get(i + 1).is_some_and(|t| t.is(list));
    let is_there = |i: usize| {
        let t = words[i];
        (t.is(&["c", "ce"]) && words.get(i + 1).is_some_and(|n| n.lower == "è"))
            || (t.is(&["ci"]) && then(i, &["sono"]))
            || (t.is(&["is", "are"]) && then(i, &["there"]))
            || (t.is(&["there"]) && then(i, &["is", "are"]))
    };
    if !tokens.iter().any(|t| t.raw == "?") {
        return (false, None);
    }
    if let Some(i) = (0..words.len()).find(|i| is_there(*i)) {
        let article = |t: &&&Token| t.is(&["un", "una", "uno", "a", "an", "any", "some", "the", "il", "la"]);
        let thing = words.iter().skip(i + 2).find(|t| !article(t)).map(|t| t.features());
        return (true, thing);
    }
    let has = words.iter().any(|t| t.is(&["avete", "have", "got", "esiste", "esistono"]));
    (has || words.first().is_some_and(|t| t.is(&["has"])), None)
}
