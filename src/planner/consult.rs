//! Consultations: the question how to continue after a call failed, and the reading of its reply.
//!
//! **Invariant:** the question about a failed call holds no values of the run: neither the request, arguments, times and
//! ordinals nor a word of a back end. So equal failures are equal questions, which share a reply, and no back end can speak
//! to the model. Questions about a plan are in `patch.rs`, those about data of another shape in `interpret.rs`, those about
//! alternatives in `decide.rs`.

use serde::Deserialize;
use serde_json::json;

use super::decide;
use super::failed_call::failed_call;
use super::interpret;
use super::patch::{self, PatchReply};
use super::prompt::forced;
use super::read::from_arguments;
use super::tools::{CHOOSE_RECOVERY, choose_recovery};
use crate::adapt::{ConsultationKind, RecoveryAction};
use crate::invisible::one_line;
use crate::llm::{Purpose, Request, reader, sections};
use crate::plan::PlanProblem;
use crate::run::{
    CallState, ConsultationChoice, ConsultationState, ConsultationSubject, Event, Reply, RunState, Subject,
};
use crate::scene::Catalogue;

/// Maximum length of a model's reason, in characters; the rest is cut.
const MAX_REASON: usize = 300;

/// Maximum number of tokens of a reply that chooses an option.
pub(super) const MAX_OUTPUT_TOKENS: u32 = 400;

const RECOVERY: &str = "\
You decide how a program continues after a call of one of its tools failed. Call the function ChooseRecovery exactly once.
- <failure> says which tool failed and how. <options> says what each choice does. Nothing else can be done.
- Prefer what still gets the full result, then what gets an older or another one, then what leaves something out.
- retry helps only if such a failure passes by itself. ask_user helps only if the user can change what was asked for. \
abort ends this part of the request: choose it if nothing else helps.";

/// The reply to a question with options.
#[derive(Debug, Deserialize)]
pub(super) struct ChoiceReply {
    /// The id of an option.
    choice: String,
    #[serde(default)]
    pub(super) reason: String,
}

impl ChoiceReply {
    /// The place of the chosen id among these.
    pub(super) fn place(&self, ids: &[&str]) -> Result<usize, Vec<PlanProblem>> {
        let chosen = ids.iter().position(|id| self.choice.trim().eq_ignore_ascii_case(id));
        chosen.ok_or_else(|| {
            let what = format!("choice must be one of: {}", ids.join(", "));
            vec![PlanProblem::new("consultation.choice", what)]
        })
    }
}

pub(super) fn request(state: &RunState, catalogue: &Catalogue, number: u32) -> Request {
    let consultation = state.consultations.get(&number);
    if let Some(ConsultationSubject::Adaptation { step }) =
        consultation.map(|consultation| consultation.subject)
    {
        let about = Subject::Consultation { consultation: number, kind: ConsultationKind::Adaptation };
        return patch::request(state, catalogue, step, state.tries(about));
    }
    let call = consultation.and_then(|consultation| state.calls.get(&consultation.subject.call()?));
    if let Some((consultation, call)) = consultation.zip(call) {
        let tries = interpret::tries_of(state, number, consultation);
        match consultation.subject {
            ConsultationSubject::Interpretation { .. } => {
                return interpret::request(state, catalogue, (consultation, call), tries);
            }
            ConsultationSubject::Decision { .. } => {
                return decide::request(state, catalogue, Some((consultation, call)), tries);
            }
            ConsultationSubject::Recovery { .. } | ConsultationSubject::Adaptation { .. } => {}
        }
    }
    let mut data = String::new();
    let mut ids = Vec::new();
    let mut tries: &[u32] = &[];
    if let (Some(consultation), Some(call)) = (consultation, call) {
        sections::push(&mut data, "failure", &failure(state, catalogue, consultation, call));
        let lines: Vec<String> = consultation
            .options
            .iter()
            .map(|option| json!({"choice": option.id(), "does": effect_of(*option)}).to_string())
            .collect();
        sections::push(&mut data, "options", &lines.join("\n"));
        ids = consultation.options.iter().map(|option| option.id()).collect();
        tries =
            state.tries(Subject::Consultation { consultation: number, kind: consultation.subject.kind() });
    }
    let (system, tool) = (RECOVERY.to_owned(), choose_recovery(&ids));
    let request = forced(state, Purpose::Recovery, system, data, tool, tries);
    Request { max_output_tokens: Some(MAX_OUTPUT_TOKENS), ..request }
}

