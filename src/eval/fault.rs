//! Faults of files of labelled requests, and why an evaluation cannot begin.

use std::path::{Path, PathBuf};

/// A fault of a file of labelled requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalFileFault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, where it has one.
    pub line: Option<usize>,
    /// A stable code, such as `eval.unknown_tool`.
    pub code: &'static str,
    /// The problem.
    pub message: String,
    /// How to fix it; may be empty.
    pub remedy: String,
}

impl EvalFileFault {
    /// A fault of a file without a line.
    pub(super) fn new(file: &Path, code: &'static str, message: impl Into<String>, remedy: &str) -> Self {
        let (file, message, remedy) = (file.to_owned(), message.into(), remedy.to_owned());
        Self { file, line: None, code, message, remedy }
    }
}

impl std::fmt::Display for EvalFileFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": error[{}]: {}", self.code, self.message)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.remedy) }
    }
}

/// Why an evaluation cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Files or labels have faults; contains all of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<EvalFileFault>),
    /// Anything else.
    #[error("{message}")]
    Other {
        /// A stable code, such as `eval.http_writes`.
        code: String,
        /// The problem.
        message: String,
        /// How to fix it; may be empty.
        remedy: String,
    },
}

impl EvalError {
    pub(super) fn new(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Other { code: code.to_owned(), message: message.into(), remedy: remedy.into() }
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        match self {
            Self::Files(faults) => faults.first().map_or("eval.file", |fault| fault.code),
            Self::Other { code, .. } => code,
        }
    }
}
