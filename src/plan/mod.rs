//! Plans: their wire form, validation, scheduling, statuses, and rendering for people.
//!
//! **Invariant:** this module is pure and knows no other module of the crate but [`crate::unseen`]. No clock, no I/O.

mod depends;
mod diff;
mod expect;
mod fingerprint;
mod format;
mod reference;
mod schedule;
mod size;
mod status;
#[cfg(test)]
mod tests;
mod validate;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

pub use depends::DependsOn;
pub use diff::diff;
pub use expect::{ExpectedRange, StepExpectation};
pub use fingerprint::fingerprint;
pub use format::{KnownCalls, mermaid, mermaid_with_notes, text, text_with_calls, text_with_status};
pub use reference::Reference;
pub use schedule::{blocked_by, ready};
pub use size::{MAX_PLAN_BYTES, MAX_VERSIONS, MAX_VERSIONS_BYTES, check_size, json_size};
pub use status::{IllegalTransition, PlanStatus, StepStatus};
pub use validate::{
    KnownScenes, PlanLimits, PlanProblem, depends_on, find_cycles, name_problems, normalise,
    reference_problems, validate, validate_structure,
};

/// The public id of a plan: a UUIDv7, so ids sort by creation time. A run has one task id; replans are
/// versions of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub Uuid);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A plan as its author writes it: the arguments of the forced tool `CreateExecutionPlan`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Plan {
    /// Whether any scene has to act. If `false`, the list of steps is empty.
    pub needs_execution: bool,
    /// The author's reasoning. Shown to people, never interpreted.
    #[serde(default)]
    pub reasoning: String,
    /// The steps, in the order they were written. `depends_on_step` determines the order of execution.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Parts of the request that no scene serves, in the user's words. The answer lists them as not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<String>,
    /// Those parts that only tools serve which are switched off. The answer says that they are not available now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// The answer to a request that needs no scene, if the author wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Plan {
    /// The plan that consists of one flow.
    pub fn of_flow(flow: &str, purpose: &str) -> Self {
        let step = Step {
            step_number: 1,
            kind: StepKind::Flow,
            scene_name: flow.to_owned(),
            purpose: purpose.to_owned(),
            ..Step::default()
        };
        Self { needs_execution: true, steps: vec![step], ..Self::default() }
    }
}

/// One step of a plan: a scene, its purpose, and its dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Step {
    /// Unique in the run, counted from 1; the numbers of a replan continue those of earlier versions.
    pub step_number: u32,
    /// Its executor. Left out of the wire form, and so of hashes, where it is a scene.
    #[serde(default, skip_serializing_if = "StepKind::is_scene")]
    pub kind: StepKind,
    /// The exact name of the scene that executes it; `LLM` for a step of kind `llm`, `PROGRAM` for one of kind `code`.
    #[serde(default)]
    pub scene_name: String,
    /// The purpose of the step in words: the scene's only instruction.
    #[serde(default)]
    pub purpose: String,
    /// Tools that the author expects to be called. A hint for reads; a write that is not listed is not
    /// offered to the scene's model.
    #[serde(default)]
    pub expected_tools: Vec<String>,
    /// The steps that this one depends on: null, a number or a list of numbers.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub depends_on_step: DependsOn,
    /// Calls whose arguments the author already knows. They are shown to the approver, and the plan's
    /// approval covers a write with exactly these arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared_calls: Vec<PreparedCall>,
    /// **Invariant:** this module is pure and knows no other module of the crate but [`crate::invisible`]. No clock, no
    /// I/O.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// Expected tools that turn out to be unnecessary in some cases: the step may end without calling them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub if_needed: Vec<String>,
    /// What the author expects of the results of its tools, at most one entry a tool. Stated by people and by parts of a
    /// library's user; models are not asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<StepExpectation>,
    /// Of a step of kind `llm`: the values that its model gets, each constant or a [`Reference`].
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub inputs: Map<String, Value>,
    /// Of a step of kind `llm`: JSON Schema (2020-12) of what its model returns, an object. One with a text `text` where
    /// the author gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Value>,
    /// Of a step of kind `code`: the scenes whose tools its program may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenes: Vec<String>,
}

/// The name of what executes a step of kind `code`, where no scene has it.
pub const PROGRAM: &str = "PROGRAM";

/// The name of what executes a step of kind `llm`, where no scene has it.
pub const SYNTHESIS: &str = "LLM";

/// The kind of a step: what executes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepKind {
    /// A scene, whose model calls the scene's tools.
    #[default]
    Scene,
    /// A flow: a path through its nodes is planned when the step begins. The name of the scene is that of the flow.
    Flow,
    /// A model, which makes the step's `output` of its `inputs`, without a tool.
    Llm,
    /// A summary of the documents that the request names, part by part. The name of the scene is that of one that
    /// summarises.
    Summary,
    /// A program, which a model writes when the step begins, and which calls tools of the step's `scenes`.
    Code,
    /// A node of a flow. Such steps are added when their flow enters the node; no plan contains one.
    Node,
}

impl StepKind {
    fn is_scene(&self) -> bool {
        matches!(self, StepKind::Scene)
    }
}

impl Step {
    /// The name of what executes the step, for displays.
    pub fn label(&self) -> &str {
        match self.kind {
            StepKind::Scene
            | StepKind::Flow
            | StepKind::Llm
            | StepKind::Summary
            | StepKind::Code
            | StepKind::Node => &self.scene_name,
        }
    }

    /// The names of the scenes that take part in the step.
    pub fn scene_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.scene_name).chain(&self.scenes).map(String::as_str)
    }
}

/// A call of one of a step's expected tools, as far as its arguments are known before the step begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PreparedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments; unknown ones are omitted, and some may be a [`Reference`].
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

impl Step {
    /// The references among its inputs.
    pub fn input_references(&self) -> impl Iterator<Item = Reference> {
        self.inputs.values().filter_map(Reference::of)
    }
}

impl PreparedCall {
    /// The arguments that are references to results of earlier steps.
    pub fn references(&self) -> impl Iterator<Item = Reference> {
        self.arguments.values().filter_map(Reference::of)
    }
}
