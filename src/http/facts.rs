//! `/api/sessions/{session_id}/facts`: what a conversation knows, and corrections.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::body::AuthenticatedJson;
use super::parse_page;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::sessions::session_id_from_path;
use crate::access::{AccessAction, Role};
use crate::documents::{FactFilter, FactPage};
use crate::memory::LedgerFact;
use crate::run::{FactKind, RunId};
use crate::store::MAX_PAGE;

/// Which facts are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactQuery {
    /// Only these kinds, separated by commas: `given`, `verified`, `quoted`, `derived`, `guess`. Default: all.
    pub(crate) kind: Option<String>,
    /// Only facts that came up in this run.
    #[param(value_type = Option<String>, format = "uuid")]
    pub(crate) run_id: Option<RunId>,
    /// Whether superseded facts are listed, too. Default: false.
    pub(crate) superseded: Option<bool>,
    /// Maximum number of facts on the page, 1 to 500. Default: 50.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the `next` of the previous page.
    pub(crate) after: Option<String>,
}

/// A fact that the user states.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactBody {
    /// The claim; 1 to 400 characters.
    #[schema(min_length = 1, max_length = 400)]
    pub(crate) claim: String,
    /// The id of the fact that it takes the place of.
    pub(crate) supersedes: Option<String>,
}

fn kinds(text: &str) -> Result<Vec<FactKind>, Problem> {
    let unknown = |name: &str| {
        let name: String = name.chars().take(40).collect();
        let detail = format!("`kind` is given, verified, quoted, derived or guess, not {name:?}");
        Problem::unprocessable("request.query", detail)
    };
    text.split(',').map(|name| name.trim().parse().map_err(|_| unknown(name))).collect()
}

/// Lists the facts of a conversation: what the user said, tools found, texts say and models concluded.
#[utoipa::path(get, path = "/api/sessions/{session_id}/facts", operation_id = "list_facts", tag = "sessions",
    params(("session_id" = String, Path), FactQuery),
    responses((status = 200, body = FactPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
    QueryParameters(query): QueryParameters<FactQuery>,
) -> Result<HttpResponse, Problem> {
    let id = session_id_from_path(&path)?;
    who.authorize_session(&app, &id, AccessAction::Read).await?;
    let page = parse_page(query.limit, MAX_PAGE, query.after.as_deref(), |after| Ok(after.to_owned()))?;
    let kinds = query.kind.as_deref().map(kinds).transpose()?.unwrap_or_default();
    let filter = FactFilter { kinds, run: query.run_id, with_superseded: query.superseded == Some(true) };
    let ledger = app.engine.facts(&who.tenant, &id).await?;
    let ledger = ledger.ok_or_else(|| Problem::not_found("session", &path))?;
    let after = page.after.as_deref();
    let found = FactPage::new(id, &ledger, &filter, after, page.limit as usize);
    let found = found.ok_or_else(|| Problem::not_found("fact", after.unwrap_or_default()))?;
    Ok(HttpResponse::Ok().json(found))
}

/// States a fact, or corrects one: it counts as said by the user, and takes the place of the fact that it supersedes.
#[utoipa::path(post, path = "/api/sessions/{session_id}/facts", operation_id = "state_fact", tag = "sessions",
    params(("session_id" = String, Path)), request_body = FactBody,
    responses((status = 201, body = LedgerFact), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn state(
    app: web::Data<App>,
    path: web::Path<String>,
    body: AuthenticatedJson<FactBody>,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = body;
    let id = session_id_from_path(&path)?;
    // As a message in the conversation: only its user speaks in it.
    who.authorize_session(&app, &id, AccessAction::Ask).await?;
    // Such a key only names the user, whose words are in the conversation.
    if who.role == Role::Service {
        let detail =
            "a key of the role service states no facts for a user: send what the user says as a message";
        return Err(Problem::new(StatusCode::FORBIDDEN, "fact.not_vouched", detail));
    }
    let FactBody { claim, supersedes } = body;
    let stated = app.engine.state_fact(&who.tenant, &id, &who.user, &claim, supersedes.as_deref()).await?;
    Ok(HttpResponse::Created().json(stated))
}
