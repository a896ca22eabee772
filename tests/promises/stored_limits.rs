//! Everything that is stored can be read back, shown completely and served in time: deeply nested JSON, runs
//! that are unreadable on disk, unbounded plans, and invisible characters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, SqlitePool};
use tempfile::TempDir;

use super::disk_harness::DiskHarness;
use crate::plans_api::{plan_path, waiting_plan};
use crate::server_api::ask;
use crate::support::planner_engine::{ModelRules, has_results, plan, step};
use crate::support::{Backend, Office, Reply, Scripted, ScriptedLlm, ServedEngine, Setup};

/// Nested lists of this depth.
fn nested_lists(depth: usize) -> Value {
    (1..depth).fold(json!([]), |inner, _| json!([inner]))
}

/// A backend whose answers are nested to the requested depth, and a model that calls it with these arguments.
struct NestingBackend {
    backend: Backend,
    scenes: TempDir,
}

impl NestingBackend {
    fn open(depth: Arc<AtomicUsize>) -> Self {
        let backend = Backend::start(move |_| match depth.load(Ordering::SeqCst) {
            0 => json!({"done": true}),
            depth => json!({"deep": nested_lists(depth - 1)}),
        });
        let scenes = tempfile::tempdir().unwrap();
        let tool = |name: &str, more: &str| {
            format!(
                "[[tools]]\nname = \"{name}\"\ndescription = \"{name}s things\"\n{more}\n\
                 parameters = {{ type = \"object\", required = [\"to\"], properties = {{ to = {{ description = \"Whom\" }} }} }}\n\
                 http = {{ method = \"POST\", url = \"{}/{name}\", body = {{ to = \"{{to}}\" }} }}\n",
                backend.address()
            )
        };
        let head = "name = \"Desk\"\ndescription = \"Letters.\"\ninstructions = \"Call the tools.\"\n\
                    examples = [{ say = \"Look\", tool = \"Look\" }]\n";
        let text = [
            head.to_owned(),
            tool("Look", "effect = \"read\""),
            tool("File", "effect = \"write\""),
            tool("Send", "effect = \"write\"\napproval = \"call\""),
        ];
        std::fs::create_dir(scenes.path().join("desk")).unwrap();
        std::fs::write(scenes.path().join("desk/scene.toml"), text.concat()).unwrap();
        Self { backend, scenes }
    }

    fn setup(&self, llm: &ScriptedLlm) -> Setup {
        Setup::scripted(llm)
            .alone()
            .scenes(self.scenes.path())
            .set("scenes.allow_private_addresses", true)
            .set("execution.confirm", "never")
    }
}

/// A model that calls this tool once.
fn caller(tool: &'static str, arguments: Value) -> ModelRules {
    ModelRules::of(plan(json!([step(1, "Desk", &[tool], Value::Null)]))).scene(move |request, _| {
        match has_results(request) {
            false => Scripted::call(tool, arguments.clone()),
            true => Scripted::Text("It is done.".to_owned()),
        }
    })
}

