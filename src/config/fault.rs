//! Faults of a configuration, and the origins of its values.

use std::fmt;
use std::path::PathBuf;

use crate::setting::{redact_passwords, redact_url};

/// Where a value comes from. Later layers win: built-in, file, environment, flags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// `config/default.toml`, which is part of the program.
    BuiltIn,
    /// The file given with `--config`.
    File {
        /// The path as given.
        path: PathBuf,
        /// The line, from 1; absent for the whole file.
        line: Option<usize>,
    },
    /// An environment variable, by name.
    Variable(String),
    /// A command line flag, such as `--data-dir`.
    Flag(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::BuiltIn => f.write_str("built-in defaults"),
            ValueOrigin::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            ValueOrigin::File { path, line: None } => write!(f, "{}", path.display()),
            ValueOrigin::Variable(name) => write!(f, "environment variable {name}"),
            ValueOrigin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// An error, or (as a warning) a value that is probably unintended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: error[{code}]: {message}\n  help: {remedy}")]
pub struct ConfigFault {
    /// Stable: `config.unknown_key`, `config.type`, `config.value`, `config.missing`,
    /// `config.syntax`, `config.file`, `config.unused`, `config.key`, `config.clock`,
    /// `config.insecure`, `config.price`.
    pub code: &'static str,
    /// Where the value comes from.
    pub origin: ValueOrigin,
    /// The dotted key, such as `planning.max_steps`. Empty for a whole file.
    pub key: String,
    /// The value as written; absent if there is none.
    pub value: Option<String>,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub remedy: String,
}

impl ConfigFault {
    /// Redacts the passwords of URLs in message and value.
    pub(super) fn redact_passwords(&mut self) {
        self.message = redact_passwords(&self.message);
        let hide: fn(&str) -> String = if self.key.ends_with("url") { redact_url } else { redact_passwords };
        self.value = self.value.take().map(|value| hide(&value));
    }
}

/// All faults of a configuration, in the order of the layers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigFaults(pub Vec<ConfigFault>);
