//! The layers of a configuration as figment providers: each is a tree of values, and remembers
//! where each value was written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Origin};
use super::openai;

/// What the command line sets. Everything else belongs in a file or in the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--scenes DIR`: `scenes.dir`.
    pub scenes: Option<PathBuf>,
    /// `--data-dir DIR`: `store.data_dir`.
    pub data_dir: Option<PathBuf>,
    /// `--user NAME`: `auth.default_user`.
    pub user: Option<String>,
    /// `--addr HOST:PORT`: `server.addr`.
    pub addr: Option<String>,
}

/// The path of a key: `["llm", "models", "0", "name"]`.
pub(super) type KeyPath = Vec<String>;

/// One layer: its values, and where each of them stands.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    /// Names the layer in figment's metadata.
    pub name: String,
    /// The values.
    pub values: Dict,
    /// Where each key was written, tables and elements of lists included.
    pub places: BTreeMap<KeyPath, Origin>,
    /// The place of what has none of its own.
    pub whole: Origin,
}

impl Layer {
    pub(super) fn new(name: &str, whole: Origin) -> Self {
        Self { name: name.to_owned(), values: Dict::new(), places: BTreeMap::new(), whole }
    }

    /// Where the key at `path` was written: its own place, or that of the nearest table around it.
    pub(super) fn place(&self, path: &[String]) -> Origin {
        (0..=path.len())
            .rev()
            .find_map(|length| self.places.get(&path[..length]).cloned())
            .unwrap_or_else(|| self.whole.clone())
    }

