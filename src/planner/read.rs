//! Reads replies: each yields one event, which uses the reply or lists its problems.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::consult;
use super::decide;
use super::flow_node;
use super::flow_path;
use super::plan_reply;
use super::program;
use super::prompt::{offered_catalogue, unfounded_figures};
use super::scene_reply::{own_words, read_scene};
use super::shortlist;
use super::tools::CHECK_CONTINUATION;
use super::unchanged::with_unchanged;
use crate::language::words;
use crate::llm::reader;
use crate::plan::PlanProblem;
use crate::run::{AskStatus, Event, Reply, RunState, Subject, Verdict};
use crate::scene::Catalogue;

/// The code of a reply without text and without calls.
pub(super) const EMPTY_REPLY: &str = "reply.empty";

/// Returns whether a reply was usable, so that the cache may serve it for an equal request.
pub(crate) fn is_usable_reading(read: &Event) -> bool {
    match read {
        Event::ReplyRejected { .. } => false,
        Event::SceneReplied { calls, .. } => calls.iter().all(|call| call.problem.is_none()),
        _ => true,
    }
}

/// The event that says what the reply to question `call` about `subject` means.
pub fn read(state: &RunState, catalogue: &Catalogue, call: u32, subject: Subject) -> Event {
    let catalogue = &*offered_catalogue(state, catalogue);
    let Some((reply, fallback)) = state.asks.get(&call).and_then(|ask| match &ask.status {
        AskStatus::Replied { reply } => Some((reply, ask.fallback)),
        _ => None,
    }) else {
        let error = PlanProblem::new("reply.none", "there is no reply to read");
        return Event::ReplyRejected { call, problems: vec![error] };
    };
    let event = match subject {
        Subject::Plan { version } => plan_reply::read_plan(state, catalogue, reply, version, fallback),
        Subject::Scene { step } => read_scene(state, catalogue, reply, call, step, fallback),
        Subject::Path { step } => flow_path::read(state, reply, (call, step), fallback),
        Subject::Node { step } => flow_node::read(state, catalogue, reply, (call, step)),
        Subject::Program { step } => program::read(state, catalogue, reply, (call, step)),
        Subject::Summary { .. } => {
            Err(vec![PlanProblem::new("reply.none", "it is read together with the documents")])
        }
        Subject::Continuation { round } => read_verdict(state, catalogue, reply, round),
        Subject::Answer => read_answer(state, catalogue, reply, fallback),
        Subject::Consultation { consultation, .. } => {
            consult::read(state, catalogue, reply, (call, consultation))
        }
        Subject::Vote { consultation, voter } => decide::read_vote(state, reply, (call, consultation, voter)),
        Subject::Ranking => shortlist::read_ranking(reply, call),
    };
    event.unwrap_or_else(|problems| Event::ReplyRejected { call, problems })
}

fn read_answer(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    fallback: bool,
) -> Result<Event, Vec<PlanProblem>> {
    let text = own_words(state, reply);
    let sent_back = |code: &str, what: String| Err(vec![PlanProblem::new(code, what)]);
    if text.is_empty() {
        return sent_back(EMPTY_REPLY, "the answer was empty: write it in words".to_owned());
    }
    // Without steps there is no fallback and nothing to ground the answer in, so a truncated answer is
    // better than none. With steps, their results can be listed instead.
    if !state.steps.is_empty() {
        let cut = match reply.finish_reason.as_deref() {
            Some("length") => Some("the answer was cut off at the limit of tokens: write it again, shorter"),
            Some("content_filter") if state.settings().has_rules(8) => {
                Some("the provider's filter cut the answer off: write it again, in other words")
            }
            _ => None,
        };
        if let Some(what) = cut {
            return sent_back("reply.truncated", what.to_owned());
        }
        if only_repeats(text, state.request()) {
            let what = "that is the request and not its answer: tell what <executed> found and did";
            return sent_back("reply.parroted", what.to_owned());
        }
        let unfounded = unfounded_figures(state, catalogue, text);
        if !unfounded.is_empty() {
            let what = format!(
                "these figures are not in <executed>: {}. Write the answer with those that are",
                unfounded.join(", ")
            );
            return sent_back("reply.unfounded", what);
        }
    }
    let text = with_unchanged(state, catalogue, text.to_owned());
    Ok(Event::Answered { text: state.with_omissions(&text), degraded: fallback, error: None })
}

fn forced<T: DeserializeOwned>(state: &RunState, reply: &Reply, tool: &str) -> Result<T, Vec<PlanProblem>> {
    from_arguments(reader::read(reply, tool, state.settings().reader)?, tool)
}

pub(super) fn from_arguments<T: DeserializeOwned>(value: Value, tool: &str) -> Result<T, Vec<PlanProblem>> {
    serde_json::from_value(value).map_err(|error| {
        vec![PlanProblem::new(
            "reply.shape",
            format!("the arguments of {tool} do not have the right shape: {error}"),
        )]
    })
}

fn read_verdict(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    round: u32,
) -> Result<Event, Vec<PlanProblem>> {
    let mut verdict: Verdict = forced(state, reply, CHECK_CONTINUATION)?;
    let says = |text: &Option<String>| text.as_deref().is_some_and(|t| !t.trim().is_empty());
    if verdict.should_continue && !says(&verdict.missing_information) {
        // Small models put the missing information into the reasoning.
        verdict.missing_information = Some(verdict.reasoning.trim().to_owned()).filter(|r| !r.is_empty());
    }
    if !says(&verdict.missing_information) && (verdict.should_continue || !verdict.can_answer_now) {
        return Err(vec![PlanProblem::new(
            "verdict.nothing_missing",
            "missing_information does not say what is missing. If everything the user asked for was dealt with, set \
             should_continue to false and can_answer_now to true; otherwise name what is missing",
        )]);
    }
    // Some small models echo the request as the answer, or invent figures. The answer is then asked for
    // separately.
    let useless = verdict.answer.as_deref().is_some_and(|answer| {
        only_repeats(answer, state.request()) || !unfounded_figures(state, catalogue, answer).is_empty()
    });
    if verdict.should_continue || !state.settings().answer_with_check || !says(&verdict.answer) || useless {
        verdict.answer = None;
    }
    verdict.answer = verdict.answer.map(|answer| with_unchanged(state, catalogue, answer));
    Ok(Event::Continuation { round, verdict, degraded: false })
}

/// An answer with fewer words may consist of words of the request only ("to Rome or to Milan?").
const MIN_ECHO_WORDS: usize = 6;

/// Returns whether `answer` echoes the request: the same words, or a sentence without a new word.
pub(super) fn only_repeats(answer: &str, request: &str) -> bool {
    let asked: Vec<Cow<'_, str>> = words(request).map(in_lower_case).collect();
    let (mut count, mut is_same) = (0, true);
    // An answer usually soon has a word of its own.
    for word in words(answer).map(in_lower_case) {
        if !asked.contains(&word) {
            return false;
        }
        is_same &= asked.get(count) == Some(&word);
        count += 1;
    }
    count >= MIN_ECHO_WORDS || is_same && count == asked.len()
}

/// The word in lower case; most words are already.
fn in_lower_case(word: &str) -> Cow<'_, str> {
    let is_lower = word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) }
}
