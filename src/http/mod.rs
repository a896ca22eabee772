//! The HTTP server: routes, their wire types, authentication and authorization.
//!
//! **Invariant:** handlers hold no state of runs; they pass requests to the engine. An accepted request is in
//! the journal and does not depend on its connection.

mod access_log;
mod app;
mod approvals;
mod body;
mod browser;
mod chat;
mod commands;
mod connections;
mod documents;
mod facts;
mod flows;
mod intake;
mod key_limits;
mod learned;
mod messages;
mod middleware;
mod openapi;
mod operations;
mod planning;
mod plans;
mod principal;
mod problem;
mod query;
mod revocation;
mod runs;
mod scenes;
mod serve;
mod sessions;
mod sse;
mod usage;
mod v1;
mod view;

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, Resource, Route, guard, web};

use self::plans::{control, shown};
use crate::store::Page;

pub use openapi::openapi_document;
pub use problem::Problem;
pub use serve::{BoundListener, ServeError, Server};

/// A path with its methods and their handlers.
type RouteEntry = (&'static str, Vec<(Method, Route)>);

/// The routes whose requests may ask models: they count against the rate of their key. Decisions about approvals
/// and cancellations are not among them, so that a person can always stop something.
const COSTLY_ROUTES: [&str; 7] = [
    "/api/chat",
    "/api/planning/plan",
    "/api/plans",
    "/api/plans/{task_id}/modify",
    "/api/plans/{task_id}/resume",
    "/api/runs/{run_id}/resume",
    "/v1/chat/completions",
];

/// All routes. Nothing else is registered, and the OpenAPI document lists exactly these.
fn route_table() -> Vec<RouteEntry> {
    let get = |route: Route| vec![(Method::GET, route)];
    let post = |route: Route| vec![(Method::POST, route)];
    let get_post = |get: Route, post: Route| vec![(Method::GET, get), (Method::POST, post)];
    let get_delete = |get: Route, delete: Route| vec![(Method::GET, get), (Method::DELETE, delete)];
    vec![
        ("/api/chat", post(web::post().to(chat::chat))),
        ("/api/planning/plan", post(web::post().to(planning::plan))),
        ("/api/planning/flows", get(read().to(flows::list))),
        ("/api/planning/flows/{flow_name}", get(read().to(flows::one))),
        ("/api/scenes", get(read().to(scenes::list))),
        ("/api/scenes/{name}", get(read().to(scenes::one))),
        ("/api/runs", get(read().to(runs::list))),
        ("/api/runs/{run_id}", get(read().to(runs::one))),
        ("/api/runs/{run_id}/explain", get(read().to(runs::explain))),
        ("/api/runs/{run_id}/events", get(read().to(runs::events))),
        ("/api/runs/{run_id}/cancel", post(web::post().to(runs::cancel))),
        ("/api/runs/{run_id}/resume", post(web::post().to(runs::resume))),
        ("/api/plans", get_post(read().to(plans::list), web::post().to(plans::create))),
        ("/api/plans/{task_id}", get_delete(read().to(shown::one), web::delete().to(plans::erase))),
        ("/api/plans/{task_id}/approve", post(web::post().to(control::approve))),
        ("/api/plans/{task_id}/modify", post(web::post().to(control::modify))),
        ("/api/plans/{task_id}/cancel", post(web::post().to(control::cancel))),
        ("/api/plans/{task_id}/rating", post(web::post().to(control::rate))),
        ("/api/plans/{task_id}/resume", post(web::post().to(control::resume))),
        ("/api/approvals", get(read().to(approvals::list))),
        (
            "/api/approvals/{approval_id}",
            get_post(read().to(approvals::one), web::post().to(approvals::decide)),
        ),
        ("/api/sessions", get(read().to(sessions::list))),
        (
            "/api/sessions/{session_id}",
            get_delete(read().to(sessions::one), web::delete().to(sessions::erase)),
        ),
        ("/api/documents", get_post(read().to(documents::list), web::post().to(documents::add))),
        (
            "/api/documents/{document_id}",
            get_delete(read().to(documents::one), web::delete().to(documents::delete)),
        ),
        ("/api/documents/{document_id}/content", get(read().to(documents::content))),
        ("/api/sessions/{session_id}/facts", get_post(read().to(facts::list), web::post().to(facts::state))),
        ("/api/learned", get(read().to(learned::list))),
        ("/api/learned/{id}", get_delete(read().to(learned::one), web::delete().to(learned::delete))),
        ("/api/usage", get(read().to(usage::usage))),
        ("/api/openapi.json", get(read().to(openapi::serve))),
        ("/metrics", get(read().to(operations::metrics))),
        ("/healthz", get(read().to(operations::healthz))),
        ("/readyz", get(read().to(operations::readyz))),
        ("/v1/chat/completions", post(web::post().to(v1::completions))),
        ("/v1/models", get(read().to(v1::models))),
        ("/v1/models/{model}", get(read().to(v1::model))),
    ]
}

/// A route for GET, and for HEAD, which gets the same reply without its body (RFC 9110, 9.3.2).
fn read() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// The paths, as registered.
fn route_patterns() -> Vec<&'static str> {
    route_table().into_iter().map(|(path, _)| path).collect()
}

