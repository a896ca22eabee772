//! The lesson of a run's end for the plan of its template.

use serde_json::Value;

use super::binding::bind;
use super::path::path_lessons;
use super::template::{template_of_run, user_hash};
use crate::llm::offline::PlainAsk;
use crate::plan::{Reference, Step, StepKind, StepStatus};
use crate::planner;
use crate::run::{
    CallState, CallStatus, Event, FaultClass, LearnMode, LessonResult, Outcome, PlanLesson, PlanMade,
    PlanMaker, RunState, RunStatus, StepState,
};
use crate::scene::Catalogue;

/// The events that record what `event` says about the plan of its run and the paths of its flows, if it ends the run.
pub(crate) fn lessons(state: &RunState, catalogue: &Catalogue, event: &Event) -> Vec<Event> {
    if !event.is_terminal() {
        return Vec::new();
    }
    let plan = lesson(state, catalogue, event).map(Event::PlanObserved);
    let paths = path_lessons(state, catalogue, event).into_iter();
    plan.into_iter().chain(paths.map(|(step, lesson)| Event::PathObserved { step, lesson })).collect()
}

/// Returns the lesson of `ending`, the run's last event, about the plan. `None` if there is none: learning is off, a
/// person, the offline model or the conversation influenced the plan, a value cannot be traced, or the tools refused
/// for reasons of their own.
fn lesson(state: &RunState, catalogue: &Catalogue, ending: &Event) -> Option<PlanLesson> {
    if !teaches(state) {
        return None;
    }
    let first = state.plans.first()?;
    // The work of a flow, or of a model without tools, is not prepared by a plan.
    let is_prepared = |made: &PlanMade| {
        let is_left = |step: &Step| matches!(step.kind, StepKind::Llm | StepKind::Code);
        made.flows.is_empty() && !made.plan.steps.iter().any(is_left)
    };
    if !state.plans.iter().all(is_prepared) {
        return None;
    }
    let is_own = matches!(first.maker, PlanMaker::Deterministic | PlanMaker::Learned);
    let is_unchanged = state.plans.iter().all(|made| made.by.is_none());
    let template = template_of_run(state).filter(|_| is_own && is_unchanged)?;
    let result = result(state, first, ending)?;
    let is_recalled = first.maker == PlanMaker::Learned;
    let plan = match is_recalled {
        true => None,
        false => {
            if !is_without_memory(state) {
                return None;
            }
            // A question may only ask whether something is allowed.
            if template.ask == PlainAsk::Question && planner::expects_writes(catalogue, &first.plan) {
                return None;
            }
            let definitions = planner::tool_definitions(catalogue, &first.plan);
            Some(bind(&first.plan, &template, definitions)?)
        }
    };
    let user = user_hash(&state.queued.as_ref()?.user);
    Some(PlanLesson { words: template.words(), template: template.id, plan, result, user })
}

/// Returns whether anything is learned at the end of the run: its first one, which nobody asked for.
pub(super) fn teaches(state: &RunState) -> bool {
    let is_first_end = state.usage_at_last_end.is_none() && state.cancel.is_none();
    state.settings().learn != LearnMode::Off && is_first_end
}

/// Returns whether nothing that was said before can have influenced the plan.
pub(super) fn is_without_memory(state: &RunState) -> bool {
    let context = state.started.as_ref().map(|started| &started.context);
    context.is_some_and(|context| {
        context.turns.is_empty() && context.summary.is_none() && context.facts.is_empty()
    })
}

/// Returns whether a failure of this class shows that the calls did not suit the request.
pub(super) fn is_misfit(class: FaultClass) -> bool {
    matches!(class, FaultClass::BadData | FaultClass::NotFound)
}

fn result(state: &RunState, first: &PlanMade, ending: &Event) -> Option<LessonResult> {
    let calls = || state.calls.values().filter(|call| call.undoes.is_none());
    let faults: Vec<FaultClass> = calls().filter_map(fault_class).collect();
    if !faults.is_empty() && faults.iter().copied().all(FaultClass::is_transient) {
        return Some(LessonResult::Outage);
    }
    let unprepared = |step: &StepState| step.scene().is_some_and(|work| !work.unprepared.is_empty());
    let asks_for_more = state.verdicts.iter().any(|verdict| verdict.should_continue);
    if faults.iter().copied().any(is_misfit) || asks_for_more || state.steps.values().any(unprepared) {
        return Some(LessonResult::Failure);
    }
    let is_completed = matches!(ending, Event::RunCompleted { status: RunStatus::Completed });
    let steps = &first.plan.steps;
    let is_as_planned = state.plans.len() == 1
        && !steps.is_empty()
        && steps.iter().all(|step| {
            let run = state.steps.get(&step.step_number);
            run.is_some_and(|run| run.status == StepStatus::Completed && is_as_prepared(state, run))
        });
    (is_completed && is_as_planned).then_some(LessonResult::Success)
}

/// Why a call failed, if it did for a reason that has a class.
pub(super) fn fault_class(call: &CallState) -> Option<FaultClass> {
    let CallStatus::Done { outcome } = &call.status else { return None };
    let fault = outcome.fault()?;
    (fault.class != FaultClass::Other).then_some(fault.class)
}

/// Whether the step's calls are exactly those that its plan prepared, and all succeeded without a question.
fn is_as_prepared(state: &RunState, step: &StepState) -> bool {
    let prepared = &step.step.prepared_calls;
    let done = |(number, planned): (&u32, &crate::plan::PreparedCall)| {
        let Some(call) = state.calls.get(number) else { return false };
        let is_ok = matches!(state.outcome(*number), Some(Outcome::Ok { .. })) && !call.interpreted;
        let asked = call.requested.confirm.is_some() || call.edited_by.is_some();
        let same = planned.arguments.iter().all(|(name, value)| {
            let made = call.requested.arguments.get(name).unwrap_or(&Value::Null);
            Reference::of(value).is_some() || made == value
        });
        is_ok && !asked && same && call.requested.tool == planned.tool
    };
    step.calls.len() == prepared.len() && step.calls.iter().zip(prepared).all(done)
}
