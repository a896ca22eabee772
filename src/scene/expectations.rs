//! The expectations that a tool declares about its results: postconditions, compared with each result before it is shortened.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use jsonschema::Validator;
use serde_json::{Number, Value};

use super::SceneTool;
use super::document::Located;
use super::draft::ExpectDraft;
use super::fault::FaultReport;
use super::parameters;
use crate::language::fold;
use crate::plan::{ExpectedRange, StepExpectation};
use crate::run::Effect;
use crate::schema::property_names;

/// Maximum number of breaches that are kept of one result.
const MAX_BREACHES: usize = 20;

/// The longest schema that a model is shown, in bytes of JSON.
const MAX_SHOWN_SCHEMA_BYTES: usize = 8 * 1024;

/// The longest text of a breach, in characters.
const MAX_BREACH_CHARS: usize = 160;

/// The expectations of a tool's results. Nothing by default. Places are JSON Pointers (RFC 6901) into the result.
#[derive(Debug, Clone, Default)]
pub struct ToolExpectations {
    /// Places that are not empty: neither absent or null, nor an empty string, list or object.
    pub not_empty: Vec<String>,
    /// Bounds of numbers, by place.
    pub ranges: BTreeMap<String, NumberRange>,
    /// For arguments, by name, the place where the result repeats them.
    pub same: BTreeMap<String, String>,
    /// The JSON Schema of the result.
    pub schema: Option<ResultSchema>,
    /// Whether a model may be asked where the expected values are in a result that breaks the schema.
    pub interpret: bool,
}

/// The JSON Schema of a tool's results.
#[derive(Debug, Clone)]
pub struct ResultSchema {
    /// As written.
    pub written: Arc<Value>,
    validator: Arc<Validator>,
}

impl ResultSchema {
    /// Compiles a JSON Schema 2020-12. References out of it are not followed.
    ///
    /// # Errors
    /// Why it is not a valid schema.
    pub fn new(written: Value) -> Result<Self, String> {
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline();
        let built =
            options.should_validate_formats(true).build(&written).map_err(|error| error.to_string())?;
        Ok(Self { written: Arc::new(written), validator: Arc::new(built) })
    }
}

/// Bounds of a number, both inclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NumberRange {
    /// The least value.
    pub min: Option<f64>,
    /// The greatest value.
    pub max: Option<f64>,
}

impl ToolExpectations {
    /// Returns what a step expects of the results of `tool`.
    ///
    /// # Errors
    /// Why that cannot be compared.
    pub fn of_step(expected: &StepExpectation, tool: &SceneTool) -> Result<Self, String> {
        let known: Vec<&str> = property_names(&tool.parameters).collect();
        if let Some(argument) = expected.same.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("there is no argument {argument:?}; its arguments are {}", known.join(", ")));
        }
        let schema = expected.schema.clone().map(ResultSchema::new).transpose();
        let schema = schema.map_err(|error| format!("the schema cannot be used: {error}"))?;
        let bounds = |range: &ExpectedRange| NumberRange {
            min: range.min.as_ref().and_then(Number::as_f64),
            max: range.max.as_ref().and_then(Number::as_f64),
        };
        Ok(Self {
            not_empty: expected.not_empty.clone(),
            ranges: expected.ranges.iter().map(|(place, range)| (place.clone(), bounds(range))).collect(),
            same: expected.same.clone(),
            schema,
            interpret: false,
        })
    }

    /// How a result of a call with `arguments` breaks the expectations; empty if it does not.
    pub fn breaches(&self, arguments: &Value, result: &Value) -> Vec<String> {
        let empty = self.not_empty.iter().filter(|place| is_empty(result.pointer(place)));
        let mut found: Vec<String> = empty.map(|place| format!("{} is empty", named(place))).collect();
        for (place, range) in &self.ranges {
            found.extend(
                result
                    .pointer(place)
                    .and_then(|value| range.breach(value))
                    .map(|why| format!("{} {why}", named(place))),
            );
        }
        for (argument, place) in &self.same {
            let pair = arguments.get(argument).zip(result.pointer(place));
            // A back end may leave out what it was asked with.
            let pair = pair.filter(|(asked, told)| !asked.is_null() && !told.is_null());
            if let Some((asked, told)) = pair.filter(|(asked, told)| !is_same(asked, told)) {
                found.push(format!("{} is {told}, and {argument} was {asked}", named(place)));
            }
        }
        if let Some(schema) = &self.schema {
            let errors = schema.validator.iter_errors(result).take(MAX_BREACHES);
            found.extend(errors.map(|error| format!("{}: {error}", named(error.instance_path().as_str()))));
        }
        found.truncate(MAX_BREACHES);
        found.iter().map(|breach| breach.chars().take(MAX_BREACH_CHARS).collect()).collect()
    }
}

