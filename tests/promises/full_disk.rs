//! A server whose disk runs full: new requests are refused with the reason, reads work, accepted runs wait,
//! and everything continues by itself once there is space.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::disk_harness::{DiskHarness, Moment, Server};
use super::support::Reply;

/// Asserts a refusal that names the full disk and the remedy.
fn assert_refused(reply: &Reply) {
    let problem = reply.assert_problem(503, "store.full");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("proscenium.db") && detail.contains("free some space"), "{detail}");
    assert_eq!(reply.header("retry-after"), "1", "{reply:#?}");
    assert_eq!(reply.header("x-should-retry"), "", "the refusal allows retries: {reply:#?}");
}

/// Asserts that everything that needs no space is answered, including all of the ended run `run`.
async fn assert_reads_work(server: &Server, run: &str, session: &str) {
    for path in ["/healthz", "/metrics", "/api/scenes", "/api/usage", "/api/sessions", "/v1/models"] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {reply:#?}");
    }
    let listed = server.get("/api/runs").await.json();
    assert!(listed["runs"].as_array().unwrap().iter().any(|row| row["run_id"] == run), "{listed:#}");
    let document = server.get(&format!("/api/runs/{run}")).await;
    assert_eq!((document.status, &document.json()["status"]), (200, &json!("completed")), "{document:#?}");
    let events = server.get(&format!("/api/runs/{run}/events")).await.events();
    assert_eq!(events.last().unwrap().name, "run_completed");
    let session = server.get(&format!("/api/sessions/{session}")).await;
    assert_eq!(session.status, 200, "{session:#?}");
}

