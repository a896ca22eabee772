//! One step of a scene: chooses the tool, fills its arguments, asks the user for missing ones, and reports the
//! result.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Lang;
use super::candidates;
use super::clarity::{self, ToolVocabulary};
use super::date_arguments;
use super::dates;
use super::lexicon;
use super::memory;
use super::prompt::{OpenQuestion, PromptText};
use super::pronouns;
use super::questions;
use super::render;
use super::schema::{self, ArgumentField, ArgumentKind};
use super::slots::{self, Filled};
use super::source::SourceText;
use super::speech::{self, Act};
use super::text::{self, features, name_words};
use super::weights::EQUAL_SCORES;
use super::{periods, recent_turns, tuples};
use crate::llm::functions::{ASK_USER, NEXT_CALL};
use crate::llm::{Message, Request, ToolChoice, ToolSpec};
use crate::run::ReplyCall;

/// Maximum number of calls in one reply.
const MAX_CALLS: usize = 16;

/// Maximum difference in score between a tool and a rival.
const RIVAL_MARGIN: f64 = 0.1;

/// The next reply of a scene's model.
pub(super) enum StepReply {
    /// Tool calls, by name and arguments.
    Calls(Vec<(String, Value)>),
    /// The result of the step, in words.
    Text(String),
}

pub(super) fn next(request: &Request, prompt: &PromptText) -> StepReply {
    let lang = prompt.language();
    let done = render::outcomes(&request.messages);
    // `NextCall` asks which call comes next; these rules make the call instead.
    let mut tools: Vec<&ToolSpec> =
        request.tools.iter().filter(|t| ![ASK_USER, NEXT_CALL].contains(&t.name.as_str())).collect();
    if let ToolChoice::Forced(name) = &request.choice
        && tools.iter().any(|t| t.name == *name)
    {
        tools.retain(|t| t.name == *name);
    }
    let read =
        || OfflineStep::read(prompt, &tools).map(|step| OfflineStep { about: scene_role(request), ..step });
    if !done.is_empty() {
        let step = read();
        if let Some(next) = step.as_ref().and_then(|s| s.continue_after(&done)) {
            return next;
        }
        let notice = step.and_then(|step| step.too_many_notice(&done)).map(|notice| format!("\n{notice}"));
        return StepReply::Text(render::report(&done, lang) + &notice.unwrap_or_default());
    }
    if tools.is_empty() || request.choice == ToolChoice::None {
        return StepReply::Text(questions::no_tool_notice(lang));
    }
    match read() {
        Some(step) => step.begin(),
        None => StepReply::Text(questions::no_tool_notice(lang)),
    }
}

/// The calls with which a step will begin, with the arguments known in advance: without values that only a
/// lookup or the user can provide and, if the step `waits` for others, without values that those may find.
pub(super) fn prepared_calls(prompt: &PromptText, tools: &[&ToolSpec], waits: bool) -> Vec<(String, Value)> {
    let step = OfflineStep::read(prompt, tools).map(|step| OfflineStep { waits, ..step });
    step.map(|step| step.calls(&step.filled())).unwrap_or_default()
}

/// The calls that the scene will make at once, if it does not ask the user first. `about` says what the scene is.
pub(super) fn first_calls(
    prompt: &PromptText,
    tools: &[&ToolSpec],
    waits: bool,
    about: &str,
) -> Vec<(String, Value)> {
    let step = OfflineStep::read(prompt, tools);
    let reply = step.map(|step| OfflineStep { waits, about: about.to_owned(), ..step }.begin());
    match reply {
        Some(StepReply::Calls(calls)) if calls.iter().all(|(name, _)| name != ASK_USER) => calls,
        _ => Vec::new(),
    }
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
    /// Words of the tool's and scene's names.
    verbs: Vec<String>,
    /// Whether earlier steps have not run yet.
    waits: bool,
    /// The arguments of the tool's calls that were approved with the plan; the approver may have edited them.
    approved: Vec<Map<String, Value>>,
    /// The first line of the system prompt, which says what the scene is.
    about: String,
    /// Whether another tool that writes scores nearly as well.
    has_rival: bool,
}

