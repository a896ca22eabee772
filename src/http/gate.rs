//! What is looked at before any handler: the size of the headers. And how long a connection is answered.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::middleware::Next;
use actix_web::{Error, web};

use super::app::App;
use super::line::Busy;
use super::problem::Problem;

/// Refuses headers that are larger than configured.
///
/// # Errors
/// `request.headers_too_large` (431).
pub(crate) async fn gate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let most = request.app_data::<web::Data<App>>().map_or(usize::MAX, |app| app.options.max_header_bytes);
    let size: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let size = size.saturating_add(request.uri().path_and_query().map_or(0, |path| path.as_str().len()));
    if size > most {
        let detail =
            format!("the headers have {size} bytes; at most {most} are taken (server.max_header_bytes)");
        let problem =
            Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "request.headers_too_large", detail);
        return Err(super::refusal(request.request(), problem));
    }
    let busy = Busy::begin(request.request());
    let response = next.call(request).await?;
    Ok(match busy {
        Some(busy) => response.map_body(|_, body| busy.until(body).boxed()),
        None => response.map_into_boxed_body(),
    })
}
