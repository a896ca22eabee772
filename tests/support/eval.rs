//! Parser of `tests/eval`: unknown fields are errors. Its README describes the fields.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// Requests with one clock and one catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Such as `2026-11-22T09:00:00+01:00`.
    pub clock: String,
    pub time_zone: String,
    /// `shipped`, `all`, or the folder of one scene.
    pub catalogue: String,
    /// Without the shipped scenes.
    #[serde(default)]
    pub alone: bool,
    pub requests: Vec<Labelled>,
}

/// A request with its expected result.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    pub id: String,
    pub lang: Lang,
    pub class: Class,
    #[serde(default)]
    pub blind: bool,
    #[serde(default)]
    pub plain: bool,
    pub system: Option<String>,
    #[serde(default)]
    pub history: Vec<Earlier>,
    pub say: String,
    pub scenes: Option<Vec<String>>,
    pub calls: Vec<Call>,
    #[serde(default)]
    pub optional: Vec<String>,
    #[serde(default)]
    pub asks: bool,
    #[serde(default)]
    pub may_ask: bool,
    #[serde(default)]
    pub undone: Vec<String>,
}

/// An earlier request of the conversation and its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    pub user: String,
    pub assistant: String,
}

/// A call with the arguments that the words determine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub tool: String,
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    En,
    It,
}

/// What kind of request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Request,
    List,
    Dates,
    Missing,
    Partial,
    Negated,
    Question,
    Report,
    Condition,
    Reminder,
    Quoted,
    ThirdPerson,
    Hypothetical,
    Background,
    OutOfScope,
}

impl Class {
    /// Whether its requests ask for no write.
    pub fn must_not_write(self) -> bool {
        self >= Self::Negated
    }
}

impl Labelled {
    /// All words: the request and the conversation before it.
    pub fn words(&self) -> String {
        let earlier = self.history.iter().flat_map(|turn| [turn.user.as_str(), turn.assistant.as_str()]);
        earlier.chain([self.say.as_str()]).collect::<Vec<_>>().join("\n")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// All files, by name.
pub fn sets() -> Vec<Set> {
    let files = fs::read_dir(root().join("eval")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "yaml")).collect();
    files.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        serde_norway::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}

/// A scene that is added to the shipped ones.
pub struct Service {
    pub folder: String,
    /// Its `scene.toml`.
    pub scene: String,
    /// The backend's replies by method and path.
    pub replies: BTreeMap<String, Value>,
}

impl Service {
    fn at(folder: &Path) -> Self {
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        Self {
            folder: folder.file_name().unwrap().to_string_lossy().into_owned(),
            scene: read("scene.toml"),
            replies: serde_json::from_str(&read("replies.json")).unwrap(),
        }
    }

    fn library() -> Self {
        let scene = fs::read_to_string(root().join("scenarios/library/scene.toml")).unwrap();
        let replies = serde_json::json!({
            "GET /books": {"books": [{"title": "Emma", "author": "Jane Austen"}]},
            "POST /reservations": {"code": "R-7"},
        });
        Self {
            folder: "library".into(),
            scene: scene.replace("http://library.invalid", "http://eval.invalid"),
            replies: serde_json::from_value(replies).unwrap(),
        }
    }

    /// The scenes of a catalogue in addition to the shipped ones.
    pub fn of(catalogue: &str) -> Vec<Self> {
        let scenes = root().join("eval/scenes");
        match catalogue {
            "shipped" => vec![],
            "library" => vec![Self::library()],
            "all" => {
                let folders = fs::read_dir(scenes).unwrap().map(|entry| entry.unwrap().path());
                let mut folders: Vec<PathBuf> = folders.collect();
                folders.sort();
                folders.iter().map(|folder| Self::at(folder)).chain([Self::library()]).collect()
            }
            folder => vec![Self::at(&scenes.join(folder))],
        }
    }
}
