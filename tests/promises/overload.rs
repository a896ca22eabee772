//! Overload and shutdown: accepted requests finish.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::process::Workspace;
use crate::server_api::ask;
use crate::support::served_engine::{Events, read_to_end, wire};
use crate::support::{Gate, Reply, ServedEngine, Shelf};

fn in_session(words: &str, session: &str) -> Value {
    let mut body = ask(words);
    body["session_id"] = json!(session);
    body
}

fn completion(words: &str) -> Value {
    let mut body = ask(words);
    body["model"] = json!("proscenium");
    body
}

#[tokio::test]
async fn excess_requests_are_shed_and_accepted_ones_finish() {
    let shelf = Shelf::new();
    let served = ServedEngine::start(shelf.setup().set("server.max_in_flight", 2)).await;
    let mut process = Vec::new();
    for words in ["put", "wait"] {
        let mut body = ask(words);
        body["stream"] = json!(true);
        process.push(Events::of(served.request("POST", "/api/chat").json(&body).send().await.unwrap()));
    }
    shelf.started.wait_open().await;
    shelf.asked.wait_open().await;
    let reply = served.post("/api/chat", &ask("look")).await;
    let problem = reply.assert_problem(503, "server.overloaded");
    assert_eq!(reply.header("retry-after"), problem["retry_after"].to_string());
    let reply = served.post("/v1/chat/completions", &completion("look")).await;
    reply.assert_error(503, "server.overloaded");
    assert_eq!((reply.header("retry-after"), reply.header("x-should-retry")), ("1", "true"));
    served
        .post("/api/planning/plan", &json!({"message": "look"}))
        .await
        .assert_problem(503, "server.overloaded");
    // Routes that do not use the assistant still work.
    assert_eq!(served.get("/api/runs").await.json()["runs"].as_array().unwrap().len(), 2);
    assert_eq!(served.get("/readyz").await.status, 200);
    shelf.done.open();
    shelf.go.open();
    for events in &mut process {
        let mut last = None;
        while let Some(event) = events.next().await {
            last = Some(event.name);
        }
        assert_eq!(last.as_deref(), Some("run_completed"));
    }
    // Their permits are free again as soon as each has ended.
    while served.post("/api/chat", &ask("look")).await.status == 503 {}
    assert_eq!(served.post("/api/chat", &ask("look")).await.status, 200);
}

#[tokio::test]
async fn full_conversation_queue_is_refused_with_retry_after() {
    let shelf = Shelf::new();
    let served = ServedEngine::start(shelf.setup().set("execution.max_queued_requests", 1)).await;
    let process = served.request("POST", "/api/chat").json(&in_session("wait", "s-1")).send();
    let process = tokio::spawn(process);
    shelf.asked.wait_open().await;
    let mut queued = in_session("look", "s-1");
    queued["stream"] = json!(true);
    let queued = served.request("POST", "/api/chat").json(&queued).send().await.unwrap();
    assert_eq!(queued.status(), 200);
    let refused = served.post("/api/chat", &in_session("look", "s-1")).await;
    refused.assert_problem(429, "session.queue_full");
    assert!(!refused.header("retry-after").is_empty(), "{refused:#?}");
    let request = served.request("POST", "/v1/chat/completions").header("x-session-id", "s-1");
    let refused = Reply::of(request.json(&completion("look")).send().await.unwrap()).await;
    refused.assert_error(429, "session.queue_full");
    assert_eq!(refused.header("x-should-retry"), "true");
    // Another conversation has its own queue.
    assert_eq!(served.post("/api/chat", &in_session("look", "s-2")).await.status, 200);
    shelf.go.open();
    assert_eq!(process.await.unwrap().unwrap().status(), 200);
    assert_eq!(Reply::of(queued).await.events().last().unwrap().name, "run_completed");
}

#[tokio::test]
async fn burst_of_requests_is_answered_completely() {
    let shelf = Shelf::new();
    let served = ServedEngine::start(shelf.setup().set("server.max_in_flight", 4)).await;
    let replies =
        join_all((0..40).map(|_| async { served.post("/api/chat", &ask("put at once")).await })).await;
    let answered = replies.iter().filter(|reply| reply.status == 200).count();
    assert!(answered >= 4, "{answered}");
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        reply.assert_problem(503, "server.overloaded");
    }
    assert_eq!(shelf.puts(), answered, "refused requests were not executed");
}

#[tokio::test]
async fn stopping_server_finishes_accepted_requests() {
    let shelf = Shelf::new();
    let mut served = ServedEngine::start(shelf.setup().set("server.drain_timeout_ms", 60_000)).await;
    let process = served.request("POST", "/api/chat").json(&ask("put")).send();
    let process = tokio::spawn(process);
    // The client of this request disconnects; the server still waits for its run.
    let gone = served.raw(wire("/api/chat", "", &ask("wait")).as_bytes()).await;
    shelf.started.wait_open().await;
    shelf.asked.wait_open().await;
    drop(gone);
    let addr = served.addr();
    let stopping = tokio::spawn(served.take_server().stop());
    while tokio::net::TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished());
    shelf.done.open();
    let reply = Reply::of(process.await.unwrap().unwrap()).await;
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")));
    assert!(!stopping.is_finished());
    shelf.go.open();
    assert!(stopping.await.unwrap());
    assert_eq!(served.engine.runs_in_flight(), 0);
}

