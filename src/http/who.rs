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
use crate::access::{Action, Role, Verdict, Whose, may};
use crate::planner::{Command, Wish};
use crate::run::{RunId, SessionId, TenantId};
use crate::store::{ApiKey, Scope};

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
    /// What they may do.
    pub(crate) role: Role,
    /// Whether keys tell who asks. Where there are none, whoever reaches the server is its operator.
    pub(crate) keyed: bool,
}

/// The header in which the key of a chatbot names its end user.
const USER_HEADER: &str = "x-user-id";
/// Most characters of a user's name, as of a key's.
const MAX_USER: usize = 128;

impl Who {
    /// A request with these words, and nothing else said of it.
    pub(crate) fn asks(self, message: String) -> ChatRequest {
        let (no_own_approval, own_session) = (self.no_own_approval, self.keyed);
        ChatRequest { no_own_approval, own_session, ..ChatRequest::new(message, self.tenant, self.user) }
    }

    /// Whether they may start a run, in this conversation where one is named.
    ///
    /// # Errors
    /// `auth.role` (403); `session.unknown` (404) for another user's conversation.
    pub(crate) async fn may_ask(&self, app: &App, session: Option<&str>) -> Result<(), Problem> {
        if !self.keyed {
            return Ok(());
        }
        let refused = || Problem::unknown("session", session.unwrap_or_default());
        let Some(session) = session else { return self.judged(Action::Ask, Whose::Own, refused) };
        // What is no name is told when the request is read.
        let Ok(id) = SessionId::new(session) else { return self.judged(Action::Ask, Whose::Own, refused) };
        let owner = app.engine.store().session_owner(&self.tenant, &id).await?;
        // One that is not there yet is whoever's begins it.
        let whose = if owner.is_none_or(|owner| owner == self.user) { Whose::Own } else { Whose::Others };
        self.judged(Action::Ask, whose, refused)
    }

    /// Whether they may read what their tenant has used.
    ///
    /// # Errors
    /// `auth.role` (403).
    pub(crate) fn may_read_usage(&self) -> Result<(), Problem> {
        self.judged(Action::ReadUsage, Whose::Others, || self.refused(Action::ReadUsage))
    }

    /// Whether they may do something with a run, its plan, or what was put to people in it.
    ///
    /// # Errors
    /// `unknown` for what is not there, or not for them to see; `auth.role` (403).
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

    /// Whether they may do something with a conversation.
    ///
    /// # Errors
    /// As [`Who::may_with_run`].
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

    /// Which runs, plans and approvals lists show them.
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

    /// Whose conversations lists show them; all of the tenant's where nobody's are named.
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
            Action::Ask => {
                "may not ask here: runs are started by their own user, in that user's conversations"
            }
            Action::Read => "may not read this",
            Action::Decide => "may not decide this",
            Action::Change => "may not change this",
            Action::Stop => "may not stop another user's run; an approver says no to what waits in it",
            Action::Resume => "may not carry another user's run on",
            Action::Erase => "may not erase this",
            Action::ReadUsage => "may not read what the tenant has used",
        };
        let detail = format!(
            "a key of the role `{}` {what}; `proscenium keys set-role` gives it another role",
            self.role.name()
        );
        Problem::new(StatusCode::FORBIDDEN, "auth.role", detail)
    }

    /// What they want done with a run, and why in their own words.
    pub(crate) fn wants(&self, wish: Wish, note: Option<String>) -> Command {
        let (by, no_own_approval) = (self.user.clone(), self.no_own_approval);
        Command { by, note, wish, no_own_approval, keyed: self.keyed }
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
            Some(key) if key.is_expired(jiff::Timestamp::now()) => Err(unauthorized(
                "auth.expired",
                "the API key has expired; `proscenium keys create` makes another one",
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
            // Where there are keys, who sends none is no more than a user.
            let keyed = app.keys.any().await?;
            let role = if keyed { Role::User } else { Role::Admin };
            let user = if keyed { acts_as(request, role, &user)? } else { user };
            Ok(Who { tenant, user, no_own_approval: false, role, keyed })
        }
        None => Err(unauthorized(
            "auth.missing",
            "an API key is needed: send `Authorization: Bearer psk_…`; `proscenium keys create` makes one",
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

/// Whom a request acts for: the key's own user, or the end user that a chatbot's key names.
///
/// # Errors
/// `auth.user_header` (403) where another key names somebody else; `request.user` (422) for what is no name.
fn acts_as(request: &HttpRequest, role: Role, own: &str) -> Result<String, Problem> {
    let mut named = request.headers().get_all(USER_HEADER);
    let Some(value) = named.next() else { return Ok(own.to_owned()) };
    let bad = |what: &str| Problem::unprocessable("request.user", format!("the header `X-User-Id` {what}"));
    if named.next().is_some() {
        return Err(bad("is there more than once: send it once"));
    }
    let name = std::str::from_utf8(value.as_bytes()).unwrap_or_default().trim();
    if name.is_empty() || name.chars().count() > MAX_USER || name.chars().any(char::is_control) {
        return Err(bad("must have 1 to 128 printable characters (UTF-8)"));
    }
    if role == Role::Service || name == own {
        return Ok(name.to_owned());
    }
    let detail = format!(
        "the header `X-User-Id` names another user than the key's, which only a key of the role `service` may; \
         this one has the role `{}`: leave the header out",
        role.name()
    );
    Err(Problem::new(StatusCode::FORBIDDEN, "auth.user_header", detail))
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
