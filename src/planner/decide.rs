//! Decisions: the question which of several alternatives is called in place of a failed call, and the reading of its reply.
//!
//! **Invariant:** the question holds what is declared and the kind of the failure, but no value of the run, as that about a
//! failed call does. So equal cases are equal questions.

use serde_json::json;

use super::consult::{ChoiceReply, MAX_OUTPUT_TOKENS, failure, short_reason};
use super::failed_call::short_definition;
use super::prompt::forced;
use super::read::from_arguments;
use super::tools::{MAKE_DECISION, make_decision};
use crate::adapt::{self, RecoveryAction};
use crate::llm::{Purpose, Request, reader, sections};
use crate::plan::PlanProblem;
use crate::run::{CallState, ConsultationState, Event, Reply, RunState, Subject};
use crate::scene::Catalogue;

const DECISION: &str = "\
A call of a tool failed, and several other tools can be called in its place. You choose one of them. Call the function \
MakeDecision exactly once.
- <failure> says which tool failed and how. <options> says which tools there are, in the order in which they are called without \
a choice. <criteria> says by what to choose. Nothing else can be done.
- Choose the tool that fits the criteria best. If they do not tell the tools apart, choose the first.";

/// The question about a failed call, after the question ordinals `tries`.
pub(super) fn request(
    state: &RunState,
    catalogue: &Catalogue,
    about: Option<(&ConsultationState, &CallState)>,
    tries: &[u32],
) -> Request {
    let (mut data, mut choices) = (String::new(), Vec::new());
    if let Some((consultation, call)) = about {
        sections::push(&mut data, "failure", &failure(state, catalogue, consultation, call));
        let lines: Vec<String> = places(consultation).filter_map(|at| option(catalogue, call, at)).collect();
        sections::push(&mut data, "options", &lines.join("\n"));
        let criteria = call.requested.policies.as_ref().map_or("", |policies| policies.choose_by.as_str());
        sections::push(&mut data, "criteria", criteria);
        choices = ids(consultation);
    }
    let system = DECISION.to_owned();
    let tool = make_decision(&choices);
    let request = forced(state, Purpose::Decision, system, data, tool, tries);
    Request { max_output_tokens: Some(MAX_OUTPUT_TOKENS), ..request }
}

/// The question to one of several models that vote. All get the same.
pub(super) fn vote_request(
    state: &RunState,
    catalogue: &Catalogue,
    consultation: u32,
    subject: Subject,
) -> Request {
    let consulted = state.consultations.get(&consultation);
    let pair =
        consulted.and_then(|consulted| Some((consulted, state.calls.get(&consulted.subject.call()?)?)));
    request(state, catalogue, pair, state.tries(subject))
}

/// The vote that a reply means.
pub(super) fn read_vote(
    state: &RunState,
    reply: &Reply,
    (question, consultation, voter): (u32, u32, u32),
) -> Result<Event, Vec<PlanProblem>> {
    let unknown = || vec![PlanProblem::new("consultation.unknown", "there is no such consultation")];
    let consulted = state.consultations.get(&consultation).ok_or_else(unknown)?;
    let (at, reason) = read(state, reply, consulted)?;
    let origin = state.asks.get(&question).and_then(|ask| ask.origin.as_ref());
    let model = origin.and_then(|origin| origin.model.clone());
    Ok(Event::Voted { consultation, voter, question, at, reason: short_reason(&reason), model })
}

/// The alternative at this place, as one line of JSON.
fn option(catalogue: &Catalogue, call: &CallState, at: u32) -> Option<String> {
    let declared = call.requested.policies.as_ref()?.alternative_at(at)?;
    let tool = catalogue.get(&call.scene).and_then(|scene| scene.tool(&declared.tool));
    let line = json!({
        "choice": adapt::decision_id(at),
        "tool": declared.tool,
        "description": tool.map_or("", |tool| tool.description.trim()),
        "definition": tool.map(short_definition).unwrap_or_default(),
        "same_result": declared.same_result,
    });
    Some(line.to_string())
}

/// The place of the chosen alternative among those that are declared, and the reason.
pub(super) fn read(
    state: &RunState,
    reply: &Reply,
    consultation: &ConsultationState,
) -> Result<(u32, String), Vec<PlanProblem>> {
    let value = reader::read(reply, MAKE_DECISION, state.settings().reader)?;
    let choice: ChoiceReply = from_arguments(value, MAKE_DECISION)?;
    let chosen = choice.place(&ids(consultation))?;
    let gone = || vec![PlanProblem::new("consultation.choice", "there is no such alternative")];
    let at = places(consultation).nth(chosen).ok_or_else(gone)?;
    Ok((at, choice.reason))
}

/// The places of the alternatives that are open, among those that are declared.
fn places(consultation: &ConsultationState) -> impl Iterator<Item = u32> {
    consultation.options.iter().filter_map(|option| match option {
        RecoveryAction::Alternative { at } => Some(*at),
        _ => None,
    })
}

fn ids(consultation: &ConsultationState) -> Vec<&'static str> {
    places(consultation).map(adapt::decision_id).collect()
}
