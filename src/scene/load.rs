//! Reads folders of scenes, from a directory or from what is built in.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::check::{Surroundings, check};
use super::document::At;
use super::fault::{Fault, Report, Severity};
use super::{Options, Scene, read};
use crate::nearest::{did_you_mean, listed};
use crate::tools::NativeTools;
use crate::tools::guard::NetworkPolicy;

/// What a folder must have to be a scene.
const SCENE_FILE: &str = "scene.toml";
/// What it may have beside it.
const SCHEMA_FILE: &str = "schema.sql";
/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The scenes that can be used, and everything that is wrong with those that cannot.
#[derive(Clone, Default)]
pub struct Loaded {
    /// In the order they were found.
    pub scenes: Vec<Scene>,
    /// By file and line.
    pub faults: Vec<Fault>,
}

impl Loaded {
    /// Whether any scene cannot be used.
    pub fn failed(&self) -> bool {
        self.faults.iter().any(|fault| fault.severity == Severity::Error)
    }
}

/// A folder with the files of one scene.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// How people are told where it is, such as `scenes/weather`.
    pub label: String,
    /// File name to content; `scene.toml` and `schema.sql` are looked at.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Folder {
    /// The folders directly inside an embedded directory that hold a `scene.toml`, labelled
    /// `<label>/<folder>`.
    pub fn embedded(label: &str, dir: &include_dir::Dir<'_>) -> Vec<Self> {
        let mut folders = Vec::new();
        for inner in dir.dirs() {
            let name = inner.path().file_name().unwrap_or_default().to_string_lossy();
            let files: BTreeMap<String, Vec<u8>> = inner
                .files()
                .filter_map(|file| Some((file.path().file_name()?.to_str()?, file.contents())))
                .filter(|(name, _)| [SCENE_FILE, SCHEMA_FILE].contains(name))
                .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
                .collect();
            if files.contains_key(SCENE_FILE) {
                folders.push(Self { label: format!("{label}/{name}"), files });
            }
        }
        folders.sort_by(|a, b| a.label.cmp(&b.label));
        folders
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.label)
    }

    /// The text of one of its files; what hinders it goes into the report.
    fn text(&self, name: &str, report: &Report) -> Option<&str> {
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

/// All scenes of a configuration: the built-in ones, then those of `options.dir`, with the settings
/// that the configuration overlays. Secrets are read from the process's environment.
pub fn load(options: &Options, builtin: Vec<Folder>, natives: &NativeTools) -> Loaded {
    let loader = Loader::new(natives).network(options.network());
    let mut faults = Vec::new();
    let mut sets = Vec::new();
    if options.builtin {
        sets.push(builtin);
    }
    if let Some(dir) = &options.dir {
        let (folders, found) = folders(dir);
        sets.push(folders);
        faults = found;
    }
    let mut loaded = loader.load(sets, &options.settings);
    loaded.faults.extend(faults);
    loaded
}

/// The scenes of a directory with one folder a scene, or of the folder of a single scene.
pub fn load_dir(path: &Path, natives: &NativeTools, policy: &NetworkPolicy) -> Loaded {
    let (folders, faults) = folders(path);
    let mut loaded = Loader::new(natives).network(policy.clone()).load(vec![folders], &BTreeMap::new());
    loaded.faults.extend(faults);
    loaded
}

/// Where the value of a variable is looked up.
type Environment<'a> = Box<dyn Fn(&str) -> Option<String> + 'a>;

/// Turns folders into scenes.
pub struct Loader<'a> {
    natives: &'a NativeTools,
    policy: NetworkPolicy,
    environment: Environment<'a>,
}

impl<'a> Loader<'a> {
    /// A loader whose scenes may name these native tools, reach no private address, and take secrets
    /// from the process's environment.
    pub fn new(natives: &'a NativeTools) -> Self {
        Self {
            natives,
            policy: NetworkPolicy::default(),
            environment: Box::new(|name| std::env::var(name).ok()),
        }
    }

    /// What HTTP tools may reach.
    #[must_use]
    pub fn network(mut self, policy: NetworkPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Where `${env:NAME}` is looked up.
    #[must_use]
    pub fn environment(mut self, environment: impl Fn(&str) -> Option<String> + 'a) -> Self {
        self.environment = Box::new(environment);
        self
    }

    /// Reads all sets of folders. Inside a set a name may be used once; a scene of a later set
    /// replaces one of the same name in an earlier set, with a warning. `settings` is overlaid on the
    /// scenes' own, by scene name.
    pub fn load(&self, sets: Vec<Vec<Folder>>, settings: &BTreeMap<String, Value>) -> Loaded {
        let around = Surroundings {
            natives: self.natives,
            policy: self.policy.clone(),
            environment: &*self.environment,
            network: OnceCell::new(),
        };
        let mut gathered = Gathered::default();
        let configuration = Report::new("configuration");
        for entry in self.policy.malformed_hosts() {
            let message = format!("scenes.allow_hosts has {entry:?}, which is neither host nor host:port");
            configuration.error(None, "allow_hosts", message, "write it as crm.example.com or 10.0.0.7:8080");
        }
        for (set, folders) in sets.into_iter().enumerate() {
            for folder in folders {
                gathered.add(set, &folder, &around);
            }
        }
        for (name, overlay) in settings {
            gathered.overlay(name, overlay, &configuration);
        }
        gathered.faults.extend(configuration.into_faults());
        Loaded { scenes: gathered.scenes, faults: gathered.faults }
    }
}

/// Where a name was used first.
struct Seen {
    set: usize,
    name: String,
    file: String,
    line: Option<u32>,
}

#[derive(Default)]
struct Gathered {
    scenes: Vec<Scene>,
    faults: Vec<Fault>,
    /// Also of scenes that cannot be used, by their name in lower case.
    seen: BTreeMap<String, Seen>,
}

impl Gathered {
    fn add(&mut self, set: usize, folder: &Folder, around: &Surroundings<'_>) {
        let file = folder.file(SCENE_FILE);
        let report = Report::new(file.clone());
        let schema = Report::new(folder.file(SCHEMA_FILE));
        let mut draft = folder.text(SCENE_FILE, &report).and_then(|text| read::read(text, &report));
        if let Some(draft) = &mut draft {
            draft.schema_sql = folder.text(SCHEMA_FILE, &schema).map(str::to_owned);
        }
        let name = draft.as_ref().and_then(|draft| draft.name.clone());
        let unique = name.as_ref().is_none_or(|name| self.claim(set, &file, name, &report));
        let scene = draft.and_then(|draft| check(draft, around, &report));
        if let Some(scene) = scene.filter(|_| unique && !schema.failed()) {
            self.scenes.retain(|other| !other.name.eq_ignore_ascii_case(&scene.name));
            self.scenes.push(scene);
        }
        self.faults.extend(report.into_faults());
        self.faults.extend(schema.into_faults());
    }

