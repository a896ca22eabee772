//! Servers that are killed or stopped several times in a row: no innocent request is lost, failed or executed
//! twice, and the cost of its model calls is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::crash::{model_reply, write_shelf_and_desk};
use super::process::{RunningProcess, Workspace};
use super::support::{Backend, Gate, Reply, ScriptedLlm, forced_tool};

/// Upper bound for everything that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace whose models answer no plan before the gate is open, and count the requests.
struct RestartHarness {
    workspace: Workspace,
    backend: Backend,
    gate: Gate,
    plans: Arc<AtomicUsize>,
    _llm: ScriptedLlm,
    client: reqwest::Client,
}

struct Server {
    process: RunningProcess,
    address: String,
}

impl RestartHarness {
    fn open() -> Self {
        let (gate, plans) = (Gate::closed(), Arc::new(AtomicUsize::new(0)));
        let (process, count) = (gate.clone(), plans.clone());
        let llm = ScriptedLlm::start(move |request, _| {
            let reply = model_reply(request);
            if forced_tool(request) != Some("CreateExecutionPlan") {
                return reply;
            }
            count.fetch_add(1, Ordering::SeqCst);
            reply.held(&process)
        });
        let backend = Backend::start(|reached| json!({"done": reached.place}));
        let workspace = Workspace::bare();
        write_shelf_and_desk(&workspace, backend.address());
        workspace.write_priced_house(&llm, "[server]\ndrain_timeout_ms = 50\n");
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
        Self { workspace, backend, gate, plans, _llm: llm, client }
    }

    fn start(&self, env: &[(&str, String)]) -> Server {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        let mut process = self.workspace.spawn_with(&line, env);
        let address = process.served_at();
        Server { process, address }
    }

    async fn ask(&self, server: &Server, number: usize) -> Result<Reply, reqwest::Error> {
        let body = json!({"messages": [{"role": "user", "content": format!("Get the book b{number}")}]});
        let request = self.client.post(format!("{}/api/chat", server.address)).timeout(PATIENCE);
        let request = request.header("Idempotency-Key", format!("k{number}")).json(&body);
        Ok(Reply::of(request.send().await?).await)
    }

    /// What the budget of the day has spent according to the metrics, in USD.
    async fn day_spending(&self, server: &Server) -> f64 {
        let metrics = self.client.get(format!("{}/metrics", server.address)).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        let line =
            metrics.lines().find(|line| line.starts_with("proscenium_budget_spent_usd{scope=\"day\"}"));
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    }

    async fn get(&self, server: &Server, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", server.address)).timeout(PATIENCE);
        Reply::of(request.send().await.unwrap()).await.json()
    }

    /// Sends this many requests; their clients disconnect as soon as the models are asked.
    async fn send_and_disconnect(&self, server: &Server, requests: usize) {
        let asked = futures::future::join_all((0..requests).map(|number| self.ask(server, number)));
        tokio::select! {
            _ = asked => panic!("no model answers"),
            () = self.wait_for_plans(requests) => {}
        }
    }

    /// Waits until this many plans were requested since the last call.
    async fn wait_for_plans(&self, plans: usize) {
        let began = Instant::now();
        while self.plans.load(Ordering::SeqCst) < plans {
            assert!(began.elapsed() < PATIENCE, "{} of {plans}", self.plans.load(Ordering::SeqCst));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.plans.store(0, Ordering::SeqCst);
    }

    /// Asserts that every request has its answer, and that every write reached the backend once.
    async fn assert_all_complete(&self, server: &Server, requests: usize) {
        self.gate.open();
        let replies = futures::future::join_all((0..requests).map(|number| self.ask(server, number))).await;
        for reply in replies {
            let document = reply.unwrap().json();
            assert_eq!(document["status"], "completed", "{document:#}");
        }
        let reached = self.backend.take_requests();
        for place in ["POST /Reserve", "POST /Renew"] {
            assert_eq!(reached.iter().filter(|call| call.place == place).count(), requests, "{place}");
        }
    }
}

#[tokio::test]
async fn repeated_kills_recover_fewer_runs_at_once_and_fail_none() {
    let harness = RestartHarness::open();
    let mut server = harness.start(&[]);
    harness.send_and_disconnect(&server, 20).await;
    // After one crash all at once, then 16, 4 and one at a time.
    for at_once in [20, 16, 4, 1] {
        server.process.kill();
        server = harness.start(&[]);
        harness.wait_for_plans(at_once).await;
    }
    assert_eq!(harness.plans.load(Ordering::SeqCst), 0, "at most one is in progress");
    harness.assert_all_complete(&server, 20).await;
    let listed = harness.get(&server, "/api/runs?limit=100").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 20, "none was started twice");
}

