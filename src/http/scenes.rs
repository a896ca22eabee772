//! `GET /api/scenes` and `GET /api/scenes/{name}`: the scenes and their tools.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use crate::run::Effect;
use crate::scene::Scene;

/// All scenes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SceneList {
    /// Sorted by name.
    pub(crate) scenes: Vec<SceneView>,
}

/// A scene.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SceneView {
    /// Unique.
    pub(crate) name: String,
    /// Its purpose.
    pub(crate) description: String,
    /// Example requests for this scene.
    pub(crate) examples: Vec<String>,
    /// Its tools.
    pub(crate) tools: Vec<ToolView>,
}

/// A tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ToolView {
    /// Unique in the scene.
    pub(crate) name: String,
    /// A description of what it does.
    pub(crate) description: String,
    /// `read` or `write`.
    #[schema(value_type = String)]
    pub(crate) effect: Effect,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub(crate) parameters: Value,
    /// Timeout of one call, in milliseconds.
    pub(crate) timeout_ms: u64,
}

impl SceneView {
    fn of(scene: &Scene) -> Self {
        Self {
            name: scene.name.clone(),
            description: scene.description.clone(),
            examples: scene.examples.iter().map(|example| example.say.clone()).collect(),
            tools: scene
                .tools
                .iter()
                .map(|tool| ToolView {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    effect: tool.effect,
                    parameters: Value::clone(&tool.parameters),
                    timeout_ms: tool.timeout_ms,
                })
                .collect(),
        }
    }
}

/// Lists the scenes and their tools.
#[utoipa::path(get, path = "/api/scenes", operation_id = "list_scenes", tag = "scenes",
    responses((status = 200, body = SceneList), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(app: web::Data<App>, _: RequestPrincipal) -> HttpResponse {
    let catalogue = app.engine.catalogue();
    let own = catalogue.all().filter(|scene| scene.flow.is_none());
    let mut scenes: Vec<SceneView> = own.map(|scene| SceneView::of(scene)).collect();
    scenes.sort_by(|a, b| a.name.cmp(&b.name));
    HttpResponse::Ok().json(SceneList { scenes })
}

/// Returns one scene.
#[utoipa::path(get, path = "/api/scenes/{name}", operation_id = "get_scene", tag = "scenes", params(("name" = String, Path)),
    responses((status = 200, body = SceneView), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn one(
    app: web::Data<App>,
    _: RequestPrincipal,
    name: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let catalogue = app.engine.catalogue();
    let scene = catalogue.get(&name).filter(|scene| scene.flow.is_none());
    let scene = scene.ok_or_else(|| Problem::not_found("scene", &name))?;
    Ok(HttpResponse::Ok().json(SceneView::of(scene)))
}
