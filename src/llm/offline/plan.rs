//! Plans: the clauses of a request, each with the tool that serves it, in the order of their dependencies.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use jiff::Zoned;
use serde_json::{Value, json};

use super::answer;
use super::candidates;
use super::clauses::{Clause, ClauseLink, ClauseRouter};
use super::courtesies::without_courtesies;
use super::drafts::{StepDraft, UnservedParts};
use super::entities::Entities;
use super::exclusions::without_exclusion;
use super::index::{CatalogueIndex, polite_lead};
use super::lexicon;
use super::mood;
use super::named_days::with_named_days;
use super::pattern::{self, strip_fillers};
use super::plan_changes;
use super::plan_flows::{add_flow_steps, flows_of, is_about_a_document};
use super::prepared;
use super::prompt::{Conversation, Executed, OpenQuestion, PromptText, SceneCard};
use super::pronouns;
use super::routing::{Hit, ToolPlace};
use super::slots::{self, Filled};
use super::text::{self, TokenCache};
use super::text_task;
use super::tuples;
use super::weights::{FITS, STRONG, SURE_MATCH};
use crate::language::number_words;
use crate::llm::Request;

/// Maximum number of steps, whatever the prompt allows.
const MAX_STEPS: usize = 10;

/// The arguments of `CreateExecutionPlan` for a request.
pub(super) fn create(request: &Request, prompt: &PromptText) -> Value {
    // Of many scenes, the prompt describes only some in full.
    let section = if prompt.get("shortlist").is_empty() { "scenes" } else { "shortlist" };
    let asked = AskedPlan::of(request, prompt);
    let planner = OfflinePlanner::of(prompt, section, &asked);
    let is_known = |word: &str| {
        let similar = planner.index.similar_words(&text::features(word));
        similar.iter().any(|(_, similarity)| *similarity >= SURE_MATCH)
    };
    let own_words = with_named_days(&asked.words, &planner.conversation, &planner.now)
        .or_else(|| pronouns::with_own_pronoun(&asked.words, is_known))
        .or_else(|| without_exclusion(&asked.words, |verb| !planner.index.has_verb(&verb.features())))
        .or_else(|| planner.whole_flow_question(&flows_of(&prompt.lines(section)), &asked.words));
    let asked = match own_words {
        Some(words) if asked.is_first => AskedPlan { words, ..asked },
        _ => asked,
    };
    let mut before = Value::Null;
    let mut plan = if asked.is_change() {
        before = prompt.json("plan");
        planner.changed_plan(&asked, &before)
    } else if asked.is_first
        && planner.pending.is_none()
        && let Some(change) = planner.changed_write(&asked.words)
    {
        planner.plan_for_change(change, (asked.first, asked.max), prompt.language())
    } else {
        planner.new_plan(&asked, &prompt.lines(section), &prompt.chatbot_instructions())
    };
    prepared::prepare(request, prompt, &planner.index.scenes, &before, &mut plan["steps"]);
    // What the request itself forbids is told as it is.
    if plan["needs_execution"] == false
        && plan["unserved"].is_null()
        && plan["answer"].is_null()
        && let Some(answer) = answer::answer_in_plan(prompt)
    {
        plan["answer"] = json!(answer);
    }
    if !may_answer(request)
        && let Some(plan) = plan.as_object_mut()
    {
        plan.remove("answer");
    }
    plan
}

pub(super) struct AskedPlan {
    /// The words to plan: those of the request, of what is missing, or of the feedback.
    words: String,
    /// What a person wants changed in an earlier plan; empty if nothing.
    feedback: String,
    /// Whether nothing was planned before for the request.
    pub is_first: bool,
    /// Whether the request names documents.
    pub names_documents: bool,
    /// What was executed before.
    executed: Vec<Executed>,
    /// The number of the first step.
    pub first: u32,
    /// The maximum number of steps.
    max: usize,
}

