//! The data directory after a process is killed, and with a damaged file.

use std::sync::mpsc;

use super::cli::weather_model;
use super::process::{MAIN, Workspace};
use super::support::{self, Scripted, ScriptedLlm};

#[test]
fn directory_of_a_killed_process_opens_and_its_session_continues() {
    let (sender, receiver) = mpsc::sync_channel(8);
    let silent = ScriptedLlm::start(move |request, _| match support::forced_tool(request) {
        Some(_) => weather_model(request),
        None => {
            sender.send(()).unwrap();
            Scripted::Silence
        }
    });
    let workspace = Workspace::new();
    workspace.ask("Che tempo fa a Milano?", &["--session", "s"]);
    let config = format!("[[llm.models]]\nname = \"silent\"\nbase_url = \"{}\"\n", silent.base_url());
    workspace.write("silent.toml", &config);
    let chat =
        workspace.spawn(&["chat", "Che tempo fa a Roma?", "--session", "s", "--config", "silent.toml"]);
    receiver.recv().unwrap();
    // Appends that nothing waits for are on disk a moment later.
    let is_running = (0..200).any(|_| workspace.run(&["runs", "list"]).out.contains("running"));
    assert!(is_running, "the start of the run is never on disk");
    chat.kill();

    let listed = workspace.run(&["runs", "list"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let row = listed.out.lines().nth(1).unwrap();
    assert!(row.contains("running") && row.contains("Roma"), "{row}");
    let run = row.split_whitespace().next().unwrap();
    let shown = workspace.run(&["runs", "show", run]);
    assert!(shown.out.contains("Status: running") && shown.out.contains("not ended"), "{}", shown.out);

    let answer = workspace.ask("E a Torino?", &["--session", "s"]);
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(answer["steps"][0]["tool_calls"][0]["result"]["city"], "Turin");
}

#[test]
fn damaged_file_is_reported_and_left_unchanged() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.data()).unwrap();
    let file = workspace.data().join("proscenium.db");
    let garbage = b"This is no database. ".repeat(500);
    std::fs::write(&file, &garbage).unwrap();
    for line in [&["chat", "Ciao"][..], &["runs", "list"]] {
        let ran = workspace.run(line);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("error[store.corrupt]") && ran.err.contains("proscenium.db"), "{}", ran.err);
    }
    assert_eq!(std::fs::read(&file).unwrap(), garbage);
}

#[test]
fn file_of_a_newer_version_is_left_unchanged() {
    let workspace = Workspace::new();
    workspace.ask(MAIN, &[]);
    let file = workspace.data().join("proscenium.db");
    // SQLite keeps `user_version` in bytes 60 to 63 of the file, big-endian.
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&999u32.to_be_bytes());
    std::fs::write(&file, &bytes).unwrap();
    for line in [&["chat", "Ciao"][..], &["runs", "list"]] {
        let ran = workspace.run(line);
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.contains("error[store.newer_schema]") && ran.err.contains("999"), "{}", ran.err);
    }
}

#[test]
fn truncated_wal_is_recovered_to_its_last_commit() {
    let workspace = Workspace::new();
    let mut chat = workspace.spawn(&["chat"]);
    chat.write("Che tempo fa a Milano?\nChe tempo fa a Roma?\n");
    chat.read_stderr_until("model calls");
    chat.read_stderr_until("model calls");
    // A killed process does not write the log back into the file.
    chat.kill();
    let log = workspace.data().join("proscenium.db-wal");
    let bytes = std::fs::read(&log).unwrap();
    assert!(bytes.len() > 4096, "{}", bytes.len());
    std::fs::write(&log, &bytes[..bytes.len() - 1000]).unwrap();

    let ran = workspace.run(&["chat", "Che tempo fa a Torino?"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let listed = workspace.run(&["runs", "list"]);
    assert!(listed.status == 0, "{listed:?}");
    assert!(listed.out.contains("Torino") && listed.out.contains("Milano"), "{}", listed.out);
}
