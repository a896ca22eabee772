//! Operators switch tools, models and tenants off while the server runs, and list what waits for them.

use proscenium::access::Role;
use proscenium::adapt::ExecutionLevel;
use proscenium::store::SwitchKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fault_matrix::{misbehaviour, model, write_scene};
use super::process::Workspace;
use crate::server_api::ask;
use crate::support::{FaultyBackend, Misbehaviour, Reply, ScriptedLlm, ServedEngine, Setup, eventually};

struct World {
    llm: ScriptedLlm,
    backend: FaultyBackend,
    served: ServedEngine,
    _scenes: TempDir,
}

impl World {
    async fn open(script: impl Fn(&str, usize) -> Misbehaviour + Send + Sync + 'static) -> Self {
        let (llm, backend, scenes) = (model(), FaultyBackend::start(script), TempDir::new().unwrap());
        write_scene(scenes.path(), backend.address(), "");
        let setup = Setup::scripted(&llm).alone().scenes(scenes.path()).set("execution.level", "basic");
        let setup = setup.set("scenes.allow_private_addresses", true).set("execution.language", "en");
        let setup = setup.set("planning.fallback_enabled", false).set("execution.confirm", "never");
        Self { llm, backend, served: ServedEngine::start(setup).await, _scenes: scenes }
    }

    async fn switch(&self, kind: SwitchKind, name: &str, off: bool) {
        self.served.engine.store().switch(kind, name, off, "maintenance", "ada").await.unwrap();
    }

    /// Asks until the answer is as expected: a switch takes effect within a second.
    async fn ask_until(&self, words: &str, is_expected: impl Fn(&Reply) -> bool) -> Reply {
        let mut last = None;
        eventually("the switch takes effect", async || {
            let reply = self.served.post("/api/chat", &ask(words)).await;
            let expected = is_expected(&reply);
            last = Some(reply);
            expected
        })
        .await;
        last.unwrap()
    }
}

fn answers(_: &str, _: usize) -> Misbehaviour {
    Misbehaviour::Answer
}

#[tokio::test]
async fn disabled_tool_is_not_offered_and_approved_calls_of_it_do_nothing() {
    let world = World::open(answers).await;
    let mut body = ask("Book cell approved");
    body["require_approval"] = json!(true);
    let waiting = world.served.post("/api/chat", &body).await.json();
    assert_eq!(waiting["status"], "waiting", "{waiting:#}");
    world.switch(SwitchKind::Tool, "Desk.Book", true).await;
    let offers = |world: &World| world.llm.requests().last().unwrap().to_string().contains("\"Book\"");
    world.ask_until("Look cell x", |_| !offers(&world)).await;
    // The approval stands, and the call is refused before anything is sent.
    let task = waiting["task_id"].as_str().unwrap();
    let hash = json!({"hash": waiting["approvals"][0]["hash"]});
    let approved = world.served.post(&format!("/api/plans/{task}/approve"), &hash).await;
    assert!(approved.status < 300, "{approved:#?}");
    let run = waiting["run_id"].as_str().unwrap();
    world.served.get(&format!("/api/runs/{run}/events")).await;
    let ended = world.served.get(&format!("/api/runs/{run}")).await.json();
    let call = &ended["steps"][0]["tool_calls"][0];
    assert_eq!((&call["outcome"], &call["error"]["code"]), (&json!("failed"), &json!("tool.disabled")));
    assert!(ended["answer"].as_str().unwrap().contains("not available now"), "{ended:#}");
    assert!(world.backend.requests("POST /Book/approved").is_empty());
    let explained = world.served.get(&format!("/api/runs/{run}/explain")).await.json();
    let retry = explained["unexpected"][0]["options"].as_array().unwrap();
    assert!(retry.iter().all(|option| option["action"] != "retry" || option["allowed"] == false));
    world.switch(SwitchKind::Tool, "Desk.Book", false).await;
    world.ask_until("Book cell y", |reply| reply.json()["status"] == "completed").await;
    assert_eq!(world.backend.requests("POST /Book/y").len(), 1);
}

