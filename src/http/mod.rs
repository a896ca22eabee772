//! The server: addresses, their wire types, and who may reach them.
//!
//! **Invariant:** a handler carries words to the engine and back. What is accepted is in the journal, and
//! no request depends on its connection.

mod app;
mod body;
mod chat;
mod gate;
mod messages;
mod openapi;
mod operations;
mod planning;
mod problem;
mod runs;
mod scenes;
mod serve;
mod sessions;
mod sse;
mod usage;
mod v1;
mod who;

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, Resource, Route, web};

pub use openapi::document;
pub use problem::Problem;
pub use serve::{ServeError, Server};

/// The addresses. Each answers other methods with 405 and the methods it knows.
fn routes(config: &mut web::ServiceConfig) {
    config
        .service(at("/api/chat", [(Method::POST, web::post().to(chat::chat))]))
        .service(at("/api/planning/plan", [(Method::POST, web::post().to(planning::plan))]))
        .service(at("/api/scenes", [(Method::GET, web::get().to(scenes::list))]))
        .service(at("/api/scenes/{name}", [(Method::GET, web::get().to(scenes::one))]))
        .service(at("/api/runs", [(Method::GET, web::get().to(runs::list))]))
        .service(at("/api/runs/{run_id}", [(Method::GET, web::get().to(runs::one))]))
        .service(at("/api/runs/{run_id}/events", [(Method::GET, web::get().to(runs::events))]))
        .service(at("/api/runs/{run_id}/cancel", [(Method::POST, web::post().to(runs::cancel))]))
        .service(at("/api/sessions", [(Method::GET, web::get().to(sessions::list))]))
        .service(at(
            "/api/sessions/{session_id}",
            [(Method::GET, web::get().to(sessions::one)), (Method::DELETE, web::delete().to(sessions::erase))],
        ))
        .service(at("/api/usage", [(Method::GET, web::get().to(usage::usage))]))
        .service(at("/api/openapi.json", [(Method::GET, web::get().to(openapi::serve))]))
        .service(at("/metrics", [(Method::GET, web::get().to(operations::metrics))]))
        .service(at("/healthz", [(Method::GET, web::get().to(operations::healthz))]))
        .service(at("/readyz", [(Method::GET, web::get().to(operations::readyz))]))
        .configure(v1::routes)
        .default_service(web::to(nowhere));
}

/// An address with its methods.
fn at<const N: usize>(path: &str, methods: [(Method, Route); N]) -> Resource {
    let allowed = methods.iter().map(|(method, _)| method.as_str()).collect::<Vec<_>>().join(", ");
    let resource = methods.into_iter().fold(web::resource(path), |resource, (_, route)| resource.route(route));
    resource.default_service(web::to(move |request: HttpRequest| {
        let allowed = allowed.clone();
        async move {
            let detail = format!("{} takes {allowed}, not {}", request.path(), request.method());
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "request.method", detail);
            let mut response = refusal(&request, problem).error_response();
            if let Ok(value) = allowed.parse() {
                response.headers_mut().insert(actix_web::http::header::ALLOW, value);
            }
            response
        }
    }))
}

async fn nowhere(request: HttpRequest) -> HttpResponse {
    let path: String = request.path().chars().take(120).collect();
    let detail = format!("there is nothing at {path}; /api/openapi.json lists the addresses");
    refusal(&request, Problem::new(StatusCode::NOT_FOUND, "request.address", detail)).error_response()
}

/// A problem in the words of the protocol that the address speaks.
fn refusal(request: &HttpRequest, problem: Problem) -> actix_web::Error {
    if request.path() == "/v1" || request.path().starts_with("/v1/") {
        v1::Error::from(problem).into()
    } else {
        problem.into()
    }
}

/// How many rows a page is to have.
fn page_size(limit: Option<u32>) -> Result<u32, Problem> {
    match limit {
        None => Ok(50),
        Some(limit @ 1..=crate::store::MAX_PAGE) => Ok(limit),
        Some(limit) => {
            let detail = format!("`limit` = {limit}: 1 to {} rows are given", crate::store::MAX_PAGE);
            Err(Problem::unprocessable("request.query", detail))
        }
    }
}
