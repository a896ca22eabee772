//! Servers of the OpenAI protocol: chat completions, streamed or not, and embeddings.
//!
//! The client crate builds and sends requests and splits event streams; what it does by itself beyond
//! that (retries, error types without headers, strict reply types) is replaced: [`transport`] sends
//! once and keeps status, headers and bounds, [`reply`] and [`stream`] read what servers really send.
//! [`form`] records what a server streams; [`key`] and [`redact`] remove the key from everything it returns.

mod embed;
mod encode;
mod form;
mod key;
mod lines;
mod redact;
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
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::Instant;

use super::error::{Error, ErrorKind};
use super::options::{Forcing, ModelOptions, Options};
use super::prices::Price;
use super::provider::{CallControl, Provider};
use super::{Completion, Purpose, Request, Sink, tokens};
use crate::run::Usage;
use crate::trace_context::TRACEPARENT;
use form::{Form, Streams};
use key::ProviderKey;
use redact::RedactingSink;
use reply::ProviderReply;
use transport::{Bounds, DoneWatch, Once};

/// How long an idle connection to a server without TLS is reused: less than such servers keep one (5 s for vLLM and
/// llama.cpp). A question on a connection that the server is just closing is lost, and charged as if it had been
/// answered.
const KEEP_IDLE: Duration = Duration::from_secs(4);

/// How long the rest of a stream is waited for, such as its usage, after the server said why the reply ended. Some
/// servers leave the connection open then; the reply is complete, and must not be asked for and paid for again.
const AFTER_THE_END: Duration = Duration::from_secs(2);

/// A model of a server with the OpenAI protocol.
#[derive(Clone)]
pub struct OpenAi {
    model: ModelOptions,
    price: Price,
    bounds: Bounds,
    http: reqwest::Client,
    /// Shared by clones.
    streams: Arc<Streams>,
    /// The key, or why no call is possible, such as a missing key.
    access: Result<Access, String>,
}

impl OpenAi {
    /// A provider for `model`, with the timeouts of `options`. `get` looks up the environment variable
    /// of the key; every call fails if the key is missing or unusable. Errors: no HTTP client.
    pub fn new(
        model: &ModelOptions,
        options: &Options,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let mut http = reqwest::Client::builder()
            .connect_timeout(Duration::from_millis(options.connect_timeout_ms))
            // A redirected POST would arrive as a GET, or with the key at another host.
            .redirect(reqwest::redirect::Policy::none());
        if model.base_url.starts_with("http://") {
            http = http.pool_idle_timeout(KEEP_IDLE);
        }
        if is_loopback(&model.base_url) {
            http = http.no_proxy();
            if model.base_url.starts_with("http://") {
                // The connection is not encrypted, so the system's root certificates need not be read.
                http = http.tls_certs_only([]);
            }
        }
        let http = http.build().map_err(|error| {
            let detail = format!("no HTTP client could be made: {}", transport::root(&error));
            Error::new(&model.name, ErrorKind::NotConfigured { detail })
        })?;
        Ok(Self {
            model: model.clone(),
            price: Price::of(model),
            bounds: Bounds::of(options),
            http,
            streams: Arc::default(),
            access: Access::of(model, get),
        })
    }

    /// The same model with another way of forcing.
    #[must_use]
    pub fn forced_by(&self, forcing: Forcing) -> Self {
        let mut other = self.clone();
        other.model.forcing = forcing;
        other
    }

    /// Returns whether it is a model of embeddings.
    pub fn offers_embeddings(&self) -> bool {
        self.model.embeddings
    }

    /// The usage of a call without a report, whose reply has an estimated number of `output` tokens.
    fn unknown(&self, request: &Request, output: u64) -> Usage {
        self.price.unknown(tokens::request(request), output, self.max_output(request))
    }

    /// The most output tokens that a request allows.
    fn max_output(&self, request: &Request) -> u64 {
        u64::from(request.max_output_tokens.unwrap_or(self.model.max_output_tokens))
    }

