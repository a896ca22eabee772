//! Plans: what they are, how they look on the wire, when they are valid, what may run next, and
//! how they are shown to people.
//!
//! **Invariant:** this module is pure and knows no other module of the crate but [`crate::unseen`]. No clock, no I/O.

mod depends;
mod diff;
mod format;
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
pub use format::{KnownCalls, mermaid, text, text_with_calls};
pub use schedule::{blocked_by, ready};
pub use size::{MAX_PLAN_BYTES, MAX_VERSIONS, MAX_VERSIONS_BYTES, size, taken};
pub use status::{IllegalTransition, PlanStatus, StepStatus};
pub use validate::{Known, Limits, Problem, normalise, structure, validate};

/// The public id of a plan: a UUIDv7, so ids sort by the time they were made. One task id serves a
/// whole run; re-plans are versions inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub Uuid);

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A plan as a maker writes it: the arguments of the forced tool `CreateExecutionPlan`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Plan {
    /// Whether any scene has to act. `false` goes with an empty list of steps.
    pub needs_execution: bool,
    /// Why this plan, in the maker's words. Shown to people, never interpreted.
    #[serde(default)]
    pub reasoning: String,
    /// The steps, in the order they were written. Their order of running comes from `depends_on_step`.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Parts of the request that no scene serves, in the user's words: the answer names them as not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<String>,
}

/// One unit of a plan: a scene, what it is to do, and what must be done before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Step {
    /// Unique in the run, counted from 1; a re-plan's numbers continue those of earlier versions.
    pub step_number: u32,
    /// The scene that does it, by its exact name.
    pub scene_name: String,
    /// What this step is for, in words; all that the scene is told to do.
    #[serde(default)]
    pub purpose: String,
    /// Tools the maker expects to be called. A hint for reads; a write that is not named here is
    /// not offered to the scene's model.
    #[serde(default)]
    pub expected_tools: Vec<String>,
    /// The steps whose results this one needs: null, a number or a list of numbers.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub depends_on_step: DependsOn,
    /// Calls whose arguments the maker already knows: shown to whoever approves the plan, whose yes
    /// covers a write with exactly these arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared_calls: Vec<PreparedCall>,
    /// The maker is not sure that its writes were asked for: each has to be confirmed by the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
}

/// A call of one of a step's expected tools, as far as it is known before the step begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PreparedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments; what is not known yet is left out.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}
