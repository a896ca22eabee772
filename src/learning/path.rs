//! Paths through flows: the template of what a flow's step is for, what its execution says about the path, and when a path
//! is followed again without a planner.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::lesson::{fault_class, is_misfit, is_without_memory, teaches};
use super::similarity::path_hints;
use super::standing::{PlanHistory, proven};
use super::template::{RequestTemplate, template_of_request, user_hash};
use crate::flow::{Flow, NodeKind, PathMaker};
use crate::llm::offline::PlainAsk;
use crate::plan::{Plan, StepStatus};
use crate::planner;
use crate::run::{
    CallState, CallStatus, Event, FaultClass, LearnedPlan, LessonResult, Outcome, PathHint, PathRecall,
    PlanLesson, PlanMade, PlannedPath, RecallOutcome, RunState, RunStatus, StepState, canonical_json,
};
use crate::scene::Catalogue;

/// The template of what a flow's step is for. It holds no value of the request.
pub(crate) struct PathTemplate {
    /// SHA-256 in hex of the request's template, the part of it, the flow and the names of the given values.
    pub(crate) id: String,
    /// The words of the part, with placeholders.
    pub(crate) words: String,
    pub(crate) flow: String,
    /// What the request asks for.
    ask: PlainAsk,
    /// The elements of the request's template that say what the step is for; all without them.
    part: Option<(u32, u32)>,
}

/// The template of a flow's step, if its path can be learned or reused at all: it belongs to the first plan, and neither
/// memory, a question, a constraint nor words of a person about the plan have a part in it.
pub(crate) fn template_of_path(state: &RunState, number: u32) -> Option<PathTemplate> {
    let step = state.steps.get(&number)?;
    let (flow, made) = (state.flow_of(step)?, state.plans.first()?);
    let guidance = state.queued.as_ref()?.guidance.as_ref();
    let is_free = guidance.is_none_or(|guidance| guidance.constraints.is_empty());
    // A later version follows from what was found, or from what a person said.
    let is_plain = step.version == 1 && made.plan.unserved.is_empty() && !step.step.unclear;
    // The planner sees all of the state, the template only the names of the flow's inputs.
    let is_foreign = given_state(state).is_some_and(|given| {
        given.as_object().is_none_or(|fields| fields.keys().any(|name| !flow.inputs.contains(name)))
    });
    if !is_free || !is_plain || is_foreign {
        return None;
    }
    let template = template_of_request(state)?;
    let part = part_of(&template, made, step)?;
    let given: BTreeSet<String> = state.given_to_flow(flow);
    let key =
        canonical_json(&json!({"request": template.id, "part": part, "flow": flow.name, "given": given}));
    Some(PathTemplate {
        id: HEXLOWER.encode(&Sha256::digest(key.as_bytes())),
        words: template.words_of(part),
        flow: flow.name.clone(),
        ask: template.ask,
        part,
    })
}

fn given_state(state: &RunState) -> Option<&Value> {
    state.queued.as_ref()?.guidance.as_ref()?.current_state.as_ref()
}

/// Whether a planner may have worded a step's purpose with a value of the state that the request gives.
fn is_worded_by_state(state: &RunState, step: &StepState) -> bool {
    let is_named = state.queued.as_ref().is_some_and(|queued| queued.plan.is_some());
    let is_request = is_named && step.step.purpose.trim() == state.request().trim();
    let is_only = state.plans.first().is_some_and(|made| made.plan.steps.len() == 1);
    given_state(state).is_some() && is_only && !is_request
}

/// The elements of the request that say what the step is for, or all of them; `None` where its purpose is not a part of the
/// request.
fn part_of(template: &RequestTemplate, made: &PlanMade, step: &StepState) -> Option<Option<(u32, u32)>> {
    // The only step of a planner's plan serves the whole request, however its purpose is worded.
    if made.plan.steps.len() == 1 && made.by.is_none() {
        return Some(None);
    }
    let (first, last) = template.elements_of(&step.step.purpose)?;
    let is_all = first == 0 && last as usize + 1 == template.elements.len();
    Some((!is_all).then_some((first, last)))
}

