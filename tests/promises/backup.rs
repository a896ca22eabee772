//! A backup is taken while a server is under load, the server is killed, and the backup is restored: what was done is
//! there, and what was unfinished waits for a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::fault_matrix::{place, rules, write_scene};
use super::process::{ProcessOutput, RunningProcess, Workspace};
use crate::support::planner_engine::{plan, step};
use crate::support::{FaultyBackend, Gate, Misbehaviour, Scripted, ScriptedLlm, eventually, section};

const CLIENTS: usize = 4;
/// The most requests of a client: one page of the list has all runs.
const MOST: usize = 110;

/// A model that plans the call which the request names; plans of `Pay` wait for the gate.
fn model(gate: &Gate) -> ScriptedLlm {
    let gate = gate.clone();
    let rules = rules().plan(move |request, _| {
        let words = section(request, "request").unwrap_or_default();
        let tool = if words.contains("Pay") { "Pay" } else { "Book" };
        let cell = words.split("cell ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let mut step = step(1, "Desk", &[tool], Value::Null);
        step["purpose"] = json!(words);
        let arguments = json!({"cell": cell.unwrap_or_default()});
        // Writes of a plan that a person approves have their arguments as they are, others as text.
        let is_shown = words.contains("approved");
        let arguments = if is_shown { arguments } else { json!(arguments.to_string()) };
        step["prepared_calls"] = json!([{"tool": tool, "arguments": arguments}]);
        step["if_needed"] = json!([]);
        let planned = Scripted::forced(request, plan(json!([step])));
        if tool == "Pay" { planned.held(&gate) } else { planned }
    });
    rules.start()
}

/// A server on a data directory of the workspace, with its address.
fn serve(workspace: &Workspace, data: &str) -> (RunningProcess, String) {
    let line = [
        "serve", "--addr", "127.0.0.1:0", "--config", "house.toml", "--scenes", "scenes", "--data-dir", data,
    ];
    let mut process = workspace.spawn(&line);
    let address = process.served_at();
    (process, address)
}

struct Client {
    http: reqwest::Client,
    address: String,
}

impl Client {
    fn new(address: &str) -> Self {
        Self { http: reqwest::Client::builder().no_proxy().build().unwrap(), address: address.to_owned() }
    }

    /// A request whose reply may be cut off by the end of the server.
    async fn try_post(&self, path: &str, body: &Value) -> Option<Value> {
        let sent = self.http.post(format!("{}{path}", self.address)).json(body).send().await;
        sent.ok()?.json().await.ok()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).await.unwrap()
    }

    async fn get(&self, path: &str) -> String {
        let reply = self.http.get(format!("{}{path}", self.address)).send().await.unwrap();
        reply.text().await.unwrap()
    }

    async fn runs(&self, query: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.get(&format!("/api/runs?{query}")).await).unwrap();
        list["runs"].as_array().unwrap().clone()
    }
}

fn asking(words: &str, session: &str) -> Value {
    json!({"messages": [{"role": "user", "content": words}], "session_id": session})
}

