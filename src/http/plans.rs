//! `/api/plans`: plans under human control. This module creates, lists and erases them; `shown` returns one,
//! and `control` has the commands about one.

pub(crate) mod control;
pub(crate) mod shown;

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::app::App;
use super::body::AuthenticatedJson;
use super::intake::{self, failure_problem};
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;
use super::view::{JournalledRun, large_json};
use super::{next_cursor, parse_page};
use crate::access::AccessAction;
use crate::adapt::{ExecutionLevel, ExecutionMode};
use crate::documents::{PlanDocument, PlanSummary, VersionPage};
use crate::plan::{Plan, PlanStatus, TaskId};
use crate::run::{DocumentId, PlanConstraints, RequestOptions, RunId, TenantId};
use crate::store::{MAX_PAGE, PlanFilter};
use crate::{Answer, ChatRequest};

/// A request for a plan, or a supplied plan.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatePlanBody {
    /// The user's message.
    #[schema(min_length = 1)]
    pub(crate) message: String,
    /// Its conversation: 1 to 128 characters from `A-Z a-z 0-9 . _ : -`.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) session_id: Option<String>,
    /// A supplied plan; without it the planner makes one.
    pub(crate) plan: Option<Plan>,
    /// Dry run: carries the plan out at once without writing, and reports what would have been written.
    pub(crate) dry_run: Option<bool>,
    /// Who may be asked when something unexpected happens; has an effect where it is lower than configured.
    pub(crate) level: Option<ExecutionLevel>,
    /// How much may change when something unexpected happens; has an effect where it is lower than configured.
    pub(crate) mode: Option<ExecutionMode>,
    /// The chatbot's instructions.
    pub(crate) instructions: Option<String>,
    /// The constraints of the plan.
    pub(crate) constraints: Option<PlanConstraints>,
    /// The state of things as the caller knows it, for the planner; at most 16 KiB of JSON. With the caller's own key, a
    /// write's values may come from it.
    pub(crate) current_state: Option<Value>,
    /// Ids of the user's documents that the request is about; at most 16. Its tools can read these, and no others.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 16)]
    pub(crate) documents: Vec<DocumentId>,
}

/// Filters for the list of plans.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanQuery {
    /// Only plans with this status.
    #[param(value_type = Option<String>)]
    pub(crate) status: Option<PlanStatus>,
    /// Only plans of this conversation.
    pub(crate) session_id: Option<String>,
    /// Only plans requested at this time or later (RFC 3339).
    #[param(value_type = Option<String>, format = "date-time")]
    pub(crate) since: Option<Timestamp>,
    /// Only plans requested before this time (RFC 3339).
    #[param(value_type = Option<String>, format = "date-time")]
    pub(crate) until: Option<Timestamp>,
    /// Maximum number of plans on the page, 1 to 500. Default: 50.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Cursor: the `next` of the previous page.
    #[param(value_type = Option<String>, format = "uuid")]
    pub(crate) after: Option<String>,
}

/// A page of plans.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PlanList {
    /// Newest first.
    pub(crate) plans: Vec<PlanSummary>,
    /// The `after` of the next page; absent if this page is not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) next: Option<TaskId>,
}

/// Parses the id in the path. Malformed ids give 404, like unknown ones.
fn parse_task_id(text: &str) -> Result<TaskId, Problem> {
    text.parse::<Uuid>().map(TaskId).map_err(|_| Problem::not_found("plan", text))
}

/// The run of the plan in the path, if the caller may do `action` with it.
async fn authorized_run_of_plan(
    app: &App,
    who: &RequestPrincipal,
    text: &str,
    action: AccessAction,
) -> Result<RunId, Problem> {
    let unknown = || Problem::not_found("plan", text);
    let run = app.engine.run_of(&who.tenant, parse_task_id(text)?).await?.ok_or_else(unknown)?;
    who.authorize_run(app, run, action, unknown).await?;
    Ok(run)
}

