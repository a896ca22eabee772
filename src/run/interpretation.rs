//! Interpretations: a model says where the expected values are in a result of another shape, and the machine copies them.

use serde_json::Value;

use super::action::Action;
use super::consult::ConsultationState;
use super::event::{ConsultationChoice, Event, InterpretedResult, Outcome, Subject};
use super::failure::POSTCONDITION;
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::{self, AskingFacts, Capabilities, MappedPlace, PolicyChoice};

impl RunState {
    /// Returns whether a model is asked where the expected values are in what the call returned, where predefined logic has
    /// nothing better: a retry, an alternative or an earlier result. `decided`: something else ended the call's step.
    pub(super) fn asks_for_mapping(
        &self,
        call: &CallState,
        (chosen, decided): (PolicyChoice, bool),
        may: Capabilities,
    ) -> bool {
        let declared = call.requested.policies.as_deref().is_some_and(|policies| policies.interpret);
        let eligible = declared
            && call.odd_data.is_some()
            && !call.interpretation_tried
            && call.fault().is_some_and(|fault| fault.code == POSTCONDITION);
        let facts = AskingFacts {
            decided: decided || !matches!(chosen, PolicyChoice::Fail | PolicyChoice::Skip),
            allowed: may.interpretation,
            ..self.opening_facts()
        };
        eligible && self.ask_refusal(facts).is_none()
    }

    /// The data of a call about whose shape a model is asked.
    pub fn data_to_map(&self, call: u32) -> Option<&Value> {
        self.calls.get(&call)?.odd_data.as_ref()
    }

    /// The mapping that is to be applied to the data of a call.
    pub fn mapping_to_apply(&self, call: u32) -> Option<&[MappedPlace]> {
        let number = self.calls.get(&call)?.consultation()?;
        self.consultations.get(&number).and_then(ConsultationState::mapping)
    }

    /// Returns what is due once a mapping was chosen: it is applied.
    pub(super) fn mapping_due(consultation: &ConsultationState) -> Option<Action> {
        let call = consultation.subject.call()?;
        consultation.mapping().filter(|_| consultation.ended).map(|_| Action::Interpret { call })
    }

    /// The end of an interpretation must be the reading of a reply that is due, and its mapping must fit the data.
    pub(super) fn admit_mapping(&self, event: &Event, question: u32) -> Result<(), String> {
        let Event::Consultation { consultation, subject, how, chosen, refused, ask, .. } = event else {
            return Ok(());
        };
        let about = Subject::Consultation { consultation: *consultation, kind: subject.kind() };
        let due = Action::Read { call: question, subject: about };
        let state = self.consultations.get(consultation);
        let data = subject.call().and_then(|call| self.data_to_map(call));
        let fits = match chosen {
            None => true,
            Some(ConsultationChoice::Interpretation { mapping }) => {
                data.is_some_and(|data| adapt::map_data(mapping, data).is_ok())
            }
            Some(_) => false,
        };
        let holds = [
            (self.next().contains(&due), "there is no such reply to read"),
            (
                state.is_some_and(|state| state.subject == *subject),
                "the consultation is about something else",
            ),
            (fits, "the mapping does not fit the data"),
            (refused.is_none() && ask.is_none(), "nothing is refused or asked"),
            (*how == self.consultation_outcome(question), "the reply did not come about like that"),
        ];
        holds.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err((*why).to_owned()))
    }

    /// Folds the end of an interpretation without a mapping: predefined logic decides about the failure.
    pub(super) fn decide_without_mapping(&mut self, call: u32) {
        self.calls.change(call, |call| {
            if let CallStatus::Failing { outcome, .. } = &call.status {
                call.status = CallStatus::Failing { outcome: outcome.clone(), chosen: None };
            }
            call.odd_data = None;
        });
    }

    /// Folds what the mapping made of the data. Without a result, predefined logic decides about the failure.
    pub(super) fn interpret(&mut self, call: u32, found: Option<&InterpretedResult>) {
        let Some(found) = found else { return self.decide_without_mapping(call) };
        self.calls.change(call, |call| {
            let InterpretedResult { result, say, whole } = found.clone();
            call.interpreted = true;
            call.odd_data = None;
            call.status = CallStatus::Done { outcome: Outcome::Ok { result, say, whole } };
        });
        self.close_call(call);
    }

    /// Returns whether any result was found by a model in data of another shape.
    pub fn has_interpreted_result(&self) -> bool {
        self.calls.values().any(|call| call.interpreted)
    }
}

impl ConsultationState {
    fn mapping(&self) -> Option<&[MappedPlace]> {
        match &self.chosen {
            Some(ConsultationChoice::Interpretation { mapping }) => Some(mapping),
            _ => None,
        }
    }
}
