//! The access log (`server.access_log`): one log line a request, when the last byte of its reply was handed to the
//! connection, or when its client has gone.
//!
//! A line has nothing of a path, a query, a header or a body, which hold keys and texts of users, except ids: that of a run, and
//! A line contains nothing of a path, a query, a header or a body, because these contain keys and texts of users. The
//! exception are ids: that of a run, and the name of its conversation, which a client may have chosen from a few
//! allowed characters.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, web};
use tracing::field::display;

use super::app::App;
use super::problem::Problem;
use super::v1;
use crate::run::{RunId, SessionId, TenantId};

/// The target of these lines, which is logged whatever the level.
const TARGET: &str = "proscenium::access";

/// The status in the line of a request whose client went away before it was answered, as in the log of nginx.
const CLIENT_GONE: u16 = 499;

/// The status in the line of a request whose handler panicked, which ends its connection without a reply.
const PANICKED: u16 = 500;

/// Notes about a request while it is worked on, for its line.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestNotes(Rc<RefCell<NotedIds>>);

impl RequestNotes {
    /// The notes of a request. If requests are not logged, nobody reads them.
    pub(super) fn of(request: &HttpRequest) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_default()
    }

    /// Notes the run that the request is about.
    pub(super) fn note_run(&self, run: RunId, session: &SessionId) {
        let mut ids = self.0.borrow_mut();
        (ids.run, ids.session) = (Some(run), Some(session.clone()));
    }
}

#[derive(Debug, Default)]
struct NotedIds {
    tenant: Option<TenantId>,
    run: Option<RunId>,
    session: Option<SessionId>,
}

pub(super) fn note_tenant(request: &HttpRequest, tenant: &TenantId) {
    if let Some(notes) = request.extensions().get::<RequestNotes>() {
        notes.0.borrow_mut().tenant = Some(tenant.clone());
    }
}

/// Notes the run that the request started or joined.
pub(super) fn note_run(request: &HttpRequest, run: RunId, session: &SessionId) {
    RequestNotes::of(request).note_run(run, session);
}

/// The line of a request, which is logged when this is dropped.
pub(super) struct RequestLine {
    began: Instant,
    method: &'static str,
    /// The pattern of the route; absent if there is none.
    route: Option<String>,
    notes: RequestNotes,
    /// The status and the code of the reply, once there is one.
    reply: Option<(u16, Option<String>)>,
    /// Bytes of the body so far.
    bytes: u64,
    is_whole: bool,
}

impl RequestLine {
    /// The line of a request whose headers have been read; `None` if requests are not logged.
    pub(super) fn begin(request: &ServiceRequest) -> Option<Self> {
        request.app_data::<web::Data<App>>().filter(|app| app.options.access_log)?;
        let notes = RequestNotes::default();
        request.extensions_mut().insert(notes.clone());
        Some(Self {
            began: Instant::now(),
            method: known_method(request.method()),
            route: request.match_pattern(),
            notes,
            reply: None,
            bytes: 0,
            is_whole: false,
        })
    }

    /// Notes an error that the framework makes a reply of.
    pub(super) fn fail(&mut self, error: &actix_web::Error) {
        self.reply = Some((error.as_response_error().status_code().as_u16(), code_of(error)));
        self.is_whole = true;
    }

    /// The body of the reply, at whose end the line is logged.
    pub(super) fn follow(mut self, response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
        let head = response.response();
        self.reply = Some((head.status().as_u16(), head.error().and_then(code_of)));
        let header = |name: &str| head.headers().get(name).and_then(|value| value.to_str().ok());
        let mut ids = self.notes.0.borrow_mut();
        // The id in the path of a request is the client's own.
        let run = header("x-run-id").and_then(|run| run.parse().ok());
        ids.run = run.or(ids.run);
        if let Some(session) = header("x-session-id").and_then(|session| SessionId::new(session).ok()) {
            ids.session = Some(session);
        }
        drop(ids);
        response.map_body(|_, body| LoggedBody { size: body.size(), body, line: self }.boxed())
    }
}

impl Drop for RequestLine {
    fn drop(&mut self) {
        let Self { began, method, route, notes, reply, bytes, is_whole } = self;
        let unanswered = if std::thread::panicking() { PANICKED } else { CLIENT_GONE };
        let (status, code) = reply.take().unwrap_or((unanswered, None));
        let ms = began.elapsed().as_micros() as f64 / 1000.0;
        let ids = notes.0.borrow();
        let (tenant, run) = (ids.tenant.as_ref().map(display), ids.run.as_ref().map(display));
        let session = ids.session.as_ref().map(display);
        let cut = (!*is_whole).then_some(true);
        let route = route.as_deref().unwrap_or("other");
        tracing::info!(target: TARGET, method, route, status, ms, bytes, code, cut, run, session, tenant, "request");
    }
}

/// The name of a known method. Other method names are chosen by the client.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The stable code of an error.
fn code_of(error: &actix_web::Error) -> Option<String> {
    let problem = error.as_error::<Problem>().map(|problem| problem.code.to_string());
    problem.or_else(|| error.as_error::<v1::Error>().map(|error| error.code().to_owned()))
}

/// The body of a reply whose request is logged at its end.
struct LoggedBody {
    body: BoxBody,
    size: BodySize,
    line: RequestLine,
}

impl MessageBody for LoggedBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let next = ready!(Pin::new(&mut self.body).poll_next(cx));
        match &next {
            Some(Ok(bytes)) => self.line.bytes += bytes.len() as u64,
            Some(Err(_)) => {}
            None => self.line.is_whole = true,
        }
        Poll::Ready(next)
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        // The framework reads a body of known size no further than to its end.
        self.line.is_whole |= match self.size {
            BodySize::None => true,
            BodySize::Sized(size) => self.line.bytes >= size,
            BodySize::Stream => false,
        };
    }
}
