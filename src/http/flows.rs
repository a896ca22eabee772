//! `GET /api/planning/flows` and `GET /api/planning/flows/{flow_name}`: the flows, their nodes and edges.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use crate::FlowDocument;

/// All flows.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FlowList {
    /// Sorted by name.
    pub(crate) flows: Vec<FlowDocument>,
}

/// Checks the flow that a request names, and what it is given: a state without names would be ignored.
pub(super) fn check_named(app: &App, flow: &str, state: Option<&Value>) -> Result<(), Problem> {
    app.engine.catalogue().flow(flow).ok_or_else(|| Problem::not_found("flow", flow))?;
    if state.is_some_and(|state| !state.is_object() && !state.is_null()) {
        let detail =
            "`current_state` of a request with `flow` must be an object: the inputs of the flow, by name";
        return Err(Problem::unprocessable("request.current_state", detail));
    }
    Ok(())
}

/// Lists the flows with their nodes and edges.
#[utoipa::path(get, path = "/api/planning/flows", operation_id = "list_flows", tag = "planning",
    responses((status = 200, body = FlowList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(app: web::Data<App>, _: RequestPrincipal) -> HttpResponse {
    let flows = app.engine.catalogue().flows().map(|flow| FlowDocument::of(flow)).collect();
    HttpResponse::Ok().json(FlowList { flows })
}

/// Returns one flow: its nodes, its edges, a Mermaid flowchart, and nodes that path planners missed in it.
#[utoipa::path(get, path = "/api/planning/flows/{flow_name}", operation_id = "get_flow", tag = "planning",
    params(("flow_name" = String, Path)),
    responses((status = 200, body = FlowDocument), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    who: RequestPrincipal,
    name: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let user = who.session_owner_filter();
    let flow = app.engine.flow_document(&who.tenant, &name, user).await?;
    Ok(HttpResponse::Ok().json(flow.ok_or_else(|| Problem::not_found("flow", &name))?))
}
