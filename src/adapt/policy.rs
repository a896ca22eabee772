//! What a tool declares about its failures, by their class, and what applies where it declares nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::fault::FaultClass;

/// What predefined logic can do about a failed call.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PolicyAction {
    /// Another attempt of the same call, under the same idempotency key.
    Retry,
    /// The call is left out: its tool is optional.
    Skip,
    /// The call has failed; the run continues with what it has.
    Fail,
    /// A model is asked. Follows from level and mode: no tool can declare it.
    Consult,
}

impl PolicyAction {
    /// What a tool can declare.
    pub fn declarable() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied().filter(|action| *action != Self::Consult)
    }

    /// Its name, such as `retry`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a tool declares for one class of failures. Numbers that it leaves out are the operator's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultPolicy {
    /// What to do, in this order; what follows from the class where it is absent.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<PolicyAction>>,
    /// Most attempts, the first included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Milliseconds before the second attempt; doubled for each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// The longest wait that a server may ask for, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

/// What a tool declares about its failures. Frozen in each requested call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolPolicies {
    /// By class of failure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<FaultClass, FaultPolicy>,
    /// Whether its calls may be left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl ToolPolicies {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `[execution.policies]`: what applies where tools declare nothing else, and the bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyDefaults {
    /// Most attempts of a call, the first included.
    pub attempts: u32,
    /// Milliseconds before the second attempt; doubled for each further one.
    pub backoff_ms: u64,
    /// The longest wait that a server may ask for, in milliseconds.
    pub max_wait_ms: u64,
    /// Most retries of all calls of a run.
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
