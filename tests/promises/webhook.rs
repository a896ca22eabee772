//! Webhooks for pending approvals, and approvals that expire: real servers, over kills and restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::process::{RunningProcess, Workspace};
use crate::server_api::ask;

const WORDS: &str = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";
const KEY: &[u8] = b"a secret of 32 bytes, as it ought";

/// Upper bound for everything that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A received message.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    head: String,
    body: String,
}

/// A receiver of messages that answers with these statuses in turn, the last one repeated.
struct Receiver {
    url: String,
    came: mpsc::Receiver<Message>,
    count: Arc<AtomicUsize>,
}

impl Receiver {
    async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, came) = mpsc::channel(64);
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let nth = counted.fetch_add(1, Ordering::SeqCst);
                let answer = answers[nth.min(answers.len() - 1)].clone();
                tokio::spawn(take(stream, answer, sender.clone()));
            }
        });
        Self { url, came, count }
    }

    async fn next(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.came.recv()).await;
        next.unwrap_or_else(|_| panic!("no message came")).unwrap()
    }
}

/// Reads one request, passes it on, and answers.
async fn take(mut stream: TcpStream, answer: String, sender: mpsc::Sender<Message>) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_owned();
            let length =
                Message { head: head.clone(), body: String::new() }.header("content-length").to_owned();
            if body.len() >= length.parse::<usize>().unwrap() {
                let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
                let _ = sender.send(Message { head, body: body.to_owned() }).await;
                return;
            }
        }
        // A server that was killed in the middle of a message.
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

impl Message {
    fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value.trim())
    }

    fn id(&self) -> &str {
        self.header("webhook-id")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Asserts that it is signed with `KEY` as in <https://www.standardwebhooks.com>.
    fn assert_signed(&self) -> &Self {
        let signed = format!("{}.{}.{}", self.id(), self.header("webhook-timestamp"), self.body);
        let expected = BASE64.encode(&hmac(KEY, signed.as_bytes()));
        assert_eq!(self.header("webhook-signature"), format!("v1,{expected}"), "{self:#?}");
        self
    }
}

/// HMAC-SHA256 as defined in RFC 2104; the key fits into a block.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let pad = |with: u8| -> Vec<u8> {
        let mut block = key.to_vec();
        block.resize(64, 0);
        block.iter().map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

/// A server whose writes need approval.
struct WebhookServer {
    process: RunningProcess,
    base: String,
}

impl WebhookServer {
    fn start(workspace: &Workspace, env: &[(&str, String)]) -> Self {
        let mut process = workspace.spawn_with(&["serve", "--addr", "127.0.0.1:0"], env);
        let base = process.served_at();
        Self { process, base }
    }

    /// Requests vacation in a conversation; returns the run, which then waits.
    async fn request_vacation(&self, session: &str) -> String {
        let mut body = ask(WORDS);
        body["session_id"] = json!(session);
        let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build().unwrap();
        let reply = client.post(format!("{}/api/chat", self.base)).json(&body).send().await.unwrap();
        let run = reply.headers()["x-run-id"].to_str().unwrap().to_owned();
        let text = reply.text().await.unwrap();
        assert!(text.contains("\"waiting\""), "{text}");
        run
    }

    async fn status(&self, run: &str) -> Value {
        let reply = reqwest::get(format!("{}/api/runs/{run}", self.base)).await.unwrap();
        reply.json::<Value>().await.unwrap()["status"].clone()
    }

