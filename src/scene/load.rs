//! Loads scenes from folders, in a directory or built in.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::check::{CheckContext, check, without_worker};
use super::document::Located;
use super::fault::{FaultReport, SceneFault, Severity};
use super::flow::{self, FlowLines};
use super::{Options, Scene, builder, flow_builder, parse, python};
use crate::nearest::{did_you_mean, name_list, nearest};
use crate::program::Unavailable;
use crate::program::module::ReadModule;
use crate::sandbox;
use crate::tools::NativeTools;
use crate::tools::guard::NetworkPolicy;
use crate::tools::python::TOOLS_FILE;

const SCENE_FILE: &str = "scene.toml";
/// The file that defines a flow, alone or beside a scene.
const FLOW_FILE: &str = "flow.toml";
/// An optional file beside them.
const SCHEMA_FILE: &str = "schema.sql";
/// All of them.
const FILES: [&str; 4] = [SCENE_FILE, FLOW_FILE, SCHEMA_FILE, TOOLS_FILE];
/// The maximum size of a file, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The usable scenes, and the faults of all scenes.
#[derive(Debug, Clone, Default)]
pub struct LoadedScenes {
    /// The usable scenes, in the order they were found.
    pub scenes: Vec<Scene>,
    /// The faults, by file and line.
    pub faults: Vec<SceneFault>,
}

impl LoadedScenes {
    /// Returns whether any scene is unusable.
    pub fn has_errors(&self) -> bool {
        self.faults.iter().any(|fault| fault.severity == Severity::Error)
    }
}

/// A folder with the files of one scene.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SceneFolder {
    /// Its location as shown to people, such as `scenes/weather`.
    pub label: String,
    /// File name to content; only `scene.toml`, `flow.toml`, `schema.sql` and `tools.py` are read.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl SceneFolder {
    /// The folders directly inside an embedded directory that contain a `scene.toml` or a `flow.toml`, labelled
    /// `<label>/<folder>`.
    pub fn embedded(label: &str, dir: &include_dir::Dir<'_>) -> Vec<Self> {
        let mut folders = Vec::new();
        for inner in dir.dirs() {
            let name = inner.path().file_name().unwrap_or_default().to_string_lossy();
            let files: BTreeMap<String, Vec<u8>> = inner
                .files()
                .filter_map(|file| Some((file.path().file_name()?.to_str()?, file.contents())))
                .filter(|(name, _)| FILES.contains(name))
                .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
                .collect();
            if files.contains_key(SCENE_FILE) || files.contains_key(FLOW_FILE) {
                folders.push(Self { label: format!("{label}/{name}"), files });
            }
        }
        folders.sort_by(|a, b| a.label.cmp(&b.label));
        folders
    }

    /// The folders of a directory with one folder per scene, or the folder of a single scene.
    pub fn read(dir: &Path) -> (Vec<Self>, Vec<SceneFault>) {
        read_folders(dir)
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.label)
    }

    /// The text of one of its files. Errors are reported.
    fn text(&self, name: &str, report: &FaultReport) -> Option<&str> {
        let bytes = self.files.get(name)?;
        if bytes.len() > MAX_FILE_BYTES {
            let message = format!("{name} has more than {MAX_FILE_BYTES} bytes");
            report.error(None, "unreadable", message, "make it smaller");
            return None;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(_) => {
                report.error(None, "unreadable", format!("{name} is not UTF-8 text"), "save it as UTF-8");
                None
            }
        }
    }
}

/// The prefix of `scenes.dir` that means a folder inside the program.
const SHIPPED: &str = "shipped:";

/// The name of a folder of scenes inside the program, where `dir` is one: `shipped:NAME`.
pub fn shipped_folder(dir: &Path) -> Option<&str> {
    dir.to_str()?.strip_prefix(SHIPPED)
}

/// The folders of scenes inside a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbeddedScenes {
    /// The built-in scenes.
    pub builtin: Vec<SceneFolder>,
    /// By name, those that are loaded where the configuration names them (`shipped:NAME`).
    pub optional: BTreeMap<String, Vec<SceneFolder>>,
}

