//! Orders as lines of JSON on standard input, and their results on standard output. The process ends with its input.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::drive::{Load, Subject, drive};
use super::{Failure, fail};

/// The main function of a subject: carries out loads against the address in the first argument, such as
/// `127.0.0.1:4000`.
pub fn subject<S: Subject>(start: impl FnOnce(&str) -> Result<S, Failure>) -> ExitCode {
    ended(carry_out(start))
}

fn carry_out<S: Subject>(start: impl FnOnce(&str) -> Result<S, Failure>) -> Result<(), Failure> {
    let address = std::env::args().nth(1).ok_or_else(|| fail("the first argument is the address"))?;
    let runtime = runtime(None)?;
    let subject = Arc::new({
        let _in_runtime = runtime.enter();
        start(&address)?
    });
    listen(&json!({"ready": true}), |order| {
        let load: Load = serde_json::from_value(order)?;
        Ok(serde_json::to_value(runtime.block_on(drive(&subject, load))?)?)
    })
}

/// A runtime with these threads, or as many as there are cores.
pub fn runtime(threads: Option<usize>) -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    Ok(builder.enable_all().build()?)
}

/// Says that it is ready, and then answers each order.
pub fn listen(ready: &Value, mut answer: impl FnMut(Value) -> Result<Value, Failure>) -> Result<(), Failure> {
    say(ready)?;
    for line in std::io::stdin().lines() {
        let answered = serde_json::from_str(&line?).map_err(Failure::from).and_then(&mut answer);
        say(&answered.unwrap_or_else(|error| json!({"error": error.to_string()})))?;
    }
    Ok(())
}

/// The exit status of a process, whose failure is printed.
pub fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(what: &Value) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}")?;
    Ok(out.flush()?)
}
