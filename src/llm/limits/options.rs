//! The configuration's section `limits`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How much may be asked of models, and how long a call waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Most milliseconds that an attempt waits until the limits let it pass.
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
    /// Attempts at once.
    pub concurrent: Option<u32>,
}
