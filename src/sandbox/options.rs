//! The configuration section `sandbox`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::program::ProgramLimits;
use crate::setting::{SettingProblem, SettingsReview};

/// Maximum number of calls of a program: what `execution.max_calls` may be, which bounds it otherwise.
const MAX_CALLS: u32 = 256;

/// Bytes of a mebibyte.
const MIB: u64 = 1024 * 1024;

/// The processes that execute programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Maximum number of worker processes.
    pub workers: usize,
    /// Milliseconds that an execution may take.
    pub time_ms: u64,
    /// Milliseconds that all executions of one program may take together.
    pub total_ms: u64,
    /// Mebibytes that an execution may use.
    pub memory_mib: u64,
    /// Maximum number of milliseconds that an execution waits for a worker.
    pub wait_ms: u64,
    /// The program whose `sandbox-worker` is the worker. The program `proscenium` uses itself if this is absent; a
    /// library has no worker then.
    pub worker: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let ProgramLimits { time_ms, total_ms, memory_bytes, .. } = ProgramLimits::default();
        Self { workers: 2, time_ms, total_ms, memory_mib: memory_bytes / MIB, wait_ms: 5_000, worker: None }
    }
}

impl Options {
    /// All problems with these values.
    pub fn problems(&self) -> Vec<SettingProblem> {
        let mut review = SettingsReview::default();
        review.range("sandbox.workers", self.workers, 1..=256);
        review.range("sandbox.time_ms", self.time_ms, 50..=60_000);
        review.range("sandbox.total_ms", self.total_ms, 50..=600_000);
        if self.total_ms < self.time_ms {
            review.contradiction(
                &["sandbox.total_ms", "sandbox.time_ms"],
                "`sandbox.total_ms` is less than `sandbox.time_ms`",
                "raise `sandbox.total_ms`, or lower `sandbox.time_ms`",
            );
        }
        review.range("sandbox.memory_mib", self.memory_mib, 16..=4_096);
        review.range("sandbox.wait_ms", self.wait_ms, 0..=60_000);
        if self.worker.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            review.add(
                "sandbox.worker",
                "`sandbox.worker` is empty",
                "write the path of a program, or leave it out",
            );
        }
        review.into_problems()
    }

    /// The bounds of an execution.
    pub fn limits(&self) -> ProgramLimits {
        let memory_bytes = self.memory_mib.saturating_mul(MIB);
        let (time_ms, total_ms) = (self.time_ms, self.total_ms);
        ProgramLimits { time_ms, total_ms, memory_bytes, calls: MAX_CALLS, ..ProgramLimits::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_bounds() {
        assert_eq!(Options::default().problems(), []);
        let wrong = Options {
            workers: 0,
            time_ms: 1,
            total_ms: 600_001,
            memory_mib: 1,
            wait_ms: 60_001,
            worker: Some(PathBuf::new()),
        };
        let keys: Vec<String> = wrong.problems().into_iter().flat_map(|problem| problem.keys).collect();
        let all = ["workers", "time_ms", "total_ms", "memory_mib", "wait_ms", "worker"];
        assert_eq!(keys, all.map(|key| format!("sandbox.{key}")));
        let contrary = Options { time_ms: 40_000, ..Options::default() };
        assert_eq!(contrary.problems()[0].keys, ["sandbox.total_ms", "sandbox.time_ms"]);
    }
}
