//! Drives a subject for a while and measures its speed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use proscenium::load::latency::LatencyHistogram;
use proscenium::load::schedule::ArrivalSchedule;
use serde::{Deserialize, Serialize};

use super::Failure;
use super::subject::Subject;

/// Flows are numbered over the whole life of the process, so that no two are equal.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The load.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Load {
    /// Concurrent sessions, each with one flow after the other.
    pub sessions: u32,
    /// For how long new flows start.
    pub millis: u64,
    /// Flows per second over all sessions; unlimited if absent.
    pub rate: Option<f64>,
}

/// The result.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Flows that ended.
    pub flows: u64,
    /// Flows per second.
    pub rate: f64,
    /// Median milliseconds of a flow.
    pub p50: f64,
    /// The 99th percentile in milliseconds.
    pub p99: f64,
}

/// Drives `subject`. With a rate, a flow counts from the moment it was scheduled to start.
pub async fn drive(subject: &Subject, load: Load) -> Result<Sample, Failure> {
    let began = Instant::now();
    let end = began + Duration::from_millis(load.millis);
    let sessions: Vec<_> = (0..load.sessions)
        .map(|number| {
            let subject = subject.clone();
            let pace = load.rate.map(|rate| Pace { began, rate, number, sessions: load.sessions });
            tokio::spawn(session(subject, pace, end))
        })
        .collect();
    let mut all = LatencyHistogram::default();
    for session in sessions {
        all.add(&session.await??);
    }
    let took = began.elapsed();
    let millis = |quantile: f64| all.millis_at(quantile).unwrap_or_default();
    Ok(Sample {
        flows: all.count(),
        rate: all.count() as f64 / took.as_secs_f64(),
        p50: millis(0.5),
        p99: millis(0.99),
    })
}

/// When the flows of one session are scheduled to start.
struct Pace {
    began: Instant,
    /// Flows per second over all sessions.
    rate: f64,
    number: u32,
    sessions: u32,
}

impl Pace {
    fn at(&self, round: u32) -> Instant {
        let schedule = ArrivalSchedule { rate: self.rate, ramp: Duration::ZERO };
        self.began + schedule.at(u64::from(round) * u64::from(self.sessions) + u64::from(self.number))
    }
}

async fn session(subject: Subject, pace: Option<Pace>, end: Instant) -> Result<LatencyHistogram, Failure> {
    let mut took = LatencyHistogram::default();
    let mut round = 0;
    loop {
        let begin = match &pace {
            Some(pace) => pace.at(round),
            None => Instant::now(),
        };
        if begin >= end {
            return Ok(took);
        }
        if pace.is_some() {
            tokio::time::sleep_until(begin.into()).await;
        }
        subject.flow(NEXT.fetch_add(1, Relaxed)).await?;
        took.record(begin.elapsed());
        round += 1;
    }
}
