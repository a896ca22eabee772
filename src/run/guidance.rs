//! The guidance of a request's caller for the planner: constraints, and the state of things.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::Effect;

/// The guidance of a request for its plan besides its words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanGuidance {
    /// The constraints of the plan.
    #[serde(skip_serializing_if = "PlanConstraints::is_empty")]
    pub constraints: PlanConstraints,
    /// The state of things as the caller knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_state: Option<Value>,
    /// Whether the user answers for `current_state`, so that a write's values may come from it: the caller acts as this user
    /// and does not only name one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_vouched: bool,
}

impl PlanGuidance {
    /// Returns what a request says; `None` if nothing. `is_user` says that the caller acts as the user and does not only name
    /// one.
    pub fn of(
        constraints: Option<PlanConstraints>,
        current_state: Option<Value>,
        is_user: bool,
    ) -> Option<Self> {
        let constraints = constraints.unwrap_or_default();
        let is_vouched = is_user && current_state.is_some();
        let says = !constraints.is_empty() || current_state.is_some();
        says.then_some(Self { constraints, current_state, is_vouched })
    }
}

/// The constraints that every plan and call of a run has to keep to. All of it only narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanConstraints {
    /// Sentences for the planner; at most 16 of at most 500 characters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Only these scenes may take part; all, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_scenes: Vec<String>,
    /// These scenes may not take part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_scenes: Vec<String>,
    /// These tools may not be called, each as `Scene.Tool`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_tools: Vec<String>,
    /// Nothing may be written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Maximum number of steps of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_steps: Option<u32>,
}

impl PlanConstraints {
    /// Returns whether they demand nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a scene may take part.
    pub fn allows_scene(&self, scene: &str) -> bool {
        let is = |name: &String| name == scene;
        (self.only_scenes.is_empty() || self.only_scenes.iter().any(is))
            && !self.without_scenes.iter().any(is)
    }

    /// Returns whether a tool of a scene may be called.
    pub fn allows_tool(&self, scene: &str, tool: &str, effect: Effect) -> bool {
        let is = |name: &String| name.split_once('.') == Some((scene, tool));
        let writes = self.read_only && effect == Effect::Write;
        self.allows_scene(scene) && !writes && !self.without_tools.iter().any(is)
    }
}
