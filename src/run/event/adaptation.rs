//! What predefined logic changed in the calls of a run.

use serde::{Deserialize, Serialize};

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
}

impl Adaptation {
    /// The ordinal of the call whose place is taken.
    pub fn call(&self) -> u32 {
        match self {
            Adaptation::Substituted { call, .. } => *call,
        }
    }
}
