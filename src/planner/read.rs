//! What a reply means: one event for each, the use of it or every problem with it.

use jiff::civil::Date;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::approval::{call_needs, unfit_calls, with_approval};
use super::confirm::{Asked, occurrence, unconfirmed};
use super::founded::{days_said, found_by, unfounded};
use super::prompt::{grounds, offered, said_by_people};
use super::tools::{ASK_USER, CHECK_CONTINUATION, CREATE_PLAN, NEXT_CALL, NOTHING};
use super::wanted::{Wanted, sent_back, wanted, write_is_open, writes_not_called};
use crate::llm::{offline, reader};
use crate::plan::{self, Plan, Problem};
use crate::run::{
    AskStatus, Cause, ConfirmPolicy, Effect, Event, Fault, Maker, Outcome, PlanMade, Question, Reader,
    Repeat, Reply, ReplyCall, RequestedCall, RunState, StepState, Subject, Verdict, call_key,
};
use crate::scene::{Catalogue, Scene, SceneTool, arguments};

/// The code of a reply without a word and without a call.
pub(super) const EMPTY_REPLY: &str = "reply.empty";
/// The code of final words before a write that the plan expects was asked for.
pub(super) const UNDONE: &str = "reply.undone";
/// The code of a write with a day that nobody said.
const UNSAID: &str = "reply.unsaid";
/// Calls read from one reply at most; a longer list is a model gone astray.
const MAX_CALLS_IN_REPLY: usize = 64;

/// The event that tells what the reply to question `call` about `subject` means.
pub fn read(state: &RunState, catalogue: &Catalogue, call: u32, subject: Subject) -> Event {
    let Some((reply, fallback)) = state.asks.get(&call).and_then(|ask| match &ask.status {
        AskStatus::Replied { reply } => Some((reply, ask.fallback)),
        _ => None,
    }) else {
        let error = Problem::new("reply.none", "there is no reply to read");
        return Event::ReplyRejected { call, problems: vec![error] };
    };
    let event = match subject {
        Subject::Plan { version } => read_plan(state, catalogue, reply, version, fallback),
        Subject::Scene { step } => read_scene(state, catalogue, reply, call, step, fallback),
        Subject::Continuation { round } => read_verdict(state, catalogue, reply, round),
        Subject::Answer => read_answer(state, catalogue, reply, fallback),
    };
    event.unwrap_or_else(|problems| Event::ReplyRejected { call, problems })
}

fn read_answer(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    fallback: bool,
) -> Result<Event, Vec<Problem>> {
    let text = reply.text.trim();
    let sent_back = |code: &str, what: String| Err(vec![Problem::new(code, what)]);
    if text.is_empty() {
        return sent_back(EMPTY_REPLY, "the answer was empty: write it in words".to_owned());
    }
    // Without steps there is nothing to fall back on: a part of an answer is then better than none, and
    // there is nothing that it has to rest on. With steps, what they found can be listed in its place.
    if !state.steps.is_empty() {
        if reply.finish_reason.as_deref() == Some("length") {
            let what = "the answer was cut off at the limit of tokens: write it again, shorter";
            return sent_back("reply.truncated", what.to_owned());
        }
        if only_repeats(text, state.request()) {
            let what = "that is the request and not its answer: tell what <executed> found and did";
            return sent_back("reply.parroted", what.to_owned());
        }
        let unfounded = unfounded(text, &grounds(state, catalogue));
        if !unfounded.is_empty() {
            let what = format!(
                "these figures are not in <executed>: {}. Write the answer with those that are",
                unfounded.join(", ")
            );
            return sent_back("reply.unfounded", what);
        }
    }
    Ok(Event::Answered { text: state.with_omissions(text), degraded: fallback })
}

fn forced<T: DeserializeOwned>(state: &RunState, reply: &Reply, tool: &str) -> Result<T, Vec<Problem>> {
    let value = reader::read(reply, tool, state.settings().reader)?;
    serde_json::from_value(value).map_err(|error| {
        vec![Problem::new(
            "reply.shape",
            format!("the arguments of {tool} do not have the right shape: {error}"),
        )]
    })
}

