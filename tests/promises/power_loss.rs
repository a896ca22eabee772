//! What must be durable is synced and not only written: a power failure removes everything unsynced, and
//! nothing that was acknowledged is lost.

use std::collections::BTreeSet;
use std::sync::mpsc;

use proscenium::run::TenantId;
use proscenium::store::{Page, RunFilter, Store};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::crash::check_run;
use super::disk_harness::{DiskHarness, Moment};
use super::support::disk::Loss;
use super::support::{ReceivedRequest, Scripted, forced_tool, section, size, tool_results};

/// What was acknowledged before the power failed.
struct Acknowledged {
    /// To the client: the id of its run.
    run: String,
    /// To the client: the answer, if the run had ended.
    answer: Option<Value>,
    /// To the backend.
    reached: Vec<ReceivedRequest>,
}

/// A server that works up to `moment`, or to the end, and whose power then fails. With `lies` its disk only
/// pretends to sync.
async fn serve_until_power_failure(
    harness: &DiskHarness,
    moment: Option<Moment>,
    lies: bool,
    loss: Loss,
    dice: &mut ChaCha8Rng,
) -> Acknowledged {
    let server = harness.start();
    if lies {
        harness.disk.lies().set();
    }
    // The model or backend called at that moment does not reply before the power has failed.
    let (pull, pulled) = mpsc::sync_channel::<()>(1);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    if let Some(moment) = moment {
        harness.at_moment(moment, move || {
            sender.try_send(()).unwrap();
            let _ = pulled.recv();
        });
    }
    let (run, mut events) = server.ask_streamed("b1", "s1").await.unwrap();
    let mut answer = None;
    if moment.is_some() {
        receiver.recv().await.unwrap();
    } else {
        while let Some(event) = events.next().await {
            if event.name == "answered" {
                answer = Some(event.data["answer"].clone());
            }
        }
    }
    server.kill();
    drop(pull);
    harness.disk.fail(loss, dice);
    if lies {
        harness.disk.lies().clear();
    }
    Acknowledged { run, answer, reached: harness.reached() }
}

/// What the next server makes of it; or what was lost.
async fn check_after_restart(
    harness: &DiskHarness,
    acknowledged: &Acknowledged,
    moment: Option<Moment>,
) -> Result<(), String> {
    let server = harness.start();
    server.settled_runs().await;
    let found = server.get(&format!("/api/runs/{}", acknowledged.run)).await;
    let turns = server.get("/api/sessions/s1").await;
    assert_eq!(server.end().status, 0);
    if found.status != 200 {
        return Err(format!("the request that was accepted is gone: {}", found.body));
    }
    let document = found.json();
    let again = harness.reached();
    let calls = |reached: &[ReceivedRequest], place: &str| -> Vec<Option<String>> {
        let calls = reached.iter().filter(|call| call.place == place);
        calls.map(|call| call.idempotency_key.clone()).collect()
    };
    let outcome = |step: usize, call: usize| &document["steps"][step]["tool_calls"][call]["outcome"];
    let both = |place: &str| [calls(&acknowledged.reached, place), calls(&again, place)];
    if both("POST /Reserve").concat().len() != 1 {
        return Err(format!("the write was repeated: {:?}", both("POST /Reserve")));
    }
    let renewed = both("POST /Renew").concat();
    if renewed.iter().collect::<BTreeSet<_>>().len() > 1 {
        return Err(format!("the write was repeated under another key: {renewed:?}"));
    }
    if moment == Some(Moment::Reserve) {
        // The outcome is unknown, and the next step needs it.
        return match outcome(0, 1) {
            outcome if outcome == "unknown" => Ok(()),
            outcome => Err(format!("its intent is gone: {outcome}: {document:#}")),
        };
    }
    if document["status"] != "completed" || outcome(0, 1) != "ok" || outcome(1, 0) != "ok" {
        return Err(format!("the run was not resumed: {document:#}"));
    }
    let times = if moment == Some(Moment::Renew) { 2 } else { 1 };
    if renewed.len() != times {
        return Err(format!("by its key it is sent {times} times, not {renewed:?}"));
    }
    match &acknowledged.answer {
        Some(answer) if *answer != document["answer"] || !again.is_empty() => {
            Err(format!("the run had ended: {document:#}\n{again:#?}"))
        }
        Some(_) if turns.json()["turns"] != 1 => Err(format!("the turn is forgotten: {turns:#?}")),
        _ => Ok(()),
    }
}

