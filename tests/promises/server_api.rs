//! Every route of the server, over its real port.

use std::collections::BTreeMap;

use proscenium::run::{Attempt, Event, RunId};
use serde_json::{Value, json};

use crate::process::MAIN;
use crate::support::served_engine::Events;
use crate::support::{Reply, ServedEngine, Setup, Shelf, Sse};

/// The body of a request with these words.
pub fn ask(words: &str) -> Value {
    json!({"messages": [{"role": "user", "content": words}]})
}

fn with(mut body: Value, key: &str, value: impl Into<Value>) -> Value {
    body[key] = value.into();
    body
}

fn names(events: &[Sse]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// The answer's text in the events of a stream.
fn answer_text(events: &[Sse]) -> String {
    let mut text = String::new();
    for event in events {
        match event.name.as_str() {
            "answer_delta" => text.push_str(event.data["text"].as_str().unwrap()),
            "answer_reset" => text.clear(),
            _ => {}
        }
    }
    text
}

#[tokio::test]
async fn chat_returns_the_answer_document() {
    let served = ServedEngine::start(Setup::offline()).await;
    let reply = served.post("/api/chat", &ask(MAIN)).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"), "{reply:#?}");
    let answer = reply.json();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(["Weather", "VacationManagement"]));
    assert!(answer["answer"].as_str().unwrap().contains("15 giugno"), "{answer:#}");
    assert_eq!(reply.header("x-run-id"), answer["run_id"]);
    assert_eq!(reply.header("x-session-id"), answer["session_id"]);
    assert_eq!(served.vacations().await.len(), 1);
    // The same document is stored, except for its duration.
    let kept = served.get(&format!("/api/runs/{}", reply.header("x-run-id"))).await.json();
    let timeless = |mut document: Value| {
        document["timings"] = Value::Null;
        document
    };
    assert_eq!(timeless(kept), timeless(answer));
}

#[tokio::test]
async fn named_conversation_is_kept_by_the_server() {
    let served = ServedEngine::start(Setup::offline()).await;
    let say = |words: &str| with(ask(words), "session_id", "s-1");
    served.post("/api/chat", &say("Che tempo fa a Milano?")).await;
    let reply = served.post("/api/chat", &say("E a Roma?")).await.json();
    assert_eq!(reply["session_id"], "s-1");
    assert_eq!(reply["steps"][0]["tool_calls"][0]["result"]["city"], "Rome", "{reply:#}");
}

#[tokio::test]
async fn unnamed_conversation_uses_the_sent_messages() {
    let (shelf, served) = Shelf::serve().await;
    let first = served.post("/api/chat", &ask("look")).await.json();
    let body = json!({"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": first["answer"]},
        {"role": "user", "content": "what did I say?"},
    ]});
    let reply = served.post("/api/chat", &body).await.json();
    assert!(reply["answer"].as_str().unwrap().contains("look"), "{reply:#}");
    assert_ne!(reply["session_id"], first["session_id"]);
    // The chatbot's instructions reach the model, too.
    let asked = shelf.llm.requests().iter().any(|request| request.to_string().contains("Be brief."));
    assert!(asked);
}

