//! The log of a server: JSON that a collector can read, with the ids of what each line is about.

#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::process::{RunningProcess, Workspace};
use super::support::model_script::ModelScript;
use super::support::{FaultyBackend, Misbehaviour, Reply, Scripted, ScriptedLlm, section};

const SCRIPT: &str = r#"
"look": {steps: [{scene: Shop, rounds: [[{Look: {}}]]}]}
"lose it": {steps: [{scene: Shop, rounds: [[{Put: {}}]]}]}
"put it away": {steps: [{scene: Shop, rounds: [[{Put: {}}]]}]}
"hello": {says: "Good day."}
"#;

const CONFIG: &str = "[server]\naccess_log = true\nmax_body_bytes = 2048\n[telemetry]\nlog = \"info\"\n\
     log_format = \"json\"\n[scenes]\nallow_private_addresses = true\n[planning]\nfallback_enabled = false\n\
     [execution]\nconfirm = \"never\"\n[llm]\nbackoff_ms = 1\nmax_attempts = 1\n[llm.breaker]\nfailures = 0\n";

fn scene(backend: &str) -> String {
    let mut scene = String::from(
        "name = \"Shop\"\ndescription = \"The shop.\"\ninstructions = \"Call the tool.\"\n\
         examples = [{ say = \"Look\", tool = \"Look\" }]\n",
    );
    for (name, method, effect) in [("Look", "GET", "read"), ("Put", "POST", "write")] {
        scene.push_str(&format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"Does it.\"\neffect = \"{effect}\"\n\
             parameters = {{ type = \"object\", properties = {{}} }}\n\
             http = {{ method = \"{method}\", url = \"{backend}/{name}\" }}\n"
        ));
    }
    scene
}

/// A server over a back end that fails, and its log.
struct LoggedServer {
    workspace: Workspace,
    process: RunningProcess,
    base: String,
    client: reqwest::Client,
    _llm: ScriptedLlm,
}

impl LoggedServer {
    fn start(config: &str, env: &[(&str, String)]) -> Self {
        let script = ModelScript::parse(SCRIPT);
        let llm = ScriptedLlm::start(move |request, _| match section(request, "request").as_deref() {
            Some("no model") => Scripted::status(500),
            _ => script.reply(request),
        });
        let backend = FaultyBackend::start(|place, _| match place {
            "GET /Look" => Misbehaviour::Status(503, vec![]),
            _ => Misbehaviour::HangUp,
        });
        let workspace = Workspace::new().with("OPENAI_BASE_URL", llm.base_url());
        workspace.write("scenes/shop/scene.toml", &scene(backend.address()));
        workspace.write("prod.toml", config);
        let mut process = workspace.spawn_with(&Self::LINE, env);
        process.read_until("http://");
        let base = format!("http://{}", process.output().rsplit("http://").next().unwrap().trim());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { workspace, process, base, client, _llm: llm }
    }

    const LINE: [&str; 7] = ["serve", "--addr", "127.0.0.1:0", "--config", "prod.toml", "--scenes", "scenes"];

    async fn get(&self, path: &str) -> Reply {
        Reply::of(self.client.get(format!("{}{path}", self.base)).send().await.unwrap()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        Reply::of(self.client.post(format!("{}{path}", self.base)).json(body).send().await.unwrap()).await
    }

    /// The id of the run that a message started, and its reply.
    async fn say(&self, words: &str, stream: bool) -> (String, Reply) {
        let message = json!({"role": "user", "content": words});
        let body = json!({"messages": [message], "session_id": "s-1", "stream": stream});
        let reply = self.post("/api/chat", &body).await;
        (reply.header("x-run-id").to_owned(), reply)
    }
}

/// The lines of a log that has nothing but JSON, one object a line.
fn lines(log: &str) -> Vec<Value> {
    let line = |line: &str| -> Value {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{log}"));
        for key in ["timestamp", "level", "target"] {
            assert!(line[key].is_string(), "{key}: {line}");
        }
        // Lines of libraries may have none.
        let is_own = line["target"].as_str().unwrap().starts_with("proscenium");
        assert!(!is_own || line["message"].is_string(), "{line}");
        line
    };
    log.lines().map(line).collect()
}

fn has(line: &Value, message: &str) -> bool {
    line["message"].as_str().is_some_and(|text| text.contains(message))
}

/// The only line with this message that is about this run and has all three ids.
fn about<'l>(lines: &'l [Value], run: &str, message: &str) -> &'l Value {
    let all: Vec<&Value> = lines.iter().filter(|line| line["run"] == run && has(line, message)).collect();
    assert_eq!(all.len(), 1, "{message}: {lines:#?}");
    assert_eq!((&all[0]["session"], &all[0]["tenant"]), (&json!("s-1"), &json!("local")), "{:#}", all[0]);
    all[0]
}

