//! Approval nodes whose question the user of the conversation answers, in words.

use std::sync::{Arc, Mutex};

use proscenium::access::Role;
use proscenium::store::KeyRules;
use proscenium::tools::{ToolContext, native};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server_api::ask;
use crate::support::{Reply, Scripted, ScriptedLlm, ServedEngine, Setup, forced_tool, section};

const FLOW: &str = r#"
name = "report"
description = "Reports from the tables of the database."
inputs = ["sensitive"]

[[invariants]]
before = ["approve", "report"]

[[nodes]]
name = "choose"
description = "Chooses tables."
kind = "native"
native = "test.choose"
outputs = ["tables", "known"]
possible_next_nodes = ["approve"]

[[nodes]]
name = "approve"
description = "Lets the user choose the tables."
kind = "approval"
by = "user"
inputs = ["tables", "known"]
possible_next_nodes = ["report"]
[nodes.values]
tables = "known"
[nodes.question]
en = "May I read these {{ tables | length }} tables?"
it = "Posso leggere queste {{ tables | length }} tabelle?"
[nodes.when]
value = "sensitive"
exists = true

[[nodes]]
name = "report"
description = "Reports."
kind = "native"
native = "test.report"
inputs = ["tables"]
outputs = ["text"]
[nodes.say]
en = "Read: {{ text }}."
it = "Letto: {{ text }}."
"#;

const TABLES: [&str; 3] = ["orders", "customers", "order_items"];

/// A served flow, and the tables that it has reported from.
struct Reports {
    scenes: TempDir,
    data: Arc<TempDir>,
    read: Arc<Mutex<Vec<Value>>>,
}

impl Reports {
    fn new() -> Self {
        let scenes = tempfile::tempdir().unwrap();
        let folder = scenes.path().join("report");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("flow.toml"), FLOW).unwrap();
        Self { scenes, data: Arc::new(tempfile::tempdir().unwrap()), read: Arc::default() }
    }

    async fn serve(&self) -> ServedEngine {
        self.serve_as(|setup| setup).await
    }

    async fn serve_as(&self, more: impl FnOnce(Setup) -> Setup) -> ServedEngine {
        self.serve_with(Setup::offline(), more).await
    }

    async fn serve_with(&self, setup: Setup, more: impl FnOnce(Setup) -> Setup) -> ServedEngine {
        let read = self.read.clone();
        let setup = setup
            .alone()
            .on(&self.data)
            .scenes(self.scenes.path())
            .native(
                "test.choose",
                native(|_: Value, _: ToolContext| async {
                    Ok(json!({"tables": TABLES, "known": ["payments", "sales.refunds", "orders"]}))
                }),
            )
            .native(
                "test.report",
                native(move |sent: Value, _: ToolContext| {
                    read.lock().unwrap().push(sent["tables"].clone());
                    let names: Vec<String> = serde_json::from_value(sent["tables"].clone()).unwrap();
                    async move { Ok(json!({"text": names.join(", ")})) }
                }),
            );
        ServedEngine::start(more(setup)).await
    }

    fn read(&self) -> Vec<Value> {
        self.read.lock().unwrap().clone()
    }
}

fn message(words: &str, session: &str) -> Value {
    let mut body = ask(words);
    body["session_id"] = json!(session);
    body
}

/// A request for a report, which waits for the user.
async fn begin(served: &ServedEngine, words: &str, session: &str) -> Value {
    let mut body = message(words, session);
    (body["flow"], body["current_state"]) = (json!("report"), json!({"sensitive": true}));
    let asked = served.post("/api/chat", &body).await.json();
    assert_eq!(asked["status"], "waiting", "{asked:#}");
    asked
}

async fn say(served: &ServedEngine, words: &str, session: &str) -> Value {
    served.post("/api/chat", &message(words, session)).await.json()
}

#[tokio::test]
async fn user_is_asked_with_the_list_and_how_to_change_it_in_the_language_of_the_request() {
    let reports = Reports::new();
    let served = reports.serve().await;
    let asked = begin(&served, "Report the orders", "s-1").await;
    assert_eq!(
        asked["answer"],
        "May I read these 3 tables?\n- orders\n- customers\n- order_items\nReply yes or no. To change the list, write \
         for example: without order_items; also payments.\nIt may also contain: payments, sales.refunds."
    );
    let approval = &asked["approvals"][0];
    assert_eq!(approval["arguments"], json!({"tables": TABLES}), "{approval:#}");
    assert_eq!((&approval["by_user"], &approval["lists"]["tables"][0]), (&json!(true), &json!("payments")));
    let listed = &served.get("/api/approvals").await.json()["approvals"][0];
    for member in ["by_user", "lists", "arguments"] {
        assert_eq!(listed[member], approval[member], "{listed:#}");
    }
    let asked = begin(&served, "Fammi un rapporto sugli ordini per favore", "s-2").await;
    let answer = asked["answer"].as_str().unwrap();
    assert!(answer.starts_with("Posso leggere queste 3 tabelle?\n- orders\n"), "{answer}");
    assert!(
        answer.contains("Rispondi sì o no. Per cambiare l'elenco scrivi per esempio: senza order_items"),
        "{answer}"
    );
    assert!(reports.read().is_empty());
}

