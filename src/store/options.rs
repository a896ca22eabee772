//! The configuration's section `store`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setting::{Review, Wrong};

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
    /// Days for which a conversation is kept after its last change; 0 for ever.
    pub keep_sessions_days: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { data_dir: PathBuf::from("data"), max_pending: 8192, max_batch: 512, keep_sessions_days: 0 }
    }
}

impl Options {
    /// Everything that is wrong with these values.
    pub fn problems(&self) -> Vec<Wrong> {
        let mut review = Review::default();
        if self.data_dir.as_os_str().is_empty() {
            let message = "`store.data_dir` must name a directory";
            review.add("store.data_dir", message, "write a path such as `data`");
        }
        review.range("store.max_pending", self.max_pending, 1..=1_000_000);
        review.range("store.max_batch", self.max_batch, 1..=100_000);
        review.range("store.keep_sessions_days", self.keep_sessions_days, 0..=36_500);
        review.end()
    }
}
