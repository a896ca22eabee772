//! Several tenants on one server: a flood of one leaves room for another, keys have limits, and what a tenant
//! stores is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::access::Role;
use proscenium::run::Effect;
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::{ToolContext, ToolError};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::server_api::ask;
use crate::support::model_script::ModelScript;
use crate::support::served_engine::{Events, read_to_end, wire};
use crate::support::{Gate, Reply, ScriptedLlm, ServedEngine, Setup, Shelf, eventually};

/// The tenant that floods.
const FLOOD: &str = "acme";
/// The tenant that wants little.
const OTHER: &str = "rival";

/// A server with a key of each tenant.
async fn two_tenants(setup: Setup) -> (ServedEngine, String, String) {
    let served = ServedEngine::start(setup).await;
    let keys = (served.key(FLOOD, "ada", Role::Admin).await, served.key(OTHER, "ada", Role::Admin).await);
    served.wait_for_keys().await;
    (served, keys.0, keys.1)
}

async fn send(served: &ServedEngine, key: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
    served.send(key, method, path, body.unwrap_or(&Value::Null)).await
}

async fn chat(served: &ServedEngine, key: &str, words: &str) -> Reply {
    send(served, key, "POST", "/api/chat", Some(&ask(words))).await
}

async fn open_stream(served: &ServedEngine, key: &str, words: &str) -> reqwest::Response {
    let mut body = ask(words);
    body["stream"] = json!(true);
    served.request("POST", "/api/chat").bearer_auth(key).json(&body).send().await.unwrap()
}

/// A scene with few places, in which the calls of the flooding tenant are slow: they end when `go` opens.
struct Desk {
    llm: ScriptedLlm,
    go: Gate,
    /// Calls of the flooding tenant that run.
    running: watch::Sender<usize>,
    ended: Arc<AtomicUsize>,
}

/// Places of the scene.
const CONCURRENCY: u32 = 4;

impl Desk {
    fn new() -> Self {
        let script =
            ModelScript::parse("\"count\": {steps: [{scene: Desk, rounds: [[{Count: {item: lamp}}]]}]}\n");
        let llm = ScriptedLlm::start(move |request, _| script.reply(request));
        Self { llm, go: Gate::closed(), running: watch::Sender::new(0), ended: Arc::default() }
    }

    fn setup(&self) -> Setup {
        let (go, running, ended) = (self.go.clone(), self.running.clone(), self.ended.clone());
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        struct Item {
            /// The thing.
            item: String,
        }
        let count = move |item: Item, context: ToolContext| {
            let (go, running, ended) = (go.clone(), running.clone(), ended.clone());
            async move {
                if context.principal.tenant.as_str() == FLOOD {
                    running.send_modify(|running| *running += 1);
                    go.wait_open().await;
                    running.send_modify(|running| *running -= 1);
                    ended.fetch_add(1, Ordering::SeqCst);
                }
                Ok::<Value, ToolError>(json!({"item": item.item}))
            }
        };
        let scene = Scene::builder("Desk")
            .description("Things on a desk.")
            .instructions("Count them.")
            .concurrency(CONCURRENCY)
            .mailbox(40)
            .tool(
                // Calls wait until the test lets them go on, however slow the machine is.
                SceneTool::native("Count", "Counts a thing.", Effect::Read, count)
                    .timeout_ms(300_000)
                    .say("en", "The {{ item }} is there."),
            )
            .build()
            .unwrap();
        Setup::scripted(&self.llm).alone().set("cache.max_bytes", 0).scene(scene)
    }
}

/// Whether the request's call was made.
fn is_counted(reply: &Reply) -> bool {
    let answer = reply.json();
    reply.status == 200 && answer["steps"][0]["tool_calls"][0]["outcome"] == "ok"
}

