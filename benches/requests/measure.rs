//! What is measured, and in which order.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use proscenium::load::usage::ProcessUsage;
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::child::{Child, Role};
use super::flow::{self, Kind, Part};
use super::load::{Load, Sample};
use super::provider::{self, Record};
use super::table::{self, Measured};
use super::{Failure, fail};

/// Concurrent sessions.
pub const SESSIONS: [u32; 3] = [1, 32, 256];
/// Concurrent sessions where parts are compared.
pub const MANY: u32 = 32;
/// Flows per second offered to all subjects, far below their capacity.
pub const OFFERED: f64 = 100.0;

/// How much is measured.
pub struct Plan {
    /// Rounds of everything.
    pub rounds: usize,
    /// Milliseconds for which each subject is driven in a round.
    pub slice_ms: u64,
    /// Drive this subject only.
    pub only: Option<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { rounds: 5, slice_ms: 1500, only: None }
    }
}

/// A subject with its processes.
struct RunningSubject {
    name: String,
    driver: Child,
    /// The process whose time and memory count, if it is not the driver.
    server: Option<Child>,
    _data: Vec<TempDir>,
}

impl RunningSubject {
    fn alone(name: &str, role: &Role, data: Vec<TempDir>) -> Result<Self, Failure> {
        Ok(Self { name: name.to_owned(), driver: Child::start(role)?, server: None, _data: data })
    }

    fn measured(&mut self) -> &mut Child {
        self.server.as_mut().unwrap_or(&mut self.driver)
    }

    fn run(&mut self, load: Load) -> Result<(Sample, ProcessUsage), Failure> {
        let name = self.name.clone();
        let mut run = || {
            self.measured().mark()?;
            let sample = self.driver.run(load)?;
            Ok::<_, Failure>((sample, self.measured().usage()?))
        };
        run().map_err(|error| fail(format!("{name} with {} sessions: {error}", load.sessions)))
    }
}

/// The setup: the provider, and what the bare client sends.
struct Stage {
    provider: Child,
    bodies: Vec<String>,
}

impl Plan {
    /// Makes it short, to check that the benchmark works.
    pub fn shorten(&mut self) {
        (self.rounds, self.slice_ms) = (2, 400);
    }

    /// Measures and prints the tables.
    pub fn carry_out(self) -> Result<(), Failure> {
        let mut stage = Stage { provider: Child::start(&Role::Provider)?, bodies: record()? };
        if let Some(name) = &self.only {
            return self.profile(&stage, name);
        }
        let mut subjects = vec![stage.subject("bare")?, stage.subject("library")?, stage.subject("server")?];
        self.warm(&mut subjects)?;
        let mut main = Vec::new();
        for round in 0..self.rounds {
            eprintln!("round {} of {}", round + 1, self.rounds);
            for sessions in SESSIONS {
                let load = Load { sessions, millis: self.slice_ms, rate: None };
                self.round(&mut subjects, &mut stage.provider, load, &mut main)?;
            }
            let load = Load { sessions: MANY, millis: self.slice_ms, rate: Some(OFFERED) };
            self.round(&mut subjects, &mut stage.provider, load, &mut main)?;
        }
        drop(subjects);
        table::speed(&main);

        let mut subjects = vec![stage.subject("prepared")?, stage.subject("prepared server")?];
        self.warm(&mut subjects)?;
        let mut prepared = Vec::new();
        for round in 0..self.rounds {
            eprintln!("prepared: round {} of {}", round + 1, self.rounds);
            for sessions in SESSIONS {
                let load = Load { sessions, millis: self.slice_ms, rate: None };
                self.round(&mut subjects, &mut stage.provider, load, &mut prepared)?;
            }
        }
        drop(subjects);
        table::prepared(&prepared);

        let mut subjects = vec![stage.subject("library")?, stage.subject("book")?];
        for part in Part::ALL {
            subjects.push(stage.without(part.name(), &[part])?);
        }
        subjects.push(stage.without("all of these", &Part::ALL)?);
        self.warm(&mut subjects)?;
        let mut parts = Vec::new();
        for round in 0..self.rounds {
            eprintln!("parts: round {} of {}", round + 1, self.rounds);
            let load = Load { sessions: MANY, millis: self.slice_ms, rate: None };
            self.round(&mut subjects, &mut stage.provider, load, &mut parts)?;
        }
        table::parts(&parts);
        Ok(())
    }

