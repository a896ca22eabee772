//! Approval and control of plans over HTTP, judged by what reached an external server.

use std::sync::atomic::Ordering;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::{Office, Reply, ServedEngine, Shelf};

/// A waiting plan for these words.
pub async fn waiting_plan(served: &ServedEngine, words: &str) -> Value {
    let reply = served.post("/api/plans", &json!({"message": words})).await;
    assert_eq!(reply.status, 201, "{reply:#?}");
    let plan = reply.json();
    assert_eq!(reply.header("location"), format!("/api/plans/{}", plan["task_id"].as_str().unwrap()));
    assert_eq!((&plan["status"], &plan["run_status"]), (&json!("pending_approval"), &json!("waiting")));
    plan
}

/// The route of a plan, with a suffix.
pub fn plan_path(plan: &Value, more: &str) -> String {
    format!("/api/plans/{}{more}", plan["task_id"].as_str().unwrap())
}

/// Follows a plan's run until it ends or waits, and returns the plan.
pub async fn settled_plan(served: &ServedEngine, plan: &Value) -> Value {
    let run = plan["run_id"].as_str().unwrap();
    served.get(&format!("/api/runs/{run}/events")).await.events();
    served.get(&plan_path(plan, "")).await.json()
}

async fn approve(served: &ServedEngine, plan: &Value, body: Value) -> Reply {
    served.post(&plan_path(plan, "/approve"), &body).await
}

async fn delete(served: &ServedEngine, path: &str) -> Reply {
    Reply::of(served.request("DELETE", path).send().await.unwrap()).await
}

#[tokio::test]
async fn plan_waits_for_approval_and_executes_once() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    assert_eq!(plan["version"], 1);
    assert_eq!(plan["objective"], "book");
    assert_eq!(plan["approvals"].as_array().unwrap().len(), 1, "{plan:#}");
    assert!(plan["why_approval"][0].as_str().unwrap().contains("request"), "{plan:#}");
    assert!(office.reached().is_empty(), "nothing was executed before approval");
    assert_eq!(served.get(&plan_path(&plan, "")).await.json(), plan);

    let seen = json!({"version": 1, "hash": plan["hash"], "note": "go"});
    let reply = approve(&served, &plan, seen).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let done = settled_plan(&served, &plan).await;
    assert_eq!(
        (&done["status"], &done["run_status"]),
        (&json!("completed"), &json!("completed")),
        "{done:#}"
    );
    assert_eq!(done["steps"][0]["tool_calls"][0]["outcome"], "ok");
    assert!(!done["answer"].as_str().unwrap().is_empty());
    assert_eq!(office.reached(), ["POST /Book"]);
    // An executed plan cannot be approved again.
    approve(&served, &plan, json!({})).await.assert_problem(409, "plan.illegal_transition");
    assert!(office.reached().is_empty());
}

