//! Which tool of which scene serves some words: likeness to examples, and how much of the words the
//! tool's own texts cover.

use std::rc::Rc;

use jiff::civil::Date;

use super::entities::Entities;
use super::index::{
    CatalogueIndex, IndexedTool, SLOT_WEIGHT, SLOTS, WordKind, code_prefix, senses, slots_of_text, word_kind,
};
use super::lexicon;
use super::pattern;
use super::pronouns;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots as arguments;
use super::text::{self, Features, Token, features};

/// Below this nothing fits.
pub(super) const FITS: f64 = 0.42;
/// From here on a part of a sentence may be a request of its own.
pub(super) const STRONG: f64 = 0.46;

/// A tool that fits some words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    /// Index of the scene.
    pub scene: usize,
    /// Index of the tool in the scene.
    pub tool: usize,
    /// How well, from 0 to about 1.
    pub score: f64,
}

/// One content word of a clause.
struct ContentWord {
    weight: f64,
    matches: Vec<(usize, f64)>,
    kind: WordKind,
    special: bool,
    name: bool,
    code: bool,
    /// It stands for a thing without naming it.
    vague: bool,
}

impl ContentWord {
    /// Nothing in the catalogue is like it, and it may be what the clause is about.
    fn strange(&self) -> bool {
        self.matches.is_empty() && self.kind == WordKind::Subject
    }
}

/// A clause, prepared for comparison.
struct ScoredClause {
    words: Vec<ContentWord>,
    slots: [bool; 5],
    /// It points back to what was said ("ne", "it").
    back: bool,
    /// It is about the speaker ("my", "ho").
    own: bool,
    /// Which of its words opens it.
    lead: Option<usize>,
    /// Its verb is followed by what is to be said or done: "ricordami di …", "report that …".
    tells: bool,
    /// It begins with a question word.
    wh: bool,
    /// It says a time of day.
    timed: bool,
    /// Somebody wants something done ("vorrei", "I need") and does not ask to be told.
    wish: bool,
    /// It asks whether or which there is of something: "c'è …", "do you have …".
    stock: bool,
    /// The thing that it asks the existence of, where it names one: "c'è un …", "are there any …".
    thing: Option<Rc<Features>>,
    /// What it asks for by "what is …", word by word.
    asked: Vec<Vec<(usize, f64)>>,
    /// It asks how something is done, or what is most of all in the world.
    general: bool,
    /// Which of its words says what the one does who is asked for: "who owns …?".
    does: Option<usize>,
}

impl CatalogueIndex {
    /// The arguments of a tool.
    pub fn fields(&self, hit: Hit) -> &[ArgumentField] {
        self.indexed_tool(hit).map(|e| e.fields.as_slice()).unwrap_or_default()
    }

    /// Whether a tool's texts have a word like this one; with `announces`, whether it is one of an argument
    /// alone.
    pub fn speaks_of(&self, hit: Hit, word: &Features, announces: bool) -> bool {
        let entry = self.indexed_tool(hit);
        let fits = |weight: f64| !announces || weight <= 0.45;
        entry.is_some_and(|entry| {
            self.similar_words(word).iter().any(|(id, _)| entry.words.get(id).is_some_and(|w| fits(*w)))
        })
    }

    /// The scene and tool with these names.
    pub fn named(&self, scene: &str, tool: &str) -> Option<Hit> {
        let s = self.scenes.iter().position(|c| c.scene == scene)?;
        let t = self.scenes[s].tools.iter().position(|t| t.name == tool)?;
        Some(Hit { scene: s, tool: t, score: 1.0 })
    }

    /// The best tool for a clause, where one fits. `near` is the scene spoken of just before, which
    /// words that only point back belong to.
    pub fn route(&self, clause: &str, today: Date, near: Option<usize>) -> Option<Hit> {
        self.best(clause, today, near).filter(|hit| hit.score >= FITS)
    }

    /// The best tool for a clause, however badly it fits. Of equals the first of the catalogue, so
    /// that the choice is always the same.
    pub fn best(&self, clause: &str, today: Date, near: Option<usize>) -> Option<Hit> {
        self.hits(clause, today, near).into_iter().reduce(|a, b| if b.score > a.score + 1e-9 { b } else { a })
    }

    /// All tools that come into question, in the order of the catalogue.
    pub fn hits(&self, clause: &str, today: Date, near: Option<usize>) -> Vec<Hit> {
        if let Some(known) = self.route_cache.borrow().get((today, near), clause) {
            return known.to_vec();
        }
        let hits = Rc::new(self.scored(clause, today, near));
        self.route_cache.borrow_mut().put((today, near), clause, &hits);
        hits.to_vec()
    }

