//! Learned plans and paths: looked up before a plan or a path is made, and judged by the end of their run.

use std::time::Duration;

use jiff::Timestamp;

use super::Driver;
use crate::learning::{self, PathTemplate, PlanHistory, RequestTemplate};
use crate::run::{Event, Fault, LearnMode, PathRecall, PlanRecall, RecallOutcome};
use crate::store::{self, Store};

/// How long the store may take; after that, a planner is asked.
const LOOK_UP_TIMEOUT: Duration = Duration::from_millis(500);

/// The learned plans of all tenants.
#[derive(Clone)]
pub(crate) struct LearnedPlans {
    pub(crate) store: Store,
    /// How many successes prove a plan.
    pub(crate) after: u32,
}

impl Driver {
    /// The event with what is known of requests like this one.
    pub(super) async fn look_up_plan(&mut self) -> Event {
        let none = |outcome| PlanRecall { outcome, template: None, plan: None, hints: Vec::new() };
        let Some(template) = learning::template_of_run(&self.state) else {
            return Event::PlanRecalled(none(RecallOutcome::Unfit));
        };
        let recall = within_time("learned plans", self.known_of(&template)).await;
        Event::PlanRecalled(recall.unwrap_or_else(|| none(RecallOutcome::Unavailable)))
    }

    async fn known_of(&mut self, template: &RequestTemplate) -> Result<PlanRecall, store::Error> {
        let LearnedPlans { store, after } = self.shared.learned.clone();
        let (tenant, user) = (&self.principal.tenant.clone(), learning::user_hash(&self.principal.user));
        let mut recall = PlanRecall {
            outcome: RecallOutcome::Hints,
            template: Some(template.id.clone()),
            plan: None,
            hints: Vec::new(),
        };
        if self.state.settings().learn == LearnMode::Reuse {
            let known = store.learned_plan(tenant, &template.id, &user).await?.map(PlanHistory::from);
            let rule = (after, Timestamp::now());
            recall = learning::recalled(&self.state, &self.shared.catalogue, template, known.as_ref(), rule);
        }
        if recall.plan.is_none() {
            let known = store.learned_for_hints(tenant, &user, after, None).await?;
            let known: Vec<_> = known.into_iter().map(|row| (row.words, row.plan)).collect();
            recall.hints = learning::hints(&template.words(), &known);
        }
        Ok(recall)
    }

    /// The event with what is known of paths through the flow of a step, for what that is for.
    pub(super) async fn look_up_path(&mut self, step: u32) -> Event {
        let none = |outcome| PathRecall { outcome, template: None, path: None, hints: Vec::new() };
        let Some(template) = learning::template_of_path(&self.state, step) else {
            return Event::PathRecalled { step, recall: none(RecallOutcome::Unfit) };
        };
        let recall = within_time("learned paths", self.known_paths(step, &template)).await;
        Event::PathRecalled { step, recall: recall.unwrap_or_else(|| none(RecallOutcome::Unavailable)) }
    }

    async fn known_paths(&mut self, step: u32, template: &PathTemplate) -> Result<PathRecall, store::Error> {
        let LearnedPlans { store, after } = self.shared.learned.clone();
        let (tenant, user) = (&self.principal.tenant.clone(), learning::user_hash(&self.principal.user));
        let of_step = (step, template);
        let mut recall = PathRecall {
            outcome: RecallOutcome::Hints,
            template: Some(template.id.clone()),
            path: None,
            hints: Vec::new(),
        };
        if self.state.settings().learn == LearnMode::Reuse {
            let known = store.learned_plan(tenant, &template.id, &user).await?.map(PlanHistory::from);
            let rule = (after, Timestamp::now());
            recall =
                learning::recalled_path(&self.state, &self.shared.catalogue, of_step, known.as_ref(), rule);
        }
        if recall.path.is_none() && self.state.may_plan_path(step) {
            let known = store.learned_for_hints(tenant, &user, after, Some(&template.flow)).await?;
            let known: Vec<_> = known.into_iter().map(|row| (row.words, row.plan)).collect();
            recall.hints = learning::similar_paths(&self.state, &self.shared.catalogue, of_step, &known);
        }
        Ok(recall)
    }

    /// Appends an event of the machine. If it ends the run, what the run teaches is written with it.
    pub(super) async fn append_machine_event(&mut self, event: Event) -> Result<(), Fault> {
        let mut lessons = learning::lessons(&self.state, &self.shared.catalogue, &event);
        if lessons.is_empty() {
            return self.append(event).await;
        }
        lessons.push(event);
        self.append_together(lessons).await
    }
}

/// What `look_up` finds, unless the store fails or takes too long.
async fn within_time<T>(what: &str, look_up: impl Future<Output = Result<T, store::Error>>) -> Option<T> {
    let found = tokio::time::timeout(LOOK_UP_TIMEOUT, look_up).await.ok()?;
    found.inspect_err(|error| tracing::warn!(%error, "{what} could not be read")).ok()
}
