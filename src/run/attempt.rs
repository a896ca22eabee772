//! What each attempt at a model cost: what an event's usage is the sum of.

use serde::{Deserialize, Serialize};

use super::event::Usage;

/// One attempt at a model, or a reply that was there already. An event's attempts are in the order in
/// which they were made, and their usages add up to the event's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The configured name of the model; `offline` for the embedded rules.
    pub model: String,
    /// What the question was for, as `llm.purposes` names it: `plan`, `scene`, …
    #[serde(default)]
    pub purpose: String,
    /// `ok`; `cached` (the reply was kept) and `joined` (an equal question was under way), for which
    /// no model was asked; or the error's stable class, such as `timeout` (see `llm::Kind::class`).
    pub outcome: String,
    /// Tokens and money of this attempt alone.
    #[serde(default)]
    pub usage: Usage,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub millis: u64,
    /// Milliseconds until the reply began, where it was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_millis: Option<u64>,
    /// What a reply that was there already would have cost, in nano-USD.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub saved_nano_usd: u64,
}

/// What was set aside for a question before its first attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// The configured name of the model that is asked first.
    pub model: String,
    /// What the question is for, as `llm.purposes` names it.
    pub purpose: String,
    /// The most that the attempt can cost, in nano-USD.
    pub nano_usd: u64,
}

impl Reserved {
    /// The attempt of which nobody heard again, at the cost of all that was set aside for it.
    pub fn spent(&self) -> Attempt {
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
    /// The process ended before it heard of the reply.
    pub const INTERRUPTED: &str = "interrupted";
    /// A model replied.
    pub const OK: &str = "ok";
    /// The reply was kept from an equal question.
    pub const CACHED: &str = "cached";
    /// The reply is that to an equal question which was under way.
    pub const JOINED: &str = "joined";

    /// Whether a model was asked.
    pub fn was_sent(&self) -> bool {
        self.outcome != Self::CACHED && self.outcome != Self::JOINED
    }

    /// What all of them cost together.
    pub fn sum(attempts: &[Attempt]) -> Usage {
        let mut sum = Usage::default();
        for attempt in attempts {
            sum += attempt.usage;
        }
        sum
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