impl EmbeddedScenes {
    /// Those of an embedded directory: a folder with a scene is a built-in scene, and a folder with such folders is optional.
    pub fn of(label: &str, dir: &include_dir::Dir<'_>) -> Self {
        let inside = |inner: &include_dir::Dir<'_>| {
            let name = inner.path().file_name()?.to_str()?.to_owned();
            let folders = SceneFolder::embedded(&format!("{label}/{name}"), inner);
            (!folders.is_empty()).then_some((name, folders))
        };
        Self { builtin: SceneFolder::embedded(label, dir), optional: dir.dirs().filter_map(inside).collect() }
    }

    /// The scenes of an optional folder, or the fault that there is none.
    pub(crate) fn optional(mut self, name: &str) -> (Vec<SceneFolder>, Vec<SceneFault>) {
        if let Some(folders) = self.optional.remove(name) {
            return (folders, Vec::new());
        }
        let report = FaultReport::new(format!("{SHIPPED}{name}"));
        let message = format!("the program has no scenes called {name:?}");
        let remedy = match self.optional.is_empty() {
            true => "name a directory".to_owned(),
            false => format!(
                "name a directory, or one of: {}",
                name_list(self.optional.keys().map(String::as_str))
            ),
        };
        report.error(None, "unreadable", message, remedy);
        (Vec::new(), report.into_faults())
    }
}

/// Loads all scenes of a configuration: the built-in ones, those of `options.dir`, those of `folders`, and then those built
/// in Rust, with the settings of the configuration merged in. Secrets are read from the process's environment, and
/// `tools.py` files by `read_module`.
pub fn load(
    options: &Options,
    read_module: &dyn Fn(&str) -> Result<ReadModule, Unavailable>,
    mut embedded: EmbeddedScenes,
    folders: Vec<SceneFolder>,
    natives: &NativeTools,
    built: Vec<Scene>,
) -> LoadedScenes {
    let loader = SceneLoader::new(natives).network(options.network()).modules(read_module).built(built);
    let mut faults = Vec::new();
    let mut sets = Vec::new();
    if options.builtin {
        sets.push(std::mem::take(&mut embedded.builtin));
    }
    if let Some(dir) = &options.dir {
        let (of_dir, found) = match shipped_folder(dir) {
            Some(name) => embedded.optional(name),
            None => read_folders(dir),
        };
        sets.push(of_dir);
        faults = found;
    }
    if !folders.is_empty() {
        sets.push(folders);
    }
    let mut loaded = loader.load(sets, &options.settings);
    loaded.faults.extend(faults);
    loaded
}

/// Loads the scenes of a directory with one folder per scene, or the scene of a single folder. Those with tools in Python need
/// [`SceneLoader::sandbox`].
pub fn load_dir(path: &Path, natives: &NativeTools, policy: &NetworkPolicy) -> LoadedScenes {
    let (folders, faults) = read_folders(path);
    let mut loaded = SceneLoader::new(natives).network(policy.clone()).load(vec![folders], &BTreeMap::new());
    loaded.faults.extend(faults);
    loaded
}

/// Looks up the value of an environment variable.
type EnvironmentLookup<'a> = Box<dyn Fn(&str) -> Option<String> + 'a>;

/// Reads a `tools.py`.
type ModuleReading<'a> = Box<dyn Fn(&str) -> Result<ReadModule, Unavailable> + 'a>;

/// Loads scenes from folders.
pub struct SceneLoader<'a> {
    natives: &'a NativeTools,
    policy: NetworkPolicy,
    environment: EnvironmentLookup<'a>,
    modules: ModuleReading<'a>,
    built: Vec<Scene>,
}

impl<'a> SceneLoader<'a> {
    /// A loader whose scenes may use these native tools, cannot reach private addresses, read secrets
    /// from the process's environment, and have no tools in Python.
    pub fn new(natives: &'a NativeTools) -> Self {
        Self {
            natives,
            policy: NetworkPolicy::default(),
            environment: Box::new(|name| std::env::var(name).ok()),
            modules: Box::new(without_worker),
            built: Vec::new(),
        }
    }

    /// Sets the sandbox that reads `tools.py` files: its worker reads each file in a separate process.
    #[must_use]
    pub fn sandbox(self, options: sandbox::Options) -> Self {
        self.modules(move |source| sandbox::read_module(&options, source))
    }

    /// Sets the function that reads `tools.py` files, in place of the worker of the sandbox.
    #[must_use]
    pub fn modules(mut self, read: impl Fn(&str) -> Result<ReadModule, Unavailable> + 'a) -> Self {
        self.modules = Box::new(read);
        self
    }