    /// Whether this scene may have its name.
    fn claim(&mut self, set: usize, file: &str, name: &At<String>, report: &Report) -> bool {
        let key = name.value.to_lowercase();
        if let Some(first) = self.seen.get(&key) {
            let at = match first.line {
                Some(line) => format!("{}:{line}", first.file),
                None => first.file.clone(),
            };
            if first.set == set {
                let message = format!("there is a scene called {:?} already, in {at}", first.name);
                report.error(
                    name.line,
                    "duplicate_scene",
                    message,
                    "give each scene its own name (case aside)",
                );
                return false;
            }
            let message = format!("this scene replaces {:?} of {at}", first.name);
            report.warning(name.line, "replaced", message, "give it another name if both are meant");
        }
        let seen = Seen { set, name: name.value.clone(), file: file.to_owned(), line: name.line };
        self.seen.insert(key, seen);
        true
    }

    fn overlay(&mut self, name: &str, overlay: &Value, report: &Report) {
        let known = || self.seen.values().map(|seen| seen.name.as_str());
        if !self.seen.contains_key(&name.to_lowercase()) {
            let hint = did_you_mean(name, known());
            let remedy = if hint.is_empty() { format!("the scenes are: {}", listed(known())) } else { hint };
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
            // It cannot be used anyway, which was told.
            return;
        };
        if let Value::Object(settings) = &mut scene.settings {
            lay_over(settings, overlay, &format!("scenes.settings.{name}"), true, report);
        }
    }
}

/// Deep: tables are merged, everything else is replaced. Keys are the same in upper and lower case,
/// since those that come from environment variables are in lower case.
fn lay_over(
    settings: &mut Map<String, Value>,
    overlay: &Map<String, Value>,
    at: &str,
    told: bool,
    report: &Report,
) {
    for (key, value) in overlay {
        let own = settings.keys().find(|own| own.eq_ignore_ascii_case(key)).cloned();
        if told && own.is_none() {
            let known = || settings.keys().map(String::as_str);
            let hint = did_you_mean(key, known());
            let remedy =
                if hint.is_empty() { format!("its settings are: {}", listed(known())) } else { hint };
            let message = format!("{at}.{key} is not among the settings that the scene lists");
            report.warning(None, "settings_key", message, remedy);
        }
        let slot = settings.entry(own.unwrap_or_else(|| key.clone())).or_insert(Value::Null);
        match (slot, value) {
            (Value::Object(inner), Value::Object(over)) => {
                // What a scene keeps in a table may well have keys of the operator's choice.
                lay_over(inner, over, &format!("{at}.{key}"), false, report);
            }
            (slot, value) => *slot = value.clone(),
        }
    }
}

/// The scene folders of a directory, in the order of their names.
fn folders(dir: &Path) -> (Vec<Folder>, Vec<Fault>) {
    let report = Report::new(dir.display().to_string());
    if dir.join(SCENE_FILE).is_file() {
        let folder = folder(dir, &report);
        return (folder.into_iter().collect(), report.into_faults());
    }
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("the directory of scenes cannot be read: {error}");
            report.error(None, "unreadable", message, "see `--scenes` or `scenes.dir`");
            return (Vec::new(), report.into_faults());
        }
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    paths.sort();
    let mut folders = Vec::new();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.join(SCENE_FILE).is_file() {
            folders.extend(folder(&path, &report));
        } else if !hidden {
            let inside = Report::new(path.display().to_string());
            let remedy = format!("add {SCENE_FILE}, or move the folder away");
            inside.warning(None, "no_file", format!("the folder has no {SCENE_FILE}"), remedy);
            // One report a file: it is told under its own name.
            report.take(inside);
        }
    }
    if folders.is_empty() && !report.failed() {
        let remedy = format!("put one folder a scene in it, each with a {SCENE_FILE}");
        report.warning(None, "no_scenes", "there are no scenes in this directory", remedy);
    }
    (folders, report.into_faults())
}

fn folder(path: &Path, report: &Report) -> Option<Folder> {
    let mut files = BTreeMap::new();
    for name in [SCENE_FILE, SCHEMA_FILE] {
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
                report.error(None, "unreadable", message, "see its permissions");
                return None;
            }
        }
    }
    Some(Folder { label: path.display().to_string(), files })
}

/// One byte more than allowed at most, so that the excess is noticed.
fn read_bounded(file: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
