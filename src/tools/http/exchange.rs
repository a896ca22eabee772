//! Sends one request, follows its redirects and classifies failures.

use std::error::Error as _;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, LOCATION, PROXY_AUTHORIZATION,
};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::{Map, Value};

use super::template::{TemplateValues, percent_encode, value_text};
use super::{HttpTool, IDEMPOTENCY_HEADER, QueryEncoding};
use crate::run::FaultClass;
use crate::tools::guard::{MAX_REDIRECTS, refusal, too_many_redirects};
use crate::tools::{ToolContext, ToolError};
use crate::trace_context::{TRACEPARENT, TraceParent};

/// A request ready to be sent.
pub(super) struct OutgoingRequest {
    method: Method,
    url: Url,
    headers: Vec<OutgoingHeader>,
    body: Option<Vec<u8>>,
}

struct OutgoingHeader {
    name: HeaderName,
    value: HeaderValue,
    /// Whether it must not reach another origin.
    secret: bool,
}

impl OutgoingRequest {
    /// Method, host and path, for errors. The query is omitted because it may contain secrets.
    pub(super) fn endpoint(&self) -> String {
        let origin = self.url.origin().ascii_serialization();
        format!("{} {origin}{}", self.method, self.url.path())
    }

    /// Adds the header `traceparent`, unless the tool declares one. It is about this exchange and no other origin's.
    fn add_trace_parent(&mut self, parent: Option<TraceParent>) {
        let name = HeaderName::from_static(TRACEPARENT);
        let value = parent.and_then(|parent| HeaderValue::from_str(&parent.to_string()).ok());
        if let Some(value) = value.filter(|_| !self.has_header(&name)) {
            self.headers.push(OutgoingHeader { name, value, secret: true });
        }
    }

    fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|header| header.name == *name)
    }
}

