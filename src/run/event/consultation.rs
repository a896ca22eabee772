//! What a consultation is about, and what a model can choose.

use serde::{Deserialize, Serialize};

use crate::adapt::{ConsultationKind, MappedPlace, RecoveryAction};

/// What a consultation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ConsultationSubject {
    /// An attempt of a call that failed.
    Recovery {
        /// The call's ordinal.
        call: u32,
        /// From 1.
        attempt: u32,
    },
    /// The result of an attempt of a read, which has another shape than its tool declares.
    Interpretation {
        /// The call's ordinal.
        call: u32,
        /// From 1.
        attempt: u32,
    },
    /// The part of the plan that is not finished, after this step ended.
    Adaptation {
        /// The step's number.
        step: u32,
    },
}

impl ConsultationSubject {
    /// What a model is consulted about.
    pub fn kind(self) -> ConsultationKind {
        match self {
            Self::Recovery { .. } => ConsultationKind::Recovery,
            Self::Interpretation { .. } => ConsultationKind::Interpretation,
            Self::Adaptation { .. } => ConsultationKind::Adaptation,
        }
    }

    /// The call that it concerns, if any.
    pub fn call(self) -> Option<u32> {
        match self {
            Self::Recovery { call, .. } | Self::Interpretation { call, .. } => Some(call),
            Self::Adaptation { .. } => None,
        }
    }
}

/// What was chosen in a consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "chose", rename_all = "snake_case")]
pub enum ConsultationChoice {
    /// How to continue after a call failed.
    Recovery {
        /// One of the options.
        action: RecoveryAction,
    },
    /// Where the values of the expected result are in the data.
    Interpretation {
        /// A place of the data for each place of the result.
        mapping: Vec<MappedPlace>,
    },
    /// What changes in the plan: a version of it that is in force already.
    Patch {
        /// The version.
        version: u32,
    },
}

impl ConsultationChoice {
    /// Its id in the question, such as `retry`.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Recovery { action } => action.id(),
            Self::Interpretation { .. } => "mapping",
            Self::Patch { .. } => "patch",
        }
    }
}
