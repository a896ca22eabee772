//! The call of a function that a question of another program forces, for example of `check --live`.

use serde_json::{Map, Value, json};

use crate::llm::{Request, ToolChoice};
use crate::run::{Reply, ReplyCall};
use crate::schema::required_names;

/// How deep objects in objects are filled.
const MAX_DEPTH: u8 = 16;

/// Returns what a model that is forced to call a function replies: the rules' reply if it calls that function, or else a call
/// with the simplest arguments that the function's schema allows.
pub(super) fn obeying(request: &Request, answer: Reply) -> Reply {
    let ToolChoice::Forced(name) = &request.choice else { return answer };
    let Some(tool) = request.tools.iter().find(|tool| tool.name == *name) else { return answer };
    if answer.calls.iter().any(|call| call.name == *name) {
        return answer;
    }
    let call = ReplyCall {
        id: "simulated-1".to_owned(),
        name: name.clone(),
        arguments: simplest(&tool.parameters, MAX_DEPTH).to_string(),
    };
    let finish_reason = Some("tool_calls".to_owned());
    Reply { text: String::new(), calls: vec![call], finish_reason, model: answer.model }
}

/// The simplest value that a schema allows, by its constants, types and required properties.
fn simplest(schema: &Value, depth: u8) -> Value {
    let of = |key: &str| schema.get(key);
    let first = |key: &str| of(key).and_then(Value::as_array).and_then(|values| values.first());
    if let Some(value) = of("const").or_else(|| of("default")).or_else(|| first("enum")) {
        return value.clone();
    }
    let kind = of("type").and_then(Value::as_str).or_else(|| first("type").and_then(Value::as_str));
    match kind {
        Some("string") => json!(""),
        Some("integer" | "number") => of("minimum").cloned().unwrap_or_else(|| json!(0)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => Value::Object(if depth == 0 { Map::new() } else { required(schema, depth - 1) }),
    }
}

/// The required properties of an object's schema.
fn required(schema: &Value, depth: u8) -> Map<String, Value> {
    let property = |name: &str| {
        let declared = schema.get("properties").and_then(|properties| properties.get(name));
        (name.to_owned(), declared.map_or_else(|| json!({}), |declared| simplest(declared, depth)))
    };
    required_names(schema).map(property).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simplest_value_follows_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "colour": {"type": "string", "enum": ["red", "green"]},
                "count": {"type": "integer", "minimum": 3},
                "note": {"type": ["string", "null"]},
                "inner": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
                "optional": {"type": "string"},
            },
            "required": ["colour", "count", "note", "inner"],
        });
        let expected = json!({"colour": "red", "count": 3, "note": "", "inner": {"on": false}});
        assert_eq!(simplest(&schema, MAX_DEPTH), expected);
    }

    #[test]
    fn schemas_are_filled_to_a_bounded_depth() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"properties": {"inner": schema}, "required": ["inner"]});
        }
        assert!(simplest(&schema, MAX_DEPTH).to_string().len() < 400);
    }
}
