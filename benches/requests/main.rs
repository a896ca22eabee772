//! The speed of a request over two scenes with a provider that replies at once, compared with a bare client
//! that makes the same model calls in the same order. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

mod child;
#[path = "../shared/command_line.rs"]
mod command_line;
mod flow;
mod latency;
mod load;
mod measure;
mod provider;
mod subject;
mod table;

use std::process::ExitCode;

use measure::Plan;
use mimalloc::MiMalloc;

/// The program's own allocator, used by the bare client as well.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Why a measurement failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

fn fail(why: impl Into<String>) -> Failure {
    why.into().into()
}

const HELP: &str = "\
cargo bench --bench requests -- [--quick] [--rounds N] [--slice-ms N] [--only bare|library|book|server]
                                [--latency-ms N]
  --quick      two short rounds, to check that it works
  --rounds N   rounds of everything, 5 by default
  --slice-ms N how long each subject is driven in a round, 1500 by default
  --only NAME  drives one subject with 32 sessions for --rounds slices, for a profiler; prints its process id
  --latency-ms N  only one request at a time, step by step and prepared, with a provider that takes N ms a call";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = if arguments.first().is_some_and(|first| first == child::WORD) {
        child::main()
    } else {
        plan(&arguments).and_then(|plan| plan.map_or(Ok(()), |plan| plan.carry_out()))
    };
    command_line::end(done)
}

fn plan(arguments: &[String]) -> Result<Option<Plan>, Failure> {
    let (mut plan, mut is_done) = (Plan::default(), false);
    let has_work = command_line::read(arguments, HELP, |option, value| {
        match option {
            "--quick" => plan.shorten(),
            "--rounds" => plan.rounds = value()?.parse::<usize>()?.clamp(1, 20),
            "--slice-ms" => plan.slice_ms = value()?.parse::<u64>()?.clamp(100, 10_000),
            "--only" => plan.only = Some(value()?),
            "--latency-ms" => {
                latency::measure(value()?.parse::<u64>()?.min(60_000))?;
                is_done = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((has_work && !is_done).then_some(plan))
}
