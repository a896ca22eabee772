//! The failure policies that a tool declares, by class of failure, and what applies where it declares nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::VariantArray;

use crate::fault::FaultClass;

/// An action of predefined logic about a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PolicyAction {
    /// Another attempt of the same call, under the same idempotency key.
    Retry,
    /// Another tool of the scene, which its tool declares, is called in its place.
    Alternative,
    /// The last good result of an equal call is used, if it is not too old.
    Cached,
    /// The call is left out: its tool is optional.
    Skip,
    /// The call has failed; the run continues with what it has.
    Fail,
    /// A model is asked. Follows from level and mode: no tool can declare it.
    Consult,
}

impl PolicyAction {
    /// Returns the actions that a tool can declare.
    pub fn declarable() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied().filter(|action| *action != Self::Consult)
    }

    /// Its name, such as `retry`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The policy that a tool declares for one class of failures. Numbers that it leaves out are the operator's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultPolicy {
    /// What to do, in this order; what follows from the class where it is absent.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<PolicyAction>>,
    /// Maximum number of attempts, the first included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Milliseconds before the second attempt; doubled for each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// The longest wait that a server may ask for, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

/// Maximum number of alternatives of a tool.
pub const MAX_ALTERNATIVES: usize = 4;

/// The tool that is called in place of one that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlternativeTool {
    /// Its name: another tool of the same scene, with the same effect.
    pub tool: String,
    /// Its arguments. A string that begins with `/` is a JSON Pointer (RFC 6901) into `{"arguments": …}` of the failed
    /// call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// Whether its result has the same fields with the same meaning, so that writes may refer to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub same_result: bool,
}

impl AlternativeTool {
    /// Its arguments in place of a call with `arguments`. One whose pointer finds nothing is omitted.
    pub fn arguments_for(&self, arguments: &Value) -> Value {
        Value::Object(resolved_arguments(&self.arguments, &serde_json::json!({ "arguments": arguments })))
    }
}

/// Declared arguments with their values: a string that begins with `/` is a JSON Pointer into `known`. One whose pointer
/// finds nothing is omitted.
pub(crate) fn resolved_arguments(declared: &BTreeMap<String, Value>, known: &Value) -> Map<String, Value> {
    let found = declared.iter().filter_map(|(name, value)| {
        let value = match value.as_str().filter(|text| text.starts_with('/')) {
            Some(pointer) => known.pointer(pointer).filter(|value| !value.is_null())?,
            None => value,
        };
        Some((name.clone(), value.clone()))
    });
    found.collect()
}

/// How long the last good result of a tool may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedResult {
    /// The greatest age in seconds.
    pub max_age_s: u32,
}

/// The failure policies that a tool declares. Frozen in each requested call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolPolicies {
    /// By class of failure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<FaultClass, FaultPolicy>,
    /// Whether its calls may be left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The tool that is called in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternative: Option<AlternativeTool>,
    /// Further tools that can be called in its place, in this order: each another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<AlternativeTool>,
    /// By what a model chooses among several alternatives; without it, they are called in their order.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub choose_by: String,
    /// Whether its last good result may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedResult>,
    /// Whether a model may be asked where the expected values are in a result of another shape.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interpret: bool,
}

impl ToolPolicies {
    /// Returns whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the tools that can be called in its place, in order: its place among these names an alternative elsewhere.
    pub fn alternatives(&self) -> impl Iterator<Item = &AlternativeTool> {
        self.alternative.iter().chain(&self.others)
    }

    /// The alternative at this place, from 0.
    pub fn alternative_at(&self, at: u32) -> Option<&AlternativeTool> {
        self.alternatives().nth(at as usize)
    }

    /// Returns the policies of calls that take the place of failed ones: these are neither left out
    /// nor replaced again, and their results are neither used later nor interpreted.
    #[must_use]
    pub fn of_substitute(&self) -> Self {
        Self { by_class: self.by_class.clone(), ..Self::default() }
    }
}

/// `[execution.policies]`: what applies where tools declare nothing else, and the bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyDefaults {
    /// Maximum number of attempts of a call, the first included.
    pub attempts: u32,
    /// Milliseconds before the second attempt; doubled for each further one.
    pub backoff_ms: u64,
    /// The longest wait that a server may ask for, in milliseconds.
    pub max_wait_ms: u64,
    /// Maximum number of retries of all calls of a run.
    pub max_retries: u32,
    /// The longest that a run waits for retries in all, in milliseconds.
    pub max_wait_per_run_ms: u64,
}

impl Default for PolicyDefaults {
    fn default() -> Self {
        Self {
            attempts: 3,
            backoff_ms: 250,
            max_wait_ms: 20_000,
            max_retries: 32,
            max_wait_per_run_ms: 60_000,
        }
    }
}
