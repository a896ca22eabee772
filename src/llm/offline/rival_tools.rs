//! Tools that serve a clause better than the one that is compared with it: what it says is what they do.

use jiff::civil::Date;

use super::entities::Entities;
use super::index::{CatalogueIndex, IndexedTool, Slot, WordKind};
use super::opening_act::OpeningAct;
use super::routing::Hit;
use super::schema::{ArgumentField, ArgumentKind};
use super::scored_clause::{ContentWord, ScoredClause};
use super::speech;
use super::text::{self, Features};
use super::weights::{self, SURE_MATCH};

impl CatalogueIndex {
    /// What the score of a tool loses because another one does what the clause says. `None` if the tool does something else than
    /// what the clause orders.
    pub(super) fn adjustment_to_others(&self, clause: &ScoredClause, entry: &IndexedTool) -> Option<f64> {
        let tool = &self.scenes[entry.scene].tools[entry.tool];
        if self.does_another_act(clause, entry) || ranks_nothing(clause, entry, &tool.name) {
            return None;
        }
        let is_for_another = self.names_another_read(clause, entry)
            || self.another_read_counts(clause, entry)
            || self.another_read_tells_act(clause, entry);
        let adjustments = [
            (is_for_another, weights::NAMES_ANOTHER),
            (self.another_read_lists(clause, entry), weights::ANOTHER_ACTION),
            (self.shows_another_read(clause, entry), weights::ANOTHER_ACTION),
            (self.opens_another_write(clause, entry), weights::ANOTHER_ACTION),
            (self.names_another_write(clause, entry), weights::ANOTHER_ACTION),
        ];
        Some(adjustments.iter().filter(|(is_so, _)| *is_so).map(|(_, weight)| weight).sum())
    }

    /// Whether a clause orders that something that is there be changed or undone, and the tool does something else: "move my
    /// vacation to Monday" is neither for `MakeRequest` nor for `CancelRequest`, and "cancel my loan" is not for `LendBook`.
    fn does_another_act(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let tool = &self.scenes[entry.scene].tools[entry.tool];
        let Some(act) = clause.opens_with else { return false };
        let does = || text::name_words(&tool.name).first().is_some_and(|verb| act.is_done_by(verb));
        let lead = || clause.lead.and_then(|n| clause.words.get(n));
        let has_verb =
            || act.is_in_verb() && lead().is_some_and(|word| word.sure().any(|id| entry.has_own_word(id)));
        // "Undo the cancellation of request 5" cancels nothing.
        let is_verb = |(n, word): (usize, &ContentWord)| {
            clause.lead != Some(n) && word.sure().any(|id| entry.verb == Some(id))
        };
        let undoes_itself = act == OpeningAct::Undo && clause.words.iter().enumerate().any(is_verb);
        undoes_itself || !does() && !has_verb()
    }

    /// Whether a clause orders that something be changed or undone that tools of another scene name better: "cancel the loan" is not
    /// for `CancelRequest`.
    pub(super) fn names_another_thing(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let best = |word: &ContentWord, is_own: bool| {
            let has = |id: &usize| {
                self.tools
                    .iter()
                    .any(|tool| (tool.scene == entry.scene) == is_own && tool.words.contains_key(id))
            };
            let found = word.matches.iter().filter(|(id, _)| has(id));
            found.map(|(_, similarity)| *similarity).fold(0.0, f64::max)
        };
        let is_other = |word: &ContentWord| {
            let theirs = best(word, false);
            word.kind == WordKind::Subject && theirs >= SURE_MATCH && theirs > best(word, true)
        };
        clause.opens_with.is_some() && clause.words.iter().any(is_other)
    }

    /// Whether a clause has a word of the name of another read of the scene, which this read has in no text of its own:
    /// "show my vacation balance" is for `GetBalance`, however close "show my vacation requests" is.
    fn names_another_read(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let is_of_other = |word: &ContentWord| {
            !word.sure().any(|id| entry.has_own_word(id)) && self.is_of_another_read(word, entry)
        };
        !self.scenes[entry.scene].tools[entry.tool].writes() && clause.subjects().any(is_of_other)
    }

