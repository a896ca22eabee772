//! Drives a subject and measures its speed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Failure;
use super::flow::TOOL_CALLS;

/// Flows are numbered over the whole life of the process, so that no two are equal.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What carries out flows.
pub trait Subject: Send + Sync + 'static {
    /// Carries out flow number `n`.
    ///
    /// # Errors
    /// If it does not end as expected: a subject that does less must not count as faster.
    fn flow(&self, n: u64) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The load.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Load {
    /// Flows at once: each session has one after the other.
    pub sessions: u32,
    /// For how long new flows start.
    pub millis: u64,
    /// How many flows each session has at least.
    pub least: u32,
}

/// The result.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sample {
    /// Flows that ended.
    pub flows: u64,
    /// How long that took.
    pub seconds: f64,
    /// Median milliseconds of a flow.
    pub p50_ms: f64,
    /// The 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// Tool calls that were executed.
    pub tool_calls: u64,
}

/// Drives `subject`.
pub async fn drive(subject: &Arc<impl Subject>, load: Load) -> Result<Sample, Failure> {
    let tools_before = TOOL_CALLS.load(Relaxed);
    let began = Instant::now();
    let end = began + Duration::from_millis(load.millis);
    let sessions: Vec<_> =
        (0..load.sessions).map(|_| tokio::spawn(session(subject.clone(), load.least, end))).collect();
    let mut all = micros()?;
    for session in sessions {
        all.add(session.await??)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let millis = |quantile: f64| all.value_at_quantile(quantile) as f64 / 1000.0;
    Ok(Sample {
        flows: all.len(),
        seconds,
        p50_ms: millis(0.5),
        p99_ms: millis(0.99),
        tool_calls: TOOL_CALLS.load(Relaxed) - tools_before,
    })
}

/// Durations in microseconds, with three significant digits.
fn micros() -> Result<Histogram<u64>, Failure> {
    Ok(Histogram::new(3)?)
}

async fn session(subject: Arc<impl Subject>, least: u32, end: Instant) -> Result<Histogram<u64>, Failure> {
    let mut took = micros()?;
    let mut done = 0;
    while done < least || Instant::now() < end {
        let begin = Instant::now();
        subject.flow(NEXT.fetch_add(1, Relaxed)).await?;
        took.record(begin.elapsed().as_micros() as u64)?;
        done += 1;
    }
    Ok(took)
}
