//! Authentication and authorization: the principal comes from the request's key, or is the configured user if
//! the server requires none.

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
use crate::access::{Action, Role, Verdict, Whose, may};
use crate::planner::{Command, CommandAction};
use crate::run::{RunId, SessionId, TenantId};
use crate::store::{ApiKey, Scope};

/// The alternative header for a key.
const API_KEY: &str = "x-api-key";

/// The principal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    /// The tenant, which pays.
    pub(crate) tenant: TenantId,
    /// The user.
    pub(crate) user: String,
    /// Whether the key must not approve its own user's requests.
    pub(crate) no_own_approval: bool,
    /// The role.
    pub(crate) role: Role,
    /// Whether the server has keys. Without keys, every client is treated as the operator.
    pub(crate) keyed: bool,
}

/// The header in which a chatbot names its end user.
const USER_HEADER: &str = "x-user-id";
/// Maximum length of a user's name in characters, as in keys.
const MAX_USER: usize = 128;

impl Who {
    /// A request with this message and default options.
    pub(crate) fn asks(self, message: String) -> ChatRequest {
        let (no_own_approval, own_session) = (self.no_own_approval, self.keyed);
        ChatRequest { no_own_approval, own_session, ..ChatRequest::new(message, self.tenant, self.user) }
    }

    /// Checks whether the principal may start a run, in this conversation if one is named.
    ///
    /// # Errors
    /// `auth.role` (403); `session.unknown` (404) for another user's conversation.
    pub(crate) async fn may_ask(&self, app: &App, session: Option<&str>) -> Result<(), Problem> {
        if !self.keyed {
            return Ok(());
        }
        let refused = || Problem::unknown("session", session.unwrap_or_default());
        let Some(session) = session else { return self.judged(Action::Ask, Whose::Own, refused) };
        // An invalid name is reported when the request is parsed.
        let Ok(id) = SessionId::new(session) else { return self.judged(Action::Ask, Whose::Own, refused) };
        let owner = app.engine.store().session_owner(&self.tenant, &id).await?;
        // A new conversation will belong to the user that starts it.
        let whose = if owner.is_none_or(|owner| owner == self.user) { Whose::Own } else { Whose::Others };
        self.judged(Action::Ask, whose, refused)
    }

    /// Checks whether the principal may read the tenant's usage.
    ///
    /// # Errors
    /// `auth.role` (403).
    pub(crate) fn may_read_usage(&self) -> Result<(), Problem> {
        self.judged(Action::ReadUsage, Whose::Others, || self.refused(Action::ReadUsage))
    }

    /// Checks whether the principal may do `action` with a run, its plan or its approvals.
    ///
    /// # Errors
    /// `unknown` if the run does not exist or is hidden from the principal; `auth.role` (403).
    pub(crate) async fn may_with_run(
        &self,
        app: &App,
        run: RunId,
        action: Action,
        unknown: impl FnOnce() -> Problem,
    ) -> Result<(), Problem> {
        let Some(owner) = app.engine.store().run_owner(&self.tenant, run).await? else {
            return Err(unknown());
        };
        let whose = match owner {
            owner if owner.user == self.user => Whose::Own,
            owner if owner.put => Whose::PutToPeople,
            _ => Whose::Others,
        };
        self.judged(action, whose, unknown)
    }

    /// Checks whether the principal may do `action` with a conversation.
    ///
    /// # Errors
    /// As [`RequestPrincipal::authorize_run`].
    pub(crate) async fn may_with_session(
        &self,
        app: &App,
        session: &SessionId,
        action: Action,
    ) -> Result<(), Problem> {
        let unknown = || Problem::unknown("session", session.as_str());
        match app.engine.store().session_owner(&self.tenant, session).await? {
            Some(owner) if owner == self.user => self.judged(action, Whose::Own, unknown),
            Some(_) => self.judged(action, Whose::Others, unknown),
            None => Err(unknown()),
        }
    }

    /// Which runs, plans and approvals the principal sees in lists.
    pub(crate) fn scope(&self) -> Scope {
        let sees = |whose| may(self.role, Action::Read, whose) == Verdict::Allowed;
        if sees(Whose::Others) {
            Scope::Tenant
        } else if sees(Whose::PutToPeople) {
            Scope::UserAndPut(self.user.clone())
        } else {
            Scope::User(self.user.clone())
        }
    }

    /// The user whose conversations the principal sees in lists; `None` for all of the tenant's.
    pub(crate) fn sessions_of(&self) -> Option<&str> {
        let all = may(self.role, Action::Read, Whose::Others) == Verdict::Allowed;
        (!all).then_some(self.user.as_str())
    }

    fn judged(&self, action: Action, whose: Whose, unknown: impl FnOnce() -> Problem) -> Result<(), Problem> {
        match may(self.role, action, whose) {
            Verdict::Allowed => Ok(()),
            Verdict::Refused => Err(self.refused(action)),
            Verdict::Unseen => Err(unknown()),
        }
    }

    fn refused(&self, action: Action) -> Problem {
        let what = match action {
            Action::Ask => "may not start a run here: only a conversation's own user may",
            Action::Read => "may not read this",
            Action::Decide => "may not decide this",
            Action::Change => "may not change this",
            Action::Stop => "may not stop another user's run; an approver can refuse its pending approvals",
            Action::Resume => "may not resume another user's run",
            Action::Erase => "may not erase this",
            Action::ReadUsage => "may not read the tenant's usage",
        };
        let detail = format!(
            "a key of the role `{}` {what}; change the role with `proscenium keys set-role`",
            self.role.name()
        );
        Problem::new(StatusCode::FORBIDDEN, "auth.role", detail)
    }

