//! The work of a step, by the kind of what executes it. Everything that is the same for all kinds (calls,
//! approvals, confirmations, the end of a step) is in the state machine itself.

mod code;
mod flow;
mod node;
mod scene;
mod summary;
mod synthesis;

use serde::Serialize;
use serde_json::Value;

use super::action::Action;
use super::event::Event;
use super::state::{RunState, StepState};
use crate::plan::StepKind;

pub(super) use code::DIVERGED;
pub use code::{CodeWork, ProgramStepCall, STAGED_CONFLICT, WrittenProgram};
pub use flow::{FlowWork, PlannedPath};
pub use node::NodeWork;
pub use scene::{Round, SceneWork};
pub(super) use summary::{DueSummary, is_about_money};
pub use summary::{SummaryWork, fitted_facts};
pub use synthesis::SynthesisWork;

/// The progress of a step, as far as it depends on its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StepWork {
    /// A scene, whose model calls the scene's tools.
    Scene(SceneWork),
    /// A flow, whose nodes have steps of their own.
    Flow(FlowWork),
    /// A model, which makes values of others.
    Synthesis(SynthesisWork),
    /// A summary of documents.
    Summary(SummaryWork),
    /// A program, which a model writes.
    Code(CodeWork),
    /// A node of a flow.
    Node(NodeWork),
}

impl StepWork {
    /// The work of a step that has not begun.
    pub(super) fn new(kind: StepKind) -> Self {
        match kind {
            StepKind::Scene => StepWork::Scene(SceneWork::default()),
            StepKind::Flow => StepWork::Flow(FlowWork::default()),
            StepKind::Llm => StepWork::Synthesis(SynthesisWork::default()),
            StepKind::Summary => StepWork::Summary(SummaryWork::default()),
            StepKind::Code => StepWork::Code(CodeWork::default()),
            StepKind::Node => StepWork::Node(NodeWork::default()),
        }
    }

    /// Returns what is due in a running step with no call open and no question to the user.
    pub(super) fn actions(&self, run: &RunState, number: u32, step: &StepState) -> Vec<Action> {
        match self {
            StepWork::Scene(work) => work.actions(run, number, step),
            StepWork::Flow(work) => work.actions(run, number, step),
            StepWork::Synthesis(work) => work.actions(run, number, step),
            StepWork::Summary(work) => work.actions(run, number, step),
            StepWork::Code(work) => work.actions(run, number),
            StepWork::Node(work) => work.actions(run, number, step),
        }
    }

    /// Folds what the executor replied, after its calls were added to the step.
    pub(super) fn fold(&mut self, event: &Event, calls: &[u32]) {
        match self {
            StepWork::Scene(work) => work.fold(event, calls),
            StepWork::Flow(work) => work.fold(event),
            StepWork::Synthesis(work) => work.fold(event),
            StepWork::Summary(work) => work.fold(event),
            StepWork::Code(work) => work.fold(event),
            StepWork::Node(work) => work.fold(event),
        }
    }
}

/// A model's output as text: its only text, or JSON.
fn text_of(output: &Value) -> String {
    let fields = output.as_object().map(|fields| fields.values().collect::<Vec<_>>()).unwrap_or_default();
    match fields.as_slice() {
        [Value::String(text)] => text.clone(),
        _ => output.to_string(),
    }
}
