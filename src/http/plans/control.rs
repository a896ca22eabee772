//! Commands about a plan: approve, modify, cancel, resume.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::app::App;
use super::super::body::{self, AuthenticatedJson};
use super::super::commands::{submit_command, submit_command_and_wait};
use super::super::principal::RequestPrincipal;
use super::super::problem::Problem;
use super::super::runs;
use super::super::view::{large_json, modification_problem};
use super::{authorized_run_of_plan, document};
use crate::Answer;
use crate::access::AccessAction;
use crate::documents::PlanDocument;
use crate::plan::Plan;
use crate::planner::CommandAction;
use crate::run::PlanScore;

/// How long a cancellation waits for the plan's end before it replies 202.
const CANCEL_WAIT: Duration = Duration::from_secs(20);

/// An approval of a plan.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveBody {
    /// The version that the approver saw; any other version is rejected. This or `hash` is required if the
    /// plan has more than one version.
    pub(crate) version: Option<u32>,
    /// The hash of what the approver saw; anything else is rejected.
    pub(crate) hash: Option<String>,
    /// Whether to start the plan now. If false, it starts when it is approved again with `true`.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub(crate) execute: bool,
    /// The approver's reason; at most 8000 characters.
    #[schema(max_length = 8000)]
    pub(crate) note: Option<String>,
}

fn yes() -> bool {
    true
}

/// A modification of a plan: feedback for the planner, or a replacement.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModifyBody {
    /// The change that the planner should make; 1 to 8000 characters.
    #[schema(min_length = 1, max_length = 8000)]
    pub(crate) feedback: Option<String>,
    /// The replacement.
    pub(crate) plan: Option<Plan>,
    /// The version that the client saw; any other version is rejected.
    pub(crate) version: Option<u32>,
    /// With `plan`: the reason; at most 8000 characters.
    #[schema(max_length = 8000)]
    pub(crate) why: Option<String>,
}

/// A cancellation of a plan.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    /// The reason; at most 8000 characters.
    #[schema(max_length = 8000)]
    pub(crate) why: Option<String>,
}

/// Approves the current version of a plan. Of several concurrent approvals one wins; the others get the
/// name of the approver.
#[utoipa::path(post, path = "/api/plans/{task_id}/approve", operation_id = "approve_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = ApproveBody,
    responses((status = 200, body = PlanDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn approve(
    app: web::Data<App>,
    sent: AuthenticatedJson<ApproveBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::Decide).await?;
    let action = CommandAction::Approve { version: body.version, hash: body.hash, hold: !body.execute };
    submit_command(&app, &who.tenant, run, who.command(action, body.note)).await?;
    large_json(HttpResponse::Ok(), document(&app, &who.tenant, run).await?).await
}

/// Modifies a plan: makes a new version, which needs a new approval.
#[utoipa::path(post, path = "/api/plans/{task_id}/modify", operation_id = "modify_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = ModifyBody,
    responses((status = 200, description = "the new version", body = PlanDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn modify(
    app: web::Data<App>,
    sent: AuthenticatedJson<ModifyBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::ModifyPlan).await?;
    let action = match (body.feedback, body.plan) {
        // Feedback needs no separate reason.
        (Some(words), None) if body.why.is_none() => CommandAction::Modify { words, version: body.version },
        (None, Some(plan)) => CommandAction::Edit { plan, version: body.version },
        _ => {
            let detail = "send either `feedback`, or `plan` with an optional `why`";
            return Err(Problem::unprocessable("request.body", detail));
        }
    };
    submit_command_and_wait(&app, &who.tenant, run, who.command(action, body.why)).await?;
    let changed = document(&app, &who.tenant, run).await?;
    match modification_problem(&changed) {
        Some(problem) => Err(problem),
        None => large_json(HttpResponse::Ok(), changed).await,
    }
}

/// Cancels a plan at its next safe point, and returns what was done.
#[utoipa::path(post, path = "/api/plans/{task_id}/cancel", operation_id = "cancel_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = Option<CancelBody>,
    responses((status = 200, description = "the plan has stopped", body = PlanDocument),
        (status = 202, description = "the plan will stop", body = PlanDocument),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body: CancelBody = body::optional_json(&request, payload, &app.options).await?;
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::Cancel).await?;
    let command = who.command(CommandAction::Cancel, body.why);
    let stopped =
        tokio::time::timeout(CANCEL_WAIT, submit_command_and_wait(&app, &who.tenant, run, command)).await;
    if let Ok(refused @ Err(_)) = stopped {
        refused?;
    }
    let plan = document(&app, &who.tenant, run).await?;
    let ended = plan.run_status.is_terminal();
    large_json(if ended { HttpResponse::Ok() } else { HttpResponse::Accepted() }, plan).await
}

/// A judgement of a plan.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RatingBody {
    /// 1 (good) or -1 (bad).
    #[schema(value_type = i8, minimum = -1, maximum = 1)]
    pub(crate) score: PlanScore,
    /// The reason; at most 8000 characters.
    #[schema(max_length = 8000)]
    pub(crate) note: Option<String>,
}

/// Rates a plan whose run has ended. A later rating of the same user replaces an earlier one; a bad rating stops the plan
/// from being reused.
#[utoipa::path(post, path = "/api/plans/{task_id}/rating", operation_id = "rate_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = RatingBody,
    responses((status = 200, body = PlanDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn rate(
    app: web::Data<App>,
    sent: AuthenticatedJson<RatingBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::Rate).await?;
    let action = CommandAction::Rate { score: body.score };
    submit_command(&app, &who.tenant, run, who.command(action, body.note)).await?;
    large_json(HttpResponse::Ok(), document(&app, &who.tenant, run).await?).await
}

/// Resumes a plan that failed or completed in part. Completed work is not repeated.
#[utoipa::path(post, path = "/api/plans/{task_id}/resume", operation_id = "resume_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")),
    responses((status = 202, description = "the plan is resumed", body = Answer),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn resume(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::Resume).await?;
    runs::resume_and_reply(&app, &who, run).await
}