    /// Whether an order to show something has a word of the name of another read of the scene, and none of this read's name:
    /// "show me the weather in Rome" is not for `ListCities`, although that lists the cities whose weather is known.
    fn shows_another_read(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let is_own = |word: &ContentWord| {
            let named = word.sure().filter_map(|id| self.named.get(&(entry.scene, id)));
            named.flatten().any(|tool| *tool == entry.tool)
        };
        let is_read = !self.scenes[entry.scene].tools[entry.tool].writes();
        is_read
            && clause.lead_is_lookup
            && !clause.subjects().any(is_own)
            && clause.subjects().any(|word| self.is_of_another_read(word, entry))
    }

    /// Whether a word is one of the name of another read of the tool's scene.
    fn is_of_another_read(&self, word: &ContentWord, entry: &IndexedTool) -> bool {
        let tools = &self.scenes[entry.scene].tools;
        let is_other = |tool: &usize| *tool != entry.tool && !tools[*tool].writes();
        word.sure()
            .any(|id| self.named.get(&(entry.scene, id)).is_some_and(|named| named.iter().any(is_other)))
    }

    /// Whether a clause asks how many there are, which examples of another read of the scene do, and none of this one: "how many
    /// teapots do we have?" is not for `GetPrice`.
    fn another_read_counts(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let is_read = |tool: &IndexedTool| !self.scenes[tool.scene].tools[tool.tool].writes();
        let counts = |tool: &IndexedTool| tool.scene == entry.scene && tool.counts && is_read(tool);
        clause.asks_count && !entry.counts && is_read(entry) && self.tools.iter().any(counts)
    }

    /// Whether a question is about an act of which another read of the scene tells, and this one does not: "how many teapots did we
    /// sell?" is not for `GetPrice`.
    fn another_read_tells_act(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let is_read = |tool: &IndexedTool| !self.scenes[tool.scene].tools[tool.tool].writes();
        let tells = |tool: &IndexedTool, word: &ContentWord| word.sure().any(|id| tool.has_own_word(id));
        let beside = |word: &ContentWord| {
            self.tools.iter().any(|tool| tool.scene == entry.scene && is_read(tool) && tells(tool, word))
        };
        let asked = |(n, word): (usize, &ContentWord)| {
            word.kind == WordKind::Action && clause.lead != Some(n) && !tells(entry, word) && beside(word)
        };
        clause.slots.contains(Slot::Question) && is_read(entry) && clause.words.iter().enumerate().any(asked)
    }

    /// Whether a clause asks which things there are without naming one, which this tool needs and another read of the scene does
    /// not: "which cities do you know?" is not for `CityExists`.
    fn another_read_lists(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let needs_name = |tool: &IndexedTool| {
            let is_name = |field: &&ArgumentField| {
                matches!(
                    field.kind,
                    ArgumentKind::Place | ArgumentKind::Person | ArgumentKind::Thing | ArgumentKind::Id
                )
            };
            tool.fields.iter().filter(|field| field.required).any(|field| is_name(&field))
        };
        let lists = |tool: &IndexedTool| {
            let known = &self.scenes[tool.scene].tools[tool.tool];
            tool.scene == entry.scene && !known.writes() && !tool.fields.iter().any(|field| field.required)
        };
        clause.asks_which && needs_name(entry) && self.tools.iter().any(lists)
    }

    /// The read that tells the state of what is the speaker's, for a question that was routed to a tool beside it which neither does
    /// so nor takes the day that is asked about: "is my vacation approved?" is not for `GetApprovers`, but for `ListRequests`.
    pub(super) fn telling_state(&self, hit: Hit, clause: &str, today: Date) -> Hit {
        let tokens = text::tokens(clause);
        let has_day = !Entities::in_tokens(&tokens, today).days.is_empty();
        let takes_day = |tool: &IndexedTool| tool.fields.iter().any(|field| field.kind == ArgumentKind::Date);
        let tools = || self.tools.iter().filter(|tool| tool.scene == hit.scene);
        let tells = |tool: &IndexedTool| {
            self.lists_what_is_written(tool)
                || takes_day(tool) && !self.scenes[tool.scene].tools[tool.tool].writes()
        };
        if !speech::asks_state(&tokens, has_day) || tools().any(|tool| tool.tool == hit.tool && tells(tool)) {
            return hit;
        }
        let listing = tools().find(|tool| self.lists_what_is_written(tool));
        listing.map_or(hit, |tool| Hit { tool: tool.tool, ..hit })
    }