#[tokio::test]
async fn one_of_fifty_simultaneous_approvals_counts() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    let once = || approve(&served, &plan, json!({"version": 1}));
    let mut all = join_all((0..50).map(|_| once())).await;
    // A busy machine may refuse some of fifty because the queue is full: these are sent again.
    for reply in &mut all {
        while reply.status == 429 {
            *reply = once().await;
        }
    }
    let taken = all.iter().filter(|reply| reply.status == 200).count();
    let refused: Vec<&Reply> = all.iter().filter(|reply| reply.status == 409).collect();
    assert_eq!((taken, refused.len()), (1, 49), "{all:#?}");
    for reply in refused {
        let code = reply.json()["code"].clone();
        assert!(code == "approval.decided" || code == "plan.illegal_transition", "{reply:#?}");
    }
    assert_eq!(settled_plan(&served, &plan).await["status"], "completed");
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn approval_of_an_unseen_version_is_refused() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    approve(&served, &plan, json!({"hash": "0".repeat(64)})).await.assert_problem(409, "approval.changed");
    approve(&served, &plan, json!({"version": 7})).await.assert_problem(409, "approval.changed");
    approve(&served, &plan, json!([null, null])).await.assert_problem(422, "request.body");

    let changed =
        served.post(&plan_path(&plan, "/modify"), &json!({"feedback": "look first", "version": 1})).await;
    assert_eq!(changed.status, 200, "{changed:#?}");
    let problem = approve(&served, &plan, json!({"version": 1, "hash": plan["hash"]})).await;
    let problem = problem.assert_problem(409, "approval.changed");
    let difference = problem["difference"].to_string();
    assert!(difference.contains("+See") && difference.contains("purpose"), "{problem:#}");
    assert!(office.reached().is_empty());

    let changed = changed.json();
    assert_ne!(changed["hash"], plan["hash"]);
    let seen = json!({"version": 2, "hash": changed["hash"]});
    assert_eq!(approve(&served, &plan, seen).await.status, 200);
    assert_eq!(settled_plan(&served, &plan).await["status"], "completed");
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn multi_version_plan_needs_the_seen_version_or_hash() {
    for seen in ["version", "hash"] {
        let (office, served) = Office::serve().await;
        let plan = waiting_plan(&served, "book").await;
        // Another user replaces the plan after the approver has read it.
        let body = json!({"feedback": "look first", "version": 1});
        let changed = served.post(&plan_path(&plan, "/modify"), &body).await.json();
        for unmentioned in [json!({}), json!({"execute": false}), json!({"version": null, "note": "fine"})] {
            let problem =
                approve(&served, &plan, unmentioned).await.assert_problem(409, "plan.version_required");
            let detail = problem["detail"].as_str().unwrap();
            let hash = changed["hash"].as_str().unwrap();
            assert!(detail.contains("version 2") && detail.contains(hash), "{detail}");
        }
        assert!(office.reached().is_empty());
        assert_eq!(served.get(&plan_path(&plan, "")).await.json()["status"], "pending_approval");
        assert_eq!(approve(&served, &plan, json!({seen: changed[seen]})).await.status, 200);
        assert_eq!(settled_plan(&served, &plan).await["status"], "completed");
        assert_eq!(office.reached(), ["POST /Book"]);
    }
}

#[tokio::test]
async fn plan_is_modified_by_feedback_and_by_hand_with_history() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    let modify = async |body: Value| served.post(&plan_path(&plan, "/modify"), &body).await;

    // Feedback that the planner cannot use changes nothing.
    let problem = modify(json!({"feedback": "make it nicer"})).await.assert_problem(422, "plan.not_modified");
    assert_eq!(problem["run_id"], plan["run_id"]);
    let same = served.get(&plan_path(&plan, "")).await.json();
    assert_eq!((&same["version"], &same["plan"]), (&plan["version"], &plan["plan"]));
    assert_eq!(same["status"], "pending_approval", "{same:#}");

    let second = modify(json!({"feedback": "look first", "version": 1})).await.json();
    assert_eq!(
        (&second["version"], &second["status"]),
        (&json!(2), &json!("pending_approval")),
        "{second:#}"
    );
    let version = &second["versions"][1];
    assert_eq!((&version["cause"], &version["by"]), (&json!("feedback"), &json!("keysersoze")), "{second:#}");
    assert!(version["diff"].to_string().contains("+See"), "{version:#}");

    let mut by_hand = second["plan"].clone();
    by_hand["steps"][0]["purpose"] = json!("Book it for Monday");
    let third = modify(json!({"plan": by_hand, "version": 2, "why": "Monday it is"})).await;
    assert_eq!(third.status, 200, "{third:#?}");
    let third = third.json();
    let version = &third["versions"][2];
    assert_eq!((&version["cause"], &version["maker"]), (&json!("edit"), &json!("person")), "{version:#}");
    assert_eq!(version["why"], "Monday it is");
    assert!(version["diff"].to_string().contains("Book it for Monday"), "{version:#}");
    assert_eq!(third["versions"][0]["plan"], plan["plan"]);
    assert_eq!(third["versions"][0]["diff"], json!([]));

    modify(json!({"plan": by_hand, "version": 3})).await.assert_problem(422, "plan.unchanged");
    modify(json!({"plan": by_hand, "version": 1})).await.assert_problem(409, "approval.changed");
    let mut nowhere = by_hand.clone();
    nowhere["steps"][0]["scene_name"] = json!("Attic");
    modify(json!({"plan": nowhere})).await.assert_problem(422, "plan.invalid");
    modify(json!({"feedback": "  "})).await.assert_problem(422, "plan.no_feedback");
    modify(json!({"feedback": "x".repeat(8001)})).await.assert_problem(422, "plan.no_feedback");
    for neither in [json!({}), json!({"feedback": "look first", "plan": by_hand})] {
        modify(neither).await.assert_problem(422, "request.body");
    }
    assert!(office.reached().is_empty());
    assert_eq!(approve(&served, &plan, json!({"version": 3})).await.status, 200);
    let done = settled_plan(&served, &plan).await;
    assert_eq!(done["status"], "completed", "{done:#}");
    assert_eq!(office.reached(), ["POST /Book"]);
    modify(json!({"feedback": "look first"})).await.assert_problem(409, "plan.illegal_transition");
}

