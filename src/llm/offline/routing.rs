//! Finds the tool that serves a clause, by its similarity to examples and by the share of its words that the
//! tool's texts contain.

use std::collections::HashSet;
use std::rc::Rc;

use jiff::civil::Date;

use super::index::{CatalogueIndex, IndexedTool, SLOTS, Slot, SlotSet, WordKind};
use super::schema::{ArgumentField, ArgumentKind};
use super::scored_clause::{ContentWord, ScoredClause};
use super::slots as arguments;
use super::text::{self, Features, features};
use super::weights::{self, FITS, SAME_AS_EXAMPLE, SHARED_SUBJECT, STRONG, SURE_MATCH};

/// The place of a tool in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolPlace {
    /// Index of the scene.
    pub scene: usize,
    /// Index of the tool in the scene.
    pub tool: usize,
}

/// A tool that fits a clause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    /// Index of the scene.
    pub scene: usize,
    /// Index of the tool in the scene.
    pub tool: usize,
    /// How well it fits, from 0 to about 1.
    pub score: f64,
}

impl Hit {
    /// The tool at a place, known without a comparison.
    pub fn certain(place: ToolPlace) -> Self {
        Self { scene: place.scene, tool: place.tool, score: weights::CERTAIN }
    }

    /// The place of the tool.
    pub fn place(self) -> ToolPlace {
        ToolPlace { scene: self.scene, tool: self.tool }
    }

    /// The one that fits better; this one if both fit equally well.
    pub fn or_better(self, other: Self) -> Self {
        if other.fits_better_than(self) { other } else { self }
    }

    /// Whether it fits better than another one.
    pub fn fits_better_than(self, other: Self) -> bool {
        self.score > other.score + weights::EQUAL_SCORES
    }
}

/// How the word that opens a clause matches a tool.
struct LeadMatch {
    /// Its similarity to the tool's own verb.
    verb: f64,
    /// Whether it is the tool's verb and introduces the tool's free text: "ricordami di …", "report that …".
    opens_free_text: bool,
}

impl LeadMatch {
    fn of(clause: &ScoredClause, entry: &IndexedTool) -> Self {
        let lead = clause.lead.and_then(|n| clause.words.get(n));
        let best = |weight: &dyn Fn(usize) -> f64| {
            lead.map_or(0.0, |w| w.matches.iter().map(|(id, sim)| weight(*id) * sim).fold(0.0, f64::max))
        };
        let word = best(&|id| entry.words.get(&id).copied().unwrap_or(0.0));
        let verb = best(&|id| if entry.verb == Some(id) { 1.0 } else { 0.0 });
        let opens_free_text = entry.takes_free_text
            && clause.introduces_content
            && word >= SURE_MATCH
            && lead.is_some_and(|w| w.kind == WordKind::Action);
        Self { verb, opens_free_text }
    }

    fn is_verb(&self) -> bool {
        self.verb >= SURE_MATCH
    }
}

/// What the words of a clause have in common with a tool.
#[derive(Default)]
struct ToolOverlap<'c> {
    /// Sum of the words' weights, each times its best match.
    cover: f64,
    /// Sum of the words' weights.
    total: f64,
    /// `cover` of the subjects alone.
    subject_cover: f64,
    /// Best match of a subject.
    subject: f64,
    /// Best match of an action.
    action: f64,
    /// Number of words that occur nowhere in the catalogue and may be what the clause is about.
    unknown: usize,
    /// How many of the unknown words refer to a thing without naming it.
    vague: usize,
    /// Number of important words that occur nowhere in the catalogue.
    unmatched: usize,
    /// Whether the tool does not have the verb of a question about a person.
    lacks_who_verb: bool,
    /// The words to compare with examples, with their weights.
    plain: Vec<(f64, &'c ContentWord)>,
    /// The slots of the clause, including values of the tool's enumerations.
    slots: SlotSet,
}

impl<'c> ToolOverlap<'c> {
    fn of(clause: &'c ScoredClause, entry: &IndexedTool, values: &HashSet<usize>, lead: &LeadMatch) -> Self {
        let mut overlap = Self { slots: clause.slots, ..Self::default() };
        for n in 0..clause.words.len() {
            overlap.add_word(clause, n, entry, values, lead);
        }
        overlap
    }

