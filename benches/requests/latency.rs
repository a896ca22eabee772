//! How long one request takes where each model call takes a while: step by step, and with prepared calls.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use proscenium::run::RunStatus;

use super::flow::{self, Kind};
use super::{Failure, fail, provider};

/// Requests of a row, one after another.
const REQUESTS: u64 = 5;

/// Prints the median time of a request over two scenes, for each way to come by its calls.
///
/// # Errors
/// If a request does not end completed with one call in each of two steps.
pub fn measure(latency_ms: u64) -> Result<(), Failure> {
    println!("| `planning.prepare` | model calls | seconds | of which model calls in a row |");
    println!("| --- | ---: | ---: | ---: |");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        for (name, kind) in [("approval", Kind::Steps), ("always", Kind::Prepared)] {
            row(name, kind, Duration::from_millis(latency_ms)).await?;
        }
        Ok(())
    })
}

async fn row(name: &str, kind: Kind, latency: Duration) -> Result<(), Failure> {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&place)?;
    let data = tempfile::Builder::new().prefix("latency-").tempdir_in(place)?;
    let address = provider::start(None, latency).await?.to_string();
    let engine = flow::engine(flow::config(&address, data.path(), &[], kind))?.start().await?;
    let mut seconds = Vec::new();
    let mut calls = 0;
    for n in 0..REQUESTS {
        let words = flow::message(n, kind);
        let begun = Instant::now();
        let answer = engine.chat(engine.request(&words, None)).await?;
        seconds.push(begun.elapsed().as_secs_f64());
        calls = answer.usage.llm_calls;
        if answer.status != RunStatus::Completed || answer.steps.iter().any(|s| s.tool_calls.len() != 1) {
            return Err(fail(format!("a request ended unexpectedly: {answer:?}")));
        }
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let in_a_row = median / latency.as_secs_f64().max(f64::EPSILON);
    println!("| `{name}` | {calls} | {median:.2} | {in_a_row:.1} |");
    engine.shut_down().await?;
    Ok(())
}
