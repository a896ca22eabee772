//! Consultations: when a model is asked about something unexpected, which actions follow, and the effect of its choice.
//!
//! A consultation never calls, writes, approves or confirms. Its choice puts a call into a status from which predefined
//! logic continues.

use std::collections::BTreeMap;

use serde::Serialize;

use super::action::Action;
use super::event::{ConsultationChoice, ConsultationSubject, Event, Fault, FaultClass, Question, Subject};
use super::next::record;
use super::state::{AskStatus, CallStatus, DueQuestion, RunState};
use super::vote::Vote;
use crate::adapt::{
    self, AskRefusal, AskingFacts, ConsultationOutcome, RecoveryAction, RefusedAction, ReplyOrigin,
};
use crate::sentences;

/// A consultation and what it chose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConsultationState {
    /// Its subject.
    pub subject: ConsultationSubject,
    /// The kind of failure.
    pub class: FaultClass,
    /// The fault's code.
    pub code: String,
    /// The options, frozen when it was opened.
    pub options: Vec<RecoveryAction>,
    /// The shape of the data that a model is asked about, see [`adapt::shape`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// How many models vote; one decides where it is 1.
    #[serde(skip_serializing_if = "crate::adapt::is_one")]
    pub voters: u32,
    /// The votes so far, by voter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub votes: BTreeMap<u32, Vote>,
    /// Its last question, if one was put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<u32>,
    /// Whether it has ended.
    pub ended: bool,
    /// What was chosen and is carried out; predefined logic decides where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ConsultationChoice>,
    /// The configured name of the model that chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the scenes were reloaded since its reply: its choice is then not used for other calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_outdated: bool,
    /// Whether no model replied to its question, or to an equal one that it waited for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// Where the reply to a consultation's question came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskOrigin {
    /// Whether it was sent, shared or refused.
    pub reply: ReplyOrigin,
    /// The configured name of the model that was asked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl ConsultationState {
    /// Its option with this id.
    pub fn option(&self, id: &str) -> Option<RecoveryAction> {
        self.options.iter().copied().find(|option| option.id() == id)
    }
}