    fn scored(&self, said: &str, today: Date, near: Option<usize>) -> Vec<Hit> {
        let clause = self.read(said, today);
        if clause.words.is_empty() {
            return Vec::new();
        }
        let score = |entry: &IndexedTool| {
            let (score, called) = self.score(&clause, entry, near == Some(entry.scene))?;
            // "C'è qualcosa di X in biblioteca?": the scene is called by its own word, and what else is
            // said is a value that its tool looks by.
            let score = if called && score < STRONG + 0.1 && has_value(entry, said, today) {
                STRONG + 0.2 * score.max(0.0)
            } else {
                score
            };
            Some(Hit { scene: entry.scene, tool: entry.tool, score })
        };
        self.tools.iter().filter_map(score).collect()
    }

    fn score(&self, clause: &ScoredClause, entry: &IndexedTool, near: bool) -> Option<(f64, bool)> {
        let near = near && clause.back;
        let (mut cover, mut total, mut strength) = (0.0, 0.0, 0.0_f64);
        let (mut subject, mut action, mut unknown, mut unmatched) = (0.0_f64, 0.0_f64, 0, 0);
        let (mut vague, mut undone) = (0, false);
        let mut plain: Vec<(f64, &ContentWord)> = Vec::new();
        let mut there = clause.slots;
        // The verb it opens with is the tool's own: "ricordami di …", "report that …".
        let lead = clause.lead.and_then(|n| clause.words.get(n));
        let opens = |list: &dyn Fn(usize) -> f64| {
            lead.map_or(0.0, |w| w.matches.iter().map(|(id, sim)| list(*id) * sim).fold(0.0, f64::max))
        };
        let led = opens(&|id| entry.words.get(&id).copied().unwrap_or(0.0));
        let named = opens(&|id| if entry.verb == Some(id) { 1.0 } else { 0.0 });
        let worded = entry.takes_free_text
            && clause.tells
            && led >= 0.8
            && lead.is_some_and(|w| w.kind == WordKind::Action);
        for (n, word) in clause.words.iter().enumerate() {
            let best = word
                .matches
                .iter()
                .filter_map(|(id, sim)| entry.words.get(id).map(|w| w * sim))
                .fold(0.0, f64::max);
            // An unknown noun is a name to a tool that takes a thing of any kind.
            let object = (entry.takes_any_thing && named >= 0.8 && word.strange())
                || (worded && clause.lead != Some(n) && best < 0.5);
            // A word of an argument alone ("contact …") announces a value and is no subject.
            let announces = best > 0.0 && best <= 0.45;
            let weight = match (object, announces) {
                (true, _) => word.weight.min(0.15),
                (_, true) => word.weight.min(0.35),
                _ => word.weight,
            };
            let strange = word.strange() && word.weight > 0.5 && !object;
            undone |= clause.does == Some(n) && best < 0.8;
            unknown += usize::from(strange);
            vague += usize::from(strange && word.vague);
            unmatched += usize::from(word.matches.is_empty() && word.weight > 0.45);
            cover += weight * best;
            strength += if word.kind == WordKind::Subject { weight * best } else { 0.0 };
            total += weight;
            match word.kind {
                WordKind::Subject => subject = subject.max(best),
                WordKind::Action => action = action.max(best),
                WordKind::Helper => {}
            }
            if word.matches.iter().any(|(id, sim)| *sim > 0.8 && self.values[entry.scene].contains(id)) {
                there[3] = true;
            } else if !announces {
                plain.push((weight, word));
            }
        }
        // What is said speaks of nothing that the tool is about.
        let spoken = subject >= 0.5 || action >= 0.6 || (near && cover > 0.0);
        let lone_name = clause.words.iter().any(|w| w.name);
        if !(spoken || lone_name) || total <= 0.0 {
            return None;
        }
        let slots: Vec<(usize, f64)> = SLOTS
            .iter()
            .zip(there)
            .zip(SLOT_WEIGHT)
            .filter(|((_, there), _)| *there)
            .map(|((slot, _), weight)| (self.slot_number(slot).unwrap_or(usize::MAX), weight))
            .collect();
        let like = entry.examples.iter().map(|e| likeness(&plain, &slots, e)).fold(0.0, f64::max);
        // "How do I open a lemonade stand?": a word that is in no text of the catalogue is what it asks about.
        if clause.general && unknown > 0 && like < 0.93 {
            return None;
        }
        // "Chi è X?" may be all that an example says, too.
        let same = like > 0.93 && lone_name;
        // Book a flight: an action alone is no request for a tool that books something else.
        let done = action >= 0.6 && (unknown == 0 || near);
        if !(subject >= 0.5 || done || same || (near && cover > 0.0)) {
            return None;
        }
        let mut score = 0.55 * like + 0.45 * (cover / total);
        // Many words of its texts and none that are strange are as good as an example.
        score = score.max(0.7 * (cover / total) * (strength / 1.2).min(1.0));
        let tool = &self.scenes[entry.scene].tools[entry.tool];
        if undone {
            score -= 0.1;
        }
        if entry.has_special_action && like < 0.93 && !clause.words.iter().any(|w| w.special) {
            score -= 0.18;
        }
        if clause.slots[4] && tool.writes() {
            score -= 0.1;
        }
        if clause.wish {
            score += if tool.writes() { 0.06 } else { -0.06 };
        }
        let dated =
            entry.fields.iter().any(|f| matches!(f.kind, ArgumentKind::Date | ArgumentKind::DateTime));
        if clause.slots[0] {
            score += if dated { 0.05 } else { -0.03 };
        }
        let timed =
            entry.fields.iter().any(|f| matches!(f.kind, ArgumentKind::Time | ArgumentKind::DateTime));
        if clause.timed {
            score += if timed { 0.06 } else { -0.04 };
        }
        // "Who invented the car?" is no question for a car pool; "who approves my leave?" is one.
        let coded = clause.words.iter().any(|w| w.code);
        if named >= 0.8 {
            score += 0.1;
        }
        if clause.own {
            score += 0.05;
        } else if clause.wh && unmatched > 0 && !coded {
            score -= 0.05;
        }
        if near {
            score = if subject < 0.5 { score * 1.3 } else { score + 0.1 };
        } else if subject < 0.5 && !((entry.takes_any_thing && named >= 0.8) || worded) {
            score *= 0.9;
        }
        // "What is the … for …" is for the tool that has a word for it.
        let has = |word: &Vec<(usize, f64)>| word.iter().any(|(id, _)| entry.words.contains_key(id));
        if !clause.asked.is_empty() && !clause.asked.iter().any(has) && like < 0.93 {
            score -= 0.25;
        }
        // "C'è un cineclub a …?" asks for another one, not for what is in it.
        let itself = clause.thing.as_ref().is_some_and(|thing| {
            text::name_words(&self.scenes[entry.scene].scene)
                .iter()
                .any(|word| features(word).similarity(thing) > 0.8)
        });
        let called = clause.stock && !itself && !tool.writes() && subject >= 0.5 && unknown == vague;
        Some((score, called))
    }

