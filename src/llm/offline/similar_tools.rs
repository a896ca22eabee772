//! Chooses between tools that fit a clause about equally well: by the action or the verb that it names, and by the values that
//! it states.

use std::rc::Rc;

use super::clauses::Clause;
use super::drafts::{StepDraft, opens_with_lookup};
use super::index::polite_lead;
use super::lexicon;
use super::opening_act::OpeningAct;
use super::pattern::strip_fillers;
use super::plan::OfflinePlanner;
use super::prompt::PriorCall;
use super::routing::Hit;
use super::schema::ArgumentKind;
use super::source::SourceText;
use super::text::{self, Features, Token};
use super::weights::{self, EQUAL_SCORES, FITS, SURE_MATCH};

impl OfflinePlanner {
    /// Chooses between similar tools. Returns the tool and whether the choice is in doubt. A read is
    /// preferred if the clause asks to look something up.
    pub fn disambiguate(&self, hit: Hit, clause: &Clause, near: Option<usize>) -> (Hit, bool) {
        let others = self.index.hits(&clause.text, self.today(), near);
        let same = |h: &Hit| h.scene == hit.scene && h.tool == hit.tool;
        if !others.iter().any(|h| same(h) && (h.score - hit.score).abs() < EQUAL_SCORES) {
            // The tool was found by other words than those of the clause.
            return (hit, false);
        }
        if let Some(named) = self.write_named_by_action(hit, &others, &clause.text) {
            return (named, false);
        }
        // "Blocca" is not "sblocca": the tool whose examples begin with this verb is meant.
        if let Some(named) = self.write_named_by_verb(hit, &others, &clause.text) {
            return (named, false);
        }
        if let Some(fuller) = self.write_taking_numbers(hit, &others, &clause.text) {
            return (fuller, false);
        }
        // "Cancel that one": a verb alone fits many tools.
        let near =
            if names_subject(&clause.text) { weights::CLEAR_LEAD } else { weights::CLEAR_LEAD_OF_VERB };
        let close = others.iter().filter(|h| !same(h) && h.score > FITS && hit.score - h.score < near);
        let best = close.reduce(|a, b| if b.score > a.score { b } else { a });
        match best {
            Some(other) if !self.writes(*other) && opens_with_lookup(&clause.text) => (*other, false),
            Some(_) => (hit, true),
            None => (hit, false),
        }
    }

    /// Another write whose name begins with an action that the clause names, if that of `hit` does not: "register the return
    /// of a jug" is no sale, whatever else was registered and whichever examples speak of jugs. Not one that lacks more values.
    fn write_named_by_action(&self, hit: Hit, others: &[Hit], words: &str) -> Option<Hit> {
        let said = text::tokens(words);
        let is_named = |h: &Hit| {
            let name = text::name_words(self.tool_name(*h));
            let action = name.first().map(|word| text::features(word));
            action.filter(|action| lexicon::is_action(&action.concepts)).is_some_and(|action| {
                said.iter().any(|t| t.word && t.features().similarity(&action) > SURE_MATCH)
            })
        };
        if !self.writes(hit) || is_named(&hit) {
            return None;
        }
        let lacking = |h: &Hit| self.filled(*h, words).missing(self.index.fields(*h)).len();
        let known = lacking(&hit);
        let fits = |h: &Hit| h.score >= FITS && hit.score - h.score < weights::WRITE_ALTERNATIVE;
        let writes = others.iter().filter(|h| h.scene == hit.scene && fits(h) && self.writes(**h));
        writes.filter(|h| is_named(h) && lacking(h) <= known).copied().reduce(Hit::or_better)
    }

    /// Another write whose examples have the opening verb of the clause, if those of `hit` do not.
    fn write_named_by_verb(&self, hit: Hit, others: &[Hit], words: &str) -> Option<Hit> {
        let verb = opening_verb(words)?;
        let has = |h: &Hit| {
            let tool = self.tool_name(*h);
            let examples = self.index.scenes[h.scene].examples.iter();
            let own = examples.filter(|e| e.tool.as_deref() == Some(tool));
            let says = |say: &str| {
                text::tokens(say).iter().take(4).any(|t| t.features().similarity(&verb) > weights::SAME_VERB)
            };
            own.into_iter().any(|e| says(&e.say))
                || text::name_words(tool)
                    .iter()
                    .any(|w| text::features(w).similarity(&verb) > weights::SAME_VERB)
        };
        if has(&hit) {
            return None;
        }
        // The planner does not see the values of enumerations.
        let lacking = |h: &Hit| {
            let fields = self.index.fields(*h);
            let missing = self.filled(*h, words);
            missing
                .missing(fields)
                .iter()
                .any(|f| !matches!(f.kind, ArgumentKind::Enum(_) | ArgumentKind::Text | ArgumentKind::Thing))
        };
        let called = |h: &Hit| {
            let own = text::name_words(self.tool_name(*h));
            own.first().is_some_and(|word| text::features(word).similarity(&verb) > SURE_MATCH) && !lacking(h)
        };
        let lacks = lacking(&hit);
        let near = others.iter().filter(|h| {
            h.scene == hit.scene && self.writes(**h) && hit.score - h.score < weights::WRITE_ALTERNATIVE
        });
        near.filter(|h| h.tool != hit.tool && (has(h) || (lacks && called(h))))
            .copied()
            .reduce(|a, b| if b.score > a.score { b } else { a })
    }

