//! Scenes: domains with a name, a description, instructions and tools; and the catalogue of all scenes.
//!
//! **Invariant:** a scene is data. Nothing here knows a scene by name.

mod alternative;
pub mod arguments;
mod builder;
mod call_end;
mod check;
mod document;
mod draft;
mod expectations;
mod fault;
mod flow;
mod flow_builder;
mod fusion;
mod load;
mod options;
mod parameters;
mod parse;
mod policies;
mod python;
mod search;
mod sentences;
mod summary_tool;
mod tables;
mod undo;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapt::{ExecutionLevel, ToolPolicies};
use crate::flow::Flow;
use crate::mutex::lock;
use crate::plan::KnownScenes;
use crate::run::{ConfirmPolicy, Effect, PlanningMaker, Repeat, Undo};
use crate::schema::Schema;
use crate::staged::SceneTables;
use crate::tools::Tool;

pub use builder::{SceneBuilder, ToolBuilder};
pub(crate) use call_end::{CallEnd, ResultTerms};
#[cfg(feature = "server")]
pub(crate) use document::{Located, Presence, TableReader, read_toml};
pub use expectations::{NumberRange, ResultSchema, ToolExpectations};
#[cfg(feature = "server")]
pub(crate) use fault::FaultReport;
pub use fault::{SceneFault, SceneFaults, Severity};
pub use flow::fallback_tool;
pub use flow_builder::{FlowBuilder, NodeBuilder};
pub use load::{EmbeddedScenes, LoadedScenes, SceneFolder, SceneLoader, load, load_dir, shipped_folder};
pub use options::Options;
use search::SceneSearch;

/// The JSON Schema (draft 7, which editors know) of a `scene.toml`.
pub const FILE_SCHEMA: &str = include_str!("scene.schema.json");

/// A validated scene, from a `scene.toml` or a builder.
#[derive(Clone, Serialize)]
pub struct Scene {
    /// Its unique name, as used in plans.
    pub name: String,
    /// Its purpose, as the planner reads it.
    pub description: String,
    /// What users read about it, by language, when they ask what can be done. It has no effect on decisions, so it is
    /// not part of the definition that is hashed.
    #[serde(skip)]
    pub about: BTreeMap<String, String>,
    /// The instructions for its model.
    pub instructions: String,
    /// Example requests that it serves, in several languages.
    pub examples: Vec<SceneExample>,
    /// The maximum number of concurrent tool calls.
    pub concurrency: u32,
    /// The maximum number of waiting tool calls, and of concurrent calls to its model; more are refused.
    pub mailbox: u32,
    /// `[settings]`, overlaid by `scenes.settings` of the configuration.
    pub settings: Value,
    /// SQL that creates its tables, run at every start (`CREATE TABLE IF NOT EXISTS …`).
    pub schema_sql: Option<String>,
    /// The tables that it declares for programs and for its tools.
    #[serde(skip_serializing_if = "SceneTables::is_empty")]
    pub tables: Arc<SceneTables>,
    /// The functions of programs for these tables, and the commit of staged changes. They are not offered to models or
    /// plans.
    #[serde(skip)]
    pub table_tools: Vec<SceneTool>,
    /// Which of its writes the user has to confirm, if different from the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmPolicy>,
    /// How many write calls a run with this scene may start without approval, if more than configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_writes: Option<u32>,
    /// Who may be asked about its steps when something unexpected happens, if fewer than configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<ExecutionLevel>,
    /// Whether its steps summarise the documents that the request names. Its tools do so, too, and only programs call them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub summarises: bool,
    /// Whether programs take part: with `scenes` none calls its tools, with `code` its steps are programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maker: Option<PlanningMaker>,
    /// What `STATUS` may be in a program with this scene; the built-in words if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<String>,
    /// Whether a program may stage changes of its tables beside other writes, and call its writes beside staged changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mixed_writes: bool,
    /// Its tools, in the order of the file.
    pub tools: Vec<SceneTool>,
    /// The flow that it stands for: plans name it as they name a scene. Its tools are those that the flow's nodes call
    /// by themselves, and models do not see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<Arc<Flow>>,
}

/// A request that a scene serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SceneExample {
    /// The user's request.
    pub say: String,
    /// The tool that serves it, if any.
    pub tool: Option<String>,
}