    /// The content words of a clause with the words of the catalogue they are like.
    fn read(&self, clause: &str, today: Date) -> ScoredClause {
        let tokens = text::tokens(clause);
        let entities = Entities::in_text(clause, today);
        let mut there = slots_of_text(&tokens, &entities);
        let wh = tokens.iter().filter(|t| t.word).take(3).any(|t| lexicon::is_question_word(&t.norm));
        let mut words: Vec<ContentWord> = Vec::new();
        let mut places: Vec<usize> = Vec::new();
        let mut lead = None;
        let (mut looks, mut tells) = (false, false);
        let mut account = false;
        let number = |i: usize| entities.numbers.iter().any(|n| (n.first..=n.last).contains(&i));
        for (i, token) in tokens.iter().enumerate() {
            account |= i > 0
                && ((token.raw == ":" && !pronouns::hands_back(&tokens[i + 1..]))
                    || token.is(&["perche", "because", "poiche", "saying"]));
            let address = token.raw.contains('@') || token.raw.contains("://");
            if !token.word
                || entities.taken[i]
                || entities.quoted[i]
                || token.norm.len() < 2
                || address
                || number(i)
            {
                continue;
            }
            let asking = lexicon::is_question_word(&token.norm);
            if lexicon::is_stop_word(&token.norm) && !asking {
                continue;
            }
            let said = senses(&tokens, i);
            let mut matches: Vec<(usize, f64)> =
                said.iter().flat_map(|w| self.similar_words(&features(w)).to_vec()).collect();
            let before = matches.len();
            matches.extend(
                code_prefix(&token.norm).into_iter().flat_map(|c| self.similar_words(&features(&c)).to_vec()),
            );
            let coded = matches.len() > before;
            // "Marco Villa": behind a first name a capital is a name, whatever else the word means.
            let named = i > 0
                && token.capital()
                && tokens[i - 1].capital()
                && lexicon::is_first_name(&tokens[i - 1].norm);
            if named && !coded {
                matches.clear();
            }
            if matches.is_empty() && (token.digit() || asking) {
                continue;
            }
            let own = features(said.first().copied().unwrap_or_default());
            let (mut kind, mut factor) = word_kind(&own);
            // "days off": the pair says more than its first word.
            if let Some(joined) = said.get(1) {
                let pair = word_kind(&features(joined));
                if pair.1 > factor {
                    (kind, factor) = pair;
                }
            }
            let name = token.capital() && !token.first;
            let mut weight = if matches.is_empty() {
                let led = i > 0
                    && !is_article(&tokens, i - 1)
                    && tokens[i - 1]
                        .is(&["a", "ad", "in", "at", "to", "da", "di", "for", "per", "from", "of"]);
                match (name, led) {
                    (true, _) => 0.1,
                    (false, true) => 0.5,
                    // What a question is about must be known, or it is a question for somebody else.
                    (false, false) => factor * if wh { 1.25 } else { 0.9 },
                }
            } else {
                matches.iter().map(|(id, _)| self.weight[*id]).fold(0.0, f64::max)
                    * if name { 0.7 } else { 1.0 }
            };
            if account {
                weight *= 0.15;
            }
            if lead.is_none()
                && !asking
                && words.iter().all(|w| w.kind == WordKind::Helper)
                && tokens[..i].iter().filter(|t| t.word).count() < 5
            {
                lead = Some(words.len());
                looks = lexicon::is_lookup(&own.concepts);
                let after = (i + 1..tokens.len())
                    .find(|k| !entities.taken[*k] && !tokens[*k].is(&["me", "mi", "us", "ci"]));
                tells = after
                    .is_some_and(|k| tokens[k].is(&["di", "che", "that", "to", ":"]) || tokens[k].raw == ":");
            }
            places.push(i);
            words.push(ContentWord {
                weight,
                matches,
                kind,
                special: lexicon::is_special_action(&own.concepts),
                name: false,
                code: coded,
                vague: token.is(lexicon::VAGUE_NOUNS),
            });
        }
        // A question word and one strange word, or a row of them: they are names.
        let strange: Vec<usize> =
            words.iter().zip(&places).filter(|(w, _)| w.strange()).map(|(_, i)| *i).collect();
        let joined = |pair: &[usize]| {
            tokens[pair[0] + 1..pair[1]].iter().all(|t| t.raw == "," || t.is(&["and", "e", "ed", "or", "o"]))
        };
        // "Who owns …?": what follows the question word at once does something, unless it "is" ("who X is").
        let does = places.iter().position(|i| {
            let next = tokens.get(i + 1).filter(|t| t.word);
            let is = |t: &Token| t.lower == "è" || t.is(&["is", "are", "sono", "and", "e", "ed", "or", "o"]);
            *i > 0 && tokens[i - 1].is(&["who", "chi"]) && next.is_some_and(|t| !is(t))
        });
        let strange_does = does.is_some_and(|n| words[n].strange());
        let asked_who = tokens.iter().any(|t| lexicon::is_question_word(&t.norm));
        let lone = !strange.is_empty()
            && asked_who
            && !strange_does
            && strange.windows(2).all(joined)
            && words.iter().all(|w| w.strange() || w.kind == WordKind::Helper);
        if lone {
            for word in words.iter_mut().filter(|w| w.strange()) {
                word.weight = 0.05;
                word.name = true;
            }
            there[2] = true;
        }
        // A long account is no less a request than a short one.
        let unknown: f64 = words.iter().filter(|w| w.matches.is_empty()).map(|w| w.weight).sum();
        if unknown > 2.5 {
            for word in words.iter_mut().filter(|w| w.matches.is_empty()) {
                word.weight *= 2.5 / unknown;
            }
        }
        let back = tokens.iter().any(|t| t.is(lexicon::BACK_REFERENCES)) || pronouns::hands_back(&tokens);
        let orders = lead.and_then(|n| words.get(n)).is_some_and(|w| w.kind == WordKind::Action) && !looks;
        let wish = !there[4]
            && (orders
                || tokens.iter().any(|t| {
                    t.is(&[
                        "vorrei", "voglio", "vogliamo", "want", "like", "need", "serve", "servono", "bisogno",
                    ])
                }));
        let own = tokens.iter().any(|t| {
            t.is(&[
                "mio", "mia", "miei", "mie", "my", "mi", "me", "ho", "abbiamo", "our", "nostro", "nostra",
                "i", "we",
            ])
        });
        let timed = !entities.times.is_empty();
        let (stock, thing) = asks_for_stock(&tokens);
        let asked = self.asked(&tokens);
        ScoredClause {
            words,
            slots: there,
            back,
            own,
            lead,
            tells,
            wh,
            timed,
            wish,
            stock,
            thing,
            asked,
            general: asks_in_general(&tokens),
            does,
        }
    }

