//! The clients, in a process of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use proscenium::load::latency::LatencyHistogram;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Failure;

/// The first argument of this process.
pub const WORD: &str = "client";

/// How long a refused client of the flood waits before it comes again.
const BACKOFF: Duration = Duration::from_millis(100);

/// What is to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Drive {
    pub server: String,
    /// The key of the tenant that floods.
    pub flood: String,
    /// The key of the other one.
    pub other: String,
    /// Clients of the flood at once.
    pub clients: u32,
    /// For how long the other one sends requests, quiet and flooded.
    pub millis: u64,
}

/// Latencies of the other tenant's requests.
#[derive(Debug, Serialize, Deserialize)]
pub struct Latencies {
    pub requests: u64,
    pub p50: f64,
    pub p99: f64,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    pub quiet: Latencies,
    pub flooded: Latencies,
    /// Requests of the flood that were carried out.
    pub done: u64,
    /// Requests of the flood that were refused, or whose call was.
    pub refused: u64,
}

/// The whole life of this process.
pub fn main(arguments: &[String]) -> Result<(), Failure> {
    let drive: Drive = serde_json::from_str(arguments.first().ok_or("no order")?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(run(&drive))?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

async fn run(drive: &Drive) -> Result<Measured, Failure> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let span = Duration::from_millis(drive.millis);
    // The first requests read catalogues and open connections.
    one_by_one(drive, &http, span / 10).await?;
    let quiet = one_by_one(drive, &http, span).await?;
    let (done, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let flood: Vec<_> = (0..drive.clients)
        .map(|_| {
            let (drive, http) = (drive.clone(), http.clone());
            let (done, refused) = (done.clone(), refused.clone());
            tokio::spawn(async move {
                while let Ok(is_done) = ask(&drive, &http, &drive.flood).await {
                    if is_done {
                        done.fetch_add(1, Relaxed);
                    } else {
                        refused.fetch_add(1, Relaxed);
                        tokio::time::sleep(BACKOFF).await;
                    }
                }
            })
        })
        .collect();
    tokio::time::sleep(span / 10).await;
    let flooded = one_by_one(drive, &http, span).await?;
    for client in flood {
        client.abort();
    }
    Ok(Measured { quiet, flooded, done: done.load(Relaxed), refused: refused.load(Relaxed) })
}

/// The other tenant's requests, one after the other. A refused one ends the measurement.
async fn one_by_one(drive: &Drive, http: &reqwest::Client, span: Duration) -> Result<Latencies, Failure> {
    let mut took = LatencyHistogram::default();
    let began = Instant::now();
    while began.elapsed() < span {
        let sent = Instant::now();
        if !ask(drive, http, &drive.other).await? {
            return Err("a request of the other tenant was refused".into());
        }
        took.record(sent.elapsed());
    }
    let millis = |quantile: f64| took.millis_at(quantile).unwrap_or_default();
    Ok(Latencies { requests: took.count(), p50: millis(0.5), p99: millis(0.99) })
}

/// Sends one request; returns whether it was carried out.
async fn ask(drive: &Drive, http: &reqwest::Client, key: &str) -> Result<bool, Failure> {
    let body = json!({"messages": [{"role": "user", "content": "What is the weather in Milan?"}]});
    let url = format!("http://{}/api/chat", drive.server);
    let reply = http.post(url).bearer_auth(key).json(&body).send().await?;
    if !reply.status().is_success() {
        return Ok(false);
    }
    let answer: Value = reply.json().await?;
    Ok(answer["steps"][0]["tool_calls"][0]["outcome"] == "ok")
}
