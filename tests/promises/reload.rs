//! Configuration changes while the server runs.

use std::fs;

use serde_json::{Value, json};

use crate::support::exposition::{read, sum};
use crate::support::planner_engine::{ModelRules, has_results, plan, step};
use crate::support::{Backend, Scripted, ScriptedLlm, ServedEngine, Setup, section};

fn names(scenes: &Value) -> Vec<String> {
    let list = scenes["scenes"].as_array().unwrap();
    list.iter().map(|scene| scene["name"].as_str().unwrap().to_owned()).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn sighup_loads_new_scenes_and_ignores_invalid_ones() {
    use crate::process::Workspace;

    let workspace = Workspace::new().with("PROSCENIUM__SCENES__ALLOW_HOSTS", "[\"127.0.0.1:9\"]");
    workspace.write("prod.toml", "[planning]\nmax_steps = 5\n");
    fs::create_dir(workspace.path().join("more")).unwrap();
    let mut process =
        workspace.spawn(&["serve", "--addr", "127.0.0.1:0", "--config", "prod.toml", "--scenes", "more"]);
    process.read_until("http://");
    let base = format!("http://{}", process.output().rsplit("http://").next().unwrap().trim());
    let scenes = async || -> Vec<String> {
        names(&reqwest::get(format!("{base}/api/scenes")).await.unwrap().json().await.unwrap())
    };
    let shipped = scenes().await;

    workspace.write("more/notes/scene.toml", "name = \"Notes\"\n");
    process.signal("HUP");
    process.read_stderr_until("notes");
    process.read_stderr_until("stays in force");
    assert_eq!(scenes().await, shipped);

    workspace.write(
        "more/notes/scene.toml",
        "name = \"Notes\"\ndescription = \"Notes of the office.\"\ninstructions = \"Look notes up.\"\n\
         examples = [{ say = \"Show note 7\", tool = \"GetNote\" }]\n[[tools]]\nname = \"GetNote\"\n\
         description = \"Tells what a note says.\"\neffect = \"read\"\n\
         parameters = { type = \"object\", required = [\"number\"], properties = { number = { type = \"integer\", \
         description = \"The note's number\" } } }\nhttp = { method = \"GET\", url = \"http://127.0.0.1:9/{number}\" }\n",
    );
    workspace.write("prod.toml", "[planning]\nmax_steps = 0\n");
    process.signal("HUP");
    process.read_stderr_until("planning.max_steps");
    process.read_stderr_until("stays in force");
    assert_eq!(scenes().await, shipped);

    workspace.write("prod.toml", "[planning]\nmax_steps = 7\n[server]\nmax_messages = 9\n");
    process.signal("HUP");
    process.read_stderr_until("were read again");
    process.read_stderr_until("server has changed");
    assert!(scenes().await.contains(&"Notes".to_owned()));

    process.signal("TERM");
    assert_eq!(process.end().status, 0);
}

#[tokio::test]
async fn raised_budget_admits_requests_and_keeps_what_was_spent() {
    let llm = ScriptedLlm::start(|_, _| Scripted::Text("It is 4.".to_owned()));
    let served = ServedEngine::start(
        Setup::scripted(&llm)
            .model("input_usd_per_million", "1000")
            .model("output_usd_per_million", "1000")
            .set("planning.max_retries", "0"),
    )
    .await;
    let body = json!({"messages": [{"role": "user", "content": "How much is two and two?"}]});
    // No limit: nothing is refused, and the spending is known only from the journal.
    assert_ne!(served.post("/api/chat", &body).await.status, 429);
    let tenant = served.engine.default_principal().0;
    let spent: u64 = served.engine.store().usage(None, None).await.unwrap()[&tenant].cost_nano_usd;
    assert!(spent > 0);

    let mut config = served.config.clone();
    config.budget.tenant_usd = Some(spent as f64 / 1e9);
    assert!(served.engine.reload(config.clone()).await.unwrap().is_empty());
    let asked = llm.count();
    let refused = served.post("/api/chat", &body).await.assert_problem(429, "budget.exceeded");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("tenant") && !detail.contains("are spent"), "{refused:#}");
    assert_eq!(llm.count(), asked);

    config.budget.tenant_usd = Some(1e6);
    assert!(served.engine.reload(config).await.unwrap().is_empty());
    assert_ne!(served.post("/api/chat", &body).await.status, 429);
    assert!(llm.count() > asked);
}