impl RunState {
    /// The ordinal of the next consultation.
    pub(super) fn next_consultation(&self) -> u32 {
        self.consultations.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// Returns what a consultation is due to do: ask, read, or end without a choice.
    pub(super) fn consultation_actions(&self, number: u32) -> Vec<Action> {
        let Some(consultation) = self.consultations.get(&number) else { return Vec::new() };
        if let Some(due) = Self::mapping_due(consultation) {
            return vec![due];
        }
        if let Some(chosen) = self.unrecorded_patch(consultation) {
            return vec![record(self.patch_end(number, consultation, chosen))];
        }
        if let Some(error) = self.adaptation_obstacle(consultation) {
            // The actions are the same whatever happens to a question in progress.
            let asked = ConsultationState { question: None, ..consultation.clone() };
            return vec![record(without_choice(number, &asked, ConsultationOutcome::Policy, error))];
        }
        if consultation.question.is_none() {
            match self.same_scenario_before(number) {
                Some((other, earlier)) if self.is_consulted(other, earlier) => return Vec::new(),
                Some((_, earlier)) => {
                    if let Some(event) = self.shared_choice(number, consultation, earlier) {
                        return vec![record(event)];
                    }
                }
                None => {}
            }
            if let Some(event) = self.unasked_end(number, consultation) {
                return vec![record(event)];
            }
        }
        if consultation.voters > 1 {
            return self.vote_actions(number, consultation);
        }
        let subject = Subject::Consultation { consultation: number, kind: consultation.subject.kind() };
        match self.due_question(subject, self.settings().max_retries) {
            DueQuestion::GiveUp(error) => {
                let how = consultation
                    .question
                    .map_or(ConsultationOutcome::Policy, |asked| self.consultation_outcome(asked));
                vec![record(without_choice(number, consultation, how, error))]
            }
            due => self.question_actions(due, subject),
        }
    }

    /// The first earlier consultation about the same scenario that is open, or ended with a choice that was carried out.
    /// It has a smaller ordinal and continues by itself, so nothing waits in a circle.
    fn same_scenario_before(&self, number: u32) -> Option<(u32, &ConsultationState)> {
        // The question about a plan is about this run alone.
        let is_about_a_call = |consultation: &&ConsultationState| consultation.subject.call().is_some();
        let consultation = self.consultations.get(&number).filter(is_about_a_call)?;
        let mut earlier = self
            .consultations
            .range(..number)
            .filter(|(_, other)| self.is_same_scenario(consultation, other));
        earlier
            .find(|(n, other)| self.is_consulted(**n, other) || other.chosen.is_some())
            .map(|(n, other)| (*n, other))
    }

    fn is_same_scenario(&self, a: &ConsultationState, b: &ConsultationState) -> bool {
        let tool = |consultation: &ConsultationState| {
            let call = self.calls.get(&consultation.subject.call()?)?;
            Some((call.scene.as_str(), call.requested.tool.as_str()))
        };
        let place = |option: &RecoveryAction| match option {
            RecoveryAction::Alternative { at } => Some(*at),
            _ => None,
        };
        let ids = |c: &ConsultationState| {
            c.options.iter().map(|option| (option.id(), place(option))).collect::<Vec<_>>()
        };
        a.subject.kind() == b.subject.kind()
            && (a.class, &a.code) == (b.class, &b.code)
            && !b.is_outdated
            && tool(a) == tool(b)
            && ids(a) == ids(b)
            && a.shape == b.shape
    }

    /// Whether a call still waits for the end of this consultation.
    fn is_consulted(&self, number: u32, consultation: &ConsultationState) -> bool {
        let call = consultation.subject.call().and_then(|call| self.calls.get(&call));
        !consultation.ended && call.is_some_and(|call| call.consultation() == Some(number))
    }

    /// The end of a consultation with the choice of an earlier one about the same scenario.
    fn shared_choice(
        &self,
        number: u32,
        consultation: &ConsultationState,
        earlier: &ConsultationState,
    ) -> Option<Event> {
        let earlier_choice = earlier.chosen.as_ref()?;
        let chosen = match earlier_choice {
            // Whether it fits the values of this call, too, turns out when it is applied. The alternatives are the
            // same.
            ConsultationChoice::Interpretation { .. } | ConsultationChoice::Decision { .. } => {
                earlier_choice.clone()
            }
            _ => ConsultationChoice::Recovery { action: consultation.option(earlier_choice.id())? },
        };
        let asks = chosen == ConsultationChoice::Recovery { action: RecoveryAction::AskUser };
        let refused = self.choice_refusal(number, &chosen);
        Some(Event::Consultation {
            consultation: number,
            subject: consultation.subject,
            question: None,
            how: ConsultationOutcome::Cached,
            chosen: Some(chosen),
            refused,
            reason: String::new(),
            model: earlier.model.clone(),
            ask: asks.then(|| self.question_how_to_continue(consultation.subject)).flatten(),
            error: None,
        })
    }

    /// The end of a consultation whose patch is in force.
    fn patch_end(&self, number: u32, consultation: &ConsultationState, chosen: ConsultationChoice) -> Event {
        let asked = consultation.question.and_then(|question| self.asks.get(&question));
        let origin = asked.and_then(|ask| ask.origin.as_ref());
        Event::Consultation {
            consultation: number,
            subject: consultation.subject,
            question: consultation.question,
            how: consultation
                .question
                .map_or(ConsultationOutcome::Policy, |asked| self.consultation_outcome(asked)),
            chosen: Some(chosen),
            refused: None,
            reason: String::new(),
            model: origin.and_then(|origin| origin.model.clone()),
            ask: None,
            error: None,
        }
    }

    /// The end of a consultation in which no model is asked; `None` if one is.
    fn unasked_end(&self, number: u32, consultation: &ConsultationState) -> Option<Event> {
        // The votes were counted when the consultation was opened.
        let asked_in_run = if consultation.voters > 1 { 0 } else { self.consulted };
        let (left_ms, model_failed) = (self.left_ms(), self.model_failed());
        let facts = AskingFacts { left_ms, model_failed, asked_in_run, ..self.asking_facts() };
        let (how, why) = adapt::whether_to_ask(&facts)?;
        let error = match why {
            Some(AskRefusal::NoTime) => {
                Fault::new("consultation.no_time", "the run's deadline comes before a reply is of use")
            }
            Some(AskRefusal::NoModel) => {
                Fault::new("consultation.no_model", "no model answered an earlier consultation of this run")
            }
            _ => Fault::new(
                "consultation.limit",
                format!(
                    "this run had its {} consultations (`execution.consultations.max_per_run`)",
                    self.settings().consultations.max_per_run
                ),
            ),
        };
        Some(without_choice(number, consultation, how, error))
    }

    /// The facts about a consultation against which only the run's own bound can count.
    fn asking_facts(&self) -> AskingFacts {
        AskingFacts {
            decided: false,
            person_decides: false,
            allowed: true,
            confirmation: false,
            choices: 1,
            left_ms: u64::MAX,
            model_failed: false,
            answered_in_run: false,
            asked_in_run: self.consulted,
            limits: self.settings().consultations,
            reply: None,
        }
    }

    /// Whether no model answered an earlier consultation.
    fn model_failed(&self) -> bool {
        self.consultations.values().any(|consultation| consultation.unanswered)
    }

    /// Why no model is asked, as far as this is known when the unexpected event is recorded.
    pub(super) fn ask_refusal(&self, facts: AskingFacts) -> Option<AskRefusal> {
        let facts = AskingFacts { left_ms: self.left_ms(), model_failed: self.model_failed(), ..facts };
        adapt::whether_to_ask(&facts).and_then(|(_, why)| why)
    }

    /// The facts that count before a consultation is opened. The number of consultations counts later: an equal one may
    /// have been answered.
    pub(super) fn opening_facts(&self) -> AskingFacts {
        AskingFacts { asked_in_run: 0, confirmation: self.is_confirmation(), ..self.asking_facts() }
    }

    /// The outcome of a consultation whose last question has ended.
    pub fn consultation_outcome(&self, question: u32) -> ConsultationOutcome {
        let origin = self.asks.get(&question).and_then(|ask| ask.origin.as_ref());
        let reply = Some(origin.map_or(ReplyOrigin::Sent, |origin| origin.reply));
        let outcome = adapt::whether_to_ask(&AskingFacts { reply, ..self.asking_facts() });
        outcome.map_or(ConsultationOutcome::Asked, |(how, _)| how)
    }

    /// Why a choice cannot be carried out now, by the rules by which it was offered and the present state.
    pub fn choice_refusal(&self, number: u32, chosen: &ConsultationChoice) -> Option<RefusedAction> {
        let subject = self.consultations.get(&number)?.subject;
        let (call, option) = (subject.call()?, chosen.option()?);
        let state = self.calls.get(&call)?;
        self.with_failure(call, state, |failure, declared, may| match subject {
            ConsultationSubject::Decision { .. } => adapt::decision_refusal(option, failure, declared, may),
            _ => adapt::recovery_refusal(option, failure, declared, &self.settings().policies, may),
        })?
    }

    /// The question to the user how to continue after a call failed. It confirms nothing.
    pub fn question_how_to_continue(&self, subject: ConsultationSubject) -> Option<Question> {
        let call = self.calls.get(&subject.call()?)?;
        let CallStatus::Failing { outcome, .. } = &call.status else { return None };
        let language = self.language();
        let why = outcome.user_text(language);
        Some(Question {
            text: sentences::ask_how_to_continue(language, &self.describe_call(call), &why),
            tool: Some(call.requested.tool.clone()),
            missing: Vec::new(),
            known: call.requested.arguments.clone(),
            choices: Vec::new(),
        })
    }

    /// Returns whether any question of the consultation was replied to.
    pub(super) fn is_replied(&self, number: u32) -> bool {
        let tries = self.tries.iter().filter(|(subject, _)| subject.consultation() == Some(number));
        let asked = tries.flat_map(|(_, calls)| calls).filter_map(|call| self.asks.get(call));
        let mut replied = asked.filter(|ask| {
            matches!(
                ask.status,
                AskStatus::Replied { .. } | AskStatus::Used { .. } | AskStatus::Rejected { .. }
            )
        });
        replied.next().is_some()
    }

    /// SHA-256 in hex of the scenes that are `loaded`, where they differ from those that the run had so far.
    pub fn changed_catalogue(&self, loaded: &str) -> Option<String> {
        let at_start = self.started.as_ref().map(|started| &started.catalogue);
        let known = self.catalogue.as_ref().or(at_start)?;
        (known != loaded).then(|| loaded.to_owned())
    }

    /// Other scenes are loaded than before. A question contains definitions of tools, so earlier replies are not shared
    /// any more.
    pub(super) fn change_catalogue(&mut self, loaded: Option<&String>) {
        let Some(loaded) = loaded else { return };
        self.catalogue = Some(loaded.clone());
        let is_replied = |(number, consultation): &(&u32, &ConsultationState)| {
            consultation.ended || self.is_replied(**number)
        };
        let replied: Vec<u32> = self.consultations.iter().filter(is_replied).map(|(n, _)| *n).collect();
        for number in replied {
            if let Some(consultation) = self.consultations.get_mut(&number) {
                consultation.is_outdated = true;
            }
        }
    }

    /// The run was reopened: earlier choices do not count any more.
    pub(super) fn forget_consultations(&mut self) {
        self.consulted = 0;
        self.tries.retain(|subject, _| subject.consultation().is_none());
        for consultation in self.consultations.values_mut() {
            consultation.ended = true;
            consultation.chosen = None;
            consultation.unanswered = false;
        }
    }
}

pub(super) fn without_choice(
    number: u32,
    consultation: &ConsultationState,
    how: ConsultationOutcome,
    error: Fault,
) -> Event {
    Event::Consultation {
        consultation: number,
        subject: consultation.subject,
        question: consultation.question,
        how,
        chosen: None,
        refused: None,
        reason: String::new(),
        model: None,
        ask: None,
        error: Some(error),
    }
}