/// Returns what `ending`, the run's last event, says about the paths of its flows, by the step's number; each template once.
pub(super) fn path_lessons(
    state: &RunState,
    catalogue: &Catalogue,
    ending: &Event,
) -> Vec<(u32, PlanLesson)> {
    if !teaches(state) {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let steps = state.plan_steps();
    let lessons = steps.filter_map(|(number, step)| {
        let planned = step.flow()?.planned.as_ref()?;
        let lesson = ExecutedPath { state, number: *number, step, planned }.lesson(catalogue, ending)?;
        seen.insert(lesson.template.clone()).then_some((*number, lesson))
    });
    lessons.collect()
}

/// A path that was planned for a flow's step, and executed as far as the run came.
struct ExecutedPath<'a> {
    state: &'a RunState,
    number: u32,
    step: &'a StepState,
    planned: &'a PlannedPath,
}

impl ExecutedPath<'_> {
    fn lesson(&self, catalogue: &Catalogue, ending: &Event) -> Option<PlanLesson> {
        let Self { state, number, planned, .. } = *self;
        // Without models, a path is not executed in the way in which it was proven.
        let is_as_proven = planned.maker == PathMaker::Learned && state.may_plan_path(number);
        if planned.maker != PathMaker::Planner && !is_as_proven {
            return None;
        }
        let template = template_of_path(state, number)?;
        let result = self.result(ending)?;
        let plan = match planned.maker {
            PathMaker::Learned => None,
            _ => Some(self.learned(catalogue, &template)?),
        };
        let user = user_hash(&state.queued.as_ref()?.user);
        Some(PlanLesson { template: template.id, words: template.words, plan, result, user })
    }

    /// The path of a planner as it is learned.
    fn learned(&self, catalogue: &Catalogue, template: &PathTemplate) -> Option<LearnedPlan> {
        let Self { state, step, planned, .. } = *self;
        let flow = state.flow_of(step).filter(|flow| is_loaded(catalogue, flow))?;
        // A question may only ask whether something is allowed.
        let is_unfit =
            template.ask == PlainAsk::Question && planner::path_writes(catalogue, flow, &planned.path);
        if is_unfit || !is_without_memory(state) || is_worded_by_state(state, step) {
            return None;
        }
        let path = planned.path.clone();
        Some(LearnedPlan::of_path(&flow.name, path, template.part, definitions(catalogue, flow)))
    }

    /// The lesson of the execution about its path. `None` if a person, a policy or a tool for reasons of its own ended
    /// it, or if the conditions of the graph led elsewhere than planned.
    fn result(&self, ending: &Event) -> Option<LessonResult> {
        let Self { state, step, .. } = *self;
        match step.status {
            StepStatus::Failed => failure(state, step),
            StepStatus::Completed if state.verdicts.iter().any(|verdict| verdict.should_continue) => {
                Some(LessonResult::Failure)
            }
            StepStatus::Completed => {
                let is_completed = matches!(ending, Event::RunCompleted { status: RunStatus::Completed });
                let is_whole = is_completed && state.plans.len() == 1;
                (is_whole && self.is_as_planned()).then_some(LessonResult::Success)
            }
            _ => None,
        }
    }

    /// Whether exactly the planned nodes were entered, and all their calls succeeded without a doubt. What a person approves
    /// at a node of kind approval, perhaps with changes, is the flow's own work.
    fn is_as_planned(&self) -> bool {
        let Self { state, step, planned, .. } = *self;
        let Some((work, flow)) = step.flow().zip(state.flow_of(step)) else { return false };
        let is_done = |number: &u32| {
            let Some(node) = state.steps.get(number) else { return false };
            let kind = node.node().and_then(|work| flow.node(&work.node)).map(|node| &node.kind);
            let is_approval = matches!(kind, Some(NodeKind::Approval { .. }));
            let is_fine = |number: &u32| {
                let Some(call) = state.calls.get(number) else { return false };
                let is_ok = matches!(state.outcome(*number), Some(Outcome::Ok { .. })) && !call.interpreted;
                let is_unasked = call.requested.confirm.is_none() && call.edited_by.is_none();
                is_ok && (is_unasked || is_approval)
            };
            node.status == StepStatus::Completed && node.calls.iter().all(is_fine)
        };
        state.entered_nodes(work) == planned.path && work.nodes.iter().all(is_done)
    }
}