    fn add_word(
        &mut self,
        clause: &'c ScoredClause,
        n: usize,
        entry: &IndexedTool,
        values: &HashSet<usize>,
        lead: &LeadMatch,
    ) {
        let word = &clause.words[n];
        let best = word
            .matches
            .iter()
            .filter_map(|(id, sim)| entry.words.get(id).map(|w| w * sim))
            .fold(0.0, f64::max);
        // An unknown noun is a name to a tool that takes a thing of any kind.
        let object = (entry.takes_any_thing && lead.is_verb() && word.is_unknown_subject())
            || (lead.opens_free_text && clause.lead != Some(n) && best < weights::FREE_TEXT_BELOW);
        // A word of an argument alone ("contact …") announces a value and is no subject.
        let announces = best > 0.0 && best <= weights::ARGUMENT_WORD;
        let weight = match (object, announces) {
            (true, _) => word.weight.min(weights::VALUE),
            (_, true) => word.weight.min(weights::ANNOUNCEMENT),
            _ => word.weight,
        };
        let unknown = word.is_unknown_subject() && word.weight > weights::POSSIBLE_SUBJECT && !object;
        self.lacks_who_verb |= clause.who_verb == Some(n) && best < SURE_MATCH;
        self.unknown += usize::from(unknown);
        self.vague += usize::from(unknown && word.vague);
        self.unmatched += usize::from(word.matches.is_empty() && word.weight > weights::IMPORTANT);
        self.cover += weight * best;
        self.subject_cover += if word.kind == WordKind::Subject { weight * best } else { 0.0 };
        self.total += weight;
        match word.kind {
            WordKind::Subject => self.subject = self.subject.max(best),
            WordKind::Action => self.action = self.action.max(best),
            WordKind::Helper => {}
        }
        if word.matches.iter().any(|(id, sim)| *sim > SURE_MATCH && values.contains(id)) {
            self.slots.insert(Slot::Value);
        } else if !announces {
            self.plain.push((weight, word));
        }
    }
}

impl CatalogueIndex {
    /// The arguments of a tool.
    pub fn fields(&self, hit: Hit) -> &[ArgumentField] {
        self.indexed_tool(hit).map(|e| e.fields.as_slice()).unwrap_or_default()
    }

    /// Whether a tool's texts have a word like this one; with `announces`, whether only its arguments do.
    pub fn tool_mentions(&self, hit: Hit, word: &Features, announces: bool) -> bool {
        let entry = self.indexed_tool(hit);
        let fits = |weight: f64| !announces || weight <= weights::ARGUMENT_WORD;
        entry.is_some_and(|entry| {
            self.similar_words(word).iter().any(|(id, _)| entry.words.get(id).is_some_and(|w| fits(*w)))
        })
    }

    /// The scene and tool with these names.
    pub fn named(&self, scene: &str, tool: &str) -> Option<Hit> {
        let s = self.scenes.iter().position(|c| c.scene == scene)?;
        let t = self.scenes[s].tools.iter().position(|t| t.name == tool)?;
        Some(Hit::certain(ToolPlace { scene: s, tool: t }))
    }

    /// The best tool for a clause, if one fits. `near` is the scene of the previous words, to which words
    /// that only refer back belong.
    pub fn route(&self, clause: &str, today: Date, near: Option<usize>) -> Option<Hit> {
        self.best(clause, today, near).filter(|hit| hit.score >= FITS)
    }

    /// The best tool for a clause, even if it does not fit. Of equal ones the first in the catalogue, so that
    /// the choice is deterministic.
    pub fn best(&self, clause: &str, today: Date, near: Option<usize>) -> Option<Hit> {
        let hits = self.hits(clause, today, near);
        let best = hits.iter().copied().reduce(Hit::or_better)?;
        // "Send … and show my balance": of reads that fit about as well, that of the scene of the previous words.
        let reads = |hit: &Hit| !self.scenes[hit.scene].tools[hit.tool].writes();
        let of_scene = hits.iter().copied().filter(|hit| near == Some(hit.scene) && reads(hit));
        let beside = of_scene.reduce(Hit::or_better).filter(|_| reads(&best));
        let is_close = |hit: &Hit| hit.score >= STRONG && best.score - hit.score < weights::SAME_SCENE;
        Some(beside.filter(is_close).unwrap_or(best))
    }