    /// Waits until the run has this status.
    async fn wait_for_status(&self, run: &str, status: &str) {
        let comes = async {
            while self.status(run).await != status {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, comes)
            .await
            .unwrap_or_else(|_| panic!("{run} never had status {status}"));
    }
}

fn workspace() -> Workspace {
    Workspace::new().with("PROSCENIUM__APPROVAL__PLANS", "writes")
}

fn hooked(receiver: &Receiver) -> Workspace {
    workspace()
        .with("PROSCENIUM__APPROVAL__WEBHOOK__URL", &receiver.url)
        .with("PROSCENIUM__APPROVAL__WEBHOOK__SECRET_ENV", "HOOK_SECRET")
        .with("HOOK_SECRET", &format!("whsec_{}", BASE64.encode(KEY)))
}

fn answers(statuses: &[&str]) -> Vec<String> {
    statuses.iter().map(|status| (*status).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_approvals_are_delivered_signed_and_once_over_restarts() {
    let mut receiver = Receiver::start(answers(&["500 Oops", "503 Later\r\nRetry-After: 1", "200 OK"])).await;
    let workspace = hooked(&receiver);
    let server = WebhookServer::start(&workspace, &[]);
    let run = server.request_vacation("s-1").await;
    let first = receiver.next().await;
    server.process.kill();
    let server = WebhookServer::start(&workspace, &[]);
    let (second, third) = (receiver.next().await, receiver.next().await);
    for message in [&first, &second, &third] {
        message.assert_signed();
        assert_eq!((message.id(), &message.body), (first.id(), &first.body));
        assert_eq!(message.header("content-type"), "application/json");
        let sent: i64 = message.header("webhook-timestamp").parse().unwrap();
        assert!((jiff::Timestamp::now().as_second() - sent).abs() < 300, "{message:#?}");
    }
    assert_eq!(first.id(), format!("{run}.1"));
    let payload = first.json();
    assert_eq!(payload["type"], "approval.required");
    let data = &payload["data"];
    assert_eq!((&data["approval_id"], &data["run_id"]), (&json!(first.id()), &json!(run)));
    assert_eq!((&data["session_id"], &data["about"]), (&json!("s-1"), &json!("plan")));
    assert_eq!((&data["version"], &data["expires_at"]), (&json!(1), &Value::Null));
    assert!(data["why"].as_array().is_some_and(|why| !why.is_empty()), "{payload:#}");
    assert_eq!(data["hash"].as_str().unwrap().len(), 64);
    assert_eq!(payload["timestamp"], data["created_at"]);

    // A delivered message is not sent again, by this server or the next one.
    let other = server.request_vacation("s-2").await;
    assert_eq!(receiver.next().await.assert_signed().id(), format!("{other}.1"));
    server.process.kill();
    let server = WebhookServer::start(&workspace, &[]);
    let last = server.request_vacation("s-3").await;
    loop {
        let message = receiver.next().await;
        assert_ne!(message.id(), first.id());
        if message.id() == format!("{last}.1") {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gone_receiver_is_dropped_and_redirects_are_not_followed() {
    let elsewhere = Receiver::start(answers(&["200 OK"])).await;
    let moved = format!("302 Found\r\nLocation: {}", elsewhere.url);
    let mut receiver = Receiver::start(vec![moved, "410 Gone".to_owned(), "200 OK".to_owned()]).await;
    let workspace = hooked(&receiver);
    let server = WebhookServer::start(&workspace, &[]);
    let run = server.request_vacation("s-1").await;
    let (moved, gone) = (receiver.next().await, receiver.next().await);
    assert_eq!((moved.id(), gone.id()), (&*format!("{run}.1"), &*format!("{run}.1")));
    assert_eq!(elsewhere.count.load(Ordering::SeqCst), 0);
    let other = server.request_vacation("s-2").await;
    assert_eq!(receiver.next().await.id(), format!("{other}.1"));
    server.process.kill();
    let server = WebhookServer::start(&workspace, &[]);
    let last = server.request_vacation("s-3").await;
    loop {
        let message = receiver.next().await;
        assert_ne!(message.id(), gone.id());
        if message.id() == format!("{last}.1") {
            break;
        }
    }
}

#[test]
fn missing_webhook_secret_is_a_configuration_error_naming_the_variable() {
    let workspace = workspace()
        .with("PROSCENIUM__APPROVAL__WEBHOOK__URL", "http://127.0.0.1:9/hook")
        .with("PROSCENIUM__APPROVAL__WEBHOOK__SECRET_ENV", "HOOK_SECRET");
    for command in [&["serve", "--addr", "127.0.0.1:0"][..], &["check"]] {
        let ran = workspace.run(command);
        assert_ne!(ran.status, 0, "{ran:#?}");
        let output = format!("{}{}", ran.out, ran.err);
        assert!(output.contains("HOOK_SECRET") && output.contains("config.webhook"), "{ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_approval_counts_as_refused_even_after_a_restart() {
    let workspace = workspace();
    // By default it waits forever.
    let server = WebhookServer::start(&workspace, &[]);
    let run = server.request_vacation("s-1").await;
    server.process.kill();
    let server = WebhookServer::start(&workspace, &[("PROSCENIUM__APPROVAL__EXPIRES_S", "1".to_owned())]);
    server.wait_for_status(&run, "cancelled").await;
    let second = server.request_vacation("s-2").await;
    server.wait_for_status(&second, "cancelled").await;
    let figures = reqwest::get(format!("{}/metrics", server.base)).await.unwrap().text().await.unwrap();
    let shows = |line: &str| assert!(figures.lines().any(|shown| shown == line), "{line}\n{figures}");
    shows("proscenium_approval_wait_seconds_count{action=\"expired\"} 2");
    shows("proscenium_approvals_open{about=\"plan\"} 0");
    shows("proscenium_runs_in_flight{state=\"waiting\"} 0");
}

#[test]
fn approval_after_its_time_is_refused_although_no_server_has_refused_it_yet() {
    let workspace = workspace().with("PROSCENIUM__APPROVAL__EXPIRES_S", "1");
    let asked = workspace.run(&["chat", "--json", WORDS]);
    assert_eq!(asked.status, 3, "{asked:?}");
    let task = serde_json::from_str::<Value>(&asked.out).unwrap()["task_id"].as_str().unwrap().to_owned();
    // Looking at it decides nothing.
    let since = Instant::now();
    while since.elapsed() <= Duration::from_secs(1) {
        assert_eq!(workspace.run(&["plans", "show", &task]).status, 0);
    }
    let late = workspace.run(&["plans", "approve", &task, "--version", "1"]);
    assert_ne!(late.status, 0, "{late:?}");
    let shown = workspace.run(&["plans", "show", &task, "--json"]);
    let plan: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!((&plan["status"], &plan["approvals"]), (&json!("cancelled"), &json!([])), "{plan:#}");
    assert!(late.err.contains("expiry"), "{late:?}");
}