#[tokio::test]
async fn everything_on_standard_error_is_json_with_the_ids_of_runs_and_requests() {
    let panics = [
        ("CRASH_POINT_AT", "after:tool_started".to_owned()),
        ("CRASH_POINT_WORDS", "put it away".to_owned()),
        ("CRASH_POINT_PANICS", "1".to_owned()),
    ];
    let mut server = LoggedServer::start(CONFIG, &panics);
    let (looked, _) = server.say("look", false).await;
    let (lost, _) = server.say("lose it", false).await;
    let (interrupted, _) = server.say("put it away", false).await;
    let (unasked, _) = server.say("no model", false).await;
    let (streamed, events) = server.say("hello", true).await;
    assert!(!events.events().is_empty());
    let run = server.get(&format!("/api/runs/{looked}?key=canary")).await;
    let task = run.json()["task_id"].as_str().unwrap().to_owned();
    assert_eq!((run.status, server.get(&format!("/api/plans/{task}")).await.status), (200, 200));
    let wrong = format!("psk_0_{}", "0".repeat(64));
    let refused = server.client.get(format!("{}/api/runs", server.base)).bearer_auth(wrong);
    assert_eq!(refused.send().await.unwrap().status(), 401);
    assert_eq!(server.get("/api/nowhere/canary").await.status, 404);
    assert_eq!(server.say(&"long ".repeat(1000), false).await.1.status, 413);

    // Another server does not start on the same data, and one with a wrong configuration on none.
    let second = server.workspace.run(&LoggedServer::LINE);
    fs::write(server.workspace.path().join("prod.toml"), format!("{CONFIG}max_steps = 0\n")).unwrap();
    let faulty = server.workspace.run(&LoggedServer::LINE);
    server.process.signal("HUP");
    server.process.read_stderr_until("stays in force");
    server.process.signal("TERM");
    let ended = server.process.end();
    assert_eq!((ended.status, second.status, faulty.status), (0, 1, 2), "{second:?} {faulty:?}");
    assert_eq!(lines(&second.err).last().unwrap()["code"], "store.in_use");
    assert!(lines(&faulty.err).iter().any(|line| line["code"] == "config.unknown_key"), "{faulty:?}");

    let log = lines(&ended.err);
    assert!(!ended.err.contains("canary"), "{}", ended.err);
    let failed = about(&log, &looked, "tool call failed");
    assert_eq!((&failed["level"], &failed["code"]), (&json!("WARN"), &json!("http.status")), "{failed:#}");
    assert_eq!(failed["reason"], "the back end answered with status 503");
    let unknown = about(&log, &lost, "the outcome of a write is unknown");
    assert_eq!((&unknown["tool"], &unknown["code"]), (&json!("Put"), &json!("http.connection_lost")));
    assert_eq!(about(&log, &interrupted, "a thread panicked")["code"], "server.panic");
    let unknown = about(&log, &interrupted, "the outcome of a write is unknown");
    assert_eq!((&unknown["tool"], &unknown["code"]), (&json!("Put"), &json!("tool.interrupted")));
    let gateway = log.iter().filter(|line| line["target"] == "proscenium::llm::gateway");
    let unanswered: Vec<&Value> = gateway.filter(|line| line["run"] == unasked).collect();
    assert!(!unanswered.is_empty(), "{log:#?}");
    for line in log.iter().filter(|line| line["run"].is_string()) {
        assert!(line["tenant"] == "local" && line["session"] == "s-1", "{line:#}");
    }
    let said = |text: &str| log.iter().any(|line| has(line, text));
    assert!(said("SIGTERM: finishing accepted requests") && said("SIGHUP: the configuration has faults"));

    let access: Vec<&Value> = log.iter().filter(|line| line["target"] == "proscenium::access").collect();
    assert_eq!(access.len(), 10, "{access:#?}");
    let found = |route: &str, status: u16| {
        let is_it = |line: &&&Value| line["route"] == route && line["status"] == status;
        *access.iter().find(is_it).unwrap_or_else(|| panic!("no {status} of {route} in {access:#?}"))
    };
    let one = found("/api/runs/{run_id}", 200);
    assert_eq!(
        (&one["run"], &one["method"], &one["tenant"]),
        (&json!(looked), &json!("GET"), &json!("local"))
    );
    let plan = found("/api/plans/{task_id}", 200);
    assert_eq!((&plan["run"], &plan["session"]), (&json!(looked), &json!("s-1")), "{plan:#}");
    assert!(one["ms"].is_f64() && one["bytes"].as_u64().unwrap() > 100 && one["cut"].is_null(), "{one:#}");
    let denied = found("/api/runs", 401);
    assert_eq!((&denied["code"], &denied["tenant"]), (&json!("auth.key"), &Value::Null));
    assert_eq!(found("other", 404)["code"], "request.address");
    assert_eq!(found("/api/chat", 413)["code"], "request.too_large");
    let stream = access.iter().find(|line| line["run"] == streamed).unwrap();
    assert_eq!((&stream["status"], &stream["cut"]), (&json!(200), &Value::Null), "{stream:#}");
    assert_eq!(stream["bytes"], events.body.len(), "{stream:#}");
}

#[tokio::test]
async fn unread_log_stops_no_request() {
    let config = CONFIG.replace("\"info\"", "\"trace\"");
    let mut server = LoggedServer::start(&config, &[]);
    // The pipe has room for 64 KiB, and the queue for 4 MiB.
    let mut sent = 0;
    while server.get(&format!("/healthz?{}", "x".repeat(4000))).await.status == 200 && sent < 200 {
        sent += 1;
    }
    assert_eq!(sent, 200);
    let (_, reply) = server.say("hello", false).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    // Once it is read, it goes on.
    server.process.signal("TERM");
    server.process.read_stderr_until("finishing accepted requests");
    let ended = server.process.end();
    assert_eq!(ended.status, 0);
    assert!(ended.err.len() > 128 << 10, "{} bytes", ended.err.len());
    lines(&ended.err);
}

#[tokio::test]
async fn malformed_requests_are_not_logged_as_errors() {
    let server = LoggedServer::start(CONFIG, &[]);
    let mut scanner = TcpStream::connect(server.base.trim_start_matches("http://")).unwrap();
    scanner.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nNo header\r\n\r\n").unwrap();
    let mut reply = String::new();
    scanner.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
    server.process.signal("TERM");
    let log = server.process.end().err;
    assert!(lines(&log).iter().all(|line| line["level"] != "ERROR"), "{log}");
}
