//! Errors on `/api`: RFC 9457 problem documents with a stable `code`.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::planner::CommandRefusal;
use crate::run::{Fault, FaultClass};

/// The media type of problem documents.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Default `Retry-After`, in seconds.
const DEFAULT_RETRY_AFTER_S: u32 = 1;

/// Codes of 429 and 503 after which waiting helps only if the fault says how long: budgets that do not renew, attempts
/// that are larger than a limit, and states that only people can change.
const WITHOUT_DEFAULT_WAIT: &[&str] =
    &["budget.exceeded", "level.basic", "limits.exceeded", "llm.disabled", "llm.quota", "tool.disabled"];

/// An error reply (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The kind of problem, as a URI: `urn:proscenium:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(rename = "type", value_type = String)]
    pub kind: Box<str>,
    /// The HTTP status in words.
    #[schema(value_type = String)]
    pub title: Box<str>,
    /// The HTTP status.
    pub status: u16,
    /// The problem, its place, and the remedy.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// Stable, such as `request.too_deep`.
    #[schema(value_type = String)]
    pub code: Box<str>,
    /// The run, if the request had been accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub run_id: Option<crate::run::RunId>,
    /// The answer document of the run before it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub document: Option<Box<Value>>,
    /// How the current state differs from what the client had seen, one line per difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub difference: Option<Box<DifferenceLines>>,
    /// Seconds to wait before a retry; also in the header `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub retry_after: Option<u32>,
    /// The field of the body or query that is wrong, for protocols that name it apart.
    #[serde(skip)]
    #[schema(ignore)]
    pub param: Option<Box<String>>,
}

/// How the current state differs from what the client had seen, one line per difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DifferenceLines(Vec<String>);

