//! The configuration's section `memory`.

use serde::{Deserialize, Serialize};

use crate::run::Fault;

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
    /// Everything that is wrong with these values, with the key's name and the remedy.
    pub fn problems(&self) -> Vec<Fault> {
        let mut problems = Vec::new();
        let mut wrong = |message: &str| problems.push(Fault::new("config.invalid", message));
        if !(0.05..=0.9).contains(&self.window_share) {
            wrong("memory.window_share must be from 0.05 to 0.9");
        }
        if self.keep_turns == 0 {
            wrong("memory.keep_turns must be at least 1");
        }
        if self.max_turns_in_prompt <= self.keep_turns {
            wrong("memory.max_turns_in_prompt must be more than memory.keep_turns");
        }
        if self.max_turns_in_prompt > 1000 {
            wrong("memory.max_turns_in_prompt must be at most 1000");
        }
        problems
    }

    /// The tokens that the memory may take of a window of `window` tokens; a share outside its bounds
    /// counts as the nearest bound.
    pub fn budget(&self, window: usize) -> usize {
        let share = if self.window_share.is_finite() { self.window_share.clamp(0.05, 0.9) } else { 0.5 };
        // Windows are far below 2^52 tokens, so the floating-point product is exact enough.
        (window as f64 * share) as usize
    }
}
