//! `/api/runs`: what was run, its events, and how to stop it.

use actix_web::{HttpRequest, HttpResponse, web};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::commands::order;
use super::problem::Problem;
use super::sse;
use super::who::Who;
use crate::Answer;
use crate::access::Action;
use crate::planner::Wish;
use crate::public::EventId;
use crate::run::{RunId, RunStatus, SessionId};
use crate::store::{MAX_PAGE, RunFilter, RunRow, Store};

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunQuery {
    /// Only those of this conversation.
    pub(crate) session_id: Option<String>,
    /// Only those that stand so.
    #[param(value_type = Option<String>)]
    pub(crate) status: Option<RunStatus>,
    /// Most runs, 1 to 500; 50 unless told.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Only those behind this one: the last of the page before.
    #[param(value_type = Option<String>, format = "uuid")]
    pub(crate) after: Option<String>,
}

/// A page of runs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RunList {
    /// The newest first.
    pub(crate) runs: Vec<RunView>,
}

/// A run as lists show it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RunView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// Its conversation.
    #[schema(value_type = String)]
    pub(crate) session_id: SessionId,
    /// Where it stands.
    pub(crate) status: RunStatus,
    /// The first words of the request.
    pub(crate) request: String,
    /// Why its events cannot be read, where that was found out since the server began. It can be cancelled
    /// and erased all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unreadable: Option<String>,
    /// When it was accepted.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created: Timestamp,
    /// When something last happened to it.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) updated: Timestamp,
}

impl RunView {
    /// With what is known of whether it can be read.
    pub(crate) fn of(row: RunRow, store: &Store) -> Self {
        Self {
            unreadable: store.unreadable(row.run),
            run_id: row.run,
            session_id: row.session,
            status: row.status,
            request: row.request,
            created: row.created,
            updated: row.updated,
        }
    }
}

/// What became of a wish to stop a run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CancelView {
    /// The run.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// Where it stands.
    pub(crate) status: RunStatus,
    /// Whether it will stop at its next safe point; a run that has ended has nothing to stop.
    pub(crate) stopping: bool,
}

/// The id in an address. What is no id is a run that is not there.
fn id(text: &str) -> Result<RunId, Problem> {
    text.parse().map_err(|_| Problem::unknown("run", text))
}

/// The run in an address, with which somebody wants to do something.
async fn reached(app: &App, who: &Who, text: &str, action: Action) -> Result<RunId, Problem> {
    let run = id(text)?;
    who.may_with_run(app, run, action, || Problem::unknown("run", text)).await?;
    Ok(run)
}

/// Runs, the newest first.
#[utoipa::path(get, path = "/api/runs", operation_id = "list_runs", tag = "runs", params(RunQuery),
    responses((status = 200, body = RunList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Who,
    query: web::Query<RunQuery>,
) -> Result<HttpResponse, Problem> {
    let session = query.session_id.as_deref().map(super::chat::session).transpose()?;
    let page = super::page(query.limit, MAX_PAGE, query.after.as_deref(), id)?;
    let filter = RunFilter { session, status: query.status, scope: who.scope() };
    let rows = app.engine.store().runs(&who.tenant, &filter, &page).await?;
    let view = |row| RunView::of(row, app.engine.store());
    Ok(HttpResponse::Ok().json(RunList { runs: rows.into_iter().map(view).collect() }))
}

/// A run's answer document, also of one that has not ended, with what a person has to decide.
#[utoipa::path(get, path = "/api/runs/{run_id}", operation_id = "get_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 200, body = Answer), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = reached(&app, &who, &path, Action::Read).await?;
    let answer = app.engine.answer_of(&who.tenant, run).await?;
    Ok(HttpResponse::Ok().json(answer.ok_or_else(|| Problem::unknown("run", &path))?))
}

/// A run's events, from its beginning or from behind `Last-Event-ID`, until it ends or waits for a
/// person: what comes after that is told to whoever comes back with the last id.
#[utoipa::path(get, path = "/api/runs/{run_id}/events", operation_id = "run_events", tag = "runs",
    params(("run_id" = String, Path, format = "uuid"), ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, body = sse::ServerEvent, content_type = "text/event-stream"),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn events(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let run = reached(&app, &who, &path, Action::Read).await?;
    let row =
        app.engine.store().run(&who.tenant, run).await?.ok_or_else(|| Problem::unknown("run", &path))?;
    let last = match request.headers().get("last-event-id").map(|value| value.to_str().unwrap_or_default()) {
        None | Some("") => None,
        Some(text) => Some(text.parse::<EventId>().map_err(|_| {
            let text: String = text.chars().take(40).collect();
            let detail =
                format!("the header `Last-Event-ID` = `{text}` is no id of an event: `seq.offset.epoch`");
            Problem::unprocessable("request.last_event_id", detail)
        })?),
    };
    let events = app.engine.stream(&who.tenant, run, last).await?;
    Ok(sse::reply(run, &row.session, events, app.options.ping_ms))
}

/// Stops a run at its next safe point.
#[utoipa::path(post, path = "/api/runs/{run_id}/cancel", operation_id = "cancel_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 200, description = "it had ended", body = CancelView), (status = 202, description = "it will stop", body = CancelView),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = reached(&app, &who, &path, Action::Stop).await?;
    let row =
        app.engine.store().run(&who.tenant, run).await?.ok_or_else(|| Problem::unknown("run", &path))?;
    let stopping = app.engine.cancel(&who.tenant, run, &who.user).await?;
    let view = CancelView { run_id: run, status: row.status, stopping };
    Ok(if stopping { HttpResponse::Accepted().json(view) } else { HttpResponse::Ok().json(view) })
}

/// Carries a run on that failed or was done in part: what was done is not done again.
#[utoipa::path(post, path = "/api/runs/{run_id}/resume", operation_id = "resume_run", tag = "runs", params(("run_id" = String, Path, format = "uuid")),
    responses((status = 202, description = "it is carried on", body = Answer),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn resume(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = reached(&app, &who, &path, Action::Resume).await?;
    carry_on(&app, &who, run).await
}

/// Has a run carried on, and tells how it stands.
pub(crate) async fn carry_on(app: &web::Data<App>, who: &Who, run: RunId) -> Result<HttpResponse, Problem> {
    order(app, &who.tenant, run, who.wants(Wish::Reopen, None)).await?;
    let answer = app.engine.answer_of(&who.tenant, run).await?;
    let answer = answer.ok_or_else(|| Problem::unknown("run", &run.to_string()))?;
    Ok(HttpResponse::Accepted().insert_header(("x-run-id", run.to_string())).json(answer))
}
