//! `GET /api/planning/flows` and `GET /api/planning/flows/{flow_name}`: the flows, their nodes and edges.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
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
