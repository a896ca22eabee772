//! What is wrong with a scene, where, and what to do about it.

use std::cell::RefCell;

use serde::Serialize;

/// How bad a [`Fault`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The scene cannot be used.
    Error,
    /// It works, perhaps not as meant.
    Warning,
}

/// One thing wrong with a scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// How bad it is.
    pub severity: Severity,
    /// The file, as it was found; for scenes built in Rust, which scene.
    pub file: String,
    /// The line, from 1; `None` where no line is to blame.
    pub line: Option<u32>,
    /// Stable, such as `scene.unknown_key`.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, ": {severity}[{}]: {}", self.code, self.message)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.remedy) }
    }
}

/// Gathers the faults of one file. Shared by the readers of its parts.
pub(super) struct Report {
    file: String,
    faults: RefCell<Vec<Fault>>,
}

impl Report {
    pub(super) fn new(file: impl Into<String>) -> Self {
        Self { file: file.into(), faults: RefCell::default() }
    }

    /// `code` without its `scene.` in front.
    pub(super) fn error(
        &self,
        line: Option<u32>,
        code: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Severity::Error, line, code, message.into(), remedy.into());
    }

    pub(super) fn warning(
        &self,
        line: Option<u32>,
        code: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Severity::Warning, line, code, message.into(), remedy.into());
    }

    fn push(&self, severity: Severity, line: Option<u32>, code: &str, message: String, remedy: String) {
        let fault =
            Fault { severity, file: self.file.clone(), line, code: format!("scene.{code}"), message, remedy };
        let mut faults = self.faults.borrow_mut();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// Takes over the faults of another file.
    pub(super) fn take(&self, other: Report) {
        self.faults.borrow_mut().extend(other.into_faults());
    }

    /// Whether any error was found.
    pub(super) fn failed(&self) -> bool {
        self.faults.borrow().iter().any(|fault| fault.severity == Severity::Error)
    }

    /// All faults, in the order of their lines.
    pub(super) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}
