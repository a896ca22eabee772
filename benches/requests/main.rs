//! The speed of a request over two scenes with a provider that replies at once, compared with a bare client
//! that makes the same model calls in the same order. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

mod child;
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
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(arguments: &[String]) -> Result<Option<Plan>, Failure> {
    let mut plan = Plan::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| fail(format!("{argument} needs a value")));
        match argument.as_str() {
            // cargo passes this to every benchmark.
            "--bench" => {}
            "--quick" => plan = plan.quick(),
            "--rounds" => plan.rounds = value()?.parse::<usize>()?.clamp(1, 20),
            "--slice-ms" => plan.slice_ms = value()?.parse::<u64>()?.clamp(100, 10_000),
            "--only" => plan.only = Some(value()?.clone()),
            "--latency-ms" => {
                latency::measure(value()?.parse::<u64>()?.min(60_000))?;
                return Ok(None);
            }
            "--help" => {
                println!("{HELP}");
                return Ok(None);
            }
            other => return Err(fail(format!("unknown argument {other}\n{HELP}"))),
        }
    }
    Ok(Some(plan))
}
