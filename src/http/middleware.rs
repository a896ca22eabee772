//! Middleware around all handlers. Before: the size of the headers, the credentials, the origin. After:
//! security headers, tracking of the connection, the end of streams whose key is revoked, and the access log.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, web};

use super::access_log::RequestLine;
use super::app::App;
use super::connections::InFlightGuard;
use super::principal::{self, PresentedKey};
use super::problem::Problem;
use super::revocation::RevocableBody;
use super::{browser, sse};

/// Counts each request once it has a reply, or was left by its client.
///
/// # Errors
/// The errors of the middleware and handlers within.
pub(crate) async fn count_request(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let app = request.app_data::<web::Data<App>>().cloned();
    let exchange = app.as_ref().map(|app| {
        app.http_metrics.begin(request.method().as_str(), request.request().match_pattern().as_deref())
    });
    let result = next.call(request).await;
    if let Some(exchange) = exchange {
        let status = match &result {
            Ok(response) => response.status(),
            Err(error) => error.as_response_error().status_code(),
        };
        exchange.end(status.as_str());
    }
    result
}

/// Rejects requests that no handler should see, and completes every reply.
///
/// # Errors
/// `request.headers_too_large` (431), `auth.two_credentials` (400), `auth.origin` (403), as replies.
pub(crate) async fn guard_request(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let Some(mut line) = RequestLine::begin(&request) else { return guarded(request, next).await };
    match guarded(request, next).await {
        Ok(response) => Ok(line.follow(response)),
        Err(error) => {
            line.fail(&error);
            Err(error)
        }
    }
}

async fn guarded(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let app = request.app_data::<web::Data<App>>();
    let page = app.and_then(|app| browser::allowed_origin(request.headers(), &app.options.allowed_origins));
    let preflight = page.as_ref().and_then(|_| browser::preflight_reply(request.method(), request.headers()));
    let mut response = match preflight {
        Some(reply) => request.into_response(reply),
        None => checked(request, next, page.is_some()).await?,
    };
    set_security_headers(response.headers_mut());
    if let Some(page) = page {
        browser::allow_reading(response.headers_mut(), page);
    }
    Ok(response)
}

/// Handles a request that passes the checks. `from_allowed_page` if a page of `server.allowed_origins` sent it.
async fn checked(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
    from_allowed_page: bool,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if let Err(problem) = check_request(request.request(), from_allowed_page) {
        let refusal = super::protocol_error(request.request(), problem);
        return Ok(request.into_response(HttpResponse::from_error(refusal)));
    }
    let busy = InFlightGuard::begin(request.request());
    let is_head = request.method() == Method::HEAD;
    let mut response = next.call(request).await?.map_into_boxed_body();
    if is_head {
        response = response.map_body(|_, body| OmittedBody(body.size()).boxed());
    }
    let response = end_when_revoked(response);
    Ok(match busy {
        Some(busy) => response.map_body(|_, body| busy.wrap_body(body).boxed()),
        None => response,
    })
}

/// The body of a reply to HEAD: of the size that GET would get, and without a byte. A stream of events ends at once.
struct OmittedBody(BodySize);

impl MessageBody for OmittedBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.0
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}

fn check_request(request: &HttpRequest, from_allowed_page: bool) -> Result<(), Problem> {
    let Some(app) = request.app_data::<web::Data<App>>() else { return Ok(()) };
    let headers = request.headers();
    check_header_size(request, app.options.max_header_bytes)?;
    principal::check_single_credential(headers)?;
    // A page of another origin cannot send a key without a CORS preflight, which only allowed origins pass.
    if from_allowed_page || matches!(principal::presented_key(request), Ok(Some(_))) {
        return Ok(());
    }
    browser::check_origin(
        request.method(),
        headers,
        &principal::requested_host(request),
        &app.options.allowed_hosts,
    )
}

fn check_header_size(request: &HttpRequest, max: usize) -> Result<(), Problem> {
    let size: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let size = size.saturating_add(request.uri().path_and_query().map_or(0, |path| path.as_str().len()));
    if size <= max {
        return Ok(());
    }
    let detail = format!("the headers have {size} bytes; the limit is {max} (server.max_header_bytes)");
    Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "request.headers_too_large", detail))
}

/// Replies belong to one user: caches must not store them, and browsers must not guess their type.
fn set_security_headers(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Makes an event stream that was opened with a key end when the key is revoked.
fn end_when_revoked(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let media = response.headers().get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    let request = response.request().clone();
    let held = {
        let extensions = request.extensions();
        let key = extensions.get::<PresentedKey>().filter(|_| media == Some(sse::MEDIA_TYPE));
        let app = request.app_data::<web::Data<App>>();
        key.zip(app).map(|(key, app)| app.keys.hold(&key.0))
    };
    match held {
        Some(held) => response.map_body(|_, body| RevocableBody::new(&request, body, held).boxed()),
        None => response,
    }
}
