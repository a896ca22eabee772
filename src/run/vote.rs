//! Votes: several models decide, each is asked once, and the majority counts. Only in decisions.

use serde::Serialize;

use super::action::Action;
use super::consult::{ConsultationState, without_choice};
use super::event::{ConsultationChoice, Event, Fault, Subject};
use super::next::record;
use super::state::{DueQuestion, RunState};
use crate::adapt::{self, ConsultationOutcome};

/// The choice of one of several models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vote {
    /// The alternative: its place among those that the tool declares, from 0.
    pub at: u32,
    /// The question's ordinal.
    pub question: u32,
    /// The configured name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl RunState {
    /// How many models vote in a decision that is opened now: as many as are configured, within what is left of the run's
    /// bound.
    pub(super) fn voters_now(&self) -> u32 {
        let limits = self.settings().consultations;
        limits.vote.min(limits.max_per_run.saturating_sub(self.consulted)).max(1)
    }

    /// Returns what is due in a decision in which several models vote: their questions and readings, or the end. A voter without
    /// a usable reply abstains. Once more than half agree, the others are not waited for.
    pub(super) fn vote_actions(&self, number: u32, consultation: &ConsultationState) -> Vec<Action> {
        if adapt::settled(&consultation.options_voted_for(), consultation.voters).is_some() {
            return vec![record(self.vote_end(number, consultation, None))];
        }
        let (mut actions, mut is_open, mut fault) = (Vec::new(), false, None);
        for voter in (1..=consultation.voters).filter(|voter| !consultation.votes.contains_key(voter)) {
            let subject = Subject::Vote { consultation: number, voter };
            match self.due_question(subject, self.settings().max_retries) {
                DueQuestion::GiveUp(error) => fault = Some(error),
                due => {
                    is_open = true;
                    actions.extend(self.question_actions(due, subject));
                }
            }
        }
        if is_open { actions } else { vec![record(self.vote_end(number, consultation, fault))] }
    }

    /// The end of a decision in which several models voted.
    fn vote_end(&self, number: u32, consultation: &ConsultationState, fault: Option<Fault>) -> Event {
        let Some(at) = adapt::winner(&consultation.options_voted_for()) else {
            let how = consultation
                .question
                .map_or(ConsultationOutcome::Policy, |asked| self.consultation_outcome(asked));
            let error = fault.unwrap_or_else(|| Fault::new("consultation.no_vote", "no model has voted"));
            return without_choice(number, consultation, how, error);
        };
        let chosen = ConsultationChoice::Decision { at };
        let mut outcomes = consultation.votes.values().map(|vote| self.consultation_outcome(vote.question));
        let is_asked = outcomes.any(|how| how == ConsultationOutcome::Asked);
        let first = consultation.votes.values().find(|vote| vote.at == at);
        Event::Consultation {
            consultation: number,
            subject: consultation.subject,
            question: consultation.question,
            how: if is_asked { ConsultationOutcome::Asked } else { ConsultationOutcome::Cached },
            refused: self.choice_refusal(number, &chosen),
            chosen: Some(chosen),
            reason: String::new(),
            model: first.and_then(|vote| vote.model.clone()),
            ask: None,
            error: None,
        }
    }

    /// A vote must be the reading of a reply that is due, and for one of the options.
    pub(super) fn admit_vote(&self, event: &Event) -> Result<(), String> {
        let Event::Voted { consultation, voter, question, at, .. } = event else { return Ok(()) };
        let about = Subject::Vote { consultation: *consultation, voter: *voter };
        let due = Action::Read { call: *question, subject: about };
        let choice = ConsultationChoice::Decision { at: *at };
        let state = self.consultations.get(consultation);
        let is_offered =
            choice.option().is_some_and(|option| state.is_some_and(|state| state.options.contains(&option)));
        match (self.next().contains(&due), is_offered) {
            (false, _) => Err("there is no such reply to read".to_owned()),
            (true, false) => Err("that was not offered".to_owned()),
            (true, true) => Ok(()),
        }
    }

    pub(super) fn fold_vote(&mut self, event: &Event) {
        let Event::Voted { consultation, voter, question, at, model, .. } = event else { return };
        self.use_reply_about(Subject::Vote { consultation: *consultation, voter: *voter });
        if let Some(state) = self.consultations.get_mut(consultation) {
            state.votes.insert(*voter, Vote { at: *at, question: *question, model: model.clone() });
        }
    }

    /// How many questions the consultations of the run may have in flight at once.
    pub(super) fn voters(&self) -> usize {
        self.consultations.values().map(|consultation| consultation.voters as usize).sum()
    }

    /// Counts the votes of a decision when it is opened, so that all of them are within the bound.
    pub(super) fn count_votes(&mut self, voters: u32) {
        self.consulted += if voters > 1 { voters } else { 0 };
    }

    /// Takes back the votes that were counted and that no model was asked for.
    pub(super) fn uncount_votes(&mut self, number: u32) {
        let unasked = self
            .consultations
            .get(&number)
            .filter(|consultation| consultation.question.is_none() && consultation.voters > 1);
        self.consulted = self.consulted.saturating_sub(unasked.map_or(0, |consultation| consultation.voters));
    }
}

impl ConsultationState {
    /// The alternatives that received votes, by voter.
    fn options_voted_for(&self) -> Vec<u32> {
        self.votes.values().map(|vote| vote.at).collect()
    }
}