#[tokio::test]
async fn stream_is_ordered_and_resumable_at_any_event() {
    let served = ServedEngine::start(Setup::offline()).await;
    let reply = served.post("/api/chat", &with(ask(MAIN), "stream", true)).await;
    let (run, events) = (reply.header("x-run-id").to_owned(), reply.events());
    let names = names(&events);
    assert_eq!(names.first(), Some(&"run_started"), "{names:?}");
    assert_eq!(names.last(), Some(&"run_completed"), "{names:?}");
    let first =
        |name: &str| names.iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    let order = [
        "run_started", "planning", "plan_created", "step_started", "tool_started", "tool_completed",
        "step_completed", "answer_delta", "answered", "run_completed",
    ];
    assert!(order.map(first).is_sorted(), "{names:?}");
    let answered = &events[first("answered")];
    assert_eq!(answered.data["answer"], answer_text(&events));
    let ids: Vec<(u64, u64)> = events
        .iter()
        .map(|event| {
            let parts: Vec<u64> = event.id.split('.').map(|part| part.parse().unwrap()).collect();
            // No other server has taken the run over.
            assert_eq!((parts.len(), parts[2]), (3, 0), "{}", event.id);
            (parts[0], parts[1])
        })
        .collect();
    assert!(ids.is_sorted(), "{ids:?}");

    let resume = async |after: &str| {
        let request =
            served.request("GET", &format!("/api/runs/{run}/events")).header("last-event-id", after);
        Reply::of(request.send().await.unwrap()).await.events()
    };
    let whole = served.get(&format!("/api/runs/{run}/events")).await.events();
    let bare = |events: &[Sse]| -> Vec<Sse> {
        let events = events.iter().filter(|event| !event.name.starts_with("answer_"));
        // How much of the answer was published by then does not matter to later subscribers.
        let place = |event: &Sse| event.id.split('.').next().unwrap().to_owned();
        events.map(|event| Sse { id: place(event), ..event.clone() }).collect()
    };
    assert_eq!(bare(&whole), bare(&events));
    assert_eq!(answer_text(&whole), answer_text(&events));
    for (place, event) in events.iter().enumerate() {
        let rest = resume(&event.id).await;
        let both: Vec<Sse> = events[..=place].iter().cloned().chain(rest).collect();
        assert_eq!(bare(&both), bare(&events), "after {}", event.id);
        assert_eq!(answer_text(&both), answer_text(&events), "after {}", event.id);
    }
    // Ids of two parts, as earlier releases gave them, and ids beyond the last event.
    for (place, event) in events.iter().enumerate() {
        let (old, _) = event.id.rsplit_once('.').unwrap();
        let both: Vec<Sse> = events[..=place].iter().cloned().chain(resume(old).await).collect();
        assert_eq!(bare(&both), bare(&events), "after {old}");
        assert_eq!(answer_text(&both), answer_text(&events), "after {old}");
    }
    // The reply with which the `EventSource` of a browser stops reconnecting.
    let last = &events.last().unwrap().id;
    let again = served.request("GET", &format!("/api/runs/{run}/events")).header("last-event-id", last);
    let again = Reply::of(again.send().await.unwrap()).await;
    assert_eq!((again.status, again.body.as_str()), (204, ""), "{again:#?}");
    for beyond in ["999", "999.0", "999.7", "999.0.0", "999.7.0", "999.7.3"] {
        assert_eq!(bare(&resume(beyond).await).last(), bare(&whole).last(), "after {beyond}");
    }
    let bad = served.request("GET", &format!("/api/runs/{run}/events")).header("last-event-id", "soon");
    Reply::of(bad.send().await.unwrap()).await.assert_problem(422, "request.last_event_id");
}

#[tokio::test]
async fn running_run_can_be_followed() {
    let (shelf, served) = Shelf::serve().await;
    let stream = served.request("POST", "/api/chat").header("accept", "text/event-stream");
    let mut events = Events::of(stream.json(&ask("wait")).send().await.unwrap());
    let started = events.next().await.unwrap();
    assert_eq!(started.name, "run_started");
    shelf.asked.wait_open().await;
    let run = started.data["run_id"].as_str().unwrap();
    let under_way = served.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(under_way["status"], "running", "{under_way:#}");
    let follow = served.request("GET", &format!("/api/runs/{run}/events"));
    let mut followed = Events::of(follow.send().await.unwrap());
    assert_eq!(followed.next().await.unwrap(), started);
    shelf.go.open();
    for stream in [&mut events, &mut followed] {
        let mut last = None;
        while let Some(event) = stream.next().await {
            last = Some(event);
        }
        assert_eq!(last.unwrap().name, "run_completed");
    }
}

