//! Runs as their journal has them, for the documents of their plans and of what is put to people.

use super::app::App;
use super::problem::Problem;
use crate::documents::{ApprovalDocument, PlanDocument};
use crate::run::{ApprovalId, Envelope, Event, RunId, RunState, TenantId};

/// A run as its journal has it.
pub(crate) struct Journalled {
    events: Vec<Envelope<Event>>,
    pub(crate) state: RunState,
}

impl Journalled {
    /// With all that was told to the journal so far; `None` where the tenant has no such run.
    pub(crate) async fn read(app: &App, tenant: &TenantId, run: RunId) -> Result<Option<Self>, Problem> {
        let events = app.engine.events_of(tenant, run).await?;
        let state = crate::engine::fold(run, &events);
        Ok((!events.is_empty()).then_some(Self { events, state }))
    }

    /// The document of its plan.
    pub(crate) async fn plan(&self, app: &App, tenant: &TenantId) -> Result<PlanDocument, Problem> {
        let unknown = || Problem::unknown("run", &self.state.run.to_string());
        let session = &self.events.first().ok_or_else(unknown)?.session;
        let cost = app.engine.store().session_usage(tenant, session).await?.cost_nano_usd;
        PlanDocument::new(&self.events, &self.state, cost).ok_or_else(unknown)
    }

    /// The document of something that was put to a person in it; `None` where there is no such thing.
    pub(crate) fn approval(&self, app: &App, id: ApprovalId) -> Option<ApprovalDocument> {
        ApprovalDocument::new(&self.events, &self.state, id, app.engine.approvals_expire())
    }
}

/// Why a plan was not changed as somebody wanted it.
pub(crate) fn not_modified(document: &PlanDocument) -> Option<Problem> {
    let fault = document.unmodified.as_ref()?;
    let detail = format!("the plan could not be changed, and is as it was: {}", fault.message);
    let mut problem = Problem::unprocessable("plan.not_modified", detail);
    problem.run_id = Some(document.run_id);
    Some(problem)
}
