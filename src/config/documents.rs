//! `[documents]`: how large documents may be, and how long they are kept.

use serde::{Deserialize, Serialize};

use crate::setting::{DAY_MS, SettingProblem, SettingsReview};
use crate::store::DocumentLimits;

/// `[documents]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentsConfig {
    /// Maximum size of a document, in bytes.
    pub max_bytes: u64,
    /// Timeout for an upload, in milliseconds.
    pub upload_timeout_ms: u64,
    /// Timeout between two parts of an upload, in milliseconds.
    pub idle_timeout_ms: u64,
    /// Maximum number of uploads in progress.
    pub max_uploads: usize,
    /// Maximum number of documents of one user.
    pub max_per_user: u32,
    /// Days to keep a document after it was last uploaded or named by a request; 0 keeps it for ever.
    pub keep_days: u32,
}

impl Default for DocumentsConfig {
    fn default() -> Self {
        Self {
            max_bytes: 32 << 20,
            upload_timeout_ms: 120_000,
            idle_timeout_ms: 20_000,
            max_uploads: 32,
            max_per_user: 1000,
            keep_days: 0,
        }
    }
}

impl DocumentsConfig {
    /// Returns the limits that the store checks.
    pub fn limits(&self) -> DocumentLimits {
        DocumentLimits { max_bytes: self.max_bytes, max_per_user: self.max_per_user }
    }

    /// Validates these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("documents.max_bytes", self.max_bytes, 1..=1 << 30);
        review.range("documents.upload_timeout_ms", self.upload_timeout_ms, 1..=DAY_MS);
        review.range("documents.idle_timeout_ms", self.idle_timeout_ms, 1..=DAY_MS);
        review.range("documents.max_uploads", self.max_uploads, 1..=10_000);
        review.range("documents.max_per_user", self.max_per_user, 1..=1_000_000);
        review.range("documents.keep_days", self.keep_days, 0..=36_500);
        review.into_problems()
    }
}
