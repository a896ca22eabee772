//! The level and mode of a run and of its steps, and what they allow.

use super::event::{Fault, Subject};
use super::settings::{PrepareMode, SceneMode};
use super::state::{RunState, StepState};
use crate::adapt::{Capabilities, ExecutionLevel, capabilities};
use crate::plan::StepStatus;

/// The fault code of what needs a model after the plan, at the level `basic`.
pub(super) const LEVEL_BASIC: &str = "level.basic";

/// The fault of a question that may not be asked.
pub(super) fn level_fault() -> Fault {
    Fault::new(LEVEL_BASIC, "at the level `basic` no model is asked after the plan")
}

impl RunState {
    /// The run's level: its own, lowered to the lowest of the scenes that its plans use.
    pub fn level(&self) -> Option<ExecutionLevel> {
        // Usually no scene has a level of its own.
        if self.started.as_ref().is_none_or(|started| started.levels.is_empty()) {
            return self.settings().level;
        }
        let scenes = self.plan_steps().flat_map(|(_, step)| step.step.scene_names());
        let flows = self.plan_steps().filter_map(|(_, step)| self.flow_of(step));
        let of_nodes = flows.flat_map(|flow| flow.tools()).map(|(scene, _)| scene);
        scenes.chain(of_nodes).fold(self.settings().level, |level, scene| {
            ExecutionLevel::narrowed(level, self.level_of_scene(scene))
        })
    }

    fn level_of_scene(&self, scene: &str) -> Option<ExecutionLevel> {
        self.started.as_ref().and_then(|started| started.levels.get(scene).copied())
    }

    /// Returns what may happen in the run.
    pub fn may(&self) -> Capabilities {
        capabilities(self.level(), self.settings().mode)
    }

    /// Returns what may happen in a step, the level of whose scene may be lower than the run's. A node has the lowest of the
    /// levels of the run, its flow and its scene, and a program that of all its scenes.
    pub(super) fn may_in(&self, step: &StepState) -> Capabilities {
        let flow = step.node().and_then(|node| self.steps.get(&node.parent));
        let scenes = flow.into_iter().chain([step]).flat_map(|step| step.step.scene_names());
        let level = scenes.fold(self.settings().level, |level, scene| {
            ExecutionLevel::narrowed(level, self.level_of_scene(scene))
        });
        capabilities(level, self.settings().mode)
    }

    /// Returns whether the step's scene may be asked: its level is not `basic`.
    pub fn asks_scene(&self, step: &StepState) -> bool {
        self.may_in(step).asks_models
    }

    /// Returns whether a model may be asked about `subject`.
    pub(super) fn may_ask(&self, subject: Subject) -> bool {
        match subject {
            // It precedes the plan.
            Subject::Ranking | Subject::Plan { .. } => true,
            Subject::Scene { step } | Subject::Path { step } | Subject::Summary { step, .. } => {
                self.asks_in(step)
            }
            Subject::Node { step } => self.has_node_model() && self.asks_in(step),
            Subject::Program { step } => self.has_program_model() && self.asks_in(step),
            Subject::Continuation { .. } | Subject::Answer => self.may().asks_models,
            // This was decided when the consultation was opened.
            Subject::Consultation { .. } | Subject::Vote { .. } => true,
        }
    }

    /// Why no model may be asked about `subject`.
    pub(super) fn unasked_fault(&self, subject: Subject) -> Fault {
        match subject {
            Subject::Node { step } if self.asks_in(step) => Fault::new(
                "llm.not_configured",
                "no model is configured for nodes of flows and steps without a tool, and the offline model executes none",
            ),
            Subject::Program { step } if self.asks_in(step) => Fault::new(
                "llm.not_configured",
                "no model is configured for programs, and the offline model writes none",
            ),
            _ => level_fault(),
        }
    }

    /// Whether the level of a step lets a model be asked.
    fn asks_in(&self, step: u32) -> bool {
        self.steps.get(&step).is_none_or(|step| self.asks_scene(step))
    }

    /// Whether a model may execute nodes: one is configured, or the run is of a release that did not record that.
    fn has_node_model(&self) -> bool {
        self.settings().node_model != Some(false)
    }

    /// Whether a model may write programs: one is configured.
    fn has_program_model(&self) -> bool {
        self.settings().program_model != Some(false)
    }

    /// Returns whether the call was left out after it failed.
    pub(super) fn is_left_out(&self, call: u32) -> bool {
        self.calls.get(&call).is_some_and(|call| call.left_out)
    }

    /// The tools that a completed step might have needed and that nobody decided about, because its scene may not be
    /// asked.
    pub fn undecided<'a>(&'a self, step: &'a StepState) -> impl Iterator<Item = &'a str> {
        let called = |tool: &&String| {
            let mut calls = step.calls.iter().filter_map(|call| self.calls.get(call));
            calls.any(|call| call.requested.tool == **tool)
        };
        let open = step.status == StepStatus::Completed && !self.asks_scene(step);
        let tools = step.step.if_needed.iter().filter(move |_| open);
        tools.filter(move |tool| !called(tool)).map(String::as_str)
    }

    /// Which calls a plan prepares: all, where nobody may be asked for them later. One plan is made for all scenes, so
    /// a single scene at `basic` is enough.
    pub fn prepare(&self) -> PrepareMode {
        match self.prepares_everything() {
            true => PrepareMode::Always,
            false => self.settings().prepare,
        }
    }

    /// Returns whether a plan has to prepare every call, because the run or a scene is at `basic`.
    pub fn prepares_everything(&self) -> bool {
        let basic = Some(ExecutionLevel::Basic);
        let scenes = self.started.iter().flat_map(|started| started.levels.values());
        self.settings().level == basic || scenes.copied().any(|level| Some(level) == basic)
    }

    /// How the calls of a step come about.
    pub fn scene_mode(&self, step: &StepState) -> SceneMode {
        if self.asks_scene(step) { self.settings().scenes } else { SceneMode::Prepared }
    }
}