impl Problem {
    /// A problem with this status, code and detail.
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        let is_short = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
            && !WITHOUT_DEFAULT_WAIT.contains(&code);
        let retry_after = is_short.then_some(DEFAULT_RETRY_AFTER_S);
        Self {
            kind: format!("urn:proscenium:problem:{code}").into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into().into(),
            code: code.into(),
            run_id: None,
            document: None,
            difference: None,
            retry_after,
            param: None,
        }
    }

    /// The tenant has no such thing. Another tenant's things give the same reply.
    pub fn not_found(what: &str, id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        let all = match what {
            "flow" => "; GET /api/planning/flows lists all",
            "scene" => "; GET /api/scenes lists all",
            _ => "",
        };
        let detail = format!("there is no {what} `{id}`{all}");
        Self::new(StatusCode::NOT_FOUND, &format!("{what}.unknown"), detail)
    }

    /// A request that is well-formed and cannot be accepted: 422.
    pub fn unprocessable(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Codes that the client can correct, by status.
const CORRECTABLE: &[(StatusCode, &[&str])] = &[
    (StatusCode::PAYLOAD_TOO_LARGE, &["request.too_long", "plan.too_large", "document.too_large"]),
    (
        StatusCode::UNPROCESSABLE_ENTITY,
        &[
            "request.idempotency_conflict",
            "approval.arguments",
            "approval.choice",
            "approval.note_too_long",
            "fact.claim",
            "document.empty",
            "document.encoding",
            "document.name",
            "plan.invalid",
            "plan.no_feedback",
            "plan.not_modified",
            "plan.unchanged",
        ],
    ),
    (StatusCode::FORBIDDEN, &["approval.own_request", "fact.user"]),
    (
        StatusCode::CONFLICT,
        &[
            "store.session_busy",
            "approval.ambiguous",
            "approval.changed",
            "approval.decided",
            "approval.lapsed",
            "fact.kind",
            "fact.superseded",
            "document.in_use",
            "document.too_many",
            "plan.active",
            "plan.history_full",
            "plan.too_many_versions",
            "plan.illegal_transition",
            "plan.preflight",
            "plan.not_changeable",
            "plan.not_ended",
            "plan.not_made",
            "plan.too_many_ratings",
            "plan.version_required",
            "run.ended",
            "run.not_now",
            "run.not_resumable",
            "run.restored",
        ],
    ),
    (StatusCode::NOT_FOUND, &["run.not_found", "session.unknown", "document.deleted"]),
];

/// Codes of errors after which a later attempt may succeed, and of work that takes too long or too much, by status.
const TRANSIENT: &[(StatusCode, &[&str])] = &[
    (
        StatusCode::TOO_MANY_REQUESTS,
        &[
            "run.too_many_commands", "session.queue_full", "budget.exceeded", "limits.exceeded",
            "llm.rate_limited", "llm.quota",
        ],
    ),
    (
        StatusCode::SERVICE_UNAVAILABLE,
        &[
            "engine.busy", "engine.stopped", "engine.sessions_full", "run.not_reached", "session.behind",
            "summary.busy", "store.busy", "store.stopped", "store.locked", "store.full", "store.io",
            "store.read_only", "store.moved", "llm.breaker_open", "llm.disabled", "level.basic",
            "tool.breaker_open", "tool.disabled", "tenant.draining",
        ],
    ),
    (StatusCode::INSUFFICIENT_STORAGE, &["store.quota"]),
    (StatusCode::GATEWAY_TIMEOUT, &["llm.timeout", "llm.silence", "run.deadline", "run.slow"]),
];

/// The HTTP status of a fault's code.
///
/// Errors that the client can fix are 4xx. 429 and 503 mean that the same request may succeed later. 502 and
/// 504 are failures of a model or of a back end. Everything else is an error of this server.
pub fn status_of(code: &str) -> StatusCode {
    let listed = CORRECTABLE.iter().chain(TRANSIENT).find(|(_, codes)| codes.contains(&code));
    match listed {
        Some((status, _)) => *status,
        None if code.starts_with("request.") || code.starts_with("session.") => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        None if code.ends_with(".unknown") => StatusCode::NOT_FOUND,
        None if code.starts_with("llm.") || code.starts_with("http.") => StatusCode::BAD_GATEWAY,
        None => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        // The codes of tools are chosen by their authors: the class says what kind of failure it is.
        let status = match (status_of(&fault.code), fault.class) {
            (StatusCode::INTERNAL_SERVER_ERROR | StatusCode::BAD_GATEWAY, FaultClass::Timeout) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            (StatusCode::INTERNAL_SERVER_ERROR, class) if class != FaultClass::Other => {
                StatusCode::BAD_GATEWAY
            }
            (status, _) => status,
        };
        let mut problem = Self::new(status, &fault.code, fault.message);
        let seconds = |ms: u64| u32::try_from(ms.div_ceil(1000).max(1)).unwrap_or(u32::MAX);
        problem.retry_after = fault.retry_after_ms.map(seconds).or(problem.retry_after);
        problem
    }
}

impl From<CommandRefusal> for Problem {
    fn from(refused: CommandRefusal) -> Self {
        let CommandRefusal { fault, difference, .. } = refused;
        let difference = (!difference.is_empty()).then(|| Box::new(DifferenceLines(difference.into())));
        Self { difference, ..fault.into() }
    }
}

impl From<crate::store::Error> for Problem {
    fn from(error: crate::store::Error) -> Self {
        Self::new(status_of(error.code()), error.code(), error.to_string())
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status());
        response.content_type(MEDIA_TYPE);
        if let Some(seconds) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, HeaderValue::from(seconds)));
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"proscenium\""));
        }
        // Clients with automatic retries must not retry an accepted request.
        if let Some(run) = self.run_id {
            response.insert_header(("x-should-retry", "false")).insert_header(("x-run-id", run.to_string()));
        }
        response.json(self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn unknown_names_are_answered_with_where_all_are_listed() {
        let detail = |what| Problem::not_found(what, "x").detail.to_string();
        assert_eq!(detail("flow"), "there is no flow `x`; GET /api/planning/flows lists all");
        assert_eq!(detail("scene"), "there is no scene `x`; GET /api/scenes lists all");
        assert_eq!(detail("run"), "there is no run `x`");
    }

    #[test]
    fn failure_of_a_back_end_is_no_error_of_this_server() {
        let status = |code, class| Problem::from(Fault::new(code, "no").classed(class)).status;
        assert_eq!(status("http.status", FaultClass::Unavailable), 502);
        assert_eq!(status("http.status", FaultClass::Other), 502);
        assert_eq!(status("http.timeout", FaultClass::Timeout), 504);
        assert_eq!(status("weather.source", FaultClass::BadData), 502);
        assert_eq!(status("tool.timeout", FaultClass::Timeout), 504);
        assert_eq!(status("tool.panicked", FaultClass::Other), 500);
        assert_eq!(status("budget.exceeded", FaultClass::Denied), 429);
    }

    #[test]
    fn wait_is_only_stated_where_waiting_helps() {
        let wait = |fault: Fault| Problem::from(fault).retry_after;
        for code in WITHOUT_DEFAULT_WAIT {
            let fault = || Fault::new(code, "no");
            assert!(matches!(status_of(code).as_u16(), 429 | 503), "{code}");
            assert_eq!(wait(fault()), None, "{code}");
            // A budget of a day renews.
            assert_eq!(wait(fault().after(Some(Duration::from_millis(7_100)))), Some(8), "{code}");
        }
        for code in ["llm.rate_limited", "engine.busy", "store.busy", "session.queue_full"] {
            assert_eq!(wait(Fault::new(code, "later")), Some(DEFAULT_RETRY_AFTER_S), "{code}");
        }
        assert_eq!(wait(Fault::new("llm.malformed", "no JSON")), None);
    }
}
