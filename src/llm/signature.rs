//! A tool's arguments in one line: `from: date, to: date, note?: string, size?: "S"|"M"`.
//!
//! A planner decides which tools take part, not with which arguments; a signature gives it names, types and which
//! are optional, in a quarter of the tokens of a JSON Schema. The notation is that of
//! TypeScript's parameters, which models know.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A scene in the planner's prompt: one line of JSON, the name first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SceneLine {
    /// Its name.
    pub scene: String,
    /// Its purpose.
    pub description: String,
    /// Its tools.
    pub tools: Vec<ToolLine>,
    /// Example requests that belong to no tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// A tool in the planner's prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolLine {
    /// Its name.
    pub name: String,
    /// `read` or `write`.
    pub effect: String,
    /// A description of what it does.
    pub description: String,
    /// Its [`signature`].
    pub arguments: String,
    /// What its arguments mean, by name, for planners that write them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub about: BTreeMap<String, String>,
    /// Example requests.
    pub examples: Vec<String>,
}

/// The line for a JSON Schema of an object; descriptions and bounds are omitted.
pub fn signature(schema: &Value) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut out = String::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !out.is_empty() {
            out.push_str(", ");
        }
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        // Writing into a String cannot fail.
        let _ = write!(out, "{name}{optional}: {}", kind(property));
    }
    out
}

/// The descriptions of the properties of a JSON Schema of an object, by name.
pub fn descriptions(schema: &Value) -> BTreeMap<String, String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let described = properties.filter_map(|(name, property)| Some((name, property["description"].as_str()?)));
    described.map(|(name, text)| (name.clone(), text.trim().to_owned())).collect()
}

/// The JSON Schema of a signature, with these descriptions of its properties.
pub fn described_schema(line: &str, about: &BTreeMap<String, String>) -> Value {
    let mut schema = schema(line);
    for (name, text) in about {
        if let Some(property) = schema["properties"].get_mut(name) {
            property["description"] = text.as_str().into();
        }
    }
    schema
}

/// The JSON Schema of a signature: names, types, formats, allowed values, and which are required. Unreadable parts
/// are omitted.
pub fn schema(line: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for part in split(line, ',') {
        let Some((name, kind)) = part.split_once(':') else { continue };
        let name = name.trim();
        let bare = name.trim_end_matches('?');
        if bare == name {
            required.push(Value::from(bare));
        }
        properties.insert(bare.to_owned(), property(kind.trim()));
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// Formats that are more specific than their type.
const FORMATS: [&str; 7] = ["date", "time", "date-time", "email", "uri", "uuid", "duration"];

fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join("|");
    }
    if let Some(format) = property["format"].as_str().filter(|f| FORMATS.contains(f)) {
        return format.to_owned();
    }
    let named = match &property["type"] {
        Value::String(one) => one.as_str(),
        // `["string", "null"]` is how some schemas say optional.
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|t| *t != "null").unwrap_or("any")
        }
        _ => "any",
    };
    match named {
        "array" => format!("{}[]", kind(&property["items"])),
        named => named.to_owned(),
    }
}

fn property(kind: &str) -> Value {
    let values: Vec<&str> = split(kind, '|');
    let read: Vec<Value> = values.iter().filter_map(|v| serde_json::from_str(v.trim()).ok()).collect();
    if !read.is_empty() && read.len() == values.len() {
        return json!({"enum": read});
    }
    if let Some(item) = kind.strip_suffix("[]") {
        return json!({"type": "array", "items": property(item)});
    }
    match kind {
        "any" => json!({}),
        format if FORMATS.contains(&format) => json!({"type": "string", "format": format}),
        named => json!({"type": named}),
    }
}

/// The parts of `text` between separators that stand outside quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
        if c == separator && !quoted {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_line_keeps_what_plans_need() {
        let given = json!({
            "type": "object",
            "required": ["from", "people"],
            "properties": {
                "from": {"type": "string", "format": "date", "description": "First day, say"},
                "people": {"type": "integer", "minimum": 1},
                "note": {"type": ["string", "null"]},
                "size": {"enum": ["S, small", "M|L", 3]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "days": {"type": "array", "items": {"type": "string", "format": "date"}}
            }
        });
        let line = signature(&given);
        for part in [
            "from: date",
            "people: integer",
            "note?: string",
            r#"size?: "S, small"|"M|L"|3"#,
            "days?: date[]",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
        let read = schema(&line);
        assert_eq!(signature(&read), line);
        assert_eq!(read["properties"]["size"]["enum"], json!(["S, small", "M|L", 3]));
        assert_eq!(read["properties"]["from"]["format"], "date");
        assert_eq!(read["required"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn no_arguments_are_an_empty_line_and_back() {
        assert_eq!(signature(&json!({"type": "object"})), "");
        assert_eq!(schema("")["properties"], json!({}));
    }
}
