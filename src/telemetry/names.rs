//! The allowed label values: scenes, tools and nodes of flows of the catalogue, and configured models. Any other name
//! counts as `other`.
//!
//! The lists only grow: a removed name keeps its index, and so its series. Names added by configuration
//! changes are bounded, since the number of changes is not.

use std::collections::HashMap;
use std::sync::Arc;

use super::OTHER;
use super::grid::Axis;
use super::tenant_metrics::TenantBound;
use crate::llm::OFFLINE;
use crate::scene::Catalogue;

/// The fixed index of [`OTHER`].
const OTHER_INDEX: usize = 0;

/// Maximum number of scenes after configuration changes. Scenes present at startup are always listed.
pub(super) const MAX_SCENES: usize = 500;
/// The same for tools. Each scene has one extra row for tools that it does not have.
pub(super) const MAX_TOOLS: usize = 5_000;
/// The same for nodes of flows.
pub(super) const MAX_NODES: usize = 5_000;
/// The same for models.
pub(super) const MAX_MODELS: usize = 100;

/// The lists of label values. Metrics are indexed by a name's position; index 0 is `other`.
#[derive(Debug, Clone)]
pub struct LabelNames {
    scenes: HashMap<String, SceneLabels>,
    models: HashMap<String, usize>,
    /// By flow and node.
    nodes: HashMap<(String, String), usize>,
    pub(super) scene_axis: Axis,
    pub(super) tool_axis: Axis,
    pub(super) model_axis: Axis,
    pub(super) node_axis: Axis,
    /// Fixed at the start: tenants get their labels as they are seen.
    pub(super) tenants: TenantBound,
}

#[derive(Debug, Clone)]
struct SceneLabels {
    index: usize,
    tools: HashMap<String, usize>,
    /// The index for tools that the scene does not have.
    other_tool: usize,
}

impl LabelNames {
    /// The names of these scenes with their tools, of these models and of the offline model. No tenant has a label
    /// of its own.
    pub fn new(catalogue: &Catalogue, models: &[String]) -> Self {
        let mut lists = LabelNamesBuilder {
            scenes: HashMap::new(),
            models: HashMap::new(),
            nodes: HashMap::new(),
            node_rows: AxisRows::new(&[OTHER, OTHER], usize::MAX),
            scene_rows: AxisRows::new(&[OTHER], usize::MAX),
            tool_rows: AxisRows::new(&[OTHER, OTHER], usize::MAX),
            model_rows: AxisRows::new(&[OTHER], usize::MAX),
        };
        lists.add(catalogue, models);
        lists.build(TenantBound::default())
    }

    /// The same, and labels for tenants.
    pub fn with_tenants(self, tenants: TenantBound) -> Self {
        Self { tenants, ..self }
    }

    /// Adds the names of a changed configuration, up to the bounds; `None` if that adds nothing.
    pub fn extended(&self, catalogue: &Catalogue, models: &[String]) -> Option<Self> {
        let mut lists = LabelNamesBuilder {
            scenes: self.scenes.clone(),
            models: self.models.clone(),
            nodes: self.nodes.clone(),
            node_rows: AxisRows::of(&self.node_axis, MAX_NODES),
            scene_rows: AxisRows::of(&self.scene_axis, MAX_SCENES),
            tool_rows: AxisRows::of(&self.tool_axis, MAX_TOOLS),
            model_rows: AxisRows::of(&self.model_axis, MAX_MODELS),
        };
        lists.add(catalogue, models);
        let new = lists.build(self.tenants.clone());
        let size = |names: &Self| {
            [&names.scene_axis, &names.tool_axis, &names.model_axis, &names.node_axis].map(|axis| axis.len())
        };
        (size(&new) != size(self)).then_some(new)
    }

    pub(super) fn scene_index(&self, name: &str) -> usize {
        self.scenes.get(name).map_or(OTHER_INDEX, |scene| scene.index)
    }

    pub(super) fn tool_index(&self, scene: &str, tool: &str) -> usize {
        match self.scenes.get(scene) {
            Some(scene) => scene.tools.get(tool).copied().unwrap_or(scene.other_tool),
            None => OTHER_INDEX,
        }
    }