impl AskedPlan {
    fn of(request: &Request, prompt: &PromptText) -> Self {
        let executed: Vec<Executed> = prompt.lines("executed");
        let missing = prompt.get("missing");
        let feedback = prompt.get("feedback");
        let is_first = feedback.trim().is_empty() && missing.trim().is_empty() && executed.is_empty();
        let words = match (feedback.trim(), missing.trim()) {
            ("", "") => prompt.request(),
            ("", _) => missing,
            _ => feedback.clone(),
        };
        let words = match is_first {
            true => without_courtesies(text::cut(words.trim())),
            false => text::cut(words.trim()).to_owned(),
        };
        let first = prompt.get("number_from").trim().parse::<u32>().unwrap_or(1).max(1);
        let names_documents = !prompt.get("documents").trim().is_empty();
        Self { words, feedback, is_first, names_documents, executed, first, max: max_steps(request) }
    }

    fn is_change(&self) -> bool {
        !self.feedback.trim().is_empty()
    }
}

fn tool_names(scenes: &[SceneCard]) -> BTreeSet<(String, String)> {
    let of = |scene: &SceneCard| -> Vec<(String, String)> {
        scene.tools.iter().map(|tool| (scene.scene.clone(), tool.name.clone())).collect()
    };
    scenes.iter().flat_map(of).collect()
}

fn with_more_tools(mut scenes: Vec<SceneCard>, more: Vec<SceneCard>) -> Vec<SceneCard> {
    for scene in more {
        match scenes.iter_mut().find(|known| known.scene == scene.scene) {
            Some(known) => {
                known.tools.extend(scene.tools);
                known.examples.extend(scene.examples);
            }
            None => scenes.push(scene),
        }
    }
    scenes
}

/// Whether the plan may contain the answer to a request that needs no scene, by the schema.
fn may_answer(request: &Request) -> bool {
    request.tools.first().is_some_and(|tool| tool.parameters.pointer("/properties/answer").is_some())
}

/// The maximum number of steps by the schema.
fn max_steps(request: &Request) -> usize {
    let schema = request.tools.first().and_then(|t| t.parameters.pointer("/properties/steps/maxItems"));
    let allowed = schema.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    allowed.unwrap_or(MAX_STEPS).clamp(1, MAX_STEPS)
}

/// Words of a request, and the scene of the previous words.
type PlannedPhrase = (String, Option<usize>);

pub(super) struct OfflinePlanner {
    /// The index of the catalogue.
    pub index: Rc<CatalogueIndex>,
    /// Scenes and tools that the request's constraints do not allow.
    pub not_allowed: BTreeSet<(String, String)>,
    /// Scenes and tools that are switched off.
    pub switched_off: BTreeSet<(String, String)>,
    /// The current time.
    pub now: Zoned,
    /// The conversation so far.
    pub conversation: Conversation,
    /// The question that the user has not answered yet.
    pub pending: Option<OpenQuestion>,
    /// Cache of routing results, because splitting routes the same parts several times.
    route_cache: RefCell<HashMap<PlannedPhrase, Option<Hit>>>,
    /// Cache of slot filling, by scene and tool.
    slot_cache: RefCell<TokenCache<(usize, usize), Filled>>,
    /// Whether the words are feedback on a plan, in which every clause is an order.
    pub orders_only: bool,
}

impl ClauseRouter for OfflinePlanner {
    fn tool_for(&self, words: &str, after: Option<ToolPlace>) -> Option<(ToolPlace, bool)> {
        let near = after.map(|tool| tool.scene);
        let key = (words.to_owned(), near);
        let known = self.route_cache.borrow().get(&key).copied();
        let hit = known.unwrap_or_else(|| {
            let hit = self.index.route(words, self.now.date(), near);
            let hit = hit.filter(|hit| !self.names_other_object(words, *hit));
            self.route_cache.borrow_mut().insert(key, hit);
            hit
        })?;
        Some((hit.place(), hit.score >= STRONG))
    }

    fn has_verb_or_question(&self, words: &str) -> bool {
        let tokens = text::tokens(words);
        let start: Vec<_> = tokens.iter().filter(|t| t.word).take(5).collect();
        let opens = strip_fillers(&start).first().is_some_and(|t| pattern::is_verb_form(&t.norm));
        opens
            || start.iter().any(|t| {
                lexicon::is_question_word(&t.norm)
                    || lexicon::may_be_action(&t.features().concepts)
                    || t.is(&[
                        "vorrei", "voglio", "dimmi", "dammi", "fammi", "tell", "give", "want", "like",
                        "need", "serve", "devo", "show", "let", "sapere", "che", "is", "do", "puoi", "can",
                        "get", "check",
                    ])
            })
    }

