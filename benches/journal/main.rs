//! The cost of durability: the journal compared with a plain file, a request with and without the disk, the
//! time until unfinished runs are resumed, and the memory of unloaded conversations. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

mod appends;
#[expect(dead_code, reason = "only the other benchmark uses the bare client")]
#[path = "../requests/child.rs"]
mod child;
#[path = "../shared/command_line.rs"]
mod command_line;
mod disk;
#[expect(dead_code, reason = "only the disk is disabled here")]
#[path = "../requests/flow.rs"]
mod flow;
#[path = "../requests/load.rs"]
mod load;
mod machine;
#[path = "../requests/provider.rs"]
mod provider;
mod recovery;
mod sleeping;
#[path = "../requests/subject.rs"]
mod subject;
mod worker;

use std::process::ExitCode;

use child::{Child, Role};
use mimalloc::MiMalloc;

/// The program's own allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Why a measurement failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

fn fail(why: impl Into<String>) -> Failure {
    why.into().into()
}

const HELP: &str = "\
cargo bench --bench journal -- [--quick] [--rounds N] [--slice-ms N] [--unfinished N] [--sleeping N] [--only PART]
  --quick         three short rounds of everything, on at most a tenth of the runs, to check that it works
  --rounds N      rounds of every comparison, 5 by default
  --slice-ms N    how long each subject is driven in a round, 1000 by default
  --unfinished N  unfinished runs, 10000 by default
  --sleeping N    unloaded conversations, 100000 by default
  --only PART     appends, disk, recovery or sleeping";

/// How much is measured.
pub struct Plan {
    /// Rounds of every comparison.
    pub rounds: usize,
    /// Milliseconds for which each subject is driven in a round.
    pub slice_ms: u64,
    /// Unfinished runs to recover.
    pub unfinished: u32,
    /// Conversations to unload.
    pub sleeping: u32,
    /// Run this part only.
    pub only: Option<String>,
}

impl Plan {
    fn whole() -> Self {
        Self { rounds: 5, slice_ms: 1000, unfinished: 10_000, sleeping: 100_000, only: None }
    }

    fn shorten(&mut self) {
        (self.rounds, self.slice_ms, self.unfinished, self.sleeping) = (3, 250, 1_000, 4_000);
    }

    fn has(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    fn carry_out(&self) -> Result<(), Failure> {
        println!("\n{}", machine::describe()?);
        let provider = Child::start(&Role::Provider)?;
        let recorded = machine::recorded(&provider.address)?;
        if self.has("appends") {
            appends::measure(self, &recorded)?;
        }
        if self.has("disk") {
            disk::measure(self, &provider.address)?;
        }
        if self.has("recovery") {
            recovery::measure(self, &provider.address, &recorded)?;
        }
        if self.has("sleeping") {
            sleeping::measure(self, &provider.address)?;
        }
        println!("\n{}", machine::describe()?);
        Ok(())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(child::WORD) => child::main(),
        Some(worker::WORD) => worker::main(),
        _ => plan(&arguments).and_then(|plan| plan.map_or(Ok(()), |plan| plan.carry_out())),
    };
    command_line::end(done)
}

fn plan(arguments: &[String]) -> Result<Option<Plan>, Failure> {
    let mut plan = Plan::whole();
    let has_work = command_line::read(arguments, HELP, |option, value| {
        match option {
            "--quick" => plan.shorten(),
            "--rounds" => plan.rounds = value()?.parse::<usize>()?.clamp(1, 20),
            "--slice-ms" => plan.slice_ms = value()?.parse::<u64>()?.clamp(100, 10_000),
            "--unfinished" => plan.unfinished = value()?.parse::<u32>()?.clamp(10, 100_000),
            "--sleeping" => plan.sleeping = value()?.parse::<u32>()?.clamp(100, 1_000_000),
            "--only" => {
                let part = value()?;
                if !["appends", "disk", "recovery", "sleeping"].contains(&part.as_str()) {
                    return Err(fail(format!("there is no part {part}\n{HELP}")));
                }
                plan.only = Some(part);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(has_work.then_some(plan))
}
