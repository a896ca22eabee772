//! A step of a scene: which tool, with which arguments; a question where something required is only
//! the user's to say; and the result in words.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::candidates;
use super::clarity::{self, ToolVocabulary};
use super::lexicon;
use super::memory;
use super::prompt::{OpenQuestion, PromptText};
use super::questions;
use super::render;
use super::schema::{self, ArgumentField, ArgumentKind};
use super::slots::{self, Filled};
use super::source::SourceText;
use super::speech::{self, Act};
use super::text::{self, features, name_words};
use super::{recent_turns, tuples};
use crate::llm::{Message, Request, ToolChoice, ToolSpec};
use crate::run::ReplyCall;

/// Most calls in one reply.
const MAX_CALLS: usize = 16;

/// How much less well a tool suits that is nearly as good.
const NEARLY: f64 = 0.1;

/// What a scene's model says next.
pub(super) enum Move {
    /// Call these, by name and arguments.
    Calls(Vec<(String, Value)>),
    /// The result of the step, in words.
    Say(String),
}

/// The next move of a step.
pub(super) fn next(request: &Request, prompt: &PromptText) -> Move {
    let lang = prompt.language();
    let done = render::outcomes(&request.messages);
    // What comes next these rules say by doing it, so they never take the question for a decision.
    let mut tools: Vec<&ToolSpec> =
        request.tools.iter().filter(|t| !["AskUser", "NextCall"].contains(&t.name.as_str())).collect();
    if let ToolChoice::Forced(name) = &request.choice
        && tools.iter().any(|t| t.name == *name)
    {
        tools.retain(|t| t.name == *name);
    }
    let read = || OfflineStep::read(prompt, &tools).map(|step| OfflineStep { about: about(request), ..step });
    if !done.is_empty() {
        let step = read();
        if let Some(next) = step.as_ref().and_then(|s| s.after(&done)) {
            return next;
        }
        let left = step.and_then(|step| step.left(&done)).map(|left| format!("\n{left}"));
        return Move::Say(render::tell(&done, lang) + &left.unwrap_or_default());
    }
    if tools.is_empty() || request.choice == ToolChoice::None {
        return Move::Say(questions::no_tool_notice(lang));
    }
    match read() {
        Some(step) => step.begin(),
        None => Move::Say(questions::no_tool_notice(lang)),
    }
}

/// The calls with which a step will begin, as far as they are known before it: without what only a
/// look-up or the user can say, and, where the step `waits` for others, without what those may find.
pub(super) fn prepared(prompt: &PromptText, tools: &[&ToolSpec], waits: bool) -> Vec<(String, Value)> {
    let step = OfflineStep::read(prompt, tools).map(|step| OfflineStep { waits, ..step });
    step.map(|step| step.calls(&step.filled())).unwrap_or_default()
}

struct OfflineStep<'a> {
    prompt: &'a PromptText,
    tools: &'a [&'a ToolSpec],
    tool: &'a ToolSpec,
    fields: Vec<ArgumentField>,
    purpose: String,
    request: String,
    pending: Option<OpenQuestion>,
    now: jiff::Zoned,
    verbs: Vec<String>,
    /// Steps before it have not found yet what they will.
    waits: bool,
    /// The arguments of the tool's calls that a person has approved, or may have written.
    approved: Vec<Map<String, Value>>,
    /// What the scene is, as its model is told.
    about: String,
    /// Another tool that writes suits nearly as well.
    rivalled: bool,
}

