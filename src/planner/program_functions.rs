//! The functions of programs: tools as Python sees them, and the calls of programs as tools see them.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::program::ProgramFunction;
use crate::program::names::parameters;
use crate::scene::{Scene, SceneTool};
use crate::schema::is_required;

/// Deepest type of a result that is written out.
const MAX_DEPTH: usize = 4;

/// A tool as a program calls it.
pub(super) fn function(scene: &Scene, tool: &SceneTool) -> ProgramFunction {
    ProgramFunction {
        name: format!("{}.{}", scene.name, tool.name),
        parameters: parameters(&tool.parameters).into_iter().map(|(_, python)| python).collect(),
    }
}

/// The arguments of a program's call under the names of the tool's schema. `None` for a parameter that may be left out
/// leaves it out.
pub(super) fn arguments(tool: &SceneTool, written: &Map<String, Value>) -> Map<String, Value> {
    let names = parameters(&tool.parameters);
    let own = |python: &String| names.iter().find(|(_, known)| known == python).map(|(name, _)| *name);
    let named = written.iter().map(|(name, value)| (own(name).unwrap_or(name).to_owned(), value.clone()));
    named.filter(|(name, value)| !value.is_null() || is_required(&tool.parameters, name)).collect()
}

/// The stub of a scene: a class with a method for each of these tools.
pub(super) fn stub(scene: &Scene, tools: &[&SceneTool]) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(out, "class {}:  # {}", scene.name, line(&scene.description));
    for tool in tools {
        let given: Vec<String> =
            parameters(&tool.parameters).iter().map(|(name, python)| parameter(tool, name, python)).collect();
        let result =
            tool.expectations.schema.as_ref().map_or("Any".to_owned(), |schema| type_of(&schema.written, 0));
        let effect = if tool.effect == crate::run::Effect::Write { "  # changes something" } else { "" };
        let _ = writeln!(out, "    def {}({}) -> {result}:{effect}", tool.name, given.join(", "));
        let _ = writeln!(out, "        \"\"\"{}", line(&tool.description));
        for (name, python) in parameters(&tool.parameters) {
            if let Some(about) = tool.parameters["properties"][name]["description"].as_str() {
                let _ = writeln!(out, "        {python}: {}", line(about));
            }
        }
        let _ = writeln!(out, "        \"\"\"");
    }
    out
}

fn parameter(tool: &SceneTool, name: &str, python: &str) -> String {
    let kind = type_of(&tool.parameters["properties"][name], 0);
    if is_required(&tool.parameters, name) {
        format!("{python}: {kind}")
    } else {
        format!("{python}: {kind} | None = None")
    }
}

/// A JSON Schema as a Python type.
fn type_of(schema: &Value, depth: usize) -> String {
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        let values: Vec<String> = values.iter().map(literal).collect();
        return format!("Literal[{}]", values.join(", "));
    }
    let named = match &schema["type"] {
        Value::String(one) => one.as_str(),
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ => "",
    };
    let is_open = depth < MAX_DEPTH;
    match named {
        "string" => match schema["format"].as_str() {
            Some(format @ ("date" | "time" | "date-time")) => format!("str({format})"),
            _ => "str".to_owned(),
        },
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" if is_open => format!("list[{}]", type_of(&schema["items"], depth + 1)),
        "array" => "list".to_owned(),
        "object" => match schema["properties"].as_object().filter(|members| is_open && !members.is_empty()) {
            Some(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, member)| {
                        format!("{}: {}", literal(&name.as_str().into()), type_of(member, depth + 1))
                    })
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
            None => "dict".to_owned(),
        },
        _ => "Any".to_owned(),
    }
}

/// A JSON value as a Python literal, if it is a simple one.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

/// A text on one line, without characters that would end a docstring.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("\"\"\"", "'''")
}
