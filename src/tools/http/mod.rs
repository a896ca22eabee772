//! Tools that are HTTP requests: `[tools.http]` of a `scene.toml`.
//!
//! A request is built from templates over the arguments, sent under the network policy of
//! [`super::guard`], and its response is read up to a bound. A read that fails has failed, but the outcome
//! of a write whose request may have taken effect is `unknown`.

mod charset;
mod compile;
mod exchange;
mod response;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::{Value, json};

use super::guard::{NetworkPolicy, http_client_without_redirects};
use super::{Tool, ToolContext, ToolError, ToolErrorKind, phrase};
use crate::run::{Effect, FailureKind, FaultClass, Repeat};
use template::{BodyTemplate, Template, TemplateSecret};

/// The default maximum number of response bytes that are read.
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// The header that carries the idempotency key of a write with `repeat = "key"`.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// An HTTP request as written, with unresolved references: `{argument}` stands for an argument,
/// `${env:NAME}` for a secret of the environment, `${user}` and `${tenant}` for the requester; `{{` and
/// `}}` are literal braces.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSpec {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// `https://host/path/{argument}?name={argument}`. Arguments replace whole or partial path segments and
    /// query values, percent-encoded; a query parameter whose argument is absent is omitted.
    pub url: String,
    /// Query parameters beside those of `url`.
    pub query: BTreeMap<String, String>,
    /// Headers. A header whose argument is absent is omitted.
    pub headers: BTreeMap<String, String>,
    /// The JSON body. A string that is exactly `"{argument}"` becomes the argument with its JSON type; a
    /// field or element whose argument is absent is omitted.
    pub body: Option<Value>,
    /// JSON pointer to the result in the response; the whole response if absent.
    pub result: Option<String>,
    /// The maximum number of response bytes that are read.
    pub max_response_bytes: usize,
    /// What end users read about a status of failure: templates by language, as in `say`, over `arguments` and `status`.
    /// A neutral sentence is used for any other status.
    pub on_status: BTreeMap<u16, BTreeMap<String, String>>,
}

/// The properties of the tool that the request implements.
#[derive(Debug, Clone, Copy)]
pub struct HttpToolTerms<'a> {
    /// The JSON Schema of the arguments.
    pub parameters: &'a Value,
    /// Whether it reads or writes.
    pub effect: Effect,
    /// Whether the server honours idempotency keys.
    pub repeat: Repeat,
    /// The timeout of the whole exchange, in milliseconds.
    pub timeout_ms: u64,
}

/// A problem of an [`HttpSpec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSpecProblem {
    /// The field, such as `url`, `headers.Authorization` or `body`.
    pub at: String,
    /// A stable code, such as `http_url`.
    pub code: &'static str,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

/// The shared parts of HTTP tools: the network policy and one client.
#[derive(Clone)]
pub struct HttpNetwork {
    policy: NetworkPolicy,
    client: reqwest::Client,
}

impl HttpNetwork {
    /// Creates the client for HTTP tools under this policy. Fails if TLS cannot be set up.
    pub fn new(policy: &NetworkPolicy) -> Result<Self, reqwest::Error> {
        Ok(Self { policy: policy.clone(), client: http_client_without_redirects(policy)? })
    }

    /// The policy it enforces.
    pub fn policy(&self) -> &NetworkPolicy {
        &self.policy
    }
}

/// A tool that sends a checked HTTP request.
pub struct HttpTool {
    method: Method,
    /// Scheme, host and port. Fixed, so that no argument can change the destination.
    origin: String,
    path: Vec<Template>,
    query: Vec<(String, Template, QueryEncoding)>,
    headers: Vec<(HeaderName, Template)>,
    body: Option<BodyTemplate>,
    result: Option<String>,
    max_response_bytes: usize,
    write: bool,
    keyed: bool,
    timeout: Duration,
    secrets: Arc<[TemplateSecret]>,
    network: HttpNetwork,
    on_status: BTreeMap<u16, BTreeMap<String, String>>,
}

/// How the literal part of a query value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryEncoding {
    /// Already percent-encoded, as in a URL.
    Encoded,
    Plain,
}

impl HttpTool {
    /// Checks `spec` and resolves its secrets through `environment`.
    ///
    /// # Errors
    /// All problems found.
    pub fn new(
        spec: &HttpSpec,
        terms: HttpToolTerms<'_>,
        network: &HttpNetwork,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<HttpSpecProblem>> {
        compile::compile(spec, terms, network, environment)
    }

    /// The error of an exchange whose outcome is unknown: a failure for a read, `unknown` for a write.
    fn unknown_outcome(&self, code: &str, class: FaultClass, message: String) -> ToolError {
        let message = self.redact(message);
        let error =
            if self.write { ToolError::unknown(code, message) } else { ToolError::failed(code, message) };
        error.classed(class)
    }

    /// The error with the sentence for end users about its status: the author's, or a neutral one.
    fn with_sentence(&self, error: ToolError, language: Option<&str>, arguments: &Value) -> ToolError {
        let Some(status) = error.status else { return error };
        let own = self.on_status.get(&status);
        let own = own.and_then(|own| phrase::say(own, language, &json!({"status": status}), arguments));
        // Whether a write was done may be unknown, so the text does not suggest a retry.
        let is_known = error.kind != ToolErrorKind::Unknown;
        let neutral = || FailureKind::of(&error.code, Some(status)).filter(|_| is_known);
        let say = own.or_else(|| neutral().map(|kind| kind.sentence(language).to_owned()));
        ToolError { say, ..error }
    }

    fn redact(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| secret.redact(text))
    }

    /// Like [`redact`](Self::redact), for a truncated text that may end in the middle of a secret.
    fn redact_truncated(&self, text: String) -> String {
        self.secrets.iter().fold(self.redact(text), |text, secret| secret.redact_partial_suffix(text))
    }
}

/// Shows neither secrets nor request content.
impl std::fmt::Debug for HttpTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http")
            .field("method", &self.method)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for HttpTool {
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let outgoing = self.build_request(&context, &arguments)?;
        let place = outgoing.endpoint();
        let exchange = tokio::time::timeout(self.timeout, self.exchange(outgoing));
        let cancelled = async {
            // A write that has started runs to completion, so that its outcome is known.
            if self.write { std::future::pending().await } else { context.cancelled.cancelled().await }
        };
        tokio::select! {
            biased;
            () = cancelled => Err(ToolError::failed("tool.cancelled", "the run was cancelled")),
            done = exchange => done.unwrap_or_else(|_| {
                let message = format!("{place} gave no answer within {} ms", self.timeout.as_millis());
                Err(self.unknown_outcome("http.timeout", FaultClass::Timeout, message))
            }).map_err(|error| self.with_sentence(error, context.language.as_deref(), &arguments)),
        }
    }
}
