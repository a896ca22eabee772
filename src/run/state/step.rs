//! The progress of a step.

use serde::Serialize;

use crate::plan::{Step, StepStatus};
use crate::run::event::{Fault, Question};
use crate::run::work::{CodeWork, FlowWork, NodeWork, SceneWork, StepWork, SummaryWork, SynthesisWork};

/// A step and its progress.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepState {
    /// The step.
    pub step: Step,
    /// The plan version that added it.
    pub version: u32,
    /// Its status.
    pub status: StepStatus,
    /// Its progress, as far as it depends on what executes the step.
    #[serde(flatten)]
    pub work: StepWork,
    /// Ordinals of all its calls.
    pub calls: Vec<u32>,
    /// Ordinals of the calls of the last reply.
    pub round_calls: Vec<u32>,
    /// The calls among them that may not have ended.
    #[serde(skip)]
    pub(in crate::run) open_calls: Vec<u32>,
    /// Whether a call of the last reply writes, so that its calls are made one by one.
    #[serde(skip)]
    pub(in crate::run) is_sequential: bool,
    /// How many of its calls were begun.
    #[serde(skip)]
    pub(in crate::run) begun_calls: u32,
    /// The question to the user.
    pub question: Option<Question>,
    /// Its result, once completed.
    pub result: Option<String>,
    /// Why it ended without a result.
    pub error: Option<Fault>,
    /// Whether its calls were known without asking its scene's model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prepared: bool,
    /// The step that a patch put in its place after it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<u32>,
    /// Whether its end was recorded as unexpected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::run) noted: bool,
    /// Whether a recovery ended it: what it has not begun is not done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

impl StepState {
    /// A step of plan `version` that has not begun.
    pub(in crate::run) fn pending(step: Step, version: u32) -> Self {
        Self {
            work: StepWork::new(step.kind),
            step,
            version,
            status: StepStatus::Pending,
            calls: Vec::new(),
            round_calls: Vec::new(),
            open_calls: Vec::new(),
            is_sequential: false,
            begun_calls: 0,
            question: None,
            result: None,
            error: None,
            prepared: false,
            replaced_by: None,
            noted: false,
            stopped: false,
        }
    }

    /// Runs again after its end.
    pub(in crate::run) fn run_again(&mut self) {
        self.status = StepStatus::Running;
        self.question = None;
        self.result = None;
        self.error = None;
        self.noted = false;
        self.stopped = false;
    }

    /// Returns whether it was never begun. A step that is restarted keeps its earlier calls, so it is not
    /// untouched.
    pub fn is_untouched(&self) -> bool {
        self.status == StepStatus::Pending && self.calls.is_empty()
    }

    /// The progress of a scene's step.
    pub fn scene(&self) -> Option<&SceneWork> {
        if let StepWork::Scene(work) = &self.work { Some(work) } else { None }
    }

    /// The progress of a flow's step.
    pub fn flow(&self) -> Option<&FlowWork> {
        if let StepWork::Flow(work) = &self.work { Some(work) } else { None }
    }

    /// The progress of a node's step.
    pub fn node(&self) -> Option<&NodeWork> {
        if let StepWork::Node(work) = &self.work { Some(work) } else { None }
    }

    /// The progress of a step of kind llm.
    pub fn synthesis(&self) -> Option<&SynthesisWork> {
        if let StepWork::Synthesis(work) = &self.work { Some(work) } else { None }
    }

    /// The progress of a step of kind summary.
    pub fn summary(&self) -> Option<&SummaryWork> {
        if let StepWork::Summary(work) = &self.work { Some(work) } else { None }
    }

    /// The progress of a step of kind code.
    pub fn code(&self) -> Option<&CodeWork> {
        if let StepWork::Code(work) = &self.work { Some(work) } else { None }
    }
}
