//! Secrets do not leak: a real server that logs everything, a provider and a backend that echo whatever they
//! receive, and a search of everything that is written or published.

#![cfg(unix)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::process::Workspace;
use crate::support::model_script::ModelScript;
use crate::support::otlp_receiver::{Answers, OtlpReceiver};
use crate::support::{
    Gate, Reply, Scripted, ScriptedLlm, StreamEnd, arguments, finish, forced_tool, section, words,
};

/// In lower case, so that a lower-cased text would show it, too.
const MODEL: &str = "sk-canary-of-the-model-4f1c8e2b7a90d356";
const HEADER: &str = "canary-of-the-backend-91b7d3e5c2a84f60";
/// It is part of a URL, where some of its characters are encoded.
const QUERY: &str = "canary/of+the=address-7c5e1a9f3b82d640";
const QUERY_WRITTEN: &str = "canary%2Fof%2Bthe%3Daddress-7c5e1a9f3b82d640";
const WRONG: &str = "c0ffee00canary00c0ffee00canary00c0ffee00canary00c0ffee00canary00";
const OTLP: &str = "canary-of-the-receiver-of-traces-6b0e";
const BASIC: &str = "canary-of-another-scheme-2d6a";
/// How much of a secret is too much: a truncated text may contain only a part of one.
const PART: usize = 16;

const SCRIPT: &str = r#"
"get": {steps: [{scene: Echo, rounds: [[{Get: {}}]]}]}
"text": {steps: [{scene: Echo, rounds: [[{Text: {}}]]}]}
"fail": {steps: [{scene: Echo, rounds: [[{Fail: {}}]]}]}
"put": {steps: [{scene: Echo, rounds: [[{Put: {}}]]}]}
"hello": {says: "Good day."}
"pieces": {says: "The answer to it is in pieces."}
"called": {steps: [{scene: Echo, rounds: [[{Get: {}}]]}]}
"#;

/// The answer to `pieces` and to `called` before, between and after the keys.
const ANSWER_PARTS: [&str; 3] = ["It was sk-canary-like: ", " and ", ", which ends with sk-can"];

/// Echoes the head of every request, as JSON or as it came, with the status given in the path.
fn backend() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the test process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = echo(stream.unwrap());
        }
    });
    address
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = String::new();
    let mut lines = BufReader::new(stream.try_clone()?);
    while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head)? > 0 {}
    let path = head.split(' ').nth(1).unwrap_or_default();
    let status = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
    let json = path.contains("json");
    let (media, body) = if json {
        ("application/json", json!({"said": head}).to_string())
    } else {
        ("text/plain", head.clone())
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: {media}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn scene(backend: &str) -> String {
    let mut scene = String::from(
        "name = \"Echo\"\ndescription = \"Says back what it is told.\"\ninstructions = \"Call the tool.\"\n\
         examples = [{ say = \"Get it\", tool = \"Get\" }]\n",
    );
    for (name, method, path) in [
        ("Get", "GET", "200/json"),
        ("Text", "GET", "200/text"),
        ("Fail", "GET", "500/json"),
        ("Put", "POST", "400/text"),
    ] {
        let effect = if method == "GET" { "read" } else { "write" };
        scene.push_str(&format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"Says it back.\"\neffect = \"{effect}\"\n\
             parameters = {{ type = \"object\", properties = {{}} }}\n\
             [tools.http]\nmethod = \"{method}\"\nurl = \"{backend}/{path}?key=${{env:CANARY_QUERY}}\"\n\
             headers = {{ Authorization = \"Bearer ${{env:CANARY_HEADER}}\", X-Secret = \"${{env:CANARY_HEADER}}\" }}\n"
        ));
    }
    scene
}

fn no_plan() -> Value {
    json!({"needs_execution": false, "reasoning": "nothing is needed", "steps": []})
}

/// What a provider can echo of the key that it received.
fn provider_echo(words: &str) -> Option<Scripted> {
    let echoed = format!("authorization: Bearer {MODEL}");
    let error = |message: &str| json!({"error": {"message": message, "type": "said"}}).to_string();
    let status = |code: u16, body: String| Some(Scripted::Status { code, headers: vec![], body });
    match words {
        "refused" => status(401, error(&format!("Incorrect API key provided: {MODEL}."))),
        "headers" => status(500, echoed),
        // A text is truncated at some length; half a key is too much.
        "cut" => status(400, error(&format!("{}{MODEL}", "x".repeat(280)))),
        "cut page" => status(400, format!("{}{MODEL}", "x".repeat(275))),
        "malformed" => Some(Scripted::Malformed(format!("{{{echoed}"))),
        "cut malformed" => Some(Scripted::Malformed(format!("{{{}{MODEL}", "x".repeat(50)))),
        "no choice" => {
            Some(Scripted::Json(json!({"said": echoed, "error": {"message": echoed, "code": 418}})))
        }
        "media" => Some(Scripted::Status {
            code: 200,
            headers: vec![("content-type".into(), format!("text/html; charset={MODEL}"))],
            body: "<p>".into(),
        }),
        "words" => Some(Scripted::Text(echoed)),
        _ => None,
    }
}

