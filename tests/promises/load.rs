//! `proscenium load`: the real program against the real server, and against one that misbehaves.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::process::{ProcessOutput, RunningProcess, Workspace};
use crate::support::{ServedEngine, Setup};

/// Runs `load` in a process, while the server of the test goes on.
async fn load(workspace: &Arc<Workspace>, url: String, more: &[&str]) -> ProcessOutput {
    let mut words = vec!["load".to_owned(), url];
    words.extend(more.iter().map(|&word| word.to_owned()));
    let workspace = workspace.clone();
    let run = move || workspace.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn report(workspace: &Workspace, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(workspace.path().join(name)).unwrap()).unwrap()
}

/// Two turns of one conversation, and single requests, which no other request equals.
const MIX: &str = r#"
scenarios:
  - id: two-turns
    turns: [{say: "Qual è il mio nome completo?"}, {say: "Quanti giorni di ferie ho?"}]
  - id: one
    weight: 2
    turns: [{say: "How many vacation days do I have left?"}]
"#;

#[tokio::test]
async fn short_load_has_no_error_and_each_request_is_executed_once() {
    let served = ServedEngine::start(Setup::offline()).await;
    let workspace = Arc::new(Workspace::bare());
    workspace.write("mix.yaml", MIX);
    let url = format!("http://{}", served.addr());
    let files = ["--mix", "mix.yaml", "--json", "a.json", "--html", "a.html"];
    let ran =
        load(&workspace, url.clone(), &[&["--sessions", "8", "--requests", "40"], &files[..]].concat()).await;
    assert_eq!(ran.status, 0, "{ran:#?}");
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80) && ran.err.is_empty(), "{ran:#?}");
    let first = report(&workspace, "a.json");
    assert_eq!(first["requests"]["answered"], 40, "{first:#}");
    assert_eq!(first["statuses"], json!({"completed": 40}), "{first:#}");
    let ends = &first["ends"];
    assert_eq!(
        (&ends["accepted"], &ends["ended"], &ends["lost"], &ends["duplicates"]),
        (&json!(40), &json!(40), &json!(0), &json!(0))
    );
    // What the client waited for beyond models and tools has at least what the server knows of.
    let p50 = |family: &str| first["measures"][format!("p50_{family}")].as_f64().unwrap();
    assert!(p50("latency") >= p50("overhead") && p50("overhead") >= p50("server_overhead"), "{first:#}");
    assert_eq!(first["usage"]["llm_calls"].as_u64().map(|calls| calls >= 40), Some(true), "{first:#}");
    let server = |figure: &str| first["server"][figure].as_f64();
    assert!(server("cpu_seconds") > Some(0.0) && server("memory_max_bytes") > Some(1e6), "{first:#}");
    let page = std::fs::read_to_string(workspace.path().join("a.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("40 answered"), "{page}");

    // The OpenAI protocol, streamed, against the earlier report: another load, and a requirement that is broken.
    let more = [
        "--mix", "mix.yaml", "--sessions", "4", "--requests", "8", "--stream", "--against", "a.json",
        "--json", "b.json",
    ];
    let ran =
        load(&workspace, format!("{url}/v1"), &[&more[..], &["--require", "answered>=9"]].concat()).await;
    assert_eq!(ran.status, 1, "{ran:#?}");
    assert!(ran.out.contains("BROKEN      answered>=9") && ran.out.contains("sessions: 8 → 4"), "{ran:#?}");
    let second = report(&workspace, "b.json");
    assert_eq!(
        (&second["requests"]["answered"], &second["ends"]["ended"]),
        (&json!(8), &json!(8)),
        "{second:#}"
    );
    assert_eq!(
        (&second["first_token"]["count"], &second["overhead"]["count"]),
        (&json!(8), &json!(8)),
        "{second:#}"
    );
    assert_eq!(second["ends"]["duplicates"], 0, "{second:#}");
}

#[tokio::test]
async fn load_ends_and_says_why_where_every_request_is_refused_for_its_key() {
    let served = ServedEngine::start(Setup::offline()).await;
    let workspace = Arc::new(Workspace::bare());
    workspace.write("keys", "mistyped psk_none\n");
    let long = ["--duration", "10m", "--keys", "keys", "--json", "a.json"];
    let ran = load(&workspace, format!("http://{}", served.addr()), &long).await;
    assert!(ran.status == 1 && ran.out.contains("set PROSCENIUM_API_KEY to a key"), "{ran:#?}");
    let report = report(&workspace, "a.json");
    assert_eq!((&report["ended"], &report["requests"]["answered"]), (&json!("denied"), &json!(0)));
    let requests = &report["requests"];
    assert!(
        requests["denied"] == requests["errors"] && requests["denied"].as_u64() < Some(100),
        "{report:#}"
    );
}

#[tokio::test]
async fn overloaded_server_sheds_and_what_it_accepted_ends() {
    let served = ServedEngine::start(Setup::offline().set("server.max_in_flight", 1)).await;
    let workspace = Arc::new(Workspace::bare());
    // More requests at once than the server takes.
    let flood = ["--rate", "2000", "--requests", "40", "--json", "a.json", "--require", "shed>0"];
    let ran = load(&workspace, format!("http://{}", served.addr()), &flood).await;
    assert_eq!(ran.status, 0, "{ran:#?}");
    let report = report(&workspace, "a.json");
    let count = |name: &str| report["requests"][name].as_u64().unwrap();
    assert_eq!(
        (count("sent"), count("answered") + count("shed"), count("errors")),
        (40, 40, 0),
        "{report:#}"
    );
    assert_eq!(count("shed_without_retry_after"), 0, "{report:#}");
    assert_eq!(report["codes"]["server.overloaded"], count("shed"), "{report:#}");
    let ends = &report["ends"];
    assert_eq!((&ends["accepted"], &ends["lost"]), (&json!(count("answered")), &json!(0)), "{report:#}");
    // With one request in flight the loader does not send the rest, and says so.
    let kept = ["--rate", "2000", "--requests", "10", "--max-in-flight", "1"];
    let ran = load(&workspace, format!("http://{}", served.addr()), &kept).await;
    assert!(ran.status == 1 && ran.out.contains("BROKEN      not_sent=0"), "{ran:#?}");
}

/// The short form of a load beyond what the server takes, with a model that takes its time: what was accepted ends once,
/// the rest is told to come again, and another tenant's requests are served meanwhile.
#[tokio::test]
async fn flood_of_one_tenant_is_shed_and_another_tenant_is_served() {
    let workspace = Workspace::new()
        .with("PROSCENIUM__SERVER__MAX_IN_FLIGHT", "16")
        // So that a request takes 0.3 s at least, and the server 53 requests a second at most.
        .with("PROSCENIUM__CACHE__MAX_BYTES", "0")
        .with("PROSCENIUM__SERVER__OPEN_METRICS", "true");
    workspace.write("model.toml", "[latency.first_token]\nshape = \"fixed\"\nms = 150\n");
    workspace.write("mix.yaml", MIX);
    for tenant in ["flood", "other"] {
        let key = workspace.run(&["keys", "create", "--tenant", tenant]).out;
        workspace.write(tenant, &format!("{tenant} {key}"));
    }
    let mut model = workspace.spawn(&["simulate-llm", "--addr", "127.0.0.1:0", "--profile", "model.toml"]);
    model.read_until("http://");
    let address =
        |process: &RunningProcess| process.output().trim_end().rsplit(' ').next().unwrap().to_owned();
    let env = [("OPENAI_BASE_URL", address(&model))];
    let mut server = workspace.spawn_with(&["serve", "--addr", "127.0.0.1:0"], &env);
    server.read_until("http://");
    let (url, workspace) = (address(&server), Arc::new(workspace));

    let flood = [
        "--keys", "flood", "--mix", "mix.yaml", "--rate", "200", "--requests", "300", "--json", "flood.json",
    ];
    let other = [
        "--keys", "other", "--mix", "mix.yaml", "--sessions", "1", "--requests", "5", "--json", "other.json",
    ];
    let loads = tokio::join!(load(&workspace, url.clone(), &flood), load(&workspace, url, &other));
    assert_eq!((loads.0.status, loads.1.status), (0, 0), "{loads:#?}");
    let (flood, other) = (report(&workspace, "flood.json"), report(&workspace, "other.json"));
    let count = |report: &Value, name: &str| report["requests"][name].as_u64().unwrap();
    assert_eq!((count(&other, "answered"), count(&other, "shed")), (5, 0), "{other:#}");
    assert!(count(&flood, "shed") > 0 && count(&flood, "answered") > 0, "{flood:#}");
    assert_eq!((count(&flood, "errors"), count(&flood, "shed_without_retry_after")), (0, 0), "{flood:#}");
    for ends in [&flood["ends"], &other["ends"]] {
        assert_eq!((&ends["lost"], &ends["duplicates"]), (&json!(0), &json!(0)), "{ends:#}");
    }
    let grown = flood["measures"]["server_memory_growth"].as_f64().unwrap();
    assert!(grown < 100e6, "{flood:#}");
}

/// What a server does with a request.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// Answers, and executes it once.
    Once,
    /// Answers, and executes it twice.
    Twice,
    /// Answers, and forgets the run.
    Forget,
    /// Begins a run that never ends, and breaks the connection.
    Cut,
    /// Refuses, and does not say when to come again.
    Refuse,
    /// Refuses, and executes it nevertheless.
    RefuseAndDo,
    /// Fails.
    Fail,
}

