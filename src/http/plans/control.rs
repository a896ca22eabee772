//! What people have done with a plan: approved, changed, stopped, carried on.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::app::App;
use super::super::body::{self, Sent};
use super::super::commands::{order, order_and_wait};
use super::super::problem::Problem;
use super::super::runs;
use super::super::view::not_modified;
use super::super::who::Who;
use super::{document, run_of};
use crate::Answer;
use crate::documents::PlanDocument;
use crate::plan::Plan;
use crate::planner::Wish;

/// How long a cancelled plan's end is waited for; it comes all the same.
const CANCEL_WAIT: Duration = Duration::from_secs(20);

/// A yes to a plan.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveBody {
    /// The version that was seen: another one is not approved. This or `hash` is required as soon as the plan
    /// has more than one version.
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

/// Approves the plan in force; of several at once one does, and the others hear who did.
#[utoipa::path(post, path = "/api/plans/{task_id}/approve", operation_id = "approve_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid")), request_body = ApproveBody,
    responses((status = 200, body = PlanDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn approve(
    app: web::Data<App>,
    sent: Sent<ApproveBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let Sent { who, body } = sent;
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
    sent: Sent<ModifyBody>,
    path: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let Sent { who, body } = sent;
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
    let body: CancelBody = body::optional(&request, payload, &app.options).await?;
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
    runs::carry_on(&app, &who, run).await
}