#[tokio::test]
async fn disabled_model_is_not_asked() {
    let world = World::open(answers).await;
    world.switch(SwitchKind::Model, "scripted", true).await;
    let refused = world.ask_until("Look cell x", |reply| reply.status == 503).await;
    assert_eq!(refused.json()["code"], "llm.disabled", "{refused:#?}");
    let asked = world.llm.count();
    // Waiting does not switch it on.
    let refused = world.served.post("/api/chat", &ask("Look cell x")).await;
    let problem = refused.assert_problem(503, "llm.disabled");
    assert_eq!((refused.header("retry-after"), problem.get("retry_after")), ("", None), "{refused:#?}");
    assert_eq!(refused.header("x-should-retry"), "false");
    assert_eq!(world.llm.count(), asked);
    world.switch(SwitchKind::Model, "scripted", false).await;
    world.ask_until("Look cell x", |reply| reply.status == 200).await;
}

#[tokio::test]
async fn drained_tenant_gets_no_new_runs_and_finishes_those_under_way() {
    let world = World::open(answers).await;
    let ours = world.served.key("acme", "ada", Role::Admin).await;
    let theirs = world.served.key("rival", "rob", Role::Admin).await;
    world.served.wait_for_keys().await;
    let send = async |key: &str, path: &str, body: &Value| world.served.send(key, "POST", path, body).await;
    let mut body = ask("Book cell approved");
    (body["require_approval"], body["session_id"]) = (json!(true), json!("s"));
    assert_eq!(send(&ours, "/api/chat", &body).await.json()["status"], "waiting");
    world.switch(SwitchKind::Tenant, "acme", true).await;
    let mut refused = None;
    eventually("the tenant is drained", async || {
        let reply = send(&ours, "/api/chat", &ask("Look cell x")).await;
        let drained = reply.status == 503;
        refused = Some(reply);
        drained
    })
    .await;
    let refused = refused.unwrap();
    refused.assert_problem(503, "tenant.draining");
    assert_eq!(refused.header("retry-after"), "30");
    let mut openai = ask("Look cell x");
    openai["model"] = json!("proscenium");
    send(&ours, "/v1/chat/completions", &openai).await.assert_error(503, "tenant.draining");
    assert_eq!(send(&theirs, "/api/chat", &ask("Look cell x")).await.status, 200);
    // A decision is no new request, also in words.
    let mut yes = ask("yes");
    yes["session_id"] = json!("s");
    let decided = send(&ours, "/api/chat", &yes).await;
    assert_eq!(decided.json()["status"], "completed", "{decided:#?}");
    assert_eq!(world.backend.requests("POST /Book/approved").len(), 1);
    world.switch(SwitchKind::Tenant, "acme", false).await;
    eventually("it is resumed", async || send(&ours, "/api/chat", &ask("Look cell x")).await.status == 200)
        .await;
}

