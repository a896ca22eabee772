//! Authentication and authorization: the principal comes from the request's key, or is the configured user if
//! the server requires none.

use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures::future::LocalBoxFuture;
use serde_json::Value;

use super::access_log::{self, RequestNotes};
use super::app::{AnonymousAccess, App};
use super::browser;
use super::problem::Problem;
use crate::ChatRequest;
use crate::access::{AccessAction, AccessVerdict, Ownership, Role, may};
use crate::invisible::is_invisible;
use crate::planner::{Command, CommandAction};
use crate::run::{PlanConstraints, PlanGuidance, RunId, SessionId, TenantId};
use crate::store::{ApiKey, DocumentOwner, OwnerScope};
use crate::trace_context::{TRACEPARENT, TraceParent};

/// The alternative header for a key.
const API_KEY: &str = "x-api-key";

#[derive(Debug, Clone)]
pub(crate) struct RequestPrincipal {
    /// The tenant, which pays.
    pub(crate) tenant: TenantId,
    pub(crate) user: String,
    /// Whether the key must not approve its own user's requests.
    pub(crate) no_own_approval: bool,
    pub(crate) role: Role,
    /// Whether the server has keys. Without keys, every client is treated as the operator.
    pub(crate) keyed: bool,
    /// The request's place in its client's trace.
    pub(crate) trace_parent: Option<TraceParent>,
    /// For the line of the request in the access log.
    notes: RequestNotes,
}

/// The header in which a chatbot names its end user.
const USER_HEADER: &str = "x-user-id";
/// Maximum length of a user's name in characters, as in keys.
const MAX_USER: usize = 128;

impl RequestPrincipal {
    /// A request with this message and default options.
    pub(crate) fn chat_request(self, message: String) -> ChatRequest {
        let (no_own_approval, own_session) = (self.no_own_approval, self.keyed);
        ChatRequest {
            no_own_approval,
            own_session,
            trace_parent: self.trace_parent,
            ..ChatRequest::new(message, self.tenant, self.user)
        }
    }

    /// Returns the constraints and the state that a request gives for its plan; `None` if there are none.
    pub(crate) fn guidance(
        &self,
        constraints: Option<PlanConstraints>,
        current_state: Option<Value>,
    ) -> Option<PlanGuidance> {
        PlanGuidance::of(constraints, current_state, self.role != Role::Service)
    }

    /// Checks whether the principal may start a run, in this conversation if one is named.
    ///
    /// # Errors
    /// `auth.role` (403); `session.unknown` (404) for another user's conversation.
    pub(crate) async fn authorize_chat(&self, app: &App, session: Option<&str>) -> Result<(), Problem> {
        if !self.keyed {
            return Ok(());
        }
        let refused = || Problem::not_found("session", session.unwrap_or_default());
        let Some(session) = session else {
            return self.authorize(AccessAction::Ask, Ownership::Own, refused);
        };
        // An invalid name is reported when the request is parsed.
        let Ok(id) = SessionId::new(session) else {
            return self.authorize(AccessAction::Ask, Ownership::Own, refused);
        };
        let owner = app.engine.store().session_owner(&self.tenant, &id).await?;
        // A new conversation will belong to the user that starts it.
        let whose =
            if owner.is_none_or(|owner| owner == self.user) { Ownership::Own } else { Ownership::Others };
        self.authorize(AccessAction::Ask, whose, refused)
    }

    /// Checks whether the principal may read the tenant's usage.
    ///
    /// # Errors
    /// `auth.role` (403).
    pub(crate) fn authorize_usage(&self) -> Result<(), Problem> {
        self.authorize(AccessAction::ReadUsage, Ownership::Others, || self.forbidden(AccessAction::ReadUsage))
    }

    /// Checks whether the principal may do `action` with the tenant's learned plans.
    ///
    /// # Errors
    /// `auth.role` (403).
    pub(crate) fn authorize_learned(&self, action: AccessAction) -> Result<(), Problem> {
        self.authorize(action, Ownership::Others, || self.forbidden(action))
    }

    /// Checks whether the principal may add documents.
    ///
    /// # Errors
    /// `auth.role` (403).
    pub(crate) fn authorize_upload(&self) -> Result<(), Problem> {
        let action = AccessAction::AddDocument;
        self.authorize(action, Ownership::Own, || self.forbidden(action))
    }

    /// Checks whether the principal may do `action` with a document of `owner`.
    ///
    /// # Errors
    /// `unknown` if it is hidden from the principal; `auth.role` (403).
    pub(crate) fn authorize_document(
        &self,
        owner: &str,
        action: AccessAction,
        unknown: impl FnOnce() -> Problem,
    ) -> Result<(), Problem> {
        let whose = if owner == self.user { Ownership::Own } else { Ownership::Others };
        self.authorize(action, whose, unknown)
    }

