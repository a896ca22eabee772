//! The JSON Schema of a tool's arguments: checked, compiled, and generated from Rust types.

use jsonschema::{Draft, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::document::{Located, PointerLines};
use super::fault::FaultReport;
use super::{SceneTool, arguments};
use crate::nearest::{did_you_mean, name_list, nearest};
use crate::schema::{property_names, required_names};

const KEYWORDS: [&str; 53] = [
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$vocabulary",
    "additionalProperties", "allOf", "anyOf", "const", "contains", "contentEncoding", "contentMediaType",
    "contentSchema", "default", "definitions", "dependentRequired", "dependentSchemas", "deprecated",
    "description", "else", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "if",
    "items", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems",
    "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties",
    "prefixItems", "properties", "propertyNames", "readOnly", "required", "then", "type",
];

/// More keywords, listed separately because they are rare in arguments.
const MORE_KEYWORDS: [&str; 5] =
    ["title", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "writeOnly"];

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Compiles the schema. Returns `None` if it has errors, all of which are reported.
pub(super) fn compile(
    tool: &str,
    parameters: &Located<Value>,
    places: &PointerLines,
    report: &FaultReport,
) -> Option<Validator> {
    let schema = &parameters.value;
    let line = |pointer: &str| places.line(pointer).or(parameters.line);
    let mut sound = true;
    let mut fault = |pointer: &str, code: &str, message: String, remedy: String| {
        sound = false;
        report.error(line(pointer), code, message, remedy);
    };
    check_object(tool, schema, &mut fault);
    check_against_metaschema(tool, schema, &mut fault);
    for (pointer, keyword) in unknown_keywords(schema) {
        let Some(meant) = nearest(&keyword, KEYWORDS.into_iter().chain(MORE_KEYWORDS)) else { continue };
        report.warning(
            line(&pointer),
            "schema_keyword",
            format!("{keyword:?} in the parameters of {tool} is not a JSON Schema keyword and has no effect"),
            format!("did you mean {meant:?}?"),
        );
    }
    if !sound {
        return None;
    }
    let compiled = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .build(schema);
    match compiled {
        Ok(validator) => Some(validator),
        Err(error) => {
            let pointer = error.instance_path().as_str();
            let message = format!("the parameters of {tool} cannot be used: {error}");
            let remedy = "use formats of JSON Schema 2020-12 and references within this schema";
            report.error(line(pointer), "parameters", message, remedy);
            None
        }
    }
}

/// Checks that the parameters are an object that has the properties it requires. `fault` receives pointer,
/// code, message and remedy.
fn check_object(tool: &str, schema: &Value, fault: &mut impl FnMut(&str, &str, String, String)) {
    if schema.get("type") != Some(&json!("object")) {
        let message = format!("the parameters of {tool} must be of the type \"object\"");
        let remedy =
            "write type = \"object\" under [tools.parameters]; in Rust, take a struct with named fields";
        fault("/type", "parameters", message, remedy.to_owned());
    }
    let names: Vec<&str> = property_names(schema).collect();
    for (index, name) in schema.get("required").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(name) = name.as_str() else { continue };
        if !names.contains(&name) {
            fault(
                &format!("/required/{index}"),
                "required",
                format!("{tool} requires {name:?}, which is not among its properties"),
                hint(name, &names),
            );
        }
    }
}

fn check_against_metaschema(tool: &str, schema: &Value, fault: &mut impl FnMut(&str, &str, String, String)) {
    for error in jsonschema::draft202012::meta::validator().iter_errors(schema) {
        let pointer = error.instance_path().as_str();
        let given = error.instance().as_str().filter(|_| pointer.ends_with("/type"));
        if let Some(given) = given {
            let message = format!("{given:?} in the parameters of {tool} is not a JSON Schema type");
            let hint = did_you_mean(given, TYPES);
            let remedy = if hint.is_empty() { format!("the types are: {}", name_list(TYPES)) } else { hint };
            fault(pointer, "parameters", message, remedy);
            continue;
        }
        let message = format!("the parameters of {tool} are not a valid JSON Schema at {pointer:?}: {error}");
        fault(pointer, "parameters", message, "look the keyword up in JSON Schema 2020-12".to_owned());
    }
}

