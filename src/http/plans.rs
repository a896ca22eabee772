//! `/api/plans`: plans under people's control. They are made and shown here, approved, changed, stopped,
//! carried on and erased.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, ContentType};
use actix_web::{HttpRequest, HttpResponse, web};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::app::App;
use super::chat::{self, failure};
use super::commands::{order, order_and_wait};
use super::problem::Problem;
use super::view::{Journalled, not_modified};
use super::who::Who;
use crate::documents::{PlanDocument, PlanSummary};
use crate::plan::{self, KnownCalls, Plan, PlanStatus, TaskId};
use crate::planner::Wish;
use crate::run::{RunId, RunState, TenantId};
use crate::store::{Page, PlanFilter};
use crate::{Answer, ChatRequest};

/// How long a cancelled plan's end is waited for; it comes all the same.
const CANCEL_WAIT: Duration = Duration::from_secs(20);

/// The media type of Mermaid.
const MERMAID: &str = "text/vnd.mermaid; charset=utf-8";

/// A plan to be made, or one that is sent.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPlan {
    /// The user's words.
    #[schema(min_length = 1)]
    pub(crate) message: String,
    /// The conversation that it is of: 1 to 128 characters from `A-Z a-z 0-9 . _ : -`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) session_id: Option<String>,
    /// The plan; without it one is made.
    #[serde(default)]
    pub(crate) plan: Option<Plan>,
    /// Carry it out at once without writing: what would have been written is told.
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
    /// The chatbot's own instructions.
    #[serde(default)]
    pub(crate) instructions: Option<String>,
}

/// Which plans.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanQuery {
    /// Only those that stand so.
    #[param(value_type = Option<String>)]
    pub(crate) status: Option<PlanStatus>,
    /// Only those of this conversation.
    pub(crate) session_id: Option<String>,
    /// Only those that were asked for then or later (RFC 3339).
    #[param(value_type = Option<String>, format = "date-time")]
    pub(crate) since: Option<Timestamp>,
    /// Only those that were asked for before (RFC 3339).
    #[param(value_type = Option<String>, format = "date-time")]
    pub(crate) until: Option<Timestamp>,
    /// Most plans, 1 to 500; 50 unless told.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Only those behind this one: `next` of the page before.
    #[param(value_type = Option<String>, format = "uuid")]
    pub(crate) after: Option<String>,
}

/// A page of plans.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PlanList {
    /// The newest first.
    pub(crate) plans: Vec<PlanSummary>,
    /// What `after` is for the next page; absent where this page is not full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub(crate) next: Option<TaskId>,
}

/// How a plan is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// The document.
    #[default]
    Json,
    /// In words.
    Text,
    /// As a Mermaid flowchart.
    Mermaid,
}

/// How it is to be shown.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct FormatQuery {
    /// `json`, `text` or `mermaid`; without it what `Accept` says.
    #[param(inline)]
    pub(crate) format: Option<Format>,
}

/// A yes to a plan.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveBody {
    /// The version that was seen: another one is not approved.
    #[serde(default)]
    pub(crate) version: Option<u32>,
    /// The hash that was seen: anything else is not approved.
    #[serde(default)]
    pub(crate) hash: Option<String>,
    /// Whether it begins now; if not, it begins when it is approved once more with `true`.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub(crate) execute: bool,
    /// Why, in one's own words; at most 8000 characters.
    #[serde(default)]
    #[schema(max_length = 8000)]
    pub(crate) note: Option<String>,
}

fn yes() -> bool {
    true
}

/// A change of a plan: in words, or the plan that is to be in its place.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModifyBody {
    /// What the planner is to change, in words; 1 to 8000 characters.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 8000)]
    pub(crate) feedback: Option<String>,
    /// The plan that is to be in its place.
    #[serde(default)]
    pub(crate) plan: Option<Plan>,
    /// The version that was seen: another one is not changed.
    #[serde(default)]
    pub(crate) version: Option<u32>,
    /// Why, with a plan; at most 8000 characters.
    #[serde(default)]
    #[schema(max_length = 8000)]
    pub(crate) why: Option<String>,
}

/// Why a plan is stopped.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    /// In one's own words; at most 8000 characters.
    #[serde(default)]
    #[schema(max_length = 8000)]
    pub(crate) why: Option<String>,
}

/// The id in an address. What is no id is a plan that is not there.
fn id(text: &str) -> Result<TaskId, Problem> {
    text.parse::<Uuid>().map(TaskId).map_err(|_| Problem::unknown("plan", text))
}

/// The run of the plan in an address.
async fn run_of(app: &App, tenant: &TenantId, text: &str) -> Result<RunId, Problem> {
    let run = app.engine.run_of(tenant, id(text)?).await?;
    run.ok_or_else(|| Problem::unknown("plan", text))
}

/// The document of a run's plan.
async fn document(app: &App, tenant: &TenantId, run: RunId) -> Result<PlanDocument, Problem> {
    let journalled = Journalled::read(app, tenant, run).await?;
    let journalled = journalled.ok_or_else(|| Problem::unknown("plan", &run.to_string()))?;
    journalled.plan(app, tenant).await
}