    /// One HTTP exchange for embeddings.
    async fn embed(&self, request: &Request, access: Access) -> Result<ProviderReply, ErrorKind> {
        let failed = Arc::new(Mutex::new(None));
        let whole = Arc::new(Mutex::new(None));
        let once = Once {
            http: self.http.clone(),
            key: access.key.clone(),
            bounds: self.bounds,
            first: Instant::now() + Duration::from_millis(self.bounds.first_ms),
            stream: false,
            watch: DoneWatch::default(),
            whole: whole.clone(),
            failed: failed.clone(),
        };
        let client = Client::build(self.http.clone(), access).with_http_service(once);
        let sent = client.embeddings().create_byot::<_, Value>(embed::body(request, &self.model)).await;
        let body = sent.map_err(|error| {
            let own = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
            own.unwrap_or_else(|| transport::kind(&error))
        })?;
        let body = whole.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(body);
        embed::reply(&body, request.messages.len())
    }

    /// One HTTP exchange. The error has the tokens of the reply so far.
    async fn exchange(
        &self,
        request: &Request,
        form: Form,
        access: Access,
        sink: &Sink,
    ) -> Result<ProviderReply, (ErrorKind, u64)> {
        let body = encode::body(request, &self.model, form);
        let key = access.key.clone();
        let watch = DoneWatch::default();
        let asked = Instant::now();
        let first = asked + Duration::from_millis(self.bounds.first_ms);
        let failed = Arc::new(Mutex::new(None));
        let whole = Arc::new(Mutex::new(None));
        let once = Once {
            http: self.http.clone(),
            key: key.clone(),
            bounds: self.bounds,
            first,
            stream: form.is_streamed(),
            watch: watch.clone(),
            whole: whole.clone(),
            failed: failed.clone(),
        };
        // The service's error is more precise than the client's rendering of it.
        let why = |error: OpenAIError| {
            let own = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
            own.unwrap_or_else(|| transport::kind(&error))
        };
        let client = Client::build(self.http.clone(), access).with_http_service(once);
        if !form.is_streamed() {
            let body: Value = client.chat().create_byot(body).await.map_err(|e| (why(e), 0))?;
            let body = whole.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(body);
            return reply::parse_whole(&body).map_err(|kind| (kind, 0));
        }
        let mut chunks = client.chat().create_stream_byot::<_, Value>(body).await.map_err(|e| (why(e), 0))?;
        let mut so_far = stream::Accumulator::default();
        let mut redacted = RedactingSink::new(sink, &key);
        let mut began = None;
        loop {
            let chunk = match self.next_chunk(&mut chunks, first, &so_far).await {
                Ok(None) => break,
                // The reply was complete, so it does not matter that the connection broke or stayed open afterwards.
                Err(_) | Ok(Some(Err(_))) if so_far.is_finished() => break,
                Err(silence) => return Err((silence, so_far.tokens())),
                Ok(Some(Err(error))) => return Err((why(error), so_far.tokens())),
                Ok(Some(Ok(chunk))) => chunk,
            };
            so_far.add(&chunk, &mut redacted).map_err(|kind| (kind, so_far.tokens()))?;
            if began.is_none() && !so_far.is_empty() {
                began = Some(Instant::now());
            }
        }
        let spent = so_far.tokens();
        let first_token = began.map(|at| at - asked);
        let read = so_far.finish(watch.is_done()).map_err(|kind| (kind, spent))?;
        redacted.end(&read.reply);
        Ok(ProviderReply { first_token, ..read })
    }

    /// Waits for the next chunk: until `first` for the first content, then as long as the bound between
    /// chunks allows, and after the end of the reply for at most [`AFTER_THE_END`]. The error says which wait was exceeded.
    async fn next_chunk<S>(
        &self,
        chunks: &mut S,
        first: Instant,
        so_far: &stream::Accumulator,
    ) -> Result<Option<S::Item>, ErrorKind>
    where
        S: futures::Stream + Unpin,
    {
        let between = Duration::from_millis(self.bounds.between_ms);
        let (until, silence) = if so_far.is_empty() {
            (first, self.bounds.silence_before())
        } else if so_far.is_finished() {
            (Instant::now() + between.min(AFTER_THE_END), self.bounds.silence_between())
        } else {
            (Instant::now() + between, self.bounds.silence_between())
        };
        tokio::time::timeout_at(until, chunks.next()).await.map_err(|_| silence)
    }

