//! Tools that are HTTP requests: `[tools.http]` of a `scene.toml`.
//!
//! A request is built from templates over the arguments, sent within the network policy of
//! [`super::guard`], and its answer is read within a bound. What matters most is what a failure says:
//! a read that fails has failed, but a write whose request may have been carried out is `unknown`.

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
use serde_json::Value;

use super::guard::{NetworkPolicy, http_client_without_redirects};
use super::{Tool, ToolContext, ToolError};
use crate::run::{Effect, Repeat};
use template::{Body, Secret, Template};

/// The most bytes of a response that are read where the tool does not say otherwise.
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// The header that carries the idempotency key of a write with `repeat = "key"`.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// An HTTP request as it is written, with its references unresolved: `{argument}` stands for an
/// argument, `${env:NAME}` for a secret of the environment, `${user}` and `${tenant}` for who asks;
/// `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// `https://host/path/{argument}?name={argument}`. Arguments stand for whole or partial path
    /// segments and query values, percent-encoded; a query parameter whose argument is absent is
    /// left out.
    pub url: String,
    /// Query parameters beside those of `url`.
    pub query: BTreeMap<String, String>,
    /// Headers. One whose argument is absent is left out.
    pub headers: BTreeMap<String, String>,
    /// The JSON body. A string that is exactly `"{argument}"` becomes the argument with its JSON
    /// type; a field or element whose argument is absent is left out.
    pub body: Option<Value>,
    /// JSON pointer to what counts in the response; all of it where absent.
    pub result: Option<String>,
    /// The most bytes of a response that are read.
    pub max_response_bytes: usize,
}

/// What the request is for, beside what it looks like.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The JSON Schema of the arguments.
    pub parameters: &'a Value,
    /// Whether it changes anything.
    pub effect: Effect,
    /// Whether the server honours idempotency keys.
    pub repeat: Repeat,
    /// How long the whole exchange may take.
    pub timeout_ms: u64,
}

/// What is wrong with a [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The field, such as `url`, `headers.Authorization` or `body`.
    pub at: String,
    /// Stable, such as `http_url`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// What HTTP tools share: the policy, the environment and one client.
#[derive(Clone)]
pub struct Network {
    policy: NetworkPolicy,
    client: reqwest::Client,
}

impl Network {
    /// A client for HTTP tools under this policy. Fails where TLS cannot be set up.
    pub fn new(policy: &NetworkPolicy) -> Result<Self, reqwest::Error> {
        Ok(Self { policy: policy.clone(), client: http_client_without_redirects(policy)? })
    }

    /// The policy it keeps.
    pub fn policy(&self) -> &NetworkPolicy {
        &self.policy
    }
}

/// A checked HTTP request that can be made.
pub struct Http {
    method: Method,
    /// Scheme, host and port: no argument can change where a request goes.
    origin: String,
    path: Vec<Template>,
    query: Vec<(String, Template, Literal)>,
    headers: Vec<(HeaderName, Template)>,
    body: Option<Body>,
    result: Option<String>,
    max_response_bytes: usize,
    write: bool,
    keyed: bool,
    timeout: Duration,
    secrets: Arc<[Secret]>,
    network: Network,
}

/// How the written part of a query value is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literal {
    /// As in a URL: percent-encoded already.
    Encoded,
    /// As plain text.
    Plain,
}

impl Http {
    /// Checks `spec` and resolves its secrets through `environment`; every problem is told.
    pub fn new(
        spec: &Spec,
        terms: Terms<'_>,
        network: &Network,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<Problem>> {
        compile::compile(spec, terms, network, environment)
    }

    /// An error for an exchange of which nobody knows whether it took effect: for a read that is
    /// nothing, for a write it is `unknown`.
    fn lost(&self, code: &str, message: String) -> ToolError {
        let message = self.without_secrets(message);
        if self.write { ToolError::unknown(code, message) } else { ToolError::failed(code, message) }
    }

    fn without_secrets(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| secret.redact(text))
    }

    /// The same for a text that was cut, perhaps in the middle of a secret.
    fn without_secrets_cut(&self, text: String) -> String {
        self.secrets.iter().fold(self.without_secrets(text), |text, secret| secret.redact_end(text))
    }
}

/// Shows neither secrets nor what is sent.
impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http")
            .field("method", &self.method)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for Http {
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let outgoing = self.outgoing(&context, &arguments)?;
        let place = outgoing.place();
        let exchange = tokio::time::timeout(self.timeout, self.exchange(outgoing));
        let cancelled = async {
            // A write that was begun is ended, so that its outcome is known.
            if self.write { std::future::pending().await } else { context.cancelled.cancelled().await }
        };
        tokio::select! {
            biased;
            () = cancelled => Err(ToolError::failed("tool.cancelled", "the run was cancelled")),
            done = exchange => done.unwrap_or_else(|_| {
                let message = format!("{place} gave no answer within {} ms", self.timeout.as_millis());
                Err(self.lost("http.timeout", message))
            }),
        }
    }
}
