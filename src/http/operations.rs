//! Health, readiness and metrics.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::App;
use super::principal::authenticate;
use super::problem::Problem;
use crate::telemetry;

/// The media type of the Prometheus text format.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The server's health.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    pub(crate) status: String,
    /// The program's version.
    pub(crate) version: String,
}

/// Liveness: replies as long as the process runs.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> HttpResponse {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    HttpResponse::Ok().json(Health { status: "ok".to_owned(), version })
}

/// Readiness: 503 while the server shuts down, its store cannot be read or written, or its data directory was moved or deleted.
#[utoipa::path(get, path = "/readyz", tag = "operations",
    responses((status = 200, body = Health), (status = 503, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn readyz(app: web::Data<App>) -> Result<HttpResponse, Problem> {
    if app.is_draining() {
        let detail = "the server is shutting down";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server.draining", detail));
    }
    app.engine
        .ready()
        .await
        .map_err(|fault| Problem::new(StatusCode::SERVICE_UNAVAILABLE, &fault.code, fault.message))?;
    Ok(healthz().await)
}

/// Metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn metrics(app: web::Data<App>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    if !app.options.open_metrics {
        // The metrics cover the whole server, so they need the role that reads usage.
        authenticate(&request).await?.authorize_usage()?;
    }
    match app.engine.gather_metrics().await {
        Some(mut figures) => {
            figures.add_http(&app.http_metrics);
            // Not in the engine's: a program with several engines is one process.
            telemetry::add_process(&mut figures);
            Ok(HttpResponse::Ok().content_type(EXPOSITION).body(figures.text()))
        }
        None => {
            let detail = "metrics are disabled (telemetry.metrics = false)";
            Err(Problem::new(StatusCode::NOT_FOUND, "metrics.off", detail))
        }
    }
}
