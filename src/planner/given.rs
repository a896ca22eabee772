//! A plan that came with its request, made by a person.

use super::approval::with_approval;
use super::command::person_made;
use super::confirm::confirmed_plan;
use crate::plan::Problem;
use crate::run::{Cause, Event, Fault, PlanMade, RunState};
use crate::scene::Catalogue;

/// The event that says whether the plan that came with the request is in force as `version`.
pub fn given(state: &RunState, catalogue: &Catalogue, version: u32) -> Event {
    if state.is_confirmation() {
        return confirmed_plan(state, catalogue, version);
    }
    let queued = state.queued.as_ref();
    let Some((plan, user)) = queued.and_then(|queued| Some((queued.plan.as_ref()?, &queued.user))) else {
        let error = Fault::new("plan.none", "no plan came with the request");
        return Event::PlanningFailed { version, error };
    };
    match person_made(state, catalogue, plan, version, Cause::Request) {
        Ok(made) => {
            let made = PlanMade { by: Some(user.clone()), ..made };
            Event::PlanCreated(with_approval(state, catalogue, made))
        }
        Err(problems) => Event::PlanningFailed { version, error: invalid(&problems) },
    }
}

/// Everything that is wrong with a plan, as one fault.
pub(super) fn invalid(problems: &[Problem]) -> Fault {
    let told: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    Fault::new("plan.invalid", told.join("; "))
}