impl ToolExpectations {
    /// Returns whether a result of another shape than the schema has may be interpreted by a model.
    pub fn is_to_be_interpreted(&self, result: &Value) -> bool {
        self.interpret && self.schema.as_ref().is_some_and(|schema| !schema.validator.is_valid(result))
    }

    /// Returns which expectations a result of a call with `arguments` breaks, by place and without any of its values;
    /// empty if it breaks none.
    pub fn broken_places(&self, arguments: &Value, result: &Value) -> Vec<String> {
        let mut broken: Vec<String> = Vec::new();
        if let Some(schema) = &self.schema {
            for error in schema.validator.iter_errors(result).take(MAX_BREACHES) {
                let keyword =
                    error.schema_path().as_str().rsplit('/').find(|part| part.parse::<u32>().is_err());
                let place = general(error.instance_path().as_str());
                broken.push(match keyword {
                    Some("required") => format!("{} lacks a required field", named(&place)),
                    keyword => {
                        format!("{} does not have the expected {}", named(&place), keyword.unwrap_or("form"))
                    }
                });
            }
        }
        if broken.is_empty() && !self.breaches(arguments, result).is_empty() {
            let empty = self.not_empty.iter().filter(|place| is_empty(result.pointer(place)));
            broken.extend(empty.map(|place| format!("{} is empty", named(place))));
            let others = self.ranges.keys().chain(self.same.values());
            let others: Vec<String> = others.map(|place| named(place)).collect();
            if broken.is_empty() {
                broken.push(format!("not what is expected at: {}", others.join(", ")));
            }
        }
        broken.dedup();
        broken
    }
}

