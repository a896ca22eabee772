//! `POST /api/planning/plan`: makes a plan without carrying it out.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::App;
use super::body::AuthenticatedJson;
use super::problem::Problem;
use super::{flows, intake};
use crate::plan::{Plan, TaskId};
use crate::run::RunId;
use crate::{AnswerFlow, AnswerUsage, ChatRequest};

/// A request for a plan.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanBody {
    /// The user's message.
    #[schema(min_length = 1)]
    pub(crate) message: String,
    /// The flow that the plan consists of, in place of one that a model makes.
    pub(crate) flow: Option<String>,
    /// The state of things as the client knows it; at most 16 KiB of JSON. Its fields give the inputs of flows.
    pub(crate) current_state: Option<serde_json::Value>,
}

/// A plan that is not carried out.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PlanView {
    /// The plan's id.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) task_id: TaskId,
    /// The run that made it.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// The plan.
    pub(crate) plan: Plan,
    /// The plan as text for people.
    pub(crate) text: String,
    /// The plan as a Mermaid flowchart.
    pub(crate) mermaid: String,
    /// The paths through the flows of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) flows: Vec<AnswerFlow>,
    /// The usage of making it.
    pub(crate) usage: AnswerUsage,
}

/// Makes a plan without carrying it out.
#[utoipa::path(post, path = "/api/planning/plan", tag = "planning", request_body = PlanBody,
    responses((status = 200, body = PlanView), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn plan(
    app: web::Data<App>,
    sent: AuthenticatedJson<PlanBody>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let AuthenticatedJson { who, body } = sent;
    if let Some(flow) = &body.flow {
        flows::check_named(&app, flow, body.current_state.as_ref())?;
    }
    who.authorize_chat(&app, None).await?;
    let asked = ChatRequest {
        plan_only: true,
        guidance: who.guidance(None, body.current_state),
        plan: body.flow.as_ref().map(|flow| Plan::of_flow(flow, &body.message)),
        idempotency: intake::idempotency_header(&request)?,
        ..who.chat_request(body.message.clone())
    };
    let mut accepted = intake::accept(&app, asked, false, None).await?;
    let answer = accepted.answered().await?;
    if let Some(problem) = intake::failure_problem(&answer) {
        return Err(problem);
    }
    let plan = answer.plan.ok_or_else(|| {
        intake::accepted_problem(crate::run::Fault::new("plan.none", "no plan could be made"), answer.run_id)
    })?;
    let steps = std::collections::BTreeMap::new();
    let draft = crate::plan::PlanStatus::Draft;
    Ok(HttpResponse::Ok().json(PlanView {
        task_id: answer.task_id,
        run_id: answer.run_id,
        text: crate::plan::text(&plan, &body.message, answer.task_id, draft, &steps),
        mermaid: crate::plan::mermaid(&plan),
        flows: answer.steps.into_iter().filter_map(|step| step.flow).collect(),
        plan,
        usage: answer.usage,
    }))
}
