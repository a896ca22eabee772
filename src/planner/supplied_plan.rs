//! A plan that no planner is asked for: supplied with the request by a person, or recalled from earlier executions.

use super::approval::with_approval;
use super::command::plan_from_person;
use super::confirmation::confirmed_plan;
use super::program::program_plan;
use crate::plan::{Plan, PlanProblem, Step, StepKind};
use crate::run::{
    Event, Fault, PendingQuestion, PlanCause, PlanMade, PlanMaker, PlanRecall, RecallOutcome, RunState,
};
use crate::scene::Catalogue;

/// The event that puts the supplied plan in force as `version`, or rejects it.
pub fn supplied_plan(state: &RunState, catalogue: &Catalogue, version: u32) -> Event {
    if state.is_confirmation() {
        return confirmed_plan(state, catalogue, version);
    }
    if let Some(asked) = state.repeated_document_question() {
        return repeated_question(catalogue, version, asked);
    }
    if state.is_planned_as_program() {
        return program_plan(state, catalogue, version);
    }
    let queued = state.queued.as_ref();
    if let Some(recall) = state.recall.as_ref().filter(|_| queued.is_some_and(|queued| queued.plan.is_none()))
    {
        return recalled_plan(state, catalogue, recall);
    }
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

/// The plan whose only step asks again which documents are meant.
fn repeated_question(catalogue: &Catalogue, version: u32, asked: &PendingQuestion) -> Event {
    if !catalogue.get(&asked.scene).is_some_and(|scene| scene.summarises) {
        let error = Fault::new("document.deleted", "the document that the request names was deleted");
        return Event::PlanningFailed { version, error };
    }
    let step = Step {
        step_number: 1,
        kind: StepKind::Summary,
        scene_name: asked.scene.clone(),
        purpose: asked.purpose.clone(),
        ..Step::default()
    };
    let plan = Plan { needs_execution: true, steps: vec![step], ..Plan::default() };
    Event::PlanCreated(PlanMade::new(version, PlanCause::Request, PlanMaker::Deterministic, plan))
}

/// The event that puts the recalled plan in force, or withdraws it: then the planner is asked.
fn recalled_plan(state: &RunState, catalogue: &Catalogue, recall: &PlanRecall) -> Event {
    let plan = recall.plan.as_ref().and_then(|plan| usable_learned_plan(state, catalogue, plan).ok());
    match plan {
        Some(plan) => {
            let made = PlanMade::new(1, PlanCause::Request, PlanMaker::Learned, plan);
            Event::PlanCreated(with_approval(state, catalogue, made))
        }
        None => {
            Event::PlanRecalled(PlanRecall { outcome: RecallOutcome::Unusable, plan: None, ..recall.clone() })
        }
    }
}

/// A plan from earlier executions as it may be executed now.
///
/// # Errors
/// Every problem of the plan.
pub fn usable_learned_plan(
    state: &RunState,
    catalogue: &Catalogue,
    plan: &Plan,
) -> Result<Plan, Vec<PlanProblem>> {
    plan_from_person(state, catalogue, plan, 1, PlanCause::Request).map(|made| made.plan)
}

pub(super) fn invalid_plan_fault(problems: &[PlanProblem]) -> Fault {
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    Fault::new("plan.invalid", messages.join("; "))
}