#[tokio::test]
async fn held_plan_starts_with_a_second_approval() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    let held = approve(&served, &plan, json!({"execute": false})).await;
    assert_eq!((held.status, &held.json()["status"]), (200, &json!("approved")), "{held:#?}");
    let rests = settled_plan(&served, &plan).await;
    assert_eq!((&rests["status"], &rests["run_status"]), (&json!("approved"), &json!("waiting")));
    approve(&served, &plan, json!({"execute": false})).await.assert_problem(409, "approval.decided");

    // A change revokes the approval.
    let changed = served.post(&plan_path(&plan, "/modify"), &json!({"feedback": "look first"})).await.json();
    assert_eq!(
        (&changed["status"], &changed["version"]),
        (&json!("pending_approval"), &json!(2)),
        "{changed:#}"
    );
    assert!(office.reached().is_empty());
    let held = approve(&served, &plan, json!({"execute": false, "version": 2})).await.json();
    assert_eq!(held["status"], "approved", "{held:#}");
    settled_plan(&served, &plan).await;
    assert!(office.reached().is_empty());
    assert_eq!(approve(&served, &plan, json!({"version": 2})).await.status, 200);
    assert_eq!(settled_plan(&served, &plan).await["status"], "completed");
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn cancelled_waiting_plan_executes_nothing() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "book").await;
    let reply = served.post(&plan_path(&plan, "/cancel"), &json!({"why": "not today"})).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("cancelled")), "{reply:#?}");
    let approvals = served.get("/api/approvals").await.json();
    assert_eq!(approvals["approvals"], json!([]));
    served.post(&plan_path(&plan, "/cancel"), &json!({})).await.assert_problem(409, "run.ended");
    approve(&served, &plan, json!({})).await.assert_problem(409, "plan.illegal_transition");

    // The same through the run's own route, and without a body.
    let plan = waiting_plan(&served, "book").await;
    let run = plan["run_id"].as_str().unwrap();
    let reply = served.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    assert_eq!((reply.status, &reply.json()["stopping"]), (202, &json!(true)), "{reply:#?}");
    assert_eq!(settled_plan(&served, &plan).await["status"], "cancelled");
    let plan = waiting_plan(&served, "book").await;
    let bare = served.request("POST", &plan_path(&plan, "/cancel")).send().await.unwrap();
    assert_eq!(Reply::of(bare).await.json()["status"], "cancelled");
    assert!(office.reached().is_empty());
}