#[tokio::test]
async fn plan_route_plans_and_executes_nothing() {
    let served = ServedEngine::start(Setup::offline()).await;
    let reply = served.post("/api/planning/plan", &json!({"message": MAIN})).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    let plan = reply.json();
    let scenes: Vec<&Value> =
        plan["plan"]["steps"].as_array().unwrap().iter().map(|s| &s["scene_name"]).collect();
    assert_eq!(scenes, ["Weather", "VacationManagement"]);
    assert!(plan["text"].as_str().unwrap().contains("VacationManagement"), "{plan:#}");
    assert!(plan["mermaid"].as_str().unwrap().contains("Weather"), "{plan:#}");
    assert!(served.vacations().await.is_empty());
    // A dry run executes everything except writes.
    let dry = served.post("/api/chat", &with(ask(MAIN), "dry_run", true)).await.json();
    assert_eq!(dry["steps"][0]["tool_calls"][0]["outcome"], "ok", "{dry:#}");
    let written = dry["steps"][1]["tool_calls"].as_array().unwrap();
    let request = written.iter().find(|call| call["tool"] == "MakeRequest").unwrap();
    assert_eq!(request["outcome"], "dry_run", "{dry:#}");
    assert!(served.vacations().await.is_empty());
    let flow = json!({"message": MAIN, "flow": "nowhere"});
    served.post("/api/planning/plan", &flow).await.assert_problem(404, "flow.unknown");
    let unnamed = json!({"message": MAIN, "flow": "text_to_sql", "current_state": ["orders"]});
    served.post("/api/planning/plan", &unnamed).await.assert_problem(422, "request.current_state");
    // A request outside every scene has a plan without steps.
    let talk = served.post("/api/planning/plan", &json!({"message": "Ciao!"})).await;
    assert_eq!(talk.status, 200, "{talk:#?}");
}

#[tokio::test]
async fn scenes_are_listed_with_their_tools() {
    let served = ServedEngine::start(Setup::offline()).await;
    let list = served.get("/api/scenes").await.json();
    let list = list["scenes"].as_array().unwrap();
    assert_eq!(list.len(), served.engine.catalogue().iter().filter(|scene| scene.flow.is_none()).count());
    for scene in list {
        let one = served.get(&format!("/api/scenes/{}", scene["name"].as_str().unwrap())).await.json();
        assert_eq!(&one, scene);
        let tools = scene["tools"].as_array().unwrap();
        assert!(!tools.is_empty(), "{scene:#}");
        for tool in tools {
            assert!(tool["parameters"].is_object() && tool["timeout_ms"].is_u64(), "{tool:#}");
            assert!(["read", "write"].contains(&tool["effect"].as_str().unwrap()));
        }
    }
    served.get("/api/scenes/Nowhere").await.assert_problem(404, "scene.unknown");
}

#[tokio::test]
async fn runs_are_listed_with_pages_and_filters() {
    let (_shelf, served) = Shelf::serve().await;
    let mut runs = Vec::new();
    for number in 0..5 {
        let body = with(ask("look"), "session_id", format!("s-{}", number % 2));
        runs.push(served.post("/api/chat", &body).await.json()["run_id"].clone());
    }
    runs.reverse();
    let ids = async |query: &str| -> Vec<Value> {
        let list = served.get(&format!("/api/runs{query}")).await.json();
        list["runs"].as_array().unwrap().iter().map(|run| run["run_id"].clone()).collect()
    };
    assert_eq!(ids("").await, runs);
    let mut paged = ids("?limit=2").await;
    while paged.len() < 5 {
        let page = ids(&format!("?limit=2&after={}", paged.last().unwrap().as_str().unwrap())).await;
        assert!((1..=2).contains(&page.len()));
        paged.extend(page);
    }
    assert_eq!(paged, runs);
    assert_eq!(ids("?session_id=s-1").await, [runs[1].clone(), runs[3].clone()]);
    assert_eq!(ids("?status=completed").await, runs);
    assert!(ids("?status=failed").await.is_empty());
    let list = served.get("/api/runs?limit=1").await.json();
    assert_eq!(list["runs"][0]["request"], "look");
    for query in ["?limit=0", "?limit=501", "?limit=x", "?status=lost", "?what=else"] {
        served.get(&format!("/api/runs{query}")).await.assert_problem(422, "request.query");
    }
    for path in [
        "/api/runs/01976c8e-0000-7000-8000-000000000001",
        "/api/runs/nothing",
        "/api/runs/%ff",
        "/api/runs?after=x",
    ] {
        served.get(path).await.assert_problem(404, "run.unknown");
    }
}

