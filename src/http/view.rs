//! Runs read from the journal, for the documents of plans and approvals.

use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{HttpResponse, HttpResponseBuilder, web};
use serde::Serialize;

use super::app::App;
use super::problem::Problem;
use crate::documents::{ApprovalDocument, Explanation, PlanDocument, VersionPage};
use crate::run::{ApprovalId, Envelope, Event, Fault, RunId, RunState, TenantId};

/// A run's events and the state folded from them.
pub(crate) struct JournalledRun {
    events: Vec<Envelope<Event>>,
    pub(crate) state: RunState,
}

impl JournalledRun {
    /// Reads the run, including events that are not on disk yet; `None` if the tenant has no such run.
    pub(crate) async fn read(app: &App, tenant: &TenantId, run: RunId) -> Result<Option<Self>, Problem> {
        let events = app.engine.events_of(tenant, run).await?;
        run_blocking(move || {
            let state = crate::engine::fold(run, &events);
            (!events.is_empty()).then_some(Self { events, state })
        })
        .await
    }

    /// The document of its plan, with this page of versions.
    pub(crate) async fn plan(
        self,
        app: &App,
        tenant: &TenantId,
        page: VersionPage,
    ) -> Result<PlanDocument, Problem> {
        let run = self.state.run;
        let unknown = || Problem::not_found("run", &run.to_string());
        let session = &self.events.first().ok_or_else(unknown)?.session;
        let cost = app.engine.store().session_usage(tenant, session).await?.cost_nano_usd;
        let document =
            run_blocking(move || PlanDocument::paged(&self.events, &self.state, cost, page)).await?;
        document.ok_or_else(unknown)
    }

    /// Explains what happened unexpectedly, with the messages of faults or only with the users' sentences.
    pub(crate) fn explanation(&self, with_messages: bool) -> Explanation {
        Explanation::new(&self.events, &self.state, with_messages)
    }

    /// The document of one of its approvals; `None` if there is no such approval.
    pub(crate) fn approval(&self, app: &App, id: ApprovalId) -> Option<ApprovalDocument> {
        ApprovalDocument::new(&self.events, &self.state, id, app.engine.approvals_expire())
    }
}

/// Runs long work on the blocking pool, so that the server's threads stay responsive.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    web::block(work).await.map_err(|_| document_failed())
}

/// A response with a potentially large document.
pub(crate) async fn large_json<T: Serialize + Send + 'static>(
    mut response: HttpResponseBuilder,
    document: T,
) -> Result<HttpResponse, Problem> {
    let json = run_blocking(move || serde_json::to_vec(&document)).await?.map_err(|_| document_failed())?;
    Ok(response.content_type(ContentType::json()).body(json))
}

fn document_failed() -> Problem {
    let detail = "the document could not be created: retry";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.document", detail)
}

/// Why a plan was not changed, for a client. The problems of a model's replies are written for the model, and not
/// shown.
fn unmodified_detail(fault: &Fault) -> String {
    match &*fault.code {
        "llm.unusable" => {
            "this change was not understood; the plan remains as it was: say it in other words, or send the changed `plan`"
                .to_owned()
        }
        _ => format!("the plan could not be changed and remains as it was: {}", fault.message),
    }
}

/// The problem if the last modification of a plan failed.
pub(crate) fn modification_problem(document: &PlanDocument) -> Option<Problem> {
    let fault = document.unmodified.as_ref()?;
    let mut problem = Problem::unprocessable("plan.not_modified", unmodified_detail(fault));
    problem.run_id = Some(document.run_id);
    Some(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_not_told_what_is_written_for_models() {
        let fault = Fault::new("llm.unusable", "change it as <feedback> says");
        assert!(!unmodified_detail(&fault).contains('<'));
        let fault = Fault::new("budget.exceeded", "the budget is spent");
        assert!(unmodified_detail(&fault).ends_with("the budget is spent"));
    }
}
