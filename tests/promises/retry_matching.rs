//! Clients that retry by themselves, against a server that was killed and restarted in between.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::process::{RunningProcess, Workspace};
use crate::support::model_script::ModelScript;
use crate::support::served_engine::wire;
use crate::support::{
    Backend, Gate, Reply, ScriptedLlm, ServedEngine, Shelf, eventually, section, tool_results,
};

const CHAT: &str = "/v1/chat/completions";

const SCRIPT: &str = r#"
"put": {steps: [{scene: Shelf, rounds: [[{Put: {}}]]}]}
"put at once": {steps: [{scene: Shelf, rounds: [[{Put: {}}]]}]}
"#;

/// A server in its own process, and what survives its kill: the models, and a backend that counts writes.
struct RestartableServer {
    workspace: Workspace,
    /// `None` while it is down.
    process: Option<(RunningProcess, SocketAddr)>,
    /// How many runs have written with "put" and now wait for the scene's model.
    put: watch::Receiver<usize>,
    /// The model answers when this opens.
    go: Gate,
    backend: Backend,
    client: reqwest::Client,
    _llm: ScriptedLlm,
}

impl RestartableServer {
    fn open() -> Self {
        let go = Gate::closed();
        let wait = go.clone();
        let (count, put) = watch::channel(0);
        let script = ModelScript::parse(SCRIPT);
        let llm = ScriptedLlm::start(move |request, _| {
            let reply = script.reply(request);
            let words = section(request, "request");
            if words.as_deref() != Some("put") || tool_results(request).is_empty() {
                return reply;
            }
            count.send_modify(|count| *count += 1);
            reply.held(&wait)
        });
        let backend = Backend::start(|_| json!({"done": true}));
        let workspace = Workspace::new();
        workspace.write(
            "scenes/shelf/scene.toml",
            &format!(
                "name = \"Shelf\"\ndescription = \"Things on a shelf.\"\ninstructions = \"Put them there.\"\n\
                 examples = [{{ say = \"Put it there\", tool = \"Put\" }}]\n\
                 [[tools]]\nname = \"Put\"\ndescription = \"Puts a thing there.\"\neffect = \"write\"\n\
                 parameters = {{ type = \"object\", properties = {{}} }}\n\
                 http = {{ method = \"POST\", url = \"{}/put\" }}\n",
                backend.address()
            ),
        );
        workspace.write(
            "prod.toml",
            &format!(
                "[scenes]\nallow_private_addresses = true\n\
                 [[llm.models]]\nname = \"scripted\"\nbase_url = \"{}\"\n",
                llm.base_url()
            ),
        );
        let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap();
        let mut server = Self { workspace, process: None, put, go, backend, client, _llm: llm };
        server.start();
        server
    }