/// A place with `*` for the positions in lists.
fn general(place: &str) -> String {
    let parts = place.split('/').map(|part| if part.parse::<u32>().is_ok() { "*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

impl NumberRange {
    /// Why a value is out of bounds. An absent or null value is within bounds.
    fn breach(self, value: &Value) -> Option<String> {
        let Some(number) = value.as_f64() else {
            return (!value.is_null()).then(|| "is no number".to_owned());
        };
        let below = self.min.filter(|min| number < *min).map(|min| format!("is {number}, less than {min}"));
        let above = self.max.filter(|max| number > *max).map(|max| format!("is {number}, more than {max}"));
        below.or(above)
    }
}

fn named(place: &str) -> String {
    if place.is_empty() { "the result".to_owned() } else { place.to_owned() }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}

/// Whether a result repeats an argument: texts are compared without case, accents and blanks, numbers by value, days by
/// the calendar.
fn is_same(asked: &Value, told: &Value) -> bool {
    match (asked, told) {
        (Value::String(a), Value::String(b)) => match (day(a), day(b)) {
            (Some(a), Some(b)) => a == b,
            _ => plain(a) == plain(b),
        },
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
            text.trim().parse().ok() == number.as_f64()
        }
        (asked, told) => asked == told,
    }
}

/// The day that a text begins with.
fn day(text: &str) -> Option<Date> {
    text.trim().get(..10)?.parse().ok()
}

fn plain(text: &str) -> String {
    fold(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The checked expectations of a tool with these parameters. Faults are reported.
pub(super) fn check(
    draft: ExpectDraft,
    tool: &str,
    (tool_parameters, effect): (&Value, Option<Effect>),
    report: &FaultReport,
) -> ToolExpectations {
    for place in draft.not_empty.iter().chain(draft.same.values()) {
        check_pointer(place, tool, report);
    }
    let known: Vec<&str> = property_names(tool_parameters).collect();
    for (argument, place) in &draft.same {
        if !known.contains(&argument.as_str()) {
            let message = format!("{tool} has no argument {argument:?}");
            report.error(place.line, "expect_argument", message, parameters::hint(argument, &known));
        }
    }
    ToolExpectations {
        not_empty: draft.not_empty.into_iter().map(|place| place.value).collect(),
        ranges: draft.ranges.map(|ranges| check_ranges(ranges, tool, report)).unwrap_or_default(),
        same: draft.same.into_iter().map(|(argument, place)| (argument, place.value)).collect(),
        interpret: check_interpret(draft.interpret.as_ref(), draft.schema.as_ref(), effect, (tool, report)),
        schema: draft.schema.and_then(|schema| compile(schema, tool, report)),
    }
}

/// Whether a model may be asked about results of another shape: a read's, with a schema that a question can show.
fn check_interpret(
    flag: Option<&Located<bool>>,
    schema: Option<&Located<Value>>,
    effect: Option<Effect>,
    (tool, report): (&str, &FaultReport),
) -> bool {
    let Some(flag) = flag.filter(|flag| flag.value) else { return false };
    let wrong = |message: String, remedy: &str| report.error(flag.line, "expect_interpret", message, remedy);
    let remove = "remove `interpret`";
    if effect == Some(Effect::Write) {
        wrong(format!("{tool} writes: what it did is not told from another result"), remove);
    }
    match schema {
        None => wrong(
            format!("the results of {tool} are to be interpreted, and have no schema"),
            "add `schema` to [tools.expect], or remove `interpret`",
        ),
        Some(schema) if schema.value.to_string().len() > MAX_SHOWN_SCHEMA_BYTES => {
            let max = MAX_SHOWN_SCHEMA_BYTES / 1024;
            wrong(
                format!(
                    "the schema of the results of {tool} is longer than the {max} KiB that a model is shown"
                ),
                remove,
            );
        }
        Some(_) => {}
    }
    true
}

fn check_pointer(place: &Located<String>, tool: &str, report: &FaultReport) {
    if !place.value.is_empty() && !place.value.starts_with('/') {
        let message = format!("{:?} in [tools.expect] of {tool} is no JSON Pointer", place.value);
        let remedy = format!("write {:?}, or \"\" for the whole result", format!("/{}", place.value));
        report.error(place.line, "expect_pointer", message, remedy);
    }
}

fn check_ranges(given: Located<Value>, tool: &str, report: &FaultReport) -> BTreeMap<String, NumberRange> {
    let mut ranges = BTreeMap::new();
    let wrong = |message: String| {
        let remedy = "write ranges = { \"/temperature\" = { min = -90, max = 60 } }";
        report.error(given.line, "expect_range", message, remedy);
    };
    let Value::Object(map) = &given.value else {
        wrong(format!("the ranges of {tool} are not a table"));
        return ranges;
    };
    for (place, range) in map {
        check_pointer(&Located { value: place.clone(), line: given.line }, tool, report);
        let bounds = range.as_object().filter(|range| range.keys().all(|key| key == "min" || key == "max"));
        let bound = |key: &str| bounds.and_then(|range| range.get(key)).map(Value::as_f64);
        let (min, max) = (bound("min"), bound("max"));
        let is_number = |bound: Option<Option<f64>>| bound.is_none_or(|bound| bound.is_some());
        if bounds.is_none_or(serde_json::Map::is_empty) || !is_number(min) || !is_number(max) {
            wrong(format!("the range of {place} of {tool} does not have numbers `min`, `max` or both"));
            continue;
        }
        let range = NumberRange { min: min.flatten(), max: max.flatten() };
        if range.min.zip(range.max).is_some_and(|(min, max)| min > max) {
            wrong(format!("the range of {place} of {tool} has a `min` above its `max`"));
        }
        ranges.insert(place.clone(), range);
    }
    ranges
}

fn compile(schema: Located<Value>, tool: &str, report: &FaultReport) -> Option<ResultSchema> {
    let built = ResultSchema::new(schema.value);
    if let Err(error) = &built {
        let message = format!("the schema of the results of {tool} cannot be used: {error}");
        report.error(schema.line, "expect_schema", message, "write a JSON Schema 2020-12");
    }
    built.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expectations() -> ToolExpectations {
        let schema = json!({"type": "object", "required": ["city"]});
        ToolExpectations {
            not_empty: vec![String::new(), "/items".to_owned()],
            ranges: [("/c".to_owned(), NumberRange { min: Some(-90.0), max: Some(60.0) })].into(),
            same: [("city".to_owned(), "/city".to_owned()), ("day".to_owned(), "/day".to_owned())].into(),
            schema: Some(ResultSchema::new(schema).unwrap()),
            interpret: true,
        }
    }

    fn count(arguments: &Value, result: &Value) -> usize {
        expectations().breaches(arguments, result).len()
    }

    #[test]
    fn result_as_declared_breaches_nothing() {
        let asked = json!({"city": "São  Paulo", "day": "2026-05-04"});
        let told = json!({"city": "sao paulo", "day": "2026-05-04T09:00:00Z", "c": 60, "items": [1]});
        assert_eq!(expectations().breaches(&asked, &told), [] as [&str; 0]);
        // A back end may leave out what it was asked with.
        assert_eq!(count(&asked, &json!({"city": null, "items": [1]})), 0);
        assert_eq!(count(&json!({}), &json!({"city": "Rome", "items": [1]})), 0);
    }

    #[test]
    fn each_expectation_is_compared() {
        let asked = json!({"city": "Rome", "day": "2026-05-04"});
        let right = json!({"city": "Rome", "day": "2026-05-04", "c": 1, "items": [1]});
        assert_eq!(count(&asked, &right), 0);
        let with = |key: &str, value: Value| {
            let mut result = right.clone();
            result[key] = value;
            count(&asked, &result)
        };
        assert_eq!(with("items", json!([])), 1);
        assert_eq!(with("c", json!(60.5)), 1);
        assert_eq!(with("c", json!("warm")), 1);
        assert_eq!(with("city", json!("Roma")), 1);
        assert_eq!(with("day", json!("2026-05-05")), 1);
        assert_eq!(count(&asked, &json!([])), 3, "the whole, its items, and the schema");
    }

    #[test]
    fn broken_places_name_no_value() {
        let row = json!({"type": "object", "required": ["day"], "properties": {"day": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": row}}});
        let expectations =
            ToolExpectations { schema: Some(ResultSchema::new(schema).unwrap()), ..expectations() };
        let broken =
            expectations.broken_places(&json!({}), &json!({"rows": [{"day": 4711}, {"day": 4712}, {}]}));
        assert_eq!(broken, ["/rows/*/day does not have the expected type", "/rows/* lacks a required field"]);
        let odd = json!({"rows": [], "items": ["secret"], "c": 4711});
        assert_eq!(
            expectations.broken_places(&json!({}), &odd),
            ["not what is expected at: /c, /city, /day"]
        );
        assert!(expectations.is_to_be_interpreted(&json!({"rows": 1})));
        assert!(!expectations.is_to_be_interpreted(&odd), "it has the shape that the schema says");
    }

    #[test]
    fn breaches_are_bounded() {
        let schema = json!({"items": {"type": "string"}});
        let schema = Some(ResultSchema::new(schema).unwrap());
        let expectations = ToolExpectations { schema, ..ToolExpectations::default() };
        let result = Value::Array((0..100).map(|n| json!({"x".repeat(400): n})).collect());
        let found = expectations.breaches(&json!({}), &result);
        assert_eq!(found.len(), MAX_BREACHES);
        assert!(found.iter().all(|breach| breach.chars().count() <= MAX_BREACH_CHARS));
    }
}