impl HttpTool {
    pub(super) fn build_request(
        &self,
        context: &ToolContext,
        arguments: &Value,
    ) -> Result<OutgoingRequest, ToolError> {
        let none = Map::new();
        let values = TemplateValues {
            arguments: arguments.as_object().unwrap_or(&none),
            principal: &context.principal,
        };
        let mut outgoing = OutgoingRequest {
            method: self.method.clone(),
            url: self.build_url(values)?,
            headers: Vec::new(),
            body: self
                .body
                .as_ref()
                .map(|body| body.expand(values).unwrap_or_default().to_string().into_bytes()),
        };
        for (name, template) in &self.headers {
            let Some(value) = template.expand(values, str::to_owned, str::to_owned) else { continue };
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                invalid_argument(format!("the value for the header {name} cannot be sent: use visible ASCII"))
            })?;
            let secret = template.secrets().next().is_some()
                || [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name);
            value.set_sensitive(secret);
            outgoing.headers.push(OutgoingHeader { name: name.clone(), value, secret });
        }
        let mut default = |name: HeaderName, value: &str| {
            if !outgoing.has_header(&name)
                && let Ok(value) = HeaderValue::from_str(value)
            {
                outgoing.headers.push(OutgoingHeader { name, value, secret: false });
            }
        };
        default(ACCEPT, "application/json");
        if self.body.is_some() {
            default(CONTENT_TYPE, "application/json");
        }
        if self.write && self.keyed {
            let key = context.idempotency_key.as_deref().unwrap_or_default();
            if key.is_empty() || HeaderValue::from_str(key).is_err() {
                // Without its key the write could not be repeated safely, as `repeat = "key"` promises.
                return Err(ToolError::failed(
                    "http.no_key",
                    "there is no idempotency key that can be sent with this write",
                ));
            }
            default(HeaderName::from_static(IDEMPOTENCY_HEADER), key);
        }
        outgoing.add_trace_parent(context.trace_parent);
        Ok(outgoing)
    }

    fn build_url(&self, values: TemplateValues<'_>) -> Result<Url, ToolError> {
        let mut target = self.origin.clone();
        for template in &self.path {
            target.push('/');
            let Some(segment) = template.expand(values, str::to_owned, percent_encode) else {
                let names: Vec<&str> = template.arguments().collect();
                return Err(invalid_argument(format!(
                    "{} is required in the URL and is absent",
                    names.join(", ")
                )));
            };
            // A segment of dots would escape the tool's path, and an empty one would name another resource.
            if !template.is_fixed() && (segment.is_empty() || segment == "." || segment == "..") {
                let names: Vec<&str> = template.arguments().collect();
                return Err(invalid_argument(format!(
                    "{} may be neither empty nor only dots",
                    names.join(", ")
                )));
            }
            target.push_str(&segment);
        }
        let mut separator = '?';
        let mut pair = |name: &str, value: &str| {
            target.push(separator);
            separator = '&';
            target.push_str(name);
            target.push('=');
            target.push_str(value);
        };
        for (name, template, literal) in &self.query {
            let plain = *literal == QueryEncoding::Plain;
            let name = if plain { percent_encode(name) } else { name.clone() };
            let list = template.whole_argument().and_then(|name| values.arguments.get(name)?.as_array());
            if let Some(list) = list {
                for value in list.iter().filter_map(value_text) {
                    pair(&name, &percent_encode(&value));
                }
                continue;
            }
            let written = |text: &str| if plain { percent_encode(text) } else { text.to_owned() };
            if let Some(value) = template.expand(values, written, percent_encode) {
                pair(&name, &value);
            }
        }
        Url::parse(&target)
            .map_err(|error| invalid_argument(format!("the arguments do not form a valid URL: {error}")))
    }

    /// Sends the request, follows its redirects and reads the response.
    pub(super) async fn exchange(&self, mut outgoing: OutgoingRequest) -> Result<Value, ToolError> {
        // Whether a server may have executed the write before it redirected.
        let mut taken = false;
        for _ in 0..=MAX_REDIRECTS {
            let place = outgoing.endpoint();
            let response = match self.send(&outgoing).await {
                Ok(response) => response,
                Err(error) => return Err(self.send_failure(&place, &error, taken)),
            };
            if !response.status().is_redirection() {
                return self.read_response(&place, response, taken).await;
            }
            taken = self.redirect(&place, &response, &mut outgoing, taken)?;
        }
        let refused = too_many_redirects(outgoing.url.host_str().unwrap_or_default());
        Err(self.redirect_failure(taken, refused.code, FaultClass::Denied, refused.message))
    }

    async fn send(&self, outgoing: &OutgoingRequest) -> Result<Response, reqwest::Error> {
        let mut request = self.network.client.request(outgoing.method.clone(), outgoing.url.clone());
        for header in &outgoing.headers {
            request = request.header(header.name.clone(), header.value.clone());
        }
        if let Some(body) = &outgoing.body {
            request = request.body(body.clone());
        }
        request.send().await
    }

    /// The error for a request without a response. Without a connection it had no effect: the write was not done, unless a
    /// server that redirected it may have executed it (`taken`).
    fn send_failure(&self, place: &str, error: &reqwest::Error, taken: bool) -> ToolError {
        let unsent = |error: ToolError| {
            if taken { self.unknown_outcome(&error.code, error.class, error.message) } else { error }
        };
        if let Some(refused) = refusal(error) {
            let error = ToolError::refused(refused.code, refused.message.clone());
            return unsent(error.classed(FaultClass::Denied));
        }
        let cause = self.redact(root_cause(error));
        if error.is_connect() {
            let message = self.redact(format!("{place} could not be reached: {cause}"));
            return unsent(ToolError::failed("http.unreachable", message).classed(FaultClass::Unavailable));
        }
        if error.is_builder() {
            return unsent(invalid_argument(self.redact(format!("{place} cannot be sent: {cause}"))));
        }
        self.unknown_outcome(
            "http.connection_lost",
            FaultClass::Unavailable,
            format!("{place} was sent, and the connection was lost: {cause}"),
        )
    }

    /// The error for a redirect that is not followed; `taken`: a server may have executed the request.
    fn redirect_failure(&self, taken: bool, code: &str, class: FaultClass, message: String) -> ToolError {
        if taken {
            self.unknown_outcome(code, class, message)
        } else {
            ToolError::failed(code, self.redact(message)).classed(class)
        }
    }

    /// Turns `outgoing` into the request that the redirect demands. Returns whether this server or (`taken`) one before may
    /// have executed the write.
    fn redirect(
        &self,
        place: &str,
        response: &Response,
        outgoing: &mut OutgoingRequest,
        taken: bool,
    ) -> Result<bool, ToolError> {
        let status = response.status();
        let taken = taken || (self.write && may_follow_execution(status));
        let refuse = |code: &str, class, message| self.redirect_failure(taken, code, class, message);
        let next = response
            .headers()
            .get(LOCATION)
            .and_then(|location| location.to_str().ok())
            .and_then(|location| outgoing.url.join(location).ok())
            .filter(|next| matches!(next.scheme(), "http" | "https"));
        let Some(next) = next else {
            return Err(refuse(
                "http.redirect",
                FaultClass::BadData,
                format!("{place} answered {status} without a valid location"),
            ));
        };
        self.network
            .policy()
            .check_redirect(&outgoing.url, &next)
            .map_err(|r| refuse(r.code, FaultClass::Denied, r.message))?;
        let same_origin = next.origin() == outgoing.url.origin();
        let get = status == StatusCode::SEE_OTHER
            || (outgoing.method == Method::POST
                && matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND));
        if get && outgoing.method != Method::GET {
            outgoing.method = Method::GET;
            outgoing.body = None;
            outgoing
                .headers
                .retain(|header| header.name != CONTENT_TYPE && header.name != IDEMPOTENCY_HEADER);
        } else if self.write && !self.may_send_again(&outgoing.method, status) {
            let message = format!(
                "{place} answered {status}: it may have been done, and without an idempotency key it is not sent again"
            );
            return Err(refuse("http.redirect", FaultClass::Other, message));
        } else if self.write && next == outgoing.url {
            let message = format!("{place} redirects to itself, where the write has just been sent");
            return Err(refuse("http.too_many_redirects", FaultClass::Denied, message));
        } else if !same_origin && outgoing.method != Method::GET {
            let host = next.host_str().unwrap_or_default();
            let message =
                format!("{place} redirects to {host}, and only reads are redirected to another host");
            return Err(refuse("http.redirect", FaultClass::Denied, message));
        }
        if !same_origin {
            outgoing.headers.retain(|header| !header.secret);
        }
        outgoing.url = next;
        Ok(taken)
    }

    /// Whether a write may be sent to the address of this redirect, too: the redirect says that nothing was done, the
    /// request has an idempotency key, or it only fetches.
    fn may_send_again(&self, method: &Method, status: StatusCode) -> bool {
        !may_follow_execution(status) || self.keyed || method == Method::GET
    }
}

/// Whether a server that answers a write with this redirect may have executed it.
///
/// By RFC 9110 (15.4.8, 15.4.9), 307 and 308 name the place of the target resource, and the client sends the same request
/// there: the server that answers so did nothing itself, so a write whose second request reaches nobody is not done. 303
/// names the response to a request that was executed. 301 and 302 mean what 308 and 307 do, but servers also send them once
/// they have executed a POST (15.4.2, 15.4.3), and some a PUT or DELETE: they do not say that nothing was done.
fn may_follow_execution(status: StatusCode) -> bool {
    !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

pub(super) fn invalid_argument(message: String) -> ToolError {
    ToolError::refused("http.argument", message).classed(FaultClass::BadData)
}

/// The innermost cause. The outer ones contain the URL with its query.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut text = String::from("no cause was given");
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}