/// The lesson of a failed flow about its path.
fn failure(state: &RunState, step: &StepState) -> Option<LessonResult> {
    let error = step.error.as_ref()?;
    let is_refused =
        |call: &CallState| matches!(call.status, CallStatus::Done { outcome: Outcome::Refused { .. } });
    let faults: Vec<FaultClass> = calls(state, step).filter_map(fault_class).chain([error.class]).collect();
    if error.class.is_transient() && faults.iter().copied().all(FaultClass::is_transient) {
        return Some(LessonResult::Outage);
    }
    let suits = !faults.iter().copied().any(is_misfit);
    let is_forbidden = error.class == FaultClass::Denied || calls(state, step).any(is_refused);
    (!suits || !is_forbidden).then_some(LessonResult::Failure)
}

/// The calls of a flow's nodes.
fn calls<'a>(state: &'a RunState, step: &'a StepState) -> impl Iterator<Item = &'a CallState> {
    let nodes = step.flow().into_iter().flat_map(|work| &work.nodes);
    let calls = nodes.filter_map(move |node| state.steps.get(node)).flat_map(|node| &node.calls);
    calls.filter_map(move |call| state.calls.get(call)).filter(|call| call.undoes.is_none())
}

/// Whether the flow that a run follows is the one that is loaded.
fn is_loaded(catalogue: &Catalogue, flow: &Flow) -> bool {
    catalogue.flow(&flow.name).is_some_and(|loaded| **loaded == *flow)
}

/// The definitions of the flow and of the tools that its nodes call, as they are loaded.
fn definitions(catalogue: &Catalogue, flow: &Flow) -> BTreeMap<String, String> {
    planner::tool_definitions(catalogue, &Plan::of_flow(&flow.name, ""))
}

/// A flow's step for which a learned path is looked for.
pub(crate) struct PathLookUp<'a> {
    pub(crate) state: &'a RunState,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) step: u32,
    pub(crate) template: &'a PathTemplate,
}

impl<'a> PathLookUp<'a> {
    /// Returns what follows from what is known of the template, with the rule of [`proven`]. The path is one that may be
    /// followed.
    pub(crate) fn recall(&self, known: Option<&PlanHistory>, rule: (u32, Timestamp)) -> PathRecall {
        match self.found(known, rule) {
            Ok(path) => PathRecall {
                path: Some(path),
                ..PathRecall::without_path(RecallOutcome::Reused, &self.template.id)
            },
            Err(why) => PathRecall::without_path(why, &self.template.id),
        }
    }

    fn found(
        &self,
        known: Option<&PlanHistory>,
        rule: (u32, Timestamp),
    ) -> Result<Vec<String>, RecallOutcome> {
        let known = proven(known, rule)?;
        let flow = self.flow().ok_or(RecallOutcome::Unusable)?;
        if definitions(self.catalogue, flow) != known.plan.definitions {
            return Err(RecallOutcome::Changed);
        }
        let path = self.possible(flow, &known.plan).filter(|_| is_loaded(self.catalogue, flow));
        let path = path.ok_or(RecallOutcome::Unusable)?;
        // A question may ask whether something is allowed.
        let is_question = self.template.ask == PlainAsk::Question;
        if is_question && planner::path_writes(self.catalogue, flow, path) {
            return Err(RecallOutcome::Unfit);
        }
        Ok(path.to_vec())
    }

    /// The paths among `known` whose requests are most similar to that of the step, and that may be followed now. `known` holds
    /// the words and the plan of each.
    pub(crate) fn similar(&self, known: &[(String, LearnedPlan)]) -> Vec<PathHint> {
        let Some(flow) = self.flow() else { return Vec::new() };
        let now = definitions(self.catalogue, flow);
        let current = known.iter().filter(|(_, plan)| plan.definitions == now);
        let paths = current.filter_map(|(words, plan)| Some((words, self.possible(flow, plan)?)));
        path_hints(&self.template.words, paths)
    }

    fn flow(&self) -> Option<&'a Flow> {
        self.state.steps.get(&self.step).and_then(|step| self.state.flow_of(step))
    }

    /// The nodes of a learned plan, if it is a path through this flow that may be followed now.
    fn possible<'p>(&self, flow: &Flow, plan: &'p LearnedPlan) -> Option<&'p [String]> {
        let (name, path) = plan.flow_path()?;
        (name == flow.name && self.state.may_follow(self.step, flow, path)).then_some(path)
    }
}