/// The remedy for a name that is not among the properties.
pub(super) fn hint(name: &str, names: &[&str]) -> String {
    let meant = did_you_mean(name, names.iter().copied());
    if meant.is_empty() { format!("the properties are: {}", name_list(names.iter().copied())) } else { meant }
}

/// The argument that a JSON pointer such as `/arguments/city/name` points into, if it does.
pub(super) fn pointed_argument(pointer: &str) -> Option<String> {
    let first = pointer.strip_prefix("/arguments/")?.split('/').next()?;
    Some(first.replace("~1", "/").replace("~0", "~"))
}

/// What is wrong with the arguments of a call of `by` that follows a call of `tool`, each with a remedy. They are values, or
/// pointers into the arguments of that call and, with `has_result`, into its result.
pub(super) fn derived_argument_problems(
    tool: &SceneTool,
    by: &SceneTool,
    declared: &Map<String, Value>,
    has_result: bool,
) -> Vec<(String, String)> {
    let (stray, remedy, example) = match has_result {
        true => (
            "points neither into the arguments nor into the result",
            "write \"/result/…\" or \"/arguments/…\"",
            "/result/…",
        ),
        false => ("does not point into the arguments", "write \"/arguments/…\"", "/arguments/…"),
    };
    let mut problems = Vec::new();
    let known: Vec<&str> = property_names(&by.parameters).collect();
    let own: Vec<&str> = property_names(&tool.parameters).collect();
    for (name, value) in declared {
        if !known.contains(&name.as_str()) {
            problems.push((format!("{} has no argument {name:?}", by.name), hint(name, &known)));
        }
        let Some(pointer) = value.as_str().filter(|text| text.starts_with('/')) else { continue };
        match pointed_argument(pointer) {
            Some(first) if !own.contains(&first.as_str()) => {
                problems.push((format!("{} has no argument {first:?}", tool.name), hint(&first, &own)));
            }
            None if !(has_result && pointer.starts_with("/result/")) => {
                problems.push((format!("{value} {stray}"), remedy.to_owned()));
            }
            _ => {}
        }
    }
    problems.extend(literal_problems(by, declared, example));
    for name in required_names(&by.parameters).filter(|name| !declared.contains_key(*name)) {
        problems.push((format!("{} needs {name:?}", by.name), format!("add {name} = {example:?}")));
    }
    problems
}

/// What is wrong with the values, not pointers, among the declared arguments of a call of `tool`, each with a remedy.
fn literal_problems(tool: &SceneTool, declared: &Map<String, Value>, example: &str) -> Vec<(String, String)> {
    let known: Vec<&str> = property_names(&tool.parameters).collect();
    let is_literal = |value: &Value| value.as_str().is_none_or(|text| !text.starts_with('/'));
    let literals = declared
        .iter()
        .filter(|(name, value)| known.contains(&name.as_str()) && is_literal(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let wrong = arguments::check_partial(tool, &literals).into_iter();
    wrong
        .map(|problem| {
            let message = format!("an argument of {} is a value that it does not take: {problem}", tool.name);
            (message, format!("write a value of this type, or a pointer such as {example:?}"))
        })
        .collect()
}

/// The schema of a Rust type in the form that models handle best: no `$schema`, no titles, no numeric
/// formats, no references, and no `null` in the type of optional properties.
pub(super) fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if schema.get("type") == Some(&json!("null")) {
        // `()`: no arguments.
        return json!({"type": "object", "properties": {}});
    }
    clean(&mut schema);
    schema
}

fn clean(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if fields.get("title").is_some_and(Value::is_string) {
        fields.remove("title");
    }
    if fields.get("default") == Some(&Value::Null) {
        fields.remove("default");
    }
    let numeric = fields.get("format").and_then(Value::as_str).is_some_and(|format| {
        matches!(
            format.trim_start_matches('u').trim_start_matches("int"),
            "8" | "16" | "32" | "64" | "128" | ""
        ) || matches!(format, "float" | "double")
    });
    if numeric {
        fields.remove("format");
    }
    let required: Vec<Value> = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties.iter_mut() {
            if !required.contains(&json!(name)) {
                remove_null(property);
            }
        }
    }
    for inner in subschemas_mut(fields) {
        clean(inner);
    }
}

