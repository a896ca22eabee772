//! From merged values to a [`Config`], with every fault found in one go.
//!
//! `serde` stops at the first thing it does not like. So what it names is told, taken out and read
//! again, until the rest is a configuration.

use std::collections::{BTreeMap, BTreeSet};

use figment::error::{Actual, Kind};
use figment::value::{Dict, Num, Value};
use figment::{Figment, Profile, Provider};
use serde::Deserialize;

use super::Config;
use super::fault::{Fault, Origin};
use super::layers::{KeyPath, Layer, find};
use crate::nearest::nearest;

/// The layers, laid over each other.
pub(super) struct Merged {
    layers: Vec<Layer>,
    figment: Figment,
    value: Value,
}

impl Merged {
    /// Lays the layers over each other; the last wins.
    pub(super) fn new(layers: Vec<Layer>) -> Self {
        let figment = layers.iter().fold(Figment::new(), |figment, layer| figment.merge(layer.clone()));
        // Providers that hold their values in memory cannot fail.
        let values = figment.data().ok().and_then(|mut data| data.remove(&Profile::Default));
        Self { layers, figment, value: Value::from(values.unwrap_or_default()) }
    }

    /// Where the value of `key` comes from: its own place, or that of what stands around it.
    pub(super) fn origin(&self, path: &[String]) -> Origin {
        let nearest = (0..=path.len())
            .rev()
            .find_map(|length| find(&self.value, &path[..length]).filter(|_| length > 0));
        nearest
            .and_then(|value| self.figment.get_metadata(value.tag()))
            .and_then(|metadata| self.layers.iter().find(|layer| layer.name == metadata.name))
            .map_or(Origin::BuiltIn, |layer| layer.place(path))
    }

    /// The value at `path` as it was written.
    pub(super) fn written(&self, path: &[String]) -> Option<String> {
        find(&self.value, path).map(show)
    }

    /// Where every key comes from that is not built in.
    pub(super) fn sources(&self) -> BTreeMap<String, Origin> {
        leaves(&self.value)
            .into_iter()
            .map(|path| (path.join("."), self.origin(&path)))
            .filter(|(_, origin)| *origin != Origin::BuiltIn)
            .collect()
    }

    /// Reads the whole. What cannot be read is told in `faults` and left at its default.
    pub(super) fn config(&self, faults: &mut Vec<Fault>) -> Config {
        let mut rest = Rest { value: self.value.clone(), holes: BTreeMap::new() };
        let mut told: BTreeSet<KeyPath> = BTreeSet::new();
        // Every round takes one value out.
        for _ in 0..=count(&self.value) {
            let error = match Config::deserialize(&rest.value) {
                Ok(config) => return config,
                Err(error) => error,
            };
            let (mut path, cut) = (rest.original(&error.path), error.path.clone());
            if let Kind::MissingField(field) = &error.kind {
                path.push(field.to_string());
            }
            if told.insert(path.clone()) {
                faults.push(self.fault(&error.kind, &path));
            }
            if !rest.remove(&cut) {
                break;
            }
        }
        Config::default()
    }

    fn fault(&self, kind: &Kind, path: &[String]) -> Fault {
        let key = path.join(".");
        let origin = self.origin(path);
        let value = self.written(path);
        let is = value.as_deref().map_or_else(|| "its value".to_owned(), |value| format!("`{value}`"));
        let (code, message, remedy) = match kind {
            Kind::UnknownField(name, siblings) => (
                "config.unknown_key",
                format!("there is no key `{key}`"),
                known(path, name, siblings, &origin),
            ),
            Kind::UnknownVariant(name, choices) => (
                "config.value",
                format!("`{key}` = `{name}` is not one of its choices"),
                choice(name, choices),
            ),
            Kind::InvalidType(found, expected) => (
                "config.type",
                format!("`{key}` = {is} is {}, and must be {}", noun(found), article(expected)),
                default_of(path),
            ),
            Kind::InvalidValue(_, expected) | Kind::InvalidLength(_, expected) => (
                "config.value",
                format!("`{key}` = {is} does not fit: it must be {}", article(expected)),
                default_of(path),
            ),
            Kind::MissingField(_) => {
                ("config.missing", format!("`{key}` is missing"), format!("add `{}`", last(path)))
            }
            Kind::Message(why) => {
                ("config.value", format!("`{key}` = {is} does not fit: {why}"), default_of(path))
            }
            other => ("config.value", format!("`{key}` = {is} does not fit: {other}"), default_of(path)),
        };
        Fault { code, origin, key, value, message, remedy }
    }
}

/// What is left to be read, and which elements of lists are gone.
struct Rest {
    value: Value,
    holes: BTreeMap<KeyPath, BTreeSet<usize>>,
}

impl Rest {
    /// `path` with the indices that the elements had before others were taken out.
    fn original(&self, path: &[String]) -> KeyPath {
        let mut out = KeyPath::new();
        for step in path {
            let mut index = step.parse::<usize>().ok();
            if let (Some(at), Some(gone)) = (index.as_mut(), self.holes.get(&out)) {
                for hole in gone {
                    if *hole <= *at {
                        *at += 1;
                    }
                }
                out.push(at.to_string());
            } else {
                out.push(step.clone());
            }
        }
        out
    }