fn read_plan(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    version: u32,
    fallback: bool,
) -> Result<Event, Vec<Problem>> {
    let mut plan: Plan = forced(state, reply, CREATE_PLAN)?;
    let known = catalogue.known_names();
    let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.as_ref());
    let last = state.last_fixed_step(feedback.is_some());
    plan::normalise(&mut plan, known, last);
    let limits = plan::Limits { max_steps: state.settings().max_steps };
    let problems = plan::validate(&plan, known, limits, &state.finished_steps(), last);
    if !problems.is_empty() {
        return Err(problems);
    }
    let unfit = unfit_calls(catalogue, &plan);
    if !unfit.is_empty() {
        // This one is among them.
        let tries = state.planning.as_ref().map_or(0, |planning| planning.tries.len());
        if tries <= state.settings().max_retries as usize {
            return Err(unfit);
        }
        // A plan that is right but for them is better than none: its writes are asked about by themselves.
        plan.steps.iter_mut().for_each(|step| step.prepared_calls.clear());
    }
    let maker = if fallback { Maker::Fallback } else { Maker::Deterministic };
    let cause = match feedback {
        Some(_) => Cause::Feedback,
        None if version == 1 => Cause::Request,
        None => Cause::Continuation,
    };
    if feedback.is_some() && !plan.needs_execution {
        return Err(vec![Problem::new(
            "plan.nothing_left",
            "the changed plan has no steps: change the plan as <feedback> says and keep the rest of it",
        )]);
    }
    if let (Some(_), Some(before)) = (feedback, state.plan())
        && plan::diff(&before.plan, &plan).is_empty()
    {
        return Err(vec![Problem::new(
            "plan.unchanged",
            "that is the plan as it was: change it as <feedback> says",
        )]);
    }
    let (by, why) = feedback.map(|f| (f.by.clone(), f.words.clone())).unzip();
    let made = PlanMade { by, why, ..PlanMade::new(version, cause, maker, plan) };
    let made = with_approval(state, catalogue, made);
    Ok(if version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) })
}

fn read_verdict(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    round: u32,
) -> Result<Event, Vec<Problem>> {
    let mut verdict: Verdict = forced(state, reply, CHECK_CONTINUATION)?;
    let says = |text: &Option<String>| text.as_deref().is_some_and(|t| !t.trim().is_empty());
    if verdict.should_continue && !says(&verdict.missing_information) {
        // Small models put what is missing into the reasoning; there is no other way to read it.
        verdict.missing_information = Some(verdict.reasoning.trim().to_owned()).filter(|r| !r.is_empty());
    }
    if !says(&verdict.missing_information) && (verdict.should_continue || !verdict.can_answer_now) {
        return Err(vec![Problem::new(
            "verdict.nothing_missing",
            "missing_information does not say what is missing. If everything the user asked for was dealt with, set \
             should_continue to false and can_answer_now to true; otherwise name what is missing",
        )]);
    }
    // Some small models give the request back as its own answer, or figures that nothing told them.
    // The words are then asked for by themselves.
    let useless = verdict.answer.as_deref().is_some_and(|answer| {
        only_repeats(answer, state.request()) || !unfounded(answer, &grounds(state, catalogue)).is_empty()
    });
    if verdict.should_continue || !state.settings().answer_with_check || !says(&verdict.answer) || useless {
        verdict.answer = None;
    }
    Ok(Event::Continuation { round, verdict, degraded: false })
}

/// Fewer words than these may be an answer though all are in the request ("to Rome or to Milan?").
const TELLING_WORDS: usize = 6;

/// Whether `answer` gives the request back: the same words, or a sentence without a word of its own.
pub(super) fn only_repeats(answer: &str, request: &str) -> bool {
    let (said, asked) = (words(answer), words(request));
    said == asked || (said.len() >= TELLING_WORDS && said.iter().all(|word| asked.contains(word)))
}

/// The words of a text, in lower case.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

