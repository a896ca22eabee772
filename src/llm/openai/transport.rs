//! Sends one request once, and keeps what the client crate drops: status, headers, bounds.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures::future::ready;
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Body, Response};
use serde_json::Value;
use tokio::time::Instant;

use super::super::error::ErrorKind;
use super::super::options::Options;
use super::key::ProviderKey;
use super::lines::WholeLines;
use crate::fault::root_cause;
use crate::invisible::one_line;
use crate::retry_after::retry_after;

/// Maximum size of a reply, in bytes, after decompression.
pub(super) const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_DETAIL_CHARS: usize = 300;

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) first_ms: u64,
    pub(super) between_ms: u64,
}

impl Bounds {
    pub(super) fn of(options: &Options) -> Self {
        Self { first_ms: options.first_token_timeout_ms, between_ms: options.between_tokens_timeout_ms }
    }

    pub(super) fn silence_before(&self) -> ErrorKind {
        ErrorKind::Silence { millis: self.first_ms, option: "llm.first_token_timeout_ms" }
    }

    pub(super) fn silence_between(&self) -> ErrorKind {
        ErrorKind::Silence { millis: self.between_ms, option: "llm.between_tokens_timeout_ms" }
    }
}

/// Notes that a stream contained `[DONE]`, which the client crate drops.
#[derive(Debug, Clone, Default)]
pub(super) struct DoneWatch(Arc<AtomicBool>);

impl DoneWatch {
    pub(super) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The tower service of the client: one attempt, no retries.
#[derive(Clone)]
pub(super) struct Once {
    pub(super) http: reqwest::Client,
    /// The key, which is redacted from everything the server returns.
    pub(super) key: ProviderKey,
    pub(super) bounds: Bounds,
    /// The deadline for the head of the reply.
    pub(super) first: Instant,
    pub(super) stream: bool,
    pub(super) watch: DoneWatch,
    /// Receives a complete reply, because the client would parse it again; the client gets `null`.
    pub(super) whole: Arc<Mutex<Option<Value>>>,
    /// Receives the error, because the client would turn it into text.
    pub(super) failed: Arc<Mutex<Option<ErrorKind>>>,
}

impl tower::Service<HttpRequestFactory> for Once {
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let once = self.clone();
        Box::pin(async move {
            let request = factory.build().await?;
            once.send(request).await.map_err(|kind| {
                *once.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind.clone());
                OpenAIError::Boxed(Box::new(kind))
            })
        })
    }
}

impl Once {
    async fn send(&self, request: reqwest::Request) -> Result<Response, ErrorKind> {
        let response = tokio::time::timeout_at(self.first, self.http.execute(request))
            .await
            .map_err(|_| self.bounds.silence_before())?
            .map_err(network)?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            // The status decides, so an incomplete error body is used as far as it arrived.
            let body = self.read(response, MAX_ERROR_BYTES, true).await?;
            return Err(refusal(status.as_u16(), &headers, &body));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let kind = self.key.redact(kind).chars().take(60).collect::<String>().to_ascii_lowercase();
        // Some servers omit the content type of a stream, so only what certainly is not one is treated as such.
        if self.stream && !kind.contains("json") && !kind.contains("html") {
            return Ok(self.bounded(response));
        }
        let body = self.read(response, MAX_REPLY_BYTES, false).await?;
        if self.stream && body.trim_ascii_start().starts_with(b"data:") {
            DoneMarkerScanner { watch: self.watch.clone(), line: Vec::new() }.see(&body);
            return Ok(Response::from(http::Response::new(body)));
        }
        // Some servers do not stream although requested: their complete reply becomes the only event.
        let value: Value = serde_json::from_slice(&body).map_err(|error| ErrorKind::Malformed {
            detail: format!("{error}; content type {kind:?}; it begins {:?}", excerpt(&body, 80)),
        })?;
        if self.stream {
            self.watch.0.store(true, Ordering::Release);
            let body = format!("data: {value}\n\ndata: [DONE]\n\n");
            return Ok(Response::from(http::Response::new(body)));
        }
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Ok(Response::from(http::Response::new("null")))
    }

    /// A body of at most `limit` bytes, without the key; a longer one is an error, or cut if `partly`.
    async fn read(&self, response: Response, limit: usize, partly: bool) -> Result<Vec<u8>, ErrorKind> {
        let body = self.read_all(response, limit, partly).await?;
        // Here and not later: texts are truncated later, and half a key would not be recognised.
        let other = match self.key.redact(&String::from_utf8_lossy(&body)) {
            Cow::Owned(text) => Some(text.into_bytes()),
            Cow::Borrowed(_) => None,
        };
        Ok(other.unwrap_or(body))
    }

