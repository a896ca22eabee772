//! The layers of a configuration as figment providers: each is a tree of values with the origin of each
//! value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{ConfigFault, ValueOrigin};
use super::openai;
use super::read::leaf_paths;

/// Settings from command line flags. Everything else belongs in a file or in the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFlags {
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

/// One layer: its values and their origins.
#[derive(Debug, Clone)]
pub(super) struct ConfigLayer {
    /// The layer's name in figment's metadata.
    pub name: String,
    /// The values.
    pub values: Dict,
    /// The origin of each key, including tables and list elements.
    pub origins: BTreeMap<KeyPath, ValueOrigin>,
    /// The origin of everything without a separate one.
    pub layer_origin: ValueOrigin,
}

impl ConfigLayer {
    pub(super) fn new(name: &str, layer_origin: ValueOrigin) -> Self {
        Self { name: name.to_owned(), values: Dict::new(), origins: BTreeMap::new(), layer_origin }
    }

    /// The origin of the key at `path`, or of the nearest enclosing table.
    pub(super) fn origin_of(&self, path: &[String]) -> ValueOrigin {
        (0..=path.len())
            .rev()
            .find_map(|length| self.origins.get(&path[..length]).cloned())
            .unwrap_or_else(|| self.layer_origin.clone())
    }

    pub(super) fn set(&mut self, path: &[String], value: Value, origin: ValueOrigin) {
        if let Some((last, tables)) = path.split_last() {
            let mut dict = &mut self.values;
            for table in tables {
                let entry = dict.entry(table.clone()).or_insert_with(|| Value::from(Dict::new()));
                if !matches!(entry, Value::Dict(..)) {
                    *entry = Value::from(Dict::new());
                }
                match entry {
                    Value::Dict(_, inner) => dict = inner,
                    // Unreachable: the entry was made a table above.
                    _ => return,
                }
            }
            dict.insert(last.clone(), value);
            self.origins.insert(path.to_vec(), origin);
        }
    }
}

impl Provider for ConfigLayer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Parses TOML. Every syntax error is a separate fault. The values of a text with syntax errors are ignored:
/// after an unclosed bracket they would be in the wrong section.
pub(super) fn toml_layer(
    name: &str,
    text: &str,
    path: Option<&Path>,
    faults: &mut Vec<ConfigFault>,
) -> ConfigLayer {
    let origin = |offset: usize| match path {
        None => ValueOrigin::BuiltIn,
        Some(path) => ValueOrigin::File { path: path.to_owned(), line: Some(line_of(text, offset)) },
    };
    let whole = match path {
        None => ValueOrigin::BuiltIn,
        Some(path) => ValueOrigin::File { path: path.to_owned(), line: None },
    };
    let mut layer = ConfigLayer::new(name, whole);
    let (table, errors) = DeTable::parse_recoverable(text);
    let broken = !errors.is_empty();
    for error in errors {
        faults.push(ConfigFault {
            code: "config.syntax",
            origin: origin(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            value: None,
            message: format!("this is not TOML: {}", error.message()),
            remedy: "write `key = value` under `[section]`; put text in double quotes".to_owned(),
        });
    }
    let mut at = KeyPath::new();
    layer.values = dict(table.get_ref(), &mut at, &mut |path, offset| {
        layer.origins.insert(path.clone(), origin(offset));
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
            // Too large for any key: kept as text, which gives a type error.
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

/// Reads the environment: `PROSCENIUM__SECTION__KEY`, and the three `OPENAI_` variables unless a lower layer
/// configures models (`has_models`).
///
/// Section and key are case-insensitive. Deeper names, such as those of scenes, keep their case unless they
/// are all upper case (`PROSCENIUM__SCENES__SETTINGS__Weather__source`). A value is text if the key takes
/// text (according to `shape`), and otherwise `true`, a number, `[a, b]` or `{a = b}`.
pub(super) fn env_layer(
    env: &BTreeMap<String, String>,
    shape: &Value,
    has_models: bool,
    warnings: &mut Vec<ConfigFault>,
) -> ConfigLayer {
    let mut layer = ConfigLayer::new("environment", ValueOrigin::Variable(format!("{PREFIX}*")));
    for (name, text) in env {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            if name.starts_with("PROSCENIUM_") {
                warnings.push(unread_variable(name, text, shape));
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
        let value = match value_at(shape, &path) {
            Some(Value::String(..)) => Value::from(text.clone()),
            // Parsing a value cannot fail: the fallback is text.
            _ => text.parse::<Value>().unwrap_or_else(|never| match never {}),
        };
        layer.set(&path, value, ValueOrigin::Variable(name.clone()));
    }
    let named_here =
        value_at(&Value::from(layer.values.clone()), &["llm".to_owned(), "models".to_owned()]).is_some();
    openai::add(&mut layer, env, has_models || named_here, warnings);
    layer
}

fn unread_variable(name: &str, text: &str, shape: &Value) -> ConfigFault {
    let rest = name.trim_start_matches("PROSCENIUM_").trim_start_matches('_');
    let plain = rest.replace("__", "_").to_lowercase();
    let known = leaf_paths(shape)
        .into_iter()
        .find(|path| path.join("_") == plain || path.len() > 1 && path.last() == Some(&plain));
    let meant = match known {
        Some(path) => path.join("__").to_uppercase(),
        // `PROSCENIUM_SERVER__ADDR` lacks one only before the section.
        None if rest.contains("__") => rest.to_owned(),
        None => rest.replacen('_', "__", 1),
    };
    ConfigFault {
        code: "config.unused",
        origin: ValueOrigin::Variable(name.to_owned()),
        key: String::new(),
        value: Some(text.to_owned()),
        message: format!("{name} is not read: write two underscores before the section and before the key"),
        remedy: format!("write {PREFIX}SECTION__KEY, such as {PREFIX}{meant}"),
    }
}

/// The layer of the command line flags.
pub(super) fn flag_layer(flags: &ConfigFlags) -> ConfigLayer {
    let mut layer = ConfigLayer::new("flags", ValueOrigin::Flag("--*".to_owned()));
    let mut set = |flag: &str, section: &str, key: &str, value: Option<String>| {
        if let Some(value) = value {
            let path = [section.to_owned(), key.to_owned()];
            layer.set(&path, Value::from(value), ValueOrigin::Flag(flag.to_owned()));
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
pub(super) fn value_at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Dict(_, dict) => dict.get(step),
        Value::Array(_, items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}
