//! A provider whose replies try to stop the server: absurd usage, clashing ids, endless objects.

use serde_json::{Value, json};

use crate::server_api::ask;
use crate::support::{Scripted, ScriptedCall, ScriptedLlm, ServedEngine, Setup, forced_tool};

/// A server whose only model answers every forced question with this plan, changed by `reply`.
fn setup(llm: &ScriptedLlm) -> Setup {
    Setup::scripted(llm)
        .model("input_usd_per_million", "1.0")
        .model("output_usd_per_million", "10.0")
        .set("budget.day_usd", 5)
        .set("budget.tenant_usd", 1000)
        .set("planning.fallback_enabled", true)
}

fn nothing_to_do(request: &Value) -> Scripted {
    if forced_tool(request).is_none() {
        return Scripted::Text("Hello.".to_owned());
    }
    Scripted::forced(request, json!({"needs_execution": false, "reasoning": "Nothing to do.", "steps": []}))
}

#[tokio::test]
async fn absurd_usage_neither_blocks_the_tenant_nor_the_next_start() {
    let llm = ScriptedLlm::start(|request, _| nothing_to_do(request).metered(1 << 62, 0, u64::MAX));
    let served = ServedEngine::start(setup(&llm)).await;
    for words in ["hello", "hello again"] {
        let reply = served.post("/api/chat", &ask(words)).await;
        assert_eq!(reply.status, 200, "{reply:#?}");
    }
    let usage = served.get("/api/usage").await;
    assert_eq!(usage.status, 200, "{usage:#?}");
    let dir = served.dir.clone();
    drop(served);
    let served = ServedEngine::start(setup(&llm).on(&dir)).await;
    let reply = served.post("/api/chat", &ask("hello once more")).await;
    assert_eq!(reply.status, 200, "{reply:#?}");
}

#[tokio::test]
async fn replies_with_thousands_of_calls_or_objects_do_not_stall_other_requests() {
    let llm = ScriptedLlm::start(|request, _| {
        let words = request["messages"].to_string();
        let call = |n: usize| ScriptedCall {
            id: if n < 1500 { format!("call_{}", n + 1500) } else { String::new() },
            name: "CreateExecutionPlan".to_owned(),
            arguments: "{}".to_owned(),
        };
        if words.contains("calls") {
            Scripted::Calls { text: String::new(), calls: (0..3000).map(call).collect() }
        } else if words.contains("objects") {
            Scripted::Text((0..20_000).map(|n| format!("{{\"a\":{n}}} ")).collect())
        } else {
            nothing_to_do(request)
        }
    });
    let served = ServedEngine::start(setup(&llm)).await;
    let (calls, objects) = (ask("calls"), ask("objects"));
    // One hostile request for each thread that drives runs.
    let hostile = futures::future::join_all(
        [&calls, &objects, &calls, &objects].map(|body| served.post("/api/chat", body)),
    );
    let (hostile, plain) = tokio::join!(hostile, async { served.post("/api/chat", &ask("hello")).await });
    assert_eq!(plain.status, 200, "{plain:#?}");
    for reply in hostile {
        assert!(reply.json()["run_id"].is_string(), "{reply:#?}");
    }
}
