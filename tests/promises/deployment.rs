//! What `config` ships for a server in production: a proxy with TLS, a unit of systemd, a container.

use std::path::Path;
use std::process::Command;

use proscenium::config::{Config, ConfigFlags};
use serde_json::json;

use crate::support::nginx::{HOST, Nginx, is_installed};
use crate::support::served_engine::Events;
use crate::support::{Gate, Reply, Scripted, ScriptedLlm, ServedEngine, Setup};

fn config(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn proxy_speaks_tls_and_passes_streams_as_they_are_written() {
    if !is_installed() {
        return;
    }
    let gate = Gate::closed();
    let held = gate.clone();
    let llm = ScriptedLlm::start(move |request, _| {
        let plan = json!({"needs_execution": false, "reasoning": "Nothing to do.", "steps": []});
        match request.get("tool_choice") {
            Some(_) => Scripted::forced(request, plan).held(&held),
            None => Scripted::Text("Ciao!".to_owned()),
        }
    });
    let setup = Setup::scripted(&llm).set("server.allowed_hosts", format!("[{HOST:?}]"));
    let served = ServedEngine::start(setup).await;
    let proxy = Nginx::before(served.addr()).await;
    let client = proxy.client();

    let redirected = client.get(format!("http://{}/readyz", proxy.http)).header("host", HOST).send().await;
    let redirected = Reply::of(redirected.unwrap()).await;
    assert_eq!((redirected.status, redirected.header("location")), (308, &*format!("https://{HOST}/readyz")));
    let ready = Reply::of(client.get(proxy.url("/readyz")).send().await.unwrap()).await;
    assert_eq!(ready.status, 200, "{ready:?}");
    assert!(ready.header("strict-transport-security").starts_with("max-age="), "{ready:?}");

    // No other name is served, not even one that the server itself trusts.
    let other = client.get(proxy.url("/readyz")).header("host", "127.0.0.1").send().await;
    assert!(other.is_err(), "{other:?}");
    let other = reqwest::Client::new().get(format!("http://{}/readyz", proxy.http)).send().await;
    assert!(other.is_err(), "{other:?}");

    // A larger body than the proxy's own default, and larger than it keeps in memory.
    let text = "Ordine e pulizia.\n".repeat(120_000);
    let sent = client.post(proxy.url("/api/documents?name=rules.md")).header("content-type", "text/markdown");
    let added = Reply::of(sent.body(text).send().await.unwrap()).await;
    assert!(matches!(added.status, 200 | 201), "{added:?}");

    // The first events come while the model has not answered: nothing on the way waits for more.
    let body = json!({"messages": [{"role": "user", "content": "Ciao"}], "stream": true});
    let asked = client.post(proxy.url("/api/chat")).json(&body).send().await.unwrap();
    let mut events = Events::of(asked);
    assert_eq!(events.next().await.unwrap().name, "run_started");
    gate.open();
    let mut last = String::new();
    while let Some(event) = events.next().await {
        last = event.name;
    }
    assert_eq!(last, "run_completed");
}

/// The values of a unit's key, of all its lines.
fn values<'u>(unit: &'u str, key: &str) -> Vec<&'u str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn unit_waits_longer_than_the_server_and_its_proxy_longer_than_a_run() {
    let (unit, proxy) = (config("proscenium.service"), config("nginx.conf"));
    let production = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/production.toml");
    let server = Config::load(Some(&production), std::iter::empty(), ConfigFlags::default()).unwrap().config;
    let stop: u64 = values(&unit, "TimeoutStopSec")[0].parse().unwrap();
    assert!(stop * 1000 > server.server.drain_timeout_ms, "{stop}");
    let files: usize = values(&unit, "LimitNOFILE")[0].parse().unwrap();
    assert!(files > server.server.max_connections + server.server.max_in_flight, "{files}");
    assert!(server.auth.require_keys, "behind a proxy every request comes from loopback");
    let seconds = |key: &str| -> u64 {
        let value = proxy.lines().find_map(|line| line.trim().strip_prefix(key)?.trim().strip_suffix("s;"));
        value.unwrap_or_else(|| panic!("{key}")).parse().unwrap()
    };
    assert!(seconds("proxy_read_timeout") * 1000 > server.execution.run_timeout_ms);
    assert!(seconds("keepalive_timeout") * 1000 < server.server.keep_alive_ms);
    let largest = server.server.max_body_bytes.max(usize::try_from(server.documents.max_bytes).unwrap());
    assert!(proxy.contains(&format!("client_max_body_size {}m;", largest.div_ceil(1 << 20))), "{largest}");
    // Where the unit and the container have the data.
    assert_eq!(server.store.data_dir, Path::new("/var/lib/proscenium"));
}

/// What `systemd-analyze` says, where it is installed.
#[test]
fn unit_is_valid_and_is_hardened() {
    if !Command::new("systemd-analyze").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        return;
    }
    // Under the unit's own name, and with a program that exists.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("proscenium.service");
    let program = env!("CARGO_BIN_EXE_proscenium");
    std::fs::write(&path, config("proscenium.service").replace("/usr/local/bin/proscenium", program))
        .unwrap();
    let analyze = |arguments: &[&str]| {
        let ran = Command::new("systemd-analyze").args(arguments).arg(&path).output().unwrap();
        (
            ran.status.success(),
            format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)),
        )
    };
    let (is_valid, said) = analyze(&["verify", "--man=no"]);
    assert!(is_valid && !said.contains("proscenium.service:"), "{said}");
    // In tenths: 2.0 of 10 is the most that is exposed.
    let (is_hardened, said) = analyze(&["security", "--offline=true", "--threshold=20", "--no-pager"]);
    assert!(is_hardened, "{said}");
}
