//! Servers of the OpenAI protocol: chat completions, streamed or not.
//!
//! The client crate builds and sends requests and splits event streams; what it does by itself beyond
//! that (retries, error types without headers, strict reply types) is replaced: [`transport`] sends
//! once and keeps status, headers and bounds, [`reply`] and [`stream`] read what servers really send.

mod encode;
mod ordered;
mod reply;
mod stream;
mod transport;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_trait::async_trait;
use futures::StreamExt;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::Instant;

use super::error::{Error, Kind};
use super::options::{Forcing, ModelOptions, Options};
use super::prices::Price;
use super::provider::{CallControl, Provider};
use super::{Completion, Request, Sink, tokens};
use crate::run::{Reply, Usage};
use reply::Read;
use transport::{Bounds, Once, Watch, struck};

/// A model behind a server of the OpenAI protocol.
#[derive(Clone)]
pub struct OpenAi {
    model: ModelOptions,
    price: Price,
    bounds: Bounds,
    http: reqwest::Client,
    /// Why it cannot be asked at all, such as a key that is not there.
    access: Result<Access, String>,
}

impl OpenAi {
    /// A provider for `model`, with the timeouts of `options`. `get` looks up the environment variable
    /// of the key; a key that is missing or unusable is told by every call. Errors: no HTTP client.
    pub fn new(
        model: &ModelOptions,
        options: &Options,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut http = reqwest::Client::builder()
            .connect_timeout(Duration::from_millis(options.connect_timeout_ms))
            // A redirected POST would arrive as a GET, or with the key at another host.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&model.base_url) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| {
            let detail = format!("no HTTP client could be made: {}", transport::root(&error));
            Error::new(&model.name, Kind::NotConfigured { detail })
        })?;
        Ok(Self {
            model: model.clone(),
            price: Price::of(model),
            bounds: Bounds::of(options),
            http,
            access: Access::of(model, get),
        })
    }

    /// The same model, forced in another way.
    #[must_use]
    pub fn forced_by(&self, forcing: Forcing) -> Self {
        let mut other = self.clone();
        other.model.forcing = forcing;
        other
    }

    /// What a call counts as that nobody metered, having said `output` tokens as far as is known.
    fn unknown(&self, request: &Request, output: u64) -> Usage {
        let most = request.max_output_tokens.unwrap_or(self.model.max_output_tokens);
        self.price.unknown(tokens::request(request), output, u64::from(most))
    }

    /// One HTTP exchange; what a stream had said when it failed is in the error's second part.
    async fn exchange(&self, request: &Request, access: Access, sink: &Sink) -> Result<Read, (Kind, u64)> {
        let body = encode::body(request, &self.model);
        let watch = Watch::default();
        let asked = Instant::now();
        let first = asked + Duration::from_millis(self.bounds.first_ms);
        let failed = Arc::new(Mutex::new(None));
        let whole = Arc::new(Mutex::new(None));
        let once = Once {
            http: self.http.clone(),
            key: access.key.clone(),
            bounds: self.bounds,
            first,
            stream: self.model.stream,
            watch: watch.clone(),
            whole: whole.clone(),
            failed: failed.clone(),
        };
        // The service's own error beats the client's rendering of it.
        let told = |error: OpenAIError| {
            let own = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
            own.unwrap_or_else(|| transport::kind(&error))
        };
        let client = Client::build(self.http.clone(), access).with_http_service(once);
        if !self.model.stream {
            let body: Value = client.chat().create_byot(body).await.map_err(|e| (told(e), 0))?;
            let body = whole.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(body);
            return reply::whole(&body).map_err(|kind| (kind, 0));
        }
        let mut chunks =
            client.chat().create_stream_byot::<_, Value>(body).await.map_err(|e| (told(e), 0))?;
        let mut so_far = stream::Accumulator::default();
        let mut began = None;
        loop {
            let (until, silence) = if so_far.is_empty() {
                (first, self.bounds.silence_before())
            } else {
                let between = Duration::from_millis(self.bounds.between_ms);
                (Instant::now() + between, self.bounds.silence_between())
            };
            match tokio::time::timeout_at(until, chunks.next()).await {
                Err(_) => return Err((silence, so_far.tokens())),
                Ok(None) => break,
                Ok(Some(Ok(chunk))) => {
                    so_far.add(&chunk, sink).map_err(|kind| (kind, so_far.tokens()))?;
                    if began.is_none() && !so_far.is_empty() {
                        began = Some(Instant::now());
                    }
                }
                // The end of the reply was said; that the connection then broke does not matter.
                Ok(Some(Err(_))) if so_far.is_finished() => break,
                Ok(Some(Err(error))) => return Err((told(error), so_far.tokens())),
            }
        }
        let spent = so_far.tokens();
        let first_token = began.map(|at| at - asked);
        so_far.finish(watch.is_done()).map(|read| Read { first_token, ..read }).map_err(|kind| (kind, spent))
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.model.name
    }

    async fn complete(&self, request: &Request, ctl: &CallControl) -> Result<Completion, Error> {
        let name = &self.model.name;
        let access =
            self.access.clone().map_err(|detail| Error::new(name, Kind::NotConfigured { detail }))?;
        let key = access.key.clone();
        match self.exchange(request, access, &ctl.sink).await {
            Ok(Read { mut reply, usage, first_token }) => {
                reply.model.clone_from(name);
                strike(&mut reply, &key);
                let usage = match usage {
                    Some(said) => self.price.usage(said.input, said.cached, said.output),
                    None => self.unknown(request, tokens::reply(&reply)),
                };
                Ok(Completion { reply, usage, first_token })
            }
            Err((kind, _)) if kind.is_free() => Err(Error::new(name, without(kind, &key))),
            Err((kind, output)) => {
                let usage = self.unknown(request, output);
                Err(Error::new(name, without(kind, &key)).costing(usage))
            }
        }
    }
}