    /// All candidate tools, in the order of the catalogue.
    pub fn hits(&self, clause: &str, today: Date, near: Option<usize>) -> Vec<Hit> {
        if let Some(known) = self.route_cache.borrow().get((today, near), clause) {
            return known.to_vec();
        }
        let hits = Rc::new(self.score_tools(clause, today, near));
        self.route_cache.borrow_mut().put((today, near), clause, &hits);
        hits.to_vec()
    }

    fn score_tools(&self, text: &str, today: Date, near: Option<usize>) -> Vec<Hit> {
        let clause = self.analyse_clause(text, today);
        if clause.words.is_empty() {
            return Vec::new();
        }
        let score = |entry: &IndexedTool| {
            let (score, called) = self.score_tool(&clause, entry, near)?;
            // "C'è qualcosa di X in biblioteca?": the clause names the scene by its own word, and the rest is
            // a value to search for.
            let score = if called && score < weights::STOCK_BELOW && has_value(entry, text, today) {
                STRONG + weights::STOCK_SHARE * score.max(0.0)
            } else {
                score
            };
            Some(Hit { scene: entry.scene, tool: entry.tool, score })
        };
        self.tools.iter().filter_map(score).collect()
    }

    /// The score of a tool for a clause, and whether the clause asks for what the tool's scene has. `None` if
    /// they have nothing in common. `near`: the scene of the previous words.
    fn score_tool(
        &self,
        clause: &ScoredClause,
        entry: &IndexedTool,
        near: Option<usize>,
    ) -> Option<(f64, bool)> {
        let elsewhere = clause.refers_back && near.is_some_and(|scene| scene != entry.scene);
        let near = near == Some(entry.scene) && clause.refers_back;
        let lead = LeadMatch::of(clause, entry);
        let overlap = ToolOverlap::of(clause, entry, &self.values[entry.scene], &lead);
        let shares_subject = overlap.subject >= SHARED_SUBJECT;
        let shares_action = overlap.action >= weights::SHARED_ACTION;
        let related = shares_subject || shares_action || (near && overlap.cover > 0.0);
        // "… from 21 to 23 December, please register it": what was spoken of is no city that `AddCity` adds.
        let writes = self.scenes[entry.scene].tools[entry.tool].writes();
        let adds_another = elsewhere && !shares_subject && writes;
        // "The e-mails of all customers" are not that of who asks.
        let is_other =
            |n: &usize| !clause.words[*n].matches.iter().any(|(id, _)| entry.words.contains_key(id));
        let about_others = clause.asks_members || clause.things.iter().any(is_other);
        let counts_other = clause.counts_unknown && !writes && !takes_things(entry);
        if adds_another || counts_other || about_others && !writes && tells_who_asks(entry) {
            return None;
        }
        let asks_name = clause.words.iter().any(|w| w.name);
        if clause.lists_own_acts && writes {
            return None;
        }
        let is_own = clause.asks_own_acts || clause.lists_own_acts;
        if is_own
            && self.lists_what_is_written(entry)
            && self.only_scene_that_does(clause) == Some(entry.scene)
        {
            return Some((STRONG, false));
        }
        if !(related || asks_name) || overlap.total <= 0.0 {
            return None;
        }
        let slots = self.weighted_slots(overlap.slots);
        let like = entry.examples.iter().map(|e| likeness(&overlap.plain, &slots, e)).fold(0.0, f64::max);
        // "How do I open a lemonade stand?": a word that no text of the catalogue has is what it asks about.
        if clause.is_general && overlap.unknown > 0 && like < SAME_AS_EXAMPLE {
            return None;
        }
        // "Chi è X?" may be all that an example says, too.
        let same = like > SAME_AS_EXAMPLE && asks_name;
        // "Book a flight", "show me the orders": an action alone is no request for a tool that does it to something else.
        let is_other =
            || overlap.unknown > 0 || lacks_noun(clause) || self.names_another_thing(clause, entry);
        let acts = shares_action && (near || !is_other());
        if !(shares_subject || acts || same || (near && overlap.cover > 0.0)) {
            return None;
        }
        let cover = overlap.cover / overlap.total;
        let score = weights::LIKENESS_SHARE * like + weights::COVER_SHARE * cover;
        // Many words of its texts and no unknown ones are as good as an example.
        let subjects = (overlap.subject_cover / weights::ENOUGH_SUBJECTS).min(1.0);
        let by_words = weights::COVER_ALONE * cover * subjects;
        let score = score.max(by_words);
        let score = self.adjust_to_tool(score, clause, entry, overlap.lacks_who_verb, like);
        let score = adjust_to_words(score, clause, entry, &overlap, &lead, near);
        let score = score + adjustment_to_asked_words(clause, entry, like);
        let score = score + self.adjustment_to_others(clause, entry)?;
        Some((score, self.asks_for_stock_of(clause, entry, &overlap)))
    }

