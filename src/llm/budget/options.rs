//! The configuration's section `budget`.

use serde::{Deserialize, Serialize};

use super::BudgetScope;
use crate::setting::{SettingProblem, SettingsReview};

/// Maximum spending on models, in US dollars. Absent means no limit.
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

impl Options {
    /// The limit of a scope in US dollars, where there is one.
    pub fn limit_usd(&self, scope: BudgetScope) -> Option<f64> {
        match scope {
            BudgetScope::Run => self.run_usd,
            BudgetScope::Session => self.session_usd,
            BudgetScope::Tenant => self.tenant_usd,
            BudgetScope::Day => self.day_usd,
        }
    }

    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        for (key, usd) in [
            ("budget.run_usd", self.run_usd),
            ("budget.session_usd", self.session_usd),
            ("budget.tenant_usd", self.tenant_usd),
            ("budget.day_usd", self.day_usd),
        ] {
            review.range(key, usd.unwrap_or_default(), 0.0..=1_000_000_000.0);
        }
        review.into_problems()
    }
}
