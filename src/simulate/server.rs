//! The server of the simulated model: bounds, waits and faults on the wire.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::http::{KeepAlive, StatusCode};
use actix_web::rt::time::{Instant, sleep_until};
use actix_web::web::{self, Bytes, Data, Payload};
use actix_web::{App, HttpResponse, HttpServer};
use futures::stream::{self, Stream};
use serde_json::json;
use tokio::sync::oneshot;

use super::answers::{Answered, Answers, Endpoint, NodeReply, sent};
use super::counts::{Counts, Rejection, SimulatorCounts};
use super::fate::{Fate, FaultKind};
use super::latency::{waits, whole_wait};
use super::profile::Profile;
use super::question::RefusedRequest;
use super::reply::{ReplyPiece, SimulatedUsage, body_pieces};

/// Length of the system's accept queue.
const BACKLOG: i32 = 4096;
/// How long a client may take to send a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an idle connection is kept: longer than clients keep theirs.
const KEEP_ALIVE: Duration = Duration::from_secs(120);
/// How often a stopping server checks whether all replies were sent.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Threads on which the rules answer what is not remembered.
const RULE_THREADS: usize = 2;

/// Why a simulated model did not start.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The address cannot be bound.
    #[error("cannot listen on {addr}: {error}; choose another address with --addr")]
    Address {
        /// The address.
        addr: String,
        /// The system's error.
        error: io::Error,
    },
    /// A thread, the server or its metrics could not be started.
    #[error("the simulated model cannot be started: {0}")]
    Start(String),
}

impl SimulateError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address { .. } => "simulate.address",
            Self::Start(_) => "simulate.start",
        }
    }
}

/// What the handlers share.
struct SimulatorState {
    profile: Profile,
    answers: Answers,
    counts: Counts,
    is_stopping: AtomicBool,
}

/// A running simulated model. Dropping it leaves it running; [`Simulator::stop`] ends it.
pub struct Simulator {
    addr: SocketAddr,
    handle: ServerHandle,
    state: Arc<SimulatorState>,
    thread: Option<std::thread::JoinHandle<()>>,
    ended: oneshot::Receiver<()>,
}

impl std::fmt::Debug for Simulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Simulator {
    /// Binds `addr`, whose port may be 0, and serves on a thread of its own. Questions of nodes are refused.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub async fn start(addr: &str, profile: Profile) -> Result<Self, SimulateError> {
        Self::start_with_nodes(addr, profile, |_, _| None).await
    }

    /// Like [`Simulator::start`]; `nodes` replies to the questions of nodes.
    ///
    /// # Errors
    /// See [`SimulateError`].
    pub async fn start_with_nodes(
        addr: &str,
        profile: Profile,
        nodes: NodeReply,
    ) -> Result<Self, SimulateError> {
        let refused = |error| SimulateError::Address { addr: addr.to_owned(), error };
        let listener = std::net::TcpListener::bind(addr).map_err(refused)?;
        // The standard library sets a backlog of 128; a second `listen` raises it.
        socket2::SockRef::from(&listener).listen(BACKLOG).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let counts = Counts::new().map_err(|error| SimulateError::Start(error.to_string()))?;
        let state = Arc::new(SimulatorState {
            profile,
            answers: Answers::new(nodes),
            counts,
            is_stopping: AtomicBool::new(false),
        });
        let (sender, receiver) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let shared = state.clone();
        let thread = std::thread::Builder::new()
            .name("simulate-llm".to_owned())
            .spawn(move || {
                actix_web::rt::System::new().block_on(serve(shared, listener, sender));
                let _ = end.send(());
            })
            .map_err(|error| SimulateError::Start(error.to_string()))?;
        let started = receiver.await.unwrap_or_else(|_| Err(io::Error::other("its thread ended")));
        let handle = started.map_err(|error| SimulateError::Start(error.to_string()))?;
        Ok(Self { addr: bound, handle, state, thread: Some(thread), ended })
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns what it did by now.
    pub fn counts(&self) -> SimulatorCounts {
        self.state.counts.document()
    }

    /// Refuses further requests, waits at most `drain_ms` for replies in progress, and stops. Returns whether all of
    /// them had been sent by then.
    pub async fn stop(mut self) -> bool {
        self.state.is_stopping.store(true, Ordering::Release);
        let wait = Duration::from_millis(self.state.profile.drain_ms);
        let drained = async {
            while self.state.counts.in_flight() > 0 {
                tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
            }
            // What was handed over last is still written.
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        };
        let drained = tokio::time::timeout(wait, drained).await.is_ok();
        // Idle connections of clients would hold a graceful stop.
        self.handle.stop(false).await;
        let _ = (&mut self.ended).await;
        if let Some(thread) = self.thread.take() {
            // It has already signalled its end.
            let _ = thread.join();
        }
        drained
    }
}

