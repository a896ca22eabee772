//! API keys, tested with the real program in its own processes.

use proscenium::store::{KeyRing, Store};
use serde_json::Value;

use super::process::{ProcessOutput, Workspace, assert_refused};
use super::support::{Setup, eventually};

fn create(workspace: &Workspace, more: &[&str]) -> Value {
    let line: Vec<&str> = ["keys", "create", "--json"].into_iter().chain(more.iter().copied()).collect();
    let ran = workspace.run(&line);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

/// The part of a key that must not be stored or shown.
fn secret(whole: &str) -> &str {
    whole.rsplit('_').next().unwrap()
}

#[test]
fn key_is_shown_once_listed_without_secret_and_revoked() {
    let workspace = Workspace::new();
    assert_refused(&workspace.run(&["keys", "list"]), 1, "store.absent", &[]);
    assert_refused(&workspace.run(&["keys", "revoke", "0123456789abcdef"]), 1, "key.unknown", &[]);
    assert!(!workspace.data().exists(), "reading creates nothing");

    let ran =
        workspace.run(&["keys", "create", "--tenant", "acme", "--user", "maria", "--label", "the chatbot"]);
    assert_eq!((ran.status, ran.out.lines().count()), (0, 1), "the key alone is on standard output: {ran:?}");
    let whole = ran.out.trim_end();
    let parts: Vec<&str> = whole.split('_').collect();
    let [prefix, id, own] = parts[..] else { panic!("{whole}") };
    assert_eq!((prefix, id.len(), own.len()), ("psk", 16, 64));
    assert!(ran.err.contains("not shown again") && ran.err.contains(&format!("keys revoke {id}")));
    assert!(!ran.err.contains(own), "{}", ran.err);

    let other = create(&workspace, &["--tenant", "other"]);
    assert_eq!((text(&other, "user"), text(&other, "label")), ("keysersoze", ""));
    assert!(text(&other, "key").starts_with(&format!("psk_{}_", text(&other, "id"))));

    let listed = workspace.run(&["keys", "list"]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!((listed.status, lines.len()), (0, 3), "{listed:?}");
    assert!(lines[1].starts_with(id) && lines[1].contains("acme") && lines[1].ends_with("the chatbot"));
    let of_acme = |workspace: &Workspace| -> Value {
        serde_json::from_str(&workspace.run(&["keys", "list", "--tenant", "acme", "--json"]).out).unwrap()
    };
    let keys = of_acme(&workspace);
    assert_eq!(keys.as_array().unwrap().len(), 1);
    assert_eq!((text(&keys[0], "user"), &keys[0]["revoked"]), ("maria", &Value::Null));

    let revoked = workspace.run(&["keys", "revoke", id]);
    assert!(revoked.status == 0 && revoked.out.contains(id), "{revoked:?}");
    assert!(of_acme(&workspace)[0]["revoked"].is_string());
    assert_eq!(workspace.run(&["keys", "revoke", id]).status, 0, "repeating it changes nothing");
    let ran = workspace.run(&["keys", "revoke", "0123456789abcdef"]);
    assert_refused(&ran, 1, "key.unknown", &["keys list"]);
}

#[test]
fn key_secret_is_never_stored_logged_or_repeated() {
    let workspace = Workspace::new().with("PROSCENIUM__TELEMETRY__LOG", "trace");
    let made = workspace.run(&["keys", "create", "--tenant", "acme"]);
    let whole = made.out.lines().next().unwrap().to_owned();
    let outputs = [
        workspace.run(&["keys", "list"]),
        workspace.run(&["keys", "list", "--json"]),
        workspace.run(&["keys", "revoke", &format!("{whole}x")]),
        workspace.run(&["keys", "revoke", secret(&whole)]),
        workspace.run(&["keys", "revoke", &whole]),
        workspace.run(&["chat", "Ciao"]),
    ];
    // A whole key contains its id.
    assert_eq!(outputs[4].status, 0, "{:?}", outputs[4]);
    assert_refused(
        &ProcessOutput { out: String::new(), ..workspace.run(&["keys", "revoke", secret(&whole)]) },
        1,
        "key.unknown",
        &[],
    );
    assert!(!made.err.contains(secret(&whole)), "{}", made.err);
    for ran in &outputs {
        assert!(!ran.out.contains(secret(&whole)) && !ran.err.contains(secret(&whole)), "{ran:?}");
    }
    let stored = workspace.stored();
    assert!(stored.windows(4).any(|window| window == b"acme"));
    assert!(!stored.windows(64).any(|window| window == secret(&whole).as_bytes()));
}

#[test]
fn keys_are_managed_while_another_process_owns_the_directory() {
    let workspace = Workspace::new();
    let mut owner = workspace.spawn(&["chat"]);
    owner.write("Che tempo fa a Milano?\n");
    owner.read_stderr_until("model calls");
    let key = create(&workspace, &["--tenant", "acme"]);
    assert_eq!(workspace.run(&["keys", "revoke", text(&key, "id")]).status, 0);
    assert!(workspace.run(&["keys", "list"]).out.contains(text(&key, "id")));
    // The owner keeps working.
    owner.write("E a Roma?\n");
    let ran = owner.end();
    assert!(ran.status == 0 && ran.out.contains("Roma"), "{ran:?}");
    assert!(workspace.run(&["keys", "list"]).out.contains(text(&key, "id")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_engine_sees_new_and_revoked_keys() {
    let test = Setup::offline().start().await;
    let ring = KeyRing::new(test.engine.store().clone());
    let beside = Store::open_shared(&test.dir.path().join("data")).await.unwrap();
    let acme = proscenium::run::TenantId::new("acme").unwrap();
    let (key, secret) = beside.create_key(&acme, "maria", "").await.unwrap();
    assert_eq!(ring.find(secret.expose()).await.unwrap().as_deref(), Some(&key));
    // Both processes write at the same time.
    let (finished, revoked) =
        tokio::join!(test.chat("s-1", "Che tempo fa a Milano?"), beside.revoke_key(&key.id));
    assert!(revoked.unwrap() && !finished.answer.answer.is_empty());
    eventually("the key is invalid", async || ring.find(secret.expose()).await.unwrap().is_none()).await;
    beside.close().await;
    test.stop().await;
}
