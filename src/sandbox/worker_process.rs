//! A worker, as its parent sees it.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::frame;
use super::protocol::{Hello, PROTOCOL, WorkerReply};
use super::worker::WORKER_COMMAND;

/// How long a worker may take to start.
const START: Duration = Duration::from_secs(10);

/// How long the status of a worker that closed its output is waited for.
const EXIT: Duration = Duration::from_secs(2);

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
pub(super) enum Lost {
    /// It did not reply in time.
    Late,
    /// It ended.
    Ended(Option<ExitStatus>),
    /// It replied something else.
    Garbled,
}

impl WorkerProcess {
    /// Starts a worker, and waits until it is confined. Returns what the kernel does not have, too.
    ///
    /// # Errors
    /// Why there is no worker.
    pub(super) async fn start(
        worker: &Path,
        memory_mib: u64,
        seconds: u64,
    ) -> Result<(Self, Vec<String>), String> {
        let name = worker.display();
        let mut child = Command::new(worker)
            .args([WORKER_COMMAND.to_owned(), memory_mib.to_string(), seconds.to_string()])
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

    /// Whether the process ended while nothing was asked of it.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Executes the program in this frame.
    pub(super) async fn execute(&mut self, program: &[u8], deadline: Duration) -> Result<WorkerReply, Lost> {
        self.served += 1;
        let exchange = async {
            self.input.write_all(program).await?;
            self.input.flush().await?;
            frame::receive::<WorkerReply>(&mut self.output).await
        };
        match timeout(deadline, exchange).await {
            Ok(Ok(reply)) if reply.number == self.served => Ok(reply),
            Ok(Ok(_)) => Err(Lost::Garbled),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(Lost::Garbled),
            Ok(Err(_)) => Err(Lost::Ended(self.status().await)),
            Err(_) => Err(Lost::Late),
        }
    }

    async fn status(&mut self) -> Option<ExitStatus> {
        timeout(EXIT, self.child.wait()).await.ok()?.ok()
    }
}