/// Asserts that everything acknowledged by then survives a power failure.
async fn assert_survives(moment: Option<Moment>) {
    for (seed, loss) in [Loss::Everything, Loss::Some, Loss::Some].into_iter().enumerate() {
        let harness = DiskHarness::open();
        let mut dice = ChaCha8Rng::seed_from_u64(seed as u64);
        let acknowledged = serve_until_power_failure(&harness, moment, false, loss, &mut dice).await;
        let found = check_after_restart(&harness, &acknowledged, moment).await;
        assert_eq!(found, Ok(()), "{moment:?}, {loss:?}");
    }
}

#[tokio::test]
async fn accepted_request_is_synced() {
    assert_survives(Some(Moment::Plan)).await;
}

#[tokio::test]
async fn accepted_run_resumes_after_power_loss_during_reads() {
    assert_survives(Some(Moment::Look)).await;
    assert_survives(Some(Moment::Between)).await;
}

#[tokio::test]
async fn write_intent_is_synced_before_the_backend_call() {
    assert_survives(Some(Moment::Reserve)).await;
}

#[tokio::test]
async fn write_outcome_is_synced_before_the_next_step() {
    assert_survives(Some(Moment::Renew)).await;
    assert_survives(Some(Moment::Check)).await;
}

#[tokio::test]
async fn published_end_is_synced_with_the_conversation_memory() {
    assert_survives(None).await;
}

/// The same check finds the loss if the disk ignores syncs.
#[tokio::test]
async fn loss_on_a_disk_without_syncs_is_detected() {
    for moment in [Some(Moment::Plan), Some(Moment::Reserve), Some(Moment::Renew), None] {
        let harness = DiskHarness::open();
        let mut dice = ChaCha8Rng::seed_from_u64(1);
        let acknowledged =
            serve_until_power_failure(&harness, moment, true, Loss::Everything, &mut dice).await;
        let lost = check_after_restart(&harness, &acknowledged, moment).await.unwrap_err();
        assert!(lost.contains("accepted is gone"), "{moment:?}: {lost}");
    }
}

/// Boundaries at which the power fails, and how often the run passes them before.
const PLACES: [(&str, u32); 8] = [
    ("after:run_queued", 1),
    ("after:model_replied", 5),
    ("before:tool_started", 3),
    ("after:tool_started", 3),
    ("before:tool_completed", 3),
    ("after:tool_completed", 3),
    ("before:run_completed", 1),
    ("after:run_completed", 1),
];

