//! Has a file of functions read by a worker of its own, so that no file harms the process that loads scenes.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::frame::frame;
use super::module::check_size;
use super::pool::unavailable;
use super::protocol::{
    MAX_MESSAGE_CHARS, MAX_PROGRAM_BYTES, PARENT_GRACE_MS, READ_MEMORY_MIB, READ_SECONDS, READ_TIME_MS,
    WORKER_GRACE_MS,
};
use super::worker_process::{ExceededLimit, WorkerFailure, WorkerProcess};
use crate::program::Unavailable;
use crate::program::module::{ModuleProblem, ReadModule};

/// How long a worker is waited for.
const DEADLINE: Duration = Duration::from_millis(READ_TIME_MS + WORKER_GRACE_MS + PARENT_GRACE_MS);

/// Reads what a file has, as a worker finds it. Waits for it.
///
/// # Errors
/// If there is no worker, or it does not reply in time.
pub(super) fn read(worker: Option<&Path>, source: &str) -> Result<ReadModule, Unavailable> {
    if let Err(problem) = check_size(source) {
        return Ok(Err(problem));
    }
    let worker = worker.ok_or_else(|| unavailable("no program is a worker: set `sandbox.worker`"))?;
    let frame = frame(&source, MAX_PROGRAM_BYTES).map_err(|error| unavailable(error.to_string()))?;
    // Who loads scenes may be on a thread that drives tasks, which must not wait for others.
    let read = thread::scope(|scope| {
        let builder = thread::Builder::new().name("python".to_owned());
        let reading = builder.spawn_scoped(scope, || read_in(worker, &frame));
        reading.ok().and_then(|reading| reading.join().ok())
    });
    read.unwrap_or_else(|| Err(unavailable("no thread waits for a worker")))
}

fn read_in(worker: &Path, frame: &[u8]) -> Result<ReadModule, Unavailable> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unavailable(format!("a worker cannot be watched: {error}")))?;
    runtime.block_on(async {
        let started = WorkerProcess::start_reader(worker, READ_MEMORY_MIB, READ_SECONDS).await;
        let mut process = started.map_err(unavailable)?;
        let read: Result<ReadModule, WorkerFailure> = process.exchange(frame, DEADLINE).await;
        process.end().await;
        read.or_else(|failure| problem_of(&failure).map(Err)).map(|found| found.map_err(bounded))
    })
}

/// What the end of a worker says about its file.
///
/// # Errors
/// If it says nothing about it.
fn problem_of(failure: &WorkerFailure) -> Result<ModuleProblem, Unavailable> {
    let message = match failure.exceeded_limit() {
        Some(ExceededLimit::Time) => {
            let message = format!("the worker has not read the file within {READ_TIME_MS} ms: try again");
            return Err(unavailable(message));
        }
        Some(ExceededLimit::Processor) => {
            "the interpreter takes too much time for this file: make it smaller or simpler"
        }
        Some(ExceededLimit::Memory) => {
            "the interpreter uses too much memory for this file: make it smaller or simpler"
        }
        None => "the interpreter fails on this file: write it in a simpler way",
    };
    Ok(ModuleProblem { line: None, message: message.to_owned() })
}

fn bounded(problem: ModuleProblem) -> ModuleProblem {
    let message = problem.message.chars().take(MAX_MESSAGE_CHARS).collect();
    ModuleProblem { message, ..problem }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;
    use crate::sandbox::protocol::{MAX_SOURCE_BYTES, MEMORY_EXIT, TIME_EXIT};

    #[test]
    fn file_is_not_read_without_a_worker_and_one_that_is_too_large_by_none() {
        for worker in [None, Some(Path::new("/nonexistent/worker")), Some(Path::new("/bin/true"))] {
            assert_eq!(read(worker, "x = 1").unwrap_err().code, "sandbox.unavailable");
            let problem = read(worker, &"#".repeat(MAX_SOURCE_BYTES + 1)).unwrap().unwrap_err();
            assert!(problem.message.contains("at most 65536 are allowed"), "{problem:?}");
        }
    }

    #[test]
    fn end_of_a_worker_is_a_problem_of_its_file() {
        let exited = |code: i32| WorkerFailure::Ended(Some(ExitStatus::from_raw(code << 8)));
        // A busy machine is no fault of a file.
        for failure in [WorkerFailure::Late, exited(TIME_EXIT)] {
            assert!(problem_of(&failure).unwrap_err().message.contains("try again"), "{failure:?}");
        }
        for (failure, part) in [
            (WorkerFailure::Ended(Some(ExitStatus::from_raw(24))), "too much time"),
            (exited(MEMORY_EXIT), "too much memory"),
            (WorkerFailure::Ended(Some(ExitStatus::from_raw(6))), "write it in a simpler way"),
            (WorkerFailure::Ended(None), "write it in a simpler way"),
            (WorkerFailure::Garbled, "write it in a simpler way"),
        ] {
            assert!(problem_of(&failure).unwrap().message.contains(part), "{failure:?}");
        }
    }
}