    /// Takes the value at `path` out; `false` where there is none.
    fn remove(&mut self, path: &[String]) -> bool {
        let Some((last, around)) = path.split_last() else { return false };
        let list = self.original(around);
        let element = self.original(path).last().and_then(|index| index.parse::<usize>().ok());
        let parent = around.iter().try_fold(&mut self.value, |value, step| match value {
            Value::Dict(_, dict) => dict.get_mut(step),
            Value::Array(_, items) => items.get_mut(step.parse::<usize>().ok()?),
            _ => None,
        });
        match parent {
            Some(Value::Dict(_, dict)) => dict.remove(last).is_some(),
            Some(Value::Array(_, items)) => match (last.parse::<usize>(), element) {
                (Ok(index), Some(element)) if index < items.len() => {
                    items.remove(index);
                    self.holes.entry(list).or_default().insert(element);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// The shape of a configuration: every key, with its default.
pub(super) fn shape() -> Value {
    // Plain structs with text keys; what could not be written would fail the tests of `default.toml`.
    Value::serialize(Config::default()).unwrap_or_else(|_| Value::from(Dict::new()))
}

fn leaves(value: &Value) -> Vec<KeyPath> {
    fn walk(value: &Value, at: &mut KeyPath, out: &mut Vec<KeyPath>) {
        match value {
            Value::Dict(_, dict) if !dict.is_empty() || at.is_empty() => {
                for (key, value) in dict {
                    at.push(key.clone());
                    walk(value, at, out);
                    at.pop();
                }
            }
            _ => out.push(at.clone()),
        }
    }
    let mut out = Vec::new();
    walk(value, &mut KeyPath::new(), &mut out);
    out
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Dict(_, dict) => dict.values().map(count).sum(),
        Value::Array(_, items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

fn last(path: &[String]) -> &str {
    path.last().map_or("", String::as_str)
}

/// How the key is written where the faulty one stands.
fn spelled(key: &str, origin: &Origin) -> String {
    match origin {
        Origin::Variable(_) => format!("`PROSCENIUM__{}`", key.to_uppercase().replace('.', "__")),
        _ => format!("`{key}`"),
    }
}

fn known(path: &[String], name: &str, siblings: &[&str], origin: &Origin) -> String {
    let section = path.split_last().map(|(_, around)| around.join(".")).unwrap_or_default();
    let full = |key: &str| if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
    if let Some(near) = nearest(name, siblings.iter().copied()) {
        return format!("did you mean {}?", spelled(&full(near), origin));
    }
    let elsewhere = leaves(&shape()).into_iter().find(|leaf| leaf.len() > 1 && last(leaf) == name);
    if let Some(elsewhere) = elsewhere {
        return format!("did you mean {}?", spelled(&elsewhere.join("."), origin));
    }
    let what =
        if section.is_empty() { "sections are".to_owned() } else { format!("keys of `{section}` are") };
    let mut list: Vec<&str> = siblings.to_vec();
    list.sort_unstable();
    format!("remove it; {what} {}", list.join(", "))
}

fn choice(name: &str, choices: &[&str]) -> String {
    let list = choices.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ");
    match nearest(name, choices.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"? The choices are {list}"),
        None => format!("the choices are {list}"),
    }
}

fn default_of(path: &[String]) -> String {
    match find(&shape(), path) {
        Some(Value::Empty(..)) | None => format!("mend it, or leave `{}` out", last(path)),
        Some(default) => format!("mend it, or leave it out for the default `{}`", show(default)),
    }
}

fn noun(found: &Actual) -> &'static str {
    match found {
        Actual::Bool(_) => "true or false",
        Actual::Unsigned(_) | Actual::Signed(_) => "a whole number",
        Actual::Float(_) => "a number with a fraction",
        Actual::Char(_) | Actual::Str(_) => "text",
        Actual::Seq => "a list",
        Actual::Map => "a table",
        _ => "of another kind",
    }
}

/// `serde`'s names of types in plain words.
fn article(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "string" | "path string" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        struct_name if struct_name.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

/// A value as one would write it in the file, cut where it is long.
pub(super) fn show(value: &Value) -> String {
    let text = match value {
        Value::String(_, text) => text.clone(),
        Value::Char(_, c) => c.to_string(),
        Value::Bool(_, yes) => yes.to_string(),
        Value::Num(_, Num::F32(number)) => number.to_string(),
        Value::Num(_, Num::F64(number)) => number.to_string(),
        Value::Num(..) => match (value.to_u128(), value.to_i128()) {
            (Some(number), _) => number.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => String::new(),
        },
        Value::Empty(..) => String::new(),
        Value::Array(_, items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Dict(_, dict) => {
            let fields: Vec<String> = dict.iter().map(|(k, v)| format!("{k} = {}", show(v))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    };
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
