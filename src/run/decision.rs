//! Decisions: a model chooses which of several declared alternatives is called in place of a failed call. That one is
//! called at all was decided by predefined logic.

use super::event::ConsultationChoice;
use super::state::{CallState, CallStatus, RunState};
use crate::adapt::{self, AskingFacts, CallFailure, Capabilities, PolicyAction, PolicyChoice, ToolPolicies};

impl RunState {
    /// Returns whether a model chooses the alternative, instead of predefined logic, which would call the first open
    /// one. A model chooses once for each call: if its choice fails, too, the others follow in their order. `decided`
    /// says that something else ended the call's step, or that the call itself is a substitute.
    pub(super) fn asks_for_choice(
        &self,
        call: &CallState,
        (chosen, decided): (PolicyChoice, bool),
        (failure, declared, may): (&CallFailure<'_>, Option<&ToolPolicies>, Capabilities),
    ) -> bool {
        let facts = AskingFacts {
            decided: decided || chosen.action() != PolicyAction::Alternative || call.decision_tried,
            allowed: may.decision,
            choices: adapt::decision_options(failure, declared).len(),
            ..self.opening_facts()
        };
        self.ask_refusal(facts).is_none()
    }

    /// Folds the end of a decision: the chosen alternative is called, or without a choice the first open one.
    pub(super) fn call_chosen_alternative(
        &mut self,
        number: u32,
        consultation: u32,
        chosen: Option<&ConsultationChoice>,
    ) {
        let chosen = chosen.and_then(|chosen| match chosen {
            ConsultationChoice::Decision { at } => Some(PolicyChoice::Alternative { at: *at }),
            _ => None,
        });
        self.calls.change(number, |call| {
            let waits = call.consultation() == Some(consultation);
            if let (true, CallStatus::Failing { outcome, .. }) = (waits, &call.status) {
                call.status = CallStatus::Failing { outcome: outcome.clone(), chosen };
            }
        });
    }
}
