//! The configuration's section `limits`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::nearest::nearest;
use crate::setting::{DAY_MS, SettingProblem, SettingsReview};

/// Maximum value of a limit; a semaphore holds no more places on any machine.
const MAX_LIMIT: u32 = 500_000_000;

/// How much may be asked of models, and how long a call waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Maximum number of milliseconds that an attempt waits until the limits let it pass.
    pub max_wait_ms: u64,
    /// For each tenant.
    pub tenant: Rates,
    /// For models, by their configured names.
    pub models: BTreeMap<String, Rates>,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_wait_ms: 10_000, tenant: Rates::default(), models: BTreeMap::new() }
    }
}

/// Limits of one tenant or one model. What is absent is not limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Attempts in a minute.
    pub requests_per_minute: Option<u32>,
    /// Prompt and completion tokens in a minute.
    pub tokens_per_minute: Option<u32>,
    /// Concurrent attempts.
    pub concurrent: Option<u32>,
}

impl Options {
    /// All problems with these values; `models` are the names of the configured models.
    pub fn problems<'a>(&self, models: impl Iterator<Item = &'a str>) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("limits.max_wait_ms", self.max_wait_ms, 0..=DAY_MS);
        let of_models = self.models.iter().map(|(name, rates)| (format!("limits.models.{name}"), rates));
        for (section, rates) in of_models.chain([("limits.tenant".to_owned(), &self.tenant)]) {
            for (field, value) in [
                ("requests_per_minute", rates.requests_per_minute),
                ("tokens_per_minute", rates.tokens_per_minute),
                ("concurrent", rates.concurrent),
            ] {
                review.range(&format!("{section}.{field}"), value.unwrap_or(1), 1..=MAX_LIMIT);
            }
        }
        let known: Vec<&str> = models.collect();
        for name in self.models.keys().filter(|name| !known.contains(&name.as_str())) {
            let key = format!("limits.models.{name}");
            let remedy = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write the `name` of one of `llm.models`".to_owned(),
            };
            review.add(key.as_str(), format!("`{key}` limits a model that is not configured"), remedy);
        }
        review.into_problems()
    }
}
