//! Whether the plan in force can be carried out at all: looked at before its first step.

use super::Driver;
use crate::llm::cache::Mode as CacheMode;
use crate::plan::Problem;
use crate::planner;
use crate::run::{Event, Subject};

impl Driver {
    /// Looks the plan in force through before its first step: the event where it cannot be carried out.
    pub(super) fn look_through(&mut self) -> Option<Event> {
        let version = self.state.plans.len() as u32;
        if self.looked_through == version || self.state.has_begun() {
            return None;
        }
        self.looked_through = version;
        let mut problems = planner::preflight(&self.state, &self.shared.catalogue);
        problems.extend(self.too_dear());
        (!problems.is_empty()).then_some(Event::PlanRefused { version, problems })
    }

    /// Whether the plan writes, and the budget has not even the least left that its steps will cost: it would
    /// end in the middle.
    fn too_dear(&self) -> Option<Problem> {
        let (state, catalogue) = (&self.state, &self.shared.catalogue);
        let plan = &state.plan()?.plan;
        // Replies that are kept cost nothing, and a dry run does nothing.
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
        let what = format!("the steps cost at least what is not left: {refusal}");
        Some(Problem::new("budget.exceeded", what))
    }
}