#[tokio::test]
async fn shutdown_with_a_short_drain_does_not_count_as_a_crash() {
    let harness = RestartHarness::open();
    let mut server = harness.start(&[]);
    harness.send_and_disconnect(&server, 20).await;
    for _ in 0..5 {
        server.process.signal("TERM");
        let ran = server.process.end();
        assert!([0, 1].contains(&ran.status), "{ran:?}");
        server = harness.start(&[]);
        harness.wait_for_plans(20).await;
    }
    harness.assert_all_complete(&server, 20).await;
}

#[tokio::test]
async fn server_with_a_taken_port_touches_no_run() {
    let harness = RestartHarness::open();
    let mut server = harness.start(&[]);
    harness.send_and_disconnect(&server, 1).await;
    server.process.kill();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for _ in 0..4 {
        let line = ["serve", "--addr", &address, "--config", "house.toml", "--scenes", "scenes"];
        let ran = harness.workspace.spawn(&line).end();
        assert!(ran.status == 1 && ran.err.contains("server.address"), "{ran:?}");
    }
    drop(taken);
    assert_eq!(harness.plans.load(Ordering::SeqCst), 0);
    server = harness.start(&[]);
    harness.assert_all_complete(&server, 1).await;
}

#[tokio::test]
async fn interrupted_keyed_write_is_repeated_under_its_key() {
    let harness = RestartHarness::open();
    harness.gate.open();
    let place = || ("CRASH_POINT_AT", "before:tool_completed".to_owned());
    // The third tool that ends is the keyed one; after that it is the first.
    let server = harness.start(&[place(), ("CRASH_POINT_SKIP", "2".to_owned())]);
    harness.ask(&server, 0).await.unwrap_err();
    server.process.kill();
    let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
    let mut again = harness.workspace.spawn_with(&line, &[place()]);
    let began = Instant::now();
    while !again.has_ended() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    again.kill();
    let server = harness.start(&[]);
    let document = harness.ask(&server, 0).await.unwrap().json();
    assert_eq!(document["status"], "completed", "{document:#}");
    let reached = harness.backend.take_requests();
    let keys: Vec<_> =
        reached.iter().filter(|call| call.place == "POST /Renew").map(|call| &call.idempotency_key).collect();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

/// The driver panics with the reply to the plan in hand: what the first attempt cost is charged once, as the
/// journal has it.
#[tokio::test]
async fn model_call_of_a_panicked_driver_is_charged_once() {
    let harness = RestartHarness::open();
    harness.gate.open();
    let env = [("CRASH_POINT_AT", "before:model_replied".to_owned()), ("CRASH_POINT_PANICS", "1".to_owned())];
    let server = harness.start(&env);
    let reply = harness.ask(&server, 1).await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")), "{reply:#?}");
    assert_eq!(harness.plans.load(Ordering::SeqCst), 2, "the reply was lost with its driver");
    let usage = harness.get(&server, "/api/usage").await;
    let spent = harness.day_spending(&server).await;
    assert!((spent - usage["cost_usd"].as_f64().unwrap()).abs() < 1e-9, "{spent} of {usage:#}");
    server.process.signal("TERM");
    server.process.end();
}

#[tokio::test]
async fn interrupted_model_call_costs_its_reservation() {
    let harness = RestartHarness::open();
    let server = harness.start(&[]);
    harness.send_and_disconnect(&server, 1).await;
    // A client that reads it has the earlier events on disk.
    let listed = harness.get(&server, "/api/runs").await;
    let run = listed["runs"][0]["run_id"].as_str().unwrap().to_owned();
    harness.get(&server, &format!("/api/runs/{run}")).await;
    server.process.kill();
    let server = harness.start(&[]);
    harness.assert_all_complete(&server, 1).await;
    let document = harness.get(&server, &format!("/api/runs/{run}")).await;
    let usage = harness.get(&server, "/api/usage").await;
    let (of_run, listed_cost) = (document["usage"]["cost_usd"].as_f64(), usage["cost_usd"].as_f64());
    assert_eq!(of_run, listed_cost, "{document:#} {usage:#}");
    let budget = harness.day_spending(&server).await;
    assert!((budget - listed_cost.unwrap()).abs() < 1e-9, "{budget} of {listed_cost:?}");
    server.process.signal("TERM");
    server.process.end();
    let file = format!("sqlite://{}", harness.workspace.data().join("proscenium.db").display());
    let pool = sqlx::SqlitePool::connect(&file).await.unwrap();
    let sql = "SELECT json_extract(body, '$.usage.cost_nano_usd') FROM journal \
               WHERE body GLOB '{\"type\":\"model_failed\"*llm.interrupted*'";
    let cost: i64 = sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
    assert!(cost > 0, "{cost}");
}