    fn names_tool_subject(&self, words: &str, tool: ToolPlace) -> bool {
        let hit = Hit::certain(tool);
        let tokens = text::tokens(words);
        // The first word is another verb, unless it only announces a value: "…, contact a@example.com".
        let content = tokens.iter().filter(|t| t.word && !lexicon::is_stop_word(&t.norm));
        content.enumerate().any(|(n, t)| self.index.tool_mentions(hit, &t.features(), n == 0))
    }

    fn only_varies_values(&self, before: &str, words: &str, tool: ToolPlace) -> bool {
        let hit = Hit::certain(tool);
        // "Block my debit card and my credit card": the order applies to both.
        let tokens = text::tokens(before);
        let previous: Vec<_> = tokens.iter().filter(|t| t.word).collect();
        let verb = strip_fillers(&previous).first().map(|t| t.raw.clone()).filter(|_| self.writes(hit));
        // Words that lead to another scene are another request.
        if self.tool_for(words, None).is_some_and(|(own, _)| own.scene != hit.scene) {
            return false;
        }
        // So are words with their own order.
        let further = text::tokens(words);
        let own: Vec<_> = further.iter().filter(|t| t.word).collect();
        let orders = mood::is_order(strip_fillers(&own));
        let ordered = verb.filter(|_| !orders).is_some_and(|verb| {
            let whole = format!("{verb} {words}");
            let hits = self.index.hits(&whole, self.today(), Some(hit.scene));
            let best = hits.iter().copied().reduce(Hit::or_better);
            let meant =
                best.map(|best| self.opposite_by_verb(best, &hits, &whole).map_or(best, |meant| meant.0));
            meant.is_some_and(|meant| meant.place() == tool)
        });
        ordered
            || (!orders && self.lists_further_things(hit, &own))
            || tuples::repeats(self.index.fields(hit), before, words, &self.now)
    }
}

impl OfflinePlanner {
    /// Whether words are a number of things of which the texts of the write before them speak, too: "sell 2 teapots, a jug and
    /// 3 cups". Another tool that fits these things better is not what is asked for.
    fn lists_further_things(&self, write: Hit, words: &[&text::Token]) -> bool {
        let Some((count, things)) = words.split_first() else { return false };
        let is_count = count.digit()
            || count.is(&["a", "an", "un", "uno", "una"])
            || number_words::spoken(&count.norm).is_some();
        let mut things = things.iter().filter(|t| !lexicon::is_stop_word(&t.norm)).peekable();
        is_count
            && self.writes(write)
            && things.peek().is_some()
            && things.all(|t| self.index.tool_mentions(write, &t.features(), false))
    }

    /// A planner over the scenes that a section of the prompt lists.
    fn of(prompt: &PromptText, section: &str, asked: &AskedPlan) -> Self {
        let refused: Vec<SceneCard> = prompt.lines("not_allowed");
        let off: Vec<SceneCard> = prompt.lines("switched_off");
        let (not_allowed, switched_off) = (tool_names(&refused), tool_names(&off));
        // What may not be called is found, too: nothing else is done in its place.
        let mut key = prompt.get(section);
        for (name, cards) in [("not_allowed", &refused), ("switched_off", &off)] {
            if !cards.is_empty() {
                key.push('\n');
                key.push_str(&prompt.get(name));
            }
        }
        let index = CatalogueIndex::of_catalogue(&key, || {
            let mut cards = with_more_tools(with_more_tools(prompt.lines(section), refused), off);
            cards.retain(|card: &SceneCard| !card.is_flow);
            cards
        });
        Self {
            index,
            not_allowed,
            switched_off,
            now: prompt.now(),
            conversation: prompt.json("conversation"),
            pending: prompt.pending().filter(|_| asked.executed.is_empty()),
            route_cache: RefCell::default(),
            slot_cache: RefCell::default(),
            orders_only: asked.is_change(),
        }
    }