    /// Whether a tool is a read that lists things.
    fn lists(&self, entry: &IndexedTool) -> bool {
        let tool = &self.scenes[entry.scene].tools[entry.tool];
        !tool.writes() && text::name_words(&tool.name).first().is_some_and(|verb| verb == "list")
    }

    /// The only scene with a write for the action of a clause that names nothing else: "what did I book?"
    fn only_scene_that_does(&self, clause: &ScoredClause) -> Option<usize> {
        if clause.subjects().next().is_some() {
            return None;
        }
        let does = |entry: &&IndexedTool| {
            let mut actions = clause.words.iter().filter(|word| word.kind == WordKind::Action);
            self.scenes[entry.scene].tools[entry.tool].writes()
                && actions.any(|word| word.sure().any(|id| entry.words.contains_key(&id)))
        };
        let mut scenes = self.tools.iter().filter(does).map(|entry| entry.scene);
        let first = scenes.next()?;
        scenes.all(|scene| scene == first).then_some(first)
    }

    /// The word numbers of slots, with their weights.
    fn weighted_slots(&self, slots: SlotSet) -> Vec<(usize, f64)> {
        let present = SLOTS.into_iter().filter(|slot| slots.contains(*slot));
        present.map(|slot| (self.slot_number(slot).unwrap_or(usize::MAX), slot.weight())).collect()
    }

    /// Adjusts a score to the kind of tool: read or write, with or without days and times.
    fn adjust_to_tool(
        &self,
        mut score: f64,
        clause: &ScoredClause,
        entry: &IndexedTool,
        lacks_who_verb: bool,
        like: f64,
    ) -> f64 {
        let tool = &self.scenes[entry.scene].tools[entry.tool];
        if lacks_who_verb {
            score += weights::LACKS_WHO_VERB;
        }
        // "Schließen" opens an example of the tool in another form.
        let opens = |word: &ContentWord| {
            word.kind == WordKind::Subject
                && word.matches.iter().any(|(id, sim)| *sim >= SURE_MATCH && entry.openers.contains(id))
        };
        // "Return the car" states another action than that of `CancelBooking`.
        let is_own = |word: &ContentWord| word.matches.iter().any(|(id, _)| entry.words.contains_key(id));
        let states = |word: &ContentWord| word.special && is_own(word) || opens(word);
        if entry.has_special_action && like < SAME_AS_EXAMPLE && !clause.words.iter().any(states) {
            score += weights::UNSTATED_ACTION;
        }
        if clause.slots.contains(Slot::Question) && tool.writes() && !clause.expresses_wish {
            score += weights::WRITE_FOR_QUESTION;
        }
        if clause.asks_own_acts && self.lists(entry) {
            score += weights::LISTS_OWN_ACTS;
        }
        if clause.expresses_wish {
            score += if tool.writes() { weights::WRITE_FOR_WISH } else { weights::READ_FOR_WISH };
        }
        let dated =
            entry.fields.iter().any(|f| matches!(f.kind, ArgumentKind::Date | ArgumentKind::DateTime));
        if clause.slots.contains(Slot::Date) {
            score += if dated { weights::TAKES_DAY } else { weights::TAKES_NO_DAY };
        }
        let timed =
            entry.fields.iter().any(|f| matches!(f.kind, ArgumentKind::Time | ArgumentKind::DateTime));
        if clause.has_time {
            score += if timed { weights::TAKES_TIME } else { weights::TAKES_NO_TIME };
        }
        score
    }