/// Removes `null` from a property's type: an optional property can be omitted instead.
fn remove_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(types) = fields.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(options) = fields.get_mut("enum").and_then(Value::as_array_mut) {
        options.retain(|option| !option.is_null());
    }
    if let Some(options) = fields.get_mut("anyOf").and_then(Value::as_array_mut) {
        options.retain(|option| option.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = options.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            for (key, value) in only {
                fields.entry(key).or_insert(value);
            }
        }
    }
}

/// Keywords whose value is a schema; below, a list of schemas, and schemas by name.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames",
    "then", "unevaluatedItems", "unevaluatedProperties", "additionalItems",
];
const SCHEMA_LIST_KEYWORDS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMA_MAP_KEYWORDS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

fn subschemas_mut(fields: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut found = Vec::new();
    for (keyword, value) in fields.iter_mut() {
        match (keyword.as_str(), value) {
            (k, value) if SCHEMA_KEYWORDS.contains(&k) => found.push(value),
            (k, Value::Array(list)) if SCHEMA_LIST_KEYWORDS.contains(&k) => found.extend(list.iter_mut()),
            (k, Value::Object(named)) if SCHEMA_MAP_KEYWORDS.contains(&k) => {
                found.extend(named.iter_mut().map(|(_, v)| v))
            }
            _ => {}
        }
    }
    found
}

/// The pointer and name of each keyword that JSON Schema does not define.
fn unknown_keywords(schema: &Value) -> Vec<(String, String)> {
    let mut unknown = Vec::new();
    let mut waiting = vec![(String::new(), schema)];
    while let Some((at, schema)) = waiting.pop() {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            let pointer = format!("{at}/{}", keyword.replace('~', "~0").replace('/', "~1"));
            match (keyword.as_str(), value) {
                (k, value) if SCHEMA_KEYWORDS.contains(&k) => waiting.push((pointer, value)),
                (k, Value::Array(list)) if SCHEMA_LIST_KEYWORDS.contains(&k) => {
                    waiting.extend(list.iter().enumerate().map(|(i, v)| (format!("{pointer}/{i}"), v)));
                }
                (k, Value::Object(named)) if SCHEMA_MAP_KEYWORDS.contains(&k) => {
                    waiting.extend(named.iter().map(|(name, v)| (format!("{pointer}/{name}"), v)));
                }
                (k, _) if !KEYWORDS.contains(&k) && !MORE_KEYWORDS.contains(&k) => {
                    unknown.push((pointer, keyword.clone()));
                }
                _ => {}
            }
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Order {
        /// The order's number.
        number: u32,
        /// First day.
        from: Option<String>,
        kind: Option<Kind>,
        parts: Vec<Part>,
        title: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Fast,
        Slow,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Part {
        weight: f64,
    }

    #[test]
    fn schema_of_a_type_has_no_noise() {
        assert_eq!(
            schema_of::<Order>(),
            json!({
                "type": "object",
                "required": ["number", "parts", "title"],
                "properties": {
                    "number": {"type": "integer", "minimum": 0, "description": "The order's number."},
                    "from": {"type": "string", "description": "First day."},
                    "kind": {"type": "string", "enum": ["fast", "slow"]},
                    "parts": {"type": "array", "items": {
                        "type": "object", "required": ["weight"], "properties": {"weight": {"type": "number"}},
                    }},
                    "title": {"type": "string"},
                },
            })
        );
        assert_eq!(schema_of::<()>(), json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn unknown_formats_and_remote_references_are_faults() {
        for schema in [
            json!({"type": "object", "properties": {"d": {"type": "string", "format": "dat"}}}),
            json!({"type": "object", "properties": {"d": {"$ref": "https://example.com/schema.json"}}}),
        ] {
            let report = FaultReport::new("x");
            assert!(
                compile("T", &Located::without_line(schema), &PointerLines::default(), &report).is_none()
            );
            assert_eq!(report.into_faults()[0].code, "scene.parameters");
        }
    }
}