    fn warm(&self, subjects: &mut [RunningSubject]) -> Result<(), Failure> {
        for subject in subjects {
            for sessions in [1, 256, 32] {
                subject.driver.run(Load { sessions, millis: self.slice_ms / 4, rate: None })?;
            }
        }
        Ok(())
    }

    /// Runs every subject once, one after the other.
    fn round(
        &self,
        subjects: &mut [RunningSubject],
        provider: &mut Child,
        load: Load,
        all: &mut Vec<Measured>,
    ) -> Result<(), Failure> {
        for subject in subjects {
            provider.mark()?;
            let (sample, usage) = subject.run(load)?;
            let provider = provider.usage()?.cpu_ms;
            all.push(Measured {
                name: subject.name.clone(),
                sessions: load.sessions,
                paced: load.rate.is_some(),
                sample,
                usage,
                provider_ms: provider,
            });
        }
        Ok(())
    }

    /// Drives one subject, for a profiler.
    fn profile(&self, stage: &Stage, name: &str) -> Result<(), Failure> {
        let mut subject = stage.subject(name)?;
        subject.driver.run(Load { sessions: MANY, millis: 500, rate: None })?;
        println!("process {}", subject.measured().id);
        for _ in 0..self.rounds {
            let (sample, usage) = subject.run(Load { sessions: MANY, millis: self.slice_ms, rate: None })?;
            let cpu = usage.cpu_ms * 1000.0 / sample.flows.max(1) as f64;
            println!(
                "{:.0} flows/s, p50 {:.1} ms, p99 {:.1} ms, {cpu:.0} µs of CPU a flow, {:.0} MiB",
                sample.rate, sample.p50, sample.p99, usage.peak_mib
            );
        }
        Ok(())
    }
}

impl Stage {
    fn subject(&self, name: &str) -> Result<RunningSubject, Failure> {
        let provider = self.provider.address.clone();
        match name {
            "bare" => {
                RunningSubject::alone(name, &Role::Bare { provider, bodies: self.bodies.clone() }, vec![])
            }
            "library" | "book" | "prepared" => {
                let data = directory(&disk())?;
                let kind = match name {
                    "book" => Kind::Book,
                    "prepared" => Kind::Prepared,
                    _ => Kind::Steps,
                };
                let role = Role::Library { provider, data: data.path().to_owned(), off: vec![], kind };
                RunningSubject::alone(name, &role, vec![data])
            }
            "server" | "prepared server" => {
                let data = directory(&disk())?;
                let kind = if name == "server" { Kind::Steps } else { Kind::Prepared };
                let server = Child::start(&Role::Server { provider, data: data.path().to_owned(), kind })?;
                let driver = Child::start(&Role::Client { server: server.address.clone(), kind })?;
                Ok(RunningSubject { name: name.to_owned(), driver, server: Some(server), _data: vec![data] })
            }
            "nothing" => self.without(name, &Part::ALL),
            other => Err(fail(format!("there is no subject {other}"))),
        }
    }

    /// The library without some parts.
    fn without(&self, name: &str, off: &[Part]) -> Result<RunningSubject, Failure> {
        let place = if off.contains(&Part::Disk) { PathBuf::from("/dev/shm") } else { disk() };
        let data = directory(&place)?;
        let role = Role::Library {
            provider: self.provider.address.clone(),
            data: data.path().to_owned(),
            off: off.to_vec(),
            kind: Kind::Steps,
        };
        RunningSubject::alone(name, &role, vec![data])
    }
}

/// The build directory is on a real disk, which temporary directories often are not.
fn disk() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn directory(place: &Path) -> Result<TempDir, Failure> {
    std::fs::create_dir_all(place)?;
    Ok(tempfile::Builder::new().prefix("requests-").tempdir_in(place)?)
}

/// Executes one flow of the engine and records what it sends.
fn record() -> Result<Vec<String>, Failure> {
    let data = directory(&disk())?;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let bodies = Record::default();
    runtime.block_on(async {
        let address = provider::start(Some(bodies.clone()), Duration::ZERO).await?.to_string();
        let engine = flow::engine(flow::config(&address, data.path(), &[], Kind::Steps))?.start().await?;
        engine.chat(engine.request(&flow::message(1_000_000, Kind::Steps), None)).await?;
        engine.stop().await?;
        Ok::<_, Failure>(())
    })?;
    runtime.shutdown_background();
    let bodies = bodies.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(bodies)
}
