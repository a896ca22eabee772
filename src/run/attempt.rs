//! The attempts at models behind one event; the event's usage is their sum.

use serde::{Deserialize, Serialize};

use super::event::Usage;

/// One attempt at a model, or a reply that was already available. An event lists its attempts in order, and
/// their usages add up to the event's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The configured name of the model; `offline` for the offline model.
    pub model: String,
    /// The purpose of the question, as `llm.purposes` names it: `plan`, `scene`, …
    #[serde(default)]
    pub purpose: String,
    /// `ok`; `cached` (the reply came from the cache) or `joined` (an equal question was in flight), for
    /// which no model was asked; or the error's stable class, such as `timeout` (see
    /// `llm::ErrorKind::class`).
    pub outcome: String,
    /// Tokens and cost of this attempt alone.
    #[serde(default)]
    pub usage: Usage,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// How long after the first attempt, or the look-up before it, it began, in milliseconds.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub after_millis: u64,
    /// Milliseconds until the reply began, where it was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_millis: Option<u64>,
    /// What a reply that was already available would have cost, in nano-USD.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub saved_nano_usd: u64,
}

/// The budget reserved for a question before its first attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReservation {
    /// The configured name of the first model asked.
    pub model: String,
    /// The purpose of the question, as `llm.purposes` names it.
    pub purpose: String,
    /// The most that the attempt can cost, in nano-USD.
    pub nano_usd: u64,
}

impl AskReservation {
    /// An attempt whose outcome is unknown; it is charged the whole reservation.
    pub fn interrupted_attempt(&self) -> Attempt {
        Attempt {
            model: self.model.clone(),
            purpose: self.purpose.clone(),
            outcome: Attempt::INTERRUPTED.to_owned(),
            usage: Usage { calls: 1, cost_nano_usd: self.nano_usd, ..Usage::default() },
            ..Attempt::default()
        }
    }
}

impl Attempt {
    /// The process ended before it received a reply.
    pub const INTERRUPTED: &str = "interrupted";
    /// A model replied.
    pub const OK: &str = "ok";
    /// The reply was cached from an equal question.
    pub const CACHED: &str = "cached";
    /// The reply is that of an equal question that was in flight.
    pub const JOINED: &str = "joined";

    /// Returns whether a model was asked.
    pub fn was_sent(&self) -> bool {
        self.outcome != Self::CACHED && self.outcome != Self::JOINED
    }

    /// Their total usage.
    pub fn sum(attempts: &[Attempt]) -> Usage {
        let mut sum = Usage::default();
        for attempt in attempts {
            sum += attempt.usage;
        }
        sum
    }
}
