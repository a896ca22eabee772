//! The names that labels may have: scenes and tools as catalogued, models as configured. Any other
//! name counts as `other`.

use std::collections::HashMap;

use super::grid::{Axis, axis};
use crate::llm::OFFLINE;
use crate::scene::Catalogue;

/// What stands for a name that is not on the list.
const OTHER: &str = "other";

/// The lists. A name's position in them is what a figure is kept by; the last one is `other`.
#[derive(Debug, Clone)]
pub struct Names {
    scenes: HashMap<String, SceneNames>,
    models: Vec<String>,
    pub(super) scene_axis: Axis,
    pub(super) tool_axis: Axis,
    pub(super) model_axis: Axis,
}

#[derive(Debug, Clone)]
struct SceneNames {
    at: usize,
    tools: HashMap<String, usize>,
    /// The place of a tool that the scene does not have.
    other: usize,
}

impl Names {
    /// The names of these scenes with their tools, and of these models beside the embedded rules.
    pub fn new(catalogue: &Catalogue, models: &[String]) -> Self {
        let mut scenes = HashMap::new();
        let mut scene_axis = Vec::new();
        let mut tool_axis = Vec::new();
        for (at, scene) in catalogue.iter().enumerate() {
            let row = |tool: &str| vec![scene.name.clone(), tool.to_owned()];
            let mut tools = HashMap::new();
            for tool in &scene.tools {
                tools.insert(tool.name.clone(), tool_axis.len());
                tool_axis.push(row(&tool.name));
            }
            scenes.insert(scene.name.clone(), SceneNames { at, tools, other: tool_axis.len() });
            tool_axis.push(row(OTHER));
            scene_axis.push(vec![scene.name.clone()]);
        }
        scene_axis.push(vec![OTHER.to_owned()]);
        tool_axis.push(vec![OTHER.to_owned(), OTHER.to_owned()]);
        let models: Vec<String> = models.iter().cloned().chain([OFFLINE.to_owned()]).collect();
        let model_axis = axis(models.iter().map(String::as_str).chain([OTHER]));
        Self { scenes, models, scene_axis: scene_axis.into(), tool_axis: tool_axis.into(), model_axis }
    }

    pub(super) fn scene(&self, name: &str) -> usize {
        self.scenes.get(name).map_or(self.scenes.len(), |scene| scene.at)
    }

    pub(super) fn tool(&self, scene: &str, tool: &str) -> usize {
        match self.scenes.get(scene) {
            Some(scene) => scene.tools.get(tool).copied().unwrap_or(scene.other),
            None => self.tool_axis.len().saturating_sub(1),
        }
    }

    /// The scene's name at a place.
    pub(super) fn scene_name(&self, at: usize) -> &str {
        self.scene_axis.get(at).and_then(|row| row.first()).map_or(OTHER, String::as_str)
    }

    /// The tool's name at a place.
    pub(super) fn tool_name(&self, at: usize) -> &str {
        self.tool_axis.get(at).and_then(|row| row.last()).map_or(OTHER, String::as_str)
    }

    pub(super) fn model(&self, name: &str) -> usize {
        // Models are few.
        self.models.iter().position(|model| model == name).unwrap_or(self.models.len())
    }
}
