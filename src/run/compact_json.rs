//! JSON that is kept as text and read when a rule asks for its value.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON value as compact text: a tree of values takes five times as much memory, and most of what a run knows of its
/// conversation is only written into its journal and into prompts. It dereferences to the value, which is parsed at the
/// first use and then kept.
pub struct CompactJson {
    text: Box<RawValue>,
    value: OnceLock<Box<Value>>,
}

/// The texts and numbers of a value.
pub(crate) fn plain_leaves(value: &Value) -> Vec<&Value> {
    let mut leaves = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(list) => open.extend(list),
            Value::Object(members) => open.extend(members.values()),
            Value::String(_) | Value::Number(_) => leaves.push(value),
            Value::Null | Value::Bool(_) => {}
        }
    }
    leaves
}

impl CompactJson {
    /// The value that a text of [`CompactJson::text`] stands for.
    pub(crate) fn of_text(text: &str) -> Self {
        // Text of [`CompactJson::text`] is JSON.
        Self::new(RawValue::from_string(text.to_owned()).ok())
    }

    fn new(text: Option<Box<RawValue>>) -> Self {
        Self { text: text.unwrap_or_else(|| RawValue::NULL.to_owned()), value: OnceLock::new() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// The value.
    pub fn value(&self) -> &Value {
        // It was written from a value, so it can be read.
        self.value.get_or_init(|| Box::new(serde_json::from_str(self.text()).unwrap_or_default()))
    }

    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = self.value().clone();
        change(&mut value);
        *self = value.into();
    }
}

impl From<&Value> for CompactJson {
    fn from(value: &Value) -> Self {
        // Names of members are texts, so every value can be written.
        Self::new(to_raw_value(value).ok())
    }
}

impl From<Value> for CompactJson {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl Deref for CompactJson {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl Default for CompactJson {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Clone for CompactJson {
    fn clone(&self) -> Self {
        Self::new(Some(self.text.clone()))
    }
}

impl PartialEq for CompactJson {
    /// Members are written in the order of their names, so equal values have equal texts.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl PartialEq<Value> for CompactJson {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl fmt::Display for CompactJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for CompactJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.value(), f)
    }
}

impl Serialize for CompactJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CompactJson {
    /// By way of the value, because some formats that events are read from cannot contain JSON text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_they_were_and_read_when_asked_for() {
        let value = json!({"z": [1.5, null, -0.0, 1e300, u64::MAX], "b": {"y": true, "x": "\"é\"\n"}});
        let kept = CompactJson::from(&value);
        assert_eq!(kept.text(), value.to_string());
        assert_eq!(serde_json::to_string(&kept).unwrap(), value.to_string());
        assert_eq!(json!({"kept": kept}), json!({"kept": value}));
        assert!(kept.value.get().is_none());
        assert_eq!(kept["b"]["y"], true);
        assert_eq!(kept, value);
        let spaced: CompactJson = serde_json::from_str(" {\"b\" : 1, \"a\": 2}").unwrap();
        assert_eq!(spaced.text(), r#"{"a":2,"b":1}"#);
        assert_eq!(CompactJson::of_text(spaced.text()), spaced);
        assert_eq!(CompactJson::default(), Value::Null);
    }
}