async fn serve(
    state: Arc<SimulatorState>,
    listener: std::net::TcpListener,
    started: oneshot::Sender<io::Result<ServerHandle>>,
) {
    match build(state, listener) {
        Ok(server) => {
            let _ = started.send(Ok(server.handle()));
            if let Err(error) = server.await {
                tracing::error!(%error, "the simulated model ended with an error");
            }
        }
        Err(error) => {
            let _ = started.send(Err(error));
        }
    }
}

fn build(state: Arc<SimulatorState>, listener: std::net::TcpListener) -> io::Result<actix_web::dev::Server> {
    let max = state.profile.max_in_flight;
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::from(state.clone()))
            .route("/v1/chat/completions", web::post().to(chat))
            .route("/v1/embeddings", web::post().to(embeddings))
            .route("/v1/models", web::get().to(models))
            .route("/metrics", web::get().to(metrics))
            .route("/counts", web::get().to(counts))
            .default_service(web::to(no_address))
    })
    // Most of its time it waits, so one thread serves thousands of requests, and costs the measured server little.
    .workers(1)
    .worker_max_blocking_threads(RULE_THREADS)
    // Room for those that are refused, and for the counts.
    .max_connections(max.saturating_add(1_000))
    .keep_alive(KeepAlive::Timeout(KEEP_ALIVE))
    .client_request_timeout(BODY_TIMEOUT)
    .client_disconnect_timeout(Duration::from_secs(1))
    // A handler that waits is dropped when its client leaves.
    .h1_allow_half_closed(false)
    .on_connect(|connection, _| {
        if let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() {
            let _ = stream.set_nodelay(true);
        }
    })
    .disable_signals();
    listener.set_nonblocking(true)?;
    Ok(server.listen(listener)?.run())
}

async fn chat(state: Data<SimulatorState>, payload: Payload) -> HttpResponse {
    respond(state, Endpoint::Chat, payload).await
}

async fn embeddings(state: Data<SimulatorState>, payload: Payload) -> HttpResponse {
    respond(state, Endpoint::Embeddings, payload).await
}

async fn models() -> HttpResponse {
    let model = json!({"id": "simulated", "object": "model", "created": 0, "owned_by": "proscenium"});
    HttpResponse::Ok().json(json!({"object": "list", "data": [model]}))
}

async fn metrics(state: Data<SimulatorState>) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(state.counts.text())
}

async fn counts(state: Data<SimulatorState>) -> HttpResponse {
    HttpResponse::Ok().json(state.counts.document())
}

async fn no_address() -> HttpResponse {
    let message = "there are POST /v1/chat/completions, POST /v1/embeddings, GET /v1/models, GET /metrics and GET /counts";
    error(StatusCode::NOT_FOUND, "simulate.no_address", message)
}

/// The protocol's error object.
fn error(status: StatusCode, code: &str, message: &str) -> HttpResponse {
    let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    HttpResponse::build(status).json(body)
}

/// A request in progress. It counts as abandoned if it is dropped before its end.
struct ReplyInProgress {
    state: Data<SimulatorState>,
    begun: Instant,
    /// The most by which something was sent later than it was due.
    late: Duration,
    is_over: bool,
    /// Whether there is room for it, so that it counts as in progress.
    has_room: bool,
}

impl ReplyInProgress {
    fn begin(state: &Data<SimulatorState>) -> Self {
        let has_room = state.counts.begin(state.profile.max_in_flight);
        Self { state: state.clone(), begun: Instant::now(), late: Duration::ZERO, is_over: false, has_room }
    }

    /// Waits until `time` after the request. What the rules took is part of it.
    async fn wait(&mut self, time: Duration) {
        let due = self.begun + time;
        if due > Instant::now() {
            sleep_until(due).await;
        }
        self.late = self.late.max(due.elapsed());
    }

    /// The reply was sent to its end.
    fn replied(&mut self, usage: SimulatedUsage) {
        self.is_over = true;
        self.state.counts.replied(usage, self.begun.elapsed(), self.late);
    }

    fn over(&mut self) {
        self.is_over = true;
    }

    fn refused(&mut self, why: Rejection, refused: &RefusedRequest) -> HttpResponse {
        self.over();
        self.state.counts.rejected(why);
        let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
        error(status, refused.code, &refused.message)
    }
}

impl Drop for ReplyInProgress {
    fn drop(&mut self) {
        if !self.has_room {
            return;
        }
        self.state.counts.end();
        if !self.is_over {
            self.state.counts.abandoned();
        }
    }
}