/// A tool of a scene.
#[derive(Clone, Serialize)]
pub struct SceneTool {
    /// Unique in the scene; letters, digits and `_`, at most 64.
    pub name: String,
    /// Its description, as models read it.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub parameters: Schema,
    /// Whether it reads or writes.
    pub effect: Effect,
    /// How it may be repeated when its outcome is unknown.
    pub repeat: Repeat,
    /// What needs approval, if the configuration leaves that to scenes.
    #[serde(skip_serializing_if = "ToolApproval::is_none")]
    pub approval: ToolApproval,
    /// How a finished write is undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// The arguments that identify equal calls; empty means all of them.
    pub identity: Vec<String>,
    /// The timeout of one call, in milliseconds.
    pub timeout_ms: u64,
    /// How much of its result a model sees, in bytes of JSON.
    pub max_result_bytes: usize,
    /// Templates of the sentence for its result, by language, over the result and `arguments`.
    pub say: BTreeMap<String, String>,
    /// Whether an equal write in the same step is intended, not an accidental repetition.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// Whether its result may change at any moment, so that an earlier result is never reused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// Templates of the confirmation question for a call, by language, over `arguments`. They do not affect
    /// the call, so they are not part of the definition that is hashed.
    #[serde(skip)]
    pub confirm: BTreeMap<String, String>,
    /// What is done about its failures. They do not change what a call does, so they are not part of the definition
    /// that is hashed.
    #[serde(skip)]
    pub policies: ToolPolicies,
    /// What its results are expected to be. Like its policies, not part of the definition.
    #[serde(skip)]
    pub expectations: ToolExpectations,
    /// Whether it summarises documents: the run does so by itself, as a step of kind summary does, and calls nothing.
    #[serde(skip)]
    pub summarises: bool,
    /// Its definition for the catalogue's hash: the native name or the HTTP request.
    pub source: Value,
    /// The implementation.
    #[serde(skip)]
    pub tool: Arc<dyn Tool>,
    /// The compiled schema.
    #[serde(skip)]
    pub validator: Arc<jsonschema::Validator>,
}

/// The calls that need approval before a tool writes (`approval` of a scene or a tool).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolApproval {
    /// Nothing.
    #[default]
    None,
    /// A plan that expects the tool.
    Plan,
    /// Each call, with its arguments.
    Call,
    /// Both.
    Required,
}

impl ToolApproval {
    /// The values in `scene.toml`.
    pub(crate) const KEYWORDS: [(&str, ToolApproval); 4] = [
        ("none", ToolApproval::None),
        ("plan", ToolApproval::Plan),
        ("call", ToolApproval::Call),
        ("required", ToolApproval::Required),
    ];

    /// Returns whether a plan that expects the tool needs approval.
    pub fn requires_plan_approval(self) -> bool {
        matches!(self, ToolApproval::Plan | ToolApproval::Required)
    }

    /// Returns whether a call of the tool needs approval.
    pub fn requires_call_approval(self) -> bool {
        matches!(self, ToolApproval::Call | ToolApproval::Required)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
    fn is_none(&self) -> bool {
        *self == ToolApproval::None
    }
}

/// All available scenes and flows, ordered by name.
#[derive(Clone, Default)]
pub struct Catalogue {
    scenes: Vec<Arc<Scene>>,
    /// The scenes whose tools planners do not see, with these tools: those that stand for flows, and those that
    /// summarise documents.
    apart: Vec<Arc<Scene>>,
    /// In a view without some tools: the scenes with the missing tools, except those for which a declared alternative
    /// is left.
    switched_off: Vec<Scene>,
    known: Arc<OnceLock<KnownScenes>>,
    /// Without and with descriptions of arguments.
    descriptions: Arc<[OnceLock<String>; 2]>,
    overview: Arc<OnceLock<String>>,
    search: Arc<OnceLock<SceneSearch>>,
    /// By [`PlannedCalls`].
    plan_schemas: Arc<[OnceLock<(PlanShape, Schema)>; 3]>,
    /// The last view without some tools.
    view: Arc<Mutex<Option<CatalogueView>>>,
}

/// A catalogue without the named tools.
type CatalogueView = (Vec<String>, Catalogue);

/// The facts that the schema of plans depends on besides the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanShape {
    /// Which calls the plan prepares.
    pub calls: PlannedCalls,
    /// Maximum number of steps.
    pub max_steps: u32,
    /// Whether the plan may contain the answer to a request that needs no scene.
    pub answers: bool,
    /// Whether the prompt describes only some scenes in full, so that the plan may ask for others.
    pub shortlisted: bool,
    /// Whether steps of kind llm are offered.
    pub synthesis: bool,
    /// Whether steps of kind code are offered.
    pub programs: bool,
    /// Whether some tools are switched off, so that the plan names what cannot be done now.
    pub switched_off: bool,
}

