//! Approvals over HTTP: writes with their arguments, unknown outcomes, who may decide, and decisions on plans
//! or tools that have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use proscenium::access::Role;
use proscenium::run::Effect;
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError};
use serde_json::{Value, json};

use crate::plans_api::{plan_path, settled_plan, waiting_plan};
use crate::server_api::ask;
use crate::support::planner_engine::{ModelRules, has_results, plan, step};
use crate::support::{Office, Reply, Scripted, ScriptedLlm, ServedEngine, Setup};

/// Answer and only approval of a request that waits.
async fn waiting_answer(served: &ServedEngine, words: &str) -> (Value, Value) {
    let answer = served.post("/api/chat", &ask(words)).await.json();
    assert_eq!(answer["status"], "waiting", "{answer:#}");
    let approvals = answer["approvals"].as_array().unwrap();
    assert_eq!(approvals.len(), 1, "{answer:#}");
    (answer.clone(), approvals[0].clone())
}

async fn decide(served: &ServedEngine, approval: &Value, body: Value) -> Reply {
    served.post(&format!("/api/approvals/{}", approval["approval_id"].as_str().unwrap()), &body).await
}

/// The run's document once it has ended or waits.
async fn settled_run(served: &ServedEngine, answer: &Value) -> Value {
    let run = answer["run_id"].as_str().unwrap();
    served.get(&format!("/api/runs/{run}/events")).await.events();
    served.get(&format!("/api/runs/{run}")).await.json()
}

#[tokio::test]
async fn answer_that_waits_is_counted_in_the_cost_of_its_conversation() {
    let llm = ModelRules::of(Value::Null)
        .plan(|request, _| {
            let steps = json!([step(1, "VacationManagement", &["MakeRequest"], Value::Null)]);
            Scripted::forced(request, plan(steps)).metered(1_000, 0, 10)
        })
        .start();
    let priced =
        Setup::scripted(&llm).model("input_usd_per_million", "1.0").model("output_usd_per_million", "1.0");
    let served = ServedEngine::start(priced).await;
    let mut body = ask("I want three days off from 15 to 17 June");
    body["require_approval"] = json!(true);
    let answer = served.post("/api/chat", &body).await.json();
    assert_eq!(answer["status"], "waiting", "{answer:#}");
    let usage = &answer["usage"];
    assert_eq!((&usage["cost_usd"], &usage["session_cost_usd"]), (&json!(0.00101), &json!(0.00101)));
}

