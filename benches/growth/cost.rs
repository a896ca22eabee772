//! What a request costs in a process that has so many scenes, conversations, events or turns.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::StreamExt;
use proscenium::Engine;
use proscenium::load::latency::LatencyHistogram;
use proscenium::load::usage::ProcessMeter;
use proscenium::run::{Effect, RunStatus, SessionId};
use proscenium::scene::{Scene, SceneTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Failure, fail, flow, provider};

/// Requests at once.
const AT_ONCE: usize = 16;
/// Longer than any measurement: conversations stay in memory.
const LONG: Duration = Duration::from_secs(3600);

/// The scenes of the measured request.
pub const SCENES: u32 = 2;

/// Requests are numbered over the whole life of the process, so that no two are equal.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The task of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// The provider's address.
    pub provider: String,
    /// The data directory.
    pub data: PathBuf,
    /// Scenes, those of the request included.
    pub scenes: u32,
    /// Steps of a request.
    pub steps: u32,
    /// Conversations that are in memory beforehand.
    pub awake: u32,
    /// How many turns each of these has had.
    pub awake_turns: u32,
    /// Turns that each measured conversation has had before; with 0, each measured request is the first of its own.
    pub turns: u32,
    /// Requests that are measured.
    pub requests: u32,
}

/// What was measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// Milliseconds from the start until the engine accepts requests.
    pub start_ms: f64,
    /// Microseconds of processor time of a request.
    pub cpu_us: f64,
    /// Median milliseconds of a request.
    pub p50_ms: f64,
    /// Resident MiB after the first requests, and when the conversations were in memory.
    pub before_mib: f64,
    /// See `before_mib`.
    pub after_mib: f64,
    /// Peak resident MiB while requests were measured.
    pub peak_mib: f64,
}

impl Work {
    /// Starts an engine and measures.
    pub async fn carry_out(self) -> Result<Cost, Failure> {
        let mut config = flow::config(&self.provider, &self.data, &[], flow::Kind::Prepared);
        config.planning.max_steps = config.planning.max_steps.max(self.steps);
        let began = Instant::now();
        let mut builder = flow::engine(config)?.idle(LONG).max_idle_short(usize::MAX);
        for number in SCENES..self.scenes {
            builder = builder.scene(another(number)?);
        }
        let engine = Arc::new(builder.start().await?);
        engine.resume_unfinished().await?;
        let start_ms = began.elapsed().as_secs_f64() * 1000.0;
        self.converse(&engine, fresh(self.requests.min(200))?, 1).await?;
        let before_mib = resident_mib().await?;
        self.converse(&engine, named("awake", self.awake)?, self.awake_turns).await?;
        let (measured, turns) = match self.turns {
            0 => (fresh(self.requests)?, 1),
            // As many conversations as get along with a fifth as many turns again, at least one.
            before => {
                let turns = (before / 5).max(1).min(self.requests);
                (named("measured", (self.requests / turns).max(AT_ONCE as u32))?, turns)
            }
        };
        self.converse(&engine, measured.clone(), self.turns).await?;
        let after_mib = resident_mib().await?;
        let meter = ProcessMeter::start()?;
        let took = self.converse(&engine, measured, turns).await?;
        let usage = meter.read()?;
        engine.shut_down().await?;
        Ok(Cost {
            start_ms,
            cpu_us: usage.cpu_ms * 1000.0 / took.count().max(1) as f64,
            p50_ms: took.millis_at(0.5).unwrap_or_default(),
            before_mib,
            after_mib,
            peak_mib: usage.peak_mib,
        })
    }

    /// So many turns in each of these conversations, which take turns with each other.
    async fn converse(
        &self,
        engine: &Arc<Engine>,
        conversations: Vec<SessionId>,
        turns: u32,
    ) -> Result<LatencyHistogram, Failure> {
        let steps = self.steps;
        let mut all = futures::stream::iter(conversations)
            .map(|conversation| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    let mut took = LatencyHistogram::default();
                    for _ in 0..turns {
                        let began = Instant::now();
                        request(&engine, &conversation, steps).await?;
                        took.record(began.elapsed());
                    }
                    Ok::<_, Failure>(took)
                })
            })
            .buffer_unordered(AT_ONCE);
        let mut took = LatencyHistogram::default();
        while let Some(done) = all.next().await {
            took.add(&done??);
        }
        Ok(took)
    }
}

/// One request, which has to end as expected: what does less must not count as cheaper.
async fn request(engine: &Engine, conversation: &SessionId, steps: u32) -> Result<(), Failure> {
    let words = provider::message(NEXT.fetch_add(1, Relaxed), steps);
    let answer = engine.chat(engine.request(&words, Some(conversation.clone()))).await?;
    let whole = answer.status == RunStatus::Completed
        && answer.steps.len() == steps as usize
        && answer.steps.iter().all(|step| step.tool_calls.len() == 1)
        && answer.usage.llm_calls >= 2;
    if whole { Ok(()) } else { Err(fail(format!("a request ended unexpectedly: {answer:?}"))) }
}

/// Conversations that nobody had before.
fn fresh(number: u32) -> Result<Vec<SessionId>, Failure> {
    let first = NEXT.load(Relaxed);
    named(&format!("fresh-{first}"), number)
}

fn named(prefix: &str, number: u32) -> Result<Vec<SessionId>, Failure> {
    Ok((0..number).map(|n| SessionId::new(&format!("{prefix}-{n}"))).collect::<Result<_, _>>()?)
}

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    /// What is looked up.
    name: String,
}

/// One of many scenes that the request does not need.
fn another(number: u32) -> Result<Scene, Failure> {
    const SUBJECTS: [&str; 10] = [
        "invoices", "parking permits", "laptops", "meeting rooms", "travel expenses", "trainings", "badges",
        "suppliers", "contracts", "shipments",
    ];
    let subject = SUBJECTS[number as usize % SUBJECTS.len()];
    let tool = format!("FindIn{number}");
    let find = |lookup: Lookup, _| async move { Ok(json!({"name": lookup.name, "count": 0})) };
    Scene::builder(&format!("Office{number}"))
        .description(&format!(
            "The {subject} of branch {number}: who has them, since when, and what they cost."
        ))
        .instructions("Tell what is found.")
        .example(&format!("Which {subject} does branch {number} have?"), &tool)
        .tool(
            SceneTool::native(
                &tool,
                &format!("Finds {subject} of branch {number} by name."),
                Effect::Read,
                find,
            )
            .say("en", "{{ count }} were found."),
        )
        .build()
        .map_err(|faults| fail(format!("a scene: {faults:?}")))
}

/// Resident MiB once the allocator has returned what it does not need.
async fn resident_mib() -> Result<f64, Failure> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or_else(|| fail("no VmRSS"))?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
}