    /// Checks whether the principal may do `action` with a run, its plan or its approvals.
    ///
    /// # Errors
    /// `unknown` if the run does not exist or is hidden from the principal; `auth.role` (403).
    pub(crate) async fn authorize_run(
        &self,
        app: &App,
        run: RunId,
        action: AccessAction,
        unknown: impl FnOnce() -> Problem,
    ) -> Result<(), Problem> {
        let Some(owner) = app.engine.store().run_owner(&self.tenant, run).await? else {
            return Err(unknown());
        };
        let whose = match &owner {
            owner if owner.user == self.user => Ownership::Own,
            owner if owner.has_approvals => Ownership::SentForApproval,
            _ => Ownership::Others,
        };
        self.authorize(action, whose, unknown)?;
        self.notes.note_run(run, &owner.session);
        Ok(())
    }

    /// Checks whether the principal may do `action` with a conversation.
    ///
    /// # Errors
    /// As [`RequestPrincipal::authorize_run`].
    pub(crate) async fn authorize_session(
        &self,
        app: &App,
        session: &SessionId,
        action: AccessAction,
    ) -> Result<(), Problem> {
        let unknown = || Problem::not_found("session", session.as_str());
        match app.engine.store().session_owner(&self.tenant, session).await? {
            Some(owner) if owner == self.user => self.authorize(action, Ownership::Own, unknown),
            Some(_) => self.authorize(action, Ownership::Others, unknown),
            None => Err(unknown()),
        }
    }

    pub(crate) fn reads_everything(&self) -> bool {
        may(self.role, AccessAction::Read, Ownership::Others) == AccessVerdict::Allowed
    }

    /// Which runs, plans and approvals the principal sees in lists.
    pub(crate) fn visible_scope(&self) -> OwnerScope {
        let sees = |whose| may(self.role, AccessAction::Read, whose) == AccessVerdict::Allowed;
        if self.reads_everything() {
            OwnerScope::Tenant
        } else if sees(Ownership::SentForApproval) {
            OwnerScope::UserOrWithApprovals(self.user.clone())
        } else {
            OwnerScope::User(self.user.clone())
        }
    }

    /// The user whose conversations the principal sees in lists; `None` for all of the tenant's.
    pub(crate) fn session_owner_filter(&self) -> Option<&str> {
        (!self.reads_everything()).then_some(self.user.as_str())
    }

    /// Whose documents the principal sees.
    pub(crate) fn document_owner(&self) -> DocumentOwner<'_> {
        match self.reads_everything() {
            true => DocumentOwner::anyone(&self.tenant),
            false => DocumentOwner::user(&self.tenant, &self.user),
        }
    }

    fn authorize(
        &self,
        action: AccessAction,
        whose: Ownership,
        unknown: impl FnOnce() -> Problem,
    ) -> Result<(), Problem> {
        match may(self.role, action, whose) {
            AccessVerdict::Allowed => Ok(()),
            AccessVerdict::Forbidden => Err(self.forbidden(action)),
            AccessVerdict::Hidden => Err(unknown()),
        }
    }

    fn forbidden(&self, action: AccessAction) -> Problem {
        let what = match action {
            AccessAction::Ask => "may not start a run here: only a conversation's own user may",
            AccessAction::Read => "may not read this",
            AccessAction::Decide => "may not decide this",
            AccessAction::ModifyPlan => "may not change this",
            AccessAction::Cancel => {
                "may not stop another user's run; an approver can refuse its pending approvals"
            }
            AccessAction::Resume => "may not resume another user's run",
            AccessAction::Erase => "may not erase this",
            AccessAction::ReadUsage => "may not read the tenant's usage",
            AccessAction::Rate => "may not rate this",
            AccessAction::ReadLearned => "may not read learned plans",
            AccessAction::EraseLearned => "may not delete learned plans",
            AccessAction::AddDocument => "may not add documents",
        };
        let detail = format!(
            "a key of the role `{}` {what}; change the role with `proscenium keys set-role`",
            self.role.name()
        );
        Problem::new(StatusCode::FORBIDDEN, "auth.role", detail)
    }

    /// A command of this principal about a run, with an optional reason.
    pub(crate) fn command(&self, action: CommandAction, note: Option<String>) -> Command {
        let (by, no_own_approval) = (self.user.clone(), self.no_own_approval);
        Command { by, note, action, no_own_approval, is_authenticated: self.keyed }
    }
}

impl FromRequest for RequestPrincipal {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            authenticate(&request).await.map_err(|problem| super::protocol_error(&request, problem))
        })
    }
}

/// The key that authenticated a request, stored in the request's extensions.
pub(super) struct PresentedKey(pub(super) Arc<ApiKey>);

/// Authenticates a request, and counts it against the rate of its key if it may ask models. Its body has not been
/// read yet.
///
/// # Errors
/// `auth.…` (401, 403); `key.rate_limited` (429).
pub(crate) async fn authenticate(request: &HttpRequest) -> Result<RequestPrincipal, Problem> {
    let who = find_principal(request).await?;
    let (trace_parent, notes) = (trace_parent(request.headers()), RequestNotes::of(request));
    let who = RequestPrincipal { trace_parent, notes, ..who };
    access_log::note_tenant(request, &who.tenant);
    if super::is_costly(request) {
        app_data(request)?.count_request(request, who.keyed)?;
    }
    Ok(who)
}