#[tokio::test]
async fn write_waits_for_approval_while_other_branches_continue() {
    let (office, served) = Office::serve().await;
    let (answer, approval) = waiting_answer(&served, "pay and see").await;
    assert_eq!((&approval["about"], &approval["tool"]), (&json!("call"), &json!("Pay")));
    assert_eq!(approval["arguments"], json!({"amount": 5}));
    let words = answer["answer"].as_str().unwrap();
    for expected in ["Pay", "{\"amount\":5}", "yes", "no", approval["approval_id"].as_str().unwrap()] {
        assert!(words.contains(expected), "{expected} in {words}");
    }
    // The other branch is completed.
    assert_eq!(answer["steps"][1]["status"], "completed", "{answer:#}");
    assert_eq!(office.reached(), ["GET /See"]);
    let listed = served.get("/api/approvals").await.json();
    let listed = listed["approvals"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:#?}");
    let listed_approval = &listed[0];
    assert_eq!(listed_approval["approval_id"], approval["approval_id"]);
    assert_eq!(
        (&listed_approval["state"], &listed_approval["scene"], &listed_approval["effect"]),
        (&json!("open"), &json!("Vault"), &json!("write"))
    );
    assert_eq!(
        (&listed_approval["arguments"], &listed_approval["user"]),
        (&json!({"amount": 5}), &json!("keysersoze"))
    );
    // The run's own document agrees.
    let run = settled_run(&served, &answer).await;
    assert_eq!((&run["status"], &run["approvals"]), (&json!("waiting"), &answer["approvals"]));
    assert_eq!(run["answer"], answer["answer"]);

    assert_eq!(
        decide(&served, &approval, json!({"decision": "yes", "hash": approval["hash"]})).await.status,
        200
    );
    let done = settled_run(&served, &answer).await;
    assert_eq!(done["status"], "completed", "{done:#}");
    assert!(done.get("approvals").is_none(), "{done:#}");
    assert_eq!(office.reached(), ["POST /Pay"]);
    assert_eq!(served.get("/api/approvals").await.json()["approvals"], json!([]));
    let all = served.get("/api/approvals?all=true&about=call").await.json();
    let closed_approval = &all["approvals"][0];
    assert_eq!(
        (&closed_approval["state"], &closed_approval["decision"], &closed_approval["decided_by"]),
        (&json!("decided"), &json!("yes"), &json!("keysersoze"))
    );
    assert!(closed_approval["decided_at"].is_string(), "{closed_approval:#}");
}

#[tokio::test]
async fn write_runs_with_the_arguments_edited_by_the_approver() {
    let (office, served) = Office::serve().await;
    let (answer, approval) = waiting_answer(&served, "pay").await;
    let yes = |arguments: Value| json!({"decision": "yes", "arguments": arguments});
    for wrong in [json!({}), json!({"amount": "much"}), json!({"amount": {"of": 7}})] {
        decide(&served, &approval, yes(wrong)).await.assert_problem(422, "approval.arguments");
    }
    decide(&served, &approval, json!({"decision": "yes", "hash": "0"}))
        .await
        .assert_problem(409, "approval.changed");
    for misfit in ["done", "not_done", "again"] {
        decide(&served, &approval, json!({"decision": misfit})).await.assert_problem(422, "approval.choice");
    }
    let both = json!({"decision": "no", "arguments": {"amount": 7}});
    decide(&served, &approval, both).await.assert_problem(422, "approval.choice");
    let long = json!({"decision": "no", "note": "x".repeat(8001)});
    decide(&served, &approval, long).await.assert_problem(422, "approval.note_too_long");
    for unread in [json!({}), json!({"decision": "maybe"}), json!({"decision": "yes", "arguments": 7})] {
        decide(&served, &approval, unread).await.assert_problem(422, "request.body");
    }
    assert!(office.reached().is_empty());

    let decided = decide(&served, &approval, yes(json!({"amount": 7}))).await;
    assert_eq!(decided.status, 200, "{decided:#?}");
    let decided = decided.json();
    assert_eq!((&decided["decision"], &decided["arguments"]), (&json!("edited"), &json!({"amount": 7})));
    let done = settled_run(&served, &answer).await;
    assert_eq!(done["status"], "completed", "{done:#}");
    let reached = office.backend.take_requests();
    assert_eq!(reached.len(), 1, "{reached:#?}");
    assert_eq!(reached[0].query["amount"], "7");
    decide(&served, &approval, json!({"decision": "yes"})).await.assert_problem(409, "approval.decided");
}

#[tokio::test]
async fn one_of_many_simultaneous_decisions_counts() {
    let office = Office::open();
    // Decisions have their own queue: a full request queue refuses none of them.
    let served = ServedEngine::start(office.setup().set("execution.max_queued_requests", 1)).await;
    let (answer, approval) = waiting_answer(&served, "pay").await;
    let say = |number: usize| {
        let decision = if number.is_multiple_of(2) { "yes" } else { "no" };
        decide(&served, &approval, json!({"decision": decision}))
    };
    let all = join_all((0..50).map(say)).await;
    let taken: Vec<Value> = all.iter().filter(|reply| reply.status == 200).map(Reply::json).collect();
    assert_eq!(taken.len(), 1, "{all:#?}");
    for refused in all.iter().filter(|reply| reply.status != 200) {
        refused.assert_problem(409, "approval.decided");
    }
    settled_run(&served, &answer).await;
    let paid = if taken[0]["decision"] == "yes" { vec!["POST /Pay"] } else { vec![] };
    assert_eq!(office.reached(), paid);
}

#[tokio::test]
async fn refused_write_is_not_executed_and_the_answer_reports_it() {
    let (office, served) = Office::serve().await;
    let (answer, approval) = waiting_answer(&served, "pay and see").await;
    assert_eq!(decide(&served, &approval, json!({"decision": "no", "note": "too much"})).await.status, 200);
    let done = settled_run(&served, &answer).await;
    assert_eq!(done["status"], "partial", "{done:#}");
    let call = &done["steps"][0]["tool_calls"][0];
    assert_eq!(
        (&call["outcome"], &call["error"]["code"]),
        (&json!("refused"), &json!("approval.refused")),
        "{done:#}"
    );
    assert_eq!(office.reached(), ["GET /See"]);
    let id = approval["approval_id"].as_str().unwrap();
    let refused_approval = served.get(&format!("/api/approvals/{id}")).await.json();
    assert_eq!(
        (&refused_approval["decision"], &refused_approval["note"]),
        (&json!("no"), &json!("too much"))
    );
}

#[tokio::test]
async fn requester_cannot_approve_their_own_request_when_barred() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("approval.by_oneself", false)).await;
    let key = async |user: &str| served.key("acme", user, Role::Approver).await;
    let (ada, boss) = (key("ada").await, key("boss").await);
    let unknown = async |key: &str, path: &str, body: Value| served.send(key, "POST", path, &body).await;
    let made = unknown(&ada, "/api/plans", json!({"message": "book", "session_id": "s-1"})).await.json();
    let approval = made["approvals"][0].as_str().unwrap();
    let yes = json!({"decision": "yes"});
    unknown(&ada, &plan_path(&made, "/approve"), json!({})).await.assert_problem(403, "approval.own_request");
    unknown(&ada, &format!("/api/approvals/{approval}"), yes.clone())
        .await
        .assert_problem(403, "approval.own_request");
    let run = made["run_id"].as_str().unwrap();
    let rests = async || {
        let events = served.request("GET", &format!("/api/runs/{run}/events")).bearer_auth(&boss);
        let events = Reply::of(events.send().await.unwrap()).await.events();
        events.last().unwrap().data["status"].clone()
    };
    // A decision in words counts once the conversation knows again that its run waits.
    assert_eq!(rests().await, "waiting");
    let waits = served.request("GET", &format!("/api/runs/{run}")).bearer_auth(&ada).send().await.unwrap();
    let waits = Reply::of(waits).await.json();
    let answer = waits["answer"].as_str().unwrap();
    assert!(answer.ends_with(&format!("say no to take it back. The approval: {approval}.")), "{answer}");
    let mut in_words = ask("yes");
    in_words["session_id"] = json!("s-1");
    unknown(&ada, "/api/chat", in_words).await.assert_problem(403, "approval.own_request");
    assert!(office.reached().is_empty());
    assert_eq!(unknown(&boss, &format!("/api/approvals/{approval}"), yes).await.json()["decided_by"], "boss");
    assert_eq!(rests().await, "completed");
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn approval_does_not_cover_tools_changed_since() {
    let (office, served) = Office::serve().await;
    let shown = waiting_plan(&served, "book").await;
    office.write_scenes(office.scenes(), "Books a room for a year.");
    assert!(served.engine.reload(served.config.clone()).await.unwrap().is_empty());
    let seen = json!({"hash": shown["hash"]});
    let problem =
        served.post(&plan_path(&shown, "/approve"), &seen).await.assert_problem(409, "approval.changed");
    assert!(problem["difference"].to_string().contains("Desk.Book"), "{problem:#}");
    assert!(office.reached().is_empty());

    let now = settled_plan(&served, &shown).await;
    assert_eq!((&now["status"], &now["version"]), (&json!("pending_approval"), &json!(1)), "{now:#}");
    assert_ne!(now["hash"], shown["hash"]);
    assert_ne!(now["approvals"], shown["approvals"]);
    let old = shown["approvals"][0].as_str().unwrap();
    let late = served.post(&format!("/api/approvals/{old}"), &json!({"decision": "yes"})).await;
    late.assert_problem(409, "approval.lapsed");
    assert_eq!(served.get(&format!("/api/approvals/{old}")).await.json()["state"], "lapsed");
    let open = served.get("/api/approvals").await.json();
    assert_eq!(open["approvals"][0]["approval_id"], now["approvals"][0]);
    assert_eq!(served.post(&plan_path(&shown, "/approve"), &json!({"hash": now["hash"]})).await.status, 200);
    assert_eq!(settled_plan(&served, &shown).await["status"], "completed");
    assert_eq!(office.reached(), ["POST /Book"]);
}

