//! What `/metrics` of a server says beside its runs: HTTP requests, tenants, facts, the process and its data.

use proscenium::access::Role;
use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::eventually;
use crate::support::exposition::{Series, read, sum};
use crate::support::{Reply, ServedEngine, Setup};

async fn send(served: &ServedEngine, method: &str, path: &str, key: &str, body: &Value) -> u16 {
    let request = served.request(method, path).header("x-api-key", key).json(body);
    Reply::of(request.send().await.unwrap()).await.status
}

async fn scrape(served: &ServedEngine, key: &str) -> Series {
    let request = served.request("GET", "/metrics").header("x-api-key", key);
    read(&Reply::of(request.send().await.unwrap()).await.body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_show_refused_requests_tenants_facts_and_the_process() {
    let setup = Setup::offline()
        .set("telemetry.max_tenant_labels", 1)
        .set("auth.limits.requests_per_minute", 2)
        .set("server.max_body_bytes", 4096);
    let served = ServedEngine::start(setup).await;
    let key = async |tenant: &str| served.key(tenant, "ada", Role::Admin).await;
    let [acme, bolt, crow] = [key("acme").await, key("bolt").await, key("crow").await];
    served.wait_for_keys().await;
    let hello = ask("My manager is Rossi. Hello!");
    for (key, status) in [(&acme, 200), (&acme, 200), (&acme, 429), (&bolt, 200), (&crow, 200)] {
        assert_eq!(send(&served, "POST", "/api/chat", key, &hello).await, status);
    }
    assert_eq!(send(&served, "POST", "/api/chat", "psk_unknown", &hello).await, 401);
    assert_eq!(send(&served, "POST", "/api/chat", &bolt, &ask(&"x".repeat(5_000))).await, 413);
    let unknown = "/api/runs/0197f000-0000-7000-8000-000000000000";
    assert_eq!(send(&served, "GET", unknown, &acme, &json!({})).await, 404);
    assert_eq!(send(&served, "GET", "/invented/route", &acme, &json!({})).await, 404);
    assert_eq!(send(&served, "BREW", "/api/chat", &acme, &json!({})).await, 405);

    // The turn of a conversation is remembered soon after its reply.
    eventually("the facts and the sizes are counted", async || {
        let series = scrape(&served, &acme).await;
        sum(&series, "proscenium_facts_recorded_total", &["given"]) >= 4.0
            && series.contains_key("proscenium_documents")
    })
    .await;
    let series = scrape(&served, &acme).await;
    let http = |labels: &[&str]| sum(&series, "proscenium_http_requests_total", labels);
    let chat = r#"method="POST",route="/api/chat""#;
    for (status, count) in [("200", 4.0), ("401", 1.0), ("413", 1.0), ("429", 1.0)] {
        assert_eq!(http(&[chat, &format!("status=\"{status}\"")]), count, "{status}: {series:#?}");
    }
    assert_eq!(http(&[r#"route="/api/runs/{run_id}",status="404""#]), 1.0);
    assert_eq!(http(&[r#"method="GET",route="other",status="404""#]), 1.0);
    assert_eq!(http(&[r#"method="other",route="/api/chat",status="405""#]), 1.0);
    let timed = sum(&series, "proscenium_http_request_duration_seconds_count", &[chat]);
    assert_eq!(timed, http(&[chat]));

    let tenant =
        |name: &str| sum(&series, "proscenium_tenant_requests_total", &[&format!("tenant=\"{name}\"")]);
    assert_eq!((tenant("acme"), tenant("other")), (2.0, 2.0));
    assert!(
        series.keys().all(|key| !["bolt", "crow", "invented", "BREW"].iter().any(|name| key.contains(name)))
    );
    assert_eq!(sum(&series, "proscenium_requests_by_scope_total", &[]), 4.0);
    assert_eq!(sum(&series, "proscenium_build_info", &[env!("CARGO_PKG_VERSION")]), 1.0);
    assert!(sum(&series, "proscenium_data_dir_bytes", &["database"]) > 0.0);
    assert!(series["proscenium_data_dir_free_bytes"] > 0.0);
    for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "threads", "start_time_seconds"] {
        assert!(series[&format!("process_{name}")] > 0.0, "{name}");
    }
}
