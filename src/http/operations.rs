//! Health, readiness and figures.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::App;
use super::problem::Problem;
use super::who::who;

/// The media type of Prometheus' text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How the server is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    pub(crate) status: String,
    /// The program's version.
    pub(crate) version: String,
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> HttpResponse {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    HttpResponse::Ok().json(Health { status: "ok".to_owned(), version })
}

/// Whether requests are taken: not while it stops, and not while its store cannot be read.
#[utoipa::path(get, path = "/readyz", tag = "operations",
    responses((status = 200, body = Health), (status = 503, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn readyz(app: web::Data<App>) -> Result<HttpResponse, Problem> {
    if app.is_draining() {
        let detail = "the server is stopping";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.draining", detail));
    }
    app.engine
        .ready()
        .await
        .map_err(|fault| Problem::new(StatusCode::SERVICE_UNAVAILABLE, &fault.code, fault.message))?;
    Ok(healthz().await)
}

/// The figures, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn metrics(app: web::Data<App>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    if !app.options.open_metrics {
        who(&request).await?;
    }
    match app.engine.metrics().await {
        Some(figures) => Ok(HttpResponse::Ok().content_type(EXPOSITION).body(figures)),
        None => {
            let detail = "figures are not kept (telemetry.metrics = false)";
            Err(Problem::new(StatusCode::NOT_FOUND, "metrics.off", detail))
        }
    }
}