async fn document(app: &App, tenant: &TenantId, run: RunId) -> Result<PlanDocument, Problem> {
    let journalled = JournalledRun::read(app, tenant, run).await?;
    let journalled = journalled.ok_or_else(|| Problem::not_found("plan", &run.to_string()))?;
    journalled.plan(app, tenant, VersionPage::default()).await
}

/// Creates a plan that waits for approval: a new one, or the supplied one.
#[utoipa::path(post, path = "/api/plans", operation_id = "create_plan", tag = "plans", request_body = CreatePlanBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "requests with the same key are carried out once")),
    responses((status = 201, description = "the plan waits for approval, or its run ended without needing one", body = PlanDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    app: web::Data<App>,
    sent: AuthenticatedJson<CreatePlanBody>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    who.authorize_chat(&app, body.session_id.as_deref()).await?;
    let tenant = who.tenant.clone();
    let asked = ChatRequest {
        session: body.session_id.as_deref().map(intake::parse_session_id).transpose()?,
        instructions: body.instructions,
        options: RequestOptions {
            require_approval: true,
            dry_run: body.dry_run.unwrap_or(false),
            level: body.level,
            mode: body.mode,
            ..RequestOptions::default()
        },
        guidance: who.guidance(body.constraints, body.current_state),
        documents: body.documents,
        plan: body.plan,
        idempotency: intake::idempotency_header(&request)?,
        ..who.chat_request(body.message)
    };
    let mut accepted = intake::accept(&app, asked, false, None).await?;
    let answer = accepted.answered().await?;
    if let Some(problem) = creation_problem(&answer) {
        return Err(problem);
    }
    let made = document(&app, &tenant, answer.run_id).await?;
    let mut response = HttpResponse::Created();
    response
        .insert_header((header::LOCATION, format!("/api/plans/{}", made.task_id)))
        .insert_header(("x-run-id", made.run_id.to_string()))
        .insert_header(("x-session-id", made.session_id.to_string()));
    if accepted.is_replay {
        response.insert_header(("idempotent-replayed", "true"));
    }
    large_json(response, made).await
}

/// The problem that prevented the plan, if any.
fn creation_problem(answer: &Answer) -> Option<Problem> {
    let problem = failure_problem(answer)?;
    // An invalid supplied plan is a client error.
    if &*problem.code == "plan.invalid" {
        let own = Problem::unprocessable("plan.invalid", problem.detail);
        return Some(Problem { run_id: problem.run_id, document: problem.document, ..own });
    }
    Some(problem)
}

/// Lists plans, newest first.
#[utoipa::path(get, path = "/api/plans", operation_id = "list_plans", tag = "plans", params(PlanQuery),
    responses((status = 200, body = PlanList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<PlanQuery>,
) -> Result<HttpResponse, Problem> {
    let session = query.session_id.as_deref().map(intake::parse_session_id).transpose()?;
    let (since, until, scope) = (query.since, query.until, who.visible_scope());
    let filter = PlanFilter { status: query.status, session, since, until, scope, ..PlanFilter::default() };
    let page = parse_page(query.limit, MAX_PAGE, query.after.as_deref(), parse_task_id)?;
    let rows = app.engine.store().plans(&who.tenant, &filter, &page).await?;
    let next = next_cursor(&rows, page.limit).map(|row| row.task);
    let plans = rows.into_iter().map(PlanSummary::from).collect();
    Ok(HttpResponse::Ok().json(PlanList { plans, next }))
}

/// Erases a plan with its run and its events. The memory of its conversation is kept until the conversation
/// is erased. Data that its tools stored is kept.
#[utoipa::path(delete, path = "/api/plans/{task_id}", operation_id = "erase_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")),
    responses((status = 204, description = "erased"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn erase(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::Erase).await?;
    match app.engine.erase_run(&who.tenant, run).await {
        Ok(true) => Ok(HttpResponse::NoContent().finish()),
        Ok(false) => Err(Problem::not_found("plan", &path)),
        Err(fault) if fault.code == "store.run_busy" => {
            let detail = "the plan has not ended: cancel it, or wait until it ends";
            Err(Problem::new(StatusCode::CONFLICT, "plan.active", detail))
        }
        Err(fault) => Err(fault.into()),
    }
}
