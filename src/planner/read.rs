//! What a reply means: one event for each, the use of it or every problem with it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::prompt::offered;
use super::tools::{ASK_USER, CHECK_CONTINUATION, CREATE_PLAN};
use crate::llm::reader;
use crate::plan::{self, Plan, Problem};
use crate::run::{
    AskStatus, Cause, Effect, Event, Fault, Maker, Outcome, PlanMade, Question, Repeat, Reply, ReplyCall,
    RequestedCall, RunState, StepState, Subject, Verdict, call_key,
};
use crate::scene::{Catalogue, Scene, arguments};

/// The code of a reply without a word and without a call.
pub(super) const EMPTY_REPLY: &str = "reply.empty";
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
        Subject::Scene { step } => read_scene(state, catalogue, reply, call, step),
        Subject::Continuation { round } => read_verdict(state, reply, round),
        Subject::Answer => match reply.text.trim() {
            "" => Err(vec![Problem::new(EMPTY_REPLY, "the answer was empty: write it in words")]),
            // Without steps there is nothing to fall back on: a part of an answer is then better than none.
            _ if reply.finish_reason.as_deref() == Some("length") && !state.steps.is_empty() => {
                let what = "the answer was cut off at the limit of tokens: write it again, shorter";
                Err(vec![Problem::new("reply.truncated", what)])
            }
            text => Ok(Event::Answered { text: text.to_owned(), degraded: fallback }),
        },
    };
    event.unwrap_or_else(|problems| Event::ReplyRejected { call, problems })
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
    let known = catalogue.known();
    let last = state.last_step();
    plan::normalise(&mut plan, known, last);
    let limits = plan::Limits { max_steps: state.settings().max_steps };
    let problems = plan::validate(&plan, known, limits, &state.finished_steps(), last);
    if !problems.is_empty() {
        return Err(problems);
    }
    let maker = if fallback { Maker::Fallback } else { Maker::Deterministic };
    Ok(if version == 1 {
        Event::PlanCreated(PlanMade { version, cause: Cause::Request, maker, plan })
    } else {
        Event::Replanned(PlanMade { version, cause: Cause::Continuation, maker, plan })
    })
}

fn read_verdict(state: &RunState, reply: &Reply, round: u32) -> Result<Event, Vec<Problem>> {
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
    // Some small models give the request back as its own answer.
    let parroted = verdict.answer.as_deref().is_some_and(|a| same_words(a, state.request()));
    if verdict.should_continue || !state.settings().answer_with_check || !says(&verdict.answer) || parroted {
        verdict.answer = None;
    }
    Ok(Event::Continuation { round, verdict, degraded: false })
}

/// Whether two texts say the same but for case, blanks and punctuation.
pub(super) fn same_words(a: &str, b: &str) -> bool {
    bare_words(a) == bare_words(b)
}

/// The letters and digits of a text, in lower case.
pub(super) fn bare_words(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn read_scene(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    call: u32,
    number: u32,
) -> Result<Event, Vec<Problem>> {
    let none = || vec![Problem::new("step.unknown", format!("there is no step {number} with a known scene"))];
    let step = state.steps.get(&number).ok_or_else(none)?;
    let scene = catalogue.get(&step.step.scene_name).ok_or_else(none)?;
    let last_round = state.is_last_round(number);
    let mut written = reply.calls.clone();
    let mut text = reply.text.trim().to_owned();
    if written.is_empty() && !last_round {
        let names: Vec<&str> = offered(scene, step).map(|t| t.name.as_str()).chain([ASK_USER]).collect();
        written = reader::calls_in_text(&text, &names);
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
    if last_round {
        // No tools were offered; calls that come all the same are not made.
        written.clear();
    }
    let mut question = None;
    let mut calls: Vec<RequestedCall> = Vec::new();
    for one in &written {
        if one.name.eq_ignore_ascii_case(ASK_USER) {
            question = Some(read_question(one)?);
        } else {
            let ordinal = state.next_call() + calls.len() as u32;
            calls.push(read_call(scene, step, one, ordinal));
        }
    }
    let found = step.calls.iter().any(|c| matches!(state.outcome(*c), Some(Outcome::Ok { .. })));
    if calls.is_empty() && question.is_none() && text.is_empty() && !found {
        return Err(vec![Problem::new(
            EMPTY_REPLY,
            "the reply was empty: call a tool, call AskUser, or say the result in words",
        )]);
    }
    Ok(Event::SceneReplied { step: number, call, text, calls, question })
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

fn read_call(scene: &Scene, step: &StepState, written: &ReplyCall, call: u32) -> RequestedCall {
    // Some models write names in another case or with an argument list behind them.
    let bare = written.name.split('(').next().unwrap_or("").trim();
    let tool = scene.tool(bare).or_else(|| scene.tools.iter().find(|t| t.name.eq_ignore_ascii_case(bare)));
    let Some(tool) = tool else {
        let all: Vec<&str> = offered(scene, step).map(|t| t.name.as_str()).collect();
        let message = format!("there is no tool {bare:?}; the tools are {}", all.join(", "));
        return RequestedCall {
            call,
            provider_id: written.id.clone(),
            tool: bare.to_owned(),
            arguments: Value::String(written.arguments.clone()),
            key: String::new(),
            effect: Effect::Read,
            repeat: Repeat::Never,
            problem: Some(Fault::new("tool.unknown", message)),
        };
    };
    let is_offered = offered(scene, step).any(|t| t.name == tool.name);
    let (arguments, problem) = match arguments::check(tool, &written.arguments) {
        Ok(arguments) if is_offered => (arguments, None),
        Ok(arguments) => {
            let message = format!(
                "{} changes something and the plan does not expect it in this step: it was not called",
                tool.name
            );
            (arguments, Some(Fault::new("tool.not_offered", message)))
        }
        Err(fault) => (Value::String(written.arguments.clone()), Some(fault)),
    };
    RequestedCall {
        call,
        provider_id: written.id.clone(),
        tool: tool.name.clone(),
        key: call_key(&scene.name, &tool.name, &arguments, &tool.identity),
        arguments,
        effect: tool.effect,
        repeat: tool.repeat,
        problem,
    }
}