fn read_scene(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    call: u32,
    number: u32,
    fallback: bool,
) -> Result<Event, Vec<Problem>> {
    let none = || vec![Problem::new("step.unknown", format!("there is no step {number} with a known scene"))];
    let step = state.steps.get(&number).ok_or_else(none)?;
    let scene = catalogue.get(&step.step.scene_name).ok_or_else(none)?;
    let last_round = state.is_last_round(number);
    let wanted = wanted(state, catalogue, number);
    let names: Vec<&str> = offered(scene, step).map(|t| t.name.as_str()).chain([ASK_USER]).collect();
    let mut written = reply.calls.clone();
    let mut text = reply.text.trim().to_owned();
    if written.is_empty() {
        written = reader::calls_in_text(&text, &names);
        if let (true, Wanted::Read(tool) | Wanted::Call(tool)) = (written.is_empty(), &wanted) {
            // Where a schema is how a model is forced, its words are the arguments.
            written = bare_call(reply, tool).into_iter().collect();
        }
        if !written.is_empty() {
            text.clear();
        }
    }
    if written.len() > MAX_CALLS_IN_REPLY {
        return Err(vec![Problem::new(
            "reply.too_many_calls",
            format!("{} calls in one reply; at most {MAX_CALLS_IN_REPLY} are read", written.len()),
        )]);
    }
    if last_round && !state.settings().has_rules(1) {
        // No tools were offered; calls that come all the same are not made.
        written.clear();
    }
    // A model that calls a tool at once, whatever it was asked for, has decided too.
    let direct = |call: &ReplyCall| names.iter().any(|name| name.eq_ignore_ascii_case(&call.name));
    if wanted == Wanted::Decision
        && !written.iter().any(direct)
        && let Some(decided) = read_next(reply, &names)?
    {
        let nothing = decided == NOTHING;
        // What it said before stands, then.
        let text = if nothing { last_words(state, step) } else { String::new() };
        let (calls, question, next) = (Vec::new(), None, Some(decided).filter(|_| !nothing));
        return Ok(Event::SceneReplied { step: number, call, text, calls, question, next });
    }
    let mut question = None;
    let mut calls: Vec<RequestedCall> = Vec::new();
    for one in &written {
        let ordinal = state.next_call() + calls.len() as u32;
        if one.name.eq_ignore_ascii_case(ASK_USER) {
            let asked = read_question(one)?;
            match confirmable(state, scene, step, &asked) {
                Some(meant) => {
                    let meant =
                        Written { call: &meant, ordinal, before: &calls, fallback, is_question: true };
                    calls.push(read_call(state, catalogue, scene, step, &meant));
                }
                None => question = Some(joined(question.take(), asked, state)),
            }
            continue;
        }
        let unsaid = match &wanted {
            Wanted::Call(name) => match scene.tool(name) {
                Some(tool) => read_unsaid(state, step, tool, one)?,
                None => None,
            },
            _ => None,
        };
        if unsaid.is_some() {
            question = unsaid;
            continue;
        }
        let one = Written { call: one, ordinal, before: &calls, fallback, is_question: false };
        calls.push(read_call(state, catalogue, scene, step, &one));
    }
    if calls.is_empty() && question.is_none() {
        let found = step.calls.iter().any(|c| matches!(state.outcome(*c), Some(Outcome::Ok { .. })));
        check_end(state, scene, step, &wanted, last_round, text.is_empty(), found)?;
    }
    Ok(Event::SceneReplied { step: number, call, text, calls, question, next: None })
}

/// Whether a scene may end its step here: not in silence before anything was found, not before it has
/// made the call that it decided for, and not before it was asked once about a write that the plan
/// expects.
fn check_end(
    state: &RunState,
    scene: &Scene,
    step: &StepState,
    wanted: &Wanted,
    last_round: bool,
    silent: bool,
    found: bool,
) -> Result<(), Vec<Problem>> {
    if let Wanted::Call(tool) = wanted {
        let what = format!(
            "you decided for {tool}: call it, or call {ASK_USER} if the user has not said what it needs"
        );
        return Err(vec![Problem::new("reply.no_call", what)]);
    }
    if silent && !found {
        let what = "the reply was empty: call a tool, call AskUser, or say the result in words";
        return Err(vec![Problem::new(EMPTY_REPLY, what)]);
    }
    if !last_round && !sent_back(state, step) && write_is_open(state, scene, step) {
        let what = format!(
            "the plan expects {} in this step, and it was not called: nothing has been changed yet",
            writes_not_called(state, scene, step).join(", ")
        );
        return Err(vec![Problem::new(UNDONE, what)]);
    }
    Ok(())
}

