//! The only way from this program to a model.
//!
//! A call passes these stages in order:
//!
//! 1. **cache**: a cached reply costs nothing and passes no limit ([`cache`](super::cache));
//!    it is looked up for each model in turn, since the model is part of what makes calls equal;
//! 2. **budget**: money is reserved before each attempt, and settled after it ([`budget`](super::budget));
//! 3. **limits**: request rate, token rate and concurrency, per tenant and per model ([`limits`](super::limits));
//! 4. **models**: those of the purpose, in order, except where the circuit breaker is open
//!    ([`breaker`](super::breaker)); each is retried if that is safe, and the next one takes over when it is out
//!    ([`retry`]), or when its reply has not begun in time (`llm.slow_ms`);
//! 5. *settle, cache*: the actual cost is settled; the reply is cached once its reader found it valid
//!    ([`Confirm`](super::Confirm)).
//!
//! The offline model is free and immediate, so it passes none of these stages.

mod worker;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::worker::Worker;
use super::breaker::{self, AttemptReport};
use super::budget::{BudgetError, Reservation};
use super::cache::{self, CacheKey, Mode, ResolvedReply};
use super::error::{Error, ErrorKind};
use super::limits::{AttemptPermit, LimitError};
use super::openai::OpenAi;
use super::options::{OFFLINE, Options};
use super::prices::Price;
use super::probe::{self, Probe};
use super::provider::{CallControl, Provider};
use super::{
    Caller, Completion, DigestedRequest, Guards, Purpose, Replied, Request, RequestDigest, Sink, retry,
    tokens,
};
use crate::run::{AskReservation, Attempt, TenantId};

/// A handle to the gateway; clones share it. Providers run on a separate runtime, so callers on any runtime, or
/// on none, can await it.
#[derive(Clone)]
pub struct Gateway {
    core: Arc<Core>,
    guards: Guards,
    worker: Arc<Worker>,
}

struct Core {
    options: Options,
    models: Vec<GatewayModel>,
    servers: Vec<OpenAi>,
    offline: GatewayModel,
}

#[derive(Clone)]
struct GatewayModel {
    provider: Arc<dyn Provider>,
    price: Price,
    context_window: u32,
    max_output_tokens: u32,
    /// Whether it serves embeddings, and nothing else.
    embeddings: bool,
    /// Distinguishes its cached replies from those of other models; absent for the offline model, whose replies
    /// are not cached.
    identity: Option<Arc<str>>,
    breaker: breaker::ModelBreaker,
    /// How often another model was called instead.
    handed_over: Arc<AtomicU64>,
}

struct GatewayCall<'a> {
    request: &'a Request,
    digest: &'a RequestDigest,
    caller: &'a Caller,
    ctl: &'a CallControl,
    guards: &'a Guards,
    /// Tokens of the request, counted.
    prompt: u64,
    /// When the gateway received it.
    asked: Instant,
}

impl GatewayCall<'_> {
    /// Maximum number of tokens of a reply of `model`.
    fn max_output(&self, model: &GatewayModel) -> u64 {
        u64::from(self.request.max_output_tokens.unwrap_or(model.max_output_tokens))
    }

    /// An attempt at `model` that was made at `asked` and has just ended, for the journal.
    fn attempt(&self, model: &str, asked: Instant, result: &Result<Completion, Error>) -> Attempt {
        let (outcome, usage) = match result {
            Ok(done) => (Attempt::OK, done.usage),
            Err(error) => (error.kind().class(), error.usage()),
        };
        Attempt {
            model: model.to_owned(),
            purpose: self.request.purpose.name().to_owned(),
            outcome: outcome.to_owned(),
            usage,
            millis: millis(asked.elapsed()),
            after_millis: millis(asked.duration_since(self.asked)),
            first_token_millis: result.as_ref().ok().and_then(|done| done.first_token).map(millis),
            saved_nano_usd: 0,
        }
    }
}

impl Gateway {
    /// A gateway to the models of `options`; `offline` serves where none is configured, and where the
    /// caller asks for the fallback. API keys are read from the environment once, here.
    ///
    /// # Errors
    /// `llm.not_configured` with every fault of the options; `llm.internal` if threads or an
    /// HTTP client cannot be had. A missing key is reported by the calls of its model.
    pub fn new(options: Options, offline: Arc<dyn Provider>) -> Result<Self, Error> {
        Self::with_keys(options, offline, |name| std::env::var(name).ok())
    }

