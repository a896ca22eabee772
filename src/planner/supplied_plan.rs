//! A plan supplied with the request by a person.

use super::approval::with_approval;
use super::command::plan_from_person;
use super::confirmation::confirmed_plan;
use crate::plan::PlanProblem;
use crate::run::{Event, Fault, PlanCause, PlanMade, RunState};
use crate::scene::Catalogue;

/// The event that puts the supplied plan in force as `version`, or rejects it.
pub fn supplied_plan(state: &RunState, catalogue: &Catalogue, version: u32) -> Event {
    if state.is_confirmation() {
        return confirmed_plan(state, catalogue, version);
    }
    let queued = state.queued.as_ref();
    let Some((plan, user)) = queued.and_then(|queued| Some((queued.plan.as_ref()?, &queued.user))) else {
        let error = Fault::new("plan.none", "no plan came with the request");
        return Event::PlanningFailed { version, error };
    };
    match plan_from_person(state, catalogue, plan, version, PlanCause::Request) {
        Ok(made) => {
            let made = PlanMade { by: Some(user.clone()), ..made };
            Event::PlanCreated(with_approval(state, catalogue, made))
        }
        Err(problems) => Event::PlanningFailed { version, error: invalid_plan_fault(&problems) },
    }
}

/// All problems of a plan as one fault.
pub(super) fn invalid_plan_fault(problems: &[PlanProblem]) -> Fault {
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    Fault::new("plan.invalid", messages.join("; "))
}