    /// If the opening verb of the clause is the opposite of the tool's action: the tool of that verb, or
    /// `hit` in doubt.
    pub fn opposite_by_verb(&self, hit: Hit, others: &[Hit], words: &str) -> Option<(Hit, bool)> {
        let verb = opening_verb(words)?;
        let own = |h: &Hit| text::name_words(self.tool_name(*h)).first().map(|word| text::features(word));
        let undone = |h: &Hit| own(h).is_some_and(|o| o.similarity(&verb) < SURE_MATCH && o.reverses(&verb));
        if !undone(&hit) {
            return None;
        }
        let like = |h: &&Hit| own(h).is_some_and(|o| o.similarity(&verb) > SURE_MATCH && !o.reverses(&verb));
        let other = others.iter().filter(|h| h.scene == hit.scene && self.writes(**h)).find(like);
        Some(other.map_or((hit, true), |other| (*other, false)))
    }

    /// Whether words only order to undo what was done last, and the tool is of another scene: "undo that" after a sale is not for
    /// `CancelRequest` of vacation.
    pub fn undoes_something_else(&self, hit: Hit, words: &str) -> bool {
        let tokens = text::tokens(words);
        let undoes = strip_fillers(&tokens.iter().filter(|t| t.word).collect::<Vec<_>>())
            .first()
            .is_some_and(|verb| OpeningAct::of(std::slice::from_ref(verb)) == Some(OpeningAct::Undo));
        let called = self.conversation.turns.iter().rev().find(|turn| !turn.calls.is_empty());
        let done = called.map_or(&[][..], |turn| &turn.calls);
        let written =
            |call: &PriorCall| self.index.named(&call.scene, &call.tool).filter(|hit| self.writes(*hit));
        let mut scenes = done.iter().filter_map(written).map(|hit| hit.scene).peekable();
        undoes && !names_subject(words) && scenes.peek().is_some() && scenes.all(|scene| scene != hit.scene)
    }

    /// Whether a step's words ask to reserve something, and of all that its tool says only the thing "book" means that: "reserve
    /// Emma for Bob" is no loan.
    pub fn reserves_a_book(&self, draft: &StepDraft) -> bool {
        let reserves = |word: &Features| word.similarity(&text::features("reserve")) > SURE_MATCH;
        let tokens = text::tokens(&draft.purpose);
        let said: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
        let own = polite_lead(&said).unwrap_or(&said);
        if !strip_fillers(own).first().is_some_and(|verb| reserves(&verb.features())) {
            return false;
        }
        let tool = self.tool_name(draft.hit);
        let scene = &self.index.scenes[draft.hit.scene];
        let examples = scene.examples.iter().filter(|example| example.tool.as_deref() == Some(tool));
        let texts = examples.map(|example| example.say.as_str());
        let says_so = |text: &str| {
            let tokens = text::tokens(text);
            let is_thing = |at: usize| {
                let before = tokens[..at].iter().rev().find(|t| t.word);
                tokens[at].is(&["book", "books"]) && before.is_some_and(|t| lexicon::is_stop_word(&t.norm))
            };
            (0..tokens.len()).any(|at| tokens[at].word && !is_thing(at) && reserves(&tokens[at].features()))
        };
        let named = text::name_words(tool).first().is_some_and(|word| reserves(&text::features(word)));
        !named && !texts.chain([scene.tools[draft.hit.tool].description.as_str()]).any(says_so)
    }

    /// Another write of the scene that uses all stated numbers and lacks no value, if `hit` leaves a number
    /// unused.
    fn write_taking_numbers(&self, hit: Hit, others: &[Hit], words: &str) -> Option<Hit> {
        let source = SourceText::new(words, &self.now);
        let takes = |h: &Hit| {
            let fields = self.index.fields(*h);
            let filled = self.filled(*h, words);
            let used = |i: usize| filled.used.get(i) == Some(&true);
            let all =
                source.found.numbers.iter().all(|n| n.first == n.last && n.value == 1.0 || used(n.first));
            (all, filled.missing(fields).is_empty())
        };
        if source.found.numbers.is_empty() || takes(&hit).0 {
            return None;
        }
        let near = others.iter().filter(|h| h.scene == hit.scene && h.tool != hit.tool && self.writes(**h));
        near.filter(|h| hit.score - h.score < weights::WRITE_ALTERNATIVE && takes(h) == (true, true))
            .copied()
            .reduce(|a, b| if b.score > a.score { b } else { a })
    }
}

/// Whether words name something other than actions, numbers and function words.
fn names_subject(words: &str) -> bool {
    text::tokens(words).iter().any(|t| {
        let quiet = lexicon::is_stop_word(&t.norm)
            || lexicon::is_pleasantry(&t.norm)
            || lexicon::is_time_unit(&t.norm);
        t.word
            && !quiet
            && !t.digit()
            && !lexicon::is_action(&t.features().concepts)
            && !t.is(&["one", "ones"])
    })
}

/// The first word of a clause after fillers.
fn opening_verb(words: &str) -> Option<Rc<Features>> {
    let tokens = text::tokens(words);
    let said: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    strip_fillers(&said).first().map(|t| t.features())
}