    /// [`new`](Self::new) with a custom lookup of the variables that hold API keys.
    pub fn with_keys(
        options: Options,
        offline: Arc<dyn Provider>,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let core = Arc::new(Core::new(options, offline, &get)?);
        Ok(Self { core, guards: Guards::default(), worker: Arc::new(Worker::start()?) })
    }

    /// The same gateway, on the same threads and with the same guards, to the models of other options.
    ///
    /// # Errors
    /// As [`Gateway::new`].
    pub fn reloaded(&self, options: Options) -> Result<Self, Error> {
        let offline = self.core.offline.provider.clone();
        let core = Arc::new(Core::new(options, offline, &|name| std::env::var(name).ok())?);
        Ok(Self { core, guards: self.guards.clone(), worker: self.worker.clone() })
    }

    /// The same gateway with these guards.
    #[must_use]
    pub fn guarded(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// The guards between callers and models.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// Calls the models of the request's purpose for `caller` until one replies. With `fallback` the offline model
    /// is called instead. Report to the reply's [`Confirm`] whether it was usable. The usage includes failed
    /// attempts. Dropping the future cancels the call.
    pub async fn complete(
        &self,
        caller: &Caller,
        request: &Request,
        fallback: bool,
        cancelled: &CancellationToken,
    ) -> Result<Replied, Error> {
        let (caller, request) = (caller.clone(), request.clone());
        self.complete_streaming(caller, request, fallback, cancelled, Sink::default()).await
    }

    /// [`complete`](Self::complete), streaming the reply to `sink`. Each attempt restarts the sink; a cached
    /// reply, or one that the model does not stream, is written as a whole. Unless
    /// [`StreamMode`](super::StreamMode) says otherwise, a model streams only to a sink that has a reader.
    ///
    /// # Errors
    /// Those of [`complete`](Self::complete); the sink is reset on an error.
    pub async fn complete_streaming(
        &self,
        caller: Caller,
        request: Request,
        fallback: bool,
        cancelled: &CancellationToken,
        sink: Sink,
    ) -> Result<Replied, Error> {
        let ctl = CallControl::new(cancelled.clone(), self.core.options.deadline_ms).with_sink(sink);
        self.ask(caller, request, fallback, ctl).await
    }

    /// [`complete`](Self::complete) for at most `timeout_ms` milliseconds, or `llm.deadline_ms` if that is less.
    ///
    /// # Errors
    /// The errors of [`complete`](Self::complete).
    pub async fn complete_within(
        &self,
        caller: &Caller,
        request: &Request,
        timeout_ms: u64,
        cancelled: &CancellationToken,
    ) -> Result<Replied, Error> {
        let ctl = CallControl::new(cancelled.clone(), timeout_ms.min(self.core.options.deadline_ms));
        self.ask(caller.clone(), request.clone(), false, ctl).await
    }

    async fn ask(
        &self,
        caller: Caller,
        request: Request,
        fallback: bool,
        ctl: CallControl,
    ) -> Result<Replied, Error> {
        let tenant = caller.tenant.clone();
        let ask = self.asking(caller, DigestedRequest::new(request), fallback, ctl).in_current_span();
        self.worker.run(self.worker.tasks.task(tenant, ask)).await?
    }

    /// [`complete_streaming`](Self::complete_streaming) for callers that are tasks of this gateway
    /// ([`spawn_for`](Self::spawn_for)): the call is polled with its caller, without a task of its own.
    ///
    /// # Errors
    /// Those of [`complete`](Self::complete).
    pub(crate) async fn complete_in_task(
        &self,
        caller: Caller,
        request: DigestedRequest,
        fallback: bool,
        cancelled: &CancellationToken,
        sink: Sink,
        max_ms: u64,
    ) -> Result<Replied, Error> {
        let deadline_ms = self.core.options.deadline_ms.min(max_ms);
        let ctl = CallControl::new(cancelled.clone(), deadline_ms).with_sink(sink);
        let ask = self.asking(caller, request, fallback, ctl);
        // A panic of a provider ends this call and not its caller.
        let asked = AssertUnwindSafe(ask).catch_unwind().await;
        asked.unwrap_or_else(|_| Err(internal(&"the call of a model panicked")))
    }

    fn asking(
        &self,
        caller: Caller,
        request: DigestedRequest,
        fallback: bool,
        ctl: CallControl,
    ) -> impl Future<Output = Result<Replied, Error>> + Send + 'static {
        let (core, guards) = (self.core.clone(), self.guards.clone());
        async move {
            let (request, digest) = (request.request(), request.digest());
            let prompt = tokens::request(request);
            let asked = Instant::now();
            let call =
                GatewayCall { request, digest, caller: &caller, ctl: &ctl, guards: &guards, prompt, asked };
            core.ask(&call, fallback).await
        }
    }

