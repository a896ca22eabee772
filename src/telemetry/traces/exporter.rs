//! Sends finished spans to a receiver, in batches.
//!
//! Spans wait in a queue that is bounded in number and bytes. Spans for which there is no room, or that cannot be sent,
//! are dropped and counted: a slow or unavailable receiver does not affect runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use opentelemetry_proto::tonic::resource::v1::Resource;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode};
use tokio::runtime::Handle as Runtime;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::otlp;
use super::span::{FinishedSpan, SpanSink};
use crate::config::OtlpTarget;
use crate::fault::root_cause;
use crate::mutex::lock;
use crate::retry_after::retry_after;
use crate::telemetry::{ServerMetrics, SpanFate};

/// Maximum number of spans that wait, and about how many bytes they may take.
const MAX_QUEUED: usize = 8192;
const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of spans of one export, and about how many bytes they may take.
const MAX_BATCH: usize = 512;
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// How long spans wait for others.
const LINGER: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: u32 = 4;
/// The wait before the second attempt; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// The longest wait for which an export is kept. If a receiver asks for a longer wait, it gets nothing during that
/// time, for an hour at most.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
const MAX_PAUSE: Duration = Duration::from_secs(3600);
/// How many bytes of a response are read at most.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// How long the last spans may take when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// How often failures are logged at most.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The exporter. Clones share it.
#[derive(Clone)]
pub struct SpanExporter(Arc<ExportQueue>);

struct ExportQueue {
    state: Mutex<QueuedSpans>,
    /// There is something to send.
    filled: Notify,
    /// It is sent at once.
    urgent: Notify,
    /// Fires when the exporter takes no more.
    stopping: CancellationToken,
    /// Fires when everything was sent or given up.
    stopped: CancellationToken,
    metrics: ServerMetrics,
}

#[derive(Default)]
struct QueuedSpans {
    spans: VecDeque<FinishedSpan>,
    bytes: usize,
    /// How many are on their way to the receiver.
    sending: usize,
}

impl SpanExporter {
    /// Starts an exporter to a receiver, whose requests end after `timeout`. It runs on `runtime` until it is stopped.
    ///
    /// # Errors
    /// Why there is no HTTP client.
    pub fn start(
        target: OtlpTarget,
        request_timeout: Duration,
        metrics: ServerMetrics,
        runtime: &Runtime,
    ) -> Result<Self, reqwest::Error> {
        let mut http = Client::builder()
            .timeout(request_timeout)
            // A redirected POST could arrive as a GET, or send its content to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("proscenium/", env!("CARGO_PKG_VERSION")));
        let is_near = target.url.host_str().is_some_and(|host| {
            let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        });
        if is_near {
            http = http.no_proxy();
            if target.url.scheme() == "http" {
                // The connection is not encrypted, so the system's root certificates need not be read.
                http = http.tls_certs_only([]);
            }
        }
        let queue = Arc::new(ExportQueue {
            state: Mutex::default(),
            filled: Notify::new(),
            urgent: Notify::new(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            metrics,
        });
        let sender = SpanSender {
            resource: otlp::resource(&target),
            http: http.build()?,
            target,
            queue: queue.clone(),
            logged: None,
            not_before: None,
        };
        runtime.spawn(sender.run());
        Ok(Self(queue))
    }
}

impl SpanSink for SpanExporter {
    fn export(&self, span: FinishedSpan) {
        let size = span.size();
        let mut state = self.0.lock();
        let has_room = state.spans.len() < MAX_QUEUED && state.bytes + size <= MAX_QUEUED_BYTES;
        if !has_room || self.0.stopping.is_cancelled() {
            drop(state);
            return self.0.metrics.record_spans(SpanFate::Dropped, 1);
        }
        state.bytes += size;
        state.spans.push_back(span);
        let is_full = state.spans.len() >= MAX_BATCH || state.bytes >= MAX_BATCH_BYTES;
        drop(state);
        self.0.filled.notify_one();
        if is_full {
            self.0.urgent.notify_one();
        }
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let queue = self.0.clone();
        async move {
            queue.stopping.cancel();
            queue.filled.notify_one();
            queue.urgent.notify_one();
            if timeout(STOP_TIMEOUT, queue.stopped.cancelled()).await.is_err() {
                queue.stopped.cancel();
                let state = queue.lock();
                let left = state.spans.len() + state.sending;
                drop(state);
                tracing::warn!(left, "the receiver of traces did not take the last spans in time");
            }
        }
        .boxed()
    }
}

impl ExportQueue {
    fn lock(&self) -> MutexGuard<'_, QueuedSpans> {
        lock(&self.state)
    }

    /// The next spans to send; empty if there are none.
    fn next_batch(&self) -> Vec<FinishedSpan> {
        let mut state = self.lock();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH
            && let Some(span) = state.spans.front()
        {
            let size = span.size();
            if !batch.is_empty() && bytes + size > MAX_BATCH_BYTES {
                break;
            }
            bytes += size;
            state.bytes = state.bytes.saturating_sub(size);
            batch.extend(state.spans.pop_front());
        }
        state.sending = batch.len();
        batch
    }
}