/// A server that speaks `/api` and misbehaves. Its threads end with the test's process.
struct BadServer {
    address: String,
}

/// Runs by id, with the conversation and the status.
type BadRuns = Mutex<BTreeMap<Uuid, (String, &'static str)>>;

impl BadServer {
    /// Each next request meets the next deed; the last one repeats.
    fn start(deeds: &'static [Deed]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new((Mutex::new(0), BadRuns::default()));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                std::thread::spawn(move || serve(stream, deeds, &state.0, &state.1));
            }
        });
        Self { address }
    }
}

fn serve(mut stream: TcpStream, deeds: &[Deed], next: &Mutex<usize>, runs: &BadRuns) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut place, mut length) = (String::new(), 0);
    reader.read_line(&mut place).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, more, reply) = if place.starts_with("GET /api/runs?") {
        let row = |(run, (session, status)): (&Uuid, &(String, &str))| json!({"run_id": run, "session_id": session, "status": status, "created": "2026-11-26T00:00:00Z"});
        (200, String::new(), json!({"runs": runs.lock().unwrap().iter().rev().map(row).collect::<Vec<_>>()}))
    } else if place.starts_with("POST /api/chat ") {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let mut at = next.lock().unwrap();
        let deed = deeds[(*at).min(deeds.len() - 1)];
        *at += 1;
        chat(deed, body["session_id"].as_str().unwrap(), &mut runs.lock().unwrap())?
    } else {
        (404, String::new(), json!({}))
    };
    let reply = reply.to_string();
    let head =
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n{more}\r\n", reply.len());
    stream.write_all(format!("{head}{reply}").as_bytes()).ok()
}