    /// Spawns `work` on the threads where models are called, so that its calls stay on one thread. It must not
    /// block. It ends with the last handle of the gateway.
    ///
    /// # Errors
    /// Only while the gateway itself ends.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>, Error> {
        self.worker.spawn(work)
    }

    /// [`spawn`](Self::spawn), with the processor shared fairly between tenants.
    ///
    /// # Errors
    /// The errors of [`spawn`](Self::spawn).
    pub(crate) fn spawn_for<T: Send + 'static>(
        &self,
        tenant: TenantId,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>, Error> {
        self.worker.spawn(self.worker.tasks.task(tenant, work))
    }

    /// The runtime of the threads where models are called. It ends with the last handle of the gateway.
    ///
    /// # Errors
    /// Only while the gateway itself ends.
    pub(crate) fn runtime(&self) -> Result<tokio::runtime::Handle, Error> {
        self.worker.runtime()
    }

    /// Sends every configured model one small question in each way of forcing (one text, to a model of embeddings), all
    /// models at once, and reports which ways work, how fast, and which setting to use. For `check --live`.
    pub async fn probe(&self) -> Result<Vec<Probe>, Error> {
        let servers = self.core.servers.clone();
        let deadline_ms = self.core.options.deadline_ms;
        let probes =
            async move { join_all(servers.iter().map(|server| probe::probe(server, deadline_ms))).await };
        self.worker.run(probes).await
    }

    /// The smallest context window, in tokens, of the models that may answer for `purpose`.
    pub fn context_window(&self, purpose: Purpose) -> u32 {
        self.core.models_for(purpose).map(|model| model.context_window).min().unwrap_or(u32::MAX)
    }

    /// The models that answer for `purpose`, in the order in which they are asked.
    pub fn model_names(&self, purpose: Purpose) -> Vec<String> {
        self.core.models_for(purpose).map(|model| model.provider.name().to_owned()).collect()
    }

    /// The least that a question can cost, in nano-USD, whichever model of its purpose answers: its prompt
    /// and a few words of reply.
    pub fn least_cost(&self, request: &Request) -> u64 {
        let prompt = tokens::request(request);
        self.core
            .models_for(request.purpose)
            .map(|model| match model.identity {
                Some(_) => model
                    .price
                    .cost(prompt, prompt, MIN_REPLY_TOKENS)
                    .min(model.price.cost(prompt, 0, MIN_REPLY_TOKENS)),
                None => 0,
            })
            .min()
            .unwrap_or(0)
    }

    /// The most that so many tokens cost with the first model of a purpose, in nano-USD; 0 if it is free.
    pub fn most_cost(&self, purpose: Purpose, input: u64, output: u64) -> u64 {
        let first = self.core.models_for(purpose).next().filter(|model| model.identity.is_some());
        first.map_or(0, |model| model.price.most(input, output))
    }

    /// The reservation for the first attempt at a question, to the only model that votes if `voter` says which;
    /// `None` if it is free.
    pub fn reserved(&self, request: &Request, voter: Option<usize>) -> Option<AskReservation> {
        let mut models = self.core.models_of(request.purpose, voter).into_iter();
        let model = models.find(|model| !self.guards.disabled.contains(model.provider.name()))?;
        model.identity.as_ref()?;
        // A free model needs no count.
        if model.price.most(1, 1) == 0 {
            return None;
        }
        let output = u64::from(request.max_output_tokens.unwrap_or(model.max_output_tokens));
        Some(AskReservation {
            model: model.provider.name().to_owned(),
            purpose: request.purpose.name().to_owned(),
            nano_usd: model.price.most(tokens::request(request), output),
        })
    }

    /// Returns the state of the circuit breaker of each configured model.
    pub fn breakers(&self) -> Vec<(String, breaker::BreakerState)> {
        let state = |model: &GatewayModel| (model.provider.name().to_owned(), model.breaker.state());
        self.core.models.iter().map(state).collect()
    }

    /// The names of all configured models.
    pub fn configured(&self) -> Vec<String> {
        self.core.models.iter().map(|model| model.provider.name().to_owned()).collect()
    }

    /// How often another model replaced each configured one that could not reply.
    pub fn fallbacks(&self) -> Vec<(String, u64)> {
        let count = |model: &GatewayModel| {
            (model.provider.name().to_owned(), model.handed_over.load(Ordering::Relaxed))
        };
        self.core.models.iter().map(count).collect()
    }

    /// Returns what the vectors of a text depend on: the server of the model that serves embeddings, its id there, and its
    /// window, to which texts are cut. `None` without such a model.
    pub fn embedding_model(&self) -> Option<String> {
        let name = self.core.models_for(Purpose::Embedding).next()?.provider.name();
        let model = self.core.options.models.iter().find(|model| model.name == name)?;
        Some(format!("{} {} {}", model.base_url, model.id(), model.context_window))
    }
}

