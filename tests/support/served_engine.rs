//! The product behind its port: a real server with a real engine, and an HTTP client.
//!
//! ```ignore
//! let served = ServedEngine::start(Setup::offline()).await;
//! let reply = served.post("/api/chat", &json!({"messages": [{"role": "user", "content": "Ciao"}]})).await;
//! assert_eq!(reply.status, 200);
//! ```

use std::net::SocketAddr;
use std::ops::Deref;

use proscenium::http::{ServeError, Server};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::eventually;
use super::test_engine::{Setup, TestEngine};

/// A server on loopback. It stops when it is dropped.
pub struct ServedEngine {
    test: TestEngine,
    server: Option<Server>,
    addr: SocketAddr,
    client: reqwest::Client,
}

impl Deref for ServedEngine {
    type Target = TestEngine;

    fn deref(&self) -> &TestEngine {
        &self.test
    }
}

/// A reply, read to its end.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: String,
}

impl Reply {
    pub async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, body: response.text().await.unwrap() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The value of a header; empty if missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The events of a stream that ended; none if no event followed.
    pub fn events(&self) -> Vec<Sse> {
        if self.status == 204 {
            return Vec::new();
        }
        assert!(self.header("content-type").starts_with("text/event-stream"), "{self:#?}");
        self.body.split_terminator("\n\n").filter_map(Sse::read).collect()
    }

    /// Asserts a problem document with this status and code, and returns it.
    pub fn assert_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:#?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:#?}");
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()), "{problem:#}");
        assert_eq!(problem["type"], format!("urn:proscenium:problem:{code}"));
        assert!(!problem["title"].as_str().unwrap().is_empty());
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        problem
    }

    /// Asserts an OpenAI error object with this status and code, and returns it.
    pub fn assert_error(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:#?}");
        assert_eq!(self.header("content-type"), "application/json", "{self:#?}");
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], code, "{error:#}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert!(!error["type"].as_str().unwrap().is_empty());
        assert!(error.as_object().unwrap().contains_key("param"));
        error
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Sse {
    pub id: String,
    pub name: String,
    /// Parsed JSON, or a string.
    pub data: Value,
}

impl Sse {
    /// `None` for a keep-alive comment.
    fn read(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            lines.next().map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
        };
        let data = field("data")?;
        let data = serde_json::from_str(&data).unwrap_or(Value::String(data));
        Some(Self { id: field("id").unwrap_or_default(), name: field("event").unwrap_or_default(), data })
    }
}

/// The events of a stream as they arrive.
pub struct Events {
    response: Response,
    buffer: String,
}

impl Events {
    pub fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200, "{response:?}");
        Self { response, buffer: String::new() }
    }

    /// `None` at the end.
    pub async fn next(&mut self) -> Option<Sse> {
        self.try_next().await.unwrap()
    }

    /// The same, for a server that may break off.
    pub async fn try_next(&mut self) -> Result<Option<Sse>, reqwest::Error> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let (event, rest) = (Sse::read(event), rest.to_owned());
                self.buffer = rest;
                match event {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            let Some(chunk) = self.response.chunk().await? else { return Ok(None) };
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

impl ServedEngine {
    /// Starts an engine and its server on any free port of loopback.
    pub async fn start(setup: Setup) -> Self {
        match Self::try_start(setup).await {
            Ok(served) => served,
            Err(error) => panic!("the server does not start: {error}"),
        }
    }

    pub async fn try_start(setup: Setup) -> Result<Self, ServeError> {
        // Do not wait for what a failing test leaves running.
        let setup =
            setup.unless_set("server.addr", "127.0.0.1:0").unless_set("server.drain_timeout_ms", 2000);
        let test = setup.unless_set("server.workers", 2).start().await;
        let server = Server::start(test.engine.clone(), &test.config).await?;
        let addr = SocketAddr::from(([127, 0, 0, 1], server.addr().port()));
        let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap();
        Ok(Self { test, server: Some(server), addr, client })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A request to be extended.
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.client.request(Method::from_bytes(method.as_bytes()).unwrap(), self.url(path))
    }

    pub async fn get(&self, path: &str) -> Reply {
        Reply::of(self.request("GET", path).send().await.unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        Reply::of(self.request("POST", path).json(body).send().await.unwrap()).await
    }

    /// Sends a request with a key, and a body if it is not null.
    pub async fn send(&self, key: &str, method: &str, path: &str, body: &Value) -> Reply {
        let request = self.request(method, path).bearer_auth(key);
        let request = if body.is_null() { request } else { request.json(body) };
        Reply::of(request.send().await.unwrap()).await
    }

    /// Opens a connection and sends raw bytes.
    pub async fn raw(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// Waits until callers need a key: a server remembers for a moment that there was none.
    pub async fn wait_for_keys(&self) {
        eventually("keys are required", async || self.get("/api/runs").await.status == 401).await;
    }

    /// The server, to be stopped while requests are running.
    pub fn take_server(&mut self) -> Server {
        self.server.take().unwrap()
    }
}

impl Drop for ServedEngine {
    fn drop(&mut self) {
        let Some(server) = self.server.take() else { return };
        let stop = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(server.stop());
        };
        // The server has its own threads, which do not need this one.
        let _ = std::thread::spawn(stop).join();
    }
}

/// Everything until the peer closes or breaks the connection.
pub async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A broken connection ends it like a closed one.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A raw `POST` of JSON.
pub fn wire(path: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
