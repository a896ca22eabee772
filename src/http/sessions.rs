//! `/api/sessions`: conversations that the server keeps. Deleting one erases it.

use actix_web::{HttpResponse, web};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::runs::RunView;
use crate::access::AccessAction;
use crate::run::SessionId;
use crate::store::{MAX_PAGE, Page, RunFilter, SessionRow};

/// Pagination of the list of conversations.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionQuery {
    /// Maximum number of conversations on the page, 1 to 500. Default: 50.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the last conversation of the previous page.
    pub(crate) after: Option<String>,
}

/// A page of conversations.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionList {
    /// Most recently changed first.
    pub(crate) sessions: Vec<SessionView>,
}

/// A conversation in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionView {
    /// Its name.
    #[schema(value_type = String)]
    pub(crate) session_id: SessionId,
    /// Number of ended turns.
    pub(crate) turns: u64,
    /// When it started.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) updated: Timestamp,
}

impl From<SessionRow> for SessionView {
    fn from(row: SessionRow) -> Self {
        Self { session_id: row.session, turns: row.turns, created: row.created, updated: row.updated }
    }
}

/// One conversation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionDetail {
    /// The conversation, as in lists.
    #[serde(flatten)]
    pub(crate) session: SessionView,
    /// Its latest runs, newest first; at most 100.
    pub(crate) runs: Vec<RunView>,
}

/// Parses the name in the path. Invalid names give 404, like unknown ones.
pub(super) fn session_id_from_path(text: &str) -> Result<SessionId, Problem> {
    SessionId::new(text).map_err(|_| Problem::not_found("session", text))
}

/// Lists conversations, most recently changed first.
#[utoipa::path(get, path = "/api/sessions", operation_id = "list_sessions", tag = "sessions", params(SessionQuery),
    responses((status = 200, body = SessionList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<SessionQuery>,
) -> Result<HttpResponse, Problem> {
    let page = super::parse_page(query.limit, MAX_PAGE, query.after.as_deref(), session_id_from_path)?;
    let rows = app.engine.store().sessions_of(&who.tenant, who.session_owner_filter(), &page).await?;
    Ok(HttpResponse::Ok().json(SessionList { sessions: rows.into_iter().map(SessionView::from).collect() }))
}

/// Returns one conversation and its latest runs.
#[utoipa::path(get, path = "/api/sessions/{session_id}", operation_id = "get_session", tag = "sessions", params(("session_id" = String, Path)),
    responses((status = 200, body = SessionDetail), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = session_id_from_path(&path)?;
    who.authorize_session(&app, &id, AccessAction::Read).await?;
    let row = app.engine.store().session(&who.tenant, &id).await?;
    let row = row.ok_or_else(|| Problem::not_found("session", &path))?;
    let filter = RunFilter { session: Some(id), scope: who.visible_scope(), ..RunFilter::default() };
    let runs = app.engine.store().runs(&who.tenant, &filter, &Page { limit: 100, after: None }).await?;
    let view = |row| RunView::of(row, &app.engine);
    let detail = SessionDetail { session: row.into(), runs: runs.into_iter().map(view).collect() };
    Ok(HttpResponse::Ok().json(detail))
}

/// Erases a conversation with its runs, events and memory. Data that its tools stored is kept.
#[utoipa::path(delete, path = "/api/sessions/{session_id}", operation_id = "erase_session", tag = "sessions", params(("session_id" = String, Path)),
    responses((status = 204, description = "erased"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn erase(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = session_id_from_path(&path)?;
    who.authorize_session(&app, &id, AccessAction::Erase).await?;
    if app.engine.erase(&who.tenant, &id).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(Problem::not_found("session", &path))
    }
}