    /// The plan for words. `cards` are the scenes, of which flows take part only in what nothing else serves.
    fn new_plan(&self, asked: &AskedPlan, cards: &[SceneCard], instructions: &str) -> Value {
        if let Some(plan) = self.plan_for_chosen_documents(asked, cards) {
            return plan;
        }
        let task = text_task::detect_text_task(&asked.words, instructions);
        // A task on the documents that the request names, or on one that it should have named, is none on its own words, and
        // not about the conversation.
        let is_for_program = task.is_some_and(|task| task.for_program);
        let is_about_documents =
            asked.names_documents || !is_for_program && is_about_a_document(&asked.words);
        if asked.is_first
            && is_about_documents
            && (task.is_some() || self.is_small_talk(&asked.words))
            && let Some(plan) = self.flow_plan(cards, &asked.words, asked.first)
        {
            return plan;
        }
        let is_text_task = task.is_some();
        let (drafts, mut unserved) = match task {
            Some(task) => self.only_allowed(self.draft_for_task(&task, &asked.words), Vec::new()),
            None => self.draft_steps(&asked.words, &asked.executed),
        };
        if asked.is_first
            && !is_text_task
            && let Some(plan) = self.flow_plan_in_place_of(&drafts, cards, &asked.words, asked.first)
        {
            return plan;
        }
        let mut parts = Vec::new();
        if asked.is_first && !is_text_task && !drafts.is_empty() && !unserved.words.is_empty() {
            let room = asked.max.saturating_sub(drafts.len());
            parts = self.flow_parts(cards, &asked.words, &mut unserved, room);
        }
        let mut plan = self.build_plan(drafts, &unserved, asked.first, asked.max);
        add_flow_steps(&mut plan, &parts, asked.first);
        let is_unserved = plan["needs_execution"] == false && plan["unserved"].is_null();
        if asked.is_first && is_unserved && !is_text_task && !self.is_small_talk(&asked.words) {
            return self.flow_plan(cards, &asked.words, asked.first).unwrap_or(plan);
        }
        plan
    }

    /// The plan `before`, changed as the feedback says; as it was if the rules do not understand the feedback.
    fn changed_plan(&self, asked: &AskedPlan, before: &Value) -> Value {
        let plan_words = |words: &str| {
            let (drafts, unserved) = self.draft_steps(text::cut(words.trim()), &asked.executed);
            (self.build_plan(drafts, &unserved, asked.first, asked.max), unserved.words.is_empty())
        };
        let change =
            plan_changes::OfflinePlanChange { index: &self.index, now: &self.now, plan: &plan_words };
        let steps = change.apply(before, &asked.feedback, asked.first);
        let reasoning =
            if steps.is_some() { "Changed as was wanted." } else { "It is not clear what to change." };
        let steps = steps.unwrap_or_else(|| before["steps"].clone());
        json!({"needs_execution": true, "reasoning": reasoning, "steps": steps})
    }

    /// The step for a task on a text, if a tool is made for it.
    fn draft_for_task(&self, task: &text_task::TextTask, words: &str) -> Vec<StepDraft> {
        let Some(verb) = task.tool_verb else { return Vec::new() };
        let own = text::features(verb);
        let is_for = |hit: &Hit| {
            text::name_words(self.tool_name(*hit))
                .iter()
                .any(|word| text::features(word).similarity(&own) > SURE_MATCH)
        };
        let all = self.index.tools.iter().map(|e| Hit::certain(ToolPlace { scene: e.scene, tool: e.tool }));
        let hit = all.into_iter().find(is_for);
        hit.map(|hit| StepDraft {
            hit,
            purpose: words.to_owned(),
            link: ClauseLink::Next,
            refers_back: false,
            unclear: false,
        })
        .into_iter()
        .collect()
    }

    pub fn today(&self) -> jiff::civil::Date {
        self.now.date()
    }

    /// Whether words only introduce the user by name.
    pub fn is_introduction(&self, words: &str) -> bool {
        let tokens = text::tokens(words);
        let content = tokens.iter().filter(|t| t.word && !lexicon::is_stop_word(&t.norm));
        let content: Vec<&str> =
            content.filter(|t| !lexicon::is_pleasantry(&t.norm)).map(|t| t.raw.as_str()).collect();
        let name = candidates::introduced_name(words, &self.now);
        name.is_some_and(|name| content.join(" ") == name)
    }

