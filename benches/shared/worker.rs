//! A process that does one task from start to end and prints its measurements, so that time and memory are its own.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a measurement failed.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The first argument of a worker.
pub const WORD: &str = "worker";

/// Runs a worker and reads its result.
pub fn done<T: DeserializeOwned>(work: &impl Serialize) -> Result<T, Failure> {
    let mut process = Command::new(std::env::current_exe()?)
        .arg(WORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut orders = process.stdin.take().ok_or("a worker without pipes")?;
    orders.write_all(serde_json::to_string(work)?.as_bytes())?;
    drop(orders);
    let output = process.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("a worker ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The main function of a worker: reads its task, carries it out in a runtime and prints the result.
pub fn main<W: DeserializeOwned, F: Future<Output = Result<serde_json::Value, Failure>>>(
    carry_out: impl FnOnce(W) -> F,
) -> Result<(), Failure> {
    let work: W = serde_json::from_reader(std::io::stdin())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let measured = runtime.block_on(carry_out(work))?;
    runtime.shutdown_background();
    Ok(writeln!(std::io::stdout(), "{measured}")?)
}
