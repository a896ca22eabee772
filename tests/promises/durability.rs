//! The short form of the crash harness: what it does to a server from outside, and the tests that hold it here.
//!
//! | crash harness | tests |
//! | --- | --- |
//! | kills at chosen moments, external ledger, usage is the sum of the runs | `crash` (every event), `restarts` |
//! | kills at random moments under clients of every kind | [`random_kills_under_every_kind_of_client_lose_nothing`] |
//! | simulated power loss, a disk that lies about syncs | `power_loss` |
//! | streams resumed after a kill | `stream_resumption`, `streaming` |
//! | kills in a row, port taken at start, drain too short, disk full at start | `restarts`, `full_disk` |
//! | readers that never read | `streaming`; under SIGTERM [`sigterm_ends_server_whose_readers_never_read`] |
//! | more clients than permits, SIGTERM under load | `overload` |
//! | approvals: races, kill after a yes, yes in words | `approvals_api`, `approvals_restart`, `approvals_in_words` |
//! | approvals wait over several restarts, many decisions at once | [`waiting_approvals_survive_restarts_and_are_decided_once`] |
//! | writes whose outcome is unknown | `approvals_api`; over kills [`unknown_write_is_repeated_once_when_asked_twenty_times`] |
//! | one idempotency key a hundred times at once over kills, other bodies | `sessions`; [`hundred_requests_under_one_key_over_a_kill_are_one_run`] |
//! | retries without a key, retries of official clients, tenants | `retry_matching`, `users`, `python` |
//! | torn log, damaged, older and newer database | `damaged_files`, `store_faults`, `old_journals` |
//! | full disk | `full_disk` |
//! | two servers on one directory | `cli`; five at once [`one_of_five_servers_gets_the_directory`] |
//! | undo | `plans_api` (without kills) |
//! | read-only file system, clock steps over a kill | only the harness: they need a mount and a fake clock |

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proscenium::run::TenantId;
use proscenium::store::{Page, RunFilter, Store};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::crash::{check_run, model_reply, write_shelf_and_desk};
use super::process::{RunningProcess, SHIPPED, Workspace};
use super::support::served_engine::wire;
use super::support::{Backend, Gate, ReceivedRequest, ScriptedLlm};

/// Upper bound for everything that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);
const SEED: u64 = 0x5eed;

/// Kills a server synchronously, inside a request that it sent to the model or the backend.
#[derive(Default)]
struct Killer {
    /// The process, the place (any if none), and how many requests pass first.
    target: Mutex<Option<(u32, Option<&'static str>, usize)>>,
    model_requests: AtomicUsize,
}

impl Killer {
    fn aim(&self, server: &RunningProcess, place: Option<&'static str>, skip: usize) {
        *self.target.lock().unwrap() = Some((server.id(), place, skip));
    }