/// Asserts that the run can be read in every form, and the lists that contain it as well.
async fn assert_readable(served: &ServedEngine, answer: &Value) -> Value {
    let run = answer["run_id"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    for path in ["/api/runs", "/api/usage", "/api/approvals", "/api/plans"] {
        assert_eq!(served.get(path).await.status, 200, "{path}");
    }
    assert!(!served.get(&format!("/api/runs/{run}/events")).await.events().is_empty());
    let reply = served.get(&format!("/api/runs/{run}")).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    reply.json()
}

#[tokio::test]
async fn deeply_nested_tool_result_is_truncated_and_stays_readable() {
    let depth = Arc::new(AtomicUsize::new(0));
    let bureau = NestingBackend::open(depth.clone());
    for tool in ["Look", "File"] {
        let llm = caller(tool, json!({"to": "r1"})).start();
        let served = ServedEngine::start(bureau.setup(&llm)).await;
        for deep in [64, 65, 100, 124, 125, 126, 127, 200] {
            depth.store(deep, Ordering::SeqCst);
            let words = format!("look {deep}");
            let answer = served.post("/api/chat", &ask(&words)).await.json();
            let read = assert_readable(&served, &answer).await;
            let call = &read["steps"][0]["tool_calls"][0];
            // A reply that this program cannot parse as JSON fails a read; a write was executed all the same.
            let outcome = if deep > 127 && tool == "Look" { "failed" } else { "ok" };
            assert_eq!(call["outcome"], outcome, "{tool} {deep}: {call:#}");
            let cut = call["result"].to_string().contains("nested deeper than 64 levels");
            assert_eq!(cut, (65..=127).contains(&deep), "{tool} {deep}: {call:#}");
        }
    }
}

#[tokio::test]
async fn deeply_nested_model_arguments_are_rejected_and_stay_readable() {
    let bureau = NestingBackend::open(Arc::default());
    for deep in [63, 64, 100, 124, 125, 126, 127, 300] {
        let llm = caller("Look", json!({"to": nested_lists(deep)})).start();
        let served = ServedEngine::start(bureau.setup(&llm)).await;
        let answer = served.post("/api/chat", &ask("look")).await.json();
        let read = assert_readable(&served, &answer).await;
        let reached = bureau.backend.take_requests().len();
        assert_eq!(reached > 0, deep == 63, "{deep}: {read:#}");
        // In its plan, too.
        let mut planned = plan(json!([step(1, "Desk", &["Send"], Value::Null)]));
        planned["steps"][0]["prepared_calls"] =
            json!([{"tool": "Send", "arguments": {"to": nested_lists(deep)}}]);
        let llm = ModelRules::of(planned).start();
        let served = ServedEngine::start(bureau.setup(&llm)).await;
        let answer = served.post("/api/chat", &ask("look")).await.json();
        assert_readable(&served, &answer).await;
    }
}

#[tokio::test]
async fn deeply_nested_client_json_is_refused_and_stays_readable() {
    let bureau = NestingBackend::open(Arc::default());
    let llm = caller("Send", json!({"to": "r1"})).start();
    let served = ServedEngine::start(bureau.setup(&llm).set("server.max_json_depth", 100)).await;
    let answer = served.post("/api/chat", &ask("send")).await.json();
    assert_eq!(answer["status"], "waiting", "{answer:#}");
    let id = answer["approvals"][0]["approval_id"].as_str().unwrap();
    for deep in [64, 80, 97] {
        let body = json!({"decision": "yes", "arguments": {"to": nested_lists(deep)}});
        let problem = served.post(&format!("/api/approvals/{id}"), &body).await;
        let problem = problem.assert_problem(422, "approval.arguments");
        assert!(problem["detail"].as_str().unwrap().contains("64 levels"), "{problem:#}");
        let mut sent = plan(json!([step(1, "Desk", &["Send"], Value::Null)]));
        sent["steps"][0]["prepared_calls"] =
            json!([{"tool": "Send", "arguments": {"to": nested_lists(deep - 6)}}]);
        if deep > 70 {
            let body = json!({"message": "send", "plan": sent});
            served.post("/api/plans", &body).await.assert_problem(422, "request.too_deep");
        }
    }
    assert_eq!(assert_readable(&served, &answer).await["status"], "waiting");
    assert!(bureau.backend.take_requests().is_empty());
}

/// A run as an earlier release left it that wrote more than it could read: with this status and plan, and
/// this event.
async fn damage(harness: &DiskHarness, run: &str, [status, plan]: [&str; 2], kind: &str, body: &str) {
    let file = harness.workspace.data().join("proscenium.db");
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(file)).await.unwrap();
    for sql in [
        format!(
            "DELETE FROM journal WHERE stream = 'run:{run}' AND body GLOB '{{\"type\":\"run_completed\"*'"
        ),
        format!(
            "UPDATE journal SET body = '{body}' WHERE stream = 'run:{run}' AND seq = (SELECT max(seq) FROM \
             journal WHERE stream = 'run:{run}' AND body GLOB '{{\"type\":\"{kind}\"*')"
        ),
        format!(
            "UPDATE runs SET status = '{status}', last_seq = (SELECT max(seq) FROM journal WHERE stream = \
             'run:{run}') WHERE run = '{run}'"
        ),
        format!("UPDATE plans SET status = '{plan}' WHERE run = '{run}'"),
    ] {
        let done = sqlx::query(AssertSqlSafe(sql.clone())).execute(&pool).await.unwrap();
        assert_eq!(done.rows_affected(), 1, "{sql}");
    }
    pool.close().await;
}

