//! Who asks: from the key that a request carries, or the configured user where none is needed.

use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures::future::LocalBoxFuture;

use super::app::{Anonymous, App};
use super::browser;
use super::problem::Problem;
use crate::ChatRequest;
use crate::planner::{Command, Wish};
use crate::run::TenantId;
use crate::store::ApiKey;

/// The other header that may carry a key.
const API_KEY: &str = "x-api-key";

/// The principal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    /// Who pays.
    pub(crate) tenant: TenantId,
    /// Who asks.
    pub(crate) user: String,
    /// Whether the key may not approve what its own user has asked for.
    pub(crate) no_own_approval: bool,
}

impl Who {
    /// A request with these words, and nothing else said of it.
    pub(crate) fn asks(self, message: String) -> ChatRequest {
        let no_own_approval = self.no_own_approval;
        ChatRequest { no_own_approval, ..ChatRequest::new(message, self.tenant, self.user) }
    }

    /// What they want done with a run, and why in their own words.
    pub(crate) fn wants(&self, wish: Wish, note: Option<String>) -> Command {
        Command { by: self.user.clone(), note, wish, no_own_approval: self.no_own_approval }
    }
}

impl FromRequest for Who {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { who(&request).await.map_err(|problem| super::refusal(&request, problem)) })
    }
}

/// The key that a request was let in with, beside the request.
pub(super) struct Presented(pub(super) Arc<ApiKey>);

/// Who sends this request.
pub(crate) async fn who(request: &HttpRequest) -> Result<Who, Problem> {
    let app = app(request)?;
    match presented(request)? {
        Some(key) => match app.keys.find(&key).await? {
            Some(key) => {
                request.extensions_mut().insert(Presented(key.clone()));
                Ok(Who {
                    tenant: key.tenant.clone(),
                    user: key.user.clone(),
                    no_own_approval: key.no_own_approval,
                })
            }
            None => Err(unauthorized("auth.key", "the API key is unknown or was revoked")),
        },
        None if is_open(app).await? => {
            browser::reached_by(&host(request), app.anonymous, &app.options.allowed_hosts)?;
            let (tenant, user) = app.engine.default_principal();
            Ok(Who { tenant, user, no_own_approval: false })
        }
        None => Err(unauthorized(
            "auth.missing",
            "an API key is needed: send `Authorization: Bearer psk_…`; `proscenium keys create` makes one",
        )),
    }
}

/// What every handler works with.
pub(crate) fn app(request: &HttpRequest) -> Result<&web::Data<App>, Problem> {
    let none = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.state", "the server has no state");
    request.app_data::<web::Data<App>>().ok_or_else(none)
}

/// A request has one credential: of two, nobody knows in whose name it is, and a proxy may have looked at
/// the other one.
///
/// # Errors
/// `auth.two_credentials` (400).
pub(super) fn one_credential(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(header::AUTHORIZATION).count() + headers.get_all(API_KEY).count() > 1 {
        let detail = "send one credential: one header `Authorization`, or one `X-API-Key`, and not both";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "auth.two_credentials", detail));
    }
    Ok(())
}

/// The key that a request carries: `Authorization: Bearer …`, or `X-API-Key`.
pub(super) fn presented(request: &HttpRequest) -> Result<Option<String>, Problem> {
    let headers = request.headers();
    let text =
        |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim().to_owned());
    if let Some(value) = text(header::AUTHORIZATION.as_str()) {
        return match value.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(ours(key.trim())),
            _ => Err(unauthorized("auth.scheme", "the header `Authorization` must say `Bearer` and a key")),
        };
    }
    Ok(text(API_KEY).as_deref().and_then(ours))
}

/// Clients of the OpenAI protocol always send a key, often a made-up one where a server wants none. Only
/// what looks like one of ours is held to be one.
fn ours(key: &str) -> Option<String> {
    key.starts_with("psk_").then(|| key.to_owned())
}

async fn is_open(app: &App) -> Result<bool, Problem> {
    Ok(match app.anonymous {
        Anonymous::Always => true,
        Anonymous::Never => false,
        Anonymous::UntilKeys => !app.keys.any().await?,
    })
}

/// The host that a request names: of the request itself, since a header such as `X-Forwarded-Host` is
/// anybody's to write.
pub(super) fn host(request: &HttpRequest) -> String {
    let named = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let header =
        || request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).map(str::to_owned);
    named.or_else(header).unwrap_or_default()
}

fn unauthorized(code: &str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}