impl<'a> OfflineStep<'a> {
    fn read(prompt: &'a PromptText, tools: &'a [&'a ToolSpec]) -> Option<Self> {
        let words = prompt.request();
        let purpose =
            Some(prompt.get("purpose")).filter(|p| !p.trim().is_empty()).unwrap_or_else(|| words.clone());
        let purpose = text::cut(&purpose).to_owned();
        let expected: Vec<String> =
            prompt.get("expected_tools").lines().map(|l| l.trim().to_owned()).collect();
        let (tool, has_rival) = choose_tool(tools, &expected, &purpose, &words)?;
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
            approved: approved_calls(prompt, &tool.name),
            about: String::new(),
            has_rival,
        })
    }

    fn begin(&self) -> StepReply {
        let mut filled = self.filled();
        if let Some(question) = self.ask_for_day(&mut filled).or_else(|| self.ask_for_person(&filled)) {
            return question;
        }
        let missing: Vec<&ArgumentField> = filled.missing(&self.fields);
        if missing.is_empty() {
            return self.call_or_confirm(&filled);
        }
        // A lookup of the scene may find the missing values ("cancel my booking": which one?).
        if missing.iter().all(|f| f.findable(self.verbs.first().map_or("", String::as_str)))
            && let Some(lookup) = self.lookup_call()
        {
            return StepReply::Calls(vec![lookup]);
        }
        self.ask(&filled, &missing)
    }

    /// The reply after the scene's calls, if they were only a lookup for the step's tool.
    fn continue_after(&self, done: &[render::CompletedCall]) -> Option<StepReply> {
        if done.iter().any(|d| d.name == self.tool.name) || self.tools.is_empty() {
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
            return Some(self.call_or_confirm(&filled));
        }
        let report = render::report(done, self.prompt.language());
        match self.ask(&filled, &missing) {
            StepReply::Calls(mut calls) => {
                if let Some((_, arguments)) = calls.first_mut()
                    && let Some(question) =
                        arguments.get("question").and_then(Value::as_str).map(|q| format!("{report}\n{q}"))
                {
                    arguments["question"] = json!(question);
                }
                Some(StepReply::Calls(calls))
            }
            StepReply::Text(text) => Some(StepReply::Text(text)),
        }
    }

    /// The arguments of the tool: from the purpose, then missing ones from the request, the conversation and
    /// the user's name.
    fn filled(&self) -> Filled {
        let fill = |words: &str, alone: bool| slots::fill(&self.fields, words, &self.now, &self.verbs, alone);
        let both = tuples::parallel(&self.fields, &self.purpose, &self.now, &self.verbs);
        let mut filled = both.unwrap_or_else(|| fill(&self.purpose, false));
        if let Some(pending) = &self.pending {
            self.fill_from_reply(&mut filled, pending);
        }
        let tokens = text::tokens(&self.purpose);
        let refers_back = pronouns::ends_with_object(&tokens)
            || pronouns::place_in_list(&tokens).is_some()
            || tokens
                .iter()
                .any(|t| t.is(lexicon::BACK_REFERENCES) || t.is(&["allora", "its", "suo", "sua"]));
        if !filled.missing(&self.fields).is_empty() || !self.purpose_is_own_words() {
            let bare = filled.values == fill("", false).values;
            let said = match refers_back {
                // What "it" stands for was said before it, and not in a later part of the request.
                true => self.request.find(self.purpose.trim()).and_then(|at| self.request.get(..at)),
                false => None,
            };
            let said = fill(said.unwrap_or(&self.request), false);
            self.fill_from_request(&mut filled, &said, bare, refers_back);
        }
        // "Sono X. Chiedi … per me": the optional person is the user.
        for field in self.fields.iter().filter(|f| f.kind == ArgumentKind::Person && !f.required) {
            if !filled.values.contains_key(&field.name)
                && let Some(name) = candidates::introduced_name(&self.request, &self.now)
            {
                filled.values.insert(field.name.clone(), json!(name));
            }
        }
        self.fill_from_memory(&mut filled, refers_back);
        self.resolve_ambiguous_days(&mut filled, memory::name_suggests_write(self.tool));
        if let Some(first) = self.approved.first() {
            filled.values = self.with_approved(filled.values, first);
        }
        filled
    }

    /// Takes values from the whole request. A paraphrased purpose has its required values in the request, and
    /// its optional ones only if the purpose itself is `bare`: the values of a step that an approver added are
    /// in no request. A purpose in the user's own words takes from the rest of the request only what it refers
    /// back to.
    fn fill_from_request(&self, filled: &mut Filled, request: &Filled, bare: bool, refers_back: bool) {
        let inherited = self.purpose_is_own_words();
        let writes = memory::may_write(self.tool);
        for field in &self.fields {
            let personal =
                matches!(field.kind, ArgumentKind::Person | ArgumentKind::Place | ArgumentKind::Email);
            let free = !matches!(field.kind, ArgumentKind::Text | ArgumentKind::Thing);
            let may = (!inherited && (bare || field.required))
                || (refers_back && free && field.required)
                || (field.required && personal && !writes)
                || (field.required && field.kind == ArgumentKind::Person);
            if may
                && !filled.values.contains_key(&field.name)
                && let Some(value) = request.values.get(&field.name)
            {
                filled.values.insert(field.name.clone(), value.clone());
                let own = candidates::introduced_name(&self.request, &self.now);
                filled.doubtful |= inherited && !refers_back && own.is_none_or(|name| *value != json!(name));
            }
        }
    }

    /// Takes missing values from the conversation, or the user's own name.
    fn fill_from_memory(&self, filled: &mut Filled, refers_back: bool) {
        let user = self.prompt.get("user");
        let writes = memory::may_write(self.tool);
        let mut missing: Vec<ArgumentField> = filled.missing(&self.fields).into_iter().cloned().collect();
        // "Cancel it": of a tool that requires no argument, what identifies its object.
        if refers_back && missing.is_empty() && filled.values.is_empty() {
            let verb = self.verbs.first().map_or("", String::as_str);
            missing.extend(self.fields.iter().find(|f| f.identifies() && f.findable(verb)).cloned());
        }
        for field in &missing {
            let recalls = memory::may_recall(field, self.tool, writes, refers_back);
            if self.waits && recalls {
                continue;
            }
            let recalled = recalls
                .then(|| memory::recall(field, self.tool, self.prompt, &self.purpose, refers_back))
                .flatten();
            if let Some(value) = recalled {
                filled.values.insert(field.name.clone(), value);
            } else if !user.trim().is_empty()
                && memory::is_requester_name(field, self.tool, &self.purpose, &self.request)
            {
                filled.values.insert(field.name.clone(), json!(user.trim()));
            }
        }
        // "Who is mrossi?", "What is his e-mail?"
        if let Some(person) = self.other_person(filled).filter(|_| !writes && !self.waits)
            && let Some(value) = memory::recall(person, self.tool, self.prompt, &self.purpose, true)
        {
            filled.values.insert(person.name.clone(), value);
        }
    }

    /// Resolves ambiguous days and alternatives: a read takes the likelier day, or each of them; a write asks.
    fn resolve_ambiguous_days(&self, filled: &mut Filled, writes: bool) {
        let sources = [SourceText::new(&self.purpose, &self.now), SourceText::new(&self.request, &self.now)];
        if !writes {
            sources.iter().for_each(|source| recent_turns::move_to_past(source, filled, self.tool));
            return;
        }
        filled.doubtful |= sources.iter().any(|source| recent_turns::is_doubtful(source, filled));
        if filled.alternatives {
            filled.several.clear();
            filled.doubtful = true;
        }
        if let Some(name) = filled.spread.take() {
            filled.values.remove(&name);
            filled.several.clear();
            filled.doubtful = true;
        }
    }

    /// The values of an approved call. Only missing required values are added to it.
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

    /// Whether the purpose consists of the user's words and is no paraphrase.
    fn purpose_is_own_words(&self) -> bool {
        let words: HashSet<String> = text::norms(&self.request).collect();
        let own: Vec<String> = text::norms(&self.purpose).filter(|w| !lexicon::is_stop_word(w)).collect();
        let shared = own.iter().filter(|w| words.contains(*w)).count();
        self.request.trim().is_empty() || shared * 5 >= own.len() * 3 || self.pending.is_some()
    }

    /// Takes values from the reply to a question, and those known when it was asked.
    fn fill_from_reply(&self, filled: &mut Filled, pending: &OpenQuestion) {
        let is_asked = |field: &&ArgumentField| pending.question.missing.contains(&field.name);
        let asked: Vec<ArgumentField> =
            self.fields.iter().filter(is_asked).map(ArgumentField::as_asked).collect();
        if asked.iter().any(|field| !filled.values.contains_key(&field.name)) {
            // All of them, so that "from 15 June" is no last day.
            let mut replied = slots::fill(&asked, &self.request, &self.now, &self.verbs, true).values;
            date_arguments::remove_equal_end(
                &SourceText::new(&self.purpose, &self.now),
                &asked,
                &mut replied,
            );
            for (name, value) in replied {
                filled.values.entry(name).or_insert(value);
            }
        }
        for (name, value) in pending.question.known.as_object().into_iter().flatten() {
            if self.fields.iter().any(|f| &f.name == name) && !value.is_null() {
                filled.values.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// The calls, or the question whether to make a write that was not clearly requested.
    fn call_or_confirm(&self, filled: &Filled) -> StepReply {
        let calls = self.calls(filled);
        let open = |arguments: &Value| -> Vec<&ArgumentField> {
            let lacks = |f: &&ArgumentField| f.required && arguments.get(&f.name).is_none();
            self.fields.iter().filter(lacks).collect()
        };
        let whole = calls.iter().all(|(_, arguments)| open(arguments).is_empty());
        if whole && self.is_clear(filled) {
            return StepReply::Calls(calls);
        }
        let lang = self.prompt.language();
        let questions = calls.into_iter().map(|(tool, arguments)| {
            let missing = open(&arguments);
            let question = match missing.is_empty() {
                true => questions::ask_to_confirm(&tool, &arguments, lang),
                false => questions::ask_for_missing(&missing, lang),
            };
            let names: Vec<&str> = missing.iter().map(|f| f.name.as_str()).collect();
            let call = json!({"question": question, "tool": tool, "missing": names, "known": arguments});
            (ASK_USER.to_owned(), call)
        });
        StepReply::Calls(questions.collect())
    }

    /// Whether the calls need no confirmation: they only read, they were approved, or the words clearly
    /// request exactly them.
    fn is_clear(&self, filled: &Filled) -> bool {
        // Only the planner knows which tools write; here it is guessed.
        let unclear = self.prompt.get("unclear").trim() == "true";
        let writes =
            memory::may_write(self.tool) || (filled.doubtful && memory::name_suggests_write(self.tool));
        if !self.approved.is_empty() || (!unclear && !writes) {
            return true;
        }
        // "Cancel that one": it is unclear which.
        let only_refers_back = || {
            text::tokens(&self.purpose)
                .iter()
                .any(|t| t.is(lexicon::BACK_REFERENCES) || t.is(&["one", "uno", "una"]))
        };
        let nothing = !self.fields.is_empty() && filled.values.is_empty() && only_refers_back();
        if unclear || filled.doubtful || self.has_rival || nothing {
            return false;
        }
        // The planner or the approver who wrote the purpose has already interpreted the request.
        if !self.purpose_is_own_words() {
            return true;
        }
        let others: Vec<&ToolSpec> =
            self.tools.iter().copied().filter(|tool| tool.name != self.tool.name).collect();
        let own =
            ToolVocabulary::of_tool(self.tool, &self.fields, &others, &self.prompt.get("scene"), &self.about);
        self.is_requested(filled, &own)
            && clarity::unexplained_words(&SourceText::new(&self.purpose, &self.now), filled, &own).is_empty()
    }

    /// Whether the words are a request, or of a kind that the tool serves: a report, a reminder, a message.
    fn is_requested(&self, filled: &Filled, own: &ToolVocabulary) -> bool {
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

    /// The notice about values beyond the maximum number of calls.
    fn too_many_notice(&self, done: &[render::CompletedCall]) -> Option<String> {
        if done.iter().filter(|d| d.name == self.tool.name).count() < MAX_CALLS {
            return None;
        }
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let filled = self.filled();
        let rest = filled.several.iter().skip(MAX_CALLS);
        let rest: Vec<String> =
            rest.map(|own| own.values().map(plain).collect::<Vec<_>>().join(" – ")).collect();
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
        let mut calls = Vec::new();
        for call in filled.several.iter().take(MAX_CALLS).map(with) {
            // "The room Milano … the room Milano": one act named twice.
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        calls
    }

    /// The call of a read of the scene that may list the identifier that the tool needs.
    fn lookup_call(&self) -> Option<(String, Value)> {
        let own: Vec<_> = self.verbs.iter().map(|w| features(w)).collect();
        let mut best: Option<(usize, (String, Value))> = None;
        for tool in self.tools.iter().filter(|t| t.name != self.tool.name && !memory::may_write(t)) {
            let words = name_words(&tool.name);
            let has = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
            let fields = schema::fields(&tool.parameters);
            let filled = slots::fill(&fields, &self.purpose, &self.now, &self.verbs, false);
            if !filled.missing(&fields).is_empty() {
                continue;
            }
            // Prefer reads about the same kind of thing as the tool.
            let shared =
                words.iter().filter(|w| own.iter().any(|o| o.similarity(&features(w)) > 0.8)).count();
            let rank = shared * 2 + if has(&["list", "search", "find"]) { 3 } else { 0 };
            if rank > 0 && best.as_ref().is_none_or(|b| rank > b.0) {
                best = Some((rank, (tool.name.clone(), Value::Object(filled.values))));
            }
        }
        best.map(|b| b.1)
    }

    fn ask(&self, filled: &Filled, missing: &[&ArgumentField]) -> StepReply {
        self.ask_with(questions::ask_for_missing(missing, self.prompt.language()), filled, missing)
    }

    fn ask_with(&self, question: String, filled: &Filled, missing: &[&ArgumentField]) -> StepReply {
        let names: Vec<&str> = missing.iter().map(|f| f.name.as_str()).collect();
        StepReply::Calls(vec![(
            ASK_USER.to_owned(),
            json!({"question": question, "tool": self.tool.name, "missing": names, "known": filled.values}),
        )])
    }

    /// The question for a person, if the words speak of another one ("what is her e-mail?"): without a name, who asks would stand
    /// in for that person.
    fn ask_for_person(&self, filled: &Filled) -> Option<StepReply> {
        self.other_person(filled).map(|person| self.ask(filled, &[person]))
    }

    /// The argument for a person that the words speak of by a pronoun, if it is not filled.
    fn other_person(&self, filled: &Filled) -> Option<&ArgumentField> {
        const OTHERS: &[&str] = &[
            "her", "his", "their", "she", "he", "him", "suo", "sua", "suoi", "sue", "lui", "seine", "seiner",
            "ses",
        ];
        // "¿Qué he pedido?": in Spanish, the word says what the speaker has done.
        let is_spanish = self.prompt.language() == Lang::Es;
        let is_other = |token: &text::Token| token.is(OTHERS) && !(is_spanish && token.is(&["he"]));
        let tokens = text::tokens(&self.purpose);
        if self.pending.is_some() || !self.approved.is_empty() || !tokens.iter().any(is_other) {
            return None;
        }
        let person = self.fields.iter().find(|field| field.kind == ArgumentKind::Person)?;
        (!person.required && !filled.values.contains_key(&person.name)).then_some(person)
    }

    /// The question for a day, if the words name one that does not exist, or speak of a time that is no day, such as "in May":
    /// without it, a default would stand in for it. A read from day to day takes the days of that time.
    fn ask_for_day(&self, filled: &mut Filled) -> Option<StepReply> {
        if self.pending.is_some() || !self.approved.is_empty() {
            return None;
        }
        let is_day =
            |field: &&ArgumentField| matches!(field.kind, ArgumentKind::Date | ArgumentKind::DateTime);
        let days: Vec<&ArgumentField> = self.fields.iter().filter(is_day).collect();
        if days.is_empty() {
            return None;
        }
        let lang = self.prompt.language();
        if let Some(day) = dates::impossible_day(&self.purpose) {
            days.iter().for_each(|field| drop(filled.values.remove(&field.name)));
            return Some(self.ask_with(questions::ask_for_possible_day(day, lang), filled, &days));
        }
        let is_filled = |field: &&ArgumentField| filled.values.contains_key(&field.name);
        if !filled.missing(&self.fields).is_empty() || days.iter().any(is_filled) {
            return None;
        }
        let source = SourceText::new(&self.purpose, &self.now);
        let unread = periods::unread_time(&source, &filled.used)?;
        let in_past = recent_turns::reports_past(self.tool) || periods::is_about_past(&source);
        let is_read = !memory::may_write(self.tool);
        if is_read && periods::fill(&days, unread.days(self.now.date(), in_past), &mut filled.values) {
            return None;
        }
        Some(self.ask(filled, &days))
    }
}

/// The calls of `tool` that were approved with the plan.
fn approved_calls(prompt: &PromptText, tool: &str) -> Vec<Map<String, Value>> {
    let prepared = prompt.get("prepared");
    let calls = prepared.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = calls.filter(|call| call["tool"] == tool);
    own.filter_map(|call| call["arguments"].as_object().cloned()).collect()
}

/// The first line of the system prompt.
fn scene_role(request: &Request) -> String {
    let system = request.messages.iter().find_map(|m| match m {
        Message::System { text } => text.lines().next(),
        _ => None,
    });
    system.unwrap_or_default().to_owned()
}

/// The offered tool that fits the purpose best, and whether another one that writes fits nearly as well.
/// Expected tools have priority, the first of them most.
fn choose_tool<'a>(
    tools: &'a [&'a ToolSpec],
    expected: &[String],
    purpose: &str,
    request: &str,
) -> Option<(&'a ToolSpec, bool)> {
    let place = |tool: &ToolSpec| expected.iter().position(|e| *e == tool.name);
    let any = tools.iter().any(|t| place(t).is_some());
    let norms = text::norms(&format!("{purpose} {request}"));
    let words: Vec<_> = norms.filter(|w| !lexicon::is_stop_word(w)).map(|w| features(&w)).collect();
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
        if best.is_none_or(|b| score > b.0 + EQUAL_SCORES) {
            second = best.filter(|b| memory::may_write(b.1)).map_or(second, |b| b.0.max(second));
            best = Some((score, tool));
        } else if memory::may_write(tool) {
            second = second.max(score);
        }
    }
    best.map(|(score, tool)| (tool, score - second < RIVAL_MARGIN))
}

/// Adds deterministic ids to calls, by the number of calls before them.
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
