//! Expectations of a step about the results of its tools: postconditions that the author of a plan states.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::{PlanProblem, Step};

/// Maximum number of tools of a step about whose results something is expected.
const MAX_EXPECTATIONS: usize = 8;

/// The largest expectation, in bytes of JSON.
const MAX_EXPECTATION_BYTES: usize = 4096;

/// The expectation of a step about each result of one of its tools. A read whose result does not meet it has failed; a
/// write was done, and the answer says that its result is not as expected. Places are JSON Pointers (RFC 6901) into the
/// result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepExpectation {
    /// One of the step's expected tools.
    pub tool: String,
    /// Places that are not empty: neither absent or null, nor an empty string, list or object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_empty: Vec<String>,
    /// Bounds of numbers, by place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<String, ExpectedRange>,
    /// For arguments, by name, the place where the result repeats them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub same: BTreeMap<String, String>,
    /// A JSON Schema (2020-12) of the whole result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
}

/// Bounds of a number, both included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExpectedRange {
    /// The least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub min: Option<Number>,
    /// The greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub max: Option<Number>,
}

impl StepExpectation {
    /// Returns the expectation as one line of JSON.
    pub fn describe(&self) -> String {
        let mut all = serde_json::to_value(self).unwrap_or_default();
        if let Some(map) = all.as_object_mut() {
            map.remove("tool");
        }
        all.to_string()
    }

    fn is_nothing(&self) -> bool {
        self.not_empty.is_empty()
            && self.ranges.is_empty()
            && self.same.is_empty()
            && self.schema.as_ref().is_none_or(|schema| *schema == Value::Object(Map::new()))
    }

    /// What is wrong with it by itself.
    fn problem(&self) -> Option<String> {
        if self.is_nothing() {
            return Some("states nothing: give not_empty, ranges, same or schema".to_owned());
        }
        let size = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if size > MAX_EXPECTATION_BYTES {
            return Some(format!("has {size} bytes, and at most {MAX_EXPECTATION_BYTES} are allowed"));
        }
        let places = self.not_empty.iter().chain(self.ranges.keys()).chain(self.same.values());
        if let Some(place) = places.into_iter().find(|place| !place.is_empty() && !place.starts_with('/')) {
            return Some(format!(
                "names the place {place:?}: write a JSON Pointer such as {:?}",
                format!("/{place}")
            ));
        }
        let bound = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
        self.ranges.iter().find_map(|(place, range)| match (bound(&range.min), bound(&range.max)) {
            (None, None) => Some(format!("has no bound for {place:?}: give min, max or both")),
            (Some(min), Some(max)) if min > max => Some(format!("has a min above its max for {place:?}")),
            _ => None,
        })
    }
}

impl Step {
    /// Returns the expectation about the results of `tool`.
    pub fn expectation_of(&self, tool: &str) -> Option<&StepExpectation> {
        self.expect.iter().find(|expected| expected.tool == tool)
    }
}

/// The problems of what a step expects that can be detected without a catalogue.
pub(super) fn check_expectations(step: &Step, problems: &mut Vec<PlanProblem>) {
    let n = step.step_number;
    let mut report = |what: String| {
        problems.push(PlanProblem::new("plan.expect", format!("step {n}: {what}")));
    };
    if step.expect.len() > MAX_EXPECTATIONS {
        report(format!(
            "expect has {} entries, and at most {MAX_EXPECTATIONS} are allowed",
            step.expect.len()
        ));
    }
    for (at, expected) in step.expect.iter().enumerate() {
        let tool = &expected.tool;
        if !step.expected_tools.contains(tool) {
            report(format!("expect names {tool:?}, which is not among its expected_tools"));
        } else if step.expect.iter().take(at).any(|other| other.tool == *tool) {
            report(format!("expect names {tool} twice: give one entry a tool"));
        } else if let Some(what) = expected.problem() {
            report(format!("what it expects of {tool} {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(expect: Value) -> Vec<String> {
        let step = json!({"step_number": 1, "scene_name": "Weather", "expected_tools": ["Look", "See"],
            "expect": expect});
        let step: Step = serde_json::from_value(step).unwrap();
        let mut problems = Vec::new();
        check_expectations(&step, &mut problems);
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn usable_expectations_have_no_problems() {
        let look = json!({"tool": "Look", "not_empty": ["", "/days"], "same": {"city": "/city"},
            "ranges": {"/c": {"min": -90, "max": 60.5}, "/rain": {"min": 0}}, "schema": {"type": "object"}});
        assert_eq!(problems(json!([look, {"tool": "See", "not_empty": ["/x"]}])), [""; 0]);
    }

    #[test]
    fn each_mistake_is_named() {
        for (expect, says) in [
            (json!([{"tool": "Hear", "not_empty": [""]}]), "not among its expected_tools"),
            (json!([{"tool": "Look"}]), "states nothing"),
            (json!([{"tool": "Look", "not_emtpy": [""]}]), "states nothing"),
            (json!([{"tool": "Look", "schema": {}}]), "states nothing"),
            (json!([{"tool": "Look", "not_empty": ["days"]}]), "write a JSON Pointer such as \"/days\""),
            (json!([{"tool": "Look", "ranges": {"/c": {}}}]), "no bound for \"/c\""),
            (json!([{"tool": "Look", "ranges": {"/c": {"min": 2, "max": 1}}}]), "a min above its max"),
            (json!([{"tool": "Look", "not_empty": ["/x".repeat(3000)]}]), "at most 4096"),
            (
                json!([{"tool": "Look", "not_empty": [""]}, {"tool": "Look", "not_empty": [""]}]),
                "names Look twice",
            ),
        ] {
            let found = problems(expect);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(says), "{found:?}");
        }
        let many: Vec<Value> = (0..9).map(|n| json!({"tool": format!("T{n}"), "not_empty": [""]})).collect();
        assert!(problems(json!(many))[0].contains("at most 8"));
    }

    #[test]
    fn step_without_expectations_is_written_as_before() {
        let step = Step { step_number: 1, ..Step::default() };
        assert!(!serde_json::to_string(&step).unwrap().contains("expect\""));
    }
}
