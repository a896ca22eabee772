//! What settings must hold. Each module that owns settings lists what is wrong with their values;
//! the configuration adds where a value was written.

mod passwords;

use std::fmt::Display;
use std::ops::RangeInclusive;

pub use passwords::{url_without_passwords, without_passwords};

/// A day, the most that anything waits.
pub const DAY_MS: u64 = 86_400_000;

/// One thing that is wrong with the values of some keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The key, with dots: `planning.max_steps`, `llm.models.0.name`. Where several keys contradict
    /// each other, all of them.
    pub keys: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.message, self.remedy)
    }
}

/// A list of what is wrong, as it is made.
#[derive(Debug, Default)]
pub struct Review {
    wrong: Vec<Wrong>,
}

impl Review {
    /// Adds what is wrong with the value of `key`.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) {
        self.wrong.push(Wrong { keys: vec![key.into()], message: message.into(), remedy: remedy.into() });
    }

    /// Adds keys that contradict each other.
    pub fn contradiction(&mut self, keys: &[&str], message: impl Into<String>, remedy: impl Into<String>) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        self.wrong.push(Wrong { keys, message: message.into(), remedy: remedy.into() });
    }

    /// Holds `value` to its bounds.
    pub fn range<N: PartialOrd + Display>(&mut self, key: &str, value: N, range: RangeInclusive<N>) {
        if !range.contains(&value) {
            let bounds = format!("set a value from {} to {}", range.start(), range.end());
            self.add(key, format!("`{key}` = `{value}` is out of range"), bounds);
        }
    }

    /// Everything that was added.
    pub fn end(self) -> Vec<Wrong> {
        self.wrong
    }
}