#[tokio::test]
async fn flood_of_slow_calls_in_a_scene_does_not_hold_up_another_tenant() {
    let desk = Desk::new();
    let (served, flood, other) = two_tenants(desk.setup()).await;
    let served = Arc::new(served);
    let (tell, mut replies) = mpsc::channel(1000);
    let clients: Vec<_> = (0..80)
        .map(|_| {
            let (served, flood, tell) = (served.clone(), flood.clone(), tell.clone());
            tokio::spawn(async move {
                for _ in 0..4 {
                    tell.send(chat(&served, &flood, "count").await).await.unwrap();
                }
            })
        })
        .collect();
    drop(tell);
    // It holds its share of the places and of the queue, and everything else of it is refused.
    desk.running.subscribe().wait_for(|running| *running == CONCURRENCY as usize - 1).await.unwrap();
    let mut refused = 0;
    while refused < 20 {
        let reply = replies.recv().await.unwrap();
        assert!(reply.body.contains("scene.busy"), "{reply:#?}");
        refused += 1;
    }
    for _ in 0..20 {
        let reply = chat(&served, &other, "count").await;
        assert!(is_counted(&reply), "{reply:#?}");
    }
    // Every call of the one was served before any of the flood's had ended.
    assert_eq!(desk.ended.load(Ordering::SeqCst), 0);
    assert_eq!(*desk.running.borrow(), CONCURRENCY as usize - 1);
    desk.go.open();
    let mut counted = 0;
    while let Some(reply) = replies.recv().await {
        assert!(is_counted(&reply) || reply.body.contains("scene.busy"), "{reply:#?}");
        counted += usize::from(is_counted(&reply));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(desk.ended.load(Ordering::SeqCst), counted, "what was refused was not done");
    assert!(counted >= CONCURRENCY as usize, "{counted}");
}

#[tokio::test]
async fn one_tenant_alone_may_use_a_whole_scene() {
    let desk = Desk::new();
    let served = ServedEngine::start(desk.setup()).await;
    let flood = served.key(FLOOD, "ada", Role::Admin).await;
    let requests = (0..CONCURRENCY).map(|_| chat(&served, &flood, "count"));
    let all = futures::future::join_all(requests);
    let open = async {
        desk.running.subscribe().wait_for(|running| *running == CONCURRENCY as usize).await.unwrap();
        desk.go.open();
    };
    let (replies, ()) = tokio::join!(all, open);
    assert!(replies.iter().all(is_counted), "{replies:#?}");
}

#[tokio::test]
async fn flood_of_requests_leaves_room_for_another_tenant() {
    let shelf = Shelf::new();
    let (served, flood, other) = two_tenants(shelf.setup().set("server.max_in_flight", 10)).await;
    let mut held = Vec::new();
    let refused = loop {
        let response = open_stream(&served, &flood, "wait").await;
        if response.status() != 200 {
            break Reply::of(response).await;
        }
        held.push(Events::of(response));
    };
    // Four for each place that stays free.
    assert_eq!(held.len(), 8);
    let problem = refused.assert_problem(503, "server.overloaded");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("tenant `acme` has 8 requests in progress, which is its share of the 10"),
        "{detail}"
    );
    assert_eq!(refused.header("retry-after"), problem["retry_after"].to_string());
    for _ in 0..20 {
        assert_eq!(chat(&served, &other, "look").await.status, 200);
        chat(&served, &flood, "look").await.assert_problem(503, "server.overloaded");
    }
    shelf.go.open();
    for events in &mut held {
        while events.next().await.is_some() {}
    }
    while chat(&served, &flood, "look").await.status == 503 {}
}

#[tokio::test]
async fn flood_of_requests_without_a_key_leaves_room_for_a_tenant_with_one() {
    let shelf = Shelf::new();
    let setup = shelf.setup().set("server.max_in_flight", 10).set("auth.allow_anonymous", true);
    let served = ServedEngine::start(setup).await;
    let other = served.key(OTHER, "ada", Role::Admin).await;
    let mut held = Vec::new();
    let mut body = ask("wait");
    body["stream"] = json!(true);
    let refused = loop {
        let response = served.request("POST", "/api/chat").json(&body).send().await.unwrap();
        if response.status() != 200 {
            break Reply::of(response).await;
        }
        held.push(Events::of(response));
    };
    assert_eq!(held.len(), 8);
    refused.assert_problem(503, "server.overloaded");
    assert_eq!(chat(&served, &other, "look").await.status, 200);
    shelf.go.open();
    for events in &mut held {
        while events.next().await.is_some() {}
    }
}

