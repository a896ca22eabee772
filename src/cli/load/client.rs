//! Sends one request and reads its reply, in either protocol.

use std::time::{Duration, Instant};

use proscenium::load::events::{EventSplitter, StreamedEvent};
use proscenium::load::outcome::{
    CONNECT, CUT, REPLY, RequestEnd, RequestOutcome, RequestUsage, ServerTimes, TIMEOUT,
};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::failure::Failure;
use super::super::remote;
use super::target::{LoadProtocol, LoadTarget};

/// Longest reply that is read, in bytes.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// Sends requests to the server under load.
pub struct LoadClient {
    client: Client,
    target: LoadTarget,
    model: String,
    timeout: Duration,
    streamed: bool,
}

/// A request of a conversation.
pub struct LoadRequest<'a> {
    /// The key of its tenant.
    pub key: Option<&'a SecretString>,
    /// The name of the conversation.
    pub session: &'a str,
    /// The client's name for the request; no two are equal.
    pub idempotency: &'a str,
    /// The text of the request.
    pub text: &'a str,
    /// The earlier requests of the conversation and their answers, for servers that keep none.
    pub history: &'a [(String, String)],
}

/// The outcome of a request, with the text of its answer.
pub struct LoadReply {
    /// Its outcome.
    pub outcome: RequestOutcome,
    /// The text of the answer.
    pub answer: String,
}

impl LoadReply {
    fn failed(code: &str, run: Option<Uuid>) -> Self {
        Self { outcome: RequestOutcome { run, ..RequestOutcome::failed(code) }, answer: String::new() }
    }
}

/// What the head of a reply says.
struct ReplyHead {
    run: Option<Uuid>,
    retry_after_s: Option<u32>,
    is_replay: bool,
}

impl ReplyHead {
    fn of(response: &Response) -> Self {
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = response.headers().get(RETRY_AFTER);
        Self {
            run: text("x-run-id").and_then(|id| id.parse().ok()),
            // A date counts as a second: how long that is depends on two clocks.
            retry_after_s: retry_after
                .map(|value| value.to_str().ok().and_then(|s| s.parse().ok()).unwrap_or(1)),
            is_replay: text("idempotent-replayed") == Some("true"),
        }
    }

    fn outcome(&self, end: RequestEnd) -> RequestOutcome {
        RequestOutcome { run: self.run, is_replay: self.is_replay, ..RequestOutcome::of(end) }
    }
}

impl LoadClient {
    /// A client that keeps as many connections as there are requests in flight.
    ///
    /// # Errors
    /// `server.client` if no HTTP client can be made.
    pub fn new(
        target: LoadTarget,
        model: String,
        timeout: Duration,
        streamed: bool,
    ) -> Result<Self, Failure> {
        let client = remote::client_builder(target.chat.as_str())
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(usize::MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| Failure::new("server.client", format!("no HTTP client: {error}")))?;
        Ok(Self { client, target, model, timeout, streamed })
    }