/// Returns what failed, as one line of JSON.
pub(super) fn failure(
    state: &RunState,
    catalogue: &Catalogue,
    consultation: &ConsultationState,
    call: &CallState,
) -> String {
    json!(failed_call(state, catalogue, consultation, call)).to_string()
}

fn effect_of(option: RecoveryAction) -> &'static str {
    match option {
        RecoveryAction::Retry { .. } => "calls the same tool once more, after a short wait",
        RecoveryAction::Alternative { .. } => {
            "calls another tool in its place, which may answer in another way"
        }
        RecoveryAction::Cached { .. } => {
            "uses the last good result, if there is a recent one, and says how old it is"
        }
        RecoveryAction::Skip => "leaves this call out, since it is optional, and continues",
        RecoveryAction::AskUser => "ends this part of the request and asks the user how to continue",
        RecoveryAction::Abort => "ends this part of the request: what it has not begun is not done",
    }
}

/// The end of the consultation, as the reply to question `call` decides.
pub(super) fn read(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    (call, number): (u32, u32),
) -> Result<Event, Vec<PlanProblem>> {
    let unknown = || vec![PlanProblem::new("consultation.unknown", "there is no such consultation")];
    let consultation = state.consultations.get(&number).ok_or_else(unknown)?;
    if let ConsultationSubject::Adaptation { step } = consultation.subject {
        return read_patch(state, catalogue, reply, (call, number, step));
    }
    if let ConsultationSubject::Interpretation { call: of, .. } = consultation.subject {
        let (mapping, reason) = interpret::read(state, catalogue, reply, of)?;
        let chosen = mapping.map(|mapping| ConsultationChoice::Interpretation { mapping });
        return Ok(end(state, (number, consultation.subject), call, chosen, &reason));
    }
    if let ConsultationSubject::Decision { .. } = consultation.subject {
        let (at, reason) = decide::read(state, reply, consultation)?;
        let chosen = Some(ConsultationChoice::Decision { at });
        return Ok(end(state, (number, consultation.subject), call, chosen, &reason));
    }
    let value = reader::read(reply, CHOOSE_RECOVERY, state.settings().reader)?;
    let choice: ChoiceReply = from_arguments(value, CHOOSE_RECOVERY)?;
    let ids: Vec<&str> = consultation.options.iter().map(|option| option.id()).collect();
    let action = consultation.options.get(choice.place(&ids)?).copied();
    let chosen = action.map(|action| ConsultationChoice::Recovery { action });
    Ok(end(state, (number, consultation.subject), call, chosen, &choice.reason))
}

/// The end of a consultation whose question `call` was replied to.
fn end(
    state: &RunState,
    (number, subject): (u32, ConsultationSubject),
    call: u32,
    chosen: Option<ConsultationChoice>,
    reason: &str,
) -> Event {
    let asks = chosen == Some(ConsultationChoice::Recovery { action: RecoveryAction::AskUser });
    let origin = state.asks.get(&call).and_then(|ask| ask.origin.as_ref());
    Event::Consultation {
        consultation: number,
        subject,
        question: Some(call),
        how: state.consultation_outcome(call),
        refused: chosen.as_ref().and_then(|chosen| state.choice_refusal(number, chosen)),
        chosen,
        reason: short_reason(reason),
        model: origin.and_then(|origin| origin.model.clone()),
        ask: asks.then(|| state.question_how_to_continue(subject)).flatten(),
        error: None,
    }
}

/// A model's reason as it is kept.
pub(super) fn short_reason(reason: &str) -> String {
    one_line(reason).chars().take(MAX_REASON).collect()
}

/// The event that a reply about the plan yields: a version of it, or the end of the consultation where it stays as it is.
fn read_patch(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    (call, number, step): (u32, u32, u32),
) -> Result<Event, Vec<PlanProblem>> {
    let subject = ConsultationSubject::Adaptation { step };
    let tries = state.tries(Subject::Consultation { consultation: number, kind: subject.kind() }).len();
    let is_last_try = tries > state.settings().max_retries as usize;
    let reason = match patch::read(state, catalogue, reply, (number, step), is_last_try)? {
        PatchReply::Changed(made) => return Ok(Event::Replanned(*made)),
        PatchReply::Unchanged { reason } => reason,
    };
    Ok(end(state, (number, subject), call, None, &reason))
}
