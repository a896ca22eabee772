//! Time and model calls of a question to the sample database, with the offline model. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

#[path = "../shared/run.rs"]
mod run;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use proscenium::plan::Plan;
use proscenium::run::RunStatus;
use proscenium::{Config, Engine, shipped};

use run::{Failure, run};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What is asked, by what it needs.
const REQUESTS: [(&str, &str); 6] = [
    ("question", "How many products are there?"),
    ("two tables", "Which customers have no orders in 2026?"),
    ("fix", "Fix this SQL: SELEC nme FROM products"),
    ("run", "Run this SQL: SELECT id, name, price FROM products ORDER BY id"),
    ("explain", "Explain this SQL: SELECT count(*) FROM orders WHERE status = 'new'"),
    ("general", "Which tables are in the database?"),
];

fn millis(all: &[Duration], share: usize) -> f64 {
    let at = (all.len() * share / 100).min(all.len().saturating_sub(1));
    all.get(at).map_or(0.0, Duration::as_secs_f64) * 1e3
}

async fn measure(rounds: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let mut config = Config::default();
    config.store.data_dir = folder.path().join("data");
    // Repeated questions are answered anew.
    config.cache.max_bytes = 0;
    let builder = Engine::builder(config).native_tools(shipped::tools()).builtin_scenes(&shipped::FOLDERS);
    let engine = builder.start().await?;
    println!("| request | model calls | first ms | p50 ms | p95 ms |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for (kind, request) in REQUESTS {
        let (mut all, mut calls) = (Vec::new(), 0);
        for _ in 0..rounds {
            let begun = Instant::now();
            let mut asked = engine.request(request, None);
            asked.plan = Some(Plan::of_flow("text_to_sql", request));
            let answer = engine.chat(asked).await?;
            all.push(begun.elapsed());
            calls = answer.usage.llm_calls;
            if answer.status != RunStatus::Completed {
                return Err(format!("{request:?} ended as {:?}", answer.status).into());
            }
        }
        let first = all.first().map_or(0.0, Duration::as_secs_f64) * 1e3;
        all.sort_unstable();
        println!("| {kind} | {calls} | {first:.1} | {:.1} | {:.1} |", millis(&all, 50), millis(&all, 95));
    }
    engine.stop().await?;
    Ok(())
}

fn main() -> ExitCode {
    run(|quick| measure(if quick { 10 } else { 200 }))
}