/// A scene whose only tool calls the server at `backend`.
fn notes_scene(name: &str, backend: &str) -> String {
    format!(
        "name = \"{name}\"\ndescription = \"Notes of the office.\"\ninstructions = \"Look notes up.\"\n\
         examples = [{{ say = \"Show note 7\", tool = \"GetNote\" }}]\n[[tools]]\nname = \"GetNote\"\n\
         description = \"Tells what a note says.\"\neffect = \"read\"\n\
         parameters = {{ type = \"object\", required = [\"number\"], properties = {{ number = {{ type = \"integer\", \
         description = \"The note's number\" }} }} }}\nhttp = {{ method = \"GET\", url = \"{backend}/{{number}}\" }}\n"
    )
}

/// A model whose scene, named by the request's last word, looks a note up.
fn lookup_model() -> ScriptedLlm {
    let scene = |request: &Value| section(request, "request").unwrap().rsplit(' ').next().unwrap().to_owned();
    ModelRules::of(Value::Null)
        .plan(move |request, _| {
            Scripted::forced(request, plan(json!([step(1, &scene(request), &["GetNote"], Value::Null)])))
        })
        .scene(|request, _| {
            if has_results(request) {
                Scripted::Text("It says: water the plants.".to_owned())
            } else {
                Scripted::call("GetNote", json!({"number": 7}))
            }
        })
        .start()
}

#[tokio::test]
async fn metrics_label_scenes_tools_and_models_added_by_reload() {
    let (llm, backend) = (lookup_model(), Backend::start(|_| json!({"text": "Water the plants."})));
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let folder = dir.path().join(name.to_lowercase());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("scene.toml"), notes_scene(name, backend.address())).unwrap();
    };
    write("Notes");
    let setup = Setup::scripted(&llm).scenes(dir.path()).set("scenes.allow_private_addresses", true);
    let served = ServedEngine::start(setup).await;
    let look = async |scene: &str| {
        let words = format!("What does note 7 say in {scene}");
        let body = json!({"messages": [{"role": "user", "content": words}]});
        let answer = served.post("/api/chat", &body).await.json();
        assert_eq!(answer["status"], "completed", "{answer:#}");
        read(&served.get("/metrics").await.body)
    };
    let figures = look("Notes").await;
    assert_eq!(sum(&figures, "proscenium_steps_total", &["scene=\"Notes\""]), 1.0);

    // The initial scene is removed, another one and a model are added.
    fs::remove_dir_all(dir.path().join("notes")).unwrap();
    write("Diary");
    let mut config = served.config.clone();
    config.llm.models.insert(0, llm.model("newer"));
    assert!(served.engine.reload(config).await.unwrap().is_empty());
    let figures = look("Diary").await;
    for scene in ["scene=\"Notes\"", "scene=\"Diary\""] {
        assert_eq!(sum(&figures, "proscenium_steps_total", &[scene, "completed"]), 1.0);
        let call = [scene, "tool=\"GetNote\"", "outcome=\"ok\""];
        assert_eq!(sum(&figures, "proscenium_tool_calls_total", &call), 1.0);
        assert_eq!(sum(&figures, "proscenium_tool_duration_seconds_count", &call), 1.0);
    }
    let asked = |model: &str| sum(&figures, "proscenium_llm_requests_total", &[model]);
    assert_eq!((asked("model=\"scripted\""), asked("model=\"newer\"")), (4.0, 4.0));
    let other = ["scene=\"other\"", "tool=\"other\"", "model=\"other\""];
    assert!(figures.keys().all(|key| !other.iter().any(|label| key.contains(label))), "{figures:#?}");
}
