//! A process that does one task from start to end and prints its measurements.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Failure, fail, recovery, sleeping};

/// The first argument of a worker.
pub const WORD: &str = "worker";

/// What a worker does.
#[derive(Debug, Serialize, Deserialize)]
pub enum Work {
    /// Resumes unfinished runs, and then executes fresh requests.
    Recover(recovery::Work),
    /// Starts conversations and lets them be unloaded.
    Converse(sleeping::Work),
}

/// Runs a worker and reads its result.
pub fn done<T: DeserializeOwned>(work: &Work) -> Result<T, Failure> {
    let mut process = Command::new(std::env::current_exe()?)
        .arg(WORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut orders = process.stdin.take().ok_or_else(|| fail("a worker without pipes"))?;
    orders.write_all(serde_json::to_string(work)?.as_bytes())?;
    drop(orders);
    let output = process.wait_with_output()?;
    if !output.status.success() {
        return Err(fail(format!("a worker ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The main function of a worker.
pub fn main() -> Result<(), Failure> {
    let work: Work = serde_json::from_reader(std::io::stdin())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let measurement = match work {
        Work::Recover(work) => serde_json::to_string(&runtime.block_on(work.carry_out())?)?,
        Work::Converse(work) => serde_json::to_string(&runtime.block_on(work.carry_out())?)?,
    };
    runtime.shutdown_background();
    Ok(writeln!(std::io::stdout(), "{measurement}")?)
}