/// The arguments of `tool` where a reply's words are nothing else.
fn bare_call(reply: &Reply, tool: &str) -> Option<ReplyCall> {
    let arguments = reader::object(reply.text.trim())?;
    Some(ReplyCall { id: "text_1".to_owned(), name: tool.to_owned(), arguments: arguments.to_string() })
}

/// The decision of a reply that has one: a name of `offered` or [`NOTHING`].
fn read_next(reply: &Reply, offered: &[&str]) -> Result<Option<String>, Vec<Problem>> {
    let value = reader::read(reply, NEXT_CALL, Reader::Tolerant).ok();
    let Some(said) = value.as_ref().and_then(|v| v.get("next")).and_then(Value::as_str) else {
        return if reply.calls.is_empty() { Ok(None) } else { Err(vec![undecided(offered)]) };
    };
    let choices = || offered.iter().copied().chain([NOTHING]);
    match choices().find(|name| name.eq_ignore_ascii_case(said.trim())) {
        Some(name) => Ok(Some(name.to_owned())),
        None => Err(vec![undecided(offered)]),
    }
}

fn undecided(offered: &[&str]) -> Problem {
    let what = format!("{NEXT_CALL} needs \"next\": one of {}, {NOTHING}", offered.join(", "));
    Problem::new("reply.undecided", what)
}

/// The words of the last reply that was sent back.
fn last_words(state: &RunState, step: &StepState) -> String {
    let tries = step.tries.iter().rev().filter_map(|call| state.asks.get(call));
    let rejected = tries.into_iter().find_map(|ask| match &ask.status {
        AskStatus::Rejected { reply, .. } => Some(reply.text.trim().to_owned()),
        _ => None,
    });
    rejected.unwrap_or_default()
}

/// The question that a call is which leaves out, or says null for, what `tool` requires: the user did
/// not say it. A day that a write is to have and that nobody said counts as not said; the model is told
/// once, if the user did say days.
fn read_unsaid(
    state: &RunState,
    step: &StepState,
    tool: &SceneTool,
    call: &ReplyCall,
) -> Result<Option<Question>, Vec<Problem>> {
    let arguments = reader::object(&call.arguments);
    let Some(Value::Object(mut said)) = arguments.filter(|_| call.name.eq_ignore_ascii_case(&tool.name))
    else {
        return Ok(None);
    };
    said.retain(|_, value| !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty()));
    // From revision 1 on such a write is confirmed.
    let guarded = tool.effect == Effect::Write && !state.settings().has_rules(1);
    let wrong = if guarded { days_made_up(state, step, tool, &said) } else { Vec::new() };
    let days = days_said(state);
    if !wrong.is_empty() && !days.is_empty() && !was_rejected(state, step, UNSAID) {
        let days: Vec<String> = days.iter().map(Date::to_string).collect();
        let what = format!(
            "{}: the user did not say that day. The days that were said: {}. Write null where it is none of them",
            wrong.join(", "),
            days.join(", ")
        );
        return Err(vec![Problem::new(UNSAID, what)]);
    }
    said.retain(|name, _| !wrong.contains(name));
    let required = tool.parameters.get("required").and_then(Value::as_array).into_iter().flatten();
    let required = required.filter_map(Value::as_str).filter(|name| !said.contains_key(*name));
    let mut missing: Vec<&str> = required.collect();
    for name in &wrong {
        if !missing.contains(&name.as_str()) {
            missing.push(name);
        }
    }
    if missing.is_empty() {
        return Ok(None);
    }
    let language = state.started.as_ref().and_then(|s| s.language.as_deref()).unwrap_or_default();
    Ok(Some(Question {
        text: offline::question(&tool.parameters, &missing, language),
        tool: Some(tool.name.clone()),
        missing: missing.into_iter().map(str::to_owned).collect(),
        known: Value::Object(said),
    }))
}