    /// A command of this principal about a run, with an optional reason.
    pub(crate) fn wants(&self, wish: CommandAction, note: Option<String>) -> Command {
        let (by, no_own_approval) = (self.user.clone(), self.no_own_approval);
        Command { by, note, action: wish, no_own_approval, is_authenticated: self.keyed }
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

/// The key that authenticated a request, stored in the request's extensions.
pub(super) struct Presented(pub(super) Arc<ApiKey>);

/// Authenticates a request.
pub(crate) async fn who(request: &HttpRequest) -> Result<Who, Problem> {
    let app = app(request)?;
    match presented(request)? {
        Some(key) => match app.keys.find(&key).await? {
            Some(key) if key.is_expired(jiff::Timestamp::now()) => Err(unauthorized(
                "auth.expired",
                "the API key has expired; create a new one with `proscenium keys create`",
            )),
            Some(key) => {
                let who = Who { user: acts_as(request, key.role, &key.user)?, ..of_key(&key) };
                request.extensions_mut().insert(Presented(key));
                Ok(who)
            }
            None => Err(unauthorized("auth.key", "the API key is unknown or was revoked")),
        },
        None if is_open(app).await? => {
            browser::reached_by(&host(request), app.anonymous, &app.options.allowed_hosts)?;
            let (tenant, user) = app.engine.default_principal();
            // If the server has keys, a request without one has only the rights of a user.
            let keyed = app.keys.any().await?;
            let role = if keyed { Role::User } else { Role::Admin };
            let user = if keyed { acts_as(request, role, &user)? } else { user };
            Ok(Who { tenant, user, no_own_approval: false, role, keyed })
        }
        None => Err(unauthorized(
            "auth.missing",
            "an API key is required: send `Authorization: Bearer psk_…`; create one with `proscenium keys create`",
        )),
    }
}

fn of_key(key: &ApiKey) -> Who {
    Who {
        tenant: key.tenant.clone(),
        user: key.user.clone(),
        no_own_approval: key.no_own_approval,
        role: key.role,
        keyed: true,
    }
}

/// The user on whose behalf a request is made: the key's own user, or the end user that a chatbot names.
///
/// # Errors
/// `auth.user_header` (403) if the key may not name other users; `request.user` (422) for an invalid name.
fn acts_as(request: &HttpRequest, role: Role, own: &str) -> Result<String, Problem> {
    let mut named = request.headers().get_all(USER_HEADER);
    let Some(value) = named.next() else { return Ok(own.to_owned()) };
    let bad = |what: &str| Problem::unprocessable("request.user", format!("the header `X-User-Id` {what}"));
    if named.next().is_some() {
        return Err(bad("occurs more than once: send it once"));
    }
    let name = std::str::from_utf8(value.as_bytes()).unwrap_or_default().trim();
    if name.is_empty() || name.chars().count() > MAX_USER || name.chars().any(char::is_control) {
        return Err(bad("must have 1 to 128 printable characters (UTF-8)"));
    }
    if role == Role::Service || name == own {
        return Ok(name.to_owned());
    }
    let detail = format!(
        "the header `X-User-Id` names a user other than the key's, which requires a key of the role `service`; \
         this key has the role `{}`: remove the header",
        role.name()
    );
    Err(Problem::new(StatusCode::FORBIDDEN, "auth.user_header", detail))
}

/// The state that handlers share.
pub(crate) fn app(request: &HttpRequest) -> Result<&web::Data<App>, Problem> {
    let none = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.state", "the server has no state");
    request.app_data::<web::Data<App>>().ok_or_else(none)
}

/// Rejects a request with two credentials: it would be ambiguous, and a proxy may have checked the other one.
///
/// # Errors
/// `auth.two_credentials` (400).
pub(super) fn one_credential(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(header::AUTHORIZATION).count() + headers.get_all(API_KEY).count() > 1 {
        let detail = "send one credential: either one header `Authorization` or one `X-API-Key`";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "auth.two_credentials", detail));
    }
    Ok(())
}

/// The key of a request: `Authorization: Bearer …`, or `X-API-Key`.
pub(super) fn presented(request: &HttpRequest) -> Result<Option<String>, Problem> {
    let headers = request.headers();
    let text =
        |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim().to_owned());
    if let Some(value) = text(header::AUTHORIZATION.as_str()) {
        return match value.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(ours(key.trim())),
            _ => Err(unauthorized("auth.scheme", "the header `Authorization` must be `Bearer` and a key")),
        };
    }
    Ok(text(API_KEY).as_deref().and_then(ours))
}

/// Returns the key if it has this server's prefix. OpenAI clients always send a key, often a dummy one, so
/// other keys are ignored.
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

/// The host of a request. Forwarding headers such as `X-Forwarded-Host` are ignored: clients can forge them.
pub(super) fn host(request: &HttpRequest) -> String {
    let named = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let header =
        || request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).map(str::to_owned);
    named.or_else(header).unwrap_or_default()
}

fn unauthorized(code: &str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}