    /// Calls in the form that this model is known to accept, and in a simpler one if the server refuses it, which
    /// is free. Also returns the last form.
    async fn ask(
        &self,
        request: &Request,
        access: &Access,
        ctl: &CallControl,
    ) -> (Form, Result<ProviderReply, (ErrorKind, u64)>) {
        let (name, wish, sink) = (&self.model.name, self.model.stream, &ctl.sink);
        let is_answer = sink.is_live();
        let is_read =
            sink.is_read() || is_answer && (ctl.is_awaited || !self.streams.is_soon_complete(request));
        let mut form = self.streams.form(wish, request, is_read);
        // The form of each round is simpler than the one before.
        loop {
            let asked = Instant::now();
            let result = self.exchange(request, form, access.clone(), sink).await;
            if is_answer {
                let took = result.is_ok().then(|| asked.elapsed());
                self.streams.answered(request, took, Duration::from_millis(self.bounds.first_ms));
            }
            match &result {
                Err((kind, 0)) if form.is_streamed() => {
                    if let Some(plainer) = self.streams.refused(wish, request, form, kind) {
                        let why = access.key.out_of(kind.clone());
                        tracing::warn!(
                            "model {name:?} {why}: it is not asked for {} any more; `stream = false` asks for whole \
                             replies from the start",
                            if plainer.is_streamed() { "the tokens of a stream" } else { "a stream" },
                        );
                        form = plainer;
                        continue;
                    }
                    if *kind == ErrorKind::EmptyStream {
                        self.streams.record_empty_stream(wish, request);
                    }
                }
                Ok(read) if form.is_streamed() && self.streams.worked(request, read.usage.is_some()) => {
                    tracing::warn!(
                        "model {name:?} does not say how many tokens a streamed reply has: each is charged as the \
                         most that it can cost; `stream = false` asks for whole replies"
                    );
                }
                _ => {}
            }
            return (form, result);
        }
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.model.name
    }

    async fn complete(&self, request: &Request, ctl: &CallControl) -> Result<Completion, Error> {
        let name = &self.model.name;
        let mut access =
            self.access.clone().map_err(|detail| Error::new(name, ErrorKind::NotConfigured { detail }))?;
        if let Some(value) =
            ctl.trace_parent.and_then(|parent| HeaderValue::from_str(&parent.to_string()).ok())
        {
            access.headers.insert(TRACEPARENT, value);
        }
        let key = &access.key;
        let embeds = request.purpose == Purpose::Embedding;
        let (form, result) = if embeds {
            let embedded = self.embed(request, access.clone()).await;
            (Form::Whole, embedded.map_err(|kind| (kind, 0)))
        } else {
            self.ask(request, &access, ctl).await
        };
        let explained = |kind| self.streams.explained(request, form, key.out_of(kind));
        match result {
            Ok(ProviderReply { mut reply, usage, first_token }) => {
                reply.model.clone_from(name);
                key.strike(&mut reply);
                let written = tokens::reply(&reply);
                let usage = match usage {
                    // A reply that costs nothing is not believed.
                    Some(reported) if !embeds && reported.output == 0 && written > 0 => {
                        self.price.unknown(reported.input, written, self.max_output(request))
                    }
                    Some(reported) => self.price.usage(reported.input, reported.cached, reported.output),
                    None if embeds => self.unknown(request, 0),
                    None => self.unknown(request, written),
                };
                Ok(Completion { reply, usage, first_token })
            }
            Err((kind, _)) if kind.is_free() => Err(Error::new(name, explained(kind))),
            Err((kind, output)) => {
                let usage = self.unknown(request, output);
                Err(Error::new(name, explained(kind)).costing(usage))
            }
        }
    }
}

fn is_loopback(address: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Address and key in the client crate's form. (Its own configuration reads the environment.)
#[derive(Clone)]
struct Access {
    base: String,
    headers: HeaderMap,
    key: ProviderKey,
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
        Ok(Self {
            base: model.base_url.trim_end_matches('/').to_owned(),
            headers,
            key: ProviderKey::new(key.into()),
        })
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
        self.key.secret()
    }
}