#[tokio::test]
async fn unreadable_run_is_listed_cancelled_and_erased_alone() {
    let harness = DiskHarness::open();
    let server = harness.start();
    let mut runs = Vec::new();
    for book in ["b0", "b1"] {
        let reply = server.ask(book, "s").await.unwrap();
        runs.push(reply.json()["run_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(server.end().status, 0);
    let deep = json!({"type": "tool_completed", "call": 1, "millis": 1,
        "outcome": {"ok": {"result": nested_lists(125), "say": null}}});
    damage(&harness, &runs[0], ["running", "executing"], "tool_completed", &deep.to_string()).await;
    damage(
        &harness,
        &runs[1],
        ["waiting", "pending_approval"],
        "model_replied",
        "{\"type\":\"model_replied\",\"call\":1,",
    )
    .await;

    let server = harness.start();
    // Its conversation continues, and so does everything else.
    let reply = server.ask("b2", "s").await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")), "{reply:#?}");
    for path in
        ["/healthz", "/readyz", "/api/usage", "/api/plans", "/api/sessions/s", "/api/approvals?all=true"]
    {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {reply:#?}");
    }
    for (run, status) in runs.iter().zip(["running", "waiting"]) {
        server.get(&format!("/api/runs/{run}")).await.assert_problem(500, "store.unreadable");
        let listed = row(&server.get("/api/runs").await, run).unwrap();
        assert_eq!(listed["status"], status, "{listed:#}");
        assert!(listed["unreadable"].as_str().unwrap().contains("cannot be read"), "{listed:#}");
        let cancelled = server.send("POST", &format!("/api/runs/{run}/cancel")).await;
        assert_eq!((cancelled.status, &cancelled.json()["stopping"]), (202, &json!(true)), "{cancelled:#?}");
        let listed = row(&server.get("/api/runs").await, run).unwrap();
        assert_eq!(listed["status"], "cancelled", "{listed:#}");
        let plans = server.get("/api/plans").await.json();
        let plan = plans["plans"].as_array().unwrap().iter().find(|plan| plan["run_id"] == **run).unwrap();
        assert_eq!(plan["status"], "cancelled", "{plan:#}");
        let erased = server.send("DELETE", &plan_path(plan, "")).await;
        assert_eq!(erased.status, 204, "{erased:#?}");
        assert_eq!(row(&server.get("/api/runs").await, run), None);
        server.get(&format!("/api/runs/{run}")).await.assert_problem(404, "run.unknown");
    }
    assert_eq!(server.get("/api/usage").await.status, 200);
    assert_eq!(server.end().status, 0);
}

/// The entry of this run in a list of runs.
fn row(list: &Reply, run: &str) -> Option<Value> {
    list.json()["runs"].as_array().unwrap().iter().find(|row| row["run_id"] == run).cloned()
}

/// Replaces the plan by one whose purpose is this text.
async fn edit_plan(served: &ServedEngine, plan: &Value, purpose: &str) -> Reply {
    let mut steps = plan["plan"].clone();
    steps["steps"][0]["purpose"] = json!(purpose);
    steps["steps"][0]["step_number"] = json!(1);
    served.post(&plan_path(plan, "/modify"), &json!({"plan": steps})).await
}

#[tokio::test]
async fn plan_versions_are_bounded_and_listed_in_pages() {
    let (_office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    for version in 2..=32 {
        let reply = edit_plan(&served, &plan, &format!("Book it, version {version}")).await;
        assert_eq!(reply.status, 200, "{version}: {reply:#?}");
    }
    let problem =
        edit_plan(&served, &plan, "Book it once more").await.assert_problem(409, "plan.too_many_versions");
    assert!(problem["detail"].as_str().unwrap().contains("cancel"), "{problem:#}");
    served
        .post(&plan_path(&plan, "/modify"), &json!({"feedback": "look first"}))
        .await
        .assert_problem(409, "plan.too_many_versions");
    let numbers = |document: &Value| -> Vec<u64> {
        document["versions"].as_array().unwrap().iter().map(|v| v["version"].as_u64().unwrap()).collect()
    };
    let whole = served.get(&plan_path(&plan, "")).await.json();
    assert_eq!(numbers(&whole), (1..=32).collect::<Vec<_>>());
    assert!(whole.get("versions_before").is_none(), "{whole:#}");
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = served.get(&plan_path(&plan, &format!("?limit=10{before}"))).await.json();
        assert!(
            page["versions"]
                .as_array()
                .unwrap()
                .iter()
                .all(|v| v["version"] == 1 || v["diff"][0].is_string())
        );
        seen.splice(0..0, numbers(&page));
        match page.get("versions_before") {
            Some(number) => before = format!("&before={number}"),
            None => break,
        }
    }
    assert_eq!(seen, (1..=32).collect::<Vec<_>>());
    for wrong in ["?limit=0", "?limit=33"] {
        served.get(&plan_path(&plan, wrong)).await.assert_problem(422, "request.query");
    }
    // The current version can still be approved.
    let approved = served.post(&plan_path(&plan, "/approve"), &json!({"version": 32})).await;
    assert_eq!(approved.status, 200, "{approved:#?}");
}

#[tokio::test]
async fn plan_and_total_version_size_are_bounded() {
    let (_office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    let long = |kilobytes: usize, letter: &str| letter.repeat(kilobytes * 1024);
    edit_plan(&served, &plan, &long(257, "x")).await.assert_problem(413, "plan.too_large");
    let mut sent = plan["plan"].clone();
    sent["steps"][0]["purpose"] = json!(long(257, "x"));
    let new = json!({"message": "book", "plan": sent});
    served.post("/api/plans", &new).await.assert_problem(413, "plan.too_large");
    let mut taken = 0;
    let refused = loop {
        let reply = edit_plan(&served, &plan, &long(250, ["x", "y"][taken % 2])).await;
        if reply.status != 200 {
            break reply;
        }
        taken += 1;
    };
    refused.assert_problem(409, "plan.history_full");
    assert_eq!(taken, 8);
    let document = served.get(&plan_path(&plan, "")).await;
    assert!(document.body.len() < 3 * 1024 * 1024, "{}", document.body.len());
}

#[tokio::test]
async fn invisible_characters_are_escaped_beside_the_exact_arguments() {
    let hidden = "pay\u{200b}pal\u{202e}x\u{e0041}\u{feff}\u{fe01} 👩\u{200d}🚀";
    let seen = "pay\\u200bpal\\u202ex\\udb40\\udc41\\ufeff\\ufe01 👩\u{200d}🚀";
    let bureau = NestingBackend::open(Arc::default());
    let llm = caller("Send", json!({"to": hidden})).start();
    let served = ServedEngine::start(bureau.setup(&llm)).await;
    let answer = served.post("/api/chat", &ask("send")).await.json();
    assert_eq!(answer["status"], "waiting", "{answer:#}");
    let words = answer["answer"].as_str().unwrap();
    assert!(words.contains(seen), "{words}");
    let id = answer["approvals"][0]["approval_id"].as_str().unwrap();
    let document = served.get(&format!("/api/approvals/{id}")).await.json();
    for shown_document in [&answer["approvals"][0], &document] {
        assert_eq!(shown_document["arguments"], json!({"to": hidden}));
        let shown = shown_document["shown"].as_str().unwrap();
        assert!(shown.contains(seen), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), shown_document["arguments"]);
    }
    let task = answer["task_id"].as_str().unwrap();
    let text = served.get(&format!("/api/plans/{task}?format=text")).await.body;
    assert!(text.contains(seen) && !text.contains('\u{200b}'), "{text}");
    let yes = served.post(&format!("/api/approvals/{id}"), &json!({"decision": "yes"})).await;
    assert_eq!(yes.status, 200, "{yes:#?}");
    let run = answer["run_id"].as_str().unwrap();
    served.get(&format!("/api/runs/{run}/events")).await.events();
    let sent = bureau.backend.take_requests();
    assert_eq!(sent[0].body, json!({"to": hidden}), "the sent arguments are exact");
}
