//! A journal of so many events, copies of those of one recorded run, and what appending the last of them costs.

use std::path::Path;
use std::sync::Arc;

use proscenium::actors::journal::{Handle, Journal};
use proscenium::load::usage::ProcessMeter;
use proscenium::plan::TaskId;
use proscenium::run::{Envelope, Event, RunId, SessionId};
use proscenium::store::{DataDir, Options, Record, Store};
use uuid::Uuid;

use super::{Failure, flow, provider};

/// Steps of the recorded run.
pub const STEPS: u32 = 2;

/// The events of one run of the measured request.
pub fn recorded(provider_address: &str, data: &Path) -> Result<Vec<Envelope<Event>>, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let events = runtime.block_on(async {
        let config = flow::config(provider_address, data, &[], flow::Kind::Prepared);
        let engine = flow::engine(config)?.start().await?;
        let answer = engine.chat(engine.request(&provider::message(0, STEPS), None)).await?;
        let (tenant, _) = engine.default_principal();
        let events = engine.store().run_events(&tenant, answer.run_id).await?;
        engine.shut_down().await?;
        Ok::<_, Failure>(events)
    });
    runtime.shutdown_background();
    events
}

/// Fills a new data directory, and returns the microseconds of processor time that an event of the last tenth took, and
/// the bytes on disk of an event.
pub fn fill(data: &Path, events: u32, run: &[Envelope<Event>]) -> Result<(f64, f64), Failure> {
    let cpu_us = actix::System::new().block_on(async {
        let store = Store::open(DataDir::open(data)?).await?;
        let journal = Journal::start(store.clone(), &Options::default()).await?;
        let last = (events / 10).max(1_000).min(events);
        append(&journal, events - last, run).await?;
        let meter = ProcessMeter::start()?;
        let appended = append(&journal, last, run).await?;
        let cpu_us = meter.read()?.cpu_ms * 1000.0 / f64::from(appended);
        journal.stop().await?;
        store.close().await;
        Ok::<_, Failure>(cpu_us)
    })?;
    let mut bytes = 0;
    for entry in std::fs::read_dir(data)? {
        let about = entry?.metadata()?;
        bytes += if about.is_file() { about.len() } else { 0 };
    }
    Ok((cpu_us, bytes as f64 / f64::from(events)))
}

/// Appends whole runs, each of its own conversation, until there are as many events; returns how many there are.
async fn append(journal: &Handle, events: u32, run: &[Envelope<Event>]) -> Result<u32, Failure> {
    let mut appended = 0;
    while appended < events {
        let (id, task) = (RunId(Uuid::now_v7()), TaskId(Uuid::now_v7()));
        let session = SessionId::new(&format!("s-{}", id.0))?;
        let records = run.iter().cloned().map(|mut event| {
            if let Event::RunQueued(queued) = &mut event.body {
                queued.task = task;
            }
            Record::Run(Arc::new(Envelope { run: Some(id), session: session.clone(), ..event }))
        });
        journal.append(records.collect(), false).await?;
        appended += run.len() as u32;
    }
    journal.flush().await?;
    Ok(appended)
}