#[tokio::test]
async fn cancelled_run_stops_at_its_next_safe_point() {
    let (shelf, served) = Shelf::serve().await;
    let stream = served.request("POST", "/api/chat").json(&with(ask("put"), "stream", true));
    let mut events = Events::of(stream.send().await.unwrap());
    let run = events.next().await.unwrap().data["run_id"].as_str().unwrap().to_owned();
    shelf.started.wait_open().await;
    let reply = served.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    assert_eq!((reply.status, &reply.json()["stopping"]), (202, &json!(true)), "{reply:#?}");
    // A write in progress is not interrupted.
    shelf.done.open();
    let mut last = None;
    while let Some(event) = events.next().await {
        if event.name == "tool_completed" {
            assert_eq!(event.data["outcome"], "ok");
        }
        last = Some(event);
    }
    assert_eq!(last.unwrap().name, "run_cancelled");
    assert_eq!(shelf.puts(), 1);
    let reply = served.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
    assert_eq!((&reply.json()["stopping"], &reply.json()["status"]), (&json!(false), &json!("cancelled")));
    served.post("/api/runs/x/cancel", &json!({})).await.assert_problem(404, "run.unknown");
}

#[tokio::test]
async fn conversations_are_listed_shown_and_erased_completely() {
    let (_shelf, served) = Shelf::serve().await;
    let mut runs = Vec::new();
    for session in ["s-1", "s-2", "s-1"] {
        let reply = served.post("/api/chat", &with(ask("look"), "session_id", session)).await.json();
        runs.push(reply["run_id"].as_str().unwrap().to_owned());
    }
    let list = served.get("/api/sessions").await.json();
    let list: Vec<(&Value, &Value)> =
        list["sessions"].as_array().unwrap().iter().map(|s| (&s["session_id"], &s["turns"])).collect();
    assert_eq!(list, [(&json!("s-1"), &json!(2)), (&json!("s-2"), &json!(1))]);
    let page = served.get("/api/sessions?limit=1&after=s-1").await.json();
    assert_eq!(page["sessions"][0]["session_id"], "s-2");
    let one = served.get("/api/sessions/s-1").await.json();
    let of: Vec<&Value> = one["runs"].as_array().unwrap().iter().map(|run| &run["run_id"]).collect();
    assert_eq!(of, [&json!(runs[2]), &json!(runs[0])]);

    let erase = async |name: &str| {
        Reply::of(served.request("DELETE", &format!("/api/sessions/{name}")).send().await.unwrap()).await
    };
    let reply = erase("s-1").await;
    assert_eq!((reply.status, reply.body.as_str()), (204, ""));
    served.get("/api/sessions/s-1").await.assert_problem(404, "session.unknown");
    for run in [&runs[0], &runs[2]] {
        served.get(&format!("/api/runs/{run}")).await.assert_problem(404, "run.unknown");
        served.get(&format!("/api/runs/{run}/events")).await.assert_problem(404, "run.unknown");
    }
    assert_eq!(served.get("/api/runs").await.json()["runs"].as_array().unwrap().len(), 1);
    assert_eq!(served.get("/api/sessions/s-2").await.status, 200);
    erase("s-1").await.assert_problem(404, "session.unknown");
    erase("not%20a%20name").await.assert_problem(404, "session.unknown");
    // An erased name starts an empty conversation.
    served.post("/api/chat", &with(ask("look"), "session_id", "s-1")).await;
    assert_eq!(served.get("/api/sessions/s-1").await.json()["turns"], 1);
}

