//! The work of a node's step: one call, one question to a model, or nothing.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::super::action::Action;
use super::super::event::{Event, Fault, Outcome, Subject};
use super::super::next::record;
use super::super::state::{DueQuestion, RunState, StepState};
use super::text_of;
use crate::flow::{LeftPath, NodeKind};

/// The progress of a node's step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeWork {
    /// The number of the flow's step.
    pub parent: u32,
    /// The node's name.
    pub node: String,
    /// How the node differs from the planned one, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftPath>,
    /// When it was entered.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The output of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why its call could not be prepared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unprepared: Option<String>,
}

impl NodeWork {
    pub(super) fn fold(&mut self, event: &Event) {
        match event {
            Event::NodeReplied { output, .. } => self.output = Some(output.clone()),
            Event::Prepared { unprepared, .. } => {
                self.unprepared = unprepared.first().map(|call| format!("{}: {}", call.tool, call.why));
            }
            _ => {}
        }
    }

    /// The call or the question of the node, or its end.
    pub(super) fn actions(&self, run: &RunState, number: u32, step: &StepState) -> Vec<Action> {
        let flow = run.steps.get(&self.parent).and_then(|parent| run.flow_of(parent));
        let Some(node) = flow.and_then(|flow| flow.node(&self.node)) else {
            let why = format!("the flow has no node {}", self.node);
            return vec![record(Event::step_failed(number, Fault::new("flow.unknown_node", why)))];
        };
        if step.prepared {
            return vec![record(self.end_after_call(run, number, step))];
        }
        match &node.kind {
            NodeKind::Condition => vec![record(completed(number, String::new()))],
            NodeKind::Native { .. } | NodeKind::Tool { .. } | NodeKind::Approval { .. } => {
                vec![Action::Prepare { step: number }]
            }
            NodeKind::Llm { fallback, .. } => self.question(run, number, fallback.is_some()),
        }
    }

    /// The question to the node's model, its end, or the call that is made where no model answers.
    fn question(&self, run: &RunState, number: u32, has_fallback: bool) -> Vec<Action> {
        if let Some(output) = &self.output {
            return vec![record(completed(number, text_of(output)))];
        }
        let subject = Subject::Node { step: number };
        match run.due_question(subject, run.settings().max_retries) {
            DueQuestion::GiveUp(_) if has_fallback && run.settings().fallback_enabled => {
                vec![Action::Prepare { step: number }]
            }
            DueQuestion::GiveUp(error) => vec![record(Event::step_failed(number, error))],
            due => run.question_actions(due, subject),
        }
    }

    fn end_after_call(&self, run: &RunState, number: u32, step: &StepState) -> Event {
        if let Some(why) = &self.unprepared {
            return Event::step_failed(number, Fault::new("flow.unprepared", why.clone()));
        }
        let Some(call) = step.round_calls.last() else { return completed(number, String::new()) };
        match run.outcome(*call) {
            Some(Outcome::Ok { .. }) => completed(number, run.plain_result(step)),
            Some(outcome) => {
                let error = outcome.fault().cloned();
                Event::step_failed(
                    number,
                    error.unwrap_or_else(|| Fault::new("flow.node_failed", "its call has no result")),
                )
            }
            None => Event::step_failed(number, Fault::new("flow.node_failed", "its call has no result")),
        }
    }
}

fn completed(step: u32, result: String) -> Event {
    Event::StepCompleted { step, result }
}
