//! The preflight check: whether the plan in force can be executed at all.

use jiff::Timestamp;

use super::Driver;
use crate::llm::Caller;
use crate::llm::budget::{Budget, BudgetError, BudgetRefusal};
use crate::llm::cache::Mode as CacheMode;
use crate::planner;
use crate::run::Event;

impl Driver {
    /// Checks the plan in force before its first step, which is `step`. Returns the event that refuses a plan that
    /// cannot be executed.
    pub(super) async fn check_plan_in_force(&mut self, step: u32) -> Option<Event> {
        let version = self.state.plans.len() as u32;
        let is_checked = self.checked_version == version || self.state.has_begun();
        if is_checked || !self.state.begins_with_newest_version(step) {
            return None;
        }
        self.checked_version = version;
        let budget = self.shared.gateway.guards().budget.clone();
        let refusal = match self.least_cost() {
            Some(cost) => budget_refusal(&*budget, self.caller(), cost, "a plan").await,
            None => None,
        };
        planner::plan_refused(&self.state, &self.shared.catalogue, refusal.as_deref(), Timestamp::now())
    }

    /// The minimum cost of the plan in force in nano-USD, if it has to be within the budget.
    fn least_cost(&self) -> Option<u64> {
        let reads_cache = self.cache.is_some_and(CacheMode::reads);
        let questions = planner::questions_to_afford(&self.state, &self.shared.catalogue, reads_cache)?;
        let costs = questions.iter().map(|question| self.shared.gateway.least_cost(question));
        Some(costs.fold(0, u64::saturating_add))
    }
}

/// Why the remaining budget does not cover `what`, which costs `nano_usd`, if it does not.
pub(super) async fn budget_refusal(
    budget: &dyn Budget,
    caller: Caller,
    nano_usd: u64,
    what: &str,
) -> Option<Box<BudgetRefusal>> {
    match budget.check_funds(&caller, nano_usd).await {
        Ok(()) => None,
        Err(BudgetError::Refused(refusal)) => Some(refusal),
        // Each question reserves its cost, so nothing is spent beyond the budget.
        Err(BudgetError::Unavailable(error)) => {
            tracing::warn!(%error, "{what} was not checked against the budget");
            None
        }
    }
}