/// Tokens of the shortest meaningful reply.
const MIN_REPLY_TOKENS: u64 = 8;

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("options", &self.core.options).finish_non_exhaustive()
    }
}

impl Core {
    fn new(
        options: Options,
        offline: Arc<dyn Provider>,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let problems = options.problems();
        if !problems.is_empty() {
            let detail = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            return Err(Error::new("gateway", ErrorKind::NotConfigured { detail }));
        }
        let mut servers = Vec::new();
        let mut models = Vec::new();
        for model in &options.models {
            let server = OpenAi::new(model, &options, get)?;
            models.push(GatewayModel {
                provider: Arc::new(server.clone()),
                price: Price::of(model),
                context_window: model.context_window,
                max_output_tokens: model.max_output_tokens,
                embeddings: model.embeddings,
                // Plain data is always serialisable.
                identity: Some(serde_json::to_string(model).unwrap_or_default().into()),
                breaker: breaker::ModelBreaker::new(&options.breaker),
                handed_over: Arc::default(),
            });
            servers.push(server);
        }
        let offline = GatewayModel {
            provider: offline,
            price: Price::default(),
            context_window: options.offline_context_window,
            max_output_tokens: 0,
            embeddings: false,
            identity: None,
            breaker: breaker::ModelBreaker::new(&options.breaker),
            handed_over: Arc::default(),
        };
        Ok(Self { options, models, servers, offline })
    }

    fn models_for(&self, purpose: Purpose) -> impl Iterator<Item = &GatewayModel> {
        let named = self.options.purposes.get(&purpose);
        let listed = named.into_iter().flatten().filter_map(|name| match name.as_str() {
            OFFLINE => Some(&self.offline),
            name => self.models.iter().find(|model| model.provider.name() == name),
        });
        let embeds = purpose == Purpose::Embedding;
        let all = self.models.iter().filter(move |model| named.is_none() && model.embeddings == embeds);
        let none = !embeds && self.models.iter().all(|model| model.embeddings);
        let rules = (named.is_none() && none).then_some(&self.offline);
        listed.chain(all).chain(rules)
    }

    /// The models for `purpose`, or the only one that votes.
    fn models_of(&self, purpose: Purpose, voter: Option<usize>) -> Vec<&GatewayModel> {
        let models = self.models_for(purpose);
        match voter {
            None => models.collect(),
            Some(at) => models.skip(at).take(1).collect(),
        }
    }