    fn start(&mut self) {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "prod.toml", "--scenes", "scenes"];
        let mut process = self.workspace.spawn(&line);
        process.read_until("http://");
        let addr = process.output().rsplit("http://").next().unwrap().trim().parse().unwrap();
        self.process = Some((process, addr));
    }

    /// Kills the process as a power failure would, and starts another in the same directory.
    fn kill_and_restart(&mut self) {
        self.process.take().unwrap().0.kill();
        self.start();
    }

    fn key(&self, tenant: &str, user: &str) -> String {
        let made = self
            .workspace
            .run(&["keys", "create", "--tenant", tenant, "--user", user, "--role", "admin", "--json"]);
        let made: Value = serde_json::from_str(&made.out).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    fn addr(&self) -> SocketAddr {
        self.process.as_ref().unwrap().1
    }

    /// A request whose answer is not awaited here.
    async fn begin(&self, path: &str, headers: &str, body: &Value) -> TcpStream {
        let mut connection = TcpStream::connect(self.addr()).await.unwrap();
        connection.write_all(wire(path, headers, body).as_bytes()).await.unwrap();
        connection
    }

    async fn wait_for_puts(&self, runs: usize) {
        self.put.clone().wait_for(|count| *count >= runs).await.unwrap();
    }

    async fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Reply {
        let request = self.client.post(format!("http://{}{path}", self.addr())).json(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Reply::of(request.send().await.unwrap()).await
    }

    /// The ids of all runs, the oldest first.
    async fn runs(&self, key: Option<&str>) -> Vec<String> {
        let request = self.client.get(format!("http://{}/api/runs", self.addr()));
        let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
        let runs = Reply::of(request.send().await.unwrap()).await.json();
        let ids = runs["runs"].as_array().unwrap().iter().rev();
        ids.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    }
}

fn ask(words: &str, stream: bool) -> Value {
    json!({"model": "proscenium", "messages": [{"role": "user", "content": words}], "stream": stream})
}

/// The retry-count header of an attempt.
fn retry_header(retries: &str) -> (&str, &str) {
    ("x-stainless-retry-count", retries)
}

/// The run whose answer a client got.
fn answered(reply: &Reply) -> &str {
    assert_eq!(reply.status, 200, "{reply:#?}");
    assert!(!reply.body.contains("\"error\"") && reply.body.contains("done"), "{reply:#?}");
    reply.header("x-run-id")
}

async fn cut_off(stream: bool) {
    let mut server = RestartableServer::open();
    let body = ask("put", stream);
    let _first = server.begin(CHAT, "x-stainless-retry-count: 0\r\n", &body).await;
    server.wait_for_puts(1).await;
    let runs = server.runs(None).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    server.kill_and_restart();
    server.go.open();
    for retries in ["1", "2"] {
        let reply = server.post(CHAT, &body, &[retry_header(retries)]).await;
        assert_eq!(answered(&reply), runs[0], "{reply:#?}");
    }
    assert_eq!((server.runs(None).await, server.backend.take_requests().len()), (runs.clone(), 1));
    // Another client with the same request has its own run.
    let other = server.post(CHAT, &body, &[retry_header("0")]).await;
    assert_ne!(answered(&other), runs[0]);
    assert_eq!((server.runs(None).await.len(), server.backend.take_requests().len()), (2, 1));
}

#[tokio::test]
async fn retry_after_a_kill_is_not_executed_again() {
    cut_off(false).await;
    cut_off(true).await;
}

#[tokio::test]
async fn retry_gets_the_answer_lost_in_a_kill() {
    let mut server = RestartableServer::open();
    let body = ask("put at once", false);
    let first = server.post(CHAT, &body, &[retry_header("0")]).await;
    assert_eq!(first.status, 200, "{first:#?}");
    server.kill_and_restart();
    // Killed once more before the client retried.
    server.kill_and_restart();
    for stream in [false, true] {
        let reply = server.post(CHAT, &ask("put at once", stream), &[retry_header("1")]).await;
        let same = reply.header("x-run-id") == first.header("x-run-id");
        // The same request as a stream is a different request.
        assert!(reply.status == 200 && same != stream, "{reply:#?}");
        assert!(stream || reply.json()["choices"] == first.json()["choices"], "{reply:#?}");
    }
    assert_eq!((server.runs(None).await.len(), server.backend.take_requests().len()), (2, 2));
}

#[tokio::test]
async fn two_identical_requests_each_get_a_run_after_a_kill() {
    let mut server = RestartableServer::open();
    let body = ask("put", false);
    let mut connections = Vec::new();
    for number in 1..=2 {
        connections.push(server.begin(CHAT, "", &body).await);
        server.wait_for_puts(number).await;
    }
    let runs = server.runs(None).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    server.kill_and_restart();
    server.go.open();
    let mut answered_runs = Vec::new();
    for _ in 0..3 {
        answered_runs.push(answered(&server.post(CHAT, &body, &[retry_header("1")]).await).to_owned());
    }
    // The newest first; a further retry shares one of them.
    assert_eq!(
        (&answered_runs[..2], runs.contains(&answered_runs[2])),
        (&[runs[1].clone(), runs[0].clone()][..], true)
    );
    assert_eq!((server.runs(None).await, server.backend.take_requests().len()), (runs, 2));
}

#[tokio::test]
async fn run_before_a_kill_matches_no_other_request() {
    let mut server = RestartableServer::open();
    let [first, colleague, other_tenant] = [("acme", "rossi"), ("acme", "verdi"), ("other", "rossi")]
        .map(|(tenant, user)| server.key(tenant, user));
    let body = ask("put", false);
    let _first = server.begin(CHAT, &format!("Authorization: Bearer {first}\r\n"), &body).await;
    server.wait_for_puts(1).await;
    server.kill_and_restart();
    server.go.open();
    let mut answered_runs = Vec::new();
    for key in [&colleague, &other_tenant, &first] {
        let key = format!("Bearer {key}");
        let reply = server.post(CHAT, &body, &[retry_header("1"), ("authorization", &key)]).await;
        answered_runs.push(answered(&reply).to_owned());
    }
    let acme = server.runs(Some(&first)).await;
    assert_eq!(acme, [answered_runs[2].clone(), answered_runs[0].clone()]);
    assert_eq!(server.runs(Some(&other_tenant)).await, [answered_runs[1].clone()]);
    assert_eq!(server.backend.take_requests().len(), 3);
}

#[tokio::test]
async fn request_with_idempotency_key_executes_once_over_a_kill() {
    let mut server = RestartableServer::open();
    let mut answers = Vec::new();
    for (path, key) in [(CHAT, "ended v1"), ("/api/chat", "ended api")] {
        let mut body = ask("put at once", false);
        if path != CHAT {
            body.as_object_mut().unwrap().remove("model");
        }
        let first = server.post(path, &body, &[("idempotency-key", key)]).await;
        assert_eq!(first.status, 200, "{first:#?}");
        answers.push((path, key, body, first));
    }
    let cut = ask("put", false);
    let _cut = server.begin(CHAT, "Idempotency-Key: cut\r\n", &cut).await;
    server.wait_for_puts(1).await;
    let runs = server.runs(None).await;
    assert_eq!((runs.len(), server.backend.take_requests().len()), (3, 3));
    server.kill_and_restart();
    server.go.open();
    for (path, key, body, first) in answers {
        let again = server.post(path, &body, &[("idempotency-key", key)]).await;
        let replayed = (again.status, again.header("x-run-id"), again.header("idempotent-replayed"));
        assert_eq!(replayed, (200, first.header("x-run-id"), "true"), "{again:#?}");
        let part = |reply: &Reply| {
            let json = reply.json();
            [json["choices"].clone(), json["answer"].clone(), json["usage"]["output_tokens"].clone()]
        };
        assert_eq!(part(&again), part(&first));
    }
    for (stream, retries) in [(false, "0"), (true, "0"), (false, "1")] {
        let reply = server
            .post(CHAT, &ask("put", stream), &[("idempotency-key", "cut"), retry_header(retries)])
            .await;
        assert_eq!(answered(&reply), runs[2], "{reply:#?}");
    }
    // A request without the key is a different one, whatever its attempt.
    let other = server.post(CHAT, &cut, &[retry_header("1")]).await;
    assert!(!runs.iter().any(|run| run == answered(&other)), "{other:#?}");
    assert_eq!((server.runs(None).await.len(), server.backend.take_requests().len()), (4, 1));
}

/// A request whose client disconnects once it is accepted: returns its run, the last of this many.
async fn disconnected_run(served: &ServedEngine, stream: bool, runs: usize) -> String {
    let _connection = served.raw(wire(CHAT, "", &ask("wait", stream)).as_bytes()).await;
    let unfinished = async || served.engine.store().unfinished_runs().await.unwrap();
    eventually("the request is accepted", async || unfinished().await.len() == runs).await;
    unfinished().await[runs - 1].run.to_string()
}

async fn retry(served: &ServedEngine, stream: bool) -> Reply {
    let (name, value) = retry_header("1");
    let request = served.request("POST", CHAT).header(name, value).json(&ask("wait", stream));
    Reply::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn client_learns_of_interruption_when_runs_are_not_resumed() {
    let (shelf, served) = Shelf::serve().await;
    let run = disconnected_run(&served, false, 1).await;
    let named = served.request("POST", "/api/chat").header("idempotency-key", "k-1");
    let body = json!({"messages": [{"role": "user", "content": "put"}]});
    let named = tokio::spawn(named.json(&body).send());
    shelf.started.wait_open().await;
    served.engine.shut_down().await.unwrap();
    let dir = served.dir.clone();
    drop(served);
    drop(named.await);
    let served = ServedEngine::start(shelf.setup().on(&dir)).await;
    for _ in 0..2 {
        let reply = retry(&served, false).await;
        let error = reply.assert_error(500, "run.interrupted");
        assert!(error["message"].as_str().unwrap().contains(&run), "{error:#}");
        assert_eq!((reply.header("x-should-retry"), reply.header("x-run-id")), ("false", run.as_str()));
    }
    let named = served.request("POST", "/api/chat").header("idempotency-key", "k-1").json(&body);
    Reply::of(named.send().await.unwrap()).await.assert_problem(500, "run.interrupted");
    assert_eq!(served.get("/api/runs").await.json()["runs"].as_array().unwrap().len(), 2);
    // A stream is a different request: its run is a new one.
    shelf.go.open();
    assert_ne!(retry(&served, true).await.header("x-run-id"), run);
    served.engine.resume_unfinished().await.unwrap();
    let reply = retry(&served, false).await;
    assert_eq!((reply.status, reply.header("x-run-id")), (200, run.as_str()), "{reply:#?}");
    assert_eq!(shelf.puts(), 1);
}

#[tokio::test]
async fn retry_moves_its_run_to_the_front_of_recovery() {
    let (shelf, served) = Shelf::serve().await;
    // As many conversations as are resumed at once.
    for number in 0..64 {
        drop(served.submit(&format!("s-{number}"), "wait").await.unwrap());
    }
    let runs = [disconnected_run(&served, false, 65).await, disconnected_run(&served, true, 66).await];
    served.engine.shut_down().await.unwrap();
    let dir = served.dir.clone();
    drop(served);
    let served = ServedEngine::start(shelf.setup().on(&dir)).await;
    assert_eq!(served.engine.resume_unfinished().await.unwrap(), 66);
    let opened = async {
        for run in &runs {
            while served.engine.watch(&served.tenant, run.parse().unwrap()).is_none() {
                tokio::task::yield_now().await;
            }
        }
        shelf.go.open();
    };
    let (whole, streamed, ()) = tokio::join!(retry(&served, false), retry(&served, true), opened);
    assert_eq!((whole.status, whole.header("x-run-id")), (200, runs[0].as_str()), "{whole:#?}");
    assert_eq!((streamed.status, streamed.header("x-run-id")), (200, runs[1].as_str()), "{streamed:#?}");
    let words = whole.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let deltas = streamed
        .events()
        .into_iter()
        .filter_map(|event| event.data["choices"][0]["delta"]["content"].as_str().map(str::to_owned));
    assert_eq!(deltas.collect::<String>(), words);
}