    /// "What is the Italian word for …": the words for what a question asks, each with the words of the
    /// catalogue it is like. What follows a preposition only says more of it. Nothing where they are none
    /// of the scenes' words by nature: codes and numbers.
    fn asked(&self, tokens: &[Token]) -> Vec<Vec<(usize, f64)>> {
        let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
        let what = words.first().is_some_and(|t| t.is(&["what", "which", "qual", "quale", "quali", "cos"]));
        let is = words.get(1).is_some_and(|t| t.lower == "è" || t.is(&["is", "are", "s", "sono"]));
        if !what || !is {
            return Vec::new();
        }
        let asked = words.iter().skip(2).take_while(|t| {
            !t.is(&["of", "for", "in", "at", "on", "di", "del", "della", "dei", "delle", "per", "al", "a"])
        });
        let asked: Vec<_> = asked.filter(|t| !lexicon::is_stop_word(&t.norm)).collect();
        if asked.iter().any(|t| t.digit()) {
            return Vec::new();
        }
        asked.iter().map(|t| self.similar_words(&t.features()).to_vec()).collect()
    }
}

/// Whether words ask how something is done, or what is most of all in the world: nothing that a scene keeps.
fn asks_in_general(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let how = [
        "how do/does/can/could/should/would/to i/you/we/one/people?",
        "come si/faccio/posso/potrei/facciamo/devo/dovrei",
        "in che modo si/posso",
    ];
    let most = [
        "in/of the? world/universe/history",
        "in the whole world",
        "of all time",
        "ever",
        "del/al mondo",
        "della storia",
        "di sempre",
    ];
    let asks = words.iter().take(2).any(|t| lexicon::is_question_word(&t.norm) || t.is(&["qual"]));
    pattern::any(&words, 0, &how).is_some() || asks && pattern::find(&words, words.len(), &most).is_some()
}