#[tokio::test]
async fn words_approve_the_list_as_it_is_or_changed_and_what_is_approved_is_the_output() {
    let reports = Reports::new();
    let served = reports.serve().await;
    let cases = [
        ("yes", json!(TABLES)),
        ("without customers", json!(["orders", "order_items"])),
        ("Yes, but without order items, please", json!(["orders", "customers"])),
        ("sì, ma anche refunds", json!(["orders", "customers", "order_items", "sales.refunds"])),
        ("nur orders", json!(["orders"])),
    ];
    for (number, (words, expected)) in cases.iter().enumerate() {
        let session = format!("s-{number}");
        let asked = begin(&served, "Report the orders", &session).await;
        let done = say(&served, words, &session).await;
        assert_eq!((&done["status"], &done["run_id"]), (&json!("completed"), &asked["run_id"]), "{done:#}");
        assert_eq!(reports.read().last(), Some(expected), "{words}");
    }
}

#[tokio::test]
async fn reply_that_is_not_clear_decides_nothing_and_another_request_is_served_beside() {
    let reports = Reports::new();
    let served = reports.serve().await;
    let asked = begin(&served, "Report the orders", "s").await;
    for words in
        ["without custmers", "orders", "also without payments", "yes, but not all of the customers we lost"]
    {
        let reply = served.post("/api/chat", &message(words, "s")).await;
        let problem = reply.assert_problem(409, "approval.ambiguous");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("nothing was done") && detail.contains("without NAME"), "{words}: {detail}");
    }
    assert!(reports.read().is_empty());
    let done = say(&served, "without customers", "s").await;
    assert_eq!((&done["status"], &done["run_id"]), (&json!("completed"), &asked["run_id"]), "{done:#}");
    begin(&served, "Report the orders", "s").await;
    let other = say(&served, "What can you do?", "s").await;
    assert_ne!(other["status"], "waiting", "{other:#}");
    assert_eq!(reports.read().len(), 1);
}

#[tokio::test]
async fn no_in_words_ends_the_flow_before_what_the_question_guards() {
    let reports = Reports::new();
    let served = reports.serve().await;
    begin(&served, "Report the orders", "s").await;
    let done = say(&served, "no", "s").await;
    assert_eq!(done["status"], "cancelled", "{done:#}");
    assert_eq!(done["answer"], "It was stopped; nothing was done.", "{done:#}");
    assert!(reports.read().is_empty(), "{done:#}");
}

#[tokio::test]
async fn question_is_only_asked_where_its_condition_holds() {
    let reports = Reports::new();
    let served = reports.serve().await;
    let mut body = message("Report the orders", "s");
    body["flow"] = json!("report");
    let done = served.post("/api/chat", &body).await.json();
    assert_eq!(done["status"], "completed", "{done:#}");
    assert_eq!(reports.read(), [json!(TABLES)]);
}

#[tokio::test]
async fn question_can_be_answered_after_a_restart() {
    let reports = Reports::new();
    let mut served = reports.serve().await;
    let asked = begin(&served, "Report the orders", "s").await;
    served.take_server().stop().await;
    served.engine.shut_down().await.unwrap();
    drop(served);
    let served = reports.serve().await;
    let done = say(&served, "also payments, without customers", "s").await;
    assert_eq!((&done["status"], &done["run_id"]), (&json!("completed"), &asked["run_id"]), "{done:#}");
    assert_eq!(reports.read(), [json!(["orders", "order_items", "payments"])]);
}

/// Keys for a user who may not approve, and for another one.
async fn keys(served: &ServedEngine) -> [String; 2] {
    let rules = KeyRules { no_own_approval: true, role: Role::User, ..KeyRules::default() };
    let key = async |user: &str| served.create_key("acme", user, rules).await.1;
    [key("ada").await, key("bob").await]
}

