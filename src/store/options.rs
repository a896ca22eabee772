//! The configuration's section `store`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::run::Fault;

/// Where things are kept, and how much may wait to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The data directory: the database, its journal and the lock. Made on first use; relative to the
    /// working directory.
    pub data_dir: PathBuf,
    /// Most events that wait to be written; whoever appends more waits for room.
    pub max_pending: usize,
    /// About how many events go into one commit: appends are added whole until it is reached.
    pub max_batch: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { data_dir: PathBuf::from("data"), max_pending: 8192, max_batch: 512 }
    }
}

impl Options {
    /// Everything that is wrong with these values, with the key's name and the remedy.
    pub fn problems(&self) -> Vec<Fault> {
        let mut problems = Vec::new();
        let mut wrong = |message: &str| problems.push(Fault::new("config.invalid", message));
        if self.data_dir.as_os_str().is_empty() {
            wrong("store.data_dir is empty: name a directory");
        }
        if !(1..=1_000_000).contains(&self.max_pending) {
            wrong("store.max_pending must be from 1 to 1000000");
        }
        if !(1..=100_000).contains(&self.max_batch) {
            wrong("store.max_batch must be from 1 to 100000");
        }
        problems
    }
}
