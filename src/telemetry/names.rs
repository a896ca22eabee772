//! The names that labels may have: scenes and tools as catalogued, models as configured. Any other
//! name counts as `other`.
//!
//! Lists only grow: a name keeps its place, and so its series, when it goes away. What a changed
//! configuration brings is taken up to a bound, since nobody knows how often it changes.

use std::collections::HashMap;
use std::sync::Arc;

use super::grid::Axis;
use crate::llm::OFFLINE;
use crate::scene::Catalogue;

/// What stands for a name that is not on the list.
const OTHER: &str = "other";
/// Its place, which never changes.
const OTHER_AT: usize = 0;

/// Up to how many names a list is made longer by changed configurations; what was there at the start is
/// on it in any case.
pub(super) const MOST_SCENES: usize = 500;
/// Of scenes with their tools, each scene having a row more for tools that it has not.
pub(super) const MOST_TOOLS: usize = 5_000;
/// Of models.
pub(super) const MOST_MODELS: usize = 100;

/// The lists. A name's position in them is what a figure is kept by; the first one is `other`.
#[derive(Debug, Clone)]
pub struct Names {
    scenes: HashMap<String, SceneNames>,
    models: HashMap<String, usize>,
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
        let mut lists = Lists {
            scenes: HashMap::new(),
            models: HashMap::new(),
            scene_rows: Rows::new(&[OTHER], usize::MAX),
            tool_rows: Rows::new(&[OTHER, OTHER], usize::MAX),
            model_rows: Rows::new(&[OTHER], usize::MAX),
        };
        lists.add(catalogue, models);
        lists.done()
    }

    /// These and those of a changed configuration, as far as there is room for them; `None` where that
    /// adds nothing.
    pub fn with(&self, catalogue: &Catalogue, models: &[String]) -> Option<Self> {
        let mut lists = Lists {
            scenes: self.scenes.clone(),
            models: self.models.clone(),
            scene_rows: Rows::of(&self.scene_axis, MOST_SCENES),
            tool_rows: Rows::of(&self.tool_axis, MOST_TOOLS),
            model_rows: Rows::of(&self.model_axis, MOST_MODELS),
        };
        lists.add(catalogue, models);
        let new = lists.done();
        let size =
            |names: &Self| [&names.scene_axis, &names.tool_axis, &names.model_axis].map(|axis| axis.len());
        (size(&new) != size(self)).then_some(new)
    }

    pub(super) fn scene(&self, name: &str) -> usize {
        self.scenes.get(name).map_or(OTHER_AT, |scene| scene.at)
    }

    pub(super) fn tool(&self, scene: &str, tool: &str) -> usize {
        match self.scenes.get(scene) {
            Some(scene) => scene.tools.get(tool).copied().unwrap_or(scene.other),
            None => OTHER_AT,
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
        self.models.get(name).copied().unwrap_or(OTHER_AT)
    }
}

/// The rows of an axis that grows.
struct Rows {
    rows: Vec<Vec<String>>,
    most: usize,
}

impl Rows {
    fn new(other: &[&str], most: usize) -> Self {
        let mut rows = Self { rows: Vec::new(), most };
        rows.add(other);
        rows
    }

    fn of(axis: &Axis, most: usize) -> Self {
        Self { rows: axis.to_vec(), most }
    }

    /// The place of a new row, or of `other` where there is no room.
    fn add(&mut self, row: &[&str]) -> usize {
        // One row is for `other`.
        if self.rows.len() > self.most {
            return OTHER_AT;
        }
        self.rows.push(row.iter().map(|&name| name.to_owned()).collect());
        self.rows.len() - 1
    }
}

/// Names while they grow.
struct Lists {
    scenes: HashMap<String, SceneNames>,
    models: HashMap<String, usize>,
    scene_rows: Rows,
    tool_rows: Rows,
    model_rows: Rows,
}

impl Lists {
    fn add(&mut self, catalogue: &Catalogue, models: &[String]) {
        for scene in catalogue.iter() {
            let rows = &mut self.tool_rows;
            // A scene for which there is no room is none of the list, and neither are its tools.
            if !self.scenes.contains_key(&scene.name) {
                let at = self.scene_rows.add(&[&scene.name]);
                if at == OTHER_AT {
                    continue;
                }
                let other = rows.add(&[&scene.name, OTHER]);
                self.scenes.insert(scene.name.clone(), SceneNames { at, tools: HashMap::new(), other });
            }
            let Some(names) = self.scenes.get_mut(&scene.name) else { continue };
            for tool in &scene.tools {
                if !names.tools.contains_key(&tool.name) {
                    let at = rows.add(&[&scene.name, &tool.name]);
                    if at != OTHER_AT {
                        names.tools.insert(tool.name.clone(), at);
                    }
                }
            }
        }
        for model in models.iter().map(String::as_str).chain([OFFLINE]) {
            if !self.models.contains_key(model) {
                let at = self.model_rows.add(&[model]);
                if at != OTHER_AT {
                    self.models.insert(model.to_owned(), at);
                }
            }
        }
    }

    fn done(self) -> Names {
        let axis = |rows: Rows| -> Axis { Arc::from(rows.rows) };
        Names {
            scenes: self.scenes,
            models: self.models,
            scene_axis: axis(self.scene_rows),
            tool_axis: axis(self.tool_rows),
            model_axis: axis(self.model_rows),
        }
    }
}
