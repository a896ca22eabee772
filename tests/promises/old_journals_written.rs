//! How the journals in `tests/replays/release-0.1` were written: by real servers of that release that were
//! asked, decided and killed. They are frozen. `JOURNALS=write cargo test --test promises
//! old_journals_written` writes missing ones, which only the own set of a later release, in its own folder,
//! would need.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::process::MAIN;
use crate::support::old_release::{self, CUT_PORT, PORT, ReleaseFixture, Server, fixture_path};
use crate::support::stored;

/// An interrupted journal: its name, the words, the place where the server is killed, and how often the place
/// is passed first.
type Cut = (&'static str, &'static str, &'static str, u32);

/// Requests to the scripted model.
const MODEL: [Cut; 20] = [
    ("asked-for-a-plan", "deposit 5 and enter it tomorrow", "after:model_asked", 0),
    ("a-plan-not-read", "deposit 5 and enter it tomorrow", "after:model_replied", 0),
    ("before-a-write", "deposit 5 and enter it tomorrow", "before:tool_started", 0),
    ("behind-a-write", "deposit 5 and enter it tomorrow", "after:tool_started", 0),
    ("behind-a-write-with-a-key", "take a note", "after:tool_started", 0),
    ("before-the-second-step", "deposit 5 and enter it tomorrow", "after:step_completed", 0),
    ("before-the-answer", "deposit 5 and enter it tomorrow", "after:continuation", 0),
    ("duplicates", "deposit 5 three times, and then 6", "after:tool_completed", 0),
    ("duplicate-in-a-later-step", "deposit 5, and later 5 again", "after:step_completed", 0),
    ("duplicate-in-a-later-plan", "deposit 7, and see to the rest", "after:replanned", 0),
    ("max-rounds", "deposit 1 to 8 one after the other", "after:tool_completed", 3),
    ("max-calls", "deposit 1 to 20 at once", "after:model_replied", 1),
    ("many-writes", "deposit 1 to 48 in three steps", "after:step_completed", 0),
    ("other-days", "enter the dentist on 15 June", "after:model_replied", 1),
    ("values-nobody-said", "deposit something somewhere", "after:model_replied", 1),
    ("a-read-again", "tell the balance, enter it tomorrow, tell it again", "after:step_completed", 1),
    ("needs-input", "enter the dentist", "after:model_replied", 1),
    ("a-write-of-a-later-plan", "tell the balance, and see to the rest", "after:replanned", 0),
    ("max-steps", "take twelve notes", "after:reply_rejected", 0),
    (TOLD_BY_ITS_CLIENT, "deposit 5 and look", "after:plan_created", 0),
];

/// An OpenAI request whose client sends the conversation and instructions.
const TOLD_BY_ITS_CLIENT: &str = "told-by-its-client";

/// Requests to the offline model.
const RULES: [Cut; 6] = [
    ("rules-a-plan-not-read", MAIN, "after:model_replied", 0),
    ("rules-before-a-write", MAIN, "before:tool_started", 1),
    ("rules-behind-a-write", MAIN, "after:tool_started", 1),
    ("rules-before-the-second-step", MAIN, "after:step_completed", 0),
    ("rules-a-permission-asked-for", "Can I take vacation on 9 July?", "after:scene_replied", 0),
    (
        "rules-a-report",
        "Last year I took vacation from 10 to 12 August. How many days do I have left?",
        "after:scene_replied",
        0,
    ),
];

/// Journals interrupted after a decision or a failure.
const LATER: [&str; 4] = ["an-approved-call", "undoing", "reopened", "an-approved-plan"];

/// Every interrupted journal with the port of its backend; `None` for the offline model.
pub fn cut_off() -> Vec<(&'static str, Option<u16>)> {
    let model = MODEL.iter().map(|cut| cut.0).chain(LATER).map(|name| (name, Some(CUT_PORT)));
    model.chain(RULES.iter().map(|cut| (cut.0, None))).collect()
}

/// The working fixture that a journal was written in.
pub fn fixture(port: Option<u16>) -> ReleaseFixture {
    port.map_or_else(ReleaseFixture::with_rules, ReleaseFixture::with_model)
}

const COMPENSATE: (&str, &str) = ("PROSCENIUM__EXECUTION__COMPENSATE", "true");
const FALLBACK: (&str, &str) = ("PROSCENIUM__PLANNING__FALLBACK_ENABLED", "true");
const CALLS: (&str, &str) = ("PROSCENIUM__APPROVAL__CALLS", "writes");

#[tokio::test]
async fn missing_journals_are_written() {
    if std::env::var("JOURNALS").as_deref() != Ok("write") {
        return;
    }
    for (name, words, place, skip) in MODEL.iter().chain(&RULES) {
        let port = (!name.starts_with("rules-")).then_some(CUT_PORT);
        if is_requested(name) {
            store_journal(name, &cut(fixture(port), name, (words, place, *skip)).await).await;
        }
    }
    for name in LATER.iter().filter(|name| is_requested(name)) {
        store_journal(name, &cut_later(name).await).await;
    }
    if is_requested("model") {
        store_journal("model", &with_model().await).await;
    }
    if is_requested("rules") {
        store_journal("rules", &with_rules().await).await;
    }
}

fn is_requested(name: &str) -> bool {
    !fixture_path(&format!("{name}.sql")).exists()
}

async fn store_journal(name: &str, fixture: &ReleaseFixture) {
    let (schema, rows) = stored::dump(&fixture.workspace.data()).await;
    let write = |name: &str, text: &str| std::fs::write(fixture_path(&format!("{name}.sql")), text).unwrap();
    write(old_release::schema(name), &schema);
    write(name, &rows);
}

/// Events that are synced as soon as they are appended. All others are written in groups, so a kill right
/// after one seldom leaves it.
const DURABLE: [&str; 2] = ["after:tool_started", "after:tool_completed"];

/// A request whose server is killed.
async fn cut(fixture: ReleaseFixture, name: &str, (words, place, skip): (&str, &str, u32)) -> ReleaseFixture {
    let at = match name {
        _ if DURABLE.contains(&place) => (place, skip),
        "max-steps" => ("after:run_failed", 0),
        _ => ("after:run_completed", 0),
    };
    let skipped = at.1.to_string();
    let server = fixture.serve(&[("CRASH_POINT_AT", at.0), ("CRASH_POINT_SKIP", &skipped)]);
    let died = match name {
        TOLD_BY_ITS_CLIENT => server.complete(words).await.is_none(),
        _ => server.chat("s-1", words).await.is_none(),
    };
    assert!(died, "{name}");
    server.kill();
    if at.0 != place {
        stored::shorten(&fixture.workspace.data(), place, skip).await;
    }
    fixture
}

async fn cut_later(name: &str) -> ReleaseFixture {
    let fixture = ReleaseFixture::with_model(CUT_PORT);
    let words = "deposit 6 and enter it tomorrow";
    let place = match name {
        "undoing" => "after:run_completed",
        "reopened" => "after:run_reopened",
        _ => "after:decided",
    };
    if name == "reopened" {
        let server = fixture.serve(&[]);
        partial(&fixture, &server, "s-1").await;
        server.stop();
    }
    let server = fixture.serve(&[("CRASH_POINT_AT", place), COMPENSATE]);
    let yes = json!({"decision": "yes"});
    let died = match name {
        "undoing" => {
            fixture.broken.store(true, Ordering::SeqCst);
            server.chat("s-1", words).await.is_none()
        }
        "reopened" => {
            let runs = server.get("/api/runs").await;
            let path = format!("/api/runs/{}/resume", runs["runs"][0]["run_id"].as_str().unwrap());
            server.send(reqwest::Method::POST, &path, Some(&json!({}))).await.is_none()
        }
        _ => {
            let ask = if name == "an-approved-call" { "pay 5 twice" } else { words };
            let more = json!({"require_approval": name == "an-approved-plan"});
            let document = server.ask("s-1", ask, &more).await.unwrap();
            assert_eq!(document["status"], "waiting", "{document:#}");
            let open = server.get("/api/approvals").await;
            let path = format!("/api/approvals/{}", open["approvals"][0]["approval_id"].as_str().unwrap());
            server.send(reqwest::Method::POST, &path, Some(&yes)).await.is_none()
        }
    };
    assert!(died, "{name}");
    server.kill();
    if name == "undoing" {
        stored::shorten(&fixture.workspace.data(), "after:compensating", 0).await;
    }
    fixture
}

/// A run whose second step fails.
async fn partial(fixture: &ReleaseFixture, server: &Server<'_>, session: &str) -> String {
    fixture.broken.store(true, Ordering::SeqCst);
    let document = server.chat(session, "deposit 6 and enter it tomorrow").await.unwrap();
    fixture.broken.store(false, Ordering::SeqCst);
    assert_eq!(document["status"], "partial", "{document:#}");
    document["run_id"].as_str().unwrap().to_owned()
}

fn is(document: &Option<Value>, status: &str) {
    assert_eq!(document.as_ref().unwrap()["status"], status, "{document:#?}");
}

/// Runs in every state that a server leaves behind without a kill, with the scripted model.
async fn with_model() -> ReleaseFixture {
    let fixture = ReleaseFixture::with_model(PORT);
    let server = fixture.serve(&[]);
    for (session, words, status) in [
        ("completed", "deposit 5 and enter it tomorrow", "completed"),
        ("duplicates", "deposit 5 three times, and then 6", "completed"),
        ("duplicate-in-a-later-step", "deposit 5, and later 5 again", "completed"),
        ("duplicate-in-a-later-plan", "deposit 7, and see to the rest", "completed"),
        ("max-rounds", "deposit 1 to 8 one after the other", "completed"),
        ("max-calls", "deposit 1 to 20 at once", "completed"),
        ("other-days", "enter the dentist on 15 June", "completed"),
        ("values-nobody-said", "deposit something somewhere", "completed"),
        ("a-read-again", "tell the balance, enter it tomorrow, tell it again", "completed"),
        ("no-scene", "hello", "completed"),
        ("failed", "look in vain", "failed"),
        ("unknown", "transfer 5", "partial"),
        ("unknown-not-done", "transfer 5", "partial"),
        ("unknown-again", "transfer 5", "partial"),
        ("a-write-of-a-later-plan", "tell the balance, and see to the rest", "completed"),
        ("max-steps", "take twelve notes", "failed"),
        ("waits-in-the-second-step", "deposit 5 and pay 5", "waiting"),
        ("waits-for-other-arguments", "pay 5", "waiting"),
        ("asks", "hello", "completed"),
        ("asks", "enter the dentist", "needs_input"),
        ("waits-for-a-call", "pay 5", "waiting"),
        ("waits-for-a-call-said-no", "pay 5 twice", "waiting"),
        ("refused-call", "pay 5", "waiting"),
        ("waits-for-a-yes-in-words", "pay 5", "waiting"),
    ] {
        is(&server.chat(session, words).await, status);
    }
    assert_eq!(server.complete("deposit 5 and look").await.unwrap().status, 200);
    let words = "deposit 5 and enter it tomorrow";
    is(&server.ask("dry-run", words, &json!({"dry_run": true})).await, "completed");
    is(&server.ask("waits-for-a-plan-in-words", words, &json!({"require_approval": true})).await, "waiting");
    let open = server.get("/api/approvals?session_id=refused-call").await;
    let path = format!("/api/approvals/{}", open["approvals"][0]["approval_id"].as_str().unwrap());
    server.post(&path, &json!({"decision": "no"})).await;
    for session in ["waits-for-a-plan", "held", "changed", "cancelled"] {
        let plan = server.plan(session, words).await;
        let at = |what: &str| format!("/api/plans/{}/{what}", plan["task_id"].as_str().unwrap());
        match session {
            "held" => _ = server.post(&at("approve"), &json!({"execute": false})).await,
            "changed" => _ = server.post(&at("modify"), &json!({"feedback": "look first"})).await,
            "cancelled" => _ = server.post(&at("cancel"), &json!({"why": "not today"})).await,
            _ => {}
        }
        server.settled_run(plan["run_id"].as_str().unwrap()).await;
    }
    partial(&fixture, &server, "to-be-reopened").await;
    let run = partial(&fixture, &server, "reopened").await;
    server.post(&format!("/api/runs/{run}/resume"), &json!({})).await;
    assert_eq!(server.settled_run(&run).await["status"], "completed");
    server.stop();

    let server = fixture.serve(&[COMPENSATE]);
    let run = partial(&fixture, &server, "undone").await;
    server.settled_run(&run).await;
    server.stop();
    let server = fixture.serve(&[FALLBACK]);
    is(&server.chat("fallback", "Tell the balance of account a1").await, "completed");
    is(&server.chat("waits-for-the-fallback", "Deposit 5 into account a1").await, "waiting");
    server.stop();
    fixture
}

/// The same with the offline model and the shipped scenes.
async fn with_rules() -> ReleaseFixture {
    let fixture = ReleaseFixture::with_rules();
    let server = fixture.serve(&[]);
    let three = "Vorrei chiedere 3 giorni di ferie";
    for (session, words, status) in [
        ("completed", MAIN, "completed"),
        ("partial", "Vorrei chiedere ferie dal 15 al 17 giugno e dimmi che tempo fa a Milano", "*"),
        ("a-permission-asked-for", "Can I take vacation on 9 July?", "*"),
        ("a-negation", "Don't ask for vacation on 7 July", "*"),
        ("two-days", "I would like vacation on 20 July and on 23 July", "*"),
        ("asks", "Che tempo fa a Milano?", "completed"),
        ("asks", "E a Roma?", "completed"),
        ("asks", three, "needs_input"),
        ("remembers", "Che tempo fa a Milano?", "completed"),
        ("out-of-scope", "Calcola la radice quadrata di 144", "completed"),
    ] {
        let document = server.chat(session, words).await;
        if status != "*" {
            is(&document, status);
        }
    }
    let words = |days: &str| format!("Vorrei il meteo a Roma e poi chiedere ferie {days}");
    is(
        &server.ask("dry-run", "Vorrei ferie dal 3 al 5 agosto", &json!({"dry_run": true})).await,
        "completed",
    );
    let all = [
        ("waits-for-a-plan", "dal 7 all'8 settembre"),
        ("held", "dal 10 all'11 settembre"),
        ("changed", "dal 14 al 15 settembre"),
        ("cancelled", "dal 17 al 18 settembre"),
    ];
    for (session, days) in all {
        let plan = server.plan(session, &words(days)).await;
        let at = |what: &str| format!("/api/plans/{}/{what}", plan["task_id"].as_str().unwrap());
        match session {
            "held" => _ = server.post(&at("approve"), &json!({"execute": false})).await,
            "changed" => _ = server.post(&at("modify"), &json!({"feedback": "senza il meteo"})).await,
            "cancelled" => _ = server.post(&at("cancel"), &json!({})).await,
            _ => {}
        }
        server.settled_run(plan["run_id"].as_str().unwrap()).await;
    }
    server.stop();

    let server = fixture.serve(&[CALLS]);
    is(&server.chat("waits-for-a-call", "Vorrei ferie dal 5 al 6 ottobre").await, "waiting");
    server.stop();
    let server = fixture.serve(&[COMPENSATE]);
    let both = "Vorrei chiedere ferie dal 12 al 14 ottobre e poi richiedere ferie dal 13 al 15 ottobre";
    is(&server.chat("undone", both).await, "partial");
    server.stop();
    let server = fixture.serve(&[("CRASH_POINT_AT", "after:tool_started")]);
    assert!(server.chat("unknown", "Vorrei ferie dal 19 al 20 ottobre").await.is_none());
    server.kill();
    let server = fixture.serve(&[]);
    let runs = server.get("/api/runs?session_id=unknown").await;
    server.settled_run(runs["runs"][0]["run_id"].as_str().unwrap()).await;
    server.stop();
    fixture
}
