//! The work of a flow's step: a path is planned, then its nodes are entered one after the other, each as a step of its
//! own. The flow's step runs until the last of them has ended.

use serde::Serialize;

use super::super::action::Action;
use super::super::event::{Event, Fault, Subject};
use super::super::learned::{LearnMode, PathRecall};
use super::super::next::record;
use super::super::state::{DueQuestion, RunState, StepState};
use crate::flow::{self, Flow, MissingNode, NextNode, NodeKind, PathMaker};
use crate::plan::StepStatus;

/// Maximum number of nodes that all flows of a run enter, whatever their own bounds are.
pub(super) const MAX_NODE_STEPS: usize = 1000;

/// The progress of a flow's step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FlowWork {
    /// The knowledge about paths for requests like this one, once it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<PathRecall>,
    /// The template about whose path the run's end said something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The planned path, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<PlannedPath>,
    /// The numbers of the steps of its nodes, in the order in which they were entered.
    pub nodes: Vec<u32>,
}

/// The path through a flow that was planned for a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedPath {
    /// The names of its nodes, in order.
    pub path: Vec<String>,
    /// Who planned it. Where nobody did, the conditions of the graph alone decide, and the path is the one through the
    /// full graph.
    pub maker: PathMaker,
    /// A node that the planner missed in the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_node: Option<MissingNode>,
}

impl PlannedPath {
    /// The path that is followed: none where the conditions of the graph alone decide.
    pub fn followed(&self) -> &[String] {
        if self.maker == PathMaker::Graph { &[] } else { &self.path }
    }
}

impl FlowWork {
    pub(super) fn fold(&mut self, event: &Event) {
        match event {
            Event::PathRecalled { recall, .. } => self.recall = Some(recall.clone()),
            Event::PathObserved { lesson, .. } => self.template = Some(lesson.template.clone()),
            Event::FlowPlanned { path, maker, missing_node, .. } => {
                let missing_node = missing_node.clone();
                self.planned = Some(PlannedPath { path: path.clone(), maker: *maker, missing_node });
            }
            Event::NodeStarted { step, .. } => self.nodes.push(*step),
            _ => {}
        }
    }

    /// The template of the path, if one was recalled or something was learned of it.
    pub(in crate::run) fn learned_template(&self) -> Option<&str> {
        let recalled = self.recall.as_ref().filter(|recall| recall.path.is_some());
        self.template.as_deref().or_else(|| recalled?.template.as_deref())
    }

    /// The path of earlier executions that serves the request, if it is possible now.
    fn recalled_path(&self, run: &RunState, step: u32, flow: &Flow) -> Option<Vec<String>> {
        let path = self.recall.as_ref()?.path.as_ref()?;
        run.may_follow(step, flow, path).then(|| path.clone())
    }

    /// The path to be planned, the next node, or the end of the step.
    pub(super) fn actions(&self, run: &RunState, number: u32, step: &StepState) -> Vec<Action> {
        let last = self.nodes.last().and_then(|node| run.steps.get(node));
        if let Some(node) = last.filter(|node| node.status != StepStatus::Completed) {
            return match (node.status.is_terminal(), &node.error) {
                (false, _) => Vec::new(),
                (true, error) => vec![record(node_failed(number, node, error.as_ref()))],
            };
        }
        let Some(flow) = run.flow_of(step) else {
            let why = format!("the plan has no definition of the flow {}", step.step.label());
            return vec![record(Event::step_failed(number, Fault::new("flow.unknown", why)))];
        };
        let Some(planned) = &self.planned else {
            return self
                .planning(run, (number, step), flow)
                .unwrap_or_else(|error| vec![record(Event::step_failed(number, error))]);
        };
        match run.next_node_of(number, flow, planned) {
            NextNode::Node { .. } if run.node_steps() >= MAX_NODE_STEPS => {
                let why = format!("the flows of one run enter at most {MAX_NODE_STEPS} nodes together");
                vec![record(Event::step_failed(number, Fault::new("flow.too_many_nodes", why)))]
            }
            NextNode::Node { name, left } => {
                let scene = match flow.node(&name).map(|node| &node.kind) {
                    Some(NodeKind::Tool { scene, .. }) => scene.clone(),
                    _ => flow.name.clone(),
                };
                let step = run.last_step() + 1;
                vec![record(Event::NodeStarted { step, parent: number, node: name, scene, left })]
            }
            NextNode::End => {
                vec![record(Event::StepCompleted { step: number, result: self.result(run) })]
            }
            NextNode::Stuck { code, why } => vec![record(Event::step_failed(number, Fault::new(code, why)))],
        }
    }