#[tokio::test]
async fn repeated_power_loss_loses_and_repeats_nothing() {
    let harness = DiskHarness::open();
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let mut accepted: BTreeSet<String> = BTreeSet::new();
    let mut books: Vec<String> = Vec::new();
    let mut failures = 0;
    let rounds = size(1);
    for (place, passed) in PLACES.repeat(rounds) {
        let skip: u32 = dice.random_range(0..=passed);
        let env = [("CRASH_POINT_AT", place.to_owned()), ("CRASH_POINT_SKIP", skip.to_string())];
        // It may reach the boundary during recovery, before it is ready.
        let started = harness.try_start(&env);
        failures += usize::from(started.as_ref().is_err_and(|ran| ran.status == -1));
        if let Ok(server) = started {
            let (one, two) = (format!("b{}", books.len()), format!("b{}", books.len() + 1));
            let asked = futures::future::join(server.ask_streamed(&one, &one), server.ask(&two, &two));
            let (one_told, two_told) = asked.await;
            books.extend([one, two]);
            let mut is_broken = one_told.is_err() || two_told.is_err();
            if let Ok((run, mut events)) = one_told {
                accepted.insert(run);
                is_broken |= loop {
                    match events.try_next().await {
                        Ok(Some(_)) => {}
                        Ok(None) => break false,
                        Err(_) => break true,
                    }
                };
            }
            if let Ok(reply) = two_told {
                accepted.insert(reply.json()["run_id"].as_str().unwrap().to_owned());
            }
            failures += usize::from(if is_broken { server.await_end().await } else { server.kill() });
        }
        let loss = if dice.random() { Loss::Everything } else { Loss::Some };
        harness.disk.fail(loss, &mut dice);
    }
    assert!(failures * 2 > PLACES.len() * rounds, "only {failures} servers reached their boundary");

    let server = harness.start();
    server.settled_runs().await;
    for book in &books {
        // A client without a reply asks again.
        let reply = server.ask(book, book).await.unwrap();
        let document = if reply.status == 200 { reply.json() } else { reply.json()["document"].clone() };
        // A write of unknown outcome and a quarantined run are reported as such.
        let status = document["status"].as_str().unwrap_or_else(|| panic!("{reply:#?}"));
        assert!(["completed", "partial", "failed"].contains(&status), "{document:#}");
    }
    let listed = server.settled_runs().await;
    assert_eq!(server.end().status, 0);
    assert_eq!(listed.len(), books.len());
    let reached = harness.reached();
    let store = Store::open_read_only(&harness.workspace.data()).await.unwrap();
    let tenant = TenantId::new("local").unwrap();
    let page = Page { limit: 500, after: None };
    for row in store.runs(&tenant, &RunFilter::default(), &page).await.unwrap() {
        accepted.remove(&row.run.to_string());
        check_run(&store.run_events(&tenant, row.run).await.unwrap(), &reached);
    }
    assert_eq!(accepted, BTreeSet::new(), "these accepted requests are lost");
}

/// Books that can be reserved.
const BOOKS: [&str; 4] = ["dune", "emma", "faust", "ubik"];

/// A read, and a reservation of each book that the request names.
fn reserve(request: &Value) -> Scripted {
    let words = section(request, "request").unwrap_or_default();
    let requested: Vec<&str> = BOOKS.into_iter().filter(|book| words.contains(book)).collect();
    match forced_tool(request) {
        Some("CreateExecutionPlan") => Scripted::forced(
            request,
            json!({"needs_execution": true, "reasoning": "Look.", "steps": [
                {"step_number": 1, "scene_name": "Shelf", "purpose": "Reserve them",
                 "expected_tools": ["Look", "Reserve"], "depends_on_step": null}]}),
        ),
        Some("CheckContinuation") => Scripted::answered(request, "Everything was done."),
        _ => match tool_results(request).len() {
            0 => Scripted::call("Look", json!({"book": "shelf"})),
            done => match requested.get(done - 1) {
                Some(book) => Scripted::call("Reserve", json!({ "book": book })),
                None => Scripted::Text("It is done.".into()),
            },
        },
    }
}

#[tokio::test]
async fn lone_request_syncs_at_start_end_and_twice_per_write() {
    let harness = DiskHarness::with_model(|request, _| reserve(request));
    let server = harness.start();
    // The first request creates the files.
    server.ask("ubik", "first").await.unwrap();
    harness.reached();
    for (writes, books) in [(0, "shelf"), (1, "dune"), (3, "dune, emma, ubik")] {
        let before = harness.disk.syncs();
        let reply = server.ask(books, &format!("s{writes}")).await.unwrap();
        assert_eq!(reply.json()["status"], "completed", "{reply:#?}");
        let reserved = harness.reached().iter().filter(|call| call.place == "POST /Reserve").count();
        assert_eq!(reserved, writes);
        let syncs = harness.disk.syncs() - before;
        assert!(syncs <= 2 + 2 * writes as u64, "{syncs} syncs for {writes} writes");
    }
    // Published events are on disk.
    let before = harness.disk.syncs();
    let (_, mut events) = server.ask_streamed("emma", "shown").await.unwrap();
    let mut published = 0;
    while let Some(event) = events.next().await {
        published += u64::from(event.name != "answer_delta");
    }
    let syncs = harness.disk.syncs() - before;
    assert!(syncs <= 2 + 2 + published, "{syncs} syncs for {published} events");
    assert_eq!(server.end().status, 0);
}
