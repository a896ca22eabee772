//! Parses and validates the arguments of a tool call, with errors precise enough for a model to fix them.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Value};

use super::SceneTool;
use crate::llm::reader;
use crate::nearest::did_you_mean;
use crate::nesting;
use crate::run::{Fault, FaultClass};
use crate::schema::{is_required, properties, property_names, required_names};

/// The maximum length of arguments, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The maximum number of reported violations, and the maximum length of each quoted value.
const MAX_REPORTED: usize = 20;
const MAX_QUOTED: usize = 80;

/// Parses `raw` and validates it against the tool's schema.
///
/// An empty text and `null` mean `{}`. A doubly encoded object (JSON text inside a JSON string) is
/// accepted, as is JSON with trailing commas, comments or single quotes, but no number that JSON cannot express: it
/// would be read as null, and the call would be made without it. Many models write `null` for an absent optional
/// argument; it is removed if the schema does not allow `null`. A whole number that is written with a fraction (`9.0`)
/// becomes an integer if the schema has one, because not every back end accepts a fraction. Properties that the schema
/// does not name are refused only with `additionalProperties: false`.
///
/// The error's message lists every violation with its JSON pointer, the expected value and, for enums, the
/// allowed values. Codes: `tool.arguments_too_long`, `tool.arguments_not_json`,
/// `tool.arguments_not_object`, `tool.arguments_too_deep`, `tool.arguments`.
pub fn check(tool: &SceneTool, raw: &str) -> Result<Value, Fault> {
    if raw.len() > MAX_BYTES {
        let message = format!("the arguments of {} have {} bytes, at most {MAX_BYTES}", tool.name, raw.len());
        return Err(Fault::new("tool.arguments_too_long", message).classed(FaultClass::BadData));
    }
    let mut arguments = parse_object(tool, raw)?;
    if nesting::is_too_deep([&arguments]) {
        let message = format!("the arguments of {} {}", tool.name, too_deep_text());
        return Err(Fault::new("tool.arguments_too_deep", message).classed(FaultClass::BadData));
    }
    if !tool.validator.is_valid(&arguments) {
        drop_nulls(tool, &mut arguments);
    }
    let violations: Vec<String> =
        tool.validator.iter_errors(&arguments).map(|error| describe(tool, &error)).collect();
    if violations.is_empty() {
        write_whole_numbers(tool, &mut arguments);
        return Ok(arguments);
    }
    let mut message = format!("the arguments of {} do not fit its parameters:", tool.name);
    for violation in violations.iter().take(MAX_REPORTED) {
        message.push_str("\n- ");
        message.push_str(violation);
    }
    if violations.len() > MAX_REPORTED {
        message.push_str(&format!("\n- and {} more", violations.len() - MAX_REPORTED));
    }
    Err(Fault::new("tool.arguments", message).classed(FaultClass::BadData))
}

/// The violations of incomplete arguments, one line each, in the format of [`check`]. A missing argument is
/// not a violation.
pub fn check_partial(tool: &SceneTool, arguments: &Map<String, Value>) -> Vec<String> {
    if nesting::is_too_deep(arguments.values()) {
        return vec![format!("they {}", too_deep_text())];
    }
    let whole = Value::Object(arguments.clone());
    let is_whole = required_names(&tool.parameters).all(|name| arguments.contains_key(name));
    // Rules about the whole object apply only once all required arguments are present.
    let counts = |error: &ValidationError<'_>| {
        is_whole
            || !error.instance_path().as_str().is_empty()
            || matches!(error.kind(), ValidationErrorKind::AdditionalProperties { .. })
    };
    let wrong = tool.validator.iter_errors(&whole).filter(counts);
    wrong.take(MAX_REPORTED).map(|error| describe(tool, &error)).collect()
}

fn too_deep_text() -> String {
    format!("are nested deeper than {} levels: say the same with fewer", nesting::MAX_DEPTH)
}

fn parse_object(tool: &SceneTool, raw: &str) -> Result<Value, Fault> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value = match reader::parse(raw) {
        Ok(Value::String(inner)) => reader::parse(&inner).unwrap_or(Value::String(inner)),
        Ok(value) => value,
        Err(error) => {
            let message =
                format!("the arguments of {} are not JSON ({error}): write one JSON object", tool.name);
            return Err(Fault::new("tool.arguments_not_json", message).classed(FaultClass::BadData));
        }
    };
    match value {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(value),
        other => {
            let message = format!(
                "the arguments of {} are {}, and one JSON object is expected: {}",
                tool.name,
                quoted(&other),
                outline(tool)
            );
            Err(Fault::new("tool.arguments_not_object", message).classed(FaultClass::BadData))
        }
    }
}

fn write_whole_numbers(tool: &SceneTool, arguments: &mut Value) {
    // Larger ones are not exact.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    for (name, schema) in properties(&tool.parameters) {
        let is_integer = schema.get("type").is_some_and(|kind| {
            kind == "integer" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == "integer"))
        });
        let Some(value) = arguments.get_mut(name).filter(|value| is_integer && value.is_f64()) else {
            continue;
        };
        if let Some(number) =
            value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= MAX_EXACT)
        {
            *value = Value::from(number as i64);
        }
    }
}

