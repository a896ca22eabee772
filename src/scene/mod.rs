//! Scenes: domains with a name, a description, instructions and tools, and the catalogue of all.
//!
//! **Invariant:** a scene is data. Nothing here knows a scene by name.

pub mod arguments;
mod builder;
mod check;
mod document;
mod draft;
mod fault;
mod load;
mod options;
mod parameters;
mod read;
mod undo;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Known;
use crate::run::{ConfirmPolicy, Effect, Repeat, Undo};
use crate::schema::Schema;
use crate::tools::Tool;

pub use builder::{SceneBuilder, ToolBuilder};
pub use fault::{Fault, Severity};
pub use load::{Folder, Loaded, Loader, load, load_dir};
pub use options::Options;

/// A scene as its `scene.toml` (or a builder) describes it, checked.
#[derive(Clone, Serialize)]
pub struct Scene {
    /// Unique; what plans call it.
    pub name: String,
    /// What it is for, as the planner reads it.
    pub description: String,
    /// What its own model is told.
    pub instructions: String,
    /// Requests it serves, in several languages.
    pub examples: Vec<Example>,
    /// Most tool calls it works on at once.
    pub concurrency: u32,
    /// Most tool calls waiting for a place, and most questions to its model at once; more are refused.
    pub mailbox: u32,
    /// `[settings]`, overlaid by `scenes.settings` of the configuration.
    pub settings: Value,
    /// SQL that makes its tables, run at every start (`CREATE TABLE IF NOT EXISTS …`).
    pub schema_sql: Option<String>,
    /// Which of its writes the user is asked to confirm, where it does not go by the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmPolicy>,
    /// Most write calls that a run in which it takes part may begin unasked, where that is more than the
    /// configuration allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_writes: Option<u32>,
    /// Its tools, in the order written.
    pub tools: Vec<SceneTool>,
}

/// A request that a scene serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The user's words.
    pub say: String,
    /// The tool that serves it, where one does.
    #[serde(default)]
    pub tool: Option<String>,
}

/// A tool of a scene.
#[derive(Clone, Serialize)]
pub struct SceneTool {
    /// Unique in the scene; letters, digits and `_`, at most 64.
    pub name: String,
    /// What it does, as models read it.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub parameters: Schema,
    /// Whether it changes anything.
    pub effect: Effect,
    /// How it may be repeated when its outcome is unknown.
    pub repeat: Repeat,
    /// For what a person is asked, where the configuration goes by what scenes say.
    #[serde(skip_serializing_if = "ToolApproval::is_none")]
    pub approval: ToolApproval,
    /// How a finished write is undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// The arguments that make two calls the same; empty means all.
    pub identity: Vec<String>,
    /// How long one call may take, in milliseconds.
    pub timeout_ms: u64,
    /// How much of its result a model sees, in bytes of JSON.
    pub max_result_bytes: usize,
    /// Sentences for its result, by language: templates over the result and `arguments`.
    pub say: BTreeMap<String, String>,
    /// Whether an equal write in the same step is a new act, and no repetition by mistake.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// Whether what it reads may change at any moment, so that it is read each time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// Questions by which the user confirms a call, by language: templates over `arguments`. They say
    /// nothing of what is called, so a change of them changes no definition.
    #[serde(skip)]
    pub confirm: BTreeMap<String, String>,
    /// Where it is written: the native name or the HTTP request, for the catalogue's hash.
    pub source: Value,
    /// What is called.
    #[serde(skip)]
    pub tool: Arc<dyn Tool>,
    /// The compiled schema.
    #[serde(skip)]
    pub validator: Arc<jsonschema::Validator>,
}

/// For what a person is asked before a tool writes (`approval` of a scene or a tool).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolApproval {
    /// For nothing.
    #[default]
    None,
    /// For a plan that expects it.
    Plan,
    /// For each of its calls, with the arguments.
    Call,
    /// For both.
    Required,
}

impl ToolApproval {
    /// The words of `scene.toml`.
    pub(crate) const WORDS: [(&str, ToolApproval); 4] = [
        ("none", ToolApproval::None),
        ("plan", ToolApproval::Plan),
        ("call", ToolApproval::Call),
        ("required", ToolApproval::Required),
    ];

    /// Whether a plan that expects the tool needs a yes.
    pub fn of_plans(self) -> bool {
        matches!(self, ToolApproval::Plan | ToolApproval::Required)
    }

    /// Whether a call of the tool needs a yes.
    pub fn of_calls(self) -> bool {
        matches!(self, ToolApproval::Call | ToolApproval::Required)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
    fn is_none(&self) -> bool {
        *self == ToolApproval::None
    }
}

/// All scenes there are, in the order of their names.
#[derive(Clone, Default)]
pub struct Catalogue {
    scenes: Vec<Arc<Scene>>,
    known: Arc<OnceLock<Known>>,
    told: Arc<OnceLock<String>>,
    planned: Arc<OnceLock<(u32, Schema)>>,
    prepared: Arc<OnceLock<(u32, Schema)>>,
}

impl Catalogue {
    /// A catalogue of these scenes; a later one replaces an earlier one of the same name.
    pub fn new(scenes: impl IntoIterator<Item = Scene>) -> Self {
        let by_name: BTreeMap<String, Arc<Scene>> =
            scenes.into_iter().map(|scene| (scene.name.clone(), Arc::new(scene))).collect();
        Self { scenes: by_name.into_values().collect(), ..Self::default() }
    }

    /// All scenes, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Scene>> {
        self.scenes.iter()
    }

    /// The scene called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Scene>> {
        self.scenes.iter().find(|scene| scene.name == name)
    }

    /// What plans may speak of.
    pub fn known(&self) -> &Known {
        self.known.get_or_init(|| Known {
            scenes: self
                .scenes
                .iter()
                .map(|scene| (scene.name.clone(), scene.tools.iter().map(|t| t.name.clone()).collect()))
                .collect(),
        })
    }

    /// The whole catalogue as a planner is told it. A catalogue never changes, so `tell` is asked once.
    pub(crate) fn told(&self, tell: impl FnOnce(&Self) -> String) -> &str {
        self.told.get_or_init(|| tell(self))
    }

    /// The schema of plans of at most `most` steps over it: made once for the bound that is asked for
    /// first, which is that of nearly every run.
    pub(crate) fn planned(&self, most: u32, make: impl Fn(&Self) -> Schema) -> Schema {
        self.schema(&self.planned, most, make)
    }

    /// That of plans with prepared calls, likewise.
    pub(crate) fn prepared(&self, most: u32, make: impl Fn(&Self) -> Schema) -> Schema {
        self.schema(&self.prepared, most, make)
    }

    fn schema(&self, kept: &OnceLock<(u32, Schema)>, most: u32, make: impl Fn(&Self) -> Schema) -> Schema {
        let (of, schema) = kept.get_or_init(|| (most, make(self)));
        if *of == most { schema.clone() } else { make(self) }
    }

    /// SHA-256 over everything that models and tools see of it, in hex.
    pub fn hash(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut hasher = Sha256::new();
        for scene in &self.scenes {
            // A scene is plain data; what cannot be written would have failed when it was read.
            hasher.update(serde_json::to_vec(scene.as_ref()).unwrap_or_default());
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Scene {
    /// The tool called `name`.
    pub fn tool(&self, name: &str) -> Option<&SceneTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
