//! The configuration's section `memory`.

use serde::{Deserialize, Serialize};

use crate::setting::{Review, Wrong};

/// How much of a conversation is remembered word by word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The share of the model's context window that the memory may take, from 0.05 to 0.9. Before it
    /// takes more, its oldest turns are summarised.
    pub window_share: f64,
    /// The newest turns that are never summarised.
    pub keep_turns: usize,
    /// Most turns that a prompt holds word by word; before there are more, the oldest are summarised.
    pub max_turns_in_prompt: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { window_share: 0.5, keep_turns: 4, max_turns_in_prompt: 20 }
    }
}

impl Options {
    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        review.range("memory.window_share", self.window_share, 0.05..=0.9);
        review.range("memory.keep_turns", self.keep_turns, 1..=1_000);
        review.range("memory.max_turns_in_prompt", self.max_turns_in_prompt, 1..=1_000);
        if self.max_turns_in_prompt <= self.keep_turns {
            let message = format!(
                "`memory.max_turns_in_prompt` = `{}` is not more than `memory.keep_turns` = `{}`",
                self.max_turns_in_prompt, self.keep_turns
            );
            let keys = ["memory.max_turns_in_prompt", "memory.keep_turns"];
            review.contradiction(&keys, message, "raise the one or lower the other");
        }
        review.end()
    }

    /// The tokens that the memory may take of a window of `window` tokens; a share outside its bounds
    /// counts as the nearest bound.
    pub fn budget(&self, window: usize) -> usize {
        let share = if self.window_share.is_finite() { self.window_share.clamp(0.05, 0.9) } else { 0.5 };
        // Windows are far below 2^52 tokens, so the floating-point product is exact enough.
        (window as f64 * share) as usize
    }
}
