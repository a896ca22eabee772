//! JSON Schemas with cached text, because each is serialized many times: for prompts, their hashes, and
//! requests to providers. And what the schema of an object declares: its properties, and which are required.

mod ordered;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use ordered::PropertiesInOrder;

/// The JSON Schema of a function's arguments. Dereferences to its value. Clones share the value and the text,
/// which is serialized once.
#[derive(Clone)]
pub struct Schema(Arc<SharedSchema>);

struct SharedSchema {
    value: Value,
    /// `None` inside if serialization failed; no such value is known.
    text: OnceLock<Option<Box<RawValue>>>,
    /// The same, with properties in the order of `required`.
    ordered: OnceLock<Option<Box<RawValue>>>,
}

impl Schema {
    /// The length of its JSON in bytes.
    pub fn json_bytes(&self) -> usize {
        self.text().map_or(0, |text| text.get().len())
    }

    fn text(&self) -> Option<&RawValue> {
        self.0.text.get_or_init(|| to_raw_value(&self.0.value).ok()).as_deref()
    }
}

/// The properties that the schema of an object declares.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The names of these properties.
pub(crate) fn property_names(schema: &Value) -> impl Iterator<Item = &str> {
    properties(schema).map(|(name, _)| name.as_str())
}

/// The names that the schema of an object requires, in its order.
pub(crate) fn required_names(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns whether the schema of an object requires the property `name`.
pub(crate) fn is_required(schema: &Value, name: &str) -> bool {
    required_names(schema).any(|required| required == name)
}

/// A schema that is serialized with its properties in the order of `required`, as models should write them.
#[derive(Debug, Clone, Copy)]
pub struct OrderedSchema<'a>(pub &'a Schema);

impl Serialize for OrderedSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schema = self.0;
        let ordered = || to_raw_value(&PropertiesInOrder(&schema.0.value)).ok();
        match schema.0.ordered.get_or_init(ordered) {
            Some(text) => text.serialize(serializer),
            None => schema.serialize(serializer),
        }
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self(Arc::new(SharedSchema { value, text: OnceLock::new(), ordered: OnceLock::new() }))
    }
}

impl std::ops::Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.value.fmt(f)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text() {
            Some(text) => text.serialize(serializer),
            None => self.0.value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_serializes_like_its_value() {
        let value =
            json!({"type": "object", "properties": {"città": {"type": ["string", "null"], "x": 1.5}}});
        let schema = Schema::from(value.clone());
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(serde_json::to_string(&schema).unwrap(), text);
        assert_eq!(schema.json_bytes(), text.len());
        assert_eq!(serde_json::to_value(&schema).unwrap(), value);
        assert_eq!(serde_json::from_str::<Schema>(&text).unwrap(), schema);
        assert_eq!(schema.get("type"), Some(&json!("object")));
    }
}
