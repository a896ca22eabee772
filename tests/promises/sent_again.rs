//! Clients that send again by themselves, to a server that was killed in between and started again.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::process::{Desk, Held};
use crate::support::mind::Mind;
use crate::support::served::wire;
use crate::support::{Backend, Gate, Reply, ScriptedLlm, section, tool_results};

const CHAT: &str = "/v1/chat/completions";

const MIND: &str = r#"
"put": {steps: [{scene: Shelf, rounds: [[{Put: {}}]]}]}
"put at once": {steps: [{scene: Shelf, rounds: [[{Put: {}}]]}]}
"#;

/// A server in a process of its own, and what stays when it is killed: the models, and a back end that
/// counts what is put.
struct Shop {
    desk: Desk,
    /// None while it is down.
    process: Option<(Held, SocketAddr)>,
    /// How many runs have put something with "put" and now wait for the scene's model.
    put: watch::Receiver<usize>,
    /// It answers when this opens.
    go: Gate,
    backend: Backend,
    client: reqwest::Client,
    _llm: ScriptedLlm,
}

impl Shop {
    fn open() -> Self {
        let go = Gate::closed();
        let wait = go.clone();
        let (count, put) = watch::channel(0);
        let mind = Mind::read(MIND);
        let llm = ScriptedLlm::start(move |request, _| {
            let reply = mind.reply(request);
            let words = section(request, "request");
            if words.as_deref() != Some("put") || tool_results(request).is_empty() {
                return reply;
            }
            count.send_modify(|count| *count += 1);
            reply.held(&wait)
        });
        let backend = Backend::start(|_| json!({"done": true}));
        let desk = Desk::new();
        desk.write(
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
        desk.write(
            "prod.toml",
            &format!(
                "[scenes]\nallow_private_addresses = true\n\
                 [[llm.models]]\nname = \"scripted\"\nbase_url = \"{}\"\n",
                llm.base_url()
            ),
        );
        let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap();
        let mut shop = Self { desk, process: None, put, go, backend, client, _llm: llm };
        shop.start();
        shop
    }

    fn start(&mut self) {
        let line = ["serve", "--addr", "127.0.0.1:0", "--config", "prod.toml", "--scenes", "scenes"];
        let mut held = self.desk.hold(&line);
        held.read_to("http://");
        let addr = held.said().rsplit("http://").next().unwrap().trim().parse().unwrap();
        self.process = Some((held, addr));
    }

    /// Kills the process as a power failure would, and starts another in the same directory.
    fn killed_and_started(&mut self) {
        self.process.take().unwrap().0.kill();
        self.start();
    }

    fn key(&self, tenant: &str, user: &str) -> String {
        let made = self.desk.run(&["keys", "create", "--tenant", tenant, "--user", user, "--json"]);
        let made: Value = serde_json::from_str(&made.out).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    fn addr(&self) -> SocketAddr {
        self.process.as_ref().unwrap().1
    }

    /// A request whose answer nobody waits for here.
    async fn begin(&self, path: &str, headers: &str, body: &Value) -> TcpStream {
        let mut connection = TcpStream::connect(self.addr()).await.unwrap();
        connection.write_all(wire(path, headers, body).as_bytes()).await.unwrap();
        connection
    }

    async fn have_put(&self, runs: usize) {
        self.put.clone().wait_for(|count| *count >= runs).await.unwrap();
    }

    async fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Reply {
        let request = self.client.post(format!("http://{}{path}", self.addr())).json(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Reply::of(request.send().await.unwrap()).await
    }

    /// The ids of the runs there are, the oldest first.
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

/// The header of a try.
fn nth(retries: &str) -> (&str, &str) {
    ("x-stainless-retry-count", retries)
}

/// The run that a client heard of: its answer where it was carried on, and otherwise that it was cut off and
/// is not to be asked for again.
fn told_of(reply: &Reply) -> &str {
    if reply.status != 200 {
        reply.is_error(500, "run.interrupted");
        assert_eq!(reply.header("x-should-retry"), "false");
    }
    reply.header("x-run-id")
}

async fn cut_off(stream: bool) {
    let mut shop = Shop::open();
    let body = ask("put", stream);
    let _first = shop.begin(CHAT, "x-stainless-retry-count: 0\r\n", &body).await;
    shop.have_put(1).await;
    let runs = shop.runs(None).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    shop.killed_and_started();
    shop.go.open();
    for retries in ["1", "2"] {
        let reply = shop.post(CHAT, &body, &[nth(retries)]).await;
        assert_eq!(told_of(&reply), runs[0], "{reply:#?}");
    }
    assert_eq!((shop.runs(None).await, shop.backend.taken().len()), (runs.clone(), 1));
    // Somebody else who says the same has a run of its own.
    let other = shop.post(CHAT, &body, &[nth("0")]).await;
    assert!(other.status == 200 && other.header("x-run-id") != runs[0], "{other:#?}");
    assert_eq!((shop.runs(None).await.len(), shop.backend.taken().len()), (2, 1));
}

#[tokio::test]
async fn a_request_whose_server_was_killed_is_not_carried_out_again() {
    cut_off(false).await;
    cut_off(true).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_with_its_server_is_given_again() {
    let mut shop = Shop::open();
    let body = ask("put at once", false);
    let first = shop.post(CHAT, &body, &[nth("0")]).await;
    assert_eq!(first.status, 200, "{first:#?}");
    shop.killed_and_started();
    // Killed once more before the client came again.
    shop.killed_and_started();
    for stream in [false, true] {
        let reply = shop.post(CHAT, &ask("put at once", stream), &[nth("1")]).await;
        let same = reply.header("x-run-id") == first.header("x-run-id");
        // What is asked as a stream is another request.
        assert!(reply.status == 200 && same != stream, "{reply:#?}");
        assert!(stream || reply.json()["choices"] == first.json()["choices"], "{reply:#?}");
    }
    assert_eq!((shop.runs(None).await.len(), shop.backend.taken().len()), (2, 2));
}

#[tokio::test]
async fn each_of_two_who_said_the_same_gets_a_run_after_a_kill() {
    let mut shop = Shop::open();
    let body = ask("put", false);
    let mut connections = Vec::new();
    for number in 1..=2 {
        connections.push(shop.begin(CHAT, "", &body).await);
        shop.have_put(number).await;
    }
    let runs = shop.runs(None).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    shop.killed_and_started();
    shop.go.open();
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(told_of(&shop.post(CHAT, &body, &[nth("1")]).await).to_owned());
    }
    // The newest first; who comes when there is none left shares one.
    assert_eq!((&told[..2], runs.contains(&told[2])), (&[runs[1].clone(), runs[0].clone()][..], true));
    assert_eq!((shop.runs(None).await, shop.backend.taken().len()), (runs, 2));
}

#[tokio::test]
async fn a_run_of_before_a_kill_is_nobody_elses() {
    let mut shop = Shop::open();
    let [first, colleague, stranger] = [("acme", "rossi"), ("acme", "verdi"), ("other", "rossi")]
        .map(|(tenant, user)| shop.key(tenant, user));
    let body = ask("put", false);
    let _first = shop.begin(CHAT, &format!("Authorization: Bearer {first}\r\n"), &body).await;
    shop.have_put(1).await;
    shop.killed_and_started();
    shop.go.open();
    let mut told = Vec::new();
    for key in [&colleague, &stranger, &first] {
        let key = format!("Bearer {key}");
        let reply = shop.post(CHAT, &body, &[nth("1"), ("authorization", &key)]).await;
        told.push(told_of(&reply).to_owned());
    }
    let acme = shop.runs(Some(&first)).await;
    assert_eq!(acme, [told[2].clone(), told[0].clone()]);
    assert_eq!(shop.runs(Some(&stranger)).await, [told[1].clone()]);
    assert_eq!(shop.backend.taken().len(), 3);
}

#[tokio::test]
async fn a_named_request_is_carried_out_once_over_a_kill() {
    let mut shop = Shop::open();
    let mut answers = Vec::new();
    for (path, key) in [(CHAT, "ended v1"), ("/api/chat", "ended api")] {
        let mut body = ask("put at once", false);
        if path != CHAT {
            body.as_object_mut().unwrap().remove("model");
        }
        let first = shop.post(path, &body, &[("idempotency-key", key)]).await;
        assert_eq!(first.status, 200, "{first:#?}");
        answers.push((path, key, body, first));
    }
    let cut = ask("put", false);
    let _cut = shop.begin(CHAT, "Idempotency-Key: cut\r\n", &cut).await;
    shop.have_put(1).await;
    let runs = shop.runs(None).await;
    assert_eq!((runs.len(), shop.backend.taken().len()), (3, 3));
    shop.killed_and_started();
    shop.go.open();
    for (path, key, body, first) in answers {
        let again = shop.post(path, &body, &[("idempotency-key", key)]).await;
        let told = (again.status, again.header("x-run-id"), again.header("idempotent-replayed"));
        assert_eq!(told, (200, first.header("x-run-id"), "true"), "{again:#?}");
        let part = |reply: &Reply| {
            let json = reply.json();
            [json["choices"].clone(), json["answer"].clone(), json["usage"]["output_tokens"].clone()]
        };
        assert_eq!(part(&again), part(&first));
    }
    for (stream, retries) in [(false, "0"), (true, "0"), (false, "1")] {
        let reply = shop.post(CHAT, &ask("put", stream), &[("idempotency-key", "cut"), nth(retries)]).await;
        assert_eq!(told_of(&reply), runs[2], "{reply:#?}");
    }
    // One without the name is another request, whatever its try.
    let other = shop.post(CHAT, &cut, &[nth("1")]).await;
    assert!(other.status == 200 && !runs.contains(&other.header("x-run-id").to_owned()), "{other:#?}");
    assert_eq!((shop.runs(None).await.len(), shop.backend.taken().len()), (4, 1));
}
