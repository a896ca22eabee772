//! Exit statuses and errors of commands.

use std::io::{self, Write};
use std::process::ExitCode;

use proscenium::run::RunStatus;
use proscenium::store::{Error as StoreError, ErrorCode};

use super::text::{clean, one_line};

/// The exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Completed,
    /// Something was not done.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// Input of the user or of an approver is needed.
    NeedsInput,
}

impl Exit {
    /// The status of a run as the status of a process. A partial answer is a failure for a script.
    pub fn of(status: RunStatus) -> Self {
        match status {
            RunStatus::Completed => Exit::Completed,
            RunStatus::NeedsInput | RunStatus::Waiting => Exit::NeedsInput,
            RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Partial
            | RunStatus::Failed
            | RunStatus::Cancelled => Exit::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Completed => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NeedsInput => 3,
        })
    }
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable, such as `store.locked`.
    pub code: String,
    /// The failure and its place.
    pub message: String,
    /// The remedy, if there is one.
    pub remedy: Option<String>,
    /// The exit status.
    pub exit: Exit,
}

impl Failure {
    /// An error at run time.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), remedy: None, exit: Exit::Failed }
    }

    /// A wrong command line.
    pub fn usage(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(code, message) }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn help(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Rewords a message about the HTTP API for the command line.
    #[must_use]
    pub fn for_commands(mut self) -> Self {
        if self.code == "approval.ambiguous" {
            self.message =
                self.message.replace("POST /api/approvals/{id}", "`proscenium approvals decide ID yes|no`");
            return self.help("`proscenium approvals` lists what each of them is about");
        }
        self
    }

    /// Writes it for people: `error[code]: message`, and the remedy below.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "error[{}]: {}", self.code, clean(&self.message))?;
        match &self.remedy {
            Some(remedy) => writeln!(out, "  help: {}", one_line(remedy)),
            None => Ok(()),
        }
    }
}

impl From<StoreError> for Failure {
    /// With a remedy if nothing is stored in the data directory yet.
    fn from(error: StoreError) -> Self {
        let failure = Self::new(error.code(), error.to_string());
        match error.kind() {
            ErrorCode::Absent => failure.help(
                "check `--data-dir` or `store.data_dir`; the first `chat`, `serve` or `keys create` creates what is stored",
            ),
            _ => failure,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::new("output.write", format!("the output cannot be written: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use proscenium::store::Store;

    use super::*;

    #[tokio::test]
    async fn empty_data_directory_is_reported_with_a_remedy() {
        let tmp = tempfile::tempdir().unwrap();
        let error = Store::open_read_only(&tmp.path().join("none")).await.unwrap_err();
        let failure = Failure::from(error);
        assert_eq!((&*failure.code, failure.exit), ("store.absent", Exit::Failed));
        assert!(failure.remedy.unwrap().contains("--data-dir"));
    }
}