    /// Whether a tool is a read that needs no value and is named after what a write of its scene is: `ListRequests` beside
    /// `MakeRequest`.
    pub(super) fn lists_what_is_written(&self, entry: &IndexedTool) -> bool {
        let tools = &self.scenes[entry.scene].tools;
        let noun = |name: &str| text::name_words(name).last().map(|noun| text::features(noun));
        let Some(listed) = noun(&tools[entry.tool].name) else { return false };
        let is_written = |name: &str| noun(name).is_some_and(|noun| noun.similarity(&listed) > SURE_MATCH);
        !tools[entry.tool].writes()
            && !entry.fields.iter().any(|field| field.required)
            && tools.iter().any(|tool| tool.writes() && is_written(&tool.name))
    }

    /// Whether an order opens as the examples of another write of the scene do, and not as one of this tool's, nor with its verb:
    /// "set the price of the milk jug to 30" is for `ChangePrice`, however close "what is the price of the milk jug?" is.
    fn opens_another_write(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let Some(lead) = clause.lead.and_then(|n| clause.words.get(n)) else { return false };
        let opens =
            |tool: &IndexedTool| lead.sure().any(|id| tool.openers.contains(&id) || tool.verb == Some(id));
        let writes = |tool: &IndexedTool| self.scenes[tool.scene].tools[tool.tool].writes();
        let beside = self.tools.iter().filter(|tool| tool.scene == entry.scene && tool.tool != entry.tool);
        let asks = clause.lead_is_lookup || clause.slots.contains(Slot::Question);
        !asks && !opens(entry) && beside.into_iter().any(|tool| writes(tool) && opens(tool))
    }

    /// Whether a clause has the verb of another write of the scene in some form, and neither this write's own verb nor that word
    /// among its texts: "registra il reso di una teiera" is for `ReturnItems`, however close an example of `SellItems` is.
    fn names_another_write(&self, clause: &ScoredClause, entry: &IndexedTool) -> bool {
        let writes = |tool: &IndexedTool| self.scenes[tool.scene].tools[tool.tool].writes();
        if !writes(entry) {
            return false;
        }
        let beside = self.tools.iter().filter(|tool| tool.scene == entry.scene && tool.tool != entry.tool);
        let others: Vec<usize> = beside.filter(|tool| writes(tool)).filter_map(|tool| tool.verb).collect();
        let is_own_verb = |word: &ContentWord| word.sure().any(|id| entry.verb == Some(id));
        let is_of_other = |word: &ContentWord| {
            word.sure().any(|id| others.contains(&id)) && !word.sure().any(|id| entry.has_own_word(id))
        };
        !clause.words.iter().any(is_own_verb) && clause.words.iter().any(is_of_other)
    }
}

/// Whether a clause asks which thing is the first of its kind, and the tool has to be given one or only lists them: "which is the
/// warmest city in Italy?" is neither for `CityExists` nor for `ListCities`.
fn ranks_nothing(clause: &ScoredClause, entry: &IndexedTool, name: &str) -> bool {
    let is_about = |noun: &Features| {
        let of_field = |field: &ArgumentField| field.cues.iter().any(|cue| cue.similarity(noun) > SURE_MATCH);
        let mut words = text::name_words(name).into_iter().skip(1);
        entry.fields.iter().any(|field| field.required && of_field(field))
            || words.any(|word| text::features(&word).similarity(noun) > SURE_MATCH)
    };
    clause.asked_first.as_ref().is_some_and(|noun| is_about(noun))
}
