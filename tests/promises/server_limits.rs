//! What the server refuses before any model call, and clients that are slow or disconnect.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::server_api::ask;
use crate::support::planner_engine::{ModelRules, plan, step};
use crate::support::served_engine::{read_to_end, wire};
use crate::support::{Gate, Reply, Scripted, ServedEngine, Setup, Shelf};

/// The chat routes of both protocols with matching bodies.
fn chats(body: &Value) -> [(&'static str, Value); 2] {
    let mut v1 = body.clone();
    v1["model"] = json!("proscenium");
    [("/api/chat", body.clone()), ("/v1/chat/completions", v1)]
}

fn assert_refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{reply:#?}");
    let body = reply.json();
    let error_code = if body.get("error").is_some() { &body["error"]["code"] } else { &body["code"] };
    assert_eq!(error_code, code, "{body:#}");
}

#[tokio::test]
async fn oversized_requests_are_refused_before_any_model_call() {
    let shelf = Shelf::new();
    let setup = shelf.setup().set("server.max_body_bytes", 4096).set("server.max_messages", 3);
    let served =
        ServedEngine::start(setup.set("server.max_json_depth", 6).set("server.max_header_bytes", 2048)).await;
    let message = |words: &str| json!({"role": "user", "content": words});
    let long = ask(&"x".repeat(4096));
    let many = json!({"messages": vec![message("look"); 4]});
    let mut deep = json!("look");
    for _ in 0..6 {
        deep = json!([deep]);
    }
    let deep = json!({"messages": deep});
    for (body, status, code) in
        [(long, 413, "request.too_large"), (many, 422, "request.messages"), (deep, 422, "request.too_deep")]
    {
        for (path, body) in chats(&body) {
            assert_refused(&served.post(path, &body).await, status, code);
            // The length is counted, not trusted.
            let chunks = futures::stream::iter([Ok::<_, std::io::Error>(body.to_string())]);
            let request = served.request("POST", path).header("content-type", "application/json");
            let request = request.body(reqwest::Body::wrap_stream(chunks));
            assert_refused(&Reply::of(request.send().await.unwrap()).await, status, code);
        }
    }
    // What is announced as too large is refused before it arrives.
    for path in ["/api/chat", "/v1/chat/completions"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        let mut stream = served.raw(format!("{head}content-length: 2000000000\r\n\r\n{{").as_bytes()).await;
        let response = read_to_end(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 413") && response.contains("request.too_large"), "{response}");
    }
    for (path, body) in chats(&ask("look")) {
        let request = served.request("POST", path).header("x-much", "x".repeat(2048)).json(&body);
        assert_refused(&Reply::of(request.send().await.unwrap()).await, 431, "request.headers_too_large");
        let query = format!("{path}?{}", "x".repeat(2048));
        assert_refused(&served.post(&query, &body).await, 431, "request.headers_too_large");
        // Headers beyond any configurable bound are refused by the connection itself.
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nx-much: {}\r\n", "x".repeat(200_000));
        let mut stream = served.raw(b"").await;
        // The server may close the connection during the write.
        let _ = stream.write_all(head.as_bytes()).await;
        let response = read_to_end(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 431"), "{response}");
    }
    assert_eq!(shelf.llm.count(), 0);
    assert_eq!(served.get("/api/runs").await.json()["runs"], json!([]));
    // A request just within the bound is accepted.
    let many =
        json!({"messages": [message("hello"), {"role": "assistant", "content": "Hi."}, message("look")]});
    assert_eq!(served.post("/api/chat", &many).await.status, 200);
}

#[tokio::test]
async fn client_that_drips_its_request_is_disconnected() {
    let shelf = Shelf::new();
    let setup = shelf.setup().set("server.header_timeout_ms", 1500).set("server.body_timeout_ms", 200);
    let served = ServedEngine::start(setup).await;
    let whole = wire("/api/chat", "", &ask("look"));
    let body = whole.find("\r\n\r\n").unwrap() + 4;
    for (from, to) in [(0, 1), (0, 20), (0, body - 2), (0, body), (0, body + 1), (0, whole.len() - 1)] {
        let mut stream = served.raw(&whole.as_bytes()[from..to]).await;
        let response = read_to_end(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 408"), "{to}: {response}");
        if to >= body {
            assert!(response.contains("request.slow"), "{to}: {response}");
        }
    }
    // Dripping bytes do not extend the timeout: it ends long before all of them are sent, which would be answered.
    let (mut reader, mut writer) = served.raw(b"").await.into_split();
    let drip = tokio::spawn(async move {
        for byte in whole.as_bytes().chunks(1) {
            if writer.write_all(byte).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut response = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut response).await;
    let response = String::from_utf8_lossy(&response);
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    drip.abort();
    assert_eq!(shelf.llm.count(), 0);
    assert_eq!(served.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn client_that_drips_its_second_request_is_disconnected() {
    let setup = Setup::offline().set("server.header_timeout_ms", 2000).set("server.keep_alive_ms", 2000);
    let served = ServedEngine::start(setup).await;
    for second in ["", "G", "GET /healthz HTTP/1.1\r\n"] {
        let whole = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n{second}");
        let mut stream = served.raw(whole.as_bytes()).await;
        let response = read_to_end(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
    // A running request is not idle, however long it takes.
    let shelf = Shelf::new();
    let setup = shelf.setup().set("server.header_timeout_ms", 2000).set("server.keep_alive_ms", 2000);
    let served = ServedEngine::start(setup).await;
    let mut held = served.raw(wire("/api/chat", "Connection: close\r\n", &ask("wait")).as_bytes()).await;
    shelf.asked.wait_open().await;
    // Another connection is closed meanwhile, later than this one would be.
    assert_eq!(
        read_to_end(&mut served.raw(b"G").await).await.lines().next(),
        Some("HTTP/1.1 408 Request Timeout")
    );
    shelf.go.open();
    let response = read_to_end(&mut held).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[tokio::test]
async fn disconnected_client_does_not_stop_its_run() {
    for (words, reached) in [("wait", true), ("put", false)] {
        for (path, body) in chats(&ask(words)) {
            for stream in [false, true] {
                let (shelf, served) = Shelf::serve().await;
                let mut body = body.clone();
                body["stream"] = json!(stream);
                let connection = served.raw(wire(path, "", &body).as_bytes()).await;
                let (here, on): (&Gate, &Gate) =
                    if reached { (&shelf.asked, &shelf.go) } else { (&shelf.started, &shelf.done) };
                here.wait_open().await;
                drop(connection);
                // All work for a disconnected client is done before it answers.
                for _ in 0..3 {
                    assert_eq!(served.get("/healthz").await.status, 200);
                }
                on.open();
                let run = served.get("/api/runs").await.json()["runs"][0]["run_id"].clone();
                let events =
                    served.get(&format!("/api/runs/{}/events", run.as_str().unwrap())).await.events();
                assert_eq!(events.last().unwrap().name, "run_completed", "{path} {words} {stream}");
                assert_eq!(shelf.puts(), usize::from(words == "put"));
            }
        }
    }
}

#[tokio::test]
async fn web_page_cannot_reach_a_server_without_keys() {
    let served = ServedEngine::start(Setup::offline()).await;
    let port = served.addr().port();
    for host in
        ["localhost".to_owned(), format!("localhost:{port}"), "127.0.0.1".to_owned(), "[::1]:80".to_owned()]
    {
        let request = served.request("GET", "/api/scenes").header("host", host);
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    for (host, more) in
        [("evil.example", ""), ("evil.example:80", "localhost"), ("127.0.0.1.evil.example", "")]
    {
        let mut request = served.request("GET", "/api/scenes").header("host", host);
        if !more.is_empty() {
            request = request.header("x-forwarded-host", more).header("forwarded", format!("host={more}"));
        }
        Reply::of(request.send().await.unwrap()).await.assert_problem(403, "auth.host");
    }
}

#[tokio::test]
async fn plan_that_the_rest_of_the_days_budget_does_not_cover_is_refused_until_it_renews() {
    let llm = ModelRules::of(Value::Null)
        .plan(|request, _| {
            let steps = json!([step(1, "VacationManagement", &["MakeRequest"], Value::Null)]);
            // It costs more than was reserved for it: the budget ends.
            Scripted::forced(request, plan(steps)).metered(1_000_000, 0, 10)
        })
        .start();
    let priced = Setup::scripted(&llm)
        .model("input_usd_per_million", "1.0")
        .model("output_usd_per_million", "1.0")
        .set("budget.day_usd", 0.9);
    let served = ServedEngine::start(priced).await;
    let refused = served.post("/api/chat", &ask("I want three days off from 15 to 17 June")).await;
    let wait: u64 = refused.header("retry-after").parse().unwrap_or_else(|_| panic!("{refused:#?}"));
    assert!((1..=86_400).contains(&wait), "{wait}");
    let problem = refused.assert_problem(429, "budget.exceeded");
    assert!(problem["detail"].as_str().unwrap().starts_with("the plan cannot be carried out"), "{problem:#}");
    assert_eq!(problem["retry_after"], wait);
    assert_eq!(llm.count(), 1, "only the planner was asked");
}

#[tokio::test]
async fn answer_that_the_rest_of_a_budget_does_not_cover_is_refused_with_the_budget() {
    let llm = ModelRules::of(Value::Null)
        .plan(|request, _| {
            let nothing = json!({"needs_execution": false, "reasoning": "small talk", "steps": []});
            Scripted::forced(request, nothing).metered(1_000_000, 0, 10)
        })
        .start();
    let priced = Setup::scripted(&llm)
        .model("input_usd_per_million", "1.0")
        .model("output_usd_per_million", "1.0")
        .set("planning.fallback_enabled", false)
        .set("budget.run_usd", 0.9);
    let served = ServedEngine::start(priced).await;
    let refused = served.post("/api/chat", &ask("Tell me a story")).await;
    assert!(!refused.headers.contains_key("retry-after"), "it does not renew: {refused:#?}");
    refused.assert_problem(429, "budget.exceeded");
    assert_eq!(llm.count(), 1, "only the planner was asked");
}
