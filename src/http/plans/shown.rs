//! `GET /api/plans/{task_id}`: returns one plan as a document, as text or as a flowchart.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, ContentType};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::app::App;
use super::super::principal::RequestPrincipal;
use super::super::problem::Problem;
use super::super::query::QueryParameters;
use super::super::view::{JournalledRun, large_json};
use super::authorized_run_of_plan;
use crate::access::AccessAction;
use crate::documents::{PlanDocument, VersionPage};
use crate::plan::{self, KnownCalls, Plan, TaskId};
use crate::run::RunState;

/// The media type of Mermaid.
const MERMAID: &str = "text/vnd.mermaid; charset=utf-8";

/// Formats of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanFormat {
    /// The document.
    #[default]
    Json,
    /// Plain text.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
}

/// The format, and the page of versions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FormatQuery {
    /// `json`, `text` or `mermaid`. Default: from the header `Accept`.
    #[param(inline)]
    pub(crate) format: Option<PlanFormat>,
    /// With `json`: maximum number of versions, 1 to 32. Default: 32. Large versions give shorter pages.
    #[param(minimum = 1, maximum = 32)]
    pub(crate) limit: Option<usize>,
    /// With `json`: cursor for older versions: the `versions_before` of the newer page.
    #[param(minimum = 1, maximum = 1_000_000)]
    pub(crate) before: Option<u32>,
}

/// Maximum of `before`. Journals of earlier releases may have more versions than are allowed today.
const MAX_BEFORE: u32 = 1_000_000;

impl FormatQuery {
    fn version_page(&self) -> Result<VersionPage, Problem> {
        let max = plan::MAX_VERSIONS;
        let limit = self.limit.unwrap_or(max);
        if !(1..=max).contains(&limit) {
            let detail = format!("`limit` = {limit} must be from 1 to {max}");
            return Err(Problem::unprocessable("request.query", detail));
        }
        if let Some(before) = self.before.filter(|before| !(1..=MAX_BEFORE).contains(before)) {
            let detail = format!("`before` = {before} must be from 1 to {MAX_BEFORE}");
            return Err(Problem::unprocessable("request.query", detail));
        }
        Ok(VersionPage { limit, before: self.before })
    }
}

/// Returns one plan as a document, as text or as a flowchart.
#[utoipa::path(get, path = "/api/plans/{task_id}", operation_id = "get_plan", tag = "plans",
    params(("task_id" = String, Path, format = "uuid"), FormatQuery),
    responses(
        (status = 200, content((PlanDocument = "application/json"), (String = "text/plain"), (String = "text/vnd.mermaid"))),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    path: web::Path<String>,
    QueryParameters(query): QueryParameters<FormatQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let page = query.version_page()?;
    let run = authorized_run_of_plan(&app, &who, &path, AccessAction::Read).await?;
    let journalled = JournalledRun::read(&app, &who.tenant, run).await?;
    let journalled = journalled.ok_or_else(|| Problem::not_found("plan", &path))?;
    let state = &journalled.state;
    match query.format.unwrap_or_else(|| negotiated_format(&request)) {
        PlanFormat::Json => {
            large_json(HttpResponse::Ok(), journalled.plan(&app, &who.tenant, page).await?).await
        }
        PlanFormat::Text => {
            let text = plan::text_with_status(
                &plan_with_begun_steps(state)?,
                state.request(),
                state.queued.as_ref().map_or(TaskId(run.0), |queued| queued.task),
                state.reported_plan_status(),
                &state.reported_step_statuses(),
                &known_calls(state),
            );
            Ok(HttpResponse::Ok().content_type(ContentType::plaintext()).body(text))
        }
        PlanFormat::Mermaid => {
            let drawn = plan_with_begun_steps(state)?;
            let notes = journalled.explanation(false).step_notes();
            Ok(HttpResponse::Ok().content_type(MERMAID).body(plan::mermaid_with_notes(&drawn, &notes)))
        }
    }
}

/// The first supported format in `Accept`.
fn negotiated_format(request: &HttpRequest) -> PlanFormat {
    let wants = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let named = wants.split(',').filter_map(|media| match media.split(';').next().unwrap_or("").trim() {
        "application/json" | "*/*" | "application/*" => Some(PlanFormat::Json),
        "text/plain" | "text/*" => Some(PlanFormat::Text),
        "text/vnd.mermaid" => Some(PlanFormat::Mermaid),
        _ => None,
    });
    named.take(1).next().unwrap_or_default()
}

/// The current plan, plus the steps of earlier versions that were started.
fn plan_with_begun_steps(state: &RunState) -> Result<Plan, Problem> {
    let Some(made) = state.plan() else {
        let detail = "no plan has been made yet: wait for it, or request the JSON document";
        return Err(Problem::new(StatusCode::CONFLICT, "plan.not_made", detail));
    };
    Ok(Plan { steps: state.plan_steps().map(|(_, step)| step.step.clone()).collect(), ..made.plan.clone() })
}

/// The known calls of each step.
fn known_calls(state: &RunState) -> KnownCalls {
    let mut known = KnownCalls::new();
    // Undo calls are not part of the plan.
    for call in state.calls.values().filter(|call| call.undoes.is_none()) {
        let of = known.entry(call.step).or_default();
        of.push((call.requested.tool.clone(), call.requested.arguments.clone()));
    }
    known
}