#[tokio::test]
async fn plan_cancelled_midway_reports_completed_work() {
    let (shelf, served) = Shelf::serve().await;
    let plan = waiting_plan(&served, "put").await;
    assert_eq!(approve(&served, &plan, json!({})).await.status, 200);
    shelf.started.wait_open().await;
    let (address, body) = (plan_path(&plan, "/cancel"), json!({}));
    let cancel = served.post(&address, &body);
    let follow = async {
        let run = plan["run_id"].as_str().unwrap();
        // A write in progress is finished before the plan ends.
        while !served.events(run.parse().unwrap()).await.iter().any(|e| e.body.name() == "cancel_requested") {
            tokio::task::yield_now().await;
        }
        shelf.done.open();
    };
    let (reply, ()) = tokio::join!(cancel, follow);
    let document = reply.json();
    assert_eq!((reply.status, &document["status"]), (200, &json!("cancelled")), "{document:#}");
    let call = &document["steps"][0]["tool_calls"][0];
    assert_eq!((&call["tool"], &call["outcome"]), (&json!("Put"), &json!("ok")), "{document:#}");
    assert_eq!(shelf.puts(), 1);
}

#[tokio::test]
async fn cancelled_plan_undoes_its_writes_when_configured() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("execution.compensate", true)).await;
    let plan = waiting_plan(&served, "book and pay").await;
    // The plan's approval does not cover hidden values.
    let mut by_hand = plan["plan"].clone();
    by_hand["steps"][1]["prepared_calls"] = json!([]);
    assert_eq!(served.post(&plan_path(&plan, "/modify"), &json!({"plan": by_hand})).await.status, 200);
    approve(&served, &plan, json!({"version": 2})).await;
    // It waits for the payment; the room is booked.
    let waits = settled_plan(&served, &plan).await;
    assert_eq!(
        (&waits["status"], &waits["run_status"]),
        (&json!("executing"), &json!("waiting")),
        "{waits:#}"
    );
    assert_eq!(office.reached(), ["POST /Book"]);
    let document = served.post(&plan_path(&plan, "/cancel"), &json!({})).await.json();
    assert_eq!(document["status"], "cancelled", "{document:#}");
    let calls = document["steps"][0]["tool_calls"].as_array().unwrap();
    let tools: Vec<&Value> = calls.iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["Book", "Unbook"], "{document:#}");
    assert_eq!(office.reached(), ["POST /Unbook"]);
    // The run's stream names the write that each call undoes.
    let events = format!("/api/runs/{}/events", plan["run_id"].as_str().unwrap());
    let events = served.get(&events).await.events();
    let started = |tool: &str| {
        let mut started = events.iter().filter(|event| event.name == "tool_started");
        started.find(|event| event.data["tool"] == tool).unwrap().data.clone()
    };
    let (book, unbook) = (started("Book"), started("Unbook"));
    assert_eq!(unbook["undoes"], book["call"], "{unbook:#}");
    assert!(!book.as_object().unwrap().contains_key("undoes"), "{book:#}");
    let run = served.get(&format!("/api/runs/{}", plan["run_id"].as_str().unwrap())).await.json();
    let answer = run["answer"].as_str().unwrap();
    assert!(answer.contains("Book (Desk)") && answer.ends_with(": it was undone"), "{answer}");
}

/// The calls of the first step after its write was done and the plan was cancelled.
async fn calls_after_cancellation(office: &Office) -> Vec<Value> {
    let served = ServedEngine::start(office.setup().set("execution.compensate", true)).await;
    let plan = waiting_plan(&served, "book and pay").await;
    let mut by_hand = plan["plan"].clone();
    by_hand["steps"][1]["prepared_calls"] = json!([]);
    assert_eq!(served.post(&plan_path(&plan, "/modify"), &json!({"plan": by_hand})).await.status, 200);
    approve(&served, &plan, json!({"version": 2})).await;
    settled_plan(&served, &plan).await;
    assert_eq!(office.reached(), ["POST /Book"]);
    let document = served.post(&plan_path(&plan, "/cancel"), &json!({})).await.json();
    assert_eq!(document["status"], "cancelled", "{document:#}");
    document["steps"][0]["tool_calls"].as_array().unwrap().clone()
}

