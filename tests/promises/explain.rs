//! A run explains what happened unexpectedly: to its user without details of the back end, to those who may read
//! everything with them; in the answer itself, and on the command line.

use proscenium::access::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fault_matrix::{misbehaviour, model, write_scene};
use super::process::{MAIN, Workspace};
use crate::server_api::ask;
use crate::support::planner_engine::{ModelRules, plan, step};
use crate::support::{FaultyBackend, Misbehaviour, Scripted, ServedEngine, Setup};

#[tokio::test]
async fn explanation_says_what_was_weighed_and_hides_the_back_end_from_users() {
    let (llm, backend, scenes) = (model(), FaultyBackend::start(misbehaviour), TempDir::new().unwrap());
    write_scene(scenes.path(), backend.address(), "optional = true");
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.level", "basic");
    let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
    let served = ServedEngine::start(setup.set("execution.policies.backoff_ms", 20)).await;
    let user = served.key("acme", "ada", Role::User).await;
    let other = served.key("acme", "bob", Role::User).await;
    let auditor = served.key("acme", "eve", Role::Auditor).await;
    served.wait_for_keys().await;
    let answer = served.send(&user, "POST", "/api/chat", &ask("Look cell unavailable")).await.json();
    let run = answer["run_id"].as_str().unwrap();
    let path = format!("/api/runs/{run}/explain");
    let get = async |path: &str, key: &str| served.send(key, "GET", path, &Value::Null).await;
    let explained = get(&path, &user).await.json();
    let entries = explained["unexpected"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{explained:#}");
    let entry = &entries[0];
    assert_eq!(
        json!([entry["tool"], entry["class"], entry["chosen"], entry["decided_by"], entry["then"]]),
        json!(["Look", "unavailable", "retry", "policy", "succeeded"]),
        "{entry:#}"
    );
    assert_eq!(entry["say"], "The service is not available now; please try again later.");
    let options = entry["options"].as_array().unwrap();
    assert_eq!(options[0], json!({"action": "retry", "allowed": true, "why": "chosen"}));
    assert!(
        options.iter().any(|option| option["action"] == "skip" && option["allowed"] == false),
        "{entry:#}"
    );
    assert!(!explained.to_string().contains("127.0.0.1"), "{explained:#}");
    let detailed = get(&path, &auditor).await.json();
    assert!(detailed["unexpected"][0]["message"].as_str().unwrap().contains("503"), "{detailed:#}");
    get(&path, &other).await.assert_problem(404, "run.unknown");
    let chart = format!("/api/plans/{}?format=mermaid", answer["task_id"].as_str().unwrap());
    let chart = get(&chart, &user).await.body;
    assert!(chart.contains("<br/>Look retried 1×, then succeeded"), "{chart}");
}

#[tokio::test]
async fn answer_of_the_openai_protocol_says_what_was_left_out() {
    let script = |place: &str, _: usize| match place.ends_with("gone") {
        true => Misbehaviour::Status(503, Vec::new()),
        false => Misbehaviour::Answer,
    };
    let (backend, scenes) = (FaultyBackend::start(script), TempDir::new().unwrap());
    let llm = ModelRules::of(Value::Null)
        .plan(|request, _| {
            let mut step = step(1, "Desk", &["Look"], Value::Null);
            let call = |cell: &str| json!({"tool": "Look", "arguments": json!({"cell": cell}).to_string()});
            step["prepared_calls"] = json!([call("gone"), call("here")]);
            step["if_needed"] = json!([]);
            Scripted::forced(request, plan(json!([step])))
        })
        .start();
    let optional = "optional = true\npolicies = { unavailable = { do = [\"skip\"] } }";
    write_scene(scenes.path(), backend.address(), optional);
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.level", "basic");
    let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
    let served = ServedEngine::start(setup).await;
    let mut body = ask("Look cell gone and cell here");
    body["model"] = json!("proscenium");
    let reply = served.post("/v1/chat/completions", &body).await;
    let text = reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("here: it was answered."), "{text}");
    assert!(text.contains("Left out, since it is not available now: Look"), "{text}");
}

#[test]
fn quiet_run_has_nothing_to_explain() {
    let workspace = Workspace::new();
    let run = workspace.ask(MAIN, &[])["run_id"].as_str().unwrap().to_owned();
    let text = workspace.run(&["explain", &run[..20]]);
    assert!(text.text().contains("Nothing unexpected happened."), "{text:#?}");
    let document: Value = serde_json::from_str(&workspace.run(&["explain", &run, "--json"]).text()).unwrap();
    assert_eq!((&document["run_id"], &document["unexpected"]), (&json!(run), &json!([])));
    assert_eq!(workspace.run(&["explain", "01976c8e"]).status, 1);
}
