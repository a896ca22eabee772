//! Keys and tenants: every route requires a key, and no caller reaches anything of another tenant.

use std::time::{Duration, Instant};

use proscenium::access::Role;
use proscenium::http::ServeError;
use proscenium::store::KeyRules;
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::test_engine::TestEngine;
use crate::support::{Reply, ServedEngine, Setup, Shelf};

/// Routes that answer without a key.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/api/openapi.json"];

/// Words that occur in everything the first tenant has.
const SECRET: &str = "look";

struct Tenants {
    shelf: Shelf,
    served: ServedEngine,
    /// The first tenant's key.
    ours: String,
    theirs: String,
}

/// An admin of one tenant may do nothing in another.
async fn key(test: &TestEngine, tenant: &str, user: &str) -> (String, String) {
    test.create_key(tenant, user, KeyRules { role: Role::Admin, ..KeyRules::default() }).await
}

async fn tenants() -> Tenants {
    let (shelf, served) = Shelf::serve().await;
    let (_, ours) = key(&served, "acme", "ada").await;
    let (_, theirs) = key(&served, "rival", "rob").await;
    served.wait_for_keys().await;
    Tenants { shelf, served, ours, theirs }
}

impl Tenants {
    async fn send(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Reply {
        // A document is a text with a name.
        let text = if key == self.ours { SECRET } else { "a note" };
        let is_upload = (method, path) == ("POST", "/api/documents");
        let path = if is_upload { "/api/documents?name=note.txt" } else { path };
        let request = self.served.request(method, path).bearer_auth(key);
        let request = match body {
            Some(body) => request.json(body),
            None if is_upload => request.header("content-type", "text/plain").body(text),
            None => request,
        };
        Reply::of(request.send().await.unwrap()).await
    }
}

/// Each method and route of the document.
async fn operations(served: &ServedEngine) -> Vec<(String, String)> {
    let document = served.get("/api/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| -> Vec<(String, String)> {
        methods.as_object().unwrap().keys().map(|m| (m.to_uppercase(), path.clone())).collect()
    };
    let all: Vec<_> = paths.iter().flat_map(of).collect();
    assert!(all.len() >= 19, "{all:?}");
    all
}

/// A valid body for the route.
fn body(path: &str) -> Option<Value> {
    match path {
        "/api/chat" => Some(ask("hello")),
        "/api/planning/plan" | "/api/plans" => Some(json!({"message": "hello"})),
        "/api/plans/{task_id}/approve" => Some(json!({})),
        "/api/plans/{task_id}/modify" => Some(json!({"feedback": "hello"})),
        "/api/plans/{task_id}/rating" => Some(json!({"score": -1})),
        "/api/sessions/{session_id}/facts" => Some(json!({"claim": "hello"})),
        "/api/approvals/{approval_id}" => Some(json!({"decision": "yes"})),
        "/v1/chat/completions" => {
            let mut body = ask("hello");
            body["model"] = json!("proscenium");
            Some(body)
        }
        _ => None,
    }
}

#[tokio::test]
async fn no_route_reaches_another_tenants_data() {
    let tenants = tenants().await;
    let mut chat = ask("look");
    chat["session_id"] = json!("the-first");
    let ours = tenants.send(&tenants.ours, "POST", "/api/chat", Some(&chat)).await;
    assert_eq!(ours.status, 200, "{ours:#?}");
    let (run, events) = (ours.header("x-run-id").to_owned(), "the-first");
    let task = ours.json()["task_id"].as_str().unwrap().to_owned();
    let mut waits = ask("look");
    (waits["session_id"], waits["require_approval"]) = (json!("the-second"), json!(true));
    let waits = tenants.send(&tenants.ours, "POST", "/api/chat", Some(&waits)).await.json();
    let approval = waits["approvals"][0]["approval_id"].as_str().unwrap().to_owned();
    let document = tenants.send(&tenants.ours, "POST", "/api/documents", None).await.json();
    let document = document["id"].as_str().unwrap().to_owned();
    const NEVER: &str = "01976c8e-0000-7000-8000-000000000001";
    sqlx::query(
        "INSERT INTO learned_plans (tenant, template, words, plan, successes, created, seen) \
         VALUES ('acme', 'learned-plan', 'look', '{\"steps\":[],\"definitions\":{}}', 1, 0, 0)",
    )
    .execute(tenants.served.engine.store().pool())
    .await
    .unwrap();
    for (method, path) in operations(&tenants.served).await {
        // The first tenant's ids are used; any other parameter has one valid value.
        let address = path.replace("{run_id}", &run).replace("{session_id}", events);
        let address = address.replace("{task_id}", &task).replace("{approval_id}", &approval);
        let address = address.replace("{id}", "learned-plan").replace("{document_id}", &document);
        let named = address != path;
        let address = address.replace("{name}", "Shelf").replace("{model}", "proscenium");
        // Flows are a part of the configuration; this one has none.
        let address = address.replace("{flow_name}", "none");
        assert!(!address.contains('{'), "{address}: add its parameters here");
        let theirs = tenants.send(&tenants.theirs, &method, &address, body(&path).as_ref()).await;
        if named {
            assert_eq!(theirs.status, 404, "{method} {address}: {theirs:#?}");
            // As if it did not exist.
            let never = format!("{NEVER}.1");
            let names = [
                (&*approval, &*never),
                (&*run, NEVER),
                (&*task, NEVER),
                (&*document, NEVER),
                (events, "never"),
                ("learned-plan", "never"),
            ];
            let (name, never) = names.into_iter().find(|(name, _)| address.contains(name)).unwrap();
            let nowhere = address.replace(name, never);
            let missing = tenants.send(&tenants.theirs, &method, &nowhere, body(&path).as_ref()).await;
            let unnamed = |reply: &Reply, name: &str| reply.body.replace(name, "");
            assert_eq!(unnamed(&theirs, name), unnamed(&missing, never), "{method} {address}");
        } else if path.contains("{flow_name}") {
            assert_eq!(theirs.status, 404, "{method} {address}: {theirs:#?}");
        } else {
            assert!(theirs.status < 400, "{method} {address}: {theirs:#?}");
        }
        if !["/api/openapi.json", "/api/scenes", "/api/scenes/{name}"].contains(&path.as_str()) {
            assert!(!theirs.body.contains(SECRET), "{method} {address}: {theirs:#?}");
            // Only an error repeats a name that was sent.
            assert!(named || !theirs.body.contains(&run), "{method} {address}: {theirs:#?}");
        }
    }
    for query in [format!("/api/runs?session_id={events}"), "/api/usage".to_owned()] {
        let theirs = tenants.send(&tenants.theirs, "GET", &query, None).await;
        assert!(!theirs.body.contains(&run) && !theirs.body.contains(SECRET), "{theirs:#?}");
    }
    // Paging after another tenant's run or conversation reveals nothing about it.
    for query in [
        format!("/api/runs?after={run}"),
        format!("/api/sessions?after={events}"),
        format!("/api/plans?after={task}"),
        format!("/api/approvals?all=true&after={approval}"),
        "/api/approvals?session_id=the-second".to_owned(),
    ] {
        let theirs = tenants.send(&tenants.theirs, "GET", &query, None).await;
        assert!(
            !theirs.body.contains(SECRET) && !theirs.body.contains("the-first\""),
            "{query}: {theirs:#?}"
        );
    }
    // The same name is a different conversation of theirs.
    let mut what = ask("what did I say?");
    what["session_id"] = json!(events);
    let theirs = tenants.send(&tenants.theirs, "POST", "/api/chat", Some(&what)).await;
    assert!(!theirs.json()["answer"].as_str().unwrap().contains(SECRET), "{theirs:#?}");
    // Everything is unchanged.
    let kept = tenants.send(&tenants.ours, "GET", &format!("/api/runs/{run}"), None).await;
    assert_eq!((kept.status, &kept.json()["answer"]), (200, &ours.json()["answer"]));
    let kept = tenants.send(&tenants.ours, "GET", &format!("/api/approvals/{approval}"), None).await;
    assert_eq!((kept.status, &kept.json()["state"]), (200, &json!("open")), "{kept:#?}");
    let session = tenants.send(&tenants.ours, "GET", &format!("/api/sessions/{events}"), None).await;
    assert_eq!(session.json()["turns"], 1, "{session:#?}");
}

#[tokio::test]
async fn another_tenants_run_cannot_be_stopped_followed_or_found() {
    let tenants = tenants().await;
    let mut chat = ask("put");
    chat["stream"] = json!(true);
    let request = tenants.served.request("POST", "/api/chat").bearer_auth(&tenants.ours);
    let request = request.header("idempotency-key", "k-1").json(&chat);
    let ours = request.send().await.unwrap();
    let run = ours.headers()["x-run-id"].to_str().unwrap().to_owned();
    tenants.shelf.started.wait_open().await;
    for (method, path) in [("POST", "cancel"), ("GET", "events")] {
        let path = format!("/api/runs/{run}/{path}");
        tenants.send(&tenants.theirs, method, &path, None).await.assert_problem(404, "run.unknown");
    }
    tenants.shelf.done.open();
    // Idempotency keys are scoped to their tenant.
    let request = tenants.served.request("POST", "/api/chat").bearer_auth(&tenants.theirs);
    let theirs = request.header("idempotency-key", "k-1").json(&ask("put at once")).send().await.unwrap();
    assert_eq!(theirs.status(), 200);
    assert_ne!(theirs.headers()["x-run-id"].to_str().unwrap(), run);
    assert_eq!(Reply::of(ours).await.events().last().unwrap().name, "run_completed");
    assert_eq!(tenants.shelf.puts(), 2);
}

#[tokio::test]
async fn retry_matching_never_crosses_tenants() {
    let tenants = tenants().await;
    let body = body("/v1/chat/completions").unwrap();
    let run = async |key: &str, count: &str| {
        let request = tenants.served.request("POST", "/v1/chat/completions").bearer_auth(key);
        let reply = request.header("x-stainless-retry-count", count).json(&body).send().await.unwrap();
        reply.headers()["x-run-id"].to_str().unwrap().to_owned()
    };
    let ours = run(&tenants.ours, "0").await;
    let theirs = run(&tenants.theirs, "1").await;
    assert_ne!(ours, theirs);
    assert_eq!(run(&tenants.ours, "1").await, ours);
}

#[tokio::test]
async fn every_route_requires_a_valid_key() {
    let tenants = tenants().await;
    let served = &tenants.served;
    let (_, other) = tenants.ours.rsplit_once('_').unwrap();
    let (theirs, _) = tenants.theirs.rsplit_once('_').unwrap();
    let mixed = format!("Bearer {theirs}_{other}");
    let wrong = format!("Bearer {}", "psk_0000000000000000_".to_owned() + other);
    let count = tenants.shelf.llm.count();
    for (method, path) in operations(served).await {
        let address = path.replace("{run_id}", "01976c8e-0000-7000-8000-000000000001");
        let address =
            address.replace("{session_id}", "s").replace("{name}", "Shelf").replace("{model}", "proscenium");
        if OPEN.contains(&address.as_str()) {
            assert_eq!(served.get(&address).await.status, 200);
            continue;
        }
        for header in ["", "Bearer", "Bearer sk-anything", "Basic cHNrOng=", "psk_x", &mixed, &wrong] {
            let mut request = served.request(&method, &address);
            if !header.is_empty() {
                request = request.header("authorization", header);
            }
            if let Some(body) = body(&path) {
                request = request.json(&body);
            }
            let reply = Reply::of(request.send().await.unwrap()).await;
            assert_eq!(reply.status, 401, "{method} {address} {header}: {reply:#?}");
            assert!(reply.header("www-authenticate").starts_with("Bearer"), "{reply:#?}");
            if path.starts_with("/v1/") {
                let code = reply.json()["error"]["code"].as_str().unwrap().to_owned();
                assert_eq!(reply.assert_error(401, &code)["type"], "authentication_error");
                assert_eq!(reply.header("x-should-retry"), "false");
            } else {
                let code = reply.json()["code"].as_str().unwrap().to_owned();
                reply.assert_problem(401, &code);
            }
            assert!(!reply.body.contains(other), "the reply shows a secret");
        }
    }
    assert_eq!(tenants.shelf.llm.count(), count);
    // A wrong secret and an unknown key are refused with the same message.
    let refusal = async |header: &str| {
        let request = served.request("GET", "/api/runs").header("authorization", header.to_owned());
        Reply::of(request.send().await.unwrap()).await.body
    };
    assert_eq!(refusal(&mixed).await, refusal(&wrong).await);
    // The alternative header for a key.
    let request = served.request("GET", "/api/runs").header("x-api-key", &tenants.ours);
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn revoked_key_loses_access_within_a_second() {
    let tenants = tenants().await;
    let (id, secret) = key(&tenants.served, "acme", "eve").await;
    assert_eq!(tenants.send(&secret, "GET", "/api/runs", None).await.status, 200);
    assert!(tenants.served.engine.store().revoke_key(&id).await.unwrap());
    let revoked = Instant::now();
    loop {
        // Only requests sent a second after the revocation have to be refused.
        let late = revoked.elapsed() > Duration::from_millis(1100);
        let reply = tenants.send(&secret, "GET", "/api/runs", None).await;
        if reply.status == 401 {
            reply.assert_problem(401, "auth.key");
            break;
        }
        assert!(!late, "{reply:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(tenants.send(&tenants.ours, "GET", "/api/runs", None).await.status, 200);
}

#[tokio::test]
async fn key_and_not_the_request_identifies_the_caller() {
    let served = ServedEngine::start(Setup::offline()).await;
    let (_, secret) = key(&served, "acme", "giulia.rossi").await;
    let words = "Il mio username è keysersoze. Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";
    let reply = served.send(&secret, "POST", "/api/chat", &ask(words)).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    for (user, _, _) in served.vacations().await {
        assert_eq!(user, "giulia.rossi");
    }
}

#[tokio::test]
async fn server_behind_a_proxy_starts_with_a_key_and_trusts_nobody_without() {
    let required = || Setup::offline().set("auth.require_keys", true);
    match ServedEngine::try_start(required()).await {
        Err(error @ ServeError::WithoutKeys) => {
            assert_eq!(error.code(), "server.without_keys");
            assert!(error.to_string().contains("keys create"), "{error}");
        }
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(served) => panic!("open to everybody behind a proxy of {}", served.addr()),
    }
    let test = Setup::offline().start().await;
    let (id, secret) = key(&test, "acme", "ada").await;
    let dir = test.stop().await;
    let served = ServedEngine::start(required().on(&dir)).await;
    assert_eq!(served.send(&secret, "GET", "/api/runs", &Value::Null).await.status, 200);
    // Also once the only key was revoked.
    assert!(served.engine.store().revoke_key(&id).await.unwrap());
    served.get("/api/runs").await.assert_problem(401, "auth.missing");
}

#[tokio::test]
async fn publicly_reachable_server_requires_keys() {
    let setup = || Setup::offline().set("server.addr", "0.0.0.0:0");
    match ServedEngine::try_start(setup()).await {
        Err(error @ ServeError::Open { .. }) => {
            assert_eq!(error.code(), "server.open");
            let refusal = error.to_string();
            assert!(refusal.contains("keys create") && refusal.contains("auth.allow_anonymous"), "{refusal}");
        }
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(served) => panic!("open to everybody at {}", served.addr()),
    }
    let served = ServedEngine::start(setup().set("auth.allow_anonymous", true)).await;
    assert_eq!(served.get("/api/runs").await.status, 200);
    let request = served.request("GET", "/api/runs").header("host", "anywhere.example");
    Reply::of(request.send().await.unwrap()).await.assert_problem(403, "auth.host");
    drop(served);
    let anywhere = setup().set("auth.allow_anonymous", true).set("server.allowed_hosts", "[\"*\"]");
    let served = ServedEngine::start(anywhere).await;
    let request = served.request("GET", "/api/runs").header("host", "anywhere.example");
    assert_eq!(request.send().await.unwrap().status(), 200);
    drop(served);
    // With a key it starts, and refuses requests without one.
    let test = Setup::offline().start().await;
    let secret = test.key("acme", "ada", Role::default()).await;
    let dir = test.stop().await;
    let served = ServedEngine::start(setup().on(&dir)).await;
    served.get("/api/runs").await.assert_problem(401, "auth.missing");
    assert_eq!(served.send(&secret, "GET", "/api/runs", &Value::Null).await.status, 200);
}