    /// The question for the path, or the path that is followed where none can be planned. The error says why there is
    /// neither.
    fn planning(
        &self,
        run: &RunState,
        (number, step): (u32, &StepState),
        flow: &Flow,
    ) -> Result<Vec<Action>, Fault> {
        let along_graph = || {
            let path = flow::full_path(flow, &run.given_to_flow(flow));
            record(flow_planned(number, path, PathMaker::Graph))
        };
        if run.follows_graphs() {
            return Ok(vec![along_graph()]);
        }
        let by_rules = || {
            let path = flow::rules_path(flow, run.request_of_flow(step), &run.given_to_flow(flow));
            let maker = if path.is_empty() { PathMaker::Graph } else { PathMaker::Rules };
            record(flow_planned(number, path, maker))
        };
        let subject = Subject::Path { step: number };
        let looks_up = match run.settings().learn {
            LearnMode::Off => false,
            // Hints are for the path planner, which is not asked at `basic`.
            LearnMode::Hints => run.may_plan_path(number),
            LearnMode::Reuse => true,
        };
        if looks_up && !run.is_plan_only() && self.recall.is_none() {
            return Ok(vec![Action::LookUpPath { step: number }]);
        }
        if let Some(path) = self.recalled_path(run, number, flow) {
            return Ok(vec![record(flow_planned(number, path, PathMaker::Learned))]);
        }
        match run.due_question(subject, run.settings().max_retries) {
            DueQuestion::GiveUp(_) if !run.may_ask(subject) => Ok(vec![by_rules()]),
            DueQuestion::GiveUp(_) if run.settings().fallback_enabled => Ok(vec![along_graph()]),
            DueQuestion::GiveUp(error) => Err(error),
            due => Ok(run.question_actions(due, subject)),
        }
    }

    /// The result of the last node that has one.
    fn result(&self, run: &RunState) -> String {
        let results = self.nodes.iter().rev().filter_map(|node| run.steps.get(node)?.result.as_ref());
        results.into_iter().find(|result| !result.trim().is_empty()).cloned().unwrap_or_default()
    }
}

impl RunState {
    /// Returns what is due for the paths of a plan that is made and not executed: those of its flows are planned one after the
    /// other. `None` once all are.
    pub(in crate::run) fn draft_actions(&self) -> Option<Vec<Action>> {
        let unplanned =
            |(_, step): &(&u32, &StepState)| step.flow().is_some_and(|work| work.planned.is_none());
        let (number, step) = self.plan_steps().find(unplanned)?;
        let unknown =
            || Fault::new("flow.unknown", format!("the plan has no definition of {}", step.step.label()));
        let due = self.flow_of(step).ok_or_else(unknown).and_then(|flow| {
            step.flow().map_or(Ok(Vec::new()), |work| work.planning(self, (*number, step), flow))
        });
        Some(due.unwrap_or_else(|error| vec![record(Event::RunFailed { error })]))
    }
}

/// The end of a flow's step after one of its nodes ended without completing: for the same reason.
fn node_failed(number: u32, node: &StepState, error: Option<&Fault>) -> Event {
    let error = error.cloned().unwrap_or_else(|| {
        Fault::new("flow.node_failed", format!("the node {} did not complete", node.step.label()))
    });
    let status = match node.status {
        StepStatus::NeedsInput => StepStatus::NeedsInput,
        _ => StepStatus::Failed,
    };
    Event::StepFailed { step: number, status, error }
}

/// A path that no model was asked for.
fn flow_planned(step: u32, path: Vec<String>, maker: PathMaker) -> Event {
    Event::FlowPlanned { step, path, maker, call: None, missing_node: None }
}