    /// Scenes and flows built in Rust. One replaces a loaded one of the same name.
    #[must_use]
    pub fn built(mut self, scenes: Vec<Scene>) -> Self {
        self.built = scenes;
        self
    }

    /// Sets what HTTP tools may reach.
    #[must_use]
    pub fn network(mut self, policy: NetworkPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The lookup of `${env:NAME}`.
    #[must_use]
    pub fn environment(mut self, environment: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.environment = Box::new(environment);
        self
    }

    /// Loads all sets of folders. Names are unique within a set; a scene of a later set replaces one of the
    /// same name in an earlier set, with a warning. `settings` is merged into the scenes' own settings, by
    /// scene name.
    pub fn load(&self, sets: Vec<Vec<SceneFolder>>, settings: &BTreeMap<String, Value>) -> LoadedScenes {
        let around = CheckContext {
            natives: self.natives,
            policy: self.policy.clone(),
            environment: &*self.environment,
            read_module: &*self.modules,
            network: OnceCell::new(),
        };
        let mut gathered = SceneCollector::default();
        let configuration = FaultReport::new("configuration");
        for entry in self.policy.malformed_hosts() {
            let message = format!("scenes.allow_hosts has {entry:?}, which is neither host nor host:port");
            configuration.error(None, "allow_hosts", message, "write it as crm.example.com or 10.0.0.7:8080");
        }
        let last = sets.len();
        for (set, folders) in sets.into_iter().enumerate() {
            for folder in folders {
                gathered.add(set, &folder, &around);
            }
        }
        for scene in &self.built {
            gathered.add_built(last, scene.clone());
        }
        for (name, overlay) in settings {
            gathered.overlay_settings(name, overlay, &configuration);
        }
        gathered.link_flows();
        gathered.faults.extend(configuration.into_faults());
        LoadedScenes { scenes: gathered.scenes, faults: gathered.faults }
    }
}

/// The first use of a scene name.
struct ClaimedName {
    set: usize,
    name: String,
    file: String,
    line: Option<u32>,
}

#[derive(Default)]
struct SceneCollector {
    scenes: Vec<Scene>,
    faults: Vec<SceneFault>,
    /// The names in use, also of unusable scenes, by lower-case name.
    claimed: BTreeMap<String, ClaimedName>,
    /// The files of flows and the lines of their parts, by name.
    flows: BTreeMap<String, (String, FlowLines)>,
}

impl SceneCollector {
    fn add(&mut self, set: usize, folder: &SceneFolder, around: &CheckContext<'_>) {
        if folder.files.contains_key(SCENE_FILE) {
            self.add_scene(set, folder, around);
        }
        if folder.files.contains_key(FLOW_FILE) {
            self.add_flow(set, folder, around);
        }
    }

    fn add_flow(&mut self, set: usize, folder: &SceneFolder, around: &CheckContext<'_>) {
        let file = folder.file(FLOW_FILE);
        let report = FaultReport::new(file.clone());
        let schema = FaultReport::new(folder.file(SCHEMA_FILE));
        let draft = folder.text(FLOW_FILE, &report).and_then(|text| flow::parse(text, &report));
        if let Some(mut draft) = draft {
            // Beside a scene, the tables are the scene's.
            if !folder.files.contains_key(SCENE_FILE) {
                draft.schema_sql = folder.text(SCHEMA_FILE, &schema).map(str::to_owned);
                python::warn_of_unused(folder.files.contains_key(TOOLS_FILE), &report);
            }
            let unique = draft.name.as_ref().is_none_or(|name| self.claim(set, &file, name, &report));
            let lines = std::mem::take(&mut draft.lines);
            draft.lines = lines.clone();
            let scene = flow::build(draft, around, &report);
            if let Some(scene) = scene.filter(|_| unique && !schema.has_errors()) {
                self.scenes.retain(|other| !other.name.eq_ignore_ascii_case(&scene.name));
                self.flows.insert(scene.name.clone(), (file, lines));
                self.scenes.push(scene);
            }
        }
        self.faults.extend(report.into_faults());
        self.faults.extend(schema.into_faults());
    }

