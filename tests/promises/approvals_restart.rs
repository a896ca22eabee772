//! Pending approvals and decisions survive a killed server.

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{RunningProcess, Workspace};
use crate::server_api::ask;
use crate::support::{Office, Reply};

const V1: &str = "/v1/chat/completions";

/// Starts servers on one data directory, one after the other.
struct RestartHarness {
    workspace: Workspace,
    office: Office,
    client: reqwest::Client,
}

struct Server<'h> {
    process: RunningProcess,
    address: String,
    client: &'h reqwest::Client,
}

impl RestartHarness {
    fn open() -> Self {
        let (workspace, office) = (Workspace::bare(), Office::open());
        office.write_scenes(&workspace.path().join("scenes"), "Books a room.");
        workspace.write_house(
            &office.llm,
            "[planning]\nfallback_enabled = false\n[execution]\nconfirm = \"never\"\n",
        );
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { workspace, office, client }
    }

    fn start(&self, env: &[(&str, String)]) -> Server<'_> {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes"];
        let mut process = self.workspace.spawn_with(&line, env);
        let address = process.served_at();
        Server { process, address, client: &self.client }
    }
}

impl Server<'_> {
    /// `None` if it died before it replied.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Reply> {
        let request = self.client.request(method, format!("{}{path}", self.address));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        Some(Reply::of(request.send().await.ok()?).await)
    }

    /// A "yes" in the conversation `s-1`, through one of the two chat routes.
    async fn send_yes(&self, path: &str, headers: &[(&str, &str)]) -> Option<Reply> {
        let mut body = ask("yes");
        if path == V1 {
            body["model"] = json!("proscenium");
        } else {
            body["session_id"] = json!("s-1");
        }
        let request = self.client.post(format!("{}{path}", self.address)).json(&body);
        let request = if path == V1 { request.header("x-session-id", "s-1") } else { request };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Some(Reply::of(request.send().await.ok()?).await)
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, None).await.unwrap().json()
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, Some(body)).await.unwrap()
    }

    /// The run's document once it has ended or waits.
    async fn settled_run(&self, run: &str) -> Value {
        self.send(Method::GET, &format!("/api/runs/{run}/events"), None).await.unwrap();
        self.get(&format!("/api/runs/{run}")).await
    }

    /// Decides the only pending approval.
    async fn decide(&self) -> Option<Reply> {
        let open = self.get("/api/approvals").await;
        let [approval] = open["approvals"].as_array().unwrap().as_slice() else { panic!("{open:#}") };
        let path = format!("/api/approvals/{}", approval["approval_id"].as_str().unwrap());
        self.send(Method::POST, &path, Some(&json!({"decision": "yes"}))).await
    }
}

