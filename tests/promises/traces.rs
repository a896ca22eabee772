//! Traces: what a receiver of OTLP gets of requests, and that it costs them nothing when it is slow or down.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use proscenium::config::OtlpConfig;
use proscenium::telemetry::traces::{FinishedSpan, SpanExporter, SpanRole, SpanSink};
use proscenium::telemetry::{ServerMetrics, SpanFate};
use proscenium::trace_context::{SpanId, TraceId};
use serde_json::json;

use crate::process::Workspace;
use crate::server_api::ask;
use crate::support::otlp_receiver::{Answers, OtlpReceiver, ReceivedSpan};
use crate::support::{Office, Reply, ServedEngine, Setup};

const CLIENT_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT_SPAN: &str = "00f067aa0ba902b7";

fn traced(office: &Office, receiver: &OtlpReceiver) -> Setup {
    office.setup().set("telemetry.otlp.endpoint", receiver.address())
}

/// The trace id of a run that has no client's.
fn own_trace(run: &str) -> String {
    run.replace('-', "")
}

/// Parts of `traceparent`: the trace and the span.
fn parts(header: Option<&String>) -> (String, String) {
    let parts: Vec<&str> = header.unwrap().split('-').collect();
    assert_eq!((parts.len(), parts[0], parts[3]), (4, "00", "01"), "{header:?}");
    (parts[1].to_owned(), parts[2].to_owned())
}

fn of<'s>(spans: &'s [ReceivedSpan], trace: &str) -> Vec<&'s ReceivedSpan> {
    spans.iter().filter(|span| span.trace == trace).collect()
}

#[tokio::test]
async fn request_is_one_trace_which_continues_its_clients_and_continues_in_models_and_tools() {
    let (office, receiver) = (Office::open(), OtlpReceiver::start([Answers::Takes]));
    let served =
        ServedEngine::start(traced(&office, &receiver).set("telemetry.otlp.service_name", "office")).await;
    let header = format!("00-{CLIENT_TRACE}-{CLIENT_SPAN}-01");
    let post = async |path: &str, body: &serde_json::Value, parent: &str| {
        let request = served.request("POST", path).header("traceparent", parent).json(body);
        Reply::of(request.send().await.unwrap()).await
    };
    let answered = post("/api/chat", &ask("see"), &header).await;
    assert_eq!(answered.status, 200, "{answered:#?}");
    let (asked, called) = (office.llm.trace_parents(), office.backend.take_requests());
    let mut body = ask("hello");
    body["model"] = json!("proscenium");
    let own = post("/v1/chat/completions", &body, &header.to_uppercase()).await;
    assert_eq!(own.status, 200, "{own:#?}");
    served.engine.shut_down().await.unwrap();

    let spans = receiver.spans();
    let exported = served.engine.server_metrics().spans(SpanFate::Exported);
    assert_eq!((spans.len() as u64, &*spans[0].service), (exported, "office"));
    let seen = of(&spans, CLIENT_TRACE);
    let root = seen[0];
    assert_eq!((&*root.name, &*root.parent), ("invoke_workflow office", CLIENT_SPAN));
    assert_eq!(root.attributes["proscenium.run.id"], answered.header("x-run-id"));
    assert_eq!(root.attributes["proscenium.status"], "completed");
    let named = |name: &str| -> Vec<&ReceivedSpan> {
        seen.iter().copied().filter(|span| span.name == name).collect()
    };
    for (name, parent) in [
        ("plan", root),
        ("invoke_agent Desk", root),
        ("check", root),
        ("answer", root),
        ("execute_tool See", named("invoke_agent Desk")[0]),
    ] {
        let found = named(name);
        assert_eq!((found.len(), &found[0].parent), (1, &parent.id), "{name}: {seen:#?}");
    }
    // Each request to the model has the id of its attempt, and that to the back end the one of its call.
    let sent: BTreeSet<(String, String)> = asked.iter().map(|header| parts(header.as_ref())).collect();
    let attempts = named("POST");
    let known = attempts.iter().map(|span| (CLIENT_TRACE.to_owned(), span.id.clone())).collect();
    assert_eq!((sent.len(), sent), (asked.len(), known));
    let tool = named("execute_tool See")[0];
    assert_eq!(parts(called[0].trace_parent.as_ref()), (CLIENT_TRACE.to_owned(), tool.id.clone()));
    let chats = named("chat scripted");
    assert_eq!(chats.len(), attempts.len());
    for chat in &chats {
        let operation = &*chat.attributes["gen_ai.operation.name"];
        assert_eq!((operation, &*chat.attributes["gen_ai.provider.name"]), ("chat", "openai"));
        assert!(chat.attributes.contains_key("gen_ai.usage.input_tokens"), "{chat:#?}");
        assert!(chat.attributes.contains_key("server.port"), "{chat:#?}");
    }
    // No text of the user, the model or the tool.
    let texts = spans.iter().flat_map(|span| span.attributes.values());
    assert!(texts.into_iter().all(|text| !text.contains("r1") && text != "see"), "{spans:#?}");
    // What is not a `traceparent` is ignored, and the run's id is the trace's.
    let run = own.header("x-run-id");
    let other = of(&spans, &own_trace(run));
    assert_eq!((&*other[0].name, &*other[0].parent), ("invoke_workflow office", ""), "{spans:#?}");
    assert_eq!(seen.len() + other.len(), spans.len());
}

