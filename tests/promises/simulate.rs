//! The simulated model: the real server answers over it, meets its faults, and counts what it counts.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proscenium::simulate::{FaultKind, Profile, ScriptedFault, Simulator, SimulatorCounts};
use serde_json::{Value, json};

use super::process::{MAIN, RunningProcess, Workspace};
use super::support::exposition::{Series, read, sum};
use super::support::{Reply, eventually};

/// Each city's plan meets other faults.
const PROFILE: &str = r#"
seed = 3
[usage]
cached_share = 0.25
[faults]
retry_after_s = 0
drip_ms = 1
[[script]]
question = "plan"
contains = "Roma"
times = [1]
fault = "rate_limited"
[[script]]
question = "plan"
contains = "Roma"
times = [2]
fault = "server_error"
[[script]]
question = "plan"
contains = "Napoli"
times = [1]
fault = "cut_stream"
[[script]]
question = "plan"
contains = "Torino"
times = [1]
fault = "malformed_call"
[[script]]
question = "plan"
contains = "Genova"
times = [1]
fault = "ignored_choice"
[[script]]
question = "plan"
contains = "Bologna"
times = [1]
fault = "wrong_call"
[[script]]
contains = "Palermo"
fault = "slow_drip"
"#;

/// A process, and the address that its first line ends with.
fn started(workspace: &Workspace, arguments: &[&str], env: &[(&str, String)]) -> (RunningProcess, String) {
    let mut process = workspace.spawn_with(arguments, env);
    process.read_until("http://");
    let address = format!("http://{}", process.output().rsplit("http://").next().unwrap().trim());
    (process, address)
}

async fn get(address: &str) -> Reply {
    Reply::of(reqwest::get(address).await.unwrap()).await
}

fn ask(words: &str) -> Value {
    json!({"messages": [{"role": "user", "content": words}]})
}

async fn post(address: &str, body: &Value) -> Reply {
    Reply::of(reqwest::Client::new().post(address).json(body).send().await.unwrap()).await
}

/// The counts of a simulated model, as JSON, which its metrics repeat.
async fn counts(model: &str) -> SimulatorCounts {
    let address = model.strip_suffix("/v1").unwrap();
    let metrics = read(&get(&format!("{address}/metrics")).await.body);
    let counts: SimulatorCounts =
        serde_json::from_str(&get(&format!("{address}/counts")).await.body).unwrap();
    let total = |name: &str| sum(&metrics, &format!("proscenium_simulator_{name}_total"), &[]) as u64;
    assert_eq!(total("requests"), counts.requests.values().sum::<u64>());
    assert_eq!(total("faults"), counts.faults.values().sum::<u64>());
    assert_eq!((total("replies"), total("tokens")), (counts.replies, counts.tokens.values().sum()));
    counts
}

/// Calls of the real server to models, with an outcome.
fn calls(series: &Series, labels: &[&str]) -> u64 {
    sum(series, "proscenium_llm_requests_total", labels) as u64
}

fn tokens(series: &Series, kind: &str) -> u64 {
    sum(series, "proscenium_llm_tokens_total", &[&format!("type=\"{kind}\"")]) as u64
}