/// A scene whose write has an unknown outcome the first time.
struct UnknownWrites {
    served: ServedEngine,
    sent: Arc<AtomicUsize>,
    _llm: ScriptedLlm,
}

impl UnknownWrites {
    async fn open() -> Self {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = sent.clone();
        let send = move |_: Value, _: ToolContext| {
            let before = count.fetch_add(1, Ordering::SeqCst);
            async move {
                match before {
                    0 => Err(ToolError::unknown("post.lost", "the line broke behind it")),
                    _ => Ok::<Value, ToolError>(json!({"sent": true})),
                }
            }
        };
        let schema = json!({"type": "object", "properties": {}});
        let scene = Scene::builder("Post")
            .description("The post.")
            .instructions("Send it.")
            .tool(SceneTool::dynamic(
                "Send",
                "Sends it.",
                Effect::Write,
                schema,
                proscenium::tools::native(send),
            ))
            .build()
            .unwrap();
        let llm = ModelRules::of(plan(json!([step(1, "Post", &["Send"], Value::Null)])));
        let llm = llm.scene(|request, _| {
            if has_results(request) {
                Scripted::Text("The post was seen to.".to_owned())
            } else {
                Scripted::call("Send", json!({}))
            }
        });
        let llm = llm.start();
        let setup = Setup::scripted(&llm).alone().set("llm.max_attempts", 1).scene(scene);
        Self { served: ServedEngine::start(setup).await, sent, _llm: llm }
    }