const ECHOES: [&str; 9] =
    ["refused", "headers", "cut", "cut page", "malformed", "cut malformed", "no choice", "media", "words"];

/// An answer that echoes the key twice, in pieces of a few characters if it is streamed; it then pauses in
/// the middle of the second copy until the gate is open.
fn chunked_echo(request_words: &str, request: &Value, gate: &Gate) -> Option<Scripted> {
    let [before, between, after] = ANSWER_PARTS;
    let head = [before, MODEL, between, &MODEL[..20]].concat();
    let tail = [&MODEL[20..], after].concat();
    let streamed = request["stream"] == true;
    let pieces = |text: &str, event: &dyn Fn(&str) -> String| -> Vec<String> {
        text.as_bytes().chunks(3).map(|piece| event(str::from_utf8(piece).unwrap())).collect()
    };
    let in_two = |head: &str, tail: &str, event: &dyn Fn(&str) -> String, reason: &str| {
        let rest = [pieces(tail, event), vec![finish(reason)]].concat();
        Scripted::Paused(pieces(head, event), gate.clone(), Box::new(Scripted::Stream(rest, StreamEnd::Done)))
    };
    match (request_words, forced_tool(request)) {
        ("pieces", None) if streamed => Some(in_two(&head, &tail, &words, "stop")),
        ("pieces", None) => Some(Scripted::Text(head + &tail)),
        ("called", Some(name @ "CheckContinuation")) => {
            let head = format!(r#"{{"should_continue": false, "can_answer_now": true, "answer": "{head}"#);
            let tail = format!(r#"{tail}", "missing_information": null}}"#);
            Some(if streamed {
                in_two(&head, &tail, &|piece| arguments(name, piece), "tool_calls")
            } else {
                Scripted::RawCall { name: name.to_owned(), arguments: head + &tail }
            })
        }
        _ => None,
    }
}

/// Reads a reply as it arrives; opens the gate once the text between the keys has arrived.
async fn read_along(mut response: reqwest::Response, gate: &Gate) -> Reply {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut reply = Reply { status, headers, body: String::new() };
    while let Some(chunk) = response.chunk().await.unwrap() {
        reply.body.push_str(str::from_utf8(&chunk).unwrap());
        // A trailing space is shown with the text that follows it, which is held back.
        if joined(&reply).contains(ANSWER_PARTS[1].trim_end()) {
            gate.open();
        }
    }
    reply
}

/// The answer's text in the events of a stream, joined.
fn joined(reply: &Reply) -> String {
    let words = reply.events().into_iter().filter_map(|event| {
        let v1 = event.data.pointer("/choices/0/delta/content").and_then(Value::as_str);
        let own = (event.name == "answer_delta").then(|| event.data["text"].as_str()).flatten();
        v1.or(own).map(str::to_owned)
    });
    words.collect()
}

/// Everything that was written or published, each with its name.
#[derive(Default)]
struct Outputs(Vec<(String, Vec<u8>)>);

impl Outputs {
    fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((name.into(), bytes.into()));
    }

    fn reply(&mut self, name: &str, reply: &Reply) {
        self.add(name, format!("{:?}\n{}", reply.headers, reply.body));
    }

    /// Asserts that no secret and no prefix of one appears anywhere.
    fn assert_none_of(&self, secrets: &[(&str, &str)]) {
        let mut found = Vec::new();
        for (place, bytes) in &self.0 {
            // The library's search of texts is optimised in every build; one of our own is not.
            let text = String::from_utf8_lossy(bytes);
            for (of, secret) in secrets {
                if let Some(at) = text.find(&secret[..PART]) {
                    let from = text.floor_char_boundary(at.saturating_sub(160));
                    let around = &text[from..text.ceil_char_boundary(at + 80)];
                    found.push(format!("{of} in {place}: …{around}…"));
                }
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    }
}

/// A server in its own process, whose standard error goes to a file because it is long.
struct Process(Child);

impl Process {
    /// Also returns its address.
    fn start(
        mut command: Command,
        workspace: &Workspace,
    ) -> (Self, String, BufReader<std::process::ChildStdout>) {
        let log = File::create(workspace.path().join("log")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("http://") {
            line.clear();
            let read = out.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "{}", std::fs::read_to_string(workspace.path().join("log")).unwrap());
        }
        let address = format!("http://{}", line.rsplit("http://").next().unwrap().trim());
        (Self(child), address, out)
    }

    fn end(&mut self) {
        let line = format!("kill -TERM {}", self.0.id());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn chat(words: &str, stream: bool) -> [(&'static str, Value); 2] {
    let body = json!({"messages": [{"role": "user", "content": words}], "stream": stream});
    let mut v1 = body.clone();
    v1["model"] = "proscenium".into();
    [("/api/chat", body), ("/v1/chat/completions", v1)]
}

#[tokio::test]
async fn secrets_never_appear_in_logs_journal_metrics_errors_or_replies() {
    for (format, streamed) in [("text", "false"), ("json", "\"all\""), ("text", "true")] {
        assert_nothing_leaks(format, streamed).await;
    }
}

async fn assert_nothing_leaks(format: &str, streamed: &str) {
    let script = ModelScript::parse(SCRIPT);
    // The gate of the current request.
    let gate = Arc::new(Mutex::new(Gate::closed()));
    let held = gate.clone();
    let llm = ScriptedLlm::start(move |request, _| {
        let words = section(request, "request").unwrap_or_default();
        if let Some(late) = words.strip_prefix("late ") {
            // Every call succeeds until the answer, which is streamed by default.
            return match forced_tool(request) {
                Some(_) => Scripted::forced(request, no_plan()),
                None => provider_echo(late).unwrap(),
            };
        }
        let echoed_reply =
            provider_echo(&words).or_else(|| chunked_echo(&words, request, &held.lock().unwrap()));
        echoed_reply.unwrap_or_else(|| script.reply(request))
    });
    let workspace = Workspace::new()
        .with("CANARY_MODEL", MODEL)
        .with("CANARY_HEADER", HEADER)
        .with("CANARY_QUERY", QUERY)
        .with("CANARY_OTLP", &format!("authorization=Bearer%20{OTLP}"))
        .with("RUST_BACKTRACE", "1");
    workspace.write("scenes/echo/scene.toml", &scene(&backend()));
    let traces = OtlpReceiver::start([Answers::Takes]);
    workspace.write(
        "prod.toml",
        &format!(
            "[telemetry]\nlog = \"trace\"\nlog_format = \"{format}\"\n\
             [telemetry.otlp]\nendpoint = \"{}\"\nheaders_env = \"CANARY_OTLP\"\ncontent = true\n[planning]\nfallback_enabled = false\n\
             [scenes]\nallow_private_addresses = true\n\
             [llm]\nbackoff_ms = 1\nmax_attempts = 2\n[llm.breaker]\nfailures = 0\n\
             [[llm.models]]\nname = \"scripted\"\nbase_url = \"{}\"\napi_key_env = \"CANARY_MODEL\"\nstream = {streamed}\n",
            traces.address(),
            llm.base_url()
        ),
    );
    let mut outputs = Outputs::default();
    let made = workspace.run(&["keys", "create", "--tenant", "local", "--json"]);
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let secret = key.rsplit('_').next().unwrap();
    let shared = ["--config", "prod.toml", "--scenes", "scenes"];
    let line = [&["serve", "--addr", "127.0.0.1:0"][..], &shared].concat();
    let (mut process, base, mut out) = Process::start(workspace.command(&line), &workspace);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();

    let mut runs = Vec::new();
    // Where only answers are streamed, stream faults occur there.
    let place = if streamed == "true" { "late " } else { "" };
    let echoes: Vec<String> = ECHOES.iter().map(|echoes| format!("{place}{echoes}")).collect();
    let well = ["get", "text", "fail", "put", "hello", "pieces", "called"];
    for words in well.into_iter().chain(echoes.iter().map(String::as_str)) {
        for is_streamed in [false, true] {
            for (path, body) in chat(words, is_streamed) {
                let request = client.post(format!("{base}{path}")).bearer_auth(key).json(&body);
                let in_pieces = ["pieces", "called"].contains(&words);
                let go_on = Gate::closed();
                gate.lock().unwrap().clone_from(&go_on);
                if !is_streamed {
                    go_on.open();
                }
                let response = request.send().await.unwrap();
                let reply = if is_streamed && in_pieces {
                    read_along(response, &go_on).await
                } else {
                    Reply::of(response).await
                };
                assert!(![401, 403, 404, 422].contains(&reply.status), "{words}: {reply:#?}");
                if !reply.header("x-run-id").is_empty() {
                    runs.push(reply.header("x-run-id").to_owned());
                }
                let name = format!("POST {path} {words:?}, stream {is_streamed}");
                if is_streamed && reply.status == 200 {
                    let answer = joined(&reply);
                    if in_pieces {
                        let [before, between, after] = ANSWER_PARTS;
                        assert_eq!(answer, format!("{before}[key]{between}[key]{after}"), "{name}");
                    }
                    outputs.add(format!("{name}, joined"), answer);
                }
                outputs.reply(&name, &reply);
            }
        }
    }
    assert!(runs.len() >= 14, "{runs:?}");
    // Secrets of the caller, in refused requests and in an accepted one.
    let wrong = format!("psk_{id}_{WRONG}");
    let given = [format!("Bearer {wrong}"), format!("Bearer psk_{WRONG}"), format!("Basic {BASIC}")];
    for (path, body) in chat("hello", false) {
        for header in &given {
            let request = client.post(format!("{base}{path}")).header("authorization", header).json(&body);
            let reply = Reply::of(request.send().await.unwrap()).await;
            assert_eq!(reply.status, 401, "{reply:#?}");
            outputs.reply("a refused request", &reply);
        }
        for (body, status) in [("{", 400), ("{\"messages\": 1}", 422)] {
            let request = client.post(format!("{base}{path}")).header("x-api-key", key).body(body);
            let reply =
                Reply::of(request.header("content-type", "application/json").send().await.unwrap()).await;
            assert!(reply.status == status || reply.status == 400 || reply.status == 422, "{reply:#?}");
            outputs.reply("a malformed request", &reply);
        }
    }
    for head in [
        format!(
            "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nbad header\r\n\r\n"
        ),
        format!("GET /{key} HTTP/9.9\r\nX-API-Key: {key}\r\n\r\n"),
        format!(
            "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: x\r\n\r\n"
        ),
    ] {
        let mut stream = TcpStream::connect(base.trim_start_matches("http://")).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        outputs.add("a reply to an invalid request", response);
    }
    for run in &runs {
        for place in ["", "/events"] {
            let request = client.get(format!("{base}/api/runs/{run}{place}")).bearer_auth(key);
            let reply = Reply::of(request.send().await.unwrap()).await;
            assert_eq!(reply.status, 200, "{reply:#?}");
            outputs.reply(&format!("GET /api/runs/…{place}"), &reply);
        }
    }
    for path in ["/metrics", "/api/scenes", "/api/usage", "/readyz", "/healthz", "/openapi.json"] {
        let request = client.get(format!("{base}{path}")).bearer_auth(key);
        outputs.reply(path, &Reply::of(request.send().await.unwrap()).await);
    }
    outputs.add("the data directory of a running server", workspace.stored());
    process.end();
    let mut output = Vec::new();
    out.read_to_end(&mut output).unwrap();
    outputs.add("standard output", output);
    let log = std::fs::read(workspace.path().join("log")).unwrap();
    assert!(log.windows(5).any(|window| window == b"TRACE"), "everything is logged");
    outputs.add("the log", log);
    let spans = format!("{:?}", traces.spans());
    assert!(
        spans.contains("Good day.") && spans.contains("gen_ai.tool.call.result"),
        "content is switched on"
    );
    outputs.add("the spans of traces", spans);
    outputs.add("the data directory", workspace.stored());
    // One of every four is a different request.
    for run in runs.iter().step_by(4) {
        let ran = workspace.run(&["runs", "show", run, "--events"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        outputs.add("runs show --events", ran.out + &ran.err);
    }
    for line in [&["keys", "list"][..], &["keys", "list", "--json"], &[&["check"][..], &shared].concat()] {
        let ran = workspace.run(line);
        outputs.add(line.join(" "), ran.out + &ran.err);
    }
    outputs.assert_none_of(&[
        ("the model's key", MODEL),
        ("the backend's secret", HEADER),
        ("the secret in an address", QUERY),
        ("the secret in an address, as it is written there", QUERY_WRITTEN),
        ("the key of the receiver of traces", OTLP),
        ("the caller's key", secret),
        ("a wrong key", WRONG),
        ("another scheme's secret", BASIC),
    ]);
}
