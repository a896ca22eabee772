//! The words of a session's own stream: what happens to a conversation beside its runs.

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::context::{Pending, Turn};
use super::event::{Fault, Usage};

/// What can happen to a conversation. It is stored in the same envelope as a run's events (with `run`
/// absent), and its memory is a fold over these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, and is soon written")]
pub enum SessionEvent {
    /// The first request of the conversation has come.
    SessionStarted {},
    /// A run ended and is remembered.
    TurnEnded {
        /// The request and what became of it, whole.
        turn: Turn,
        /// The question it ended with, if it did.
        #[serde(default)]
        pending: Option<Pending>,
        /// What the whole run cost.
        #[serde(default)]
        usage: Usage,
    },
    /// The oldest turns live on in a summary only.
    Summarised {
        /// How many turns of the conversation, counted from its first, the summary covers.
        through: usize,
        /// The summary; it replaces the one before.
        summary: String,
        /// What making it cost.
        #[serde(default)]
        usage: Usage,
        /// Each attempt at a model on the way; their usages add up to `usage`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
    /// No model could make the summary. A `Summarised` with one made without a model follows.
    SummaryFailed {
        /// Why.
        error: Fault,
        /// What it cost all the same.
        #[serde(default)]
        usage: Usage,
        /// Each attempt at a model on the way; their usages add up to `usage`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
}