    /// A run that ended with an unknown outcome, and the approval about it.
    async fn run_with_unknown_outcome(&self) -> (Value, Value) {
        let answer = self.served.post("/api/chat", &ask("send it")).await.json();
        assert_eq!(answer["status"], "partial", "{answer:#}");
        let open = self.served.get("/api/approvals?about=outcome").await.json();
        let approval = open["approvals"][0].clone();
        assert_eq!(approval["approval_id"], answer["approvals"][0]["approval_id"], "{open:#}");
        assert_eq!((&approval["tool"], &approval["attempts"]), (&json!("Send"), &json!(1)), "{approval:#}");
        assert_eq!(approval["error"]["code"], "post.lost");
        assert!(!approval["idempotency_key"].as_str().unwrap().is_empty());
        (answer, approval)
    }
}

#[tokio::test]
async fn person_settles_the_unknown_outcome_of_a_write() {
    for (decision, outcome) in [("done", "ok"), ("not_done", "refused")] {
        let unknown = UnknownWrites::open().await;
        let (answer, approval) = unknown.run_with_unknown_outcome().await;
        decide(&unknown.served, &approval, json!({"decision": "yes"}))
            .await
            .assert_problem(422, "approval.choice");
        let decided =
            decide(&unknown.served, &approval, json!({"decision": decision, "note": "I looked"})).await;
        assert_eq!((decided.status, &decided.json()["decision"]), (200, &json!(decision)), "{decided:#?}");
        let now = settled_run(&unknown.served, &answer).await;
        assert_eq!(now["steps"][0]["tool_calls"][0]["outcome"], outcome, "{now:#}");
        assert_eq!(unknown.sent.load(Ordering::SeqCst), 1);
        decide(&unknown.served, &approval, json!({"decision": "again"}))
            .await
            .assert_problem(409, "approval.decided");
    }
}