#[cfg(unix)]
#[tokio::test]
async fn real_server_answers_over_the_simulated_model_and_both_count_the_same() {
    let workspace = Workspace::new().with("PROSCENIUM__LLM__BACKOFF_MS", "1");
    workspace.write("profile.toml", PROFILE);
    let line = ["simulate-llm", "--addr", "127.0.0.1:0", "--profile", "profile.toml"];
    let (simulator, model) = started(&workspace, &line, &[]);
    let serve = ["serve", "--addr", "127.0.0.1:0"];
    let (server, address) = started(&workspace, &serve, &[("OPENAI_BASE_URL", model.clone())]);
    let (chat, metrics) = (format!("{address}/api/chat"), format!("{address}/metrics"));

    let answer = post(&chat, &ask(MAIN)).await.json();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    assert_eq!(answer["metadata"]["planned_execution_path"], json!(["Weather", "VacationManagement"]));
    let called: Vec<&Value> = answer["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["tool_calls"].as_array().unwrap())
        .collect();
    assert_eq!(called.len(), 2, "{answer:#}");
    assert!(called.iter().all(|call| call["outcome"] == "ok"), "{answer:#}");
    assert!(answer["answer"].as_str().unwrap().contains("15 giugno 2026"), "{answer:#}");
    let (here, there) = (read(&get(&metrics).await.body), counts(&model).await);
    assert_eq!((there.requests["plan"], there.requests["continuation"], there.replies), (1, 1, 2));
    assert_eq!(calls(&here, &["outcome=\"ok\""]), there.replies);
    assert_eq!(tokens(&here, "cached_input"), there.tokens["cached"]);
    assert_eq!(tokens(&here, "input") + tokens(&here, "cached_input"), there.tokens["prompt"]);
    assert_eq!(tokens(&here, "output"), there.tokens["completion"]);
    assert!(there.tokens["cached"] > 0);

    for city in ["Roma", "Napoli", "Torino", "Genova", "Bologna", "Palermo"] {
        let answer = post(&chat, &ask(&format!("Che tempo fa a {city}?"))).await.json();
        assert_eq!(answer["status"], "completed", "{city}: {answer:#}");
        assert_eq!(answer["steps"][0]["tool_calls"][0]["arguments"]["city"], city, "{answer:#}");
    }
    // The models of a flow's nodes, too, by the rules of the flow.
    let answer = post(&chat, &ask("How many orders were placed in March?")).await.json();
    assert!(
        answer["answer"].as_str().unwrap().contains("SELECT COUNT(*) AS count FROM orders"),
        "{answer:#}"
    );
    let called = answer["steps"][0]["tool_calls"].as_array().unwrap();
    assert!(called.iter().all(|call| !call["tool"].as_str().unwrap().ends_with("_fallback")), "{answer:#}");
    let streamed = json!({"model": "proscenium", "stream": true,
        "messages": [{"role": "user", "content": "Che tempo fa a Palermo e a Firenze?"}]});
    let streamed = post(&format!("{address}/v1/chat/completions"), &streamed).await;
    let words: String = streamed
        .events()
        .iter()
        .filter_map(|event| event.data["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert!(words.contains("Palermo") && words.contains("Firenze"), "{words}");

    let (here, there) = (read(&get(&metrics).await.body), counts(&model).await);
    let shown: BTreeMap<&str, u64> =
        there.faults.iter().filter(|(_, n)| **n > 0).map(|(fault, n)| (fault.as_str(), *n)).collect();
    let expected = [
        ("cut_stream", 1),
        ("ignored_choice", 1),
        ("malformed_call", 1),
        ("rate_limited", 1),
        ("server_error", 1),
        // Plan and check of a request, and of another that was streamed.
        ("slow_drip", 4),
        ("wrong_call", 1),
    ];
    assert_eq!(shown, BTreeMap::from(expected));
    assert_eq!(calls(&here, &["model=\"offline\""]), 0, "the rules in the server took no model's place");
    for purpose in ["plan", "continuation", "scene", "path", "node"] {
        let of_purpose = format!("purpose=\"{purpose}\"");
        assert_eq!(calls(&here, &[&of_purpose]), there.requests[purpose], "{purpose}");
    }
    for (outcome, fault) in
        [("rate_limited", "rate_limited"), ("status", "server_error"), ("cut_stream", "cut_stream")]
    {
        assert_eq!(calls(&here, &[&format!("outcome=\"{outcome}\"")]), there.faults[fault], "{outcome}");
    }
    assert_eq!(calls(&here, &["outcome=\"ok\""]), there.replies);
    assert_eq!((there.in_flight, there.abandoned, there.rejected.values().sum::<u64>()), (0, 0, 0));
    assert!(sum(&here, "proscenium_llm_time_to_first_token_seconds_count", &[]) > 0.0, "some were streamed");

    server.signal("TERM");
    assert_eq!(server.end().status, 0);
    simulator.signal("TERM");
    let ended = simulator.end();
    assert_eq!((ended.status, ended.err.contains("finishing the replies")), (0, true), "{ended:?}");
}

#[test]
fn faulty_profile_is_refused_with_its_lines() {
    let workspace = Workspace::new();
    workspace.write("bad.toml", "sead = 1\n[faults]\nrate_limited = 2\n");
    let ran = workspace.run(&["simulate-llm", "--addr", "127.0.0.1:0", "--profile", "bad.toml"]);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{ran:?}");
    for expected in ["bad.toml:1: error[profile.unknown_key]", "bad.toml:3: error[profile.bound]", "seed"] {
        assert!(ran.err.contains(expected), "no {expected:?} in {}", ran.err);
    }
}

/// A client of a simulated model in this process.
struct Client {
    http: reqwest::Client,
    simulator: Simulator,
}

impl Client {
    async fn of(profile: Profile) -> Self {
        Self {
            http: reqwest::Client::new(),
            simulator: Simulator::start("127.0.0.1:0", profile).await.unwrap(),
        }
    }

    fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        self.http.post(format!("http://{}/v1/chat/completions", self.simulator.addr())).json(body)
    }
}

#[tokio::test]
async fn bounds_are_kept_and_a_client_that_leaves_frees_its_place() {
    let held = ScriptedFault {
        contains: "wait".to_owned(),
        fault: Some(FaultKind::Timeout),
        ..ScriptedFault::default()
    };
    let profile = Profile {
        max_in_flight: 1,
        max_body_bytes: 2_000,
        // Longer than the test.
        timeout_ms: 600_000,
        script: vec![held],
        ..Profile::default()
    };
    let client = Client::of(profile).await;
    let waiting = tokio::spawn(client.post(&ask("please wait")).send());
    eventually("a request waits", async || client.simulator.counts().in_flight == 1).await;
    let refused = Reply::of(client.post(&ask("hello")).send().await.unwrap()).await;
    refused.assert_error(503, "simulate.overloaded");
    assert_eq!(refused.header("retry-after"), "1");
    waiting.abort();
    eventually("its place is free", async || client.simulator.counts().in_flight == 0).await;

    let answered = Reply::of(client.post(&ask("hello")).send().await.unwrap()).await;
    assert!(!answered.json()["choices"][0]["message"]["content"].as_str().unwrap().is_empty());
    let long = Reply::of(client.post(&ask(&"x".repeat(2_000))).send().await.unwrap()).await;
    long.assert_error(413, "simulate.request");
    let odd = Reply::of(client.post(&json!({"messages": 1})).send().await.unwrap()).await;
    odd.assert_error(400, "simulate.request");
    let node = json!({"messages": [], "tools": [{"type": "function", "function": {"name": "ReportNode"}}]});
    Reply::of(client.post(&node).send().await.unwrap()).await.assert_error(400, "simulate.unsupported");

    let counts = client.simulator.counts();
    let rejected =
        [("invalid", 2), ("overloaded", 1), ("unsupported", 1)].map(|(why, n)| (why.to_owned(), n));
    assert_eq!(counts.rejected, BTreeMap::from(rejected));
    assert_eq!((counts.abandoned, counts.replies, counts.peak_in_flight), (1, 1, 1));
    assert!(client.simulator.stop().await);
}

/// What 20 texts, each sent 6 times at once with the others, met: outcomes by text, sorted.
async fn outcomes(seed: u64, reversed: bool) -> BTreeMap<usize, Vec<String>> {
    let mut profile = Profile { seed, retry_after_s: 7, ..Profile::default() };
    for fault in [FaultKind::RateLimited, FaultKind::ServerError, FaultKind::CutStream] {
        profile.faults.set_rate(fault, 0.2);
    }
    let client = Client::of(profile).await;
    let mut order: Vec<usize> = (0..120).collect();
    if reversed {
        order.reverse();
    }
    let sent = order.into_iter().map(|n| {
        let request = client.post(&ask(&format!("text {}", n % 20)));
        async move {
            let outcome = match request.send().await {
                Ok(response) => {
                    let status = response.status().as_u16();
                    response.text().await.map_or_else(|_| "cut".to_owned(), |_| status.to_string())
                }
                Err(_) => "cut".to_owned(),
            };
            (n % 20, outcome)
        }
    });
    let mut met: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut sent: FuturesUnordered<_> = sent.collect();
    while let Some((text, outcome)) = sent.next().await {
        met.entry(text).or_default().push(outcome);
    }
    met.values_mut().for_each(|outcomes| outcomes.sort());
    let counts = client.simulator.counts();
    let faults = met.values().flatten().filter(|outcome| *outcome != "200").count();
    assert_eq!(counts.faults.values().sum::<u64>(), faults as u64);
    met
}

#[tokio::test]
async fn same_requests_meet_the_same_faults_under_a_seed_in_any_order() {
    let first = outcomes(5, false).await;
    assert_eq!(first, outcomes(5, true).await);
    assert_ne!(first, outcomes(6, false).await);
    let kinds: std::collections::BTreeSet<&String> = first.values().flatten().collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["200", "429", "500", "cut"]);
}