    pub(super) fn set(&mut self, path: &[String], value: Value, origin: Origin) {
        if let Some((last, tables)) = path.split_last() {
            let mut dict = &mut self.values;
            for table in tables {
                let entry = dict.entry(table.clone()).or_insert_with(|| Value::from(Dict::new()));
                if !matches!(entry, Value::Dict(..)) {
                    *entry = Value::from(Dict::new());
                }
                match entry {
                    Value::Dict(_, inner) => dict = inner,
                    // Made a table just above.
                    _ => return,
                }
            }
            dict.insert(last.clone(), value);
            self.places.insert(path.to_vec(), origin);
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Reads TOML text. Every syntax error is a fault of its own, and the values of a broken text are not
/// looked at: after an unclosed bracket they stand in the wrong section.
pub(super) fn toml_layer(name: &str, text: &str, path: Option<&Path>, faults: &mut Vec<Fault>) -> Layer {
    let origin = |offset: usize| match path {
        None => Origin::BuiltIn,
        Some(path) => Origin::File { path: path.to_owned(), line: Some(line_of(text, offset)) },
    };
    let whole = match path {
        None => Origin::BuiltIn,
        Some(path) => Origin::File { path: path.to_owned(), line: None },
    };
    let mut layer = Layer::new(name, whole);
    let (table, errors) = DeTable::parse_recoverable(text);
    let broken = !errors.is_empty();
    for error in errors {
        faults.push(Fault {
            code: "config.syntax",
            origin: origin(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            value: None,
            message: format!("this is not TOML: {}", error.message()),
            remedy: "write `key = value` under `[section]`; text stands in double quotes".to_owned(),
        });
    }
    let mut at = KeyPath::new();
    layer.values = dict(table.get_ref(), &mut at, &mut |path, offset| {
        layer.places.insert(path.clone(), origin(offset));
    });
    if broken {
        layer.values.clear();
    }
    layer
}

fn dict(table: &DeTable<'_>, at: &mut KeyPath, place: &mut impl FnMut(&KeyPath, usize)) -> Dict {
    let mut out = Dict::new();
    for (key, value) in table.iter() {
        at.push(key.get_ref().to_string());
        place(at, key.span().start);
        out.insert(key.get_ref().to_string(), self::value(value, at, place));
        at.pop();
    }
    out
}

fn value(spanned: &Spanned<DeValue<'_>>, at: &mut KeyPath, place: &mut impl FnMut(&KeyPath, usize)) -> Value {
    match spanned.get_ref() {
        DeValue::String(text) => Value::from(text.to_string()),
        DeValue::Boolean(yes) => Value::from(*yes),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::from(integer),
            // Too large for any key: kept as it was written, and refused with its type.
            Err(_) => Value::from(integer.as_str().to_owned()),
        },
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(float) => Value::from(float),
            Err(_) => Value::from(float.as_str().to_owned()),
        },
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => {
            let mut out = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                at.push(index.to_string());
                place(at, item.span().start);
                out.push(value(item, at, place));
                at.pop();
            }
            Value::from(out)
        }
        DeValue::Table(table) => Value::from(dict(table, at, place)),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

const PREFIX: &str = "PROSCENIUM__";

/// Reads the environment: `PROSCENIUM__SECTION__KEY`, and the three `OPENAI_` variables where no
/// lower layer names a model (`has_models`).
///
/// Section and key are read in any case. Deeper names, such as those of scenes, are taken as they
/// are written unless they are all capitals (`PROSCENIUM__SCENES__SETTINGS__Weather__source`). A
/// value is text where the key takes text (`shape` says so), and otherwise `true`, a number,
/// `[a, b]` or `{a = b}`.
pub(super) fn env_layer(
    env: &BTreeMap<String, String>,
    shape: &Value,
    has_models: bool,
    warnings: &mut Vec<Fault>,
) -> Layer {
    let mut layer = Layer::new("environment", Origin::Variable(format!("{PREFIX}*")));
    for (name, text) in env {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            if name.starts_with("PROSCENIUM_") {
                warnings.push(unread_variable(name, text));
            }
            continue;
        };
        let path: KeyPath = rest
            .split("__")
            .enumerate()
            .map(|(depth, word)| {
                let capitals = !word.chars().any(char::is_lowercase);
                if depth < 2 || capitals { word.to_lowercase() } else { word.to_owned() }
            })
            .collect();
        let value = match find(shape, &path) {
            Some(Value::String(..)) => Value::from(text.clone()),
            // Parsing a value cannot fail: what is nothing else is text.
            _ => text.parse::<Value>().unwrap_or_else(|never| match never {}),
        };
        layer.set(&path, value, Origin::Variable(name.clone()));
    }
    let named_here =
        find(&Value::from(layer.values.clone()), &["llm".to_owned(), "models".to_owned()]).is_some();
    openai::add(&mut layer, env, has_models || named_here, warnings);
    layer
}

fn unread_variable(name: &str, text: &str) -> Fault {
    let meant = name.trim_start_matches("PROSCENIUM_").trim_start_matches('_').replacen('_', "__", 1);
    Fault {
        code: "config.unused",
        origin: Origin::Variable(name.to_owned()),
        key: String::new(),
        value: Some(text.to_owned()),
        message: format!("{name} is not read: section and key are set off by two underscores"),
        remedy: format!("write {PREFIX}SECTION__KEY, such as {PREFIX}{meant}"),
    }
}

/// The command line as a layer.
pub(super) fn flag_layer(flags: &Flags) -> Layer {
    let mut layer = Layer::new("flags", Origin::Flag("--*".to_owned()));
    let mut set = |flag: &str, section: &str, key: &str, value: Option<String>| {
        if let Some(value) = value {
            let path = [section.to_owned(), key.to_owned()];
            layer.set(&path, Value::from(value), Origin::Flag(flag.to_owned()));
        }
    };
    let text = |path: &Option<PathBuf>| path.as_ref().map(|p| p.to_string_lossy().into_owned());
    set("--scenes", "scenes", "dir", text(&flags.scenes));
    set("--data-dir", "store", "data_dir", text(&flags.data_dir));
    set("--user", "auth", "default_user", flags.user.clone());
    set("--addr", "server", "addr", flags.addr.clone());
    layer
}

/// The value at `path`, through tables and lists.
pub(super) fn find<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Dict(_, dict) => dict.get(step),
        Value::Array(_, items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}
