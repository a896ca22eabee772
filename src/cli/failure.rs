//! How a command ends, and how it says that it did not work.

use std::io::{self, Write};
use std::process::ExitCode;

use proscenium::run::RunStatus;

use super::text::{clean, one_line};

/// The status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Completed,
    /// It was not, or not everything.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// The user, or a person who decides, has to say something first.
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

/// Why a command did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable, such as `store.locked`.
    pub code: String,
    /// What did not work, and where.
    pub message: String,
    /// What to do, where something can be done.
    pub remedy: Option<String>,
    /// The status to end with.
    pub exit: Exit,
}

impl Failure {
    /// Something that did not work.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), remedy: None, exit: Exit::Failed }
    }

    /// A wrong command line.
    pub fn usage(code: &str, message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, ..Self::new(code, message) }
    }

    /// With what to do.
    #[must_use]
    pub fn help(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// In the words of a command line, where what was told is in those of the HTTP API.
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

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::new("output.write", format!("the output cannot be written: {error}"))
    }
}
