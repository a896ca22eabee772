//! References of prepared calls to results of earlier steps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value that a prepared call takes from the result of an earlier call. Its wire form is
/// `{"$ref": {"step": 1, "tool": "AddCity", "pointer": "/id"}}` in place of a whole argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The step that makes the call.
    pub step: u32,
    /// Its tool.
    pub tool: String,
    /// JSON pointer (RFC 6901) into the result; empty for the whole of it.
    #[serde(default)]
    pub pointer: String,
}

const KEY: &str = "$ref";

impl Reference {
    /// The reference that an argument of a prepared call consists of. Anything else is data, also inside an argument.
    pub fn of(argument: &Value) -> Option<Self> {
        let map = argument.as_object().filter(|map| map.len() == 1)?;
        serde_json::from_value(map.get(KEY)?.clone()).ok()
    }

    /// Returns whether a value contains an intended reference that is not valid: inside an argument, or malformed.
    pub fn is_misplaced_in(argument: &Value) -> bool {
        match argument {
            Value::Object(map) => {
                let meant = map.get(KEY).and_then(Value::as_object);
                let is_meant =
                    meant.is_some_and(|meant| meant.contains_key("step") || meant.contains_key("tool"));
                is_meant || map.values().any(Self::is_misplaced_in)
            }
            Value::Array(items) => items.iter().any(Self::is_misplaced_in),
            _ => false,
        }
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        serde_json::json!({ KEY: self })
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} in step {}", self.pointer, self.tool, self.step)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_complete_reference_is_one() {
        let whole = json!({"$ref": {"step": 1, "tool": "AddCity", "pointer": "/id"}});
        assert_eq!(Reference::of(&whole).map(|found| found.to_value()), Some(whole));
        assert_eq!(Reference::of(&json!({"$ref": {"step": 1, "tool": "A"}})).unwrap().pointer, "");
        for data in [
            json!("$ref"),
            json!({"$ref": "#/definitions/city"}),
            json!({"$ref": {"step": "1", "tool": "A"}}),
            json!({"$ref": {"step": 1, "tool": "A", "else": 1}}),
            json!({"$ref": {"step": 1, "tool": "A"}, "more": 1}),
            json!([{"$ref": {"step": 1, "tool": "A"}}]),
        ] {
            assert_eq!(Reference::of(&data), None, "{data}");
        }
    }

    #[test]
    fn reference_inside_an_argument_is_misplaced() {
        for data in [
            json!({"$ref": {"step": "1", "tool": "A"}}),
            json!([{"$ref": {"step": 1, "tool": "A"}}]),
            json!({"to": {"id": {"$ref": {"tool": "A"}}}}),
        ] {
            assert!(Reference::is_misplaced_in(&data), "{data}");
        }
        for data in [json!({"$ref": "#/definitions/city"}), json!({"a": ["$ref", {"step": 1, "tool": "A"}]})]
        {
            assert!(!Reference::is_misplaced_in(&data), "{data}");
        }
    }
}