    async fn ask(&self, call: &GatewayCall<'_>, fallback: bool) -> Result<Replied, Error> {
        let request = call.request;
        let configured: Vec<&GatewayModel> =
            if fallback { vec![&self.offline] } else { self.models_of(request.purpose, call.caller.voter) };
        let is_on = |model: &&&GatewayModel| !call.guards.disabled.contains(model.provider.name());
        let models: Vec<&GatewayModel> = configured.iter().filter(is_on).copied().collect();
        if let (Some(first), true) = (configured.first(), models.is_empty()) {
            return Err(Error::new(first.provider.name(), ErrorKind::Disabled));
        }
        let mut tried = Vec::new();
        let mut failed = None;
        for (i, model) in models.iter().enumerate() {
            let another = i + 1 < models.len();
            match self.cached(model, another, call, &mut tried).await {
                Ok(ResolvedReply { completion, cached, confirm, .. }) => {
                    let (reply, usage) = (completion.reply, Attempt::sum(&tried));
                    call.ctl.sink.whole(&reply);
                    return Ok(Replied { reply, usage, attempts: tried, cached, confirm });
                }
                Err(error) => {
                    if *error.kind() != ErrorKind::Cancelled {
                        let (code, purpose) = (error.code(), request.purpose);
                        tracing::warn!(code, %purpose, another, "{error}");
                    }
                    if !another || !error.may_hand_over() {
                        return Err(error.after(tried));
                    }
                    model.handed_over.fetch_add(1, Ordering::Relaxed);
                    failed = Some(error);
                }
            }
        }
        let no_model = || {
            let detail = format!("no model is configured for {}", request.purpose);
            Error::new("gateway", ErrorKind::NotConfigured { detail })
        };
        Err(failed.unwrap_or_else(no_model).after(tried))
    }

    /// Calls one model, unless the reply is cached.
    async fn cached(
        &self,
        model: &GatewayModel,
        another: bool,
        call: &GatewayCall<'_>,
        tried: &mut Vec<Attempt>,
    ) -> Result<ResolvedReply, Error> {
        let GatewayCall { request, digest, caller, ctl, guards, .. } = call;
        let mode = guards.cache.mode(caller, request.purpose);
        let ask = self.try_model(model, another, call, tried);
        // What is not looked up needs no key, which takes a hash of the whole request.
        let Some(identity) = model.identity.as_ref().filter(|_| mode != Mode::Off) else {
            return ask.await.map(ResolvedReply::uncached);
        };
        let key = CacheKey::new(&caller.tenant, identity, digest);
        let purpose = request.purpose;
        let asked = Instant::now();
        let usage = cache::CacheUse { mode, purpose, max_output: call.max_output(model) };
        let found = cache::resolve(&guards.cache, key, usage, ctl, ask).await;
        let shared = match &found {
            Ok(found) => found.saved,
            Err(unresolved) => {
                unresolved.joined.then_some(cache::CacheSaving { how: Attempt::JOINED, nano_usd: 0 })
            }
        };
        if let Some(saved) = shared {
            tried.push(Attempt {
                model: model.provider.name().to_owned(),
                purpose: request.purpose.name().to_owned(),
                outcome: saved.how.to_owned(),
                millis: millis(asked.elapsed()),
                after_millis: millis(asked.duration_since(call.asked)),
                saved_nano_usd: saved.nano_usd,
                ..Attempt::default()
            });
        }
        found.map_err(|unresolved| unresolved.error)
    }

    /// Calls one model, with retries while they are safe and there is time. Every attempt is added to `tried`.
    async fn try_model(
        &self,
        model: &GatewayModel,
        another: bool,
        call: &GatewayCall<'_>,
        tried: &mut Vec<Attempt>,
    ) -> Result<Completion, Error> {
        let (name, ctl) = (model.provider.name(), call.ctl);
        let mut attempt = 1;
        loop {
            let slow = self.options.slow_ms.get(&call.request.purpose).filter(|_| another);
            let error = match Self::attempt(model, call, slow.copied(), tried).await {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };
            ctl.sink.restart();
            // Callers can do without an embedding.
            if call.request.purpose == Purpose::Embedding {
                return Err(error);
            }
            // The model was given up just now, or another attempt is testing it.
            if model.breaker.state() != breaker::BreakerState::Closed {
                return Err(error);
            }
            let jitter = rand::random::<f64>();
            let Some(wait) = retry::wait(&error, attempt, another, &self.options, jitter) else {
                return Err(error);
            };
            if Instant::now() + wait >= ctl.deadline {
                return Err(error);
            }
            tracing::debug!(code = error.code(), attempt, wait_ms = wait.as_millis() as u64, "{error}");
            ctl.within(tokio::time::sleep(wait)).await.map_err(|kind| Error::new(name, kind))?;
            attempt += 1;
        }
    }