/// The reply to a request; `None` breaks the connection.
fn chat(
    deed: Deed,
    session: &str,
    runs: &mut BTreeMap<Uuid, (String, &'static str)>,
) -> Option<(u16, String, Value)> {
    let run = Uuid::now_v7();
    let mut execute = |status| runs.insert(Uuid::now_v7(), (session.to_owned(), status));
    match deed {
        Deed::Twice | Deed::RefuseAndDo => drop(execute("completed")),
        Deed::Cut => drop(execute("running")),
        Deed::Once | Deed::Forget | Deed::Refuse | Deed::Fail => {}
    }
    match deed {
        Deed::Cut => return None,
        Deed::Refuse | Deed::RefuseAndDo => {
            return Some((503, String::new(), json!({"code": "server.overloaded"})));
        }
        Deed::Fail => return Some((500, String::new(), json!({"code": "server.failed"}))),
        Deed::Once | Deed::Twice => drop(runs.insert(run, (session.to_owned(), "completed"))),
        Deed::Forget => {}
    }
    let answer = json!({"run_id": run, "status": "completed", "answer": "Done."});
    Some((200, format!("x-run-id: {run}\r\n"), answer))
}

#[tokio::test]
async fn server_that_loses_or_repeats_requests_is_found_out() {
    let deeds = &[Deed::Once, Deed::Twice, Deed::Forget, Deed::Cut, Deed::RefuseAndDo, Deed::Refuse];
    let server = BadServer::start(deeds);
    let workspace = Arc::new(Workspace::bare());
    let at_once = ["--sessions", "6", "--requests", "6", "--grace", "0s", "--json", "a.json"];
    let ran = load(&workspace, server.address, &at_once).await;
    assert_eq!(ran.status, 1, "{ran:#?}");
    let report = report(&workspace, "a.json");
    let sent = report["requests"]["sent"].as_u64().unwrap();
    assert_eq!(sent, 6, "{report:#}");
    assert_eq!(report["codes"], json!({"client.cut": 1, "server.overloaded": 2}), "{report:#}");
    assert_eq!(report["requests"]["shed_without_retry_after"], 2, "{report:#}");
    let ends = &report["ends"];
    // Lost: the forgotten run, and the one that never ends. Executed too often: one twice, and one that was refused.
    assert_eq!(
        (&ends["lost"], &ends["duplicates"], &ends["unheard"]),
        (&json!(2), &json!(2), &json!(3)),
        "{report:#}"
    );
    assert!(
        ran.out.contains("BROKEN      lost=0") && ran.out.contains("BROKEN      duplicates=0"),
        "{ran:#?}"
    );
}

#[tokio::test]
async fn load_ends_early_by_a_threshold_and_faults_are_explained_before_it_begins() {
    let server = BadServer::start(&[Deed::Fail]);
    let workspace = Arc::new(Workspace::bare());
    let abort = ["--sessions", "2", "--duration", "60s", "--abort", "error_rate>50%", "--json", "a.json"];
    let ran = load(&workspace, server.address.clone(), &abort).await;
    assert_eq!((ran.status, &report(&workspace, "a.json")["ended"]), (1, &json!("aborted")), "{ran:#?}");
    workspace.write("keys", "acme psk_secret many");
    workspace.write("mix.yaml", "scenarios: [{id: x}]");
    for (more, code, why) in [
        (&["--keys", "keys"][..], "load.keys", "keys:1: SHARE"),
        (&["--mix", "mix.yaml"], "load.mix", "mix.yaml: scenario `x` says nothing"),
        (&["--against", "mix.yaml"], "load.against", "it is not valid JSON"),
        (&["--duration", "5s", "--ramp", "5s"], "load.duration", "nothing would be measured"),
        (&["--json", "missing/a.json"], "load.file", "missing/a.json"),
        (&["--stream", "--abort", "cost>$5"], "load.abort", "`cost` is not measured while this load runs"),
    ] {
        let ran = load(&workspace, server.address.clone(), more).await;
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{ran:#?}");
        assert!(ran.err.contains(&format!("error[{code}]")) && ran.err.contains(why), "{ran:#?}");
        assert!(!ran.err.contains("psk_secret"), "{ran:#?}");
    }
    let ran = load(&workspace, "https://chat.example.com".to_owned(), &[]).await;
    assert!(
        ran.status == 2 && ran.err.contains("error[load.url]") && ran.err.contains("--remote"),
        "{ran:#?}"
    );
    let ran = load(&workspace, "http://127.0.0.1:1".to_owned(), &[]).await;
    assert!(ran.status == 1 && ran.err.contains("error[load.target]"), "{ran:#?}");
}
