//! The HTTP server of a scripted model.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data, PayloadConfig, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use futures::StreamExt;
use futures::stream::{self, LocalBoxStream};
use proscenium::llm::{ModelOptions, Options};
use serde_json::Value;

use super::gate::Gate;
use super::loopback_server::LoopbackServer;
use super::scripted::{Scripted, StreamEnd};

type Handler = dyn Fn(&Value, usize) -> Scripted + Send + Sync;

/// A server of `POST /v1/chat/completions` and `POST /v1/embeddings` on 127.0.0.1 that answers by a script and records every request.
/// It stops when it is dropped.
pub struct ScriptedLlm {
    base_url: String,
    script: Arc<Script>,
    _server: LoopbackServer,
}

struct Script {
    handler: Box<Handler>,
    requests: Mutex<Vec<Recorded>>,
}

/// A received request.
#[derive(Clone)]
struct Recorded {
    body: Value,
    authorization: Option<String>,
    trace_parent: Option<String>,
}

impl ScriptedLlm {
    /// Starts a server. The handler gets the request's body and the number of earlier requests.
    pub fn start(handler: impl Fn(&Value, usize) -> Scripted + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(Script { handler: Box::new(handler), requests: Mutex::default() }))
    }

    fn serve(script: Arc<Script>) -> Self {
        let data = Data::from(script.clone());
        let routes = move |routes: &mut ServiceConfig| {
            routes
                .app_data(data.clone())
                .app_data(PayloadConfig::new(64 * 1024 * 1024))
                .route("/v1/chat/completions", web::post().to(answer))
                .route("/v1/embeddings", web::post().to(answer));
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = LoopbackServer::start(listener, 2, Arc::new(routes));
        Self { base_url: format!("http://{}/v1", server.address()), script, _server: server }
    }

    /// A server that gives these replies in turn, the last one repeated.
    pub fn sequence(answers: impl IntoIterator<Item = Scripted>) -> Self {
        let answers: Vec<Scripted> = answers.into_iter().collect();
        Self::start(move |_, nth| answers[nth.min(answers.len() - 1)].clone())
    }

    /// The address for `base_url`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// A model at this server, called `name`.
    pub fn model(&self, name: &str) -> ModelOptions {
        ModelOptions { name: name.to_owned(), base_url: self.base_url.clone(), ..ModelOptions::default() }
    }

    /// Options with this server as the only model, `scripted`, and almost no wait between attempts.
    pub fn options(&self) -> Options {
        Options { models: vec![self.model("scripted")], backoff_ms: 1, ..Options::default() }
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.script.requests.lock().unwrap().len()
    }

    /// The body of every request, in order of arrival.
    pub fn requests(&self) -> Vec<Value> {
        self.script.requests.lock().unwrap().iter().map(|request| request.body.clone()).collect()
    }

    /// The body of one request, counted from 0.
    pub fn request(&self, nth: usize) -> Value {
        self.requests().into_iter().nth(nth).unwrap_or_else(|| panic!("there is no request {nth}"))
    }

    /// Drops the recorded requests, for tests with many thousands of them.
    pub fn forget(&self) {
        self.script.requests.lock().unwrap().clear();
    }

    /// The `Authorization` header of one request.
    pub fn authorization(&self, nth: usize) -> Option<String> {
        self.script.requests.lock().unwrap()[nth].authorization.clone()
    }

    /// The `traceparent` header of every request.
    pub fn trace_parents(&self) -> Vec<Option<String>> {
        self.script.requests.lock().unwrap().iter().map(|request| request.trace_parent.clone()).collect()
    }
}

async fn answer(script: Data<Script>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let header = |name: &str| Some(request.headers().get(name)?.to_str().ok()?.to_owned());
    let (authorization, trace_parent) = (header("authorization"), header("traceparent"));
    let nth = {
        let mut requests = script.requests.lock().unwrap();
        requests.push(Recorded { body: body.clone(), authorization, trace_parent });
        requests.len() - 1
    };
    let mut scripted = (script.handler)(&body, nth);
    while let Scripted::Held(inner, gate) = scripted {
        gate.wait_open().await;
        scripted = *inner;
    }
    let wants_stream = body["stream"] == true;
    if let Some(message) = scripted.message() {
        return if wants_stream {
            events(message.events(), StreamEnd::Done)
        } else {
            json(message.whole().to_string())
        };
    }
    match scripted {
        Scripted::Json(value) => json(value.to_string()),
        Scripted::Malformed(text) => json(text),
        Scripted::Stream(lines, end) => events(lines, end),
        Scripted::Paused(before, gate, after) => paused(before, gate, *after),
        Scripted::Drip(line) => drip(Bytes::from(format!("{line}\n\n")), wants_stream),
        Scripted::Silence => std::future::pending().await,
        Scripted::WrongContentType => {
            HttpResponse::Ok().content_type("text/html").body("<html><body>It works!</body></html>")
        }
        Scripted::Status { code, headers, body } => {
            let mut response = HttpResponse::build(StatusCode::from_u16(code).unwrap());
            for header in headers {
                response.insert_header(header);
            }
            response.body(body)
        }
        other => panic!("{other:?} has no wire form"),
    }
}

fn json(body: String) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body)
}

fn events(lines: Vec<String>, end: StreamEnd) -> HttpResponse {
    HttpResponse::Ok().content_type("text/event-stream").streaming(pieces(lines, end))
}

/// The pause only yields to other tasks.
fn drip(line: Bytes, stream: bool) -> HttpResponse {
    let media = if stream { "text/event-stream" } else { "application/json" };
    let body = stream::unfold(line, |line| async {
        actix_web::rt::time::sleep(Duration::from_millis(10)).await;
        Some((Ok::<_, std::io::Error>(line.clone()), line))
    });
    HttpResponse::Ok().content_type(media).streaming(body)
}

fn paused(before: Vec<String>, gate: Gate, after: Scripted) -> HttpResponse {
    let Scripted::Stream(lines, end) = after else { panic!("{after:?} cannot follow a pause") };
    let wait = stream::once(async move {
        gate.wait_open().await;
        Ok(Bytes::from(": the gate is open\n\n"))
    });
    let body = pieces(before, StreamEnd::Unsaid).chain(wait).chain(pieces(lines, end));
    HttpResponse::Ok().content_type("text/event-stream").streaming(body)
}

fn pieces(lines: Vec<String>, end: StreamEnd) -> LocalBoxStream<'static, Result<Bytes, std::io::Error>> {
    let mut pieces: Vec<Result<Bytes, std::io::Error>> =
        lines.into_iter().map(|line| Ok(Bytes::from(format!("{line}\n\n")))).collect();
    if end == StreamEnd::Done {
        pieces.push(Ok(Bytes::from("data: [DONE]\n\n")));
    }
    let pieces = stream::iter(pieces);
    match end {
        StreamEnd::Done | StreamEnd::Unsaid => pieces.boxed_local(),
        StreamEnd::Never => pieces.chain(stream::pending()).boxed_local(),
        // The pause lets earlier bytes be sent before the connection breaks.
        StreamEnd::Cut => pieces
            .chain(stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("scripted"))
            }))
            .boxed_local(),
    }
}