#[tokio::test]
async fn rate_of_a_key_refuses_with_retry_after_before_reading_the_body() {
    let shelf = Shelf::new();
    let (served, ours, theirs) = two_tenants(shelf.setup().set("auth.limits.requests_per_minute", 3)).await;
    for _ in 0..3 {
        assert_eq!(chat(&served, &ours, "look").await.status, 200);
    }
    let refused = chat(&served, &ours, "look").await;
    let problem = refused.assert_problem(429, "key.rate_limited");
    assert_eq!(refused.header("retry-after"), problem["retry_after"].to_string());
    // The body never comes.
    let head = format!("Authorization: Bearer {ours}\r\nConnection: close\r\n");
    let request = wire("/v1/chat/completions", &head, &ask("look"));
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let mut connection = served.raw(format!("{head}\r\n\r\n").as_bytes()).await;
    let reply = read_to_end(&mut connection).await;
    assert!(reply.starts_with("HTTP/1.1 429"), "{reply}");
    assert!(reply.contains("\"rate_limit_error\"") && reply.contains("x-should-retry: true"), "{reply}");
    // What costs nothing is served still, and so is another key.
    assert_eq!(send(&served, &ours, "GET", "/api/runs", None).await.status, 200);
    assert_eq!(chat(&served, &theirs, "look").await.status, 200);
}

#[tokio::test]
async fn key_has_so_many_open_streams() {
    let shelf = Shelf::new();
    let (served, ours, theirs) = two_tenants(shelf.setup().set("auth.limits.open_streams", 1)).await;
    let held = open_stream(&served, &ours, "wait").await;
    assert_eq!(held.status(), 200);
    let run = held.headers()["x-run-id"].to_str().unwrap().to_owned();
    let refused = Reply::of(open_stream(&served, &ours, "look").await).await;
    refused.assert_problem(429, "key.streams");
    let events = format!("/api/runs/{run}/events");
    send(&served, &ours, "GET", &events, None).await.assert_problem(429, "key.streams");
    let mut body = ask("look");
    (body["model"], body["stream"]) = (json!("proscenium"), json!(true));
    let refused = send(&served, &ours, "POST", "/v1/chat/completions", Some(&body)).await;
    refused.assert_error(429, "key.streams");
    // Nothing of what was refused has been accepted.
    assert_eq!(
        send(&served, &ours, "GET", "/api/runs", None).await.json()["runs"].as_array().unwrap().len(),
        1
    );
    assert_eq!(chat(&served, &ours, "look").await.status, 200);
    assert_eq!(open_stream(&served, &theirs, "look").await.status(), 200);
    // A client that goes away makes room, as soon as the server has noticed.
    drop(held);
    eventually("there is room", async || open_stream(&served, &ours, "look").await.status() != 429).await;
    shelf.go.open();
}

#[tokio::test]
async fn tenant_that_has_stored_too_much_starts_nothing_until_it_erases() {
    let shelf = Shelf::new();
    let (served, ours, theirs) = two_tenants(shelf.setup().set("store.max_tenant_bytes", 1000)).await;
    let in_session = |words: &str| {
        let mut body = ask(words);
        body["session_id"] = json!("s-1");
        body
    };
    // A run in progress continues beyond the limit.
    let reply = send(&served, &ours, "POST", "/api/chat", Some(&in_session("look"))).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")));
    let stored =
        async || send(&served, &ours, "GET", "/api/usage", None).await.json()["stored_bytes"].clone();
    let used = stored().await.as_u64().unwrap();
    assert!(used > 1000, "{used}");
    let refused = send(&served, &ours, "POST", "/api/chat", Some(&in_session("look"))).await;
    let problem = refused.assert_problem(507, "store.quota");
    let detail = problem["detail"].as_str().unwrap();
    let said = format!(
        "tenant `acme` has {used} bytes of events and documents stored, of 1000 allowed (store.max_tenant_bytes)"
    );
    assert!(detail.starts_with(&said), "{detail}");
    assert!(problem.get("run_id").is_none() && refused.header("retry-after").is_empty(), "{refused:#?}");
    let mut body = ask("look");
    body["model"] = json!("proscenium");
    let refused = send(&served, &ours, "POST", "/v1/chat/completions", Some(&body)).await;
    refused.assert_error(507, "store.quota");
    assert_eq!(refused.header("x-should-retry"), "false");
    assert_eq!(chat(&served, &theirs, "look").await.status, 200);
    // Erasing makes room, and so does another limit.
    assert_eq!(send(&served, &ours, "DELETE", "/api/sessions/s-1", None).await.status, 204);
    assert_eq!(stored().await, 0);
    assert_eq!(chat(&served, &ours, "look").await.status, 200);
    chat(&served, &ours, "look").await.assert_problem(507, "store.quota");
    let mut config = served.config.clone();
    config.store.max_tenant_bytes = None;
    assert_eq!(served.engine.reload(config).await.unwrap(), Vec::<&str>::new());
    assert_eq!(chat(&served, &ours, "look").await.status, 200);
}