    fn add_built(&mut self, set: usize, scene: Scene) {
        let label = match &scene.flow {
            Some(_) => flow_builder::label(&scene.name),
            None => builder::label(&scene.name),
        };
        let report = FaultReport::new(label.clone());
        let name = Located::without_line(scene.name.clone());
        if self.claim(set, &label, &name, &report) {
            self.scenes.retain(|other| !other.name.eq_ignore_ascii_case(&scene.name));
            self.flows.remove(&scene.name);
            if scene.flow.is_some() {
                self.flows.insert(scene.name.clone(), (label, FlowLines::default()));
            }
            self.scenes.push(scene);
        }
        self.faults.extend(report.into_faults());
    }

    /// Checks the tools of scenes that flows call, once all scenes are known. A flow that calls a missing tool is
    /// unusable.
    fn link_flows(&mut self) {
        let mut unusable = Vec::new();
        for scene in &self.scenes {
            let Some((flow, (file, lines))) = scene.flow.as_ref().zip(self.flows.get(&scene.name)) else {
                continue;
            };
            let report = FaultReport::new(file.clone());
            for (node, key, message, remedy) in flow::unlinked(flow, &self.scenes) {
                report.error_as(lines.of(Some(&node), key), "flow.unknown_tool", message, remedy);
            }
            if report.has_errors() {
                unusable.push(scene.name.clone());
            }
            self.faults.extend(report.into_faults());
        }
        self.scenes.retain(|scene| !unusable.contains(&scene.name));
    }

    fn add_scene(&mut self, set: usize, folder: &SceneFolder, around: &CheckContext<'_>) {
        let file = folder.file(SCENE_FILE);
        let report = FaultReport::new(file.clone());
        let schema = FaultReport::new(folder.file(SCHEMA_FILE));
        let python = report.beside(TOOLS_FILE);
        let mut draft =
            folder.text(SCENE_FILE, &report).and_then(|text| parse::parse_document(text, &report));
        if let Some(draft) = &mut draft {
            draft.schema_sql = folder.text(SCHEMA_FILE, &schema).map(str::to_owned);
            draft.tools_py = folder.text(TOOLS_FILE, &python).map(str::to_owned);
        }
        report.absorb(python);
        let name = draft.as_ref().and_then(|draft| draft.name.clone());
        let unique = name.as_ref().is_none_or(|name| self.claim(set, &file, name, &report));
        let scene = draft.and_then(|draft| check(draft, around, &report));
        if let Some(scene) = scene.filter(|_| unique && !schema.has_errors()) {
            self.scenes.retain(|other| !other.name.eq_ignore_ascii_case(&scene.name));
            self.scenes.push(scene);
        }
        self.faults.extend(report.into_faults());
        self.faults.extend(schema.into_faults());
    }

    /// Claims the scene's name. Returns whether the name was available.
    fn claim(&mut self, set: usize, file: &str, name: &Located<String>, report: &FaultReport) -> bool {
        let key = name.value.to_lowercase();
        if let Some(first) = self.claimed.get(&key) {
            let at = match first.line {
                Some(line) => format!("{}:{line}", first.file),
                None => first.file.clone(),
            };
            if first.set == set {
                let message = format!("a scene or flow named {:?} already exists in {at}", first.name);
                report.error(
                    name.line,
                    "duplicate_scene",
                    message,
                    "give each scene a unique name (case-insensitive)",
                );
                return false;
            }
            let message = format!("this scene replaces {:?} of {at}", first.name);
            report.warning(name.line, "replaced", message, "rename it to keep both scenes");
        }
        let seen = ClaimedName { set, name: name.value.clone(), file: file.to_owned(), line: name.line };
        self.claimed.insert(key, seen);
        true
    }

