//! `/api/runs`: runs, their events, and commands about them.

use actix_web::{HttpRequest, HttpResponse, web};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::commands::submit_command;
use super::intake::single_header;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::sse;
use super::view::{JournalledRun, large_json};
use crate::access::AccessAction;
use crate::documents::Explanation;
use crate::planner::CommandAction;
use crate::public::EventId;
use crate::run::{ApprovalId, RunId, RunStatus, SessionId};
use crate::store::{About, ApprovalFilter, ApprovalRow, MAX_PAGE, Page, RunFilter, RunRow};
use crate::{Answer, Engine};

/// Filters for the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunQuery {
    /// Only runs of this conversation.
    pub(crate) session_id: Option<String>,
    /// Only runs with this status.
    #[param(value_type = Option<String>)]
    pub(crate) status: Option<RunStatus>,
    /// With `true`: only runs that need a person, because they wait, or because the outcome of one of their
    /// writes is unknown; each with what it waits for.
    pub(crate) parked: Option<bool>,
    /// Maximum number of runs on the page, 1 to 500. Default: 50.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the last run of the previous page.
    #[param(value_type = Option<String>, format = "uuid")]
    pub(crate) after: Option<String>,
}

/// A page of runs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RunList {
    /// Newest first.
    pub(crate) runs: Vec<RunView>,
}

/// A run in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RunView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// Its conversation.
    #[schema(value_type = String)]
    pub(crate) session_id: SessionId,
    /// Its status.
    pub(crate) status: RunStatus,
    /// The beginning of the request.
    pub(crate) request: String,
    /// Why its events cannot be read, if the server has noticed that since it started. Such a run can still
    /// be cancelled and erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unreadable: Option<String>,
    /// In a list of parked runs: its open approvals. None if it is in quarantine until it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for: Option<Vec<WaitsFor>>,
    /// When it was accepted.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created: Timestamp,
    /// When its last event occurred.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) updated: Timestamp,
}

impl RunView {
    /// Makes the view of a row, with the reason if the run is known to be unreadable.
    pub(crate) fn of(row: RunRow, engine: &Engine) -> Self {
        Self {
            unreadable: engine.store().unreadable_reason(row.run),
            waits_for: None,
            run_id: row.run,
            session_id: row.session,
            status: row.status,
            request: row.request,
            created: row.created,
            updated: row.updated,
        }
    }
}

/// A decision that a parked run waits for.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct WaitsFor {
    /// The approval, for `POST /api/approvals/{approval_id}`.
    #[schema(value_type = String)]
    pub(crate) approval_id: ApprovalId,
    /// Its subject: a plan, a call, or the unknown outcome of a write.
    pub(crate) about: About,
}

/// The reply to a cancellation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CancelView {
    /// The run.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// Its status.
    pub(crate) status: RunStatus,
    /// Whether the run will stop at its next safe point; false if it has already ended.
    pub(crate) stopping: bool,
}

/// Parses the id in the path. Malformed ids give 404, like unknown ones.
fn parse_run_id(text: &str) -> Result<RunId, Problem> {
    text.parse().map_err(|_| Problem::not_found("run", text))
}

/// The run in the path, if the caller may do `action` with it.
async fn authorized_run(
    app: &App,
    who: &RequestPrincipal,
    text: &str,
    action: AccessAction,
) -> Result<RunId, Problem> {
    let run = parse_run_id(text)?;
    who.authorize_run(app, run, action, || Problem::not_found("run", text)).await?;
    Ok(run)
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/api/runs", operation_id = "list_runs", tag = "runs", params(RunQuery),
    responses((status = 200, body = RunList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<RunQuery>,
) -> Result<HttpResponse, Problem> {
    let session = query.session_id.as_deref().map(super::intake::parse_session_id).transpose()?;
    let page = super::parse_page(query.limit, MAX_PAGE, query.after.as_deref(), parse_run_id)?;
    let parked = query.parked.unwrap_or(false);
    let filter = RunFilter { session, status: query.status, parked, scope: who.visible_scope() };
    let store = app.engine.store();
    let rows = store.runs(&who.tenant, &filter, &page).await?;
    let mut runs: Vec<RunView> = rows.into_iter().map(|row| RunView::of(row, &app.engine)).collect();
    for view in runs.iter_mut().filter(|_| parked) {
        let filter = ApprovalFilter { open_only: true, run: Some(view.run_id), ..ApprovalFilter::default() };
        let open = store.approvals(&who.tenant, &filter, &Page { limit: MAX_PAGE, after: None }).await?;
        let waits = |row: ApprovalRow| WaitsFor { approval_id: row.id, about: row.about };
        view.waits_for = Some(open.into_iter().map(waits).collect());
    }
    Ok(HttpResponse::Ok().json(RunList { runs }))
}

/// Returns a run's answer document with its pending approvals, even before the run has ended.
#[utoipa::path(get, path = "/api/runs/{run_id}", operation_id = "get_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 200, body = Answer), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run(&app, &who, &path, AccessAction::Read).await?;
    let answer = app.engine.answer_of(&who.tenant, run).await?;
    Ok(HttpResponse::Ok().json(answer.ok_or_else(|| Problem::not_found("run", &path))?))
}

/// Explains what happened unexpectedly in a run: each event with its options, the decision, who made it and what it
/// cost. Messages of faults are included for callers who may read everything of the tenant.
#[utoipa::path(get, path = "/api/runs/{run_id}/explain", operation_id = "explain_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 200, body = Explanation), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn explain(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run(&app, &who, &path, AccessAction::Read).await?;
    let journalled = JournalledRun::read(&app, &who.tenant, run).await?;
    let journalled = journalled.ok_or_else(|| Problem::not_found("run", &path))?;
    large_json(HttpResponse::Ok(), journalled.explanation(who.reads_everything())).await
}