#[tokio::test]
async fn undo_finds_its_arguments_in_a_result_that_is_too_long_for_a_prompt() {
    let booking = json!({"log": "x".repeat(40_000), "zone": {"room": "r1"}});
    let office = Office::open_with("/result/zone/room", &booking);
    let calls = calls_after_cancellation(&office).await;
    assert_eq!(calls[0]["result"]["truncated"], true, "{:#}", calls[0]);
    assert_eq!((&calls[1]["tool"], &calls[1]["outcome"]), (&json!("Unbook"), &json!("ok")));
    assert_eq!(calls[1]["arguments"], json!({"room": "r1"}));
    assert_eq!(office.reached(), ["POST /Unbook"]);
}

#[tokio::test]
async fn write_whose_undo_arguments_are_missing_is_reported_as_not_undone() {
    let office = Office::open_with("/result/nowhere", &json!({"room": "r1"}));
    let calls = calls_after_cancellation(&office).await;
    assert_eq!((&calls[1]["tool"], &calls[1]["outcome"]), (&json!("Unbook"), &json!("refused")));
    assert_eq!(calls[1]["error"]["code"], "undo.unresolved", "{:#}", calls[1]);
    assert_eq!(office.reached(), [""; 0]);
}

#[tokio::test]
async fn plan_is_rendered_as_text_and_as_a_flowchart() {
    let (_office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "see and book").await;
    let text = served.get(&plan_path(&plan, "?format=text")).await;
    assert_eq!((text.status, text.header("content-type")), (200, "text/plain; charset=utf-8"));
    let head = format!(
        "# Execution Plan: see and book\nTask ID: {}\nStatus: pending_approval\n",
        plan["task_id"].as_str().unwrap()
    );
    assert!(text.body.starts_with(&head), "{}", text.body);
    assert!(
        text.body.contains(
            "\n## Step 2: Desk\nTool: Book\nInput: Desk per l'utente\nParameters: {\"room\":\"r1\"}\nAfter: 1\n"
        ),
        "{}",
        text.body
    );
    assert_eq!(text.body.matches("Parameters:").count(), 1, "the write is known: {}", text.body);
    let asked = served.request("GET", &plan_path(&plan, "")).header("accept", "text/plain, */*");
    assert_eq!(Reply::of(asked.send().await.unwrap()).await.body, text.body);
    let chart = served.get(&plan_path(&plan, "?format=mermaid")).await;
    assert!(chart.body.starts_with("flowchart TD\n") && chart.body.contains("s1 --> s2"), "{}", chart.body);
    served.get(&plan_path(&plan, "?format=pdf")).await.assert_problem(422, "request.query");

    approve(&served, &plan, json!({})).await;
    settled_plan(&served, &plan).await;
    let text = served.get(&plan_path(&plan, "?format=text")).await.body;
    let step =
        "Tool: Book\nInput: Desk per l'utente\nParameters: {\"room\":\"r1\"}\nAfter: 1\nStatus: completed\n";
    assert!(text.contains(step), "{text}");
}