struct SpanSender {
    target: OtlpTarget,
    resource: Resource,
    http: Client,
    queue: Arc<ExportQueue>,
    /// When a failure was logged last.
    logged: Option<Instant>,
    /// Until when the receiver asked for no exports.
    not_before: Option<Instant>,
}

/// How an attempt ended.
enum ExportEnd {
    /// The receiver took the spans, but for some.
    Accepted { rejected: u64 },
    /// It may take them later.
    Retry { why: String, after: Option<Duration> },
    /// It will not take them.
    Refused(String),
}

impl SpanSender {
    async fn run(mut self) {
        let stopped = self.queue.stopped.clone();
        stopped.run_until_cancelled(self.send_all()).await;
        let left = self.queue.lock().spans.len() as u64;
        self.queue.metrics.record_spans(SpanFate::Dropped, left);
        stopped.cancel();
    }

    /// Sends what is queued until the exporter is stopped.
    async fn send_all(&mut self) {
        loop {
            self.queue.filled.notified().await;
            // Read before the queue is emptied: nothing is added to it afterwards.
            let is_stopping = self.queue.stopping.is_cancelled();
            if !is_stopping {
                // Waits for more spans, unless there are enough.
                let _ = timeout(LINGER, self.queue.urgent.notified()).await;
            }
            loop {
                if let Some(at) = self.not_before.take()
                    && self.queue.stopping.run_until_cancelled(sleep_until(at)).await.is_none()
                {
                    // The rest is dropped, because the receiver does not want it now.
                    return;
                }
                let batch = self.queue.next_batch();
                if batch.is_empty() {
                    break;
                }
                self.send(batch).await;
            }
            if is_stopping {
                return;
            }
        }
    }

    async fn send(&mut self, batch: Vec<FinishedSpan>) {
        let spans = batch.len() as u64;
        let lost = LostSpans { spans, metrics: self.queue.metrics.clone() };
        let body = otlp::body(batch, &self.resource);
        let mut attempt = 1;
        let why = loop {
            let (why, wait) = match self.post(body.clone()).await {
                ExportEnd::Accepted { rejected } => {
                    let rejected = rejected.min(spans);
                    self.queue.metrics.record_spans(SpanFate::Rejected, rejected);
                    self.queue.metrics.record_spans(SpanFate::Exported, spans - rejected);
                    return lost.forget();
                }
                ExportEnd::Refused(why) => break why,
                ExportEnd::Retry { why, after } => {
                    (why, FIRST_BACKOFF.saturating_mul(1 << (attempt - 1)).max(after.unwrap_or_default()))
                }
            };
            if wait > MAX_BACKOFF {
                self.not_before = Some(Instant::now() + wait.min(MAX_PAUSE));
                break why;
            }
            if attempt >= MAX_ATTEMPTS || self.queue.stopping.run_until_cancelled(sleep(wait)).await.is_none()
            {
                break why;
            }
            attempt += 1;
        };
        self.warn(spans, &why);
    }

    async fn post(&mut self, body: Vec<u8>) -> ExportEnd {
        let request = self
            .http
            .post(self.target.url.clone())
            .headers(self.target.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        let response = match request.send().await {
            Ok(response) => response,
            // Without the URL, which may contain secrets.
            Err(error) => return ExportEnd::Retry { why: root_cause(&error.without_url()), after: None },
        };
        let status = response.status();
        if status.is_success() {
            // The spans have arrived, whatever happens to the response.
            let Some((rejected, why)) = read(response).await.as_deref().and_then(otlp::rejected) else {
                return ExportEnd::Accepted { rejected: 0 };
            };
            self.warn(rejected, &format!("the receiver says: {}", one_line(&why)));
            return ExportEnd::Accepted { rejected };
        }
        let why = format!("status {}", status.as_u16());
        let may_pass = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        if may_pass.contains(&status) {
            return ExportEnd::Retry { why, after: retry_after(response.headers(), Timestamp::now()) };
        }
        ExportEnd::Refused(why)
    }

    fn warn(&mut self, spans: u64, why: &str) {
        if self.logged.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return;
        }
        self.logged = Some(Instant::now());
        tracing::warn!(code = "traces.export", spans, why, "spans were not taken by the receiver of traces");
    }
}

/// Counts spans as failed if they are not sent, also if the exporter ends during their export.
struct LostSpans {
    spans: u64,
    metrics: ServerMetrics,
}

impl LostSpans {
    fn forget(mut self) {
        self.spans = 0;
    }
}

impl Drop for LostSpans {
    fn drop(&mut self) {
        self.metrics.record_spans(SpanFate::Failed, self.spans);
    }
}

/// The body of a response, if it is short.
async fn read(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        if body.len() + piece.len() > MAX_RESPONSE_BYTES {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    Some(body)
}

/// The message of a receiver, as part of a log line.
fn one_line(text: &str) -> String {
    crate::invisible::one_line(&text.chars().take(200).collect::<String>())
}
