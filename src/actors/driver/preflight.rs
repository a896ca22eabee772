//! The preflight check: whether the plan in force can be executed at all.

use super::Driver;
use crate::llm::cache::Mode as CacheMode;
use crate::plan::PlanProblem;
use crate::planner;
use crate::run::{Event, Subject};

impl Driver {
    /// Checks the plan in force before its first step. Returns the event that refuses a plan that cannot
    /// be executed.
    pub(super) fn check_plan_in_force(&mut self) -> Option<Event> {
        let version = self.state.plans.len() as u32;
        if self.checked_version == version || self.state.has_begun() {
            return None;
        }
        self.checked_version = version;
        let mut problems = planner::preflight(&self.state, &self.shared.catalogue);
        problems.extend(self.budget_problem());
        (!problems.is_empty()).then_some(Event::PlanRefused { version, problems })
    }

    /// The problem of a plan with writes whose minimum cost exceeds the remaining budget: it would stop
    /// half-way.
    fn budget_problem(&self) -> Option<PlanProblem> {
        let (state, catalogue) = (&self.state, &self.shared.catalogue);
        let plan = &state.plan()?.plan;
        // Cached replies cost nothing, and a dry run writes nothing.
        if !planner::expects_writes(catalogue, plan)
            || state.is_dry_run()
            || self.cache.is_some_and(CacheMode::reads)
        {
            return None;
        }
        let gateway = &self.shared.gateway;
        let least: u64 = plan
            .steps
            .iter()
            .map(|step| {
                let subject = Subject::Scene { step: step.step_number };
                gateway.least_cost(&planner::request(state, catalogue, subject))
            })
            .fold(0, u64::saturating_add);
        let caller = self.caller();
        let refusal = gateway.guards().budget.affords(&caller, least).err()?;
        let what = format!("the remaining budget does not cover the minimum cost of the steps: {refusal}");
        Some(PlanProblem::new("budget.exceeded", what))
    }
}
