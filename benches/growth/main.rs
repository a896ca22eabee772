//! How the costs of a request grow with the scenes, its steps, the conversations in memory, the journal and the turns of its
//! conversation. Each point is measured in a process of its own. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

#[path = "../shared/command_line.rs"]
mod command_line;
mod cost;
mod curve;
mod fill;
#[expect(dead_code, reason = "requests and parts of the other benchmark are not used here")]
#[path = "../requests/flow.rs"]
mod flow;
mod provider;
#[path = "../shared/worker.rs"]
mod worker;

use std::process::ExitCode;

use curve::{CURVES, Plan};
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
cargo bench --bench growth -- [--quick] [--rounds N] [--events N] [--only CURVE]
  --quick       the first points of each curve, with few requests, to check that it works
  --rounds N    how often each point is measured; the median counts; 3 by default
  --events N    also a journal of so many events, such as 10000000
  --only CURVE  scenes, steps, conversations, history, journal or turns";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(provider::WORD) => provider::main(),
        Some(worker::WORD) => {
            worker::main(|work: cost::Work| async move { Ok(serde_json::to_value(work.carry_out().await?)?) })
        }
        _ => plan(&arguments).and_then(|plan| plan.map_or(Ok(()), |plan| plan.carry_out())),
    };
    command_line::end(done)
}

fn plan(arguments: &[String]) -> Result<Option<Plan>, Failure> {
    let mut plan = Plan { quick: false, rounds: 3, events: None, only: None };
    let has_work = command_line::read(arguments, HELP, |option, value| {
        match option {
            "--quick" => (plan.quick, plan.rounds) = (true, 1),
            "--rounds" => plan.rounds = value()?.parse::<usize>()?.clamp(1, 20),
            "--events" => plan.events = Some(value()?.parse::<u32>()?.clamp(1_000, 100_000_000)),
            "--only" => {
                let curve = value()?;
                if !CURVES.contains(&curve.as_str()) {
                    return Err(fail(format!("there is no curve {curve}\n{HELP}")));
                }
                plan.only = Some(curve);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(has_work.then_some(plan))
}
