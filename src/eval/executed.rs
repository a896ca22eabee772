//! A request as it was executed.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::run::RunStatus;

/// A request as it was executed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecutedRequest {
    /// How it ended; absent if it could not be executed.
    pub status: Option<RunStatus>,
    /// The answer, or why it could not be executed.
    pub answer: String,
    /// Its steps, of all plans.
    pub steps: Vec<ExecutedStep>,
    /// Its tool calls that were started, without those that undo others.
    pub calls: Vec<ExecutedCall>,
    /// Calls to models.
    pub model_calls: u32,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Completion tokens.
    pub output_tokens: u64,
    /// Its cost in US dollars.
    pub cost_usd: f64,
    /// Milliseconds from its acceptance to its answer.
    pub ms: f64,
}

/// A step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutedStep {
    /// Its scene.
    pub scene: String,
    /// The place in the journal at which it began, if it did.
    pub began: Option<u64>,
    /// The place in the journal at which it completed, if it did.
    pub completed: Option<u64>,
}

/// A tool call that was started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecutedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// The place in the journal at which it began.
    pub began: Option<u64>,
    /// The place in the journal at which it ended, if it did.
    pub ended: Option<u64>,
    /// The JSON Schema of its tool's arguments.
    pub schema: Value,
}

impl ExecutedRequest {
    /// A request that could not be executed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { answer: why.into(), ..Self::default() }
    }

    /// The scenes that took part.
    pub fn scenes(&self) -> BTreeSet<String> {
        self.steps.iter().map(|step| step.scene.clone()).collect()
    }

    /// The scenes that completed a step.
    pub fn completed_scenes(&self) -> BTreeSet<String> {
        let completed = self.steps.iter().filter(|step| step.completed.is_some());
        completed.map(|step| step.scene.clone()).collect()
    }

    /// Returns whether it ended with a question.
    pub fn asked(&self) -> bool {
        self.status == Some(RunStatus::NeedsInput)
    }
}

impl std::fmt::Display for ExecutedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.tool, Value::Object(self.arguments.clone()))
    }
}