    /// Asks once, for money reserved before and settled after: what is charged is what the reply or
    /// the error says that it cost, so the journal's total equals what is charged.
    async fn attempt(
        model: &GatewayModel,
        call: &GatewayCall<'_>,
        slow_ms: Option<u64>,
        tried: &mut Vec<Attempt>,
    ) -> Result<Completion, Error> {
        let name = model.provider.name();
        if model.identity.is_none() {
            let asked = Instant::now();
            let result = call.ctl.within(model.provider.complete(call.request, call.ctl)).await;
            let result = result.unwrap_or_else(|kind| Err(Error::new(name, kind)));
            tried.push(call.attempt(name, asked, &result));
            return result;
        }
        let trial = model.breaker.admit().map_err(|after| {
            let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1);
            Error::new(name, ErrorKind::Open { millis })
        })?;
        let max_output = call.max_output(model);
        let (mut reservation, mut turn) = Self::admit(model, call, max_output).await?;
        reservation.sent();
        turn.sent();
        let asked = Instant::now();
        let trace_parent = call.caller.trace.map(|trace| trace.attempt(tried.len()));
        let ctl = CallControl { trace_parent, is_awaited: slow_ms.is_some(), ..call.ctl.clone() };
        let reply = call.ctl.within(model.provider.complete(call.request, &ctl));
        let result = match started_within(slow_ms, &call.ctl.sink, reply).await.flatten() {
            Ok(result) => result,
            // From here on, nobody knows what the model did with the request.
            Err(kind) => Err(Error::new(name, kind).costing(model.price.unknown(call.prompt, 0, max_output))),
        };
        let usage = result.as_ref().map_or_else(Error::usage, |completion| completion.usage);
        reservation.settle(usage.cost_nano_usd);
        trial.report(result.as_ref().map_or_else(AttemptReport::by, |_| AttemptReport::Works));
        turn.settle(usage.input_tokens.saturating_add(usage.output_tokens));
        tried.push(call.attempt(name, asked, &result));
        result
    }
}

impl Core {
    /// Reserves money for one attempt and waits for its permit.
    async fn admit(
        model: &GatewayModel,
        call: &GatewayCall<'_>,
        max_output: u64,
    ) -> Result<(Reservation, AttemptPermit), Error> {
        let (name, ctl, guards) = (model.provider.name(), call.ctl, call.guards);
        let max = model.price.most(call.prompt, max_output);
        let tokens = call.prompt.saturating_add(max_output);
        let admitted = async {
            let reservation = guards.budget.reserve(call.caller, max).await.map_err(|error| match error {
                BudgetError::Refused(refusal) => {
                    // The message for users contains no figures of a tenant.
                    tracing::info!(%refusal, "a budget does not cover a call to a model");
                    ErrorKind::Budget(refusal)
                }
                BudgetError::Unavailable(error) => ErrorKind::Unavailable(error),
            })?;
            let entered = guards.limits.enter(&call.caller.tenant, name, tokens).await;
            let permit = entered.map_err(|error| match error {
                LimitError::Refused(refusal) => ErrorKind::Limits(refusal),
                LimitError::Unavailable(error) => ErrorKind::Unavailable(error),
            })?;
            Ok((reservation, permit))
        };
        let admitted = ctl.within(admitted).await.flatten();
        admitted.map_err(|kind| Error::new(name, kind))
    }
}

/// Waits for `reply`. One that has not begun after `slow_ms` milliseconds is given up. A reply that a reader has begun
/// to read is never broken off.
async fn started_within<T>(
    slow_ms: Option<u64>,
    sink: &Sink,
    reply: impl Future<Output = T>,
) -> Result<T, ErrorKind> {
    let Some(millis) = slow_ms else { return Ok(reply.await) };
    let mut reply = std::pin::pin!(reply);
    tokio::select! {
        biased;
        done = &mut reply => return Ok(done),
        () = tokio::time::sleep(Duration::from_millis(millis)) => {}
    }
    if sink.has_begun() { Ok(reply.await) } else { Err(ErrorKind::Slow { millis }) }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn internal(detail: &dyn std::fmt::Display) -> Error {
    Error::new("gateway", ErrorKind::Internal { detail: detail.to_string() })
}
