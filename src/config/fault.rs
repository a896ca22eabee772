//! What can be wrong with a configuration, and where a value came from.

use std::fmt;
use std::path::PathBuf;

use crate::setting::{url_without_passwords, without_passwords};

/// Where a value was written. Later layers win: built-in, file, environment, flags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// `config/default.toml`, which is part of the program.
    BuiltIn,
    /// The file given with `--config`.
    File {
        /// As given.
        path: PathBuf,
        /// Counted from 1; absent where the whole file is meant.
        line: Option<usize>,
    },
    /// An environment variable, by its name.
    Variable(String),
    /// A flag of the command line, such as `--data-dir`.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("built-in defaults"),
            Origin::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Origin::File { path, line: None } => write!(f, "{}", path.display()),
            Origin::Variable(name) => write!(f, "environment variable {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One thing that is wrong, or (as a warning) probably not what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Stable: `config.unknown_key`, `config.type`, `config.value`, `config.missing`,
    /// `config.syntax`, `config.file`, `config.unused`, `config.key`, `config.clock`,
    /// `config.insecure`, `config.price`.
    pub code: &'static str,
    /// Where it was written.
    pub origin: Origin,
    /// The key, with dots: `planning.max_steps`. Empty where a whole file is meant.
    pub key: String,
    /// The value, as it was written; absent where there is none.
    pub value: Option<String>,
    /// What is wrong with it.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Fault {
    /// Hides the passwords of URLs that it tells.
    pub(super) fn hide_passwords(&mut self) {
        self.message = without_passwords(&self.message);
        let hide: fn(&str) -> String =
            if self.key.ends_with("url") { url_without_passwords } else { without_passwords };
        self.value = self.value.take().map(|value| hide(&value));
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: error[{}]: {}\n  help: {}", self.origin, self.code, self.message, self.remedy)
    }
}

/// Everything that is wrong with a configuration, in the order of the layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
