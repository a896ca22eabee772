//! Reads the reply to a question for a plan.

use serde_json::Value;

use super::approval::{unfit_calls, with_approval};
use super::confirmation::without_added_characters;
use super::constraints::constraint_problems;
use super::flow_plan::flow_problems;
use super::plan_prompt::shape;
use super::planned_calls::{self, UnreadableCall};
use super::program::{as_programs, program_problems};
use super::read::{from_arguments, only_repeats};
use super::shortlist::more_scenes;
use super::step_expectations;
use super::synthesis::{parse_texts, synthesis_problems};
use super::tools::CREATE_PLAN;
use super::unchanged::with_unchanged;
use crate::llm::reader;
use crate::plan::{self, Plan, PlanProblem};
use crate::run::{Event, PlanCause, PlanMade, PlanMaker, Reply, RunState, Subject, UnusableCall};
use crate::scene::{Catalogue, PlanShape, PlannedCalls};

/// The event that a reply to the question for plan `version` yields.
///
/// # Errors
/// Every problem of the reply, for its author.
pub(super) fn read_plan(
    state: &RunState,
    catalogue: &Catalogue,
    reply: &Reply,
    version: u32,
    fallback: bool,
) -> Result<Event, Vec<PlanProblem>> {
    let mut written = reader::read(reply, CREATE_PLAN, state.settings().reader)?;
    if let Some(problem) = more_scenes(state, catalogue, version, &written) {
        return Err(vec![problem]);
    }
    let shape = shape(state, catalogue, version);
    let unreadable = match shape.calls == PlannedCalls::All || shape.shortlisted {
        true => planned_calls::parse_arguments(&mut written),
        false => {
            if state.settings().has_rules(17) {
                planned_calls::parse_object_texts(&mut written);
            }
            Vec::new()
        }
    };
    parse_texts(&mut written);
    let mut plan: Plan = from_arguments(written, CREATE_PLAN)?;
    step_expectations::drop_expectations_of_models(&mut plan, reply);
    for call in plan.steps.iter_mut().flat_map(|step| &mut step.prepared_calls) {
        let arguments = Value::Object(std::mem::take(&mut call.arguments));
        if let Value::Object(arguments) = without_added_characters(state, catalogue, arguments) {
            call.arguments = arguments;
        }
    }
    let (mut plan, unusable) = usable_plan(state, catalogue, plan, version, (shape, &unreadable))?;
    // A model that could not plan may still be able to answer.
    plan.answer = plan.answer.filter(|_| !fallback).map(|answer| with_unchanged(state, catalogue, answer));
    if !fallback {
        as_programs(state, catalogue, &mut plan);
    }
    let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.as_ref());
    if feedback.is_some() {
        check_change(state, &plan)?;
    }
    let maker = if fallback { PlanMaker::Fallback } else { PlanMaker::Deterministic };
    let cause = match feedback {
        Some(_) => PlanCause::Feedback,
        None if version == 1 => PlanCause::Request,
        None => PlanCause::Continuation,
    };
    let (by, why) = feedback.map(|f| (f.by.clone(), f.words.clone())).unzip();
    let made = PlanMade { by, why, unusable, ..PlanMade::new(version, cause, maker, plan) };
    let made = with_approval(state, catalogue, made);
    Ok(if version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) })
}

/// The plan as it may be executed: normalised and validated, with the prepared calls that can be made; and those that cannot.
fn usable_plan(
    state: &RunState,
    catalogue: &Catalogue,
    mut plan: Plan,
    version: u32,
    (shape, unreadable): (PlanShape, &[UnreadableCall]),
) -> Result<(Plan, Vec<UnusableCall>), Vec<PlanProblem>> {
    name_unavailable(&mut plan, shape);
    let known = catalogue.known_names();
    let feedback = state.planning.as_ref().is_some_and(|planning| planning.feedback.is_some());
    let last = state.last_fixed_step(feedback);
    plan::normalise(&mut plan, known, last);
    let mut unusable = Vec::new();
    if shape.calls == PlannedCalls::All {
        unusable = planned_calls::take_unusable(&mut plan, catalogue, &state.finished_steps(), unreadable);
        unusable.retain(|_| state.settings().has_rules(8));
    }
    let limits = plan::PlanLimits { max_steps: state.settings().max_steps };
    let mut problems = plan::validate(&plan, known, limits, &state.finished_steps(), last);
    problems.extend(constraint_problems(state, catalogue, &plan));
    problems.extend(flow_problems(state, catalogue, &plan));
    problems.extend(synthesis_problems(&plan));
    problems.extend(program_problems(state, &plan));
    problems.extend(step_expectations::expectation_problems(catalogue, &plan));
    if !problems.is_empty() {
        return Err(problems);
    }
    let unfit = unfit_calls(catalogue, &plan);
    if !unfit.is_empty() {
        // The reply that is being read is among them.
        let tries = state.tries(Subject::Plan { version }).len();
        if tries <= state.settings().max_retries as usize {
            return Err(unfit);
        }
        // An otherwise valid plan is better than none: its writes then need separate approvals.
        plan.steps.iter_mut().for_each(|step| step.prepared_calls.clear());
    }
    // Some small models echo the request. The answer is then asked for separately.
    let is_answer = |text: &String| !text.trim().is_empty() && !only_repeats(text, state.request());
    plan.answer = plan.answer.filter(|text| shape.answers && !plan.needs_execution && is_answer(text));
    Ok((plan, unusable))
}

/// Keeps the parts that the plan calls unavailable if tools are switched off, and adds them to the parts that the plan
/// leaves undone.
fn name_unavailable(plan: &mut Plan, shape: PlanShape) {
    let named = std::mem::take(&mut plan.unavailable).into_iter().filter(|part| !part.trim().is_empty());
    plan.unavailable = named.filter(|_| shape.switched_off).collect();
    for part in &plan.unavailable {
        if !plan.unserved.contains(part) {
            plan.unserved.push(part.clone());
        }
    }
}

/// Checks that a plan that was changed at a person's request has steps, and differs from the previous plan.
fn check_change(state: &RunState, plan: &Plan) -> Result<(), Vec<PlanProblem>> {
    if !plan.needs_execution {
        return Err(vec![PlanProblem::new(
            "plan.nothing_left",
            "the changed plan has no steps: change the plan as <feedback> says and keep the rest of it",
        )]);
    }
    if state.plan().is_some_and(|before| plan::diff(&before.plan, plan).is_empty()) {
        return Err(vec![PlanProblem::new(
            "plan.unchanged",
            "that is the plan as it was: change it as <feedback> says",
        )]);
    }
    Ok(())
}
