//! The subjects of consultations, and the choices that a model has.

use serde::{Deserialize, Serialize};

use crate::adapt::{self, ConsultationKind, MappedPlace, RecoveryAction};

/// The subject of a consultation.
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
    /// An attempt of a call that failed, in place of which one of several alternatives is called.
    Decision {
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
    /// Returns what a model is consulted about.
    pub fn kind(self) -> ConsultationKind {
        match self {
            Self::Recovery { .. } => ConsultationKind::Recovery,
            Self::Interpretation { .. } => ConsultationKind::Interpretation,
            Self::Decision { .. } => ConsultationKind::Decision,
            Self::Adaptation { .. } => ConsultationKind::Adaptation,
        }
    }

    /// The call that it concerns, if any.
    pub fn call(self) -> Option<u32> {
        match self {
            Self::Recovery { call, .. } | Self::Interpretation { call, .. } | Self::Decision { call, .. } => {
                Some(call)
            }
            Self::Adaptation { .. } => None,
        }
    }
}

/// The choice that a consultation made.
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
    /// Which alternative is called.
    Decision {
        /// Its place among those that the tool declares, from 0: one of the options.
        at: u32,
    },
    /// What changes in the plan: a version of it that is in force already.
    Patch {
        /// The version.
        version: u32,
    },
}

impl ConsultationChoice {
    /// Its id in the question, such as `retry` or `alternative_2`.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Recovery { action } => action.id(),
            Self::Interpretation { .. } => "mapping",
            Self::Decision { at } => adapt::decision_id(*at),
            Self::Patch { .. } => "patch",
        }
    }

    /// The option that was chosen; `None` where none was offered.
    pub(in crate::run) fn option(&self) -> Option<RecoveryAction> {
        match self {
            Self::Recovery { action } => Some(*action),
            Self::Decision { at } => Some(RecoveryAction::Alternative { at: *at }),
            Self::Interpretation { .. } | Self::Patch { .. } => None,
        }
    }

    /// In which kind of consultation it can be chosen.
    pub(in crate::run) fn kind(&self) -> ConsultationKind {
        match self {
            Self::Recovery { .. } => ConsultationKind::Recovery,
            Self::Interpretation { .. } => ConsultationKind::Interpretation,
            Self::Decision { .. } => ConsultationKind::Decision,
            Self::Patch { .. } => ConsultationKind::Adaptation,
        }
    }
}
