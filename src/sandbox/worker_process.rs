//! A worker, as its parent sees it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::frame;
use super::protocol::{Hello, MEMORY_EXIT, PROTOCOL, TIME_EXIT, WorkerReply};
use super::worker::{READS_MODULE, WORKER_COMMAND};

/// How long a worker may take to start.
const START: Duration = Duration::from_secs(10);

/// How long the status of a worker that closed its output is waited for.
const EXIT: Duration = Duration::from_secs(2);

/// SIGXCPU.
const CPU_SIGNAL: i32 = 24;

/// A worker process; it is killed when this is dropped, also in the middle of an execution.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// The programs that it executed.
    pub(super) served: u32,
}

/// Why a worker did not reply. It is of no use after that.
#[derive(Debug)]
pub(super) enum WorkerFailure {
    /// It did not reply in time.
    Late,
    Ended(Option<ExitStatus>),
    /// It replied something else.
    Garbled,
}

/// The resource of which a worker that did not reply used too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    /// Elapsed time, in which other processes may have used the processor.
    Time,
    /// Time of the processor.
    Processor,
    Memory,
}

impl WorkerFailure {
    /// Returns what it used too much of; nothing if it failed.
    pub(super) fn exceeded_limit(&self) -> Option<ExceededLimit> {
        match self {
            Self::Late => Some(ExceededLimit::Time),
            Self::Ended(Some(status)) if status.code() == Some(TIME_EXIT) => Some(ExceededLimit::Time),
            Self::Ended(Some(status)) if status.signal() == Some(CPU_SIGNAL) => {
                Some(ExceededLimit::Processor)
            }
            Self::Ended(Some(status)) if status.code() == Some(MEMORY_EXIT) => Some(ExceededLimit::Memory),
            Self::Ended(_) | Self::Garbled => None,
        }
    }
}

impl WorkerProcess {
    /// Starts a worker for programs, and waits until it is confined. Returns what the kernel does not have, too.
    ///
    /// # Errors
    /// Why there is no worker.
    pub(super) async fn start(
        worker: &Path,
        memory_mib: u64,
        seconds: u64,
    ) -> Result<(Self, Vec<String>), String> {
        Self::start_with(worker, [memory_mib, seconds], None).await
    }

    /// Starts a worker that reads one file of functions.
    ///
    /// # Errors
    /// Why there is no worker.
    pub(super) async fn start_reader(worker: &Path, memory_mib: u64, seconds: u64) -> Result<Self, String> {
        Self::start_with(worker, [memory_mib, seconds], Some(READS_MODULE)).await.map(|(worker, _)| worker)
    }

    async fn start_with(
        worker: &Path,
        bounds: [u64; 2],
        task: Option<&str>,
    ) -> Result<(Self, Vec<String>), String> {
        let name = worker.display();
        let mut child = Command::new(worker)
            .arg(WORKER_COMMAND)
            .args(bounds.map(|bound| bound.to_string()))
            .args(task)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("`{name}` cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("`{name}` has no input or output"));
        };
        let mut process = Self { child, input, output, served: 0 };
        let hello = timeout(START, frame::receive::<Hello>(&mut process.output)).await;
        match hello {
            Ok(Ok(Hello { protocol: PROTOCOL, missing })) => Ok((process, missing)),
            Ok(Ok(_)) => Err(format!("`{name}` is of another release: restart this program")),
            Ok(Err(_)) => {
                let status = process
                    .status()
                    .await
                    .map_or_else(|| "no status".to_owned(), |status| status.to_string());
                Err(format!("`{name} {WORKER_COMMAND}` ended before it was confined ({status})"))
            }
            Err(_) => Err(format!("`{name} {WORKER_COMMAND}` does not start in time")),
        }
    }

    /// Returns whether the process ended while nothing was asked of it.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Executes the program in this frame.
    pub(super) async fn execute(
        &mut self,
        program: &[u8],
        deadline: Duration,
    ) -> Result<WorkerReply, WorkerFailure> {
        self.served += 1;
        let reply: WorkerReply = self.exchange(program, deadline).await?;
        if reply.number == self.served { Ok(reply) } else { Err(WorkerFailure::Garbled) }
    }

    /// Sends a frame, and waits for the reply.
    pub(super) async fn exchange<T: DeserializeOwned>(
        &mut self,
        frame: &[u8],
        deadline: Duration,
    ) -> Result<T, WorkerFailure> {
        let exchange = async {
            self.input.write_all(frame).await?;
            self.input.flush().await?;
            frame::receive::<T>(&mut self.output).await
        };
        match timeout(deadline, exchange).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(WorkerFailure::Garbled),
            Ok(Err(_)) => Err(WorkerFailure::Ended(self.status().await)),
            Err(_) => Err(WorkerFailure::Late),
        }
    }

    /// Kills it, and waits for its end.
    pub(super) async fn end(mut self) {
        let _ = timeout(EXIT, self.child.kill()).await;
    }

    async fn status(&mut self) -> Option<ExitStatus> {
        timeout(EXIT, self.child.wait()).await.ok()?.ok()
    }
}
