//! Deserializes merged values into a [`Config`], and finds all faults in one pass.
//!
//! `serde` stops at the first error. So the value that it names is reported and removed, and the rest is
//! deserialized again, until it is valid.

use std::collections::{BTreeMap, BTreeSet};

use figment::error::{Actual, Kind};
use figment::value::{Dict, Num, Value};
use figment::{Figment, Profile, Provider};
use serde::Deserialize;

use super::Config;
use super::fault::{ConfigFault, ValueOrigin};
use super::layers::{ConfigLayer, KeyPath, value_at};
use crate::nearest::nearest;

pub(super) struct MergedLayers {
    layers: Vec<ConfigLayer>,
    figment: Figment,
    value: Value,
}

impl MergedLayers {
    /// Merges the layers; the last wins.
    pub(super) fn new(layers: Vec<ConfigLayer>) -> Self {
        let figment = layers.iter().fold(Figment::new(), |figment, layer| figment.merge(layer.clone()));
        // Providers that hold their values in memory cannot fail.
        let values = figment.data().ok().and_then(|mut data| data.remove(&Profile::Default));
        Self { layers, figment, value: Value::from(values.unwrap_or_default()) }
    }

    /// The origin of the value at `path`, or of its nearest enclosing value.
    pub(super) fn origin(&self, path: &[String]) -> ValueOrigin {
        let nearest = (0..=path.len())
            .rev()
            .find_map(|length| value_at(&self.value, &path[..length]).filter(|_| length > 0));
        nearest
            .and_then(|value| self.figment.get_metadata(value.tag()))
            .and_then(|metadata| self.layers.iter().find(|layer| layer.name == metadata.name))
            .map_or(ValueOrigin::BuiltIn, |layer| layer.origin_of(path))
    }

    /// The value at `path` as written.
    pub(super) fn written_value(&self, path: &[String]) -> Option<String> {
        value_at(&self.value, path).map(format_value)
    }

    /// The origins of all keys that are not built in.
    pub(super) fn sources(&self) -> BTreeMap<String, ValueOrigin> {
        leaf_paths(&self.value)
            .into_iter()
            .map(|path| (path.join("."), self.origin(&path)))
            .filter(|(_, origin)| *origin != ValueOrigin::BuiltIn)
            .collect()
    }

    /// Deserializes the configuration. Invalid values are reported in `faults` and keep their defaults.
    pub(super) fn config(&self, faults: &mut Vec<ConfigFault>) -> Config {
        let mut rest = UnreadValues { value: self.value.clone(), removed: BTreeMap::new() };
        let mut reported: BTreeSet<KeyPath> = BTreeSet::new();
        // Every round removes one value.
        for _ in 0..=count_values(&self.value) {
            let error = match Config::deserialize(&rest.value) {
                Ok(config) => return config,
                Err(error) => error,
            };
            let (mut path, cut) = (rest.original_path(&error.path), error.path.clone());
            if let Kind::MissingField(field) = &error.kind {
                path.push(field.to_string());
            }
            if reported.insert(path.clone()) {
                faults.push(self.fault(&error.kind, &path));
            }
            if !rest.remove(&cut) {
                break;
            }
        }
        Config::default()
    }

    fn fault(&self, kind: &Kind, path: &[String]) -> ConfigFault {
        let key = path.join(".");
        let origin = self.origin(path);
        let value = self.written_value(path);
        let is = value.as_deref().map_or_else(|| "its value".to_owned(), |value| format!("`{value}`"));
        let (code, message, remedy) = match kind {
            Kind::UnknownField(name, siblings) => (
                "config.unknown_key",
                format!("there is no key `{key}`"),
                unknown_key_remedy(path, name, siblings, &origin),
            ),
            Kind::UnknownVariant(name, choices) => (
                "config.value",
                format!("`{key}` = `{name}` is not one of its choices"),
                choice_remedy(name, choices),
            ),
            Kind::InvalidType(found, expected) => (
                "config.type",
                format!("`{key}` = {is} is {}, and must be {}", type_name(found), expected_name(expected)),
                match (found, value.as_deref()) {
                    // One host, not written as a list. A model is more than its name.
                    (Actual::Str(_), Some(text)) if *expected == "a sequence" && key != "llm.models" => {
                        format!("write `[{text:?}]`")
                    }
                    _ => default_remedy(path),
                },
            ),
            Kind::InvalidValue(_, expected) | Kind::InvalidLength(_, expected) => (
                "config.value",
                format!("`{key}` = {is} is invalid: it must be {}", expected_name(expected)),
                default_remedy(path),
            ),
            Kind::MissingField(_) => {
                ("config.missing", format!("`{key}` is missing"), format!("add `{}`", last_segment(path)))
            }
            Kind::Message(why) => {
                ("config.value", format!("`{key}` = {is} is invalid: {why}"), default_remedy(path))
            }
            other => ("config.value", format!("`{key}` = {is} is invalid: {other}"), default_remedy(path)),
        };
        ConfigFault { code, origin, key, value, message, remedy }
    }
}

