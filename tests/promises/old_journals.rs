//! Journals of earlier releases are read, replayed and resumed under the rules with which their runs began,
//! whatever today's rules are. See `tests/replays/release-0.1/README.md`.

use std::path::Path;

use proscenium::replay::{read, replay};
use proscenium::run::{RunId, TenantId};
use proscenium::store::{DataDir, Store};
use serde_json::{Value, json};

use super::old_journals_written::{cut_off, fixture};
use super::support::old_release::{PORT, ReleaseFixture, Server, fixture_path};
use super::support::recordings::{KINDS, catalogues};
use super::support::stored;

/// Every journal, with a fixture to read it.
fn all() -> Vec<(&'static str, ReleaseFixture)> {
    let look = |port: Option<u16>| port.map_or_else(ReleaseFixture::with_rules, ReleaseFixture::read_only);
    let ended = [("model", Some(PORT)), ("rules", None)];
    ended.into_iter().chain(cut_off()).map(|(name, port)| (name, look(port))).collect()
}

/// Migrates the database, as every process that opens it for writing does, and resumes nothing.
async fn migrate(data: &Path) {
    Store::open(DataDir::open(data).unwrap()).await.unwrap().close().await;
}

/// Asserts that a text equals the file beside the journals. `INSTA_UPDATE=always` rewrites the file if it
/// differs.
fn assert_file(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(fixture_path("told"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[tokio::test]
async fn old_journals_are_read_unchanged_and_replayed_without_differences() {
    let mut different = String::new();
    for (name, fixture) in all() {
        fixture.load(name).await;
        migrate(&fixture.workspace.data()).await;
        let runs = stored::runs(&fixture.workspace.data()).await;
        let mut text = String::new();
        let mut record = |arguments: &[&str]| {
            let ran = fixture.workspace.run(arguments);
            assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{name} {arguments:?}");
            text += &format!("$ {}\n{}\n", arguments.join(" "), ran.out);
        };
        for arguments in [["runs", "list", "--limit", "100"], ["plans", "list", "--limit", "100"]] {
            record(&arguments);
        }
        record(&["approvals", "list", "--all"]);
        for (_, run) in &runs {
            record(&["runs", "show", run]);
        }
        assert_file(&format!("{name}.read"), &text);
        different += &differences(&fixture, name).await;
    }
    assert_eq!(different, "");
}

/// As users do it, of which the other tests do the same without a process.
#[tokio::test]
async fn old_journal_is_replayed_by_the_program() {
    for (name, fixture) in all().into_iter().take(2) {
        fixture.load(name).await;
        migrate(&fixture.workspace.data()).await;
        let runs = stored::runs(&fixture.workspace.data()).await;
        let ran = fixture.workspace.run(&["replay", &runs[0].1, "--diff"]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{name}: {}", ran.out);
    }
}

/// Runs as `--export` writes them, of the shipped scenes and of a workshop.
#[tokio::test]
async fn old_exports_are_replayed_without_differences() {
    let catalogues = catalogues().await;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(fixture_path("exported")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
        let events = read(&std::fs::read_to_string(path).unwrap()).unwrap();
        let (_, catalogue) = catalogues.iter().find(|(of, _)| *of == kind.scenes).unwrap();
        let replayed = replay(events[0].run.unwrap(), &events, catalogue);
        assert!(replayed.same, "{name}: {:#?}", replayed.differences);
        assert_eq!(replayed.status, kind.status, "{name}");
        names.push(name);
    }
    assert_eq!(names.len(), 7);
}

/// The replay differences of the runs in a data directory.
async fn differences(fixture: &ReleaseFixture, name: &str) -> String {
    let catalogue = fixture.catalogue().await;
    let store = Store::open_read_only(&fixture.workspace.data()).await.unwrap();
    let tenant = TenantId::new("local").unwrap();
    let mut text = String::new();
    for (session, run) in stored::runs(&fixture.workspace.data()).await {
        let run = RunId(run.parse().unwrap());
        let events = store.run_events(&tenant, run).await.unwrap();
        let replayed = replay(run, &events, &catalogue);
        if !replayed.same {
            text += &format!("{name}, {session}: {:#?}\n", replayed.differences);
        }
    }
    store.close().await;
    text
}

/// The state of the last run of a conversation, once it has ended or waits.
async fn last_run(server: &Server<'_>, session: &str) -> String {
    let listed = server.get(&format!("/api/runs?session_id={session}")).await;
    let run = listed["runs"][0]["run_id"].as_str().unwrap_or_else(|| panic!("{session}: {listed:#}"));
    let ended = server.settled_run(run).await;
    document(session, &ended) + &answer(&ended)
}

/// A run's status and calls.
fn document(name: &str, document: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = format!("# {name}: {}\n", word(&document["status"]));
    for step in document["steps"].as_array().into_iter().flatten() {
        let (number, scene, status) = (&step["step_number"], &step["scene_name"], &step["status"]);
        text += &format!("{number}. {} {}\n", word(scene), word(status));
        for call in step["tool_calls"].as_array().into_iter().flatten() {
            let code = call["error"]["code"].as_str().map(|code| format!(" [{code}]")).unwrap_or_default();
            let (tool, outcome) = (word(&call["tool"]), word(&call["outcome"]));
            text += &format!("   {tool} {}: {outcome}{code}\n", call["arguments"]);
        }
    }
    match document["error"]["code"].as_str() {
        Some(code) => text + &format!("[{code}]\n"),
        None => text,
    }
}

/// The text of a scripted model's answer. The texts of the offline model may change.
fn answer(document: &Value) -> String {
    let shipped = ["Weather", "VacationManagement"];
    let with_rules = |step: &Value| shipped.contains(&step["scene_name"].as_str().unwrap());
    match document["steps"].as_array().is_some_and(|steps| steps.iter().any(with_rules)) {
        true => String::new(),
        false => format!("{}\n", document["answer"].as_str().unwrap_or_default()),
    }
}

#[tokio::test]
async fn interrupted_runs_resume_under_their_own_rules() {
    let (mut text, mut different) = (String::new(), String::new());
    for (name, port) in cut_off() {
        let fixture = fixture(port);
        fixture.load(name).await;
        let server = fixture.serve(&[]);
        let runs = server.get("/api/runs").await;
        let [run] = runs["runs"].as_array().unwrap().as_slice() else { panic!("{name}: {runs:#}") };
        let ended = server.settled_run(run["run_id"].as_str().unwrap()).await;
        text += &format!("{}{}", document(name, &ended), answer(&ended));
        let open = server.get("/api/approvals").await;
        for approval in open["approvals"].as_array().unwrap() {
            text += &format!("waits for a person: {} {}\n", approval["about"], approval["arguments"]);
        }
        server.stop();
        text += &format!("{}{}\n", fixture.reached(), vacations(&fixture).await);
        different += &differences(&fixture, name).await;
    }
    assert_file("carried-on", &text);
    assert_eq!(different, "");
}

/// The stored vacations of the shipped scene.
async fn vacations(fixture: &ReleaseFixture) -> String {
    let sql = "SELECT first_day || ' to ' || last_day || iif(cancelled_at IS NULL, '', ', cancelled') \
               FROM vacation_requests ORDER BY id";
    let days = stored::column(&fixture.workspace.data(), sql).await;
    days.iter().map(|days| format!("vacation {days}\n")).collect()
}

/// The pending approval of a conversation's waiting run.
async fn open_approval(server: &Server<'_>, session: &str) -> (String, Value) {
    let open = server.get(&format!("/api/approvals?session_id={session}")).await;
    let [approval] = open["approvals"].as_array().unwrap().as_slice() else { panic!("{session}: {open:#}") };
    (format!("/api/approvals/{}", approval["approval_id"].as_str().unwrap()), approval.clone())
}

/// Decides the pending approval of a conversation as it was shown, and returns the result.
async fn decide(server: &Server<'_>, session: &str, decision: &str) -> String {
    let (path, approval) = open_approval(server, session).await;
    let decision = json!({"decision": decision, "hash": approval["hash"]});
    let reply = server.post(&path, &decision).await;
    assert!(reply["approval_id"].is_string(), "{session}: {reply:#}");
    last_run(server, session).await
}

/// Sends a command to the plan of a conversation's run, and returns the result.
async fn order_plan(server: &Server<'_>, session: &str, order: &str) -> String {
    let listed = server.get("/api/plans?limit=100").await;
    let plans = listed["plans"].as_array().unwrap();
    let plan = plans.iter().find(|plan| plan["session_id"] == session).unwrap();
    let path = format!("/api/plans/{}/{order}", plan["task_id"].as_str().unwrap());
    let reply = server.post(&path, &json!({})).await;
    assert!(reply["task_id"].is_string(), "{session}: {reply:#}");
    last_run(server, session).await
}

/// The pending approvals after a server's start, by conversation.
async fn pending_approvals(server: &Server<'_>) -> String {
    let open = server.get("/api/approvals?limit=100").await;
    let lines = open["approvals"].as_array().unwrap().iter();
    let mut lines: Vec<String> = lines
        .map(|waits| format!("{} waits for {}\n", waits["session_id"], waits["about"]).replace('"', ""))
        .collect();
    lines.sort();
    format!("{}\n", lines.concat())
}

/// The lapsed approvals: of changed or stopped runs, and of none that only waits.
async fn lapsed_approvals(fixture: &ReleaseFixture) -> String {
    let sql = "SELECT session FROM approvals WHERE state = 'lapsed' ORDER BY created";
    let lapsed = stored::column(&fixture.workspace.data(), sql).await;
    format!("lapsed: {}\n", lapsed.join(", "))
}

#[tokio::test]
async fn waiting_runs_of_old_journals_are_decided_and_continue() {
    let fixture = ReleaseFixture::with_model(PORT);
    fixture.load("model").await;
    let server = fixture.serve(&[]);
    let mut text = pending_approvals(&server).await;
    for (session, decision) in [
        ("waits-for-a-plan", "yes"),
        ("changed", "yes"),
        ("waits-for-a-call", "yes"),
        ("waits-for-a-call-said-no", "no"),
        ("waits-for-the-fallback", "yes"),
        ("unknown", "done"),
        ("unknown-not-done", "not_done"),
        ("unknown-again", "again"),
        ("waits-in-the-second-step", "yes"),
    ] {
        text += &decide(&server, session, decision).await;
        text += &format!("{}\n", fixture.reached());
    }
    for (session, order) in
        [("held", "approve"), ("to-be-reopened", "resume"), ("unknown-not-done", "resume")]
    {
        text += &order_plan(&server, session, order).await;
        text += &format!("{}\n", fixture.reached());
    }
    let (path, approval) = open_approval(&server, "waits-for-other-arguments").await;
    let edited = json!({"decision": "yes", "hash": approval["hash"], "arguments": {"amount": 4}});
    assert!(server.post(&path, &edited).await["approval_id"].is_string());
    text += &format!("{}{}\n", last_run(&server, "waits-for-other-arguments").await, fixture.reached());
    for (session, words) in
        [("waits-for-a-yes-in-words", "yes"), ("waits-for-a-plan-in-words", "yes"), ("asks", "on 15 June")]
    {
        let document_of_answer = server.chat(session, words).await.unwrap();
        text += &format!(
            "{}{}{}\n",
            document(session, &document_of_answer),
            answer(&document_of_answer),
            fixture.reached()
        );
    }
    text += &pending_approvals(&server).await;
    server.stop();
    text += &lapsed_approvals(&fixture).await;
    // The exchange ends 25 ms before the call does: on a busy machine either may be noticed first.
    let text = text.replace(
        "[tool.timeout]\nTransfer did not answer within 500 ms; whether it took effect is unknown",
        &format!("[http.timeout]\nPOST http://127.0.0.1:{PORT}/Transfer gave no answer within 475 ms"),
    );
    assert_file("model.decided", &text);
    assert_eq!(differences(&fixture, "model").await, "");
}

#[tokio::test]
async fn waiting_runs_of_old_rules_journals_are_decided_and_continue() {
    let fixture = ReleaseFixture::with_rules();
    fixture.load("rules").await;
    let server = fixture.serve(&[]);
    let mut text = pending_approvals(&server).await;
    for session in ["waits-for-a-plan", "changed", "waits-for-a-call"] {
        text += &decide(&server, session, "yes").await;
    }
    text += &order_plan(&server, "held", "approve").await;
    for (session, words) in [("asks", "Dal 22 al 24 giugno"), ("remembers", "E a Roma?")] {
        text += &document(session, &server.chat(session, words).await.unwrap());
    }
    text += &pending_approvals(&server).await;
    server.stop();
    text += &lapsed_approvals(&fixture).await;
    text += &vacations(&fixture).await;
    assert_file("rules.decided", &text);
    assert_eq!(differences(&fixture, "rules").await, "");
}

#[tokio::test]
async fn conversations_of_old_journals_are_remembered() {
    let mut text = String::new();
    for (name, fixture) in all().into_iter().take(2) {
        fixture.load(name).await;
        let server = fixture.serve(&[]);
        for session in ["asks", "completed", "undone", "reopened", "remembers"] {
            let path = format!("/api/sessions/{session}");
            let reply = server.send(reqwest::Method::GET, &path, None).await.unwrap();
            if reply.status == 200 {
                text += &format!("# {name} {session}\n{:#}\n\n", reply.json());
            }
        }
        server.stop();
    }
    assert_file("sessions", &text);
}