    /// A request to another address of the server.
    pub fn get(&self, path: &str, key: Option<&SecretString>) -> RequestBuilder {
        let request = self.client.get(format!("{}{path}", self.target.origin)).timeout(self.timeout);
        match key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    /// The server.
    pub fn target(&self) -> &LoadTarget {
        &self.target
    }

    /// Sends a request and reads the whole reply, within the timeout.
    pub async fn send(&self, request: &LoadRequest<'_>) -> LoadReply {
        let replied = tokio::time::timeout(self.timeout, self.exchange(request)).await;
        replied.unwrap_or_else(|_| LoadReply::failed(TIMEOUT, None))
    }

    async fn exchange(&self, request: &LoadRequest<'_>) -> LoadReply {
        let sent = Instant::now();
        let mut builder = self.client.post(self.target.chat.clone()).json(&self.body(request));
        builder = builder.header("idempotency-key", request.idempotency);
        if self.target.protocol == LoadProtocol::OpenAi {
            builder = builder.header("x-session-id", request.session);
        }
        if let Some(key) = request.key {
            builder = builder.bearer_auth(key.expose_secret());
        }
        let response = match builder.send().await {
            Ok(response) => response,
            Err(error) => return LoadReply::failed(if error.is_connect() { CONNECT } else { CUT }, None),
        };
        let head = ReplyHead::of(&response);
        let status = response.status();
        let media =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if status.is_success() && media.starts_with("text/event-stream") {
            return self.stream(response, &head, sent).await;
        }
        let Ok(body) = remote::bytes(response, MAX_REPLY_BYTES).await else {
            return LoadReply::failed(CUT, head.run);
        };
        let document = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status.is_success() {
            return match self.target.protocol {
                LoadProtocol::Api => answer_document(&document, head),
                LoadProtocol::OpenAi => completion(&document, &head),
            };
        }
        let code = error_code(&document).unwrap_or_else(|| format!("http.{}", status.as_u16()));
        // A request with a run was accepted, so it was not shed: its run failed.
        let is_shed = matches!(status.as_u16(), 429 | 503) && head.run.is_none();
        let end = match is_shed {
            true => RequestEnd::Shed { code, retry_after_s: head.retry_after_s },
            false => RequestEnd::Failed { code },
        };
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        LoadReply { outcome: RequestOutcome { is_denied, ..head.outcome(end) }, answer: String::new() }
    }

    fn body(&self, request: &LoadRequest<'_>) -> Value {
        let user = |text: &str| json!({"role": "user", "content": text});
        match self.target.protocol {
            LoadProtocol::Api => {
                let mut body = json!({"messages": [user(request.text)], "session_id": request.session});
                if self.streamed {
                    body["stream"] = json!(true);
                }
                body
            }
            LoadProtocol::OpenAi => {
                let mut messages = Vec::new();
                for (asked, answered) in request.history {
                    messages.push(user(asked));
                    messages.push(json!({"role": "assistant", "content": answered}));
                }
                messages.push(user(request.text));
                let mut body = json!({"model": self.model, "messages": messages});
                if self.streamed {
                    body["stream"] = json!(true);
                    body["stream_options"] = json!({"include_usage": true});
                }
                body
            }
        }
    }

    async fn stream(&self, mut response: Response, head: &ReplyHead, sent: Instant) -> LoadReply {
        let mut splitter = EventSplitter::default();
        let mut read = ReadStream::new(self.target.protocol);
        let mut bytes = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes += chunk.len();
            let Some(events) = splitter.push(&chunk).filter(|_| bytes <= MAX_REPLY_BYTES) else {
                return LoadReply::failed(REPLY, head.run);
            };
            for event in &events {
                read.event(event, sent);
            }
        }
        let end = read.end.unwrap_or_else(|| RequestEnd::Failed { code: CUT.to_owned() });
        let outcome =
            RequestOutcome { first_token: read.first_token, usage: read.usage, ..head.outcome(end) };
        LoadReply { outcome, answer: read.answer }
    }
}

/// What was read of a streamed answer so far.
struct ReadStream {
    protocol: LoadProtocol,
    end: Option<RequestEnd>,
    first_token: Option<Duration>,
    usage: RequestUsage,
    answer: String,
}

impl ReadStream {
    fn new(protocol: LoadProtocol) -> Self {
        Self { protocol, end: None, first_token: None, usage: RequestUsage::default(), answer: String::new() }
    }

    fn event(&mut self, event: &StreamedEvent, sent: Instant) {
        if event.data == "[DONE]" {
            self.end.get_or_insert_with(|| RequestEnd::Answered { status: "ok".to_owned() });
            return;
        }
        let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
        match self.protocol {
            LoadProtocol::Api => self.api_event(&event.name, &data, sent),
            LoadProtocol::OpenAi => self.chunk(&data, sent),
        }
    }

    fn api_event(&mut self, name: &str, data: &Value, sent: Instant) {
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        match name {
            "answer_delta" | "answered" => {
                self.first_token = self.first_token.or_else(|| Some(sent.elapsed()))
            }
            "run_completed" | "run_waiting" => {
                self.end = Some(RequestEnd::Answered { status: text("status") })
            }
            "run_failed" | "run_cancelled" => {
                let code = data["error"]["code"].as_str().unwrap_or("run.cancelled").to_owned();
                self.end = Some(RequestEnd::Failed { code });
            }
            "error" => self.end = Some(RequestEnd::Failed { code: text("code") }),
            _ => {}
        }
    }

    fn chunk(&mut self, data: &Value, sent: Instant) {
        if let Some(code) = error_code(data) {
            self.end = Some(RequestEnd::Failed { code });
        }
        let delta = data["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        if !delta.is_empty() {
            self.first_token = self.first_token.or_else(|| Some(sent.elapsed()));
            self.answer.push_str(delta);
        }
        if data["usage"].is_object() {
            self.usage = completion_usage(data);
        }
    }
}

/// The stable code of a problem document, or of an error object of the OpenAI protocol. It is shown, so it is short and
/// has no spaces.
fn error_code(document: &Value) -> Option<String> {
    let error = &document["error"];
    let code = [&document["code"], &error["code"], &error["type"]].into_iter().find_map(Value::as_str)?;
    let code: String = code.chars().filter(char::is_ascii_graphic).take(64).collect();
    (!code.is_empty()).then_some(code)
}

fn answer_document(document: &Value, mut head: ReplyHead) -> LoadReply {
    let Some(status) = document["status"].as_str() else { return LoadReply::failed(REPLY, head.run) };
    head.run = head.run.or_else(|| document["run_id"].as_str()?.parse().ok());
    let end = match status {
        "failed" | "cancelled" => {
            let code = error_code(document).unwrap_or_else(|| format!("run.{status}"));
            RequestEnd::Failed { code }
        }
        status => RequestEnd::Answered { status: status.to_owned() },
    };
    let answer = document["answer"].as_str().unwrap_or_default().to_owned();
    LoadReply { outcome: RequestOutcome { usage: document_usage(document), ..head.outcome(end) }, answer }
}