/// The values still to be deserialized, and the list elements that were removed.
struct UnreadValues {
    value: Value,
    removed: BTreeMap<KeyPath, BTreeSet<usize>>,
}

impl UnreadValues {
    /// `path` with the indices that list elements had before others were removed.
    fn original_path(&self, path: &[String]) -> KeyPath {
        let mut out = KeyPath::new();
        for step in path {
            let mut index = step.parse::<usize>().ok();
            if let (Some(at), Some(gone)) = (index.as_mut(), self.removed.get(&out)) {
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

    /// Removes the value at `path`; `false` if there is none.
    fn remove(&mut self, path: &[String]) -> bool {
        let Some((last, around)) = path.split_last() else { return false };
        let list = self.original_path(around);
        let element = self.original_path(path).last().and_then(|index| index.parse::<usize>().ok());
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
                    self.removed.entry(list).or_default().insert(element);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// Every key of a configuration with its default.
pub(super) fn default_values() -> Value {
    // Plain structs with text keys always serialize; the tests of `default.toml` cover this.
    Value::serialize(Config::default()).unwrap_or_else(|_| Value::from(Dict::new()))
}

pub(super) fn leaf_paths(value: &Value) -> Vec<KeyPath> {
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

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Dict(_, dict) => dict.values().map(count_values).sum(),
        Value::Array(_, items) => items.iter().map(count_values).sum(),
        _ => 0,
    }
}

fn last_segment(path: &[String]) -> &str {
    path.last().map_or("", String::as_str)
}

/// The key in the notation of the faulty one's origin.
fn key_as_written(key: &str, origin: &ValueOrigin) -> String {
    match origin {
        ValueOrigin::Variable(_) => format!("`PROSCENIUM__{}`", key.to_uppercase().replace('.', "__")),
        _ => format!("`{key}`"),
    }
}

fn unknown_key_remedy(path: &[String], name: &str, siblings: &[&str], origin: &ValueOrigin) -> String {
    let section = path.split_last().map(|(_, around)| around.join(".")).unwrap_or_default();
    let full = |key: &str| if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
    if let Some(near) = nearest(name, siblings.iter().copied()) {
        return format!("did you mean {}?", key_as_written(&full(near), origin));
    }
    let elsewhere =
        leaf_paths(&default_values()).into_iter().find(|leaf| leaf.len() > 1 && last_segment(leaf) == name);
    if let Some(elsewhere) = elsewhere {
        return format!("did you mean {}?", key_as_written(&elsewhere.join("."), origin));
    }
    let what =
        if section.is_empty() { "sections are".to_owned() } else { format!("keys of `{section}` are") };
    let mut list: Vec<&str> = siblings.to_vec();
    list.sort_unstable();
    format!("remove it; {what} {}", list.join(", "))
}

fn choice_remedy(name: &str, choices: &[&str]) -> String {
    let list = choices.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ");
    match nearest(name, choices.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"? The choices are {list}"),
        None => format!("the choices are {list}"),
    }
}

fn default_remedy(path: &[String]) -> String {
    match value_at(&default_values(), path) {
        Some(Value::Empty(..)) | None => format!("fix it, or remove `{}`", last_segment(path)),
        Some(default) => format!("fix it, or remove it to use the default `{}`", format_value(default)),
    }
}

fn type_name(found: &Actual) -> &'static str {
    match found {
        Actual::Bool(_) => "true or false",
        Actual::Unsigned(_) | Actual::Signed(_) => "a whole number",
        Actual::Float(_) => "a number with a fraction",
        Actual::Str(text) if is_oversized_integer(text) => "a number that is too large",
        Actual::Char(_) | Actual::Str(_) => "text",
        Actual::Seq => "a list",
        Actual::Map => "a table",
        _ => "of another kind",
    }
}

/// Whether this is an integer that does not fit 64 bits, which layers keep as text.
fn is_oversized_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_err()
}

/// Plain words for `serde`'s type names.
fn expected_name(expected: &str) -> String {
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

/// A value in TOML-like notation, truncated if it is long.
pub(super) fn format_value(value: &Value) -> String {
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
        Value::Array(_, items) => {
            format!("[{}]", items.iter().map(format_value).collect::<Vec<_>>().join(", "))
        }
        Value::Dict(_, dict) => {
            let fields: Vec<String> =
                dict.iter().map(|(k, v)| format!("{k} = {}", format_value(v))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    };
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
