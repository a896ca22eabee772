//! Errors of the OpenAI protocol: the error object, and whether clients may retry automatically.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::problem::Problem;

/// The error object.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The error.
    pub(crate) error: ErrorView,
}

/// The error.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ErrorView {
    /// The problem, for people.
    pub(crate) message: String,
    /// The protocol's kind of error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub(crate) kind: String,
    /// The invalid parameter, if any.
    pub(crate) param: Option<String>,
    /// Stable, such as `request.body`.
    pub(crate) code: Option<String>,
}

/// A problem as an error of this protocol.
#[derive(Debug, Clone)]
pub(crate) struct Error {
    problem: Box<Problem>,
    param: Option<String>,
}

impl Error {
    pub(crate) fn unsupported(param: &str, why: &str) -> Self {
        let detail = format!("`{param}`: {why}");
        let problem = Problem::new(StatusCode::BAD_REQUEST, "request.unsupported", detail);
        Self { problem: problem.into(), param: Some(param.to_owned()) }
    }

    pub(crate) fn with_param(problem: Problem, param: &str) -> Self {
        Self { problem: problem.into(), param: Some(param.to_owned()) }
    }

    pub(crate) fn code(&self) -> &str {
        &self.problem.code
    }

    pub(crate) fn body(&self) -> ErrorBody {
        let kind = match self.problem.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 if self.param.is_none() => "not_found_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        ErrorBody {
            error: ErrorView {
                message: self.problem.detail.to_string(),
                kind: kind.to_owned(),
                param: self.param.clone(),
                code: Some(self.problem.code.to_string()),
            },
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let param = problem.param.as_ref().map(|param| param.to_string());
        Self { problem: problem.into(), param }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem.fmt(f)
    }
}

impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        self.problem.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.problem.status());
        if let Some(seconds) = self.problem.retry_after {
            response.insert_header((header::RETRY_AFTER, HeaderValue::from(seconds)));
        }
        // The official clients retry after 408, 409, 429 and 5xx unless told otherwise. An accepted request
        // must not be retried; any other may be if a retry can succeed.
        let again = self.problem.run_id.is_none() && self.problem.retry_after.is_some();
        response.insert_header(("x-should-retry", if again { "true" } else { "false" }));
        if let Some(run) = self.problem.run_id {
            response
                .insert_header(("x-run-id", run.to_string()))
                .insert_header((super::REQUEST_ID, run.to_string()));
        }
        if self.problem.status() == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"proscenium\""));
        }
        response.json(self.body())
    }
}
