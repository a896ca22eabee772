//! Validation of settings. Each module validates its own settings; the configuration adds where a value was
//! written.

mod redaction;

use std::fmt::Display;
use std::ops::RangeInclusive;

pub use redaction::{redact_passwords, redact_secrets, redact_url};

/// One day in milliseconds: the maximum of all timeouts.
pub const DAY_MS: u64 = 86_400_000;

/// One invalid value, or several contradictory ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingProblem {
    /// The dotted key, such as `planning.max_steps` or `llm.models.0.name`. If several keys contradict each
    /// other, all of them.
    pub keys: Vec<String>,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

/// The problem and how to fix it, without the passwords of URLs.
impl Display for SettingProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", redact_passwords(&self.message), self.remedy)
    }
}

/// Collects the problems of settings.
#[derive(Debug, Default)]
pub struct SettingsReview {
    problems: Vec<SettingProblem>,
}

impl SettingsReview {
    /// Adds a problem of the value of `key`.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(SettingProblem {
            keys: vec![key.into()],
            message: message.into(),
            remedy: remedy.into(),
        });
    }

    /// Adds a contradiction between keys.
    pub fn contradiction(&mut self, keys: &[&str], message: impl Into<String>, remedy: impl Into<String>) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        self.problems.push(SettingProblem { keys, message: message.into(), remedy: remedy.into() });
    }

    /// Adds a problem if `value` is out of `range`.
    pub fn range<N: PartialOrd + Display>(&mut self, key: &str, value: N, range: RangeInclusive<N>) {
        if !range.contains(&value) {
            let bounds = format!("set a value from {} to {}", range.start(), range.end());
            self.add(key, format!("`{key}` = `{value}` is out of range"), bounds);
        }
    }

    /// Returns all problems.
    pub fn into_problems(self) -> Vec<SettingProblem> {
        self.problems
    }
}