/// Why a write is not made all of whose days are others than those that were said. Where one of them
/// was said, another may have been reckoned from it; where no day was said that the rules can read, it
/// cannot be told.
fn on_other_days(state: &RunState, step: &StepState, tool: &SceneTool, arguments: &Value) -> Option<Fault> {
    let arguments = arguments.as_object().filter(|_| tool.effect == Effect::Write)?;
    // Somebody has said them by the plan that shows them.
    let mut people = said_by_people(state, step).iter().filter(|call| call.tool == tool.name);
    if people.any(|call| call.arguments == *arguments) {
        return None;
    }
    let said = days_said(state);
    let wrong = days_made_up(state, step, tool, arguments);
    let days = arguments.iter().filter(|(name, value)| day_of(tool, name, value).is_some()).count();
    if said.is_empty() || wrong.is_empty() || wrong.len() < days {
        return None;
    }
    let said: Vec<String> = said.iter().map(Date::to_string).collect();
    let message = format!(
        "{} was not called: the user said none of the days in {}. The days that were said: {}. Call it with those, \
         or call {ASK_USER}",
        tool.name,
        wrong.join(", "),
        said.join(", ")
    );
    Some(Fault::new("tool.other_days", message))
}

/// The day that an argument is.
fn day_of(tool: &SceneTool, name: &str, value: &Value) -> Option<Date> {
    let schema = tool.parameters.get("properties").and_then(|all| all.get(name))?;
    value.as_str().filter(|_| schema["format"] == "date")?.parse().ok()
}

/// The arguments that are days which neither the user said nor the scene's own tools found.
fn days_made_up(
    state: &RunState,
    step: &StepState,
    tool: &SceneTool,
    arguments: &Map<String, Value>,
) -> Vec<String> {
    let said = days_said(state);
    let shown = said_by_people(state, step);
    let by_plan = |name: &String, value: &Value| {
        shown.iter().any(|call| call.tool == tool.name && call.arguments.get(name) == Some(value))
    };
    let found = found_by(state, &step.step.scene_name);
    let made_up = |(name, value): &(&String, &Value)| {
        day_of(tool, name, value).is_some_and(|day| !said.contains(&day) && !found.contains(&day.to_string()))
            && !by_plan(name, value)
    };
    arguments.iter().filter(made_up).map(|(name, _)| name.clone()).collect()
}

/// Whether a reply to the question that is due was rejected with this code.
fn was_rejected(state: &RunState, step: &StepState, code: &str) -> bool {
    step.tries.iter().filter_map(|call| state.asks.get(call)).any(|ask| match &ask.status {
        AskStatus::Rejected { problems, .. } => problems.iter().any(|p| p.code == code),
        _ => false,
    })
}

/// Two questions of one reply as one. Until revision 1 the later one stood for both.
fn joined(before: Option<Question>, asked: Question, state: &RunState) -> Question {
    match before.filter(|_| state.settings().has_rules(1)) {
        Some(before) if before.text != asked.text => {
            let text = format!("{}\n{}", before.text, asked.text);
            // Only one tool can be carried on with: the later one's, as before.
            Question { text, ..asked }
        }
        _ => asked,
    }
}

/// The write that a question only asks the user to confirm: nothing of its arguments is missing.
fn confirmable(state: &RunState, scene: &Scene, step: &StepState, asked: &Question) -> Option<ReplyCall> {
    let settings = state.settings();
    let never = settings.confirm_for(scene.confirm) == ConfirmPolicy::Never;
    if !settings.has_rules(1) || never || !asked.missing.is_empty() || !asked.known.is_object() {
        return None;
    }
    let tool = asked.tool.as_deref()?;
    let tool = offered(scene, step).find(|t| t.name == tool && t.effect == Effect::Write)?;
    let arguments = asked.known.to_string();
    arguments::check(tool, &arguments).ok()?;
    Some(ReplyCall { id: String::new(), name: tool.name.clone(), arguments })
}

fn read_question(call: &ReplyCall) -> Result<Question, Vec<Problem>> {
    let value: Value = reader::object(&call.arguments).unwrap_or(Value::Null);
    let text = |name: &str| {
        value.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned)
    };
    let Some(question) = text("question") else {
        return Err(vec![Problem::new(
            "reply.no_question",
            "AskUser needs \"question\": the words for the user",
        )]);
    };
    let missing = value
        .get("missing")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let known = value.get("known").filter(|v| v.is_object()).cloned().unwrap_or(Value::Null);
    Ok(Question { text: question, tool: text("tool"), missing, known })
}

