//! `learned` and `plans rate` on the command line, and what a killed process leaves of a lesson.

use serde_json::Value;

use super::process::Workspace;
use super::support::eventually;

const WORDS: &str = "Mostrami il meteo a Milano per domani";

fn workspace() -> Workspace {
    Workspace::new()
        .with("PROSCENIUM__PLANNING__LEARN", "reuse")
        .with("PROSCENIUM__PLANNING__LEARN_AFTER", "1")
        .with("PROSCENIUM__EXECUTION__LEVEL", "basic")
}

fn learned(workspace: &Workspace) -> Vec<Value> {
    let listed = workspace.run(&["learned", "list", "--json"]);
    serde_json::from_str(&listed.out).unwrap_or_else(|error| panic!("{error}: {listed:?}"))
}

#[test]
fn learned_plans_are_listed_shown_exported_rated_and_deleted() {
    let workspace = workspace();
    let first = workspace.ask(WORDS, &[]);
    assert_eq!(
        (&first["status"], &first["usage"]["llm_calls"]),
        (&"completed".into(), &1.into()),
        "{first:#}"
    );
    let second = workspace.ask(&WORDS.replace("Milano", "Roma"), &[]);
    assert_eq!(
        (&second["status"], &second["usage"]["llm_calls"]),
        (&"completed".into(), &0.into()),
        "{second:#}"
    );
    assert!(second["answer"].as_str().unwrap().contains("Roma"), "{second:#}");

    let all = learned(&workspace);
    assert_eq!(
        (all.len(), all[0]["standing"].as_str(), all[0]["uses"].as_u64()),
        (1, Some("proven"), Some(1))
    );
    let id = all[0]["id"].as_str().unwrap();
    let listed = workspace.run(&["learned", "list"]);
    assert!(listed.out.contains(&id[..12]) && listed.out.contains("{name}"), "{listed:?}");
    let shown = workspace.run(&["learned", "show", &id[..8]]);
    assert_eq!(serde_json::from_str::<Value>(&shown.out).unwrap(), all[0]);
    let exported = workspace.run(&["learned", "export"]);
    assert_eq!(serde_json::from_str::<Value>(exported.out.trim()).unwrap(), all[0]);
    assert!(!exported.out.contains("Milano") && !exported.out.contains("Roma"), "{exported:?}");

    let rated =
        workspace.run(&["plans", "rate", second["task_id"].as_str().unwrap(), "bad", "--note", "wrong day"]);
    assert_eq!(rated.status, 0, "{rated:?}");
    assert_eq!(learned(&workspace)[0]["demoted"], "rating");
    let shown = workspace.run(&["plans", "show", second["task_id"].as_str().unwrap(), "--json"]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(
        (&shown["ratings"][0]["score"], &shown["ratings"][0]["note"]),
        (&(-1).into(), &"wrong day".into())
    );
    let strange = workspace.run(&["plans", "rate", second["task_id"].as_str().unwrap(), "five"]);
    assert_eq!(strange.status, 2, "{strange:?}");

    let unknown = workspace.run(&["learned", "show", "ffff"]);
    assert!(unknown.status != 0 && unknown.err.contains("learned.unknown"), "{unknown:?}");
    assert_eq!(workspace.run(&["learned", "delete", id]).status, 0);
    assert!(learned(&workspace).is_empty());
    let replayed = workspace.run(&["replay", second["run_id"].as_str().unwrap()]);
    assert_eq!(replayed.status, 0, "{replayed:?}");
}

#[tokio::test]
async fn process_killed_around_a_look_up_or_lesson_teaches_exactly_once() {
    for point in
        ["before:plan_recalled", "after:plan_recalled", "before:plan_observed", "after:plan_observed"]
    {
        let workspace = workspace();
        let mut killed = workspace.spawn_with(&["chat", WORDS], &[("CRASH_POINT_AT", point.to_owned())]);
        killed.try_read_until("never printed");
        assert_ne!(killed.end().status, 0, "{point}");
        let mut server = workspace.spawn(&["serve", "--addr", "127.0.0.1:0"]);
        server.read_until("http://");
        let ended = async || workspace.run(&["runs", "list"]).out.contains("completed");
        eventually(point, ended).await;
        server.signal("TERM");
        server.end();
        let all = learned(&workspace);
        assert_eq!((all.len(), all[0]["successes"].as_u64()), (1, Some(1)), "{point}: {all:#?}");
    }
}
