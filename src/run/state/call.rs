//! The progress of a tool call.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::adapt::PolicyChoice;
use crate::run::event::{Fault, Outcome, RequestedCall};
use crate::run::work::SummaryWork;

/// A tool call and its progress.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallState {
    /// The step it belongs to.
    pub step: u32,
    /// The step's scene.
    pub scene: String,
    /// The requested call.
    pub requested: RequestedCall,
    /// Whether the offline model requested it in place of failed models: it may not write.
    pub fallback: bool,
    /// Its status.
    pub status: CallStatus,
    /// Whether a later write made its result stale: equal calls no longer share its outcome.
    pub stale: bool,
    /// How often it was started.
    pub attempts: u32,
    /// How many of these were interrupted by the end of the process; they do not count against the call.
    #[serde(skip_serializing_if = "crate::run::is_default")]
    pub interruptions: u32,
    /// The write that it undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u32>,
    /// The call that undoes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u32>,
    /// Who wrote its arguments, where that is neither a model nor the run's requester.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
    /// Whether an attempt may have taken effect and none is known to have succeeded. From revision 4 of the rules on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
    /// Whether it was left out after it failed, because its tool is optional.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// The call of the alternative tool that took its place, last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<u32>,
    /// The call whose place it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u32>,
    /// Whether the last good result of an equal call was looked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
    /// Of a program's read: whether a value of its arguments was neither said nor found, so that its result is no
    /// source of values.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_untraced: bool,
    /// Whether it commits what a program staged: the machine requested it, at the end of the program, which wrote no such call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_commit: bool,
    /// When its result was recorded, where that is the result of an earlier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<Timestamp>,
    /// Whether a model has found the values of its result in data of another shape.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interpreted: bool,
    /// Whether its tool read documents of the request: its result repeats what these say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quotes_documents: bool,
    /// Of a read: whether it was requested after another call had read documents. Its arguments, and so its result, may
    /// come from these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub follows_documents: bool,
    /// Whether a consultation about the shape of its result was opened, with whatever result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::run) interpretation_tried: bool,
    /// Whether a consultation about its alternatives was opened, with whatever result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::run) decision_tried: bool,
    /// The result of its last attempt, where that has another shape than expected and a model may be asked about it. Shown
    /// to nobody.
    #[serde(skip)]
    pub(in crate::run) odd_data: Option<Value>,
    /// Of a call that summarises documents: its progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<SummaryWork>>,
    /// In which ways the result of a write that was done is not as its tool declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<String>,
    /// Whether its end is unexpected and was not recorded as such yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::run) unnoted: bool,
}

/// The status of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallStatus {
    /// Requested.
    Requested,
    /// Under way.
    InFlight {
        /// From 1.
        attempt: u32,
    },
    /// To be started again, which is safe.
    Again {
        /// The attempt to come.
        attempt: u32,
    },
    /// An attempt failed, and predefined logic has not finished with it.
    Failing {
        /// How the attempt ended.
        outcome: Outcome,
        /// What is done about it, once that was decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        chosen: Option<PolicyChoice>,
    },
    /// Waits before its next attempt.
    BackedOff {
        /// The attempt to come.
        attempt: u32,
        /// When it is due.
        until: Timestamp,
        /// How long the wait is in all, in milliseconds.
        delay_ms: u64,
        /// How the last attempt ended.
        outcome: Outcome,
    },
    /// Ended.
    Done {
        /// Its outcome.
        outcome: Outcome,
    },
    /// Not executed: shares the outcome of an equal call.
    Skipped {
        /// The ordinal of that call.
        first: u32,
    },
}

impl CallState {
    /// A call that was requested in `step`.
    pub(in crate::run) fn requested(step: u32, scene: String, requested: RequestedCall) -> Self {
        Self {
            step,
            scene,
            requested,
            fallback: false,
            status: CallStatus::Requested,
            stale: false,
            attempts: 0,
            interruptions: 0,
            undoes: None,
            undone_by: None,
            edited_by: None,
            uncertain: false,
            left_out: false,
            replaced_by: None,
            replaces: None,
            recalled: false,
            is_untraced: false,
            is_commit: false,
            stale_since: None,
            interpreted: false,
            quotes_documents: false,
            follows_documents: false,
            interpretation_tried: false,
            decision_tried: false,
            odd_data: None,
            summary: None,
            breaches: Vec::new(),
            unnoted: false,
        }
    }

    /// Returns whether its result, if it has one, is evidence for the values of a write: it is as declared, not from an
    /// earlier run, not interpreted by a model, and does not come from a document.
    pub fn is_evidence(&self) -> bool {
        self.breaches.is_empty()
            && self.stale_since.is_none()
            && !self.interpreted
            && !self.is_from_documents()
    }

    /// Returns whether its result repeats what documents say, or was found with arguments that may come from them.
    pub fn is_from_documents(&self) -> bool {
        self.quotes_documents || self.follows_documents
    }

    /// The consultation whose end it waits for, if it waits for one.
    pub(in crate::run) fn consultation(&self) -> Option<u32> {
        match self.status {
            CallStatus::Failing { chosen: Some(PolicyChoice::Consult { consultation, .. }), .. } => {
                Some(consultation)
            }
            _ => None,
        }
    }

    /// The fault of its last attempt, if that failed and nothing has followed.
    pub(in crate::run) fn fault(&self) -> Option<&Fault> {
        match &self.status {
            CallStatus::Failing { outcome, .. } | CallStatus::Done { outcome } => outcome.fault(),
            _ => None,
        }
    }
}
