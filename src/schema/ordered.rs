//! Serializes schemas with their properties in the required order.
//!
//! Models write arguments in the order of the schema, so the order decides what is known first: for example whether
//! more work is needed, before the answer begins. JSON objects here do not keep the order of their keys; the list
//! `required` does.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// A value whose schemas are serialized with their properties in the order of `required`, followed by the optional
/// ones.
#[derive(Debug)]
pub(super) struct PropertiesInOrder<'a>(pub(super) &'a Value);

impl Serialize for PropertiesInOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.len()))?;
                for (key, value) in object {
                    match (key.as_str(), value, object.get("required")) {
                        ("properties", Value::Object(properties), Some(Value::Array(required))) => {
                            map.serialize_entry(key, &Properties { properties, required })?;
                        }
                        _ => map.serialize_entry(key, &PropertiesInOrder(value))?,
                    }
                }
                map.end()
            }
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(&PropertiesInOrder(item))?;
                }
                seq.end()
            }
            plain => plain.serialize(serializer),
        }
    }
}

struct Properties<'a> {
    properties: &'a Map<String, Value>,
    required: &'a [Value],
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut names: Vec<&str> = Vec::with_capacity(self.properties.len());
        let required = self.required.iter().filter_map(Value::as_str);
        for name in required.chain(self.properties.keys().map(String::as_str)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut map = serializer.serialize_map(None)?;
        for name in names {
            if let Some(property) = self.properties.get(name) {
                map.serialize_entry(name, &PropertiesInOrder(property))?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_written_in_the_order_of_required_at_every_depth() {
        let schema = json!({"type": "object", "required": ["z", "m", "none"], "properties": {
            "b": {}, "a": {}, "m": {"required": ["y"], "properties": {"x": 1, "y": [2]}}, "z": {},
        }});
        let body = json!({"tools": [{"function": {"parameters": schema}}], "properties": {"b": 1, "a": 2}});
        let text = serde_json::to_string(&PropertiesInOrder(&body)).unwrap();
        let written =
            r#""properties":{"z":{},"m":{"properties":{"y":[2],"x":1},"required":["y"]},"a":{},"b":{}}"#;
        assert!(text.contains(written), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), body);
    }
}