/// The usage in an answer document.
pub fn document_usage(document: &Value) -> RequestUsage {
    let (usage, timings) = (&document["usage"], &document["timings"]);
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    let times = timings["total_ms"].as_f64().zip(timings["overhead_ms"].as_f64());
    RequestUsage {
        llm_calls: count("llm_calls"),
        input_tokens: count("input_tokens"),
        cached_input_tokens: count("cached_input_tokens"),
        output_tokens: count("output_tokens"),
        cost_usd: usage["cost_usd"].as_f64(),
        times: times.map(|(total_ms, overhead_ms)| ServerTimes { total_ms, overhead_ms }),
    }
}

fn completion(document: &Value, head: &ReplyHead) -> LoadReply {
    let message = &document["choices"][0]["message"];
    if !message.is_object() {
        return LoadReply::failed(REPLY, head.run);
    }
    let answer = message["content"].as_str().unwrap_or_default().to_owned();
    let outcome = head.outcome(RequestEnd::Answered { status: "ok".to_owned() });
    LoadReply { outcome: RequestOutcome { usage: completion_usage(document), ..outcome }, answer }
}

fn completion_usage(document: &Value) -> RequestUsage {
    let usage = &document["usage"];
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    RequestUsage {
        input_tokens: count(&usage["prompt_tokens"]),
        cached_input_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        output_tokens: count(&usage["completion_tokens"]),
        ..RequestUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(protocol: LoadProtocol, events: &[(&str, &str)]) -> ReadStream {
        let mut read = ReadStream::new(protocol);
        for (name, data) in events {
            let event = StreamedEvent { name: (*name).to_owned(), data: (*data).to_owned() };
            read.event(&event, Instant::now());
        }
        read
    }

    #[test]
    fn streamed_answer_ends_with_its_last_event_and_a_cut_one_does_not() {
        let chunk = ("", r#"{"choices":[{"delta":{"content":"Ciao"}}]}"#);
        let usage = ("", r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#);
        let read = streamed(LoadProtocol::OpenAi, &[chunk, chunk, usage, ("", "[DONE]")]);
        assert_eq!((read.answer.as_str(), read.usage.input_tokens), ("CiaoCiao", 7));
        assert!(
            read.first_token.is_some() && read.end == Some(RequestEnd::Answered { status: "ok".to_owned() })
        );
        assert_eq!(streamed(LoadProtocol::OpenAi, &[chunk]).end, None);
        // An error within a stream stays one, although the stream has an end.
        let error = ("", r#"{"error":{"code":"llm.timeout"}}"#);
        let failed = |code: &str| Some(RequestEnd::Failed { code: code.to_owned() });
        assert_eq!(
            streamed(LoadProtocol::OpenAi, &[chunk, error, ("", "[DONE]")]).end,
            failed("llm.timeout")
        );
        let delta = ("answer_delta", r#"{"text":"Ciao"}"#);
        let read = streamed(LoadProtocol::Api, &[delta, ("run_completed", r#"{"status":"partial"}"#)]);
        assert!(
            read.first_token.is_some()
                && read.end == Some(RequestEnd::Answered { status: "partial".to_owned() })
        );
        let ended = ("run_failed", r#"{"status":"failed","error":{"code":"plan.invalid"}}"#);
        assert_eq!(streamed(LoadProtocol::Api, &[delta, ended]).end, failed("plan.invalid"));
        assert_eq!(streamed(LoadProtocol::Api, &[delta]).end, None);
    }

    #[test]
    fn failed_run_in_a_document_is_no_answer() {
        let head = || ReplyHead { run: None, retry_after_s: None, is_replay: false };
        let failed =
            json!({"status": "failed", "run_id": Uuid::from_u128(7), "error": {"code": "llm.quota"}});
        let reply = answer_document(&failed, head());
        assert_eq!(reply.outcome.end, RequestEnd::Failed { code: "llm.quota".to_owned() });
        assert_eq!(reply.outcome.run, Some(Uuid::from_u128(7)));
        let reply = answer_document(
            &json!({"status": "completed", "answer": "Ciao", "usage": {"llm_calls": 2, "cost_usd": 0.5},
            "timings": {"total_ms": 20.0, "overhead_ms": 5.0}}),
            head(),
        );
        assert!(reply.outcome.is_answered() && reply.outcome.usage.llm_calls == 2 && reply.answer == "Ciao");
        assert_eq!(reply.outcome.usage.times.map(|times| times.overhead()), Some(Duration::from_millis(5)));
        assert!(!answer_document(&json!([]), head()).outcome.is_answered());
    }
}