/// Whether an "a" is the English article, behind a verb that no Italian one looks like: "call a taxi".
fn is_article(tokens: &[Token], at: usize) -> bool {
    let verb = at.checked_sub(1).and_then(|before| tokens.get(before));
    tokens[at].is(&["a"])
        && verb.is_some_and(|verb| {
            let english = !verb.norm.ends_with(['a', 'e', 'i', 'o', 'u'])
                || verb.norm.ends_with('e') && !verb.norm.ends_with("re");
            english && super::pattern::is_verb(verb)
        })
}

/// Whether the words ask for what there is ("c'è …", "ci sono …", "avete …", "is there …", "have you got
/// …"), and the thing, where it follows at once.
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

/// Whether the words give the tool an argument; of a name a capital says that it is one.
fn has_value(entry: &IndexedTool, words: &str, today: Date) -> bool {
    let Ok(now) = today.to_zoned(jiff::tz::TimeZone::UTC) else { return false };
    let filled = arguments::fill(&entry.fields, words, &now, &[], false);
    entry.fields.iter().filter_map(|f| Some((f, filled.values.get(&f.name)?))).any(|(f, value)| {
        match f.kind {
            ArgumentKind::Fixed(_) => false,
            ArgumentKind::Place | ArgumentKind::Person | ArgumentKind::Thing | ArgumentKind::Id => {
                value.as_str().is_some_and(|v| v.chars().any(|c| c.is_uppercase() || c.is_ascii_digit()))
            }
            _ => f.default.as_ref() != Some(value),
        }
    })
}

/// How alike a clause and an example are, from 0 to 1.
fn likeness(words: &[(f64, &ContentWord)], slots: &[(usize, f64)], example: &[(usize, f64)]) -> f64 {
    let size = example.iter().map(|(_, w)| w * w).sum::<f64>().sqrt();
    let norm = (words.iter().map(|(w, _)| w * w).sum::<f64>()
        + slots.iter().map(|(_, w)| w * w).sum::<f64>())
    .sqrt();
    if size <= 0.0 || norm <= 0.0 {
        return 0.0;
    }
    let weight_of = |id: usize| example.binary_search_by_key(&id, |e| e.0).ok().map(|at| example[at].1);
    let mut dot = 0.0;
    for (weight, word) in words {
        dot += word
            .matches
            .iter()
            .filter_map(|(id, sim)| weight_of(*id).map(|w| w * sim * weight))
            .fold(0.0, f64::max);
    }
    dot += slots.iter().filter_map(|(id, weight)| weight_of(*id).map(|w| w * weight)).sum::<f64>();
    (dot / (size * norm)).min(1.0)
}
