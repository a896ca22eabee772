//! `/api/learned`: plans learned from executions.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::{next_cursor, parse_page};
use crate::LearnedDocument;
use crate::access::AccessAction;
use crate::store::MAX_PAGE;

/// Length of an id: SHA-256 in hex.
const ID_CHARS: usize = 64;

/// A page of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct LearnedQuery {
    /// Maximum number of plans on the page, 1 to 500. Default: 50.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the `next` of the previous page.
    pub(crate) after: Option<String>,
}

/// A page of learned plans.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct LearnedList {
    /// By id.
    pub(crate) learned: Vec<LearnedDocument>,
    /// The `after` of the next page; absent if this page is not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Lists the plans that the tenant's executions taught.
#[utoipa::path(get, path = "/api/learned", operation_id = "list_learned", tag = "learning", params(LearnedQuery),
    responses((status = 200, body = LearnedList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<LearnedQuery>,
) -> Result<HttpResponse, Problem> {
    who.authorize_learned(AccessAction::ReadLearned)?;
    let page = parse_page(query.limit, MAX_PAGE, query.after.as_deref(), cursor)?;
    let learned = app.engine.learned_plans(&who.tenant, page.after.as_deref(), page.limit).await?;
    let next = next_cursor(&learned, page.limit).map(|last| last.id.clone());
    Ok(HttpResponse::Ok().json(LearnedList { learned, next }))
}

/// The id of a learned plan, which may have been deleted since.
fn cursor(after: &str) -> Result<String, Problem> {
    let is_id = after.len() == ID_CHARS && after.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    if is_id { Ok(after.to_owned()) } else { Err(unknown(after)) }
}

fn unknown(id: &str) -> Problem {
    let id: String = id.chars().take(80).collect();
    Problem::new(StatusCode::NOT_FOUND, "learned.unknown", format!("there is no learned plan `{id}`"))
}

/// Returns a learned plan.
#[utoipa::path(get, path = "/api/learned/{id}", operation_id = "get_learned", tag = "learning",
    params(("id" = String, Path)),
    responses((status = 200, body = LearnedDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    who.authorize_learned(AccessAction::ReadLearned)?;
    match app.engine.learned_plan(&who.tenant, &path).await? {
        Some(learned) => Ok(HttpResponse::Ok().json(learned)),
        None => Err(unknown(&path)),
    }
}

/// Deletes a learned plan: the next such request is planned.
#[utoipa::path(delete, path = "/api/learned/{id}", operation_id = "delete_learned", tag = "learning",
    params(("id" = String, Path)),
    responses((status = 204, description = "deleted"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    who.authorize_learned(AccessAction::EraseLearned)?;
    match app.engine.delete_learned(&who.tenant, &path).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(unknown(&path)),
    }
}
