//! The time from a start until all unfinished runs have been resumed, compared with fresh requests in the
//! same process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proscenium::actors::journal::Journal;
use proscenium::http::Server;
use proscenium::load::usage::ProcessMeter;
use proscenium::plan::TaskId;
use proscenium::run::{Envelope, Event, RunId, SessionId};
use proscenium::store::{DataDir, Options, Record, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::load::{Load, drive};
use super::machine::{Recorded, directory, disk};
use super::subject::Subject;
use super::{Failure, Plan, fail, flow, worker};

/// As many conversations as the engine resumes at once.
const AT_ONCE: u32 = 64;

/// The first number of the unfinished flows. Fresh flows count from 1, and no two flows have the same words.
const FIRST: u64 = 10_000_000;

/// Upper bound for recovery.
const PATIENCE: Duration = Duration::from_secs(600);

/// The task of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Work {
    provider: String,
    data: PathBuf,
    /// For how long it then executes fresh requests; not at all if absent.
    fresh_ms: Option<u64>,
}

/// The worker's measurements.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Unfinished runs that it found.
    unfinished: usize,
    /// Milliseconds from the start until requests are accepted.
    ready_ms: f64,
    /// Milliseconds from the start until the last of the runs has ended.
    all_ms: f64,
    /// Fresh requests per second.
    fresh: f64,
    /// Peak memory while runs were resumed, in MiB.
    peak_mib: f64,
}

/// Measures and prints the table.
pub fn measure(plan: &Plan, provider: &str, recorded: &Recorded) -> Result<(), Failure> {
    let dir = directory(&disk())?;
    eprintln!("recovery: {} runs are left unfinished", plan.unfinished);
    leave(dir.path(), plan.unfinished, recorded)?;
    let work = |fresh_ms| {
        let (provider, data) = (provider.to_owned(), dir.path().to_owned());
        worker::Work::Recover(Work { provider, data, fresh_ms })
    };
    let measured: Measurement = worker::done(&work(Some(plan.slice_ms * 3)))?;
    // Every run has ended now.
    let idle: Measurement = worker::done(&work(None))?;
    if (measured.unfinished, idle.unfinished) != (plan.unfinished as usize, 0) {
        return Err(fail(format!(
            "{} and {} runs were found unfinished",
            measured.unfinished, idle.unfinished
        )));
    }
    let resumed = measured.unfinished as f64 / ((measured.all_ms - measured.ready_ms) / 1000.0);
    println!(
        "\n| unfinished runs | ready after | ready with none | all resumed after | resumed/s | fresh requests/s | ratio | peak MiB |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    println!(
        "| {} | {:.2} s | {:.2} s | {:.1} s | {resumed:.0} | {:.0} | {:.2} | {:.0} |",
        measured.unfinished,
        measured.ready_ms / 1000.0,
        idle.ready_ms / 1000.0,
        measured.all_ms / 1000.0,
        measured.fresh,
        resumed / measured.fresh,
        measured.peak_mib
    );
    Ok(())
}

/// A directory in which every second run was only accepted, and the others are half done: their plan is made,
/// and scenes have been asked.
fn leave(data: &Path, runs: u32, recorded: &Recorded) -> Result<(), Failure> {
    actix::System::new().block_on(async {
        let store = Store::open(DataDir::open(data)?).await?;
        let journal = Journal::start(store.clone(), &Options::default()).await?;
        for n in 0..runs {
            let (run, task) = (RunId(Uuid::now_v7()), TaskId(Uuid::now_v7()));
            let session = SessionId::new(&format!("left-{n}"))?;
            let mut events = recorded.of(FIRST + u64::from(n))?;
            // A write interrupted by a crash has an unknown outcome and ends differently.
            let call = events.iter().position(|event| matches!(event.body, Event::ToolStarted { .. }));
            events.truncate(if n % 2 == 0 { 1 } else { call.unwrap_or(1) });
            let records = events.into_iter().map(|mut event| {
                if let Event::RunQueued(queued) = &mut event.body {
                    queued.task = task;
                }
                Record::Run(Arc::new(Envelope { run: Some(run), session: session.clone(), ..event }))
            });
            journal.append(records.collect(), false).await?;
        }
        journal.flush().await?;
        journal.stop().await?;
        store.close().await;
        Ok(())
    })
}

impl Work {
    /// Starts as `serve` does.
    pub async fn carry_out(self) -> Result<Measurement, Failure> {
        let mut config = flow::config(&self.provider, &self.data, &[], flow::Kind::Book);
        config.server.addr = "127.0.0.1:0".to_owned();
        let meter = ProcessMeter::start()?;
        let began = Instant::now();
        let millis = |since: Instant| since.elapsed().as_secs_f64() * 1000.0;
        let engine = Arc::new(flow::engine(config.clone())?.start().await?);
        let unfinished = engine.resume_unfinished().await?;
        let server = Server::start(engine.clone(), &config).await?;
        let ready_ms = millis(began);
        while count(&engine, "status IN ('queued', 'running')").await? > 0 {
            if began.elapsed() > PATIENCE {
                return Err(fail("unfinished runs do not end"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let all_ms = millis(began);
        let peak_mib = meter.read()?.peak_mib;
        let unexpected = count(&engine, "status <> 'completed'").await?;
        if unexpected > 0 {
            return Err(fail(format!("{unexpected} runs ended unexpectedly")));
        }
        let fresh = match self.fresh_ms {
            Some(millis) => {
                let subject = Subject::Library { engine: engine.clone(), kind: flow::Kind::Book };
                drive(&subject, Load { sessions: AT_ONCE, millis, rate: None }).await?.rate
            }
            None => f64::NAN,
        };
        server.stop().await;
        engine.shut_down().await?;
        // JSON has no NaN.
        let fresh = if fresh.is_nan() { 0.0 } else { fresh };
        Ok(Measurement { unfinished, ready_ms, all_ms, fresh, peak_mib })
    }
}

async fn count(engine: &proscenium::Engine, which: &'static str) -> Result<i64, Failure> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM runs WHERE {which}"));
    Ok(sqlx::query_scalar(sql).fetch_one(engine.store().pool()).await?)
}