/// Which calls a plan prepares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlannedCalls {
    None,
    /// Writes, for the person who approves the plan.
    Writes,
    /// Reads and writes, with which steps are executed.
    All,
}

/// Whether no planner sees the scene's tools.
fn is_apart(scene: &Scene) -> bool {
    scene.flow.is_some() || scene.summarises
}

impl Catalogue {
    /// Creates a catalogue. A later scene replaces an earlier one of the same name.
    pub fn new(scenes: impl IntoIterator<Item = Scene>) -> Self {
        let by_name: BTreeMap<String, Arc<Scene>> =
            scenes.into_iter().map(|scene| (scene.name.clone(), Arc::new(scene))).collect();
        let apart = by_name.values().filter(|scene| is_apart(scene)).cloned().collect();
        // Planners see the purpose of a flow, but not the tools that its nodes call by themselves; nor those of a scene
        // whose steps call none.
        let planned = |scene: Arc<Scene>| match is_apart(&scene) {
            true => Arc::new(Scene { tools: Vec::new(), ..Scene::clone(&scene) }),
            false => scene,
        };
        Self { scenes: by_name.into_values().map(planned).collect(), apart, ..Self::default() }
    }

    /// The flows, by name.
    pub fn flows(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.apart.iter().filter_map(|scene| scene.flow.as_ref())
    }

    /// The flow called `name`.
    pub fn flow(&self, name: &str) -> Option<&Arc<Flow>> {
        self.flows().find(|flow| flow.name == name)
    }

