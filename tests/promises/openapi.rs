//! /api/openapi.json describes exactly what the server serves, and replies conform to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::{Reply, Shelf};

/// The documented methods of each route.
fn documented(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |value: &Value| value.as_object().unwrap().keys().map(|m| m.to_uppercase()).collect();
    paths.iter().map(|(path, value)| (path.clone(), methods(value))).collect()
}

#[tokio::test]
async fn openapi_document_lists_exactly_the_served_routes() {
    let (_shelf, served) = Shelf::serve().await;
    let document = served.get("/api/openapi.json").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    let documented = documented(&document);
    let registered: BTreeMap<String, BTreeSet<String>> = proscenium::http::route_methods()
        .into_iter()
        .map(|(path, methods)| (path.to_owned(), methods.into_iter().collect()))
        .collect();
    assert_eq!(documented, registered);
    // The server agrees: it allows exactly the documented methods of each route, and HEAD where it allows GET.
    for (path, methods) in &documented {
        let address = path.replace(['{', '}'], "");
        let reply = Reply::of(served.request("PROPFIND", &address).send().await.unwrap()).await;
        assert_eq!(reply.status, 405, "{path}: {reply:#?}");
        let mut allowed: BTreeSet<String> = reply.header("allow").split(", ").map(str::to_owned).collect();
        assert_eq!(allowed.remove("HEAD"), methods.contains("GET"), "{path}");
        assert_eq!(&allowed, methods, "{path}");
        for method in methods {
            let reply = Reply::of(served.request(method, &address).send().await.unwrap()).await;
            assert!(
                reply.status != 405 && !reply.body.contains("request.address"),
                "{method} {path}: {reply:#?}"
            );
        }
    }
}

#[test]
fn every_response_has_the_description_that_openapi_requires() {
    let document = serde_json::to_value(proscenium::http::openapi_document()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let text = response["description"].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{method} {path} {status}");
            }
        }
    }
}

#[test]
fn parameters_and_bodies_that_may_be_left_out_are_not_null() {
    let document = serde_json::to_value(proscenium::http::openapi_document()).unwrap();
    let operations =
        || document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
    let mut optional = 0;
    for (method, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            optional += usize::from(parameter["required"] == false);
            let schema = parameter["schema"].to_string();
            assert!(!schema.contains("null"), "{method} {} {parameter:#}", operation["operationId"]);
        }
        let body = operation.get("requestBody").map(Value::to_string).unwrap_or_default();
        assert!(!body.contains("null"), "{method} {} {body}", operation["operationId"]);
    }
    assert!(optional > 20, "{optional}");
}

#[tokio::test]
async fn every_reference_in_the_document_resolves() {
    let (_shelf, served) = Shelf::serve().await;
    let document = served.get("/api/openapi.json").await.json();
    let mut names = BTreeSet::new();
    references(&document, &mut names);
    assert!(!names.is_empty());
    for name in names {
        let place = name.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{name} is not defined");
    }
    let mut ids = BTreeSet::new();
    for operation in
        document["paths"].as_object().unwrap().values().flat_map(|p| p.as_object().unwrap().values())
    {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "duplicate id {id}");
    }
}

fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            names.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

