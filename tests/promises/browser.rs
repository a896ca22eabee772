//! Browser pages on the same machine, hosts and credentials: who may use a server without keys, and when a
//! stream that was opened with a key ends.

use proscenium::access::Role;
use proscenium::store::{KeyRules, Store};
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::served_engine::Events;
use crate::support::{Gate, Reply, Scripted, ScriptedLlm, ServedEngine, Setup};

/// Every route that changes something, with its method.
fn changing_routes() -> Vec<(String, String)> {
    let all = proscenium::http::route_methods().into_iter();
    let of = |(path, methods): (&'static str, Vec<String>)| {
        let id = "01976c8e-0000-7000-8000-000000000001";
        let names = ["{run_id}", "{task_id}", "{approval_id}", "{session_id}"];
        let path = names.iter().fold(path.to_owned(), |path, name| path.replace(name, id));
        methods.into_iter().filter(|method| method != "GET").map(move |method| (method, path.clone()))
    };
    let changing: Vec<_> = all.flat_map(of).collect();
    assert!(changing.len() >= 12, "{changing:?}");
    changing
}

async fn send(served: &ServedEngine, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let mut request = served.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // No body: a request that passes the check is refused for another reason.
    Reply::of(request.send().await.unwrap()).await
}

fn code(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let code = body.get("code").or_else(|| body.pointer("/error/code"));
    code.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn cross_site_page_cannot_change_anything_without_keys() {
    let served = ServedEngine::start(Setup::offline()).await;
    let own = format!("http://{}", served.addr());
    let elsewhere = format!("http://localhost:{}", served.addr().port());
    for (method, path) in changing_routes() {
        for headers in [
            vec![("origin", "https://evil.example")],
            vec![("origin", "null")],
            vec![("origin", "http://127.0.0.1:1")],
            vec![("origin", elsewhere.as_str())],
            vec![("sec-fetch-site", "cross-site")],
            vec![("origin", own.as_str()), ("sec-fetch-site", "cross-site")],
            vec![("origin", own.as_str()), ("origin", "https://evil.example")],
            // A malformed key counts as no key.
            vec![("origin", "https://evil.example"), ("authorization", "Bearer made-up")],
        ] {
            let reply = send(&served, &method, &path, &headers).await;
            assert_eq!(
                (reply.status, code(&reply)),
                (403, "auth.origin".into()),
                "{method} {path} {headers:?}"
            );
        }
        for headers in [
            vec![],
            vec![("origin", own.as_str()), ("sec-fetch-site", "same-origin")],
            vec![("sec-fetch-site", "none")],
        ] {
            let reply = send(&served, &method, &path, &headers).await;
            assert_ne!(reply.status, 403, "{method} {path} {headers:?}: {reply:#?}");
        }
    }
    let reply = send(&served, "GET", "/api/scenes", &[("origin", "https://evil.example")]).await;
    assert_eq!(reply.status, 200);
    assert_eq!(served.get("/api/runs").await.json(), json!({"runs": []}));
}

#[tokio::test]
async fn key_is_accepted_from_any_origin() {
    let served = ServedEngine::start(Setup::offline()).await;
    let (_, key) = served.create_key("acme", "ada", KeyRules::default()).await;
    let request =
        served.request("POST", "/api/chat").bearer_auth(key).header("origin", "https://chat.example");
    let request = request.header("host", "chat.example").json(&ask("Che tempo fa a Milano?"));
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn server_without_keys_accepts_only_configured_hosts() {
    for anonymous in [false, true] {
        let setup = Setup::offline().set("auth.allow_anonymous", anonymous);
        let served =
            ServedEngine::start(setup.set("server.allowed_hosts", r#"["chat.example", "b.example:81"]"#))
                .await;
        for (host, status) in [
            ("chat.example", 200),
            ("CHAT.example:8443", 200),
            ("b.example:81", 200),
            ("b.example", 403),
            ("evil.example", 403),
            ("chat.example.evil.example", 403),
            ("localhost", 200),
            ("10.1.2.3", if anonymous { 200 } else { 403 }),
        ] {
            let reply = send(&served, "GET", "/api/scenes", &[("host", host)]).await;
            assert_eq!(reply.status, status, "{host} {anonymous}");
            if status == 403 {
                reply.assert_problem(403, "auth.host");
            }
        }
        // Behind a proxy that changes the host, pages of the configured host may write.
        let headers = [("origin", "https://chat.example"), ("sec-fetch-site", "same-origin")];
        assert_ne!(send(&served, "POST", "/api/chat", &headers).await.status, 403);
    }
}

#[tokio::test]
async fn pages_of_allowed_origins_may_use_the_server() {
    const PAGE: &str = "https://chat.example";
    for with_key in [false, true] {
        let setup = Setup::offline()
            .set("server.allowed_origins", r#"["https://chat.example", "http://b.example:81"]"#);
        let served = ServedEngine::start(setup).await;
        let key =
            if with_key { Some(served.create_key("acme", "ada", KeyRules::default()).await.1) } else { None };
        for (origin, is_allowed) in [
            (PAGE, true),
            ("https://chat.example:443", true),
            ("http://b.example:81", true),
            ("http://chat.example", false),
            ("https://chat.example:8443", false),
            ("http://b.example", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let asked = [
                ("origin", origin),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "authorization,content-type"),
            ];
            let preflight = send(&served, "OPTIONS", "/v1/chat/completions", &asked).await;
            assert_eq!(preflight.status, if is_allowed { 204 } else { 405 }, "{origin} {preflight:#?}");
            let mut request = served.request("POST", "/api/chat").header("origin", origin);
            request = request.header("sec-fetch-site", "cross-site");
            if let Some(key) = &key {
                request = request.bearer_auth(key);
            }
            let reply = Reply::of(request.json(&ask("Che tempo fa a Milano?")).send().await.unwrap()).await;
            assert_eq!(reply.status, if is_allowed || with_key { 200 } else { 403 }, "{origin} {reply:#?}");
            // A refusal can be read by the page, too.
            let refused = send(&served, "GET", "/v1/nowhere", &[("origin", origin)]).await;
            assert_eq!(refused.status, 404);
            for reply in [&preflight, &reply, &refused] {
                let allowed =
                    reply.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap());
                assert_eq!(allowed, is_allowed.then_some(origin), "{reply:#?}");
            }
            if is_allowed {
                assert_eq!(preflight.header("access-control-allow-headers"), "authorization,content-type");
                assert!(preflight.header("access-control-allow-methods").contains("POST"));
                assert_eq!(reply.header("vary"), "Origin");
                assert!(reply.header("access-control-expose-headers").contains("x-run-id"));
            }
        }
        // A request without an origin is as before.
        let plain = send(&served, "OPTIONS", "/v1/chat/completions", &[]).await;
        assert_eq!(plain.status, 405);
    }
}

#[tokio::test]
async fn replies_forbid_caching_and_content_sniffing() {
    let served = ServedEngine::start(Setup::offline()).await;
    let mut replies = Vec::new();
    for path in ["/api/scenes", "/api/nowhere", "/metrics", "/healthz", "/api/openapi.json", "/v1/models"] {
        replies.push(served.get(path).await);
    }
    replies.push(send(&served, "POST", "/api/chat", &[("origin", "null")]).await);
    let mut streamed = ask("Che tempo fa a Milano?");
    streamed["stream"] = json!(true);
    replies.push(served.post("/api/chat", &streamed).await);
    for reply in replies {
        assert_eq!(reply.header("cache-control"), "no-store", "{reply:#?}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{reply:#?}");
    }
}

#[tokio::test]
async fn request_with_two_credentials_is_refused() {
    let served = ServedEngine::start(Setup::offline()).await;
    let (_, key) = served.create_key("acme", "ada", KeyRules::default()).await;
    let bearer = format!("Bearer {key}");
    let bearer = bearer.as_str();
    for headers in [
        [("authorization", bearer), ("x-api-key", &key)],
        [("authorization", bearer), ("x-api-key", "made-up")],
        [("authorization", "Bearer made-up"), ("authorization", bearer)],
        [("x-api-key", &key), ("x-api-key", &key)],
    ] {
        send(&served, "GET", "/api/runs", &headers).await.assert_problem(400, "auth.two_credentials");
        send(&served, "GET", "/v1/models", &headers).await.assert_error(400, "auth.two_credentials");
    }
    for headers in [("authorization", bearer), ("x-api-key", &key)] {
        assert_eq!(send(&served, "GET", "/api/runs", &[headers]).await.status, 200);
    }
}

#[tokio::test]
async fn request_that_says_something_twice_in_its_headers_is_refused() {
    let served = ServedEngine::start(Setup::offline()).await;
    let body = json!({"model": "proscenium", "messages": [{"role": "user", "content": "Ciao"}]});
    for (name, values, code) in [
        ("x-session-id", ["s-1", "s-2"], "request.session"),
        ("x-documents", ["", ""], "request.documents"),
        ("x-execution-mode", ["strict", "adaptive"], "request.mode"),
        ("x-cache-mode", ["on", "off"], "request.cache_mode"),
    ] {
        let request = served.request("POST", "/v1/chat/completions").json(&body);
        let request = values.iter().fold(request, |request, value| request.header(name, *value));
        Reply::of(request.send().await.unwrap()).await.assert_error(422, code);
    }
}

#[tokio::test]
async fn dot_segments_as_conversation_names_are_refused() {
    let served = ServedEngine::start(Setup::offline()).await;
    for name in [".", ".."] {
        let mut body = ask("Che tempo fa a Milano?");
        body["session_id"] = json!(name);
        served.post("/api/chat", &body).await.assert_problem(422, "request.session");
        let body = json!({"model": "proscenium", "messages": [{"role": "user", "content": "Ciao"}]});
        let request = served.request("POST", "/v1/chat/completions").header("x-session-id", name).json(&body);
        Reply::of(request.send().await.unwrap()).await.assert_error(422, "request.session");
    }
    let mut body = ask("Che tempo fa a Milano?");
    body["session_id"] = json!("...");
    assert_eq!(served.post("/api/chat", &body).await.status, 200);
}

/// The three kinds of streams, each of a run that waits for its model.
async fn streams(served: &ServedEngine, key: &str) -> [Events; 3] {
    let open = async |method: &str, path: &str, body: Option<&Value>| {
        let request = served.request(method, path).bearer_auth(key);
        let request = body.map_or(request.try_clone().unwrap(), |body| request.json(body));
        request.send().await.unwrap()
    };
    let mut body = ask("Che tempo fa a Milano?");
    body["stream"] = json!(true);
    let chat = open("POST", "/api/chat", Some(&body)).await;
    let run = chat.headers()["x-run-id"].to_str().unwrap().to_owned();
    let again = open("GET", &format!("/api/runs/{run}/events"), None).await;
    body["model"] = json!("proscenium");
    let openai = open("POST", "/v1/chat/completions", Some(&body)).await;
    let mut streams = [Events::of(chat), Events::of(again), Events::of(openai)];
    for stream in &mut streams {
        stream.next().await.unwrap();
    }
    streams
}

/// A model that plans nothing once the gate is open.
fn held_model(gate: &Gate) -> ScriptedLlm {
    let held = gate.clone();
    ScriptedLlm::start(move |request, _| {
        let plan = json!({"needs_execution": false, "reasoning": "Nothing to do.", "steps": []});
        Scripted::forced(request, plan).held(&held)
    })
}

async fn assert_ends_without_key(mut stream: Events) {
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    let last = last.unwrap();
    assert_eq!((last.name.as_str(), &last.data["code"]), ("error", &json!("auth.key")), "{last:?}");
}

#[tokio::test]
async fn only_streams_of_a_revoked_key_end() {
    let gate = Gate::closed();
    let llm = held_model(&gate);
    let served = ServedEngine::start(Setup::scripted(&llm)).await;
    let beside = Store::open_shared(&served.dir.path().join("data")).await.unwrap();
    let (stays, other) = served.create_key("acme", "ada", KeyRules::default()).await;
    let [mut kept, ..] = streams(&served, &other).await;
    for through in [served.engine.store(), &beside] {
        let (id, secret) = served.create_key("acme", "ada", KeyRules::default()).await;
        let [chat, again, openai] = streams(&served, &secret).await;
        assert!(through.revoke_key(&id).await.unwrap());
        for stream in [chat, again] {
            assert_ends_without_key(stream).await;
        }
        let mut openai = openai;
        let mut events = Vec::new();
        while let Some(event) = openai.next().await {
            events.push(event.data);
        }
        let [.., error, done] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&error["error"]["code"], done), (&json!("auth.key"), &json!("[DONE]")));
        served.send(&secret, "GET", "/api/runs", &Value::Null).await.assert_problem(401, "auth.key");
    }
    // The stream of another key continues to the end of its run.
    gate.open();
    let mut names = Vec::new();
    while let Some(event) = kept.next().await {
        names.push(event.name);
    }
    assert!(!names.iter().any(|name| name == "error"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("run_")), "{names:?} {stays}");
}

#[tokio::test]
async fn streams_end_when_their_key_changes_role() {
    let gate = Gate::closed();
    let llm = held_model(&gate);
    let served = ServedEngine::start(Setup::scripted(&llm)).await;
    let beside = Store::open_shared(&served.dir.path().join("data")).await.unwrap();
    for through in [served.engine.store(), &beside] {
        let (id, secret) = served.create_key("acme", "ada", KeyRules::default()).await;
        let [chat, again, _] = streams(&served, &secret).await;
        assert!(through.set_role(&id, Role::Auditor).await.unwrap());
        for stream in [chat, again] {
            assert_ends_without_key(stream).await;
        }
    }
    gate.open();
}
