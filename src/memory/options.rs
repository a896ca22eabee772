//! The configuration section `memory`.

use serde::{Deserialize, Serialize};

use crate::setting::{SettingProblem, SettingsReview};

/// How much of a conversation is kept verbatim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The share of the model's context window that the memory may take, from 0.05 to 0.9. The oldest turns
    /// are summarised before it takes more.
    pub window_share: f64,
    /// The newest turns that are never summarised.
    pub keep_turns: usize,
    /// Maximum number of turns that a prompt contains verbatim. Beyond it, the oldest are summarised. Requests are
    /// answered meanwhile, but wait for the summary if the excess is more than a quarter.
    pub max_turns_in_prompt: usize,
    /// Maximum number of tokens of the facts of the conversation that a run is told besides its turns; 0 tells none.
    pub facts_tokens: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { window_share: 0.5, keep_turns: 4, max_turns_in_prompt: 20, facts_tokens: 600 }
    }
}

impl Options {
    /// All problems with these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("memory.window_share", self.window_share, 0.05..=0.9);
        review.range("memory.keep_turns", self.keep_turns, 1..=1_000);
        review.range("memory.max_turns_in_prompt", self.max_turns_in_prompt, 1..=1_000);
        review.range("memory.facts_tokens", self.facts_tokens, 0..=20_000);
        if self.max_turns_in_prompt <= self.keep_turns {
            let message = format!(
                "`memory.max_turns_in_prompt` = `{}` is not more than `memory.keep_turns` = `{}`",
                self.max_turns_in_prompt, self.keep_turns
            );
            let keys = ["memory.max_turns_in_prompt", "memory.keep_turns"];
            review.contradiction(&keys, message, "raise the one or lower the other");
        }
        review.into_problems()
    }

    /// The tokens that the memory may take of a window of `window` tokens. A share outside its bounds is
    /// clamped.
    pub fn budget(&self, window: usize) -> usize {
        let share = if self.window_share.is_finite() { self.window_share.clamp(0.05, 0.9) } else { 0.5 };
        // Windows are far below 2^52 tokens, so the floating-point product is exact enough.
        (window as f64 * share) as usize
    }
}