/// Asserts that a reply conforms to its documented operation.
fn conforms(document: &Value, method: &str, path: &str, reply: &Reply) {
    let place = format!("{method} {path} {}", reply.status);
    let responses = &document["paths"][path][method.to_lowercase()]["responses"];
    let response = match responses.get(reply.status.to_string()) {
        Some(response) => response,
        None => responses.get("default").unwrap_or_else(|| panic!("{place} is not in the document")),
    };
    let Some(content) = response.get("content").and_then(Value::as_object) else {
        assert_eq!(reply.body, "", "{place}");
        return;
    };
    let media = reply.header("content-type").split(';').next().unwrap();
    let schema = content.get(media).unwrap_or_else(|| panic!("{place} is {media}: {content:#?}"));
    if media.ends_with("json") && schema.get("schema").is_some() {
        let mut schema = schema["schema"].clone();
        schema["components"] = document["components"].clone();
        let validator = jsonschema::options().build(&schema).unwrap();
        let body = reply.json();
        let wrong: Vec<String> =
            validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{place}: {wrong:#?} in {body:#}");
    }
}

#[tokio::test]
async fn replies_conform_to_the_document() {
    let (_shelf, served) = Shelf::serve().await;
    let document = served.get("/api/openapi.json").await.json();
    let with = |mut body: Value, key: &str, value: Value| {
        body[key] = value;
        body
    };
    let model = |words: &str| with(ask(words), "model", json!("proscenium"));
    let streamed = |body: Value| with(body, "stream", json!(true));
    let named = with(ask("put at once"), "session_id", json!("s-1"));
    let run = served.post("/api/chat", &named).await.json()["run_id"].as_str().unwrap().to_owned();
    let wait = with(ask("put at once"), "require_approval", json!(true));
    let mut waits = Vec::new();
    for _ in 0..3 {
        let answer = served.post("/api/chat", &wait).await.json();
        waits.push(answer["task_id"].as_str().unwrap().to_owned());
    }
    let approval = served.get("/api/approvals").await.json()["approvals"][0]["approval_id"].clone();
    let approval = approval.as_str().unwrap();
    let ended = served.get(&format!("/api/runs/{run}")).await.json()["task_id"].as_str().unwrap().to_owned();
    let plan = served.get(&format!("/api/plans/{}", waits[1])).await.json();
    let mut by_hand = plan["plan"].clone();
    by_hand["steps"][0]["purpose"] = json!("Put it there");
    let hash = |hash: &str| json!({"hash": hash});
    let text = async || {
        let request =
            served.request("POST", "/api/documents?name=a.txt").header("content-type", "text/plain");
        Reply::of(request.body("look").send().await.unwrap()).await
    };
    let added = [text().await, text().await];
    assert_eq!(added.each_ref().map(|reply| reply.status), [201, 200]);
    added.iter().for_each(|reply| conforms(&document, "POST", "/api/documents", reply));
    let own = added[0].json()["id"].as_str().unwrap().to_owned();
    let mut seen = BTreeSet::new();
    for (method, path, query, body) in [
        ("POST", "/api/chat", "", Some(ask("look"))),
        ("POST", "/api/chat", "", Some(ask("hello"))),
        ("POST", "/api/chat", "", Some(ask("fail"))),
        ("POST", "/api/chat", "", Some(streamed(ask("look")))),
        ("POST", "/api/chat", "", Some(json!({}))),
        ("POST", "/api/planning/plan", "", Some(json!({"message": "look"}))),
        ("POST", "/api/planning/plan", "", Some(json!({"message": "hello"}))),
        ("POST", "/api/planning/plan", "", Some(json!({"message": "look", "flow": "x"}))),
        ("GET", "/api/planning/flows", "", None),
        ("GET", "/api/planning/flows/{flow_name}", "Nowhere", None),
        ("GET", "/api/scenes", "", None),
        ("GET", "/api/scenes/{name}", "Shelf", None),
        ("GET", "/api/scenes/{name}", "Nowhere", None),
        ("GET", "/api/runs", "?limit=5", None),
        ("GET", "/api/runs", "?limit=0", None),
        ("GET", "/api/runs/{run_id}", &run, None),
        ("GET", "/api/runs/{run_id}", "x", None),
        ("GET", "/api/runs/{run_id}/explain", &run, None),
        ("GET", "/api/runs/{run_id}/explain", "x", None),
        ("GET", "/api/runs/{run_id}/events", &run, None),
        ("GET", "/api/runs/{run_id}/events", "x", None),
        ("POST", "/api/runs/{run_id}/cancel", &run, None),
        ("POST", "/api/runs/{run_id}/cancel", "x", None),
        ("POST", "/api/runs/{run_id}/resume", &run, None),
        ("POST", "/api/runs/{run_id}/resume", "x", None),
        ("POST", "/api/chat", "", Some(wait.clone())),
        ("POST", "/api/plans", "", Some(json!({"message": "look"}))),
        ("POST", "/api/plans", "", Some(json!({"message": "hello"}))),
        ("POST", "/api/plans", "", Some(json!({"message": "look", "plan": {}}))),
        ("POST", "/api/plans", "", Some(json!({"message": "fail"}))),
        ("GET", "/api/plans", "?limit=2", None),
        ("GET", "/api/plans", "?status=lost", None),
        ("GET", "/api/plans/{task_id}", &waits[0], None),
        ("GET", "/api/plans/{task_id}", &format!("{}?format=text", waits[0]), None),
        ("GET", "/api/plans/{task_id}", &format!("{}?format=mermaid", waits[0]), None),
        ("GET", "/api/plans/{task_id}", "x", None),
        ("GET", "/api/approvals", "", None),
        ("GET", "/api/approvals", "?limit=0", None),
        ("GET", "/api/approvals/{approval_id}", approval, None),
        ("GET", "/api/approvals/{approval_id}", "x", None),
        ("POST", "/api/approvals/{approval_id}", approval, Some(json!({"decision": "done"}))),
        ("POST", "/api/approvals/{approval_id}", approval, Some(json!({"decision": "yes"}))),
        ("POST", "/api/plans/{task_id}/modify", &waits[1], Some(json!({"plan": by_hand.clone()}))),
        ("POST", "/api/plans/{task_id}/modify", &waits[1], Some(json!({}))),
        ("POST", "/api/plans/{task_id}/approve", &waits[1], Some(hash("0"))),
        ("POST", "/api/plans/{task_id}/approve", &waits[1], Some(json!({}))),
        ("POST", "/api/plans/{task_id}/resume", &ended, None),
        ("POST", "/api/plans/{task_id}/rating", &ended, Some(json!({"score": 1, "note": "right"}))),
        ("POST", "/api/plans/{task_id}/rating", &ended, Some(json!({"score": 3}))),
        ("POST", "/api/documents", "?name=a.txt", Some(json!({}))),
        ("POST", "/api/documents", "", None),
        ("GET", "/api/documents", "?limit=1", None),
        ("GET", "/api/documents", "?limit=0", None),
        ("GET", "/api/documents/{document_id}", &own, None),
        ("GET", "/api/documents/{document_id}", "x", None),
        ("GET", "/api/documents/{document_id}/content", &own, None),
        ("GET", "/api/documents/{document_id}/content", "x", None),
        ("DELETE", "/api/documents/{document_id}", &own, None),
        ("DELETE", "/api/documents/{document_id}", &own, None),
        ("GET", "/api/learned", "", None),
        ("GET", "/api/learned", "?limit=0", None),
        ("GET", "/api/learned/{id}", "x", None),
        ("DELETE", "/api/learned/{id}", "x", None),
        ("DELETE", "/api/plans/{task_id}", &waits[2], None),
        ("POST", "/api/plans/{task_id}/cancel", &waits[2], None),
        ("DELETE", "/api/plans/{task_id}", &waits[2], None),
        ("GET", "/api/sessions", "", None),
        ("GET", "/api/sessions", "?limit=0", None),
        ("GET", "/api/sessions/{session_id}", "s-1", None),
        ("GET", "/api/sessions/{session_id}/facts", "s-1", None),
        ("POST", "/api/sessions/{session_id}/facts", "s-1", Some(json!({"claim": "The limit is 5"}))),
        ("POST", "/api/sessions/{session_id}/facts", "s-1", Some(json!({"claim": ""}))),
        ("DELETE", "/api/sessions/{session_id}", "s-1", None),
        ("DELETE", "/api/sessions/{session_id}", "s-1", None),
        ("GET", "/api/usage", "", None),
        ("GET", "/api/usage", "?from=x", None),
        ("GET", "/api/openapi.json", "", None),
        ("GET", "/metrics", "", None),
        ("GET", "/healthz", "", None),
        ("GET", "/readyz", "", None),
        ("POST", "/v1/chat/completions", "", Some(model("look"))),
        ("POST", "/v1/chat/completions", "", Some(model("fail"))),
        ("POST", "/v1/chat/completions", "", Some(streamed(model("look")))),
        ("POST", "/v1/chat/completions", "", Some(ask("look"))),
        ("GET", "/v1/models", "", None),
        ("GET", "/v1/models/{model}", "proscenium", None),
        ("GET", "/v1/models/{model}", "gpt-4o", None),
    ] {
        let address = match path.find('{') {
            Some(from) => format!("{}{query}{}", &path[..from], &path[path.find('}').unwrap() + 1..]),
            None => format!("{path}{query}"),
        };
        let request = served.request(method, &address);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let reply = Reply::of(request.send().await.unwrap()).await;
        conforms(&document, method, path, &reply);
        seen.insert((path.to_owned(), method.to_owned()));
    }
    let all: BTreeSet<(String, String)> = documented(&document)
        .into_iter()
        .flat_map(|(path, methods)| methods.into_iter().map(move |method| (path.clone(), method)))
        .collect();
    assert_eq!(seen, all, "a documented route has no checked reply here");
}