    /// Whether a clause asks for what the scene of a tool that reads has. "C'è un cineclub a …?" asks for
    /// another one of the scene's kind, not for what is in it.
    fn asks_for_stock_of(
        &self,
        clause: &ScoredClause,
        entry: &IndexedTool,
        overlap: &ToolOverlap<'_>,
    ) -> bool {
        let itself = clause.asked_thing.as_ref().is_some_and(|thing| {
            text::name_words(&self.scenes[entry.scene].scene)
                .iter()
                .any(|word| features(word).similarity(thing) > SURE_MATCH)
        });
        clause.asks_existence
            && !itself
            && !self.scenes[entry.scene].tools[entry.tool].writes()
            && overlap.subject >= SHARED_SUBJECT
            && overlap.unknown == overlap.vague
    }
}

/// Adjusts a score to what the words of the clause say.
fn adjust_to_words(
    mut score: f64,
    clause: &ScoredClause,
    entry: &IndexedTool,
    overlap: &ToolOverlap<'_>,
    lead: &LeadMatch,
    near: bool,
) -> f64 {
    let coded = clause.words.iter().any(|w| w.code);
    if lead.is_verb() {
        score += weights::OPENS_WITH_VERB;
    }
    // "Who invented the car?" is no question for a car pool; "who approves my leave?" is one.
    if clause.about_speaker {
        score += weights::ABOUT_SPEAKER;
    } else if clause.wh_question && overlap.unmatched > 0 && !coded {
        score += weights::UNMATCHED_QUESTION;
    }
    let without_subject = overlap.subject < SHARED_SUBJECT;
    let takes_anything = (entry.takes_any_thing && lead.is_verb()) || lead.opens_free_text;
    if near && without_subject {
        score *= weights::REFERS_BACK_WITHOUT_SUBJECT;
    } else if near {
        score += weights::REFERS_BACK_WITH_SUBJECT;
    } else if without_subject && !takes_anything {
        score *= weights::WITHOUT_SUBJECT;
    }
    score
}

/// Whether a tool takes the name of a thing, which no text of the catalogue has to know.
fn takes_things(entry: &IndexedTool) -> bool {
    let is_thing = |field: &ArgumentField| {
        matches!(
            field.kind,
            ArgumentKind::Thing | ArgumentKind::Text | ArgumentKind::Id | ArgumentKind::List(_)
        )
    };
    entry.fields.iter().any(is_thing)
}

/// Whether a tool tells about who asks where no other person is named.
fn tells_who_asks(entry: &IndexedTool) -> bool {
    entry.fields.iter().any(|field| field.kind == ArgumentKind::Person && !field.required)
}

/// Whether a clause orders to show or to find something of which no tool has a word: "show me the orders".
fn lacks_noun(clause: &ScoredClause) -> bool {
    let is_unmatched = |word: &ContentWord| word.matches.is_empty() && word.weight > weights::IMPORTANT;
    clause.lead_is_lookup
        && clause.words.iter().enumerate().any(|(n, word)| clause.lead != Some(n) && is_unmatched(word))
}

/// "What is the … for …" is for the tool that has a word for it.
fn adjustment_to_asked_words(clause: &ScoredClause, entry: &IndexedTool, like: f64) -> f64 {
    let has = |word: &Vec<(usize, f64)>| word.iter().any(|(id, _)| entry.words.contains_key(id));
    let missing =
        !clause.asked_words.is_empty() && !clause.asked_words.iter().any(has) && like < SAME_AS_EXAMPLE;
    if missing { weights::LACKS_ASKED_WORD } else { 0.0 }
}

/// Whether the words give the tool an argument. Names count only with a capital or a digit.
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

/// The similarity of a clause and an example, from 0 to 1.
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