#[tokio::test]
async fn user_without_the_right_to_approve_answers_and_nobody_else_does() {
    let reports = Reports::new();
    let served = reports.serve_as(|setup| setup.set("approval.by_oneself", false)).await;
    let [ada, bob] = keys(&served).await;
    served.wait_for_keys().await;
    let post = async |key: &str, path: &str, body: &Value| served.send(key, "POST", path, body).await;
    let mut body = message("Report the orders", "s");
    (body["flow"], body["current_state"]) = (json!("report"), json!({"sensitive": true}));
    let asked = post(&ada, "/api/chat", &body).await.json();
    assert_eq!(asked["status"], "waiting", "{asked:#}");
    let path = format!("/api/approvals/{}", asked["approvals"][0]["approval_id"].as_str().unwrap());
    assert_eq!(post(&bob, &path, &json!({"decision": "yes"})).await.status, 404);
    assert_eq!(post(&bob, "/api/chat", &message("yes", "s")).await.status, 404);
    for tables in [json!(["orders", "salaries"]), json!([]), json!("orders"), json!(["orders", "orders"])] {
        let edited = json!({"decision": "yes", "arguments": {"tables": tables}});
        post(&ada, &path, &edited).await.assert_problem(422, "approval.arguments");
    }
    let more = json!({"decision": "yes", "arguments": {"tables": ["orders"], "known": ["salaries"]}});
    post(&ada, &path, &more).await.assert_problem(422, "approval.arguments");
    assert!(reports.read().is_empty());
    let mut body = ask("only payments");
    body["model"] = json!("proscenium");
    let request =
        served.request("POST", "/v1/chat/completions").header("x-session-id", "s").bearer_auth(&ada);
    let reply = Reply::of(request.json(&body).send().await.unwrap()).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "Read: payments.", "{reply:#?}");
    assert_eq!(reports.read(), [json!(["payments"])]);
}

/// A model that is asked what a reply changes: it answers as `change` says.
fn reader(change: impl Fn(&str) -> Value + Send + Sync + 'static) -> ScriptedLlm {
    ScriptedLlm::start(move |request, _| match forced_tool(request) {
        Some("PlanFlowPath") => {
            Scripted::forced(request, json!({"reasoning": "", "path": ["choose", "approve", "report"]}))
        }
        Some("ChangeLists") => Scripted::forced(request, change(&section(request, "reply").unwrap())),
        Some("CheckContinuation") => Scripted::answered(request, Value::Null),
        _ => Scripted::Text("That was reported.".into()),
    })
}

/// The questions what a reply changes.
fn questions(llm: &ScriptedLlm) -> Vec<Value> {
    llm.requests().into_iter().filter(|request| forced_tool(request) == Some("ChangeLists")).collect()
}

#[tokio::test]
async fn unclear_reply_is_read_by_a_model_and_the_changed_list_is_asked_about() {
    let llm = reader(|reply| match reply {
        "without custmers" => json!({"is_clear": true, "lists": {"tables": ["orders", "order_items"]}}),
        _ => json!({"is_clear": true, "lists": {"tables": ["orders", "order_items", "customers"]}}),
    });
    let reports = Reports::new();
    let served = reports.serve_with(Setup::scripted(&llm), |setup| setup).await;
    let asked = begin(&served, "Report the orders", "s").await;
    let again = say(&served, "without custmers", "s").await;
    assert_eq!((&again["status"], &again["run_id"]), (&json!("waiting"), &asked["run_id"]), "{again:#}");
    let answer = again["answer"].as_str().unwrap();
    assert!(answer.starts_with("May I read these 2 tables?\n- orders\n- order_items\n"), "{answer}");
    assert!(reports.read().is_empty(), "what a model reads approves nothing");
    // The options are those of the question, and nothing else.
    let tool = &questions(&llm)[0]["tools"][0]["function"];
    let options = &tool["parameters"]["properties"]["lists"]["properties"]["tables"]["items"]["enum"];
    assert_eq!(options, &json!(["orders", "customers", "order_items", "payments", "sales.refunds"]));
    // What was left out may come back.
    let again = say(&served, "also the custmers", "s").await;
    assert!(again["answer"].as_str().unwrap().contains("- customers\n"), "{again:#}");
    let done = say(&served, "yes", "s").await;
    assert_eq!((&done["status"], &done["run_id"]), (&json!("completed"), &asked["run_id"]), "{done:#}");
    assert_eq!(reports.read(), [json!(["orders", "order_items", "customers"])]);
}

#[tokio::test]
async fn reply_that_a_model_does_not_understand_or_stretches_changes_nothing() {
    let llm = reader(|reply| match reply {
        "without custmers" => json!({"is_clear": false, "lists": {"tables": TABLES}}),
        _ => json!({"is_clear": true, "lists": {"tables": ["orders", "salaries"]}}),
    });
    let reports = Reports::new();
    let served =
        reports.serve_with(Setup::scripted(&llm), |setup| setup.set("planning.max_retries", 1)).await;
    begin(&served, "Report the orders", "s").await;
    for words in ["without custmers", "only ordrs"] {
        let again = say(&served, words, "s").await;
        let answer = again["answer"].as_str().unwrap();
        assert!(answer.starts_with("I could not tell from your reply"), "{words}: {again:#}");
        assert_eq!(again["approvals"][0]["arguments"], json!({"tables": TABLES}), "{again:#}");
    }
    assert_eq!(questions(&llm).len(), 3, "an answer beyond the list is sent back once");
    let done = say(&served, "without customers", "s").await;
    assert_eq!(done["status"], "completed", "{done:#}");
    assert_eq!(reports.read(), [json!(["orders", "order_items"])]);
}