    /// The tool of a clause, and the purpose of its step.
    pub fn route(
        &self,
        clause: &Clause,
        near: Option<usize>,
        previous: Option<&Clause>,
    ) -> Option<(Hit, String)> {
        let found = self.index.route(&clause.text, self.today(), near);
        let found = found.filter(|hit| self.orders_only || !self.names_other_object(&clause.text, *hit));
        let found = found.map(|hit| (hit, clause.text.clone()));
        // "Prenota un tavolo e una sala": the second part takes the verb of the first, unless it has one of its own.
        if clause.link == ClauseLink::Also
            && !self.has_verb_or_question(&clause.text)
            && !opens_with_order(&clause.text)
            && let Some(verb) = previous.and_then(|p| leading_verb(&p.text))
        {
            let whole = format!("{verb} {}", clause.text);
            if let Some(hit) = self.index.route(&whole, self.today(), near)
                && found.as_ref().is_none_or(|(h, _)| h.scene == hit.scene)
            {
                return Some((hit, whole));
            }
        }
        found.or_else(|| Some((self.tool_of_closing_order(&clause.text)?, clause.text.clone())))
    }

    /// Whether words order something that the tool's texts do not mention: "call me a taxi" is no question for
    /// the user's name. An order other than a lookup leads to no tool that only reads.
    fn names_other_object(&self, words: &str, hit: Hit) -> bool {
        let tokens = text::tokens(words);
        let all: Vec<&text::Token> = tokens.iter().filter(|t| t.word).collect();
        let own = polite_lead(&all).unwrap_or_else(|| strip_fillers(&all));
        let Some(verb) = own.first() else { return false };
        let looks = mood::asks_to_be_told(own) || lexicon::is_lookup(&verb.features().concepts);
        if looks || !mood::is_order(own) {
            return false;
        }
        let is_mentioned = |t: &text::Token| self.index.tool_mentions(hit, &t.features(), false);
        let is_plain = |t: &text::Token| {
            lexicon::is_stop_word(&t.norm)
                || lexicon::is_pleasantry(&t.norm)
                || lexicon::is_time_unit(&t.norm)
                || t.digit()
                || t.capital()
                || mood::is_date_token(t)
        };
        let (known, unknown): (Vec<&text::Token>, Vec<&text::Token>) =
            own.iter().skip(1).filter(|t| !is_plain(t)).partition(|t| is_mentioned(t));
        let nothing = known.is_empty();
        // "Break a teapot": an order for some of a thing is no question about it.
        let takes_some = own.get(1).is_some_and(|t| {
            t.is(&["a", "an", "un", "uno", "una", "ein", "eine", "einen", "une"])
                || number_words::spoken(&t.norm).is_some()
                || t.digit()
        });
        let asks = tokens.last().is_some_and(|end| end.raw == "?");
        if takes_some && !asks && !self.writes(hit) && !is_mentioned(verb) {
            return true;
        }
        !unknown.is_empty()
            && if self.writes(hit) { nothing && !is_mentioned(verb) } else { nothing || !is_mentioned(verb) }
    }

    /// "Vorrei leggere X per 5 giorni, puoi prenotarlo?": the tool of the order at the end, if the words before
    /// it lead to no tool but contain its values. Of several tools, the one with the fewest missing arguments.
    fn tool_of_closing_order(&self, words: &str) -> Option<Hit> {
        let order = pronouns::closing_order(words)?;
        let hits = self.index.hits(order, self.today(), None).into_iter().filter(|h| h.score >= FITS);
        let lacking = |hit: &Hit| {
            let fields = self.index.fields(*hit);
            let filled = self.filled(*hit, words);
            (!filled.values.is_empty()).then(|| filled.missing(fields).len())
        };
        let known = hits.filter_map(|hit| Some((lacking(&hit)?, hit)));
        let best = |a: (usize, Hit), b: (usize, Hit)| {
            let better = b.0 < a.0 || (b.0 == a.0 && b.1.fits_better_than(a.1));
            if better { b } else { a }
        };
        known.reduce(best).map(|(_, hit)| hit)
    }

    /// The arguments of a tool in words. Cached, because the same words are read for the same tool several
    /// times.
    pub fn filled(&self, hit: Hit, words: &str) -> Rc<Filled> {
        let tool = (hit.scene, hit.tool);
        if let Some(known) = self.slot_cache.borrow().get(tool, words) {
            return known;
        }
        let filled = Rc::new(slots::fill(self.index.fields(hit), words, &self.now, &[], false));
        self.slot_cache.borrow_mut().put(tool, words, &filled);
        filled
    }

