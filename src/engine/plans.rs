//! Plans for library users: generate, modify, approve, cancel, status, list.

use crate::answer::unknown_run_fault;
use crate::documents::{PlanDocument, PlanSummary, VersionPage};
use crate::plan::{Plan, TaskId};
use crate::planner::{Command, CommandAction};
use crate::run::{Fault, RequestOptions, RunId, TenantId};
use crate::store::{OwnerScope, Page, PlanFilter};

use super::{ChatRequest, Engine};

/// The plans of one user. Get it from [`Engine::plans`].
///
/// ```no_run
/// # async fn example(engine: &proscenium::Engine) -> Result<(), proscenium::run::Fault> {
/// let plans = engine.plans();
/// let plan = plans.generate("What is the weather in Milan, and then ask for three days off").await?;
/// let plan = plans.modify(plan.task_id, plan.version, "two days are enough").await?;
/// let plan = plans.approve(plan.task_id, plan.version).await?;
/// assert!(plan.approved);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct UserPlans<'a> {
    engine: &'a Engine,
    tenant: TenantId,
    user: String,
}

/// A change of a plan.
#[derive(Debug, Clone)]
pub enum PlanModification {
    /// What the planner should change, in words.
    Feedback(String),
    /// The plan that replaces it.
    Replacement(Plan),
}

impl From<&str> for PlanModification {
    fn from(words: &str) -> Self {
        Self::Feedback(words.to_owned())
    }
}

impl From<Plan> for PlanModification {
    fn from(plan: Plan) -> Self {
        Self::Replacement(plan)
    }
}

impl Engine {
    /// The plans of the configured default user.
    pub fn plans(&self) -> UserPlans<'_> {
        let (tenant, user) = self.default_principal();
        self.plans_of(tenant, user)
    }

    /// The plans of a user.
    pub fn plans_of(&self, tenant: TenantId, user: impl Into<String>) -> UserPlans<'_> {
        UserPlans { engine: self, tenant, user: user.into() }
    }

    /// The document of a run's plan, including events that are not on disk yet; `None` if the tenant has no
    /// such run.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn plan_document(
        &self,
        tenant: &TenantId,
        run: RunId,
        page: VersionPage,
    ) -> Result<Option<PlanDocument>, Fault> {
        let events = self.events_of(tenant, run).await?;
        let Some(first) = events.first() else { return Ok(None) };
        let cost = self.parts.store.session_usage(tenant, &first.session).await?.cost_nano_usd;
        let document = tokio::task::spawn_blocking(move || {
            let state = super::fold(run, &events);
            PlanDocument::paged(&events, &state, cost, page)
        });
        document.await.map_err(|_| Fault::new("server.document", "the document could not be created: retry"))
    }
}