/// The same reason, with the key struck out of whatever the server said: events of a stream are only
/// known one by one.
fn without(mut kind: Kind, key: &SecretString) -> Kind {
    match &mut kind {
        Kind::Connect { detail }
        | Kind::RateLimited { detail, .. }
        | Kind::Quota { detail }
        | Kind::Unauthorized { detail, .. }
        | Kind::Status { detail, .. }
        | Kind::ContextOverflow { detail }
        | Kind::Malformed { detail }
        | Kind::Internal { detail } => *detail = struck_end(struck(detail, key).into_owned(), key),
        _ => {}
    }
    kind
}

/// The text without a beginning of the key that a cut left at its end.
fn struck_end(mut text: String, key: &SecretString) -> String {
    let key = key.expose_secret();
    let begun = (4..key.len()).rev().filter_map(|length| key.get(..length)).find(|part| text.ends_with(part));
    if let Some(part) = begun {
        text.truncate(text.len() - part.len());
    }
    text
}

/// A reply whose words say the key back says it no further.
fn strike(reply: &mut Reply, key: &SecretString) {
    let calls = reply.calls.iter_mut().flat_map(|call| [&mut call.id, &mut call.name, &mut call.arguments]);
    for text in calls.chain([&mut reply.text]).chain(reply.finish_reason.as_mut()) {
        let other = struck(text, key).into_owned();
        *text = other;
    }
}

fn is_loopback(address: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Address and key, as the client crate wants them. (Its own configuration reads the environment.)
#[derive(Clone)]
struct Access {
    base: String,
    headers: HeaderMap,
    key: SecretString,
}

impl Access {
    fn of(model: &ModelOptions, get: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        let mut key = String::new();
        if let Some(variable) = &model.api_key_env {
            key = get(variable).map(|key| key.trim().to_owned()).unwrap_or_default();
            if key.is_empty() {
                return Err(format!(
                    "its key is to be in the environment variable {variable}, which is not set"
                ));
            }
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
                format!("the key in {variable} holds characters that no HTTP header can carry")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { base: model.base_url.trim_end_matches('/').to_owned(), headers, key: key.into() })
    }
}

impl Config for Access {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}