#[tokio::test]
async fn parked_runs_and_unknown_writes_are_listed() {
    let world = World::open(misbehaviour).await;
    world.served.post("/api/chat", &ask("Look cell hang_up")).await;
    let unknown = world.served.post("/api/chat", &ask("Book cell unavailable")).await.json();
    let mut body = ask("Book cell hang_up");
    body["require_approval"] = json!(true);
    let waiting = world.served.post("/api/chat", &body).await.json();
    let listed = world.served.get("/api/runs?parked=true").await.json();
    let runs = listed["runs"].as_array().unwrap();
    let view = |run: &Value| (run["run_id"].clone(), run["waits_for"][0]["about"].clone());
    let expected =
        [(waiting["run_id"].clone(), json!("plan")), (unknown["run_id"].clone(), json!("outcome"))];
    assert_eq!(runs.iter().map(view).collect::<Vec<_>>(), expected, "{listed:#}");
    assert_eq!(world.served.get("/api/runs").await.json()["runs"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn lowered_level_holds_for_runs_that_start_after_a_reload() {
    let (llm, scenes) = (model(), TempDir::new().unwrap());
    let backend = FaultyBackend::start(answers);
    write_scene(scenes.path(), backend.address(), "");
    let setup = Setup::scripted(&llm).alone().scenes(scenes.path());
    let served = ServedEngine::start(setup.set("scenes.allow_private_addresses", true)).await;
    let level = async || {
        let answer = served.post("/api/chat", &ask("Look cell x")).await.json();
        answer["metadata"]["level"].clone()
    };
    assert_eq!(level().await, Value::Null);
    let mut config = served.config.clone();
    config.execution.level = Some(ExecutionLevel::Basic);
    served.engine.reload(config).await.unwrap();
    assert_eq!(level().await, "basic");
}

#[test]
fn switches_are_kept_and_listed_on_the_command_line() {
    let workspace = Workspace::new();
    let ran = workspace.run(&["tools", "disable", "Weather.Nothing"]);
    assert!(ran.status == 1 && ran.problems().contains("tool.unknown"), "{ran:?}");
    let ran = workspace.run(&[
        "tools",
        "disable",
        "Weather.WeatherForecast_Get",
        "--reason",
        "too slow",
        "--user",
        "ada",
    ]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(workspace.run(&["tools", "disable", "Weather.WeatherForecast_Get"]).out.contains("already"));
    let listed = workspace.run(&["tools"]).out;
    let line = listed.lines().find(|line| line.contains("WeatherForecast_Get")).unwrap();
    assert!(line.contains("off") && line.contains("ada") && line.contains("too slow"), "{listed}");
    let json: Value = serde_json::from_str(&workspace.run(&["tools", "list", "--json"]).out).unwrap();
    assert_eq!(json.as_array().unwrap().iter().filter(|tool| tool["off"] == true).count(), 1);
    let answer = workspace.ask("Che tempo fa a Milano?", &[]);
    let called = answer["steps"].to_string().contains("WeatherForecast_Get");
    assert!(!called, "{answer:#}");
    assert_eq!(workspace.run(&["tools", "enable", "Weather.WeatherForecast_Get"]).status, 0);
    let answer = workspace.ask("Che tempo fa a Milano?", &[]);
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(workspace.run(&["tenants", "drain", "local"]).status, 0);
    let refused = workspace.run(&["chat", "Che tempo fa a Milano?"]);
    assert!(refused.status == 1 && refused.problems().contains("tenant.draining"), "{refused:?}");
    assert!(workspace.run(&["tenants"]).out.contains("drained"));
    assert_eq!(workspace.run(&["tenants", "resume", "local"]).status, 0);
    let drained = workspace.run(&["tenants", "drain", "locla"]);
    assert!(drained.status == 0 && drained.out.contains("check the name"), "{drained:?}");
    let parked = workspace.run(&["runs", "--parked"]);
    assert!(parked.out.contains("No run waits for a person"), "{parked:?}");
}

#[test]
fn no_other_tool_is_called_in_place_of_one_that_is_switched_off() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["tools", "disable", "VacationManagement.MakeRequest"]).status, 0);
    for (words, lead) in [
        ("Richiedi ferie dal 15 al 17 giugno", "Non fatto, perché ora non è disponibile: «"),
        ("Request vacation from 15 to 17 June", "Not done, since it is not available now: «"),
    ] {
        let answer = workspace.ask(words, &[]);
        assert_eq!(answer["status"], "partial", "{answer:#}");
        assert_eq!(answer["answer"], format!("{lead}{words}»."));
        assert_eq!(answer["plan"]["unavailable"], json!([words]));
        assert_eq!(answer["steps"].as_array().map_or(0, Vec::len), 0, "{answer:#}");
    }
    // What else is asked for is done.
    let answer = workspace.ask("Che tempo fa a Milano? Poi richiedi ferie dal 15 al 17 giugno", &[]);
    assert_eq!(answer["status"], "partial", "{answer:#}");
    let scenes: Vec<&Value> =
        answer["steps"].as_array().unwrap().iter().map(|step| &step["scene_name"]).collect();
    assert_eq!(scenes, ["Weather"], "{answer:#}");
    let text = answer["answer"].as_str().unwrap();
    assert!(text.contains("ora non è disponibile: «richiedi ferie dal 15 al 17 giugno»."), "{text}");
    assert!(!text.contains("aiutarti"), "{text}");
    assert_eq!(workspace.run(&["tools", "enable", "VacationManagement.MakeRequest"]).status, 0);
    let answer = workspace.ask("Richiedi ferie dal 15 al 17 giugno", &[]);
    assert_eq!(answer["status"], "completed", "{answer:#}");
}