    /// All scenes and flows as a planner sees them, by name: flows, and scenes that summarise documents, without tools.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Scene>> {
        self.scenes.iter()
    }

    /// The scenes and those that stand for flows: everything whose tools may be called.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Scene>> {
        self.scenes.iter().filter(|scene| !is_apart(scene)).chain(&self.apart)
    }

    /// The scene called `name`, or the one that stands for the flow of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Scene>> {
        self.all().find(|scene| scene.name == name)
    }

    /// Returns whether there is a tool of this name (`Scene.Tool`).
    pub fn has_tool(&self, name: &str) -> bool {
        let tool = name.split_once('.').and_then(|(scene, tool)| self.get(scene)?.tool(tool));
        tool.is_some()
    }

    /// The same catalogue without these tools (`Scene.Tool`), and without scenes that have no other ones. The last
    /// view is kept, since all questions of a run need the same.
    pub(crate) fn without(&self, tools: &[String]) -> Self {
        let mut kept = lock(&self.view);
        if let Some((_, view)) = kept.as_ref().filter(|(of, _)| of == tools) {
            return view.clone();
        }
        let view = self.make_without(tools);
        *kept = Some((tools.to_vec(), view.clone()));
        view
    }

    fn make_without(&self, tools: &[String]) -> Self {
        let is_off =
            |scene: &Scene, tool: &str| tools.iter().any(|off| *off == format!("{}.{tool}", scene.name));
        let scenes = self.scenes.iter().filter_map(|scene| {
            if !scene.tools.iter().any(|tool| is_off(scene, &tool.name)) {
                return Some(scene.clone());
            }
            let mut view = Scene::clone(scene);
            view.tools.retain(|tool| !is_off(scene, &tool.name));
            view.examples.retain(|example| example.tool.as_ref().is_none_or(|tool| !is_off(scene, tool)));
            (!view.tools.is_empty()).then(|| Arc::new(view))
        });
        let switched_off = self.scenes.iter().filter_map(|scene| {
            let is_left = |tool: &SceneTool| {
                let mut others = (0..).map_while(|at| tool.policies.alternative_at(at));
                others.any(|other| !is_off(scene, &other.tool) && scene.tool(&other.tool).is_some())
            };
            scene.only(|tool| is_off(scene, &tool.name) && !is_left(tool))
        });
        Self {
            scenes: scenes.collect(),
            apart: self.apart.clone(),
            switched_off: switched_off.collect(),
            ..Self::default()
        }
    }

    /// The scenes with those of their tools that this view lacks and that no declared alternative replaces.
    pub(crate) fn switched_off(&self) -> &[Scene] {
        &self.switched_off
    }

    /// The names that plans may refer to.
    pub fn known_names(&self) -> &KnownScenes {
        self.known.get_or_init(|| KnownScenes {
            scenes: self
                .scenes
                .iter()
                .map(|scene| (scene.name.clone(), scene.tools.iter().map(|t| t.name.clone()).collect()))
                .collect(),
            flows: self.flows().map(|flow| flow.name.clone()).collect(),
            summaries: self.scenes.iter().filter(|s| s.summarises).map(|s| s.name.clone()).collect(),
        })
    }

    /// The description of the whole catalogue for the planner, with descriptions of arguments or without. A
    /// catalogue never changes, so `render` is called once only for each.
    pub(crate) fn description(&self, described: bool, render: impl FnOnce(&Self) -> String) -> &str {
        self.descriptions[usize::from(described)].get_or_init(|| render(self))
    }

    /// One line for each scene, for prompts that do not describe all of them in full; `render` is called once only.
    pub(crate) fn overview(&self, render: impl FnOnce(&Self) -> String) -> &str {
        self.overview.get_or_init(|| render(self))
    }

    /// The scenes that share words with `text`, in any of the languages of the lexicon, the best match first.
    pub fn matching(&self, text: &str) -> impl Iterator<Item = &Arc<Scene>> {
        let found = self.search.get_or_init(|| SceneSearch::of(self)).ranking(text);
        found.into_iter().filter_map(|place| self.scenes.get(place))
    }

    /// The scenes that share words with `text` or are named in `similar`, the best match first. `similar` is a ranking
    /// by embeddings, the most similar first; both rankings count the same ([`fusion`]). Unknown names are ignored.
    pub fn ranked(&self, text: &str, similar: &[String]) -> impl Iterator<Item = &Arc<Scene>> {
        let words = self.search.get_or_init(|| SceneSearch::of(self)).ranking(text);
        // The scenes are ordered by name.
        let place = |name: &String| self.scenes.binary_search_by(|scene| scene.name.cmp(name)).ok();
        let similar = similar.iter().filter_map(place).collect();
        let found = fusion::combine(&[words, similar]);
        found.into_iter().filter_map(|place| self.scenes.get(place))
    }

    /// The number of scenes.
    pub fn len(&self) -> usize {
        self.scenes.len()
    }

    /// Returns whether there are no scenes.
    pub fn is_empty(&self) -> bool {
        self.scenes.is_empty()
    }

    /// The schema of plans of this shape. It is cached for the first shape, which nearly every run uses.
    pub(crate) fn plan_schema(&self, shape: PlanShape, make: impl Fn(&Self) -> Schema) -> Schema {
        let (of, schema) = self.plan_schemas[shape.calls as usize].get_or_init(|| (shape, make(self)));
        if *of == shape { schema.clone() } else { make(self) }
    }

    /// SHA-256 of everything that models and tools see of the catalogue, in hex.
    pub fn hash(&self) -> String {
        use data_encoding::HEXLOWER;
        use sha2::{Digest, Sha256};
        let mut hasher = Sha256::new();
        for scene in self.all() {
            // A scene is plain data, so serialization cannot fail.
            hasher.update(serde_json::to_vec(scene.as_ref()).unwrap_or_default());
        }
        HEXLOWER.encode(&hasher.finalize())
    }
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// Without settings, which may be secret.
impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("name", &self.name).field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SceneTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, effect, .. } = self;
        f.debug_struct("SceneTool").field("name", name).field("effect", effect).finish_non_exhaustive()
    }
}

impl Scene {
    /// The scene with these tools and their examples alone; `None` if it has none of them.
    pub(crate) fn only(&self, keep: impl Fn(&SceneTool) -> bool) -> Option<Self> {
        let mut scene = self.clone();
        scene.tools.retain(keep);
        let tools = &scene.tools;
        let is_kept =
            |tool: &Option<String>| tool.as_ref().is_some_and(|of| tools.iter().any(|tool| tool.name == *of));
        scene.examples.retain(|example| is_kept(&example.tool));
        (!scene.tools.is_empty()).then_some(scene)
    }

    /// The tool called `name`.
    pub fn tool(&self, name: &str) -> Option<&SceneTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The tool called `name`, or the function of its tables.
    pub fn program_tool(&self, name: &str) -> Option<&SceneTool> {
        self.tool(name).or_else(|| self.table_tools.iter().find(|tool| tool.name == name))
    }

    /// Returns the text of its embedding: name, description, examples and tools. The most characteristic parts come
    /// first, because a long text is cut.
    pub fn embedded_text(&self) -> String {
        let mut text = format!("{}: {}", self.name, self.description);
        for example in &self.examples {
            text.push('\n');
            text.push_str(&example.say);
        }
        for tool in &self.tools {
            text.push_str(&format!("\n{}: {}", tool.name, tool.description));
        }
        text
    }
}
