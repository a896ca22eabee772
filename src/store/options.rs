//! The configuration section `store`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setting::{SettingProblem, SettingsReview};

/// Where data is stored, and how many events may wait to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The data directory: the database, its journal and the lock. Created on first use; relative to the
    /// working directory.
    pub data_dir: PathBuf,
    /// Maximum number of events waiting to be written; further appends wait for room.
    pub max_pending: usize,
    /// Approximate number of events per commit: whole appends are added until it is reached.
    pub max_batch: usize,
    /// Days to keep a conversation after its last change; 0 keeps it forever.
    pub keep_sessions_days: u32,
    /// Maximum number of bytes of a tenant's events; not limited if absent.
    pub max_tenant_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("data"),
            max_pending: 8192,
            max_batch: 512,
            keep_sessions_days: 0,
            max_tenant_bytes: None,
        }
    }
}

impl Options {
    /// All problems with these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        if self.data_dir.as_os_str().is_empty() {
            let message = "`store.data_dir` must name a directory";
            review.add("store.data_dir", message, "write a path such as `data`");
        }
        review.range("store.max_pending", self.max_pending, 1..=1_000_000);
        review.range("store.max_batch", self.max_batch, 1..=100_000);
        review.range("store.keep_sessions_days", self.keep_sessions_days, 0..=36_500);
        review.range("store.max_tenant_bytes", self.max_tenant_bytes.unwrap_or(1), 1..=1 << 50);
        review.into_problems()
    }
}