    async fn read_all(
        &self,
        mut response: Response,
        limit: usize,
        partly: bool,
    ) -> Result<Vec<u8>, ErrorKind> {
        let mut body = Vec::new();
        let between = Duration::from_millis(self.bounds.between_ms);
        loop {
            let failure = match tokio::time::timeout(between, response.chunk()).await {
                Ok(Ok(None)) => return Ok(body),
                Ok(Ok(Some(more))) if body.len() + more.len() <= limit => {
                    body.extend_from_slice(&more);
                    continue;
                }
                Ok(Ok(Some(_))) => ErrorKind::TooLarge { limit },
                Ok(Err(_)) => ErrorKind::CutStream,
                Err(_) => self.bounds.silence_between(),
            };
            return if partly { Ok(body) } else { Err(failure) };
        }
    }

    /// The same response, with its stream watched for `[DONE]` and ended with an error at the size limit.
    fn bounded(&self, response: Response) -> Response {
        let mut watch = DoneMarkerScanner { watch: self.watch.clone(), line: Vec::new() };
        let mut mark = ByteOrderMark::default();
        let failed = self.failed.clone();
        let mut read = 0_usize;
        let mut lines = WholeLines::default();
        let pieces = response.bytes_stream().map(Some).chain(stream::once(ready(None)));
        let body = pieces.filter_map(move |piece| {
            let kind = match piece {
                Some(Ok(piece)) if read + piece.len() <= MAX_REPLY_BYTES => {
                    read += piece.len();
                    let piece = piece.slice(mark.len_in(&piece)..);
                    watch.see(&piece);
                    return ready(lines.add(&piece).map(Ok));
                }
                None => return ready(lines.end().map(Ok)),
                Some(Ok(_)) => ErrorKind::TooLarge { limit: MAX_REPLY_BYTES },
                Some(Err(_)) => ErrorKind::CutStream,
            };
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind.clone());
            ready(Some(Err(kind)))
        });
        Response::from(http::Response::new(Body::wrap_stream(Fused(Box::pin(body), false))))
    }
}

/// Ends at the first error.
struct Fused<S>(Pin<Box<S>>, bool);

impl<S: Stream<Item = Result<T, ErrorKind>>, T> Stream for Fused<S> {
    type Item = Result<T, ErrorKind>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.1 {
            return Poll::Ready(None);
        }
        let next = self.0.as_mut().poll_next(cx);
        self.1 = matches!(next, Poll::Ready(Some(Err(_))));
        next
    }
}

/// The byte-order mark that a stream may begin with (<https://html.spec.whatwg.org/multipage/server-sent-events.html>,
/// "Parsing an event stream"). It is removed here, because the parser of the client crate panics on it.
#[derive(Debug, Default)]
struct ByteOrderMark {
    /// How many of its bytes have come; all, once the stream has begun otherwise.
    seen: usize,
}

impl ByteOrderMark {
    const BYTES: &[u8] = "\u{feff}".as_bytes();

    /// How many bytes of the mark the next piece of the stream begins with.
    fn len_in(&mut self, piece: &[u8]) -> usize {
        let expected = Self::BYTES.get(self.seen..).unwrap_or_default();
        let equal = expected.iter().zip(piece).take_while(|(a, b)| a == b).count();
        self.seen = if equal == piece.len() { self.seen + equal } else { Self::BYTES.len() };
        equal
    }
}

/// Looks for a line that is `data: [DONE]`; JSON on a line cannot contain one.
struct DoneMarkerScanner {
    watch: DoneWatch,
    line: Vec<u8>,
}

impl DoneMarkerScanner {
    fn see(&mut self, piece: &[u8]) {
        for &byte in piece {
            match byte {
                b'\n' | b'\r' => self.line.clear(),
                _ if self.line.len() < 16 => self.line.push(byte),
                _ => continue,
            }
            let data = self.line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
            if data == Some(b"[DONE]") {
                self.watch.0.store(true, Ordering::Release);
            }
        }
    }
}

fn network(error: reqwest::Error) -> ErrorKind {
    if error.is_connect() || error.is_builder() {
        ErrorKind::Connect { detail: root(&error) }
    } else {
        ErrorKind::CutStream
    }
}

/// The root cause of an error; the outer layers repeat the address.
pub(super) fn root(error: &dyn std::error::Error) -> String {
    root_cause(error).chars().take(MAX_DETAIL_CHARS).collect()
}

/// The kind of an error of the client crate, if the service recorded none.
pub(super) fn kind(error: &OpenAIError) -> ErrorKind {
    match error {
        OpenAIError::Reqwest(_) | OpenAIError::StreamError(_) => ErrorKind::CutStream,
        OpenAIError::JSONDeserialize(error, _) => ErrorKind::Malformed { detail: error.to_string() },
        other => ErrorKind::Internal {
            detail: crate::setting::redact_passwords(&other.to_string())
                .chars()
                .take(MAX_DETAIL_CHARS)
                .collect(),
        },
    }
}