    pub(super) fn scene_name(&self, at: usize) -> &str {
        self.scene_axis.get(at).and_then(|row| row.first()).map_or(OTHER, String::as_str)
    }

    pub(super) fn tool_name(&self, at: usize) -> &str {
        self.tool_axis.get(at).and_then(|row| row.last()).map_or(OTHER, String::as_str)
    }

    pub(super) fn node_index(&self, flow: &str, node: &str) -> usize {
        self.nodes.get(&(flow.to_owned(), node.to_owned())).copied().unwrap_or(OTHER_INDEX)
    }

    pub(super) fn model_index(&self, name: &str) -> usize {
        self.models.get(name).copied().unwrap_or(OTHER_INDEX)
    }
}

/// The rows of a growing axis.
struct AxisRows {
    rows: Vec<Vec<String>>,
    max: usize,
}

impl AxisRows {
    fn new(other: &[&str], max: usize) -> Self {
        let mut rows = Self { rows: Vec::new(), max };
        rows.add(other);
        rows
    }

    fn of(axis: &Axis, max: usize) -> Self {
        Self { rows: axis.to_vec(), max }
    }

    /// Adds a row and returns its index, or that of `other` if there is no room.
    fn add(&mut self, row: &[&str]) -> usize {
        // One row is `other`, which the limit does not count.
        if self.rows.len() > self.max {
            return OTHER_INDEX;
        }
        self.rows.push(row.iter().map(|&name| name.to_owned()).collect());
        self.rows.len() - 1
    }
}

/// Builds [`LabelNames`].
struct LabelNamesBuilder {
    scenes: HashMap<String, SceneLabels>,
    models: HashMap<String, usize>,
    nodes: HashMap<(String, String), usize>,
    node_rows: AxisRows,
    scene_rows: AxisRows,
    tool_rows: AxisRows,
    model_rows: AxisRows,
}

impl LabelNamesBuilder {
    fn add(&mut self, catalogue: &Catalogue, models: &[String]) {
        for scene in catalogue.all() {
            let rows = &mut self.tool_rows;
            // A scene without room is not listed, and neither are its tools.
            if !self.scenes.contains_key(&scene.name) {
                let at = self.scene_rows.add(&[&scene.name]);
                if at == OTHER_INDEX {
                    continue;
                }
                let other = rows.add(&[&scene.name, OTHER]);
                self.scenes.insert(
                    scene.name.clone(),
                    SceneLabels { index: at, tools: HashMap::new(), other_tool: other },
                );
            }
            let Some(names) = self.scenes.get_mut(&scene.name) else { continue };
            for tool in scene.tools.iter().chain(&scene.table_tools) {
                if !names.tools.contains_key(&tool.name) {
                    let at = rows.add(&[&scene.name, &tool.name]);
                    if at != OTHER_INDEX {
                        names.tools.insert(tool.name.clone(), at);
                    }
                }
            }
        }
        for flow in catalogue.flows() {
            for node in &flow.nodes {
                let key = (flow.name.clone(), node.name.clone());
                if !self.nodes.contains_key(&key) {
                    let at = self.node_rows.add(&[&flow.name, &node.name]);
                    if at != OTHER_INDEX {
                        self.nodes.insert(key, at);
                    }
                }
            }
        }
        for model in models.iter().map(String::as_str).chain([OFFLINE]) {
            if !self.models.contains_key(model) {
                let at = self.model_rows.add(&[model]);
                if at != OTHER_INDEX {
                    self.models.insert(model.to_owned(), at);
                }
            }
        }
    }

    fn build(self, tenants: TenantBound) -> LabelNames {
        let axis = |rows: AxisRows| -> Axis { Arc::from(rows.rows) };
        LabelNames {
            scenes: self.scenes,
            models: self.models,
            nodes: self.nodes,
            tenants,
            node_axis: axis(self.node_rows),
            scene_axis: axis(self.scene_rows),
            tool_axis: axis(self.tool_rows),
            model_axis: axis(self.model_rows),
        }
    }
}