#[tokio::test]
async fn waiting_plan_survives_a_kill_and_executes_once() {
    let harness = RestartHarness::open();
    let server = harness.start(&[]);
    let reply = server.post("/api/plans", &json!({"message": "book", "session_id": "s-1"})).await;
    assert_eq!(reply.status, 201, "{reply:#?}");
    let plan = reply.json();
    server.process.kill();

    let server = harness.start(&[]);
    let open = server.get("/api/approvals").await;
    assert_eq!(open["approvals"][0]["approval_id"], plan["approvals"][0], "{open:#}");
    assert_eq!(open["approvals"][0]["hash"], plan["hash"]);
    assert!(harness.office.reached().is_empty());
    let task = plan["task_id"].as_str().unwrap();
    let seen = json!({"version": 1, "hash": plan["hash"], "execute": false});
    let process = server.post(&format!("/api/plans/{task}/approve"), &seen).await;
    assert_eq!((process.status, &process.json()["status"]), (200, &json!("approved")), "{process:#?}");
    // It waits again. If the server was killed before, the next server resumes the run first.
    let waits = server.settled_run(plan["run_id"].as_str().unwrap()).await;
    assert_eq!(waits["status"], "waiting", "{waits:#}");
    server.process.kill();

    // The decision survives too: it is neither asked for again nor started by itself.
    let server = harness.start(&[]);
    assert_eq!(server.get("/api/approvals").await["approvals"], json!([]));
    let plan_now = server.get(&format!("/api/plans/{task}")).await;
    assert_eq!((&plan_now["status"], &plan_now["run_status"]), (&json!("approved"), &json!("waiting")));
    assert!(harness.office.reached().is_empty());
    assert_eq!(server.post(&format!("/api/plans/{task}/approve"), &json!({})).await.status, 200);
    let done = server.settled_run(plan["run_id"].as_str().unwrap()).await;
    assert_eq!(done["status"], "completed", "{done:#}");
    assert_eq!(harness.office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn yes_in_words_answers_a_question_of_a_killed_server() {
    let harness = RestartHarness::open();
    let mut body = ask("book");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let server = harness.start(&[]);
    let first = server.post("/api/chat", &body).await.json();
    assert_eq!(first["status"], "waiting", "{first:#}");
    server.process.kill();
    let server = harness.start(&[]);
    body = ask("yes");
    body["session_id"] = json!("s-1");
    let done = server.post("/api/chat", &body).await.json();
    assert_eq!((&done["status"], &done["run_id"]), (&json!("completed"), &first["run_id"]), "{done:#}");
    assert_eq!(harness.office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn write_runs_once_wherever_the_server_is_killed_around_its_approval() {
    for place in [
        "before:approval_required",
        "after:approval_required",
        "before:run_waiting",
        "after:run_waiting",
        "before:decided",
        "after:decided",
    ] {
        let harness = RestartHarness::open();
        let server = harness.start(&[("CRASH_POINT_AT", place.to_owned())]);
        let mut body = ask("pay");
        body["session_id"] = json!("s-1");
        let asked = server.send(Method::POST, "/api/chat", Some(&body)).await;
        if asked.is_some() {
            let decided = server.decide().await;
            assert!(decided.is_none() && place.ends_with("decided"), "{place}: {decided:#?}");
        }
        assert!(harness.office.reached().is_empty(), "{place}");
        server.process.kill();

        let server = harness.start(&[]);
        let runs = server.get("/api/runs").await;
        let [run] = runs["runs"].as_array().unwrap().as_slice() else { panic!("{place}: {runs:#}") };
        let run = run["run_id"].as_str().unwrap();
        let mut now = server.settled_run(run).await;
        if place != "after:decided" {
            assert_eq!(now["status"], "waiting", "{place}: {now:#}");
            assert!(harness.office.reached().is_empty(), "{place}");
            assert_eq!(server.decide().await.unwrap().status, 200, "{place}");
            now = server.settled_run(run).await;
        }
        assert_eq!(now["status"], "completed", "{place}: {now:#}");
        assert_eq!(harness.office.reached(), ["POST /Pay"], "{place}");
    }
}

#[tokio::test]
async fn yes_retried_after_a_kill_decides_once() {
    let (first, further) = (("x-stainless-retry-count", "0"), ("x-stainless-retry-count", "1"));
    let key = ("idempotency-key", "k-1");
    for (path, keys, again) in [("/api/chat", [key], [key]), (V1, [key], [key]), (V1, [first], [further])] {
        let at = format!("{path} {keys:?}");
        let harness = RestartHarness::open();
        let server = harness.start(&[("CRASH_POINT_AT", "after:decided".to_owned())]);
        let mut body = ask("book and then pay");
        (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
        let asked = server.post("/api/chat", &body).await.json();
        assert_eq!(asked["status"], "waiting", "{at}: {asked:#}");
        assert!(server.send_yes(path, &keys).await.is_none(), "{at}");
        assert!(harness.office.reached().is_empty(), "{at}");
        server.process.kill();

        // The approved run continues and asks something else, which has not been answered yet.
        let server = harness.start(&[]);
        for _ in 0..2 {
            let reply = server.send_yes(path, &again).await.unwrap();
            assert_eq!(reply.status, 200, "{at}: {reply:#?}");
            assert_eq!(reply.header("x-run-id"), asked["run_id"].as_str().unwrap(), "{at}: {reply:#?}");
            let text = if path == V1 {
                reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
            } else {
                assert_eq!(reply.json()["status"], "waiting", "{at}: {reply:#?}");
                reply.json()["answer"].as_str().unwrap().to_owned()
            };
            assert!(text.contains("Pay"), "{at}: {text}");
        }
        let runs = server.get("/api/runs").await;
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{at}: {runs:#}");
        assert_eq!(harness.office.reached(), ["POST /Book"], "{at}");

        // The next yes is a different one.
        let yes = server.send_yes(path, &[("idempotency-key", "k-2")]).await.unwrap();
        assert_eq!((yes.status, yes.header("x-run-id")), (200, asked["run_id"].as_str().unwrap()), "{at}");
        assert_eq!(harness.office.reached(), ["POST /Pay"], "{at}");
        let events = server.get(&format!("/api/runs/{}", asked["run_id"].as_str().unwrap())).await;
        assert_eq!(events["status"], "completed", "{at}: {events:#}");
        server.process.kill();
        let server = harness.start(&[]);
        let yes = server.send_yes(path, &[("idempotency-key", "k-2")]).await.unwrap();
        assert_eq!((yes.status, yes.header("x-run-id")), (200, asked["run_id"].as_str().unwrap()), "{at}");
        assert!(harness.office.reached().is_empty(), "{at}");
    }
}

#[tokio::test]
async fn write_in_flight_of_an_unresumable_run_is_sent_for_approval() {
    let harness = RestartHarness::open();
    let server = harness.start(&[("CRASH_POINT_AT", "after:tool_started".to_owned())]);
    let mut body = ask("book");
    body["session_id"] = json!("s-1");
    assert!(server.send(Method::POST, "/api/chat", Some(&body)).await.is_none());
    server.process.kill();

    // Every server that resumes it panics.
    let panics =
        [("CRASH_POINT_AT", "before:run_resumed".to_owned()), ("CRASH_POINT_PANICS", "100".to_owned())];
    let server = harness.start(&panics);
    let runs = server.get("/api/runs").await;
    let run = runs["runs"][0]["run_id"].as_str().unwrap();
    let now = server.settled_run(run).await;
    assert_eq!(
        (&now["status"], &now["error"]["code"]),
        (&json!("failed"), &json!("run.unrecoverable")),
        "{now:#}"
    );
    let open = server.get("/api/approvals").await;
    assert_eq!(open["approvals"][0]["about"], "outcome", "{open:#}");
    let path = format!("/api/approvals/{}", open["approvals"][0]["approval_id"].as_str().unwrap());
    let keys = server.post(&path, &json!({"decision": "done"})).await;
    assert_eq!(keys.status, 200, "{keys:#?}");
    assert_eq!(server.get("/api/approvals").await["approvals"], json!([]));
    assert!(harness.office.reached().is_empty());
}

#[tokio::test]
async fn run_with_too_many_events_ends_with_writes_in_flight() {
    let harness = RestartHarness::open();
    let server = harness.start(&[("CRASH_MOST_EVENTS", "10".to_owned())]);
    let reply = server.post("/api/chat", &ask("pay and see")).await;
    let problem = reply.json();
    assert_eq!(problem["code"], "run.too_many_events", "{reply:#?}");
    let runs = server.get("/api/runs").await;
    assert_eq!(runs["runs"][0]["status"], "failed", "{runs:#}");
    assert!(harness.office.reached().is_empty());
}

#[tokio::test]
async fn yes_after_a_restart_answers_the_latest_question() {
    let harness = RestartHarness::open();
    let server = harness.start(&[]);
    let waits = async |words: &str| {
        let mut body = ask(words);
        (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
        let answer = server.post("/api/chat", &body).await.json();
        assert_eq!(answer["status"], "waiting", "{answer:#}");
        answer
    };
    let first = waits("book").await;
    let second = waits("see and book").await;
    let path = format!("/api/plans/{}/approve", second["task_id"].as_str().unwrap());
    assert_eq!(server.post(&path, &json!({"execute": false})).await.status, 200);
    server.settled_run(second["run_id"].as_str().unwrap()).await;
    server.process.kill();
    let server = harness.start(&[]);
    let mut yes = ask("yes");
    yes["session_id"] = json!("s-1");
    let answer = server.post("/api/chat", &yes).await.json();
    assert_ne!(answer["run_id"], first["run_id"], "{answer:#}");
    assert_eq!(answer["answer"], "Yes to what?", "{answer:#}");
    assert!(harness.office.reached().is_empty());
}
