//! While a load runs: the server's figures, the live line, and thresholds that end it.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use proscenium::load::measure::MeasureUnit;
use proscenium::load::report::LoadEnd;
use proscenium::load::server::{ServerFigures, ServerSample};
use proscenium::load::threshold::Threshold;
use reqwest::StatusCode;

use super::super::remote;
use super::client::LoadClient;
use super::drive::LoadDriver;
use super::target::LoadKey;

/// How often the load is looked at.
const TICK: Duration = Duration::from_millis(250);
/// How often the server's metrics are read: each so many ticks.
const SCRAPE_TICKS: u32 = 4;
/// How long the metrics may take.
const SCRAPE: Duration = Duration::from_secs(2);
/// Longest metrics that are read, in bytes.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
/// Requests that must have ended before a threshold can end the load: the first ones are no sample.
const MIN_ENDED: u64 = 20;

/// Reads the server's metrics, with the key of the environment or the first one of the file.
///
/// # Errors
/// Why they cannot be read.
pub async fn scrape(client: &LoadClient, keys: &[LoadKey]) -> Result<ServerSample, String> {
    let environment = remote::key();
    let key = environment.as_ref().or_else(|| keys.first().and_then(|key| key.secret.as_ref()));
    let response = client.get("/metrics", key).timeout(SCRAPE).send().await;
    let response = response
        .map_err(|error| if error.is_timeout() { "no reply".to_owned() } else { error.to_string() })?;
    if response.status() != StatusCode::OK {
        return Err(format!("HTTP {}", response.status().as_u16()));
    }
    let text = remote::bytes(response, MAX_PAGE_BYTES).await?;
    Ok(ServerSample::parse(&String::from_utf8_lossy(&text)))
}

/// Watches a load.
pub struct LoadWatch {
    aborts: Vec<Threshold>,
    before: Result<ServerSample, String>,
    memory_max: Option<f64>,
    line: Option<ProgressBar>,
}

impl LoadWatch {
    /// Before the load begins.
    pub fn new(aborts: Vec<Threshold>, before: Result<ServerSample, String>) -> Self {
        let line = std::io::stderr().is_terminal().then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                line.set_style(style);
            }
            line
        });
        Self { aborts, before, memory_max: None, line }
    }

    /// Watches until it is dropped.
    pub async fn watch(&mut self, load: &LoadDriver) {
        let mut tick = 0_u32;
        loop {
            if tick.is_multiple_of(SCRAPE_TICKS) && self.before.is_ok() {
                // An overloaded server may not reply: then this interval has no figure.
                let sample = scrape(load.client(), load.keys()).await.unwrap_or_default();
                self.memory_max =
                    [self.memory_max, sample.memory_bytes].into_iter().flatten().reduce(f64::max);
                let mut recorder = load.recorder.borrow_mut();
                let interval = recorder.timeline.at(load.elapsed());
                interval.memory_bytes =
                    [interval.memory_bytes, sample.memory_bytes].into_iter().flatten().reduce(f64::max);
            }
            self.look(load);
            tick = tick.wrapping_add(1);
            tokio::time::sleep(TICK).await;
        }
    }

    fn look(&self, load: &LoadDriver) {
        let (elapsed, in_flight) = (load.elapsed(), load.in_flight());
        let mut recorder = load.recorder.borrow_mut();
        let interval = recorder.timeline.at(elapsed);
        interval.in_flight = interval.in_flight.max(in_flight);
        let values = recorder.measured(elapsed);
        let counts = *recorder.counts();
        drop(recorder);
        if let Some(line) = &self.line {
            let shown = |name: &str, unit: MeasureUnit| {
                values.get(name).map_or("-".to_owned(), |value| unit.show(*value))
            };
            // What matters most is first: a narrow terminal cuts off the rest.
            let mut text = format!(
                "{:.0} s  {}/s  p50 {}  p99 {}  in flight {in_flight}  answered {}",
                elapsed.as_secs_f64(),
                shown("throughput", MeasureUnit::PerSecond),
                shown("p50_latency", MeasureUnit::Millis),
                shown("p99_latency", MeasureUnit::Millis),
                counts.answered,
            );
            let others = [("failed", counts.errors), ("shed", counts.shed), ("not sent", counts.not_sent)];
            for (what, count) in others.into_iter().filter(|(_, count)| *count > 0) {
                text.push_str(&format!("  {what} {count}"));
            }
            line.set_message(text);
            line.tick();
        }
        let ended = counts.answered + counts.errors + counts.shed;
        if ended >= MIN_ENDED && self.aborts.iter().any(|threshold| threshold.check(&values).holds) {
            load.end(LoadEnd::Aborted);
        }
    }

    /// Removes the live line.
    pub fn finish(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }

    /// Returns what the server used, with a last look at its metrics.
    pub async fn server(&self, load: &LoadDriver) -> ServerFigures {
        let after = scrape(load.client(), load.keys()).await;
        match (&self.before, after) {
            (Ok(before), Ok(after)) => ServerFigures::between(before, &after, self.memory_max),
            (Err(why), _) => ServerFigures::unread(why.clone()),
            (_, Err(why)) => ServerFigures::unread(why),
        }
    }
}