#[tokio::test]
async fn usage_agrees_with_the_journal() {
    let shelf = Shelf::new();
    let setup = shelf.setup().model("input_usd_per_million", "3.0").model("output_usd_per_million", "15.0");
    let served = ServedEngine::start(setup).await;
    for words in ["look", "hello", "put at once", "fail"] {
        served.post("/api/chat", &ask(words)).await;
    }
    // From a row's purpose to its calls, input and output tokens, and nano-USD.
    let mut journal: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let runs = served.get("/api/runs").await.json();
    for run in runs["runs"].as_array().unwrap() {
        let run: RunId = run["run_id"].as_str().unwrap().parse().unwrap();
        for event in served.events(run).await {
            let (Event::ModelReplied { attempts, .. } | Event::ModelFailed { attempts, .. }) = &event.body
            else {
                continue;
            };
            for Attempt { purpose, model, usage, .. } in attempts {
                assert_eq!(model, "scripted");
                let row = journal.entry(purpose.clone()).or_default();
                let calls = u64::from(usage.calls);
                let more = [calls, usage.input_tokens, usage.output_tokens, usage.cost_nano_usd];
                for (sum, more) in row.iter_mut().zip(more) {
                    *sum += more;
                }
            }
        }
    }
    assert!(journal.values().any(|row| row[3] > 0), "nothing had a cost: {journal:?}");
    let report = served.get("/api/usage").await.json();
    let mut reported: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(row["model"], "scripted");
        let number = |key: &str| row[key].as_u64().unwrap();
        let nano = (row["cost_usd"].as_f64().unwrap() * 1e9).round() as u64;
        let sum = reported.entry(row["purpose"].as_str().unwrap().to_owned()).or_default();
        for (sum, more) in
            sum.iter_mut().zip([number("calls"), number("input_tokens"), number("output_tokens"), nano])
        {
            *sum += more;
        }
    }
    journal.retain(|_, row| row[0] > 0);
    reported.retain(|_, row| row[0] > 0);
    assert_eq!(reported, journal, "{report:#}");
    let nano: u64 = reported.values().map(|row| row[3]).sum();
    assert_eq!((report["cost_usd"].as_f64().unwrap() * 1e9).round() as u64, nano);
    assert_eq!(report["time_zone"], "Europe/Rome");
    let before = served.get("/api/usage?from=2020-01-01&to=2020-01-31").await.json();
    assert_eq!(before["rows"], json!([]));
    for query in
        ["from=yesterday", "from=2026-02-01&to=2026-01-01", "from=1999-01-01", "to=9999-12-31", "day=1"]
    {
        served.get(&format!("/api/usage?{query}")).await.assert_problem(422, "request.query");
    }
}

#[tokio::test]
async fn health_routes_report_the_server_state() {
    let served = ServedEngine::start(Setup::offline()).await;
    for path in ["/healthz", "/readyz"] {
        let reply = served.get(path).await;
        assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("ok")));
        let probed = Reply::of(served.request("HEAD", path).send().await.unwrap()).await;
        assert_eq!((probed.status, probed.body.as_str()), (200, ""));
    }
    let metrics = served.get("/metrics").await;
    assert_eq!(
        (metrics.status, metrics.header("content-type")),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    // Without its store it is alive but not ready.
    served.engine.shut_down().await.unwrap();
    assert_eq!(served.get("/healthz").await.status, 200);
    let reply = served.get("/readyz").await;
    let problem = reply.json();
    reply.assert_problem(503, problem["code"].as_str().unwrap());
    assert!(!reply.header("retry-after").is_empty());
}

#[tokio::test]
async fn missing_resources_and_unaccepted_methods_are_reported() {
    let served = ServedEngine::start(Setup::offline()).await;
    for path in ["/", "/api", "/api/chat/", "/api/nothing", "/apis"] {
        served.get(path).await.assert_problem(404, "request.address");
    }
    for path in ["/v1", "/v1/", "/v1/completions"] {
        served.get(path).await.assert_error(404, "request.address");
    }
    for (method, path, allow) in [
        ("GET", "/api/chat", "POST"),
        ("POST", "/api/scenes", "GET, HEAD"),
        ("PUT", "/api/sessions/s-1", "GET, HEAD, DELETE"),
    ] {
        let reply = Reply::of(served.request(method, path).send().await.unwrap()).await;
        reply.assert_problem(405, "request.method");
        assert_eq!(reply.header("allow"), allow);
    }
    let reply = served.get("/v1/chat/completions").await;
    reply.assert_error(405, "request.method");
    assert_eq!(reply.header("allow"), "POST");
}

