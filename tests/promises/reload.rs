//! A changed configuration while the server serves.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Scripted, ScriptedLlm, Served, Setup};

fn names(scenes: &Value) -> Vec<String> {
    let list = scenes["scenes"].as_array().unwrap();
    list.iter().map(|scene| scene["name"].as_str().unwrap().to_owned()).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn sighup_brings_new_scenes_into_force_and_faulty_ones_change_nothing() {
    use crate::process::Desk;

    let desk = Desk::new().with("PROSCENIUM__SCENES__ALLOW_HOSTS", "[\"127.0.0.1:9\"]");
    desk.write("prod.toml", "[planning]\nmax_steps = 5\n");
    fs::create_dir(desk.path().join("more")).unwrap();
    let mut held =
        desk.hold(&["serve", "--addr", "127.0.0.1:0", "--config", "prod.toml", "--scenes", "more"]);
    held.read_to("http://");
    let base = format!("http://{}", held.said().rsplit("http://").next().unwrap().trim());
    let scenes = async || -> Vec<String> {
        names(&reqwest::get(format!("{base}/api/scenes")).await.unwrap().json().await.unwrap())
    };
    let shipped = scenes().await;

    desk.write("more/notes/scene.toml", "name = \"Notes\"\n");
    held.signal("HUP");
    held.complains("notes");
    held.complains("stays in force");
    assert_eq!(scenes().await, shipped);

    desk.write(
        "more/notes/scene.toml",
        "name = \"Notes\"\ndescription = \"Notes of the office.\"\ninstructions = \"Look notes up.\"\n\
         examples = [{ say = \"Show note 7\", tool = \"GetNote\" }]\n[[tools]]\nname = \"GetNote\"\n\
         description = \"Tells what a note says.\"\neffect = \"read\"\n\
         parameters = { type = \"object\", required = [\"number\"], properties = { number = { type = \"integer\", \
         description = \"The note's number\" } } }\nhttp = { method = \"GET\", url = \"http://127.0.0.1:9/{number}\" }\n",
    );
    desk.write("prod.toml", "[planning]\nmax_steps = 0\n");
    held.signal("HUP");
    held.complains("planning.max_steps");
    held.complains("stays in force");
    assert_eq!(scenes().await, shipped);

    desk.write("prod.toml", "[planning]\nmax_steps = 7\n[server]\nmax_messages = 9\n");
    held.signal("HUP");
    held.complains("were read again");
    held.complains("server has changed");
    assert!(scenes().await.contains(&"Notes".to_owned()));

    held.signal("TERM");
    assert_eq!(held.end().status, 0);
}

#[tokio::test]
async fn a_budget_that_is_raised_lets_the_next_request_pass_and_forgets_nothing() {
    let llm = ScriptedLlm::start(|_, _| Scripted::Text("It is 4.".to_owned()));
    let served = Served::start(
        Setup::scripted(&llm)
            .model("input_usd_per_million", "1000")
            .model("output_usd_per_million", "1000")
            .set("planning.max_retries", "0"),
    )
    .await;
    let body = json!({"messages": [{"role": "user", "content": "How much is two and two?"}]});
    // Not limited: nothing is refused, and what is spent is known by the journal only.
    assert_ne!(served.post("/api/chat", &body).await.status, 429);
    let tenant = served.engine.default_principal().0;
    let spent: u64 = served.engine.store().usage(None, None).await.unwrap()[&tenant].cost_nano_usd;
    assert!(spent > 0);

    let mut config = served.config.clone();
    config.budget.tenant_usd = Some(spent as f64 / 1e9);
    assert!(served.engine.reload(config.clone()).await.unwrap().is_empty());
    let asked = llm.count();
    let refused = served.post("/api/chat", &body).await.is_problem(429, "budget.exceeded");
    assert!(refused["detail"].as_str().unwrap().contains("tenant"), "{refused:#}");
    assert_eq!(llm.count(), asked);

    config.budget.tenant_usd = Some(1e6);
    assert!(served.engine.reload(config).await.unwrap().is_empty());
    assert_ne!(served.post("/api/chat", &body).await.status, 429);
    assert!(llm.count() > asked);
}
