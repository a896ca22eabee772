//! `/api/sessions`: conversations that are kept here; deleting one erases it.

use actix_web::{HttpResponse, web};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::problem::Problem;
use super::runs::RunView;
use super::who::Who;
use crate::access::Action;
use crate::run::SessionId;
use crate::store::{MAX_PAGE, Page, RunFilter, SessionRow};

/// Which conversations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionQuery {
    /// Most conversations, 1 to 500; 50 unless told.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Only those behind this one: the last of the page before.
    pub(crate) after: Option<String>,
}

/// A page of conversations.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionList {
    /// The one that changed last first.
    pub(crate) sessions: Vec<SessionView>,
}

/// A conversation as lists show it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SessionView {
    /// Its name.
    #[schema(value_type = String)]
    pub(crate) session_id: SessionId,
    /// Turns that ended.
    pub(crate) turns: u64,
    /// When it began.
    #[schema(value_type = String, format = "date-time")]
    pub(crate) created: Timestamp,
    /// When something last happened in it.
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
    /// As in lists.
    #[serde(flatten)]
    pub(crate) session: SessionView,
    /// Its last runs, the newest first; at most 100.
    pub(crate) runs: Vec<RunView>,
}

/// The name in an address. What can be no name is a conversation that is not there.
fn name(text: &str) -> Result<SessionId, Problem> {
    SessionId::new(text).map_err(|_| Problem::unknown("session", text))
}

/// Conversations, the one that changed last first.
#[utoipa::path(get, path = "/api/sessions", operation_id = "list_sessions", tag = "sessions", params(SessionQuery),
    responses((status = 200, body = SessionList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Who,
    query: web::Query<SessionQuery>,
) -> Result<HttpResponse, Problem> {
    let page = super::page(query.limit, MAX_PAGE, query.after.as_deref(), name)?;
    let rows = app.engine.store().sessions_of(&who.tenant, who.sessions_of(), &page).await?;
    Ok(HttpResponse::Ok().json(SessionList { sessions: rows.into_iter().map(SessionView::from).collect() }))
}

/// One conversation and its last runs.
#[utoipa::path(get, path = "/api/sessions/{session_id}", operation_id = "get_session", tag = "sessions", params(("session_id" = String, Path)),
    responses((status = 200, body = SessionDetail), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = name(&path)?;
    who.may_with_session(&app, &id, Action::Read).await?;
    let store = app.engine.store();
    let row = store.session(&who.tenant, &id).await?.ok_or_else(|| Problem::unknown("session", &path))?;
    let filter = RunFilter { session: Some(id), scope: who.scope(), ..RunFilter::default() };
    let runs = store.runs(&who.tenant, &filter, &Page { limit: 100, after: None }).await?;
    let view = |row| RunView::of(row, app.engine.store());
    let detail = SessionDetail { session: row.into(), runs: runs.into_iter().map(view).collect() };
    Ok(HttpResponse::Ok().json(detail))
}

/// Erases a conversation with all that hangs on it. What its tools stored is the company's and stays.
#[utoipa::path(delete, path = "/api/sessions/{session_id}", operation_id = "erase_session", tag = "sessions", params(("session_id" = String, Path)),
    responses((status = 204, description = "erased"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn erase(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = name(&path)?;
    who.may_with_session(&app, &id, Action::Erase).await?;
    if app.engine.erase(&who.tenant, &id).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(Problem::unknown("session", &path))
    }
}