async fn find_principal(request: &HttpRequest) -> Result<RequestPrincipal, Problem> {
    let app = app_data(request)?;
    match presented_key(request)? {
        Some(key) => match app.keys.find(&key).await? {
            Some(key) if key.is_expired(jiff::Timestamp::now()) => Err(unauthorized(
                "auth.expired",
                "the API key has expired; create a new one with `proscenium keys create`",
            )),
            Some(key) => {
                let who = RequestPrincipal {
                    user: acting_user(request, key.role, &key.user)?,
                    ..principal_of_key(&key)
                };
                request.extensions_mut().insert(PresentedKey(key));
                Ok(who)
            }
            None => Err(unauthorized("auth.key", "the API key is unknown or was revoked")),
        },
        None if allows_anonymous(app).await? => {
            browser::check_host(&requested_host(request), app.anonymous, &app.options.allowed_hosts)?;
            let (tenant, user) = app.engine.default_principal();
            // If the server has keys, a request without one has only the rights of a user.
            let keyed = app.keys.has_keys().await?;
            let role = if keyed { Role::User } else { Role::Admin };
            let user = if keyed { acting_user(request, role, &user)? } else { user };
            let notes = RequestNotes::default();
            Ok(RequestPrincipal {
                tenant,
                user,
                no_own_approval: false,
                role,
                keyed,
                trace_parent: None,
                notes,
            })
        }
        None => Err(unauthorized(
            "auth.missing",
            "an API key is required: send `Authorization: Bearer psk_…`; create one with `proscenium keys create`",
        )),
    }
}

fn principal_of_key(key: &ApiKey) -> RequestPrincipal {
    RequestPrincipal {
        tenant: key.tenant.clone(),
        user: key.user.clone(),
        no_own_approval: key.no_own_approval,
        role: key.role,
        keyed: true,
        trace_parent: None,
        notes: RequestNotes::default(),
    }
}

/// Reads the header `traceparent`. As the W3C says, one that is malformed, or occurs more than once, is ignored.
fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT);
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()?.parse().ok()
}

/// The user on whose behalf a request is made: the key's own user, or the end user that a chatbot names.
///
/// # Errors
/// `auth.user_header` (403) if the key may not name other users; `request.user` (422) for an invalid name.
fn acting_user(request: &HttpRequest, role: Role, own: &str) -> Result<String, Problem> {
    let mut named = request.headers().get_all(USER_HEADER);
    let Some(value) = named.next() else { return Ok(own.to_owned()) };
    let bad = |what: &str| Problem::unprocessable("request.user", format!("the header `X-User-Id` {what}"));
    if named.next().is_some() {
        return Err(bad("occurs more than once: send it once"));
    }
    let name = std::str::from_utf8(value.as_bytes()).unwrap_or_default().trim();
    if name.is_empty() || name.chars().count() > MAX_USER || name.chars().any(is_invisible) {
        return Err(bad("must have 1 to 128 visible characters (UTF-8)"));
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
pub(crate) fn app_data(request: &HttpRequest) -> Result<&web::Data<App>, Problem> {
    let none = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server.state", "the server has no state");
    request.app_data::<web::Data<App>>().ok_or_else(none)
}

/// Rejects a request with two credentials: it would be ambiguous, and a proxy may have checked the other one.
///
/// # Errors
/// `auth.two_credentials` (400).
pub(super) fn check_single_credential(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get_all(header::AUTHORIZATION).count() + headers.get_all(API_KEY).count() > 1 {
        let detail = "send one credential: either one header `Authorization` or one `X-API-Key`";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "auth.two_credentials", detail));
    }
    Ok(())
}

/// The key of a request: `Authorization: Bearer …`, or `X-API-Key`.
pub(super) fn presented_key(request: &HttpRequest) -> Result<Option<String>, Problem> {
    let headers = request.headers();
    let text =
        |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim().to_owned());
    if let Some(value) = text(header::AUTHORIZATION.as_str()) {
        return match value.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(own_key(key.trim())),
            _ => Err(unauthorized("auth.scheme", "the header `Authorization` must be `Bearer` and a key")),
        };
    }
    Ok(text(API_KEY).as_deref().and_then(own_key))
}

/// Returns the key if it has this server's prefix. OpenAI clients always send a key, often a dummy one, so
/// other keys are ignored.
fn own_key(key: &str) -> Option<String> {
    key.starts_with("psk_").then(|| key.to_owned())
}

async fn allows_anonymous(app: &App) -> Result<bool, Problem> {
    Ok(match app.anonymous {
        AnonymousAccess::Always => true,
        AnonymousAccess::Never => false,
        AnonymousAccess::UntilKeys => !app.keys.has_keys().await?,
    })
}

/// The host of a request. Forwarding headers such as `X-Forwarded-Host` are ignored: clients can forge them.
pub(super) fn requested_host(request: &HttpRequest) -> String {
    let named = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let header =
        || request.headers().get(header::HOST).and_then(|value| value.to_str().ok()).map(str::to_owned);
    named.or_else(header).unwrap_or_default()
}

fn unauthorized(code: &str, detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}