/// Makes a plan that waits for approval, or takes one that is sent.
#[utoipa::path(post, path = "/api/plans", operation_id = "create_plan", tag = "plans", request_body = NewPlan,
    params(("Idempotency-Key" = Option<String>, Header, description = "sending it twice is sending it once")),
    responses((status = 201, description = "it waits for approval, or its run ended without one", body = PlanDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    app: web::Data<App>,
    who: Who,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body: NewPlan = super::body::json(&request, payload, &app.options).await?;
    let tenant = who.tenant.clone();
    let asked = ChatRequest {
        message: body.message,
        session: body.session_id.as_deref().map(chat::session).transpose()?,
        tenant: who.tenant,
        user: who.user,
        no_own_approval: who.no_own_approval,
        history: None,
        instructions: body.instructions,
        cache: None,
        plan_only: false,
        require_approval: true,
        dry_run: body.dry_run.unwrap_or(false),
        plan: body.plan,
        idempotency: chat::idempotency(&request)?,
        asked: None,
    };
    let accepted = chat::accept(&app, asked, None).await?;
    let answer = accepted.answer.await.unwrap_or_else(|_| Err(chat::lost(accepted.run)));
    let answer = answer.map_err(|fault| chat::told(fault, accepted.run))?;
    if let Some(problem) = unmade(&answer) {
        return Err(problem);
    }
    let made = document(&app, &tenant, answer.run_id).await?;
    let mut response = HttpResponse::Created();
    response
        .insert_header((header::LOCATION, format!("/api/plans/{}", made.task_id)))
        .insert_header(("x-run-id", made.run_id.to_string()))
        .insert_header(("x-session-id", made.session_id.to_string()));
    if accepted.again {
        response.insert_header(("idempotent-replayed", "true"));
    }
    Ok(response.json(made))
}

/// The problem that kept a plan from being made, if one did.
fn unmade(answer: &Answer) -> Option<Problem> {
    let problem = failure(answer)?;
    // The plan that was sent is the client's to change.
    if &*problem.code == "plan.invalid" {
        let own = Problem::unprocessable("plan.invalid", problem.detail);
        return Some(Problem { run_id: problem.run_id, document: problem.document, ..own });
    }
    Some(problem)
}

/// Plans, the newest first.
#[utoipa::path(get, path = "/api/plans", operation_id = "list_plans", tag = "plans", params(PlanQuery),
    responses((status = 200, body = PlanList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    app: web::Data<App>,
    who: Who,
    query: web::Query<PlanQuery>,
) -> Result<HttpResponse, Problem> {
    let session = query.session_id.as_deref().map(chat::session).transpose()?;
    let filter = PlanFilter { status: query.status, session, since: query.since, until: query.until };
    let after = query.after.as_deref().map(id).transpose()?;
    let limit = super::page_size(query.limit)?;
    let rows = app.engine.store().plans(&who.tenant, &filter, &Page { limit, after }).await?;
    let full = rows.len() >= limit as usize;
    let plans: Vec<PlanSummary> = rows.into_iter().map(PlanSummary::from).collect();
    let next = plans.last().filter(|_| full).map(|plan| plan.task_id);
    Ok(HttpResponse::Ok().json(PlanList { plans, next }))
}

/// One plan: the document, in words, or as a flowchart.
#[utoipa::path(get, path = "/api/plans/{task_id}", operation_id = "get_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid"), FormatQuery),
    responses(
        (status = 200, content((PlanDocument = "application/json"), (String = "text/plain"), (String = "text/vnd.mermaid"))),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
    query: web::Query<FormatQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let run = run_of(&app, &who.tenant, &path).await?;
    let journalled = Journalled::read(&app, &who.tenant, run).await?;
    let journalled = journalled.ok_or_else(|| Problem::unknown("plan", &path))?;
    let state = &journalled.state;
    match query.format.unwrap_or_else(|| accepted(&request)) {
        Format::Json => Ok(HttpResponse::Ok().json(journalled.plan(&app, &who.tenant).await?)),
        Format::Text => {
            let text = plan::text_with_calls(
                &whole(state)?,
                state.request(),
                state.queued.as_ref().map_or(TaskId(run.0), |queued| queued.task),
                state.plan_status,
                &state.step_statuses(),
                &calls(state),
            );
            Ok(HttpResponse::Ok().content_type(ContentType::plaintext()).body(text))
        }
        Format::Mermaid => Ok(HttpResponse::Ok().content_type(MERMAID).body(plan::mermaid(&whole(state)?))),
    }
}

/// The form that `Accept` names first of those there are.
fn accepted(request: &HttpRequest) -> Format {
    let wants = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let named = wants.split(',').filter_map(|media| match media.split(';').next().unwrap_or("").trim() {
        "application/json" | "*/*" | "application/*" => Some(Format::Json),
        "text/plain" | "text/*" => Some(Format::Text),
        "text/vnd.mermaid" => Some(Format::Mermaid),
        _ => None,
    });
    named.take(1).next().unwrap_or_default()
}

/// The plan in force with the steps of earlier versions that were begun.
fn whole(state: &RunState) -> Result<Plan, Problem> {
    let Some(made) = state.plan() else {
        let detail = "no plan has been made yet: wait for it, or look at the document";
        return Err(Problem::new(StatusCode::CONFLICT, "plan.not_made", detail));
    };
    Ok(Plan { steps: state.steps.values().map(|step| step.step.clone()).collect(), ..made.plan.clone() })
}

/// The calls that are known of each step.
fn calls(state: &RunState) -> KnownCalls {
    let mut known = KnownCalls::new();
    // What undoes a write is no part of the plan.
    for call in state.calls.values().filter(|call| call.undoes.is_none()) {
        let of = known.entry(call.step).or_default();
        of.push((call.requested.tool.clone(), call.requested.arguments.clone()));
    }
    known
}

/// Erases a plan with its run and its events. What its conversation remembers of it stays until that is
/// erased; what its tools stored is the company's and stays.
#[utoipa::path(delete, path = "/api/plans/{task_id}", operation_id = "erase_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")),
    responses((status = 204, description = "erased"), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn erase(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = run_of(&app, &who.tenant, &path).await?;
    match app.engine.erase_run(&who.tenant, run).await {
        Ok(true) => Ok(HttpResponse::NoContent().finish()),
        Ok(false) => Err(Problem::unknown("plan", &path)),
        Err(fault) if fault.code == "store.run_busy" => {
            let detail = "the plan has not ended: cancel it, or wait for its end";
            Err(Problem::new(StatusCode::CONFLICT, "plan.active", detail))
        }
        Err(fault) => Err(fault.into()),
    }
}

/// Approves the plan in force; of several at once one does, and the others hear who did.
#[utoipa::path(post, path = "/api/plans/{task_id}/approve", operation_id = "approve_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = ApproveBody,
    responses((status = 200, body = PlanDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn approve(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body: ApproveBody = super::body::json(&request, payload, &app.options).await?;
    let run = run_of(&app, &who.tenant, &path).await?;
    let wish = Wish::Approve { version: body.version, hash: body.hash, hold: !body.execute };
    order(&app, &who.tenant, run, who.wants(wish, body.note)).await?;
    Ok(HttpResponse::Ok().json(document(&app, &who.tenant, run).await?))
}

/// Changes the plan in force: a further version, which needs its own approval.
#[utoipa::path(post, path = "/api/plans/{task_id}/modify", operation_id = "modify_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = ModifyBody,
    responses((status = 200, description = "the new version", body = PlanDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn modify(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body: ModifyBody = super::body::json(&request, payload, &app.options).await?;
    let run = run_of(&app, &who.tenant, &path).await?;
    let wish = match (body.feedback, body.plan) {
        // Words are their own reason.
        (Some(words), None) if body.why.is_none() => Wish::Modify { words, version: body.version },
        (None, Some(plan)) => Wish::Edit { plan, version: body.version },
        _ => {
            let detail = "send either `feedback`, in words, or `plan`, with `why` if you like";
            return Err(Problem::unprocessable("request.body", detail));
        }
    };
    order_and_wait(&app, &who.tenant, run, who.wants(wish, body.why)).await?;
    let changed = document(&app, &who.tenant, run).await?;
    match not_modified(&changed) {
        Some(problem) => Err(problem),
        None => Ok(HttpResponse::Ok().json(changed)),
    }
}

/// Stops a plan at its next safe point, and tells what was done of it.
#[utoipa::path(post, path = "/api/plans/{task_id}/cancel", operation_id = "cancel_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = Option<CancelBody>,
    responses((status = 200, description = "it has stopped", body = PlanDocument),
        (status = 202, description = "it will stop", body = PlanDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body: CancelBody = super::body::optional(&request, payload, &app.options).await?;
    let run = run_of(&app, &who.tenant, &path).await?;
    let command = who.wants(Wish::Cancel, body.why);
    let stopped = tokio::time::timeout(CANCEL_WAIT, order_and_wait(&app, &who.tenant, run, command)).await;
    if let Ok(refused @ Err(_)) = stopped {
        refused?;
    }
    let told = document(&app, &who.tenant, run).await?;
    let ended = told.run_status.is_terminal();
    Ok(if ended { HttpResponse::Ok().json(told) } else { HttpResponse::Accepted().json(told) })
}

/// Carries a plan on that failed or was done in part: what was done is not done again.
#[utoipa::path(post, path = "/api/plans/{task_id}/resume", operation_id = "resume_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")),
    responses((status = 202, description = "it is carried on", body = Answer),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn resume(
    app: web::Data<App>,
    who: Who,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = run_of(&app, &who.tenant, &path).await?;
    super::runs::carry_on(&app, &who, run).await
}