/// An outline of the tool's parameters, such as `{"from": …, "to": …}`.
fn outline(tool: &SceneTool) -> String {
    let names: Vec<String> = properties(&tool.parameters).map(|(name, _)| format!("{name:?}: …")).collect();
    format!("{{{}}}", names.join(", "))
}

fn drop_nulls(tool: &SceneTool, arguments: &mut Value) {
    let unwanted: Vec<String> = tool
        .validator
        .iter_errors(arguments)
        .filter(|error| error.instance().is_null())
        .filter_map(|error| error.instance_path().as_str().strip_prefix('/').map(unescape))
        .filter(|name| !is_required(&tool.parameters, name))
        .collect();
    if let Some(fields) = arguments.as_object_mut() {
        fields.retain(|name, value| !(value.is_null() && unwanted.contains(name)));
    }
}

fn describe(tool: &SceneTool, error: &ValidationError<'_>) -> String {
    let at = error.instance_path().as_str();
    let got = || format!("got {}", quoted(error.instance()));
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let about = at.is_empty().then(|| property_hint(tool, name)).flatten().unwrap_or_default();
            format!("{at}/{name} is missing{about}")
        }
        ValidationErrorKind::Type { kind } => format!("{at} must be {}; {}", type_name(kind), got()),
        ValidationErrorKind::Enum { options } => {
            let allowed: Vec<String> = options.as_array().into_iter().flatten().map(quoted).collect();
            format!("{at} must be one of {}; {}", allowed.join(", "), got())
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("{at} must be {}; {}", quoted(expected_value), got())
        }
        ValidationErrorKind::Format { format } => {
            format!("{at} must be {}; {}", format_name(format), got())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => describe_unexpected(tool, at, unexpected),
        kind => match describe_bound(kind) {
            Some(bound) => format!("{at} {bound}; {}", got()),
            None => {
                let place = if at.is_empty() { "/" } else { at };
                format!("{place}: {}", shortened(&error.to_string(), 200))
            }
        },
    }
}

fn describe_unexpected(tool: &SceneTool, at: &str, unexpected: &[String]) -> String {
    let known: Vec<&str> = if at.is_empty() { property_names(&tool.parameters).collect() } else { vec![] };
    let described: Vec<String> = unexpected
        .iter()
        .map(|name| format!("{at}/{name} is not known {}", did_you_mean(name, known.iter().copied())))
        .map(|text| text.trim_end().to_owned())
        .collect();
    let mut text = described.join(", ");
    if !known.is_empty() {
        text.push_str(&format!(" (known: {})", known.join(", ")));
    }
    text
}

/// The limit that a value violates.
fn describe_bound(kind: &ValidationErrorKind) -> Option<String> {
    Some(match kind {
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} elements"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} elements"),
        ValidationErrorKind::Pattern { pattern } => format!("must match {pattern}"),
        _ => return None,
    })
}

/// A property's type and description from the schema, such as ` (date: First day)`.
fn property_hint(tool: &SceneTool, name: &str) -> Option<String> {
    let schema = tool.parameters.get("properties")?.get(name)?;
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let kind = text("format").or_else(|| text("type")).unwrap_or("any value");
    Some(match text("description") {
        Some(description) => format!(" ({kind}: {})", shortened(description, 120)),
        None => format!(" ({kind})"),
    })
}

