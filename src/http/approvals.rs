//! `/api/approvals`: pending approvals and the decisions about them.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::body::AuthenticatedJson;
use super::commands::submit_command;
use super::intake;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::view::JournalledRun;
use super::{next_cursor, parse_page};
use crate::access::AccessAction;
use crate::documents::ApprovalDocument;
use crate::planner::{ApproverChoice, CommandAction};
use crate::run::{ApprovalId, TenantId};
use crate::store::{About, ApprovalFilter};

/// Filters for the list of approvals.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalQuery {
    /// Only approvals of this conversation.
    pub(crate) session_id: Option<String>,
    /// Only approvals about this kind of thing: `plan`, `call` or `outcome`.
    #[param(value_type = Option<String>)]
    pub(crate) about: Option<About>,
    /// Whether to include approvals that were decided or have lapsed.
    pub(crate) all: Option<bool>,
    /// Maximum number of approvals on the page, 1 to 100. Default: 50.
    #[param(minimum = 1, maximum = 100)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the `next` of the previous page.
    pub(crate) after: Option<String>,
}

/// A page of approvals.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ApprovalList {
    /// Oldest first.
    pub(crate) approvals: Vec<ApprovalDocument>,
    /// The `after` of the next page; absent if this page is not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) next: Option<ApprovalId>,
}

/// A decision about an approval.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    /// `yes` or `no`; for a write whose outcome is unknown: `done`, `not_done` or `again`.
    pub(crate) decision: DecisionChoice,
    /// With `yes` to a call: the arguments to call the tool with instead.
    #[schema(value_type = Option<Object>)]
    pub(crate) arguments: Option<serde_json::Map<String, Value>>,
    /// The hash of what the approver saw. A `yes` to anything else is rejected.
    pub(crate) hash: Option<String>,
    /// The approver's reason; at most 8000 characters.
    #[schema(max_length = 8000)]
    pub(crate) note: Option<String>,
}

/// The choices of a decision.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionChoice {
    /// Approve.
    Yes,
    /// Refuse.
    No,
    /// The write did take place.
    Done,
    /// The write did not take place.
    NotDone,
    /// Retry the write.
    Again,
}

impl DecisionBody {
    fn into_choice(self) -> Result<(ApproverChoice, Option<String>, Option<String>), Problem> {
        let choice = match (self.decision, self.arguments) {
            (DecisionChoice::Yes, Some(arguments)) => ApproverChoice::Edited(Value::Object(arguments)),
            (_, Some(_)) => {
                let detail = "`arguments` is allowed with `yes` only";
                return Err(Problem::unprocessable("approval.choice", detail));
            }
            (DecisionChoice::Yes, None) => ApproverChoice::Yes,
            (DecisionChoice::No, None) => ApproverChoice::No,
            (DecisionChoice::Done, None) => ApproverChoice::Done,
            (DecisionChoice::NotDone, None) => ApproverChoice::NotDone,
            (DecisionChoice::Again, None) => ApproverChoice::Again,
        };
        Ok((choice, self.hash, self.note))
    }
}

/// Maximum page size. It is low because each approval is read from the journal of its run.
const MAX_PAGE: u32 = 100;

/// Parses the id in the path. Malformed ids give 404, like unknown ones.
fn parse_approval_id(text: &str) -> Result<ApprovalId, Problem> {
    text.parse().map_err(|_| Problem::not_found("approval", text))
}

fn unknown_approval(id: ApprovalId) -> Problem {
    Problem::not_found("approval", &id.to_string())
}

async fn document(app: &App, tenant: &TenantId, id: ApprovalId) -> Result<ApprovalDocument, Problem> {
    let run = JournalledRun::read(app, tenant, id.run).await?.ok_or_else(|| unknown_approval(id))?;
    run.approval(app, id).ok_or_else(|| unknown_approval(id))
}

/// Lists approvals, oldest first.
#[utoipa::path(get, path = "/api/approvals", operation_id = "list_approvals", tag = "approvals", params(ApprovalQuery),
    responses((status = 200, body = ApprovalList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<ApprovalQuery>,
) -> Result<HttpResponse, Problem> {
    let session = query.session_id.as_deref().map(intake::parse_session_id).transpose()?;
    let (open_only, scope) = (!query.all.unwrap_or(false), who.visible_scope());
    let filter = ApprovalFilter { open_only, session, run: None, about: query.about, scope };
    let page = parse_page(query.limit, MAX_PAGE, query.after.as_deref(), parse_approval_id)?;
    let rows = app.engine.store().approvals(&who.tenant, &filter, &page).await?;
    let next = next_cursor(&rows, page.limit).map(|row| row.id);
    let mut approvals = Vec::with_capacity(rows.len());
    let mut last: Option<JournalledRun> = None;
    for row in rows {
        // Approvals of one run are usually adjacent.
        if last.as_ref().is_none_or(|read| read.state.run != row.id.run) {
            // One unreadable run must not hide the approvals of the others.
            last = match JournalledRun::read(&app, &who.tenant, row.id.run).await {
                Ok(read) => read,
                Err(problem) => {
                    let (run, session, tenant) = (row.id.run, &row.session, &row.tenant);
                    tracing::error!(approval = %row.id, %run, %session, %tenant, code = %problem.code, "cannot read the run of an approval");
                    None
                }
            };
        }
        // The run was erased in the meantime.
        let Some(read) = &last else { continue };
        approvals.extend(read.approval(&app, row.id));
    }
    Ok(HttpResponse::Ok().json(ApprovalList { approvals, next }))
}

/// Returns one approval.
#[utoipa::path(get, path = "/api/approvals/{approval_id}", operation_id = "get_approval", tag = "approvals",
    params(("approval_id" = String, Path)),
    responses((status = 200, body = ApprovalDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = parse_approval_id(&path)?;
    who.authorize_run(&app, id.run, AccessAction::Read, || unknown_approval(id)).await?;
    Ok(HttpResponse::Ok().json(document(&app, &who.tenant, id).await?))
}

/// Decides an approval. Of several concurrent decisions one wins; the others get the name of who decided.
#[utoipa::path(post, path = "/api/approvals/{approval_id}", operation_id = "decide", tag = "approvals",
    params(("approval_id" = String, Path)), request_body = DecisionBody,
    responses((status = 200, body = ApprovalDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn decide(
    app: web::Data<App>,
    sent: AuthenticatedJson<DecisionBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    let id = parse_approval_id(&path)?;
    // Whether the approval exists, and is visible to the caller, comes before any other error.
    who.authorize_run(&app, id.run, AccessAction::Read, || unknown_approval(id)).await?;
    document(&app, &who.tenant, id).await?;
    who.authorize_run(&app, id.run, AccessAction::Decide, || unknown_approval(id)).await?;
    let (choice, hash, note) = body.into_choice()?;
    let action = CommandAction::Decide { approval: id.approval, choice, hash };
    submit_command(&app, &who.tenant, id.run, who.command(action, note)).await?;
    Ok(HttpResponse::Ok().json(document(&app, &who.tenant, id).await?))
}
