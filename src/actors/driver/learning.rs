//! Learned plans and paths: looked up before a plan or a path is made, and judged by the end of their run.

use std::time::Duration;

use jiff::Timestamp;

use super::Driver;
use crate::learning::{self, PathLookUp, PathTemplate, PlanHistory, RequestTemplate};
use crate::run::{Event, Fault, LearnMode, LearnedPlan, PathRecall, PlanRecall, RecallOutcome};
use crate::store::{self, Store};
use crate::tools::Principal;

/// How long the store may take; after that, a planner is asked.
const LOOK_UP_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(crate) struct LearnedPlans {
    pub(crate) store: Store,
    /// How many successes prove a plan.
    pub(crate) after: u32,
}

impl LearnedPlans {
    /// What is known of a template, as far as it may serve this user.
    async fn history(&self, user: &Principal, template: &str) -> Result<Option<PlanHistory>, store::Error> {
        let (tenant, user) = (&user.tenant, learning::user_hash(&user.user));
        Ok(self.store.learned_plan(tenant, template, &user).await?.map(PlanHistory::from))
    }

    /// The words and the plans that may be hints for this user: paths through a flow, or plans of whole requests.
    async fn proven(
        &self,
        user: &Principal,
        flow: Option<&str>,
    ) -> Result<Vec<(String, LearnedPlan)>, store::Error> {
        let (tenant, user) = (&user.tenant, learning::user_hash(&user.user));
        let known = self.store.learned_for_hints(tenant, &user, self.after, flow).await?;
        Ok(known.into_iter().map(|row| (row.words, row.plan)).collect())
    }
}

impl Driver {
    /// The event with what is known of requests like this one.
    pub(super) async fn look_up_plan(&mut self) -> Event {
        let recall = match learning::template_of_run(&self.state) {
            Some(template) => within_time("learned plans", self.known_plans(&template))
                .await
                .unwrap_or_else(|| PlanRecall::none(RecallOutcome::Unavailable)),
            None => PlanRecall::none(RecallOutcome::Unfit),
        };
        Event::PlanRecalled(recall)
    }

    async fn known_plans(&mut self, template: &RequestTemplate) -> Result<PlanRecall, store::Error> {
        let learned = &self.shared.learned;
        let mut recall = PlanRecall::without_plan(RecallOutcome::Hints, &template.id);
        if self.state.settings().learn == LearnMode::Reuse {
            let known = learned.history(&self.principal, &template.id).await?;
            let rule = (learned.after, Timestamp::now());
            recall = learning::recalled(&self.state, &self.shared.catalogue, template, known.as_ref(), rule);
        }
        if recall.plan.is_none() {
            let known = learned.proven(&self.principal, None).await?;
            recall.hints = learning::hints(&template.words(), &known);
        }
        Ok(recall)
    }

    /// The event with what is known of paths through the flow of a step, for what that is for.
    pub(super) async fn look_up_path(&mut self, step: u32) -> Event {
        let recall = match learning::template_of_path(&self.state, step) {
            Some(template) => within_time("learned paths", self.known_paths(step, &template))
                .await
                .unwrap_or_else(|| PathRecall::none(RecallOutcome::Unavailable)),
            None => PathRecall::none(RecallOutcome::Unfit),
        };
        Event::PathRecalled { step, recall }
    }

    async fn known_paths(&mut self, step: u32, template: &PathTemplate) -> Result<PathRecall, store::Error> {
        let learned = &self.shared.learned;
        let mut recall = PathRecall::without_path(RecallOutcome::Hints, &template.id);
        if self.state.settings().learn == LearnMode::Reuse {
            let known = learned.history(&self.principal, &template.id).await?;
            let rule = (learned.after, Timestamp::now());
            recall = self.path_look_up(step, template).recall(known.as_ref(), rule);
        }
        if recall.path.is_none() && self.state.may_plan_path(step) {
            let known = learned.proven(&self.principal, Some(&template.flow)).await?;
            recall.hints = self.path_look_up(step, template).similar(&known);
        }
        Ok(recall)
    }

    fn path_look_up<'a>(&'a self, step: u32, template: &'a PathTemplate) -> PathLookUp<'a> {
        PathLookUp { state: &self.state, catalogue: &self.shared.catalogue, step, template }
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
