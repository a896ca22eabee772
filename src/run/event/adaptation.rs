//! Changes of predefined logic in the calls of a run.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::ids::RunId;
use super::RequestedCall;

/// A change of the calls of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Adaptation {
    /// A call of the alternative tool takes the place of one that failed.
    Substituted {
        /// The failed call's ordinal.
        call: u32,
        /// The call that takes its place.
        requested: Box<RequestedCall>,
    },
    /// The last good result of an equal call was looked for.
    Recalled {
        /// The failed call's ordinal.
        call: u32,
        /// It, unless there is none that is new enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<Box<RecalledResult>>,
    },
    /// The mapping that a model chose was applied to the result of a read.
    Interpreted {
        /// The failed call's ordinal.
        call: u32,
        /// What it makes of the result, unless that is not as its tool declares.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<Box<InterpretedResult>>,
    },
}

/// A result whose values a model has found in data of another shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterpretedResult {
    /// The result, truncated to what a model is shown of it.
    pub result: Value,
    /// The result as a sentence in the user's language, where the scene has a phrase for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// The whole result, where `result` is truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Value>,
}

/// The result of an earlier call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecalledResult {
    /// What the tool returned, truncated to what a model is shown of it.
    pub result: Value,
    /// The result as a sentence in the user's language, where the scene has a phrase for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// The whole result, where `result` is truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Value>,
    /// When it was recorded.
    pub at: Timestamp,
    /// The run that it comes from.
    pub run: RunId,
}

impl Adaptation {
    /// The ordinal of the failed call.
    pub fn call(&self) -> u32 {
        match self {
            Adaptation::Substituted { call, .. }
            | Adaptation::Recalled { call, .. }
            | Adaptation::Interpreted { call, .. } => *call,
        }
    }
}