fn refusal(status: u16, headers: &HeaderMap, body: &[u8]) -> ErrorKind {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = match &value {
        Value::Null => excerpt(body, MAX_DETAIL_CHARS),
        value => message(value),
    };
    classify(status, &value, message, retry_after(headers, Timestamp::now()))
}

/// The kind of an error object with status 200.
pub(super) fn error_object(value: &Value) -> ErrorKind {
    let error = value.get("error").unwrap_or(value);
    let status = error.get("code").or_else(|| value.get("code")).and_then(Value::as_u64);
    let status = status.and_then(|s| u16::try_from(s).ok()).filter(|s| (400..600).contains(s));
    classify(status.unwrap_or(500), value, message(value), None)
}

fn classify(status: u16, value: &Value, detail: String, retry_after: Option<Duration>) -> ErrorKind {
    let error = value.get("error").unwrap_or(value);
    let says = |what: &str| {
        [error.get("code"), error.get("type")].into_iter().flatten().any(|v| v.as_str() == Some(what))
    };
    let lower = detail.to_ascii_lowercase();
    let too_long = says("context_length_exceeded")
        || says("exceed_context_size_error")
        || ["context length", "context size", "context window"].iter().any(|words| lower.contains(words));
    match status {
        400 | 413 | 422 | 500 if too_long => ErrorKind::ContextOverflow { detail },
        401 | 403 => ErrorKind::Unauthorized { status, detail },
        402 => ErrorKind::Quota { detail },
        429 if says("insufficient_quota") => ErrorKind::Quota { detail },
        429 => ErrorKind::RateLimited { retry_after, detail },
        _ => ErrorKind::Status { status, retry_after, detail },
    }
}

/// A server's message on one line without invisible characters: it appears in log lines and errors, and must not
/// look like several of them.
fn message(value: &Value) -> String {
    let error = value.get("error").unwrap_or(value);
    let message = error.get("message").or_else(|| value.get("detail")).unwrap_or(error);
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    one_line(&message.chars().take(MAX_DETAIL_CHARS).collect::<String>())
}

fn excerpt(bytes: &[u8], chars: usize) -> String {
    one_line(&String::from_utf8_lossy(bytes).trim().chars().take(chars).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_is_seen_across_pieces_and_not_inside_of_words() {
        let seen = |pieces: &[&str]| {
            let watch = DoneWatch::default();
            let mut done = DoneMarkerScanner { watch: watch.clone(), line: Vec::new() };
            pieces.iter().for_each(|piece| done.see(piece.as_bytes()));
            watch.is_done()
        };
        assert!(seen(&["data: {}\n\nda", "ta: [DO", "NE]\n\n"]));
        assert!(seen(&["data:[DONE]"]));
        assert!(!seen(&["data: {\"content\": \"data: [DONE]\"}\n\n"]));
    }

    #[test]
    fn byte_order_mark_is_found_only_at_the_beginning() {
        let lengths = |pieces: &[&[u8]]| {
            let mut mark = ByteOrderMark::default();
            pieces.iter().map(|piece| mark.len_in(piece)).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&[b"\xef\xbb\xbfdata", b"\xef\xbb\xbf"]), [3, 0]);
        assert_eq!(lengths(&[b"\xef", b"", b"\xbb\xbf", b"\xef\xbb\xbf"]), [1, 0, 2, 0]);
        assert_eq!(lengths(&[b"data: {}", b"\xef\xbb\xbf"]), [0, 0]);
    }

    #[test]
    fn messages_of_servers_stay_on_one_line() {
        let forged = serde_json::json!({"error": {"message": "slow\nERROR forged\u{202e}\u{200b}\u{0}"}});
        assert_eq!(message(&forged), "slow ERROR forged\\u{202e}\\u{200b}");
        assert_eq!(excerpt(b" a\r\nERROR b ", 20), "a ERROR b");
    }

    #[test]
    fn kind_is_read_from_error_bodies() {
        let code = |status, body: &str| refusal(status, &HeaderMap::new(), body.as_bytes()).code();
        assert_eq!(code(429, r#"{"error":{"message":"slow down"}}"#), "llm.rate_limited");
        assert_eq!(code(429, r#"{"error":{"code":"insufficient_quota"}}"#), "llm.quota");
        assert_eq!(code(400, r#"{"error":{"code":"context_length_exceeded"}}"#), "llm.context_overflow");
        assert_eq!(
            code(400, r#"{"error":"the request exceeds the available context size"}"#),
            "llm.context_overflow"
        );
        assert_eq!(code(401, "no"), "llm.unauthorized");
        assert_eq!(code(503, "<html>busy</html>"), "llm.status");
        assert_eq!(error_object(&serde_json::json!({"error": {"code": 429}})).code(), "llm.rate_limited");
    }
}
