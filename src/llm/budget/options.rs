//! The configuration's section `budget`.

use serde::{Deserialize, Serialize};

/// The most US dollars that may be spent on models. What is absent is not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// For one run.
    pub run_usd: Option<f64>,
    /// For one conversation, with all its runs and summaries.
    pub session_usd: Option<f64>,
    /// For one tenant, ever.
    pub tenant_usd: Option<f64>,
    /// For one tenant on one day.
    pub day_usd: Option<f64>,
}