#[tokio::test]
async fn plans_are_listed_with_pages_and_filters_and_erased() {
    let (_office, served) = Office::serve().await;
    let mut plans = Vec::new();
    for number in 0..5 {
        let body = json!({"message": "book", "session_id": format!("s-{}", number % 2)});
        plans.push(served.post("/api/plans", &body).await.json());
    }
    served.post(&plan_path(&plans[0], "/cancel"), &json!({})).await;
    let ids = |list: &Value| -> Vec<Value> {
        list["plans"].as_array().unwrap().iter().map(|plan| plan["task_id"].clone()).collect()
    };
    let all: Vec<Value> = plans.iter().rev().map(|plan| plan["task_id"].clone()).collect();
    let list = async |query: &str| served.get(&format!("/api/plans{query}")).await.json();
    assert_eq!(ids(&list("").await), all);
    let first = list("?limit=2").await;
    assert_eq!((ids(&first), &first["next"]), (all[..2].to_vec(), &all[1]));
    let second = list(&format!("?limit=3&after={}", all[1].as_str().unwrap())).await;
    assert_eq!(ids(&second), all[2..]);
    assert_eq!(ids(&list("?status=cancelled").await), [all[4].clone()]);
    assert_eq!(ids(&list("?status=pending_approval&session_id=s-0").await), [all[0].clone(), all[2].clone()]);
    let middle = plans[2]["created_at"].as_str().unwrap();
    assert_eq!(ids(&list(&format!("?since={middle}")).await), all[..3]);
    assert_eq!(ids(&list(&format!("?until={middle}")).await), all[3..]);
    for query in ["?limit=0", "?limit=501", "?status=lost", "?since=soon", "?what=else"] {
        served.get(&format!("/api/plans{query}")).await.assert_problem(422, "request.query");
    }

    delete(&served, &plan_path(&plans[1], "")).await.assert_problem(409, "plan.active");
    let gone = delete(&served, &plan_path(&plans[0], "")).await;
    assert_eq!((gone.status, gone.body.as_str()), (204, ""));
    served.get(&plan_path(&plans[0], "")).await.assert_problem(404, "plan.unknown");
    let run = plans[0]["run_id"].as_str().unwrap();
    served.get(&format!("/api/runs/{run}")).await.assert_problem(404, "run.unknown");
    delete(&served, &plan_path(&plans[0], "")).await.assert_problem(404, "plan.unknown");
    assert_eq!(ids(&list("").await), all[..4]);
}

#[tokio::test]
async fn client_supplied_plan_is_executed_as_sent() {
    let (office, served) = Office::serve().await;
    let step = json!({"step_number": 1, "scene_name": "Desk", "purpose": "Book r1", "expected_tools": ["Book"],
        "prepared_calls": [{"tool": "Book", "arguments": {"room": "r1"}}]});
    let sent = json!({"needs_execution": true, "reasoning": "by hand", "steps": [step]});
    let body = json!({"message": "book", "plan": sent});
    let named = async || {
        let request = served.request("POST", "/api/plans").header("idempotency-key", "k-1").json(&body);
        Reply::of(request.send().await.unwrap()).await
    };
    let (first, again) = (named().await, named().await);
    assert_eq!((first.status, again.status), (201, 201), "{again:#?}");
    assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), ("", "true"));
    let plan = first.json();
    assert_eq!(again.json()["task_id"], plan["task_id"]);
    assert_eq!(
        (&plan["versions"][0]["maker"], &plan["versions"][0]["by"]),
        (&json!("person"), &json!("keysersoze"))
    );
    assert_eq!(office.llm.count(), 0, "no model was asked for a plan");
    approve(&served, &plan, json!({})).await;
    assert_eq!(settled_plan(&served, &plan).await["status"], "completed");
    assert_eq!(office.reached(), ["POST /Book"]);

    let mut wrong = sent.clone();
    wrong["steps"][0]["expected_tools"] = json!(["Burn"]);
    let problem = served.post("/api/plans", &json!({"message": "book", "plan": wrong})).await;
    let problem = problem.assert_problem(422, "plan.invalid");
    assert!(problem["detail"].as_str().unwrap().contains("Burn"), "{problem:#}");
}