/// Streams a run's events, from the beginning or after `Last-Event-ID`, until the run ends or waits for a
/// person. To get later events, reconnect with the last id. If the run has ended and `Last-Event-ID` is that of its
/// last event, the reply is 204, with which an `EventSource` of a browser stops reconnecting.
#[utoipa::path(get, path = "/api/runs/{run_id}/events", operation_id = "run_events", tag = "runs",
    params(("run_id" = String, Path, format = "uuid"), ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, body = sse::ServerEvent, content_type = "text/event-stream"),
        (status = 204, description = "the run has ended, and no event follows"),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn events(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run(&app, &who, &path, AccessAction::Read).await?;
    let row = app.engine.store().run(&who.tenant, run).await?;
    let row = row.ok_or_else(|| Problem::not_found("run", &path))?;
    let last = last_event_id(&request)?;
    let open = app.open_stream(&request, who.keyed)?;
    let mut events = app.engine.stream(&who.tenant, run, last).await?;
    // The stream of a run that has ended does not wait for events, so its first one can be awaited here.
    let mut first = None;
    if last.is_some() && row.status.is_terminal() {
        first = events.next().await;
        if first.is_none() {
            return Ok(HttpResponse::NoContent().finish());
        }
    }
    let events = stream::iter(first).chain(events);
    Ok(sse::event_stream_reply(run, &row.session, events, app.options.ping_ms, open))
}

/// Reads the header `Last-Event-ID`. An empty one counts as absent: clients that have received no event send it.
fn last_event_id(request: &HttpRequest) -> Result<Option<EventId>, Problem> {
    const CODE: &str = "request.last_event_id";
    let Some(value) = single_header(request, "Last-Event-ID", CODE)? else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let text: String = text.chars().take(40).collect();
        let detail = format!(
            "the header `Last-Event-ID` = `{text}` is not an event id: send the `id` of the last event that was \
             received, such as `12.0.0`"
        );
        Problem::unprocessable(CODE, detail)
    })
}

/// Cancels a run at its next safe point.
#[utoipa::path(post, path = "/api/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 200, description = "the run had already ended", body = CancelView), (status = 202, description = "the run will stop", body = CancelView),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run(&app, &who, &path, AccessAction::Cancel).await?;
    let row = app.engine.store().run(&who.tenant, run).await?;
    let row = row.ok_or_else(|| Problem::not_found("run", &path))?;
    let stopping = app.engine.cancel(&who.tenant, run, &who.user).await?;
    let view = CancelView { run_id: run, status: row.status, stopping };
    Ok(if stopping { HttpResponse::Accepted().json(view) } else { HttpResponse::Ok().json(view) })
}

/// Resumes a run that failed or completed in part. Completed work is not repeated.
#[utoipa::path(post, path = "/api/runs/{run_id}/resume", operation_id = "resume_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 202, description = "the run is resumed", body = Answer),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn resume(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run(&app, &who, &path, AccessAction::Resume).await?;
    resume_and_reply(&app, &who, run).await
}

/// Resumes a run and replies with its answer document.
pub(crate) async fn resume_and_reply(
    app: &web::Data<App>,
    who: &RequestPrincipal,
    run: RunId,
) -> Result<HttpResponse, Problem> {
    submit_command(app, &who.tenant, run, who.command(CommandAction::Reopen, None)).await?;
    let answer = app.engine.answer_of(&who.tenant, run).await?;
    let answer = answer.ok_or_else(|| Problem::not_found("run", &run.to_string()))?;
    Ok(HttpResponse::Accepted().insert_header(("x-run-id", run.to_string())).json(answer))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn last_event_id_that_is_none_is_refused_and_does_not_start_from_the_beginning() {
        let with = |ids: &[&[u8]]| {
            let mut request = TestRequest::default();
            for id in ids {
                request = request.append_header(("Last-Event-ID", HeaderValue::from_bytes(id).unwrap()));
            }
            last_event_id(&request.to_http_request())
        };
        assert_eq!(with(&[]).unwrap(), None);
        assert_eq!(with(&[b""]).unwrap(), None);
        assert_eq!(with(&[b"12.3.0"]).unwrap(), Some(EventId { epoch: Some(0), seq: 12, offset: 3 }));
        let long = "1".repeat(5_000);
        for ids in
            [vec!["é".as_bytes()], vec![b"\xff"], vec![b"-1"], vec![long.as_bytes()], vec![b"1.0", b"2.0"]]
        {
            let problem = with(&ids).unwrap_err();
            assert_eq!((problem.status, &*problem.code), (422, "request.last_event_id"));
            assert!(problem.detail.len() < 250, "{}", problem.detail);
        }
    }
}
