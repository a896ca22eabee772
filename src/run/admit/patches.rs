//! Admission of what a model says about the unfinished part of a plan.

use super::super::action::Action;
use super::super::event::{ConsultationSubject, Event, PlanCause, PlanMade, PlanMaker, PlanPatch, Subject};
use super::super::state::RunState;
use super::require;
use crate::adapt::ConsultationKind;

impl RunState {
    /// The end of a consultation that leaves the plan as it is must be the reading of a reply that is due.
    pub(super) fn admit_unchanged(&self, event: &Event, question: u32) -> Result<(), String> {
        let Event::Consultation { consultation, subject, how, refused, ask, .. } = event else {
            return Ok(());
        };
        self.reads_about_plan(*consultation, Some(question))?;
        let state = self.consultations.get(consultation);
        require(
            state.is_some_and(|state| state.subject == *subject),
            "the consultation is about something else",
        )?;
        require(refused.is_none() && ask.is_none(), "nothing was chosen")?;
        require(*how == self.consultation_outcome(question), "the reply did not come about like that")
    }

    /// The reply of a consultation about the plan must be due to be read.
    fn reads_about_plan(&self, consultation: u32, question: Option<u32>) -> Result<(), String> {
        let about = Subject::Consultation { consultation, kind: ConsultationKind::Adaptation };
        let due = |action: &Action| {
            matches!(action, Action::Read { call, subject }
                if *subject == about && question.is_none_or(|question| question == *call))
        };
        require(self.asks_for(due), "there is no such reply to read")
    }

    /// A patch must be the reading of a reply that is due, and may change only what is not fixed.
    pub(super) fn admit_patch(&self, made: &PlanMade, patch: &PlanPatch) -> Result<(), String> {
        require(made.cause == PlanCause::Adaptation, "only a consultation changes a part of the plan")?;
        require(made.maker == PlanMaker::Deterministic && made.by.is_none(), "a model makes a patch")?;
        require(made.version == self.plans.len() as u32 + 1, "versions must increase by one")?;
        self.reads_about_plan(patch.consultation, None)?;
        let subject = self.consultations.get(&patch.consultation).map(|state| state.subject);
        let Some(ConsultationSubject::Adaptation { step }) = subject else {
            return Err("the consultation is not about the plan".to_owned());
        };
        match self.patch_problems(step, patch, &made.plan).first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(()),
        }
    }
}