async fn run(workspace: &Arc<Workspace>, arguments: &[&str]) -> ProcessOutput {
    let workspace = workspace.clone();
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let work = move || workspace.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn backup_under_load_is_restored_and_nothing_unfinished_resumes_by_itself() {
    let (gate, workspace) = (Gate::closed(), Arc::new(Workspace::bare()));
    let (llm, backend) = (model(&gate), FaultyBackend::start(|_, _| Misbehaviour::Answer));
    write_scene(&workspace.path().join("scenes"), backend.address(), "");
    workspace.write_house(&llm, "[planning]\nfallback_enabled = false\n[execution]\nconfirm = \"never\"\n");
    let (server, address) = serve(&workspace, "data");
    let client = Client::new(&address);
    let text = "# Notes\n\nThe desk is on the third floor.\n";
    let upload = client.http.post(format!("{address}/api/documents?name=notes.md"));
    let added = upload.header("content-type", "text/markdown").body(text).send().await.unwrap();
    let document: Value = added.json().await.unwrap();
    let document = format!("/api/documents/{}/content", document["id"].as_str().unwrap());
    let mut approved = asking("Book cell approved", "a");
    approved["require_approval"] = json!(true);
    let waiting = client.post("/api/chat", &approved).await;
    assert_eq!(waiting["status"], "waiting", "{waiting:#}");
    let held = Client::new(&address);
    let held = tokio::spawn(async move { held.try_post("/api/chat", &asking("Pay cell held", "p")).await });
    eventually("the held run runs", async || client.runs("status=running").await.len() == 1).await;

    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let (client, stop) = (Client::new(&address), stop.clone());
            tokio::spawn(async move {
                let mut cells = Vec::new();
                while !stop.load(Ordering::Acquire) && cells.len() < MOST {
                    cells.push(format!("{n}-{}", cells.len()));
                    let words = format!("Book cell {n}-{}", cells.len() - 1);
                    if client.try_post("/api/chat", &asking(&words, &format!("load{n}"))).await.is_none() {
                        break;
                    }
                }
                cells
            })
        })
        .collect();
    eventually("there is load", async || client.runs("status=completed").await.len() > 10).await;
    let taken = run(&workspace, &["backup", "copies", "--json", "--config", "house.toml"]).await;
    assert_eq!(taken.status, 0, "{taken:#?}");
    let manifest: Value = serde_json::from_str(&taken.out).unwrap();
    assert!(manifest["counts"]["runs"].as_u64() > Some(12) && manifest["counts"]["documents"] == 1);
    // What the copy does not know: the approval, and the write that follows.
    let task = waiting["task_id"].as_str().unwrap();
    client.post(&format!("/api/plans/{task}/approve"), &json!({})).await;
    eventually("it is booked", async || backend.requests(&place("Book", "approved")).len() == 1).await;
    let used = run(&workspace, &["restore", "copies", "--replace", "--config", "house.toml"]).await;
    assert!(used.status == 1 && used.err.contains("error[store.in_use]"), "{used:#?}");
    server.kill();
    stop.store(true, Ordering::Release);
    let mut cells = vec!["approved".to_owned()];
    for client in clients {
        cells.extend(client.await.unwrap());
    }
    held.await.unwrap();

    let mistyped = ["restore", "copies", "--config", "house.toml", "--data-dir", "new", "--compare", "dta"];
    let mistyped = run(&workspace, &mistyped).await;
    assert!(mistyped.status == 2 && mistyped.err.contains("error[restore.compare]"), "{mistyped:#?}");
    // Nothing was restored, so the directory is still free.
    let line =
        ["restore", "copies", "--json", "--config", "house.toml", "--data-dir", "new", "--compare", "data"];
    let restored = run(&workspace, &line).await;
    assert_eq!(restored.status, 0, "{restored:#?}");
    let report: Value = serde_json::from_str(&restored.out).unwrap();
    let parked = report["parked"].as_array().unwrap();
    assert_eq!(json!(parked.len()), manifest["counts"]["unfinished_runs"], "{report:#}");
    let of = |id: &Value| parked.iter().find(|run| run["run"] == *id).unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(of(&waiting["run_id"])["later"]["writes"], json!(["Desk.Book: done"]), "{report:#}");
    assert!(
        report["since"]["requests"].as_u64() > Some(0) && report["unknown"].as_array().unwrap().len() > 5
    );

    let (_server, address) = serve(&workspace, "new");
    let client = Client::new(&address);
    assert_eq!(client.get(&document).await, text);
    let after = client.post("/api/chat", &asking("Book cell afterwards", "z")).await;
    assert_eq!(after["status"], "completed", "{after:#}");
    let waits = client.runs("parked=true&limit=500").await;
    assert_eq!(waits.len(), parked.len());
    assert!(waits.iter().all(|run| run["status"] == "waiting"), "{waits:#?}");
    let all = client.runs("limit=500").await;
    let completed = all.iter().filter(|run| run["status"] == "completed").count() as u64;
    let counted = manifest["counts"]["runs"].as_u64().unwrap() - parked.len() as u64;
    assert_eq!(completed, counted + 1, "each finished run of the copy is there");
    // No write was done twice, and nobody asked for the held one.
    for cell in &cells {
        assert!(backend.requests(&place("Book", cell)).len() <= 1, "{cell}");
    }
    assert!(backend.requests(&place("Pay", "held")).is_empty());

    // What people decide about it meanwhile is recorded, and it waits as before.
    let words = json!({"feedback": "Book cell other"});
    client.post(&format!("/api/plans/{task}/modify"), &words).await;
    let shown: Value = serde_json::from_str(&client.get(&format!("/api/plans/{task}")).await).unwrap();
    assert_eq!((&shown["status"], &shown["run_status"]), (&json!("draft"), &json!("waiting")), "{shown:#}");
    let listed = client.runs("parked=true&limit=500").await;
    assert_eq!(listed.iter().filter(|run| run["status"] == "waiting").count(), parked.len());
    gate.open();
    let held = waits.iter().find(|run| run["request"] == "Pay cell held").unwrap();
    let run = held["run_id"].as_str().unwrap();
    let resumed = client.post(&format!("/api/runs/{run}/resume"), &json!({})).await;
    eventually("the resumed run ends", async || {
        client.runs("parked=true&limit=500").await.len() == parked.len() - 1
            && backend.requests(&place("Pay", "held")).len() == 1
    })
    .await;
    assert!(resumed["code"].is_null(), "{resumed:#}");
}