async fn assert_completes(asked: impl Future<Output = Result<Reply, reqwest::Error>>) -> Value {
    let reply = asked.await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")), "{reply:#?}");
    reply.json()
}

/// Asserts that each tool reached the backend once for each of these books.
fn assert_each_once(harness: &DiskHarness, books: &[&str]) {
    let reached = harness.reached();
    for place in ["POST /Reserve", "POST /Renew"] {
        let of = reached.iter().filter(|call| call.place == place);
        let mut found: Vec<&str> = of.map(|call| call.query["book"].as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, books, "{place}");
    }
}

/// A server whose disk ran full when a run came to `moment`; the request, and what it waits for.
async fn fill_disk_at(
    harness: &DiskHarness,
    moment: Moment,
) -> (Server, tokio::task::JoinHandle<Result<Reply, reqwest::Error>>) {
    let server = harness.start();
    let (sender, receiver) = oneshot::channel();
    let full = harness.disk.full();
    harness.at_moment(moment, move || {
        full.set();
        sender.send(()).unwrap();
    });
    let asked = tokio::spawn(server.ask("b1", "s1"));
    receiver.await.unwrap();
    (server, asked)
}

async fn waits_for_space(moment: Moment) {
    let harness = DiskHarness::open();
    let server = harness.start();
    let before = assert_completes(server.ask("b0", "s0")).await;
    let before = before["run_id"].as_str().unwrap().to_owned();
    assert_eq!(server.end().status, 0);
    let (server, asked) = fill_disk_at(&harness, moment).await;

    for _ in 0..3 {
        assert_refused(&server.ask("b2", "s2").await.unwrap());
    }
    // The wait is reported, and load balancers stop sending requests.
    let unready = server.until("/readyz", |reply| (reply.status != 200).then(|| reply.clone())).await;
    unready.assert_problem(503, "store.full");
    assert_refused(&server.ask("b2", "s2").await.unwrap());
    let v1 = server.complete("Get the book b2").await;
    let error = v1.assert_error(503, "store.full");
    assert!(error["message"].as_str().unwrap().contains("free some space"), "{error:#}");
    assert_reads_work(&server, &before, "s0").await;
    assert!(!asked.is_finished(), "{moment:?}: it has to wait");

    harness.disk.full().clear();
    let completed = assert_completes(async { asked.await.unwrap() }).await;
    let calls: Vec<&Value> = completed["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["tool_calls"].as_array().unwrap())
        .collect();
    assert!(calls.len() == 3 && calls.iter().all(|call| call["outcome"] == "ok"), "{completed:#}");
    server.until("/readyz", |reply| (reply.status == 200).then_some(())).await;
    assert_completes(server.ask("b2", "s2")).await;
    // The conversation that had to wait continues.
    assert_completes(server.ask("b3", "s1")).await;
    assert_eq!(server.settled_runs().await.len(), 4, "refused requests leave no run");
    assert_reads_work(&server, completed["run_id"].as_str().unwrap(), "s1").await;
    assert_each_once(&harness, &["b0", "b1", "b2", "b3"]);
    assert_eq!(server.end().status, 0);
}

#[tokio::test]
async fn just_accepted_run_waits_for_space_and_continues() {
    waits_for_space(Moment::Plan).await;
}

#[tokio::test]
async fn run_during_a_read_waits_for_space_and_continues() {
    waits_for_space(Moment::Look).await;
    waits_for_space(Moment::Between).await;
}

#[tokio::test]
async fn run_during_a_write_waits_for_space_and_records_the_outcome() {
    waits_for_space(Moment::Reserve).await;
    waits_for_space(Moment::Renew).await;
}

#[tokio::test]
async fn run_at_its_end_waits_for_space_and_ends() {
    waits_for_space(Moment::Check).await;
}

#[tokio::test]
async fn idle_server_refuses_without_space_and_accepts_once_there_is() {
    let harness = DiskHarness::open();
    let server = harness.start();
    let before = assert_completes(server.ask("b0", "s0")).await;
    for book in ["b1", "b2"] {
        harness.disk.full().set();
        for session in ["s0", "s1", "s2"] {
            assert_refused(&server.ask(book, session).await.unwrap());
        }
        assert_reads_work(&server, before["run_id"].as_str().unwrap(), "s0").await;
        harness.disk.full().clear();
        assert_completes(server.ask(book, "s1")).await;
    }
    assert_eq!(server.settled_runs().await.len(), 3);
    assert_each_once(&harness, &["b0", "b1", "b2"]);
    assert_eq!(server.end().status, 0);
}

/// Requests a book until it succeeds, as a client does that obeys `Retry-After`.
async fn ask_until_accepted(server: &Server, book: &str, session: &str) {
    let mut tries = 0;
    loop {
        let reply = server.ask(book, session).await.unwrap();
        if reply.status == 200 {
            assert_eq!(reply.json()["status"], "completed", "{reply:#?}");
            return;
        }
        assert_refused(&reply);
        tries += 1;
        assert!(tries < 500, "{book} is always refused");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn repeatedly_full_disk_loses_none_of_many_requests() {
    let harness = DiskHarness::open();
    let server = Arc::new(harness.start());
    let mut books: Vec<String> = Vec::new();
    let mut clients = Vec::new();
    for client in 0..6 {
        let (server, of_it) = (server.clone(), [0, 1, 2, 3].map(|n| format!("c{client}b{n}")));
        books.extend(of_it.clone());
        clients.push(tokio::spawn(async move {
            for book in of_it {
                ask_until_accepted(&server, &book, &format!("s{client}")).await;
            }
        }));
    }
    for round in 0..8 {
        let book = format!("p{round}");
        harness.disk.full().set();
        assert_refused(&server.ask(&book, "p").await.unwrap());
        harness.disk.full().clear();
        ask_until_accepted(&server, &book, "p").await;
        books.push(book);
    }
    for client in clients {
        client.await.unwrap();
    }
    books.sort();
    let server = Arc::into_inner(server).unwrap();
    assert_eq!(server.settled_runs().await.len(), books.len());
    assert_each_once(&harness, &books.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(server.end().status, 0);
}

/// After a server ended on a full disk, the next one starts, serves reads, refuses new requests, and resumes
/// the run once there is space.
async fn assert_resumed_after(moment: Moment, end: impl FnOnce(Server)) {
    let harness = DiskHarness::open();
    let (server, asked) = fill_disk_at(&harness, moment).await;
    server.until("/readyz", |reply| (reply.status != 200).then_some(())).await;
    end(server);
    let _ = asked.await.unwrap();

    let server = harness.start();
    let listed = server.get("/api/runs").await.json();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1), "{listed:#}");
    assert_refused(&server.ask("b7", "later").await.unwrap());
    let again = server.get("/api/runs").await.json();
    assert_eq!(again["runs"][0]["status"], listed["runs"][0]["status"], "it waits for space");

    harness.disk.full().clear();
    let runs = server.settled_runs().await;
    assert_eq!(runs.len(), 1);
    let document = server.get(&format!("/api/runs/{}", runs[0]["run_id"].as_str().unwrap())).await.json();
    let reached = harness.reached();
    let reserved = reached.iter().filter(|call| call.place == "POST /Reserve").count();
    if moment == Moment::Reserve {
        // It was sent, and there was no space to store its outcome.
        assert_eq!((reserved, &document["steps"][0]["tool_calls"][1]["outcome"]), (1, &json!("unknown")));
    } else {
        assert_eq!((reserved, &document["status"]), (1, &json!("completed")), "{document:#}");
    }
    assert_eq!(server.end().status, 0);
}

#[tokio::test]
async fn server_killed_on_a_full_disk_loses_no_accepted_request() {
    for moment in [Moment::Plan, Moment::Look, Moment::Reserve, Moment::Check] {
        assert_resumed_after(moment, |server| _ = server.kill()).await;
    }
}

#[tokio::test]
async fn server_stopped_on_a_full_disk_reports_what_was_not_written() {
    let end = |server: Server| {
        let ran = server.end();
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.err.contains("error[store.full]") || ran.err.contains("had not ended"), "{}", ran.err);
    };
    assert_resumed_after(Moment::Reserve, end).await;
}
