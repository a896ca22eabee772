//! The path of a flow's step and its nodes, as the answer document tells them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::flow::{LeftPath, MissingNode, PathMaker};
use crate::plan::StepStatus;
use crate::run::{Fault, RunState, StepState};

/// The path of a flow's step, once there is one, and its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerFlow {
    /// The step of the plan.
    pub step_number: u32,
    /// The flow.
    pub flow: String,
    /// The names of the nodes of the planned path, in order. Where nobody planned it, those of a path through the full
    /// graph, which the conditions of the graph may leave.
    pub path: Vec<String>,
    /// Who planned it.
    pub planned_by: PathMaker,
    /// The nodes that were entered, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<AnswerNode>,
    /// The nodes that were not entered; absent as long as the step has not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// A node that the planner missed in the flow: a suggestion, which is not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_node: Option<MissingNode>,
}

/// A node that was entered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AnswerNode {
    /// Its name.
    pub node: String,
    /// The number of its own step in the run, which events name.
    pub step_number: u32,
    /// Its status.
    pub status: StepStatus,
    /// The planned node that was left for it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_path: Option<LeftPath>,
    /// When it was entered.
    #[schema(value_type = String, format = "date-time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub ended_at: Option<Timestamp>,
    /// Its result, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

impl AnswerFlow {
    /// The flow of a step; `None` for a step of another kind, and before its path is planned.
    pub fn of(state: &RunState, number: u32, step: &StepState) -> Option<Self> {
        let work = step.flow()?;
        let planned = work.planned.as_ref()?;
        let entered = work.nodes.iter().filter_map(|number| answer_node(*number, state.steps.get(number)?));
        let nodes: Vec<AnswerNode> = entered.collect();
        let flow = state.flow_of(step).filter(|_| step.status.is_terminal());
        let all = flow.into_iter().flat_map(|flow| &flow.nodes).map(|node| &node.name);
        let skipped = all.filter(|name| !nodes.iter().any(|node| node.node == **name)).cloned().collect();
        Some(Self {
            step_number: number,
            flow: step.step.scene_name.clone(),
            path: planned.path.clone(),
            planned_by: planned.maker,
            nodes,
            skipped,
            missing_node: planned.missing_node.clone(),
        })
    }

    /// The flows of a run's steps whose paths are planned, in order of the steps.
    pub fn of_run(state: &RunState) -> Vec<Self> {
        state.plan_steps().filter_map(|(number, step)| Self::of(state, *number, step)).collect()
    }

    /// The nodes that ran, where the path was left, and the nodes that were skipped, a line each, for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("path: {}", self.path.join(" → "))];
        if !self.nodes.is_empty() {
            let ran: Vec<String> = self.nodes.iter().map(AnswerNode::text).collect();
            lines.push(format!("ran: {}", ran.join(" → ")));
        }
        for node in &self.nodes {
            lines.extend(node.left_path.as_ref().map(|left| {
                format!("left the path before {} for {}: {}", left.planned, node.node, left.why)
            }));
        }
        if !self.skipped.is_empty() {
            lines.push(format!("skipped: {}", self.skipped.join(", ")));
        }
        lines
    }
}

impl AnswerNode {
    /// Its name, with its status unless it completed.
    fn text(&self) -> String {
        match self.status {
            StepStatus::Completed => self.node.clone(),
            status => format!("{} ({})", self.node, status.name()),
        }
    }
}

fn answer_node(number: u32, step: &StepState) -> Option<AnswerNode> {
    let work = step.node()?;
    Some(AnswerNode {
        node: work.node.clone(),
        step_number: number,
        status: step.status,
        left_path: work.left.clone(),
        started_at: work.started_at,
        ended_at: work.ended_at,
        result: step.result.clone().filter(|result| !result.is_empty()),
        error: step.error.clone(),
    })
}
