//! A whole request with its journal on disk, compared with the journal in memory.

use proscenium::load::usage::ProcessUsage;
use tempfile::TempDir;

use super::child::{Child, Role};
use super::flow::{Kind, Part};
use super::load::{Load, Sample};
use super::machine::{directory, disk, median};
use super::{Failure, Plan};

/// Concurrent sessions.
const SESSIONS: [u32; 2] = [1, 32];

/// The engine in its own process.
struct RunningSubject {
    kind: Kind,
    on_disk: bool,
    child: Child,
    _data: TempDir,
}

/// One measured slice of one engine.
struct Slice {
    kind: Kind,
    on_disk: bool,
    sessions: u32,
    sample: Sample,
    usage: ProcessUsage,
}

impl RunningSubject {
    fn start(provider: &str, kind: Kind, on_disk: bool) -> Result<Self, Failure> {
        let place = if on_disk { disk() } else { "/dev/shm".into() };
        let data = directory(&place)?;
        let off = if on_disk { vec![] } else { vec![Part::Disk] };
        let role = Role::Library { provider: provider.to_owned(), data: data.path().to_owned(), off, kind };
        Ok(Self { kind, on_disk, child: Child::start(&role)?, _data: data })
    }
}

/// Measures and prints the table.
pub fn measure(plan: &Plan, provider: &str) -> Result<(), Failure> {
    let mut engines = Vec::new();
    for kind in [Kind::Steps, Kind::Book] {
        for on_disk in [true, false] {
            engines.push(RunningSubject::start(provider, kind, on_disk)?);
        }
    }
    for engine in &mut engines {
        for sessions in SESSIONS {
            engine.child.run(Load { sessions, millis: plan.slice_ms / 4, rate: None })?;
        }
    }
    let mut all = Vec::new();
    for round in 0..plan.rounds {
        eprintln!("disk: round {} of {}", round + 1, plan.rounds);
        for sessions in SESSIONS {
            for engine in &mut engines {
                engine.child.mark()?;
                let sample = engine.child.run(Load { sessions, millis: plan.slice_ms, rate: None })?;
                let usage = engine.child.usage()?;
                all.push(Slice { kind: engine.kind, on_disk: engine.on_disk, sessions, sample, usage });
            }
        }
    }
    println!(
        "\n| sessions | request | flows/s on disk | in memory | of it | p50 ms on disk | in memory | CPU µs/flow on disk | in memory |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for sessions in SESSIONS {
        for kind in [Kind::Steps, Kind::Book] {
            let of = |on_disk: bool, figure: fn(&Slice) -> f64| {
                let same =
                    |slice: &&Slice| (slice.sessions, slice.kind, slice.on_disk) == (sessions, kind, on_disk);
                median(all.iter().filter(same).map(figure).collect())
            };
            let rate = |slice: &Slice| slice.sample.rate;
            let p50 = |slice: &Slice| slice.sample.p50;
            let cpu = |slice: &Slice| slice.usage.cpu_ms * 1000.0 / slice.sample.flows.max(1) as f64;
            println!(
                "| {sessions} | {} | {:.0} | {:.0} | {:.2} | {:.1} | {:.1} | {:.0} | {:.0} |",
                if kind == Kind::Book { "a read and a write" } else { "two reads" },
                of(true, rate),
                of(false, rate),
                of(true, rate) / of(false, rate),
                of(true, p50),
                of(false, p50),
                of(true, cpu),
                of(false, cpu),
            );
        }
    }
    Ok(())
}