/// A process that serves with a scripted model that holds every request until `go` opens.
#[cfg(unix)]
mod process {
    use super::*;
    use crate::process::{RunningProcess, SHIPPED};
    use crate::support::model_script::ModelScript;
    use crate::support::{Scripted, ScriptedLlm, forced_tool, section};

    const WORDS: &str = "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno";

    struct Serving {
        workspace: Workspace,
        process: RunningProcess,
        addr: String,
        asked: Gate,
        go: Gate,
        _llm: ScriptedLlm,
    }

    fn serve() -> Serving {
        let (asked, go) = (Gate::closed(), Gate::closed());
        let (reached, wait) = (asked.clone(), go.clone());
        let script = ModelScript::for_scenarios();
        let llm = ScriptedLlm::start(move |request, _| {
            assert_eq!(section(request, "request").as_deref(), Some(WORDS));
            reached.open();
            script.reply(request).held(&wait)
        });
        let workspace =
            Workspace::new().with("OPENAI_BASE_URL", llm.base_url()).with("OPENAI_API_KEY", "sk-test");
        let mut process = workspace.spawn(&["serve", "--addr", "127.0.0.1:0"]);
        process.read_until("http://");
        let output = process.output().to_owned();
        let addr = output.rsplit("http://").next().unwrap().trim().to_owned();
        Serving { workspace, process, addr, asked, go, _llm: llm }
    }

    async fn send(serving: &Serving) -> tokio::task::JoinHandle<String> {
        let mut stream = tokio::net::TcpStream::connect(&serving.addr).await.unwrap();
        let request = wire("/api/chat", "Connection: close\r\n", &ask(WORDS));
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        serving.asked.wait_open().await;
        tokio::spawn(async move { read_to_end(&mut stream).await })
    }

    #[tokio::test]
    async fn sigterm_drains_accepted_requests_and_accepts_no_more() {
        let serving = serve();
        let reply = send(&serving).await;
        serving.process.signal("TERM");
        while tokio::net::TcpStream::connect(&serving.addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(!reply.is_finished());
        serving.go.open();
        let reply = reply.await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        assert!(reply.contains("\"status\":\"completed\""), "{reply}");
        let ran = serving.process.end();
        assert_eq!(ran.status, 0, "{ran:#?}");
    }

    #[tokio::test]
    async fn second_signal_exits_immediately_and_leaves_the_run_unfinished() {
        let serving = serve();
        let reply = send(&serving).await;
        serving.process.signal("TERM");
        while tokio::net::TcpStream::connect(&serving.addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
        serving.process.signal("TERM");
        let ran = serving.process.end();
        assert_eq!(ran.status, 1, "{ran:#?}");
        assert!(!reply.await.unwrap().contains("\"status\":\"completed\""));
        let shown = serving.workspace.run(&["runs"]);
        assert!(shown.out.contains("running"), "{shown:#?}");
    }

    #[tokio::test]
    async fn requests_beyond_the_limit_of_open_files_wait_and_are_answered() {
        let llm = ScriptedLlm::start(|request, _| match forced_tool(request) {
            Some(_) => Scripted::forced(
                request,
                json!({"needs_execution": false, "reasoning": "A greeting.", "steps": []}),
            ),
            None => Scripted::Text("Hello.".to_owned()),
        });
        let workspace = Workspace::new()
            .with("OPENAI_BASE_URL", llm.base_url())
            .with("OPENAI_API_KEY", "sk-test")
            .with("PROSCENIUM__PLANNING__FALLBACK_ENABLED", "false");
        let limited = |files: u32| {
            let command = format!("ulimit -n {files} && exec \"$0\" serve --addr 127.0.0.1:0");
            workspace.spawn_program("/bin/sh", &["-c", &command, SHIPPED], &[])
        };
        let mut process = limited(160);
        process.read_until("http://");
        let addr = process.output().rsplit("http://").next().unwrap().trim().to_owned();
        let clients = (0..200).map(|n| {
            let (addr, request) =
                (addr.clone(), wire("/api/chat", "Connection: close\r\n", &ask(&format!("hello {n}"))));
            async move {
                let mut stream = tokio::net::TcpStream::connect(&addr).await.unwrap();
                tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
                read_to_end(&mut stream).await
            }
        });
        for reply in futures::future::join_all(clients).await {
            assert!(
                reply.starts_with("HTTP/1.1 200") && reply.contains("\"status\":\"completed\""),
                "{reply}"
            );
        }
        process.signal("TERM");
        let ran = process.end();
        assert!(ran.status == 0 && ran.err.contains("server.open_files"), "{ran:#?}");
        let refused = limited(64).end();
        assert!(refused.status == 1 && refused.err.contains("error[server.open_files]"), "{refused:#?}");
    }
}