/// A call that cannot be made, with why.
pub(super) fn unusable(written: &ReplyCall, call: u32, tool: &str, problem: Fault) -> RequestedCall {
    RequestedCall {
        call,
        provider_id: written.id.clone(),
        tool: tool.to_owned(),
        arguments: Value::String(written.arguments.clone()),
        key: String::new(),
        effect: Effect::Read,
        repeat: Repeat::Never,
        problem: Some(problem),
        approval: None,
        undo: None,
        confirm: None,
        occurrence: 0,
        volatile: false,
    }
}

/// A call as a step's scene asks for it.
pub(super) struct Written<'a> {
    pub(super) call: &'a ReplyCall,
    /// Its ordinal in the run.
    pub(super) ordinal: u32,
    /// The calls of the same reply that come before it.
    pub(super) before: &'a [RequestedCall],
    /// The embedded rules asked for it in place of failed models.
    pub(super) fallback: bool,
    /// The scene only asks whether it is wanted.
    pub(super) is_question: bool,
}

pub(super) fn read_call(
    state: &RunState,
    catalogue: &Catalogue,
    scene: &Scene,
    step: &StepState,
    written: &Written<'_>,
) -> RequestedCall {
    let Written { call: reply, ordinal, before, fallback, is_question } = *written;
    // Some models write names in another case or with an argument list behind them.
    let bare = reply.name.split('(').next().unwrap_or("").trim();
    let tool = scene.tool(bare).or_else(|| scene.tools.iter().find(|t| t.name.eq_ignore_ascii_case(bare)));
    let Some(tool) = tool else {
        let all: Vec<&str> = offered(scene, step).map(|t| t.name.as_str()).collect();
        let message = format!("there is no tool {bare:?}; the tools are {}", all.join(", "));
        return unusable(reply, ordinal, bare, Fault::new("tool.unknown", message));
    };
    let (arguments, problem) = read_arguments(state, scene, step, tool, written);
    let number = step.step.step_number;
    let key = call_key(&scene.name, &tool.name, &arguments, &tool.identity);
    let occurrence = occurrence(state, number, tool, &key, before);
    let by_rules = fallback || state.is_planned_by_rules(number);
    let approval = match problem {
        None => call_needs(state, &step.step, tool, &arguments, occurrence, by_rules),
        Some(_) => None,
    };
    let asked = Asked {
        scene,
        step,
        tool,
        arguments: &arguments,
        key: &key,
        occurrence,
        is_approved_by_itself: approval.is_some(),
        before,
        is_question,
    };
    let confirm = if problem.is_none() { unconfirmed(state, catalogue, &asked) } else { None };
    RequestedCall {
        call: ordinal,
        provider_id: reply.id.clone(),
        tool: tool.name.clone(),
        key,
        arguments,
        effect: tool.effect,
        repeat: tool.repeat,
        problem,
        approval,
        undo: tool.undo.clone(),
        confirm,
        occurrence,
        volatile: tool.volatile && state.settings().has_rules(1),
    }
}

/// The arguments of a call, and why it is not even tried.
fn read_arguments(
    state: &RunState,
    scene: &Scene,
    step: &StepState,
    tool: &SceneTool,
    written: &Written<'_>,
) -> (Value, Option<Fault>) {
    let settings = state.settings();
    let is_offered = offered(scene, step).any(|t| t.name == tool.name);
    let given = &written.call.arguments;
    let arguments = match arguments::check(tool, given) {
        Ok(arguments) => arguments,
        Err(fault) => return (Value::String(given.clone()), Some(fault)),
    };
    if !is_offered {
        let message = format!(
            "{} changes something and the plan does not expect it in this step: it was not called",
            tool.name
        );
        return (arguments, Some(Fault::new("tool.not_offered", message)));
    }
    if settings.has_rules(1) {
        // A question does nothing.
        let asks = written.is_question || state.is_confirmation();
        let last = state.is_last_round(step.step.step_number) && !asks;
        let message = || {
            format!(
                "{} was not called: this was the last of {} replies in this step",
                tool.name, settings.max_rounds
            )
        };
        return (arguments, last.then(|| Fault::new("bound.rounds", message())));
    }
    // What days a write may have is another rule from revision 1 on: see `confirm`.
    let problem = on_other_days(state, step, tool, &arguments);
    (arguments, problem)
}