async fn respond(state: Data<SimulatorState>, endpoint: Endpoint, payload: Payload) -> HttpResponse {
    let mut progress = ReplyInProgress::begin(&state);
    // Before any refusal, too: a connection with bytes that nobody read would be reset.
    let body = match read_body(payload, state.profile.max_body_bytes).await {
        Ok(body) => body,
        Err(refused) => return progress.refused(Rejection::Invalid, &refused),
    };
    if let Some(refused) = no_room(&state, progress.has_room) {
        let mut response = progress.refused(Rejection::Overloaded, &refused);
        wait_header(&mut response, 1);
        return response;
    }
    match look_up(&state, endpoint, body).await {
        Ok((answered, was_remembered)) => {
            state.counts.asked(answered.facts.kind, was_remembered);
            let nth = state.answers.count(&answered.facts);
            let fate = Fate::of(&state.profile, &answered.facts, nth);
            fulfil(fate, answered, progress).await
        }
        Err(refused) if refused.code == "simulate.unsupported" => {
            progress.refused(Rejection::Unsupported, &refused)
        }
        Err(refused) => progress.refused(Rejection::Invalid, &refused),
    }
}

/// The reply to a body, and whether it was remembered. The body is dropped before the waits of the reply.
async fn look_up(
    state: &Data<SimulatorState>,
    endpoint: Endpoint,
    body: Bytes,
) -> Result<(Arc<Answered>, bool), RefusedRequest> {
    if let Some(answered) = state.answers.remembered(endpoint, &body) {
        return Ok((answered, true));
    }
    answer(state, endpoint, body).await.map(|answered| (answered, false))
}

/// Why a request is not begun.
fn no_room(state: &SimulatorState, has_room: bool) -> Option<RefusedRequest> {
    if state.is_stopping.load(Ordering::Acquire) {
        let message = "the simulated model is stopping: send the request to another".to_owned();
        return Some(RefusedRequest { status: 503, code: "simulate.stopping", message });
    }
    let message = format!(
        "{} requests are in progress, which is the limit (server.max_in_flight of the profile); retry in a moment",
        state.profile.max_in_flight
    );
    (!has_room).then_some(RefusedRequest { status: 503, code: "simulate.overloaded", message })
}

async fn read_body(payload: Payload, max: usize) -> Result<Bytes, RefusedRequest> {
    let slow = || RefusedRequest {
        status: 408,
        code: "simulate.request",
        message: format!("the body did not arrive within {} s: send it at once", BODY_TIMEOUT.as_secs()),
    };
    let read = tokio::time::timeout(BODY_TIMEOUT, payload.to_bytes_limited(max)).await.map_err(|_| slow())?;
    let too_large = |_| RefusedRequest {
        status: 413,
        code: "simulate.request",
        message: format!(
            "the body has more than {max} bytes (server.max_body_bytes of the profile): send less"
        ),
    };
    read.map_err(too_large)?.map_err(|error| {
        RefusedRequest::invalid(format!("the body could not be read ({error}): send it again"))
    })
}

/// Asks the rules, on a thread on which nothing waits.
async fn answer(
    state: &Data<SimulatorState>,
    endpoint: Endpoint,
    body: Bytes,
) -> Result<Arc<Answered>, RefusedRequest> {
    let shared = state.clone();
    let answered = web::block(move || shared.answers.answer(&shared.profile, endpoint, &body)).await;
    answered.unwrap_or_else(|_| {
        let message = "the rules did not answer: try again, and report this if it stays".to_owned();
        Err(RefusedRequest { status: 500, code: "simulate.internal", message })
    })
}

/// Sends the reply, or what the request's fate has in its place.
async fn fulfil(mut fate: Fate, answered: Arc<Answered>, mut progress: ReplyInProgress) -> HttpResponse {
    let state = progress.state.clone();
    let profile = &state.profile;
    if let Some(fault) = fate.fault {
        state.counts.shown(fault);
    }
    let mut sending = match fate.fault {
        Some(FaultKind::RateLimited) => {
            progress.over();
            let mut response = error(
                StatusCode::TOO_MANY_REQUESTS,
                "simulate.rate_limited",
                "a simulated rate limit: wait as Retry-After says",
            );
            wait_header(&mut response, profile.retry_after_s);
            return response;
        }
        Some(FaultKind::ServerError) => {
            progress.over();
            return error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "simulate.server_error",
                "a simulated fault of the server: try again",
            );
        }
        Some(FaultKind::Timeout) => {
            progress.wait(Duration::from_millis(profile.timeout_ms)).await;
            progress.over();
            return error(StatusCode::GATEWAY_TIMEOUT, "simulate.timeout", "a simulated timeout: try again");
        }
        Some(fault @ (FaultKind::MalformedCall | FaultKind::WrongCall | FaultKind::IgnoredChoice)) => {
            Sending::spoiled(profile, &answered, fault)
        }
        Some(FaultKind::SlowDrip | FaultKind::CutStream) | None => Sending::good(&answered),
    };
    sending.fault = fate.fault;
    sending.send(profile, &mut fate, answered.is_streamed, progress).await
}