#[tokio::test]
async fn dry_run_reads_and_reports_planned_writes() {
    let (office, served) = Office::serve().await;
    let mut body = ask("see and book");
    body["dry_run"] = json!(true);
    let document = served.post("/api/chat", &body).await.json();
    assert_eq!(document["status"], "completed", "{document:#}");
    assert_eq!(office.reached(), ["GET /See"], "reads are executed, writes are not");
    let call = &document["steps"][1]["tool_calls"][0];
    assert_eq!((&call["tool"], &call["outcome"]), (&json!("Book"), &json!("dry_run")), "{document:#}");
    assert_eq!(call["arguments"], json!({"room": "r1"}));
    assert_eq!(document["steps"][0]["tool_calls"][0]["outcome"], "ok");
    // The stream and the list of plans agree.
    body["stream"] = json!(true);
    let events = served.post("/api/chat", &body).await.events();
    let written = events.iter().find(|e| e.name == "tool_completed" && e.data["tool"] == "Book").unwrap();
    assert_eq!(written.data["outcome"], "dry_run");
    assert_eq!(office.reached(), ["GET /See"]);
    let plan = served.post("/api/plans", &json!({"message": "book", "dry_run": true})).await;
    assert_eq!((plan.status, &plan.json()["status"]), (201, &json!("completed")), "{plan:#?}");
    // Even if each write would need approval.
    body = ask("pay");
    body["dry_run"] = json!(true);
    assert_eq!(
        served.post("/api/chat", &body).await.json()["steps"][0]["tool_calls"][0]["outcome"],
        "dry_run"
    );
    assert!(office.reached().is_empty());
}

#[tokio::test]
async fn resumed_run_does_not_repeat_completed_work() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("approval.calls", "never")).await;
    office.broken.store(true, Ordering::SeqCst);
    let partial = served.post("/api/chat", &ask("book and pay")).await.json();
    assert_eq!(partial["status"], "partial", "{partial:#}");
    assert_eq!(partial["steps"][0]["tool_calls"][0]["outcome"], "ok");
    assert_eq!(office.reached(), ["POST /Book"]);
    let run = partial["run_id"].as_str().unwrap();
    let before = served.get(&format!("/api/runs/{run}/events")).await.events();

    office.broken.store(false, Ordering::SeqCst);
    let resumed = served.post(&format!("/api/runs/{run}/resume"), &json!({})).await;
    assert_eq!(resumed.status, 202, "{resumed:#?}");
    assert_eq!(resumed.json()["run_id"], run);
    let follow = served.request("GET", &format!("/api/runs/{run}/events"));
    let follow = follow.header("last-event-id", &before.last().unwrap().id);
    let rest = Reply::of(follow.send().await.unwrap()).await.events();
    assert_eq!(rest.last().unwrap().data["status"], "completed", "{rest:#?}");
    // The earlier answer is retracted and replaced by the new one.
    let text = rest.iter().fold(None, |text: Option<String>, event| match event.name.as_str() {
        "answer_reset" => Some(String::new()),
        "answer_delta" => text.map(|text| text + event.data["text"].as_str().unwrap()),
        _ => text,
    });
    let done = served.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(
        (&done["status"], text.as_deref()),
        (&json!("completed"), done["answer"].as_str()),
        "{done:#}"
    );
    assert_eq!(office.reached(), ["POST /Pay"], "the room is not booked twice");
    let task = done["task_id"].as_str().unwrap();
    served
        .post(&format!("/api/plans/{task}/resume"), &json!({}))
        .await
        .assert_problem(409, "run.not_resumable");
    served.post("/api/runs/x/resume", &json!({})).await.assert_problem(404, "run.unknown");
}