    /// Whether words have a value for the tool.
    pub fn has_values_for(&self, words: &str, hit: Hit) -> bool {
        !self.filled(hit, words).values.is_empty()
    }

    /// Whether words have a day, a name or a code.
    pub fn has_day_or_name(&self, words: &str) -> bool {
        let tokens = text::tokens(words);
        let found = Entities::in_text(words, self.today());
        !found.days.is_empty()
            || tokens.iter().any(|t| t.word && ((t.capital() && !t.first && t.norm != "i") || t.digit()))
    }

    /// Whether words have a day or a time.
    pub fn has_day_or_time(&self, words: &str) -> bool {
        let found = Entities::in_text(words, self.today());
        !found.days.is_empty() || !found.times.is_empty()
    }

    /// Whether words begin with a question word.
    pub fn is_question(&self, words: &str) -> bool {
        text::tokens(words).iter().take(3).any(|t| lexicon::is_question_word(&t.norm))
    }

    pub fn writes(&self, hit: Hit) -> bool {
        self.index.scenes[hit.scene].tools[hit.tool].writes()
    }

    /// Whether the request's constraints allow a tool of a scene.
    pub fn is_allowed(&self, scene: usize, tool: &str) -> bool {
        let scene = &self.index.scenes[scene].scene;
        !self.not_allowed.iter().any(|(of, name)| of == scene && name == tool)
    }

    /// Whether a tool of a scene is switched off.
    pub fn is_switched_off(&self, scene: usize, tool: &str) -> bool {
        let scene = &self.index.scenes[scene].scene;
        self.switched_off.iter().any(|(of, name)| of == scene && name == tool)
    }

    pub fn tool_name(&self, hit: Hit) -> &str {
        &self.index.scenes[hit.scene].tools[hit.tool].name
    }

    /// The plan of some drafts, numbered from `first`. `unserved` are the clauses that no scene serves.
    pub fn build_plan(
        &self,
        mut drafts: Vec<StepDraft>,
        unserved: &UnservedParts,
        first: u32,
        max: usize,
    ) -> Value {
        let beyond = drafts.split_off(max.min(drafts.len()));
        let beyond: Vec<String> = beyond.iter().map(|draft| text::one_line(&draft.purpose)).collect();
        let UnservedParts { words: unserved, has_forbidden, unavailable } = unserved;
        if drafts.is_empty() && (*has_forbidden || !unavailable.is_empty()) {
            let reasoning = match has_forbidden {
                true => "The constraints of the request do not allow what it asks for.",
                false => "What the request asks for is switched off.",
            };
            let mut plan =
                json!({"needs_execution": false, "reasoning": reasoning, "steps": [], "unserved": unserved});
            name_unavailable(&mut plan, unavailable);
            return plan;
        }
        if drafts.is_empty() {
            return json!({"needs_execution": false, "reasoning": "No scene serves this request.", "steps": []});
        }
        let depends = self.dependencies(&drafts);
        let number = |n: usize| first.saturating_add(u32::try_from(n).unwrap_or(0));
        let steps: Vec<Value> = drafts
            .iter()
            .enumerate()
            .map(|(n, draft)| {
                let on: Vec<u32> = depends[n].iter().map(|m| number(*m)).collect();
                let mut step = json!({
                    "step_number": number(n),
                    "scene_name": self.index.scenes[draft.hit.scene].scene,
                    "purpose": text::one_line(&draft.purpose),
                    "expected_tools": self.expected_tools(draft),
                    "depends_on_step": match on.as_slice() { [] => Value::Null, [one] => json!(one), many => json!(many) },
                });
                if draft.unclear {
                    step["unclear"] = json!(true);
                }
                step
            })
            .collect();
        let reasoning = self.reasoning(&drafts, unserved, &beyond, max);
        let mut plan = json!({"needs_execution": true, "reasoning": reasoning, "steps": steps});
        let left: Vec<&String> = unserved.iter().chain(&beyond).collect();
        if !left.is_empty() {
            plan["unserved"] = json!(left);
        }
        name_unavailable(&mut plan, unavailable);
        plan
    }