fn wait_header(response: &mut HttpResponse, seconds: u64) {
    response.headers_mut().insert(actix_web::http::header::RETRY_AFTER, seconds.into());
}

/// A reply on its way.
struct Sending {
    pieces: Vec<ReplyPiece>,
    usage: SimulatedUsage,
    fault: Option<FaultKind>,
}

impl Sending {
    fn good(answered: &Answered) -> Self {
        Self { pieces: answered.pieces.clone(), usage: answered.usage, fault: None }
    }

    /// The reply with a fault in its content.
    fn spoiled(profile: &Profile, answered: &Answered, fault: FaultKind) -> Self {
        let Some(reply) = &answered.reply else { return Self::good(answered) };
        let spoiled = reply.spoiled(fault);
        let pieces = sent(profile, &spoiled, answered.is_streamed, answered.with_usage);
        Self { pieces, usage: spoiled.usage, fault: None }
    }

    async fn send(
        mut self,
        profile: &Profile,
        fate: &mut Fate,
        is_streamed: bool,
        mut progress: ReplyInProgress,
    ) -> HttpResponse {
        let is_broken = matches!(self.fault, Some(FaultKind::SlowDrip | FaultKind::CutStream));
        if let ([whole], true) = (self.pieces.as_slice(), is_broken && !is_streamed) {
            self.pieces = body_pieces(&whole.bytes, profile.chunks, whole.tokens);
        }
        if !is_streamed && !is_broken {
            let tokens = self.usage.completion;
            let (first, per_token) = (&profile.first_token, &profile.per_token);
            progress.wait(whole_wait(first, per_token, tokens, profile.chunks, &mut fate.rng)).await;
            progress.replied(self.usage);
            let body = self.pieces.pop().map(|piece| piece.bytes).unwrap_or_default();
            return HttpResponse::Ok().content_type("application/json").body(body);
        }
        let tokens: Vec<u64> = self.pieces.iter().map(|piece| piece.tokens).collect();
        let mut times = waits(&profile.first_token, &profile.per_token, &tokens, &mut fate.rng);
        if self.fault == Some(FaultKind::SlowDrip) {
            times.iter_mut().for_each(|time| *time += Duration::from_millis(profile.drip_ms));
        }
        let mut response = HttpResponse::Ok();
        if is_streamed {
            response.content_type("text/event-stream").insert_header(("cache-control", "no-store"));
        } else {
            response.content_type("application/json");
        }
        let is_cut = self.fault == Some(FaultKind::CutStream);
        if is_cut {
            self.pieces.truncate(self.pieces.len() / 2);
        }
        let due = times.iter().scan(Duration::ZERO, |due, time| {
            *due += *time;
            Some(*due)
        });
        let pieces = self.pieces.into_iter().map(|piece| piece.bytes).zip(due).collect();
        response.streaming(paced(PacedReply { pieces, is_cut, usage: self.usage, progress }))
    }
}

/// The pieces of a reply that are still to be sent, with the times after the request at which they are due.
struct PacedReply {
    pieces: std::collections::VecDeque<(Bytes, Duration)>,
    /// Whether the connection breaks after the last piece.
    is_cut: bool,
    usage: SimulatedUsage,
    progress: ReplyInProgress,
}

fn paced(reply: PacedReply) -> impl Stream<Item = Result<Bytes, io::Error>> {
    stream::unfold(Some(reply), |reply| async move {
        let mut reply = reply?;
        match reply.pieces.pop_front() {
            Some((bytes, due)) => {
                reply.progress.wait(due).await;
                if reply.pieces.is_empty() && !reply.is_cut {
                    reply.progress.replied(reply.usage);
                    // It is over now, not only when the stream is asked for more.
                    return Some((Ok(bytes), None));
                }
                Some((Ok(bytes), Some(reply)))
            }
            None if reply.is_cut => {
                reply.progress.over();
                // Earlier bytes are sent before the connection breaks.
                tokio::task::yield_now().await;
                Some((Err(io::Error::other("a simulated break of the connection")), None))
            }
            None => None,
        }
    })
}