impl<'a> OfflineStep<'a> {
    fn read(prompt: &'a PromptText, tools: &'a [&'a ToolSpec]) -> Option<Self> {
        let words = prompt.request();
        let purpose =
            Some(prompt.get("purpose")).filter(|p| !p.trim().is_empty()).unwrap_or_else(|| words.clone());
        let purpose = text::cut(&purpose).to_owned();
        let expected: Vec<String> =
            prompt.get("expected_tools").lines().map(|l| l.trim().to_owned()).collect();
        let (tool, rivalled) = choose(tools, &expected, &purpose, &words)?;
        let scene = prompt.get("scene");
        let pending = prompt
            .pending()
            .filter(|p| p.scene == scene.trim() && p.question.tool.as_deref().is_none_or(|t| t == tool.name));
        let mut verbs = name_words(&tool.name);
        verbs.extend(name_words(&scene));
        Some(Self {
            prompt,
            tools,
            tool,
            fields: schema::fields(&tool.parameters),
            purpose,
            request: words,
            pending,
            now: prompt.now(),
            verbs,
            waits: false,
            approved: approved(prompt, &tool.name),
            about: String::new(),
            rivalled,
        })
    }

    fn begin(&self) -> Move {
        let filled = self.filled();
        let missing: Vec<&ArgumentField> = filled.missing(&self.fields);
        if missing.is_empty() {
            return self.make(&filled);
        }
        // Another read of the scene may find what is missing ("cancel my booking": which one?).
        if missing.iter().all(|f| f.findable(self.verbs.first().map_or("", String::as_str)))
            && let Some(finder) = self.finder()
        {
            return Move::Calls(vec![finder]);
        }
        self.ask(&filled, &missing)
    }

    /// After the scene's calls: goes on where a look-up was made for the step's own tool.
    fn after(&self, done: &[render::CompletedCall]) -> Option<Move> {
        if done.iter().any(|d| d.name == self.tool.name) || self.prompt_is_last() {
            return None;
        }
        let last = done.last()?;
        let found = last.result.as_ref()?;
        let mut filled = self.filled();
        let missing: Vec<String> = filled.missing(&self.fields).iter().map(|f| f.name.clone()).collect();
        for name in &missing {
            let Some(field) = self.fields.iter().find(|f| &f.name == name) else { continue };
            if let Some(value) = memory::pick_from_result(found, field, &self.purpose, &self.now) {
                filled.values.insert(field.name.clone(), value);
            }
        }
        let missing = filled.missing(&self.fields);
        if missing.is_empty() {
            return Some(self.make(&filled));
        }
        let told = render::tell(done, self.prompt.language());
        match self.ask(&filled, &missing) {
            Move::Calls(mut calls) => {
                if let Some((_, arguments)) = calls.first_mut()
                    && let Some(question) =
                        arguments.get("question").and_then(Value::as_str).map(|q| format!("{told}\n{q}"))
                {
                    arguments["question"] = json!(question);
                }
                Some(Move::Calls(calls))
            }
            Move::Say(text) => Some(Move::Say(text)),
        }
    }

    fn prompt_is_last(&self) -> bool {
        self.tools.is_empty()
    }

    /// Arguments from the purpose first; what is required and missing, from where else it was said.
    fn filled(&self) -> Filled {
        let fill = |words: &str, alone: bool| slots::fill(&self.fields, words, &self.now, &self.verbs, alone);
        let both = tuples::parallel(&self.fields, &self.purpose, &self.now, &self.verbs);
        let mut filled = both.unwrap_or_else(|| fill(&self.purpose, false));
        let user = self.prompt.get("user");
        if let Some(pending) = &self.pending {
            self.reply(&mut filled, pending);
        }
        let writes = memory::may_write(self.tool);
        let inherited = self.purpose_is_own_words();
        let back =
            text::tokens(&self.purpose).iter().any(|t| t.is(lexicon::BACK_REFERENCES) || t.is(&["allora"]));
        if !filled.missing(&self.fields).is_empty() || !inherited {
            // A purpose in a planner's words has its values in the request, and what need not be said only
            // where it has none itself: those of a step that a person added are in no request. One in the
            // user's own words takes from the rest of the request only what it points back to.
            let whole = fill(&self.request, false);
            let bare = filled.values == fill("", false).values;
            for field in &self.fields {
                let personal =
                    matches!(field.kind, ArgumentKind::Person | ArgumentKind::Place | ArgumentKind::Email);
                let free = !matches!(field.kind, ArgumentKind::Text | ArgumentKind::Thing);
                let may = (!inherited && (bare || field.required))
                    || (back && free && field.required)
                    || (field.required && personal && !writes)
                    || (field.required && field.kind == ArgumentKind::Person);
                if may
                    && !filled.values.contains_key(&field.name)
                    && let Some(value) = whole.values.get(&field.name)
                {
                    filled.values.insert(field.name.clone(), value.clone());
                    let own = candidates::introduced_name(&self.request, &self.now);
                    filled.doubtful |= inherited && !back && own.is_none_or(|name| *value != json!(name));
                }
            }
        }
        // "Sono X. Chiedi … per me": the tool is told for whom it was asked.
        for field in self.fields.iter().filter(|f| f.kind == ArgumentKind::Person && !f.required) {
            if !filled.values.contains_key(&field.name)
                && let Some(name) = candidates::introduced_name(&self.request, &self.now)
            {
                filled.values.insert(field.name.clone(), json!(name));
            }
        }
        let missing: Vec<ArgumentField> = filled.missing(&self.fields).into_iter().cloned().collect();
        for field in &missing {
            let recalls = memory::may_recall(field, self.tool, writes, back);
            if self.waits && recalls {
                continue;
            }
            let recalled =
                recalls.then(|| memory::recall(field, self.tool, self.prompt, &self.purpose, back)).flatten();
            if let Some(value) = recalled {
                filled.values.insert(field.name.clone(), value);
            } else if !user.trim().is_empty()
                && memory::is_requester_name(field, self.tool, &self.purpose, &self.request)
            {
                filled.values.insert(field.name.clone(), json!(user.trim()));
            }
        }
        self.settle_days(&mut filled, memory::name_suggests_write(self.tool));
        if let Some(first) = self.approved.first() {
            filled.values = self.with_approved(filled.values, first);
        }
        filled
    }

    /// Days that were said in a way that means more than one thing: what reads takes the likelier one, or each
    /// of them, and what writes asks.
    fn settle_days(&self, filled: &mut Filled, writes: bool) {
        let sources = [SourceText::new(&self.purpose, &self.now), SourceText::new(&self.request, &self.now)];
        if !writes {
            sources.iter().for_each(|source| recent_turns::as_past(source, filled, self.tool));
            return;
        }
        filled.doubtful |= sources.iter().any(|source| recent_turns::is_doubtful(source, filled));
        if let Some(name) = filled.spread.take() {
            filled.values.remove(&name);
            filled.several.clear();
            filled.doubtful = true;
        }
    }

    /// An approved call: nothing is added to it but what is required and not in it.
    fn with_approved(
        &self,
        mut values: Map<String, Value>,
        approved: &Map<String, Value>,
    ) -> Map<String, Value> {
        let required = |name: &String| self.fields.iter().any(|field| field.name == *name && field.required);
        values.retain(|name, _| required(name));
        values.extend(approved.clone());
        values
    }

    /// Whether the purpose was cut from the user's words (and is no paraphrase).
    fn purpose_is_own_words(&self) -> bool {
        let words: HashSet<String> = text::norms(&self.request).collect();
        let own: Vec<String> = text::norms(&self.purpose).filter(|w| !lexicon::is_stop_word(w)).collect();
        let shared = own.iter().filter(|w| words.contains(*w)).count();
        self.request.trim().is_empty() || shared * 5 >= own.len() * 3 || self.pending.is_some()
    }

    /// What was known when the question was asked, and what the reply adds.
    fn reply(&self, filled: &mut Filled, pending: &OpenQuestion) {
        let wanted: Vec<ArgumentField> = self
            .fields
            .iter()
            .filter(|f| pending.question.missing.contains(&f.name) && !filled.values.contains_key(&f.name))
            .cloned()
            .collect();
        if !wanted.is_empty() {
            let said = slots::fill(&wanted, &self.request, &self.now, &self.verbs, true);
            filled.values.extend(said.values);
        }
        for (name, value) in pending.question.known.as_object().into_iter().flatten() {
            if self.fields.iter().any(|f| &f.name == name) && !value.is_null() {
                filled.values.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// The calls; of a write that was not clearly asked for, the question whether to make it.
    fn make(&self, filled: &Filled) -> Move {
        let calls = self.calls(filled);
        let open = |arguments: &Value| -> Vec<&ArgumentField> {
            let lacks = |f: &&ArgumentField| f.required && arguments.get(&f.name).is_none();
            self.fields.iter().filter(lacks).collect()
        };
        let whole = calls.iter().all(|(_, arguments)| open(arguments).is_empty());
        if whole && self.is_clear(filled) {
            return Move::Calls(calls);
        }
        let lang = self.prompt.language();
        let asked = calls.into_iter().map(|(tool, arguments)| {
            let missing = open(&arguments);
            let question = match missing.is_empty() {
                true => questions::ask_to_confirm(&tool, &arguments, lang),
                false => questions::ask_for_missing(&missing, lang),
            };
            let names: Vec<&str> = missing.iter().map(|f| f.name.as_str()).collect();
            let call = json!({"question": question, "tool": tool, "missing": names, "known": arguments});
            ("AskUser".to_owned(), call)
        });
        Move::Calls(asked.collect())
    }

    /// Whether the calls may be made at once: they only read, a person has approved them, or the words are a
    /// plain request for just this.
    fn is_clear(&self, filled: &Filled) -> bool {
        // The planner knows which tools write; here it is guessed.
        let unclear = self.prompt.get("unclear").trim() == "true";
        let writes =
            memory::may_write(self.tool) || (filled.doubtful && memory::name_suggests_write(self.tool));
        if !self.approved.is_empty() || (!unclear && !writes) {
            return true;
        }
        // "Cancel that one": it is not said which.
        let pointed = || {
            text::tokens(&self.purpose)
                .iter()
                .any(|t| t.is(lexicon::BACK_REFERENCES) || t.is(&["one", "uno", "una"]))
        };
        let nothing = !self.fields.is_empty() && filled.values.is_empty() && pointed();
        if unclear || filled.doubtful || self.rivalled || nothing {
            return false;
        }
        // A paraphrase, or a step that a person wrote, has its words from whoever judged what is meant.
        if !self.purpose_is_own_words() {
            return true;
        }
        let beside: Vec<&ToolSpec> =
            self.tools.iter().copied().filter(|tool| tool.name != self.tool.name).collect();
        let own =
            ToolVocabulary::of_tool(self.tool, &self.fields, &beside, &self.prompt.get("scene"), &self.about);
        self.is_asked_for(filled, &own)
            && clarity::unexplained_words(&SourceText::new(&self.purpose, &self.now), filled, &own).is_empty()
    }

    /// Whether the words are a request, or what a tool is for: to report what is said, to remind of it.
    fn is_asked_for(&self, filled: &Filled, own: &ToolVocabulary) -> bool {
        let texts = || {
            self.fields.iter().any(|f| f.kind == ArgumentKind::Text && filled.values.contains_key(&f.name))
        };
        let words = clarity::without_background(&SourceText::new(&self.purpose, &self.now), filled);
        match speech::act_of(&words) {
            Act::Request => true,
            Act::Statement => texts(),
            Act::Reminder => own.mentions_any(&["remind", "reminder", "promemoria"]),
            Act::Quoted => texts() && own.mentions_any(&["message", "send", "messaggio", "mail", "post"]),
            _ => false,
        }
    }

    /// What is said of the values for which there was no room in one reply.
    fn left(&self, done: &[render::CompletedCall]) -> Option<String> {
        if done.iter().filter(|d| d.name == self.tool.name).count() < MAX_CALLS {
            return None;
        }
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let filled = self.filled();
        let rest = filled.several.iter().skip(MAX_CALLS);
        let rest: Vec<String> =
            rest.map(|own| own.values().map(shown).collect::<Vec<_>>().join(" – ")).collect();
        (!rest.is_empty()).then(|| questions::too_many_notice(&rest, self.prompt.language()))
    }

    /// One call, or one for each of several values.
    fn calls(&self, filled: &Filled) -> Vec<(String, Value)> {
        let one = |values: Map<String, Value>| (self.tool.name.clone(), Value::Object(values));
        if self.approved.len() > 1 {
            let all = self.approved.iter().take(MAX_CALLS);
            return all.map(|approved| one(self.with_approved(filled.values.clone(), approved))).collect();
        }
        if filled.several.is_empty() {
            return vec![one(filled.values.clone())];
        }
        let with = |own: &Map<String, Value>| {
            let mut values = filled.values.clone();
            values.extend(own.clone());
            values.retain(|_, value| !value.is_null());
            one(values)
        };
        filled.several.iter().take(MAX_CALLS).map(with).collect()
    }

    /// A read of the scene that may list what the tool needs the identifier of.
    fn finder(&self) -> Option<(String, Value)> {
        let own: Vec<_> = self.verbs.iter().map(|w| features(w)).collect();
        let mut best: Option<(usize, (String, Value))> = None;
        for tool in self.tools.iter().filter(|t| t.name != self.tool.name && !memory::may_write(t)) {
            let words = name_words(&tool.name);
            let says = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
            let fields = schema::fields(&tool.parameters);
            let filled = slots::fill(&fields, &self.purpose, &self.now, &self.verbs, false);
            if !filled.missing(&fields).is_empty() {
                continue;
            }
            // What lists the same kind of thing that the tool works on.
            let shared =
                words.iter().filter(|w| own.iter().any(|o| o.similarity(&features(w)) > 0.8)).count();
            let rank = shared * 2 + if says(&["list", "search", "find"]) { 3 } else { 0 };
            if rank > 0 && best.as_ref().is_none_or(|b| rank > b.0) {
                best = Some((rank, (tool.name.clone(), Value::Object(filled.values))));
            }
        }
        best.map(|b| b.1)
    }

    fn ask(&self, filled: &Filled, missing: &[&ArgumentField]) -> Move {
        let names: Vec<&str> = missing.iter().map(|f| f.name.as_str()).collect();
        let question = questions::ask_for_missing(missing, self.prompt.language());
        Move::Calls(vec![(
            "AskUser".to_owned(),
            json!({"question": question, "tool": self.tool.name, "missing": names, "known": filled.values}),
        )])
    }
}

/// The calls of `tool` that a person has approved with the plan.
fn approved(prompt: &PromptText, tool: &str) -> Vec<Map<String, Value>> {
    let prepared = prompt.get("prepared");
    let calls = prepared.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = calls.filter(|call| call["tool"] == tool);
    own.filter_map(|call| call["arguments"].as_object().cloned()).collect()
}

/// What the scene is said to be, by the first line of its model's instructions.
fn about(request: &Request) -> String {
    let system = request.messages.iter().find_map(|m| match m {
        Message::System { text } => text.lines().next(),
        _ => None,
    });
    system.unwrap_or_default().to_owned()
}

/// The offered tool that suits the purpose, and whether another one that writes suits nearly as well; the
/// expected ones go before others, the first of them before the rest.
fn choose<'a>(
    tools: &'a [&'a ToolSpec],
    expected: &[String],
    purpose: &str,
    request: &str,
) -> Option<(&'a ToolSpec, bool)> {
    let place = |tool: &ToolSpec| expected.iter().position(|e| *e == tool.name);
    let any = tools.iter().any(|t| place(t).is_some());
    let said = text::norms(&format!("{purpose} {request}"));
    let words: Vec<_> = said.filter(|w| !lexicon::is_stop_word(w)).map(|w| features(&w)).collect();
    let mut best: Option<(f64, &ToolSpec)> = None;
    let mut second = f64::MIN;
    for tool in tools.iter().filter(|t| !any || place(t).is_some()) {
        let mut own: Vec<_> = name_words(&tool.name).iter().map(|w| features(w)).collect();
        let named = own.len();
        own.extend(
            text::tokens(&tool.description)
                .iter()
                .filter(|t| t.word && !lexicon::is_stop_word(&t.norm))
                .take(60)
                .map(text::Token::features),
        );
        let mut score = 0.0;
        for (n, f) in own.iter().enumerate() {
            let like = words.iter().map(|w| w.similarity(f)).fold(0.0, f64::max);
            score += like * if n < named { 1.0 } else { 0.3 };
        }
        score /= (named as f64).max(1.0);
        if place(tool) == Some(0) {
            score += 1.0;
        }
        if best.is_none_or(|b| score > b.0 + 1e-9) {
            second = best.filter(|b| memory::may_write(b.1)).map_or(second, |b| b.0.max(second));
            best = Some((score, tool));
        } else if memory::may_write(tool) {
            second = second.max(score);
        }
    }
    best.map(|(score, tool)| (tool, score - second < NEARLY))
}

/// Calls with ids that are the same every time: by how many calls came before.
pub(super) fn with_ids(request: &Request, calls: Vec<(String, Value)>) -> Vec<ReplyCall> {
    let before = request
        .messages
        .iter()
        .map(|m| if let Message::Assistant { calls, .. } = m { calls.len() } else { 0 })
        .sum::<usize>();
    calls
        .into_iter()
        .enumerate()
        .map(|(n, (name, arguments))| ReplyCall {
            id: format!("offline-{}", before + n + 1),
            name,
            arguments: arguments.to_string(),
        })
        .collect()
}