#[tokio::test]
async fn head_gets_the_reply_to_get_without_its_body() {
    let (_shelf, served) = Shelf::serve().await;
    let ended = served.post("/api/chat", &ask("look")).await.json();
    let run = ended["run_id"].as_str().unwrap();
    let mut body = ask("put at once");
    body["require_approval"] = json!(true);
    let waiting = served.post("/api/chat", &body).await.json();
    let mut paths: Vec<String> = proscenium::http::route_methods()
        .into_iter()
        .filter(|(_, methods)| methods.contains(&"GET".to_owned()))
        .map(|(path, _)| path.replace(['{', '}'], ""))
        .collect();
    paths.push(format!("/api/runs/{run}"));
    paths.push(format!("/api/runs/{run}/events"));
    paths.push(format!("/api/runs/{}/events", waiting["run_id"].as_str().unwrap()));
    for path in paths {
        let get = Reply::of(served.request("GET", &path).send().await.unwrap()).await;
        let head = Reply::of(served.request("HEAD", &path).send().await.unwrap()).await;
        assert_eq!((head.status, head.body.as_str()), (get.status, ""), "{path}: {head:#?}");
        for name in ["content-type", "x-run-id", "cache-control", "transfer-encoding"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
        // The figures and times of these change from one to the next.
        let is_steady = !["/metrics", "/api/usage", "/readyz", "/api/sessions"].contains(&path.as_str());
        assert!(
            !is_steady || head.header("content-length") == get.header("content-length"),
            "{path}: {head:#?}"
        );
    }
    for path in ["/api/chat", "/v1/chat/completions"] {
        let reply = Reply::of(served.request("HEAD", path).send().await.unwrap()).await;
        assert_eq!((reply.status, reply.header("allow")), (405, "POST"), "{path}");
    }
}

#[tokio::test]
async fn invalid_bodies_are_reported_with_their_location() {
    let (shelf, served) = Shelf::serve().await;
    let post = async |media: &str, body: &str| {
        let request = served.request("POST", "/api/chat").header("content-type", media).body(body.to_owned());
        Reply::of(request.send().await.unwrap()).await
    };
    for media in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json; charset=utf-16",
        "",
    ] {
        post(media, &ask("look").to_string()).await.assert_problem(415, "request.media_type");
    }
    let packed = served.request("POST", "/api/chat").header("content-encoding", "gzip").json(&ask("look"));
    Reply::of(packed.send().await.unwrap()).await.assert_problem(415, "request.media_type");
    for media in ["application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(post(media, &ask("look").to_string()).await.status, 200);
    }
    let count = shelf.llm.count();
    for body in [
        "",
        "{",
        "{\"messages\": [}",
        "nonsense",
        "{\"messages\": []} {}",
        "\u{feff}{}",
        "{\"messages\": \"\\ud800\"}",
    ] {
        post("application/json", body).await.assert_problem(400, "request.json");
    }
    for (body, code, place) in [
        (json!([]), "request.body", "the body"),
        (json!({}), "request.body", "messages"),
        (json!({"messages": "look"}), "request.body", "`messages`"),
        (json!({"messages": [{"role": "user", "content": 7}]}), "request.body", "`messages[0].content`"),
        (json!({"messages": [{"role": "boss", "content": "look"}]}), "request.body", "`messages[0].role`"),
        (json!({"messages": [{"role": "user"}]}), "request.body", "`messages[0]`"),
        (with(ask("look"), "streaming", true), "request.body", "streaming"),
        (with(ask("look"), "stream", "yes"), "request.body", "`stream`"),
        (json!({"messages": []}), "request.messages", "`messages`"),
        (json!({"messages": [{"role": "assistant", "content": "x"}]}), "request.messages", "`messages`"),
        (json!({"messages": [{"role": "system", "content": "x"}]}), "request.messages", "`messages`"),
        (ask(" \n"), "request.empty", "message"),
        (ask("\u{200b}\u{2063} \u{feff}"), "request.empty", "message"),
        (with(ask("look"), "session_id", ""), "request.session", "session"),
        (with(ask("look"), "session_id", "a b"), "request.session", "session"),
        (with(ask("look"), "session_id", "x".repeat(129)), "request.session", "session"),
        (with(ask("look"), "use_planning", false), "request.unsupported", "`use_planning`"),
        (with(ask("look"), "require_approval", "yes"), "request.body", "`require_approval`"),
        (with(ask("look"), "mode", "free"), "request.body", "`mode`"),
        (with(ask("look"), "level", "genius"), "request.body", "`level`"),
    ] {
        let problem = post("application/json", &body.to_string()).await.assert_problem(422, code);
        assert!(problem["detail"].as_str().unwrap().contains(place), "{place} in {problem:#}");
    }
    let plan = served.post("/api/planning/plan", &json!({"message": MAIN, "flows": 1})).await;
    assert!(plan.assert_problem(422, "request.body")["detail"].as_str().unwrap().contains("flows"));
    let long = json!({"messages": [{"role": "user", "content": "x".repeat(32_001)}]});
    served.post("/api/chat", &long).await.assert_problem(413, "request.too_long");
    assert_eq!(shelf.llm.count(), count, "a model was asked");
    assert_eq!(served.get("/api/runs").await.json()["runs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn failed_run_is_reported_with_its_completed_work() {
    let (_shelf, served) = Shelf::serve().await;
    let reply = served.post("/api/chat", &ask("fail")).await;
    let problem = reply.json();
    assert!(reply.status >= 500, "{reply:#?}");
    reply.assert_problem(reply.status, problem["code"].as_str().unwrap());
    assert_eq!(problem["run_id"], problem["document"]["run_id"], "{problem:#}");
    assert_eq!(reply.header("x-should-retry"), "false");
    let events = served.post("/api/chat", &with(ask("fail"), "stream", true)).await.events();
    assert_eq!(events.last().unwrap().name, "run_failed");
}

#[tokio::test]
async fn request_with_idempotency_key_executes_once() {
    let (shelf, served) = Shelf::serve().await;
    let named = |key: &str, words: &str| {
        served.request("POST", "/api/chat").header("idempotency-key", key).json(&ask(words))
    };
    let first = Reply::of(named("k-1", "put at once").send().await.unwrap()).await;
    let again = Reply::of(named("k-1", "put at once").send().await.unwrap()).await;
    assert_eq!((first.status, again.status), (200, 200), "{again:#?}");
    assert_eq!(first.header("x-run-id"), again.header("x-run-id"));
    assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), ("", "true"));
    assert_eq!(first.json()["answer"], again.json()["answer"]);
    assert_eq!(shelf.puts(), 1);
    let other = Reply::of(named("k-1", "look").send().await.unwrap()).await;
    other.assert_problem(422, "request.idempotency_conflict");
    let long = "k".repeat(256);
    Reply::of(named(&long, "look").send().await.unwrap())
        .await
        .assert_problem(422, "request.idempotency_key");
    Reply::of(named("k-2", "put at once").send().await.unwrap()).await;
    assert_eq!(shelf.puts(), 2);
}

