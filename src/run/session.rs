//! Events of a session's own stream: what happens to a conversation besides its runs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::context::{PendingQuestion, Turn};
use super::event::{Fault, Usage};
use super::fact::{StatedFact, TurnOrigin};

/// An event of a conversation. It is stored in the same envelope as a run's events (with `run`
/// absent), and its memory is a fold over these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEvent {
    /// The first request of the conversation arrived.
    SessionStarted {},
    /// A run ended and is remembered.
    TurnEnded {
        /// The complete request and its outcome.
        turn: Turn,
        /// The question that it ended with, if any.
        pending: Option<PendingQuestion>,
        /// The run's total usage.
        #[serde(default)]
        usage: Usage,
        /// Where the facts of the turn come from; absent in journals of earlier releases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<TurnOrigin>,
    },
    /// The question that a plain yes would have answered counts no more, since the conversation was restored from a backup:
    /// it may have been answered, and what it asks be done, after that was taken.
    QuestionLapsed {
        /// When the backup was taken.
        copied: Timestamp,
    },
    /// A fact that no turn holds: a person stated it, or a document says it.
    Fact {
        /// The fact.
        fact: StatedFact,
    },
    /// The oldest turns were replaced by a summary.
    Summarised {
        /// How many turns of the conversation, counted from its first, the summary covers.
        through: usize,
        /// The summary; it replaces the previous one. Empty if it was erased with a document: then one is made without a
        /// model, of the previous one and the turns.
        summary: String,
        /// The usage of making it.
        #[serde(default)]
        usage: Usage,
        /// Each attempt at a model on the way; their usages add up to `usage`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
        /// Where the turns say so, in the order of the summary, if a model wrote it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<TurnSpan>,
    },
    /// No model could write the summary. A `Summarised` with one made without a model follows.
    SummaryFailed {
        /// The reason.
        error: Fault,
        /// What it cost nevertheless.
        #[serde(default)]
        usage: Usage,
        /// Each attempt at a model on the way; their usages add up to `usage`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
}

impl SessionEvent {
    /// Returns what it records as spent on models by itself, in nano-USD. What a turn cost is in the stream of its run.
    pub fn cost_nano_usd(&self) -> u64 {
        match self {
            Self::Summarised { usage, .. } | Self::SummaryFailed { usage, .. } => usage.cost_nano_usd,
            Self::SessionStarted {}
            | Self::TurnEnded { .. }
            | Self::QuestionLapsed { .. }
            | Self::Fact { .. } => 0,
        }
    }
}

/// A place in what was said in a turn, in bytes of its text as its summary read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSpan {
    /// The turn, from 1; 0 for the summary of the turns before.
    pub turn: usize,
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}
