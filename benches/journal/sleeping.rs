//! The memory of unloaded conversations, compared with that of loaded ones.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use proscenium::run::SessionId;
use proscenium::{ChatRequest, Engine};
use serde::{Deserialize, Serialize};

use super::machine::{directory, disk, median};
use super::{Failure, Plan, fail, flow, worker};

/// Idle time before a conversation is unloaded.
const SHORT: Duration = Duration::from_millis(200);
/// Longer than any measurement.
const LONG: Duration = Duration::from_secs(3600);
/// Concurrent conversations.
const AT_ONCE: usize = 64;
/// Conversations before memory is first measured: one-time allocations happen then.
const BEFORE: u32 = 1_000;
/// Conversations that are loaded again, to measure how long that takes.
const WOKEN: u32 = 200;
/// Upper bound until all are unloaded.
const PATIENCE: Duration = Duration::from_secs(60);

/// The task of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Work {
    provider: String,
    data: PathBuf,
    conversations: u32,
    /// Whether conversations are unloaded.
    sleep: bool,
}

/// The worker's measurements.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Resident kilobytes before and after.
    before_kib: f64,
    after_kib: f64,
    /// Median milliseconds of a request to an existing conversation.
    again_ms: f64,
    /// Conversations loaded at the end.
    awake: usize,
}

/// Measures and prints the table.
pub fn measure(plan: &Plan, provider: &str) -> Result<(), Failure> {
    println!("\n| conversations | before MiB | after MiB | bytes each | next request, p50 ms |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let awake = (plan.sleeping / 20).clamp(1_000, 5_000);
    for (sleep, conversations) in [(true, plan.sleeping), (false, awake)] {
        let state = if sleep { "asleep" } else { "awake" };
        eprintln!("sleeping: {conversations} conversations {state}");
        let data = directory(&disk())?;
        let (provider, data) = (provider.to_owned(), data.path().to_owned());
        let measured: Measurement =
            worker::done(&worker::Work::Converse(Work { provider, data, conversations, sleep }))?;
        println!(
            "| {conversations} {state} | {:.1} | {:.1} | {:.0} | {:.2} |",
            measured.before_kib / 1024.0,
            measured.after_kib / 1024.0,
            (measured.after_kib - measured.before_kib) * 1024.0 / f64::from(conversations),
            measured.again_ms
        );
        if sleep != (measured.awake == 0) {
            return Err(fail(format!("{} of the {state} conversations are loaded", measured.awake)));
        }
    }
    Ok(())
}

impl Work {
    /// Each conversation has one turn: a plan that is not executed.
    pub async fn carry_out(self) -> Result<Measurement, Failure> {
        let config = flow::config(&self.provider, &self.data, &[], flow::Kind::Steps);
        let idle = if self.sleep { SHORT } else { LONG };
        let engine = Arc::new(flow::engine(config)?.idle(idle).max_idle_short(usize::MAX).start().await?);
        self.converse(&engine, 0..BEFORE).await?;
        let before_kib = resident().await?;
        let last = BEFORE + self.conversations;
        self.converse(&engine, BEFORE..last).await?;
        let after_kib = resident().await?;
        let awake = engine.awake_sessions().await;
        let mut again = Vec::new();
        for n in (BEFORE..last).step_by((self.conversations / WOKEN).max(1) as usize) {
            let began = Instant::now();
            say(&engine, n, u64::from(last + n)).await?;
            again.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        engine.shut_down().await?;
        Ok(Measurement { before_kib, after_kib, again_ms: median(again), awake })
    }

    /// One turn in each of these conversations, then unloading if configured.
    async fn converse(&self, engine: &Arc<Engine>, which: std::ops::Range<u32>) -> Result<(), Failure> {
        let mut turns = futures::stream::iter(which)
            .map(|n| {
                let engine = engine.clone();
                tokio::spawn(async move { say(&engine, n, u64::from(n)).await })
            })
            .buffer_unordered(AT_ONCE);
        while let Some(turn) = turns.next().await {
            turn??;
        }
        let began = Instant::now();
        while self.sleep && engine.awake_sessions().await > 0 {
            if began.elapsed() > PATIENCE {
                return Err(fail("some conversations are not unloaded"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// A turn of conversation `n`.
async fn say(engine: &Engine, n: u32, words: u64) -> Result<(), Failure> {
    let session = SessionId::new(&format!("c-{n}"))?;
    let request = engine.request(&flow::message(words, flow::Kind::Steps), Some(session));
    let answer = engine.chat(ChatRequest { plan_only: true, ..request }).await?;
    match answer.plan {
        Some(plan) if plan.steps.len() == 2 => Ok(()),
        _ => Err(fail(format!("conversation {n} got no plan"))),
    }
}

/// Resident kilobytes once the allocator has returned what it does not need.
async fn resident() -> Result<f64, Failure> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or_else(|| fail("no VmRSS"))?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