#[tokio::test]
async fn run_that_waits_for_a_person_over_a_restart_is_one_trace_with_each_span_once() {
    let (office, receiver) = (Office::open(), OtlpReceiver::start([Answers::Takes]));
    let test = traced(&office, &receiver).start().await;
    let answer = test.submit("s-1", "pay").await.unwrap().answer().await.unwrap();
    let dir = test.stop().await;
    let before = receiver.spans();
    assert!(
        before.iter().any(|span| span.name == "plan")
            && before.iter().all(|span| span.name != "wait_for_person")
    );
    let served = ServedEngine::start(traced(&office, &receiver).on(&dir)).await;
    let approval = format!("/api/approvals/{}.1", answer.run_id);
    assert_eq!(served.post(&approval, &json!({"decision": "yes"})).await.status, 200);
    served.engine.wait(&served.tenant, answer.run_id).await.unwrap();
    served.engine.shut_down().await.unwrap();
    let spans = receiver.spans();
    let trace = own_trace(&answer.run_id.to_string());
    assert_eq!(of(&spans, &trace).len(), spans.len(), "{spans:#?}");
    let ids: BTreeSet<&str> = spans.iter().map(|span| &*span.id).collect();
    assert_eq!(ids.len(), spans.len(), "{spans:#?}");
    assert!(spans.iter().all(|span| span.parent.is_empty() || ids.contains(&*span.parent)), "{spans:#?}");
    for name in ["invoke_workflow proscenium", "plan", "wait_for_person", "execute_tool Pay", "answer"] {
        assert_eq!(spans.iter().filter(|span| span.name == name).count(), 1, "{name}: {spans:#?}");
    }
    let wait = spans.iter().find(|span| span.name == "wait_for_person").unwrap();
    let step = spans.iter().find(|span| span.id == wait.parent).unwrap();
    assert!(step.name.starts_with("invoke_agent "), "{spans:#?}");
    assert_eq!(
        (&*wait.attributes["proscenium.wait"], &*wait.attributes["proscenium.decision"]),
        ("call", "yes")
    );
}

/// An exporter to a receiver, on the runtime of the test, whose requests may take so long.
fn exporter(address: &str, timeout: Duration, metrics: &ServerMetrics) -> SpanExporter {
    let otlp = OtlpConfig { endpoint: address.to_owned(), ..OtlpConfig::default() };
    let target = otlp.target(|_| None).unwrap().unwrap();
    let runtime = tokio::runtime::Handle::current();
    SpanExporter::start(target, timeout, metrics.clone(), &runtime).unwrap()
}

fn export(exporter: &SpanExporter, spans: u64) {
    for number in 1..=spans {
        exporter.export(FinishedSpan {
            trace: TraceId::new([1; 16]).unwrap(),
            id: SpanId::new(number.to_be_bytes()).unwrap(),
            parent: None,
            is_remote_parent: false,
            role: SpanRole::Internal,
            name: "work".to_owned(),
            started: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            attributes: Vec::new(),
            notes: Vec::new(),
            dropped_notes: 0,
            error: None,
        });
    }
}

fn fates(metrics: &ServerMetrics) -> [u64; 4] {
    SpanFate::ALL.map(|fate| metrics.spans(fate))
}

#[tokio::test]
async fn busy_receiver_is_asked_again_and_what_it_rejects_is_counted() {
    let receiver = OtlpReceiver::start([Answers::Status(503), Answers::Rejects(2), Answers::Status(400)]);
    let metrics = ServerMetrics::default();
    let busy = exporter(receiver.address(), Duration::from_secs(30), &metrics);
    // As many as are sent at once.
    export(&busy, 512);
    crate::support::eventually("the spans are taken", async || receiver.spans().len() == 512).await;
    crate::support::eventually("they are counted", async || fates(&metrics) == [510, 0, 0, 2]).await;
    export(&busy, 3);
    busy.stop().await;
    assert_eq!((fates(&metrics), receiver.exports()), ([510, 0, 3, 2], 3), "400 is no reason to ask again");
    export(&busy, 1);
    assert_eq!(fates(&metrics), [510, 1, 3, 2]);
}

/// Those that wait, and those that were sent to a receiver that says nothing.
#[tokio::test]
async fn lost_spans_are_logged_when_the_server_stops() {
    let silent = OtlpReceiver::start([Answers::Never]);
    let workspace = Workspace::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", silent.address());
    let server = workspace.serve(&[]);
    let answer = workspace.ask("Che tempo fa a Milano?", &[]);
    assert_eq!(answer["status"], "completed", "{answer:#}");
    crate::support::eventually("they are sent", async || silent.exports() == 1).await;
    server.signal("TERM");
    let ran = server.end();
    let left = ran.err.split("the last spans in time left=").nth(1).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(!left.starts_with('0'), "{left}");
}

#[tokio::test]
async fn receiver_that_is_silent_or_down_costs_spans_and_no_time() {
    let silent = OtlpReceiver::start([Answers::Never]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (address, spans) in [(silent.address(), 3), (&*format!("http://{free}"), 10_000)] {
        let metrics = ServerMetrics::default();
        let exporter = exporter(address, Duration::from_millis(200), &metrics);
        export(&exporter, spans);
        exporter.stop().await;
        let [exported, dropped, failed, rejected] = fates(&metrics);
        assert_eq!((exported, dropped + failed, rejected), (0, spans, 0));
        assert_eq!(dropped, spans.saturating_sub(8192), "the queue is bounded");
    }
}