fn type_name(kind: &TypeKind) -> String {
    let one = |name: &str| match name {
        "array" | "integer" | "object" => format!("an {name}"),
        "null" => name.to_owned(),
        _ => format!("a {name}"),
    };
    match kind {
        TypeKind::Single(kind) => one(&kind.to_string()),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| one(&kind.to_string())).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn format_name(format: &str) -> String {
    match format {
        "date" => "a date as YYYY-MM-DD".to_owned(),
        "time" => "a time with its offset, as 09:30:00Z".to_owned(),
        "date-time" => "a time as YYYY-MM-DDTHH:MM:SSZ".to_owned(),
        "email" => "an e-mail address".to_owned(),
        "uri" => "a URL with its scheme".to_owned(),
        other => format!("of the format {other}"),
    }
}

fn quoted(value: &Value) -> String {
    shortened(&value.to_string(), MAX_QUOTED)
}

fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Reverses the escaping of JSON Pointer.
fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::Effect;
    use crate::scene::Scene;
    use crate::tools::ToolContext;

    fn tool(parameters: Value) -> SceneTool {
        let call = |_: Value, _: ToolContext| async { Ok(Value::Null) };
        let tool = SceneTool::dynamic(
            "MakeRequest",
            "Books.",
            Effect::Write,
            parameters,
            crate::tools::native(call),
        );
        let scene =
            Scene::builder("S").description("d").instructions("i").example("e", "MakeRequest").tool(tool);
        scene.build().unwrap().tools.remove(0)
    }

    fn vacation() -> SceneTool {
        tool(json!({
            "type": "object", "required": ["from", "to"],
            "properties": {
                "from": {"type": "string", "format": "date", "description": "First day"},
                "to": {"type": "string", "format": "date"},
                "kind": {"type": "string", "enum": ["vacation", "sick"]},
                "days": {"type": "integer", "minimum": 1},
                "note": {"type": ["string", "null"]},
            },
        }))
    }

    #[test]
    fn equivalent_spellings_of_arguments_are_accepted() {
        let tool = vacation();
        let expected = json!({"from": "2026-06-15", "to": "2026-06-17"});
        for raw in [
            r#"{"from":"2026-06-15","to":"2026-06-17"}"#,
            r#""{\"from\":\"2026-06-15\",\"to\":\"2026-06-17\"}""#,
            r#"{"from":"2026-06-15","to":"2026-06-17",}"#,
            r#"{"from":"2026-06-15","to":"2026-06-17","kind":null,"days":null}"#,
        ] {
            assert_eq!(check(&tool, raw), Ok(expected.clone()), "{raw}");
        }
        let free = super::tests::tool(json!({"type": "object"}));
        for raw in ["", "  ", "null", "{}", "\"{}\""] {
            assert_eq!(check(&free, raw), Ok(json!({})), "{raw:?}");
        }
        assert_eq!(check(&free, r#"{"other":1}"#), Ok(json!({"other": 1})));
    }

    #[test]
    fn whole_numbers_are_integers_where_the_schema_has_integers() {
        let properties = json!({"n": {"type": "integer"}, "m": {"type": ["integer", "null"]}, "price": {"type": "number"}});
        let tool = tool(json!({"type": "object", "properties": properties}));
        let written = |raw: &str| check(&tool, raw).unwrap().to_string();
        assert_eq!(written(r#"{"n":9.0}"#), r#"{"n":9}"#);
        assert_eq!(written(r#"{"n":-9e1,"m":1.0}"#), r#"{"m":1,"n":-90}"#);
        assert_eq!(written(r#"{"m":null,"price":9.0}"#), r#"{"m":null,"price":9.0}"#);
        assert_eq!(written(r#"{"n":1e17}"#), r#"{"n":1e+17}"#, "too large to be exact");
        assert!(check(&tool, r#"{"n":9.5}"#).is_err());
    }

    #[test]
    fn integers_beyond_64_bits_keep_their_digits_or_are_refused() {
        let tool = tool(
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "id": {"type": "string"}}}),
        );
        for raw in [r#"{"id": 123456789012345678901}"#, r#"{'id': 123456789012345678901,}"#] {
            assert_eq!(check(&tool, raw), Ok(json!({"id": "123456789012345678901"})));
            let refused = check(&tool, &raw.replace("id", "n")).unwrap_err();
            assert!(refused.message.contains("123456789012345678901"), "{}", refused.message);
        }
    }

    #[test]
    fn null_allowed_by_the_schema_is_kept() {
        let raw = r#"{"from":"2026-06-15","to":"2026-06-17","note":null,"days":null}"#;
        assert_eq!(
            check(&vacation(), raw),
            Ok(json!({"from": "2026-06-15", "to": "2026-06-17", "note": null}))
        );
    }

    #[test]
    fn error_names_every_violation() {
        let raw = r#"{"to":"tomorrow","kind":"holiday","days":0,"note":5}"#;
        insta::assert_snapshot!(check(&vacation(), raw).unwrap_err().message, @r#"
        the arguments of MakeRequest do not fit its parameters:
        - /from is missing (date: First day)
        - /days must be at least 1; got 0
        - /kind must be one of "vacation", "sick"; got "holiday"
        - /note must be null or a string; got 5
        - /to must be a date as YYYY-MM-DD; got "tomorrow"
        "#);
    }

    #[test]
    fn unknown_properties_are_refused_only_where_the_schema_says_so() {
        let strict = tool(json!({
            "type": "object", "additionalProperties": false, "properties": {"city": {"type": "string"}},
        }));
        let error = check(&strict, r#"{"citty":"Milan"}"#).unwrap_err();
        assert_eq!(error.code, "tool.arguments");
        assert!(error.message.contains("/citty is not known did you mean \"city\"?"), "{}", error.message);
    }

    #[test]
    fn arguments_that_are_no_object_are_refused() {
        let tool = vacation();
        assert_eq!(check(&tool, "{\"from\": ").unwrap_err().code, "tool.arguments_not_json");
        for days in ["NaN", "-Infinity", "1e400"] {
            let raw = format!(r#"{{"from":"2026-06-15","to":"2026-06-17","days":{days}}}"#);
            assert_eq!(check(&tool, &raw).unwrap_err().code, "tool.arguments_not_json", "{days}");
        }
        let error = check(&tool, "[1]").unwrap_err();
        assert_eq!(error.code, "tool.arguments_not_object");
        assert!(error.message.contains("\"from\": …"), "{}", error.message);
        assert_eq!(check(&tool, &"[".repeat(100_000)).unwrap_err().code, "tool.arguments_not_json");
        assert_eq!(check(&tool, &" ".repeat(MAX_BYTES + 1)).unwrap_err().code, "tool.arguments_too_long");
    }
}
