//! The machine that is measured, and the events of one run of the measured request.

use std::path::{Path, PathBuf};

use proscenium::run::{Envelope, Event};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::{Failure, flow};

/// The number of the recorded flow; its words are replaced by those of other flows.
const RECORDED: u64 = 1_000_000;

/// Cores and their load.
pub fn describe() -> Result<String, Failure> {
    let cores = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load: Vec<&str> = load.split(' ').take(3).collect();
    Ok(format!("{cores} cores, load {} of the last minute, {} of the last five", load[0], load[1]))
}

/// The build directory is on a real disk, which temporary directories often are not.
pub fn disk() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// A directory that is removed when it is dropped.
pub fn directory(place: &Path) -> Result<TempDir, Failure> {
    std::fs::create_dir_all(place)?;
    Ok(tempfile::Builder::new().prefix("journal-").tempdir_in(place)?)
}

/// The median.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The events of one run of the measured request.
pub struct Recorded(Vec<Envelope<Event>>);

/// Executes one run and records it.
pub fn recorded(provider: &str) -> Result<Recorded, Failure> {
    let data = directory(&disk())?;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let events = runtime.block_on(async {
        let engine =
            flow::engine(flow::config(provider, data.path(), &[], flow::Kind::Book))?.start().await?;
        let answer = engine.chat(engine.request(&flow::message(RECORDED, flow::Kind::Book), None)).await?;
        let (tenant, _) = engine.default_principal();
        let events = engine.store().run_events(&tenant, answer.run_id).await?;
        engine.stop().await?;
        Ok::<_, Failure>(events)
    });
    runtime.shutdown_background();
    Ok(Recorded(events?))
}

impl Recorded {
    /// The events as recorded.
    pub fn events(&self) -> &[Envelope<Event>] {
        &self.0
    }

    /// The events as flow `n`, with its own words.
    pub fn of(&self, n: u64) -> Result<Vec<Envelope<Event>>, Failure> {
        let (before, after) = (format!("employee {RECORDED}"), format!("employee {n}"));
        let renamed = |event: &Envelope<Event>| {
            let body = serde_json::to_string(&event.body)?.replace(&before, &after);
            Ok(Envelope { body: serde_json::from_str(&body)?, ..event.clone() })
        };
        self.0.iter().map(renamed).collect()
    }
}