    fn overlay_settings(&mut self, name: &str, overlay: &Value, report: &FaultReport) {
        let known = || self.claimed.values().map(|seen| seen.name.as_str());
        if !self.claimed.contains_key(&name.to_lowercase()) {
            let hint = did_you_mean(name, known());
            let remedy =
                if hint.is_empty() { format!("the scenes are: {}", name_list(known())) } else { hint };
            let message = format!("scenes.settings.{name} is for a scene that does not exist");
            report.error(None, "settings_scene", message, remedy);
            return;
        }
        let Value::Object(overlay) = overlay else {
            let message = format!("scenes.settings.{name} must be a table");
            report.error(None, "settings_type", message, format!("write [scenes.settings.{name}]"));
            return;
        };
        let Some(scene) = self.scenes.iter_mut().find(|scene| scene.name.eq_ignore_ascii_case(name)) else {
            // The scene is unusable, which was already reported.
            return;
        };
        if let Value::Object(settings) = &mut scene.settings {
            merge_settings(settings, overlay, &format!("scenes.settings.{name}"), true, report);
        }
    }
}

/// Merges recursively: tables are merged, everything else is replaced. Keys are case-insensitive, because
/// keys from environment variables are in lower case.
fn merge_settings(
    settings: &mut Map<String, Value>,
    overlay: &Map<String, Value>,
    at: &str,
    is_listed: bool,
    report: &FaultReport,
) {
    for (key, value) in overlay {
        let own = settings.keys().find(|own| own.eq_ignore_ascii_case(key)).cloned();
        if is_listed && own.is_none() {
            let known = || settings.keys().map(String::as_str);
            let hint = did_you_mean(key, known());
            let remedy =
                if hint.is_empty() { format!("its settings are: {}", name_list(known())) } else { hint };
            let message = format!("{at}.{key} is not among the settings that the scene lists");
            report.warning(None, "settings_key", message, remedy);
        }
        let slot = settings.entry(own.unwrap_or_else(|| key.clone())).or_insert(Value::Null);
        match (slot, value) {
            (Value::Object(inner), Value::Object(over)) => {
                // Nested tables may have keys of the operator's choice, so unknown ones are not reported.
                merge_settings(inner, over, &format!("{at}.{key}"), false, report);
            }
            (slot, value) => *slot = value.clone(),
        }
    }
}

/// The scene folders of a directory, ordered by name.
fn read_folders(dir: &Path) -> (Vec<SceneFolder>, Vec<SceneFault>) {
    let report = FaultReport::new(dir.display().to_string());
    // Anything of this name: what is no file is an error, like a file that cannot be read.
    let is_folder = |dir: &Path| [SCENE_FILE, FLOW_FILE].iter().any(|file| dir.join(file).exists());
    if is_folder(dir) {
        let folder = read_folder(dir, &report);
        return (folder.into_iter().collect(), report.into_faults());
    }
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("the directory of scenes cannot be read: {error}");
            report.error(None, "unreadable", message, "check `--scenes` or `scenes.dir`");
            return (Vec::new(), report.into_faults());
        }
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    paths.sort();
    let mut folders = Vec::new();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_folder(&path) {
            folders.extend(read_folder(&path, &report));
        } else if !hidden {
            let inside = FaultReport::new(path.display().to_string());
            let remedy = match misnamed(&path) {
                Some((found, meant)) => format!("rename {found} to {meant}"),
                None => format!("add {SCENE_FILE} or {FLOW_FILE}, or move the folder away"),
            };
            inside.warning(
                None,
                "no_file",
                format!("the folder has no {SCENE_FILE} and no {FLOW_FILE}"),
                remedy,
            );
            // A separate report, so that the fault names this folder.
            report.absorb(inside);
        }
    }
    if folders.is_empty() && !report.has_errors() {
        let remedy = format!("add one folder per scene, each with a {SCENE_FILE}");
        report.warning(None, "no_scenes", "there are no scenes in this directory", remedy);
    }
    (folders, report.into_faults())
}

/// Finds a file of a folder whose name is nearly that of a scene or a flow, such as `Scene.toml` or `scene.toml.txt`,
/// and the right name.
fn misnamed(folder: &Path) -> Option<(String, &'static str)> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names.into_iter().find_map(|name| {
        let meant = nearest(name.strip_suffix(".txt").unwrap_or(&name), [SCENE_FILE, FLOW_FILE])?;
        Some((name, meant))
    })
}

fn read_folder(path: &Path, report: &FaultReport) -> Option<SceneFolder> {
    let mut files = BTreeMap::new();
    for name in FILES {
        let file = path.join(name);
        if !file.exists() {
            continue;
        }
        match read_bounded(&file) {
            Ok(bytes) => {
                files.insert(name.to_owned(), bytes);
            }
            Err(error) => {
                let message = format!("{} cannot be read: {error}", file.display());
                report.error(None, "unreadable", message, "check its kind and its permissions");
                return None;
            }
        }
    }
    Some(SceneFolder { label: path.display().to_string(), files })
}

/// Reads at most one byte more than allowed, so that an oversized file is detected. Only regular files are opened:
/// opening a pipe could wait for ever for a writer.
fn read_bounded(file: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let max = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(file)?.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