/// The paths and the methods of each, as registered.
pub fn route_methods() -> Vec<(&'static str, Vec<String>)> {
    let names = |methods: Vec<(Method, Route)>| methods.iter().map(|(m, _)| m.to_string()).collect();
    route_table().into_iter().map(|(path, methods)| (path, names(methods))).collect()
}

/// Registers the routes. Other methods get 405 with the allowed ones.
fn register_routes(config: &mut web::ServiceConfig) {
    for (path, methods) in route_table() {
        config.service(resource_with_methods(path, methods));
    }
    config.default_service(web::to(no_such_route));
}

/// A resource that answers these methods.
fn resource_with_methods(path: &str, methods: Vec<(Method, Route)>) -> Resource {
    // Whatever answers GET answers HEAD as well.
    let names = methods.iter().flat_map(|(method, _)| match *method == Method::GET {
        true => vec!["GET", "HEAD"],
        false => vec![method.as_str()],
    });
    let allowed = names.collect::<Vec<_>>().join(", ");
    let resource =
        methods.into_iter().fold(web::resource(path), |resource, (_, route)| resource.route(route));
    resource.default_service(web::to(move |request: HttpRequest| {
        let allowed = allowed.clone();
        async move {
            let detail = format!("{} allows {allowed}, not {}", request.path(), request.method());
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "request.method", detail);
            let mut response = HttpResponse::from_error(protocol_error(&request, problem));
            if let Ok(value) = allowed.parse() {
                response.headers_mut().insert(actix_web::http::header::ALLOW, value);
            }
            response
        }
    }))
}

async fn no_such_route(request: HttpRequest) -> HttpResponse {
    let path: String = request.path().chars().take(120).collect();
    let detail = format!("there is no route {path}; {}", address_hint(request.path()));
    let problem = Problem::new(StatusCode::NOT_FOUND, "request.address", detail);
    HttpResponse::from_error(protocol_error(&request, problem))
}

/// What to do about an address without a route. Clients append the protocol's addresses to their base URL.
fn address_hint(path: &str) -> &'static str {
    const APPENDED: [&str; 5] = ["/chat/completions", "/responses", "/completions", "/embeddings", "/models"];
    let base = path.trim_end_matches('/');
    let base = APPENDED.iter().find_map(|address| base.strip_suffix(address));
    if base.is_some_and(|base| base != "/v1") {
        "the base URL of an OpenAI client must end with `/v1`, directly after the host and the port"
    } else if path == "/v1" || path.starts_with("/v1/") {
        "of the OpenAI protocol, this server has /v1/chat/completions and /v1/models"
    } else {
        "/api/openapi.json lists all routes"
    }
}

/// The problem as an error of the route's protocol.
fn protocol_error(request: &HttpRequest, problem: Problem) -> actix_web::Error {
    if is_openai(request) { v1::Error::from(problem).into() } else { problem.into() }
}

/// Whether the route belongs to the OpenAI protocol.
fn is_openai(request: &HttpRequest) -> bool {
    request.path() == "/v1" || request.path().starts_with("/v1/")
}

/// Whether the request counts against the rate of its key.
fn is_costly(request: &HttpRequest) -> bool {
    request.method() == Method::POST
        && request.match_pattern().is_some_and(|route| COSTLY_ROUTES.contains(&route.as_str()))
}

/// Parses `limit` (1 to `max`, default 50) and the cursor `after` of a query.
fn parse_page<T>(
    limit: Option<u32>,
    max: u32,
    after: Option<&str>,
    named: impl Fn(&str) -> Result<T, Problem>,
) -> Result<Page<T>, Problem> {
    let limit = match limit {
        None => 50,
        Some(limit) if (1..=max).contains(&limit) => limit,
        Some(limit) => {
            let detail = format!("`limit` = {limit} must be from 1 to {max}");
            return Err(Problem::unprocessable("request.query", detail));
        }
    };
    Ok(Page { limit, after: after.map(named).transpose()? })
}

/// The row after which the next page starts; `None` if this page is not full.
fn next_cursor<T>(rows: &[T], limit: u32) -> Option<&T> {
    rows.last().filter(|_| rows.len() >= limit as usize)
}
