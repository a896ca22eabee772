//! `proscenium replay`, with the real program.

use proscenium::run::{RunId, TenantId};
use proscenium::store::{Page, RunFilter, Store};
use serde_json::{Value, json};

use super::process::{MAIN, Workspace};

/// A workspace in which the main request was executed, and its run.
fn completed_main_request() -> (Workspace, String) {
    let workspace = Workspace::new();
    let run = workspace.ask(MAIN, &[])["run_id"].as_str().unwrap().to_owned();
    (workspace, run)
}

fn document(workspace: &Workspace, arguments: &[&str]) -> (i32, Value) {
    let line: Vec<&str> = ["replay", "--json"].into_iter().chain(arguments.iter().copied()).collect();
    let ran = workspace.run(&line);
    (ran.status, serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}")))
}

#[test]
fn run_is_replayed_identically_while_a_server_is_running() {
    let (workspace, run) = completed_main_request();
    let _server = workspace.serve(&[]);
    let ran = workspace.run(&["replay", &run]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(ran.out.starts_with(&format!("run {run}: completed, ")), "{}", ran.out);
    assert!(ran.out.contains("\nthe current code decides the same\n"), "{}", ran.out);
    let (status, report) = document(&workspace, &[&run]);
    assert_eq!((status, &report["same"], &report["run_id"]), (0, &json!(true), &json!(run)));
    assert_eq!(
        (&report["differences"], &report["wordings"], &report["due"]),
        (&json!([]), &json!([]), &json!([]))
    );
    let held = &report["held"];
    let all =
        ["decisions", "questions", "replies", "calls", "taken"].map(|part| held[part].as_u64().unwrap());
    assert_eq!(
        all.iter().sum::<u64>(),
        report["events"].as_u64().unwrap(),
        "every event is compared with something"
    );
    assert!(all.iter().all(|part| *part > 0));
}

#[test]
fn exported_run_is_replayed_and_edits_are_shown() {
    let (workspace, run) = completed_main_request();
    let exported = workspace.run(&["replay", &run, "--export"]);
    assert_eq!(exported.status, 0);
    workspace.write("run.jsonl", &exported.out);
    assert_eq!(document(&workspace, &["run.jsonl"]).1, document(&workspace, &[&run]).1);

    let ended = r#"{"type":"run_completed","status":"completed"}"#;
    assert!(exported.out.contains(ended));
    workspace
        .write("other.jsonl", &exported.out.replace(ended, r#"{"type":"run_completed","status":"partial"}"#));
    let ran = workspace.run(&["replay", "other.jsonl"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    let last = exported.out.lines().count();
    let planned = exported.out.lines().position(|line| line.contains("\"plan_created\"")).unwrap();
    let started: Vec<&str> = exported.out.lines().take(planned + 1).collect();
    workspace.write("begun.jsonl", &started.join("\n"));
    let started = workspace.run(&["replay", "begun.jsonl"]);
    let goes_on = "the run has not ended; the current code would continue with step_started\n";
    assert!(started.status == 0 && started.out.contains(goes_on), "{}", started.out);
    let line = format!("event {last} run_completed [decision]: run_completed is due here in its place");
    assert!(
        ran.out.contains("\nthe current code decides differently in 1 place\n") && ran.out.contains(&line),
        "{}",
        ran.out
    );
    let ran = workspace.run(&["replay", "other.jsonl", "--diff"]);
    let changes = "--- recorded\n+++ today\n {\n-  \"status\": \"partial\",\n+  \"status\": \"completed\",\n";
    assert!(ran.status == 1 && ran.out.contains(changes), "{}", ran.out);
    let (status, report) = document(&workspace, &["other.jsonl"]);
    assert_eq!((status, &report["same"]), (1, &json!(false)));
    assert_eq!(report["differences"][0]["recorded"]["status"], "partial");
    assert_eq!(report["differences"][0]["today"][0]["status"], "completed");
}

#[test]
fn changed_scene_wording_alone_is_no_difference() {
    let (workspace, run) = completed_main_request();
    workspace.write(
        "more/orders/scene.toml",
        "name = \"Orders\"\ndescription = \"Orders of customers.\"\ninstructions = \"Look them up.\"\n\
         [[tools]]\nname = \"GetOrder\"\ndescription = \"Finds an order.\"\neffect = \"read\"\n\
         parameters = { type = \"object\" }\n[tools.http]\nmethod = \"GET\"\nurl = \"https://orders.example/\"\n",
    );
    let ran = workspace.run(&["replay", &run, "--scenes", "more"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("the scenes or their settings have changed since"), "{}", ran.out);
    assert!(ran.out.contains("worded differently today"), "{}", ran.out);
    let ran = workspace.run(&["replay", &run, "--scenes", "more", "--diff"]);
    assert!(ran.out.contains("--- recorded: only its hash is known, "), "{}", ran.out);
    assert!(ran.out.contains("\"scene\":\"Orders\""), "today's words are shown: {}", ran.out);
    let request = |arguments: &[&str]| document(&workspace, arguments).1["wordings"][0]["request"].clone();
    assert!(request(&[&run, "--scenes", "more"]).is_null());
    assert_eq!(request(&[&run, "--scenes", "more", "--diff"])["purpose"], "plan");
}

#[tokio::test]
async fn interrupted_run_is_replayed_to_its_last_event() {
    let workspace = Workspace::new();
    let held = workspace.spawn_with(&["chat", MAIN], &[("CRASH_POINT_AT", "after:step_started".to_owned())]);
    assert_eq!(held.end().status, -1);
    let store = Store::open_read_only(&workspace.data()).await.unwrap();
    let page = Page::<RunId> { limit: 5, after: None };
    let rows = store.runs(&TenantId::new("local").unwrap(), &RunFilter::default(), &page).await.unwrap();
    let ran = workspace.run(&["replay", &rows[0].run.to_string()]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.out.contains("the run has not ended; the current code would "), "{}", ran.out);
}

#[test]
fn unreplayable_input_is_explained() {
    let workspace = Workspace::new();
    let some = "01976c8e-0000-7000-8000-000000000001";
    let report = |arguments: &[&str]| {
        let ran = workspace.run(&[&["replay"], arguments].concat());
        assert_eq!(ran.out, "");
        (ran.status, ran.err)
    };
    let (status, err) = report(&[some]);
    assert!(status == 1 && err.starts_with("error[store.absent]"), "{err}");
    workspace.ask("Che tempo fa a Milano?", &[]);
    let (status, err) = report(&[some]);
    assert!(status == 1 && err.starts_with("error[run.unknown]"), "{err}");
    let (status, err) = report(&["nothing.jsonl"]);
    assert!(status == 2 && err.starts_with("error[replay.file]"), "{err}");
    workspace.write("torn.jsonl", "{\"seq\":1,");
    let (status, err) = report(&["torn.jsonl"]);
    assert!(status == 2 && err.starts_with("error[replay.unreadable]: torn.jsonl: line 1: "), "{err}");
    let (status, err) = report(&["not-an-id"]);
    assert!(status == 2 && err.contains("neither a run's id"), "{err}");
}