impl UserPlans<'_> {
    /// Makes a plan for a request; it waits for approval. A request that no scene serves ends without a plan:
    /// the document's `plan` is absent or has no steps.
    ///
    /// # Errors
    /// The errors of [`Engine::submit`]; `plan.none` or a model's fault if no plan could be made.
    pub async fn generate(&self, request: &str) -> Result<PlanDocument, Fault> {
        let request = ChatRequest::new(request, self.tenant.clone(), self.user.clone());
        let options = RequestOptions { require_approval: true, ..request.options };
        self.create(ChatRequest { options, ..request }).await
    }

    /// Submits a plan that the caller made; it waits for approval. `request` is the request that it serves.
    ///
    /// # Errors
    /// `plan.invalid` with every problem of the plan; those of [`Engine::submit`].
    pub async fn supply(&self, request: &str, plan: Plan) -> Result<PlanDocument, Fault> {
        let request = ChatRequest::new(request, self.tenant.clone(), self.user.clone());
        let options = RequestOptions { require_approval: true, ..request.options };
        self.create(ChatRequest { options, plan: Some(plan), ..request }).await
    }

    async fn create(&self, request: ChatRequest) -> Result<PlanDocument, Fault> {
        let ticket = self.engine.submit(request).await?;
        let run = ticket.run;
        ticket.answer().await?;
        let made = self.document(run).await?;
        match made.error {
            Some(fault) if made.plan.is_none() => Err(fault),
            _ => Ok(made),
        }
    }

    /// Changes a plan: a new version, which needs a new approval. `version` is the one that was seen.
    ///
    /// # Errors
    /// `plan.not_modified` if the planner found no such change; `plan.invalid`; `approval.changed` if there is
    /// a later version; `plan.unknown`.
    pub async fn modify(
        &self,
        task: TaskId,
        version: u32,
        change: impl Into<PlanModification>,
    ) -> Result<PlanDocument, Fault> {
        let version = Some(version);
        let action = match change.into() {
            PlanModification::Feedback(words) => CommandAction::Modify { words, version },
            PlanModification::Replacement(plan) => CommandAction::Edit { plan, version },
        };
        let changed = self.carry_out(task, action, None).await?;
        match &changed.unmodified {
            Some(fault) => Err(Fault::new("plan.not_modified", fault.message.clone())),
            None => Ok(changed),
        }
    }

    /// Approves this version of a plan and executes it. Returns when the run has ended or waits again.
    ///
    /// # Errors
    /// `approval.changed` if there is a later version; `approval.own_request` where the configuration lets
    /// nobody approve requests of their own; `plan.illegal_transition` if it has ended; `plan.unknown`.
    pub async fn approve(&self, task: TaskId, version: u32) -> Result<PlanDocument, Fault> {
        let action = CommandAction::Approve { version: Some(version), hash: None, hold: false };
        self.carry_out(task, action, None).await
    }

    /// Cancels a plan at its next safe point; `why` is recorded.
    ///
    /// # Errors
    /// `run.ended` if it has ended; `plan.unknown`.
    pub async fn cancel(&self, task: TaskId, why: Option<&str>) -> Result<PlanDocument, Fault> {
        self.carry_out(task, CommandAction::Cancel, why).await
    }

    /// A plan as it is now: its status, versions, steps and answer.
    ///
    /// # Errors
    /// `plan.unknown`; errors of the store.
    pub async fn status(&self, task: TaskId) -> Result<PlanDocument, Fault> {
        self.document(self.run_of(task).await?).await
    }

    /// The user's plans, newest first.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn list(&self, page: &Page<TaskId>) -> Result<Vec<PlanSummary>, Fault> {
        let filter = PlanFilter { scope: OwnerScope::User(self.user.clone()), ..PlanFilter::default() };
        let rows = self.engine.store().plans(&self.tenant, &filter, page).await?;
        Ok(rows.into_iter().map(PlanSummary::from).collect())
    }

    async fn carry_out(
        &self,
        task: TaskId,
        action: CommandAction,
        why: Option<&str>,
    ) -> Result<PlanDocument, Fault> {
        let run = self.run_of(task).await?;
        let command = Command { note: why.map(str::to_owned), ..Command::new(self.user.clone(), action) };
        // A run that failed tells so in its document.
        let _ended = self
            .engine
            .command_and_wait(&self.tenant, run, command)
            .await
            .map_err(|refused| refused.fault)?;
        self.document(run).await
    }

    /// The plan's run, if it is the user's own.
    async fn run_of(&self, task: TaskId) -> Result<RunId, Fault> {
        let row = self.engine.parts.store.plan(&self.tenant, task).await?;
        match row.filter(|row| row.user == self.user) {
            Some(row) => Ok(row.run),
            None => Err(Fault::new("plan.unknown", format!("{} has no plan {task}", self.user))),
        }
    }

    async fn document(&self, run: RunId) -> Result<PlanDocument, Fault> {
        let document = self.engine.plan_document(&self.tenant, run, VersionPage::default()).await?;
        document.ok_or_else(|| unknown_run_fault(run))
    }
}