#[tokio::test]
async fn plan_approval_covers_shown_writes_only() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("planning.prepare", "approval")).await;
    let plan = waiting_plan(&served, "see and book").await;
    let shown = &plan["plan"]["steps"][1]["prepared_calls"];
    assert_eq!(*shown, json!([{"tool": "Book", "arguments": {"room": "r1"}}]), "{plan:#}");
    let text = served.get(&plan_path(&plan, "?format=text")).await.body;
    assert!(text.contains("Tool: Book\nInput: ") && text.contains("Parameters: {\"room\":\"r1\"}"), "{text}");

    // The approver replaces the room; invalid arguments are rejected.
    let mut by_hand = plan["plan"].clone();
    let known = |arguments: Value| json!([{"tool": "Book", "arguments": arguments}]);
    by_hand["steps"][1]["prepared_calls"] = known(json!({"room": 7}));
    let problem = served.post(&plan_path(&plan, "/modify"), &json!({"plan": by_hand})).await;
    let problem = problem.assert_problem(422, "plan.invalid");
    assert!(problem["detail"].as_str().unwrap().contains("/room must be a string"), "{problem:#}");
    by_hand["steps"][1]["prepared_calls"] = known(json!({"room": "r2"}));
    let changed = served.post(&plan_path(&plan, "/modify"), &json!({"plan": by_hand})).await.json();
    let diff = changed["versions"][1]["diff"].to_string();
    assert!(diff.contains("calls +Book") && diff.contains("-Book"), "{diff}");

    // The scene's model still wants the first room, which has not been approved.
    assert_eq!(approve(&served, &plan, json!({"version": 2})).await.status, 200);
    let waits = settled_plan(&served, &plan).await;
    assert_eq!(
        (&waits["status"], &waits["run_status"]),
        (&json!("executing"), &json!("waiting")),
        "{waits:#}"
    );
    assert_eq!(office.reached(), ["GET /See"]);
    let id = waits["approvals"][0].as_str().unwrap();
    let asked = served.get(&format!("/api/approvals/{id}")).await.json();
    assert_eq!((&asked["about"], &asked["arguments"]), (&json!("call"), &json!({"room": "r1"})), "{asked:#}");
    assert!(asked["why"].to_string().contains("approved without these arguments"), "{asked:#}");
    let yes = served.post(&format!("/api/approvals/{id}"), &json!({"decision": "yes"})).await;
    assert_eq!(yes.status, 200, "{yes:#?}");
    assert_eq!(settled_plan(&served, &plan).await["status"], "completed");
    assert_eq!(office.reached(), ["POST /Book"]);
}

/// As configured by default, the calls of an approved plan are made as they were shown.
#[tokio::test]
async fn approved_write_that_an_approver_changed_is_executed_as_changed() {
    let (office, served) = Office::serve().await;
    let plan = waiting_plan(&served, "see and book").await;
    let mut by_hand = plan["plan"].clone();
    by_hand["steps"][1]["prepared_calls"] = json!([{"tool": "Book", "arguments": {"room": "r2"}}]);
    let changed = served.post(&plan_path(&plan, "/modify"), &json!({"plan": by_hand})).await;
    assert_eq!(changed.status, 200, "{changed:#?}");
    assert_eq!(approve(&served, &plan, json!({"version": 2})).await.status, 200);
    let done = settled_plan(&served, &plan).await;
    assert_eq!((&done["status"], done["approvals"].as_array().map_or(0, Vec::len)), (&json!("completed"), 0));
    assert_eq!(office.reached(), ["GET /See", "POST /Book"]);
    let run = served.get(&format!("/api/runs/{}", plan["run_id"].as_str().unwrap())).await.json();
    let calls = run["steps"][1]["tool_calls"].as_array().unwrap();
    let made: Vec<&Value> = calls.iter().map(|call| &call["arguments"]).collect();
    assert_eq!(made, [&json!({"room": "r2"})], "{run:#}");
}

#[tokio::test]
async fn approved_shown_write_runs_even_if_its_scene_model_fails() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("planning.fallback_enabled", true)).await;
    let plan = waiting_plan(&served, "pay").await;
    assert_eq!(plan["plan"]["steps"][0]["prepared_calls"][0]["arguments"], json!({"amount": 5}), "{plan:#}");
    office.broken.store(true, Ordering::SeqCst);
    approve(&served, &plan, json!({})).await;
    let done = settled_plan(&served, &plan).await;
    assert_eq!(
        (&done["status"], office.reached()),
        (&json!("completed"), vec!["POST /Pay".to_owned()]),
        "{done:#}"
    );
}