#[tokio::test]
async fn unknown_write_is_retried_when_a_person_requests_it() {
    let unknown = UnknownWrites::open().await;
    let (answer, approval) = unknown.run_with_unknown_outcome().await;
    assert_eq!(decide(&unknown.served, &approval, json!({"decision": "again"})).await.status, 200);
    let now = settled_run(&unknown.served, &answer).await;
    assert_eq!(now["status"], "completed", "{now:#}");
    assert_eq!(now["steps"][0]["tool_calls"][0]["outcome"], "ok", "{now:#}");
    assert_eq!(unknown.sent.load(Ordering::SeqCst), 2);
    assert!(now.get("approvals").is_none(), "{now:#}");
}

#[tokio::test]
async fn approvals_are_listed_with_pages_and_filters() {
    let (office, served) = Office::serve().await;
    let mut all = Vec::new();
    for words in ["pay", "book", "pay"] {
        let mut body = ask(words);
        body["session_id"] = json!(words);
        body["require_approval"] = json!(words == "book");
        // Words in a conversation wait for their turn, not for a decision.
        let answer = served.post("/api/chat", &body).await.json();
        all.push(answer["approvals"][0]["approval_id"].clone());
    }
    let list = async |query: &str| served.get(&format!("/api/approvals{query}")).await.json();
    let ids = |list: &Value| -> Vec<Value> {
        list["approvals"].as_array().unwrap().iter().map(|one| one["approval_id"].clone()).collect()
    };
    assert_eq!(ids(&list("").await), all);
    let first = list("?limit=2").await;
    assert_eq!((ids(&first), &first["next"]), (all[..2].to_vec(), &all[1]));
    assert_eq!(ids(&list(&format!("?limit=2&after={}", all[1].as_str().unwrap())).await), all[2..]);
    assert_eq!(ids(&list("?session_id=pay").await), [all[0].clone(), all[2].clone()]);
    assert_eq!(ids(&list("?about=plan").await), [all[1].clone()]);
    let of_plan = &list("?about=plan").await["approvals"][0];
    assert_eq!(of_plan["plan"]["steps"][0]["expected_tools"], json!(["Book"]), "{of_plan:#}");
    assert!(ids(&list("?about=outcome").await).is_empty());
    for query in ["?limit=0", "?limit=101", "?about=weather", "?all=perhaps", "?what=else"] {
        served.get(&format!("/api/approvals{query}")).await.assert_problem(422, "request.query");
    }
    for path in ["x", "01976c8e-0000-7000-8000-000000000001.1", "01976c8e-0000-7000-8000-000000000001"] {
        served.get(&format!("/api/approvals/{path}")).await.assert_problem(404, "approval.unknown");
    }
    let beyond = all[0].as_str().unwrap().replace(".1", ".9");
    served.get(&format!("/api/approvals/{beyond}")).await.assert_problem(404, "approval.unknown");
    let yes = json!({"decision": "yes"});
    served.post(&format!("/api/approvals/{beyond}"), &yes).await.assert_problem(404, "approval.unknown");
    // A stopped run has no pending approvals.
    let run = all[1].as_str().unwrap().split('.').next().unwrap();
    served.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    served.get(&format!("/api/runs/{run}/events")).await.events();
    assert_eq!(ids(&list("").await), [all[0].clone(), all[2].clone()]);
    assert!(office.reached().is_empty());
}
