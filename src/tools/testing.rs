//! Test helpers: a context for tools, and a scripted server on loopback.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::guard::{NetworkPolicy, http_client};
use super::{Principal, RunDocuments, SceneStore, ToolContext};
use crate::run::{RunId, SessionId, TenantId};

/// A context of the user `keysersoze` in step 1 of some run, with the key `key-1`.
pub(crate) fn context() -> ToolContext {
    ToolContext {
        principal: Principal { tenant: TenantId::new("acme").unwrap(), user: "keysersoze".into() },
        now: "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap(),
        language: Some("it".into()),
        session: SessionId::new("test").unwrap(),
        run: RunId(uuid::Uuid::nil()),
        step: 1,
        idempotency_key: Some("key-1".into()),
        store: SceneStore::new(sqlx::SqlitePool::connect_lazy("sqlite::memory:").unwrap()),
        documents: RunDocuments::default(),
        http: http_client(&NetworkPolicy::default()).unwrap(),
        interpreter: None,
        settings: Value::Null,
        cancelled: CancellationToken::new(),
        trace_parent: None,
    }
}

/// The server's reaction to one request.
pub(crate) enum Reply {
    /// Writes these bytes and closes.
    Bytes(Vec<u8>),
    /// These bytes, and then nothing more on an open connection.
    Held(Vec<u8>),
    /// Writes these bytes, and accepts no connection from then on.
    Last(Vec<u8>),
    /// Reads the request and closes without a response.
    Hang,
    /// Reads the request and keeps the connection open without a response.
    Silence,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        Self::Bytes([head.as_bytes(), body.as_bytes()].concat())
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::new(200, "application/json", body)
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::Bytes(redirect(status, to))
    }

    /// Redirects, and accepts no connection from then on.
    pub(crate) fn last_redirect(status: u16, to: &str) -> Self {
        Self::Last(redirect(status, to))
    }
}

fn redirect(status: u16, to: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

/// A server that answers its n-th request with the n-th reply, and no further ones.
pub(crate) struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority())
    }

    /// The requests it has read, head and body as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn serve(replies: impl IntoIterator<Item = Reply>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let replies: Vec<Reply> = replies.into_iter().collect();
    let task = tokio::spawn(async move {
        let mut open = Vec::new();
        for reply in replies {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read(&mut stream).await;
            seen.lock().unwrap().push(request);
            match reply {
                Reply::Bytes(bytes) => stream.write_all(&bytes).await.unwrap(),
                Reply::Held(bytes) => {
                    stream.write_all(&bytes).await.unwrap();
                    open.push(stream);
                }
                Reply::Last(bytes) => {
                    drop(listener);
                    stream.write_all(&bytes).await.unwrap();
                    break;
                }
                Reply::Hang => {}
                Reply::Silence => open.push(stream),
            }
        }
        std::future::pending::<()>().await;
    });
    Server { port, requests, task }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse().unwrap())
                })
                .unwrap_or(0_usize);
            if body.len() >= length {
                return text;
            }
        }
        let mut chunk = [0; 4096];
        let n = stream.read(&mut chunk).await.unwrap();
        if n == 0 {
            return text;
        }
        bytes.extend_from_slice(&chunk[..n]);
    }
}