    fn reached(&self, here: &str) {
        let mut target = self.target.lock().unwrap();
        let Some((pid, place, left)) = target.as_mut() else { return };
        if place.is_some_and(|place| place != here) {
            return;
        }
        if *left > 0 {
            *left -= 1;
            return;
        }
        let line = format!("kill -KILL {pid}");
        std::process::Command::new("sh").args(["-c", &line]).status().unwrap();
        *target = None;
    }
}

/// A directory on which servers are started one after the other, with their model and their backend.
struct KillHarness {
    workspace: Workspace,
    backend: Backend,
    killer: Arc<Killer>,
    _llm: ScriptedLlm,
    api: Api,
}

/// The API at the address of the current server.
#[derive(Clone)]
struct Api {
    client: reqwest::Client,
    address: Arc<Mutex<String>>,
}

struct Response {
    status: u16,
    run: String,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl KillHarness {
    fn open() -> Self {
        let gate = Gate::closed();
        gate.open();
        Self::gated(&gate)
    }

    /// The models answer nothing before the gate is open.
    fn gated(gate: &Gate) -> Self {
        let killer = Arc::new(Killer::default());
        let (hand, process) = (killer.clone(), gate.clone());
        let llm = ScriptedLlm::start(move |request, _| {
            hand.model_requests.fetch_add(1, Ordering::SeqCst);
            hand.reached("model");
            model_reply(request).held(&process)
        });
        let hand = killer.clone();
        let backend = Backend::start(move |reached: &ReceivedRequest| {
            hand.reached(&reached.place);
            json!({"done": reached.place})
        });
        let workspace = Workspace::bare();
        write_shelf_and_desk(&workspace, backend.address());
        workspace.write_priced_house(&llm, "[server]\ndrain_timeout_ms = 200\n");
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
        Self { workspace, backend, killer, _llm: llm, api: Api { client, address: Arc::default() } }
    }

    fn spawn(&self) -> RunningProcess {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        self.workspace.spawn_program(SHIPPED, &line, &[])
    }

    /// A server that is ready.
    fn start(&self) -> RunningProcess {
        let mut process = self.spawn();
        assert!(self.ready(&mut process), "{}", process.output());
        process
    }

    /// False if it ended before it was ready.
    fn ready(&self, process: &mut RunningProcess) -> bool {
        let Some(address) = process.try_served_at() else { return false };
        *self.api.address.lock().unwrap() = address;
        true
    }

    /// Waits until the server was killed by [`Killer`].
    async fn ended(&self, mut server: RunningProcess) {
        let began = Instant::now();
        while !server.has_ended() {
            assert!(began.elapsed() < PATIENCE, "nothing killed the server");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.kill();
    }

    fn times(reached: &[ReceivedRequest], place: &str) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for call in reached.iter().filter(|call| call.place == place) {
            *times.entry(call.query["book"].clone()).or_default() += 1;
        }
        times
    }
}

impl Api {
    async fn try_send(&self, method: &str, path: &str, key: &str, body: &Value) -> Option<Response> {
        let url = format!("{}{path}", self.address.lock().unwrap());
        let mut request = self.client.request(method.parse().unwrap(), url).timeout(PATIENCE);
        if method == "POST" {
            request = request.json(body);
        }
        if !key.is_empty() {
            request = request.header("Idempotency-Key", key);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let run = response.headers().get("x-run-id").map(|run| run.to_str().unwrap().to_owned());
        Some(Response { status, run: run.unwrap_or_default(), body: response.text().await.ok()? })
    }

    /// Sends until a server replies in full, as a client does that retries.
    async fn send(&self, method: &str, path: &str, key: &str, body: &Value) -> Response {
        let began = Instant::now();
        loop {
            match self.try_send(method, path, key, body).await {
                Some(response) if ![429, 502, 503].contains(&response.status) => return response,
                _ => assert!(began.elapsed() < PATIENCE, "no reply to {method} {path}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, "", &Value::Null).await.json()
    }

    /// The run's document once `is_so`.
    async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let document = self.get(path).await;
            if is_so(&document) {
                return document;
            }
            assert!(began.elapsed() < PATIENCE, "{path} stays {document:#}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The run once it has ended. A person resumes it if it was quarantined, and approves what waits.
    async fn until_ended(&self, run: &str) -> Value {
        let began = Instant::now();
        loop {
            let document = self.get(&format!("/api/runs/{run}")).await;
            match document["status"].as_str().unwrap_or_default() {
                "completed" | "partial" | "failed" | "cancelled" => return document,
                "waiting" if document["error"]["code"] == "run.put_aside" => {
                    self.send("POST", &format!("/api/runs/{run}/resume"), "", &json!({})).await;
                }
                "waiting" => {
                    for approval in document["approvals"].as_array().into_iter().flatten() {
                        let path = format!("/api/approvals/{}", approval["approval_id"].as_str().unwrap());
                        let yes = json!({"decision": "yes", "hash": approval["hash"]});
                        let reply = self.send("POST", &path, "", &yes).await;
                        assert!([200, 409].contains(&reply.status), "{}", reply.body);
                    }
                }
                _ => {}
            }
            assert!(began.elapsed() < PATIENCE, "{run} does not end: {document:#}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn until_idle(&self) {
        let began = Instant::now();
        loop {
            let mut left = 0;
            for status in ["queued", "running"] {
                let listed = self.get(&format!("/api/runs?status={status}&limit=500")).await;
                left += listed["runs"].as_array().unwrap().len();
            }
            if left == 0 {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{left} runs do not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Twenty equal decisions at once: the statuses of the replies, sorted.
    async fn decide_twenty_times(&self, path: &str, body: &Value) -> Vec<u16> {
        let sent = (0..20).map(|_| self.send("POST", path, "", body));
        let mut statuses: Vec<u16> =
            futures::future::join_all(sent).await.iter().map(|reply| reply.status).collect();
        statuses.sort_unstable();
        statuses
    }
}

fn one_of_twenty() -> Vec<u16> {
    std::iter::once(200).chain(std::iter::repeat_n(409, 19)).collect()
}

fn words(book: &str) -> Value {
    json!({"messages": [{"role": "user", "content": format!("Get the book {book}")}]})
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Chat,
    Completions,
    Stream,
    CompletionsStream,
    Approved,
    Cancelled,
    Conversation,
}

const KINDS: [Kind; 7] = [
    Kind::Chat,
    Kind::Completions,
    Kind::Stream,
    Kind::CompletionsStream,
    Kind::Approved,
    Kind::Cancelled,
    Kind::Conversation,
];

/// A client that retries until it has its answer: its run and, if it got a document, status and answer.
async fn client(api: Api, kind: Kind, number: usize, session: String) -> (String, Option<[Value; 2]>) {
    let (book, key) = (format!("b{number}"), format!("k{number}"));
    let openai = json!({"model": "proscenium"});
    let (path, more) = match kind {
        Kind::Chat | Kind::Cancelled => ("/api/chat", json!({})),
        Kind::Completions => ("/v1/chat/completions", openai),
        Kind::Stream => ("/api/chat", json!({"stream": true})),
        Kind::CompletionsStream => ("/v1/chat/completions", with(openai, &json!({"stream": true}))),
        Kind::Approved => ("/api/chat", json!({"require_approval": true})),
        Kind::Conversation => ("/api/chat", json!({"session_id": session})),
    };
    let body = with(words(&book), &more);
    let sent = api.send("POST", path, &key, &body);
    if let Kind::Cancelled = kind {
        // Its run may be cancelled at any moment, also before its client knows the run.
        let run = async {
            loop {
                let listed = api.get("/api/runs?limit=500").await;
                let found = listed["runs"].as_array().into_iter().flatten().find(|row| {
                    row["request"].as_str().is_some_and(|request| request.ends_with(&format!(" {book}")))
                });
                if let Some(run) = found.and_then(|row| row["run_id"].as_str()) {
                    api.send("POST", &format!("/api/runs/{run}/cancel"), "", &json!({})).await;
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let (reply, ()) = tokio::join!(sent, async {
            let _ = tokio::time::timeout(Duration::from_secs(5), run).await;
        });
        assert!(!reply.run.is_empty(), "{kind:?} {}", reply.body);
        api.until_ended(&reply.run).await;
        return (reply.run, None);
    }
    let reply = sent.await;
    assert!(!reply.run.is_empty(), "{kind:?} {} {}", reply.status, reply.body);
    let ended = api.until_ended(&reply.run).await;
    (reply.run, Some([ended["status"].clone(), ended["answer"].clone()]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_kills_under_every_kind_of_client_lose_nothing() {
    println!("seed {SEED}");
    let mut dice = ChaCha8Rng::seed_from_u64(SEED);
    let harness = KillHarness::open();
    let mut clients = Vec::new();
    for life in 0..5 {
        let server = harness.start();
        harness.killer.aim(&server, None, dice.random_range(0..30));
        for kind in KINDS {
            let session = format!("s{}", life % 2);
            clients.push(tokio::spawn(client(harness.api.clone(), kind, clients.len(), session)));
        }
        harness.ended(server).await;
    }
    let server = harness.start();
    let mut answers = Vec::new();
    for done in clients {
        answers.push(tokio::time::timeout(PATIENCE, done).await.unwrap().unwrap());
    }
    harness.api.until_idle().await;
    for (run, answered) in &answers {
        let now = harness.api.get(&format!("/api/runs/{run}")).await;
        if let Some(answered) = answered {
            assert_eq!(answered, &[now["status"].clone(), now["answer"].clone()], "{run}");
        }
    }
    let usage = harness.api.get("/api/usage").await["cost_usd"].as_f64().unwrap();
    server.signal("TERM");
    assert_eq!(server.end().status, 0);

    let reached = harness.backend.take_requests();
    let tenant = TenantId::new("local").unwrap();
    let store = Store::open_read_only(&harness.workspace.data()).await.unwrap();
    let page = Page { limit: 500, after: None };
    let rows = store.runs(&tenant, &RunFilter::default(), &page).await.unwrap();
    assert_eq!(rows.len(), answers.len(), "each request was accepted once");
    let mut spent = 0;
    for row in &rows {
        assert!(answers.iter().any(|(run, _)| *run == row.run.to_string()), "{} is unknown", row.run);
        let events = store.run_events(&tenant, row.run).await.unwrap();
        spent += check_run(&events, &reached);
    }
    assert!((usage - spent as f64 / 1e9).abs() < 1e-9, "{usage} of {spent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundred_requests_under_one_key_over_a_kill_are_one_run() {
    println!("seed {SEED}");
    let mut dice = ChaCha8Rng::seed_from_u64(SEED);
    let harness = KillHarness::open();
    let server = harness.start();
    // At the plan, at the scene's first question, or in the read: before any write.
    harness.killer.aim(&server, None, dice.random_range(0..3));
    let body = words("b1");
    let sent = (0..100).map(|_| harness.api.send("POST", "/api/chat", "once", &body));
    let restarted = async {
        harness.ended(server).await;
        harness.start()
    };
    let (replies, server) = tokio::join!(futures::future::join_all(sent), restarted);
    let (run, answer) = (replies[0].run.clone(), replies[0].json()["answer"].clone());
    for reply in &replies {
        assert_eq!((reply.status, &reply.run), (200, &run), "{}", reply.body);
        assert_eq!((&reply.json()["status"], &reply.json()["answer"]), (&json!("completed"), &answer));
    }
    let others = [
        ("/api/chat", words("b2")),
        ("/api/chat", with(words("b1"), &json!({"dry_run": true}))),
        ("/api/chat", with(words("b1"), &json!({"session_id": "s-1"}))),
        ("/api/chat", with(words("b1"), &json!({"require_approval": true}))),
        ("/v1/chat/completions", with(words("b2"), &json!({"model": "proscenium"}))),
        ("/api/plans", json!({"message": "Get the book b1"})),
    ];
    let mut server = server;
    for when in ["after its end", "after another kill"] {
        for (path, other) in &others {
            let reply = harness.api.send("POST", path, "once", other).await;
            assert!([409, 422].contains(&reply.status), "{when}: {path} {other} {}", reply.body);
            assert!(reply.body.contains("request.idempotency_conflict"), "{when}: {}", reply.body);
        }
        server.kill();
        server = harness.start();
    }
    let listed = harness.api.get("/api/runs").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed:#}");
    let once = BTreeMap::from([("b1".to_owned(), 1)]);
    let reached = harness.backend.take_requests();
    assert_eq!(KillHarness::times(&reached, "POST /Reserve"), once);
    assert_eq!(KillHarness::times(&reached, "POST /Renew"), once);
}

#[tokio::test]
async fn one_of_five_servers_gets_the_directory() {
    let harness = KillHarness::open();
    for round in 0..2 {
        let mut five: Vec<RunningProcess> = (0..5).map(|_| harness.spawn()).collect();
        let serves: Vec<bool> = five.iter_mut().map(|process| harness.ready(process)).collect();
        assert_eq!(serves.iter().filter(|serves| **serves).count(), 1, "{serves:?}");
        let reply = harness.api.send("POST", "/api/chat", "", &words(&format!("b{round}"))).await;
        assert_eq!(reply.json()["status"], "completed", "{}", reply.body);
        for (process, serves) in five.into_iter().zip(serves) {
            if serves {
                process.kill();
            } else {
                let ran = process.end();
                assert!(ran.status == 1 && ran.err.contains("error[store.in_use]"), "{ran:?}");
            }
        }
    }
    let _server = harness.start();
    assert_eq!(harness.api.get("/api/runs").await["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn waiting_approvals_survive_restarts_and_are_decided_once() {
    let harness = KillHarness::open();
    let mut server = harness.start();
    let mut runs = Vec::new();
    for number in 0..3 {
        let body = with(words(&format!("b{number}")), &json!({"require_approval": true}));
        let reply = harness.api.send("POST", "/api/chat", "", &body).await;
        assert_eq!(reply.json()["status"], "waiting", "{}", reply.body);
        runs.push(reply.run);
    }
    let before = harness.api.get("/api/approvals").await;
    assert_eq!(before["approvals"].as_array().unwrap().len(), 3, "{before:#}");
    for restart in 0..4 {
        if restart % 2 == 0 {
            server.kill();
        } else {
            server.signal("TERM");
            assert_eq!(server.end().status, 0);
        }
        server = harness.start();
        assert_eq!(harness.api.get("/api/approvals").await, before, "restart {restart}");
    }
    assert_eq!(harness.backend.take_requests(), [], "nothing is executed without approval");
    for approval in before["approvals"].as_array().unwrap() {
        let path = format!("/api/approvals/{}", approval["approval_id"].as_str().unwrap());
        let yes = json!({"decision": "yes", "hash": approval["hash"]});
        assert_eq!(harness.api.decide_twenty_times(&path, &yes).await, one_of_twenty());
    }
    for run in &runs {
        // The write is approved too: the request asked for that.
        let ended = harness.api.until_ended(run).await;
        assert_eq!(ended["status"], "completed", "{ended:#}");
    }
    let each = (0..3).map(|number| (format!("b{number}"), 1)).collect();
    assert_eq!(KillHarness::times(&harness.backend.take_requests(), "POST /Reserve"), each);
}

#[tokio::test]
async fn unknown_write_is_repeated_once_when_asked_twenty_times() {
    let harness = KillHarness::open();
    let server = harness.start();
    harness.killer.aim(&server, Some("POST /Reserve"), 0);
    let body = words("b1");
    assert!(harness.api.try_send("POST", "/api/chat", "k1", &body).await.is_none());
    harness.ended(server).await;

    let server = harness.start();
    let reply = harness.api.send("POST", "/api/chat", "k1", &body).await;
    assert_eq!(reply.json()["status"], "partial", "{}", reply.body);
    let open = harness.api.get("/api/approvals?about=outcome").await;
    assert_eq!(open["approvals"].as_array().unwrap().len(), 1, "{open:#}");
    server.kill();

    let server = harness.start();
    assert_eq!(harness.api.get("/api/approvals?about=outcome").await, open);
    assert_eq!(KillHarness::times(&harness.backend.take_requests(), "POST /Reserve")["b1"], 1);
    let path = format!("/api/approvals/{}", open["approvals"][0]["approval_id"].as_str().unwrap());
    assert_eq!(harness.api.decide_twenty_times(&path, &json!({"decision": "again"})).await, one_of_twenty());
    let run = format!("/api/runs/{}", reply.run);
    harness.api.until(&run, |run| run["status"] == "completed").await;
    server.kill();

    let _server = harness.start();
    harness.api.until_idle().await;
    let decided = harness.api.get(&path).await;
    assert_eq!((&decided["state"], &decided["decision"]), (&json!("decided"), &json!("again")));
    assert_eq!(
        KillHarness::times(&harness.backend.take_requests(), "POST /Reserve")["b1"],
        1,
        "once more, and no more"
    );
}

#[tokio::test]
async fn sigterm_ends_server_whose_readers_never_read() {
    const READERS: usize = 20;
    let gate = Gate::closed();
    let harness = KillHarness::gated(&gate);
    let server = harness.start();
    let address: SocketAddr =
        harness.api.address.lock().unwrap().trim_start_matches("http://").parse().unwrap();
    let mut readers = Vec::new();
    for number in 0..READERS {
        let mut reader = TcpStream::connect(address).await.unwrap();
        let body = with(words(&format!("b{number}")), &json!({"stream": true}));
        reader.write_all(wire("/api/chat", "", &body).as_bytes()).await.unwrap();
        readers.push(reader);
    }
    let began = Instant::now();
    while harness.killer.model_requests.load(Ordering::SeqCst) < READERS {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.signal("TERM");
    let ran = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(|| server.end()));
    let ran = ran.await.expect("it ends while its readers are connected").unwrap();
    assert!([0, 1].contains(&ran.status), "{ran:?}");
    drop(readers);

    gate.open();
    let _server = harness.start();
    harness.api.until_idle().await;
    let listed = harness.api.get("/api/runs?limit=100").await;
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), READERS);
    assert!(runs.iter().all(|run| run["status"] == "completed"), "{listed:#}");
    let each = (0..READERS).map(|number| (format!("b{number}"), 1)).collect();
    assert_eq!(KillHarness::times(&harness.backend.take_requests(), "POST /Reserve"), each);
}
