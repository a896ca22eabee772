//! Faults of a scene: what is wrong, where, and how to fix it.

use std::cell::RefCell;
use std::path::Path;

use serde::Serialize;

/// The severity of a [`SceneFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The scene cannot be used.
    Error,
    /// The scene works, but perhaps not as intended.
    Warning,
}

/// One fault of a scene, or of another file that is read in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SceneFault {
    /// Its severity.
    pub severity: Severity,
    /// The path of the file; for a scene built in Rust, the scene's name.
    pub file: String,
    /// The line, from 1; `None` if the fault has no line.
    pub line: Option<u32>,
    /// A stable code, such as `scene.unknown_key`.
    pub code: String,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

impl std::fmt::Display for SceneFault {
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

/// All faults of scenes that cannot be used. Shown, each is described with where it is and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SceneFaults(pub Vec<SceneFault>);

/// Collects the faults of one file. Shared by the readers of its parts.
pub(crate) struct FaultReport {
    /// What the file describes, such as `scene`; codes begin with it.
    kind: &'static str,
    file: String,
    faults: RefCell<Vec<SceneFault>>,
}

impl FaultReport {
    /// For a file of a scene.
    pub(crate) fn new(file: impl Into<String>) -> Self {
        Self::of("scene", file)
    }

    /// For a file that describes something of this kind.
    pub(crate) fn of(kind: &'static str, file: impl Into<String>) -> Self {
        Self { kind, file: file.into(), faults: RefCell::default() }
    }

    /// Returns what the file describes.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Adds an error. `code` is given without its prefix, such as `scene.`.
    pub(crate) fn error(
        &self,
        line: Option<u32>,
        code: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Severity::Error, line, format!("{}.{code}", self.kind), message.into(), remedy.into());
    }

    /// Adds an error with its whole code.
    pub(crate) fn error_as(&self, line: Option<u32>, code: &str, message: String, remedy: String) {
        self.push(Severity::Error, line, code.to_owned(), message, remedy);
    }

    pub(crate) fn warning(
        &self,
        line: Option<u32>,
        code: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Severity::Warning, line, format!("{}.{code}", self.kind), message.into(), remedy.into());
    }

    fn push(&self, severity: Severity, line: Option<u32>, code: String, message: String, remedy: String) {
        let fault = SceneFault { severity, file: self.file.clone(), line, code, message, remedy };
        let mut faults = self.faults.borrow_mut();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// The report of another file of the same folder.
    pub(crate) fn beside(&self, name: &str) -> Self {
        Self::new(Path::new(&self.file).with_file_name(name).display().to_string())
    }

    /// Adds the faults of another file.
    pub(crate) fn absorb(&self, other: FaultReport) {
        self.faults.borrow_mut().extend(other.into_faults());
    }

    /// Returns whether any error was found in another file of the same folder.
    pub(crate) fn has_errors_beside(&self, name: &str) -> bool {
        let file = self.beside(name).file;
        let is_error = |fault: &SceneFault| fault.severity == Severity::Error && fault.file == file;
        self.faults.borrow().iter().any(is_error)
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.faults.borrow().iter().any(|fault| fault.severity == Severity::Error)
    }

    /// All faults, ordered by line: first those of its own file.
    pub(crate) fn into_faults(self) -> Vec<SceneFault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| (fault.file != self.file, fault.line));
        faults
    }
}