#[tokio::test]
async fn request_controls_its_cache_use() {
    let (shelf, served) = Shelf::serve().await;
    let calls = async |path: &str, mode: Option<&str>| -> usize {
        let before = shelf.llm.count();
        let message = json!({"role": "user", "content": "look"});
        let mut body = json!({"messages": [message]});
        let request = served.request("POST", path);
        let request = match (path, mode) {
            ("/v1/chat/completions", mode) => {
                body["model"] = json!("proscenium");
                mode.map_or(request.try_clone().unwrap(), |mode| request.header("x-cache-mode", mode))
            }
            (_, Some(mode)) => {
                body["cache"] = json!(mode);
                request
            }
            (_, None) => request,
        };
        let reply = Reply::of(request.json(&body).send().await.unwrap()).await;
        assert_eq!(reply.status, 200, "{reply:#?}");
        shelf.llm.count() - before
    };
    for path in ["/api/chat", "/v1/chat/completions"] {
        let all = calls(path, Some("off")).await;
        assert_eq!(calls(path, Some("off")).await, all, "{path}: the cache is not used");
        assert_eq!(calls(path, Some("write_only")).await, all, "{path}: the cache is only written");
        assert_eq!(calls(path, Some("on")).await, 0, "{path}: every reply is cached");
        assert_eq!(calls(path, Some("read_only")).await, 0, "{path}");
    }
    let wrong = json!({"messages": [{"role": "user", "content": "look"}], "cache": "sometimes"});
    served.post("/api/chat", &wrong).await.assert_problem(422, "request.body");
    let request = served.request("POST", "/v1/chat/completions").header("x-cache-mode", "sometimes");
    let body = json!({"model": "proscenium", "messages": [{"role": "user", "content": "look"}]});
    Reply::of(request.json(&body).send().await.unwrap()).await.assert_error(422, "request.cache_mode");
}