    /// Why a plan has these steps, and what it leaves out.
    fn reasoning(&self, drafts: &[StepDraft], unserved: &[String], beyond: &[String], max: usize) -> String {
        let named: Vec<String> = drafts
            .iter()
            .map(|d| format!("{} ({})", self.index.scenes[d.hit.scene].scene, self.tool_name(d.hit)))
            .collect();
        let mut reasoning = format!("The request asks for: {}.", named.join(", "));
        if !unserved.is_empty() {
            reasoning.push_str(&format!(" No scene serves: {}.", unserved.join("; ")));
        }
        if !beyond.is_empty() {
            reasoning.push_str(&format!(" Beyond the {max} steps of a plan: {}.", beyond.join("; ")));
        }
        reasoning
    }

    /// By draft: indexes of the earlier drafts on which it depends.
    fn dependencies(&self, drafts: &[StepDraft]) -> Vec<Vec<usize>> {
        let mut depends: Vec<Vec<usize>> = Vec::new();
        for (n, draft) in drafts.iter().enumerate() {
            let mut on: Vec<usize> = match draft.link {
                ClauseLink::Then if n > 0 => vec![n - 1],
                // In addition to the previous one: it has the same dependencies.
                ClauseLink::Also if n > 0 && drafts[n - 1].link == ClauseLink::Then => depends[n - 1].clone(),
                _ => Vec::new(),
            };
            // What is looked up does not wait for a write that is asked about first.
            let waits_for = |other: &StepDraft| {
                self.writes(draft.hit) || !other.unclear || draft.link == ClauseLink::Then
            };
            if draft.refers_back && n > 0 && waits_for(&drafts[n - 1]) {
                on.push(n - 1);
            }
            for (m, other) in drafts.iter().enumerate().take(n) {
                let writes = self.writes(other.hit) || self.writes(draft.hit);
                if other.hit.scene == draft.hit.scene && writes && waits_for(other) {
                    on.push(m);
                }
            }
            on.sort_unstable();
            on.dedup();
            // Indirect dependencies are omitted.
            let is_indirect =
                |m: usize| -> bool { on.iter().any(|o| *o != m && ancestors(&depends, *o).contains(&m)) };
            let on: Vec<usize> = on.iter().copied().filter(|m| !is_indirect(*m)).collect();
            depends.push(on);
        }
        depends
    }

    /// The tool of a step, and the lookups that may find a missing identifier.
    fn expected_tools(&self, draft: &StepDraft) -> Vec<String> {
        let fields = self.index.fields(draft.hit);
        let mut names = vec![self.tool_name(draft.hit).to_owned()];
        let filled = self.filled(draft.hit, &draft.purpose);
        let verb = text::name_words(&names[0]);
        let verb = verb.first().map_or("", String::as_str);
        if filled.missing(fields).iter().any(|f| f.findable(verb)) {
            let tools = &self.index.scenes[draft.hit.scene].tools;
            names.extend(
                tools
                    .iter()
                    .filter(|t| {
                        let scene = draft.hit.scene;
                        let may = self.is_allowed(scene, &t.name) && !self.is_switched_off(scene, &t.name);
                        !t.writes() && t.name != names[0] && may
                    })
                    .take(2)
                    .map(|t| t.name.clone())
                    .collect::<Vec<_>>(),
            );
        }
        names
    }
}

/// Adds the parts of the request that only tools serve which are switched off, if any.
fn name_unavailable(plan: &mut Value, parts: &[String]) {
    if !parts.is_empty() {
        plan["unavailable"] = json!(parts);
    }
}

/// All direct and indirect dependencies of a draft.
fn ancestors(depends: &[Vec<usize>], of: usize) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    let mut open = depends.get(of).cloned().unwrap_or_default();
    while let Some(next) = open.pop() {
        if !all.contains(&next) {
            all.push(next);
            open.extend(depends.get(next).cloned().unwrap_or_default());
        }
    }
    all
}

/// Whether a clause begins with an order, also one whose verb nobody knows: "gift-wrap a milk jug".
fn opens_with_order(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    mood::is_order(&tokens.iter().filter(|t| t.word).collect::<Vec<_>>())
}

fn leading_verb(clause: &str) -> Option<String> {
    let tokens = text::tokens(clause);
    tokens
        .iter()
        .filter(|t| t.word)
        .take(4)
        .find(|t| lexicon::is_action(&t.features().concepts))
        .map(|t| t.raw.to_string())
}
